/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Times and shares as people read them in `prcb stat`.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format.h"

static void times_have_three_digits_and_a_unit(void **state)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } cases[] = {
        {0, "0"},
        {1, "0.00us"},
        {120, "0.12us"},
        {9994, "9.99us"},
        {9996, "10.0us"},
        {99949, "99.9us"},
        {99951, "100us"},
        {999499, "999us"},
        {999500, "1.00ms"},
        {1000000, "1.00ms"},
        {45600000, "45.6ms"},
        {999499999, "999ms"},
        {999500000, "1.00s"},
        {1230000000, "1.23s"},
        {99960000000, "100s"},
        {12345600000000, "12346s"},
        {UINT64_MAX, "18446744074s"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[FORMAT_CELL];

        format_time(cases[i].ns, text, sizeof(text));
        assert_string_equal(text, cases[i].text);
    }
}

static void shares_in_percent(void **state)
{
    static const struct {
        uint64_t part, whole;
        const char *text;
    } cases[] = {
        {42, 100, "42 %"}, {1, 0, "-"},           {0, 5, "0 %"},        {1, 100000, "under 0.1 %"},
        {5, 100, "5.0 %"}, {994, 10000, "9.9 %"}, {996, 10000, "10 %"}, {7, 7, "100 %"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[FORMAT_CELL];

        format_share(cases[i].part, cases[i].whole, text, sizeof(text));
        assert_string_equal(text, cases[i].text);
    }
}

static void width_counts_characters(void **state)
{
    assert_int_equal(format_width("f\xc3\xbcr"), 3);
    assert_int_equal(format_width(""), 0);
}

static void texts_are_broken_at_blanks(void **state)
{
    static const struct {
        const char *text;
        size_t indent, columns;
        const char *lines;
    } cases[] = {
        {"", 2, 10, "\n"},
        {"one two", 2, 9, "one two\n"},
        {"one two", 2, 8, "one\n  two\n"},
        {"one two", 2, 5, "one\n  two\n"},
        {"f\xc3\xbcr f\xc3\xbcr", 1, 8, "f\xc3\xbcr f\xc3\xbcr\n"},
        {"f\xc3\xbcrf\xc3\xbcr", 0, 2, "f\xc3\xbc\nrf\n\xc3\xbcr\n"},
        {"abc", 9, 4, "a\n         b\n         c\n"},
    };
    char text[64];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        FILE *out = fmemopen(text, sizeof(text), "w");

        assert_non_null(out);
        format_lines(out, cases[i].text, cases[i].indent, cases[i].columns);
        fclose(out);
        assert_string_equal(text, cases[i].lines);
    }
}

static void columns_are_taken_from_the_environment(void **state)
{
    FILE *out = tmpfile();

    assert_non_null(out);
    setenv("COLUMNS", "83", 1);
    assert_int_equal(format_columns(out), 83);
    setenv("COLUMNS", "nonsense", 1);
    assert_int_equal(format_columns(out), 120);
    setenv("COLUMNS", "1", 1);
    assert_int_equal(format_columns(out), 120);
    unsetenv("COLUMNS");
    assert_int_equal(format_columns(out), 120);
    fclose(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_have_three_digits_and_a_unit),
        cmocka_unit_test(shares_in_percent),
        cmocka_unit_test(width_counts_characters),
        cmocka_unit_test(texts_are_broken_at_blanks),
        cmocka_unit_test(columns_are_taken_from_the_environment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
