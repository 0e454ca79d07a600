/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Who is at the other end of a connection to prcb-exporter, as far as the kernel says: a user of
 * this machine, whose socket it is, or an address. Places and guesses of passwords are counted by
 * it, so that nobody takes those of another. It is no identity: nobody may more for it.
 */
#ifndef PRCB_EXPORTER_CALLERS_H
#define PRCB_EXPORTER_CALLERS_H

#include <sys/socket.h>

#define CALLER_BYTES 17 /* its kind; a user's number, or an address */

/* Writes who has the other end. diag: of sock_diag_open, or -1: then users of this machine who
 * come over TCP are one. */
void caller_of(int diag, int fd, unsigned char *ret);

/* Writes who has an address: all of this machine are one, and those of one /64 of IPv6; so is one
 * that is NULL or of another family. */
void caller_at(const struct sockaddr *address, unsigned char *ret);

#endif
