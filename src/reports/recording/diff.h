/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What changed from one recording (a, the base) to another (b): times per second of each one's
 * wall time, in all, by cause of waiting, by threads with the same name except for digits
 * (pairing.h), and by function. It has no output but the three forms of a report.
 *
 * Threads  One at a time.
 * Errors   0 or -errno, words in *err.
 */
#ifndef PRCB_RECORD_DIFF_H
#define PRCB_RECORD_DIFF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "recording.h"

enum diff_kind { DIFF_TOTAL, DIFF_CAUSE, DIFF_THREAD, DIFF_FUNCTION };

/* A figure of both recordings; a thread has three rows. */
struct diff_row {
    enum diff_kind kind;
    char *name;         /* "ready", "futex", "worker-#", a function; owned */
    const char *figure; /* of a thread: "running", "ready", "waiting"; of a function its file */
    uint64_t value[2];  /* ns, or events */
    double rate[2];     /* the same per second of wall time */
};

struct diff {
    const struct recording *recordings[2];
    uint64_t span_ns[2];
    bool has_switches;     /* both have them; else there are functions only */
    bool weight_is_ns;     /* of functions */
    struct diff_row *rows; /* by kind, the greatest change first */
    size_t count;
};

/* -EINVAL: they cannot be compared: different events, or no time. */
int diff_make(const struct recording *a, const struct recording *b, struct diff *ret,
              struct prcb_error *err);
void diff_free(struct diff *diff);

/* A condition: FIGURE[@THREAD] > or < CHANGE, in percent of a, or time per second (us, ms, s), as
 * "ready>+10%", "futex>5ms", "waiting@worker-#<-1%". *ret: it holds. -EINVAL: not understood, or
 * there is no such figure. */
int diff_check(const struct diff *diff, const char *condition, bool *ret, struct prcb_error *err);

/* top: rows of a kind; 0: all. */
void diff_print_text(const struct diff *diff, size_t top, FILE *out);
void diff_print_csv(const struct diff *diff, size_t top, const char *separator, FILE *out);
int diff_print_json(const struct diff *diff, size_t top, FILE *out);

#endif
