/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The critical path: what a thread's time was spent on, its own work or that of whoever it
 * waited for. It is found backwards, from the end of a window to its beginning: from a thread
 * that waits the path goes to the one that woke it, as of that moment, and comes back where the
 * wait began. A kernel's worker that had nothing to do meanwhile is not what was waited for.
 */
#ifndef PRCB_RECORD_CRITICAL_H
#define PRCB_RECORD_CRITICAL_H

#include <stdio.h>

#include "recording.h"

enum critical_kind {
    CRITICAL_RUNS,    /* the thread ran */
    CRITICAL_READY,   /* it could have, but another one had the processor, or a quota was used up */
    CRITICAL_WAITS,   /* for no thread that is known: by says what ended it */
    CRITICAL_UNKNOWN, /* nothing is recorded of it */
};

struct critical_step {
    uint64_t start_ns, end_ns;
    enum critical_kind kind;
    size_t thread; /* index: whose time it is */
    size_t other; /* READY: who ran on its processor then, for the most part; SIZE_MAX: not known */
    size_t waker; /* WAITS: who ended it; SIZE_MAX: not known */
    const char *cause; /* of READY and WAITS; "": not known */
    unsigned depth;    /* how many waits lie between the thread of the path and this one */
};

struct critical {
    const struct recording *recording;
    size_t thread; /* of the path */
    uint64_t from_ns, to_ns;
    struct critical_step *steps; /* by time; they fill the window */
    size_t count;
    char (*causes)[24]; /* owned: what the steps point to */
};

/* Finds the path in the window from_ns to to_ns (of the recording's clock) as far as the thread
 * lived in it. -ESRCH: there is no such thread; -EINVAL: the window is empty; -ENODATA: no
 * switches or no wakers were recorded. */
int critical_make(const struct recording *recording, int64_t tid, uint64_t from_ns, uint64_t to_ns,
                  struct critical *ret, struct prcb_error *err);
void critical_free(struct critical *critical);

/* Writes the longest sums in a sentence: "40 ms: disk-1 (45) waits for fsync; ...". */
void critical_print_sentence(const struct critical *critical, FILE *out);
/* top: sums and steps that are printed, the longest; 0: all. */
void critical_print_text(const struct critical *critical, size_t top, FILE *out);
void critical_print_csv(const struct critical *critical, const char *separator, FILE *out);
void critical_print_json(const struct critical *critical, FILE *out);

#endif
