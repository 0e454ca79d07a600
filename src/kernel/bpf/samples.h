/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Defines what the sample programs and the library that loads them share, in one build: the
 * memory of areas and buffers, one slot a processor, and the records. The format is not stable.
 */
#ifndef PRCB_SAMPLES_H
#define PRCB_SAMPLES_H

#include <linux/types.h>

/* The memory is an array of chunks without gaps between them: a buffer may span many, an
 * area lies in one. 6.1 takes no element of more than 4 MiB. */
#define PRCB_CHUNK_SHIFT 20
#define PRCB_CHUNK_BYTES (1u << PRCB_CHUNK_SHIFT)

#define PRCB_RECORD_MAX 208 /* formats 4 to 6: basic, memory and general registers */
#define PRCB_FRAMES_MAX 127
#define PRCB_TAIL_BYTES 24 /* struct prcb_sample_tail */
#define PRCB_STRIDE_MAX (PRCB_RECORD_MAX + PRCB_TAIL_BYTES + PRCB_FRAMES_MAX * 8)

/* slot.flags */
#define PRCB_SLOT_TAIL   1u
#define PRCB_SLOT_STACK  2u
#define PRCB_SLOT_MEMORY 4u /* formats 4 to 6: the memory group */
#define PRCB_SLOT_GPR    8u /* and general registers */

/* A slot is a processor's part. The first members are the library's and constant while the slot
 * is active; the counts are the program's, which runs on this processor alone. */
struct prcb_sample_slot {
    __u32 active; /* a sample runs; stored last at a start and first at a stop */
    __u32 format; /* PEBS format */
    __u32 flags;  /* PRCB_SLOT_* */
    __u32 record_bytes;
    __u32 stride; /* record, tail and frames */
    __u32 depth;
    __u32 counter; /* applicable counters: bit 0 */
    __u32 pad;
    __u64 memory;                 /* address of the memory in the caller's process */
    __u64 area;                   /* these are offsets in it: the area, */
    __u64 first, end;             /* and the part of a buffer that may be written */
    __u64 tsc, mono_ns, tsc_mult; /* the time-stamp counter at a moment of CLOCK_MONOTONIC, and its
                                    ticks a nanosecond times 2^30; 0: not known */
    __u64 written;
    __u64 lost_full;
    __u64 lost_index;
    __u64 lost_moved;
    __u64 thresholds;
    __u64 switches_lost;
};

#endif
