/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How long waits and ready time took each time, of all threads of a session (prcb/tails.h).
 */
#ifndef PRCB_REPORTS_STAT_TAILS_H
#define PRCB_REPORTS_STAT_TAILS_H

#include <stdio.h>

#include <json-c/json.h>
#include <prcb/prcb.h>

#include "json_doc.h"

/* A line a cause: how often, the median and p99 as the bounds that they lie between, the longest.
 */
void stat_tails_write(FILE *out, struct prcb *session);

/* {"ready": {...}, "futex": {...}} with the buckets that are not empty. */
json_object *stat_tails_json(struct json_doc *json, struct prcb *session);

#endif
