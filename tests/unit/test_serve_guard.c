/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Which requests the page of prcb serve answers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "guard.h"

static void test_hosts(void **state)
{
    static const char *const good[] = {"localhost",   "127.0.0.1",       "[::1]",
                                       "localhost:1", "LocalHost:65535", "127.0.0.1:8080",
                                       "[::1]:80"};
    static const char *const bad[] = {"",
                                      "evil",
                                      "localhost.",
                                      "localhost.evil",
                                      "localhost:",
                                      "127.0.0.1:",
                                      "127.0.0.1:80x",
                                      "127.0.0.1:123456",
                                      "127.0.0.10",
                                      "127.0.0.2",
                                      "[::1",
                                      "[::1]]",
                                      "::1",
                                      "0.0.0.0",
                                      " localhost",
                                      "localhost:80:80",
                                      "user@localhost"};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        assert_true(guard_host(good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_false(guard_host(bad[i]));
    assert_false(guard_host(NULL));
}

static void test_origins(void **state)
{
    (void)state;
    assert_true(guard_origin(NULL, "localhost:1"));
    assert_true(guard_origin("http://localhost:1", "localhost:1"));
    assert_false(guard_origin("http://localhost:2", "localhost:1"));
    assert_false(guard_origin("http://localhost", "localhost:1"));
    assert_false(guard_origin("https://localhost:1", "localhost:1"));
    assert_false(guard_origin("null", "localhost:1"));
    assert_false(guard_origin("", "localhost:1"));
    assert_false(guard_origin("http://", NULL));
}

static void test_sites(void **state)
{
    (void)state;
    assert_true(guard_site(NULL, false));
    assert_true(guard_site("same-origin", false));
    assert_true(guard_site("none", false));
    assert_false(guard_site("same-site", false)); /* another port of this machine */
    assert_false(guard_site("cross-site", false));
    assert_false(guard_site("", false));
    assert_true(guard_site("cross-site", true));
}

static void test_secrets(void **state)
{
    (void)state;
    assert_true(guard_equal("0123", "0123"));
    assert_false(guard_equal("0124", "0123"));
    assert_false(guard_equal("012", "0123"));
    assert_false(guard_equal("01234", "0123"));
    assert_false(guard_equal("", "0123"));
    assert_false(guard_equal(NULL, "0123"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_sites),
        cmocka_unit_test(test_secrets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
