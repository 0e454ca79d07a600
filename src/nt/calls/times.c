/* SPDX-License-Identifier: BSD-2-Clause
 *
 * NT's times out of a record: which part goes where, the two ways to tell them, and the time
 * increment of the second.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "view.h"

#define NT_NS 100u /* NT's unit */

/* ---- the increment: Linux has one tick length, the step of its coarse clocks ---- */

/* The increment that KeSetTimeIncrement has set; 0: the kernel's. Under the lock. */
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

void nt_set_increment(uint32_t increment)
{
    __atomic_store_n(&set_increment, increment, __ATOMIC_RELAXED);
}

/* ---- the mode ---- */

static enum prcb_nt_time_mode mode;
static bool mode_known;

static const char *const mode_names[] = {
    [PRCB_NT_TIME_V310] = "v310",
    [PRCB_NT_TIME_TICKS] = "ticks",
};
#define MODES (sizeof(mode_names) / sizeof(mode_names[0]))

/* Is called under the lock. A word that is not a mode leaves the default, for there is nobody to
 * report it to. */
static enum prcb_nt_time_mode current_mode(void)
{
    const char *wanted = mode_known ? NULL : secure_getenv("PRCB_NT_TIME");

    mode_known = true;
    for (size_t i = 0; wanted && i < MODES; i++) {
        if (!strcmp(wanted, mode_names[i]))
            mode = (enum prcb_nt_time_mode)i;
    }
    return mode;
}

int prcb_nt_set_time_mode(enum prcb_nt_time_mode wanted)
{
    if ((unsigned)wanted >= MODES)
        return -EINVAL;
    nt_enter();
    mode = wanted;
    mode_known = true;
    nt_leave();
    return 0;
}

enum prcb_nt_time_mode prcb_nt_time_mode(void)
{
    enum prcb_nt_time_mode now;

    nt_enter();
    now = current_mode();
    nt_leave();
    return now;
}

/* ---- times ---- */

/* KernelTime and UserTime together are all of the time. What the hypervisor took is kernel time,
 * as a guest of NT would charge it. */
static void split(const struct prcb_processor *record, uint64_t ret[NT_TIMES])
{
    ret[NT_IDLE] = record->idle_ns;
    ret[NT_USER] = record->user_ns;
    ret[NT_DPC] = record->dpc_ns;
    ret[NT_INTERRUPT] = record->interrupt_ns;
    ret[NT_KERNEL] = record->kernel_ns + record->steal_ns + record->idle_ns + record->dpc_ns +
                     record->interrupt_ns;
}

static uint64_t increment_ns(void)
{
    return (uint64_t)nt_maximum_increment() * NT_NS;
}

void nt_times(const struct prcb_processor *record, const struct nt_cpu *cpu, int64_t ret[NT_TIMES])
{
    uint64_t ns[NT_TIMES], increment = increment_ns();
    bool ticks = current_mode() == PRCB_NT_TIME_TICKS;

    split(record, ns);
    for (unsigned i = 0; i < NT_TIMES; i++) {
        /* Counts have 32 bits, each on its own, and wrap; the product has 64. */
        uint32_t count = cpu->ticks[i] + (uint32_t)((ns[i] - cpu->from_ns[i]) / increment);

        ret[i] =
            ticks ? (int64_t)((uint64_t)count * nt_maximum_increment()) : (int64_t)(ns[i] / NT_NS);
    }
}

void nt_fold_ticks(const struct prcb_processor *record, struct nt_cpu *cpu)
{
    uint64_t ns[NT_TIMES], increment = increment_ns();

    split(record, ns);
    for (unsigned i = 0; i < NT_TIMES; i++) {
        uint64_t count = (ns[i] - cpu->from_ns[i]) / increment;

        cpu->ticks[i] += (uint32_t)count;
        cpu->from_ns[i] += count * increment; /* what is left begins the next tick */
    }
}

uint32_t nt_dpc_rate(struct nt_cpu *cpu, uint64_t dpcs, uint64_t now)
{
    uint64_t tick = increment_ns(), ticks = (now - cpu->rate_at) / tick;
    double each;

    if (ticks) {
        /* Treats them as if they had come evenly: rate = (rate + each) / 2, `ticks` times. */
        each = dpcs > cpu->rate_dpcs ? (double)(dpcs - cpu->rate_dpcs) / (double)ticks : 0;
        cpu->rate = each + (ticks < 64 ? (cpu->rate - each) / (double)(1ull << ticks) : 0);
        cpu->rate_at += ticks * tick;
        cpu->rate_dpcs = dpcs;
    }
    return cpu->rate < UINT32_MAX ? (uint32_t)(cpu->rate + 0.5) : UINT32_MAX;
}
