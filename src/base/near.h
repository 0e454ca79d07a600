/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Names near a mistyped one, for error texts. Not a search: the caller offers every candidate.
 * Caller-owned, no allocation.
 */
#ifndef PRCB_BASE_NEAR_H
#define PRCB_BASE_NEAR_H

#include <stddef.h>

#define NEAR_NAMES 3

struct near {
    const char *name[NEAR_NAMES]; /* nearest first; borrowed from near_offer's caller */
    unsigned int distance[NEAR_NAMES];
    size_t count;
};

/* Keeps the candidate if it is among the nearest to `wanted` and near at all. */
void near_offer(struct near *near, const char *wanted, const char *candidate);

/* Writes ": perhaps A, B or C", or "" if nothing was near; cut to size. Returns buffer. */
const char *near_text(const struct near *near, char *buffer, size_t size);

#endif
