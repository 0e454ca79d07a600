/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Sessions: which client numbers are in use, by whom, and how much one user and all together may
 * have. A session outlives its connection only when the daemon ended under it; such a session
 * waits until its process comes back or ends.
 */
#ifndef PRCB_DAEMON_SESSIONS_H
#define PRCB_DAEMON_SESSIONS_H

#include "config.h"
#include "held.h"
#include "peer.h"
#include "wire.h"

enum session_state {
    SESSION_FREE,
    SESSION_USED,   /* a connection has it */
    SESSION_WAITS,  /* its connection was lost with an earlier daemon */
    SESSION_ENDING, /* its connection is gone; its number is used until it is settled */
};

struct session {
    enum session_state state;
    uint32_t number;
    uid_t uid; /* whom limits are counted for */
    uint32_t accounts;
    bool same_pid_ns;
    struct kernel_client_fds maps; /* until the programs know of them; else -1 */
    int pidfd;                     /* WAITS: readable when its process has ended; else -1 */
    /* Accounts that were given up. For the first `given_up_due` the kernel is waited for, or
     * was; then `given_up_freed` of these are free. */
    uint32_t *given_up;
    uint32_t given_up_count, given_up_room, given_up_due, given_up_freed;
};

/* The work that the kernel is asked to do for all sessions at once. */
struct sessions_batch {
    struct kernel *kernel;
    uint32_t numbers[PRCB_CLIENT_COUNT], count;
    struct kernel_client_fds maps[PRCB_CLIENT_COUNT]; /* -1: it ends */
    bool given_up;                                    /* sessions that go on gave accounts up */
    int result;
};

/* The session that several share (shared.h). */
struct shared {
    struct session *session;                 /* NULL: there is none */
    struct kernel_client_fds fds;            /* its maps */
    const struct prcb_account_block *blocks; /* mapped to be read: what the programs write */
    uint64_t members, late;                  /* bits; late: not waited for */
    uint64_t lonely_since;                   /* ms: without members */
    uint64_t unsure_until;                   /* ms: members of an earlier daemon may come back */
    struct shared_slot *slots;               /* an element an account */
    uint64_t lacking_since;                  /* ms: switches are to be kept, and are not */
    bool all;                                /* all threads were asked for, for their switches */
    bool none;                               /* there was no room for a session that keeps them */
};
/* The shared session counts for no user. */
#define SHARED_UID ((uid_t)-1)

struct sessions {
    struct kernel *kernel;
    const struct prcbd_config *config;
    struct session all[PRCB_CLIENT_COUNT]; /* 0 is not used */
    uint32_t opening, ending, waiting, used;
    bool failed;  /* the last batch failed: the next is not hurried */
    bool to_free; /* given_up_due is set somewhere, and the kernel was waited for */
    struct held held;
    struct shared shared;
    struct sessions_batch batch;
    uint64_t done_at;   /* ms: the last batch */
    uint64_t looked_at; /* ms: what is held */
};

/* Takes over what the kernel side has on record. shared_take_over does so for the shared
 * session. */
void sessions_start(struct sessions *s, struct kernel *k, const struct prcbd_config *config);

/* Opens a session; threads can be profiled in it when it is settled. ret_fds: its maps, which
 * the caller closes. -EDQUOT, -ENOSPC, -ENOMEM with words. -EAGAIN: there is no room, but memory
 * is about to become free: ask again soon; waited_ms tells for how long the caller has done so. */
int sessions_open(struct sessions *s, const struct peer *peer, const struct wire_open *open,
                  uint64_t waited_ms, struct session **ret, struct kernel_client_fds *ret_fds,
                  uint8_t token[16], struct prcb_error *err);

/* Does what sessions_open does, without asking who wants it: owner is whom the session counts
 * for, and whose process may resume it. accounts is not 0. */
int sessions_make(struct sessions *s, const struct peer *owner,
                  const struct prcb_bpf_client *client, uint32_t accounts, uint64_t waited_ms,
                  struct session **ret, struct kernel_client_fds *ret_fds, struct prcb_error *err);
/* Duplicates all descriptors of a session's maps, or none (accounts: -1). */
struct kernel_client_fds sessions_duplicate(const struct kernel_client_fds *maps);
void sessions_close_maps(struct kernel_client_fds *maps);
bool sessions_same_token(const uint8_t *a, const uint8_t *b);

/* Gives a session that waits to the process that opened it. -ESTALE. */
int sessions_resume(struct sessions *s, const struct peer *peer, const uint8_t token[16],
                    struct session **ret, struct prcb_error *err);

/* Closes a session whose connection is gone. */
void sessions_close(struct sessions *s, struct session *session);

/* Gives one account back. -ESTALE */
int sessions_release(struct sessions *s, struct session *session, uint64_t key);

/* Returns whether the programs know of the session. */
bool sessions_settled(const struct session *session);

/* Work for which the kernel has to be waited for is done for all at once: sessions begin and
 * end, accounts that were given up become free. It is gathered here, done by sessions_do_batch,
 * which touches only the batch and may run in another thread, and then taken note of. */
bool sessions_gather(struct sessions *s); /* false: there is nothing to do */
void sessions_do_batch(void *batch);
void sessions_batch_done(struct sessions *s);
/* Frees some of the accounts for which the kernel was waited. True: there are more. */
bool sessions_free_some(struct sessions *s);
/* Tell whether there is such work: sessions_hurry, if somebody waits for it; sessions_unsettled,
 * also if it can be gathered for a while. */
bool sessions_hurry(const struct sessions *s);
bool sessions_unsettled(const struct sessions *s);

/* Looks for maps that clients have let go of. */
void sessions_look_at_held(struct sessions *s);

/* Ends the waiting sessions whose process has ended. */
void sessions_look_after_waiting(struct sessions *s);

#endif
