/* SPDX-License-Identifier: BSD-2-Clause
 *
 * "Now" in nanoseconds of CLOCK_MONOTONIC from the processor's counter, without a
 * system call: x86-64's time-stamp counter where it is invariant and the kernel
 * keeps time by it, arm64's virtual counter, else the vDSO's clock_gettime.
 *
 * A clock_base is taken once and then constant. A clock belongs to one thread; it
 * calibrates itself against the vDSO, again when it is older than a second.
 */
#ifndef PRCB_HOST_CLOCK_H
#define PRCB_HOST_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "now.h"
#include "wide.h"

/* Holds a moment on both clocks, far enough back for a good slope. */
struct clock_base {
    uint64_t ticks;
    uint64_t mono;
    bool kernel_uses; /* the kernel keeps time by the counter */
    bool use_ticks;   /* so do we: besides, it is known to run at one rate */
};

struct clock {
    uint64_t ticks; /* at the last calibration */
    uint64_t mono;
    uint64_t mult; /* nanoseconds per tick, times 2^32; 0: use the vDSO */
    uint64_t life; /* ticks until the next calibration */
};

void clock_base_init(struct clock_base *base);

/* Computes slope and origin; leaves mult 0 while the base is too young (50 ms). */
void clock_calibrate(struct clock *clock, const struct clock_base *base);

/* Returns ticks per second measured since the base, over at least a few milliseconds; 0: there is
 * no trusted counter. */
double clock_tick_rate(const struct clock_base *base);

/* Reads the counter. It is not fenced: the processor may read the counter before loads that stand
 * before it (a fence costs more than the read). "Now" can so be early by a cache miss, and whoever
 * subtracts a stamp from it must expect a stamp that is later. */
static inline uint64_t clock_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return 0;
#endif
}

/* Returns the time now. *fresh is set when this call calibrated: a caller that keeps a value
 * which ages with the clock renews it then. */
static inline uint64_t clock_now(struct clock *clock, const struct clock_base *base, bool *fresh)
{
    uint64_t elapsed;

    if (!base->use_ticks) {
        *fresh = true;
        return now_ns();
    }
    elapsed = clock_ticks() - clock->ticks;
    if (__builtin_expect(elapsed > clock->life, 0)) {
        clock_calibrate(clock, base);
        *fresh = true;
        elapsed = clock_ticks() - clock->ticks;
    }
    if (!clock->mult)
        return now_ns();
    return clock->mono + wide_shift(elapsed, clock->mult, 32);
}

#endif
