/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Who waits for whom, now: the waits of a session's threads that go on, the lock that each waits
 * for, and the thread that holds it. Holders are known for mutexes that name them (futex.h). A
 * holder is a thread of the same process; a thread that waits for something else has no holder.
 *
 * Everything is read between two looks at the accounts, and nothing is kept of a thread that was
 * switched out again meanwhile: the waits of a loop all went on at one moment, so it is a
 * deadlock.
 *
 * Access is the kernel's ptrace rule, as of prcb/stack.h. One thread.
 */
#ifndef PRCB_CHAIN_H
#define PRCB_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <prcb/stack.h>

#include "objects.h"

#define CHAIN_NONE SIZE_MAX

struct chain_thread {
    uint64_t key, switches;
    pid_t tid, pid;
    pid_t own; /* its number in its own pid namespace; 0: not asked for yet */
    char comm[16];
    bool waits;       /* else it runs, or could */
    uint32_t cause;   /* enum prcb_cause; NONE where the tier knows none */
    uint64_t wait_ns; /* 0 where the tier does not know */
    bool longer;      /* it waited before its profiling started, too */
    bool has_stack;
    struct prcb_stack stack; /* its frames are the reader's */
    uint64_t futex;          /* address of what it waits for; 0: no futex */
    char place[96];          /* in which mapping: "libx.so+0x4040", "[heap]" */
    uint32_t object;         /* what it waits for, of the caller's objects; 0: not known */
    bool timed;              /* it gives up by itself */
    pid_t holder;            /* in the caller's pid namespace; 0: not known */
    uint32_t whom;           /* who it is, of the caller's objects, where it is none of these */
    size_t next;             /* the holder among these; CHAIN_NONE: none */
    uint32_t waiters;        /* how many of these it holds up, directly */
    uint32_t loop;           /* number of the deadlock that it is part of; 0: none */
};

struct chain {
    struct chain_thread *threads;
    size_t count;
    uint32_t loops;
    bool no_mutexes; /* this C library's mutexes are not as they are read here */
};

/* Stacks of waits shorter than min_wait_ns are not read. 0 or -errno. */
int chain_take(struct prcb *session, struct prcb_stacks *stacks, struct objects *objects,
               uint64_t min_wait_ns, struct chain *ret, struct prcb_error *err);
/* Leads on from waits for pipes and sockets to who alone has the other end, once objects_find_ends
 * was called. No deadlock is made of these: others may have that end that could not be seen. */
void chain_add_ends(struct chain *c, const struct objects *objects);
void chain_deinit(struct chain *c);

#endif
