/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The threads in a cgroup, as its files list them: either version, the directory
 * and all below it. A list of a moment, nothing is kept. The struct procfs is used
 * for its buffer, so the same one caller at a time.
 */
#ifndef PRCB_HOST_CGROUP_H
#define PRCB_HOST_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

#include <prcb/prcb.h>

#include "procfs.h"

/* Whether a name in a folder is the folder or the one above. A cgroup's may begin with a dot, too.
 */
static inline bool is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Adds to *list. Threads of other pid namespaces cannot be named and are left out.
 * -ENOENT      no such directory, or it is no cgroup
 * -EPERM       its list may not be read
 * -EOPNOTSUPP  it lists no threads (an invalid domain) */
int cgroup_list_threads(struct procfs *fs, const char *path, struct pid_list *list,
                        struct prcb_error *err);

/* Holds paths of cgroups, each once. Zero-initialised it is empty. */
struct cgroup_list {
    char **paths;
    size_t count;
};

bool cgroup_list_has(const struct cgroup_list *list, const char *path);
int cgroup_list_add(struct cgroup_list *list, const char *path); /* 0 or -ENOMEM */
void cgroup_list_free(struct cgroup_list *list);

#endif
