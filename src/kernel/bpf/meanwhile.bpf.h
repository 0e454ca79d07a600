/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Divides the time for which a thread was ready by the cgroups whose threads ran on its processor
 * meanwhile, exactly. Each processor keeps its last turns, one for threads of the same cgroup that
 * ran one after the other, and for a few cgroups how long they have run there by now, of which it
 * notes the state every few turns. Who comes to the processor takes what these have grown by since
 * the first note after it was queued there, and goes back from that note turn by turn; or from now,
 * if that is not far. So a long time costs as much as a short one. What was in another processor's
 * queue, and what is not remembered any more, is the rest. Part of accounts.bpf.c.
 */
#ifndef PRCB_MEANWHILE_BPF_H
#define PRCB_MEANWHILE_BPF_H

#include "edges.bpf.h"

#define RUNNERS    16 /* cgroups, with those below, whose time is added up; others replace them */
#define NOTE_EVERY 16 /* turns */
#define NOTES      (PRCB_TURNS / NOTE_EVERY)
#define NOTE_STEPS 7  /* of a search among them */
#define NEAR       32 /* turns, which are gone back without a note */
_Static_assert(NOTES == 1 << NOTE_STEPS, "notes");

/* Who runs: number of a cgroup, or */
#define RUNS_UNKNOWN 0ull
#define RUNS_IDLE    (~0ull)
#define RUNS_KERNEL  (~1ull)

/* A turn of a processor. It began when the one before it ended. */
struct turn {
    __u64 ended; /* by the clock of the run queue */
    __u64 who;
};

struct runner {
    __u64 who;
    __u64 ns;    /* its turns, since */
    __u64 since; /* it is here */
    __u64 ended; /* its last turn */
};

struct turns_note {
    __u64 at; /* when it was written: with the last of these many turns */
    __u64 ns[RUNNERS];
};

struct last_turns {
    __u64 count; /* ever */
    __u32 epoch; /* epoch_of_turns() when the last was written */
    __u32 last;  /* the runner whose turn it was */
    /* These are for the time of a call: there is no room on the stack of 6.1. Of ready time that is
     * being divided: */
    __u64 from, until; /* until: of turns, what is not divided yet */
    __u64 turns_until; /* how many there were */
    struct who who;
    struct runner runners[RUNNERS];
    struct turns_note notes[NOTES]; /* the one of n * NOTE_EVERY turns has place n */
    struct turn turns[PRCB_TURNS];
};

/* An element a processor, where somebody asked. Each is written by its processor's switches. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct last_turns);
} turn_map SEC(".maps");

static __always_inline struct turn *turn_at(struct last_turns *last, __u64 number)
{
    return &last->turns[number & (PRCB_TURNS - 1)];
}

static __always_inline struct turns_note *note_at(struct last_turns *last, __u64 number)
{
    return &last->notes[number & (NOTES - 1)];
}

static __always_inline struct last_turns *last_turns_here(void)
{
    __u32 cpu = bpf_get_smp_processor_id();

    return bpf_map_lookup_elem(&turn_map, &cpu);
}

static __always_inline __u64 who_runs(struct task_struct *task)
{
    if (!task->pid)
        return RUNS_IDLE;
    return task->flags & PF_KTHREAD_ ? RUNS_KERNEL : task_cgroup(task);
}

/* Returns the place of who runs; in the place of the one whose last turn is longest ago, if it had
 * none. began: its turn. */
static __noinline __u32 find_runner(struct last_turns *last, __u64 who, __u64 began)
{
    __u64 oldest = ~0ull;
    __u32 i, place = 0;

    if (!last)
        return 0;
    for (i = 0; i < RUNNERS; i++) {
        if (last->runners[i].who == who)
            return i;
        if (last->runners[i].ended < oldest) {
            oldest = last->runners[i].ended;
            place = i;
        }
    }
    last->runners[place & (RUNNERS - 1)] = (struct runner){.who = who, .since = began};
    return place;
}

static __always_inline void write_note(struct last_turns *last, __u64 now)
{
    struct turns_note *note = note_at(last, last->count / NOTE_EVERY);
    int i;

    note->at = now;
#pragma unroll
    for (i = 0; i < RUNNERS; i++)
        note->ns[i] = last->runners[i].ns;
}

/* This is called at each switch. Time that was not watched is one turn of nobody known. */
static __noinline int end_turn(struct task_struct *prev, __u32 epoch)
{
    struct last_turns *last = last_turns_here();
    struct runner *runner;
    struct turn *turn;
    __u64 now, who, began;

    if (!last)
        return 0;
    now = has_rq_clock() ? plain(prev)->se.cfs_rq->rq->clock : bpf_ktime_get_ns();
    who = last->epoch == epoch ? who_runs(prev) : RUNS_UNKNOWN;
    last->epoch = epoch;
    turn = turn_at(last, last->count - 1);
    began = last->count ? turn->ended : now;
    if (!last->count || turn->who != who) {
        turn = turn_at(last, last->count++);
        turn->who = who;
        last->last = find_runner(last, who, began);
    }
    turn->ended = now;
    runner = &last->runners[last->last & (RUNNERS - 1)];
    runner->ns += growth(now, began);
    runner->ended = now;
    if (!(last->count % NOTE_EVERY) && note_at(last, last->count / NOTE_EVERY)->at < began)
        write_note(last, now);
    return 0;
}

struct meanwhile {
    struct prcb_edge_block *edges;
    struct last_turns *last;
};

static __always_inline void add_meanwhile(struct meanwhile *m, __u64 runs, __u64 ns)
{
    struct who *who = &m->last->who;

    if (runs == RUNS_UNKNOWN || !ns)
        return;
    who->what = (__u64)PRCB_BY_CGROUP << 16;
    who->thread = runs;
    if (runs == RUNS_IDLE || runs == RUNS_KERNEL) {
        who->what = (__u64)(runs == RUNS_IDLE ? PRCB_BY_IDLE : PRCB_BY_KERNEL) << 16;
        who->thread = 0;
    }
    add_edge_anywhere(m->edges, who, PRCB_EDGE_MEANWHILE, 1, ns);
}

static long divide_turn(__u32 i, struct meanwhile *m)
{
    struct last_turns *last = m->last;
    __u64 number = last->turns_until - 1 - i;
    struct turn *turn = turn_at(last, number);
    __u64 began = turn_at(last, number - 1)->ended, ended = least(turn->ended, last->until);
    bool first = began <= last->from;

    add_meanwhile(m, turn->who, growth(ended, first ? last->from : began));
    return first;
}
TURNS(divide_turn, struct meanwhile, NEAR)

static long divide_runner(__u32 i, struct meanwhile *m)
{
    struct turns_note *note = note_at(m->last, m->last->turns_until / NOTE_EVERY);
    struct runner *runner = &m->last->runners[i & (RUNNERS - 1)];
    __u64 before = runner->since < note->at ? note->ns[i & (RUNNERS - 1)] : 0;

    add_meanwhile(m, runner->who, growth(runner->ns, before));
    return 0;
}
TURNS(divide_runner, struct meanwhile, RUNNERS)

/* Returns the number of the first note that was written after a moment, of those that are there;
 * the last one but some was, by the caller's word. */
static __always_inline __u64 find_note(struct last_turns *last, __u64 from)
{
    __u64 ret = last->count / NOTE_EVERY, step = NOTES;
    int i;

#pragma unroll
    for (i = 0; i < NOTE_STEPS; i++) {
        step /= 2;
        if (ret > step && note_at(last, ret - step)->at > from)
            ret -= step;
    }
    return ret;
}

/* Files a stretch that was closed, of which so much was ready time. It is called under the
 * account's seq, at the switch in. The kernel's stamp says since when the task was queued here:
 * before, it was in another processor's queue. */
static __noinline int note_meanwhile(struct prcb_edge_block *edges, struct task_struct *next,
                                     __u64 ready)
{
    struct last_turns *last = last_turns_here();
    struct meanwhile m = {edges, last};

    if (!last || !last->count || !ready)
        return 0;
    last->turns_until = last->count;
    last->until = turn_at(last, last->count - 1)->ended;
    if (has_rq_clock() && has_sched_info() && next->sched_info.last_queued)
        ready = least(ready, growth(last->until, next->sched_info.last_queued));
    last->from = last->until - ready;
    if (last->count > NEAR && turn_at(last, last->count - NEAR)->ended > last->from) {
        last->turns_until = find_note(last, last->from) * NOTE_EVERY;
        REPEAT(RUNNERS, divide_runner, &m);
        last->until = note_at(last, last->turns_until / NOTE_EVERY)->at;
        if (last->turns_until + PRCB_TURNS - NEAR <= last->count)
            return 0; /* the turns before it are written over, or soon */
    }
    REPEAT(NEAR, divide_turn, &m);
    return 0;
}

#endif
