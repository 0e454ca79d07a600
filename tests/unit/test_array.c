/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The array that grows: what is added stays, whatever the types of its variables; where there is no
 * memory, or no more can be counted, nothing changes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static size_t moves, allowed = SIZE_MAX;

static void *counted(void *items, size_t bytes)
{
    moves++;
    return moves > allowed ? NULL : realloc(items, bytes);
}

#define realloc counted
#include "array.h"

struct row {
    uint64_t number;
    const char *name;
};

static int setup(void **state)
{
    moves = 0;
    allowed = SIZE_MAX;
    return 0;
}

static void adds(void **state)
{
    struct row *rows = NULL;
    size_t count = 0, room = 0;

    for (uint64_t i = 0; i < 10000; i++)
        assert_int_equal(array_add(rows, count, room, (struct row){i, "row"}), 0);
    assert_int_equal(count, 10000);
    assert_true(room >= count && moves < 12);
    for (uint64_t i = 0; i < 10000; i++)
        assert_true(rows[i].number == i && !strcmp(rows[i].name, "row"));
    free(rows);
}

/* Twice as much each time: each element is moved about once. */
static void appends(void **state)
{
    uint32_t *numbers = NULL, count = 0, last = 0;

    for (uint32_t i = 0; i < 5000; i++) {
        last = (uint32_t)moves;
        assert_int_equal(array_append(numbers, count, i * 3), 0);
        assert_true(last == moves || !(i & (i - 1)));
    }
    for (uint32_t i = 0; i < 5000; i++)
        assert_int_equal(numbers[i], i * 3);
    free(numbers);
}

static void reserves(void **state)
{
    uint16_t *numbers = NULL;
    size_t count = 0;
    uint32_t room = 0;

    assert_int_equal(array_reserve(numbers, count, room, 0), 0);
    assert_null(numbers);
    assert_int_equal(array_reserve(numbers, count, room, 1000), 0);
    assert_true(room >= 1000 && moves == 1);
    memset(numbers, 0, 1000 * sizeof(*numbers));
    count = 1000;
    assert_int_equal(array_reserve(numbers, count, room, room - 1000), 0);
    assert_int_equal(moves, 1);
    free(numbers);
}

static int evaluated;

static int value(void)
{
    return ++evaluated;
}

static void no_memory(void **state)
{
    int *numbers = NULL, *before;
    size_t count = 0, room = 0, few = 0;

    allowed = 0;
    assert_int_equal(array_add(numbers, count, room, value()), -ENOMEM);
    assert_int_equal(array_append(numbers, few, value()), -ENOMEM);
    assert_true(!numbers && !count && !room && !few && !evaluated);
    allowed = SIZE_MAX;
    while (count < room || !count)
        assert_int_equal(array_add(numbers, count, room, (int)count), 0);
    before = numbers;
    few = room;
    moves = allowed = 0;
    assert_int_equal(array_add(numbers, count, room, value()), -ENOMEM);
    assert_true(moves == 1 && numbers == before && count == few && room == few && !evaluated);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(numbers[i], (int)i);
    free(numbers);
}

/* More than the variables can count, or than there are bytes. */
static void too_many(void **state)
{
    uint8_t *bytes = NULL, count = 0, room = 0;
    struct row *rows = NULL;
    size_t many = SIZE_MAX - 3, rooms = SIZE_MAX - 3;
    int few = 0, place = 0;

    for (int i = 0; i < UINT8_MAX; i++)
        assert_int_equal(array_add(bytes, count, room, (uint8_t)i), 0);
    assert_int_equal(array_add(bytes, count, room, 1), -ENOMEM);
    assert_true(count == UINT8_MAX && room == UINT8_MAX);
    free(bytes);
    assert_int_equal(array_reserve(rows, many, rooms, 4), -ENOMEM);
    many = rooms = 0;
    assert_int_equal(array_reserve(rows, many, rooms, SIZE_MAX / 2), -ENOMEM);
    assert_int_equal(array_reserve(rows, few, place, (size_t)INT32_MAX + 1), -ENOMEM);
    assert_true(!rows && !rooms && !place);
}

static void covers(void **state)
{
    struct row *rows = NULL;
    uint16_t room = 0;

    for (uint16_t i = 0; i < 400; i += 7) {
        assert_int_equal(array_cover(rows, room, i), 0);
        assert_true(room > i && (!i || rows[i - 7].number == i - 7u));
        for (uint16_t k = i; k < room; k++)
            assert_true(!rows[k].number && !rows[k].name);
        rows[i].number = i;
    }
    allowed = 0;
    assert_int_equal(array_cover(rows, room, room), -ENOMEM);
    free(rows);
}

static int by_number(const void *left, const void *right)
{
    const int *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

static int by_turned(const void *left, const void *right, void *ctx)
{
    return *(int *)ctx * by_number(left, right);
}

static void nothing(void **state)
{
    int *none = NULL, *nor = NULL, key = 1, sign = -1, some[] = {3, 1, 2}, copy[3];
    size_t count = 0;

    /* Of a pointer that is NULL a sanitizer would say so. */
    array_sort(none, count, by_number);
    array_sort_r(none, count, by_turned, &sign);
    array_copy(none, nor, count);
    assert_null(array_search(&key, none, count, by_number));
    count = 3;
    array_copy(copy, some, count);
    array_sort(some, count, by_number);
    assert_true(some[0] == 1 && some[1] == 2 && some[2] == 3 && copy[0] == 3 && copy[2] == 2);
    assert_ptr_equal(array_search(&copy[0], some, count, by_number), &some[2]);
    array_sort_r(some, count, by_turned, &sign);
    assert_true(some[0] == 3 && some[2] == 1);
    /* 3 2 1: */
    for (int least = 0; least <= 4; least++)
        assert_int_equal(array_front(i, count, some[i] >= least), least < 1 ? 3 : 4 - least);
    assert_int_equal(array_front(i, 0, none[i]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(adds, setup),      cmocka_unit_test_setup(appends, setup),
        cmocka_unit_test_setup(reserves, setup),  cmocka_unit_test_setup(covers, setup),
        cmocka_unit_test_setup(no_memory, setup), cmocka_unit_test_setup(too_many, setup),
        cmocka_unit_test_setup(nothing, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
