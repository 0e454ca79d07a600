/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * The yardsticks of bench_switch: what any program at a context switch, and at a wake, costs on
 * this machine before it does anything.
 */
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license")
= "Dual BSD/GPL";

SEC("tp_btf/sched_switch")
int bench_empty(__u64 *ctx)
{
    return 0;
}

/* No memory, no calls, no branches: what the length of a program costs, in it and, for the code
 * that it takes out of the processor's caches, behind it. */
SEC("tp_btf/sched_switch")
int bench_additions(__u64 *ctx)
{
    asm volatile("r2 = 0\n"
                 "r3 = 0\n"
                 ".rept 1000\n"
                 "r2 += 1\n"
                 "r3 += 1\n"
                 ".endr" ::
                     : "r2", "r3");
    return 0;
}

SEC("tp_btf/sched_waking")
int bench_empty_waking(__u64 *ctx)
{
    return 0;
}
