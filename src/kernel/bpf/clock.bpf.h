/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Reads the clock of the stamps: that of the run queues, where the kernel has it in reach, and
 * how far it is from CLOCK_MONOTONIC. Part of accounts.bpf.c.
 */
#ifndef PRCB_CLOCK_BPF_H
#define PRCB_CLOCK_BPF_H

#include "globals.bpf.h"

/* Holds each processor's part in finding the clock's offset; see sample_offset. */
struct offset_window {
    __u64 next; /* when to sample again */
    __u64 end;  /* when the window may end */
    __u64 samples;
    __s64 least; /* smallest offset of these */
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct offset_window);
} offset_windows SEC(".maps");

#define OFFSET_EVERY_NS  262144ull
#define OFFSET_WINDOW_NS 1000000000ull
#define OFFSET_SAMPLES   16 /* in a window, at least */

/* The run-queue clock lags the monotonic one by a constant and by however long ago the kernel
 * last brought it up to date. The smallest difference seen in a window is the constant, nearly.
 * A lower one is taken at once, a higher one (clocks drift) when a window ends that has so many
 * samples that not all of them were late: a virtual processor may be stopped for milliseconds
 * between the two clocks. Nobody tears it: it is one aligned word, and two processors that store
 * at once store nearly the same. */
static __noinline void sample_offset(__u64 clock)
{
    struct offset_window *window = bpf_map_lookup_elem(&offset_windows, &zero);
    struct prcb_head_block *head = head_block();
    __s64 offset;

    if (!window || !head || (clock < window->next && !calibrating))
        return;
    offset = bpf_ktime_get_ns() - clock;
    window->next = clock + OFFSET_EVERY_NS;
    if (!window->samples++) {
        window->end = clock + OFFSET_WINDOW_NS;
        window->least = offset;
    }
    if (offset < window->least)
        window->least = offset;
    if (offset < head->clock_offset)
        *(volatile __s64 *)&head->clock_offset = offset;
    if (clock < window->end || window->samples < OFFSET_SAMPLES)
        return;
    *(volatile __s64 *)&head->clock_offset = window->least;
    window->samples = 0;
}

/* Returns the stamp of a switch on this processor. prev: the task that is leaving it. before:
 * the stamp that it will replace, which tells without a look at anything else that the offset
 * was sampled not long ago. */
static __always_inline __u64 switch_clock(struct task_struct *prev, __u64 before)
{
    __u64 clock;

    if (!has_rq_clock() || config.use_ktime)
        return bpf_ktime_get_ns();
    clock = plain(prev)->se.cfs_rq->rq->clock;
    if (clock / OFFSET_EVERY_NS != before / OFFSET_EVERY_NS)
        sample_offset(clock);
    return clock;
}

/* Returns the clock of sched_info's stamps, at the same moment. */
static __always_inline __u64 queue_clock(struct task_struct *prev, __u64 now)
{
    return config.use_ktime && has_rq_clock() ? plain(prev)->se.cfs_rq->rq->clock : now;
}

/* Returns the clock of the stamps, away from a switch. */
static __always_inline __u64 clock_now(struct prcb_head_block *head)
{
    return bpf_ktime_get_ns() - *(volatile __s64 *)&head->clock_offset;
}

#endif
