/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The hash table beside a plain array that is asked the same: what was put is found, what was
 * removed is not, however slots had to move; without memory nothing changes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool no_memory;

static void *perhaps(size_t count, size_t size)
{
    return no_memory ? NULL : calloc(count, size);
}

#define calloc perhaps
#include "table.c"
#undef calloc

#define KEYS 3000

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Keys as they come: in sequence, far apart, equal below, of the outermost bits. */
static const uint64_t steps[] = {1, 1ull << 32, 4096, 0x9e3779b97f4a7c15u, 1ull << 52};

static void finds(void **state)
{
    for (size_t s = 0; s < sizeof(steps) / sizeof(*steps); s++) {
        struct table t = {0};

        assert_null(table_find(&t, 0));
        for (size_t i = 0; i < KEYS; i++)
            assert_int_equal(table_put_number(&t, i * steps[s], i + 1), 0);
        assert_int_equal(t.count, KEYS);
        for (size_t i = 0; i < KEYS; i++)
            assert_int_equal(table_find_number(&t, i * steps[s]), i + 1);
        assert_int_equal(table_find_number(&t, KEYS * steps[s]), 0);
        table_clear(&t);
        assert_int_equal(table_find_number(&t, steps[s]), 0);
        assert_true(!t.count && t.room);
        table_free(&t);
        assert_true(!t.slots && !t.room);
        table_clear(&t);
    }
}

/* At random, with few keys, so that there are gaps and rows of slots that lie over the end. */
static void removes(void **state)
{
    static char items[600];
    bool there[600] = {false};
    uint64_t random = 1;
    struct table t = {0};
    size_t count = 0;

    for (int i = 0; i < 60000; i++) {
        size_t key = next_random(&random) % (i / 20000 == 1 ? 600 : 40);

        if (there[key])
            table_remove(&t, key, key % 2 ? &items[key] : NULL);
        else
            assert_int_equal(table_put(&t, key, &items[key]), 0);
        there[key] = !there[key];
        count = there[key] ? count + 1 : count - 1;
        assert_int_equal(t.count, count);
        for (size_t k = i % 100 ? key : 0; k <= (i % 100 ? key : 599); k++)
            assert_ptr_equal(table_find(&t, k), there[k] ? &items[k] : NULL);
    }
    table_remove(&t, 1000, items); /* is not there */
    assert_int_equal(t.count, count);
    table_free(&t);
}

/* Several of one key: all are found, and the one that is meant goes. */
static void same_key(void **state)
{
    struct table t = {0};
    const struct table_slot *slot = NULL;
    char items[5];
    unsigned found = 0;

    for (int i = 0; i < 5; i++)
        assert_int_equal(table_put(&t, 7, &items[i]), 0);
    for (uint64_t key = 8; key < 12; key++)
        assert_int_equal(table_put(&t, key, items), 0);
    table_remove(&t, 7, &items[2]);
    while ((slot = table_next(&t, 7, slot)))
        found |= 1u << ((char *)slot->item - items);
    assert_int_equal(found, 0x1b);
    table_free(&t);
}

/* All that is there is met at least once, though each that is met may go. */
static void removes_on_the_way(void **state)
{
    struct table t = {0};
    size_t removed = 0;

    for (size_t i = 1; i <= KEYS; i++)
        assert_int_equal(table_put_number(&t, i, i), 0);
    for (size_t i = 0; i < t.room;) {
        if (t.slots[i].number % 3) {
            table_remove_slot(&t, &t.slots[i]);
            removed++;
        } else {
            i++;
        }
    }
    assert_int_equal(removed, KEYS - KEYS / 3);
    for (size_t i = 1; i <= KEYS; i++)
        assert_int_equal(table_find_number(&t, i), i % 3 ? 0 : i);
    table_free(&t);
}

static void without_memory(void **state)
{
    struct table t = {0};
    size_t count = 0, room;

    no_memory = true;
    assert_int_equal(table_put_number(&t, 1, 1), -ENOMEM);
    assert_true(!t.slots && !t.count && !t.room);
    no_memory = false;
    assert_int_equal(table_put_number(&t, 1, 1), 0);
    no_memory = true;
    room = t.room;
    for (count = 1; !table_put_number(&t, count + 1, count + 1); count++)
        ;
    assert_true(t.count == count && t.room == room && count < room);
    for (size_t i = 1; i <= count; i++)
        assert_int_equal(table_find_number(&t, i), i);
    assert_int_equal(table_find_number(&t, count + 1), 0);
    no_memory = false;
    table_free(&t);
}

/* A secret there is, and texts that differ have keys that do. Keys that somebody chose for the
 * usual multiplier lie no closer together than others. */
static void secret(void **state)
{
    const uint8_t key[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const uint64_t inverse = 0xf1de83e19937733du; /* of 0x9e3779b97f4a7c15 */
    struct table t = {0};
    size_t longest = 0, row = 0;

    assert_true(table_secret[0] && table_secret[1] & 1 && table_secret[1] > UINT32_MAX);
    assert_true(table_hash_text("a") == table_hash("a", 1));
    assert_true(table_hash_text("a") != table_hash_text("b") &&
                table_hash_text("") != table_hash("", 1));
    assert_true(sip_hash(key, key, 15) == 0xa129ca6149be45e5u); /* of SipHash's authors */
    for (uint64_t i = 1; i <= KEYS; i++)
        assert_int_equal(table_put_number(&t, (i << 50 | i) * inverse, i), 0);
    for (size_t i = 0; i < t.room; i++) {
        row = t.slots[i].number ? row + 1 : 0;
        longest = row > longest ? row : longest;
    }
    assert_true(longest < KEYS / 8);
    table_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds),          cmocka_unit_test(removes),
        cmocka_unit_test(same_key),       cmocka_unit_test(removes_on_the_way),
        cmocka_unit_test(without_memory), cmocka_unit_test(secret),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
