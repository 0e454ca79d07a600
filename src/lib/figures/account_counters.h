/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Counters put into rows of accounts. A command's threads are counted from its exec on, none
 * missed: each one's figures come when it ends, the sum is known at any time. Threads that run
 * already have a set of counters each, from when they are first seen; a set takes a descriptor
 * for each thread and event, which the program allows itself (account_counters_have_sets).
 */
#ifndef PRCB_FIGURES_ACCOUNT_COUNTERS_H
#define PRCB_FIGURES_ACCOUNT_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <prcb/prcb.h>

#include "account_rows.h"

struct account_counters;

/* One of the counters that were asked for. */
struct account_counter {
    const char *name;
    const char *source; /* "software", "hardware"; NULL: nothing counts it */
    const char *reason; /* why nothing does; NULL: something does */
};

/* Opens the counters of a list. list NULL: no counters, and *ret is NULL. family: a command is
 * counted, and follow says whether with all that it starts. -EINVAL: nobody knows a name; an event
 * that merely cannot be counted here is no failure. */
int account_counters_open(const char *list, bool family, bool follow, struct account_counters **ret,
                          struct prcb_error *err);
void account_counters_close(struct account_counters *counters, struct account_rows *rows);

/* Serves prcb_spawn_hooked; ctx is the struct account_counters. */
int account_counters_before_exec(pid_t child, void *ctx, struct prcb_error *err);

/* Is to be called ten times a second. *ret: rows should be brought up to date now, since threads
 * that are new to them wait for their counters. 0 or -errno. */
int account_counters_tick(struct account_counters *counters, bool *ret);
/* Brings the counts of all rows up to date, after the rows themselves. The beginning
 * of the measuring is the first call. all_seen: no thread can be without a row. */
int account_counters_update(struct account_counters *counters, struct account_rows *rows,
                            bool all_seen);
/* The row's account is about to be given back. */
void account_counters_released(struct account_counters *counters, struct account_row *row);
/* Sets the total's counts to what is known better than by adding the rows up: since
 * the beginning, or since the mark. */
int account_counters_total(const struct account_counters *counters, bool interval,
                           struct account_sums *total);
void account_counters_mark(struct account_counters *counters);

/* Whether threads have sets, one each. */
bool account_counters_have_sets(const struct account_counters *counters);
size_t account_counters_count(const struct account_counters *counters); /* NULL: 0 */
struct account_counter account_counters_at(const struct account_counters *counters, size_t i);

/* The count of a row if it holds one; else NULL, and why not. */
const struct event_count *account_counters_find(const struct account_counters *counters, size_t i,
                                                const struct account_row *row,
                                                const char **ret_reason);

/* What to say of the counts. */
struct account_counters_notes {
    bool short_lived_lack; /* threads of a command that ended soon: in the total alone */
    uint64_t late;         /* threads counted from when first seen */
    uint64_t lost;         /* counts of ended threads: in the total alone */
    const char *failure;   /* why some threads could not be counted; NULL: all were */
};
struct account_counters_notes account_counters_notes(const struct account_counters *counters);

#endif
