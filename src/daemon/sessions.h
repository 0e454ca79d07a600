/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Sessions: which client numbers are in use, by whom, and how much one user and all together
 * may have. A session outlives its connection only when the daemon ended under it; such a one
 * waits for its process to come back, or to end.
 */
#ifndef PRCB_DAEMON_SESSIONS_H
#define PRCB_DAEMON_SESSIONS_H

#include "config.h"
#include "held.h"
#include "peer.h"

enum session_state {
    SESSION_FREE,
    SESSION_USED,   /* a connection has it */
    SESSION_WAITS,  /* its connection was lost with an earlier daemon */
    SESSION_ENDING, /* to be ended in the next sessions_reap */
};

struct session {
    enum session_state state;
    uint32_t number;
    uid_t uid;
    uint32_t accounts;
    bool same_pid_ns;
    int map;   /* until the programs know of it; else -1 */
    int pidfd; /* WAITS: readable when its process has ended; else -1 */
    /* Accounts given up, to be freed after the next wait. */
    uint32_t *given_up;
    uint32_t given_up_count, given_up_room;
};

struct sessions {
    struct kernel *kernel;
    const struct prcbd_config *config;
    struct session all[PRCB_CLIENT_COUNT]; /* 0 is not used */
    uint32_t opening, ending, waiting, used;
    struct held held;
};

/* Takes over what the kernel side has on record. */
void sessions_start(struct sessions *s, struct kernel *k, const struct prcbd_config *config);

/* A new session; threads can be profiled in it after the next sessions_settle. *ret_fd: its
 * map, to be closed by the caller. -EDQUOT, -ENOSPC, -ENOMEM with words. */
int sessions_open(struct sessions *s, const struct peer *peer, uint32_t accounts,
                  struct session **ret, int *ret_fd, uint8_t token[16], struct prcb_error *err);

/* One that waits, for the process that opened it. -ESTALE. */
int sessions_resume(struct sessions *s, const struct peer *peer, const uint8_t token[16],
                    struct session **ret, struct prcb_error *err);

/* Its connection is gone. */
void sessions_close(struct sessions *s, struct session *session);

/* One account given back. -ESTALE */
int sessions_release(struct sessions *s, struct session *session, uint64_t key);

/* Work for which the kernel has to be waited for, done for all at once: sessions begin and
 * end, accounts that were given up are free. */
void sessions_settle(struct sessions *s);
/* There is such work: that somebody waits for, or that can be gathered for a while. */
bool sessions_hurry(const struct sessions *s);
bool sessions_unsettled(const struct sessions *s);

/* Ends the ones whose process has ended. */
void sessions_look_after_waiting(struct sessions *s);

#endif
