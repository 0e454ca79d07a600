/* SPDX-License-Identifier: BSD-2-Clause
 *
 * libprcb: asks `prcb flight` (prcb-flight(1)) to keep the last seconds in a file.
 *
 * Threads    any, at once.
 * Errors     0 or -errno, words in *err, which may be NULL.
 */
#ifndef PRCB_FLIGHT_H
#define PRCB_FLIGHT_H

#include <prcb/prcb.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Root's. A user's own is prcb-flight.socket in $XDG_RUNTIME_DIR, and is asked first.
 * PRCB_FLIGHT_SOCKET in the environment names another in place of both. */
#define PRCB_FLIGHT_SOCKET "/run/prcb-flight.socket"

/* Asks for a file and does not wait for it: a few microseconds, whatever happens, for who has just
 * been slow. reason: what the file shall say why it was kept, at most 100 bytes. That the file is
 * written is not certain: there is at most one in ten seconds.
 * -ENOENT, -ECONNREFUSED no prcb flight runs
 * -EACCES                it does not take questions of this user
 * -EAGAIN                it has more of them than it can read */
PRCB_API int prcb_flight_save(const char *reason, struct prcb_error *err);

#ifdef __cplusplus
}
#endif
#endif
