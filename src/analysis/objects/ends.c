/* SPDX-License-Identifier: BSD-2-Clause */
#include "ends.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array.h"
#include "comm.h"
#include "living.h"

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

/* Those that want this link lie beside each other. A process that has it twice is one. */
static void look_at_link(struct end_wanted *wanted, size_t count, const char *link, int folder,
                         const char *name, pid_t pid, pid_t *last)
{
    size_t low = array_front(i, count, strcmp(wanted[i].link, link) < 0);
    struct stat about;

    for (; low < count && !strcmp(wanted[low].link, link); low++) {
        /* The link's own mode says what the file was opened for. */
        if (wanted[low].mode && (fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) ||
                                 !(about.st_mode & wanted[low].mode)))
            continue;
        if (last[low] != pid)
            note(&wanted[low], pid);
        last[low] = pid;
    }
}

static void look_at_process(struct end_wanted *wanted, size_t count, pid_t pid, pid_t *last)
{
    char path[64], link[64];
    const struct dirent *entry;
    DIR *folder;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)living_thread(pid));
    folder = opendir(path);
    while (folder && (entry = readdir(folder))) {
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, link, sizeof(link) - 1);

        if (length <= 0 || (link[0] != 'p' && link[0] != 's'))
            continue;
        link[length] = '\0';
        look_at_link(wanted, count, link, dirfd(folder), entry->d_name, pid, last);
    }
    if (folder)
        closedir(folder);
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
