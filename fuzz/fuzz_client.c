/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The library's end of prcbd's socket: an answer of anything to a question of any type. The first
 * byte chooses the question, the second in how many pieces the answer comes and with how many
 * descriptors. None stays open, and no answer is longer than it says.
 */
#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int lowest_free(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    close(fd);
    return fd;
}

static void send_part(int socket, const uint8_t *bytes, size_t size, unsigned fds)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(3 * sizeof(int))];
    } control = {0};
    const int passed[3] = {0, 0, 0};
    struct iovec part = {(void *)(uintptr_t)bytes, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (fds) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(fds * sizeof(int));
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(fds * sizeof(int));
        memcpy(CMSG_DATA(&control.head), passed, fds * sizeof(int));
    }
    sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct client client = {.socket = -1};
    struct client_question question = {.type = WIRE_HELLO};
    struct client_arrival arrival;
    struct wire_open_answer answer;
    struct prcb_error err;
    size_t pieces;
    unsigned fds;
    int sockets[2], before = lowest_free();

    if (size < 3 || size > 4096 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
        return 0;
    question.type = (uint16_t)(1 + data[0] % 8);
    question.least = data[0] & 0x80 ? sizeof(answer) : 0;
    question.answer = &answer;
    question.answer_size = data[0] & 0x40 ? sizeof(answer) : 0;
    pieces = 1 + (data[1] & 0x1f);
    fds = data[1] >> 6;
    data += 2;
    size -= 2;
    for (size_t i = 0; i < pieces; i++) {
        size_t from = size * i / pieces, to = size * (i + 1) / pieces;

        if (to > from)
            send_part(sockets[1], data + from, to - from, fds);
    }
    shutdown(sockets[1], SHUT_WR);
    client.socket = sockets[0];
    client_start(&client);
    if (!client_ask(&client, &question, &arrival, &err)) {
        assert(arrival.message.size <= WIRE_MAX);
        client_close_fds(&arrival);
    }
    client_disconnect(&client);
    close(sockets[1]);
    assert(lowest_free() == before);
    return 0;
}
