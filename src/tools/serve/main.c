/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb-serve is started by `prcb serve`, and of no use alone. It speaks HTTP on a socket that it
 * is handed, with a page and the frames that it is sent, and has nothing else: no right, no
 * file, a short list of system calls.
 *
 * Descriptors: `prcb serve` sends on 3; 4 is the socket that listens.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "confine.h"
#include "http.h"
#include "link.h"

struct server {
    struct http *http;
    char *text; /* of the frame that comes */
    size_t size, room;
};

static int append(struct server *s, const char *bytes, size_t size)
{
    if (s->size + size > LINK_FRAME_MOST || array_reserve(s->text, s->size, s->room, size))
        return -ENOMEM;
    array_copy(s->text + s->size, bytes, size);
    s->size += size;
    return 0;
}

/* Takes one message; a frame is complete with its last. */
static int take(struct server *s)
{
    char message[LINK_MESSAGE];
    ssize_t got = sandbox_receive(LINK_FD, message, sizeof(message), NULL, 0, NULL, 0);
    int result;
    char *text;

    if (got == -ETIMEDOUT)
        return 0;
    if (got < 1)
        return -EPIPE;
    result = append(s, message + 1, (size_t)got - 1);
    if (result || !(message[0] & LINK_LAST))
        return result;
    text = s->text;
    s->text = NULL;
    s->room = 0;
    result = http_add(s->http, text, s->size, message[0] & LINK_KEY);
    s->size = 0;
    return result;
}

static int serve(struct server *s)
{
    struct pollfd fds[] = {{.fd = LINK_FD, .events = POLLIN},
                           {.fd = http_fd(s->http), .events = POLLIN}};
    int result = 0;

    while (!result) {
        int ready = poll(fds, 2, http_timeout(s->http));

        if (ready < 0 && errno != EINTR)
            return -errno;
        if (ready > 0 && fds[0].revents)
            result = take(s);
        http_run(s->http);
    }
    return result;
}

int main(void)
{
    const struct sandbox_limits limits = {.memory = 1u << 30, .files = 512, .serves = true};
    struct link_start start;
    struct server server = {0};
    const char ready = LINK_READY;
    int result;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN); /* a terminal signals the whole group; prcb serve ends this process */
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    if (sandbox_receive(LINK_FD, &start, sizeof(start), NULL, 0, NULL, 10000) != sizeof(start)) {
        fputs("prcb-serve is started by prcb serve\n", stderr);
        return 2;
    }
    start.token[HTTP_TOKEN] = '\0';
    result = http_open(LISTEN_FD, start.token, start.history_frames, &server.http);
    explicit_bzero(&start, sizeof(start));
    if (!result)
        result = confine_process(&limits);
    if (!result)
        result = sandbox_send(LINK_FD, &ready, 1, NULL, 0);
    if (!result)
        serve(&server);
    http_close(server.http);
    free(server.text);
    return result ? 1 : 0;
}
