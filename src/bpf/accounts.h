/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * What user space hands the account programs, besides the blocks: shared by
 * accounts.bpf.c and the code that loads it, in one build. No stable format.
 */
#ifndef PRCB_ACCOUNTS_H
#define PRCB_ACCOUNTS_H

#include <linux/types.h>

#define PRCB_PID_LEVELS    32 /* MAX_PID_NS_LEVEL */
#define PRCB_CGROUP_LEVELS 16

/* Constant once loaded. */
struct prcb_bpf_config {
    __u32 has_prev_state; /* sched_switch passes prev_state (5.18) */
    __u32 use_ktime;      /* stamp with CLOCK_MONOTONIC although the run-queue clock is there */
    __u32 pid_ns;         /* inode of the session's pid namespace */
    __u32 accounts;       /* how many there are */
};

enum prcb_bpf_what { PRCB_REGISTER_THREAD = 1, PRCB_REGISTER_PROCESS, PRCB_REGISTER_ALL };

/* One question to an iterator and its answer. One at a time: the session's lock. */
struct prcb_bpf_request {
    __u32 what;   /* enum prcb_bpf_what */
    __u32 number; /* thread, process, or (unregister) slot */
    __u32 pass;   /* PRCB_PASS_* */
    __u32 seen;   /* out: tasks that matched */
    __u32 added;  /* out: of these, given an account */
    __u32 full;   /* out: of these, left without one */
};

/* New threads that are profiled whoever creates them. */
struct prcb_bpf_scope {
    __u32 all;
    __u32 cgroup_v2;
    __u64 cgroup; /* inode of the cgroup's directory */
    __u64 moved;  /* out: processes that were moved into it */
};

/* An account to be given back. */
struct prcb_bpf_slot {
    __u32 slot;
    __u32 generation;
};

#endif
