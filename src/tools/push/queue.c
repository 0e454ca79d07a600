/* SPDX-License-Identifier: BSD-2-Clause */
#include "queue.h"

#include <stdlib.h>

#define FIRST_MS 1000u
#define MOST_MS  60000u
#define ASKED_MS 600000u /* a receiver cannot ask for more */

void parcel_free(struct parcel *parcel)
{
    if (parcel)
        free(parcel->body);
    free(parcel);
}

/* Unlinks the parcel behind `before`; NULL: the first. */
static void give_up_behind(struct queue *q, struct parcel *before)
{
    struct parcel **at = before ? &before->next : &q->first, *parcel = *at;

    *at = parcel->next;
    if (q->last == parcel)
        q->last = before;
    q->bytes -= parcel->head.size;
    q->given_up(q->ctx, parcel);
    parcel_free(parcel);
}

void queue_put(struct queue *q, struct parcel *parcel)
{
    struct parcel *kept = q->sending ? q->first : NULL;

    parcel->next = NULL;
    if (q->last)
        q->last->next = parcel;
    else
        q->first = parcel;
    q->last = parcel;
    q->bytes += parcel->head.size;
    while (q->bytes > q->room && (kept ? kept->next : q->first))
        give_up_behind(q, kept);
}

void queue_drop_first(struct queue *q)
{
    struct parcel *parcel = q->first;

    q->first = parcel->next;
    if (!q->first)
        q->last = NULL;
    q->bytes -= parcel->head.size;
    parcel_free(parcel);
}

enum verdict_kind answer_means(enum push_form form, long code)
{
    if (code >= 200 && code < 300)
        return ANSWER_TAKEN;
    if (!code || code == 429 || (code >= 502 && code <= 504))
        return ANSWER_LATER;
    return form != PUSH_OTLP && (code == 408 || code >= 500) ? ANSWER_LATER : ANSWER_NEVER;
}

uint64_t answer_pause(unsigned tries, uint64_t asked_ms, uint32_t chance)
{
    uint64_t pause = tries < 7 ? FIRST_MS << (tries - 1) : MOST_MS;

    if (asked_ms)
        return asked_ms < ASKED_MS ? asked_ms : ASKED_MS;
    pause = pause < MOST_MS ? pause : MOST_MS;
    return pause + pause / 4 * (chance % 1024) / 1024;
}
