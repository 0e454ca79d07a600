/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Describes who it was: a thread, by its numbers in a pid namespace and its name, or an interrupt.
 * Part of accounts.bpf.c.
 */
#ifndef PRCB_WHO_BPF_H
#define PRCB_WHO_BPF_H

#include "kernel.bpf.h"
#include "turns.bpf.h"
#include "accounts.h"
#include <prcb/numbers.h>

/* Tells by whom one stretch was ended or kept up. */
struct who {
    __u64
        what; /* by << 16 | vector << 32: as the first word of a prcb_edge_cell, without the rest */
    __u64 thread; /* tid | start << 32: as the second */
    __u32 pid;
    __u32 again; /* of a waker: the one before it had not been taken yet */
    char comm[16];
#ifdef PRCB_CLIENTS
    __u64 viewer; /* the handle of the profile that it was found out for, and limited to what its
                     client may know; stored last: see is_told */
#endif
};

#define PID_NS_FIRST_ 0xeffffffcu /* inode of the first pid namespace */

struct number_search {
    __u64 numbers; /* address of the pid's first */
    __u32 pid_ns;
    __u32 found;
    __u32 levels;
};

static long number_at(__u32 i, struct number_search *search)
{
    struct upid upid;
    const void *at = (const char *)search->numbers + i * bpf_core_type_size(struct upid);

    if (bpf_probe_read_kernel(&upid, sizeof(upid), at))
        return 1;
    if (BPF_CORE_READ(upid.ns, ns.inum) != search->pid_ns)
        return 0;
    search->found = upid.nr;
    return 1;
}
TURNS(number_at, struct number_search, state->levels)

/* Returns a thread's number in a session's pid namespace; 0: it is not visible there. address:
 * of its struct pid. This is a global function, and the helper's loop: the verifier looks at it
 * once, and not at each call or in each pass. */
__noinline __u32 number_of(__u64 address, __u32 pid_ns)
{
    const struct pid *pid = (const void *)address;
    struct number_search search = {.pid_ns = pid_ns};

    if (!pid)
        return 0;
    search.numbers = address + bpf_core_field_offset(struct pid, numbers);
    search.levels = (BPF_CORE_READ(pid, level) & (2 * PRCB_PID_LEVELS - 1)) + 1;
    REPEAT(search.levels, number_at, &search);
    return search.found;
}

static __always_inline __u32 number_in(struct task_struct *task, __u32 pid_ns)
{
    return number_of((__u64)BPF_CORE_READ(task, thread_pid), pid_ns);
}

/* Tells whether the thread has a number in a pid namespace. A walk over all tasks comes to those
 * of the walker's namespace alone, and a cgroup's list has those of the reader's, so without
 * this threads from outside would be counted if they came later, and only these. */
static __always_inline bool is_inside(struct task_struct *task, __u32 pid_ns)
{
    return pid_ns == PID_NS_FIRST_ || number_in(task, pid_ns);
}

/* Returns the number of its process. */
static __always_inline __u32 process_in(struct task_struct *task, __u32 pid_ns)
{
    return number_of((__u64)BPF_CORE_READ(task, group_leader, thread_pid), pid_ns);
}

static __always_inline void who_of_task(struct task_struct *task, __u32 pid_ns, struct who *ret)
{
    __u64 start = task->start_boottime >> 20, tid;

    ret->what = (__u64)(task->pid ? PRCB_BY_THREAD : PRCB_BY_IDLE) << 16;
    if (pid_ns == PID_NS_FIRST_ || !task->pid) {
        tid = task->pid;
        ret->pid = task->tgid;
    } else {
        tid = number_of((__u64)BPF_CORE_READ(task, thread_pid), pid_ns);
        ret->pid = number_of((__u64)BPF_CORE_READ(task, group_leader, thread_pid), pid_ns);
    }
    /* Idle tasks of all processors are one. */
    ret->thread = task->pid ? tid | start << 32 : 0;
    /* These are two loads, and no call of a helper. */
    ((__u64 *)ret->comm)[0] = ((const __u64 *)task->comm)[0];
    ((__u64 *)ret->comm)[1] = ((const __u64 *)task->comm)[1];
}

/* Does the same for a task that may end meanwhile, but is not given back while this program
 * runs. */
static __always_inline void who_of_address(__u64 address, __u32 pid_ns, struct who *ret)
{
    const struct task_struct *task = (const void *)address;
    __u64 tid = BPF_CORE_READ(task, pid);
    __u64 start = HAS(task_struct, start_boottime) ? BPF_CORE_READ(task, start_boottime) >> 20 : 0;

    ret->pid = BPF_CORE_READ(task, tgid);
    if (pid_ns != PID_NS_FIRST_) {
        tid = number_of((__u64)BPF_CORE_READ(task, thread_pid), pid_ns);
        ret->pid = number_of((__u64)BPF_CORE_READ(task, group_leader, thread_pid), pid_ns);
    }
    ret->thread = tid | start << 32;
    bpf_probe_read_kernel(
        ret->comm, sizeof(ret->comm),
        (const void *)(address + bpf_core_field_offset(struct task_struct, comm)));
    ret->what = (__u64)PRCB_BY_THREAD << 16;
}

static __always_inline void who_of_vector(__u64 by, __u64 vector, struct who *ret)
{
    ret->what = by << 16 | vector << 32;
    ret->thread = 0;
    ret->pid = 0;
    __builtin_memset(ret->comm, 0, sizeof(ret->comm));
}

#endif
