/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Connections over which something was sent that was not answered: of real sockets, and by answers
 * of the kernel that are made up, cut and wrong.
 */
#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "unanswered.h"

static const struct unanswered_row *row_to(const struct unanswered *u, const char *remote)
{
    for (size_t i = 0; i < u->count; i++) {
        if (!strcmp(u->rows[i].remote, remote))
            return &u->rows[i];
    }
    return NULL;
}

static void look(struct unanswered *u)
{
    pid_t self = getpid();

    u->again_ns = 0;
    unanswered_look(u, &self, 1);
}

/* Both ends are this process's: the one that asks owes nothing, the one that was asked does not
 * count, for it was accepted. */
static void test_real(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(at);
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), end;
    struct unanswered u = {.count = 0};
    const struct unanswered_row *row;
    char remote[64], byte = 1;

    assert_false(bind(server, (void *)&at, size) || listen(server, 1) ||
                 getsockname(server, (void *)&at, &size) || connect(client, (void *)&at, size));
    end = accept(server, NULL, NULL);
    assert_true(end >= 0);
    snprintf(remote, sizeof(remote), "127.0.0.1:%u", (unsigned)ntohs(at.sin_port));
    look(&u);
    assert_null(row_to(&u, remote));
    assert_int_equal(send(client, &byte, 1, 0), 1);
    look(&u);
    row = row_to(&u, remote);
    if (!row) { /* a kernel without inet_diag tells nothing, which is said as nothing */
        assert_int_equal(u.count, 0);
        skip();
    }
    assert_int_equal(row->connections, 1);
    assert_int_equal(row->looks, 1);
    assert_int_equal(u.count, 1);
    assert_int_equal(recv(end, &byte, 1, 0), 1);
    assert_int_equal(send(end, &byte, 1, 0), 1);
    assert_int_equal(recv(client, &byte, 1, 0), 1);
    look(&u);
    assert_int_equal(u.looks, 3);
    assert_int_equal(row->looks, 1);
    close(server);
    close(client);
    close(end);
}

struct made {
    struct nlmsghdr head;
    struct inet_diag_msg about;
    struct nlattr info;
    struct tcp_info times;
} __attribute__((packed));

static struct made made(uint32_t inode, uint8_t state)
{
    struct made ret = {
        .head = {.nlmsg_len = sizeof(ret), .nlmsg_type = SOCK_DIAG_BY_FAMILY},
        .about = {.idiag_family = AF_INET, .idiag_state = state, .idiag_inode = inode},
        .info = {.nla_len = sizeof(struct nlattr) + sizeof(struct tcp_info),
                 .nla_type = INET_DIAG_INFO},
        .times = {.tcpi_last_data_sent = 10, .tcpi_last_data_recv = 20},
    };

    ret.about.id.idiag_dst[0] = htonl(0x0a000002);
    ret.about.id.idiag_dport = htons(80);
    ret.about.id.idiag_sport = htons(4000);
    return ret;
}

static void test_made_up(void **state)
{
    const uint64_t inodes[] = {5, 7};
    struct unanswered_found *found = calloc(1, sizeof(*found));
    struct made rows[] = {made(5, 1), made(6, 1), made(7, 1), made(0, 10)};

    assert_non_null(found);
    rows[2].times.tcpi_last_data_recv = 10; /* answered */
    assert_int_equal(unanswered_parse(found, inodes, 2, rows, sizeof(rows)), 0);
    assert_int_equal(found->count, 1);
    assert_string_equal(found->ends[0].remote, "10.0.0.2:80");
    assert_int_equal(found->ends[0].sent_ms, 10);
    assert_true(found->listens[4000 / 8] & 1u << 4000 % 8);
    for (size_t length = 0; length < sizeof(rows[0]); length++) {
        char *copy = malloc(length + 1);
        struct made cut = rows[0];

        assert_non_null(copy);
        if (length >= sizeof(cut.head))
            cut.head.nlmsg_len = (uint32_t)length;
        memcpy(copy, &cut, length);
        unanswered_parse(found, inodes, 2, copy, length);
        free(copy);
    }
    assert_int_equal(found->count, 1);
    rows[0].head.nlmsg_type = NLMSG_DONE;
    assert_true(unanswered_parse(found, inodes, 2, rows, sizeof(rows)));
    free(found->ends);
    free(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real),
        cmocka_unit_test(test_made_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
