/* SPDX-License-Identifier: BSD-2-Clause */
#include "ends.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "array.h"
#include "comm.h"
#include "living.h"
#include "reach.h"

static int by_link(const void *left, const void *right)
{
    const struct end_wanted *a = left, *b = right;
    int order = strcmp(a->link, b->link);

    return order ? order : a->not_by < b->not_by ? -1 : a->not_by > b->not_by;
}

static void note(struct end_wanted *wanted, pid_t pid)
{
    if (wanted->pid == pid)
        return;
    if (wanted->pid && wanted->pid != wanted->not_by) {
        wanted->more += pid != wanted->not_by;
        return;
    }
    wanted->pid = pid;
    comm_read(pid, pid, wanted->comm, sizeof(wanted->comm));
}

/* The entries that want this link are neighbours. A process that has it open twice counts once. */
static void look_at_link(struct end_wanted *wanted, size_t count, const char *link, mode_t mode,
                         pid_t pid, pid_t *last)
{
    size_t low = array_front(i, count, strcmp(wanted[i].link, link) < 0);

    for (; low < count && !strcmp(wanted[low].link, link); low++) {
        /* The link's own mode says what the file was opened for. */
        if (wanted[low].mode && !(mode & wanted[low].mode))
            continue;
        if (last[low] != pid)
            note(&wanted[low], pid);
        last[low] = pid;
    }
}

static void look_at_process(struct end_wanted *wanted, size_t count, pid_t pid, pid_t *last)
{
    char path[64], *links;
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)living_thread(pid));
    length = reach_links(pid, path, &links);
    for (const char *link = links; link && link < links + length; link += strlen(link) + 1) {
        mode_t mode = (mode_t)(*link++ - '0') << 6;

        if (*link == 'p' || *link == 's')
            look_at_link(wanted, count, link, mode, pid, last);
    }
    free(links);
}

void ends_find(struct end_wanted *wanted, size_t count)
{
    pid_t *last = calloc(count ? count : 1, sizeof(*last));
    const struct dirent *entry;
    DIR *folder = last && count ? opendir("/proc") : NULL;

    array_sort(wanted, count, by_link);
    while (folder && (entry = readdir(folder))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid > 0)
            look_at_process(wanted, count, pid, last);
    }
    if (folder)
        closedir(folder);
    free(last);
}
