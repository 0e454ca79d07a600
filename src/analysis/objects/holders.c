/* SPDX-License-Identifier: BSD-2-Clause */
#include "holders.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "comm.h"
#include "held_up.h"
#include "living.h"
#include "reach.h"
#include "read_file.h"

#define PARENTS        16
#define CHILDREN_BYTES 4096
#define CHILDREN_ASKED 64 /* whether they run */

bool holder_descends(pid_t pid, pid_t ancestor)
{
    for (int i = 0; i < PARENTS && pid > 1; i++) {
        pid = status_number(pid, "PPid");
        if (pid == ancestor)
            return true;
    }
    return false;
}

/* Whether a process has mapped a file. The process chooses the names in its list, but not the
 * numbers. */
static bool has_mapped(pid_t pid, uint64_t device, uint64_t inode)
{
    char path[64], *text, *rest;
    const char *line;
    unsigned int high, low;
    uint64_t number;
    bool found = false;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    reach_text(pid, path, &text);
    rest = text;
    while (rest && !found && (line = strsep(&rest, "\n")))
        found = sscanf(line, "%*s %*s %*s %x:%x %" SCNu64, &high, &low, &number) == 3 &&
                number == inode && makedev(high, low) == device;
    free(text);
    return found;
}

bool holder_elsewhere(pid_t pid, pid_t own, bool shared, uint64_t device, uint64_t inode,
                      struct holder *ret)
{
    struct holder holder = {.pid = status_number(own, "Tgid"), .tid = own};

    if (holder.pid == pid)
        return false;
    if (!holder.pid) {
        /* Memory that others have may be shared with a container, in which threads have other
         * numbers. */
        snprintf(holder.detail, sizeof(holder.detail), "%s",
                 shared ? "has ended: nobody will release it, unless it is of another pid namespace"
                        : "has ended: nobody will release it");
    } else if (shared && inode && has_mapped(holder.pid, device, inode)) {
        comm_read(own, own, holder.comm, sizeof(holder.comm));
    } else if (!shared && holder_descends(pid, holder.pid)) {
        comm_read(own, own, holder.comm, sizeof(holder.comm));
        snprintf(holder.detail, sizeof(holder.detail),
                 "of the process that this one was forked from: nobody will release it here");
    } else {
        return false; /* the number belongs to a thread that has nothing to do with it */
    }
    *ret = holder;
    return true;
}

bool holder_thread(pid_t tid, struct holder *ret)
{
    struct holder holder = {.pid = status_number(tid, "Tgid"), .tid = tid};

    if (holder.pid <= 0 || !comm_read(holder.pid, tid, holder.comm, sizeof(holder.comm)))
        return false;
    *ret = holder;
    return true;
}

/* ---- file locks ---- */

struct lock {
    unsigned number;
    bool waits;
    char kind[16];
    int pid; /* -1: an open file's */
    uint64_t inode;
};

/* "1: -> POSIX  ADVISORY  WRITE 123 08:01:456 0 EOF" */
static bool parse_lock(const char *line, struct lock *ret)
{
    const char *arrow = strstr(line, ": -> ");
    int at = 0;

    *ret = (struct lock){.waits = arrow != NULL};
    if (sscanf(line, "%u:%n", &ret->number, &at) != 1 || !at)
        return false;
    line = arrow ? arrow + strlen(": -> ") : line + at;
    return sscanf(line, "%15s %*s %*s %d %*x:%*x:%" SCNu64, ret->kind, &ret->pid, &ret->inode) == 3;
}

/* Finds the process in whose list of locks an open file's lock of an inode is: any process that
 * has the file open tells it. */
static pid_t owner_of_open_file(pid_t not_by, uint64_t inode)
{
    const struct dirent *entry, *file;
    DIR *processes = opendir("/proc");
    char wanted[40];
    pid_t found = 0;

    snprintf(wanted, sizeof(wanted), ":%" PRIu64 " ", inode);
    while (processes && !found && (entry = readdir(processes))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        char path[64], text[1024];
        DIR *files;

        if (pid <= 0 || pid == not_by)
            continue;
        snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)pid);
        files = opendir(path);
        while (files && !found && (file = readdir(files))) {
            char name[128];
            const char *lock;
            ssize_t length;

            snprintf(name, sizeof(name), "%s/%.40s", path, file->d_name);
            length = reach_read(pid, name, text, sizeof(text) - 1);
            text[length > 0 ? length : 0] = '\0';
            lock = strstr(text, "\nlock:");
            if (lock && strstr(lock, "OFDLCK") && strstr(lock, wanted))
                found = pid;
        }
        if (files)
            closedir(files);
    }
    if (processes)
        closedir(processes);
    return found;
}

static bool name_owner(const struct lock *lock, pid_t waiter, struct holder *ret)
{
    struct holder holder = {.pid = lock->pid, .tid = lock->pid};

    if (lock->pid <= 0)
        holder.pid = holder.tid = owner_of_open_file(waiter, lock->inode);
    if (holder.pid <= 0)
        return false;
    comm_read(holder.pid, holder.pid, holder.comm, sizeof(holder.comm));
    if (!*holder.comm)
        snprintf(holder.detail, sizeof(holder.detail),
                 "has ended; who has its open file has the lock");
    *ret = holder;
    return true;
}

/* Waiters follow the lock that they wait for, and have its number. */
bool holder_of_file_lock(pid_t pid, uint64_t inode, struct holder *ret)
{
    struct lock lock, blocker = {.number = 0};
    FILE *in = fopen("/proc/locks", "re");
    bool found = false;
    char line[256];

    while (in && !found && fgets(line, sizeof(line), in)) {
        if (!parse_lock(line, &lock))
            continue;
        if (!lock.waits)
            blocker = lock;
        else
            found = lock.number == blocker.number && lock.inode == blocker.inode &&
                    (lock.pid == pid || (lock.pid <= 0 && lock.inode == inode));
    }
    if (in)
        fclose(in);
    return found && name_owner(&blocker, pid, ret);
}

/* ---- children ---- */

void holder_activity(pid_t pid, char *ret, size_t size)
{
    char path[64], place[64];
    struct held held;
    ssize_t length;

    *ret = '\0';
    if (held_read(pid, pid, &held))
        return;
    if (held.state == 'R' || held.state == 'Z') {
        snprintf(ret, size, held.state == 'R' ? "it runs" : "it has ended");
        return;
    }
    snprintf(path, sizeof(path), "/proc/%d/wchan", (int)pid);
    length = reach_read(pid, path, place, sizeof(place) - 1);
    place[length > 0 ? length : 0] = '\0';
    snprintf(ret, size, "it %s%s%s%s", held_word(&held) ? "is " : "sleeps",
             held_word(&held) ? held_word(&held) : "", *place && strcmp(place, "0") ? " in " : "",
             strcmp(place, "0") != 0 ? place : "");
}

/* Whether a process runs or is ready now. */
static bool is_running(pid_t pid)
{
    struct held held;

    return !held_read(pid, pid, &held) && held.state == 'R';
}

/* One that runs is waited for rather than those that wait themselves. */
bool holder_children(pid_t pid, struct holder *ret, unsigned *ret_count)
{
    char path[64], text[CHILDREN_BYTES];
    struct holder holder = {.pid = 0};
    unsigned count = 0;
    ssize_t length;
    bool runs = false;
    char *at = text, *end;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    length = read_start(path, text, sizeof(text) - 1);
    text[length > 0 ? length : 0] = '\0';
    for (;; at = end) {
        long number = strtol(at, &end, 10);

        if (end == at || number <= 0)
            break;
        if (!runs && count < CHILDREN_ASKED && is_running((pid_t)number)) {
            runs = true;
            holder.pid = (pid_t)number;
        } else if (!count) {
            holder.pid = (pid_t)number;
        }
        count++;
    }
    if (!count)
        return false;
    holder.tid = holder.pid;
    comm_read(holder.pid, holder.pid, holder.comm, sizeof(holder.comm));
    holder_activity(holder.pid, holder.detail, sizeof(holder.detail));
    *ret = holder;
    *ret_count = count;
    return true;
}
