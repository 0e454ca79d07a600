/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Lists of processes, threads and a process's modules, as procfs shows them at one time. A module
 * is a file that is mapped with a part to execute. A snapshot is a handle that CloseHandle ends;
 * any number of threads may read it, and each has the snapshot's one place.
 */
#include "array.h"
#include "compat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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

struct module {
    DWORD process;
    uintptr_t from, to;
    BOOL executed;
    char path[MAX_PATH];
};

enum list { PROCESSES, TASKS, MODULES, LISTS };

struct snapshot {
    struct snapshot *next;
    DWORD flags;
    struct process *processes;
    struct task *tasks;
    struct module *modules;
    size_t count[LISTS], at[LISTS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct snapshot *snapshots;

/* ---- reading procfs ---- */

/* The line of a process or thread: "1 (name) S parent ...": its name may hold anything. */
static BOOL take_stat(char *line, struct process *ret)
{
    char *first = strchr(line, '('), *last = strrchr(line, ')');
    long nice;

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

static BOOL read_stat(int at, const char *path, struct process *ret)
{
    char line[1024];
    int fd = openat(at, path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);

    if (fd >= 0)
        close(fd);
    if (length <= 0)
        return FALSE;
    line[length] = '\0';
    return take_stat(line, ret);
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
    return !array_append(s->tasks, s->count[TASKS], (struct task){line.id, process, line.priority});
}

static BOOL take_process(int folder, const char *name, struct snapshot *s, DWORD unused)
{
    struct process line;
    char path[300];

    (void)unused;
    snprintf(path, sizeof(path), "%s/stat", name);
    if (!read_stat(folder, path, &line))
        return TRUE;
    if (array_append(s->processes, s->count[PROCESSES], line))
        return FALSE;
    if (!(s->flags & TH32CS_SNAPTHREAD))
        return TRUE;
    snprintf(path, sizeof(path), "%s/task", name);
    return each_number(openat(folder, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), take_task, s,
                       line.id);
}

/* Adds what a line of /proc/PID/maps says to the file's module, which the line before was of too.
 */
static BOOL take_mapping(struct snapshot *s, DWORD process, const char *line)
{
    size_t *count = &s->count[MODULES];
    struct module m = {.process = process}, *last = *count ? &s->modules[*count - 1] : NULL;
    char rights[5];

    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %*s %259[^\n]", &m.from, &m.to, rights,
               m.path) != 4 ||
        m.path[0] != '/')
        return TRUE;
    m.executed = rights[2] == 'x';
    if (last && !strcmp(last->path, m.path)) {
        last->to = m.to;
        last->executed |= m.executed;
        return TRUE;
    }
    if (last && !last->executed)
        *last = m; /* data: no module */
    else if (array_append(s->modules, *count, m))
        return FALSE;
    return TRUE;
}

/* 0 or why not, as Windows says it. */
static DWORD take_modules(struct snapshot *s, DWORD process)
{
    char path[32], *line = NULL;
    size_t room = 0;
    BOOL good = TRUE;
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%u/maps", process);
    maps = fopen(path, "re");
    if (!maps)
        return errno == ENOENT ? ERROR_INVALID_PARAMETER : ERROR_ACCESS_DENIED;
    while (good && getline(&line, &room, maps) > 0)
        good = take_mapping(s, process, line);
    free(line);
    fclose(maps);
    if (s->count[MODULES] && !s->modules[s->count[MODULES] - 1].executed)
        s->count[MODULES]--;
    return good ? ERROR_SUCCESS : ERROR_NOT_ENOUGH_MEMORY;
}

static DWORD take_all(struct snapshot *s, DWORD process)
{
    DWORD reason = s->flags & (TH32CS_SNAPMODULE | TH32CS_SNAPMODULE32)
                       ? take_modules(s, process ? process : (DWORD)getpid())
                       : ERROR_SUCCESS;

    if (!reason && s->flags & (TH32CS_SNAPPROCESS | TH32CS_SNAPTHREAD) &&
        !each_number(open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), take_process, s, 0))
        reason = ERROR_NOT_ENOUGH_MEMORY;
    return reason;
}

static void snapshot_free(struct snapshot *s)
{
    if (s) {
        free(s->processes);
        free(s->tasks);
        free(s->modules);
    }
    free(s);
}

/* ---- the calls ---- */

EXPORT HANDLE CreateToolhelp32Snapshot(DWORD dwFlags, DWORD th32ProcessID)
{
    struct snapshot *s;
    DWORD reason;

    if (!(dwFlags & (TH32CS_SNAPALL | TH32CS_SNAPMODULE32) & ~TH32CS_SNAPHEAPLIST)) {
        fail(ERROR_NOT_SUPPORTED);
        return INVALID_HANDLE_VALUE;
    }
    s = calloc(1, sizeof(*s));
    if (s)
        s->flags = dwFlags;
    reason = s ? take_all(s, th32ProcessID) : ERROR_NOT_ENOUGH_MEMORY;
    if (reason) {
        snapshot_free(s);
        fail(reason);
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

/* The next row of a snapshot's list, or the first; FALSE with the reason. */
static BOOL next_row(HANDLE handle, DWORD size, DWORD needed, BOOL is_first, enum list list,
                     void *ret)
{
    static const size_t sizes[LISTS] = {sizeof(struct process), sizeof(struct task),
                                        sizeof(struct module)};
    DWORD reason = ERROR_INVALID_HANDLE;
    struct snapshot *s;

    pthread_mutex_lock(&lock);
    for (s = snapshots; s && s != handle; s = s->next)
        ;
    if (s) {
        const char *const rows[LISTS] = {(const char *)s->processes, (const char *)s->tasks,
                                         (const char *)s->modules};
        size_t *at = &s->at[list];
        size_t count = list == PROCESSES && !(s->flags & TH32CS_SNAPPROCESS) ? 0 : s->count[list];

        *at = is_first ? 0 : *at;
        reason = size < needed ? ERROR_BAD_LENGTH
                 : *at < count ? ERROR_SUCCESS
                               : ERROR_NO_MORE_FILES;
        if (!reason)
            memcpy(ret, rows[list] + sizes[list] * (*at)++, sizes[list]);
    }
    pthread_mutex_unlock(&lock);
    return reason ? fail(reason) : TRUE;
}

/* What is not ASCII is "?". */
static void widen(const char *text, WCHAR *ret)
{
    size_t i = 0;

    for (; text[i]; i++)
        ret[i] = (unsigned char)text[i] < 0x80 ? (WCHAR)text[i] : L'?';
    ret[i] = 0;
}

static BOOL next_process(HANDLE handle, LPPROCESSENTRY32 to, BOOL is_first)
{
    struct process p;

    if (!next_row(handle, to->dwSize, sizeof(*to), is_first, PROCESSES, &p))
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

    if (!next_row(handle, to->dwSize, sizeof(*to), is_first, PROCESSES, &p))
        return FALSE;
    *to = (PROCESSENTRY32W){.dwSize = to->dwSize,
                            .th32ProcessID = p.id,
                            .cntThreads = p.threads,
                            .th32ParentProcessID = p.parent,
                            .pcPriClassBase = p.priority};
    widen(p.name, to->szExeFile);
    return TRUE;
}

static BOOL next_thread(HANDLE handle, LPTHREADENTRY32 to, BOOL is_first)
{
    struct task t = {0};

    if (!next_row(handle, to->dwSize, sizeof(*to), is_first, TASKS, &t))
        return FALSE;
    *to = (THREADENTRY32){.dwSize = to->dwSize,
                          .th32ThreadID = t.id,
                          .th32OwnerProcessID = t.process,
                          .tpBasePri = t.priority};
    return TRUE;
}

#define MODULE_ROW(m, size)                                                                        \
    {                                                                                              \
        .dwSize = size, .th32ModuleID = 1, .th32ProcessID = (m).process, .GlblcntUsage = 1,        \
        .ProccntUsage = 1, .modBaseAddr = (BYTE *)(m).from,                                        \
        .modBaseSize = (DWORD)((m).to - (m).from), .hModule = (HMODULE)(m).from                    \
    }

static const char *name_in(const struct module *m)
{
    return strrchr(m->path, '/') + 1;
}

static BOOL next_module(HANDLE handle, LPMODULEENTRY32 to, BOOL is_first)
{
    struct module m;

    if (!next_row(handle, to->dwSize, sizeof(*to), is_first, MODULES, &m))
        return FALSE;
    *to = (MODULEENTRY32)MODULE_ROW(m, to->dwSize);
    snprintf(to->szModule, sizeof(to->szModule), "%.*s", MAX_MODULE_NAME32, name_in(&m));
    strcpy(to->szExePath, m.path);
    return TRUE;
}

static BOOL next_module_w(HANDLE handle, LPMODULEENTRY32W to, BOOL is_first)
{
    struct module m;
    char name[MAX_MODULE_NAME32 + 1];

    if (!next_row(handle, to->dwSize, sizeof(*to), is_first, MODULES, &m))
        return FALSE;
    *to = (MODULEENTRY32W)MODULE_ROW(m, to->dwSize);
    snprintf(name, sizeof(name), "%.*s", MAX_MODULE_NAME32, name_in(&m));
    widen(name, to->szModule);
    widen(m.path, to->szExePath);
    return TRUE;
}

EXPORT BOOL Module32First(HANDLE hSnapshot, LPMODULEENTRY32 lpme)
{
    return next_module(hSnapshot, lpme, TRUE);
}

EXPORT BOOL Module32Next(HANDLE hSnapshot, LPMODULEENTRY32 lpme)
{
    return next_module(hSnapshot, lpme, FALSE);
}

EXPORT BOOL Module32FirstW(HANDLE hSnapshot, LPMODULEENTRY32W lpme)
{
    return next_module_w(hSnapshot, lpme, TRUE);
}

EXPORT BOOL Module32NextW(HANDLE hSnapshot, LPMODULEENTRY32W lpme)
{
    return next_module_w(hSnapshot, lpme, FALSE);
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
