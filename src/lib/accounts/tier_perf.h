/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The perf tier's way in for tests: a session over a recorded tree. Programs reach
 * the tier through session.h's table.
 */
#ifndef PRCB_ACCOUNTS_TIER_PERF_H
#define PRCB_ACCOUNTS_TIER_PERF_H

#include "session.h"

/* Opens the tier. root: "/proc", or a directory with the same files. live: the root is this
 * system's /proc, so threads of this process may be asked for by system calls. On failure the
 * tier's close takes what there is. */
int tier_perf_open_at(struct prcb *p, const char *root, bool live, struct prcb_error *err);

#endif
