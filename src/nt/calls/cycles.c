/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Converts nanoseconds to cycles of the time-stamp counter. The process has one rate, for a
 * second rate, however near, would make a value smaller than one that was already told.
 */
#include <time.h>

#include "clock.h"
#include "now.h"
#include "view.h"

/* The two ends are each good to some 20 ns: a rate over so long is good to 4 in a million. */
#define SHORTEST_NS 10000000ull

static struct clock_base base;
static bool begun;
static uint64_t cycles_per_ns; /* times 2^32; 0: not measured yet */

void nt_cycles_begin(void)
{
    if (!begun)
        clock_base_init(&base);
    begun = true;
}

static void measure(void)
{
    uint64_t age;

    nt_cycles_begin();
    age = now_ns() - base.mono;
    if (base.use_ticks && age < SHORTEST_NS)
        nanosleep(&(struct timespec){.tv_nsec = (long)(SHORTEST_NS - age)}, NULL);
    cycles_per_ns = (uint64_t)(clock_tick_rate(&base) / 1e9 * 4294967296.0);
    if (!cycles_per_ns)
        cycles_per_ns = 1ull << 32;
}

uint64_t nt_cycles(uint64_t ns)
{
    if (!cycles_per_ns)
        measure();
    return wide_shift(ns, cycles_per_ns, 32);
}
