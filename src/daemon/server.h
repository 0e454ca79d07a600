/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The socket: connections, their bytes, fair turns and time limits. One thread, nothing that
 * waits for a client: a connection has a small buffer each way; one whose answers are not
 * taken is not read from; each gets one request a turn. What requests mean: answer.c.
 */
#ifndef PRCB_DAEMON_SERVER_H
#define PRCB_DAEMON_SERVER_H

#include "config.h"
#include "sessions.h"
#include "wire.h"

#define CONN_IN (4 * WIRE_MAX)

struct conn {
    int fd;
    bool greeted;
    bool closing;       /* once the answer is sent */
    bool ended;         /* the client sends no more */
    uint32_t waits_for; /* EPOLL* bits */
    struct peer peer;
    struct session *session; /* NULL: none */
    uint64_t since;          /* ms: of the last progress, for time limits */
    size_t in;
    size_t out, sent;                /* the answer, of which there is one at a time */
    int fds[WIRE_MAX_FDS], fd_count; /* that go out with its first byte */
    uint8_t in_bytes[CONN_IN], out_bytes[WIRE_MAX];
    struct conn *next;
};

struct server {
    struct kernel *kernel;
    struct sessions *sessions;
    struct prcbd_config *config;
    struct peer_groups groups;
    int epoll, listener, signals;
    struct conn *conns;
    uint64_t conn_count;
    uint64_t listen_again;   /* ms: after a lack of descriptors; 0: listening */
    const char *config_file; /* NULL: none */
};

int server_start(struct server *s, struct prcb_error *err);
/* Until a signal asks for the end. */
int server_run(struct server *s, struct prcb_error *err);
void server_stop(struct server *s);

/* ---- between server.c and answer.c ---- */

/* Answers a request: calls one of the two below, once. */
void answer_request(struct server *s, struct conn *conn, const struct wire_message *request);

/* fds: `count` descriptors, which are closed when sent. */
void conn_answer(struct conn *conn, const struct wire_message *request, const void *payload,
                 size_t size, const int *fds, int count);
void conn_refuse(struct conn *conn, const struct wire_message *request,
                 const struct prcb_error *err);

#endif
