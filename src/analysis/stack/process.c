/* SPDX-License-Identifier: BSD-2-Clause */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "array.h"
#include "living.h"
#include "mapped_file.h"
#include "reach.h"

#define LIST_MOST (64 << 20) /* bytes of a compiler's list */

void process_files_release(struct process_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        if (files->rows[i].fd >= 0)
            close(files->rows[i].fd);
        files->rows[i].fd = -1;
    }
    if (files->has_list && files->list >= 0)
        close(files->list);
    files->list = -1;
}

void process_files_close(struct process_files *files)
{
    process_files_release(files);
    for (size_t i = 0; i < files->count; i++)
        free(files->rows[i].path);
    free(files->rows);
    *files = (struct process_files){0};
}

/* A line is "START-END rwxp OFFSET MAJOR:MINOR INODE   PATH"; false: no code, or not understood. */
static bool parse_line(char *line, struct process_file *ret)
{
    unsigned int major_number, minor_number;
    char flags[5];
    int path = 0;

    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &ret->start,
               &ret->end, flags, &ret->offset, &major_number, &minor_number, &ret->ino,
               &path) < 7 ||
        !path || flags[2] != 'x')
        return false;
    ret->dev = makedev(major_number, minor_number);
    ret->path = line + path;
    return true;
}

static int add(struct process_files *files, const struct process_file *row)
{
    struct process_file kept = *row;

    kept.path = strdup(row->path);
    if (!kept.path || array_append(files->rows, files->count, kept)) {
        free(kept.path);
        return -ENOMEM;
    }
    return 0;
}

/* Finds where a file's first page is mapped: the linker maps the parts of one file in one piece,
 * in the order of their offsets, the first of which is 0. */
static void note_base(uint64_t *base, uint64_t *dev, uint64_t *ino, const char *line)
{
    unsigned int major_number, minor_number;
    uint64_t start, offset, inode;

    if (sscanf(line, "%" SCNx64 "-%*x %*s %" SCNx64 " %x:%x %" SCNu64, &start, &offset,
               &major_number, &minor_number, &inode) != 5 ||
        offset)
        return;
    *base = start;
    *dev = makedev(major_number, minor_number);
    *ino = inode;
}

/* Whether an earlier mapping is of the same file. If one more piece of the file is mapped
 * elsewhere, without its first page, the program did that itself (node maps a part of itself
 * again), and it is no other copy of the file. */
static bool has_file(const struct process_files *files, const struct process_file *row)
{
    for (size_t i = 0; i < files->count; i++) {
        if (files->rows[i].dev == row->dev && files->rows[i].ino == row->ino &&
            files->rows[i].base != row->base)
            return true;
    }
    return false;
}

static void open_row(pid_t pid, const struct mapped_served *served, struct process_file *row)
{
    const struct mapped_file file = {row->start, row->end, row->dev, row->ino, row->path};
    struct stat about;

    row->fd = mapped_file_place(pid, served, &file, &about);
    row->error = row->fd < 0 ? row->fd : 0;
    if (row->fd >= 0)
        row->id = (struct process_file_id){
            .dev = about.st_dev,
            .ino = about.st_ino,
            .changed_ns = (int64_t)about.st_ctim.tv_sec * 1000000000 + about.st_ctim.tv_nsec,
        };
}

static int read_maps(char *maps, pid_t pid, struct process_files *files)
{
    uint64_t base = 0, dev = 0, ino = 0;
    struct mapped_served served = {0};
    char *line;
    int result = 0;

    mapped_find_served(pid, &served);
    while (!result && files->count < PROCESS_FILES && (line = strsep(&maps, "\n"))) {
        struct process_file row = {.fd = -1, .error = -ENOENT};
        bool alone;

        note_base(&base, &dev, &ino, line);
        if (!parse_line(line, &row))
            continue;
        alone = !row.ino || row.dev != dev || row.ino != ino;
        row.id = (struct process_file_id){.dev = row.dev, .ino = row.ino};
        row.base = alone ? row.start - row.offset : base;
        if (row.ino && alone && has_file(files, &row)) {
            row.error = -EEXIST;
        } else if (row.ino) {
            open_row(pid, &served, &row);
        }
        result = add(files, &row);
        if (result && row.fd >= 0)
            close(row.fd);
    }
    mapped_free_served(&served);
    return result;
}

/* Opens the compiler's list, which must belong to the process's user: the owner of its files in
 * /proc. */
static void open_list(pid_t pid, struct process_files *files)
{
    struct stat about;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d", (int)living_thread(pid));
    files->list = stat(path, &about) ? -1 : reach_open_list(pid, about.st_uid, LIST_MOST, &about);
    files->has_list = files->list >= 0;
}

int process_files_open(pid_t pid, struct process_files *ret)
{
    struct process_files files = {0};
    char path[64], *maps;
    ssize_t length;
    int result;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)living_thread(pid));
    length = reach_text(pid, path, &maps);
    if (length < 0)
        return length == -EACCES ? -EPERM : length == -ENOENT ? -ESRCH : (int)length;
    result = read_maps(maps, pid, &files);
    free(maps);
    if (result) {
        process_files_close(&files);
        return result;
    }
    open_list(pid, &files);
    *ret = files;
    return 0;
}

const struct process_file *process_files_at(const struct process_files *files, uint64_t address)
{
    size_t low = array_front(i, files->count, files->rows[i].start <= address);

    return low && address < files->rows[low - 1].end ? &files->rows[low - 1] : NULL;
}
