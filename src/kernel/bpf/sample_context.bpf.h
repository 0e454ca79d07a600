/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * What a program on a perf event is told: the registers that the event interrupted.
 */
#ifndef PRCB_SAMPLE_CONTEXT_BPF_H
#define PRCB_SAMPLE_CONTEXT_BPF_H

#include "kernel.bpf.h"

/* This is the context of a program on a perf event: struct bpf_perf_event_data, whose registers
 * are 8 bytes each here whatever the kernel's headers declare (the verifier takes no narrower
 * reads). */
#if defined(__TARGET_ARCH_x86)
#define CONTEXT_REGISTERS 21
enum {
    R15,
    R14,
    R13,
    R12,
    BP,
    BX,
    R11,
    R10,
    R9,
    R8,
    AX,
    CX,
    DX,
    SI,
    DI,
    ORIG_AX,
    IP,
    CS,
    FLAGS,
    SP,
    SS
};
#elif defined(__TARGET_ARCH_arm64)
#define CONTEXT_REGISTERS 34
/* These are the frame pointer, the stack pointer and where it was; x86's other registers have no
 * counterpart. */
enum { BP = 29, SP = 31, IP = 32, PSTATE = 33 };
#endif

struct sample_context {
    __u64 registers[CONTEXT_REGISTERS];
    __u64 period;
    __u64 address;
};

#define REGISTER(ctx, name) (*(volatile __u64 *)&(ctx)->registers[name])

static __always_inline bool in_kernel(struct sample_context *ctx)
{
#if defined(__TARGET_ARCH_x86)
    return !(REGISTER(ctx, CS) & 3);
#else
    return REGISTER(ctx, PSTATE) & 0xc;
#endif
}

#endif
