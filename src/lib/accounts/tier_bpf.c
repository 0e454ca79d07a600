/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The bpf tier of one process: loads the programs, maps the blocks read-only, gives back.
 * All writing is the programs'. What is profiled: bpf_register.c. Reading: mapped.c.
 */
#include "tier_bpf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "account.h"
#include "account_programs.h"
#include "bpf_load.h"
#include "bpf_run.h"
#include "present.h"
#include "switch_rings.h"

#define RAN_BYTES    (2u << 20) /* 600 lists, a tenth of a second of four processors */
#define CHOSEN_BYTES (8u << 20) /* of the ring: 1000 stacks, some milliseconds of the busiest */
#define SWITCH_BYTES (4u << 20) /* of switch records, a processor, where no size is asked for */

/* ---- opening ---- */

static uint32_t processors_for(const struct prcb *p, uint32_t flags)
{
    int count = p->flags & flags ? libbpf_num_possible_cpus() : 0;

    return count > 0 ? present_processors((uint32_t)count) : 0;
}

static uint32_t tail_processors(const struct prcb *p)
{
    return processors_for(p, PRCB_OPEN_TAILS);
}

/* Returns the elements of each processor's ring of switch records, after its head; 0: none are
 * kept. */
static uint32_t switch_elements(const struct prcb *p)
{
    uint32_t processors = processors_for(p, PRCB_OPEN_SWITCHES), elements = 1;
    size_t each = processors && p->switch_bytes ? p->switch_bytes / processors : SWITCH_BYTES;

    while (each >= 2 * elements * sizeof(struct prcb_switch_element) && elements < 1u << 20)
        elements *= 2;
    return processors ? elements : 0;
}

static uint32_t switch_map_elements(const struct prcb *p)
{
    return processors_for(p, PRCB_OPEN_SWITCHES) * (switch_elements(p) + 1);
}

static uint32_t tail_elements(const struct prcb *p)
{
    return tail_processors(p) * PRCB_CAUSE_MAX;
}

/* Leaves out what this kernel does not have and tells the programs the rest. */
static int configure(struct prcb *p, const struct kernel_types *types, struct prcb_error *err)
{
    struct accounts_bpf *skeleton = p->bpf->skeleton;
    struct kernel_reports reports = kernel_reports(types->btf);
    bool locks = !(p->flags & PRCB_OPEN_NO_LOCKS) && reports.locks;

    skeleton->rodata->config.has_prev_state = reports.prev_state;
    skeleton->rodata->config.newborn = reports.preempts;
    bpf_program__set_autoload(skeleton->progs.prcb_newborn, reports.preempts);
    bpf_program__set_autoload(skeleton->progs.prcb_move, reports.delays);
    skeleton->rodata->config.pid_ns = p->pid_ns;
    /* Where the kernel gave the counter up, each run queue's clock is put together from
     * the counter and the last tick, and two processors' differ by up to a tick. */
    skeleton->rodata->config.use_ktime = (p->flags & PRCB_OPEN_KTIME) || !p->clock.kernel_uses;
    skeleton->rodata->config.accounts = p->max_threads;
    skeleton->rodata->config.registers = (p->flags & PRCB_OPEN_REGISTERS) != 0;
    skeleton->rodata->config.edges = (p->flags & PRCB_OPEN_EDGES) != 0;
    skeleton->rodata->config.owners = (p->flags & PRCB_OPEN_OWNERS) != 0 && locks;
    skeleton->rodata->config.meanwhile =
        (p->flags & PRCB_OPEN_MEANWHILE) && p->flags & PRCB_OPEN_EDGES;
    if (skeleton->rodata->config.meanwhile)
        bpf_map__set_max_entries(skeleton->maps.turn_map,
                                 present_processors((uint32_t)libbpf_num_possible_cpus()));
    skeleton->rodata->config.objects = (p->flags & PRCB_OPEN_OBJECTS) != 0;
    bpf_program__set_autoload(skeleton->progs.prcb_waking,
                              p->flags & (PRCB_OPEN_EDGES | PRCB_OPEN_SWITCHES));
    skeleton->rodata->config.tails = p->flags & PRCB_OPEN_TAILS ? p->max_threads : 0;
    skeleton->rodata->config.switches = switch_elements(p);
    skeleton->rodata->config.processors = processors_for(p, PRCB_OPEN_TAILS | PRCB_OPEN_SWITCHES);
    if (p->flags & PRCB_OPEN_SWITCHES)
        bpf_map__set_max_entries(skeleton->maps.switch_map, switch_map_elements(p));
    skeleton->rodata->config.chosen = (p->flags & PRCB_OPEN_CHOSEN) != 0;
    if (p->flags & PRCB_OPEN_CHOSEN) {
        bpf_map__set_max_entries(skeleton->maps.chosen_ring, CHOSEN_BYTES);
        bpf_map__set_max_entries(skeleton->maps.chains, p->max_threads);
    }
    bpf_program__set_autoload(skeleton->progs.prcb_ran, p->flags & PRCB_OPEN_RAN);
    if (p->flags & PRCB_OPEN_RAN)
        bpf_map__set_max_entries(skeleton->maps.ran_ring, RAN_BYTES);
    bpf_program__set_autoload(skeleton->progs.prcb_kernel_stack, p->flags & PRCB_OPEN_REGISTERS);
    bpf_program__set_autoload(skeleton->progs.prcb_contention_begin, locks);
    bpf_program__set_autoload(skeleton->progs.prcb_contention_end, locks);
    bpf_program__set_autoload(skeleton->progs.prcb_cgroup_attach, false); /* bpf_follow_cgroups */
    if (p->bpf->processors) {
        skeleton->rodata->config.interrupted = (p->flags & PRCB_OPEN_INTERRUPTED) != 0;
        if (bpf_map__reuse_fd(skeleton->maps.processor_map,
                              processor_programs_map_fd(p->bpf->processors)))
            return prcb_fail(err, -errno, "the processor blocks cannot be shared: %s",
                             strerror(errno));
    }
    bpf_map__set_max_entries(skeleton->maps.account_map, p->max_threads + tail_elements(p));
    bpf_map__set_max_entries(skeleton->maps.free_slots, p->max_threads);
    if (p->flags & PRCB_OPEN_EDGES)
        bpf_map__set_max_entries(skeleton->maps.edge_map, p->max_threads);
    return 0;
}

static int map_blocks(struct prcb *p, struct prcb_error *err)
{
    struct accounts_bpf *skeleton = p->bpf->skeleton;
    size_t bytes = sizeof(struct prcb_account_block) * (p->max_threads + tail_elements(p));
    void *head;
    int result;

    head = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED,
                bpf_map__fd(skeleton->maps.head_map), 0);
    if (head == MAP_FAILED)
        return prcb_fail(err, -errno, "the head page cannot be mapped: %s", strerror(errno));
    p->mapped.head = p->mapped.clock = head;
    result = window_open(bpf_map__fd(skeleton->maps.account_map), bytes, tail_elements(p) != 0,
                         &p->mapped.accounts_window);
    if (result)
        return prcb_fail(err, result, "%u accounts cannot be mapped: %s", p->max_threads,
                         strerror(-result));
    p->mapped.accounts = p->mapped.accounts_window.at;
    p->mapped.count = p->max_threads;
    p->mapped.stride = sizeof(struct prcb_account_block);
    p->mapped.features = p->mapped.head->features;
    p->mapped.tail_processors = p->mapped.head->tail_processors;
    return 0;
}

static int map_edges(struct prcb *p, struct prcb_error *err)
{
    size_t bytes = sizeof(struct prcb_edge_block) * p->max_threads;
    int result;

    if (!(p->flags & PRCB_OPEN_EDGES))
        return 0;
    result = window_open(bpf_map__fd(p->bpf->skeleton->maps.edge_map), bytes, false,
                         &p->mapped.edges_window);
    return result ? prcb_fail(err, result, "the edges of %u accounts cannot be mapped: %s",
                              p->max_threads, strerror(-result))
                  : 0;
}

static int map_switches(struct prcb *p, struct prcb_error *err)
{
    size_t bytes = sizeof(struct prcb_switch_element) * switch_map_elements(p);
    struct window *window = &p->bpf->switches_window;
    int result =
        bytes ? window_open(bpf_map__fd(p->bpf->skeleton->maps.switch_map), bytes, true, window)
              : 0;

    if (!result && bytes)
        result =
            switch_rings_open(window->at, processors_for(p, PRCB_OPEN_SWITCHES), switch_elements(p),
                              p->mapped.features & PRCB_FEATURE_READY, &p->mapped.switches);
    return result ? prcb_fail(err, result, "%zu bytes of switch records cannot be mapped: %s",
                              bytes, strerror(-result))
                  : 0;
}

static int write_head(struct prcb *p, struct prcb_error *err)
{
    struct accounts_bpf *skeleton = p->bpf->skeleton;
    struct prcb_head_block head =
        bpf_account_head(skeleton->bss->kernel_features,
                         bpf_program__autoload(skeleton->progs.prcb_contention_begin));
    __u32 zero = 0;

    head.account_count = p->max_threads;
    head.tail_processors = tail_processors(p);
    if (head.tail_processors)
        head.features |= PRCB_FEATURE_TAILS;
    if (p->bpf->processors && p->flags & PRCB_OPEN_INTERRUPTED)
        head.features |= PRCB_FEATURE_INTERRUPTED;
    if (p->flags & PRCB_OPEN_EDGES)
        head.features |= PRCB_FEATURE_EDGES;
    if (skeleton->rodata->config.owners)
        head.features |= PRCB_FEATURE_OWNERS;
    if (skeleton->rodata->config.meanwhile)
        head.features |= PRCB_FEATURE_MEANWHILE;
    if (!(p->flags & PRCB_OPEN_REGISTERS))
        head.features &= ~PRCB_FEATURE_REGISTERS;
    if (!(p->flags & PRCB_OPEN_OBJECTS))
        head.features &= ~PRCB_FEATURE_OBJECTS;
    if (bpf_map_update_elem(bpf_map__fd(skeleton->maps.head_map), &zero, &head, BPF_ANY))
        return prcb_fail(err, -errno, "the head page cannot be written: %s", strerror(errno));
    return 0;
}

static int attach_always(struct accounts_bpf *skeleton, struct prcb_error *err)
{
    int result = bpf_attach(skeleton->progs.prcb_switch, &skeleton->links.prcb_switch, err);

    if (!result)
        result = bpf_attach(skeleton->progs.prcb_rename, &skeleton->links.prcb_rename, err);
    if (!result)
        result = bpf_attach(skeleton->progs.prcb_ended, &skeleton->links.prcb_ended, err);
    if (!result && bpf_program__autoload(skeleton->progs.prcb_contention_begin)) {
        result = bpf_attach(skeleton->progs.prcb_contention_begin,
                            &skeleton->links.prcb_contention_begin, err);
        if (!result)
            result = bpf_attach(skeleton->progs.prcb_contention_end,
                                &skeleton->links.prcb_contention_end, err);
    }
    if (!result && bpf_program__autoload(skeleton->progs.prcb_move))
        result = bpf_attach(skeleton->progs.prcb_move, &skeleton->links.prcb_move, err);
    if (!result && bpf_program__autoload(skeleton->progs.prcb_waking))
        result = bpf_attach(skeleton->progs.prcb_waking, &skeleton->links.prcb_waking, err);
    return result;
}

static int load(struct prcb *p, struct prcb_error *err)
{
    struct accounts_bpf *skeleton = NULL;
    struct bpf_load l;
    int result = bpf_load_begin(&l, err);

    if (!result) {
        p->bpf->skeleton = skeleton = accounts_bpf__open_opts(&l.options);
        result = skeleton ? bpf_load_find_types(&l, skeleton->obj, kernel_report_names,
                                                KERNEL_FOR_ACCOUNTS, err)
                          : bpf_explain_accounts(-errno, err);
    }
    if (!result)
        result = configure(p, &l.types, err);
    if (!result) {
        result = accounts_bpf__load(skeleton);
        if (!result)
            result =
                bpf_run_program(bpf_program__fd(skeleton->progs.prcb_tell_features), NULL, 0, NULL);
        if (result)
            result = bpf_explain_accounts(result, err);
    }
    bpf_load_end(&l);
    return result;
}

/* Programs that few sessions ask for, on the maps of the rest. */
static int load_cgroup(struct prcb *p, struct prcb_error *err)
{
    struct accounts_bpf *skeleton = NULL;
    struct bpf_program *program;
    struct bpf_map *map;
    struct bpf_load l;
    int result = bpf_load_begin(&l, err);

    if (!result) {
        p->bpf->cgroup_programs = skeleton = accounts_bpf__open_opts(&l.options);
        result = skeleton ? bpf_load_find_types(&l, skeleton->obj, kernel_report_names,
                                                KERNEL_FOR_ACCOUNTS, err)
                          : bpf_explain_accounts(-errno, err);
    }
    if (!result) {
        bpf_object__for_each_program(program, skeleton->obj)
            bpf_program__set_autoload(program, program == skeleton->progs.prcb_cgroup_attach);
        bpf_object__for_each_map(map, skeleton->obj)
        {
            if (!result && bpf_map__autocreate(map))
                result = bpf_map__reuse_fd(map, bpf_object__find_map_fd_by_name(
                                                    p->bpf->skeleton->obj, bpf_map__name(map)));
        }
        if (!result)
            result = accounts_bpf__load(skeleton);
        if (result)
            result = bpf_explain_accounts(result, err);
    }
    bpf_load_end(&l);
    return result;
}

int bpf_follow_cgroups(struct prcb *p, struct prcb_error *err)
{
    struct accounts_bpf **programs = &p->bpf->cgroup_programs;
    int result = *programs ? 0 : load_cgroup(p, err);

    if (!result)
        result = bpf_attach((*programs)->progs.prcb_cgroup_attach,
                            &(*programs)->links.prcb_cgroup_attach, err);
    if (result) {
        accounts_bpf__destroy(*programs);
        *programs = NULL;
    }
    return result;
}

/* Sessions do without where this cannot be had, and say so. */
static void open_processors(struct prcb *p)
{
    struct prcb_error why = {0};
    int count = libbpf_num_possible_cpus();

    if (count > 0 && !processor_programs_open((uint32_t)count, p->flags & PRCB_OPEN_INTERRUPTED,
                                              &p->bpf->processors, &p->bpf->processor_map, &why)) {
        if (p->flags & PRCB_OPEN_INTERRUPTED)
            p->mapped.processors = &p->bpf->processor_map;
        return;
    }
    processor_map_close(&p->bpf->processor_map);
    processor_programs_close(p->bpf->processors);
    p->bpf->processors = NULL;
    memcpy(p->bpf->no_interrupted, why.text, sizeof(p->bpf->no_interrupted) - 1);
    p->mapped.no_interrupted = p->bpf->no_interrupted;
}

static int bpf_open(struct prcb *p, struct prcb_error *err)
{
    int result;

    p->bpf = calloc(1, sizeof(*p->bpf));
    if (!p->bpf)
        return prcb_fail(err, -ENOMEM, "out of memory");
    p->bpf->iter_by_task = true;
    if (p->flags & PRCB_OPEN_SHARED) /* prcbd's are meant, if any */
        p->flags &= ~(uint32_t)PRCB_OPEN_SWITCHES;
    if (p->flags & (PRCB_OPEN_INTERRUPTED | PRCB_OPEN_EDGES | PRCB_OPEN_SWITCHES))
        open_processors(p);
    result = load(p, err);
    if (!result)
        result = write_head(p, err);
    if (!result)
        result = map_blocks(p, err);
    if (!result && p->flags & PRCB_OPEN_CHOSEN)
        result = bpf_open_chosen(p, err);
    if (!result)
        result = map_edges(p, err);
    if (!result)
        result = map_switches(p, err);
    if (!result)
        result = attach_always(p->bpf->skeleton, err);
    if (!result)
        result = bpf_settle_clock(p->mapped.head, &p->bpf->skeleton->bss->calibrating, err);
    return result;
}

static void bpf_close(struct prcb *p)
{
    struct bpf_state *s = p->bpf;

    if (!s)
        return;
    window_close(&p->mapped.accounts_window);
    window_close(&p->mapped.edges_window);
    window_close(&s->switches_window);
    switch_rings_close(p->mapped.switches);
    if (p->mapped.head)
        munmap((void *)p->mapped.head, (size_t)sysconf(_SC_PAGESIZE));
    memset(&p->mapped, 0, sizeof(p->mapped));
    ring_buffer__free(s->chosen);
    ring_buffer__free(s->ran);
    accounts_bpf__destroy(s->cgroup_programs);
    accounts_bpf__destroy(s->skeleton);
    processor_map_close(&s->processor_map);
    processor_programs_close(s->processors);
    cgroup_list_free(&s->cgroups);
    free(s);
    p->bpf = NULL;
}

/* ---- giving back ---- */

static int free_slot(struct bpf_state *s, uint32_t slot, uint32_t generation)
{
    struct prcb_bpf_slot asked = {.slot = slot, .generation = generation};
    int stale = 0, result;

    result = bpf_run_program(bpf_program__fd(s->skeleton->progs.prcb_free_slot), &asked,
                             sizeof(asked), &stale);
    if (result || stale)
        return result ? result : -ESTALE;
    /* It is nobody's now. That cannot fail but for a queue that is full, which then holds all
     * slots. */
    return bpf_map_update_elem(bpf_map__fd(s->skeleton->maps.free_slots), NULL, &slot, BPF_ANY)
               ? -errno
               : 0;
}

/* Takes the account away from a thread that lives, and waits until no switch can
 * still be writing to it. */
static int unregister(struct bpf_state *s, uint32_t slot, struct prcb_error *err)
{
    int result;

    s->skeleton->bss->request = (struct prcb_bpf_request){.number = slot};
    result = bpf_run_iterator(&s->iter_by_task, bpf_program__fd(s->skeleton->progs.prcb_unregister),
                              0, 0);
    if (result)
        return prcb_fail(err, result, "the task iterator failed: %s", strerror(-result));
    result = bpf_wait_for_programs();
    return result
               ? prcb_fail(err, result, "eBPF programs cannot be waited for: %s", strerror(-result))
               : 0;
}

static int bpf_release(struct prcb *p, uint64_t key, struct prcb_error *err)
{
    uint32_t slot = (uint32_t)key, generation = (uint32_t)(key >> 32);
    const struct prcb_account_block *block;
    uint32_t state;
    int result = 0;

    if (slot >= mapped_used(&p->mapped))
        return prcb_fail(err, -ESTALE, "no account has this key");
    block = mapped_block(&p->mapped, slot);
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
    uint32_t used = mapped_used(&p->mapped);
    int released = 0;

    for (uint32_t slot = 0; slot < used; slot++) {
        const struct prcb_account_block *block = mapped_block(&p->mapped, slot);

        /* This is an acquire load: the generation belongs to the account whose end was seen. */
        if (__atomic_load_n(&block->state, __ATOMIC_ACQUIRE) == PRCB_STATE_EXITED &&
            !(__atomic_load_n(&block->seq, __ATOMIC_RELAXED) & 1) &&
            !free_slot(p->bpf, slot, __atomic_load_n(&block->generation, __ATOMIC_RELAXED)))
            released++;
    }
    return released;
}

static int bpf_kernel_stack(struct prcb *p, uint64_t key, pid_t tid, char ret[KERNEL_STACK_BYTES],
                            struct prcb_error *err)
{
    struct accounts_bpf *skeleton = p->bpf->skeleton;
    ssize_t length;

    if (!bpf_program__autoload(skeleton->progs.prcb_kernel_stack))
        return prcb_fail(err, -EOPNOTSUPP, "the session was not opened with PRCB_OPEN_REGISTERS");
    skeleton->bss->kernel_stack.account = key;
    length = bpf_read_iterator(bpf_program__fd(skeleton->progs.prcb_kernel_stack), tid, ret,
                               KERNEL_STACK_BYTES - 1);
    if (length == -EOPNOTSUPP)
        return prcb_fail(err, (int)length,
                         "this kernel cannot read the stack of a single thread: needs Linux 6.1");
    if (length < 0 || bpf_kernel_names(ret, (size_t)length) <= 1)
        return prcb_fail(err, length < 0 ? (int)length : -ESRCH, "thread %d runs, or has ended",
                         (int)tid);
    return 0;
}

/* Finds one of an object's programs; *i is less by how many it has where it has fewer. */
static int program_of(const struct accounts_bpf *skeleton, uint32_t *i, struct prcb_program *ret)
{
    struct prcb_program own;
    uint32_t count = 0;

    if (!skeleton || !bpf_event_program(skeleton->obj, *i, ret))
        return skeleton ? 0 : -ENOENT;
    while (!bpf_event_program(skeleton->obj, count, &own))
        count++;
    *i -= count;
    return -ENOENT;
}

static int bpf_program(struct prcb *p, uint32_t i, struct prcb_program *ret)
{
    if (!program_of(p->bpf->skeleton, &i, ret) || !program_of(p->bpf->cgroup_programs, &i, ret))
        return 0;
    return p->bpf->processors
               ? bpf_event_program(processor_programs_object(p->bpf->processors), i, ret)
               : -ENOENT;
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
    .thread_open = mapped_thread_open,
    .read = mapped_read,
    .read_times = mapped_read_times,
    .walk = mapped_walk,
    .release = bpf_release,
    .release_exited = bpf_release_exited,
    .status = mapped_status,
    .program = bpf_program,
    .absent_reason = mapped_absent_reason,
    .limit = mapped_limit,
    .chosen_read = bpf_chosen_read,
    .chosen_chain = bpf_chosen_chain,
    .ran_program = bpf_ran_program,
    .ran_read = bpf_ran_read,
    .kernel_stack = bpf_kernel_stack,
};
