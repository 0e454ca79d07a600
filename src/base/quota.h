/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The quota of processor time that holds a thread back, as the files of its cgroups say. Files of
 * the kernel are read, which never wait. Any thread.
 */
#ifndef PRCB_BASE_QUOTA_H
#define PRCB_BASE_QUOTA_H

#include <stdint.h>
#include <sys/types.h>

#include "cgroup_at.h"

struct quota {
    char group[256];              /* the cgroup that has it */
    uint64_t quota_us, period_us; /* so much in each */
    uint64_t periods, throttled;  /* since the cgroup was made: all, and those in which it was */
};

/* Finds, of a thread's cgroup and those above it, the one that its quota held back most often. 0;
 * -ENOENT: none of them has a quota that did, or none can be seen; other -errno. */
int quota_read(pid_t pid, pid_t tid, struct quota *ret);
/* Does the same for one cgroup. */
int quota_of(const struct cgroup_at *at, struct quota *ret);

#endif
