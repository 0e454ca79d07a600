/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Who starves whom: the ready time of each cgroup by the cgroups that had the processors, of
 * metrics that were opened with METRICS_BY_WHOM. Names of cgroups are hostile, and made safe here.
 */
#ifndef PRCB_REPORTS_NEIGHBOURS_H
#define PRCB_REPORTS_NEIGHBOURS_H

#include <stdint.h>
#include <stdio.h>

#include "metrics.h"

struct neighbours_view {
    uint64_t ns;  /* for how long it was counted */
    uint64_t top; /* rows of the table; 0: all */
};

/* As a matrix that fits the terminal. 0 or -ENOMEM. */
int neighbours_table(FILE *out, const struct metrics *m, const struct neighbours_view *view);
int neighbours_json(FILE *out, const struct metrics *m, const struct neighbours_view *view);
/* A line of values for each pair. */
int neighbours_csv(FILE *out, const struct metrics *m, const char *separator);

#endif
