/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Limits how many passwords are tried, by caller: a hash takes long on purpose, and someone who
 * guesses must neither take the processor nor keep out those who know a password. Each caller has
 * a rate of their own; those who gave no right password yet also share one, in time of a
 * processor.
 *
 * One thread at a time. Times are milliseconds of any clock that does not jump.
 */
#ifndef PRCB_EXPORTER_GUESSES_H
#define PRCB_EXPORTER_GUESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "callers.h"

#define GUESSES_EACH_MS 500 /* a caller has one in this time */
#define GUESSES_AT_ONCE 4   /* but so many after a pause */
#define GUESSES_PART    4   /* all strangers together get one part in this many of a processor */
#define GUESSES_CALLERS 64  /* of each kind: strangers, and others */

struct guesser {
    unsigned char who[CALLER_BYTES];
    uint64_t paid_until; /* 0: the place is free */
};

struct guesses {
    struct guesser strangers[GUESSES_CALLERS], others[GUESSES_CALLERS];
    uint64_t paid_until; /* of all strangers */
};

/* Returns whether a caller, of CALLER_BYTES, may try now. */
bool guesses_may(struct guesses *guesses, const unsigned char *who, uint64_t now);
/* Notes that a password was tried, and took so many milliseconds. */
void guesses_tried(struct guesses *guesses, const unsigned char *who, bool right, uint64_t took,
                   uint64_t now);

#endif
