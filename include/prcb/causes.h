/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Why a thread is not running: the one table of causes, read by the eBPF
 * programs that assign them and by the programs that print them. Macros only,
 * no types, so that both sides may include it.
 *
 * A cause is finer than NT's wait reason (NT files pipe, disk and fsync alike
 * under Executive); the reason is derived from the cause. Numbers are part of
 * the block format: append, never renumber. At most 48 rows (PRCB_CAUSE_MAX).
 */
#ifndef PRCB_CAUSES_H
#define PRCB_CAUSES_H

#define PRCB_CAUSE_MAX 48

/* X(number, NAME, "name", KIND, KWAIT_REASON number, "words that finish 'time was spent ...'")
 *
 * KIND: READY  switched out while it could run: the whole stretch is ready time,
 *              the cause carries a count and its own time stays 0
 *       WAIT   a wait; its time is the cause's, less the ready time before it ran again
 *       END    the thread's last switch */
/* clang-format off */
#define PRCB_CAUSES(X)                                                                            \
    X( 1, QUANTUM,   "quantum",    READY, 30, "ready after using up its time slice")              \
    X( 2, PREEMPTED, "preempted",  READY, 32, "ready after another thread took the processor")    \
    X( 3, YIELD,     "yield",      READY, 33, "ready after giving the processor away (sched_yield)") \
    X( 4, THROTTLED, "throttled",  WAIT,  24, "held back by a CPU quota (cgroup)")                \
    X( 5, SLEEP,     "sleep",      WAIT,   4, "asleep (nanosleep)")                               \
    X( 6, FUTEX,     "futex",      WAIT,  37, "waiting for a lock or condition (futex)")          \
    X( 7, POLL,      "poll",       WAIT,   6, "waiting in poll or select")                        \
    X( 8, EPOLL,     "epoll",      WAIT,  15, "waiting in epoll_wait")                            \
    X( 9, PIPE,      "pipe",       WAIT,   0, "waiting on a pipe")                                \
    X(10, SOCKET,    "socket",     WAIT,   6, "waiting on a socket")                              \
    X(11, EVENTFD,   "eventfd",    WAIT,   0, "waiting on an eventfd")                            \
    X(12, FD,        "fd",         WAIT,   0, "waiting on a descriptor (timerfd, signalfd, inotify, ...)") \
    X(13, DEVICE,    "device",     WAIT,   0, "waiting on a device or terminal")                  \
    X(14, DISK,      "disk",       WAIT,   0, "waiting for storage (block I/O)")                  \
    X(15, FSYNC,     "fsync",      WAIT,   0, "waiting for data to reach storage (fsync, sync)")  \
    X(16, FILE,      "file",       WAIT,   0, "waiting on a file without block I/O (FUSE, NFS, ...)") \
    X(17, PAGE_FAULT,"page-fault", WAIT,   2, "waiting for a page (major fault, userfaultfd)")      \
    X(18, FILE_LOCK, "file-lock",  WAIT,   6, "waiting for a file lock (flock, fcntl)")           \
    X(19, CHILD,     "child",      WAIT,   6, "waiting for a child process (wait4)")              \
    X(20, VFORK,     "vfork",      WAIT,   6, "waiting for a vfork child to exec or exit")        \
    X(21, SIGNAL,    "signal",     WAIT,   6, "waiting for a signal (pause, sigwait)")            \
    X(22, SEMAPHORE, "semaphore",  WAIT,   6, "waiting on a System V semaphore")                  \
    X(23, MSGQUEUE,  "msgqueue",   WAIT,  16, "waiting on a message queue")                       \
    X(24, IO_URING,  "io_uring",   WAIT,  40, "waiting for io_uring completions")                 \
    X(25, AIO,       "aio",        WAIT,  15, "waiting for asynchronous I/O (io_getevents)")      \
    X(26, STOPPED,   "stopped",    WAIT,   5, "stopped by a signal (job control)")                \
    X(27, TRACED,    "traced",     WAIT,   5, "stopped by a debugger (ptrace)")                   \
    X(28, FROZEN,    "frozen",     WAIT,   5, "frozen (cgroup freezer)")                          \
    X(29, EXIT,      "exit",       END,   22, "exiting")                                          \
    X(30, RWSEM,     "rwsem",      WAIT,  27, "waiting for a kernel reader-writer lock (inode, ...)") \
    X(31, MMAP_LOCK, "mmap-lock",  WAIT,  28, "waiting for its address space's lock (mmap_lock)") \
    X(32, MUTEX,     "mutex",      WAIT,  29, "waiting for a kernel mutex")                       \
    X(33, KLOCK,     "klock",      WAIT,   0, "waiting for another kernel lock (semaphore, rt_mutex)") \
    X(34, RCU,       "rcu",        WAIT,  42, "waiting for an RCU grace period (membarrier, ...)") \
    X(35, KERNEL,    "kernel",     WAIT,  26, "idle in the kernel (kernel thread)")               \
    X(36, WORKER,    "worker",     WAIT,  15, "idle, waiting for kernel work (worker thread)")    \
    X(37, OTHER_D,   "other-d",    WAIT,   0, "waiting in the kernel, uninterruptible, no finer cause known") \
    X(38, OTHER,     "other",      WAIT,   6, "waiting, no finer cause known")                    \
    X(39, DRIVER,    "ioctl",      WAIT,   0, "waiting in an ioctl (driver)")                       \
    X(40, RECLAIM,   "reclaim",    WAIT,   1, "freeing memory for itself (reclaim, a cgroup's limit)") \
    X(41, ENDING,    "ending",     WAIT,  36, "waiting while it ends (files to close, processes of its namespace)") \
    X(42, CORE_DUMP, "core-dump",  WAIT,  36, "waiting while its process's core is dumped") \
    X(43, CLOSE,     "close",      WAIT,   0, "closing what was open (data on its way, a server's answer)")  \
    X(44, EXEC,      "exec",       WAIT,  36, "waiting in execve for the other threads to end")   \
    X(45, SUPERVISOR,"supervisor", WAIT,   6, "waiting for its supervisor to answer (seccomp)")

/* NT's KWAIT_REASON: X(number, name). */
#define PRCB_WAIT_REASONS(X)                                                                      \
    X( 0, Executive)         X( 1, FreePage)          X( 2, PageIn)          X( 3, PoolAllocation)   \
    X( 4, DelayExecution)    X( 5, Suspended)         X( 6, UserRequest)     X( 7, WrExecutive)      \
    X( 8, WrFreePage)        X( 9, WrPageIn)          X(10, WrPoolAllocation) X(11, WrDelayExecution) \
    X(12, WrSuspended)       X(13, WrUserRequest)     X(14, WrEventPair)     X(15, WrQueue)          \
    X(16, WrLpcReceive)      X(17, WrLpcReply)        X(18, WrVirtualMemory) X(19, WrPageOut)        \
    X(20, WrRendezvous)      X(21, WrKeyedEvent)      X(22, WrTerminated)    X(23, WrProcessInSwap)  \
    X(24, WrCpuRateControl)  X(25, WrCalloutStack)    X(26, WrKernel)        X(27, WrResource)       \
    X(28, WrPushLock)        X(29, WrMutex)           X(30, WrQuantumEnd)    X(31, WrDispatchInt)    \
    X(32, WrPreempted)       X(33, WrYieldExecution)  X(34, WrFastMutex)     X(35, WrGuardedMutex)   \
    X(36, WrRundown)         X(37, WrAlertByThreadId) X(38, WrDeferredPreempt) X(39, WrPhysicalFault) \
    X(40, WrIoRing)          X(41, WrMdlCache)        X(42, WrRcu)
/* clang-format on */

/* PRCB_CAUSE_SLEEP and so on; PRCB_CAUSE_NONE is 0. */
#define PRCB_CAUSE_ENUM_ROW(number, NAME, name, kind, reason, words) PRCB_CAUSE_##NAME = number,
enum prcb_cause { PRCB_CAUSE_NONE = 0, PRCB_CAUSES(PRCB_CAUSE_ENUM_ROW) };
#undef PRCB_CAUSE_ENUM_ROW

#endif
