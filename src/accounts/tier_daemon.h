/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What else prcbd is asked for than accounts.
 */
#ifndef PRCB_ACCOUNTS_TIER_DAEMON_H
#define PRCB_ACCOUNTS_TIER_DAEMON_H

#include <prcb/prcb.h>

/* A descriptor of the map of processor blocks, to be closed by the caller. -ENOENT,
 * -ECONNREFUSED: no daemon runs; -EPERM: it does not let this user read them. */
int daemon_processors_map(struct prcb_error *err);

#endif
