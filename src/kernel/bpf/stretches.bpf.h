/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Closes the stretches of accounts, on the processor and off it, and says what of the time was
 * running, ready and waiting. Part of accounts.bpf.c.
 */
#ifndef PRCB_STRETCHES_BPF_H
#define PRCB_STRETCHES_BPF_H

#include "clock.bpf.h"
#include "interval.bpf.h"
#include "processor_map.bpf.h"

static __always_inline struct prcb_wait_cell *wait_cell(struct prcb_account_block *account,
                                                        __u64 cause)
{
    /* The compiler must not check one register and index with another: the verifier
     * would not see that they are the same. */
    __asm__ volatile("" : "+r"(cause));
    return cause < PRCB_CAUSE_MAX ? &account->waits[cause] : NULL;
}

static __always_inline void add_wait(struct prcb_account_block *account, __u64 cause, __u64 ns)
{
    struct prcb_wait_cell *cell = wait_cell(account, cause);

    if (cell)
        cell->ns += ns;
}

/* Returns the cause of the stretch off the processor that is open: the account's, or the
 * registrar's guess while no switch has been seen. */
static __always_inline __u8 open_cause(struct prcb_account_block *account)
{
    __u32 guess;

    if (account->state == PRCB_STATE_OFF)
        return account->cause;
    guess = *(volatile __u32 *)&account->guess;
    /* This thread was guessed to have ended, and is seen to make its last switch now: that it
     * ends is not what it waited for before. */
    if (account->state == PRCB_STATE_UNSEEN && (guess & 0xff) == PRCB_STATE_OFF &&
        (guess >> 8 & 0xff) != PRCB_CAUSE_EXIT)
        return guess >> 8;
    return PRCB_CAUSE_OTHER;
}

/* Holds what was added for a stretch off the processor when it was closed. */
struct closed {
    __u64 wait, ready;
    __u8 cause;
    bool counted; /* the account counts the switch out that began it */
};

/* Returns 0 where an account that is unseen is of a thread that was guessed to have been moved
 * while it slept: when it was woken is not known. Else returns all ones. There is no branch, as
 * in growth(). */
static __always_inline __u64 awake_mask(struct prcb_account_block *account)
{
    __u64 moved = *(volatile __u32 *)&account->guess & PRCB_GUESS_MOVED;

    return ~(sign_of(0 - moved) & sign_of((__u64)account->state - PRCB_STATE_UNSEEN - 1));
}

/* Shares out a stretch off the processor. run: of it, where a switch in it was not reported, what
 * the kernel charged as running. */
static __always_inline void close_stretch(struct prcb_account_block *account,
                                          struct task_struct *task, __u64 elapsed, __u64 run,
                                          __u64 clock, const struct limits *limits,
                                          struct closed *ret)
{
    struct interval interval = {
        .cause = open_cause(account),
        .run_delay = account->run_delay,
        .limits = *limits,
    };

    interval.limits.awake &= awake_mask(account);
    account->unclear_wakes += is_unclear(&interval);
    run = least(run, elapsed);
    interval.ns = elapsed - run;
    close_interval(&interval, task, clock);
    account->run_ns += run;
    account->ready_ns += interval.ready;
    add_wait(account, interval.cause, interval.wait);
    ret->cause = interval.cause;
    ret->counted = account->state == PRCB_STATE_OFF && account->own_switches;
    ret->ready = interval.ready;
    ret->wait = interval.wait;
}

static __always_inline void close_running(struct prcb_account_block *account,
                                          struct task_struct *task, __u64 now, __u64 clock,
                                          const struct limits *limits, struct closed *ret)
{
    __u64 elapsed = now - account->stamp, run;

    if (account->state == PRCB_STATE_RUNNING) {
        account->run_ns += elapsed;
        return;
    }
    /* Its switch in was not reported, or came before profiling: last_arrival is when
     * it was. Without the kernel's stamps in our clock, charge what the kernel did. */
    if (has_sched_info() && has_rq_clock() && !config.use_ktime)
        run = growth(now, task->sched_info.last_arrival);
    else
        run = growth(task_sum_exec(task), account->sum_exec);
    if (account->state == PRCB_STATE_OFF)
        account->repaired++;
    close_stretch(account, task, elapsed, run, clock, limits, ret);
}

/* Counts the switch of a thread that went to sleep after its counters were copied and before its
 * account was published, a microsecond or two: the guess says why. */
static __always_inline void count_unseen(struct prcb_account_block *account,
                                         struct task_struct *task, __u8 cause)
{
    struct prcb_wait_cell *cell;

    if (task->nvcsw + task->nivcsw != account->nvcsw + account->nivcsw + 1)
        return;
    account->own_switches++;
    account->nvcsw = task->nvcsw;
    account->nivcsw = task->nivcsw;
    cell = wait_cell(account, cause);
    if (cell)
        cell->count++;
}

static __always_inline void close_off(struct prcb_account_block *account, struct task_struct *task,
                                      __u64 now, __u64 clock, const struct limits *limits,
                                      struct closed *ret)
{
    __u64 elapsed = now - account->stamp, run = 0;

    if (account->nvcsw + account->nivcsw != task->nvcsw + task->nivcsw) {
        /* It ran and was switched out unreported since. */
        if (account->state == PRCB_STATE_UNSEEN) {
            count_unseen(account, task, open_cause(account));
        } else {
            run = growth(task_sum_exec(task), account->sum_exec);
            account->repaired++;
        }
    }
    close_stretch(account, task, elapsed, run, clock, limits, ret);
}

/* ---- interrupts ---- */

/* Returns what interrupts and softirqs have taken of this processor. None is going on where
 * tasks are switched. */
static __always_inline __u64 interrupted_here(void)
{
    __u32 key = bpf_get_smp_processor_id() + 1;
    struct prcb_processor_block *block = bpf_map_lookup_elem(&processor_map, &key);

    if (!block || block->state != PRCB_PROCESSOR_ONLINE)
        return PRCB_BASE_UNKNOWN;
    return block->interrupt_ns + block->dpc_ns + block->nested_ns - block->folded_ns;
}

static __always_inline void note_interrupts(struct prcb_account_block *account)
{
    if (!config.interrupted)
        return;
    account->run_cpu = bpf_get_smp_processor_id();
    account->interrupt_base = interrupted_here();
}

static __always_inline void charge_interrupts(struct prcb_account_block *account)
{
    if (!config.interrupted || account->interrupt_base == PRCB_BASE_UNKNOWN)
        return;
    account->interrupted_ns += growth(interrupted_here(), account->interrupt_base);
    account->interrupt_base = PRCB_BASE_UNKNOWN;
}

#endif
