/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One look at one thread: its identity, state and the kernel's sums for it, from
 * /proc, or from the system calls that answer for threads of this process (fresher:
 * a thread's own processor clock does not lag). One caller at a time.
 */
#ifndef PRCB_ACCOUNTS_PERF_LOOK_H
#define PRCB_ACCOUNTS_PERF_LOOK_H

#include "perf_figures.h"
#include "procfs.h"

struct perf_source {
    struct procfs fs;
    struct procfs_features has;
    bool live; /* the root is this system's /proc, not a recorded tree */
};

struct perf_look {
    struct procfs_stat stat;
    struct perf_sample sample;
    bool ended;   /* a zombie: the sums are final */
    bool running; /* was on a processor; not known everywhere */
    bool quiet;   /* asleep, counted as switched out, and with the same sums as before */
};

/* Whether a state in /proc/PID/stat is of one that has ended: a zombie, or one being removed. */
bool perf_has_ended(char state);

/* Looks at a thread. before: the sample of the look before, or NULL. settled: that look was quiet;
 * then a quiet look may take its switches from there, for a thread that has not run has not
 * switched. -ESRCH: it is not there, or is another thread than the one created at start (0: any);
 * -EPERM: it may not be looked at; -EBADMSG, -EMFILE, -ENOMEM. */
int perf_look_at(struct perf_source *source, pid_t pid, pid_t tid, uint64_t start,
                 const struct perf_sample *before, bool settled, struct perf_look *ret);

/* Looks at the calling thread without /proc: run time and switches only. */
void perf_look_at_self(struct perf_sample *ret);

/* Creation time of the calling thread as /proc has it; 0: not to be had. Read once
 * per thread, then without a system call. */
uint64_t perf_own_start(struct perf_source *source, pid_t tid);

#endif
