/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Threads that are stopped, traced or frozen now, or held back by a quota, in sentences: which,
 * since when, and by whom as far as procfs and cgroups say. What a report begins with: nothing else
 * matters to them.
 */
#ifndef PRCB_REPORTS_HELD_WORDS_H
#define PRCB_REPORTS_HELD_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <prcb/causes.h>

#include "held_up.h"

#define HELD_MOST     16
#define HELD_BY_QUOTA PRCB_CAUSE_THROTTLED

struct held_threads {
    struct held_row {
        pid_t pid;
        char comm[16];
        struct held held; /* of one of them */
        uint64_t threads;
        uint64_t ns; /* the longest */
    } rows[HELD_MOST];
    size_t count;
    uint64_t left; /* threads that found no place */
};

/* Does the same as held_off_ns, but reads its file stat without waiting for others. */
int held_threads_off(pid_t pid, pid_t tid, uint64_t *ret);

/* Whether a wait of such a cause may be that of a held thread. cause: enum prcb_cause; word: its
 * stack's, or NULL. */
bool held_cause(uint32_t cause, const char *word);
/* Adds the thread, if it is held at this moment. ns: for how long, as far as it was measured;
 * before: since longer than that. */
void held_threads_add(struct held_threads *threads, pid_t pid, pid_t tid, const char *comm,
                      uint64_t ns, bool before);
/* Writes a line for each: "server (123): 3 threads are frozen by cgroup /x since 12:01:07
 * (4.2s)." */
void held_threads_write(FILE *out, const char *lead, const struct held_threads *threads);

/* Writes which quota holds a thread back, as far as the kernel tells: ": cgroup /x may run 10.0ms
 * in each 100ms, and was held back in 156 of its 159 periods so far". Returns whether it wrote. */
bool held_quota_write(FILE *out, pid_t pid, pid_t tid);

#endif
