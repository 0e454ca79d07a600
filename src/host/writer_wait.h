/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How long a reader of blocks waits for a writer in the middle of an update.
 */
#ifndef PRCB_HOST_WRITER_WAIT_H
#define PRCB_HOST_WRITER_WAIT_H

#include <sched.h>

#include "clock.h"

#define WRITER_GIVE_UP_NS 20000000ull
#define WRITER_SPINS      1000

/* A writer is done in a microsecond, unless a hypervisor took its processor away in the middle:
 * give ours up once, then wait a bounded time. pass counts from 1; *deadline is 0 before the first.
 * False: the time is over. */
static inline bool writer_wait(uint32_t pass, uint64_t *deadline)
{
    if (pass % WRITER_SPINS)
        return true;
    if (!*deadline) {
        *deadline = clock_mono() + WRITER_GIVE_UP_NS;
        sched_yield();
        return true;
    }
    return clock_mono() <= *deadline;
}

#endif
