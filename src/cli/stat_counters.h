/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The counters of `prcb stat -e`, put into the rows. A command's threads are counted
 * from its exec on, none missed: each one's figures come when it ends, the sum is
 * known at any time. Threads named by -p, -t, --cgroup and -a have a set of counters
 * each, from when they are first seen.
 */
#ifndef PRCB_CLI_STAT_COUNTERS_H
#define PRCB_CLI_STAT_COUNTERS_H

#include <stdio.h>

#include <prcb/prcb.h>

#include "account_rows.h"

struct stat_counters;

/* One of the counters that were asked for. */
struct stat_counter {
    const char *name;
    const char *source; /* "software", "hardware"; NULL: nothing counts it */
    const char *reason; /* why nothing does; NULL: something does */
};

/* list NULL: no counters, and *ret is NULL. family: a command is counted, and follow
 * says whether with all that it starts. -EINVAL: a name that nobody knows; an event that
 * merely cannot be counted here is no failure. */
int stat_counters_open(const char *list, bool family, bool follow, struct stat_counters **ret,
                       struct prcb_error *err);
void stat_counters_close(struct stat_counters *counters, struct account_rows *rows);

/* For prcb_spawn_hooked; ctx is the struct stat_counters. */
int stat_counters_before_exec(pid_t child, void *ctx, struct prcb_error *err);

/* To be called ten times a second. *ret: rows should be brought up to date now, since
 * threads that are new to them wait for their counters. 0 or -errno. */
int stat_counters_tick(struct stat_counters *counters, bool *ret);
/* Brings the counts of all rows up to date, after the rows themselves. The beginning
 * of the measuring is the first call. all_seen: no thread can be without a row. */
int stat_counters_update(struct stat_counters *counters, struct account_rows *rows, bool all_seen);
/* The row's account is about to be given back. */
void stat_counters_released(struct stat_counters *counters, struct account_row *row);
/* Sets the total's counts to what is known better than by adding the rows up: since
 * the beginning, or since the mark. */
int stat_counters_total(const struct stat_counters *counters, bool interval,
                        struct account_sums *total);
void stat_counters_mark(struct stat_counters *counters);

size_t stat_counters_count(const struct stat_counters *counters); /* NULL: 0 */
struct stat_counter stat_counters_at(const struct stat_counters *counters, size_t i);

/* The count of a row if it holds one; else NULL, and why not. */
const struct event_count *stat_counters_find(const struct stat_counters *counters, size_t i,
                                             const struct account_row *row,
                                             const char **ret_reason);

struct account_view;
/* A table: a line per row of the view, a column per counter. */
void stat_counters_write(FILE *out, const struct stat_counters *counters,
                         const struct account_view *view, bool per_process);
/* One row on one line: "page-faults 12, instructions 1203 (37%)". */
void stat_counters_write_line(FILE *out, const struct stat_counters *counters,
                              const struct account_row *row);
void stat_counters_write_notes(FILE *out, const char *prefix, const struct stat_counters *counters);

#endif
