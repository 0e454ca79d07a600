/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Who guesses passwords keeps nobody out who knows one, and takes no more than a part of a
 * processor.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "guesses.h"

static const unsigned char *who(unsigned number)
{
    static unsigned char ret[CALLER_BYTES];

    memcpy(ret, &number, sizeof(number));
    return ret;
}

/* How many of so many wrong guesses, a millisecond each apart, are let through. */
static unsigned tries(struct guesses *g, unsigned caller, unsigned count, uint64_t *now,
                      uint64_t took)
{
    unsigned ret = 0;

    for (unsigned i = 0; i < count; i++, ++*now) {
        if (!guesses_may(g, who(caller), *now))
            continue;
        *now += took;
        guesses_tried(g, who(caller), false, took, *now);
        ret++;
    }
    return ret;
}

static void a_caller_has_a_rate(void **state)
{
    struct guesses g = {0};
    uint64_t now = 1000;

    assert_in_range(tries(&g, 1, 10000, &now, 2), 20, 25);
    assert_false(guesses_may(&g, who(1), now));
    assert_true(guesses_may(&g, who(2), now + 100));
}

/* Who comes from where a right one came from does not wait for strangers. */
static void those_who_know_are_apart(void **state)
{
    struct guesses g = {0};
    uint64_t now = 1000, hashing = 0, began;

    assert_true(guesses_may(&g, who(1), now));
    guesses_tried(&g, who(1), true, 65, now);
    began = now;
    for (unsigned i = 0; now < began + 20000; i++, now += 5) {
        if (!guesses_may(&g, who(2 + i % 65536), now))
            continue;
        now += 65;
        hashing += 65;
        guesses_tried(&g, who(2 + i % 65536), false, 65, now);
        assert_true(guesses_may(&g, who(1), now));
    }
    assert_in_range(hashing, 3000, 20000 / GUESSES_PART + 65);
    /* And guesses from there have a rate as well. */
    assert_in_range(tries(&g, 1, 10000, &now, 2), 20, 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_caller_has_a_rate),
        cmocka_unit_test(those_who_know_are_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
