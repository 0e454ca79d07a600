/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The socket: connections, their bytes, fair turns and time limits. One thread does it, and
 * nothing in it waits for a client: a connection has a small buffer each way; a client that does
 * not take its answers is not read from; each connection gets one request a turn, and a user's
 * connections together get not much more time than TURN_NS. Nothing waits for the kernel's
 * readers either: worker.h. What requests mean: answer.c.
 */
#ifndef PRCB_DAEMON_SERVER_H
#define PRCB_DAEMON_SERVER_H

#include "config.h"
#include "conn.h"
#include "sessions.h"
#include "wire.h"
#include "worker.h"

/* A user who has connections. */
struct user {
    uid_t uid;
    uint64_t conns;
    uint64_t spent; /* ns, in this round */
    struct user *next;
};

/* The state of loading the processor programs. */
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
/* Runs until a signal asks for the end. */
int server_run(struct server *s, struct prcb_error *err);
/* Waits for the job of the second thread, and does what is left to do: sessions that clients got
 * an answer for must stand in the records. */
void server_settle(struct server *s);
/* Gives back what a server holds, but its second thread: for who makes many, which prcbd is not. */
void server_stop(struct server *s);

/* In answer.c: calls conn_answer or conn_refuse, once. False: it is too early, and neither was
 * called. */
bool answer_request(struct server *s, struct conn *conn, const struct wire_message *request);

/* The processors' programs are attached, or cannot be; the first who asks has it done. */
bool server_processors_run(struct server *s);

#endif
