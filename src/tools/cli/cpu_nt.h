/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The processors as a program written for Windows sees them: class 8 of
 * NtQuerySystemInformation, asked as such a program asks it. The calls have one view for the
 * process, so there is one struct cpu_nt.
 */
#ifndef PRCB_CLI_CPU_NT_H
#define PRCB_CLI_CPU_NT_H

#include "cpu_samples.h"

/* Asks for the first time. Returns CLI_OK, or the exit status after the error. */
int cpu_nt_open(const struct cli_command *command, const struct cpu_choice *choice, uint32_t count,
                struct cpu_nt *ret);
void cpu_nt_close(struct cpu_nt *nt);

/* Asks again; returns 0, or -EIO with words. */
int cpu_nt_take(struct cpu_nt *nt, struct prcb_error *err);
void cpu_nt_mark(struct cpu_nt *nt);

#endif
