/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The cgroups that a thread is in, a hierarchy each, and the files of one, of either version.
 * Files of the kernel are read, which never wait. Any thread.
 */
#ifndef PRCB_BASE_CGROUP_AT_H
#define PRCB_BASE_CGROUP_AT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum cgroup_controller { CGROUP_FREEZER, CGROUP_CPU, CGROUP_MEMORY, CGROUP_CONTROLLERS };

struct cgroup_at {
    const char *mount; /* where the hierarchy is mounted */
    bool v1;
    char group[4096]; /* below the mount; the root's is empty */
};

/* Takes the lines of a thread's file cgroup up to one of version 2, or of the controller's
 * hierarchy, that is mounted. Returns whether there is one. */
bool cgroup_at_next(const char **text, enum cgroup_controller controller, struct cgroup_at *ret);
/* Goes to the cgroup above. Returns false at the topmost. */
bool cgroup_at_up(struct cgroup_at *at);
/* Reads the start of a file of the cgroup as a text: its length, or -errno. */
ssize_t cgroup_at_read(const struct cgroup_at *at, const char *file, char *ret, size_t size);
/* Finds the number behind a name that a line of such a text begins with, as in memory.stat. Returns
 * false if there is no such line. */
bool cgroup_count(const char *text, const char *name, uint64_t *ret);
/* Whether version 1 of this controller is mounted. */
bool cgroup_at_has_v1(enum cgroup_controller controller);

#endif
