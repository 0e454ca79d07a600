/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The time increment: 100 ns units between two clock interrupts. Linux has one tick length, the
 * step of its coarse clocks, and tells it to everybody.
 */
#include <time.h>

#include "view.h"

/* As KeSetTimeIncrement has set it; 0: the kernel's. Under the lock. */
static uint32_t set_increment;

static uint32_t tick_length(void)
{
    struct timespec tick;

    /* 100 Hz, the least that Linux can be built with, where it is not told. */
    if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) || tick.tv_sec || tick.tv_nsec < 100)
        return 100000;
    return (uint32_t)((tick.tv_nsec + 50) / 100);
}

uint32_t nt_maximum_increment(void)
{
    uint32_t increment = __atomic_load_n(&set_increment, __ATOMIC_RELAXED); /* stands alone */

    return increment ? increment : tick_length();
}

uint32_t prcb_KeQueryTimeIncrement(void)
{
    return nt_maximum_increment();
}

void prcb_KeSetTimeIncrement(uint32_t MaximumIncrement, uint32_t MinimumIncrement)
{
    if (!MaximumIncrement || MinimumIncrement > MaximumIncrement) {
        nt_fail(STATUS_INVALID_PARAMETER, "increments %u to %u: nothing is set", MinimumIncrement,
                MaximumIncrement);
        return;
    }
    nt_enter();
    nt_view_fold();
    __atomic_store_n(&set_increment, MaximumIncrement, __ATOMIC_RELAXED);
    nt_leave();
}
