/* SPDX-License-Identifier: BSD-2-Clause
 *
 * By whom, summed over threads: the edges of accounts added up by process and cause. What goes in
 * sums to what comes out. One thread.
 */
#ifndef PRCB_FIGURES_WHOM_H
#define PRCB_FIGURES_WHOM_H

#include <stdbool.h>
#include <stddef.h>

#include <prcb/edges.h>

struct whom;

int whom_open(struct whom **ret); /* 0 or -ENOMEM */
void whom_close(struct whom *w);  /* NULL is allowed */

/* Adds the edges of an account, as they are now: once for each account. Errors of prcb_edges_walk;
 * -ENOMEM. */
int whom_take(struct whom *w, struct prcb *session, uint64_t key);
/* The same for every account of the session. */
int whom_take_all(struct whom *w, struct prcb *session, struct prcb_error *err);
/* One edge of a process's. */
int whom_add(struct whom *w, pid_t process, const struct prcb_edge *edge);

#define WHOM_ALL ((pid_t)-1)

/* Who ended waits of a cause, or (PRCB_CAUSE_NONE) kept threads from a processor, in a process or
 * WHOM_ALL: longest first, the rest last. *ret is the caller's to free. 0 or -ENOMEM. */
int whom_rows(const struct whom *w, pid_t process, uint32_t cause, struct prcb_edge **ret,
              size_t *ret_count);

#endif
