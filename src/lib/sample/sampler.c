/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The eBPF object of a sampler, and the memory that both sides write.
 */
#include "sampler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf_load.h"
#include "bpf_run.h"
#include "processor_map.h"
#include "samples.skel.h"
#include "sized.h"

#define MEMORY_DEFAULT (16u << 20)

/* ---- opening ---- */

static int explain(int code, struct prcb_error *err)
{
    if (bpf_lacked_memory(code))
        return prcb_fail(err, -ENOMEM,
                         "no memory for the areas and buffers: ask for less "
                         "(prcb_sampler_options.memory)");
    return bpf_explain_load(code, err);
}

static void configure(struct prcb_sampler *s, const struct kernel_types *types)
{
    struct kernel_reports reports = kernel_reports(types->btf);

    s->skeleton->rodata->has_prev_state = reports.prev_state;
    bpf_program__set_autoload(s->skeleton->progs.prcb_record_contention_begin, reports.locks);
    bpf_program__set_autoload(s->skeleton->progs.prcb_record_contention_end, reports.locks);
    s->skeleton->rodata->makes_anywhere = reports.delays;
    bpf_program__set_autoload(s->skeleton->progs.prcb_record_move, reports.delays);
    s->skeleton->rodata->only_chosen = s->only_chosen;
    bpf_program__set_autoload(s->skeleton->progs.prcb_record_newtask,
                              !reports.delays || s->only_chosen);
    bpf_program__set_autoload(s->skeleton->progs.prcb_choose, s->only_chosen);
    bpf_program__set_autoload(s->skeleton->progs.prcb_filter, s->only_chosen);
    bpf_map__set_max_entries(s->skeleton->maps.memory, (__u32)(s->pool.bytes >> PRCB_CHUNK_SHIFT));
    bpf_map__set_max_entries(s->skeleton->maps.slots, (__u32)s->cpus);
    bpf_map__set_max_entries(s->skeleton->maps.signals, (__u32)s->cpus);
    bpf_map__set_max_entries(s->skeleton->maps.switch_rings, (__u32)s->cpus);
}

/* Finds the map of the blocks that tell wakers apart: that of the view's programs or, where it has
 * none here, one of our own. It must not be called while other programs are being loaded. */
static int find_blocks(struct prcb_sampler *s, const struct prcb_processors *wakers, int *ret,
                       struct prcb_error *err)
{
    struct processor_map map = {0};
    int result = 0;

    *ret = processors_programs_map(wakers);
    if (*ret >= 0)
        return 0;
    result = processor_programs_open((uint32_t)s->cpus, true, &s->processors, &map, err);
    processor_map_close(&map);
    if (result)
        prcb_error_prepend(err, "wakers: ");
    else
        *ret = processor_programs_map_fd(s->processors);
    return result;
}

/* A negative number of blocks means that wakers are not asked for. */
static int configure_wakers(struct prcb_sampler *s, int blocks, struct prcb_error *err)
{
    int result;

    bpf_program__set_autoload(s->skeleton->progs.prcb_record_waking, blocks >= 0);
    if (blocks < 0)
        return 0;
    s->skeleton->rodata->has_wakers = 1;
    result = bpf_map__reuse_fd(s->skeleton->maps.processor_map, blocks);
    return result ? prcb_fail(err, result, "the processors' blocks: %s", strerror(-result)) : 0;
}

static int load(struct prcb_sampler *s, int blocks, struct prcb_error *err)
{
    struct bpf_load l;
    int result = bpf_load_begin(&l, err);

    if (!result) {
        s->skeleton = samples_bpf__open_opts(&l.options);
        result = s->skeleton ? bpf_load_find_types(&l, s->skeleton->obj, kernel_report_names,
                                                   KERNEL_FOR_SAMPLES, err)
                             : explain(-errno, err);
    }
    if (!result) {
        configure(s, &l.types);
        result = configure_wakers(s, blocks, err);
    }
    if (!result) {
        result = samples_bpf__load(s->skeleton);
        if (result)
            result = explain(result, err);
    }
    bpf_load_end(&l);
    return result;
}

static int map_shared(struct bpf_map *map, size_t bytes, void **ret, struct prcb_error *err)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

    if (at == MAP_FAILED)
        return prcb_fail(err, -errno, "%zu bytes of sampling memory cannot be mapped: %s", bytes,
                         strerror(errno));
    *ret = at;
    return 0;
}

static int map_all(struct prcb_sampler *s, struct prcb_error *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory = NULL, *slots = NULL;
    int result;

    result = map_shared(s->skeleton->maps.memory, s->pool.bytes, &memory, err);
    if (result)
        return result;
    s->memory = memory;
    /* The kernel gives a mappable array whole pages, and maps no less. */
    s->slots_bytes = ((size_t)s->cpus * sizeof(*s->slots) + page - 1) & ~(page - 1);
    result = map_shared(s->skeleton->maps.slots, s->slots_bytes, &slots, err);
    if (!result)
        s->slots = slots;
    return result;
}

static int take_options(const struct prcb_sampler_options *opts, uint64_t *ret_memory,
                        const struct prcb_processors **ret_wakers, bool *ret_only_chosen,
                        struct prcb_error *err)
{
    struct prcb_sampler_options options;
    int result = sized_take_options("prcb_sampler_options", opts, &options, sizeof(options), err);
    uint64_t memory = options.memory ? options.memory : MEMORY_DEFAULT;

    if (result)
        return result;
    if (memory > (uint64_t)UINT32_MAX << PRCB_CHUNK_SHIFT >> 4)
        return prcb_fail(err, -ENOMEM, "more memory asked for than there can be");
    if (options.flags & ~(uint32_t)PRCB_SAMPLER_CHOSEN)
        return prcb_fail(err, -EINVAL, "flags 0x%x: unknown flags", options.flags);
    *ret_only_chosen = options.flags & PRCB_SAMPLER_CHOSEN;
    *ret_wakers = options.wakers;
    *ret_memory = (memory + PRCB_CHUNK_BYTES - 1) & ~(uint64_t)(PRCB_CHUNK_BYTES - 1);
    return 0;
}

void sampler_free(struct prcb_sampler *s)
{
    if (s->slots)
        munmap(s->slots, s->slots_bytes);
    if (s->memory)
        munmap(s->memory, s->pool.bytes);
    bpf_link__destroy(s->births);
    samples_bpf__destroy(s->skeleton);
    processor_programs_close(s->processors);
    free(s->pool.extents);
    free(s->areas);
    free(s->samples);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

int prcb_sampler_open(const struct prcb_sampler_options *opts, struct prcb_sampler **ret,
                      struct prcb_error *err)
{
    const struct prcb_processors *wakers = NULL;
    struct prcb_sampler *s;
    uint64_t memory = 0;
    bool only_chosen = false;
    int blocks = -1, result = take_options(opts, &memory, &wakers, &only_chosen, err);

    if (result)
        return result;
    s = calloc(1, sizeof(*s));
    if (!s)
        return prcb_fail(err, -ENOMEM, "out of memory");
    pthread_mutex_init(&s->lock, NULL);
    s->pool.bytes = memory;
    s->only_chosen = only_chosen;
    s->narrow = true;
    /* It counts possible processors, not present ones: one that is plugged in later has its
     * slot. */
    s->cpus = libbpf_num_possible_cpus();
    clock_base_init(&s->clock);
    bpf_forget_log();
    if (s->cpus > 0) {
        s->areas = calloc((size_t)s->cpus, sizeof(*s->areas));
        s->samples = calloc((size_t)s->cpus, sizeof(*s->samples));
    }
    if (!s->areas || !s->samples)
        result = prcb_fail(err, -ENOMEM, "out of memory");
    if (!result && wakers)
        result = find_blocks(s, wakers, &blocks, err);
    if (!result)
        result = load(s, blocks, err);
    if (!result)
        result = map_all(s, err);
    if (result) {
        sampler_free(s);
        return result;
    }
    *ret = s;
    return 0;
}

/* ---- chosen threads ---- */

/* So often prcb_choose runs at most. Of a process that starts threads without pause all but the
 * last few are chosen by then. */
#define CHOICES 64

static int choose_until_settled(struct prcb_sampler *s, pid_t pid, pid_t tid)
{
    int program = bpf_program__fd(s->skeleton->progs.prcb_choose), result = 0;

    for (int i = 0; i < CHOICES && !result; i++) {
        memset(&s->skeleton->bss->choice, 0, sizeof(s->skeleton->bss->choice));
        s->skeleton->bss->choice.pid = (__u32)pid;
        s->skeleton->bss->choice.tid = (__u32)tid;
        result = bpf_run_iterator(&s->narrow, program, tid, pid);
        if (!result && s->skeleton->bss->choice.failed)
            result = -ENOMEM;
        else if (!result && !s->skeleton->bss->choice.found)
            result = -ESRCH;
        if (!s->skeleton->bss->choice.added)
            break;
    }
    return result;
}

int prcb_sampler_choose(struct prcb_sampler *s, pid_t pid, pid_t tid, struct prcb_error *err)
{
    int result;

    if (!s->only_chosen || pid < 0 || tid < 0 || !pid == !tid)
        return prcb_fail(err, -EINVAL,
                         "a process or a thread of a sampler with "
                         "PRCB_SAMPLER_CHOSEN can be chosen");
    pthread_mutex_lock(&s->lock);
    result = bpf_attach(s->skeleton->progs.prcb_record_newtask, &s->births, err);
    if (!result) {
        result = choose_until_settled(s, pid, tid);
        if (result)
            prcb_fail(err, result, "%s %d cannot be chosen: %s", pid ? "process" : "thread",
                      (int)(pid ? pid : tid), strerror(-result));
    }
    pthread_mutex_unlock(&s->lock);
    return result;
}

int prcb_sampler_filter(const struct prcb_sampler *s)
{
    return s->only_chosen ? bpf_program__fd(s->skeleton->progs.prcb_filter) : -EINVAL;
}

int prcb_sampler_filter_then(struct prcb_sampler *s, int program, struct prcb_error *err)
{
    const uint32_t first = 0;

    if (!s->only_chosen)
        return prcb_fail(err, -EINVAL, "the sampler has no filter");
    return bpf_map_update_elem(bpf_map__fd(s->skeleton->maps.after_filter), &first, &program,
                               BPF_ANY)
               ? prcb_fail(err, -errno, "the program cannot follow the filter: %s", strerror(errno))
               : 0;
}

int sampler_program(const struct prcb_sampler *s, bool precise, bool stacks)
{
    const struct bpf_program *const programs[2][2] = {
        {s->skeleton->progs.prcb_sample, s->skeleton->progs.prcb_sample_stacks},
        {s->skeleton->progs.prcb_precise, s->skeleton->progs.prcb_precise_stacks}};

    return bpf_program__fd(programs[precise][stacks]);
}

int sampler_signals(const struct prcb_sampler *s)
{
    return bpf_map__fd(s->skeleton->maps.signals);
}

int prcb_sampler_program(const struct prcb_sampler *s, uint32_t i, struct prcb_program *ret)
{
    struct prcb_program program = {.size = sizeof(program)};
    int result = bpf_event_program(s->skeleton->obj, i, &program);

    return result ? result : sized_hand_out(&program, sizeof(program), ret);
}
