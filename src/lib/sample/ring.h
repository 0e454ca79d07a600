/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The reading end of one BPF ring buffer. libbpf's own reader stops only at errors and
 * does not tell how much there is.
 */
#ifndef PRCB_SAMPLE_RING_H
#define PRCB_SAMPLE_RING_H

#include <stddef.h>
#include <stdint.h>

struct ring {
    int fd; /* the map, which poll(2) takes; -1: none */
    size_t bytes;
    uint64_t *consumer;       /* read so far: its own page, written here */
    const uint64_t *producer; /* written so far: its own page, then the data twice */
    const uint8_t *data;
};

/* Opens a ring. bytes: a power of two, a page at least. -errno. */
int ring_make(size_t bytes, struct ring *ret);
void ring_close(struct ring *ring);
/* Calls fn for each record; stops at its first non-zero return and returns it. */
int ring_read(struct ring *ring, int (*fn)(const void *record, size_t bytes, void *ctx), void *ctx);
/* Throws all away that is there. */
void ring_skip(struct ring *ring);

#endif
