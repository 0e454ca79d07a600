/* SPDX-License-Identifier: BSD-2-Clause */
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "child_end.h"
#include "confine.h"
#include "error.h"
#include "now.h"

#define READY 1 /* the child's first byte: it is confined */
#define START_MS                                                                                   \
    30000           /* within which it comes: what runs at a fork is the program's around us, too */
#define SEND_S  5   /* for a child that does not take what it is sent */
#define STOP_MS 200 /* for one that was killed to end; after that it is left */

static void ignore_signals(void)
{
    /* A terminal's signals go to the whole group; the parent decides when the child ends. */
    static const int ignored[] = {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGPIPE, SIGTSTP};

    for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
        signal(ignored[i], SIG_IGN);
}

static _Noreturn void be_child(const struct sandbox_limits *limits, sandbox_serve_fn serve,
                               void *ctx, int socket)
{
    unsigned char ready = READY;
    sigset_t none;

    ignore_signals();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    socket = confine_descriptors(socket);
    if (socket < 0 || (!limits->trusted && confine_process(limits)))
        _exit(1);
    if (send(socket, &ready, sizeof(ready), MSG_NOSIGNAL) != sizeof(ready))
        _exit(1);
    _exit(serve(socket, ctx));
}

int sandbox_start(const struct sandbox_limits *limits, sandbox_serve_fn serve, void *ctx,
                  struct sandbox *ret, struct prcb_error *err)
{
    const struct timeval most = {.tv_sec = SEND_S};
    struct sandbox started;
    unsigned char ready;
    int sockets[2];

    *ret = (struct sandbox){0};
    if (children_left() >= CHILDREN_LEFT)
        return prcb_fail(err, -EBUSY, "%d processes wait for files that do not answer",
                         CHILDREN_LEFT);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
        return prcb_fail(err, -errno, "a socket cannot be made: %s", strerror(errno));
    started = (struct sandbox){.pid = fork(), .socket = sockets[0]};
    if (!started.pid)
        be_child(limits, serve, ctx, sockets[1]);
    close(sockets[1]);
    if (started.pid < 0) {
        close(sockets[0]);
        return prcb_fail(err, -errno, "a process cannot be started: %s", strerror(errno));
    }
    setsockopt(started.socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
    if (sandbox_receive(started.socket, &ready, sizeof(ready), NULL, 0, NULL, START_MS) !=
        sizeof(ready)) {
        sandbox_stop(&started);
        if (access("/dev/null", R_OK | W_OK))
            return prcb_fail(err, -EOPNOTSUPP,
                             "a process to read other programs in needs /dev/null: %s",
                             strerror(errno));
        return prcb_fail(err, -EOPNOTSUPP,
                         "a process to read other programs in cannot be confined");
    }
    *ret = started;
    return 0;
}

void sandbox_stop(struct sandbox *sandbox)
{
    if (!sandbox->pid)
        return;
    kill(sandbox->pid, SIGKILL);
    close(sandbox->socket);
    child_end(sandbox->pid, STOP_MS, NULL);
    *sandbox = (struct sandbox){0};
}

uint64_t sandbox_cpu_ns(const struct sandbox *sandbox)
{
    struct timespec used;
    clockid_t clock;

    if (!sandbox->pid || clock_getcpuclockid(sandbox->pid, &clock) || clock_gettime(clock, &used))
        return 0;
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

void sandbox_alarm(unsigned seconds)
{
    struct itimerval timer = {.it_value.tv_sec = seconds};

    setitimer(ITIMER_REAL, &timer, NULL);
}

/* ---- messages ------------------------------------------------------------------------ */

/* Holds aligned room for the descriptors of one message. */
union control {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(SANDBOX_FDS * sizeof(int))];
};

int sandbox_send(int socket, const void *bytes, size_t length, const int *fds, size_t fd_count)
{
    struct iovec part = {(void *)(uintptr_t)bytes, length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    union control control = {0};
    ssize_t sent;

    if (fd_count > SANDBOX_FDS)
        return -E2BIG;
    if (fd_count) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(&control.head), fds, fd_count * sizeof(int));
    }
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return errno == ECONNRESET ? -EPIPE : errno == EAGAIN ? -ETIMEDOUT : -errno;
    return (size_t)sent == length ? 0 : -EPIPE;
}

/* 0: there is something to read, be it the end. */
static int await(int socket, int timeout_ms)
{
    uint64_t deadline = timeout_ms < 0 ? 0 : now_ms() + (uint64_t)timeout_ms;
    struct pollfd wait = {.fd = socket, .events = POLLIN};
    int left = timeout_ms, got;

    while ((got = poll(&wait, 1, left)) < 0 && errno == EINTR) {
        if (timeout_ms >= 0) {
            uint64_t now = now_ms();

            left = now < deadline ? (int)(deadline - now) : 0;
        }
    }
    return got < 0 ? -errno : got ? 0 : -ETIMEDOUT;
}

/* Keeps as many descriptors as there is room for, closes the rest. */
static size_t take_descriptors(struct msghdr *message, int *ret, size_t room)
{
    size_t taken = 0;

    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
        size_t count;

        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
            continue;
        count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(at) + i * sizeof(int), sizeof(fd));
            if (ret && taken < room)
                ret[taken++] = fd;
            else
                close(fd);
        }
    }
    return taken;
}

ssize_t sandbox_receive(int socket, void *ret, size_t size, int *ret_fds, size_t fd_room,
                        size_t *ret_fd_count, int timeout_ms)
{
    struct iovec part = {ret, size};
    union control control;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    size_t taken;
    ssize_t got;
    int result = await(socket, timeout_ms);

    if (result)
        return result;
    do
        got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno == ECONNRESET ? -EPIPE : -errno;
    taken = take_descriptors(&message, ret_fds, fd_room);
    if (!got || message.msg_flags & MSG_TRUNC) {
        while (taken)
            close(ret_fds[--taken]);
        return got ? -EMSGSIZE : -EPIPE;
    }
    if (ret_fd_count)
        *ret_fd_count = taken;
    return got;
}
