/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the daemon's eBPF programs missed since somebody first asked. They are one set for all
 * clients, and a daemon of another build replaces them: counts go on over that. Caller-owned; no
 * words: who asks does without where there is no answer.
 */
#ifndef PRCB_CLIENT_CLIENT_PROGRAMS_H
#define PRCB_CLIENT_CLIENT_PROGRAMS_H

#include "client.h"

struct client_program {
    char name[WIRE_PROGRAM_NAME + 1];
    uint32_t id;
    uint64_t base, misses; /* misses: less base; UINT64_MAX: the kernel does not say */
};

struct client_programs {
    bool asked;
    bool current; /* the last question was answered */
    uint32_t count;
    struct client_program items[WIRE_PROGRAMS_MOST];
};

/* Brings *p up to date; the first call begins to count. -EOPNOTSUPP: the daemon is of an earlier
 * version. On errors the counts are not known until the next call. */
int client_ask_programs(struct client *client, enum wire_programs_of of, struct client_programs *p);

/* The same of the processors' programs, on a connection of its own. */
int client_ask_processor_programs(struct client_programs *p);

/* Of what was asked for last; -ENOENT: there are no more. */
int client_program(const struct client_programs *p, uint32_t i, struct prcb_program *ret);

#endif
