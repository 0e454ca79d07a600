/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Defines what a task carries while it is profiled: its tag, with a profile for each account
 * that it has, and what a switch is to the two tasks that it is of. Part of accounts.bpf.c.
 */
#ifndef PRCB_TAG_BPF_H
#define PRCB_TAG_BPF_H

#include "accounts.h"
#include "block_abi.h"
#include "classify.bpf.h"
#include "interval.bpf.h"
#include "seqcount_abi.h"
#include "who.bpf.h"

#ifdef PRCB_CLIENTS
#define PROFILES PRCB_CLIENT_PROFILES
/* Do not unroll: the body is long, and the verifier is faster with a loop. */
#define PRCB_EACH_PROFILE _Pragma("clang loop unroll(disable)")
#else
#define PROFILES 1
#define PRCB_EACH_PROFILE
/* There was no room, and it was counted as untracked. PRCB_SLOT_NONE: nobody has looked yet. */
#define SLOT_FULL (PRCB_SLOT_NONE - 1)
#endif

/* A profile tells in which account a task is profiled. */
struct profile {
#ifdef PRCB_CLIENTS
    __u64 handle; /* client, account and generation in one word: clients.bpf.inc; 0: free */
    __u32 pass;   /* PRCB_PASS_* */
    __u32 wants;  /* PRCB_WANT_*, as in the account, which the client might write to */
#else
    __u32 slot;        /* from SLOT_FULL on: none */
    __u32 generation;  /* of the account, when it was given */
    __u32 pass;        /* PRCB_PASS_* */
#endif
    /* These are kept with switch records, and told with the waker: when its last waking was, and
     * where. */
    __u64 woken_ns; /* CLOCK_MONOTONIC */
    __u32 woken_cpu;
    /* These serve edges. The waker is stored by the one that wakes the task, under the task's
     * pi_lock, before the kernel queues it; the switch that takes it comes after that under its
     * run queue's lock. */
    struct who waker; /* of its last waking since it was last switched in; what 0: none */
    struct who taker; /* who got its processor, when it could have gone on */
};

/* A task carries this when it is profiled, or should be. */
struct tag {
    struct profile profiles[PROFILES];
    struct waited_lock waited;
    __u32 busy;    /* somebody is giving it an account */
    __u32 cause;   /* of its last switch out; read back at once: leave() */
    __u32 born;    /* prcb_newtask has seen it */
    __u32 restart; /* the last system call that it was switched out in, plus 1; 0: none */
    /* These are of its last switch out, as the cause: */
    struct call_seen call;
    struct prcb_wait_object object; /* found out for the first who asks */
    __u32 object_noted;
    __u64 regs; /* address of its user registers; 0: it was not asked for yet */
    struct away away;
#ifdef PRCB_CLIENTS
    __u32 top;  /* no profile from here on was ever used */
    __u64 cred; /* its credentials when it was last looked at by who may profile whom */
    __u64 exec; /* when it became another program since, by the stamps' clock; 0: it did not */
#else
    __u32 chosen;      /* the wait it is in stands for so many; 0: it was not chosen */
    __u64 chosen_base; /* its cause's ns when it began */
    __u64 chosen_at;   /* when that was, CLOCK_MONOTONIC */
#endif
    /* For the profiles that asked for it, this says who held the lock of `waited` when its
     * contention began. */
    struct who holders[PROFILES];
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct tag);
} tags SEC(".maps");

/* Returns the tag of a task; NULL: there is none. It is for places where most threads are not
 * profiled. */
static __always_inline struct tag *tag_of(struct task_struct *task)
{
    return has_storage(task) ? bpf_task_storage_get(&tags, task, NULL, 0) : NULL;
}

/* Does what registers_of does, but asks the kernel once. */
static __always_inline struct pt_regs *registers_by(struct tag *tag, struct task_struct *task)
{
    if (!has_casts())
        return registers_of(task);
    if (!tag->regs)
        tag->regs = (__u64)registers_of(task);
    return (struct pt_regs *)tag->regs;
}

/* Orders all stores and loads before it before all after it, as an exchange of any word does
 * (seqcount_abi.h). It is always true, which the verifier and the compiler do not know. */
static __always_inline bool all_ordered(void)
{
    __u64 order = 0;

    return __sync_lock_test_and_set(&order, 1) != 2;
}

/* Orders stores before it before those after it, and loads likewise: they stay in their order on
 * x86. Always true, as all_ordered. */
static __always_inline bool in_order(void)
{
#if defined(__TARGET_ARCH_x86)
    prcb_seq_barrier();
    return true;
#else
    return all_ordered();
#endif
}

/* Describes a switch as the thread that leaves sees it, and the one that comes. */
struct switching {
    struct tag *tag; /* of that thread */
    struct task_struct *prev, *next;
    struct pt_regs *regs; /* registers_by, of prev, where it has a tag */
    __u64 now;            /* its stamp; 0: not taken yet, for nobody profiles either */
    __u64 cgroup;
    struct limits limits; /* of the interval that ends */
    __u32 state;          /* of prev */
    __u32 cause;          /* why prev leaves, found out once, however many profile it */
    __u64 mono;           /* CLOCK_MONOTONIC, of switch records; 0: not taken yet */
#ifndef PRCB_CLIENTS
    struct prcb_switch_record *record; /* of this switch; NULL: it has none, or not yet */
    struct prcb_switch_ring *ring;     /* where that is */
#endif
};

#endif
