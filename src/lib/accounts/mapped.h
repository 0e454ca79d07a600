/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Reading accounts that eBPF programs keep in memory mapped here, whoever loaded them: the
 * half that the bpf and the daemon tier share. No system call but one yield
 * (account_copy). What writes: src/kernel/bpf; how an account becomes a record: account.h.
 */
#ifndef PRCB_ACCOUNTS_MAPPED_H
#define PRCB_ACCOUNTS_MAPPED_H

#include <prcb/prcb.h>

#include "window.h"

struct clock;
struct prcb_account_block;
struct prcb_edge_block;
struct prcb_head_block;
struct processor_map;
struct switch_rings;

/* Mapped read-only by the tier that opens the session, and constant until it closes it, but for how
 * much of the windows is readable. */
struct mapped {
    struct window accounts_window, edges_window;
    const struct prcb_head_block *head;  /* of these accounts */
    const struct prcb_head_block *clock; /* whose clock_offset is kept up to date */
    const char *accounts;                /* in its window */
    const uint32_t *hidden; /* by slot: the generation that is not shown any more; NULL: none */
    /* What the head says of them: taken once, and checked where another process wrote it. */
    uint32_t count, stride, features;
    uint32_t tail_processors;               /* after the accounts; 0: no tails */
    struct switch_rings *switches;          /* after those; NULL: none are kept */
    const struct processor_map *processors; /* for what interrupts took; NULL: none */
    const char *no_interrupted;             /* why not; NULL: it was not asked for */
};

const struct prcb_account_block *mapped_block(const struct mapped *m, uint32_t slot);
bool mapped_is_hidden(const struct mapped *m, uint32_t slot, uint32_t generation);
/* Slots that were ever given out: they can be read from then on. */
uint32_t mapped_used(struct mapped *m);
/* Returns the edges of a slot that is below that. NULL: none are kept. */
const struct prcb_edge_block *mapped_edges(struct mapped *m, uint32_t slot);
int64_t mapped_clock_offset(const struct mapped *m);

#define MAPPED_TRIES 8 /* to copy an account and read the clock before it is switched again */

/* Reads the clock for a copy of this account. False: it was switched since it was copied,
 * and has to be copied again: a reader that loses its processor between the two would take the
 * time without it for run time. This pairs with the stores to the sequence count by the switch's
 * writer. */
bool mapped_now(struct prcb *p, struct clock *clock, const struct prcb_account_block *block,
                const struct prcb_account_block *copy, uint64_t *ret);

/* Makes the record of a copy of an account, as of that moment. interrupted: what interrupts took of
 * the stretch that goes on. */
void mapped_record(struct prcb *p, uint32_t slot, const struct prcb_account_block *copy,
                   uint64_t interrupted, uint64_t now, double ticks_per_ns,
                   struct prcb_account *ret);

/* These are functions of a tier (session.h). */
int mapped_thread_open(struct prcb *p, struct prcb_thread *t, struct prcb_error *err);
int mapped_read(struct prcb_thread *t);
int mapped_read_times(struct prcb_thread *t, struct prcb_times *ret);
int mapped_walk(struct prcb *p, uint64_t since_ns, prcb_walk_fn fn, void *ctx,
                struct prcb_error *err);
void mapped_status(struct prcb *p, struct prcb_status *ret);
const char *mapped_absent_reason(const struct prcb *p, uint64_t member);
const char *mapped_limit(const struct prcb *p, size_t i);

/* Both tiers use these words: no thread or process was seen under this number; there is no free
 * account; cgroups are out of reach. */
int mapped_not_seen(const char *what, pid_t number, struct prcb_error *err);
int mapped_no_room(const struct prcb *p, struct prcb_error *err);
int mapped_no_cgroups(const char *path, struct prcb_error *err);

#endif
