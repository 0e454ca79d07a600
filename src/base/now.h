/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Returns what a clock shows, in nanoseconds.
 */
#ifndef PRCB_BASE_NOW_H
#define PRCB_BASE_NOW_H

#include <stdint.h>
#include <time.h>

static inline uint64_t now_by(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Returns the time by the clock by which accounts are kept. */
static inline uint64_t now_ns(void)
{
    return now_by(CLOCK_MONOTONIC);
}

/* Returns the same in milliseconds: for time limits. */
static inline uint64_t now_ms(void)
{
    return now_ns() / 1000000;
}

#endif
