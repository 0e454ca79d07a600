/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What waits to be sent is bounded, and goes in order; what an answer means, and when to try again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "queue.h"

struct given_up {
    uint64_t from[64];
    size_t count;
};

static void on_given_up(void *ctx, const struct parcel *parcel)
{
    struct given_up *seen = ctx;

    seen->from[seen->count++] = parcel->head.from_ns;
}

static struct parcel *parcel_of(uint64_t from, uint32_t size)
{
    struct parcel *parcel = calloc(1, sizeof(*parcel));

    assert_non_null(parcel);
    parcel->head = (struct parcel_head){.size = size, .from_ns = from};
    return parcel;
}

static void test_the_oldest_goes(void **state)
{
    struct given_up seen = {.count = 0};
    struct queue q = {.room = 100, .given_up = on_given_up, .ctx = &seen};

    (void)state;
    for (uint64_t i = 0; i < 10; i++)
        queue_put(&q, parcel_of(i, 30));
    assert_int_equal(q.bytes, 90);
    assert_int_equal(seen.count, 7);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(seen.from[i], i);
    for (uint64_t i = 7; i < 10; i++) {
        assert_int_equal(q.first->head.from_ns, i);
        queue_drop_first(&q);
    }
    assert_null(q.first);
    assert_null(q.last);
    assert_int_equal(q.bytes, 0);
}

static void test_what_is_being_sent_stays(void **state)
{
    struct given_up seen = {.count = 0};
    struct queue q = {.room = 100, .given_up = on_given_up, .ctx = &seen};

    (void)state;
    queue_put(&q, parcel_of(1, 60));
    q.sending = true;
    queue_put(&q, parcel_of(2, 30));
    queue_put(&q, parcel_of(3, 30)); /* 2 goes */
    queue_put(&q, parcel_of(4, 70)); /* 3 goes, and 4 for there is no room */
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.from[0], 2);
    assert_int_equal(seen.from[2], 4);
    assert_int_equal(q.first->head.from_ns, 1);
    assert_ptr_equal(q.first, q.last);
    queue_put(&q, parcel_of(5, 40));
    assert_ptr_equal(q.first->next, q.last);
    q.sending = false;
    queue_drop_first(&q);
    assert_int_equal(q.first->head.from_ns, 5);
    queue_put(&q, parcel_of(6, 101)); /* larger than everything: nothing stays */
    assert_null(q.first);
    assert_null(q.last);
    assert_int_equal(q.bytes, 0);
}

static void test_answers(void **state)
{
    static const struct {
        long code;
        enum verdict_kind otlp, others;
    } rows[] = {
        {0, ANSWER_LATER, ANSWER_LATER},   {200, ANSWER_TAKEN, ANSWER_TAKEN},
        {202, ANSWER_TAKEN, ANSWER_TAKEN}, {301, ANSWER_NEVER, ANSWER_NEVER},
        {400, ANSWER_NEVER, ANSWER_NEVER}, {401, ANSWER_NEVER, ANSWER_NEVER},
        {408, ANSWER_NEVER, ANSWER_LATER}, {413, ANSWER_NEVER, ANSWER_NEVER},
        {429, ANSWER_LATER, ANSWER_LATER}, {500, ANSWER_NEVER, ANSWER_LATER},
        {502, ANSWER_LATER, ANSWER_LATER}, {503, ANSWER_LATER, ANSWER_LATER},
        {504, ANSWER_LATER, ANSWER_LATER}, {100, ANSWER_NEVER, ANSWER_NEVER},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_int_equal(answer_means(PUSH_OTLP, rows[i].code), rows[i].otlp);
        assert_int_equal(answer_means(PUSH_PYROSCOPE, rows[i].code), rows[i].others);
        assert_int_equal(answer_means(PUSH_PARCA, rows[i].code), rows[i].others);
    }
}

static void test_pauses(void **state)
{
    (void)state;
    assert_int_equal(answer_pause(1, 0, 0), 1000);
    assert_int_equal(answer_pause(2, 0, 0), 2000);
    assert_int_equal(answer_pause(6, 0, 0), 32000);
    assert_int_equal(answer_pause(7, 0, 0), 60000);
    assert_int_equal(answer_pause(4000000000u, 0, 0), 60000);
    for (uint32_t chance = 0; chance < 5000; chance++)
        assert_in_range(answer_pause(3, 0, chance), 4000, 5000);
    assert_int_equal(answer_pause(3, 7000, 99), 7000);
    assert_int_equal(answer_pause(3, UINT64_MAX, 99), 600000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_oldest_goes),
        cmocka_unit_test(test_what_is_being_sent_stays),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_pauses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
