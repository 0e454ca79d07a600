/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Decides which threads have accounts: gives them out, finds out what a thread does that exists
 * already, and says how threads are followed. Part of accounts.bpf.c.
 */
#ifndef PRCB_THREADS_BPF_H
#define PRCB_THREADS_BPF_H

#include "stretches.bpf.h"
#include "owner.bpf.h"

#define GUESSES 5    /* at what a thread that exists is doing */
#define ENDINGS 1000 /* looks at one that is about to leave its processor */

/* ---- giving out accounts ---- */

/* There is one writer at a time: task_rename is called under the task's lock, and before an
 * account is published it has one owner. */
static __always_inline void write_identity(struct prcb_account_block *account,
                                           struct task_struct *task, const void *comm, __u32 pid_ns)
{
    __u32 tid = number_in(task, pid_ns), seq = account->comm_seq;

    prcb_seq_begin(&account->comm_seq, seq);
    account->tid = tid;
    bpf_probe_read_kernel_str(account->comm, sizeof(account->comm), comm);
    prcb_seq_end(&account->comm_seq, seq);
}

/* This is a global function, as number_of. */
__noinline int clear_waits(struct prcb_account_block *account)
{
    int i;

    if (!account)
        return 0;
    for (i = 0; i < PRCB_CAUSE_MAX; i++)
        account->waits[i].count = account->waits[i].ns = 0;
    return 0;
}

/* Fills an account that nobody else knows of yet. */
static __always_inline void init_account(struct prcb_account_block *account,
                                         struct task_struct *task, __u64 now, bool born,
                                         __u32 generation, __u32 pid_ns, __u16 wants)
{
    __u32 seq = account->seq & ~1u;

    prcb_seq_begin(&account->seq, seq);
    account->generation = generation;
    account->run_ns = account->ready_ns = account->own_switches = account->repaired = 0;
    clear_waits(account);
    account->stamp = account->enabled = now;
    account->nvcsw = account->base_nvcsw = born ? 0 : task->nvcsw;
    account->nivcsw = account->base_nivcsw = born ? 0 : task->nivcsw;
    account->migrations = account->base_migrations = born ? 0 : task_migrations(task);
    account->sum_exec = born ? 0 : task_sum_exec(task);
    account->run_delay = !born && has_sched_info() ? task->sched_info.run_delay : 0;
    account->last_syscall = -1;
    account->cpu = 0;
    account->interrupted_ns = 0;
    account->unclear_wakes = 0;
    account->interrupt_base = PRCB_BASE_UNKNOWN;
    /* This thread starts its own account. */
    if (task == bpf_get_current_task_btf())
        note_interrupts(account);
    account->pid = process_in(task, pid_ns);
    account->thread_flags =
        (task->flags & PF_KTHREAD_ ? PRCB_THREAD_KTHREAD : 0) | (born ? PRCB_THREAD_BORN : 0);
    account->wants = wants;
    account->user = (struct prcb_user_registers){};
    account->object = (struct prcb_wait_object){};
    account->cgroup = task_cgroup_read(task);
    write_identity(account, task, task->comm, pid_ns);
    /* A newborn is able to run from its creation on. */
    account->cause = born ? PRCB_CAUSE_PREEMPTED : PRCB_CAUSE_NONE;
    account->state = born ? PRCB_STATE_OFF : PRCB_STATE_UNSEEN;
    account->guess = 0;
    prcb_seq_end(&account->seq, seq);
}

static __always_inline void mark_free(struct prcb_account_block *account)
{
    __u32 seq = account->seq;

    prcb_seq_begin(&account->seq, seq);
    account->state = PRCB_STATE_FREE;
    prcb_seq_end(&account->seq, seq);
}

static __always_inline void count_untracked(struct prcb_head_block *head)
{
    __sync_fetch_and_add(&head->untracked, 1);
}

/* ---- threads that exist already ---- */

/* Guesses what an existing thread is doing, as far as can be seen from outside. leaving: one
 * that is on a processor, but not to run on, is taken to have left. Not inlined: it is called
 * often. */
static __noinline __u32 guess_of(struct task_struct *task, bool leaving)
{
    __u32 state = task->__state;
    struct call_seen call;
    __u32 restart = 0;
    __u8 cause;

    leaving = leaving && task_on_cpu(task) && state != TASK_RUNNING_;
    if (task_on_cpu(task) && !leaving)
        return PRCB_STATE_RUNNING;
    if (state == TASK_RUNNING_ || (!leaving && task_queued(task)))
        cause = is_held_back(task, task_prio(task)) ? PRCB_CAUSE_THROTTLED : PRCB_CAUSE_PREEMPTED;
    else if (!(cause = cause_of_blocker(task)))
        cause = classify(task, registers_of(task), task, state, NULL, &restart, &call);
    return PRCB_STATE_OFF | (__u32)cause << 8 |
           (has_moved_asleep(task, state) ? PRCB_GUESS_MOVED : 0);
}

struct ending {
    struct task_struct *task;
    bool has_ended;
};

static long look_for_end(__u32 i, struct ending *ending)
{
    bool is_dead = ending->task->__state & TASK_DEAD_;

    ending->has_ended = is_dead && !task_on_cpu(ending->task);
    return !is_dead || ending->has_ended;
}
TURNS(look_for_end, struct ending, ENDINGS)

/* Tells whether a task is off the processor for good. A task that is about to be is waited for,
 * a microsecond or two: between its last switch's tracepoint and the switch itself nobody could
 * tell whether the program has seen it. One whose virtual processor is stopped just there is
 * left to prcb_ended. */
static __always_inline bool has_ended(struct task_struct *task)
{
    struct ending ending = {.task = task};

    REPEAT(ENDINGS, look_for_end, &ending);
    return ending.has_ended;
}

/* Marks an account that no switch writes any more. */
static __always_inline void mark_ended(struct prcb_account_block *account)
{
    __u32 seq = account->seq;

    prcb_seq_begin(&account->seq, seq);
    account->state = PRCB_STATE_EXITED;
    account->cause = PRCB_CAUSE_EXIT;
    prcb_seq_end(&account->seq, seq);
}

/* The task's memory is about to be given back, its last switch long past. Whoever gave it an
 * account did so before the kernel took it off its lists, and a grace period has gone by since. */
SEC("prcb_tp/sched_process_free")
int prcb_ended(__u64 *ctx)
{
    struct tag *tag = bpf_task_storage_get(&tags, (struct task_struct *)ctx[0], NULL, 0);
    int i;

    if (!tag)
        return 0;
    PRCB_EACH_PROFILE
    for (i = 0; i < PROFILES; i++) {
        struct prcb_account_block *account = account_of(&tag->profiles[i]);
        __u8 then;

        if (!account)
            continue;
        /* The state is read first: where it is that of a thread which was given the account
         * since, so is the generation, which init_account stores before it. */
        then = *(volatile __u8 *)&account->state;
        if (!all_ordered())
            break;
        if (then != PRCB_STATE_EXITED && then != PRCB_STATE_FREE &&
            is_still(&tag->profiles[i], account))
            mark_ended(account);
    }
    return 0;
}

struct guess {
    struct prcb_account_block *account;
    struct task_struct *task;
};

/* Guesses once; 1: the guess holds. Else it may be from before a switch that is under way. The
 * last guess is made for a virtual processor that was stopped in the middle of a switch, which
 * stays there for long: if the switch's tracepoint is still to come, it writes the account
 * whatever is guessed here; if it is past, the thread is off. */
static long guess_once(__u32 i, struct guess *guess)
{
    struct task_struct *task = guess->task;
    __u64 before = task->nvcsw + task->nivcsw;

    *(volatile __u32 *)&guess->account->guess = guess_of(task, i == GUESSES - 1);
    /* It is on a processor, but not to run on: its switch may be behind it already. */
    return task->nvcsw + task->nivcsw == before &&
           !(task_on_cpu(task) && *(volatile unsigned int *)&task->__state);
}
TURNS(guess_once, struct guess, GUESSES)

/* The account is published before its first switch, so the guess and the counters
 * may be from before a switch nobody saw: look again until they agree. The guess
 * is one word of its own, so the switch program never waits for this. */
static __always_inline void guess_until_settled(struct prcb_account_block *account,
                                                struct task_struct *task)
{
    struct guess guess = {.account = account, .task = task};

    /* The thread made its last switch before its account was published: no program writes this
     * account. */
    if (has_ended(task)) {
        if (account->state == PRCB_STATE_UNSEEN)
            mark_ended(account);
        return;
    }
    REPEAT(GUESSES, guess_once, &guess);
}

/* ---- which threads ----
 *
 * Why no thread of a process that is being registered is missed. Its threads come about in
 * clone, which first puts the new thread on the kernel's lists (at the end of its process's)
 * and then runs prcb_newtask, on the creator's processor. prcb_newtask looks for the
 * creator's tag; the registrar tags a thread and then goes on along the list.
 *
 * (a) Either prcb_newtask sees the tag, or the registrar sees the new thread on the list: on
 *     both sides an exchange orders the store (list; tag) before the load (tag; list).
 * (b) A thread that is on the list but not able to run yet may still have its prcb_newtask
 *     before it: the registrar leaves it alone and the walk is repeated. The last walk there
 *     is takes it all the same; both may give it its account, one of them does (busy).
 * (c) The kernel's walk over one process ends where the thread that it has come to ends
 *     meanwhile. So it counts as complete when the last thread it came to was the last of the
 *     list then (request.cut), and is repeated otherwise; at last over all tasks by number,
 *     which nothing cuts short.
 * (d) The walk is repeated until one gives out nothing and widens no tag. Of each thread that
 *     the last walk came to, everything it created is tagged, or is behind it on the list and
 *     came along in the same walk.
 *
 * From 7.0 on, tracepoints can be preempted, and a program that is preempted is not run for another
 * task on the same processor meanwhile (recursion_misses). Not so where interrupts are off. So what
 * prcb_newtask was not run for is made good by prcb_newborn, before the new thread's first switch:
 * the creator wakes it up, with interrupts off and its run queue locked. A birth is not lost, then,
 * and (a) to (d) hold but for the thread's not being TASK_NEW any more, for a moment: the registrar
 * may take it for one that existed.
 *
 * Threads on the list come in the order of their creation, but for exec, by which a thread
 * takes over its leader's number and place: then the leader's end cuts the walk.
 *
 * Where all are to be followed, or a cgroup of version 2, prcb_newtask looks at the scope. User
 * space stores that before the walk with a fence in between, as (a).
 */

struct cgroup_search {
    __u64 cgroup; /* address of the one that is looked at; 0: no more */
    const struct prcb_bpf_cgroups *list;
    __u32 among; /* bits: which of these */
    bool found;
};

/* This is a global function, as number_of. among: bits, which of the list. */
__noinline int is_listed(const struct prcb_bpf_cgroups *list, __u32 among, __u64 id)
{
    int i;

    if (!list)
        return 0;
    for (i = 0; i < PRCB_SCOPE_CGROUPS; i++) {
        if (among >> i & 1 && list->ids[i] == id)
            return 1;
    }
    return 0;
}

static long cgroup_at(__u32 i, struct cgroup_search *search)
{
    struct cgroup *cgroup = (void *)search->cgroup;
    struct cgroup_subsys_state *parent;

    if (!cgroup)
        return 1;
    if (is_listed(search->list, search->among, BPF_CORE_READ(cgroup, kn, id))) {
        search->found = true;
        return 1;
    }
    parent = BPF_CORE_READ(cgroup, self.parent);
    search->cgroup = parent ? (__u64)BPF_CORE_READ(parent, cgroup) : 0;
    return 0;
}
TURNS(cgroup_at, struct cgroup_search, PRCB_CGROUP_LEVELS)

/* Tells whether a cgroup is one of these or below one. */
static __always_inline bool in_cgroups(__u64 cgroup, const struct prcb_bpf_cgroups *list,
                                       __u32 among)
{
    struct cgroup_search search = {.cgroup = cgroup, .list = list, .among = among};

    if (!among || !has_cgroups())
        return false;
    REPEAT(PRCB_CGROUP_LEVELS, cgroup_at, &search);
    return search.found;
}

#endif
