/* SPDX-License-Identifier: BSD-2-Clause */
#include "mapped.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "account.h"
#include "block_abi.h"
#include "processor_map.h"
#include "seqcount_abi.h"
#include "session.h"

const struct prcb_account_block *mapped_block(const struct mapped *m, uint32_t slot)
{
    return (const struct prcb_account_block *)(m->accounts + (size_t)slot * m->stride);
}

uint32_t mapped_used(struct mapped *m)
{
    uint64_t used = __atomic_load_n(&m->head->account_used, __ATOMIC_RELAXED);
    size_t slots = used < m->count ? (size_t)used : m->count, reached;
    size_t first = (size_t)(m->accounts - m->accounts_window.at);

    reached = window_reach(&m->accounts_window, first + slots * m->stride);
    reached = (reached - first) / m->stride;
    return (uint32_t)(slots < reached ? slots : reached);
}

const struct prcb_edge_block *mapped_edges(struct mapped *m, uint32_t slot)
{
    size_t end = ((size_t)slot + 1) * sizeof(struct prcb_edge_block);

    return m->edges_window.at && window_reach(&m->edges_window, end) >= end
               ? (const struct prcb_edge_block *)(const void *)m->edges_window.at + slot
               : NULL;
}

bool mapped_is_hidden(const struct mapped *m, uint32_t slot, uint32_t generation)
{
    return m->hidden && m->hidden[slot] == generation;
}

static uint64_t make_key(uint32_t slot, uint32_t generation)
{
    return (uint64_t)generation << 32 | slot;
}

/* One that was given up by a thread that lives has no generation any more, and is free a
 * moment later. */
static bool in_use(const struct prcb_account_block *block)
{
    return __atomic_load_n(&block->state, __ATOMIC_RELAXED) != PRCB_STATE_FREE &&
           __atomic_load_n(&block->generation, __ATOMIC_RELAXED);
}

int64_t mapped_clock_offset(const struct mapped *m)
{
    return __atomic_load_n(&m->clock->clock_offset, __ATOMIC_RELAXED);
}

/* Returns the present on the writer's clock; where the writer has gone, when it went. */
static uint64_t writer_now(struct prcb *p, struct clock *clock)
{
    bool fresh = false;
    uint64_t ended = __atomic_load_n(&p->mapped.head->ended, __ATOMIC_RELAXED);

    if (ended)
        return ended;
    return clock_now(clock, &p->clock, &fresh) - (uint64_t)mapped_clock_offset(&p->mapped);
}

bool mapped_now(struct prcb *p, struct clock *clock, const struct prcb_account_block *block,
                const struct prcb_account_block *copy, uint64_t *ret)
{
    *ret = copy->state == PRCB_STATE_EXITED ? copy->stamp : writer_now(p, clock);
    return !prcb_seq_read_retry(&block->seq, copy->seq);
}

static uint32_t flags_of(const struct mapped *m)
{
    return __atomic_load_n(&m->head->ended, __ATOMIC_RELAXED) ? PRCB_ACCOUNT_ORPHAN : 0;
}

/* Finds the account with the handle's key at once. */
static int open_by_key(struct prcb *p, struct prcb_thread *t, struct prcb_error *err)
{
    uint32_t slot = (uint32_t)t->key, retries = 0;
    struct prcb_account_block copy;

    if (slot < mapped_used(&p->mapped) &&
        !account_copy(mapped_block(&p->mapped, slot), sizeof(copy), &copy, &retries) &&
        copy.state != PRCB_STATE_FREE && make_key(slot, copy.generation) == t->key &&
        !mapped_is_hidden(&p->mapped, slot, copy.generation)) {
        t->block = mapped_block(&p->mapped, slot);
        t->tid = (pid_t)copy.tid;
        t->base_switches = copy.base_nvcsw + copy.base_nivcsw;
        return 0;
    }
    return prcb_fail(err, -ESTALE, "the account was released");
}

/* Says why there is no account of the handle's thread; busy: there was one that could not be read.
 */
static int fail_to_find(const struct mapped *m, const struct prcb_thread *t, bool busy,
                        struct prcb_error *err)
{
    unsigned long long untracked = __atomic_load_n(&m->head->untracked, __ATOMIC_RELAXED);

    if (busy)
        return prcb_fail(err, -EAGAIN, "thread %d: its account was written all the time",
                         (int)t->tid);
    if (!untracked)
        return prcb_fail(err, -ESRCH, "thread %d: not profiled by this session", (int)t->tid);
    return prcb_fail(err, -ESRCH,
                     "thread %d: not profiled by this session, which has room for %u threads and "
                     "lacked it for %llu (max_threads)",
                     (int)t->tid, m->count, untracked);
}

int mapped_thread_open(struct prcb *p, struct prcb_thread *t, struct prcb_error *err)
{
    uint32_t used = mapped_used(&p->mapped);
    bool busy = false;

    if (t->key)
        return open_by_key(p, t, err);
    for (uint32_t slot = 0; slot < used; slot++) {
        const struct prcb_account_block *block = mapped_block(&p->mapped, slot);
        struct prcb_account_block copy;
        uint32_t retries = 0, state = __atomic_load_n(&block->state, __ATOMIC_RELAXED);

        if (state == PRCB_STATE_EXITED || !in_use(block) ||
            __atomic_load_n(&block->tid, __ATOMIC_RELAXED) != (uint32_t)t->tid)
            continue;
        if (account_copy(block, sizeof(copy), &copy, &retries)) {
            busy = true;
            continue;
        }
        t->block = block;
        t->key = make_key(slot, copy.generation);
        t->base_switches = copy.base_nvcsw + copy.base_nivcsw;
        return 0;
    }
    return fail_to_find(&p->mapped, t, busy, err);
}

static double ticks_per_ns(const struct prcb_thread *t)
{
    return t->clock.mult ? 4294967296.0 / (double)t->clock.mult
                         : clock_tick_rate(&t->session->clock) / 1e9;
}

/* Interrupts of the stretch that is going on. An interrupt that is going on counts when it is over.
 */
static uint64_t live_interrupted(const struct mapped *m, const struct prcb_account_block *copy)
{
    struct prcb_processor_block processor;
    uint32_t ignored = 0;
    uint64_t until;

    if (!m->processors || copy->interrupt_base == PRCB_BASE_UNKNOWN ||
        copy->run_cpu >= m->processors->count ||
        processor_block_copy(m->processors, copy->run_cpu, 64, &processor, &ignored))
        return 0;
    until = processor_block_interrupted(&processor, 0);
    return until > copy->interrupt_base ? until - copy->interrupt_base : 0;
}

/* Stamps of two processors differ by less than this, and so do a stamp and CLOCK_MONOTONIC. */
#define CLOCKS_APART_NS 100000000ull

/* An account, or (times) what prcb_thread_times needs of it; what of its present stretch interrupts
 * took; and the moment of all that. */
static int copy_account(struct prcb *p, struct clock *clock, const struct prcb_account_block *block,
                        bool times, struct prcb_account_block *ret, uint64_t *ret_interrupted,
                        uint64_t *ret_now, uint32_t *retries)
{
    for (int tries = MAPPED_TRIES;; ++*retries) {
        int result = !times                 ? account_copy(block, sizeof(*ret), ret, retries)
                     : p->mapped.processors ? account_copy_times(block, ret, retries)
                                            : account_copy(block, HOT_LINE, ret, retries);

        if (result)
            return result;
        *ret_interrupted = live_interrupted(&p->mapped, ret);
        if (mapped_now(p, clock, block, ret, ret_now))
            return 0;
        /* One that switches all the time has hardly run, or been interrupted, since its last. */
        if (!--tries) {
            *ret_interrupted = 0;
            return 0;
        }
    }
}

/* On the daemon tier the programs may be replaced while a session goes on. */
static bool keeps_interrupted(const struct mapped *m)
{
    return m->processors && !processor_map_ended(m->processors);
}

static void set_interrupted(const struct mapped *m, struct prcb_thread *t, uint64_t interrupted,
                            uint64_t run, uint64_t *ret, uint64_t *present)
{
    if (!keeps_interrupted(m))
        return;
    if (interrupted < t->last_interrupted)
        interrupted = t->last_interrupted;
    t->last_interrupted = *ret = interrupted < run ? interrupted : run;
    *present |= PRCB_HAS_INTERRUPTED;
}

/* An account changes only at switches, and each of them changes its hot line, the count and the
 * stamp in it. As long as that line is as it was at the handle's last read, the record of that read
 * holds, up to what the present stretch adds: all that a thread that was not switched since pays
 * for. False: the account has to be read. */
static bool read_on(struct prcb_thread *t)
{
    const struct mapped *m = &t->session->mapped;
    struct prcb_account_block hot;
    uint32_t retries = 0;
    uint64_t now, grown;

    if (!t->hot_holds || m->processors || account_copy(t->block, HOT_LINE, &hot, &retries) ||
        memcmp(&hot, t->hot, HOT_LINE))
        return false;
    if (!mapped_now(t->session, &t->clock, t->block, &hot, &now))
        return false;
    if (now < t->last_now)
        now = t->last_now;
    grown = now > hot.stamp ? now - (t->last_now > hot.stamp ? t->last_now : hot.stamp) : 0;
    t->last_now = now;
    t->last.wall_ns += grown;
    if (hot.state == PRCB_STATE_RUNNING)
        t->last.run_ns += grown;
    else
        t->last.open.ns += grown;
    account_cycles(ticks_per_ns(t), &t->last);
    account_identity(t->block, &t->last);
    t->last.flags |= flags_of(m);
    t->last.retries = retries;
    return true;
}

/* Reads all of it. It is not inline: what it needs of the stack would be cleared for read_on as
 * well. */
static __attribute__((noinline)) int read_anew(struct prcb_thread *t)
{
    struct prcb_account record = {.size = sizeof(record), .key = t->key};
    struct prcb *p = t->session;
    struct prcb_account_block copy;
    uint64_t now, run, interrupted;
    int result =
        copy_account(p, &t->clock, t->block, false, &copy, &interrupted, &now, &record.retries);

    if (result)
        return result;
    if (copy.generation != (uint32_t)(t->key >> 32) || copy.state == PRCB_STATE_FREE)
        return -ESTALE;
    if (now < t->last_now)
        now = t->last_now;
    account_convert(&copy, now, p->mapped.features, ticks_per_ns(t), &record);
    account_identity(t->block, &record);
    record.flags |= flags_of(&p->mapped);
    record.tier = p->tier->number;
    run = record.run_ns;
    if (t->last.size)
        account_never_back(&t->last, &record);
    set_interrupted(&p->mapped, t, copy.interrupted_ns + interrupted, record.run_ns,
                    &record.interrupted_ns, &record.present);
    t->last_now = now;
    t->last = record;
    memcpy(t->hot, &copy, HOT_LINE);
    /* Not from a run time that was held at what an earlier read returned, and not from a guess,
     * which changes by itself. */
    t->hot_holds = record.run_ns == run && copy.state != PRCB_STATE_UNSEEN;
    return 0;
}

int mapped_read(struct prcb_thread *t)
{
    return read_on(t) ? 0 : read_anew(t);
}

int mapped_read_times(struct prcb_thread *t, struct prcb_times *ret)
{
    const struct mapped *m = &t->session->mapped;
    struct prcb_account_block hot;
    uint64_t now, run, interrupted;
    int result = copy_account(t->session, &t->clock, t->block, true, &hot, &interrupted, &now,
                              &ret->retries);

    if (result)
        return result;
    if (hot.generation != (uint32_t)(t->key >> 32) || hot.state == PRCB_STATE_FREE)
        return -ESTALE;
    if (hot.state == PRCB_STATE_UNSEEN)
        hot.guess = __atomic_load_n(&((const struct prcb_account_block *)t->block)->guess,
                                    __ATOMIC_RELAXED);
    run = hot.run_ns + account_live_run(&hot, now);
    if (run < t->last_run)
        run = t->last_run;
    t->last_run = run;
    ret->present = PRCB_HAS_RUN | PRCB_HAS_SWITCHES;
    if (m->processors)
        set_interrupted(m, t, hot.interrupted_ns + interrupted, run, &ret->interrupted_ns,
                        &ret->present);
    ret->switches = hot.nvcsw + hot.nivcsw - t->base_switches;
    ret->run_ns = run;
    ret->flags = hot.state == PRCB_STATE_EXITED ? PRCB_ACCOUNT_EXITED : 0;
    ret->flags |= hot.state == PRCB_STATE_RUNNING ? PRCB_ACCOUNT_RUNNING : 0;
    ret->flags |= flags_of(m);
    return 0;
}

void mapped_record(struct prcb *p, uint32_t slot, const struct prcb_account_block *copy,
                   uint64_t interrupted, uint64_t now, double ticks_per_ns,
                   struct prcb_account *ret)
{
    const struct mapped *m = &p->mapped;

    account_convert(copy, now, m->features, ticks_per_ns, ret);
    if (keeps_interrupted(m)) {
        ret->interrupted_ns = copy->interrupted_ns + interrupted;
        ret->present |= PRCB_HAS_INTERRUPTED;
    }
    account_identity(mapped_block(m, slot), ret);
    ret->tier = p->tier->number;
    ret->flags |= flags_of(m);
    ret->key = make_key(slot, copy->generation);
}

/* A moment on the writer's clock before which nothing counts as new; 0: everything does. */
static uint64_t writer_since(const struct mapped *m, uint64_t since_ns)
{
    int64_t offset = mapped_clock_offset(m);

    if (since_ns <= CLOCKS_APART_NS || offset == PRCB_OFFSET_UNKNOWN ||
        __atomic_load_n(&m->head->ended, __ATOMIC_RELAXED))
        return 0;
    return since_ns - CLOCKS_APART_NS - (uint64_t)offset;
}

/* Whether the account's thread waits, or ended, and did so then already. */
static bool rests_since(const struct prcb_account_block *block, uint64_t since)
{
    struct prcb_account_block hot;
    uint32_t retries = 0;

    if (!since || account_copy(block, HOT_LINE, &hot, &retries) || hot.stamp >= since)
        return false;
    if (hot.state == PRCB_STATE_UNSEEN)
        hot.guess = __atomic_load_n(&block->guess, __ATOMIC_RELAXED);
    return account_rests(&hot);
}

int mapped_walk(struct prcb *p, uint64_t since_ns, prcb_walk_fn fn, void *ctx,
                struct prcb_error *err)
{
    struct mapped *m = &p->mapped;
    uint32_t used = mapped_used(m);
    uint64_t since = writer_since(m, since_ns);
    double ticks_per_ns = clock_tick_rate(&p->clock) / 1e9;
    struct clock clock = {0};

    for (uint32_t slot = 0; slot < used; slot++) {
        const struct prcb_account_block *block = mapped_block(m, slot);
        struct prcb_account record = {.size = sizeof(record)};
        struct prcb_account_block copy;
        uint64_t interrupted, now;
        int result;

        if (!in_use(block) || rests_since(block, since))
            continue;
        result = copy_account(p, &clock, block, false, &copy, &interrupted, &now, &record.retries);
        if (result)
            return prcb_fail(err, result, "account %u stayed inconsistent: its writer is stuck",
                             slot);
        if (copy.state == PRCB_STATE_FREE || !copy.generation ||
            mapped_is_hidden(m, slot, copy.generation))
            continue;
        mapped_record(p, slot, &copy, interrupted, now, ticks_per_ns, &record);
        result = fn(&record, ctx);
        if (result)
            return result;
    }
    return 0;
}

void mapped_status(struct prcb *p, struct prcb_status *ret)
{
    struct mapped *m = &p->mapped;
    uint32_t used = mapped_used(m);

    ret->untracked_threads = __atomic_load_n(&m->head->untracked, __ATOMIC_RELAXED);
    for (uint32_t slot = 0; slot < used; slot++) {
        struct prcb_account_block copy;
        uint32_t retries = 0;
        uint64_t kernel;

        if (!in_use(mapped_block(m, slot)) ||
            account_copy(mapped_block(m, slot),
                         offsetof(struct prcb_account_block, base_migrations), &copy, &retries) ||
            mapped_is_hidden(m, slot, copy.generation))
            continue;
        ret->threads++;
        kernel = copy.nvcsw + copy.nivcsw - copy.base_nvcsw - copy.base_nivcsw;
        if (kernel > copy.own_switches)
            ret->missed_switches += kernel - copy.own_switches;
    }
}

/* What a kernel without a feature takes from the causes. */
static const struct {
    uint32_t feature;
    const char *words;
} limits[] = {
    {PRCB_FEATURE_LOCKS, "waits for kernel locks are filed under their system call or other-d: the "
                         "kernel has no tracepoints of lock contention (Linux 5.19)"},
    {PRCB_FEATURE_SYSCALLS, "waits are not divided by system call: the kernel has no struct "
                            "pt_regs of a known form"},
    {PRCB_FEATURE_FILES, "waits in read, write and the like are filed under other, not under what "
                         "they are for: the kernel has no fdtable, file or inode as they are read "
                         "here"},
    {PRCB_FEATURE_THROTTLED, "waits for a CPU quota are ready time: the kernel does not let "
                             "throttling be told (it has no CONFIG_FAIR_GROUP_SCHED)"},
    {PRCB_FEATURE_OWNERS, "who held the kernel's locks is not known: prcbd is an earlier version"},
    {PRCB_FEATURE_MEANWHILE, "whose threads ran while others were ready is not known: prcbd is an "
                             "earlier version, or you may not see all processes in /proc"},
};

/* Nobody asked for what the feature is about, or another limit says it. */
static bool is_unasked(const struct prcb *p, uint32_t feature)
{
    if (feature == PRCB_FEATURE_LOCKS)
        return p->flags & PRCB_OPEN_NO_LOCKS;
    if (feature == PRCB_FEATURE_MEANWHILE)
        return !(p->flags & PRCB_OPEN_MEANWHILE) || !p->mapped.edges_window.at;
    return feature == PRCB_FEATURE_OWNERS &&
           (!(p->flags & PRCB_OPEN_OWNERS) || !p->mapped.edges_window.at ||
            !(p->mapped.features & PRCB_FEATURE_LOCKS));
}

const char *mapped_limit(const struct prcb *p, size_t i)
{
    for (size_t k = 0; k < sizeof(limits) / sizeof(limits[0]); k++) {
        uint32_t feature = limits[k].feature;

        if (!(p->mapped.features & feature) && !is_unasked(p, feature) && !i--)
            return limits[k].words;
    }
    if (p->flags & PRCB_OPEN_EDGES && prcb_session_tier(p) == PRCB_TIER_BPF &&
        p->mapped.no_interrupted && !i)
        return "who ended the waits is not known: the programs for processors, which tell, are not "
               "loaded (prcb doctor says why)";
    return NULL;
}

/* What is kept where it is asked for, and not in a session that is shared. */
static const struct {
    uint64_t member;
    uint32_t feature;
    uint32_t asked; /* PRCB_OPEN_ */
    const char *unasked, *lacking;
} asked_for[] = {
    {PRCB_HAS_REGISTERS, PRCB_FEATURE_REGISTERS, PRCB_OPEN_REGISTERS,
     "the session was opened without PRCB_OPEN_REGISTERS",
     "prcbd is too old to keep them, or the kernel has no struct pt_regs as it is read here"},
    {PRCB_HAS_OBJECT, PRCB_FEATURE_OBJECTS, PRCB_OPEN_OBJECTS,
     "the session was opened without PRCB_OPEN_OBJECTS",
     "prcbd is too old to keep what waits are for, or the kernel has no inode or super_block as "
     "they are read here"},
};

const char *mapped_absent_reason(const struct prcb *p, uint64_t member)
{
    uint32_t features = p->mapped.features;

    if (member == PRCB_HAS_READY && !(features & PRCB_FEATURE_READY))
        return "the kernel keeps no run-queue delays within reach (built without "
               "CONFIG_SCHED_INFO or CONFIG_FAIR_GROUP_SCHED)";
    if (member == PRCB_HAS_MIGRATIONS && !(features & PRCB_FEATURE_MIGRATIONS))
        return "the kernel has no sched_entity.nr_migrations as it is read here";
    if (member == PRCB_HAS_SYSCALL && !(features & PRCB_FEATURE_SYSCALLS))
        return "the kernel has no registers of system calls (struct pt_regs) as they are read here";
    if (member == PRCB_HAS_INTERRUPTED && p->mapped.processors && !keeps_interrupted(&p->mapped))
        return "prcbd gave up the programs that told: it was cleaned away, or another version came";
    if (member == PRCB_HAS_INTERRUPTED && !p->mapped.processors)
        return p->mapped.no_interrupted ? p->mapped.no_interrupted
                                        : "the session was opened without PRCB_OPEN_INTERRUPTED";
    for (size_t i = 0; i < sizeof(asked_for) / sizeof(asked_for[0]); i++)
        if (member == asked_for[i].member && !(features & asked_for[i].feature))
            return p->mapped.hidden ? "the session is shared with others (PRCB_OPEN_SHARED)"
                   : !(p->flags & asked_for[i].asked) ? asked_for[i].unasked
                                                      : asked_for[i].lacking;
    if (member == PRCB_HAS_CGROUP && !(features & PRCB_FEATURE_CGROUP))
        return p->tier->number == PRCB_TIER_DAEMON
                   ? "prcbd is too old to keep it, or its kernel was built without CONFIG_CGROUPS"
                   : "the kernel was built without CONFIG_CGROUPS";
    if (member == PRCB_HAS_CYCLES && !p->clock.use_ticks)
        return "the processor's time-stamp counter is not invariant, or the kernel does not "
               "keep time by it";
    return NULL;
}

/* ---- words ---- */

int mapped_no_room(const struct prcb *p, struct prcb_error *err)
{
    return prcb_fail(err, -ENOSPC, "all %u accounts are in use: ask for more (max_threads)",
                     p->max_threads);
}

int mapped_not_seen(const char *what, pid_t number, struct prcb_error *err)
{
    if (!kill(number, 0) || errno == EPERM)
        return prcb_fail(err, -ESRCH,
                         "%s %d: it has ended and waits to be reaped, or the kernel does not show "
                         "it to eBPF programs",
                         what, (int)number);
    return prcb_fail(err, -ESRCH, "%s %d: no such %s", what, (int)number, what);
}

int mapped_no_cgroups(const char *path, struct prcb_error *err)
{
    return prcb_fail(
        err, -EOPNOTSUPP,
        "cgroup %s cannot be followed: the kernel has no css_set, cgroup or kernfs_node "
        "as they are read here",
        path);
}
