/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The conditions of --fail-if: a figure, > or <, and a change, as "ready>+10%" or "futex>5ms".
 */
#ifndef PRCB_COMPARE_CONDITION_H
#define PRCB_COMPARE_CONDITION_H

#include <stdbool.h>

#include <prcb/error.h>

struct condition {
    char figure[32], thread[64]; /* thread "": none is named */
    bool less;
    bool percent, count; /* of what change is; neither: ns */
    double change;
};

/* counts: a change may be a number without a unit. -EINVAL: not understood. */
int condition_parse(const char *text, bool counts, struct condition *ret, struct prcb_error *err);

/* Whether a change, from this value on, is more (or less) than the condition's. From nothing to
 * something is more than any share of it. */
bool condition_holds(const struct condition *condition, double from, double change);

#endif
