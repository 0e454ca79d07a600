/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The live power state in the layout of a version of Windows.
 */
#ifndef PRCB_POWER_IMAGE_H
#define PRCB_POWER_IMAGE_H

#include <stdio.h>

#include <prcb/layout.h>

#include "json_doc.h"
#include "power_state.h"

struct power_image {
    const struct prcb_layout *layout;       /* borrowed */
    const struct prcb_layout_field *leaves; /* borrowed from it */
    size_t count;                           /* of leaves and values */
    struct power_value *values;             /* owned: what is in the bytes, or why not */
    uint8_t *bytes;                         /* owned */
    size_t length;
};

/* Fills the structure for one processor; bytes of absent members are 0. 0 or -ENOMEM. */
int power_image_make(const struct prcb_layout *layout, const struct power_state *s,
                     struct power_image *ret);
void power_image_deinit(struct power_image *image);

void power_image_print(FILE *out, const struct power_image *image);
/* [{"name","offset","size","type","value"}], "bits" of a bit field, and "source" or "reason". */
json_object *power_image_json(struct json_doc *b, const struct power_image *image);

#endif
