/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a recording takes from accounts: what threads did when it began, since no switch shows
 * that for threads that go on waiting, and the stacks of waits while they go on.
 *
 * Threads  One at a time.
 * Errors   0 or -errno, words in *err.
 */
#ifndef PRCB_RECORD_WAITS_H
#define PRCB_RECORD_WAITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <prcb/prcb.h>
#include <prcb/stack.h>

#include "rings.h"
#include "world.h"

struct waits; /* opaque */

struct waits_options {
    enum prcb_tier tier;
    bool native;   /* stacks: show an interpreter's own functions */
    bool spans;    /* stacks: and the span of a trace that the thread is in */
    bool stacks;   /* its waits are looked at as long as the recording goes on, */
    bool samples;  /* and samples are unwound, which want an interpreter's frames */
    bool switches; /* it keeps switch records, where it can: waits_has_switches, */
    bool wakers;   /* with who woke each thread */
};

/* Opens a session. -EOPNOTSUPP: this build reads no stacks. */
int waits_open(const struct waits_options *options, struct waits **ret, struct prcb_error *err);
void waits_close(struct waits *w); /* NULL is allowed */
void waits_stop_looking(struct waits *w);

/* Call it before the recording begins. pid 0: all threads there are. child: before its exec. */
int waits_add(struct waits *w, pid_t pid, bool child, struct prcb_error *err);

/* Call it once the recording has begun and its threads are in the world: writes what they have
 * been doing since. */
int waits_begin(struct waits *w, struct world *world, struct prcb_error *err);

/* Looks, if it is time or for the last time, and puts what it finds among the rings' records.
 * *ret_ms: look again by then. Without stacks it does nothing. */
int waits_look(struct waits *w, struct rings *rings, bool last, int *ret_ms,
               struct prcb_error *err);

/* Puts the available switch records among the rings' records. *ret_full: as rings_drain has it;
 * raised if there is less room left. */
bool waits_has_switches(const struct waits *w);
int waits_switches(struct waits *w, struct rings *rings, unsigned *ret_full);
/* Whether switch records say who woke the thread; *err says why not. */
bool waits_has_wakers(const struct waits *w, struct prcb_error *err);
/* Returns how many switches were lost so far. */
uint64_t waits_lost_switches(const struct waits *w);
/* Of the waits of interpreters' threads: how many have all their functions, and how many have not.
 * Sets neither where no stacks are read. */
void waits_interpreted(const struct waits *w, uint64_t *ret_whole, uint64_t *ret_partly);

/* Puts what interpreters' threads executed as they were sampled among the rings' records. 0 or
 * -ENOMEM. */
int waits_ran(struct waits *w, struct rings *rings);
struct prcb *waits_session(struct waits *w);

/* Whether an account is in a wait whose stack is read. */
bool waits_is_wait(const struct prcb_account *a);
/* The words for why it has none, by what looks_read returned. */
const char *waits_missing(const struct prcb_account *a, int result);
/* What a stack shows: "blocked", "idle", "either". */
const char *waits_kind(const struct prcb_stack *stack);

/* Does the same as prcb_session_program, for the session. */
int waits_program(struct waits *w, uint32_t i, struct prcb_program *ret);

#endif
