/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The arithmetic of the perf tier: from what /proc says at some moments to the
 * figures of an account. Pure functions over caller-owned memory, no I/O.
 *
 * run, ready and the switches are the kernel's own sums; wait is the rest of wall.
 * The sums lag for a thread that is able to run: run_ns by up to a tick while it is
 * on a processor, ready_ns by the whole stretch while it is queued. So
 *   run + ready + wait == wall  for a thread that is waiting or has ended, but for
 *                               a stretch that an earlier look took for waiting
 *                               because it was not yet summed (the next waits make
 *                               it good: nothing is ever taken back)
 *   run + ready <= wall         always
 */
#ifndef PRCB_ACCOUNTS_PERF_FIGURES_H
#define PRCB_ACCOUNTS_PERF_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

/* The kernel's own totals since the thread's creation, and when they were read. */
struct perf_sample {
    uint64_t moment;  /* CLOCK_MONOTONIC, taken before the rest was read */
    uint64_t present; /* PRCB_HAS_RUN, PRCB_HAS_READY, PRCB_HAS_SWITCHES */
    uint64_t run_ns, ready_ns;
    uint64_t arrivals; /* switches in; known with PRCB_HAS_READY */
    uint64_t voluntary, involuntary;
    bool runnable; /* runs, or is queued */
};

struct perf_figures {
    uint64_t enabled;        /* CLOCK_MONOTONIC */
    struct perf_sample base; /* what the thread had when the account started */
    struct perf_sample last;
    /* These were reported since the start of the account. */
    uint64_t wall_ns, run_ns, ready_ns, wait_ns;
    uint64_t voluntary, involuntary;
};

/* Starts an account now. */
void perf_figures_start(struct perf_figures *f, const struct perf_sample *now);

/* Starts an account at the thread's creation, which was between the moments
 * earliest and latest: the middle is taken, but never so late that what it has
 * run and waited for a processor would not fit. */
void perf_figures_born(struct perf_figures *f, const struct perf_sample *now, uint64_t earliest,
                       uint64_t latest);

void perf_figures_update(struct perf_figures *f, const struct perf_sample *now);

/* Raises run and switches alone, from a sample that has no more; the next update
 * compares with the last whole sample. */
void perf_figures_peek(struct perf_figures *f, const struct perf_sample *now);

/* Whether another task has the same number: a thread that execs takes over the number and the
 * creation time of its process's first thread, and keeps its own counters. It is seen by switches
 * that went backwards; one that had more of both is not noticed. */
bool perf_figures_replaced(const struct perf_figures *f, const struct perf_sample *now);

/* Whether the thread was on a processor: it had been switched in once more than out.
 * False where that cannot be told. */
bool perf_sample_running(const struct perf_sample *sample);

/* The span of CLOCK_MONOTONIC in which a thread was created: a clock tick of
 * CLOCK_BOOTTIME, cut at what else is known. boot_offset: BOOTTIME - MONOTONIC;
 * unseen: moment of the last look that it was not in, 0 if there was none. */
struct perf_span {
    uint64_t earliest, latest;
};
struct perf_span perf_creation(uint64_t start_ticks, uint64_t tick_ns, int64_t boot_offset,
                               uint64_t unseen, uint64_t now);

#endif
