/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The library's end of prcbd's socket: connecting, one request and its answer, the descriptors
 * that come with it. Not what is asked for: that is the tiers'. docs/protocol.md has the protocol.
 *
 * The daemon is trusted with what it was started for, but not with this process: a broken one, or
 * another program on its socket, gets an error. What it passes is looked at before it is mapped.
 *
 * Errors   negative with words in *err, but for a connection that ended in the middle of a
 *          request: client_cut_off tells it by its code, and whether to reconnect is the
 *          caller's to decide.
 * Threads  a client belongs to one caller at a time.
 */
#ifndef PRCB_CLIENT_CLIENT_H
#define PRCB_CLIENT_CLIENT_H

#include <stdbool.h>

#include <prcb/prcb.h>

#include "wire.h"

struct client {
    int socket;                     /* -1: none */
    uint64_t deadline;              /* CLOCK_MONOTONIC, of the operation (client_start) */
    uint32_t id;                    /* of the last request */
    struct wire_hello_answer hello; /* the daemon's */
};

/* Holds a message that came, its bytes and descriptors. */
struct client_arrival {
    uint8_t bytes[WIRE_MAX];
    struct wire_message message;
    int fds[WIRE_MAX_FDS]; /* -1: none */
};

/* A request and where its answer goes, of which the first `least` bytes must come. */
struct client_question {
    uint16_t type; /* enum wire_type */
    const void *payload;
    size_t size;
    size_t least;
    void *answer;
    size_t answer_size;
};

/* Begins an operation: all connecting and asking until the next one has CLIENT_ANSWER_S together,
 * however the answers drip. */
#define CLIENT_ANSWER_S 10 /* a daemon that takes longer does not work */
void client_start(struct client *client);
/* The operation is over this long from now at the latest: for what there are other uses of the time
 * than to wait for it. A late answer is skipped when the next one is waited for. */
#define CLIENT_HURRY_MS 200
void client_hurry(struct client *client);
/* Whether that time is over. */
bool client_late(const struct client *client);

/* Connects, in place of a connection that there is, and says hello. -ENOENT, -ECONNREFUSED: no
 * daemon runs. */
int client_connect(struct client *client, struct prcb_error *err);
void client_disconnect(struct client *client);

/* Asks on an open connection. After success the descriptors of *arrival are the caller's. */
int client_ask(struct client *client, const struct client_question *question,
               struct client_arrival *arrival, struct prcb_error *err);
bool client_cut_off(int code);
/* The words for it where nothing is to be tried again. Returns code. */
int client_closed(int code, struct prcb_error *err);

/* Puts the socket's path in front of the words of an error: it says which daemon refused. Returns
 * code; 0 is no error. */
int client_named(int code, struct prcb_error *err);
/* Whether the error of a request came from a daemon, not from there being none. A daemon that does
 * not run is no reason to report: who may load the programs has the same from them. */
bool client_refused(int code);

/* Closes those that were not taken (set to -1). */
void client_close_fds(struct client_arrival *arrival);

/* Whether a descriptor that came can be mapped and read without harm: it is an eBPF array, which
 * nobody can make shorter, and of which the kernel maps no more than there is. */
int client_check_map(int fd, struct prcb_error *err);

/* Asks for a descriptor of the map of processor blocks, which is checked and is to be closed by the
 * caller. -ENOENT, -ECONNREFUSED: no daemon runs; -EPERM: it does not let this user read them.
 * *ret_threads is one of the map of the threads on them, likewise; -1: this user may not see these.
 * NULL: not wanted. */
int client_processors_map(int *ret_threads, struct prcb_error *err);

#endif
