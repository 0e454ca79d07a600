/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Looks at the processors, of which reports are made: their records at the start, at the mark
 * before and now, ours and NT's, and what changed between two of them. The caller that looks
 * fills them in.
 */
#ifndef PRCB_REPORTS_CPU_LOOKS_H
#define PRCB_REPORTS_CPU_LOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <prcb/nt.h>
#include <prcb/processors.h>

/* The record that a difference starts from. */
enum cpu_since { CPU_SINCE_MARK, CPU_SINCE_START };

struct cpu_samples {
    struct prcb_processors *view;
    uint32_t count; /* possible processors */
    bool recorded;  /* another machine than this */
    bool *chosen;
    struct prcb_processor *start, *mark, *now; /* count of each */
    uint64_t start_ns, mark_ns, now_ns;        /* CLOCK_MONOTONIC of the looks */
};

/* Finds what a processor did since then; *ret is a record of differences, except its present
 * values (flags, frequency, idle state), which are as they are now. */
void cpu_samples_delta(const struct cpu_samples *s, enum cpu_since since, uint32_t number,
                       struct prcb_processor *ret);
uint64_t cpu_samples_wall(const struct cpu_samples *s, enum cpu_since since);

/* Returns the next processor that was chosen, from number on; count: no further one. */
uint32_t cpu_samples_next(const struct cpu_samples *s, uint32_t number);

/* ---- as NT has them: class 8 of NtQuerySystemInformation ---- */

struct cpu_nt {
    uint32_t count;                                               /* processors that there may be */
    SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION *start, *mark, *now; /* owned, count of each */
};

/* Returns the members that mean something, in order; NULL past the last. */
const struct prcb_nt_member *cpu_nt_member(size_t index);
/* Returns by how much a member of a processor grew. */
uint64_t cpu_nt_delta(const struct cpu_nt *nt, enum cpu_since since, uint32_t number,
                      const struct prcb_nt_member *member);
/* Returns its time: NT's KernelTime and UserTime have all of it between them. Nanoseconds. */
uint64_t cpu_nt_wall(const struct cpu_nt *nt, enum cpu_since since, uint32_t number);
/* Says why no processor has it; NULL: they have. */
const char *cpu_nt_absent(const struct prcb_nt_member *member);

#endif
