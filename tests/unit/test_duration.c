/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Times as people write them.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "options.h"

#define MS 1000000ull
#define S  1000000000ull

static void times_with_and_without_units(void **state)
{
    static const struct {
        const char *text;
        uint64_t bare, ns;
    } cases[] = {
        {"1", S, S},
        {"1", MS, MS},
        {"0", S, 0},
        {"0.5", S, S / 2},
        {".5", S, S / 2},
        {"1.5", MS, 1500000},
        {"0.000000001", S, 1},
        {"0.1", S, 100 * MS},
        {"0.0000000001", S, 0},
        {"3ns", S, 3},
        {"0.5us", S, 500},
        {"100ms", S, 100 * MS},
        {"10s", MS, 10 * S},
        {"1.5min", S, 90 * S},
        {"2m", S, 120 * S},
        {"1h", S, 3600 * S},
        {"366d", S, 366 * 86400 * S},
        {"0.123456789123s", S, 123456789},
        {"123456.789", S, 123456789 * MS},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint64_t ns = 7;

        if (cli_parse_duration(cases[i].text, cases[i].bare, &ns) || ns != cases[i].ns)
            fail_msg("%s: %" PRIu64, cases[i].text, ns);
    }
}

static void what_is_no_time(void **state)
{
    static const char *const wrong[] = {"",
                                        ".",
                                        "1.",
                                        "1.s",
                                        "s",
                                        "ms",
                                        "-1",
                                        "+1",
                                        " 1",
                                        "1 s",
                                        "1S",
                                        "1sec",
                                        "1s1",
                                        "1e3",
                                        "0x10",
                                        "1..5",
                                        "nan",
                                        "99999999999999999999",
                                        "99999999999h",
                                        "18446744073709551616"};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        uint64_t ns = 7;

        if (!cli_parse_duration(wrong[i], S, &ns) || ns != 7)
            fail_msg("'%s' is taken: %" PRIu64, wrong[i], ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_with_and_without_units),
        cmocka_unit_test(what_is_no_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
