/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What limits of memory do, as the kernel counts it by cgroup: read once a look, when somebody
 * asks. Only the metrics include it.
 */
#ifndef PRCB_METRICS_MEMORY_H
#define PRCB_METRICS_MEMORY_H

#include "metrics.h"

enum memory_family { MEMORY_EVENTS, MEMORY_REFAULTS, MEMORY_RECLAIMED };

struct memory;

/* NULL: there is no room. */
struct memory *memory_new(void);
/* NULL is allowed. */
void memory_free(struct memory *memory);

/* Calls fn for each sample of a family: of cgroups that are shown, and of those above with a limit.
 * None in a replay, and where the controller is not in version 2. */
void memory_each(const struct metrics *m, enum memory_family family, metrics_sample_fn *fn,
                 void *ctx);

#endif
