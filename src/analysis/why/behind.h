/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Behind whom threads were ready: an account's edges of ready time, and what they grew by from look
 * to look. Only growth that is of the same moment as an account is known; the rest is nobody's.
 */
#ifndef PRCB_WHY_BEHIND_H
#define PRCB_WHY_BEHIND_H

#include "why.h"

#define BEHIND_MOST 32 /* of a span: different culprits; others are the rest */

struct behind {
    struct prcb_edge *rows; /* of a span: no two of the same culprit */
    size_t count, room;
};

/* What a thread's edges were, and with which ready time of its account. */
struct behind_base {
    struct behind edges;
    uint64_t ready_ns;
    bool known;
};

/* Adds what the edges grew by since the base to `to`, if that is known (to NULL: to nobody), and
 * makes them the base. 0 or -ENOMEM. */
int behind_take(const struct why_source *source, const struct prcb_account *a,
                struct behind_base *base, struct behind *to);
/* Returns copies, longest first, with a rest, as parts of ready_ns. NULL: no memory. */
struct prcb_edge *behind_rows(const struct behind *behind, uint64_t ready_ns, size_t *ret_count);
void behind_free(struct behind *behind);

#endif
