/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How long each wait and each stretch of ready time took, of all threads of a session
 * (prcb/tails.h).
 */
#ifndef PRCB_REPORTS_STAT_TAILS_H
#define PRCB_REPORTS_STAT_TAILS_H

#include <stdbool.h>
#include <stdio.h>

#include <json-c/json.h>
#include <prcb/tails.h>

#include "json_doc.h"

/* By cause. The longest of an interval is known if it is the longest of all; else max_ns is that
 * of all, and the interval's is not above it. */
struct stat_tails {
    struct prcb_tail tail[PRCB_CAUSE_MAX];
    bool longest_known[PRCB_CAUSE_MAX];
};

/* Returns the tails, for the caller to free; NULL: no memory. */
struct stat_tails *stat_tails_read(struct prcb *session);
/* Changes *now into the difference from `before` to `now`. */
void stat_tails_since(struct stat_tails *now, const struct stat_tails *before);

/* Writes a line for each cause: how often, the median and p99 as the bounds that they lie
 * between, the longest. */
void stat_tails_write(FILE *out, const struct stat_tails *tails);

/* Makes {"ready": {...}, "futex": {...}} with the buckets that are not empty. */
json_object *stat_tails_json(struct json_doc *json, const struct stat_tails *tails);

#endif
