/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Holds what the account programs and user space share besides the accounts: the configuration,
 * the head page, what is asked of the registrar. Part of accounts.bpf.c.
 */
#ifndef PRCB_GLOBALS_BPF_H
#define PRCB_GLOBALS_BPF_H

#include "kernel.bpf.h"
#include "accounts.h"
#include "block_abi.h"

/* It is set before load. */
const volatile struct prcb_bpf_config config = {};
/* PRCB_FEATURE_* that the kernel allows; prcb_tell_features fills it. */
__u32 kernel_features = 0;
/* While this is set every switch samples the clock's offset, not just those of profiled threads:
 * while a session is opened. */
__u32 calibrating = 0;
/* Holds what user space asks the registrar to do, and its answer. */
struct prcb_bpf_request request = {};
/* Changes when somebody begins to ask whose threads run; 0: nobody asks. Of one process it is
 * constant: config.meanwhile. */
__u32 meanwhile_epoch = 0;
/* Names the thread whose stack in the kernel is asked for. */
struct prcb_bpf_kernel_stack kernel_stack = {};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct prcb_head_block);
} head_map SEC(".maps");

static const __u32 zero = 0;

static __always_inline struct prcb_head_block *head_block(void)
{
    return bpf_map_lookup_elem(&head_map, &zero);
}

#endif
