/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Limits how many passwords are tried, by address: a hash takes long on purpose, and someone who
 * guesses must neither take the processor nor keep out those who know a password. Each address
 * has its own rate; those from which nobody gave a right password yet also share one, in time of
 * a processor. All addresses of this machine are one, and so are those of one /64 of IPv6.
 *
 * One thread at a time. Times are milliseconds of any clock that does not jump.
 */
#ifndef PRCB_EXPORTER_GUESSES_H
#define PRCB_EXPORTER_GUESSES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define GUESSES_EACH_MS   500 /* an address has one in this time */
#define GUESSES_AT_ONCE   4   /* but so many after a pause */
#define GUESSES_PART      4   /* all strangers together get one part in this many of a processor */
#define GUESSES_ADDRESSES 64  /* of each kind: strangers, and others */

#define GUESSES_WHO 17 /* bytes: family; address, its first 8 bytes */

struct guesser {
    unsigned char who[GUESSES_WHO];
    uint64_t paid_until; /* 0: the place is free */
};

struct guesses {
    struct guesser strangers[GUESSES_ADDRESSES], others[GUESSES_ADDRESSES];
    uint64_t paid_until; /* of all strangers */
};

/* Writes who has an address; one that is NULL or of a unix socket is this machine's. */
void guesses_who(const struct sockaddr *address, unsigned char *ret);

/* Returns whether an address may try now. */
bool guesses_may(struct guesses *guesses, const struct sockaddr *address, uint64_t now);
/* Notes that a password was tried, and took so many milliseconds. */
void guesses_tried(struct guesses *guesses, const struct sockaddr *address, bool right,
                   uint64_t took, uint64_t now);

#endif
