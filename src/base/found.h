/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Processes that a person named, by their numbers or by a name that found them a moment ago.
 */
#ifndef PRCB_BASE_FOUND_H
#define PRCB_BASE_FOUND_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Calls fn for each, until one fails. A process that a name found may have ended since (-ESRCH):
 * that is no failure if another is there. 0, or fn's. */
static inline int found_each(const pid_t *pids, size_t count, bool by_name,
                             int (*fn)(pid_t pid, void *ctx), void *ctx)
{
    size_t there = 0;
    int result = 0;

    for (size_t i = 0; i < count && !result; i++) {
        result = fn(pids[i], ctx);
        there += !result;
        if (result == -ESRCH && by_name && (there || i + 1 < count))
            result = 0;
    }
    return result;
}

#endif
