/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The processors as a program written for Windows sees them: class 8 of
 * NtQuerySystemInformation, asked as such a program asks it, and what changed between
 * two answers. The calls have one view for the process, so there is one of these.
 */
#ifndef PRCB_CLI_CPU_NT_H
#define PRCB_CLI_CPU_NT_H

#include <prcb/nt.h>

#include "cpu_samples.h"

struct cpu_nt {
    uint32_t count;                                               /* processors that there may be */
    SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION *start, *mark, *now; /* owned, count of each */
};

/* Asks for the first time. CLI_OK, or the exit status after the error. */
int cpu_nt_open(const struct cli_command *command, const struct cpu_choice *choice, uint32_t count,
                struct cpu_nt *ret);
void cpu_nt_close(struct cpu_nt *nt);

/* Asks again; 0 or -EIO with words. */
int cpu_nt_take(struct cpu_nt *nt, struct prcb_error *err);
void cpu_nt_mark(struct cpu_nt *nt);

/* The members that mean something, in order; NULL past the last. */
const struct prcb_nt_member *cpu_nt_member(size_t index);
/* What a member of a processor grew by. */
uint64_t cpu_nt_delta(const struct cpu_nt *nt, enum cpu_since since, uint32_t number,
                      const struct prcb_nt_member *member);
/* Its time: NT's KernelTime and UserTime have all of it between them. Nanoseconds. */
uint64_t cpu_nt_wall(const struct cpu_nt *nt, enum cpu_since since, uint32_t number);
/* Why no processor has it; NULL: they have. */
const char *cpu_nt_absent(const struct prcb_nt_member *member);

#endif
