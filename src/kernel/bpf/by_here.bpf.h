/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Tells who is at work on this processor, in the context of a program. It is for programs that
 * know its block, which those of processors.bpf.c keep.
 */
#ifndef PRCB_BY_HERE_BPF_H
#define PRCB_BY_HERE_BPF_H

#include "kernel.bpf.h"
#include "block_abi.h"
#include "processor_abi.h"
#include <prcb/numbers.h>

#define TIMER_SOFTIRQ_   1
#define HRTIMER_SOFTIRQ_ 8

/* Returns an enum prcb_edge_by: an interrupt that has struck the processor, with its number, or
 * the current thread. Nothing is guessed where that cannot be told. block: NULL: there is none. */
static __always_inline __u32 by_here(struct prcb_processor_block *block, struct task_struct *task,
                                     __u32 *ret_vector)
{
    *ret_vector = PRCB_VECTOR_UNKNOWN;
    if (!block || block->state != PRCB_PROCESSOR_ONLINE)
        return PRCB_BY_UNKNOWN;
    /* The count is odd: what interrupts a processor program wakes, for the program itself does
     * not. */
    if (*(volatile __u32 *)&block->seq & 1 || block->hard_depth) {
        *ret_vector = block->irq == PRCB_IRQ_TICK ? 0 : block->irq;
        return block->irq == PRCB_IRQ_TICK ? PRCB_BY_TIMER : PRCB_BY_INTERRUPT;
    }
    if (block->beneath & PRCB_PROCESSOR_IN_SOFT) {
        *ret_vector = block->soft_vector;
        if (*ret_vector != TIMER_SOFTIRQ_ && *ret_vector != HRTIMER_SOFTIRQ_)
            return PRCB_BY_SOFTIRQ;
        *ret_vector = 0;
        return PRCB_BY_TIMER;
    }
    /* The idle task runs what other processors asked this one for, without an interrupt. */
    if (!task->pid)
        return PRCB_BY_INTERRUPT;
    *ret_vector = 0;
    return PRCB_BY_THREAD;
}

#endif
