/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Which helpers a kernel has, as its types tell: what is not taken is not looked at.
 */
#ifndef PRCB_BPF_HELPERS_BPF_H
#define PRCB_BPF_HELPERS_BPF_H

/* Helpers that a kernel may be without; the numbers are those of <linux/bpf.h>. */
enum bpf_func_id___asked {
    BPF_FUNC_task_pt_regs___asked = 175,
};

#define HAS_HELPER(name)                                                                           \
    bpf_core_enum_value_exists(enum bpf_func_id___asked, BPF_FUNC_##name##___asked)

#endif
