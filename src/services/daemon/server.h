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
#include "conn.h"
#include "sessions.h"
#include "wire.h"
#include "worker.h"

/* Who has connections. */
struct user {
    uid_t uid;
    uint64_t conns;
    uint64_t spent; /* ns, in this round */
    struct user *next;
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

/* answer.c: calls conn_answer or conn_refuse, once. False: not yet, nothing was called. */
bool answer_request(struct server *s, struct conn *conn, const struct wire_message *request);

#endif
