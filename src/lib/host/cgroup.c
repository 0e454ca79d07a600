/* SPDX-License-Identifier: BSD-2-Clause */
#include "cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array.h"
#include "error.h"

/* Version 2 calls its list of threads cgroup.threads, version 1 tasks. */
static const char *const names[] = {"cgroup.threads", "tasks"};

static int list_one(struct procfs *fs, int dir, struct pid_list *list)
{
    int result = -ENOENT;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && result == -ENOENT; i++)
        result = procfs_list_file(fs, dir, names[i], list);
    if (result == -EACCES)
        result = -EPERM;
    return result;
}

static bool is_directory(int dir, const struct dirent *entry)
{
    struct stat st;

    if (is_dots(entry->d_name))
        return false;
    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return !fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode);
}

/* Adds the threads of a directory and of those below it. Owns dir from here on. */
static int list_tree(struct procfs *fs, int dir, struct pid_list *list)
{
    DIR *entries = fdopendir(dir);
    struct dirent *entry;
    int result;

    if (!entries) {
        close(dir);
        return -ENOMEM;
    }
    result = list_one(fs, dir, list);
    while (!result && (entry = readdir(entries))) {
        int below;

        if (!is_directory(dir, entry))
            continue;
        below = openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0) {
            result = errno == ENOENT ? 0 : -errno;
            continue;
        }
        result = list_tree(fs, below, list);
        /* The cgroup was removed meanwhile, or the rules for domains forbid this user to list
         * its threads: neither hides the rest. */
        if (result == -ENOENT || result == -ENODEV || result == -EOPNOTSUPP)
            result = 0;
    }
    closedir(entries);
    return result;
}

int cgroup_list_threads(struct procfs *fs, const char *path, struct pid_list *list,
                        struct prcb_error *err)
{
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), result;

    if (dir < 0) {
        result = errno == EACCES ? -EPERM : -errno;
        return prcb_fail(err, result, "cgroup %s: %s", path, strerror(errno));
    }
    result = list_tree(fs, dir, list);
    switch (result) {
    case 0:
        return 0;
    case -ENODEV: /* removed after the open */
    case -ENOENT:
        return prcb_fail(err, -ENOENT, "%s: not a cgroup directory", path);
    case -EPERM:
        return prcb_fail(err, result, "cgroup %s: its list of threads may not be read", path);
    case -EOPNOTSUPP:
        return prcb_fail(err, result,
                         "cgroup %s: it lists no threads (its cgroup.type is \"domain invalid\")",
                         path);
    default:
        return prcb_fail(err, result, "cgroup %s: %s", path, strerror(-result));
    }
}

bool cgroup_list_has(const struct cgroup_list *list, const char *path)
{
    for (size_t i = 0; i < list->count; i++) {
        if (!strcmp(list->paths[i], path))
            return true;
    }
    return false;
}

int cgroup_list_add(struct cgroup_list *list, const char *path)
{
    char *copy;

    if (cgroup_list_has(list, path))
        return 0;
    copy = strdup(path);
    if (!copy || array_append(list->paths, list->count, copy)) {
        free(copy);
        return -ENOMEM;
    }
    return 0;
}

void cgroup_list_free(struct cgroup_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
    *list = (struct cgroup_list){0};
}
