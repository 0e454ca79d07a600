/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The session that all who may profile every thread can share, so that several of them cost a
 * switch no more than one does. Its members read one map; an account of a thread that has ended
 * stays until each of them has released it, or for SHARED_GRACE_MS. A member that let that time
 * pass is waited for no more until it releases something.
 */
#ifndef PRCB_DAEMON_SHARED_H
#define PRCB_DAEMON_SHARED_H

#include "sessions.h"

/* Joins the session, which is made if there is none, with edges or without. *ret_fds: its maps,
 * which the caller closes.
 * *ret_member: for the calls below. Errors are those of sessions_open; -EPERM: the session is
 * not for this client. */
int shared_join(struct sessions *s, const struct peer *peer, bool edges, uint64_t waited_ms,
                struct kernel_client_fds *ret_fds, uint8_t token[16], uint32_t *ret_member,
                struct prcb_error *err);
/* Joins again, after a restart of the daemon. -ESTALE */
int shared_rejoin(struct sessions *s, const struct peer *peer, const uint8_t token[16],
                  uint32_t *ret_member, struct prcb_error *err);
/* Leaves the session, which ends with its last member, unless it keeps switches. */
void shared_leave(struct sessions *s, uint32_t member);
/* Takes note that a member releases an account; it is believed if the thread has ended. */
void shared_release(struct sessions *s, uint32_t member, uint64_t key);
/* Releases accounts whose time is over; call it once a second. */
void shared_look(struct sessions *s);
/* Takes over the session that an earlier daemon left, after sessions_start: until then nobody
 * has it. */
void shared_take_over(struct sessions *s);
/* Returns whether it is to keep by whom, if the processors' programs run. */
bool shared_wants_edges(const struct sessions *s);
/* Returns whether switches are to be kept and are not yet: then call shared_keep_switches, which
 * makes the session if need be and has all threads in it. */
bool shared_lacks_switches(const struct sessions *s);
void shared_keep_switches(struct sessions *s, bool edges);
/* The shared session is no more, whatever ended it: called when its session is forgotten. */
void shared_forget(struct sessions *s);

#endif
