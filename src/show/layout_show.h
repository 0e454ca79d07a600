/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Layouts of Windows' structures as documents and tables.
 */
#ifndef PRCB_SHOW_LAYOUT_SHOW_H
#define PRCB_SHOW_LAYOUT_SHOW_H

#include <prcb/layout.h>

#include "json_doc.h"

/* "bits": [first, width], for a bit field only. */
void layout_put_bits(struct json_doc *b, json_object *object, const struct prcb_layout_field *f);

#endif
