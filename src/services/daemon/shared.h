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

/* Into the session, which is made where there is none. *ret_fd: its map, to be closed by the
 * caller. *ret_member: for the calls below. Errors as sessions_open; -EPERM: it is not for this
 * client. */
int shared_join(struct sessions *s, const struct peer *peer, uint64_t waited_ms, int *ret_fd,
                uint8_t token[16], uint32_t *ret_member, struct prcb_error *err);
/* Again, after a restart of the daemon. -ESTALE */
int shared_rejoin(struct sessions *s, const struct peer *peer, const uint8_t token[16],
                  uint32_t *ret_member, struct prcb_error *err);
/* With the last member it ends. */
void shared_leave(struct sessions *s, uint32_t member);
/* What the member says of an account is believed if the thread has ended. */
void shared_release(struct sessions *s, uint32_t member, uint64_t key);
/* Once a second: accounts whose time is over. */
void shared_look(struct sessions *s);
/* One that an earlier daemon left, after sessions_start: without it nobody has them. */
void shared_take_over(struct sessions *s);
/* It is no more, whyever: called when its session is forgotten. */
void shared_forget(struct sessions *s);

#endif
