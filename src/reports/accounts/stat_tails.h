/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How long waits and ready time took each time, of all threads of a session (prcb/tails.h).
 */
#ifndef PRCB_REPORTS_STAT_TAILS_H
#define PRCB_REPORTS_STAT_TAILS_H

#include <stdbool.h>
#include <stdio.h>

#include <json-c/json.h>
#include <prcb/tails.h>

#include "json_doc.h"

/* By cause. The longest of an interval is known where it is the longest of all; else max_ns is
 * that, which it is not above. */
struct stat_tails {
    struct prcb_tail tail[PRCB_CAUSE_MAX];
    bool longest_known[PRCB_CAUSE_MAX];
};

/* To be freed; NULL: no memory. */
struct stat_tails *stat_tails_read(struct prcb *session);
/* From `before` to `now`: *now is changed into it. */
void stat_tails_since(struct stat_tails *now, const struct stat_tails *before);

/* A line a cause: how often, the median and p99 as the bounds that they lie between, the longest.
 */
void stat_tails_write(FILE *out, const struct stat_tails *tails);

/* {"ready": {...}, "futex": {...}} with the buckets that are not empty. */
json_object *stat_tails_json(struct json_doc *json, const struct stat_tails *tails);

#endif
