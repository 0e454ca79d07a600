/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * What the kernel itself counted of each thread of a process, read when the thread has made
 * its last switch and its memory is given back. No program here looks at a switch.
 */
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license")
= "Dual BSD/GPL";

struct sched_entity {
    __u64 sum_exec_runtime;
} __attribute__((preserve_access_index));

struct task_struct {
    int pid;
    int tgid;
    unsigned long nvcsw;
    unsigned long nivcsw;
    struct sched_entity se;
    char comm[16];
} __attribute__((preserve_access_index));

/* The process, by its number outside of any pid namespace. */
int watched = 0;
/* How many of its threads are in the map. */
__u32 ended = 0;

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 8192);
    __type(key, __u32);   /* tid */
    __type(value, __u64); /* switches */
} switches SEC(".maps");

SEC("tp_btf/sched_process_free")
int watch_ends(__u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0];
    __u32 tid = task->pid;
    __u64 count = task->nvcsw + task->nivcsw;

    if (task->tgid == watched && !bpf_map_update_elem(&switches, &tid, &count, BPF_NOEXIST))
        __sync_fetch_and_add(&ended, 1);
    return 0;
}

/* Threads of a name, of any process: sums. */
__u64 watched_name[2] = {0};
__u64 name_ended = 0, name_switches = 0, name_run_ns = 0;

SEC("tp_btf/sched_process_free")
int sum_ends(__u64 *ctx)
{
    struct task_struct *task = (void *)ctx[0];
    __u64 name[2];

    if (!watched_name[0] || bpf_probe_read_kernel(name, sizeof(name), task->comm) ||
        name[0] != watched_name[0] || name[1] != watched_name[1])
        return 0;
    __sync_fetch_and_add(&name_switches, task->nvcsw + task->nivcsw);
    __sync_fetch_and_add(&name_run_ns, task->se.sum_exec_runtime);
    __sync_fetch_and_add(&name_ended, 1);
    return 0;
}
