/* SPDX-License-Identifier: BSD-2-Clause */
#include "descendants.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "array.h"
#include "living.h"
#include "number.h"

struct process {
    pid_t pid, parent;
    bool in; /* it is one of those that are asked about, or below one */
};

static int by_pid(const void *left, const void *right)
{
    const struct process *a = left, *b = right;

    return (a->pid > b->pid) - (a->pid < b->pid);
}

static size_t list(struct process **ret)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    size_t count = 0;
    uint64_t id;

    *ret = NULL;
    while (folder && (entry = readdir(folder))) {
        if (number_parse(entry->d_name, 1, INT_MAX, &id) || (pid_t)id == getpid())
            continue;
        if (array_append(
                *ret, count,
                (struct process){.pid = (pid_t)id, .parent = status_number((pid_t)id, "PPid")}))
            break;
    }
    if (folder)
        closedir(folder);
    array_sort(*ret, count, by_pid);
    return count;
}

static struct process *find(struct process *all, size_t count, pid_t pid)
{
    const struct process wanted = {.pid = pid};

    return array_search(&wanted, all, count, by_pid);
}

/* Children mostly have higher numbers than their parents, so this takes two turns. */
static void mark(struct process *all, size_t count)
{
    bool more = true;

    while (more) {
        more = false;
        for (size_t i = 0; i < count; i++) {
            const struct process *parent = all[i].in ? NULL : find(all, count, all[i].parent);

            if (parent && parent->in)
                all[i].in = more = true;
        }
    }
}

size_t descendants_find(const pid_t *pids, size_t count, pid_t **ret)
{
    struct process *all, *one;
    size_t listed = list(&all), found = 0;

    *ret = NULL;
    for (size_t i = 0; i < count; i++) {
        one = find(all, listed, pids[i]);
        if (one)
            one->in = true;
    }
    mark(all, listed);
    for (size_t i = 0; i < count; i++) {
        one = find(all, listed, pids[i]);
        if (one)
            one->in = false;
    }
    for (size_t i = 0; i < listed; i++)
        found += all[i].in;
    if (found && found <= DESCENDANTS_MOST) {
        *ret = calloc(found, sizeof(**ret));
        found = *ret ? found : 0;
    }
    for (size_t i = 0, at = 0; i < listed && *ret; i++) {
        if (all[i].in)
            (*ret)[at++] = all[i].pid;
    }
    free(all);
    return found;
}
