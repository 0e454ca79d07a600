/* SPDX-License-Identifier: BSD-2-Clause
 *
 * From the switches of a recording to stretches: a thread running, ready or waiting
 * from one moment to another.
 */
#ifndef PRCB_RECORD_STRETCHES_H
#define PRCB_RECORD_STRETCHES_H

#include "recording.h"

enum stretch_kind { STRETCH_RUNNING, STRETCH_READY, STRETCH_WAITING };

#define STRETCH_NO_CPU UINT32_MAX
#define STRETCH_CPUS   4096 /* of more, what was not told is not noticed */

struct stretch {
    enum stretch_kind kind;
    size_t thread; /* index */
    uint32_t cpu;  /* running: where; STRETCH_NO_CPU: not known */
    uint64_t start_ns, end_ns;
    bool open;         /* it had not ended when the recording did */
    const char *cause; /* why the thread left the processor; "": not known */
    int reason;        /* KWAIT_REASON of the cause; negative: not known */
    /* For a wait, and the ready time that follows it: who ended it (index; SIZE_MAX: not known),
     * when, and on which processor the waker was then (STRETCH_NO_CPU: not known). The moment
     * may be before the wait's beginning: a thread can be woken while it is about to sleep. */
    size_t waker;
    uint64_t woken_ns;
    uint32_t woken_cpu;
};

/* Calls fn for each stretch, in the order in which they end. Stops at the first non-zero
 * return and returns it. */
int stretches_walk(const struct recording *recording,
                   int (*fn)(const struct stretch *stretch, void *ctx), void *ctx,
                   struct prcb_error *err);
/* Does the same, and counts the switches that the kernel made and no record tells of: a thread
 * leaves that had not come, or another one than had come. What it did until then is not known,
 * and in no stretch. */
int stretches_walk_counting(const struct recording *recording,
                            int (*fn)(const struct stretch *stretch, void *ctx), void *ctx,
                            uint64_t *ret_missed, struct prcb_error *err);

#endif
