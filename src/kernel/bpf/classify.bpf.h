/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Tells why a task that leaves the processor does so: exactly one cause for every switch, from
 * what the kernel knows at that moment. The order of the questions matters; each says why it
 * stands where it does. There is no state of its own.
 */
#ifndef PRCB_CLASSIFY_BPF_H
#define PRCB_CLASSIFY_BPF_H

#include "kernel.bpf.h"
#include "syscalls.h"
#include <prcb/causes.h>

#define S(number, name, cause) [number] = PRCB_CAUSE_##cause,
#if defined(__TARGET_ARCH_x86)
static const __u8 native_cause[PRCB_SYSCALL_MAX] = {
#include "syscalls_x86_64.def"
};
static const __u8 compat_cause[PRCB_SYSCALL_MAX] = {
#include "syscalls_i386.def"
};
#elif defined(__TARGET_ARCH_arm64)
static const __u8 native_cause[PRCB_SYSCALL_MAX] = {
#include "syscalls_arm64.def"
};
#endif
#undef S

/* These are the file types of i_mode. */
#define S_IFMT_   0170000
#define S_IFIFO_  0010000
#define S_IFCHR_  0020000
#define S_IFSOCK_ 0140000

/* Such a descriptor is no named file: its name tells what it is. */
static __always_inline __u8 cause_of_anonymous(struct file *file)
{
    __u64 dentry, name = 0;

    if (has_file_names()) {
        dentry = kernel_word((__u64)file + bpf_core_field_offset(struct file, f_path.dentry));
        name = kernel_word(dentry + bpf_core_field_offset(struct dentry, d_name.name));
        name = kernel_word(name); /* its first eight characters */
    }
    return name == 0x6466746e6576655bull /* "[eventfd" */ ? PRCB_CAUSE_EVENTFD : PRCB_CAUSE_FD;
}

/* Describes the system call that a task was switched out in. */
struct call_seen {
    __s32 number; /* -1: none */
    __u32 compat; /* by the 32-bit table */
    __u64 arg;    /* the first */
    __u64 third;  /* of splice and tee */
    __u64 file;   /* address of what is open by that number; 0: it was not looked for */
};

/* Returns what a task has open by a number; NULL: nothing. */
static __always_inline struct file *file_of_fd(struct task_struct *task, __u32 fd)
{
    struct files_struct *files = plain(task)->files;
    struct fdtable *fdt;

    if (!files)
        return NULL;
    fdt = files->fdt;
    return fd < fdt->max_fds ? (struct file *)kernel_word((__u64)(fdt->fd + fd)) : NULL;
}

static __always_inline __u16 type_of_file(__u64 file)
{
    __u64 inode = kernel_word(file + bpf_core_field_offset(struct file, f_inode));

    return kernel_word(inode + bpf_core_field_offset(struct inode, i_mode)) & S_IFMT_;
}

/* Of the two files of splice and tee, one is a pipe at least: it waits for the pipe that it takes
 * from if there is nothing in it, for the one that it fills if that is full, and else for the
 * other. */
APART int waits_for_third(__u64 from, __u64 to)
{
    if (type_of_file(from) == S_IFIFO_)
        return !pipe_is(from, false);
    return type_of_file(to) == S_IFIFO_ && pipe_is(to, true);
}

/* The call is one of two files from here on, that which it waits for. */
static __always_inline void choose_file(struct task_struct *task, struct call_seen *call)
{
    struct file *from, *to;

    if (!has_files() || !HAS(file, private_data))
        return;
    from = file_of_fd(task, (__u32)call->arg);
    to = file_of_fd(task, (__u32)call->third);
    if (from && to && waits_for_third((__u64)from, (__u64)to))
        call->arg = call->third;
}

/* A read or write waits for what its descriptor is. */
static __always_inline __u8 cause_of_fd(struct task_struct *task, struct call_seen *call)
{
    struct file *file;

    if (!has_files())
        return PRCB_CAUSE_OTHER;
    file = file_of_fd(task, (__u32)call->arg);
    if (!file)
        return PRCB_CAUSE_OTHER;
    call->file = (__u64)file;
    switch (type_of_file(call->file)) {
    case S_IFIFO_:
        return PRCB_CAUSE_PIPE;
    case S_IFSOCK_:
        return PRCB_CAUSE_SOCKET;
    case S_IFCHR_:
        return PRCB_CAUSE_DEVICE;
    case 0: /* an anonymous inode has no type */
        return cause_of_anonymous(file);
    default:
        return PRCB_CAUSE_FILE;
    }
}

/* Opening waits for what is opened: a FIFO for its other end, a file for a server. */
APART __u8 cause_of_open(struct task_struct *task)
{
    __u16 type = 0;

    if (HAS(task_struct, nameidata) && HAS(nameidata, inode) && HAS_SAME(inode, i_mode))
        type = BPF_CORE_READ(task, nameidata, inode, i_mode) & S_IFMT_;
    return type == S_IFIFO_   ? PRCB_CAUSE_PIPE
           : type == S_IFCHR_ ? PRCB_CAUSE_DEVICE
                              : PRCB_CAUSE_FILE;
}

/* Returns what the table says of a system call; NONE: nothing. arm64 has no table for 32-bit
 * tasks yet. */
static __always_inline __u8 cause_of_syscall(__u32 number, bool compat)
{
    __u64 index = number;

    if (number >= PRCB_SYSCALL_MAX)
        return PRCB_CAUSE_NONE;
    /* This changes nothing: the verifier of 6.1 does not see that a copy of the number, which
     * the compiler may index with, is as small as the one that was compared. */
    asm volatile("%0 &= %1" : "+r"(index) : "i"(PRCB_SYSCALL_MAX - 1));
#if defined(__TARGET_ARCH_x86)
    if (compat)
        return compat_cause[index];
#elif defined(__TARGET_ARCH_arm64)
    if (compat)
        return PRCB_CAUSE_NONE;
#endif
    return native_cause[index];
}

/* 32-bit x86 reaches System V semaphores and queues through ipc(2): its first argument says what
 * is meant, the upper half being a version. */
static __always_inline __u8 cause_of_ipc(__u32 call)
{
    switch (call & 0xffff) {
    case 1: /* SEMOP */
    case 4: /* SEMTIMEDOP */
        return PRCB_CAUSE_SEMAPHORE;
    case 11: /* MSGSND */
    case 12: /* MSGRCV */
        return PRCB_CAUSE_MSGQUEUE;
    default:
        return PRCB_CAUSE_OTHER;
    }
}

/* Names the lock a task waits for, by the flags of contention_begin. */
static __always_inline __u8 cause_of_lock(__u32 flags, bool own_mmap_lock)
{
    if (own_mmap_lock)
        return PRCB_CAUSE_MMAP_LOCK;
    if (flags & LCB_F_MUTEX_)
        return PRCB_CAUSE_MUTEX;
    if (flags & (LCB_F_READ_ | LCB_F_WRITE_ | LCB_F_PERCPU_))
        return PRCB_CAUSE_RWSEM;
    return PRCB_CAUSE_KLOCK;
}

/* Returns the flags that contention_begin had for the lock that a task sleeps for. */
static __always_inline __u32 flags_of_blocker(__u64 blocker)
{
    switch (blocker & BLOCKER_MASK_) {
    case BLOCKER_MUTEX_:
        return LCB_F_MUTEX_;
    case BLOCKER_READER_:
        return LCB_F_READ_;
    case BLOCKER_WRITER_:
        return LCB_F_WRITE_;
    default:
        return 0;
    }
}

/* Names the lock that a task sleeps for since before it was profiled; NONE: none is known of. */
APART __u8 cause_of_blocker(struct task_struct *task)
{
    __u64 blocker = task_blocker(task), lock = blocker & ~BLOCKER_MASK_;

    return lock ? cause_of_lock(flags_of_blocker(blocker), is_own_mmap_lock(task, lock))
                : PRCB_CAUSE_NONE;
}

/* Tells whether a task that could go on is held back, by a quota of its group or by a real-time
 * budget. */
static __always_inline bool is_held_back(struct task_struct *task, int prio)
{
    return prio >= MAX_RT_PRIO_ ? task_throttled(task)
           : prio >= 0          ? group_exhausted(task)
                                : budget_exhausted(task);
}

/* Tells why a task is switched out although it could go on. The preempt argument of the
 * tracepoint does not tell: a kernel built without preemption passes 0 for a tick. */
static __always_inline __u8 cause_of_ready(struct task_struct *task, struct task_struct *next,
                                           __u8 by_syscall)
{
    int prio, next_prio;

    prio = task_prio(task);
    if (is_held_back(task, prio))
        return PRCB_CAUSE_THROTTLED;
    if (by_syscall == PRCB_CAUSE_YIELD)
        return PRCB_CAUSE_YIELD;
    /* This comes before the slice: a lone task runs far past its slice until a real-time task
     * comes. */
    next_prio = task_prio(next);
    if (next_prio < MAX_RT_PRIO_ && next_prio < prio)
        return PRCB_CAUSE_PREEMPTED;
    /* se.slice knows nothing of real-time tasks' slices: the task's turn among equals is over
     * (round robin), or the share that real-time tasks may take. */
    if (prio < MAX_RT_PRIO_)
        return PRCB_CAUSE_QUANTUM;
    if (task_used_slice(task))
        return PRCB_CAUSE_QUANTUM;
    return PRCB_CAUSE_PREEMPTED;
}

/* A thread of the kernel that sleeps without counting as load has nothing to do; one that
 * counts, and cannot be interrupted, is blocked, and makes the load average. Workers wait for
 * work in a way of their own; in every other wait they are in the midst of some work. */
static __always_inline __u8 cause_of_kernel_thread(struct task_struct *task, __u32 state)
{
    bool works;

    if (state & TASK_UNINTERRUPTIBLE_ && !(state & TASK_NOLOAD_))
        return PRCB_CAUSE_OTHER_D;
    if (task->flags & PF_KTHREAD_ && !(task->flags & PF_WQ_WORKER_))
        return PRCB_CAUSE_KERNEL;
    if (task->flags & PF_WQ_WORKER_)
        works = !(state & TASK_NOLOAD_);
    else
        works = task->flags & PF_IO_WORKER_ && io_worker_works(task);
    return works ? PRCB_CAUSE_OTHER : PRCB_CAUSE_WORKER;
}

/* Tells of a cause that a system call has whether waits for it are interruptible: one that is not
 * is for something else, such as memory or a lock, which only the kernel's stack tells. */
static __always_inline bool is_interruptible(__u8 cause)
{
#define I(NAME) (1ull << PRCB_CAUSE_##NAME)
    const __u64 causes = I(SLEEP) | I(FUTEX) | I(POLL) | I(EPOLL) | I(PIPE) | I(EVENTFD) | I(FD) |
                         I(CHILD) | I(SIGNAL) | I(SEMAPHORE) | I(MSGQUEUE) | I(AIO);
#undef I

    return causes >> (cause & 63) & 1;
}

/* Tells what a task waits for in a system call. */
static __always_inline __u8 cause_in_call(struct task_struct *task, __u8 by_syscall,
                                          struct call_seen *call)
{
    switch (by_syscall) {
    case PRCB_CAUSE_BY_SPLICE:
        choose_file(task, call);
        return cause_of_fd(task, call);
    case PRCB_CAUSE_BY_FD:
        return cause_of_fd(task, call);
    case PRCB_CAUSE_BY_OPEN:
        return task_asks(task) ? PRCB_CAUSE_SUPERVISOR : cause_of_open(task);
    case PRCB_CAUSE_BY_IPC:
        return cause_of_ipc(call->arg);
    case PRCB_CAUSE_BY_EXEC:
        if (task_execs(task))
            return PRCB_CAUSE_EXEC;
        by_syscall = PRCB_CAUSE_FILE;
        break;
    default:
        break;
    }
    /* Supervisors are asked about files, sockets, and calls that have no row. */
    if ((!by_syscall || by_syscall == PRCB_CAUSE_FILE || by_syscall == PRCB_CAUSE_SOCKET ||
         by_syscall == PRCB_CAUSE_DRIVER) &&
        task_asks(task))
        return PRCB_CAUSE_SUPERVISOR;
    return by_syscall;
}

/* Tells why a task waits. lock: cause_of_lock, or NONE. by_syscall: from the table. */
static __always_inline __u8 cause_of_wait(struct task_struct *task, __u32 state, __u8 lock,
                                          __u8 by_syscall, struct call_seen *call)
{
    bool in_syscall = call->number >= 0;
    __u32 waits = task_waits(task);
    __u8 cause;

    if (state & TASK_STOPPED_)
        return PRCB_CAUSE_STOPPED;
    if (state & TASK_TRACED_)
        return PRCB_CAUSE_TRACED;
    /* The second freezer (cgroup v2) parks a task in an interruptible sleep with its frozen
     * bit set. The bit is set for stopped tasks too, hence after them, and for one that
     * waits, killable, for its vfork child. */
    if ((state & TASK_FROZEN_) || ((state & TASK_INTERRUPTIBLE_) && waits & WAITS_FROZEN))
        return PRCB_CAUSE_FROZEN;
    if (lock)
        return lock;
    if (state & TASK_RTLOCK_WAIT_)
        return PRCB_CAUSE_KLOCK;
    if (task_reclaims(task, waits))
        return PRCB_CAUSE_RECLAIM;
    /* The first of these flags stays set in the rest of the task's exit. */
    if (task->flags & (PF_POSTCOREDUMP_ | PF_DUMPCORE_) && !(task->flags & PF_EXITING_))
        return PRCB_CAUSE_CORE_DUMP;
    if (waits & WAITS_IO) {
        /* The kernel calls a wait in io_uring_enter I/O wait as soon as any request is in
         * flight, a poll too (6.1). */
        if (by_syscall == PRCB_CAUSE_FSYNC || by_syscall == PRCB_CAUSE_IO_URING)
            return by_syscall;
        /* Outside a system call only a fault reads from storage. A fault inside one
         * looks the same as the call's own read. */
        if (!in_syscall && !(task->flags & (PF_KERNELS_ | PF_ENDS_)))
            return PRCB_CAUSE_PAGE_FAULT;
        return PRCB_CAUSE_DISK;
    }
    if (task->flags & PF_KERNELS_)
        return cause_of_kernel_thread(task, state);
    if (task->flags & PF_EXITING_)
        return PRCB_CAUSE_ENDING;
    cause = in_syscall ? cause_in_call(task, by_syscall, call) : PRCB_CAUSE_NONE;
    if (cause && !(state & TASK_UNINTERRUPTIBLE_ && is_interruptible(cause)))
        return cause;
    if (state & TASK_UNINTERRUPTIBLE_)
        return PRCB_CAUSE_OTHER_D;
    /* Outside of a system call a program waits for memory that others give: a server of files, or
     * a handler of userfaultfd. */
    return cause || in_syscall || !has_syscalls() ? PRCB_CAUSE_OTHER : PRCB_CAUSE_PAGE_FAULT;
}

/* Describes the kernel lock that a task waits for, from contention_begin to contention_end. From
 * 7.0 the end may not be reported ("which threads" in threads.bpf.h): a lock that is waited for
 * no more must not become the cause of later waits. The wait is in one system call, and each
 * time that it sleeps on it does so in the same state: what differs in either is not this wait. */
struct waited_lock {
    __u64 lock;    /* its address; 0: none */
    __u32 cause;   /* PRCB_CAUSE_* */
    __s32 syscall; /* that it was met in; -1: none */
    __u32 state;   /* that the task first slept in since; 0: it has not yet */
    __u32 owned;   /* enum owned; for who asks, by owned_by_flags */
    __u32 again;   /* it sleeps on it for more than the first time since */
};

/* Tells whose word says who holds the lock. A semaphore of each processor has no such word, nor
 * has any lock of PREEMPT_RT. */
static __always_inline __u32 owned_by_flags(__u32 flags)
{
    if (flags & (LCB_F_RT_ | LCB_F_PERCPU_))
        return OWNED_NOT;
    if (flags & LCB_F_MUTEX_)
        return OWNED_MUTEX;
    return flags & (LCB_F_READ_ | LCB_F_WRITE_) ? OWNED_RWSEM : OWNED_NOT;
}

static __always_inline void meet_lock(struct waited_lock *waited, struct task_struct *task,
                                      __u64 lock, __u8 cause)
{
    bool compat = false;
    __u64 arg = 0;

    waited->cause = cause;
    waited->syscall = task_syscall(task, registers_of(task), &compat, &arg);
    waited->state = 0;
    waited->lock = lock;
}

/* Returns the cause of the wait that begins; NONE: it is not for this lock. */
static __always_inline __u8 lock_cause(struct waited_lock *waited, __s32 syscall, __u32 state)
{
    if (!waited || !waited->lock || state == TASK_RUNNING_)
        return PRCB_CAUSE_NONE;
    if (waited->syscall != syscall || (waited->state && waited->state != state)) {
        waited->lock = 0;
        return PRCB_CAUSE_NONE;
    }
    waited->again = waited->state != 0;
    waited->state = state;
    return waited->cause;
}

/* Returns the cause of a switch away from task, and the system call that it is in. regs:
 * registers_of(task). waited: NULL: no lock is known of. *restart: the last system call that it
 * was switched out in, plus 1, or 0; restart_syscall goes on with that one, whatever was
 * switched away from in user mode between the two. */
static __always_inline __u8 classify(struct task_struct *task, struct pt_regs *regs,
                                     struct task_struct *next, __u32 state,
                                     struct waited_lock *waited, __u32 *restart,
                                     struct call_seen *ret_call)
{
    __u8 by_syscall = PRCB_CAUSE_NONE, lock;
    bool compat = false;
    __u64 arg = 0;
    int number;

    *ret_call = (struct call_seen){.number = -1};
    if (state & TASK_DEAD_)
        return PRCB_CAUSE_EXIT;
    number = task_syscall(task, regs, &compat, &arg);
    lock = lock_cause(waited, number, state);
    if (number >= 0) {
        by_syscall = cause_of_syscall(number, compat);
        if (by_syscall == PRCB_CAUSE_RESTART) {
            number = (__s32)*restart - 1;
            by_syscall = cause_of_syscall(number, compat);
        }
        *restart = number + 1;
    }
    ret_call->number = number;
    ret_call->compat = compat;
    ret_call->arg = arg;
    if (by_syscall == PRCB_CAUSE_BY_SPLICE)
        ret_call->third = third_argument(regs);
    if (state == TASK_RUNNING_)
        return cause_of_ready(task, next, by_syscall);
    return cause_of_wait(task, state, lock, by_syscall, ret_call);
}

/* Tells whether the cause is of kind READY in causes.h: the whole stretch is ready time. */
static __always_inline bool cause_is_ready(__u8 cause)
{
#define READY                                      1
#define WAIT                                       0
#define END                                        0
#define X(number, NAME, name, kind, reason, words) ((__u64)kind << number) |
    const __u64 ready = PRCB_CAUSES(X) 0;
#undef X
#undef READY
#undef WAIT
#undef END
    return ready >> (cause & 63) & 1;
}

#endif
