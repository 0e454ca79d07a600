/* SPDX-License-Identifier: BSD-2-Clause */
#include "layout_show.h"

void layout_put_bits(struct json_doc *b, json_object *object, const struct prcb_layout_field *f)
{
    json_object *bits;

    if (!f->bit_width)
        return;
    bits = json_object_new_array();
    json_doc_append(b, bits, json_object_new_int(f->bit_first));
    json_doc_append(b, bits, json_object_new_int(f->bit_width));
    json_doc_put(b, object, "bits", bits);
}
