/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Which figure fills which member of PROCESSOR_POWER_STATE, and why the others stay
 * absent. One table for all versions: a name means the same wherever it occurs.
 */
#ifndef PRCB_POWER_MEMBERS_H
#define PRCB_POWER_MEMBERS_H

#include "power_state.h"

/* What a member holds: the number in NT's unit. */
struct power_source {
    const char *words; /* what it is, with its unit */
    struct power_value (*value)(const struct power_state *s);
    bool counts; /* a total: NT's wraps where the member is too narrow */
};

struct power_member {
    const char *name; /* a path without indexes; with one, that element; "X." all that is in X */
    const struct power_source *source; /* NULL: absent */
    const char *reason;                /* why */
};

extern const struct power_member power_members[]; /* ended by name NULL */

/* The row for a leaf of the structure; NULL: the table does not know it. */
const struct power_member *power_member_find(const char *leaf);

#endif
