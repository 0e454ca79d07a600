/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "first_line.h"

/* What is read, into 8 bytes, of a file that holds text; NULL: nothing. */
static const char *line_of(const char *text)
{
    char path[] = "/tmp/prcb-first-line-XXXXXX";
    static char line[8];
    int fd = mkstemp(path);
    bool good;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    memset(line, 'x', sizeof(line));
    good = first_line(path, line, sizeof(line));
    assert_int_equal(unlink(path), 0);
    return good ? line : NULL;
}

static void lines(void **state)
{
    char line[8];

    assert_string_equal(line_of("tsc\n"), "tsc");
    assert_string_equal(line_of("tsc"), "tsc");
    assert_string_equal(line_of("one\ntwo\n"), "one");
    assert_string_equal(line_of("\ntwo\n"), "");
    assert_string_equal(line_of("1234567\n"), "1234567");
    assert_string_equal(line_of("12345678\n"), "1234567"); /* as far as there is room */
    assert_null(line_of(""));
    assert_false(first_line("/nonexistent", line, sizeof(line)));
    assert_false(first_line("/", line, sizeof(line))); /* opened, and not read */
}

/* The number that a file's line starts with; 7: there is none. */
static uint64_t number_of(const char *text)
{
    char path[] = "/tmp/prcb-first-line-XXXXXX";
    uint64_t number = 7;
    int fd = mkstemp(path);
    bool good;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    good = first_number(path, &number);
    assert_int_equal(good, number != 7);
    assert_int_equal(unlink(path), 0);
    return number;
}

static void numbers(void **state)
{
    uint64_t number = 7;

    assert_int_equal(number_of("12\n"), 12);
    assert_int_equal(number_of("0"), 0);
    assert_int_equal(number_of("12 34 5\n"), 12);
    assert_int_equal(number_of("18446744073709551615\n"), UINT64_MAX);
    assert_int_equal(number_of(""), 7);
    assert_int_equal(number_of("-1\n"), 7);
    assert_int_equal(number_of("max\n"), 7);
    assert_false(first_number("/nonexistent", &number));
    assert_int_equal(number, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines), cmocka_unit_test(numbers)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
