/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Counts each stretch off the processor by its length. Part of accounts.bpf.c.
 */
#ifndef PRCB_TAILS_BPF_H
#define PRCB_TAILS_BPF_H

#include "stretches.bpf.h"
#include "owner.bpf.h"

/* Returns the tail of a cause on this processor; of a client's map, by its number. A processor
 * that came after the session began has none: what is missing for that is counted. */
static __always_inline struct prcb_tail_block *tail_of(__u32 client, __u32 cause)
{
    __u32 cpu = bpf_get_smp_processor_id(), first, processors, row;
    void *map = tails_of(client, &first, &processors);
    struct prcb_tail_block *tail;

    /* The compiler would leave an argument that is not used unset, which the verifier refuses. */
    __asm__ volatile("" : : "r"(client));
    row = first;
    if (cpu < processors)
        row += cpu * PRCB_CAUSE_MAX + cause;
    tail = map ? bpf_map_lookup_elem(map, &row) : NULL;
    if (!tail || cpu < processors)
        return tail;
    __sync_fetch_and_add(&tail->elsewhere, 1);
    return NULL;
}

/* Takes a number that is not 0, and goes by halves: eBPF has no instruction for it. */
static __always_inline __u32 log2_of(__u32 number)
{
    __u32 ret = 0, step;

#pragma unroll
    for (step = 16; step; step /= 2) {
        if (number >> step) {
            number >>= step;
            ret += step;
        }
    }
    return ret;
}

/* Adds a stretch. Nobody else writes here: interrupts are off in a switch. It is a global
 * function, which the verifier looks at once. */
__noinline int add_tail(__u32 client, __u32 cause, __u64 ns)
{
    struct prcb_tail_block *tail = tail_of(client, cause);
    /* The bound itself belongs to the bucket. */
    __u64 us = ns ? (ns - 1) / 1000 : 0;
    __u32 bucket = PRCB_TAIL_BUCKETS - 1;

    if (!tail)
        return 0;
    tail->ns += ns;
    if (ns > tail->max_ns)
        tail->max_ns = ns;
    if (us < 4) {
        bucket = us;
    } else if (us < 1u << 27) {
        __u32 octave = log2_of(us);

        bucket = (octave - 1) * 4 + (us >> (octave - 2) & 3);
    }
    /* The compiler knows that it is in the array; the verifier has to see it. */
    __asm__ volatile("" : "+r"(bucket));
    if (bucket < PRCB_TAIL_BUCKETS)
        tail->buckets[bucket]++;
    return 0;
}

/* Files a stretch that was closed. */
static __always_inline void note_tails(struct profile *profile, const struct closed *closed)
{
    __u32 client = client_of_profile(profile);

    if (!cause_is_ready(closed->cause))
        add_tail(client, closed->cause, closed->wait);
    add_tail(client, PRCB_CAUSE_NONE, closed->ready);
}

#endif
