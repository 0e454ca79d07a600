/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A connection: it has a small buffer each way, and at most one answer on its way out. server.c
 * decides what is read from it and when, answer.c what requests mean.
 */
#ifndef PRCB_DAEMON_CONN_H
#define PRCB_DAEMON_CONN_H

#include "peer.h"
#include "wire.h"

struct session; /* sessions.h */
struct user;    /* server.h */

#define CONN_IN (4 * WIRE_MAX)

struct conn {
    int fd;
    bool greeted;
    bool closing;       /* once the answer is sent */
    bool ended;         /* the client sends no more */
    uint32_t waits_for; /* EPOLL* bits */
    struct peer peer;
    struct user *user;
    struct session *session; /* NULL: none */
    bool shared;             /* the session is shared with others */
    uint32_t member;
    uint64_t asked_at;   /* ms: first look at the request that waits; 0: none waits */
    uint64_t not_before; /* ms: when it is looked at again */
    uint64_t since;      /* ms: of the last progress, for time limits */
    size_t in;
    size_t out, sent;                /* the answer, of which there is one at a time */
    int fds[WIRE_MAX_FDS], fd_count; /* they go out with its first byte */
    uint8_t in_bytes[CONN_IN], out_bytes[WIRE_MAX];
    struct conn *next;
};

/* fds holds `count` descriptors, which are closed when they are sent. */
void conn_answer(struct conn *conn, const struct wire_message *request, const void *payload,
                 size_t size, const int *fds, int count);
void conn_refuse(struct conn *conn, const struct wire_message *request,
                 const struct prcb_error *err);
/* Closes the descriptors that wait to go out. */
void conn_close_fds(struct conn *conn);
/* Returns 1: all is sent; 0: not yet; -errno: the connection is of no more use. */
int conn_flush(struct conn *conn);

#endif
