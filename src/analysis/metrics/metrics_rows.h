/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Options of `prcb export` and prcb-exporter that say which figures there are: rows of struct
 * cli_option for a structure with a struct metrics_options in it.
 */
#ifndef PRCB_METRICS_ROWS_H
#define PRCB_METRICS_ROWS_H

#include "metrics.h"
#include "options.h"

int metrics_take_names(struct cli_parser *parser, void *target);

/* type: the structure, member: its struct metrics_options. */
#define METRICS_AT(type, member, option) .at = offsetof(type, member.option)
/* clang-format off */
#define METRICS_ROWS(type, member)                                                                          \
    {0, "names", "NAMES", "prcb (the default), node: as node_exporter names them, windows: as\n"            \
                          "windows_exporter; several with commas",                                          \
     .at = offsetof(type, member), .take = metrics_take_names,                            \
     .choices = "prcb node windows"},                                                                       \
    {0, "per-cpu", NULL, "each processor separately, too", .kind = CLI_BITS,                                \
     METRICS_AT(type, member, optional), .min = METRICS_PER_CPU},                                           \
    {0, "per-name", NULL, "threads by name, too", .kind = CLI_BITS, METRICS_AT(type, member, optional),     \
     .min = METRICS_BY_NAME},                                                                               \
    {0, "cgroup-causes", NULL, "the waits of each cgroup by cause, not only by class, and migrations",      \
     .kind = CLI_BITS, METRICS_AT(type, member, optional), .min = METRICS_CGROUP_CAUSES},                   \
    {0, "ready-histogram", NULL, "a histogram of ready times, too", .kind = CLI_BITS,                       \
     METRICS_AT(type, member, optional), .min = METRICS_READY},                                             \
    {0, "by-whom", NULL, "which cgroups had the processors, or the kernel's locks, that others waited for, too",        \
     .kind = CLI_BITS, METRICS_AT(type, member, optional), .min = METRICS_BY_WHOM},                         \
    {0, "containers", NULL, "names of containers, pods and images, from local files, too",                  \
     .kind = CLI_BITS, METRICS_AT(type, member, optional), .min = METRICS_CONTAINERS},                      \
    {0, "memory", NULL, "what limits of memory do to each cgroup, too", .kind = CLI_BITS,                   \
     METRICS_AT(type, member, optional), .min = METRICS_MEMORY},                                            \
    {0, "max-cgroups", "N", "series for at most N cgroups, the busiest (default 500)",                  \
     .kind = CLI_NUMBER, METRICS_AT(type, member, max_cgroups), .min = 1, .max = 1000000},                  \
    {0, "max-names", "N", "series for at most N names (default 200)", .kind = CLI_NUMBER,                   \
     METRICS_AT(type, member, max_names), .min = 1, .max = 1000000},                                        \
    {0, "cgroup-include", "REGEX", "only cgroups whose path matches", .kind = CLI_TEXT,                     \
     METRICS_AT(type, member, include), .what = "the expression is empty"},                                 \
    {0, "cgroup-exclude", "REGEX", "no cgroups whose path matches", .kind = CLI_TEXT,                       \
     METRICS_AT(type, member, exclude), .what = "the expression is empty"},                                 \
    {0, "max-threads", "N", "room for N threads at one time (default 16384)", .kind = CLI_NUMBER,           \
     METRICS_AT(type, member, max_threads), .min = 1, .max = 1u << 22}
/* clang-format on */

#endif
