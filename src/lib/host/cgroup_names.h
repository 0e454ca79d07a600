/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Names of cgroups of version 2 by the number that accounts have: paths below the hierarchy's
 * mount, and what container engines, Kubernetes and systemd say in them. Found by a walk of the
 * mount when a number is asked for that is not known; kept afterwards, also when the cgroup is
 * removed, until they are dropped. No privilege: directories are listed and looked at, nothing is
 * read.
 *
 * One thread at a time. Paths are what the kernel has: any bytes but '/' and the line feed.
 */
#ifndef PRCB_HOST_CGROUP_NAMES_H
#define PRCB_HOST_CGROUP_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <prcb/error.h>

/* How the machine has its cgroups. */
enum cgroup_setup {
    CGROUP_NONE,   /* no hierarchy is mounted */
    CGROUP_V1,     /* version 1 only: every thread is in the root of version 2 */
    CGROUP_HYBRID, /* controllers in version 1, and version 2 beside them */
    CGROUP_V2,
};

/* Reads the list of mounts (/proc/self/mounts; another in tests). mount, of `size` bytes: where
 * version 2 is; empty where it is not. */
enum cgroup_setup cgroup_setup(const char *mounts, char *mount, size_t size);
/* Returns one line for people. */
const char *cgroup_setup_words(enum cgroup_setup setup);

struct cgroup_names;

/* root: the mount of version 2; NULL: as cgroup_setup finds it. Without any, every name is unknown.
 * The caller owns *ret. -ENOMEM */
int cgroup_names_open(const char *root, struct cgroup_names **ret, struct prcb_error *err);
void cgroup_names_close(struct cgroup_names *names);
enum cgroup_setup cgroup_names_setup(const struct cgroup_names *names);
/* Returns the mount of version 2; "": there is none. */
const char *cgroup_names_root(const struct cgroup_names *names);

/* After the first call no directory is searched: the only names are those that were passed, and
 * they stay. */
void cgroup_names_tell(struct cgroup_names *names, uint64_t cgroup, const char *path);

/* Begins a look: the next unknown number causes a walk, those after it do not. */
void cgroup_names_refresh(struct cgroup_names *names);
/* "/", "/system.slice/ssh.service", ... Borrowed until the close or a
 * drop. NULL: it was removed before
 * anyone looked, or is out of sight. */
const char *cgroup_names_find(struct cgroup_names *names, uint64_t cgroup);
/* Whether it was there at the last walk of this look, which is made if there was none. */
bool cgroup_names_alive(struct cgroup_names *names, uint64_t cgroup);

/* Forgets cgroups that are gone, once there are many. Their paths are invalid from here on. */
void cgroup_names_drop(struct cgroup_names *names);

/* What a path says; an empty text says nothing. What is said of containers, pods and jobs is
 * believed only where root alone makes cgroups: not in a user's, a service's or a container's own,
 * which may call theirs as they like. */
struct cgroup_identity {
    char unit[256]; /* systemd's: the first part that is no slice, below user@N.service the next */
    char container[65]; /* 64 hexadecimal digits */
    char pod[37];       /* uid of a Kubernetes pod */
    char machine[65];   /* name of a container that has no id: LXC's, or a machine of systemd's */
    char job[21];       /* number of a Slurm job */
};
void cgroup_identify(const char *path, struct cgroup_identity *ret);

#endif
