/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One report of `prcb cpu`, of an interval or of the whole run, and the writers that
 * turn it into a table, values per line or JSON. A writer changes nothing and leaves
 * write errors to the stream's error flag.
 */
#ifndef PRCB_REPORTS_CPU_REPORT_H
#define PRCB_REPORTS_CPU_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cpu_looks.h"
#include "figures.h"

struct cpu_report {
    const struct cpu_samples *samples;
    enum cpu_since since;
    const struct cpu_nt *nt; /* its members instead of ours; NULL: ours */
    bool first;              /* of all reports: headings are wanted */
    const char *separator;
};

void cpu_table_write(FILE *out, const struct cpu_report *report);
/* Writes values; in front of the first, a line that names them. */
void cpu_csv_write(FILE *out, const struct cpu_report *report);
/* Writes one object on a line. 0 or -ENOMEM. */
int cpu_json_write(FILE *out, const struct cpu_report *report);

/* Writes the heading of a table: which processors, and how exact the times are. */
void cpu_title_write(FILE *out, const struct cpu_samples *samples, enum prcb_tier tier);
/* Writes what the figures lack, and why: the tier, figures that are absent, switches not
 * reported. Each line starts with the prefix. command: whose figures, enum figure_shown. */
void cpu_notes_write(FILE *out, const char *prefix, const struct cpu_samples *samples,
                     unsigned command);
/* Does the same for NT's members. */
void cpu_nt_notes_write(FILE *out, const char *prefix, const struct cpu_samples *samples);

/* Returns the tier that a report's figures are from. */
enum prcb_tier cpu_report_tier(const struct cpu_report *report);

/* What a report shows of each processor: a figure, or with --nt a member of NT's. */
struct cpu_member {
    const char *name;                /* as JSON and CSV have it; NULL: no more */
    const struct figure *figure;     /* a LIST: the idle states */
    const struct prcb_nt_member *nt; /* NULL: a figure */
};
struct cpu_member cpu_member_at(const struct cpu_report *report, size_t index);
/* Finds its value. Not NULL: why it is absent; *ret is 0 or means nothing. */
const char *cpu_member_get(const struct cpu_report *report, const struct cpu_member *member,
                           const struct prcb_processor *delta, uint64_t *ret);

/* Finds the names of the idle states that any chosen processor has, in order. */
#define CPU_STATES_MAX 64
struct cpu_states {
    size_t count;
    const char *names[CPU_STATES_MAX]; /* borrowed from the samples */
};
void cpu_states_collect(const struct cpu_samples *samples, struct cpu_states *ret);
/* Finds a processor's state of this name; NULL: it has none. */
const struct prcb_idle_state *cpu_state_find(const struct prcb_processor *p, const char *name);

#endif
