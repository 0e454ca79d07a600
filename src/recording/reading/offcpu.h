/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where threads waited: the time of each thread's waits by cause and stack. For each thread and
 * cause the rows sum to the time of its waits: time without a known stack has a row that says
 * why.
 */
#ifndef PRCB_RECORD_OFFCPU_H
#define PRCB_RECORD_OFFCPU_H

#include "recording.h"

struct offcpu_row {
    size_t thread;           /* index */
    char cause[24];          /* "": not known */
    int reason;              /* KWAIT_REASON; negative: not known */
    size_t stack;            /* index; SIZE_MAX: none */
    const char *rest;        /* stack SIZE_MAX: "[too short]" ...; else NULL */
    const char *kind, *word; /* as of struct recorded_wait */
    uint64_t ns, count;      /* count: waits; of a stack that stands for more than its own,
                                those that were read */
};

struct offcpu {
    struct offcpu_row *rows; /* longest first, those that idle by design last */
    size_t count;
    uint64_t ns, known_ns, idle_ns; /* of all waits; with a stack; of these, idling by design */
};

/* The recording has stacks of waits (has_wait_stacks), or all of it is one "[no stacks]" a cause.
 */
int offcpu_make(const struct recording *recording, struct offcpu *ret, struct prcb_error *err);
void offcpu_free(struct offcpu *offcpu);
/* Returns why a wait has no stack, "[too short]" ...; wait NULL: nothing tells of it. */
const char *offcpu_rest(const struct recording *recording, const struct recorded_wait *wait);
bool offcpu_is_idle(const struct offcpu_row *row); /* by design */

#endif
