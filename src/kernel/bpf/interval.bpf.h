/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Tells what an interval off the processor was: waiting, held back by a quota, or ready. It is
 * decided in one place for all who ask. It needs the task, what is kept of it from its switch
 * out on, and the clocks; no account, and no state of its own.
 */
#ifndef PRCB_INTERVAL_BPF_H
#define PRCB_INTERVAL_BPF_H

#include "classify.bpf.h"

/* The two that follow are of times and counts, far below 2^63, and have no branch: the verifier
 * would go on with each way by itself, and here they multiply. */

/* Returns all ones where the number is negative, else 0. The compiler would make a branch of it. */
static __always_inline __u64 sign_of(__u64 number)
{
    __asm__ volatile("%0 s>>= 63" : "+r"(number));
    return number;
}

static __always_inline __u64 least(__u64 a, __u64 b)
{
    return b + ((a - b) & sign_of(a - b));
}

/* Returns the growth of a counter that may have been reset or read a moment too early. */
static __always_inline __u64 growth(__u64 now, __u64 before)
{
    return (now - before) & ~sign_of(now - before);
}

/* Holds what is kept of a task while it is off the processor, for what is rare; all 0 for most. */
struct away {
    __u32 marks; /* AWAY_*; 0: nothing is kept */
    /* These hold what was known of its queue when a quota took it off the processor. */
    __u64 queue; /* address of its cfs_rq */
    __u64 group;
    __u64 before; /* throttled_time; with AWAY_BUDGET: how long it is until the next budget */
    /* For one that may be moved while it sleeps, this says since when it is known to be awake, by
     * the stamps' clock; AWAKE_UNKNOWN: that is not known. */
    __u64 awake;
    /* How often it had been moved when it fell asleep, and was reported to be since. */
    __u64 moves;
};

#define AWAY_THROTTLED 1u
#define AWAY_MOVED     2u /* while it slept */
#define AWAY_BUDGET    4u /* it is of SCHED_DEADLINE, and its budget was used up */
#define AWAY_QUEUED    8u /* it fell asleep and stayed queued: task_delayed */

#define AWAKE_UNKNOWN ~0ull
#define NO_LIMIT      (1ull << 62)

/* These limits hold for an interval that ends: they are lengths. */
struct limits {
    __u64 throttled; /* for how much of it a quota held the task back; NO_LIMIT: all, or unknown */
    __u64 awake;     /* for how much of it the task can have been awake; 0: that is not known */
};

static __always_inline struct limits no_limits(void)
{
    return (struct limits){.throttled = NO_LIMIT, .awake = NO_LIMIT};
}

/* This is called when a quota takes the task off its processor. clock: that of its run queue, here
 * and below. */
static __noinline __attribute__((unused)) int begin_throttled(struct away *away,
                                                              struct task_struct *task, __u64 clock)
{
    int prio = task_prio(task);
    __u64 queue;

    if (prio < 0) {
        away->marks |= AWAY_BUDGET;
        away->before =
            has_rq_clock() && next_budget(task) ? growth(next_budget(task), clock) : NO_LIMIT;
        return 0;
    }
    /* Nothing tells when a real-time group gets its next budget. */
    if (prio < MAX_RT_PRIO_ || !has_task_group())
        return 0;
    queue = (__u64)BPF_CORE_READ(task, se.cfs_rq);
    away->marks |= AWAY_THROTTLED;
    away->queue = queue;
    away->group = (__u64)BPF_CORE_READ(task, se.cfs_rq, tg);
    away->before = throttled_time(queue, clock);
    return 0;
}

/* Returns how long the queue that the task was in then was held back since. The task may have
 * been moved to another processor, but while its group is the same, the queue is still there. */
static __always_inline __u64 throttled_since(const struct away *away, struct task_struct *task,
                                             __u64 clock)
{
    __u64 after;

    if (!has_task_group() || (__u64)BPF_CORE_READ(task, se.cfs_rq, tg) != away->group)
        return NO_LIMIT;
    after = throttled_time(away->queue, clock);
    if (after == PRCB_BASE_UNKNOWN || away->before == PRCB_BASE_UNKNOWN)
        return NO_LIMIT;
    return growth(after, away->before);
}

/* From 6.12 on a task that falls asleep may stay queued (task_delayed). When such a one is moved
 * the kernel begins to count run_delay, as if it had been woken, and goes on until the task gets a
 * processor: for what is left of its sleep too. Called at each switch out: notes a task that sleeps
 * so. */
static __always_inline void begin_queued(struct away *away, struct task_struct *task, __u32 state)
{
    if (state == TASK_RUNNING_ || !task_delayed(task))
        return;
    away->marks |= AWAY_QUEUED;
    away->awake = AWAKE_UNKNOWN;
    away->moves = task_migrations(task);
}

/* Tells whether a move of a task to another processor's queue, or that it is woken, has to be
 * noted. When it is moved again, as it is woken or later, it is seen to be awake. */
static __always_inline bool is_move_noted(const struct away *away, bool asleep)
{
    return asleep || away->marks & (AWAY_MOVED | AWAY_QUEUED);
}

/* Tells whether a task that is moved while it is delayed waits for just that, in a call of its own:
 * it is woken as soon as it is done. call: that it left its processor in. */
static __always_inline bool is_moving_itself(struct task_struct *task, __s32 call)
{
    return task->__state & TASK_UNINTERRUPTIBLE_ && call == SETAFFINITY_CALL;
}

/* Tells whether the kernel counts a task as delayed while it sleeps, for it was moved before
 * anybody looked. */
static __always_inline bool has_moved_asleep(struct task_struct *task, __u32 state)
{
    return state != TASK_RUNNING_ && has_sched_info() && task->sched_info.last_queued;
}

/* asleep: task_delayed. now: by the stamps' clock. The kernel hands the task over from queue to
 * queue under their locks, and the switch in has the last one's: it sees what is stored here. */
static __always_inline void note_move(struct away *away, bool asleep, __u64 now)
{
    if (asleep) {
        away->awake = AWAKE_UNKNOWN;
        away->marks |= AWAY_MOVED;
    } else if (away->awake == AWAKE_UNKNOWN) {
        away->awake = now;
    }
}

/* Tells whether the kernel may have counted sleep as run_delay. It does not report each move to
 * programs (docs/figures.md, "missed"), but it counts them all: one too many was made unseen,
 * and perhaps while the task slept. */
static __always_inline bool may_have_moved_asleep(const struct away *away, struct task_struct *task)
{
    return away->marks & AWAY_MOVED ||
           (away->marks & AWAY_QUEUED && away->moves != task_migrations(task));
}

/* This is called at the switch in, where there are marks, and finds what they say of the interval.
 * now: when it ended, by the stamps' clock. */
static __noinline __attribute__((unused)) int end_away(struct away *away, struct task_struct *task,
                                                       __u64 clock, __u64 now, struct limits *ret)
{
    if (away->marks & AWAY_THROTTLED)
        ret->throttled = throttled_since(away, task, clock);
    if (away->marks & AWAY_BUDGET)
        ret->throttled = away->before;
    if (may_have_moved_asleep(away, task))
        ret->awake = away->awake == AWAKE_UNKNOWN ? 0 : growth(now, away->awake) | 1;
    away->marks = 0;
    return 0;
}

/* Describes an interval that ends now. */
struct interval {
    __u8 cause;      /* classify(), at the switch out */
    __u64 run_delay; /* sched_info.run_delay then */
    __u64 ns;        /* how long it was */
    struct limits limits;
    /* These two tell what it was. Their sum is ns. */
    __u64 ready; /* able to run, and waiting for a processor */
    __u64 wait;  /* the cause's own time */
};

/* Sets the last two. It is called at the switch in, whose tracepoint comes before the kernel
 * brings run_delay up to date, or later, while the task runs. */
static __always_inline void close_interval(struct interval *interval, struct task_struct *task,
                                           __u64 clock)
{
    __u64 ready = 0;

    if (interval->cause == PRCB_CAUSE_THROTTLED) {
        /* The kernel counts all of it as delay, but only what comes after the quota is. */
        ready = growth(interval->ns, interval->limits.throttled);
    } else if (has_sched_info()) {
        ready = growth(task->sched_info.run_delay, interval->run_delay);
        if (has_rq_clock() && task->sched_info.last_queued)
            ready += growth(clock, task->sched_info.last_queued);
        ready = least(ready, interval->limits.awake);
    }
    interval->ready = least(ready + ((__u64)cause_is_ready(interval->cause) << 62), interval->ns);
    interval->wait = interval->ns - interval->ready;
}

/* Tells whether it was a wait whose end is not known: what came after it is in the wait. */
static __always_inline bool is_unclear(const struct interval *interval)
{
    return !interval->limits.awake && interval->cause != PRCB_CAUSE_THROTTLED &&
           !cause_is_ready(interval->cause);
}

#endif
