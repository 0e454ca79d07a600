/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Numbers that programs, the daemon and the eBPF programs share, beside those of causes (causes.h):
 * what prcb.h, edges.h and tails.h pass. Programs include these.
 */
#ifndef PRCB_NUMBERS_H
#define PRCB_NUMBERS_H

/* What a profiled thread passes on. */
enum prcb_follow {
    PRCB_FOLLOW_NONE = 0,
    PRCB_FOLLOW_THREADS = 1,  /* threads it creates in its own process */
    PRCB_FOLLOW_CHILDREN = 2, /* processes it forks (without THREADS: the thread that each begins
                                 with), and those they fork */
    PRCB_FOLLOW_ALL = 3,
};

/* What an edge describes. */
enum prcb_edge_kind {
    PRCB_EDGE_WOKEN_BY = 1,     /* who ended waits of a cause; ns is time of the cause */
    PRCB_EDGE_PREEMPTED_BY = 2, /* who got the processor when the thread left it and could have gone
                                   on (causes of kind READY); ns is ready time */
    PRCB_EDGE_BEHIND = 3,       /* who had the processor when the thread got it after a wait; ns is
                                   ready time, the cause PRCB_CAUSE_NONE */
    PRCB_EDGE_HELD_BY = 4,   /* PRCB_OPEN_OWNERS: who held the kernel's mutex or semaphore when the
                                thread went to sleep for it (causes mutex, rwsem, mmap, klock); ns is
                                time of the cause */
    PRCB_EDGE_MEANWHILE = 5, /* PRCB_OPEN_MEANWHILE: threads of which cgroup ran on the processor
                                while the thread was ready there; ns is ready time, the cause
                                PRCB_CAUSE_NONE */
};

/* Who. */
enum prcb_edge_by {
    PRCB_BY_UNKNOWN = 1,   /* a thread or an interrupt, unknown which */
    PRCB_BY_THREAD = 2,    /* tid, pid, comm */
    PRCB_BY_TIMER = 3,     /* a timer: the wait timed out, or lasted as long as it was to */
    PRCB_BY_INTERRUPT = 4, /* a hard interrupt; vector is its number */
    PRCB_BY_SOFTIRQ = 5,   /* vector is its number: prcb_softirq_name */
    PRCB_BY_IDLE = 6,      /* no thread: the processor was idle, and had to wake up */
    PRCB_BY_REST = 7,      /* all others, and what nothing is known of: what the other edges lack to
                              the account's count and time. The open wait is counted here */
    PRCB_BY_OTHERS = 8,  /* a process that /proc does not show to the session's user (daemon tier):
                            all such are one */
    PRCB_BY_CGROUP = 9,  /* threads of a cgroup: cgroup */
    PRCB_BY_KERNEL = 10, /* threads of the kernel's own */
};

/* Four buckets to an octave of microseconds, so that the bounds of one are at most a fifth apart
 * from 4 us on. The last takes everything longer. */
#define PRCB_TAIL_BUCKETS 104

/* So many nodes of a list (prcb_chosen_chain) are copied at once, at most. */
#define PRCB_CHAIN_NODES 128u

#endif
