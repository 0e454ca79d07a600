/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Declares the kernel structures the programs read, as far as they are read (CO-RE relocates
 * each member on the running kernel), and one accessor for each fact that kernels hold in
 * different ways, naming the release that changed it.
 */
#ifndef PRCB_KERNEL_BPF_H
#define PRCB_KERNEL_BPF_H

#include <linux/types.h>
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "block_abi.h"
#include "plain.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rq {
    __u64 clock;
    __u64 clock_pelt;
    unsigned long lost_idle_time;
    __u64 nr_switches;
};

struct irqaction {
    unsigned int flags;
    const char *name;
};

struct task_group {
};

struct cfs_rq {
    struct rq *rq;
    struct task_group *tg;
    unsigned int throttle_count;
    __u64 throttled_clock_self; /* 0: not held back now */
    __u64 throttled_clock_self_time;
    __u64 throttled_clock_pelt;
    __u64 throttled_clock_pelt_time;
};

struct sched_entity {
    unsigned char sched_delayed;
    __u64 sum_exec_runtime;
    __u64 prev_sum_exec_runtime;
    __u64 slice;
    __u64 nr_migrations;
    struct cfs_rq *cfs_rq;
};

struct rt_rq {
    unsigned int rt_throttled;
};

struct sched_rt_entity {
    struct sched_rt_entity *parent;
    struct rt_rq *rt_rq;
};

struct sched_dl_entity {
    __u64 dl_deadline;
    __u64 dl_period;
    __u64 deadline;
    unsigned int dl_throttled : 1;
};

struct sched_info {
    unsigned long long run_delay;
    unsigned long long last_arrival;
    unsigned long long last_queued;
};

struct ns_common {
    unsigned int inum;
};

struct pid_namespace {
    struct ns_common ns;
};

struct upid {
    int nr;
    struct pid_namespace *ns;
};

struct hlist_node {
    struct hlist_node *next;
};

struct hlist_head {
    struct hlist_node *first;
};

#define PIDTYPE_TGID_ 1 /* 4.19 */

struct pid {
    unsigned int level;
    struct hlist_head tasks[2];
    struct upid numbers[1];
};

struct qstr {
    const unsigned char *name;
};

struct dentry {
    struct qstr d_name;
};

struct path {
    struct dentry *dentry;
};

struct super_block {
    unsigned int s_dev;
};

struct inode {
    unsigned short i_mode;
    unsigned long i_ino;
    struct super_block *i_sb;
};

struct file {
    struct inode *f_inode;
    void *private_data;
    struct path f_path;
};

/* Holds the path that a task is opening. */
struct nameidata {
    struct inode *inode;
};

struct fdtable {
    unsigned int max_fds;
    struct file **fd;
};

struct files_struct {
    struct fdtable *fdt;
};

/* atomic_long_t */
struct atomic_word {
    __u64 counter;
};

/* A sleeping lock's owner is the address of a task, with flags in its lowest bits. */
struct rw_semaphore {
    struct atomic_word owner;
};

struct mutex {
    struct atomic_word owner;
};

struct mm_struct {
    struct rw_semaphore mmap_lock;
    unsigned long flags; /* until 6.17 */
};

struct mm_struct___bits {
    struct {
        unsigned long bits[1];
    } flags; /* from 6.18 */
};

/* An exec decides this of a task: 7.2. CO-RE takes an enumeration for one of the same name only. */
enum task_dumpable { TASK_DUMPABLE_OFF_, TASK_DUMPABLE_OWNER_ };
struct task_exec_state {
    enum task_dumpable dumpable;
};

struct kernel_id {
    unsigned int val;
};

struct user_namespace {
    struct user_namespace *parent;
    struct kernel_id owner;
    struct ns_common ns;
};

struct capabilities {
};

struct cred {
    struct kernel_id uid, gid, suid, sgid, euid, egid;
    struct capabilities cap_permitted; /* 64 bits, held in different ways */
    struct user_namespace *user_ns;
};

/* A socket that was accepted tells who connected, with the credentials of that moment. */
struct sock {
    struct pid *sk_peer_pid;
    struct cred *sk_peer_cred;
};

struct socket {
    struct sock *sk;
};

struct thread_info {
    unsigned long flags;
    __u32 status;
};

struct kernfs_node {
    __u64 id;
};

struct cgroup;

struct cgroup_subsys_state {
    struct cgroup *cgroup;
    struct cgroup_subsys_state *parent;
};

struct cgroup {
    struct cgroup_subsys_state self;
    struct kernfs_node *kn;
};

struct css_set {
    struct cgroup *dfl_cgrp;
};

struct bpf_local_storage;

struct list_head {
    struct list_head *next, *prev;
};

struct signal_struct {
    struct list_head thread_head;
    void *group_exec_task; /* 5.17 */
};

/* Those who ask a process's supervisor wait in its list, the last one at its end. */
struct seccomp_knotif {
    void *task;
    struct list_head list;
};

struct notification {
    struct list_head notifications;
};

struct seccomp_filter {
    struct seccomp_filter *prev;
    struct notification *notif;
};

struct seccomp {
    unsigned int mode;
    struct seccomp_filter *filter;
};

struct pipe_inode_info {
    unsigned int head, tail, max_usage;
};

/* Plain numbers are unsigned, whatever the kernel has: libbpf then fits a load to the width that
 * the running kernel gives the member. Others are read by NUMBER, or asked for by HAS_SAME. */
struct task_struct {
    struct thread_info thread_info;
    unsigned int __state;
    unsigned int flags;
    unsigned int on_cpu; /* 8 bits from 7.2 */
    unsigned int on_rq;  /* 8 bits from 7.2 */
    unsigned int exit_state;
    int prio; /* negative: deadline */
    struct sched_entity se;
    struct sched_rt_entity rt;
    struct sched_dl_entity dl;
    unsigned char throttled; /* per-task CPU-quota throttling: 6.18 */
    struct sched_info sched_info;
    struct mm_struct *mm;
    unsigned int in_iowait : 1;
    unsigned int frozen : 1;
    unsigned int in_memstall : 1;
    unsigned int pid;
    unsigned int tgid;
    struct task_struct *group_leader;
    struct signal_struct *signal;
    struct seccomp seccomp;
    unsigned long blocker; /* the lock that it sleeps for, with BLOCKER_: 6.16 */
    struct list_head thread_node;
    struct pid *thread_pid;
    struct hlist_node pid_links[2];
    unsigned long nvcsw;
    unsigned long nivcsw;
    char comm[16];
    struct files_struct *files;
    struct nameidata *nameidata;
    void *worker_private; /* of io_uring's workers: a struct io_worker */
    struct css_set *cgroups;
    struct cred *real_cred;
    struct task_exec_state *exec_state;
    __u64 start_boottime;
    struct bpf_local_storage *bpf_storage;
};

/* Describes io_uring's worker. */
struct io_worker {
    void *cur_work; /* what it is at; NULL: it waits for work */
};

/* These are the registers a system call was entered with. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
    unsigned long bx;
    unsigned long bp;
    unsigned long si;
    unsigned long di;
    unsigned long dx;
    unsigned long orig_ax;
    unsigned long ip;
    unsigned short cs;
    unsigned long sp;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
    __u64 regs[31];
    __u64 sp;
    __u64 pc;
    __u64 pstate;
    __u64 orig_x0;
    __s32 syscallno;
};
#else
#error "no accessors for this architecture: add its pt_regs here"
#endif

/* These are the iterators' contexts. */
struct seq_file;
struct bpf_iter_meta {
    struct seq_file *seq;
};
struct bpf_iter__task {
    struct bpf_iter_meta *meta;
    struct task_struct *task;
};

struct bpf_map {
    unsigned int id;
    char name[16];
};
struct bpf_iter__bpf_map {
    struct bpf_iter_meta *meta;
    struct bpf_map *map;
};

#pragma clang attribute pop

/* include/linux/sched.h; the same since 4.14 but where said. */
#define TASK_RUNNING_         0x0000
#define TASK_INTERRUPTIBLE_   0x0001
#define TASK_UNINTERRUPTIBLE_ 0x0002
#define TASK_STOPPED_         0x0004
#define TASK_TRACED_          0x0008
#define TASK_DEAD_            0x0080
#define TASK_NOLOAD_          0x0400 /* it sleeps idle: no load */
#define TASK_NEW_             0x0800 /* created, not able to run yet */
#define TASK_RTLOCK_WAIT_     0x1000 /* 5.15 */
#define TASK_FROZEN_          0x8000 /* 6.1; before it a frozen task is uninterruptible */
#define PF_EXITING_           0x00000004
#define PF_POSTCOREDUMP_      0x00000008 /* it waits for another thread to dump the core: 5.16 */
#define PF_IO_WORKER_         0x00000010 /* io_uring's, without PF_KTHREAD: 5.12 */
#define PF_WQ_WORKER_         0x00000020
#define PF_DUMPCORE_          0x00000200
#define PF_MEMALLOC_          0x00000800 /* it frees memory: reclaim, compaction */
#define PF_USER_WORKER_       0x00004000 /* the kernel's, in a program: io_uring, vhost: 6.2 */
#define PF_KTHREAD_           0x00200000
/* Runs no program. */
#define PF_KERNELS_ (PF_KTHREAD_ | PF_IO_WORKER_ | PF_USER_WORKER_)
/* Is in no system call: the registers are those of its last one. */
#define PF_ENDS_      (PF_EXITING_ | PF_POSTCOREDUMP_ | PF_DUMPCORE_)
#define MAX_RT_PRIO_  100
#define CLONE_THREAD_ 0x00010000

/* Of the 64-bit table. */
#if defined(__TARGET_ARCH_x86)
#define SETAFFINITY_CALL 203
#elif defined(__TARGET_ARCH_arm64)
#define SETAFFINITY_CALL 122
#endif

/* include/linux/lockdep or trace/events/lock.h: flags of contention_begin, 5.19 */
#define LCB_F_SPIN_   (1u << 0)
#define LCB_F_READ_   (1u << 1)
#define LCB_F_WRITE_  (1u << 2)
#define LCB_F_RT_     (1u << 3)
#define LCB_F_PERCPU_ (1u << 4)
#define LCB_F_MUTEX_  (1u << 5)

#define HAS(type, member) bpf_core_field_exists(struct type, member)

/* Helpers that a kernel may be without; the numbers are those of <linux/bpf.h>. */
enum bpf_func_id___asked {
    BPF_FUNC_task_pt_regs___asked = 175,
    BPF_FUNC_loop___asked = 181,
};

#define HAS_HELPER(name)                                                                           \
    bpf_core_enum_value_exists(enum bpf_func_id___asked, BPF_FUNC_##name##___asked)

/* Of a task's user registers, where the kernel tells where they are (5.15). */
#define HAS_REGISTER(member) (HAS_HELPER(task_pt_regs) && HAS(pt_regs, member))
/* Tells whether the kernel has the member, and as wide as it is declared here: whoever reads it
 * copies so many bytes, or loads them, and libbpf fits a load to another width of an unsigned
 * number only, and leaves of one of a signed number what the verifier refuses. */
#define HAS_SAME(type, member)                                                                     \
    (HAS(type, member) &&                                                                          \
     bpf_core_field_size(struct type, member) == sizeof(((struct type *)0)->member))
/* Reads a number of whatever width and sign the running kernel gives it, a bit field too; 0
 * where it has none: for what a feature can do without. */
#define NUMBER(type, object, member)                                                               \
    (HAS(type, member) ? BPF_CORE_READ_BITFIELD(object, member) : 0)

/* Marks a function that nothing is moved out of. Where a member lies that is read as a number,
 * or through pointers, is a number itself: in a loop over clients compilers take it from before
 * the loop, where nobody asks yet whether the kernel has the member. */
#define APART static __noinline __attribute__((unused))

/* Returns the same task, for reading pointers from. Of a task that the verifier trusts it asks
 * for each pointer that is read whether that is to be trusted too, by searches over all names of
 * the kernel's types (6.3 to 6.18): most of a load's time. This costs a move. The second
 * argument, which the loader sets, is the kernel's number of the type (bpf_load.c). */
static __always_inline struct task_struct *plain(struct task_struct *task)
{
    struct task_struct *ret;

    asm volatile("r1 = %1\n"
                 "r2 = 0\n"
                 "call %2\n"
                 "%0 = r0"
                 : "=r"(ret)
                 : "r"(task), "i"(PRCB_PLAIN_CALL)
                 : "r0", "r1", "r2", "r3", "r4", "r5");
    return ret;
}

/* Tells whether plain() may be given any address. It is a constant to the verifier. */
static __always_inline bool has_casts(void)
{
    __u64 ret;

    asm volatile("call %1\n"
                 "%0 = r0"
                 : "=r"(ret)
                 : "i"(PRCB_CASTS_CALL)
                 : "r0", "r1", "r2", "r3", "r4", "r5");
    return ret;
}

/* Returns eight bytes of the kernel's memory; 0: they cannot be read. It is a load where the
 * kernel allows it, as of a member of a task that would lie there: a call of the helper costs as
 * much as 20 of them. */
static __always_inline __u64 kernel_word(__u64 address)
{
    __u64 ret = 0;

    if (has_casts() && HAS_SAME(task_struct, nvcsw))
        return plain((void *)(address - bpf_core_field_offset(struct task_struct, nvcsw)))->nvcsw;
    bpf_probe_read_kernel(&ret, sizeof(ret), (const void *)address);
    return ret;
}

/* The run queue of a task that is on one; needs CONFIG_FAIR_GROUP_SCHED, which gives every
 * entity (real-time and idle tasks' too) a pointer to its queue. */
static __always_inline bool has_rq(void)
{
    return HAS(sched_entity, cfs_rq) && HAS(cfs_rq, rq);
}

static __always_inline bool has_rq_clock(void)
{
    return has_rq() && HAS_SAME(rq, clock);
}

static __always_inline bool has_rq_switches(void)
{
    return has_rq() && HAS_SAME(rq, nr_switches);
}

/* This needs CONFIG_SCHED_INFO (SCHEDSTATS or TASK_DELAY_ACCT). */
static __always_inline bool has_sched_info(void)
{
    return HAS(task_struct, sched_info) && HAS_SAME(sched_info, last_queued) &&
           HAS_SAME(sched_info, last_arrival) && HAS_SAME(sched_info, run_delay);
}

static __always_inline bool has_throttled(void)
{
    return HAS(task_struct, throttled) ||
           (HAS(sched_entity, cfs_rq) && HAS_SAME(cfs_rq, throttle_count));
}

/* This is not inlined, as all that reads a member which some kernels do not have: the compiler
 * may otherwise look for it before it asks whether it is there, outside the loop that it is read
 * in. */
static __noinline bool throttled_flag(struct task_struct *task)
{
    return BPF_CORE_READ_BITFIELD(task, throttled);
}

/* Tells whether a task is held back by a CPU quota. From 6.18 a task is throttled by itself;
 * before, its whole queue is, and throttle_count counts the throttled levels above it. */
static __always_inline bool task_throttled(struct task_struct *task)
{
    if (HAS(task_struct, throttled))
        return throttled_flag(task);
    if (HAS(sched_entity, cfs_rq) && HAS_SAME(cfs_rq, throttle_count))
        return plain(task)->se.cfs_rq->throttle_count != 0;
    return false;
}

/* Tells whether the budget of a real-time group is used up, the task's own or one above it:
 * cpu.rt_runtime_us. */
#define RT_LEVELS 4
APART bool group_exhausted(struct task_struct *task)
{
    struct sched_rt_entity *entity;
    struct rt_rq *rt_rq;
    int i;

    if (!HAS(task_struct, rt) || !HAS(sched_rt_entity, rt_rq) || !HAS(sched_rt_entity, parent) ||
        !HAS_SAME(rt_rq, rt_throttled))
        return false;
    rt_rq = BPF_CORE_READ(task, rt.rt_rq);
    entity = BPF_CORE_READ(task, rt.parent);
    for (i = 0; i < RT_LEVELS; i++) {
        if (BPF_CORE_READ(rt_rq, rt_throttled))
            return true;
        if (!entity)
            break;
        rt_rq = BPF_CORE_READ(entity, rt_rq);
        entity = BPF_CORE_READ(entity, parent);
    }
    return false;
}

/* Tells whether its budget of SCHED_DEADLINE is used up. */
APART bool budget_exhausted(struct task_struct *task)
{
    return HAS(task_struct, dl) && HAS(sched_dl_entity, dl_throttled) &&
           BPF_CORE_READ_BITFIELD(task, dl.dl_throttled);
}

/* Returns when such a one gets its next budget, by the clock of its run queue; 0: that is not
 * known. */
APART __u64 next_budget(struct task_struct *task)
{
    if (!HAS(task_struct, dl) || !HAS_SAME(sched_dl_entity, deadline) ||
        !HAS_SAME(sched_dl_entity, dl_deadline) || !HAS_SAME(sched_dl_entity, dl_period))
        return 0;
    return BPF_CORE_READ(task, dl.deadline) - BPF_CORE_READ(task, dl.dl_deadline) +
           BPF_CORE_READ(task, dl.dl_period);
}

/* Tells whether the group of tasks that a task's queue is of can be read. */
static __always_inline bool has_task_group(void)
{
    return HAS(sched_entity, cfs_rq) && HAS(cfs_rq, tg);
}

/* Returns how long a queue has been held back by CPU quotas, its groups' and those above, up to
 * `clock` of its run queue; PRCB_BASE_UNKNOWN: the kernel does not keep it. It does from 6.6;
 * before, there is a sum of the clock that load is averaged by, which may run slower than time.
 * queue: the address of a cfs_rq. */
static __noinline __attribute__((unused)) __u64 throttled_time(__u64 queue, __u64 clock)
{
    struct cfs_rq *cfs_rq = (void *)queue;
    __u64 time, since;

    if (HAS_SAME(cfs_rq, throttled_clock_self_time) && HAS_SAME(cfs_rq, throttled_clock_self)) {
        time = BPF_CORE_READ(cfs_rq, throttled_clock_self_time);
        since = BPF_CORE_READ(cfs_rq, throttled_clock_self);
        return since && clock > since ? time + clock - since : time;
    }
    if (!HAS_SAME(cfs_rq, throttled_clock_pelt_time) || !HAS_SAME(cfs_rq, throttled_clock_pelt) ||
        !HAS_SAME(cfs_rq, throttle_count) || !HAS(cfs_rq, rq) || !HAS_SAME(rq, clock_pelt) ||
        !HAS_SAME(rq, lost_idle_time))
        return PRCB_BASE_UNKNOWN;
    time = BPF_CORE_READ(cfs_rq, throttled_clock_pelt_time);
    if (!BPF_CORE_READ(cfs_rq, throttle_count))
        return time;
    since = BPF_CORE_READ(cfs_rq, throttled_clock_pelt);
    clock = BPF_CORE_READ(cfs_rq, rq, clock_pelt) - BPF_CORE_READ(cfs_rq, rq, lost_idle_time);
    return clock > since ? time + clock - since : time;
}

/* These are bits of a task that waits, each a bit of the kernel's. There is no branch: the
 * verifier would go on with each of the eight values by itself. */
#define WAITS_FROZEN   1u
#define WAITS_IO       2u
#define WAITS_MEMSTALL 4u
static __always_inline __u32 task_waits(struct task_struct *task)
{
    return (NUMBER(task_struct, task, frozen) & 1) * WAITS_FROZEN |
           (NUMBER(task_struct, task, in_iowait) & 1) * WAITS_IO |
           (NUMBER(task_struct, task, in_memstall) & 1) * WAITS_MEMSTALL;
}

/* Tells whether the task frees memory, for what it allocates itself: in reclaim or compaction,
 * or held up by its cgroup's memory.high. Waiting for pages to be read back does not count. */
static __always_inline bool task_reclaims(struct task_struct *task, __u32 waits)
{
    if (task->flags & PF_KERNELS_)
        return false;
    return task->flags & PF_MEMALLOC_ || (waits & (WAITS_MEMSTALL | WAITS_IO)) == WAITS_MEMSTALL;
}

/* Tells whether an io_uring worker waits in a request, not for one. */
APART bool io_worker_works(struct task_struct *task)
{
    __u64 worker;

    if (!HAS_SAME(task_struct, worker_private) || !HAS_SAME(io_worker, cur_work))
        return false;
    worker = kernel_word((__u64)task + bpf_core_field_offset(struct task_struct, worker_private));
    return worker && kernel_word(worker + bpf_core_field_offset(struct io_worker, cur_work));
}

/* Returns the slice a task may run before another of its kind gets its turn: 6.6. Before, CFS
 * computes it on the fly, and never less than sysctl_sched_min_granularity's 0.75 ms. */
static __always_inline __u64 task_slice(struct task_struct *task)
{
    if (HAS(sched_entity, slice))
        return BPF_CORE_READ_BITFIELD(task, se.slice);
    return 750000;
}

static __always_inline bool mm_dumpable(struct mm_struct *mm)
{
    __u64 flags = 0;
    __u32 offset;

    if (HAS(mm_struct___bits, flags))
        offset = bpf_core_field_offset(struct mm_struct___bits, flags);
    else if (HAS(mm_struct, flags))
        offset = bpf_core_field_offset(struct mm_struct, flags);
    else
        return false;
    bpf_probe_read_kernel(&flags, sizeof(flags), (const char *)mm + offset);
    return (flags & 3) == 1; /* MMF_DUMPABLE_MASK, SUID_DUMP_USER */
}

/* Not inlined: see throttled_flag. */
static __noinline bool exec_state_dumpable(struct task_struct *task)
{
    return BPF_CORE_READ(task, exec_state, dumpable) == TASK_DUMPABLE_OWNER_;
}

/* Tells whether a task may be looked at by others of its user: set at exec, unless the program
 * was set-user-id, gained capabilities or could not be read, and by prctl. It is the task's from
 * 7.2, before that its memory's, and one without memory has nothing to hide. */
static __always_inline bool task_dumpable(struct task_struct *task)
{
    struct mm_struct *mm;

    if (HAS(task_struct, exec_state))
        return HAS(task_exec_state, dumpable) && exec_state_dumpable(task);
    if (!HAS(task_struct, mm))
        return false;
    mm = BPF_CORE_READ(task, mm);
    /* One that ends gives its memory up at any time, and what was read of it is then nobody's. */
    return !mm || mm_dumpable(mm) || !BPF_CORE_READ(task, mm);
}

/* Tells whether eBPF programs keep anything for a task; most have nothing. The helper that gets
 * it begins with this look, and so costs nothing where it is made before. */
static __always_inline bool has_storage(struct task_struct *task)
{
    return !HAS(task_struct, bpf_storage) || plain(task)->bpf_storage;
}

/* Tells whether a thread is the last of its process's threads, which are listed in the order of
 * their creation; or it was when it ended. False where that is out of reach: user space then
 * looks over all tasks at last. */
static __always_inline bool is_last_thread(struct task_struct *task)
{
    struct signal_struct *signal;

    if (!HAS(task_struct, signal) || !HAS(task_struct, thread_node) ||
        !HAS(signal_struct, thread_head) || !HAS(list_head, next))
        return false;
    signal = BPF_CORE_READ(task, signal);

    return signal && (__u64)BPF_CORE_READ(task, thread_node.next) ==
                         (__u64)signal + bpf_core_field_offset(struct signal_struct, thread_head);
}

/* Tells whether a task is on a processor; it is read again at each call. Kernels for one
 * processor have no such member before 6.17: what runs there is who asks. (kernel_check refuses
 * others that lack it.) */
static __always_inline bool task_on_cpu(struct task_struct *task)
{
    if (!HAS(task_struct, on_cpu))
        return task == bpf_get_current_task_btf();
    return BPF_CORE_READ_BITFIELD(task, on_cpu);
}

/* Not inlined: see throttled_flag. */
static __noinline bool delayed_flag(struct task_struct *task)
{
    return BPF_CORE_READ_BITFIELD(task, se.sched_delayed);
}

/* From 6.12 a task that went to sleep may stay queued for a while ("delayed dequeue"). */
static __always_inline bool task_delayed(struct task_struct *task)
{
    return HAS(sched_entity, sched_delayed) && delayed_flag(task);
}

static __always_inline bool task_queued(struct task_struct *task)
{
    return NUMBER(task_struct, task, on_rq) && !task_delayed(task);
}

/* Returns the priority: less is more urgent. It is that of the kernel's ordinary tasks where it
 * is out of reach. */
APART int task_prio(struct task_struct *task)
{
    return HAS(task_struct, prio) ? BPF_CORE_READ_BITFIELD(task, prio) : MAX_RT_PRIO_;
}

static __always_inline __u64 task_sum_exec(struct task_struct *task)
{
    return HAS_SAME(sched_entity, sum_exec_runtime) ? task->se.sum_exec_runtime : 0;
}

static __always_inline bool has_migrations(void)
{
    return HAS_SAME(sched_entity, nr_migrations);
}

static __always_inline __u64 task_migrations(struct task_struct *task)
{
    return has_migrations() ? task->se.nr_migrations : 0;
}

/* Tells whether it has run for its whole slice; false too where that is out of reach. */
static __always_inline bool task_used_slice(struct task_struct *task)
{
    return HAS_SAME(sched_entity, prev_sum_exec_runtime) &&
           HAS_SAME(sched_entity, sum_exec_runtime) &&
           task->se.sum_exec_runtime - task->se.prev_sum_exec_runtime >= task_slice(task);
}

/* Tells whether a lock is that of the task's own address space. */
static __always_inline bool is_own_mmap_lock(struct task_struct *task, __u64 lock)
{
    __u64 mm;

    if (!HAS(task_struct, mm) || !HAS(mm_struct, mmap_lock))
        return false;
    mm = (__u64)BPF_CORE_READ(task, mm);
    return mm && lock == mm + bpf_core_field_offset(struct mm_struct, mmap_lock);
}

enum owned { OWNED_NOT, OWNED_MUTEX, OWNED_RWSEM };

#define MUTEX_FLAGS_        7ull
#define RWSEM_FLAGS_        3ull
#define RWSEM_READER_OWNED_ 1ull

/* Returns who holds a lock: the address of the task; 0: nobody does at this moment, or readers
 * do, who are not known by name. */
static __always_inline __u64 lock_owner(__u64 lock, __u32 owned)
{
    __u64 owner = 0;
    __u32 offset;

    if (owned == OWNED_MUTEX && HAS(mutex, owner))
        offset = bpf_core_field_offset(struct mutex, owner);
    else if (owned == OWNED_RWSEM && HAS(rw_semaphore, owner))
        offset = bpf_core_field_offset(struct rw_semaphore, owner);
    else
        return 0;
    bpf_probe_read_kernel(&owner, sizeof(owner), (const void *)(lock + offset));
    if (owned == OWNED_MUTEX)
        return owner & ~MUTEX_FLAGS_;
    return owner & RWSEM_READER_OWNED_ ? 0 : owner & ~RWSEM_FLAGS_;
}

/* These are in the lowest bits of task_struct.blocker (linux/hung_task.h). */
#define BLOCKER_MUTEX_  0
#define BLOCKER_SEM_    1
#define BLOCKER_READER_ 2
#define BLOCKER_WRITER_ 3
#define BLOCKER_MASK_   3ull

/* Returns the lock that a task sleeps for, with its kind; 0: none, or the kernel does not tell. */
static __always_inline __u64 task_blocker(struct task_struct *task)
{
    __u64 ret = 0;

    if (HAS_SAME(task_struct, blocker))
        bpf_probe_read_kernel(&ret, sizeof(ret),
                              (const char *)task +
                                  bpf_core_field_offset(struct task_struct, blocker));
    return ret;
}

/* Tells whether a task waits for the other threads of its process to end, so that it can run
 * another program. */
APART bool task_execs(struct task_struct *task)
{
    return HAS(task_struct, signal) && HAS(signal_struct, group_exec_task) &&
           BPF_CORE_READ(task, signal, group_exec_task) == task;
}

#define SECCOMP_FILTERED_ 2
#define SECCOMP_FILTERS   16
#define SECCOMP_ASKERS    16

static __always_inline bool has_supervisors(void)
{
    return HAS(task_struct, seccomp) && HAS_SAME(seccomp, mode) && HAS(seccomp, filter) &&
           HAS(seccomp_filter, prev) && HAS(seccomp_filter, notif) &&
           HAS(notification, notifications) && HAS(list_head, prev) && HAS(seccomp_knotif, task) &&
           HAS(seccomp_knotif, list);
}

/* Tells whether a task, which sleeps, is among those who wait for the answer of their supervisor
 * (SECCOMP_RET_USER_NOTIF: one of a task's filters may have one). Only the last few in the list
 * are looked at: the task has just come. */
APART bool task_asks(struct task_struct *task)
{
    __u64 filter, asked = 0, list, at;
    int i;

    if (!has_supervisors() || plain(task)->seccomp.mode != SECCOMP_FILTERED_)
        return false;
    filter = (__u64)plain(task)->seccomp.filter;
    for (i = 0; i < SECCOMP_FILTERS && filter && !asked; i++) {
        asked = kernel_word(filter + bpf_core_field_offset(struct seccomp_filter, notif));
        filter = kernel_word(filter + bpf_core_field_offset(struct seccomp_filter, prev));
    }
    if (!asked)
        return false;
    list = asked + bpf_core_field_offset(struct notification, notifications);
    at = list;
    for (i = 0; i < SECCOMP_ASKERS; i++) {
        at = kernel_word(at + bpf_core_field_offset(struct list_head, prev));
        if (!at || at == list)
            return false;
        at -= bpf_core_field_offset(struct seccomp_knotif, list);
        if (kernel_word(at + bpf_core_field_offset(struct seccomp_knotif, task)) == (__u64)task)
            return true;
        at += bpf_core_field_offset(struct seccomp_knotif, list);
    }
    return false;
}

/* Tells of the pipe of a file of this type whether it has nothing in it, or room for no more. */
APART bool pipe_is(__u64 file, bool full)
{
    struct pipe_inode_info *pipe = (void *)BPF_CORE_READ((struct file *)file, private_data);
    __u32 used;

    if (!HAS_SAME(pipe_inode_info, head) || !HAS_SAME(pipe_inode_info, tail) ||
        !HAS_SAME(pipe_inode_info, max_usage))
        return false;
    used = BPF_CORE_READ(pipe, head) - BPF_CORE_READ(pipe, tail);
    return full ? used >= BPF_CORE_READ(pipe, max_usage) : !used;
}

/* Tells whether it can be seen what waits in read, write and the like are for. */
static __always_inline bool has_files(void)
{
    return HAS(task_struct, files) && HAS(files_struct, fdt) && HAS_SAME(fdtable, max_fds) &&
           HAS(fdtable, fd) && HAS(file, f_inode) && HAS_SAME(inode, i_mode);
}

/* Tells whether it can be seen which file it is. */
static __always_inline bool has_inodes(void)
{
    return has_files() && HAS_SAME(inode, i_ino) && HAS(inode, i_sb) &&
           HAS_SAME(super_block, s_dev);
}

/* Tells whether the name of an open file can be read, which says what an anonymous one is. */
static __always_inline bool has_file_names(void)
{
    return HAS(file, f_path) && HAS(path, dentry) && HAS(dentry, d_name) && HAS(qstr, name);
}

static __always_inline bool has_user_registers(void)
{
#if defined(__TARGET_ARCH_x86)
    return HAS_REGISTER(ip) && HAS_REGISTER(sp) && HAS_REGISTER(bp);
#elif defined(__TARGET_ARCH_arm64)
    return HAS_REGISTER(pc) && HAS_REGISTER(sp) && HAS_REGISTER(regs);
#endif
}

/* Tells whether the cgroup of version 2 that a task is in can be read, and those above it. */
static __always_inline bool has_cgroups(void)
{
    return HAS(task_struct, cgroups) && HAS(css_set, dfl_cgrp) && HAS(cgroup, kn) &&
           HAS_SAME(kernfs_node, id) && HAS(cgroup, self) && HAS(cgroup_subsys_state, parent) &&
           HAS(cgroup_subsys_state, cgroup);
}

/* Returns its address. */
static __always_inline __u64 cgroup_of(struct task_struct *task)
{
    return has_cgroups() ? (__u64)BPF_CORE_READ(task, cgroups, dfl_cgrp) : 0;
}

/* Returns the number of the directory of its cgroup of version 2; 0: a kernel without cgroups. A
 * task whose cgroups are being changed has the old ones or the new ones, and both outlive this
 * program. */
static __always_inline __u64 task_cgroup(struct task_struct *task)
{
    return has_cgroups() ? plain(task)->cgroups->dfl_cgrp->kn->id : 0;
}

/* Does the same away from switches, where the verifier's time counts and not the program's. */
static __always_inline __u64 task_cgroup_read(struct task_struct *task)
{
    return has_cgroups() ? BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id) : 0;
}

/* Returns where the kernel put a task's user registers at its entry: always at the same place.
 * It is a call of a helper. */
static __always_inline struct pt_regs *registers_of(struct task_struct *task)
{
    return HAS_HELPER(task_pt_regs) ? (struct pt_regs *)bpf_task_pt_regs(task) : NULL;
}

/* Reads one of them. A pointer that somebody remembered is a number to the verifier; only where
 * it allows no casts it has to be one that registers_of has just told. */
#define USER_REGISTER(regs, member)                                                                \
    (has_casts()                                                                                   \
         ? kernel_word((__u64)(regs) + bpf_core_field_offset(((struct pt_regs *)0)->member))       \
         : (regs)->member)

/* Returns the user registers that an unwinder starts from; all 0: it has none. regs:
 * registers_of(task). */
static __always_inline void task_user_registers(struct task_struct *task, struct pt_regs *regs,
                                                struct prcb_user_registers *ret)
{
    /* One that ends has no memory any more that they point to. */
    if (task->flags & (PF_KERNELS_ | PF_EXITING_) || !has_user_registers()) {
        *ret = (struct prcb_user_registers){};
        return;
    }
#if defined(__TARGET_ARCH_x86)
    ret->pc = USER_REGISTER(regs, ip);
    ret->sp = USER_REGISTER(regs, sp);
    ret->fp = USER_REGISTER(regs, bp);
    ret->lr = 0;
#elif defined(__TARGET_ARCH_arm64)
    ret->pc = USER_REGISTER(regs, pc);
    ret->sp = USER_REGISTER(regs, sp);
    ret->fp = USER_REGISTER(regs, regs[29]);
    ret->lr = USER_REGISTER(regs, regs[30]);
#endif
}

/* Tells whether the system call that a task is in can be read, and its first argument. */
static __always_inline bool has_syscalls(void)
{
#if defined(__TARGET_ARCH_x86)
    return HAS_REGISTER(orig_ax) && HAS_REGISTER(bx) && HAS_REGISTER(di);
#elif defined(__TARGET_ARCH_arm64)
    return HAS_REGISTER(syscallno) && HAS_REGISTER(orig_x0);
#endif
}

#if defined(__TARGET_ARCH_x86)
#define USER32_CS_ 0x23

/* Tells whether its call is numbered by the 32-bit table: TS_COMPAT says so. Where that is out
 * of reach, the code segment does, but for int 0x80 in a 64-bit program. */
static __always_inline bool task_compat(struct task_struct *task, struct pt_regs *regs)
{
    if (HAS(task_struct, thread_info) && HAS_SAME(thread_info, status))
        return task->thread_info.status & 2;
    return HAS_REGISTER(cs) && (__u16)USER_REGISTER(regs, cs) == USER32_CS_;
}
#elif defined(__TARGET_ARCH_arm64)
#define PSR_MODE32_ 0x10

static __always_inline bool task_compat(struct task_struct *task, struct pt_regs *regs)
{
    if (HAS(task_struct, thread_info) && HAS_SAME(thread_info, flags))
        return task->thread_info.flags & (1ul << 22); /* TIF_32BIT */
    return HAS_REGISTER(pstate) && USER_REGISTER(regs, pstate) & PSR_MODE32_;
}
#endif

/* Returns the number of the system call the task is in, and its first argument; -1: in none, or
 * out of reach. *compat: it is numbered by the 32-bit table. regs: registers_of(task). */
static __always_inline int task_syscall(struct task_struct *task, struct pt_regs *regs,
                                        bool *compat, __u64 *arg)
{
    int number;

    if (!has_syscalls())
        return -1;
    *compat = task_compat(task, regs);
#if defined(__TARGET_ARCH_x86)
    number = (int)USER_REGISTER(regs, orig_ax);
    if (number >= 0)
        number &= ~0x40000000; /* the x32 bit */
    *arg = *compat ? USER_REGISTER(regs, bx) : USER_REGISTER(regs, di);
#elif defined(__TARGET_ARCH_arm64)
    number = USER_REGISTER(regs, syscallno);
    *arg = USER_REGISTER(regs, orig_x0);
#endif
    /* The kernel's own threads enter by no call: what stands there is nothing, mostly 0. */
    return number < 0 || task->flags & (PF_KERNELS_ | PF_ENDS_) ? -1 : number;
}

/* Returns its third argument; 0: out of reach. Both tables of x86 have it in one place. */
static __always_inline __u64 third_argument(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
    return HAS_REGISTER(dx) ? USER_REGISTER(regs, dx) : 0;
#elif defined(__TARGET_ARCH_arm64)
    return HAS_REGISTER(regs) ? USER_REGISTER(regs, regs[2]) : 0;
#endif
}

/* Returns its second argument; 0: out of reach, or the 32-bit table's. */
static __always_inline __u64 second_argument(struct pt_regs *regs, bool compat)
{
#if defined(__TARGET_ARCH_x86)
    return !compat && HAS_REGISTER(si) ? USER_REGISTER(regs, si) : 0;
#elif defined(__TARGET_ARCH_arm64)
    return !compat && HAS_REGISTER(regs) ? USER_REGISTER(regs, regs[1]) : 0;
#endif
}

#endif
