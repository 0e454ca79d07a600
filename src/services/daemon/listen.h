/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The socket that clients connect to: systemd's, or one of our own; and what systemd wants to
 * be told.
 */
#ifndef PRCB_DAEMON_LISTEN_H
#define PRCB_DAEMON_LISTEN_H

#include "config.h"

/* A listening descriptor, not blocking. *ret_own: the path was made here, so that it is removed
 * at the end. Its directory must be one that others cannot write: -EPERM. What is there already is
 * replaced only if it is a socket of ours on which nobody listens: -EEXIST, -EADDRINUSE. */
int listen_open(const struct prcbd_config *config, bool *ret_own, struct prcb_error *err);
void listen_remove(const struct prcbd_config *config);

/* "READY=1" and its like; does nothing without systemd. */
void listen_notify(const char *state);

#endif
