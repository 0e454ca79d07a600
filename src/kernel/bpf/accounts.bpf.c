/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Keeps the thread accounts current: at each context switch of a profiled thread
 * its stretch on or off the processor is closed and written to its account.
 * Threads are found through task storage, so a reused pid is never mistaken.
 *
 * Who writes an account: the registrar or prcb_newtask before it is published
 * (its slot stored in the tag), from then on prcb_switch, on the processor that makes the
 * switch, and, with clients, prcb_exec, on the processor that the thread runs on. What ends or
 * frees an account (prcb_ended, mark_free) comes when no switch writes it any more. Members that
 * others write are marked [own] in block_abi.h.
 *
 * It is compiled twice. As it is, it serves a session whose process loads the programs itself:
 * one array of accounts (own.bpf.inc). With PRCB_CLIENTS it serves the daemon: an array for each
 * of its clients, and a thread may have an account in several (clients.bpf.inc).
 */
#include "owner.bpf.h"
#include "stretches.bpf.h"
#include "edges.bpf.h"
#include "meanwhile.bpf.h"
#include "tails.bpf.h"

#include "switch_records.bpf.h"

#ifndef PRCB_CLIENTS
#include "chosen.bpf.h"
#endif

char LICENSE[] SEC("license")
= "Dual BSD/GPL";

/* ---- the switch ---- */

/* Returns how many switches the first one that is seen counts as. The kernel counts a switch
 * before it reports it. The registrar, on another processor, may have copied its counters in
 * between: then this switch is one of those before profiling, of which the time after it counts,
 * but not the switch. Or the thread left and came back after the copy and before its account was
 * published: that one counts here, its cause is the one its time was given. */
static __noinline __u32 first_switch(struct prcb_account_block *account, struct task_struct *prev)
{
    __u64 since = prev->nvcsw + prev->nivcsw - account->nvcsw - account->nivcsw;
    struct prcb_wait_cell *cell;

    if (since == 2) {
        account->own_switches++;
        cell = wait_cell(account, open_cause(account));
        if (cell)
            cell->count++;
    }
    return since != 0;
}

/* It is compared first: it hardly ever changes, and its cache line stays clean. */
static __always_inline void note_cgroup(struct prcb_account_block *account, __u64 cgroup)
{
    if (account->cgroup != cgroup)
        account->cgroup = cgroup;
}

/* Finds out what the wait that begins is for, of the task that leaves, the current one. A wait
 * whose call has no descriptor for its first argument has the file of some other one: who reads it
 * knows the calls. The thread has a reference to the file for as long as it waits. */
static __always_inline void find_object(struct tag *tag)
{
    __u64 file, inode, super;

    tag->object_noted = true;
    tag->object = (struct prcb_wait_object){};
    if (cause_is_ready(tag->cause))
        return;
    tag->object.lock = told_lock(tag);
    if (!has_inodes() || tag->call.number < 0)
        return;
    if (!tag->call.file)
        tag->call.file = (__u64)file_of_fd(bpf_get_current_task_btf(), (__u32)tag->call.arg);
    file = tag->call.file;
    if (!file)
        return;
    tag->object.descriptor = tag->call.arg;
    inode = kernel_word(file + bpf_core_field_offset(struct file, f_inode));
    tag->object.inode = kernel_word(inode + bpf_core_field_offset(struct inode, i_ino));
    super = kernel_word(inode + bpf_core_field_offset(struct inode, i_sb));
    tag->object.device = kernel_word(super + bpf_core_field_offset(struct super_block, s_dev));
}

/* This is called under the account's seq. The object is found out for the first who asks. This is a
 * global function, as number_of. */
__noinline int note_object(struct prcb_account_block *account, struct tag *tag)
{
    if (!account || !tag)
        return 0;
    if (!tag->object_noted)
        find_object(tag);
    account->object = tag->object;
    return 0;
}

/* edges: NULL: none are kept. */
static __always_inline void switch_out(struct switching *s, struct profile *profile,
                                       struct prcb_account_block *account,
                                       struct prcb_edge_block *edges)
{
    __u64 now = s->now, clock = queue_clock(s->prev, now);
    struct task_struct *prev = s->prev;
    struct prcb_wait_cell *cell;
    struct closed closed;
    __u32 seq = account->seq;
    __u32 count = 1;

    prcb_seq_begin(&account->seq, seq);
    now = now > account->stamp ? now : account->stamp;
    if ((edges || wants_tails(profile)) && account->state != PRCB_STATE_RUNNING) {
        close_running(account, prev, now, clock, &s->limits, &closed);
        /* Its switch in was not reported. Of two wakers one may be of the sleep that begins now. */
        if (edges && account->state == PRCB_STATE_OFF && !profile->waker.again)
            note_edges(edges, account->generation, &closed, profile, NULL);
        /* One that was profiled while it ran has none behind it. */
        if (wants_tails(profile) &&
            (account->state == PRCB_STATE_OFF || closed.wait || closed.ready))
            note_tails(profile, &closed);
    } else {
        close_running(account, prev, now, clock, &s->limits, &closed);
    }
    if (account->state == PRCB_STATE_UNSEEN)
        count = first_switch(account, prev);
    charge_interrupts(account);
    account->stamp = now;
    account->state = s->cause == PRCB_CAUSE_EXIT ? PRCB_STATE_EXITED : PRCB_STATE_OFF;
    account->cause = s->cause;
    account->cpu = bpf_get_smp_processor_id();
    account->nvcsw = prev->nvcsw;
    account->nivcsw = prev->nivcsw;
    account->own_switches += count;
    account->sum_exec = task_sum_exec(prev);
    if (has_sched_info())
        account->run_delay = prev->sched_info.run_delay;
    account->migrations = task_migrations(prev);
    account->last_syscall = s->tag->call.number;
    if (wants_registers(profile))
        task_user_registers(prev, s->regs, &account->user);
    if (wants_objects(profile))
        note_object(account, s->tag);
    note_cgroup(account, s->cgroup);
    cell = wait_cell(account, s->cause);
    if (cell)
        cell->count += count;
    prcb_seq_end(&account->seq, seq);
}

/* holder: tag.holders, of this profile. edges: NULL: none are kept. */
static __always_inline void switch_in(struct switching *s, struct profile *profile,
                                      const struct who *holder, struct prcb_account_block *account,
                                      struct prcb_edge_block *edges, struct closed *closed)
{
    __u64 now = s->now, clock = queue_clock(s->prev, now);
    struct who before = {};
    __u32 seq = account->seq;

    prcb_seq_begin(&account->seq, seq);
    now = now > account->stamp ? now : account->stamp;
    close_off(account, s->next, now, clock, &s->limits, closed);
    if (edges) {
        tell_task(handle_of(profile), s->prev, &before);
        note_edges(edges, account->generation, closed, profile, &before);
        if (wants_owners(profile))
            note_holder(edges, closed, s->tag, profile, holder);
        if (wants_meanwhile(profile))
            note_meanwhile(edges, s->next, closed->ready);
    }
    if (wants_tails(profile))
        note_tails(profile, closed);
    account->stamp = now;
    account->state = PRCB_STATE_RUNNING;
    account->migrations = task_migrations(s->next);
    note_interrupts(account);
    prcb_seq_end(&account->seq, seq);
}

/* Does what end_away does, for a thread whose switch in was not reported: it came some time ago. */
static __noinline int end_away_late(struct switching *s, __u64 clock)
{
    __u64 ran = has_sched_info() ? growth(clock, s->prev->sched_info.last_arrival) : 0;

    return end_away(&s->tag->away, s->prev, clock, growth(s->now, ran), &s->limits);
}

static long leave(__u32 i, struct switching *s)
{
    struct tag *tag = s->tag;
    struct task_struct *prev = s->prev;
    struct prcb_account_block *account;
    struct prcb_edge_block *edges;
    struct profile *profile;
    bool unreported;

    if (i >= PROFILES)
        return 1;
    profile = &tag->profiles[i];
    account = account_of(profile);
    if (!account)
        return 0;
    if (!s->now) {
        s->now = switch_clock(prev, account->stamp);
        if (tag->away.marks)
            end_away_late(s, queue_clock(prev, s->now));
        /* The cause goes by way of memory: the verifier would go on with every cause there is by
         * itself. */
        *(volatile __u32 *)&tag->cause =
            classify(prev, s->regs, s->next, s->state, &tag->waited, &tag->restart, &tag->call);
        prcb_seq_barrier();
        s->cause = *(volatile __u32 *)&tag->cause;
        tag->object_noted = false;
        if (s->cause == PRCB_CAUSE_THROTTLED)
            begin_throttled(&tag->away, prev, queue_clock(prev, s->now));
        begin_queued(&tag->away, prev, s->state);
    }
    tell_clock(profile, account->stamp, s->now);
    edges = wants_edges(profile) ? edges_of(profile) : NULL;
    unreported = account->state == PRCB_STATE_OFF;
    switch_out(s, profile, account, edges);
    if (wants_wakers(profile))
        leave_edges(profile, s->next, s->cause, unreported);
    record_out(s, profile, account);
#ifndef PRCB_CLIENTS
    choose_out(s, account);
#endif
    return 0;
}
TURNS(leave, struct switching, (__u32)top_of(state->tag))

static long enter(__u32 i, struct switching *s)
{
    struct tag *tag = s->tag;
    struct prcb_account_block *account;
    struct prcb_edge_block *edges;
    struct profile *profile;
    struct closed closed;

    if (i >= PROFILES)
        return 1;
    profile = &tag->profiles[i];
    account = account_of(profile);
    if (!account)
        return 0;
    if (!s->now)
        s->now = switch_clock(s->prev, account->stamp);
    tell_clock(profile, account->stamp, s->now);
    if (tag->away.marks)
        end_away(&tag->away, s->next, queue_clock(s->prev, s->now), s->now, &s->limits);
    edges = wants_edges(profile) ? edges_of(profile) : NULL;
    switch_in(s, profile, &tag->holders[i], account, edges, &closed);
    record_in(s, profile, account, &closed);
#ifndef PRCB_CLIENTS
    choose_in(s, account);
#endif
    if (wants_wakers(profile))
        profile->waker.what = 0;
    return 0;
}
TURNS(enter, struct switching, (__u32)top_of(state->tag))

static __always_inline void forget_what_changes(struct switching *s, const __u64 *any)
{
    s->now = forget(s->now, any);
    s->limits.throttled = forget(s->limits.throttled, any);
    s->limits.awake = forget(s->limits.awake, any);
    s->mono = forget(s->mono, any);
    s->cause = forget(s->cause, any);
}

SEC("prcb_tp/sched_switch")
int prcb_switch(__u64 *ctx)
{
    struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
    /* The argument is there from 5.18; before, the task's own state, which a waker may
     * change at any time. A task that is preempted stays able to run, whatever state it
     * was about to sleep in. */
    __u32 state = (bool)ctx[0]            ? TASK_RUNNING_
                  : config.has_prev_state ? (__u32)ctx[3]
                                          : prev->__state;
    struct switching s = {.prev = prev, .next = next, .state = state};
    __u32 epoch = epoch_of_turns();

    if (calibrating && has_rq_clock() && !config.use_ktime)
        sample_offset(BPF_CORE_READ(prev, se.cfs_rq, rq, clock));
    if (epoch)
        end_turn(prev, epoch);
    s.tag = tag_of(prev);
    s.limits = no_limits();
    if (s.tag) {
        forget_what_changes(&s, ctx);
        look_at_credentials(s.tag, prev);
        /* These are read before anything is decided: each place that follows pointers costs the
         * verifier milliseconds. */
        s.cgroup = task_cgroup(prev);
        s.regs = registers_by(s.tag, prev);
        EACH_PROFILE(s.tag, leave, &s);
    }
    s.tag = tag_of(next);
    if (s.tag) {
        s.limits = no_limits();
        forget_what_changes(&s, ctx);
        EACH_PROFILE(s.tag, enter, &s);
    }
    record_end(&s);
    return 0;
}

/* ---- moves ---- */

/* This is attached where the kernel moves tasks that sleep (6.12). */
SEC("prcb_tp/sched_migrate_task")
int prcb_move(__u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0];
    struct prcb_head_block *head;
    struct tag *tag = tag_of(task);
    bool asleep = task_delayed(task);

    if (!tag || !is_profiled(tag))
        return 0;
    asleep = asleep && !is_moving_itself(task, tag->call.number);
    head = is_move_noted(&tag->away, asleep) ? head_block() : NULL;
    if (!head)
        return 0;
    tag->away.moves++;
    note_move(&tag->away, asleep, clock_now(head));
    return 0;
}

/* ---- kernel locks ---- */

/* Tells who holds the lock that the current task, of this tag, is about to wait for. It is done
 * now, while it is certain that the lock is there: its address may be stale at the switch out,
 * where its end was not reported (struct waited_lock), and what lies there then would be taken
 * for a task. */
static __noinline int tell_owners(struct tag *tag)
{
    __u64 owner = lock_owner(tag->waited.lock, tag->waited.owned);
    int i;

    PRCB_EACH_PROFILE
    for (i = 0; i < PROFILES && i < top_of(tag); i++) {
        struct profile *profile = &tag->profiles[i];
        struct who *holder = &tag->holders[i];
        __u64 handle = handle_of(profile);

        if (!handle || !wants_owners(profile) || !begin_telling(holder))
            continue;
        holder->what = 0;
        if (owner)
            tell_owner(handle, owner, holder);
        end_telling(holder, handle);
    }
    return 0;
}

SEC("prcb_tp/contention_begin")
int prcb_contention_begin(__u64 *ctx)
{
    __u64 lock = ctx[0];
    __u32 flags = (__u32)ctx[1];
    struct task_struct *task;
    struct tag *tag;

    /* A spinner does not leave the processor; a spin lock inside a sleeping lock's slow
     * path must not hide the sleeping lock. */
    if (flags & LCB_F_SPIN_)
        return 0;
    task = bpf_get_current_task_btf();
    tag = tag_of(task);
    if (!tag || !is_profiled(tag))
        return 0;
    tag->waited.owned = owned_by_flags(flags);
    meet_lock(&tag->waited, task, lock, cause_of_lock(flags, is_own_mmap_lock(task, lock)));
    if (anyone_wants_owners(tag))
        tell_owners(tag);
    return 0;
}

SEC("prcb_tp/contention_end")
int prcb_contention_end(__u64 *ctx)
{
    struct tag *tag = tag_of(bpf_get_current_task_btf());

    /* Ends of locks inside the one waited for leave it alone. */
    if (tag && tag->waited.lock == ctx[0])
        tag->waited.lock = 0;
    return 0;
}

/* ---- which threads ---- */

#include "threads.bpf.h"
#ifdef PRCB_CLIENTS
#include "registrar.bpf.inc"
#else
#include "own_registrar.bpf.inc"
#endif

/* ---- the kernel's part of a stack ---- */

/* Writes who holds the lock that a task sleeps for. It still sleeps for that lock after its owner
 * was read: till then the lock was one. */
static __always_inline void write_holder(struct bpf_iter__task *ctx, struct task_struct *task)
{
    __u64 blocker = task_blocker(task), owner;
    struct who who = {};

    if (!(blocker & ~BLOCKER_MASK_))
        return;
    owner = lock_owner(blocker & ~BLOCKER_MASK_, owned_by_flags(flags_of_blocker(blocker)));
    if (!owner || !all_ordered() || task_blocker(task) != blocker)
        return;
    tell_owner(kernel_stack.account, owner, &who);
    if ((__u32)who.thread)
        BPF_SEQ_PRINTF(ctx->meta->seq, "held by %u\n", (__u32)who.thread);
}

/* Writes the stack of a task that waits, by name: addresses would tell where the kernel lies.
 * The reader leaves out what can be told only as an address. */
SEC("prcb_iter/task")
int prcb_kernel_stack(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct tag *tag;
    long bytes;
    int i;

    if (!task || task->__state == TASK_RUNNING_)
        return 0;
    tag = bpf_task_storage_get(&tags, task, NULL, 0);
    if (!tag || !is_account_of(task, tag))
        return 0;
    bytes = bpf_get_task_stack(task, kernel_stack.frames, sizeof(kernel_stack.frames), 0);
    for (i = 0; i < PRCB_KERNEL_FRAMES; i++) {
        if ((i + 1) * (long)sizeof(kernel_stack.frames[0]) > bytes)
            break;
        BPF_SEQ_PRINTF(ctx->meta->seq, "%pB\n", (void *)kernel_stack.frames[i]);
    }
    write_holder(ctx, task);
    return 0;
}

/* ---- births ---- */

SEC("prcb_tp/task_newtask")
int prcb_newtask(__u64 *ctx)
{
    follow((void *)ctx[0], ctx[1] & CLONE_THREAD_, !config.newborn);
    return 0;
}

/* The creator runs this as well, a little later, where interrupts are off: see "which threads". */
SEC("prcb_tp/sched_wakeup_new")
int prcb_newborn(__u64 *ctx)
{
    struct task_struct *child = (void *)ctx[0];
    struct tag *tag = bpf_task_storage_get(&tags, child, NULL, 0);

    if (!tag || !tag->born)
        follow(child, child->pid != child->tgid, true);
    return 0;
}

/* Only the programs know what CO-RE found in this kernel. */
SEC("syscall")
int prcb_tell_features(void *ctx)
{
    if (has_rq_clock() && !config.use_ktime)
        kernel_features |= PRCB_FEATURE_RQ_CLOCK;
    /* Its stamps are of the run-queue clock. */
    if (has_sched_info() && has_rq_clock())
        kernel_features |= PRCB_FEATURE_READY;
    if (has_throttled())
        kernel_features |= PRCB_FEATURE_THROTTLED;
    if (has_cgroups())
        kernel_features |= PRCB_FEATURE_CGROUP;
    if (has_migrations())
        kernel_features |= PRCB_FEATURE_MIGRATIONS;
    if (has_syscalls())
        kernel_features |= PRCB_FEATURE_SYSCALLS;
    if (has_files())
        kernel_features |= PRCB_FEATURE_FILES;
    if (has_inodes())
        kernel_features |= PRCB_FEATURE_OBJECTS;
    if (has_user_registers())
        kernel_features |= PRCB_FEATURE_REGISTERS;
    return 0;
}

/* ---- names ---- */

/* The task has a new program or name. A thread that execs takes over its leader's number just
 * before. */
SEC("prcb_tp/task_rename")
int prcb_rename(__u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0];
    struct tag *tag = bpf_task_storage_get(&tags, task, NULL, 0);
    int i;

    if (!tag)
        return 0;
    PRCB_EACH_PROFILE
    for (i = 0; i < PROFILES && i < top_of(tag); i++) {
        struct prcb_account_block *account = account_of(&tag->profiles[i]);

        if (account)
            write_identity(account, task, (const void *)ctx[1], pid_ns_of(&tag->profiles[i]));
    }
    return 0;
}
