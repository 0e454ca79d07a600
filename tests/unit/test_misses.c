/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What is said of programs that the kernel did not run: those that missed events, and no others.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "misses.h"

static int next(void *from, uint32_t i, struct prcb_program *ret)
{
    const struct prcb_program *programs = from;

    if (!programs[i].name[0])
        return -ENOENT;
    *ret = programs[i];
    return 0;
}

static char *words(struct prcb_program *programs)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    misses_write(out, "note: ", next, programs, "waits may be missing");
    fclose(out);
    return text;
}

static void those_that_missed(void **state)
{
    struct prcb_program programs[] = {
        {.name = "prcb_never"},
        {.name = "prcb_once", .recursion_misses = 1},
        {.name = "prcb_not_counted", .recursion_misses = UINT64_MAX},
        {.name = "prcb_of\033[2J", .recursion_misses = 12345678901},
        {.name = ""},
    };
    char *text = words(programs);

    assert_string_equal(text, "note: 1 time the kernel did not run the program prcb_once, being in "
                              "the middle of it: waits may be missing\n"
                              "note: 12345678901 times the kernel did not run the program "
                              "prcb_of\\x1b[2J, being in the middle of it: waits may be missing\n");
    free(text);
}

static void none(void **state)
{
    struct prcb_program programs[] = {{.name = ""}};
    char *text = words(programs);

    assert_string_equal(text, "");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_that_missed),
        cmocka_unit_test(none),
    };

    return cmocka_run_group_tests_name("misses", tests, NULL, NULL);
}
