/* SPDX-License-Identifier: BSD-2-Clause */
#include "guesses.h"

#include <string.h>

static struct guesser *find(struct guesser *list, const unsigned char *who)
{
    for (struct guesser *g = list; g < list + GUESSES_CALLERS; g++) {
        if (g->paid_until && !memcmp(g->who, who, sizeof(g->who)))
            return g;
    }
    return NULL;
}

/* Returns the caller's place, or takes that of the one that has been quiet for the longest. */
static struct guesser *take(struct guesser *list, const unsigned char *who)
{
    struct guesser *ret = find(list, who), *first = list;

    if (ret)
        return ret;
    for (struct guesser *g = list; g < list + GUESSES_CALLERS; g++)
        first = g->paid_until < first->paid_until ? g : first;
    memcpy(first->who, who, sizeof(first->who));
    first->paid_until = 0;
    return first;
}

bool guesses_may(struct guesses *guesses, const unsigned char *who, uint64_t now)
{
    const uint64_t ahead = (GUESSES_AT_ONCE - 1) * GUESSES_EACH_MS;
    const struct guesser *other, *stranger;

    other = find(guesses->others, who);
    if (other)
        return other->paid_until <= now + ahead;
    stranger = find(guesses->strangers, who);
    return guesses->paid_until <= now && (!stranger || stranger->paid_until <= now + ahead);
}

static void pay(uint64_t *until, uint64_t ms, uint64_t now)
{
    *until = (*until > now ? *until : now) + ms;
}

void guesses_tried(struct guesses *guesses, const unsigned char *who, bool right, uint64_t took,
                   uint64_t now)
{
    struct guesser *other;

    other = find(guesses->others, who);
    if (!other && right)
        other = take(guesses->others, who);
    if (other) {
        pay(&other->paid_until, GUESSES_EACH_MS, now);
        return;
    }
    pay(&take(guesses->strangers, who)->paid_until, GUESSES_EACH_MS, now);
    pay(&guesses->paid_until, took * GUESSES_PART, now);
}
