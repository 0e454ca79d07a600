/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Structures that start with their size, of a program older and newer than the library, each in a
 * block of its own length: a sanitizer sees what is read or written beyond it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sized.h"

struct known {
    size_t size;
    uint64_t first, second;
};

#define OLDER  offsetof(struct known, second)
#define NEWER  (sizeof(struct known) + 24)
#define FILLED 0xa5

/* length bytes of which the size says told; the known members 1 and 2, as far as they go. */
static void *make(size_t length, size_t told, uint8_t rest)
{
    struct known known = {told, 1, 2};
    uint8_t *made = malloc(length);

    assert_non_null(made);
    memset(made, rest, length);
    memcpy(made, &known, length < sizeof(known) ? length : sizeof(known));
    return made;
}

static int take(void *from, struct known *ret, struct prcb_error *err)
{
    int result;

    memset(ret, FILLED, sizeof(*ret));
    result = sized_take_options("the_options", from, ret, sizeof(*ret), err);
    free(from);
    return result;
}

static void options(void **state)
{
    struct prcb_error err = {0};
    struct known taken;
    char *tail;

    assert_int_equal(take(make(sizeof(taken), sizeof(taken), 0), &taken, &err), 0);
    assert_true(taken.first == 1 && taken.second == 2);
    assert_int_equal(take(make(OLDER, OLDER, 0), &taken, &err), 0);
    assert_true(taken.first == 1 && taken.second == 0);
    assert_int_equal(take(make(sizeof(size_t), sizeof(size_t), 0), &taken, &err), 0);
    assert_true(taken.first == 0 && taken.second == 0);
    assert_int_equal(take(make(NEWER, NEWER, 0), &taken, &err), 0);
    assert_true(taken.first == 1 && taken.second == 2);
    assert_int_equal(take(NULL, &taken, &err), 0);
    assert_true(taken.size == 0 && taken.first == 0 && taken.second == 0);

    for (size_t i = sizeof(taken); i < NEWER; i++) { /* a member set anywhere beyond */
        tail = make(NEWER, NEWER, 0);
        tail[i] = 1;
        memset(&err, 0, sizeof(err));
        assert_int_equal(take(tail, &taken, &err), -E2BIG);
        assert_int_equal(err.code, -E2BIG);
        assert_non_null(strstr(err.text, "the_options"));
    }
    for (size_t told = 0; told < sizeof(size_t); told++) {
        memset(&err, 0, sizeof(err));
        assert_int_equal(take(make(sizeof(size_t), told, 0), &taken, &err), -EINVAL);
        assert_string_equal(err.text, "the_options.size is not set");
    }
    assert_int_equal(take(make(sizeof(size_t), 0, 0), &taken, NULL), -EINVAL); /* no words wanted */
}

static void records(void **state)
{
    static const size_t lengths[] = {sizeof(size_t), OLDER, sizeof(struct known), NEWER};
    struct known taken;

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        void *from = make(lengths[i], lengths[i], FILLED);

        memset(&taken, FILLED, sizeof(taken));
        sized_take_record(from, &taken, sizeof(taken));
        assert_int_equal(taken.first, lengths[i] > sizeof(size_t) ? 1 : 0);
        assert_int_equal(taken.second, lengths[i] > OLDER ? 2 : 0);
        free(from);
    }
}

static void results(void **state)
{
    static const size_t lengths[] = {sizeof(size_t), OLDER, sizeof(struct known), NEWER};
    const struct known result = {sizeof(result), 3, 4};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        uint8_t expected[NEWER] = {0};
        void *ret = make(lengths[i], lengths[i], FILLED);

        memcpy(expected, &result, sizeof(result));
        memcpy(expected, &lengths[i], sizeof(lengths[i])); /* the caller's size stays */
        assert_int_equal(sized_hand_out(&result, sizeof(result), ret), 0);
        assert_memory_equal(ret, expected, lengths[i]);
        free(ret);
    }
    for (size_t told = 0; told < sizeof(size_t); told++) {
        struct known *ret = make(sizeof(*ret), told, FILLED);

        assert_int_equal(sized_hand_out(&result, sizeof(result), ret), -EINVAL);
        assert_true(ret->size == told && ret->first == 1 && ret->second == 2);
        free(ret);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options),
        cmocka_unit_test(records),
        cmocka_unit_test(results),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
