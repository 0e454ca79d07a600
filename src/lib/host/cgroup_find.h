/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Finds cgroups by what people call them: a unit of systemd, a container, a pod, a path below a
 * hierarchy's mount as prcb prints it. Folders are listed, nothing is read. No state.
 */
#ifndef PRCB_HOST_CGROUP_FIND_H
#define PRCB_HOST_CGROUP_FIND_H

#include "cgroup.h"

enum cgroup_wanted {
    CGROUP_BY_UNIT,      /* "ssh.service", "ssh", "user.slice" */
    CGROUP_BY_CONTAINER, /* the beginning of its id; the name of one that has none */
    CGROUP_BY_MACHINE,   /* the name of a container that has no id: LXC's, systemd-nspawn's */
    CGROUP_BY_POD,       /* its uid */
    CGROUP_BY_PATH,      /* "/system.slice/ssh.service" */
};

/* Adds the folders of what is wanted, the outermost ones, of the first hierarchy that has any:
 * version 2's, then version 1's in the order of mounts (a file as /proc/self/mounts). -ENOENT:
 * none has; -ENOMEM. */
int cgroup_find(const char *mounts, enum cgroup_wanted wanted, const char *name,
                struct cgroup_list *ret);

#endif
