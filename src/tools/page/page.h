/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A recording as one HTML file that needs nothing but a browser: the page (page.html, style.css,
 * the scripts) with the recording's data in it, deflated. docs/page.md says what it shows and how
 * its data are laid out. What is shown in it is text of others: it goes through base/text.h here
 * and becomes text nodes there, never markup.
 *
 * Threads  One at a time.
 * Errors   0 or -errno, words in *err.
 */
#ifndef PRCB_PAGE_H
#define PRCB_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "recording.h"

#define PAGE_DEFAULT_MAX (20u << 20)

struct page_options {
    uint64_t max_bytes; /* of the file: the timeline is made coarser until it fits */
    bool redact;        /* names are hashed, the machine and its command are left out */
};

/* Writes the page of a recording; with a base, of what changed since it. -EFBIG: it does not fit
 * max_bytes without any timeline either. What could not be written shows in the stream. */
int page_write(const struct recording *recording, const struct recording *base,
               const struct page_options *options, FILE *out, struct prcb_error *err);

#endif
