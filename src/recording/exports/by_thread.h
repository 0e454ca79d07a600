/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A page's data thread by thread, for export_firefox.c.
 */
#ifndef PRCB_PAGE_BY_THREAD_H
#define PRCB_PAGE_BY_THREAD_H

#include "data.h"

struct page_thread {
    size_t index;
    const struct page_stretch *stretches;
    size_t stretch_count;
    const struct page_sample *samples; /* by time */
    size_t sample_count;
};

/* Calls fn for each thread that has any of them; stops at the first non-zero return and returns
 * it. -ENOMEM */
int page_threads(const struct page_data *data,
                 int (*fn)(const struct page_thread *thread, void *ctx), void *ctx);

/* Writes the text in quotes, as JSON has it; "[unknown] FILE" for a function without a name. */
void page_put_text(FILE *out, const char *text);
void page_put_function(FILE *out, const struct page_data *data, uint32_t code);
/* Writes "futex", "ready", in quotes, with a word before it. */
void page_put_state(FILE *out, const struct page_state *state);

#endif
