/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Lists of processes and threads, as procfs shows them at one time. A snapshot is a handle that
 * CloseHandle ends; any number of threads may read it, and each has the snapshot's one place.
 */
#include "array.h"
#include "compat.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <toolhelp.h>

#define NORMAL_PRIORITY 8
#define NAME_SIZE       64 /* Linux has 16, but for kernel threads */

struct process {
    DWORD id, parent, threads;
    LONG priority;
    char name[NAME_SIZE];
};
struct task {
    DWORD id, process;
    LONG priority;
};

struct snapshot {
    struct snapshot *next;
    DWORD flags;
    struct process *processes;
    struct task *tasks;
    size_t process_count, task_count, process_at, task_at;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct snapshot *snapshots;

/* ---- reading procfs ---- */

/* The line of a process or thread: "1 (name) S parent ...": its name may hold anything. */
static BOOL read_stat(int at, const char *path, struct process *ret)
{
    char line[1024], *first, *last;
    int fd = openat(at, path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
    long nice;

    if (fd >= 0)
        close(fd);
    if (length <= 0)
        return FALSE;
    line[length] = '\0';
    first = strchr(line, '(');
    last = strrchr(line, ')');
    if (!first || !last || last < first)
        return FALSE;
    *last = '\0';
    snprintf(ret->name, sizeof(ret->name), "%s", first + 1);
    ret->id = (DWORD)strtoul(line, NULL, 10);
    if (sscanf(last + 1, " %*c %u %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %ld %u",
               &ret->parent, &nice, &ret->threads) != 3)
        return FALSE;
    ret->priority = NORMAL_PRIORITY - (LONG)nice / 5;
    return TRUE;
}

/* Those below a folder of procfs, which are named by numbers; not all of them may be left. */
static BOOL each_number(int folder,
                        BOOL (*take)(int folder, const char *name, struct snapshot *s,
                                     DWORD process),
                        struct snapshot *s, DWORD process)
{
    DIR *dir = folder < 0 ? NULL : fdopendir(folder);
    struct dirent *entry;
    BOOL good = TRUE;

    if (!dir) {
        if (folder >= 0)
            close(folder);
        return TRUE;
    }
    while (good && (entry = readdir(dir)))
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            good = take(dirfd(dir), entry->d_name, s, process);
    closedir(dir);
    return good;
}

static BOOL take_task(int folder, const char *name, struct snapshot *s, DWORD process)
{
    struct process line;
    char path[300];

    snprintf(path, sizeof(path), "%s/stat", name);
    if (!read_stat(folder, path, &line))
        return TRUE;
    return !array_append(s->tasks, s->task_count, (struct task){line.id, process, line.priority});
}

static BOOL take_process(int folder, const char *name, struct snapshot *s, DWORD unused)
{
    struct process line;
    char path[300];

    (void)unused;
    snprintf(path, sizeof(path), "%s/stat", name);
    if (!read_stat(folder, path, &line))
        return TRUE;
    if (array_append(s->processes, s->process_count, line))
        return FALSE;
    if (!(s->flags & TH32CS_SNAPTHREAD))
        return TRUE;
    snprintf(path, sizeof(path), "%s/task", name);
    return each_number(openat(folder, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), take_task, s,
                       line.id);
}

static void snapshot_free(struct snapshot *s)
{
    if (s) {
        free(s->processes);
        free(s->tasks);
    }
    free(s);
}

/* ---- the calls ---- */

EXPORT HANDLE CreateToolhelp32Snapshot(DWORD dwFlags, DWORD th32ProcessID)
{
    struct snapshot *s;

    (void)th32ProcessID; /* chooses modules and heaps alone */
    if (!(dwFlags & (TH32CS_SNAPPROCESS | TH32CS_SNAPTHREAD))) {
        fail(ERROR_NOT_SUPPORTED);
        return INVALID_HANDLE_VALUE;
    }
    s = calloc(1, sizeof(*s));
    if (s)
        s->flags = dwFlags;
    if (!s || !each_number(open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), take_process, s, 0)) {
        snapshot_free(s);
        fail(ERROR_NOT_ENOUGH_MEMORY);
        return INVALID_HANDLE_VALUE;
    }
    pthread_mutex_lock(&lock);
    s->next = snapshots;
    snapshots = s;
    pthread_mutex_unlock(&lock);
    return s;
}

BOOL snapshot_close(HANDLE handle)
{
    struct snapshot **at = &snapshots, *s;

    pthread_mutex_lock(&lock);
    while (*at && *at != handle)
        at = &(*at)->next;
    s = *at;
    if (s)
        *at = s->next;
    pthread_mutex_unlock(&lock);
    snapshot_free(s);
    return s != NULL;
}

/* The next one of a snapshot, or the first; FALSE with the reason. is_task: which list. */
static BOOL next_row(HANDLE handle, DWORD size, DWORD needed, BOOL is_first, BOOL is_task,
                     struct process *ret, struct task *ret_task)
{
    DWORD reason = ERROR_INVALID_HANDLE;
    struct snapshot *s;

    pthread_mutex_lock(&lock);
    for (s = snapshots; s && s != handle; s = s->next)
        ;
    if (s) {
        size_t *at = is_task ? &s->task_at : &s->process_at;
        size_t count = is_task ? s->task_count : s->process_count;

        if (!is_task && !(s->flags & TH32CS_SNAPPROCESS))
            count = 0;
        *at = is_first ? 0 : *at;
        reason = size < needed ? ERROR_BAD_LENGTH
                 : *at < count ? ERROR_SUCCESS
                               : ERROR_NO_MORE_FILES;
        if (!reason && is_task)
            *ret_task = s->tasks[(*at)++];
        else if (!reason)
            *ret = s->processes[(*at)++];
    }
    pthread_mutex_unlock(&lock);
    return reason ? fail(reason) : TRUE;
}

static BOOL next_process(HANDLE handle, LPPROCESSENTRY32 to, BOOL is_first)
{
    struct process p;

    if (!next_row(handle, to->dwSize, sizeof(*to), is_first, FALSE, &p, NULL))
        return FALSE;
    *to = (PROCESSENTRY32){.dwSize = to->dwSize,
                           .th32ProcessID = p.id,
                           .cntThreads = p.threads,
                           .th32ParentProcessID = p.parent,
                           .pcPriClassBase = p.priority};
    strcpy(to->szExeFile, p.name);
    return TRUE;
}

static BOOL next_process_w(HANDLE handle, LPPROCESSENTRY32W to, BOOL is_first)
{
    struct process p;

    if (!next_row(handle, to->dwSize, sizeof(*to), is_first, FALSE, &p, NULL))
        return FALSE;
    *to = (PROCESSENTRY32W){.dwSize = to->dwSize,
                            .th32ProcessID = p.id,
                            .cntThreads = p.threads,
                            .th32ParentProcessID = p.parent,
                            .pcPriClassBase = p.priority};
    for (size_t i = 0; p.name[i]; i++)
        to->szExeFile[i] = (unsigned char)p.name[i] < 0x80 ? (WCHAR)p.name[i] : L'?';
    return TRUE;
}

static BOOL next_thread(HANDLE handle, LPTHREADENTRY32 to, BOOL is_first)
{
    struct task t = {0};

    if (!next_row(handle, to->dwSize, sizeof(*to), is_first, TRUE, NULL, &t))
        return FALSE;
    *to = (THREADENTRY32){.dwSize = to->dwSize,
                          .th32ThreadID = t.id,
                          .th32OwnerProcessID = t.process,
                          .tpBasePri = t.priority};
    return TRUE;
}

EXPORT BOOL Process32First(HANDLE hSnapshot, LPPROCESSENTRY32 lppe)
{
    return next_process(hSnapshot, lppe, TRUE);
}

EXPORT BOOL Process32Next(HANDLE hSnapshot, LPPROCESSENTRY32 lppe)
{
    return next_process(hSnapshot, lppe, FALSE);
}

EXPORT BOOL Process32FirstW(HANDLE hSnapshot, LPPROCESSENTRY32W lppe)
{
    return next_process_w(hSnapshot, lppe, TRUE);
}

EXPORT BOOL Process32NextW(HANDLE hSnapshot, LPPROCESSENTRY32W lppe)
{
    return next_process_w(hSnapshot, lppe, FALSE);
}

EXPORT BOOL Thread32First(HANDLE hSnapshot, LPTHREADENTRY32 lpte)
{
    return next_thread(hSnapshot, lpte, TRUE);
}

EXPORT BOOL Thread32Next(HANDLE hSnapshot, LPTHREADENTRY32 lpte)
{
    return next_thread(hSnapshot, lpte, FALSE);
}
