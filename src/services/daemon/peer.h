/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Tells who is at the other end of a connection, and what the configuration allows it. The
 * kernel is asked, whose socket keeps the credentials of the moment of the connection; nothing
 * is taken from what the client says, or from what its process is by now.
 */
#ifndef PRCB_DAEMON_PEER_H
#define PRCB_DAEMON_PEER_H

#include "config.h"
#include "kernel.h"

/* The groups that the configuration names; they are looked up when it is read. */
struct peer_groups {
    bool has_profile_all, has_processors;
    gid_t profile_all, processors;
};
/* -ENOENT: a group does not exist. */
int peer_find_groups(const struct prcbd_config *config, struct peer_groups *ret,
                     struct prcb_error *err);

struct peer {
    uid_t uid;
    uid_t payer; /* whom limits are counted for */
    gid_t gid;
    pid_t pid;
    uint64_t start; /* of the process, nanoseconds since boot */
    uint64_t caps;
    uint32_t pid_ns, user_ns;
    bool root;        /* its capabilities let it load the programs itself */
    bool all;         /* may profile every thread */
    bool names;       /* may know which process is which, of all that it can see; peer_sees_names */
    bool processors;  /* may read the processors' blocks */
    bool same_pid_ns; /* as the daemon */
    bool writes_maps; /* may load BPF programs, but not those that could read everything anyway */
};

/* Returns -EPERM or -ESRCH with words. peer_apply fills in the policy. */
int peer_ask(struct kernel *k, int socket, struct peer *ret, struct prcb_error *err);

void peer_apply(int socket, const struct prcbd_config *config, const struct peer_groups *groups,
                struct peer *peer);

/* The daemon's own namespace, "user" or "pid"; 0: not known. */
uint32_t peer_own_ns(const char *which);

/* Returns whether /proc shows the peer processes of others, in its pid namespace: this is the
 * daemon's, and its /proc hides none (hidepid), or not from the peer's group. A user who may
 * profile every thread needs no /proc. */
bool peer_sees_names(int socket, const struct peer *peer);

#endif
