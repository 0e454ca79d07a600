/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The connections that prcb-exporter has, limited so that nobody who keeps many can keep others
 * out: a request has to be complete, and its answer read, within a time that no byte extends,
 * and when all places are taken a new connection replaces one of who has most of them, that which
 * has done nothing for the longest. A connection is ended by shutdown(2); its place is free when
 * libmicrohttpd has closed it, so there are some to spare.
 *
 * One thread at a time. Times are milliseconds of any clock that does not jump.
 */
#ifndef PRCB_EXPORTER_PLACES_H
#define PRCB_EXPORTER_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callers.h"

#define PLACES           64
#define PLACES_SPARE     64    /* of connections that are being ended */
#define PLACES_ASK_MS    10000 /* for a request, from its connection or the answer before it */
#define PLACES_ANSWER_MS 30000 /* for its answer */

struct place {
    int fd; /* -1: the place is free */
    uint64_t since;
    unsigned char who[CALLER_BYTES]; /* the caller's to set */
    unsigned beside;                 /* places of the same, as of the last places_take */
    bool answering;                  /* the request is complete */
    bool known;                      /* a user's whose password is right */
    bool ending;
};

struct places {
    struct place place[PLACES + PLACES_SPARE];
};

void places_init(struct places *places);
/* Returns whether there is room for one more: false while many are being ended. */
bool places_room(const struct places *places);
/* Returns a place for a new connection; ends another one if there would be more than PLACES.
 * NULL: there is no room. */
struct place *places_take(struct places *places, int fd, uint64_t now);
void place_leave(struct place *place);
/* Note that its request is complete, and that it is answered. */
void place_asked(struct place *place, uint64_t now);
void place_answered(struct place *place, uint64_t now);
/* Ends connections that take too long. Returns true if there are connections, so that the call
 * is due again in a second. */
bool places_end_late(struct places *places, uint64_t now);

#endif
