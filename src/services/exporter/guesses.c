/* SPDX-License-Identifier: BSD-2-Clause */
#include "guesses.h"

#include <netinet/in.h>
#include <string.h>

void guesses_who(const struct sockaddr *address, unsigned char *ret)
{
    memset(ret, 0, GUESSES_WHO);
    if (address && address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)address;
        const unsigned char *bytes = (const void *)&in->sin_addr;

        if (bytes[0] == 127)
            return;
        ret[0] = AF_INET;
        memcpy(ret + 1, bytes, sizeof(in->sin_addr));
    } else if (address && address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)address;

        if (IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr))
            return;
        ret[0] = AF_INET6;
        memcpy(ret + 1, &in6->sin6_addr, 8);
    }
}

static struct guesser *find(struct guesser *list, const unsigned char *who)
{
    for (struct guesser *g = list; g < list + GUESSES_ADDRESSES; g++) {
        if (g->paid_until && !memcmp(g->who, who, sizeof(g->who)))
            return g;
    }
    return NULL;
}

/* Returns the address's place, or takes that of the address that has been quiet for the longest. */
static struct guesser *take(struct guesser *list, const unsigned char *who)
{
    struct guesser *ret = find(list, who), *first = list;

    if (ret)
        return ret;
    for (struct guesser *g = list; g < list + GUESSES_ADDRESSES; g++)
        first = g->paid_until < first->paid_until ? g : first;
    memcpy(first->who, who, sizeof(first->who));
    first->paid_until = 0;
    return first;
}

bool guesses_may(struct guesses *guesses, const struct sockaddr *address, uint64_t now)
{
    const uint64_t ahead = (GUESSES_AT_ONCE - 1) * GUESSES_EACH_MS;
    unsigned char who[sizeof(guesses->others[0].who)];
    const struct guesser *other, *stranger;

    guesses_who(address, who);
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

void guesses_tried(struct guesses *guesses, const struct sockaddr *address, bool right,
                   uint64_t took, uint64_t now)
{
    unsigned char who[sizeof(guesses->others[0].who)];
    struct guesser *other;

    guesses_who(address, who);
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
