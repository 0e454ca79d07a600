/* SPDX-License-Identifier: BSD-2-Clause
 *
 * By whom, summed over threads: the edges of accounts added up by group (a process, or whatever the
 * caller says) and cause. What goes in sums to what comes out. One thread.
 */
#ifndef PRCB_FIGURES_WHOM_H
#define PRCB_FIGURES_WHOM_H

#include <stdbool.h>
#include <stddef.h>

#include <prcb/edges.h>

struct whom;

int whom_open(struct whom **ret); /* 0 or -ENOMEM */
void whom_close(struct whom *w);  /* NULL is allowed */

#define WHOM_ALL UINT64_MAX /* the group of all */

/* How accounts are put together. */
struct whom_taker {
    uint64_t (*group)(const struct prcb_account *account, void *ctx);
    /* Is called for each account, as of the moment of its edges; what it returns ends the
     * taking. */
    int (*seen)(const struct prcb_account *account, void *ctx);
    void *ctx;
};

/* Adds the edges of an account, as they are now: once for each account. taker: NULL: by process.
 * Errors of prcb_edges_walk; -ENOMEM. */
int whom_take(struct whom *w, struct prcb *session, uint64_t key, const struct whom_taker *taker);
/* Does the same for every account of the session. */
int whom_take_all(struct whom *w, struct prcb *session, const struct whom_taker *taker,
                  struct prcb_error *err);
/* Adds one edge to a group's. */
int whom_add(struct whom *w, uint64_t group, const struct prcb_edge *edge);
/* Adds all of another's. */
int whom_join(struct whom *w, const struct whom *from);
/* Adds the sums of each group to the one that `to` says it is a part of, if that is another. 0 or
 * -ENOMEM. */
int whom_regroup(struct whom *w, uint64_t (*to)(uint64_t group, void *ctx), void *ctx);
/* What was added between two times: *ret is the caller's to close. It sums to what the sums grew
 * by; 0 or -ENOMEM. */
int whom_since(const struct whom *now, const struct whom *before, struct whom **ret);

/* Who ended waits of a cause, or (PRCB_CAUSE_NONE) kept threads from a processor, in a group or
 * WHOM_ALL: longest first, the rest last. *ret is the caller's to free. 0 or -ENOMEM. */
int whom_rows(const struct whom *w, uint64_t group, uint32_t cause, struct prcb_edge **ret,
              size_t *ret_count);
/* The same of cgroups whose threads ran meanwhile (PRCB_OPEN_MEANWHILE). */
int whom_meanwhile(const struct whom *w, uint64_t group, struct prcb_edge **ret, size_t *ret_count);
/* The same of those who held the locks. */
int whom_holders(const struct whom *w, uint64_t group, uint32_t cause, struct prcb_edge **ret,
                 size_t *ret_count);

#endif
