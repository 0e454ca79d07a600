/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Defines the sequence count that keeps a block's readers from seeing half an update:
 * writer and reader side by side. There is one writer at a time (the processor that
 * switches the thread), and any number of readers, none of which may write.
 *
 * The count is odd while the block is being written. A reader copies the block
 * between two loads of the count and uses the copy only if both loads gave the
 * same even number.
 *
 * These are the orderings, by number, each a pair:
 *  (1) the writer's store of the odd count is seen before any of its stores to
 *      the block; pairs with (4)
 *  (2) all stores to the block are seen before the store of the even count;
 *      pairs with (3)
 *  (3) the reader's first load of the count comes before its loads of the block:
 *      if it saw the even count of (2), it sees that update's stores
 *  (4) the reader's loads of the block come before its second load of the count:
 *      if one of them saw a store of a later update, the second load sees that
 *      update's odd count of (1), or a later one, and the copy is thrown away
 *
 * A reader on the writer's own thread (a thread that reads its own account) needs
 * no more than this: it does not run while the writer does, and being switched
 * out in between shows as a changed count.
 */
#ifndef PRCB_SEQCOUNT_ABI_H
#define PRCB_SEQCOUNT_ABI_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define prcb_seq_barrier() __asm__ volatile("" ::: "memory")

#ifdef __BPF__
/* ---- writer, as an eBPF program ----
 *
 * x86: stores become visible in program order (TSO), so (1) and (2) ask only that
 * the compiler keeps that order, which it does for volatile stores and a barrier;
 * the JIT emits them one to one. Elsewhere (arm64) nothing is ordered by itself,
 * and eBPF of this age has neither a release store nor a fence. An exchange (5.12)
 * is fully ordered, both ways, on every architecture the kernel supports, like the
 * kernel's own xchg(), which gives (1) and (2) at once; arm64's JIT makes it swpal,
 * or a loop of ldxr and stlxr with a dmb ish after it. Clang takes it for sequentially
 * consistent and moves nothing across. An atomic add is not so: without a use of its
 * result it has no order at all. */
static __attribute__((always_inline)) inline void prcb_seq_begin(__u32 *seq, __u32 even)
{
#if defined(__TARGET_ARCH_x86)
    *(volatile __u32 *)seq = even + 1; /* (1) */
    prcb_seq_barrier();
#else
    __sync_lock_test_and_set(seq, even + 1); /* (1) */
#endif
}

/* Does the same for a writer that can be interrupted by another, just before it begins: the
 * caller has seen the count even, and who interrupts it leaves it even, but higher. To store a
 * count loaded earlier would set it back, and a reader could then find the same one before and
 * after an update. An atomic add whose result is used is fully ordered everywhere, like the
 * exchange. Returns the even count. */
static __attribute__((always_inline)) inline __u32 prcb_seq_begin_shared(__u32 *seq)
{
    return __sync_fetch_and_add(seq, 1); /* (1) */
}

static __attribute__((always_inline)) inline void prcb_seq_end(__u32 *seq, __u32 even)
{
#if defined(__TARGET_ARCH_x86)
    prcb_seq_barrier();
    *(volatile __u32 *)seq = even + 2; /* (2) */
#else
    __sync_lock_test_and_set(seq, even + 2); /* (2) */
#endif
}

#else
/* ---- writer, in user space: for the test that races it against the reader ---- */
static inline void prcb_seq_begin(__u32 *seq, __u32 even)
{
    __atomic_store_n(seq, even + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE); /* (1) orders the count before what follows */
}

static inline void prcb_seq_end(__u32 *seq, __u32 even)
{
    __atomic_store_n(seq, even + 2, __ATOMIC_RELEASE); /* (2) */
}

/* ---- reader ---- */

/* (3) is an acquire load. On x86 it is a plain load. */
static inline __u32 prcb_seq_read_begin(const __u32 *seq)
{
    return __atomic_load_n(seq, __ATOMIC_ACQUIRE);
}

/* (4) is this fence: it orders the relaxed loads of the block before the load of the count. On
 * x86 it is a compiler barrier; on arm64 dmb ishld. Returns true if the copy must be thrown
 * away. */
static inline int prcb_seq_read_retry(const __u32 *seq, __u32 begin)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return (begin & 1) || __atomic_load_n(seq, __ATOMIC_RELAXED) != begin;
}

/* Copies whole 64-bit words of a block between the two calls above. The loads are
 * relaxed atomics, so that a word is never torn and a race is no data race. */
static inline void prcb_seq_copy(void *to, const void *from, __u32 bytes)
{
    __u64 *t = (__u64 *)to;
    const __u64 *f = (const __u64 *)from;

    for (__u32 i = 0; i < bytes / 8; i++)
        t[i] = __atomic_load_n(&f[i], __ATOMIC_RELAXED);
}
#endif
#endif
