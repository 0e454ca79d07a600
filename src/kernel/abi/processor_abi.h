/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Defines the processor blocks in mapped memory: one array whose element 0 is a head and whose
 * element 1 + n belongs to processor n of the possible ones. The eBPF programs of
 * processors.bpf.c write it, the library reads it; nobody else may write to it once the programs
 * are attached, so that it can be frozen and handed to whoever may look at it. It holds no
 * kernel address.
 *
 * A reader takes sizes and strides from the head, not from sizeof, and refuses another major
 * version: an old reader works with a newer writer that appended members.
 *
 * Which thread runs on each processor is in a second array, for it tells more than times: when a
 * thread of somebody else's wakes up. So the two can be handed out apart.
 *
 * Stamps are CLOCK_MONOTONIC, as the programs read it, but for `since`, whose clock is told
 * there.
 */
#ifndef PRCB_PROCESSOR_ABI_H
#define PRCB_PROCESSOR_ABI_H

#include "block_abi.h"

#define PRCB_PROCESSOR_MAGIC 0x50435250u /* "PRCP" */
#define PRCB_PROCESSOR_MAJOR 2
#define PRCB_PROCESSOR_MINOR 1

/* processor_head.features: what the kernel let the programs see */
#define PRCB_PROCESSOR_HARD       (1u << 0) /* hard interrupts: device handlers */
#define PRCB_PROCESSOR_VECTORS    (1u << 1) /* and the processor's own: timer, IPIs */
#define PRCB_PROCESSOR_SOFT       (1u << 2) /* softirqs */
#define PRCB_PROCESSOR_CPUSTAT    (1u << 3) /* the kernel's tick counters: user, kernel, steal */
#define PRCB_PROCESSOR_INTERRUPTS (1u << 4) /* the kernel's interrupt counters */
#define PRCB_PROCESSOR_RQ_CLOCK   (1u << 5) /* since is of the run-queue clock */
#define PRCB_PROCESSOR_HOTPLUG    (1u << 6) /* going off and on line is seen */
#define PRCB_PROCESSOR_SWITCHES   (1u << 7) /* the kernel's own count of switches */

/* processor_block.state */
#define PRCB_PROCESSOR_UNSEEN  0 /* has not run since the programs were attached: all is 0 */
#define PRCB_PROCESSOR_ONLINE  1
#define PRCB_PROCESSOR_OFFLINE 2 /* since `stamp` */

/* processor_block.beneath: what goes on below the interrupts */
#define PRCB_PROCESSOR_IN_SOFT 1
#define PRCB_PROCESSOR_IN_IDLE 2

/* processor_block.irq, where it is no interrupt number */
#define PRCB_IRQ_VECTOR 0xffffffffu /* one of the processor's own: IPIs */
#define PRCB_IRQ_TICK   0xfffffffeu /* the local timer */

#define PRCB_PROCESSOR_IDLE_STATES 16
#define PRCB_IDLE_STATE_UNKNOWN    0xffffffffu

struct prcb_idle_cell {
    __u64 entries;
    __u64 ns; /* closed stretches in it, interrupts left out */
};

/* Describes one processor. That processor alone writes it, under seq, but while it is off line:
 * then the one does that takes it off or brings it back.
 *
 * The present stretch goes on since `stamp`. It belongs to one state: hard interrupt if
 * hard_depth > 0, else softirq or idle as `beneath` says, else task. A program itself can be
 * interrupted in the middle of an update; what the interrupt takes goes to nested_ns instead, and
 * is taken from the stretch it fell into when that is closed: the part of it that has not been is
 * nested_ns - folded_ns. So, of a consistent copy at the moment now,
 *     pending = min(nested_ns - folded_ns, now - stamp)
 *     interrupt_ns + pending, and (now - stamp - pending) more of the present state
 * and interrupt + dpc + idle + busy + user + kernel + steal + what is open
 *     == now - started - offline_ns, exactly. */
struct prcb_processor_block {
    /* -- line 0: each transition -- */
    __u32 seq;        /* sequence count: odd while being written (seqcount_abi.h) */
    __u8 state;       /* PRCB_PROCESSOR_* */
    __u8 beneath;     /* PRCB_PROCESSOR_IN_* */
    __u16 hard_depth; /* hard interrupts within each other */
    __u64 stamp;
    __u64 nested_ns; /* grows while seq is odd only */
    __u64 folded_ns;
    __u64 interrupt_ns;
    __u64 dpc_ns;
    __u64 idle_ns;
    __u64 busy_ns; /* of tasks, since the last tick: not yet shared out */
    /* -- line 1: each tick, idle -- */
    __u64 user_ns; /* of tasks, by the tick rule */
    __u64 kernel_ns;
    __u64 steal_ns;
    __u64 started;    /* stamp at which it all begins */
    __u64 offline_ns; /* closed stretches off line */
    __u32 user_share; /* of user_ns in user_ns + kernel_ns, times 65536: what busy_ns is likely */
    __u32 idle_state; /* while IN_IDLE: index as cpuidle counts; PRCB_IDLE_STATE_UNKNOWN */
    __u64 interrupts; /* by the kernel's counters, since started, at the last interrupt's end */
    __u64 dpcs;
    /* -- line 2: each switch -- */
    __u64 switches; /* by the kernel's counter, since started */
    __u64 seen;     /* of these, reported to the programs */
    /* These tell which interrupts go on, since 2.1. They are not under seq, for they serve
     * programs on the processor itself. */
    __u32 irq;         /* number of the hard interrupt, PRCB_IRQ_TICK or PRCB_IRQ_VECTOR */
    __u32 soft_vector; /* of the softirq */
    __u64 pad1;
    __s64 clock_offset; /* CLOCK_MONOTONIC less this processor's run-queue clock, the least seen
                           in about a second; PRCB_OFFSET_UNKNOWN before the first tick */
    __u64 idle_entries;
    __u64 pad2[2];
    /* -- idle states, as the kernel counts them: cpuidle's indices; without cpuidle 1, and 0
     * where it polls -- */
    struct prcb_idle_cell idle[PRCB_PROCESSOR_IDLE_STATES];
    __u64 pad3[8];
};

/* Element n of the second array is the thread on processor n. That processor writes it at each
 * switch, under the seq of its block. Each takes a cache line. */
struct prcb_processor_thread {
    __u64 since; /* when it got the processor: run-queue clock, or as features say */
    __u32 tid;   /* in the first pid namespace; 0: the idle task */
    __u32 pad;
    __u64 pad1[6];
};

/* Element 0 is written before any program is attached, but for `ended`. */
struct prcb_processor_head {
    __u32 magic;
    __u16 abi_major;
    __u16 abi_minor;
    __u32 head_size; /* sizeof, here and below: what the writer knows */
    __u32 block_size;
    __u32 block_stride; /* bytes from one element to the next, head included */
    __u32 count;        /* processors: elements 1 .. count */
    __u32 features;     /* PRCB_PROCESSOR_* bits */
    __u32 writer_pid;   /* who loaded the programs */
    char writer[16];    /* library version */
    __u64 ended;        /* stamp: the programs were given up and are detached a while after; 0:
                           they count */
    __u64 pad[57];
};

/* clang-format off */
PRCB_ABI_SIZE(prcb_processor_block, 512);
PRCB_ABI_SIZE(prcb_processor_head, 512);
PRCB_ABI_SIZE(prcb_idle_cell, 16);
PRCB_ABI_SIZE(prcb_processor_thread, 64);
PRCB_ABI_AT(prcb_processor_thread, tid, 8);
PRCB_ABI_AT(prcb_processor_block, state, 4);
PRCB_ABI_AT(prcb_processor_block, beneath, 5);
PRCB_ABI_AT(prcb_processor_block, hard_depth, 6);
PRCB_ABI_AT(prcb_processor_block, stamp, 8);
PRCB_ABI_AT(prcb_processor_block, nested_ns, 16);
PRCB_ABI_AT(prcb_processor_block, folded_ns, 24);
PRCB_ABI_AT(prcb_processor_block, interrupt_ns, 32);
PRCB_ABI_AT(prcb_processor_block, dpc_ns, 40);
PRCB_ABI_AT(prcb_processor_block, idle_ns, 48);
PRCB_ABI_AT(prcb_processor_block, busy_ns, 56);
PRCB_ABI_AT(prcb_processor_block, user_ns, 64);
PRCB_ABI_AT(prcb_processor_block, kernel_ns, 72);
PRCB_ABI_AT(prcb_processor_block, steal_ns, 80);
PRCB_ABI_AT(prcb_processor_block, started, 88);
PRCB_ABI_AT(prcb_processor_block, offline_ns, 96);
PRCB_ABI_AT(prcb_processor_block, user_share, 104);
PRCB_ABI_AT(prcb_processor_block, idle_state, 108);
PRCB_ABI_AT(prcb_processor_block, interrupts, 112);
PRCB_ABI_AT(prcb_processor_block, dpcs, 120);
PRCB_ABI_AT(prcb_processor_block, switches, 128);
PRCB_ABI_AT(prcb_processor_block, seen, 136);
PRCB_ABI_AT(prcb_processor_block, irq, 144);
PRCB_ABI_AT(prcb_processor_block, clock_offset, 160);
PRCB_ABI_AT(prcb_processor_block, idle_entries, 168);
PRCB_ABI_AT(prcb_processor_block, idle, 192);
PRCB_ABI_AT(prcb_processor_head, head_size, 8);
PRCB_ABI_AT(prcb_processor_head, block_stride, 16);
PRCB_ABI_AT(prcb_processor_head, count, 20);
PRCB_ABI_AT(prcb_processor_head, features, 24);
PRCB_ABI_AT(prcb_processor_head, writer, 32);
PRCB_ABI_AT(prcb_processor_head, ended, 48);
/* clang-format on */

#endif
