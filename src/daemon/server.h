/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The socket: connections, their bytes, fair turns and time limits. One thread, nothing that
 * waits for a client: a connection has a small buffer each way; one whose answers are not
 * taken is not read from; each gets one request a turn, and a user's connections together not much
 * more time than TURN_NS. Nothing waits for the kernel's readers either: worker.h. What requests
 * mean: answer.c.
 */
#ifndef PRCB_DAEMON_SERVER_H
#define PRCB_DAEMON_SERVER_H

#include "config.h"
#include "sessions.h"
#include "wire.h"
#include "worker.h"

#define CONN_IN (4 * WIRE_MAX)

/* Who has connections. */
struct user {
    uid_t uid;
    uint64_t conns;
    uint64_t spent; /* ns, in this round */
    struct user *next;
};

struct conn {
    int fd;
    bool greeted;
    bool closing;       /* once the answer is sent */
    bool ended;         /* the client sends no more */
    uint32_t waits_for; /* EPOLL* bits */
    struct peer peer;
    struct user *user;
    struct session *session; /* NULL: none */
    uint64_t asked_at;       /* ms: when the request was first looked at that waits; 0: none does */
    uint64_t not_before;     /* ms: when it is looked at again */
    uint64_t since;          /* ms: of the last progress, for time limits */
    size_t in;
    size_t out, sent;                /* the answer, of which there is one at a time */
    int fds[WIRE_MAX_FDS], fd_count; /* that go out with its first byte */
    uint8_t in_bytes[CONN_IN], out_bytes[WIRE_MAX];
    struct conn *next;
};

/* Of the processor programs. */
enum load { LOAD_NONE, LOAD_ASKED, LOAD_RUNS, LOAD_DONE, LOAD_FAILED };

struct server {
    struct kernel *kernel;
    struct sessions *sessions;
    struct prcbd_config *config;
    struct peer_groups groups;
    int epoll, listener, signals;
    struct conn *conns;
    struct user *users;
    uint64_t conn_count;
    struct worker worker;
    enum load load;
    struct prcb_error load_error;
    uint64_t load_failed_at; /* ms */
    uint64_t listen_again;   /* ms: after a lack of descriptors; 0: listening */
    const char *config_file; /* NULL: none */
};

int server_start(struct server *s, struct prcb_error *err);
/* Until a signal asks for the end. */
int server_run(struct server *s, struct prcb_error *err);
/* Waits for what the second thread is at, and does what is left to do: sessions that were answered
 * for stand in the records. */
void server_settle(struct server *s);
void server_stop(struct server *s);

/* ---- between server.c and answer.c ---- */

/* Answers a request: calls one of the two below, once. False: not yet, nothing was called. */
bool answer_request(struct server *s, struct conn *conn, const struct wire_message *request);

/* fds: `count` descriptors, which are closed when sent. */
void conn_answer(struct conn *conn, const struct wire_message *request, const void *payload,
                 size_t size, const int *fds, int count);
void conn_refuse(struct conn *conn, const struct wire_message *request,
                 const struct prcb_error *err);

#endif
