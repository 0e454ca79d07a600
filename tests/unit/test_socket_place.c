/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Which sockets a program takes away where it listens: those that it, or one of its user that was
 * killed, left there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "socket_place.h"

static char folder[] = "/tmp/prcb-place-XXXXXX";
static struct sockaddr_un at = {.sun_family = AF_UNIX};

static int bound(int type)
{
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const void *)&at, sizeof(at)), 0);
    return fd;
}

static bool is_there(void)
{
    struct stat st;

    return !lstat(at.sun_path, &st);
}

static void what_was_left(void **state)
{
    const int types[] = {SOCK_STREAM, SOCK_DGRAM};

    for (int i = 0; i < 2; i++) {
        close(bound(types[i]));
        socket_place_clear(&at, types[i]);
        assert_false(is_there());
    }
    socket_place_clear(&at, SOCK_STREAM); /* nothing is there */
}

static void where_somebody_answers(void **state)
{
    int fd = bound(SOCK_STREAM);

    assert_int_equal(listen(fd, 1), 0);
    socket_place_clear(&at, SOCK_STREAM);
    socket_place_clear(&at, SOCK_DGRAM); /* of another type, it refuses nothing */
    assert_true(is_there());
    close(fd);
    unlink(at.sun_path);
    fd = bound(SOCK_DGRAM);
    socket_place_clear(&at, SOCK_DGRAM);
    assert_true(is_there());
    close(fd);
    unlink(at.sun_path);
}

static void what_is_no_socket(void **state)
{
    char other[128];
    FILE *file = fopen(at.sun_path, "w");

    assert_non_null(file);
    fclose(file);
    socket_place_clear(&at, SOCK_STREAM);
    assert_true(is_there());
    unlink(at.sun_path);
    close(bound(SOCK_STREAM));
    snprintf(other, sizeof(other), "%s/other", folder);
    assert_int_equal(rename(at.sun_path, other), 0);
    assert_int_equal(symlink(other, at.sun_path), 0);
    socket_place_clear(&at, SOCK_STREAM);
    assert_true(is_there());
    assert_int_equal(access(other, F_OK), 0);
    unlink(at.sun_path);
    unlink(other);
}

static void another_users(void **state)
{
    if (geteuid())
        skip();
    close(bound(SOCK_STREAM));
    assert_int_equal(chown(at.sun_path, 1, 1), 0);
    socket_place_clear(&at, SOCK_STREAM);
    assert_true(is_there());
    unlink(at.sun_path);
}

static void ones_own_at_the_end(void **state)
{
    struct socket_place none = socket_place_of(at.sun_path), own, other;

    close(bound(SOCK_STREAM));
    own = socket_place_of(at.sun_path);
    socket_place_leave(at.sun_path, &none); /* of one who did not get to listen */
    assert_true(is_there());
    other = own;
    other.inode++;
    socket_place_leave(at.sun_path, &other);
    other = own;
    other.device++;
    socket_place_leave(at.sun_path, &other);
    assert_true(is_there());
    socket_place_leave(at.sun_path, &own);
    assert_false(is_there());
    socket_place_leave(at.sun_path, &own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_left),       cmocka_unit_test(where_somebody_answers),
        cmocka_unit_test(what_is_no_socket),   cmocka_unit_test(another_users),
        cmocka_unit_test(ones_own_at_the_end),
    };
    int failed;

    if (!mkdtemp(folder))
        return 1;
    snprintf(at.sun_path, sizeof(at.sun_path), "%s/socket", folder);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
