/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the layout unit tests share: a check that counts failures and goes on, so that one run shows
 * all that is wrong. One test program, one thread.
 */
#ifndef LAYOUT_CHECK_H
#define LAYOUT_CHECK_H

#include <stdio.h>

static unsigned int check_failures, check_count;

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        check_count++;                                                                             \
        if (!(condition)) {                                                                        \
            check_failures++;                                                                      \
            printf("%s:%d: %s: ", __FILE__, __LINE__, #condition);                                 \
            printf(__VA_ARGS__);                                                                   \
            putchar('\n');                                                                         \
        }                                                                                          \
    } while (0)

static inline int check_result(void)
{
    printf("%u checks, %u failures\n", check_count, check_failures);
    return check_failures ? 1 : 0;
}

#endif
