/* SPDX-License-Identifier: BSD-2-Clause */
#include "procfs.h"
#include "array.h"
#include "read_file.h"
#include "words.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_ROOM 4096
#define MOST_ROOM  (64u << 20) /* a list of all 4 million threads a kernel can have fits */

/* ---- parsers ---- */

static int skip_words(struct words *text, unsigned count)
{
    while (count--) {
        words_skip_blanks(text);
        if (text->at == text->end)
            return -EBADMSG;
        while (text->at < text->end && !words_is_blank(*text->at))
            text->at++;
    }
    return 0;
}

int procfs_parse_pid(const char **at, const char *end, pid_t *ret)
{
    struct words text = {*at, end};
    uint64_t value;

    words_skip_blanks(&text);
    if (text.at == text.end) {
        *at = end;
        return 0;
    }
    if (words_take_number(&text, INT_MAX, &value))
        return -EBADMSG;
    *at = text.at;
    *ret = (pid_t)value;
    return 1;
}

/* The line is "TID (name) S PPID ...". The name may hold anything, ") R 1" included: it ends at the
 * last parenthesis. */
int procfs_parse_stat(const char *text, size_t length, struct procfs_stat *ret)
{
    const char *open = memchr(text, '(', length), *close = memrchr(text, ')', length);
    struct procfs_stat stat = {0};
    uint64_t tid, ppid, flags;
    struct words rest;
    size_t name;

    if (!open || !close || close < open)
        return -EBADMSG;
    rest = (struct words){text, open};
    if (words_take_number(&rest, INT_MAX, &tid))
        return -EBADMSG;
    name = (size_t)(close - open - 1);
    memcpy(stat.comm, open + 1, name < sizeof(stat.comm) ? name : sizeof(stat.comm) - 1);
    rest = (struct words){close + 1, text + length};
    words_skip_blanks(&rest);
    if (rest.at == rest.end)
        return -EBADMSG;
    stat.state = *rest.at++;
    /* These are fields 4, 9, 14, 15 and 22 of proc(5). */
    if (words_take_number(&rest, INT_MAX, &ppid) || skip_words(&rest, 4) ||
        words_take_number(&rest, UINT32_MAX, &flags) || skip_words(&rest, 4) ||
        words_take_number(&rest, UINT64_MAX, &stat.user) ||
        words_take_number(&rest, UINT64_MAX, &stat.kernel) || skip_words(&rest, 6) ||
        words_take_number(&rest, UINT64_MAX, &stat.start))
        return -EBADMSG;
    stat.tid = (pid_t)tid;
    stat.ppid = (pid_t)ppid;
    stat.flags = (uint32_t)flags;
    *ret = stat;
    return 0;
}

/* Reads the number behind a key at the start of a line. */
static int take_value(const char *text, size_t length, const char *key, uint64_t most,
                      uint64_t *ret)
{
    struct words all = {text, text + length}, line;

    while (words_take_line(&all, &line)) {
        if (words_take_prefix(&line, key) && line.at < line.end)
            return words_take_number(&line, most, ret);
    }
    return -EBADMSG;
}

int procfs_parse_status(const char *text, size_t length, struct procfs_status *ret)
{
    struct procfs_status status;
    uint64_t tgid;

    if (take_value(text, length, "Tgid:", INT_MAX, &tgid) ||
        take_value(text, length, "voluntary_ctxt_switches:", UINT64_MAX, &status.voluntary) ||
        take_value(text, length, "nonvoluntary_ctxt_switches:", UINT64_MAX, &status.involuntary))
        return -EBADMSG;
    status.tgid = (pid_t)tgid;
    *ret = status;
    return 0;
}

int procfs_parse_schedstat(const char *text, size_t length, struct procfs_schedstat *ret)
{
    struct words rest = {text, text + length};
    struct procfs_schedstat schedstat;

    if (words_take_number(&rest, UINT64_MAX, &schedstat.run_ns) ||
        words_take_number(&rest, UINT64_MAX, &schedstat.ready_ns) ||
        words_take_number(&rest, UINT64_MAX, &schedstat.arrivals))
        return -EBADMSG;
    *ret = schedstat;
    return 0;
}

/* ---- lists ---- */

int pid_list_add(struct pid_list *list, pid_t pid)
{
    return array_add(list->items, list->count, list->room, pid);
}

void pid_list_free(struct pid_list *list)
{
    free(list->items);
    *list = (struct pid_list){0};
}

/* ---- readers ---- */

int procfs_open(struct procfs *fs, const char *root)
{
    *fs = (struct procfs){.root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (fs->root < 0)
        return -errno;
    fs->buffer = malloc(FIRST_ROOM);
    fs->room = FIRST_ROOM;
    return fs->buffer ? 0 : -ENOMEM;
}

void procfs_close(struct procfs *fs)
{
    if (fs->root >= 0)
        close(fs->root);
    free(fs->buffer);
    *fs = (struct procfs){.root = -1};
}

static int grow(struct procfs *fs)
{
    return fs->room > MOST_ROOM / 2 ? -ENOMEM
                                    : array_reserve(fs->buffer, fs->room, fs->room, FIRST_ROOM);
}

/* Reads a whole file into the buffer, which grows until one has room to spare. */
static int read_growing(struct procfs *fs, int fd, size_t *ret)
{
    size_t length = 0;

    do {
        int result = length == fs->room ? grow(fs) : 0;
        ssize_t got;

        if (result)
            return result;
        got = read_full(fd, fs->buffer + length, fs->room - length);
        if (got < 0)
            return (int)got;
        length += (size_t)got;
    } while (length == fs->room);
    *ret = length;
    return 0;
}

static int read_below(struct procfs *fs, int dir, const char *name, size_t *ret)
{
    /* A recorded tree may hold a pipe, whose opening would wait for a writer. */
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK), result;

    if (fd < 0)
        return -errno;
    result = read_growing(fs, fd, ret);
    close(fd);
    return result;
}

int procfs_read(struct procfs *fs, const char *name, size_t *ret)
{
    return read_below(fs, fs->root, name, ret);
}

void procfs_probe(struct procfs *fs, struct procfs_features *ret)
{
    struct procfs_schedstat schedstat;
    size_t length;

    /* The calling thread has run. */
    ret->schedstat = !read_below(fs, fs->root, "thread-self/schedstat", &length) &&
                     !procfs_parse_schedstat(fs->buffer, length, &schedstat) &&
                     (schedstat.run_ns || schedstat.arrivals);
    ret->children = !faccessat(fs->root, "thread-self/children", R_OK, 0);
}

/* Translates an error for a path inside a thread's directory. */
static int of_thread(int code)
{
    return code == -ENOENT || code == -ENOTDIR ? -ESRCH : code == -EACCES ? -EPERM : code;
}

static int read_thread_below(struct procfs *fs, pid_t pid, pid_t tid, const char *name, size_t *ret)
{
    char path[64];
    int result;

    snprintf(path, sizeof(path), "%d/task/%d/%s", (int)pid, (int)tid, name);
    result = read_below(fs, fs->root, path, ret);
    /* The thread has ended after the open. */
    if (!result && !*ret && strcmp(name, "children"))
        return -ESRCH;
    return of_thread(result);
}

int procfs_read_stat(struct procfs *fs, pid_t pid, pid_t tid, struct procfs_stat *ret)
{
    size_t length;
    int result = read_thread_below(fs, pid, tid, "stat", &length);

    return result ? result : procfs_parse_stat(fs->buffer, length, ret);
}

int procfs_read_status(struct procfs *fs, pid_t pid, pid_t tid, struct procfs_status *ret)
{
    size_t length;
    int result = read_thread_below(fs, pid, tid, "status", &length);

    return result ? result : procfs_parse_status(fs->buffer, length, ret);
}

int procfs_read_schedstat(struct procfs *fs, pid_t pid, pid_t tid, struct procfs_schedstat *ret)
{
    size_t length;
    int result = read_thread_below(fs, pid, tid, "schedstat", &length);

    return result ? result : procfs_parse_schedstat(fs->buffer, length, ret);
}

static int add_numbers(const char *text, size_t length, struct pid_list *list)
{
    const char *end = text + length;
    pid_t pid;
    int more;

    while ((more = procfs_parse_pid(&text, end, &pid)) > 0) {
        int result = pid_list_add(list, pid);

        if (result)
            return result;
    }
    return more;
}

int procfs_list_file(struct procfs *fs, int dir, const char *name, struct pid_list *list)
{
    size_t length;
    int result = read_below(fs, dir, name, &length);

    return result ? result : add_numbers(fs->buffer, length, list);
}

int procfs_list_children(struct procfs *fs, pid_t pid, pid_t tid, struct pid_list *list)
{
    size_t length;
    int result = read_thread_below(fs, pid, tid, "children", &length);

    return result ? result : add_numbers(fs->buffer, length, list);
}

/* Adds the entries of a directory that are numbers. Owns fd from here on. */
static int list_numbers(int fd, struct pid_list *list)
{
    DIR *dir = fdopendir(fd);
    struct dirent *entry;
    int result = 0;

    if (!dir) {
        close(fd);
        return -ENOMEM;
    }
    errno = 0;
    while (!result && (entry = readdir(dir))) {
        const char *at = entry->d_name;
        pid_t pid;

        if (procfs_parse_pid(&at, at + strlen(at), &pid) > 0)
            result = pid_list_add(list, pid);
        errno = 0;
    }
    if (!result && errno)
        result = -errno;
    closedir(dir);
    return result;
}

static int list_directory(struct procfs *fs, const char *path, struct pid_list *list)
{
    int fd = openat(fs->root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : list_numbers(fd, list);
}

int procfs_list_processes(struct procfs *fs, struct pid_list *list)
{
    return list_directory(fs, ".", list);
}

int procfs_list_threads(struct procfs *fs, pid_t pid, struct pid_list *list)
{
    char path[32];

    snprintf(path, sizeof(path), "%d/task", (int)pid);
    return of_thread(list_directory(fs, path, list));
}
