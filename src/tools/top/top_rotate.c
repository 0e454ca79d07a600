/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where the history of `prcb top -w` goes: a file, or a directory with a file a day.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "error.h"
#include "top_file.h"

#define NAME_SIZE 64
#define LOOK_EACH 16 /* intervals between two looks at sizes */

struct top_history {
    char *path; /* of the directory, or of the file */
    bool directory;
    uint64_t keep_days, max_bytes;
    struct top_writer *writer;
    char name[NAME_SIZE]; /* of the present file in the directory */
    char day[16];
    uint64_t added;
};

/* Only names that are made here: prcb-YYYY-MM-DD.db, prcb-YYYY-MM-DD.N.db. */
static bool is_ours(const char *name)
{
    unsigned year, month, day, number;
    int used = 0;

    if (sscanf(name, "prcb-%4u-%2u-%2u.db%n", &year, &month, &day, &used) == 3 && used == 18)
        return !name[used];
    used = 0;
    return sscanf(name, "prcb-%4u-%2u-%2u.%u.db%n", &year, &month, &day, &number, &used) == 4 &&
           used && !name[used];
}

static void day_name(time_t when, char *ret, size_t size)
{
    struct tm tm;

    if (!localtime_r(&when, &tm) || !strftime(ret, size, "%Y-%m-%d", &tm))
        snprintf(ret, size, "0000-00-00");
}

/* The oldest file by its name, which is its day, and the bytes of all. */
static int survey(const struct top_history *h, char *ret_oldest, uint64_t *ret_bytes)
{
    DIR *folder = opendir(h->path);
    struct dirent *entry;

    *ret_oldest = '\0';
    *ret_bytes = 0;
    if (!folder)
        return -errno;
    while ((entry = readdir(folder))) {
        struct stat about;

        if (!is_ours(entry->d_name) ||
            fstatat(dirfd(folder), entry->d_name, &about, AT_SYMLINK_NOFOLLOW))
            continue;
        *ret_bytes += (uint64_t)about.st_size;
        if (strcmp(entry->d_name, h->name) &&
            (!*ret_oldest || strverscmp(entry->d_name, ret_oldest) < 0))
            snprintf(ret_oldest, NAME_SIZE, "%.63s", entry->d_name);
    }
    closedir(folder);
    return 0;
}

static int remove_file(const struct top_history *h, const char *name)
{
    static const char *const endings[] = {"-wal", "-shm", ""};
    char path[4096];
    int result = 0;

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s%s", h->path, name, endings[i]);
        result = unlink(path) && errno != ENOENT ? -errno : 0;
    }
    return result;
}

/* Old files go; *ret_bytes: what the present one may have at most. */
static int clean(const struct top_history *h)
{
    char oldest[NAME_SIZE], first[16], limit[NAME_SIZE];
    uint64_t bytes;
    int result;

    day_name(time(NULL) - (time_t)(h->keep_days * 86400), first, sizeof(first));
    snprintf(limit, sizeof(limit), "prcb-%s", first);
    for (;;) {
        result = survey(h, oldest, &bytes);
        if (result || !*oldest)
            return result;
        if (strncmp(oldest, limit, strlen(limit)) >= 0 && bytes <= h->max_bytes)
            return 0;
        result = remove_file(h, oldest);
        if (result)
            return result;
    }
}

/* A day's file; what a run of the same day left stays, and this one's has a number. */
static int open_day(struct top_history *h, struct prcb_error *err)
{
    char path[4096];
    struct stat about;

    day_name(time(NULL), h->day, sizeof(h->day));
    snprintf(h->name, sizeof(h->name), "prcb-%s.db", h->day);
    snprintf(path, sizeof(path), "%s/%s", h->path, h->name);
    for (unsigned i = 2; !lstat(path, &about) && i < 10000; i++) {
        snprintf(h->name, sizeof(h->name), "prcb-%s.%u.db", h->day, i);
        snprintf(path, sizeof(path), "%s/%s", h->path, h->name);
    }
    return top_writer_open(path, &h->writer, err);
}

int top_history_open(const char *path, uint64_t keep_days, uint64_t max_bytes,
                     struct top_history **ret, struct prcb_error *err)
{
    struct top_history *h = calloc(1, sizeof(*h));
    struct stat about;
    int result;

    if (h)
        h->path = strdup(path);
    if (!h || !h->path) {
        free(h);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    h->directory = !stat(path, &about) && S_ISDIR(about.st_mode);
    h->keep_days = keep_days;
    h->max_bytes = max_bytes;
    result = h->directory ? open_day(h, err) : top_writer_open(path, &h->writer, err);
    if (result) {
        free(h->path);
        free(h);
        return result;
    }
    *ret = h;
    return 0;
}

/* Another day, or a file that has its share of the room: the next file. */
static int rotate(struct top_history *h, struct prcb_error *err)
{
    uint64_t most = h->directory ? h->max_bytes / (h->keep_days + 1) : h->max_bytes;
    uint64_t bytes = top_writer_bytes(h->writer, false);
    char day[16];
    int result;

    if (bytes > most)
        bytes = top_writer_bytes(h->writer, true);
    if (!h->directory)
        return bytes <= most
                   ? 0
                   : prcb_fail(err, -EFBIG, "%s has reached its size (--max-size)", h->path);
    day_name(time(NULL), day, sizeof(day));
    if (strcmp(day, h->day) || bytes > most) {
        result = top_writer_close(h->writer, err);
        h->writer = NULL;
        if (!result)
            result = open_day(h, err);
        if (result)
            return result;
    }
    result = clean(h);
    return result ? prcb_fail(err, result, "%s: %s", h->path, strerror(-result)) : 0;
}

int top_history_add(struct top_history *h, struct top_model *m, uint32_t index,
                    struct prcb_error *err)
{
    int result = h->added++ % LOOK_EACH ? 0 : rotate(h, err);

    return result ? result : top_writer_add(h->writer, m, index, err);
}

int top_history_close(struct top_history *h, struct prcb_error *err)
{
    int result;

    if (!h)
        return 0;
    result = top_writer_close(h->writer, err);
    free(h->path);
    free(h);
    return result;
}
