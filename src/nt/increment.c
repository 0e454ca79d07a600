/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The time increment: 100 ns units between two clock interrupts. Linux has one tick length, the
 * step of its coarse clocks, and tells it to everybody.
 */
#include "inside.h"

#include <time.h>

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
    return tick_length();
}

uint32_t prcb_KeQueryTimeIncrement(void)
{
    return nt_maximum_increment();
}
