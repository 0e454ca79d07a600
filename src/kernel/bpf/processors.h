/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Defines what user space tells the processor programs before they are loaded: processors.bpf.c
 * and the code that loads it share it, in one build. The format is not stable.
 */
#ifndef PRCB_PROCESSORS_BPF_H
#define PRCB_PROCESSORS_BPF_H

#include <linux/types.h>

#define PRCB_IRQ_STAT_WORDS 32
#define PRCB_NO_OFFSET      0xffffffffffffffffull

/* The configuration is constant once it is loaded. Offsets are those of the kernel's
 * per-processor variables within their section, from BTF; PRCB_NO_OFFSET: the kernel has no such
 * variable. */
struct prcb_processors_config {
    __u64 runqueues;
    __u64 cpustat;  /* the array in kernel_cpustat */
    __u64 irqs_sum; /* in kstat */
    __u64 irq_stat;
    __u32 irq_stat_words; /* bit i: its i-th word counts interrupts */
    __u32 pad;
};

/* Counts a processor's interrupts by the kernel's counters. Those that have a vector are counted
 * in many words of 32 bits: so is their sum, which wraps as they do. */
struct prcb_interrupts {
    __u64 numbered;
    __u32 vectors;
    __u32 pad;
};

/* Returns how many came between two looks, of which there is one at each interrupt. */
static inline __u64 prcb_interrupts_grown(const struct prcb_interrupts *before,
                                          const struct prcb_interrupts *now)
{
    return now->numbered - before->numbered + (__u32)(now->vectors - before->vectors);
}

#endif
