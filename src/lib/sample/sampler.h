/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Inside of src/lib/sample: the sampler, its memory and the rings that programs write.
 * The public calls are in prcb/sample.h.
 */
#ifndef PRCB_SAMPLE_SAMPLER_H
#define PRCB_SAMPLE_SAMPLER_H

#include <linux/perf_event.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <prcb/sample.h>

#include "clock.h"
#include "error.h"
#include "ring.h"
#include "samples.h"

/* ---- memory: extents of the map that is mapped by both sides ---- */

/* Offsets from the start of the memory, sorted; what lies between two is free. */
struct extent {
    uint64_t offset, bytes;
    uint32_t users; /* samples that write to it */
    bool is_buffer; /* else an area */
};

struct pool {
    uint64_t bytes;
    size_t count, room;
    struct extent *extents;
};

/* Takes bytes of the pool. align: a power of two. -ENOSPC, -ENOMEM. */
int pool_take(struct pool *pool, uint64_t bytes, uint64_t align, bool is_buffer, uint64_t *ret);
/* The extent that starts at an offset, or that holds bytes from there on; NULL: none. */
struct extent *pool_at(struct pool *pool, uint64_t offset);
struct extent *pool_holding(struct pool *pool, uint64_t offset, uint64_t bytes);
void pool_give(struct pool *pool, struct extent *extent);

/* ---- the sampler ---- */

struct samples_bpf;
struct bts;
struct processor_programs;

struct prcb_sampler {
    pthread_mutex_t lock; /* over all of this, but not over what a sample does alone */
    struct samples_bpf *skeleton;
    uint8_t *memory;
    struct prcb_sample_slot *slots; /* one a possible processor */
    size_t slots_bytes;
    int cpus;
    struct pool pool;
    struct clock_base clock;
    struct prcb_ds_area **areas; /* by processor; NULL: none */
    struct prcb_sample **samples;
    struct prcb_switches *switches;
    struct bpf_link *births; /* NULL: no threads were chosen */
    bool only_chosen;
    bool narrow;                           /* an iterator can be pointed at one task */
    struct processor_programs *processors; /* tell wakers apart; NULL: the view's, or none do */
};

struct prcb_sample {
    struct prcb_sampler *sampler;
    int cpu;
    struct prcb_ds_area *area;
    struct prcb_sample_slot *slot;
    uint64_t base, end; /* addresses: the buffer as it was at the start */
    struct perf_event_attr attr;
    int program;
    enum prcb_sample_source source;
    struct ring signals;
    size_t count, room;
    int *fds; /* of the events; [0] holds the page below */
    struct perf_event_mmap_page *page;
    uint64_t throttled;
    struct bts *bts; /* not NULL: this is a branch trace, and of the above only sampler, cpu and
                        area count */
};

/* Returns the descriptor of a program, or of the map of rings. */
int sampler_program(const struct prcb_sampler *s, bool precise, bool stacks);
int sampler_signals(const struct prcb_sampler *s);

/* Of a sampler that nothing uses any more, or that was opened by half. */
void sampler_free(struct prcb_sampler *s);

/* Is called with the lock held. */
void sample_stop_locked(struct prcb_sample *p);
void switches_close_locked(struct prcb_switches *w);

#endif
