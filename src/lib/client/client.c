/* SPDX-License-Identifier: BSD-2-Clause */
#include "client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "block_abi.h"
#include "error.h"
#include "now.h"

#define MAP_TYPE_ARRAY 2       /* BPF_MAP_TYPE_ARRAY */
#define MAP_MMAPABLE   0x400u  /* BPF_F_MMAPABLE */
#define STATUS_LEAST   (-4095) /* the kernel's range of errors */

static const char *socket_path(void)
{
    const char *path = secure_getenv("PRCB_SOCKET");

    return path && *path ? path : WIRE_DEFAULT_PATH;
}

/* ---- time ---- */

void client_start(struct client *c)
{
    c->deadline = now_ns() + CLIENT_ANSWER_S * 1000000000ull;
}

void client_hurry(struct client *c)
{
    uint64_t soon = now_ns() + CLIENT_HURRY_MS * 1000000ull;

    if (!c->deadline || c->deadline > soon)
        c->deadline = soon;
}

bool client_late(const struct client *c)
{
    return now_ns() >= c->deadline;
}

/* Waits until the socket can be read from or written to. */
static int wait_for(const struct client *c, short events)
{
    struct pollfd poll_fd = {.fd = c->socket, .events = events};
    uint64_t now = now_ns(), left = c->deadline > now ? c->deadline - now : 0;
    struct timespec most = {(time_t)(left / 1000000000), (long)(left % 1000000000)};
    int ready = left ? ppoll(&poll_fd, 1, &most, NULL) : 0;

    if (ready < 0)
        return errno == EINTR ? 0 : -errno;
    return ready ? 0 : -ETIMEDOUT;
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

static bool would_wait(void)
{
    return errno == EAGAIN || errno == EINTR;
}

static int send_all(const struct client *c, const uint8_t *bytes, size_t length)
{
    while (length) {
        ssize_t sent = send(c->socket, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        int result = 0;

        if (sent < 0)
            result = would_wait() ? wait_for(c, POLLOUT) : -errno;
        if (result)
            return result;
        bytes += sent > 0 ? sent : 0;
        length -= sent > 0 ? (size_t)sent : 0;
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

/* Descriptors come with the first byte of a message. Others, and more than there is room for,
 * belong to nobody. */
static void take_fds(struct msghdr *header, bool first, struct client_arrival *arrival)
{
    int place = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
            if (first && place < WIRE_MAX_FDS)
                arrival->fds[place++] = fd;
            else
                close(fd);
        }
    }
}

static size_t length_of(const uint8_t *bytes)
{
    struct wire_header header;

    memcpy(&header, bytes, sizeof(header));
    return header.length;
}

/* Some more bytes of the message, and what comes with them. */
static ssize_t receive_part(const struct client *c, size_t have, struct client_arrival *ret)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * WIRE_MAX_FDS)];
    } control;
    struct iovec part = {.iov_base = ret->bytes + have};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control.room,
                            .msg_controllen = sizeof(control.room)};
    /* It takes no more than this message, for the next one has descriptors of its own. */
    size_t want =
        have < sizeof(struct wire_header) ? sizeof(struct wire_header) : length_of(ret->bytes);
    ssize_t got;

    part.iov_len = want - have;
    got = recvmsg(c->socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0)
        return would_wait() ? wait_for(c, POLLIN) : -errno;
    take_fds(&header, !have, ret);
    return got ? got : -ECONNRESET;
}

static int receive(const struct client *c, struct client_arrival *ret)
{
    size_t have = 0;
    ssize_t got = 0;
    int taken = 0;

    for (int i = 0; i < WIRE_MAX_FDS; i++)
        ret->fds[i] = -1;
    while (got >= 0 && !(taken = wire_take(ret->bytes, have, &ret->message))) {
        /* One that drips is as late as one that is silent. */
        got = client_late(c) ? -ETIMEDOUT : receive_part(c, have, ret);
        have += got > 0 ? (size_t)got : 0;
    }
    if (got < 0 || taken < 0)
        client_close_fds(ret);
    return got < 0 ? (int)got : taken < 0 ? taken : 0;
}

/* Those before it are of questions that were given up. */
static int receive_answer(const struct client *c, struct client_arrival *ret)
{
    int result;

    while (!(result = receive(c, ret)) && (int32_t)(ret->message.header.id - c->id) < 0)
        client_close_fds(ret);
    return result;
}

/* Says what the daemon refused, in its words. */
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
    int result = send_all(c, bytes, length);

    if (!result)
        result = receive_answer(c, arrival);
    if (client_cut_off(result))
        return result;
    if (!result &&
        (arrival->message.header.type != q->type || arrival->message.header.id != c->id ||
         arrival->message.header.status < STATUS_LEAST)) {
        client_close_fds(arrival);
        result = -EBADMSG;
    }
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
    const struct timeval most = {.tv_sec = CLIENT_ANSWER_S};
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(address.sun_path))
        return prcb_fail(err, -ENAMETOOLONG, "PRCB_SOCKET: a socket's path has at most %zu bytes",
                         sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, path, strlen(path) + 1);
    client_disconnect(c);
    c->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->socket < 0)
        return prcb_fail(err, -errno, "socket: %s", strerror(errno));
    /* The kernel waits in connect while others do: all else is waited for here. */
    setsockopt(c->socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
    if (!connect(c->socket, (const struct sockaddr *)&address, sizeof(address)))
        return 0;
    if (errno == ENOENT || errno == ECONNREFUSED)
        return prcb_fail(err, -errno, "prcbd is not running: no process listens on %s", path);
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

/* ---- what is passed ---- */

/* Reads the number of a line "name:\tnumber" of a descriptor's file in /proc; 0: there is none. No
 * other file has these, and nobody but the kernel writes them; bpf(2) would tell the same to those
 * who may call it. */
static unsigned long fd_number(FILE *info, const char *name)
{
    size_t length = strlen(name);
    char line[128];

    rewind(info);
    while (fgets(line, sizeof(line), info)) {
        if (!strncmp(line, name, length) && line[length] == ':')
            return strtoul(line + length + 1, NULL, 0);
    }
    return 0;
}

int client_check_map(int fd, struct prcb_error *err)
{
    char path[64];
    bool good;
    FILE *info;

    if (fd < 0)
        return prcb_fail(err, -EBADMSG, "prcbd passed no memory");
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    info = fopen(path, "re");
    if (!info)
        return prcb_fail(err, -errno, "%s: %s", path, strerror(errno));
    good = fd_number(info, "map_type") == MAP_TYPE_ARRAY &&
           fd_number(info, "map_flags") & MAP_MMAPABLE;
    fclose(info);
    return good ? 0 : prcb_fail(err, -EBADMSG, "prcbd passed something else than its memory");
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
    client_start(&c);
    result = client_connect(&c, err);
    if (!result)
        result = client_named(client_closed(client_ask(&c, &q, &arrival, err), err), err);
    client_disconnect(&c); /* what was passed stays */
    if (result)
        return result;
    result = client_named(client_check_map(arrival.fds[0], err), err);
    if (!result && ret_threads && arrival.fds[1] >= 0)
        result = client_named(client_check_map(arrival.fds[1], err), err);
    if (!result) {
        result = arrival.fds[0];
        arrival.fds[0] = -1;
        if (ret_threads) {
            *ret_threads = arrival.fds[1];
            arrival.fds[1] = -1;
        }
    }
    client_close_fds(&arrival);
    return result;
}
