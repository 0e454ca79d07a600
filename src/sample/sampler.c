/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Opening and closing, and what is given out of the memory: areas and buffers.
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

#include "area.h"
#include "bpf_run.h"
#include "samples.skel.h"
#include "sized.h"

#define MEMORY_DEFAULT (16u << 20)
#define AREA_ALIGN     256 /* more than an area has: so none lies across two chunks */

_Static_assert(sizeof(struct prcb_ds_area) == 0xa0, "NT's and Intel's");

/* ---- opening ---- */

static int explain(int code, struct prcb_error *err)
{
    if (code == -ENOMEM || code == -E2BIG)
        return prcb_fail(err, -ENOMEM,
                         "no memory for the areas and buffers: ask for less "
                         "(prcb_sampler_options.memory)");
    return bpf_explain_load(code, err);
}

static int configure(struct prcb_sampler *s, struct prcb_error *err)
{
    struct bpf_facts facts;
    int result = bpf_find_facts(&facts, err);

    if (result)
        return result;
    s->skeleton->rodata->has_prev_state = facts.prev_state;
    bpf_program__set_autoload(s->skeleton->progs.prcb_record_contention_begin, facts.locks);
    bpf_program__set_autoload(s->skeleton->progs.prcb_record_contention_end, facts.locks);
    bpf_map__set_max_entries(s->skeleton->maps.memory, (__u32)(s->pool.bytes >> PRCB_CHUNK_SHIFT));
    bpf_map__set_max_entries(s->skeleton->maps.slots, (__u32)s->cpus);
    bpf_map__set_max_entries(s->skeleton->maps.signals, (__u32)s->cpus);
    return 0;
}

static int load(struct prcb_sampler *s, struct prcb_error *err)
{
    libbpf_print_fn_t print = libbpf_set_print(bpf_no_print);
    int result;

    s->skeleton = samples_bpf__open();
    result = s->skeleton ? configure(s, err) : explain(-errno, err);
    if (!result) {
        result = samples_bpf__load(s->skeleton);
        if (result)
            result = explain(result, err);
    }
    libbpf_set_print(print);
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
    s->slots_bytes = ((size_t)s->cpus * sizeof(*s->slots) + page - 1) & ~(page - 1);
    result = map_shared(s->skeleton->maps.slots, s->slots_bytes, &slots, err);
    if (!result)
        s->slots = slots;
    return result;
}

static int take_options(const struct prcb_sampler_options *opts, uint64_t *ret_memory,
                        struct prcb_error *err)
{
    struct prcb_sampler_options options;
    int result = sized_take_options("prcb_sampler_options", opts, &options, sizeof(options), err);
    uint64_t memory = options.memory ? options.memory : MEMORY_DEFAULT;

    if (result)
        return result;
    if (memory > (uint64_t)UINT32_MAX << PRCB_CHUNK_SHIFT >> 4)
        return prcb_fail(err, -ENOMEM, "more memory asked for than there can be");
    *ret_memory = (memory + PRCB_CHUNK_BYTES - 1) & ~(uint64_t)(PRCB_CHUNK_BYTES - 1);
    return 0;
}

int prcb_sampler_open(const struct prcb_sampler_options *opts, struct prcb_sampler **ret,
                      struct prcb_error *err)
{
    struct prcb_sampler *s;
    uint64_t memory = 0;
    int result = take_options(opts, &memory, err);

    if (result)
        return result;
    s = calloc(1, sizeof(*s));
    if (!s)
        return prcb_fail(err, -ENOMEM, "out of memory");
    pthread_mutex_init(&s->lock, NULL);
    s->pool.bytes = memory;
    s->cpus = libbpf_num_possible_cpus();
    clock_base_init(&s->clock);
    if (s->cpus > 0) {
        s->areas = calloc((size_t)s->cpus, sizeof(*s->areas));
        s->samples = calloc((size_t)s->cpus, sizeof(*s->samples));
    }
    if (!s->areas || !s->samples)
        result = prcb_fail(err, -ENOMEM, "out of memory");
    if (!result)
        result = load(s, err);
    if (!result)
        result = map_all(s, err);
    if (result) {
        prcb_sampler_close(s);
        return result;
    }
    *ret = s;
    return 0;
}

void prcb_sampler_close(struct prcb_sampler *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    for (int cpu = 0; s->samples && cpu < s->cpus; cpu++) {
        if (s->samples[cpu])
            sample_stop_locked(s->samples[cpu]);
    }
    if (s->switches)
        switches_close_locked(s->switches);
    if (s->slots)
        munmap(s->slots, s->slots_bytes);
    if (s->memory)
        munmap(s->memory, s->pool.bytes);
    samples_bpf__destroy(s->skeleton);
    free(s->pool.extents);
    free(s->areas);
    free(s->samples);
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_destroy(&s->lock);
    free(s);
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

/* ---- areas ---- */

static bool is_online(int cpu)
{
    char path[64], state = '1';
    FILE *file;

    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d", cpu);
    if (access(path, F_OK))
        return false;
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
    file = fopen(path, "re"); /* a processor that cannot be taken offline has none */
    if (!file)
        return true;
    state = (char)fgetc(file);
    fclose(file);
    return state == '1';
}

static int take(struct prcb_sampler *s, size_t bytes, struct prcb_ds_area **ret,
                struct prcb_error *err)
{
    uint64_t offset;
    int result = pool_take(&s->pool, bytes, AREA_ALIGN, false, &offset);

    if (result)
        return prcb_fail(err, result, "no room for an area in %llu bytes of sampling memory",
                         (unsigned long long)s->pool.bytes);
    memset(s->memory + offset, 0, bytes);
    *ret = (struct prcb_ds_area *)(s->memory + offset);
    return 0;
}

static void put_back(struct prcb_sampler *s, struct prcb_ds_area *area)
{
    pool_give(&s->pool, pool_at(&s->pool, (uint64_t)((uint8_t *)area - s->memory)));
}

int area_take(struct prcb_sampler *s, size_t bytes, struct prcb_ds_area **ret,
              struct prcb_error *err)
{
    int result;

    pthread_mutex_lock(&s->lock);
    result = take(s, bytes, ret, err);
    pthread_mutex_unlock(&s->lock);
    return result;
}

void area_put_back(struct prcb_sampler *s, struct prcb_ds_area *area)
{
    pthread_mutex_lock(&s->lock);
    put_back(s, area);
    pthread_mutex_unlock(&s->lock);
}

int area_install(struct prcb_sampler *s, int cpu, struct prcb_ds_area *area,
                 struct prcb_ds_area **ret)
{
    int result = 0;

    pthread_mutex_lock(&s->lock);
    if (s->areas[cpu])
        result = -EEXIST;
    else
        s->areas[cpu] = area;
    *ret = s->areas[cpu];
    pthread_mutex_unlock(&s->lock);
    return result;
}

static int area_alloc(struct prcb_sampler *s, int cpu, struct prcb_ds_area **ret,
                      struct prcb_error *err)
{
    int result;

    if (s->areas[cpu]) {
        *ret = s->areas[cpu];
        return prcb_fail(err, -EEXIST, "processor %d has an area already", cpu);
    }
    result = take(s, sizeof(**ret), ret, err);
    if (!result)
        s->areas[cpu] = *ret;
    return result;
}

int prcb_ds_area_alloc(struct prcb_sampler *s, int cpu, struct prcb_ds_area **ret,
                       struct prcb_error *err)
{
    int result;

    if (cpu < 0 || cpu >= s->cpus || !is_online(cpu))
        return prcb_fail(err, -ENODEV, "no processor %d is online", cpu);
    pthread_mutex_lock(&s->lock);
    result = area_alloc(s, cpu, ret, err);
    pthread_mutex_unlock(&s->lock);
    return result;
}

int prcb_ds_area_free(struct prcb_sampler *s, int cpu, struct prcb_error *err)
{
    int result = 0;

    pthread_mutex_lock(&s->lock);
    if (cpu < 0 || cpu >= s->cpus || !s->areas[cpu]) {
        result = prcb_fail(err, -ENOENT, "processor %d has no area", cpu);
    } else {
        if (s->samples[cpu])
            sample_stop_locked(s->samples[cpu]);
        put_back(s, s->areas[cpu]);
        s->areas[cpu] = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    return result;
}

/* ---- buffers ---- */

int prcb_sample_buffer_alloc(struct prcb_sampler *s, size_t bytes, void **ret,
                             struct prcb_error *err)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), offset;
    int result;

    if (!bytes || bytes > SIZE_MAX - page)
        return prcb_fail(err, -EINVAL, "a buffer of %zu bytes", bytes);
    pthread_mutex_lock(&s->lock);
    result = pool_take(&s->pool, (bytes + page - 1) & ~(page - 1), page, true, &offset);
    if (result)
        prcb_fail(err, result, "no room for %zu bytes in %llu of sampling memory", bytes,
                  (unsigned long long)s->pool.bytes);
    else
        memset(s->memory + offset, 0, (bytes + page - 1) & ~(page - 1));
    pthread_mutex_unlock(&s->lock);
    if (!result)
        *ret = s->memory + offset;
    return result;
}

int prcb_sample_buffer_free(struct prcb_sampler *s, void *buffer, struct prcb_error *err)
{
    struct extent *extent;
    int result = 0;

    pthread_mutex_lock(&s->lock);
    extent = pool_at(&s->pool, (uint64_t)((uintptr_t)buffer - (uintptr_t)s->memory));
    if (!extent || !extent->is_buffer)
        result = prcb_fail(err, -EINVAL, "%p is no buffer of this sampler", buffer);
    else if (extent->users)
        result = prcb_fail(err, -EBUSY, "a sample writes to the buffer %p: stop it first", buffer);
    else
        pool_give(&s->pool, extent);
    pthread_mutex_unlock(&s->lock);
    return result;
}
