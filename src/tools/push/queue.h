/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Parcels that wait to be sent, oldest first, in bounded memory: what does not fit pushes out the
 * oldest that is not being sent. And when to try again.
 *
 * One thread. Times are milliseconds of a clock that does not jump.
 */
#ifndef PRCB_PUSH_QUEUE_H
#define PRCB_PUSH_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parcel.h"

struct parcel {
    struct parcel *next;
    struct parcel_head head;
    uint8_t *body;
    size_t got; /* of the body, so far */
};

struct queue {
    struct parcel *first, *last;
    uint64_t bytes, room;
    bool sending; /* the first is */
    void (*given_up)(void *ctx, const struct parcel *parcel);
    void *ctx;
};

/* Takes the parcel, which is the queue's from then on; it may be given up at once. */
void queue_put(struct queue *q, struct parcel *parcel);
/* Removes and frees the first. */
void queue_drop_first(struct queue *q);
void parcel_free(struct parcel *parcel); /* NULL is allowed */

/* ---- what an answer means ---- */

enum verdict_kind { ANSWER_TAKEN, ANSWER_LATER, ANSWER_NEVER };

/* code: HTTP's status; 0: there was no answer. OTLP's rule: 500 is never tried again. */
enum verdict_kind answer_means(enum push_form form, long code);

/* Returns the pause before try number `tries` (from 1): what the receiver asked for (0: nothing),
 * else it doubles, with up to a quarter by chance, so that a fleet does not come back at once. */
uint64_t answer_pause(unsigned tries, uint64_t asked_ms, uint32_t chance);

#endif
