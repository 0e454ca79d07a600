/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Who calls prcb-exporter is told apart: users of this machine by their sockets, others by address.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "callers.h"
#include "sock_diag.h"

#define OTHER 41234 /* a user's number */

struct caller {
    unsigned char who[CALLER_BYTES];
};

static struct caller at(const char *text)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    struct caller ret;

    if (inet_pton(AF_INET, text, &in.sin_addr) == 1) {
        caller_at((const void *)&in, ret.who);
        return ret;
    }
    assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
    caller_at((const void *)&in6, ret.who);
    return ret;
}

static bool same(struct caller a, struct caller b)
{
    return !memcmp(a.who, b.who, sizeof(a.who));
}

static void addresses(void **state)
{
    struct caller none;

    caller_at(NULL, none.who);
    assert_true(same(at("127.0.0.1"), none));
    assert_true(same(at("127.8.9.10"), none));
    assert_true(same(at("::1"), none));
    assert_true(same(at("::ffff:127.0.0.1"), none));
    assert_false(same(at("192.0.2.1"), none));
    assert_false(same(at("192.0.2.1"), at("192.0.2.2")));
    assert_true(same(at("::ffff:192.0.2.1"), at("192.0.2.1")));
    assert_true(same(at("2001:db8::1"), at("2001:db8::ffff:2")));
    assert_false(same(at("2001:db8::1"), at("2001:db8:0:1::1")));
}

/* A socket that listens, on an address of this machine. */
static int listens(const char *text, struct sockaddr_storage *ret, socklen_t *ret_length)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    bool four = inet_pton(AF_INET, text, &in.sin_addr) == 1;
    int fd = socket(four ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    if (!four)
        assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
    if (bind(fd, four ? (const void *)&in : (const void *)&in6, four ? sizeof(in) : sizeof(in6)) ||
        listen(fd, 8))
        skip(); /* no IPv6 here */
    *ret_length = sizeof(*ret);
    assert_int_equal(getsockname(fd, (void *)ret, ret_length), 0);
    return fd;
}

/* Connects as a user of this number; the effective one of this thread makes the socket's. */
static int connects(const struct sockaddr_storage *to, socklen_t length, uid_t user)
{
    int fd;

    if (user)
        assert_int_equal(syscall(SYS_setresuid, -1, user, -1), 0);
    fd = socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (user)
        assert_int_equal(syscall(SYS_setresuid, -1, 0, -1), 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const void *)to, length), 0);
    return fd;
}

/* The caller of a connection; one that is closed already has nobody's socket any more. */
static struct caller calls(int diag, int listener, const struct sockaddr_storage *to,
                           socklen_t length, uid_t user, bool gone)
{
    int fd = connects(to, length, user), end;
    struct caller ret;

    if (gone)
        close(fd);
    end = accept(listener, NULL, NULL);
    assert_true(end >= 0);
    caller_of(diag, end, ret.who);
    close(end);
    if (!gone)
        close(fd);
    return ret;
}

static void users_of(const char *address)
{
    struct sockaddr_storage to;
    socklen_t length;
    int diag = sock_diag_open(), listener = listens(address, &to, &length);
    struct caller root, other;

    if (diag < 0 || geteuid())
        skip();
    root = calls(diag, listener, &to, length, 0, false);
    other = calls(diag, listener, &to, length, OTHER, false);
    assert_false(same(root, at(address)));
    assert_false(same(root, other));
    assert_true(same(other, calls(diag, listener, &to, length, OTHER, false)));
    assert_true(same(calls(diag, listener, &to, length, OTHER, true), at(address)));
    assert_true(same(calls(-1, listener, &to, length, OTHER, false), at(address)));
    close(listener);
    close(diag);
}

static void users_over_ipv4(void **state)
{
    users_of("127.0.0.1");
}

static void users_over_ipv6(void **state)
{
    users_of("::1");
}

static void users_of_a_unix_socket(void **state)
{
    int ends[2];
    struct caller by_unix, none;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    caller_of(-1, ends[0], by_unix.who);
    caller_at(NULL, none.who);
    assert_false(same(by_unix, none));
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses),
        cmocka_unit_test(users_over_ipv4),
        cmocka_unit_test(users_over_ipv6),
        cmocka_unit_test(users_of_a_unix_socket),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
