/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Names on their way into a page: control characters are marked, and where it is asked for, names
 * are replaced by a hash under a key that is made once for a page and not kept, so that equal
 * names stay equal in it and nobody can try a list of names.
 */
#ifndef PRCB_PAGE_NAMES_H
#define PRCB_PAGE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct page_names {
    bool redact;
    uint8_t key[16];
};

/* -errno: no random key could be had. */
int page_names_init(struct page_names *ret, bool redact);

/* Returns a name's text for the page. "" stays empty, and a name in brackets ("[unknown]") stays
 * as it is. The caller frees it; NULL: no memory. */
char *page_names_show(const struct page_names *names, const char *name);

#endif
