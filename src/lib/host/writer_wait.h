/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Makes consistent copies of blocks, and limits how long a reader waits for a writer in the
 * middle of an update.
 */
#ifndef PRCB_HOST_WRITER_WAIT_H
#define PRCB_HOST_WRITER_WAIT_H

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "now.h"
#include "seqcount_abi.h"

#define WRITER_GIVE_UP_NS 20000000ull
#define WRITER_SPINS      1000

/* A writer takes a microsecond, unless a hypervisor took its processor away in the middle:
 * yields once, then waits a bounded time. pass counts from 1; *deadline is 0 before the first.
 * False: the time is over. */
static inline bool writer_wait(uint32_t pass, uint64_t *deadline)
{
    if (pass % WRITER_SPINS)
        return true;
    if (!*deadline) {
        *deadline = now_ns() + WRITER_GIVE_UP_NS;
        sched_yield();
        return true;
    }
    return now_ns() <= *deadline;
}

/* Says what to copy of a block: whole 64-bit words. */
struct seq_part {
    void *to;
    const void *from;
    uint32_t bytes;
};

/* Copies parts that are written under one count, as of one moment. 0 or -EAGAIN: inconsistent for
 * WRITER_GIVE_UP_NS. *retries grows by the passes thrown away. Inlined, for callers know the sizes.
 */
static inline __attribute__((always_inline)) int seq_copy_parts(const uint32_t *seq,
                                                                const struct seq_part *parts,
                                                                unsigned int count,
                                                                uint32_t *retries)
{
    uint64_t deadline = 0;

    for (uint32_t pass = 1;; pass++) {
        uint32_t begin = prcb_seq_read_begin(seq);

        if (!(begin & 1)) {
            for (unsigned int i = 0; i < count; i++)
                prcb_seq_copy(parts[i].to, parts[i].from, parts[i].bytes);
            if (!prcb_seq_read_retry(seq, begin))
                return 0;
        }
        ++*retries;
        if (!writer_wait(pass, &deadline))
            return -EAGAIN;
    }
}

#endif
