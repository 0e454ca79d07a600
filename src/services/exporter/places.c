/* SPDX-License-Identifier: BSD-2-Clause */
#include "places.h"

#include <string.h>
#include <sys/socket.h>

#define ALL (PLACES + PLACES_SPARE)

void places_init(struct places *places)
{
    for (size_t i = 0; i < ALL; i++)
        places->place[i] = (struct place){.fd = -1};
}

bool places_room(const struct places *places)
{
    for (size_t i = 0; i < ALL; i++) {
        if (places->place[i].fd < 0)
            return true;
    }
    return false;
}

static void end(struct place *place)
{
    place->ending = true;
    shutdown(place->fd, SHUT_RDWR);
}

/* A connection that asks nothing goes before one that reads an answer, a stranger's before a
 * user's, one of who has more, then the one that has been at it for longer. */
static bool goes_before(const struct place *a, const struct place *b)
{
    if (a->answering != b->answering)
        return !a->answering;
    if (a->known != b->known)
        return !a->known;
    if (a->beside != b->beside)
        return a->beside > b->beside;
    return a->since < b->since;
}

static void count_beside(struct places *places, struct place *of)
{
    of->beside = 0;
    for (size_t i = 0; i < ALL; i++) {
        const struct place *place = &places->place[i];

        of->beside +=
            place->fd >= 0 && !place->ending && !memcmp(place->who, of->who, sizeof(of->who));
    }
}

struct place *places_take(struct places *places, int fd, uint64_t now)
{
    struct place *ret = NULL, *last = NULL;
    size_t count = 0;

    for (size_t i = 0; i < ALL; i++) {
        struct place *place = &places->place[i];

        if (place->fd < 0) {
            ret = ret ? ret : place;
        } else if (!place->ending) {
            count++;
            count_beside(places, place);
            last = !last || goes_before(place, last) ? place : last;
        }
    }
    if (!ret)
        return NULL;
    if (count >= PLACES)
        end(last);
    *ret = (struct place){.fd = fd, .since = now};
    return ret;
}

void place_leave(struct place *place)
{
    place->fd = -1;
}

void place_asked(struct place *place, uint64_t now)
{
    place->answering = true;
    place->since = now;
}

void place_answered(struct place *place, uint64_t now)
{
    place->answering = false;
    place->since = now;
}

bool places_end_late(struct places *places, uint64_t now)
{
    bool ret = false;

    for (size_t i = 0; i < ALL; i++) {
        struct place *place = &places->place[i];

        if (place->fd < 0)
            continue;
        ret = true;
        if (!place->ending &&
            now - place->since >= (place->answering ? PLACES_ANSWER_MS : PLACES_ASK_MS))
            end(place);
    }
    return ret;
}
