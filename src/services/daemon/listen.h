/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The socket that clients connect to, systemd's or one of our own, and the notices that systemd
 * wants.
 */
#ifndef PRCB_DAEMON_LISTEN_H
#define PRCB_DAEMON_LISTEN_H

#include "config.h"

/* Opens a listening descriptor that does not block. *ret_own: the path was made here, so it is
 * removed at the end. Its directory must be one that others cannot write: -EPERM. An existing
 * entry is replaced only if it is a socket of ours on which nobody listens: -EEXIST,
 * -EADDRINUSE. */
int listen_open(const struct prcbd_config *config, bool *ret_own, struct prcb_error *err);
void listen_remove(const struct prcbd_config *config);

/* Sends "READY=1" and the like; does nothing without systemd. */
void listen_notify(const char *state);

#endif
