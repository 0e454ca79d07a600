/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb layout --diff: what changed in a structure from one version to another.
 */
#include "layout_request.h"

#include <string.h>

struct change {
    const char *kind; /* "added", "removed", "moved", "resized", "retyped" */
    const struct prcb_layout_field *from, *to;
};

static const struct prcb_layout_field *find_member(const struct prcb_layout *l, const char *name)
{
    size_t count;
    const struct prcb_layout_field *f = prcb_layout_members(l, &count);

    for (size_t i = 0; i < count; i++)
        if (!strcmp(f[i].name, name))
            return &f[i];
    return NULL;
}

static bool same_type(const struct prcb_layout_field *a, const struct prcb_layout_field *b)
{
    char type_a[96], type_b[96];

    prcb_layout_type_text(a, type_a, sizeof(type_a));
    prcb_layout_type_text(b, type_b, sizeof(type_b));
    return !strcmp(type_a, type_b);
}

static bool moved(const struct prcb_layout_field *a, const struct prcb_layout_field *b)
{
    return a->offset != b->offset || a->bit_first != b->bit_first;
}

static bool resized(const struct prcb_layout_field *a, const struct prcb_layout_field *b)
{
    return a->size != b->size || a->bit_width != b->bit_width;
}

typedef void (*change_fn)(const struct change *change, void *context);

/* Calls fn for every change: removals in the old order, then the rest in the new one. */
static void each_change(const struct prcb_layout *from, const struct prcb_layout *to, change_fn fn,
                        void *context)
{
    size_t count;
    const struct prcb_layout_field *f = prcb_layout_members(from, &count);

    for (size_t i = 0; i < count; i++)
        if (!find_member(to, f[i].name))
            fn(&(struct change){"removed", &f[i], NULL}, context);
    f = prcb_layout_members(to, &count);
    for (size_t i = 0; i < count; i++) {
        const struct prcb_layout_field *old = find_member(from, f[i].name);

        if (!old)
            fn(&(struct change){"added", NULL, &f[i]}, context);
        if (old && moved(old, &f[i]))
            fn(&(struct change){"moved", old, &f[i]}, context);
        if (old && resized(old, &f[i]))
            fn(&(struct change){"resized", old, &f[i]}, context);
        if (old && !same_type(old, &f[i]))
            fn(&(struct change){"retyped", old, &f[i]}, context);
    }
}

static void print_side(const struct prcb_layout_field *f)
{
    char type[96];

    if (!f)
        return;
    prcb_layout_type_text(f, type, sizeof(type));
    printf("0x%03X, %u bytes, %s", f->offset, f->size, type);
    if (f->bit_width)
        printf(", bits %u..%u", (unsigned int)f->bit_first,
               (unsigned int)(f->bit_first + f->bit_width - 1));
}

static void print_change(const struct change *c, void *context)
{
    (void)context;
    printf("%-8s %-36s ", c->kind, (c->from ? c->from : c->to)->name);
    print_side(c->from);
    if (c->from && c->to)
        printf(" -> ");
    print_side(c->to);
    putchar('\n');
}

static struct json_object *side_json(const struct prcb_layout_field *f)
{
    struct json_object *o;
    char type[96];

    if (!f)
        return NULL;
    o = json_object_new_object();
    prcb_layout_type_text(f, type, sizeof(type));
    json_object_object_add(o, "offset", json_object_new_uint64(f->offset));
    json_object_object_add(o, "type", json_object_new_string(type));
    json_object_object_add(o, "size", json_object_new_uint64(f->size));
    layout_add_bits(o, f);
    return o;
}

static void add_change(const struct change *c, void *context)
{
    struct json_object *o = json_object_new_object();
    const char *name = (c->from ? c->from : c->to)->name;

    json_object_object_add(o, "change", json_object_new_string(c->kind));
    json_object_object_add(o, "name", json_object_new_string(name));
    json_object_object_add(o, "from", side_json(c->from));
    json_object_object_add(o, "to", side_json(c->to));
    json_object_array_add(context, o);
}

static struct json_object *version_json(const struct prcb_layout *l)
{
    struct json_object *o = json_object_new_object();
    struct prcb_layout_version v;

    prcb_layout_version(l, &v);
    json_object_object_add(o, "version", json_object_new_string(v.name));
    json_object_object_add(o, "size", json_object_new_uint64(prcb_layout_size(l)));
    return o;
}

static void diff_json(const struct prcb_layout *from, const struct prcb_layout *to)
{
    struct json_object *o = json_object_new_object(), *changes = json_object_new_array();

    each_change(from, to, add_change, changes);
    json_object_object_add(o, "struct", json_object_new_string(prcb_layout_name(to)));
    json_object_object_add(o, "arch", json_object_new_string(prcb_arch_name(prcb_layout_arch(to))));
    json_object_object_add(o, "from", version_json(from));
    json_object_object_add(o, "to", version_json(to));
    json_object_object_add(o, "changes", changes);
    layout_put_json(o);
}

static void diff_text(const struct prcb_layout *from, const struct prcb_layout *to)
{
    struct prcb_layout_version a, b;

    prcb_layout_version(from, &a);
    prcb_layout_version(to, &b);
    printf("%s %s: %s (0x%X bytes) -> %s (0x%X bytes)\n", prcb_layout_name(to),
           prcb_arch_name(prcb_layout_arch(to)), a.name, prcb_layout_size(from), b.name,
           prcb_layout_size(to));
    each_change(from, to, print_change, NULL);
}

int layout_diff(const struct layout_request *r)
{
    struct layout_request request = *r;
    struct prcb_layout *from, *to;
    int status = layout_open(r, r->diff[0], &from);

    if (status)
        return status;
    request.arch = prcb_layout_arch(from); /* of one architecture, not of two */
    request.arch_given = true;
    status = layout_open(&request, r->diff[1], &to);
    if (!status) {
        if (r->json)
            diff_json(from, to);
        else
            diff_text(from, to);
        prcb_layout_free(to);
    }
    prcb_layout_free(from);
    return status;
}
