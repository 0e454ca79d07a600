/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a recording takes from accounts: what threads did when it began, which no switch tells of
 * those that go on waiting, and the stacks of waits while they go on.
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

#include "rings.h"
#include "world.h"

struct waits; /* opaque */

/* Opens a session; stacks: its waits are looked at as long as the recording goes on.
 * -EOPNOTSUPP: this build reads no stacks. */
int waits_open(enum prcb_tier tier, bool stacks, struct waits **ret, struct prcb_error *err);
void waits_close(struct waits *w); /* NULL is allowed */

/* Before the recording begins. pid 0: all threads there are. child: before its exec. */
int waits_add(struct waits *w, pid_t pid, bool child, struct prcb_error *err);

/* Once it has begun, with the threads in the world: writes what they have been doing since. */
int waits_begin(struct waits *w, struct world *world, struct prcb_error *err);

/* Looks, where it is time, and puts what it finds among the rings' records. *ret_ms: no later than
 * then again. Without stacks: does nothing. */
int waits_look(struct waits *w, struct rings *rings, int *ret_ms, struct prcb_error *err);

/* As prcb_session_program, of the session. */
int waits_program(struct waits *w, uint32_t i, struct prcb_program *ret);

#endif
