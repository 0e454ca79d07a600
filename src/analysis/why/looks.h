/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Looking at a session's accounts again and again, and at the stacks of their waits within a
 * budget: when the next look is due by what the last one cost, whether a stack may be read now, and
 * room for new threads as old ones end.
 *
 * A user whose threads ask for more than a fair share of the budget leaves half of it to others,
 * and a process to those of its user (fair.h).
 *
 * One thread.
 */
#ifndef PRCB_LOOKS_H
#define PRCB_LOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include <prcb/edges.h>
#include <prcb/stack.h>

#include "objects.h"

struct looks;

/* percent: the share of one processor for looks and unwinding, after half a second that is free.
 * flags: enum prcb_stacks_flag. Close it before the session. */
int looks_open(struct prcb *session, uint64_t percent, uint32_t flags, struct looks **ret,
               struct prcb_error *err);
void looks_close(struct looks *l); /* NULL is allowed */

/* Both return 0 or -errno, which ends the look. */
struct looks_fns {
    int (*account)(void *ctx, const struct prcb_account *a, uint64_t now); /* CLOCK_MONOTONIC */
    /* Called for each account before any of them is passed on: takes what divides the account's
     * time, and makes it that of the same moment. NULL: nothing divides it. */
    int (*divided)(void *ctx, struct prcb_account *a);
    int (*released)(void *ctx, uint64_t key); /* it is about to be given back; NULL: nobody asks */
    /* A wait that was chosen at random has ended; called before the accounts of the look.
     * result: 0 and the stack, or why there is none: -EBUSY, -ENOSPC (no room for the copy), as
     * prcb_stacks_unwind. wait: what it was for. NULL: nobody asks. */
    int (*chosen)(void *ctx, const struct prcb_chosen *chosen, const struct prcb_stack *stack,
                  int result, struct object_wait wait);
    /* While the budget is short, chosen waits may stand for other chosen ones, which are passed on
     * with a one_in of 0, no stack and no error: as why_chosen takes them. */
    bool estimates;
    bool keep_ended; /* somebody else gives accounts of ended threads back */
    bool last;       /* all accounts are passed on, also where no look is due */
    /* A wait that lasts for longer than this was passed on before, and is passed on again when
     * it has ended: what `account` got of it still holds, only its length has grown. It has to
     * be longer than the shortest wait whose stack is asked for, and than the time between
     * looks. 0: each look passes on every account; the perf tier always does. */
    uint64_t settled_ns;
    void *ctx;
};
/* *ret_ended: every thread that is profiled has ended. */
int looks_take(struct looks *l, const struct looks_fns *fns, bool *ret_ended,
               struct prcb_error *err);

/* Returns when looks_take is due, CLOCK_MONOTONIC: a look, or chosen waits alone. */
uint64_t looks_next(const struct looks *l);

/* Does the same as prcb_stacks_read; ctx: the looks. -EBUSY: the budget is used up for now. */
int looks_read(void *ctx, const struct prcb_account *a, struct prcb_stack *ret);

/* Returns how many looks there were so far, and how many accounts they passed on. */
uint64_t looks_count(const struct looks *l, uint64_t *ret_accounts);

/* Does the same as objects_read, within the same budget; ctx: the looks, which were given the
 * objects. What is not read stays unknown. */
void looks_set_objects(struct looks *l, struct objects *objects);
struct object_wait looks_object(void *ctx, const struct prcb_account *a,
                                const struct prcb_stack *stack);

/* For half a second from now on the budget does not matter: a report is made of what is read. */
void looks_grant(struct looks *l);

/* As why_source; ctx: the looks. */
pid_t looks_holder(void *ctx, uint32_t number);
bool looks_still(void *ctx, const struct prcb_account *a);
int looks_edges(void *ctx, uint64_t key, struct prcb_account *account, prcb_edge_fn fn,
                void *fn_ctx);

/* Returns the processor time of the looks and of unwinding so far. */
uint64_t looks_cost(const struct looks *l);

struct prcb_stacks *looks_stacks(const struct looks *l);

#endif
