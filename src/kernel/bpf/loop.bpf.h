/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A loop whose body the verifier looks at once: the kernel's helper where it has one (5.17), and
 * where it has none, a loop of our own, which the verifier follows pass by pass. The kernel's
 * types tell, and what is not taken is not looked at.
 */
#ifndef PRCB_BPF_LOOP_BPF_H
#define PRCB_BPF_LOOP_BPF_H

/* Helpers that a kernel may be without; the numbers are those of <linux/bpf.h>. */
enum bpf_func_id___asked {
    BPF_FUNC_task_pt_regs___asked = 175,
    BPF_FUNC_loop___asked = 181,
};

#define HAS_HELPER(name)                                                                           \
    bpf_core_enum_value_exists(enum bpf_func_id___asked, BPF_FUNC_##name##___asked)

/* most: the greatest that count can be, a constant. body(i, ctx): not 0 ends it. */
#define EACH(most, count, body, ctx)                                                               \
    do {                                                                                           \
        if (HAS_HELPER(loop)) {                                                                    \
            bpf_loop(count, body, ctx, 0);                                                         \
        } else {                                                                                   \
            _Pragma("clang loop unroll(disable)") for (__u32 each_ = 0; each_ < (most); each_++)   \
            {                                                                                      \
                if (each_ >= (count) || body(each_, ctx))                                          \
                    break;                                                                         \
            }                                                                                      \
        }                                                                                          \
    } while (0)

#endif
