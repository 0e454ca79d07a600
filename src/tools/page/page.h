/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes a recording as one HTML file that needs nothing but a browser: the page (page.html,
 * style.css, the scripts) with the recording's data in it, deflated. docs/page.md says what it
 * shows and how its data are laid out. It shows text that others chose: this goes through
 * base/text.h here and becomes text nodes there, never markup.
 *
 * Threads: one at a time. Errors: 0 or -errno, words in *err.
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

/* Writes the page of a recording; with a base, the page of what changed since it. -EFBIG: the
 * page does not fit max_bytes even without a timeline. Write errors show in the stream. */
int page_write(const struct recording *recording, const struct recording *base,
               const struct page_options *options, FILE *out, struct prcb_error *err);

#endif
