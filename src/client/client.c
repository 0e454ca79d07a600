/* SPDX-License-Identifier: BSD-2-Clause */
#include "client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "block_abi.h"
#include "error.h"

#define ANSWER_S 10 /* a daemon that takes longer does not work */

static const char *socket_path(void)
{
    const char *path = secure_getenv("PRCB_SOCKET");

    return path && *path ? path : WIRE_DEFAULT_PATH;
}

/* ---- one request, one answer ---- */

bool client_cut_off(int code)
{
    return code == -EPIPE || code == -ECONNRESET || code == -ENOTCONN;
}

int client_closed(int code, struct prcb_error *err)
{
    return client_cut_off(code) ? prcb_fail(err, code, "prcbd closed the connection") : code;
}

int client_named(int code, struct prcb_error *err)
{
    if (code)
        prcb_error_prepend(err, "%s: ", socket_path());
    return code;
}

bool client_refused(int code)
{
    return code && code != -ENOENT && code != -ECONNREFUSED;
}

static int send_all(int fd, const uint8_t *bytes, size_t length)
{
    while (length) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return -errno;
        bytes += sent;
        length -= (size_t)sent;
    }
    return 0;
}

void client_close_fds(struct client_arrival *arrival)
{
    for (int i = 0; i < WIRE_MAX_FDS; i++) {
        if (arrival->fds[i] >= 0)
            close(arrival->fds[i]);
        arrival->fds[i] = -1;
    }
}

/* Descriptors come with the first byte of a message; more than fit are closed by the
 * kernel. */
static void take_fds(struct msghdr *header, struct client_arrival *arrival)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            memcpy(arrival->fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
    }
}

static size_t length_of(const uint8_t *bytes)
{
    struct wire_header header;

    memcpy(&header, bytes, sizeof(header));
    return header.length;
}

static int receive(int fd, struct client_arrival *ret)
{
    size_t have = 0;
    int taken;

    for (int i = 0; i < WIRE_MAX_FDS; i++)
        ret->fds[i] = -1;
    while (!(taken = wire_take(ret->bytes, have, &ret->message))) {
        union {
            struct cmsghdr align;
            char room[CMSG_SPACE(sizeof(int) * WIRE_MAX_FDS)];
        } control;
        /* No more than this message: the next one's descriptors are the next one's. */
        size_t want = sizeof(struct wire_header);
        struct iovec part = {.iov_base = ret->bytes + have};
        struct msghdr header = {.msg_iov = &part,
                                .msg_iovlen = 1,
                                .msg_control = control.room,
                                .msg_controllen = sizeof(control.room)};
        ssize_t got;

        if (have >= want)
            want = length_of(ret->bytes);
        part.iov_len = want - have;
        got = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);

        if (got < 0 && errno == EINTR)
            continue;
        if (got > 0)
            take_fds(&header, ret);
        if (got <= 0) {
            client_close_fds(ret);
            return got ? (errno == EAGAIN ? -ETIMEDOUT : -errno) : -ECONNRESET;
        }
        have += (size_t)got;
    }
    if (taken < 0)
        client_close_fds(ret);
    return taken < 0 ? taken : 0;
}

/* What the daemon refused, in its words. */
static int refusal(const struct wire_message *message, struct prcb_error *err)
{
    return prcb_fail(err, message->header.status, "%.*s", (int)message->size,
                     (const char *)message->payload);
}

int client_ask(struct client *c, const struct client_question *q, struct client_arrival *arrival,
               struct prcb_error *err)
{
    uint8_t bytes[WIRE_MAX];
    size_t length = wire_make(bytes, q->type, ++c->id, 0, q->payload, q->size);
    int result = send_all(c->socket, bytes, length);

    if (!result)
        result = receive(c->socket, arrival);
    if (client_cut_off(result))
        return result;
    if (!result && (arrival->message.header.type != q->type || arrival->message.header.id != c->id))
        result = -EBADMSG;
    if (result)
        return prcb_fail(err, result, "prcbd: %s: %s", wire_type_name(q->type),
                         result == -EBADMSG ? "it answered something else" : strerror(-result));
    if (arrival->message.header.status < 0)
        result = refusal(&arrival->message, err);
    else if (wire_answer(&arrival->message, q->least, q->answer, q->answer_size))
        result =
            prcb_fail(err, -EBADMSG, "prcbd: %s: its answer is too short", wire_type_name(q->type));
    if (result)
        client_close_fds(arrival);
    return result;
}

/* ---- connecting ---- */

void client_disconnect(struct client *c)
{
    if (c->socket >= 0)
        close(c->socket);
    c->socket = -1;
}

static int connect_once(struct client *c, struct prcb_error *err)
{
    const char *path = socket_path();
    const struct timeval most = {.tv_sec = ANSWER_S};
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(address.sun_path))
        return prcb_fail(err, -ENAMETOOLONG, "PRCB_SOCKET: a socket's path has at most %zu bytes",
                         sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, path, strlen(path) + 1);
    client_disconnect(c);
    c->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->socket < 0)
        return prcb_fail(err, -errno, "socket: %s", strerror(errno));
    setsockopt(c->socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
    setsockopt(c->socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
    if (!connect(c->socket, (const struct sockaddr *)&address, sizeof(address)))
        return 0;
    if (errno == ENOENT || errno == ECONNREFUSED)
        return prcb_fail(err, -errno, "prcbd does not run: nobody listens on %s", path);
    return prcb_fail(err, -errno, "prcbd cannot be reached on %s: %s", path, strerror(errno));
}

static int say_hello(struct client *c, struct prcb_error *err)
{
    struct wire_hello hello = {
        .magic = WIRE_MAGIC, .major = WIRE_MAJOR, .minor = WIRE_MINOR, .name = PRCB_VERSION};
    struct client_question q = {WIRE_HELLO,       &hello,    sizeof(hello),
                                sizeof(c->hello), &c->hello, sizeof(c->hello)};
    struct client_arrival arrival;
    int result = client_ask(c, &q, &arrival, err);

    if (result)
        return client_closed(result, err);
    client_close_fds(&arrival);
    if (c->hello.hello.magic != WIRE_MAGIC || c->hello.hello.major != WIRE_MAJOR)
        return prcb_fail(err, -EPROTONOSUPPORT,
                         "prcbd speaks version %u of the protocol, this library %u: update the "
                         "older one",
                         c->hello.hello.major, WIRE_MAJOR);
    if (c->hello.abi_major != PRCB_ABI_MAJOR)
        return prcb_fail(err, -EPROTONOSUPPORT,
                         "prcbd writes blocks of version %u, this library reads %u: update the "
                         "older one",
                         c->hello.abi_major, PRCB_ABI_MAJOR);
    return 0;
}

int client_connect(struct client *c, struct prcb_error *err)
{
    int result = connect_once(c, err);

    return result ? result : client_named(say_hello(c, err), err);
}

/* ---- the processors ---- */

int client_processors_map(int *ret_threads, struct prcb_error *err)
{
    struct client c = {.socket = -1};
    const struct client_question q = {.type = WIRE_PROCESSORS};
    struct prcb_error unwanted;
    struct client_arrival arrival;
    int result;

    err = err ? err : &unwanted;
    result = client_connect(&c, err);
    if (!result)
        result = client_named(client_closed(client_ask(&c, &q, &arrival, err), err), err);
    client_disconnect(&c); /* what was passed stays */
    if (result)
        return result;
    result = arrival.fds[0];
    arrival.fds[0] = -1;
    if (ret_threads) {
        *ret_threads = result < 0 ? -1 : arrival.fds[1];
        arrival.fds[1] = result < 0 ? arrival.fds[1] : -1;
    }
    client_close_fds(&arrival);
    return result < 0 ? prcb_fail(err, -EBADMSG, "prcbd passed no memory") : result;
}
