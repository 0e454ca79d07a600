/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One report of `prcb stat`, at the end or of an interval, and the writers that
 * turn it into a table, words, values per line or JSON. A writer changes nothing
 * and leaves write errors to the stream's error flag.
 */
#ifndef PRCB_REPORTS_STAT_REPORT_H
#define PRCB_REPORTS_STAT_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <prcb/prcb.h>

#include "stat_counters.h"
#include "account_rows.h"
#include "cgroup_names.h"
#include "json_doc.h"

struct stat_idle;
struct whom;

/* The kinds of rows that a report can have. */
enum stat_rows { STAT_THREADS, STAT_PROCESSES, STAT_CGROUPS, STAT_NAMES };
struct stat_rows_kind {
    unsigned view;       /* enum account_view_kind */
    const char *id;      /* heading of the number's column; NULL: there is none */
    const char *heading; /* of the name's */
    const char *list;    /* in JSON */
};
extern const struct stat_rows_kind stat_rows_kinds[]; /* by enum stat_rows */

/* The target that was asked for, for the title. */
struct stat_profiled {
    bool all;
    const pid_t *pids, *tids;
    size_t pid_count, tid_count;
    const char *const *cgroups;
    size_t cgroup_count;
    char *const *command; /* ends with NULL; NULL: none */
};

struct stat_report {
    struct stat_profiled profiled;
    enum stat_rows rows;
    bool by_whom, interrupted; /* what was asked for beside */
    bool nt;                   /* NT's names for causes, too */
    bool owners;               /* with by_whom: who held the kernel's locks */
    const char *separator;     /* of values */
    uint64_t interval_ns;      /* 0: one report, at the end */
    struct prcb *session;      /* for tier, reasons */
    const struct prcb_status *status;
    const struct account_view *view;
    const struct account_counters *counters; /* NULL: none were asked for */
    struct cgroup_names *cgroups;            /* NULL: rows are none */
    const struct stat_idle *idle;            /* NULL: nobody looked */
    const struct whom *whom;        /* by stat_whom_group; NULL: not asked for, not known */
    const char *no_whom;            /* why by whom is not known; "": it is */
    const struct stat_tails *tails; /* NULL: not wanted, or there are none */
    const char *no_tails; /* why there are none; "": there are, or they were not asked for */
    uint64_t time_ns;     /* end of the report's time, from the start of measuring */
    uint64_t wall_ns;     /* length of it */
    uint64_t longest_gap; /* perf tier: between two looks at /proc */
    bool interval;
    bool first;       /* of all reports: headings are wanted */
    size_t number;    /* of reports before it */
    bool ended_early; /* --for ended the command */
};

/* Writes the whole table with words, legend and notes. */
void stat_table_write(FILE *out, const struct stat_report *report);
/* Writes an interval for people: one line per row. */
void stat_lines_write(FILE *out, const struct stat_report *report);
/* Writes values with a separator; in front of the first, a line that names them. If by whom was
 * asked for, it instead writes who ended waits and had processors, a line each. */
void stat_csv_write(FILE *out, const struct stat_report *report);
/* Writes one JSON object on a line. 0 or -ENOMEM. */
int stat_json_write(FILE *out, const struct stat_report *report);
/* Writes the largest figures as a brief document. 0 or -ENOMEM. */
int stat_brief_write(FILE *out, const struct stat_report *report);

/* By whom: rows know who ended their waits and had their processors. A row whose edges and
 * account differ, because threads came from elsewhere, knows nothing. */
uint64_t stat_whom_group_of(enum stat_rows rows, const struct prcb_account *account);
/* Writes by whom, for the causes that took most, all rows together: at most so many lines, and
 * one of ready time. */
void stat_whom_write(FILE *out, const struct stat_report *report, int causes);
/* Makes {"woken_by": {"futex": [...]}, "ready_behind": [...]}; NULL: not known. row: NULL: all
 * rows. */
json_object *stat_whom_json(struct json_doc *b, const struct stat_report *report,
                            const struct account_row *row);
/* Writes values with a separator: a line for each who. */
void stat_whom_csv(FILE *out, const struct stat_report *report);

/* Writes the biggest cost in plain language: a line or a few, about causes that are shown (by
 * number). */
void stat_words_write(FILE *out, const struct stat_report *report, const bool *shown);
/* Writes what the figures lack: threads not tracked, switches not reported, members that the
 * tier does not have. Each line starts with the prefix; if nothing is missing, nothing is
 * written. */
void stat_notes_write(FILE *out, const char *prefix, const struct stat_report *report);

/* Returns a row's name as it is outside: not fit to be shown as it is. */
const char *stat_row_name(const struct stat_report *report, const struct account_row *row);

/* Whether a report has a figure: some are there only where they were asked for. */
bool stat_figure_wanted(const struct stat_report *report, const struct figure *figure);
/* Says why a report lacks a figure that it should have; NULL: it does not. */
const char *stat_absent_reason(const struct stat_report *report, const struct figure *figure);

#endif
