/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Who keeps connections to prcb-exporter keeps nobody out: with sockets whose other ends tell which
 * were ended.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "places.h"

static struct places places;
static int ends[PLACES + PLACES_SPARE + 1][2];

static int made(size_t i)
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends[i]), 0);
    return ends[i][0];
}

static bool ended(size_t i)
{
    char byte;

    return recv(ends[i][1], &byte, 1, MSG_DONTWAIT) == 0;
}

static void close_all(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        close(ends[i][0]);
        close(ends[i][1]);
    }
}

static void a_newcomer_gets_a_place(void **state)
{
    struct place *place[PLACES];

    places_init(&places);
    for (size_t i = 0; i < PLACES; i++)
        place[i] = places_take(&places, made(i), 100 + i);
    place_asked(place[0], 50);  /* reads its answer, since before all others */
    place[1]->known = true;     /* a user's */
    place_asked(place[2], 300); /* had an answer just now */
    place_answered(place[2], 301);
    for (size_t i = 0; i < PLACES; i++)
        assert_false(ended(i));
    /* As many newcomers as there is room for: each takes the oldest stranger's. */
    for (size_t i = PLACES; i < PLACES + PLACES_SPARE; i++)
        assert_non_null(places_take(&places, made(i), 1000 + i));
    assert_false(places_room(&places));
    assert_null(places_take(&places, made(PLACES + PLACES_SPARE), 2000));
    assert_false(ended(0));
    assert_false(ended(1));
    for (size_t i = 2; i < PLACES; i++)
        assert_true(ended(i));
    place_leave(place[2]);
    assert_true(places_room(&places));
    close_all(PLACES + PLACES_SPARE + 1);
}

/* One address opens as many as it likes, later: they take the places of its own. */
static void an_address_takes_its_own_places(void **state)
{
    struct place *place;

    (void)state;
    places_init(&places);
    place = places_take(&places, made(0), 100);
    place->who[0] = 1;
    for (size_t i = 1; i < PLACES + PLACES_SPARE; i++)
        assert_non_null(places_take(&places, made(i), 100 + i));
    assert_false(ended(0));
    for (size_t i = 1; i <= PLACES_SPARE; i++)
        assert_true(ended(i));
    close_all(PLACES + PLACES_SPARE);
}

/* A byte now and then extends nothing: only what was completed counts. */
static void time_is_limited(void **state)
{
    struct place *asks, *reads, *kept;

    places_init(&places);
    assert_false(places_end_late(&places, 0));
    asks = places_take(&places, made(0), 0);
    reads = places_take(&places, made(1), 0);
    kept = places_take(&places, made(2), 0);
    place_asked(reads, 5);
    place_asked(kept, 8000);
    place_answered(kept, 8001);
    assert_true(places_end_late(&places, PLACES_ASK_MS - 1));
    assert_false(ended(0));
    places_end_late(&places, PLACES_ASK_MS);
    assert_true(ended(0));
    assert_false(ended(1));
    assert_false(ended(2));
    places_end_late(&places, 8001 + PLACES_ASK_MS);
    assert_true(ended(2));
    places_end_late(&places, 5 + PLACES_ANSWER_MS - 1);
    assert_false(ended(1));
    places_end_late(&places, 5 + PLACES_ANSWER_MS);
    assert_true(ended(1));
    place_leave(asks);
    place_leave(reads);
    place_leave(kept);
    assert_false(places_end_late(&places, 100000));
    close_all(3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_newcomer_gets_a_place),
        cmocka_unit_test(an_address_takes_its_own_places),
        cmocka_unit_test(time_is_limited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
