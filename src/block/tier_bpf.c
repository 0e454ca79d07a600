/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The bpf tier of one process: loads the programs, maps the blocks read-only,
 * reads, gives back. All writing is the programs'. What is profiled: bpf_register.c.
 */
#include "tier_bpf.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "account.h"
#include "kernel_btf.h"
#include "seqcount_abi.h"

/* ---- opening ---- */

/* libbpf's own words go nowhere: ours name what failed and what to do. */
static int no_print(enum libbpf_print_level level, const char *format, va_list args)
{
    return 0;
}

static int explain_open(int code, struct prcb_error *err)
{
    if (code == -EPERM)
        return prcb_fail(err, -EPERM,
                         "eBPF programs may not be loaded: run as root, or with CAP_BPF and "
                         "CAP_PERFMON (prcb doctor tells more)");
    if (code == -ENOMEM)
        return prcb_fail(err, code, "no memory for the accounts: ask for fewer threads");
    return prcb_fail(err, code == -EINVAL || code == -EACCES ? -EOPNOTSUPP : code,
                     "the kernel refused the eBPF programs (%s); prcb doctor says what it lacks",
                     strerror(-code));
}

/* Leaves out what this kernel does not have and tells the programs the rest. */
static int configure(struct prcb *p, struct prcb_error *err)
{
    struct accounts_bpf *skeleton = p->bpf->skeleton;
    struct btf *btf = btf__load_vmlinux_btf();
    bool locks;

    if (!btf)
        return prcb_fail(err, -EOPNOTSUPP,
                         "the kernel has no BTF (/sys/kernel/btf/vmlinux): it must be built with "
                         "CONFIG_DEBUG_INFO_BTF");
    skeleton->rodata->config.has_prev_state = kernel_tracepoint_arguments(btf, "sched_switch") >= 4;
    locks = !(p->flags & PRCB_OPEN_NO_LOCKS) &&
            kernel_tracepoint_arguments(btf, "contention_begin") > 0;
    btf__free(btf);
    skeleton->rodata->config.pid_ns = p->pid_ns;
    /* Where the kernel gave the counter up, each run queue's clock is put together from
     * the counter and the last tick, and two processors' differ by up to a tick. */
    skeleton->rodata->config.use_ktime = (p->flags & PRCB_OPEN_KTIME) || !p->clock.kernel_uses;
    skeleton->rodata->config.accounts = p->max_threads;
    bpf_program__set_autoload(skeleton->progs.prcb_contention_begin, locks);
    bpf_program__set_autoload(skeleton->progs.prcb_contention_end, locks);
    if (p->bpf->processors) {
        skeleton->rodata->config.interrupted = 1;
        if (bpf_map__reuse_fd(skeleton->maps.processor_map,
                              processor_programs_map_fd(p->bpf->processors)))
            return prcb_fail(err, -errno, "the processor blocks cannot be shared: %s",
                             strerror(errno));
    }
    bpf_map__set_max_entries(skeleton->maps.account_map, p->max_threads);
    bpf_map__set_max_entries(skeleton->maps.free_slots, p->max_threads);
    return 0;
}

static int map_blocks(struct prcb *p, struct prcb_error *err)
{
    struct bpf_state *s = p->bpf;
    void *head, *accounts;

    head = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED,
                bpf_map__fd(s->skeleton->maps.head_map), 0);
    if (head == MAP_FAILED)
        return prcb_fail(err, -errno, "the head page cannot be mapped: %s", strerror(errno));
    s->head = head;
    s->accounts_bytes = sizeof(struct prcb_account_block) * p->max_threads;
    accounts = mmap(NULL, s->accounts_bytes, PROT_READ, MAP_SHARED,
                    bpf_map__fd(s->skeleton->maps.account_map), 0);
    if (accounts == MAP_FAILED)
        return prcb_fail(err, -errno, "%u accounts cannot be mapped: %s", p->max_threads,
                         strerror(errno));
    s->accounts = accounts;
    return 0;
}

static int write_head(struct prcb *p, struct prcb_error *err)
{
    struct accounts_bpf *skeleton = p->bpf->skeleton;
    struct prcb_head_block head = {
        .magic = PRCB_ABI_MAGIC,
        .abi_major = PRCB_ABI_MAJOR,
        .abi_minor = PRCB_ABI_MINOR,
        .head_size = sizeof(struct prcb_head_block),
        .account_size = sizeof(struct prcb_account_block),
        .account_stride = sizeof(struct prcb_account_block),
        .account_count = p->max_threads,
        .features = skeleton->bss->kernel_features,
        .writer_pid = (__u32)getpid(),
        .writer = PRCB_VERSION,
    };
    __u32 zero = 0;

    if (head.features & PRCB_FEATURE_RQ_CLOCK)
        head.clock_offset = PRCB_OFFSET_UNKNOWN;

    if (bpf_program__autoload(skeleton->progs.prcb_contention_begin))
        head.features |= PRCB_FEATURE_LOCKS;
    if (p->bpf->processors)
        head.features |= PRCB_FEATURE_INTERRUPTED;
    if (bpf_map_update_elem(bpf_map__fd(skeleton->maps.head_map), &zero, &head, BPF_ANY))
        return prcb_fail(err, -errno, "the head page cannot be written: %s", strerror(errno));
    return 0;
}

static int run_program(const struct bpf_program *program, void *context, __u32 bytes, int *ret)
{
    LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = context, .ctx_size_in = bytes);
    int result = bpf_prog_test_run_opts(bpf_program__fd(program), &options);

    if (result)
        return result;
    *ret = (int)options.retval;
    return 0;
}

int bpf_attach(struct bpf_program *program, struct bpf_link **link, struct prcb_error *err)
{
    if (*link)
        return 0;
    *link = bpf_program__attach(program);
    if (!*link)
        return prcb_fail(err, -errno, "%s cannot be attached: %s", bpf_program__name(program),
                         strerror(errno));
    return 0;
}

static int attach_always(struct accounts_bpf *skeleton, struct prcb_error *err)
{
    int result = bpf_attach(skeleton->progs.prcb_switch, &skeleton->links.prcb_switch, err);

    if (!result)
        result = bpf_attach(skeleton->progs.prcb_rename, &skeleton->links.prcb_rename, err);
    if (!result && bpf_program__autoload(skeleton->progs.prcb_contention_begin)) {
        result = bpf_attach(skeleton->progs.prcb_contention_begin,
                            &skeleton->links.prcb_contention_begin, err);
        if (!result)
            result = bpf_attach(skeleton->progs.prcb_contention_end,
                                &skeleton->links.prcb_contention_end, err);
    }
    return result;
}

static __s64 clock_offset(const struct bpf_state *s)
{
    return __atomic_load_n(&s->head->clock_offset, __ATOMIC_RELAXED);
}

/* The offset between the writer's clock and ours comes from switches: make some,
 * enough that the smallest difference is near the true one. */
static int settle_clock(struct bpf_state *s, struct prcb_error *err)
{
    const struct timespec pause = {.tv_nsec = 300000};

    if (!(s->head->features & PRCB_FEATURE_RQ_CLOCK))
        return 0;
    s->skeleton->bss->calibrating = 1;
    for (int i = 0; i < 8 || (i < 1000 && clock_offset(s) == PRCB_OFFSET_UNKNOWN); i++)
        nanosleep(&pause, NULL);
    s->skeleton->bss->calibrating = 0;
    if (clock_offset(s) == PRCB_OFFSET_UNKNOWN)
        return prcb_fail(err, -EIO,
                         "the sched_switch program does not run: is BPF held back by "
                         "the kernel (kernel.ftrace_enabled, lockdown)?");
    return 0;
}

static int load(struct prcb *p, struct prcb_error *err)
{
    libbpf_print_fn_t print = libbpf_set_print(no_print);
    int result, ignored;

    p->bpf->skeleton = accounts_bpf__open();
    result = p->bpf->skeleton ? configure(p, err) : explain_open(-errno, err);
    if (!result) {
        result = accounts_bpf__load(p->bpf->skeleton);
        if (!result)
            result = run_program(p->bpf->skeleton->progs.prcb_tell_features, NULL, 0, &ignored);
        if (result)
            result = explain_open(result, err);
    }
    libbpf_set_print(print);
    return result;
}

/* Sessions do without where this cannot be had, and say so. */
static void open_processors(struct prcb *p)
{
    struct prcb_error why = {0};
    int count = libbpf_num_possible_cpus();

    if (count > 0 && !processor_programs_open((uint32_t)count, &p->bpf->processors,
                                              &p->bpf->processor_map, &why))
        return;
    processor_map_close(&p->bpf->processor_map);
    processor_programs_close(p->bpf->processors);
    p->bpf->processors = NULL;
    memcpy(p->bpf->no_interrupted, why.text, sizeof(p->bpf->no_interrupted) - 1);
}

static int bpf_open(struct prcb *p, struct prcb_error *err)
{
    int result;

    p->bpf = calloc(1, sizeof(*p->bpf));
    if (!p->bpf)
        return prcb_fail(err, -ENOMEM, "out of memory");
    p->bpf->iter_by_task = true;
    if (p->flags & PRCB_OPEN_INTERRUPTED)
        open_processors(p);
    result = load(p, err);
    if (!result)
        result = write_head(p, err);
    if (!result)
        result = map_blocks(p, err);
    if (!result)
        result = attach_always(p->bpf->skeleton, err);
    if (!result)
        result = settle_clock(p->bpf, err);
    return result;
}

static void bpf_close(struct prcb *p)
{
    struct bpf_state *s = p->bpf;

    if (!s)
        return;
    if (s->accounts)
        munmap((void *)s->accounts, s->accounts_bytes);
    if (s->head)
        munmap((void *)s->head, (size_t)sysconf(_SC_PAGESIZE));
    accounts_bpf__destroy(s->skeleton);
    processor_map_close(&s->processor_map);
    processor_programs_close(s->processors);
    free(s->cgroup);
    free(s);
    p->bpf = NULL;
}

/* ---- reading ---- */

static const struct prcb_account_block *block_at(const struct bpf_state *s, uint32_t slot)
{
    return (const struct prcb_account_block *)(s->accounts +
                                               (size_t)slot * s->head->account_stride);
}

/* Slots that were ever given out. */
static uint32_t slots_used(const struct bpf_state *s)
{
    uint64_t used = __atomic_load_n(&s->head->account_used, __ATOMIC_RELAXED);

    return used < s->head->account_count ? (uint32_t)used : s->head->account_count;
}

static uint64_t make_key(uint32_t slot, uint32_t generation)
{
    return (uint64_t)generation << 32 | slot;
}

/* Now, on the writer's clock. */
static uint64_t writer_now(struct prcb *p, struct clock *clock)
{
    bool fresh = false;
    uint64_t now = clock_now(clock, &p->clock, &fresh);

    return now - (uint64_t)clock_offset(p->bpf);
}

static int bpf_thread_open(struct prcb *p, struct prcb_thread *t, struct prcb_error *err)
{
    uint32_t used = slots_used(p->bpf);

    for (uint32_t slot = 0; slot < used; slot++) {
        const struct prcb_account_block *block = block_at(p->bpf, slot);
        struct prcb_account_block copy;
        uint32_t retries = 0, state = __atomic_load_n(&block->state, __ATOMIC_RELAXED);

        if (state == PRCB_STATE_FREE || state == PRCB_STATE_EXITED ||
            __atomic_load_n(&block->tid, __ATOMIC_RELAXED) != (uint32_t)t->tid)
            continue;
        if (account_copy(block, sizeof(copy), &copy, &retries))
            continue;
        t->block = block;
        t->key = make_key(slot, copy.generation);
        t->base_switches = copy.base_nvcsw + copy.base_nivcsw;
        return 0;
    }
    return prcb_fail(err, -ESRCH, "thread %d: not profiled by this session", (int)t->tid);
}

static double ticks_per_ns(const struct prcb_thread *t)
{
    return t->clock.mult ? 4294967296.0 / (double)t->clock.mult
                         : clock_tick_rate(&t->session->clock) / 1e9;
}

/* Interrupts of the stretch that is going on. The account may have left the processor since it
 * was copied: then false, and it is to be copied again. An interrupt that is going on counts when
 * it is over. */
static bool live_interrupted(const struct bpf_state *s, const struct prcb_account_block *block,
                             const struct prcb_account_block *copy, uint64_t *ret)
{
    struct prcb_processor_block processor;
    uint32_t ignored = 0;
    uint64_t until;

    *ret = 0;
    if (!s->processors || copy->interrupt_base == PRCB_BASE_UNKNOWN ||
        copy->run_cpu >= s->processor_map.count ||
        processor_block_copy(&s->processor_map, copy->run_cpu, 64, &processor, &ignored))
        return true;
    until = processor_block_interrupted(&processor, 0);
    if (until > copy->interrupt_base)
        *ret = until - copy->interrupt_base;
    return !prcb_seq_read_retry(&block->seq, copy->seq);
}

#define INTERRUPT_TRIES 8

/* The first bytes of an account, and what of its present stretch interrupts took. */
static int copy_account(const struct bpf_state *s, const void *block, uint32_t bytes,
                        struct prcb_account_block *ret, uint64_t *ret_interrupted,
                        uint32_t *retries)
{
    *ret_interrupted = 0;
    /* One that switches all the time has hardly been interrupted since its last switch. */
    for (int i = 0; i < INTERRUPT_TRIES; i++) {
        int result = account_copy(block, bytes, ret, retries);

        if (result || live_interrupted(s, block, ret, ret_interrupted))
            return result;
        ++*retries;
    }
    *ret_interrupted = 0;
    return 0;
}

static void set_interrupted(const struct bpf_state *s, struct prcb_thread *t, uint64_t interrupted,
                            uint64_t run, uint64_t *ret, uint64_t *present)
{
    if (!s->processors)
        return;
    if (interrupted < t->last_interrupted)
        interrupted = t->last_interrupted;
    t->last_interrupted = *ret = interrupted < run ? interrupted : run;
    *present |= PRCB_HAS_INTERRUPTED;
}

static int bpf_read(struct prcb_thread *t, struct prcb_account *ret)
{
    struct prcb *p = t->session;
    struct prcb_account_block copy;
    uint64_t now, interrupted;
    int result;

    result = copy_account(p->bpf, t->block, sizeof(copy), &copy, &interrupted, &ret->retries);
    if (result)
        return result;
    if (copy.generation != (uint32_t)(t->key >> 32) || copy.state == PRCB_STATE_FREE)
        return -ESTALE;
    now = writer_now(p, &t->clock);
    if (copy.state == PRCB_STATE_EXITED)
        now = copy.stamp;
    if (now < t->last_now)
        now = t->last_now;
    account_convert(&copy, now, p->bpf->head->features, ticks_per_ns(t), ret);
    account_identity(t->block, ret);
    ret->key = t->key;
    ret->tier = PRCB_TIER_BPF;
    if (t->last.size)
        account_never_back(&t->last, ret);
    set_interrupted(p->bpf, t, copy.interrupted_ns + interrupted, ret->run_ns, &ret->interrupted_ns,
                    &ret->present);
    t->last_now = now;
    t->last = *ret;
    return 0;
}

static int bpf_read_times(struct prcb_thread *t, struct prcb_times *ret)
{
    const struct bpf_state *s = t->session->bpf;
    struct prcb_account_block hot;
    uint64_t now, run, interrupted;
    int result;

    if (s->processors)
        result = copy_account(s, t->block, 192, &hot, &interrupted, &ret->retries);
    else
        result = account_copy(t->block, 64, &hot, &ret->retries);
    if (result)
        return result;
    if (hot.generation != (uint32_t)(t->key >> 32) || hot.state == PRCB_STATE_FREE)
        return -ESTALE;
    if (hot.state == PRCB_STATE_UNSEEN)
        hot.guess = __atomic_load_n(&((const struct prcb_account_block *)t->block)->guess,
                                    __ATOMIC_RELAXED);
    now = writer_now(t->session, &t->clock);
    run = hot.run_ns + account_live_run(&hot, now);
    if (run < t->last_run)
        run = t->last_run;
    t->last_run = run;
    ret->present = PRCB_HAS_RUN | PRCB_HAS_SWITCHES;
    if (s->processors)
        set_interrupted(s, t, hot.interrupted_ns + interrupted, run, &ret->interrupted_ns,
                        &ret->present);
    ret->switches = hot.nvcsw + hot.nivcsw - t->base_switches;
    ret->run_ns = run;
    ret->flags = hot.state == PRCB_STATE_EXITED ? PRCB_ACCOUNT_EXITED : 0;
    ret->flags |= hot.state == PRCB_STATE_RUNNING ? PRCB_ACCOUNT_RUNNING : 0;
    return 0;
}

static int bpf_walk(struct prcb *p, prcb_walk_fn fn, void *ctx, struct prcb_error *err)
{
    struct bpf_state *s = p->bpf;
    uint32_t used = slots_used(s);
    double rate = clock_tick_rate(&p->clock) / 1e9;
    struct clock clock = {0};

    for (uint32_t slot = 0; slot < used; slot++) {
        const struct prcb_account_block *block = block_at(s, slot);
        struct prcb_account record = {.size = sizeof(record), .tier = PRCB_TIER_BPF};
        struct prcb_account_block copy;
        uint64_t interrupted;
        int result;

        if (__atomic_load_n(&block->state, __ATOMIC_RELAXED) == PRCB_STATE_FREE)
            continue;
        result = copy_account(s, block, sizeof(copy), &copy, &interrupted, &record.retries);
        if (result)
            return prcb_fail(err, result, "account %u stayed inconsistent: its writer is stuck",
                             slot);
        if (copy.state == PRCB_STATE_FREE)
            continue;
        account_convert(&copy, copy.state == PRCB_STATE_EXITED ? copy.stamp : writer_now(p, &clock),
                        s->head->features, rate, &record);
        if (s->processors) {
            record.interrupted_ns = copy.interrupted_ns + interrupted;
            record.present |= PRCB_HAS_INTERRUPTED;
        }
        account_identity(block, &record);
        record.key = make_key(slot, copy.generation);
        result = fn(&record, ctx);
        if (result)
            return result;
    }
    return 0;
}

/* ---- giving back ---- */

static int free_slot(struct bpf_state *s, uint32_t slot, uint32_t generation)
{
    struct prcb_bpf_slot asked = {.slot = slot, .generation = generation};
    int stale = 0, result;

    result = run_program(s->skeleton->progs.prcb_free_slot, &asked, sizeof(asked), &stale);
    if (result || stale)
        return result ? result : -ESTALE;
    /* Nobody's now: cannot fail but for a queue that is full, which holds all slots. */
    return bpf_map_update_elem(bpf_map__fd(s->skeleton->maps.free_slots), NULL, &slot, BPF_ANY)
               ? -errno
               : 0;
}

/* Takes the account away from a thread that lives, and waits until no switch can
 * still be writing to it: programs run inside an RCU read section. */
static int unregister(struct bpf_state *s, uint32_t slot, struct prcb_error *err)
{
    int result;

    s->skeleton->bss->request = (struct prcb_bpf_request){.number = slot};
    result = bpf_run_iterator(s, s->skeleton->progs.prcb_unregister, 0, 0);
    if (result)
        return prcb_fail(err, result, "the task iterator failed: %s", strerror(-result));
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
        return prcb_fail(err, -errno, "membarrier: %s", strerror(errno));
    return 0;
}

static int bpf_release(struct prcb *p, uint64_t key, struct prcb_error *err)
{
    uint32_t slot = (uint32_t)key, generation = (uint32_t)(key >> 32);
    const struct prcb_account_block *block;
    uint32_t state;
    int result = 0;

    if (slot >= slots_used(p->bpf))
        return prcb_fail(err, -ESTALE, "there is no account with this key");
    block = block_at(p->bpf, slot);
    state = __atomic_load_n(&block->state, __ATOMIC_RELAXED);
    if (__atomic_load_n(&block->generation, __ATOMIC_RELAXED) != generation ||
        state == PRCB_STATE_FREE)
        return prcb_fail(err, -ESTALE, "the account was released already");
    if (state != PRCB_STATE_EXITED)
        result = unregister(p->bpf, slot, err);
    if (result)
        return result;
    result = free_slot(p->bpf, slot, generation);
    return result ? prcb_fail(err, result, "the account was not released: %s", strerror(-result))
                  : 0;
}

static int bpf_release_exited(struct prcb *p, struct prcb_error *err)
{
    uint32_t used = slots_used(p->bpf);
    int released = 0;

    for (uint32_t slot = 0; slot < used; slot++) {
        const struct prcb_account_block *block = block_at(p->bpf, slot);

        /* Acquire: the generation belongs to the account whose end was seen. */
        if (__atomic_load_n(&block->state, __ATOMIC_ACQUIRE) == PRCB_STATE_EXITED &&
            !(__atomic_load_n(&block->seq, __ATOMIC_RELAXED) & 1) &&
            !free_slot(p->bpf, slot, __atomic_load_n(&block->generation, __ATOMIC_RELAXED)))
            released++;
    }
    return released;
}

static void bpf_status(struct prcb *p, struct prcb_status *ret)
{
    struct bpf_state *s = p->bpf;
    uint32_t used = slots_used(s);

    ret->untracked_threads = __atomic_load_n(&s->head->untracked, __ATOMIC_RELAXED);
    for (uint32_t slot = 0; slot < used; slot++) {
        struct prcb_account_block copy;
        uint32_t retries = 0;
        uint64_t kernel;

        if (__atomic_load_n(&block_at(s, slot)->state, __ATOMIC_RELAXED) == PRCB_STATE_FREE ||
            account_copy(block_at(s, slot), sizeof(copy), &copy, &retries))
            continue;
        ret->threads++;
        kernel = copy.nvcsw + copy.nivcsw - copy.base_nvcsw - copy.base_nivcsw;
        if (kernel > copy.own_switches)
            ret->missed_switches += kernel - copy.own_switches;
    }
}

static const char *bpf_absent_reason(const struct prcb *p, uint64_t member)
{
    uint32_t features = p->bpf->head->features;

    if (member == PRCB_HAS_READY && !(features & PRCB_FEATURE_READY))
        return "the kernel keeps no run-queue delays within reach (built without "
               "CONFIG_SCHED_INFO or CONFIG_FAIR_GROUP_SCHED)";
    if (member == PRCB_HAS_INTERRUPTED && !(features & PRCB_FEATURE_INTERRUPTED))
        return p->bpf->no_interrupted[0] ? p->bpf->no_interrupted
                                         : "the session was opened without PRCB_OPEN_INTERRUPTED";
    if (member == PRCB_HAS_CYCLES && !p->clock.use_ticks)
        return "the processor's time-stamp counter is not invariant, or the kernel does not "
               "keep time by it";
    return NULL;
}

const struct tier tier_bpf = {
    .number = PRCB_TIER_BPF,
    .name = "bpf",
    .open = bpf_open,
    .close = bpf_close,
    .profile_thread = bpf_profile_thread,
    .profile_process = bpf_profile_process,
    .profile_cgroup = bpf_profile_cgroup,
    .profile_all = bpf_profile_all,
    .refresh = bpf_refresh,
    .thread_open = bpf_thread_open,
    .read = bpf_read,
    .read_times = bpf_read_times,
    .walk = bpf_walk,
    .release = bpf_release,
    .release_exited = bpf_release_exited,
    .status = bpf_status,
    .absent_reason = bpf_absent_reason,
};
