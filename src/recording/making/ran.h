/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Stacks of samples on a processor: unwound from the registers and the copy of the stack that came
 * with them, by the reader of waits' stacks, within a budget of time.
 *
 * Threads  One at a time.
 */
#ifndef PRCB_RECORD_RAN_H
#define PRCB_RECORD_RAN_H

#include "rings.h"
#include "world.h"

struct prcb;
struct prcb_stacks;
struct ran; /* opaque */

#define RAN_FRAMES 256 /* of one stack */

/* NULL: this build unwinds none, or nothing can be had for it. session: of RING_RAN, open for as
 * long; NULL: there is none. */
struct ran *ran_open(struct prcb *session);
void ran_close(struct ran *ran); /* NULL is allowed */

/* Keeps what a thread executed, for its next sample. */
void ran_note(struct ran *ran, const struct ring_event *event);

/* Finds the user's frames of a sample, innermost first, as addresses of calls (ring_of_frame;
 * frames last until the next call), by a reader of its own: that of waits has a budget, which
 * samples would use up. Returns NULL: they are complete; else why they are not, as the recording
 * has it. *ret_count 0: none are known. */
const char *ran_unwind(struct ran *ran, struct world *world, const struct ring_event *event,
                       uint64_t *ret, size_t *ret_count);

#endif
