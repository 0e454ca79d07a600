/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A waiting thread's registers and the top of its stack, copied while it waits: without ptrace,
 * and without stopping the thread. The caller has to prove that both belong to one wait: a
 * thread whose switch count is the same before and after did not run, and a thread that does not
 * run does not change its stack.
 *
 * Access   The kernel's ptrace rule for the caller itself (PTRACE_MODE_ATTACH): one's own
 *          processes, under Yama's ptrace_scope 1 only descendants.
 * Threads  One copy by one thread at a time.
 */
#ifndef PRCB_STACK_FROZEN_H
#define PRCB_STACK_FROZEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What an unwinder starts from. 0: not known. */
struct frozen_registers {
    uint64_t pc, sp;
    uint64_t fp; /* x86-64: rbp; arm64: x29 */
    uint64_t lr; /* arm64: x30 */
};

struct runtime_node; /* runtimes.h */

#define FROZEN_AUXV      64 /* words */
#define FROZEN_REGISTERS 32 /* x86-64: 16; arm64: 32 */

struct frozen {
    struct frozen_registers at;
    /* All of a thread that ran, by their numbers in DWARF: 0 is then a value like any other. NULL:
     * no more is known than `at`. */
    const uint64_t *registers;
    uint64_t low;         /* address of bytes[0]: the stack pointer, less the red zone */
    size_t length;        /* bytes copied: fewer than asked for where the stack ends */
    unsigned char *bytes; /* room bytes; frozen_deinit frees them */
    size_t room;
    /* Frames of its interpreter, which were copied with it; 0: none were. They are borrowed. */
    const struct runtime_node *nodes;
    uint32_t node_count;
    bool whole;
    uint64_t began_ns;
    uint64_t auxv[FROZEN_AUXV]; /* of its program, as it was right before the copy */
    ssize_t auxv_length;        /* bytes; -errno: not known */
};

/* Reads the registers as procfs shows them (only pc and sp). -EAGAIN the thread runs; -ESRCH it
 * has ended; -EPERM no ptrace access; -EOPNOTSUPP the kernel has no such file
 * (CONFIG_HAVE_ARCH_TRACEHOOK); -EPROTO the file has an unknown form */
int frozen_registers_read(pid_t pid, pid_t tid, struct frozen_registers *ret);

/* Copies up to want bytes of the stack from `at` on. ret keeps its buffer from call to call; it
 * is all zero at first. -EPERM, -ESRCH, -ENOMEM, -EFAULT: sp does not point into memory. */
int frozen_copy(pid_t tid, const struct frozen_registers *at, size_t want, struct frozen *ret);
void frozen_deinit(struct frozen *frozen);

#endif
