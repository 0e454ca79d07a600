/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * What an interval off the processor was: waiting, held back by a quota, or ready. Decided in one
 * place for all who ask. Needs the task, what is kept of it from its switch out on, and the clocks;
 * no account, and no state of its own.
 */
#ifndef PRCB_INTERVAL_BPF_H
#define PRCB_INTERVAL_BPF_H

#include "classify.bpf.h"

/* The two that follow are of times and counts, far below 2^63, and have no branch: the verifier
 * would go on with each way by itself, and here they multiply. */

/* All ones where the number is negative, else 0. The compiler would make a branch of it. */
static __always_inline __u64 sign_of(__u64 number)
{
    __asm__ volatile("%0 s>>= 63" : "+r"(number));
    return number;
}

static __always_inline __u64 least(__u64 a, __u64 b)
{
    return b + ((a - b) & sign_of(a - b));
}

/* Growth of a counter that may have been reset or read a moment too early. */
static __always_inline __u64 growth(__u64 now, __u64 before)
{
    return (now - before) & ~sign_of(now - before);
}

/* What is kept of a task while it is off the processor. All 0: nothing is. */
struct away {
    /* What was known of its queue when a quota took it off the processor. */
    __u64 queue; /* address of its cfs_rq; 0: no quota did */
    __u64 group;
    __u64 before; /* throttled_time */
};

/* A quota takes the task off its processor. clock: that of its run queue, here and below. */
static __noinline __attribute__((unused)) int begin_throttled(struct away *away,
                                                              struct task_struct *task, __u64 clock)
{
    __u64 queue;

    if (!has_task_group())
        return 0;
    queue = (__u64)BPF_CORE_READ(task, se.cfs_rq);
    away->queue = queue;
    away->group = (__u64)BPF_CORE_READ(task, se.cfs_rq, tg);
    away->before = throttled_time(queue, clock);
    return 0;
}

/* For how long a quota held the task back since begin_throttled; all of the time where that is not
 * known. Of the queue that it was in then: it may have been moved to another processor since, but
 * while its group is the same, the queue is still there. */
static __noinline __attribute__((unused)) __u64 end_throttled(struct away *away,
                                                              struct task_struct *task, __u64 clock)
{
    __u64 queue = away->queue, after;

    away->queue = 0;
    if (!has_task_group() || (__u64)BPF_CORE_READ(task, se.cfs_rq, tg) != away->group)
        return ~0ull;
    after = throttled_time(queue, clock);
    if (after == PRCB_BASE_UNKNOWN || away->before == PRCB_BASE_UNKNOWN)
        return ~0ull;
    return growth(after, away->before);
}

/* An interval that ends now. */
struct interval {
    __u8 cause;      /* classify(), at the switch out */
    __u64 run_delay; /* sched_info.run_delay then */
    __u64 ns;        /* how long it was */
    __u64 throttled; /* end_throttled, where a quota began it */
    /* What it was. Their sum is ns. */
    __u64 ready; /* able to run, and waiting for a processor */
    __u64 wait;  /* the cause's own time */
};

/* Sets the last two. At the switch in, whose tracepoint comes before the kernel brings run_delay up
 * to date, or later, while the task runs. */
static __always_inline void close_interval(struct interval *interval, struct task_struct *task,
                                           __u64 clock)
{
    __u64 ready = 0;

    if (interval->cause == PRCB_CAUSE_THROTTLED) {
        /* The kernel counts all of it as delay, but only what comes after the quota is. */
        ready = interval->throttled < interval->ns ? interval->ns - interval->throttled : 0;
    } else if (has_sched_info()) {
        ready = growth(task->sched_info.run_delay, interval->run_delay);
        if (has_rq_clock() && task->sched_info.last_queued)
            ready += growth(clock, task->sched_info.last_queued);
    }
    interval->ready = least(ready + ((__u64)cause_is_ready(interval->cause) << 62), interval->ns);
    interval->wait = interval->ns - interval->ready;
}

#endif
