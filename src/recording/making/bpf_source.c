/* SPDX-License-Identifier: BSD-2-Clause */
#include "bpf_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <prcb/sample.h>

#include "error.h"
#include "pid_ns.h"
#include "present.h"

#define BUFFER_BYTES  (1u << 20)  /* of samples, a processor */
#define SWITCH_LEAST  (16u << 20) /* of switches, all processors */
#define SWITCH_MOST   (64u << 20)
#define SWITCH_EACH   (8u << 20)
#define FORMAT        4 /* its basic group is the shortest record that has an address */
#define ADDRESS       8 /* offset of the eventing address in it */
#define NS_PER_S      1000000000ull
#define SWITCH_RECORD 120

struct processor {
    struct bpf_source *source;
    struct prcb_sample *sample; /* NULL: none runs */
    struct rings *rings;        /* where its records go, during a read */
    uint32_t cpu;
    size_t switches; /* of the last read */
};

struct bpf_source {
    struct prcb_sampler *sampler;
    struct prcb_switches *switches; /* NULL: not asked for */
    struct prcb_sample_options how;
    uint64_t weight; /* of each sample */
    bool samples, only_chosen;
    struct processor *processors;
    size_t count;
    uint64_t lost_switches;
    size_t switch_bytes; /* a processor */
    size_t most_bytes;   /* of a read */
};

bool bpf_source_can_sample(const struct rings_options *options)
{
    bool clock = !strcmp(options->event, "cpu-clock") || !strcmp(options->event, "task-clock");

    return !options->stacks && (clock || !options->frequency);
}

bool bpf_source_can_choose(const struct rings_options *options)
{
    return !options->on_exec && !strcmp(options->event, "cpu-clock");
}

/* Of all processors together. */
static size_t switch_room(size_t processors)
{
    size_t room = processors > SWITCH_MOST / SWITCH_EACH ? SWITCH_MOST : processors * SWITCH_EACH;

    return room < SWITCH_LEAST ? SWITCH_LEAST : room;
}

static int open_parts(struct bpf_source *source, const struct rings_options *options,
                      const struct prcb_processors *wakers, struct prcb_error *err)
{
    struct prcb_sampler_options memory = {
        .size = sizeof(memory),
        .memory = source->samples ? (source->count + 1) * (BUFFER_BYTES + 4096) : 1u << 20,
        .wakers = options->switches ? wakers : NULL,
        .flags = source->only_chosen ? PRCB_SAMPLER_CHOSEN : 0,
    };
    size_t room = switch_room(source->count);
    int result = prcb_sampler_open(&memory, &source->sampler, err);

    source->switch_bytes = room / source->count;
    if (!result && options->switches)
        result = prcb_switches_open(source->sampler, room, &source->switches, err);
    return result;
}

int bpf_source_open(const struct rings_options *options, bool samples, bool only_chosen,
                    const struct prcb_processors *wakers, struct bpf_source **ret,
                    struct prcb_error *err)
{
    uint32_t count = numbered_processors();
    struct bpf_source *source;
    int result;

    if (!in_first_pid_ns())
        return prcb_fail(err, -EOPNOTSUPP,
                         "this is not the initial pid namespace: eBPF programs report "
                         "other thread numbers");
    source = calloc(1, sizeof(*source));
    if (source)
        source->processors = calloc((size_t)count, sizeof(*source->processors));
    if (!source || !source->processors) {
        free(source);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    source->count = (size_t)count;
    source->samples = samples;
    source->only_chosen = only_chosen;
    source->weight = options->frequency ? NS_PER_S / options->rate : options->rate;
    source->how = (struct prcb_sample_options){
        .size = sizeof(source->how),
        .event = options->event,
        .rate = options->rate,
        .flags = PRCB_SAMPLE_THREAD | (options->frequency ? PRCB_SAMPLE_FREQUENCY : 0u),
        .format = FORMAT,
    };
    if (options->on_exec)
        source->how.flags |= PRCB_SAMPLE_ON_EXEC;
    for (size_t i = 0; i < source->count; i++)
        source->processors[i] = (struct processor){.source = source, .cpu = (uint32_t)i};
    result = open_parts(source, options, wakers, err);
    if (result) {
        bpf_source_close(source);
        return result;
    }
    *ret = source;
    return 0;
}

void bpf_source_close(struct bpf_source *source)
{
    if (!source)
        return;
    prcb_switches_close(source->switches);
    prcb_sampler_close(source->sampler);
    free(source->processors);
    free(source);
}

/* ---- samples --------------------------------------------------------------------- */

static int start(struct processor *p, pid_t tid, struct prcb_error *err)
{
    struct bpf_source *source = p->source;
    struct prcb_sample_options how = source->how;
    struct prcb_ds_area *area;
    size_t stride;
    void *buffer;
    int result;

    how.tid = tid;
    if (tid)
        how.flags |= PRCB_SAMPLE_INHERIT;
    else
        how.flags &= ~(uint32_t)PRCB_SAMPLE_ON_EXEC;
    stride = prcb_sample_stride_of(&how);
    if (!stride)
        return prcb_fail(err, -EINVAL, "eBPF cannot sample this event");
    result = prcb_ds_area_alloc(source->sampler, (int)p->cpu, &area, err);
    if (result == -ENODEV)
        return 0; /* offline */
    if (!result)
        result = prcb_sample_buffer_alloc(source->sampler, BUFFER_BYTES, &buffer, err);
    if (result)
        return result;
    area->pebs_base = area->pebs_index = (uint64_t)(uintptr_t)buffer;
    area->pebs_maximum = area->pebs_base + BUFFER_BYTES / stride * stride;
    area->pebs_threshold = area->pebs_maximum;
    return prcb_sample_open(source->sampler, (int)p->cpu, &how, &p->sample, err);
}

int bpf_source_add(struct bpf_source *source, pid_t tid, struct prcb_error *err)
{
    int result = 0;

    for (size_t i = 0; i < source->count && source->samples && !result; i++) {
        struct processor *p = &source->processors[i];

        result = p->sample ? prcb_sample_add(p->sample, tid, err) : start(p, tid, err);
    }
    return result;
}

int bpf_source_choose(struct bpf_source *source, pid_t pid, pid_t tid, struct prcb_error *err)
{
    return prcb_sampler_choose(source->sampler, pid, tid, err);
}

void bpf_source_filter_then(struct bpf_source *source, int program)
{
    prcb_sampler_filter_then(source->sampler, program, NULL);
}

int bpf_source_filter(const struct bpf_source *source)
{
    return prcb_sampler_filter(source->sampler);
}

void bpf_source_stop(struct bpf_source *source)
{
    /* The records stay in their buffers, but a sampler that was stopped cannot be drained any
     * more, so this comes after the last read. */
    for (size_t i = 0; i < source->count; i++) {
        prcb_sample_close(source->processors[i].sample);
        source->processors[i].sample = NULL;
    }
}

static int take_samples(const void *records, size_t bytes, void *ctx)
{
    struct processor *p = ctx;
    size_t stride = prcb_sample_stride(p->sample), tail_at = prcb_sample_record_size(p->sample);
    int result = 0;

    for (size_t at = 0; at + stride <= bytes && !result; at += stride) {
        const char *record = (const char *)records + at;
        struct prcb_sample_tail tail;
        struct ring_event event = {.cpu = p->cpu, .weight = p->source->weight};

        memcpy(&tail, record + tail_at, sizeof(tail));
        memcpy(&event.ip, record + ADDRESS, sizeof(event.ip));
        if (!tail.tid)
            continue; /* idle */
        event.time_ns = tail.time_ns;
        event.pid = (int32_t)tail.pid;
        event.tid = (int32_t)tail.tid;
        event.kernel = tail.flags & PRCB_TAIL_KERNEL;
        result = rings_put_sample(p->rings, &event);
    }
    if (bytes > p->source->most_bytes)
        p->source->most_bytes = bytes;
    return result;
}

/* ---- switches and all --------------------------------------------------------------- */

struct taking {
    struct bpf_source *source;
    struct rings *rings;
};

static int take_switch(const struct prcb_switch *record, void *ctx)
{
    struct taking *taking = ctx;

    if (record->cpu < taking->source->count)
        taking->source->processors[record->cpu].switches++;
    return rings_put_switch(taking->rings, record);
}

int bpf_source_read(struct bpf_source *source, struct rings *rings, unsigned *ret_full)
{
    struct taking taking = {source, rings};
    unsigned full;
    int result = 0;

    source->most_bytes = 0;
    for (size_t i = 0; i < source->count && !result; i++) {
        source->processors[i].rings = rings;
        source->processors[i].switches = 0;
        if (source->processors[i].sample)
            result = prcb_sample_drain(source->processors[i].sample, take_samples,
                                       &source->processors[i]);
    }
    if (source->switches && !result)
        result = prcb_switches_read(source->switches, take_switch, &taking, &source->lost_switches);
    full = (unsigned)(source->most_bytes * 100 / BUFFER_BYTES);
    if (full > *ret_full)
        *ret_full = full;
    for (size_t i = 0; i < source->count; i++) {
        full =
            (unsigned)(source->processors[i].switches * SWITCH_RECORD * 100 / source->switch_bytes);
        if (full > *ret_full)
            *ret_full = full;
    }
    return result;
}

uint64_t bpf_source_lost_samples(const struct bpf_source *source)
{
    uint64_t lost = 0;

    for (size_t i = 0; i < source->count; i++) {
        struct prcb_sample_counts counts = {.size = sizeof(counts)};

        if (source->processors[i].sample &&
            !prcb_sample_count(source->processors[i].sample, &counts))
            lost += counts.lost_full + counts.lost_index + counts.lost_moved;
    }
    return lost;
}

uint64_t bpf_source_lost_switches(const struct bpf_source *source)
{
    return source->lost_switches;
}

int bpf_source_program(struct bpf_source *source, uint32_t i, struct prcb_program *ret)
{
    return prcb_sampler_program(source->sampler, i, ret);
}
