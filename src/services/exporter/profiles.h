/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Profiles on request: each is made by a child process, `prcb why --pprof`, with this program's
 * rights and no more, while the loop goes on. How many there are at once, how long each takes,
 * what it costs and how large it may be are limited. No HTTP: web.c has that.
 *
 * One thread. Times are milliseconds of any clock that does not jump.
 */
#ifndef PRCB_EXPORTER_PROFILES_H
#define PRCB_EXPORTER_PROFILES_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <prcb/prcb.h>

#define PROFILES_MAX   8           /* at once, whatever is configured */
#define PROFILES_BYTES (32u << 20) /* of one */
#define PROFILES_LATE  20000       /* ms beyond its seconds, then it is killed */
#define PROFILES_SAID  400         /* bytes of what the child said */
#define PROFILES_GROUP 4096        /* of the path of a cgroup */

struct profiles_options {
    uint64_t most;    /* at once; 0: none are made */
    uint64_t seconds; /* of one, at most */
    uint64_t percent; /* of a processor, for each */
    const char *program;
    const char *cgroup_root; /* NULL: where version 2 is mounted */
    enum prcb_tier tier;
};

struct profiles_request {
    const char *kind;    /* "wait", "lock", "run" */
    const char *seconds; /* NULL: 10, or the most */
    const char *cgroup;  /* as the label has it, "/system.slice/..."; NULL: all threads */
    const char *comm;    /* processes of this name; NULL: all */
    const char *spans;   /* "1": each wait with the span it was in; NULL or "0": no */
};

struct profile {
    bool used, done, failed;
    int pid;       /* 0: it was waited for */
    int out, said; /* its standard output and errors; -1: closed */
    char *bytes;
    size_t size, room;
    uint64_t kill_at;
    void *ctx; /* the caller's */
    char text[PROFILES_SAID];
};

struct profiles {
    struct profiles_options options;
    struct profile profile[PROFILES_MAX];
};

/* Starts one. -EINVAL: the request makes no sense, *ret_why says what; -EBUSY: there are as many as
 * may be; other errors: it could not be started. */
int profiles_start(struct profiles *p, const struct profiles_request *request, uint64_t now,
                   struct profile **ret, const char **ret_why);
/* Ends it and frees its place. */
void profile_free(struct profile *profile);

/* Returns how many of ret (PROFILES_MAX) are used; *timeout_ms is lowered to when profiles_run is
 * due. */
size_t profiles_fds(const struct profiles *p, struct pollfd *ret, int *timeout_ms);
/* Takes what the children have written. */
void profiles_run(struct profiles *p, uint64_t now);

#endif
