/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What holds all threads of a process up from outside, as the kernel counts it: its cgroup's memory
 * limit, and a hypervisor that takes the processors. Files of the kernel are read, which never
 * wait.
 */
#ifndef PRCB_WHY_AROUND_H
#define PRCB_WHY_AROUND_H

#include <stdint.h>
#include <sys/types.h>

struct around {
    char group[1024];                  /* the nearest cgroup with a memory limit; "": none */
    uint64_t limit;                    /* bytes */
    uint64_t limit_hits;               /* how often it was reached */
    uint64_t refaults, swapins;        /* pages that were dropped, or swapped, and read again */
    uint64_t kills;                    /* by the kernel, for lack of memory */
    uint64_t processors_ns, stolen_ns; /* of all processors: their time, and what was taken */
};

/* Reads the counts of a process's group, and of the machine (pid 0: no group). What is not known
 * stays 0. */
void around_read(pid_t pid, struct around *ret);
/* Takes what was counted before from *now; of another group nothing was. */
void around_since(struct around *now, const struct around *before);

#endif
