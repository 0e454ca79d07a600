/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Who guesses passwords keeps nobody out who knows one, and takes no more than a part of a
 * processor.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "guesses.h"

static const struct sockaddr *ip(const char *text)
{
    static struct sockaddr_in in;
    static struct sockaddr_in6 in6;

    in = (struct sockaddr_in){.sin_family = AF_INET};
    in6 = (struct sockaddr_in6){.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
        return (const void *)&in;
    assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
    return (const void *)&in6;
}

/* How many of so many wrong guesses, a millisecond each apart, are let through. */
static unsigned tries(struct guesses *g, const char *address, unsigned count, uint64_t *now,
                      uint64_t took)
{
    unsigned ret = 0;

    for (unsigned i = 0; i < count; i++, ++*now) {
        if (!guesses_may(g, ip(address), *now))
            continue;
        *now += took;
        guesses_tried(g, ip(address), false, took, *now);
        ret++;
    }
    return ret;
}

static void an_address_has_its_rate(void **state)
{
    struct guesses g = {0};
    uint64_t now = 1000;

    assert_in_range(tries(&g, "192.0.2.1", 10000, &now, 2), 20, 25);
    /* Each of this machine is the same one, and each of one network of IPv6. */
    tries(&g, "127.0.0.1", 100, &now, 2);
    assert_false(guesses_may(&g, ip("127.8.9.10"), now));
    assert_false(guesses_may(&g, ip("::1"), now));
    assert_false(guesses_may(&g, NULL, now));
    now += 100;
    tries(&g, "2001:db8::1", 100, &now, 2);
    now += 100;
    assert_false(guesses_may(&g, ip("2001:db8::ffff:2"), now));
    assert_true(guesses_may(&g, ip("2001:db8:0:1::1"), now));
}

/* Who comes from where a right one came from does not wait for strangers. */
static void those_who_know_are_apart(void **state)
{
    struct guesses g = {0};
    uint64_t now = 1000, hashing = 0, began;
    char address[32];

    assert_true(guesses_may(&g, ip("198.51.100.7"), now));
    guesses_tried(&g, ip("198.51.100.7"), true, 65, now);
    began = now;
    for (unsigned i = 0; now < began + 20000; i++, now += 5) {
        snprintf(address, sizeof(address), "10.0.%u.%u", i / 256 % 256, i % 256);
        if (!guesses_may(&g, ip(address), now))
            continue;
        now += 65;
        hashing += 65;
        guesses_tried(&g, ip(address), false, 65, now);
        assert_true(guesses_may(&g, ip("198.51.100.7"), now));
    }
    assert_in_range(hashing, 3000, 20000 / GUESSES_PART + 65);
    /* And guesses from there have a rate as well. */
    assert_in_range(tries(&g, "198.51.100.7", 10000, &now, 2), 20, 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_has_its_rate),
        cmocka_unit_test(those_who_know_are_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
