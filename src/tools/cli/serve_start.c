/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve_start.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "error.h"
#include "link.h"
#include "text.h"

#define BACKLOG  128
#define READY_MS 30000
#define SEND_S   5

extern char **environ;

/* ---- where it listens ----------------------------------------------------------------------- */

static int fail_socket(int fd, struct prcb_error *err, const char *where)
{
    int code = -errno;

    if (fd >= 0)
        close(fd);
    return prcb_fail(err, code, "%s: %s", where, strerror(-code));
}

static int listen_port(struct serve_address *address, int *ret, struct prcb_error *err)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)address->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t size = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
    char where[32];

    snprintf(where, sizeof(where), "127.0.0.1:%u", (unsigned)address->port);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
        bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, BACKLOG) ||
        getsockname(fd, (struct sockaddr *)&at, &size))
        return fail_socket(fd, err, where);
    address->port = ntohs(at.sin_port);
    *ret = fd;
    return 0;
}

/* Binds the socket so that only the user can reach it, from its first moment. */
static int bind_private(int fd, const struct sockaddr_un *at)
{
    mode_t before = umask(0177);
    int result = bind(fd, (const struct sockaddr *)at, sizeof(*at));

    umask(before);
    return result;
}

static int listen_unix(struct serve_address *address, int *ret, struct prcb_error *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const char *path = address->path;
    int fd;

    if (strlen(path) >= sizeof(at.sun_path))
        return prcb_fail(err, -ENAMETOOLONG, "%s: the path of a socket has at most %zu bytes", path,
                         sizeof(at.sun_path) - 1);
    memcpy(at.sun_path, path, strlen(path) + 1);
    socket_place_clear(&at, SOCK_STREAM);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind_private(fd, &at) || listen(fd, BACKLOG))
        return fail_socket(fd, err, path);
    address->place = socket_place_of(path);
    *ret = fd;
    return 0;
}

int serve_listen(struct serve_address *address, int *ret, struct prcb_error *err)
{
    return address->path ? listen_unix(address, ret, err) : listen_port(address, ret, err);
}

/* ---- prcb-serve -------------------------------------------------------------------------------
 */

static _Noreturn void be_server(const char *program, int link, int listening)
{
    static char name[] = "prcb-serve";
    char *const arguments[] = {name, NULL}, *const none[] = {NULL};
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

    /* The descriptors move above their final numbers, so that neither replaces the other. */
    link = fcntl(link, F_DUPFD_CLOEXEC, 16);
    listening = fcntl(listening, F_DUPFD_CLOEXEC, 16);
    if (nowhere < 0 || link < 0 || listening < 0 || dup2(nowhere, 0) < 0 || dup2(nowhere, 1) < 0 ||
        dup2(link, LINK_FD) < 0 || dup2(listening, LISTEN_FD) < 0)
        _exit(1);
    execve(program, arguments, none);
    _exit(127);
}

static int make_token(char *ret)
{
    unsigned char bytes[HTTP_TOKEN / 2];

    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return -EIO;
    text_hex(bytes, sizeof(bytes), ret);
    return 0;
}

int serve_start(int listening, uint64_t history_frames, char *ret_token, struct sandbox *ret,
                struct prcb_error *err)
{
    const struct timeval most = {.tv_sec = SEND_S};
    struct link_start start = {.history_frames = history_frames};
    char program[PATH_MAX + 32];
    int sockets[2], result;
    char ready;

    cli_find_program("serve/prcb-serve", program, sizeof(program));
    if (access(program, X_OK))
        return prcb_fail(err, -errno, "%s: %s: it is installed with prcb", program,
                         strerror(errno));
    if (make_token(start.token))
        return prcb_fail(err, -EIO, "cannot get random numbers for the token");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
        return prcb_fail(err, -errno, "cannot create a socket: %s", strerror(errno));
    *ret = (struct sandbox){.pid = fork(), .socket = sockets[0]};
    if (!ret->pid)
        be_server(program, sockets[1], listening);
    close(sockets[1]);
    if (ret->pid < 0) {
        result = -errno;
        close(sockets[0]);
        *ret = (struct sandbox){0};
        return prcb_fail(err, result, "cannot start a process: %s", strerror(-result));
    }
    setsockopt(ret->socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
    result = sandbox_send(ret->socket, &start, sizeof(start), NULL, 0);
    if (!result && (sandbox_receive(ret->socket, &ready, 1, NULL, 0, NULL, READY_MS) != 1 ||
                    ready != LINK_READY))
        result = -EPIPE;
    if (result) {
        sandbox_stop(ret);
        return prcb_fail(err, result, "%s does not start", program);
    }
    memcpy(ret_token, start.token, sizeof(start.token));
    return 0;
}

int serve_send(const struct sandbox *server, const struct frame *frame)
{
    char message[LINK_MESSAGE];
    int result = 0;

    for (size_t at = 0; at < frame->size && !result;) {
        size_t left = frame->size - at, most = sizeof(message) - 1;
        size_t size = left < most ? left : most;

        message[0] = (char)((size == left ? LINK_LAST : 0) | (frame->key ? LINK_KEY : 0));
        memcpy(message + 1, frame->text + at, size);
        result = sandbox_send(server->socket, message, size + 1, NULL, 0);
        at += size;
    }
    return result;
}

/* ---- a browser --------------------------------------------------------------------------------
 */

int serve_open_browser(const char *address, char **ret_path, struct prcb_error *err)
{
    const char *folder = getenv("XDG_RUNTIME_DIR");
    static char name[] = "xdg-open";
    char *path, *arguments[] = {name, NULL, NULL};
    int fd, result;
    FILE *out;
    pid_t pid;

    if (asprintf(&path, "%s/prcb-serve-XXXXXX.html", folder && *folder ? folder : "/tmp") < 0)
        return prcb_fail(err, -ENOMEM, "out of memory");
    fd = mkstemps(path, 5); /* 0600 */
    out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out) {
        result = prcb_fail(err, -errno, "%s: %s", path, strerror(errno));
        free(path);
        return result;
    }
    fprintf(out,
            "<!DOCTYPE html>\n<meta charset=\"utf-8\"><title>prcb serve</title>\n"
            "<meta http-equiv=\"refresh\" content=\"0;url=%s\">\n<a href=\"%s\">prcb serve</a>\n",
            address, address);
    *ret_path = path;
    arguments[1] = path;
    if (fclose(out))
        return prcb_fail(err, -EIO, "%s cannot be written", path);
    result = posix_spawnp(&pid, arguments[0], NULL, NULL, arguments, environ);
    return result ? prcb_fail(err, -result, "xdg-open: %s: open the address yourself",
                              strerror(result))
                  : 0;
}
