/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What spans of traces waited for: the waits whose span is known (prcb record --spans), by span,
 * thread, cause and stack. Each wait has its own time alone, also where it stands for others: of
 * these nobody knows the span. What a span ran, and was ready, is not told by a recording.
 */
#ifndef PRCB_RECORD_SPANNED_H
#define PRCB_RECORD_SPANNED_H

#include "recording.h"

struct spanned_row {
    const char *trace_id, *span_id; /* hexadecimal digits; borrowed from the recording */
    size_t thread;                  /* index */
    char cause[24];                 /* "": not known */
    int reason;                     /* KWAIT_REASON; negative: not known */
    size_t stack;                   /* index; SIZE_MAX: none */
    const char *word;
    uint64_t ns, count;
    uint64_t span_ns; /* of all rows of its span */
};

struct spanned {
    struct spanned_row *rows; /* the span that waited longest first; rows of a span side by side */
    size_t count, spans;
    uint64_t ns;
};

int spanned_make(const struct recording *recording, struct spanned *ret, struct prcb_error *err);
void spanned_free(struct spanned *spanned);
bool spanned_same(const struct spanned_row *a, const struct spanned_row *b); /* of one span */

#endif
