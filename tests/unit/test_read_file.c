/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "read_file.h"

#define LARGE 200000 /* more than the room that a reader begins with */

static char folder[] = "/tmp/prcb-read-file-XXXXXX", path[64];

static int make_file(void **state)
{
    FILE *out;

    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/file", folder);
    out = fopen(path, "w");
    for (int i = 0; out && i < LARGE; i++)
        putc('a' + i % 23, out);
    return !out || fclose(out);
}

static int remove_file(void **state)
{
    return unlink(path) || rmdir(folder);
}

static void whole(void **state)
{
    char *bytes;
    size_t length;

    assert_int_equal(read_file(path, LARGE, &bytes, &length), 0);
    assert_int_equal(length, LARGE);
    assert_int_equal(strlen(bytes), LARGE); /* there is a NUL behind it */
    for (int i = 0; i < LARGE; i++)
        assert_int_equal(bytes[i], 'a' + i % 23);
    free(bytes);
    /* A file of procfs, which says that it has no bytes. */
    assert_int_equal(read_file("/proc/self/status", LARGE, &bytes, &length), 0);
    assert_int_equal(strncmp(bytes, "Name:", 5), 0);
    assert_int_equal(strlen(bytes), length);
    free(bytes);
}

static void failures(void **state)
{
    char *bytes = (char *)path;
    size_t length = 7;

    assert_int_equal(read_file(path, LARGE - 1, &bytes, &length), -EFBIG);
    assert_int_equal(read_file("/nonexistent", LARGE, &bytes, &length), -ENOENT);
    assert_int_equal(read_file("/", LARGE, &bytes, &length), -EISDIR);
    assert_ptr_equal(bytes, path);
    assert_int_equal(length, 7);
    assert_int_equal(read_start("/nonexistent", path, 1), -ENOENT);
    assert_int_equal(read_start("/", path, 1), -EISDIR);
    assert_int_equal(read_full(-1, path, 1), -EBADF);
}

static void starts(void **state)
{
    char name[80], bytes[24];

    assert_int_equal(read_start(path, bytes, 3), 3);
    assert_memory_equal(bytes, "abc", 3);
    assert_int_equal(prctl(PR_SET_NAME, "reader"), 0);
    assert_int_equal(read_start("/proc/self/comm", bytes, sizeof(bytes)), 7);
    assert_memory_equal(bytes, "reader\n", 7);
    /* Nobody writes into it, and nobody will. */
    snprintf(name, sizeof(name), "%s/fifo", folder);
    assert_int_equal(mkfifo(name, 0600), 0);
    assert_int_equal(read_start(name, bytes, 1), 0);
    assert_int_equal(unlink(name), 0);
}

static void nothing(int number)
{
}

/* A pipe that is written in pieces, to a reader whom a timer's signal interrupts. */
static void pieces(void **state)
{
    const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = nothing}; /* without SA_RESTART */
    char bytes[32];
    int ends[2], status;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (!child) {
        for (int i = 0; i < 20; i++) {
            usleep(2000);
            if (write(ends[1], "x", 1) != 1)
                _exit(1);
        }
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    assert_int_equal(read_full(ends[0], bytes, sizeof(bytes)), 20);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole), cmocka_unit_test(failures),
                                       cmocka_unit_test(starts), cmocka_unit_test(pieces)};

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
