/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Toolhelp's lists of what procfs says, where names are made to mislead: compiled in, so that
 * sanitizers see it (a program of libprcb-nt's is linked without them).
 */
#include "../../src/nt/compat/toolhelp.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#undef fail /* what the library calls so */

static DWORD last_error;

BOOL fail(DWORD code)
{
    last_error = code;
    return FALSE;
}

static void test_names_of_processes(void **state)
{
    static const struct {
        const char *line, *name;
    } rows[] = {
        {"71 (a) (b) S 70 71 71 0 -1 4194304 90 0 0 0 1 2 0 0 20 -5 3 0", "a) (b"},
        {"71 () S 70 71 71 0 -1 4194304 90 0 0 0 1 2 0 0 20 -5 3 0", ""},
        {"71 (a\n1 (b) S 70 71 71 0 -1 4194304 90 0 0 0 1 2 0 0 20 -5 3 0", "a\n1 (b"},
        {"71 (kworker/1234567890123456789012345678901234567890123456789012345678901) S 70 71 71 0 "
         "-1 "
         "4194304 90 0 0 0 1 2 0 0 20 -5 3 0",
         "kworker/1234567890123456789012345678901234567890123456789012345"},
        {"71 )( S 70 71 71 0 -1 4194304 90 0 0 0 1 2 0 0 20 -5 3 0", NULL},
        {"71 (a", NULL},
        {"71 (a) S 70", NULL},
        {"", NULL},
    };
    char line[256];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct process p = {0};

        snprintf(line, sizeof(line), "%s", rows[i].line);
        assert_int_equal(take_stat(line, &p), rows[i].name != NULL);
        if (!rows[i].name)
            continue;
        assert_string_equal(p.name, rows[i].name);
        assert_int_equal(p.id, 71);
        assert_int_equal(p.parent, 70);
        assert_int_equal(p.threads, 3);
        assert_int_equal(p.priority, 9);
    }
}

static void take_lines(struct snapshot *s, const char *const *lines)
{
    for (; *lines; lines++)
        assert_true(take_mapping(s, 7, *lines));
}

/* A file that is mapped in parts is one module; one that nothing executes is none; what is no file
 * neither. */
static void test_modules(void **state)
{
    static const char *const lines[] = {
        "1000-2000 r--p 00000000 08:01 1 /bin/a b",
        "2000-5000 r-xp 00001000 08:01 1 /bin/a b",
        "6000-7000 rw-p 00000000 00:00 0 [heap]",
        "7000-8000 r-xp 00000000 00:00 0 [vdso]",
        "8000-9000 r--p 00000000 08:01 2 /data",
        "ffffffffff600000-ffffffffff601000 r-xp 00000000 08:01 3 /top\n",
        "no line",
        NULL,
    };
    struct snapshot s = {0};
    MODULEENTRY32W row = {.dwSize = sizeof(row)};

    (void)state;
    take_lines(&s, lines);
    snapshots = &s;
    assert_int_equal(s.count[MODULES], 2);
    assert_true(Module32FirstW(&s, &row));
    assert_ptr_equal(row.modBaseAddr, (void *)0x1000);
    assert_int_equal(row.modBaseSize, 0x4000);
    assert_int_equal(row.szModule[2], 'b');
    assert_true(Module32NextW(&s, &row));
    assert_int_equal(row.szExePath[1], 't');
    assert_int_equal(row.szExePath[4], 0);
    assert_false(Module32NextW(&s, &row));
    assert_int_equal(last_error, ERROR_NO_MORE_FILES);
    row.dwSize = 8;
    assert_false(Module32FirstW(&s, &row));
    assert_int_equal(last_error, ERROR_BAD_LENGTH);
    snapshots = NULL;
    free(s.modules);
}

/* Longer than MAX_PATH, and with a last part longer than a module's name. */
static void test_long_paths(void **state)
{
    struct snapshot s = {0};
    MODULEENTRY32 row = {.dwSize = sizeof(row)};
    char line[5000];
    int length = snprintf(line, sizeof(line), "1000-2000 r-xp 00000000 08:01 1 /");

    (void)state;
    memset(line + length, '\xff', sizeof(line) - 1 - (size_t)length);
    line[sizeof(line) - 1] = '\0';
    assert_true(take_mapping(&s, 7, line));
    snapshots = &s;
    assert_true(Module32First(&s, &row));
    assert_int_equal(strlen(row.szExePath), MAX_PATH - 1);
    assert_int_equal(strlen(row.szModule), MAX_MODULE_NAME32);
    snapshots = NULL;
    free(s.modules);
}

/* The lists of this machine, and handles that are none. */
static void test_live(void **state)
{
    HANDLE handle = CreateToolhelp32Snapshot(TH32CS_SNAPALL, 0);
    PROCESSENTRY32 process = {.dwSize = sizeof(process)};
    THREADENTRY32 thread = {.dwSize = sizeof(thread)};
    BOOL is_there = FALSE;

    (void)state;
    assert_ptr_not_equal(handle, INVALID_HANDLE_VALUE);
    for (BOOL more = Process32First(handle, &process); more; more = Process32Next(handle, &process))
        is_there |= process.th32ProcessID == (DWORD)getpid();
    assert_true(is_there);
    assert_true(Thread32First(handle, &thread));
    assert_true(snapshot_close(handle));
    assert_false(snapshot_close(handle));
    assert_false(Thread32First(handle, &thread));
    assert_int_equal(last_error, ERROR_INVALID_HANDLE);
    assert_ptr_equal(CreateToolhelp32Snapshot(TH32CS_SNAPHEAPLIST, 0), INVALID_HANDLE_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_of_processes),
        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_long_paths),
        cmocka_unit_test(test_live),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
