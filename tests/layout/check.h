/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the layout unit tests share: a check that counts failures and goes on, so that one run shows
 * all that is wrong with a table of thousands of rows. A cmocka test function ends with
 * check_done(). One test program, one thread.
 */
#ifndef LAYOUT_CHECK_H
#define LAYOUT_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static unsigned int check_failures;

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            check_failures++;                                                                      \
            printf("%s:%d: %s: ", __FILE__, __LINE__, #condition);                                 \
            printf(__VA_ARGS__);                                                                   \
            putchar('\n');                                                                         \
        }                                                                                          \
    } while (0)

static inline void check_done(void)
{
    unsigned int failures = check_failures;

    check_failures = 0;
    assert_int_equal(failures, 0);
}

#endif
