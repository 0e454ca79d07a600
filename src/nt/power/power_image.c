/* SPDX-License-Identifier: BSD-2-Clause */
#include "power_image.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "layout_show.h"
#include "power_members.h"

/* A total that is too large for its member wraps, as NT's does. */
static uint64_t wrap(const struct prcb_layout_field *leaf, uint64_t value)
{
    return leaf->size < sizeof(value) ? value & ((1ull << (8 * leaf->size)) - 1) : value;
}

static struct power_value fill(struct power_image *image, const struct prcb_layout_field *leaf,
                               const struct power_state *s)
{
    const struct power_member *row = power_member_find(leaf->name);
    struct power_value value;

    if (!row || !row->source)
        return (struct power_value){.reason = row ? row->reason : "nothing is known of it"};
    value = row->source->value(s);
    if (value.reason)
        return value;
    if (row->source->counts)
        value.value = wrap(leaf, value.value);
    if (prcb_layout_encode(image->layout, leaf, 0, value.value, image->bytes, image->length, NULL))
        value.reason = "the number does not fit the member";
    return value;
}

int power_image_make(const struct prcb_layout *layout, const struct power_state *s,
                     struct power_image *ret)
{
    struct power_image image = {.layout = layout, .length = prcb_layout_size(layout)};

    image.leaves = prcb_layout_leaves(layout, &image.count);
    image.values = calloc(image.count + 1, sizeof(*image.values));
    image.bytes = calloc(1, image.length + 1);
    if (!image.values || !image.bytes) {
        power_image_deinit(&image);
        return -ENOMEM;
    }
    for (size_t i = 0; i < image.count; i++)
        image.values[i] = fill(&image, &image.leaves[i], s);
    *ret = image;
    return 0;
}

void power_image_deinit(struct power_image *image)
{
    free(image->values);
    free(image->bytes);
    memset(image, 0, sizeof(*image));
}

static const char *source_of(const struct prcb_layout_field *leaf)
{
    const struct power_member *row = power_member_find(leaf->name);

    return row && row->source ? row->source->words : NULL;
}

void power_image_print(FILE *out, const struct power_image *image)
{
    for (size_t i = 0; i < image->count; i++) {
        const struct prcb_layout_field *leaf = &image->leaves[i];
        const struct power_value *value = &image->values[i];
        char cell[32] = "-";

        if (!value->reason)
            snprintf(cell, sizeof(cell), "%" PRIu64, value->value);
        fprintf(out, "0x%03X  %-40s %20s  %s\n", leaf->offset, leaf->name, cell,
                value->reason ? value->reason : source_of(leaf));
    }
}

json_object *power_image_json(struct json_doc *b, const struct power_image *image)
{
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < image->count; i++) {
        const struct prcb_layout_field *leaf = &image->leaves[i];
        const struct power_value *value = &image->values[i];
        json_object *object = json_object_new_object();
        char type[128];

        prcb_layout_type_text(leaf, type, sizeof(type));
        json_doc_put_text(b, object, "name", leaf->name);
        json_doc_put_number(b, object, "offset", leaf->offset);
        json_doc_put_number(b, object, "size", leaf->size);
        layout_put_bits(b, object, leaf);
        json_doc_put_text(b, object, "type", type);
        json_doc_put_member(b, object, "value", value->value, !value->reason);
        if (value->reason)
            json_doc_put_text(b, object, "reason", value->reason);
        else
            json_doc_put_text(b, object, "source", source_of(leaf));
        json_doc_append(b, array, object);
    }
    return array;
}
