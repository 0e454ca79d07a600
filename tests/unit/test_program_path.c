/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "program_path.h"

static char folder[] = "/tmp/prcb-program-path-XXXXXX";

static void place(const char *name, char ret[PATH_MAX])
{
    snprintf(ret, PATH_MAX, "%s/%s", folder, name);
}

static void make_file(const char *name, mode_t mode)
{
    char path[PATH_MAX];
    FILE *out;

    place(name, path);
    out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static int make(void **state)
{
    char path[PATH_MAX];

    if (!mkdtemp(folder) || chdir(folder))
        return -1;
    place("a", path);
    if (mkdir(path, 0755))
        return -1;
    place("b", path);
    if (mkdir(path, 0755))
        return -1;
    make_file("a/plain", 0644);
    make_file("b/plain", 0755);
    make_file("a/text", 0644);
    make_file("here", 0755);
    place("a/folder", path);
    return mkdir(path, 0755);
}

static int remove_all(void **state)
{
    static const char *const names[] = {"a/folder", "a/plain", "b/plain", "a/text",
                                        "here",     "a",       "b"};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        place(names[i], path);
        if (remove(path))
            return -1;
    }
    return chdir("/") || rmdir(folder);
}

static void set_path(const char *format)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), format, folder, folder);
    assert_int_equal(setenv("PATH", path, 1), 0);
}

static void assert_found(const char *name, const char *at)
{
    char path[PATH_MAX], wanted[PATH_MAX];

    place(at, wanted);
    assert_int_equal(program_find(name, path), 0);
    assert_string_equal(path, wanted);
}

static void found_as_execvp_would(void **state)
{
    char path[PATH_MAX] = "as before";

    set_path("/nonexistent:%s/a:%s/b");
    assert_found("plain", "b/plain");
    assert_int_equal(program_find("text", path), -EACCES);
    assert_int_equal(program_find("folder", path), -EACCES);
    assert_int_equal(program_find("none", path), -ENOENT);
    assert_int_equal(program_find("here", path), -ENOENT);
    assert_string_equal(path, "as before");
    assert_int_equal(program_find("./here", path), 0);
    assert_string_equal(path, "./here");
    assert_int_equal(program_find("b/none", path), -ENOENT);
}

static void places_in_order(void **state)
{
    static const char *const wanted[] = {"./x", "/a/x", "./x", "/b/x", "./x"};
    const char *at = NULL;
    char path[PATH_MAX], *longest;

    assert_int_equal(setenv("PATH", ":/a::/b:", 1), 0);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        assert_true(program_next(&at, "x", path));
        assert_string_equal(path, wanted[i]);
    }
    assert_false(program_next(&at, "x", path));
    /* A folder that is too long is passed over. */
    longest = malloc(2 * PATH_MAX);
    memset(longest, 'a', 2 * PATH_MAX);
    memcpy(longest + PATH_MAX, ":/b", 4);
    assert_int_equal(setenv("PATH", longest, 1), 0);
    at = NULL;
    assert_true(program_next(&at, "x", path));
    assert_string_equal(path, "/b/x");
    assert_false(program_next(&at, "x", path));
    free(longest);
    /* Without the variable, where the C library looks. */
    assert_int_equal(unsetenv("PATH"), 0);
    assert_int_equal(program_find("sh", path), 0);
    assert_string_equal(path, "/bin/sh");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found_as_execvp_would),
        cmocka_unit_test(places_in_order),
    };

    return cmocka_run_group_tests(tests, make, remove_all);
}
