/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Files each stretch off the processor in the cell of who ended it or kept it up. Part of
 * accounts.bpf.c.
 */
#ifndef PRCB_EDGES_BPF_H
#define PRCB_EDGES_BPF_H

#include "by_here.bpf.h"
#include "processor_map.bpf.h"
#include "stretches.bpf.h"
#include "owner.bpf.h"

/* Who ended waits, or held locks, has cells that who had the processor does not get: the first 24
 * of 36, which are those of the first 20 sets. */
#define WAIT_SETS  20
#define READY_SETS 8 /* the last ones, which share no cell with these */
_Static_assert(WAIT_SETS + PRCB_EDGE_WAYS - 1 <= PRCB_EDGE_SETS - READY_SETS, "cells");

/* Returns where a cell of this key and thread is looked for first. */
static __always_inline __u64 first_cell(__u64 key, __u64 thread)
{
    __u64 hash = ((key ^ thread * 31) * 0x9e3779b97f4a7c15ull) >> 32;
    /* 0: preempted by, or behind; all ones: the rest. enum prcb_edge_kind */
    __u64 wait = 0 - (((1u << PRCB_EDGE_WOKEN_BY | 1u << PRCB_EDGE_HELD_BY) >> (key & 7)) & 1ull);
    __u64 sets = READY_SETS + (wait & (WAIT_SETS - READY_SETS));

    return ((hash * sets >> 32) + (~wait & (PRCB_EDGE_SETS - READY_SETS))) & (PRCB_EDGE_SETS - 1);
}

static __always_inline bool is_edge(const struct prcb_edge_cell *cell, __u64 key, __u64 thread)
{
    return *(__u64 *)cell == key && *(__u64 *)&cell->tid == thread;
}

#define OTHERS_CELL (1ull << 62) /* of another kind or cause: more than any time */

/* Adds a stretch to the cell of who. Where there is none and none is free, that with the least
 * time is given up, to the rest: of the same kind and cause, if there is any, so that a cause
 * with many wakers does not push out the only one of another. It is a global function, which the
 * verifier looks at once: by each way that leads here it walked more than a million instructions
 * on Linux 7.3. */
__noinline int add_edge_anywhere(struct prcb_edge_block *edges, const struct who *who, __u64 what,
                                 __u64 count, __u64 ns)
{
    struct prcb_edge_cell *cell = NULL;
    __u64 key, first, ns_of, least_ns = ~0ull;
    int i;

    if (!edges || !who)
        return 0;
    key = what | who->what;
    first = first_cell(key, who->thread);
#pragma unroll
    for (i = 0; i < PRCB_EDGE_WAYS; i++) {
        struct prcb_edge_cell *at = &edges->cells[first + i];

        if (is_edge(at, key, who->thread)) {
            at->count += count;
            at->ns += ns;
            return 0;
        }
        if (at->kind == PRCB_EDGE_NONE) {
            cell = at;
            break;
        }
        ns_of = at->ns | ((*(__u64 *)at ^ key) & 0xffff ? OTHERS_CELL : 0);
        if (ns_of < least_ns) {
            least_ns = ns_of;
            cell = at;
        }
    }
    if (!cell)
        return 0;
    *(__u64 *)cell = key;
    *(__u64 *)&cell->tid = who->thread;
    cell->pid = who->pid;
    cell->count = count;
    cell->ns = ns;
    __builtin_memcpy(cell->comm, who->comm, sizeof(cell->comm));
    return 0;
}

/* Does the same, without a call where it is the first cell that is looked at, as most are:
 * returns from functions are what costs most in a switch. */
static __always_inline void add_edge(struct prcb_edge_block *edges, const struct who *who,
                                     __u64 what, __u64 count, __u64 ns)
{
    __u64 key = what | who->what;
    struct prcb_edge_cell *cell = &edges->cells[first_cell(key, who->thread)];

    if (is_edge(cell, key, who->thread)) {
        cell->count += count;
        cell->ns += ns;
    } else {
        add_edge_anywhere(edges, who, what, count, ns);
    }
}

static __always_inline void own_edges(struct prcb_edge_block *edges, __u32 generation)
{
    int i;

    if (edges->generation == generation)
        return;
#pragma unroll
    for (i = 0; i < PRCB_EDGES; i++)
        *(__u64 *)&edges->cells[i] = PRCB_EDGE_NONE;
    edges->generation = generation;
}

/* Files a stretch that was closed. before: who had the processor when the thread got it; NULL:
 * not known. It is called under the account's seq. */
static __always_inline void note_edges(struct prcb_edge_block *edges, __u32 generation,
                                       const struct closed *closed, struct profile *profile,
                                       const struct who *before)
{
    __u64 cause = (__u64)closed->cause << 8;

    own_edges(edges, generation);
    if (cause_is_ready(closed->cause)) {
        if (is_told(profile, &profile->taker))
            add_edge(edges, &profile->taker, PRCB_EDGE_PREEMPTED_BY | cause, closed->counted,
                     closed->ready);
        return;
    }
    if (closed->cause != PRCB_CAUSE_THROTTLED && is_told(profile, &profile->waker))
        add_edge(edges, &profile->waker, PRCB_EDGE_WOKEN_BY | cause, closed->counted, closed->wait);
    if (before && closed->ready)
        add_edge(edges, before, PRCB_EDGE_BEHIND, 1, closed->ready);
}

/* Files who held the lock that the stretch was for. It is called as note_edges, and after it. It
 * is not static: of such a function, whose result nobody uses, clang may return any register,
 * and the verifier refuses one that points to the stack. */
__hidden __noinline int note_holder(struct prcb_edge_block *edges, const struct closed *closed,
                                    const struct tag *tag, const struct profile *profile,
                                    const struct who *holder)
{
    const struct waited_lock *waited = &tag->waited;

    if (waited->lock && !waited->again && waited->cause == closed->cause &&
        is_told(profile, holder))
        add_edge(edges, holder, PRCB_EDGE_HELD_BY | (__u64)closed->cause << 8, closed->counted,
                 closed->wait);
    return 0;
}

/* Tells who is at work on this processor. task: the current one. */
static __always_inline void who_is_here(__u64 handle, struct task_struct *task, struct who *ret)
{
    __u32 key = bpf_get_smp_processor_id() + 1, by, vector;
    struct prcb_processor_block *block = bpf_map_lookup_elem(&processor_map, &key);

    by = by_here(block, task, &vector);
    if (by == PRCB_BY_THREAD)
        tell_task(handle, task, ret);
    else
        who_of_vector(by, vector, ret);
}

/* Begins the edges of a stretch off the processor. unreported: the switch in before it was not
 * reported. */
static __always_inline void leave_edges(struct profile *profile, struct task_struct *next,
                                        __u8 cause, bool unreported)
{
    if (unreported && !profile->waker.again)
        profile->waker.what = 0;
    profile->waker.again = 0;
    profile->taker.what = 0;
    if (!wants_edges(profile) || !cause_is_ready(cause))
        return;
    tell_task(handle_of(profile), next, &profile->taker);
    end_telling(&profile->taker, handle_of(profile));
}

/* Runs in the waker's context, before the kernel looks where the task is to run: a wake that comes
 * before its sleeper's switch out is seen here as well, and kept, for wakers are forgotten at the
 * switch in alone. That of a thread which then did not sleep is replaced by the next. */
SEC("prcb_tp/sched_waking")
int prcb_waking(__u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0], *current;
    struct prcb_head_block *head;
    struct tag *tag = tag_of(task);
    int i;

    if (!tag)
        return 0;
    current = bpf_get_current_task_btf();
    /* Nobody ends a sleep of his own. */
    if (task == current)
        return 0;
    PRCB_EACH_PROFILE
    for (i = 0; i < PROFILES && i < top_of(tag); i++) {
        struct profile *profile = &tag->profiles[i];
        __u64 handle = handle_of(profile);
        bool again = is_told(profile, &profile->waker);

        if (!wants_wakers(profile) || !begin_telling(&profile->waker))
            continue;
        who_is_here(handle, current, &profile->waker);
        profile->waker.again = again;
        note_waking(profile);
        end_telling(&profile->waker, handle);
    }
    head = is_move_noted(&tag->away, false) ? head_block() : NULL;
    if (head)
        note_move(&tag->away, false, clock_now(head));
    return 0;
}

#endif
