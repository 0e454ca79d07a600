/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Finds which processes serve others by a descriptor that no name leads to: the supervisor that
 * answers for system calls (seccomp), the handler of userfaultfd, who holds the master of a
 * pseudoterminal. It is one walk over /proc, as of what may be looked into, kept for a second.
 */
#ifndef PRCB_OBJECTS_SERVERS_H
#define PRCB_OBJECTS_SERVERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "holders.h"

enum server_kind { SERVER_SECCOMP, SERVER_USERFAULT, SERVER_PTY };

#define SERVERS_MOST 128

struct servers {
    uint64_t until;
    struct server {
        enum server_kind kind;
        pid_t pid;
        int number; /* of a pseudoterminal */
    } rows[SERVERS_MOST];
    size_t count;
};

/* Finds who serves a process; number: of a pseudoterminal, else 0. Of several an ancestor of the
 * process is taken, else the first, and told that it is one of them. False: nobody was seen. */
bool servers_find(struct servers *s, enum server_kind kind, int number, pid_t pid,
                  struct holder *ret);

#endif
