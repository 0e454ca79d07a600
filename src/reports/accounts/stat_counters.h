/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The counters of `prcb stat -e` in words and tables.
 */
#ifndef PRCB_REPORTS_STAT_COUNTERS_H
#define PRCB_REPORTS_STAT_COUNTERS_H

#include <stdbool.h>
#include <stdio.h>

#include "account_counters.h"
#include "account_rows.h"

struct stat_report;

/* Writes a table: a line per row of the view, a column per counter. */
void stat_counters_write(FILE *out, const struct stat_report *report);
/* Writes one row on one line: "page-faults 12, instructions 1203 (37%)". */
void stat_counters_write_line(FILE *out, const struct account_counters *counters,
                              const struct account_row *row);
void stat_counters_write_notes(FILE *out, const char *prefix,
                               const struct account_counters *counters);

#endif
