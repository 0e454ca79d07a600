/* SPDX-License-Identifier: BSD-2-Clause
 *
 * All time of a recording's threads: running by stacks of samples, ready, waiting by cause and
 * stack. The rows of a thread sum to its life within the recording, in ns: switches say how long it
 * ran, and samples only which part of that goes where.
 */
#ifndef PRCB_RECORD_ALL_TIME_H
#define PRCB_RECORD_ALL_TIME_H

#include "offcpu.h"
#include "recording.h"

enum all_time_kind { ALL_TIME_RUNNING, ALL_TIME_READY, ALL_TIME_WAITING, ALL_TIME_UNKNOWN };

struct all_time_row {
    enum all_time_kind kind;
    size_t thread;    /* index */
    char cause[24];   /* waiting, and of a ready time why it left the processor; "": not known */
    size_t stack;     /* index; SIZE_MAX: none */
    const char *rest; /* why there is none; NULL: there is, or none is to be had of this kind */
    bool idle;        /* by design */
    uint64_t ns;
    uint64_t samples, weight; /* running: what its part was made of */
};

struct all_time {
    struct all_time_row *rows; /* waits last */
    size_t count;
    uint64_t ns; /* their sum */
};

/* The recording has switches: else -ENOENT. */
int all_time_make(const struct recording *recording, struct all_time *ret, struct prcb_error *err);
#define ALL_TIME_STATE 40
/* What the thread did, in words: "running", "ready, after futex", "futex"; "": waiting, and for
 * what is not known. */
const char *all_time_state(const struct all_time_row *row, char ret[ALL_TIME_STATE]);
void all_time_free(struct all_time *all);

#endif
