/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Manages where the history of `prcb top -w` goes: a file, or a directory with a file for each
 * day.
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

#include "array.h"
#include "error.h"
#include "top_file.h"

#define NAME_SIZE 64
#define LOOK_EACH 16 /* intervals between two looks at sizes; near the limit each is looked at */

struct top_history {
    char *path; /* of the directory, or of the file */
    bool directory;
    uint64_t keep_days, max_bytes;
    struct top_writer *writer;
    char name[NAME_SIZE]; /* of the present file in the directory */
    char day[16];
    uint64_t added;
    uint64_t bytes; /* at the last look */
    bool near;      /* that is most of what may be */
};

/* Accepts only names that are made here: prcb-YYYY-MM-DD.db, prcb-YYYY-MM-DD.N.db. */
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

/* Finds the file that was written last among those of a directory. Returns how many there are, or
 * -errno. */
static int newest(const char *folder, char *ret, size_t size)
{
    DIR *directory = opendir(folder);
    struct timespec last = {0};
    struct dirent *entry;
    int count = 0;

    if (!directory)
        return -errno;
    while ((entry = readdir(directory))) {
        struct stat about;

        if (!is_ours(entry->d_name) ||
            fstatat(dirfd(directory), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) ||
            !S_ISREG(about.st_mode))
            continue;
        if (!count++ || about.st_mtim.tv_sec > last.tv_sec ||
            (about.st_mtim.tv_sec == last.tv_sec && about.st_mtim.tv_nsec > last.tv_nsec)) {
            last = about.st_mtim;
            snprintf(ret, size, "%s/%s", folder, entry->d_name);
        }
    }
    closedir(directory);
    return count;
}

int top_history_file(const char *path, char *ret, size_t size, struct prcb_error *err)
{
    struct stat about;
    int count;

    snprintf(ret, size, "%s", path);
    if (stat(path, &about) || !S_ISDIR(about.st_mode))
        return 0; /* what is wrong with it, who opens it says */
    count = newest(path, ret, size);
    if (count < 0)
        return prcb_fail(err, count, "%s: %s", path, strerror(-count));
    return count ? 0
                 : prcb_fail(err, -ENOENT, "%s has no file of prcb top -w (prcb-YYYY-MM-DD.db)",
                             path);
}

static void day_name(time_t when, char *ret, size_t size)
{
    struct tm tm;

    if (!localtime_r(&when, &tm) || !strftime(ret, size, "%Y-%m-%d", &tm))
        snprintf(ret, size, "0000-00-00");
}

/* The files of a day. */
struct day {
    char name[16];          /* YYYY-MM-DD */
    char oldest[NAME_SIZE]; /* but for the present file; empty: there is no other */
    uint64_t bytes;
};

struct days {
    struct day *of;
    size_t count, room;
    uint64_t bytes;
};

static int count_file(const struct top_history *h, struct days *days, const char *name,
                      uint64_t bytes)
{
    struct day *day = NULL;

    for (size_t i = 0; i < days->count; i++)
        day = strncmp(days->of[i].name, name + strlen("prcb-"), 10) ? day : &days->of[i];
    if (!day) {
        if (array_reserve(days->of, days->count, days->room, 1))
            return -ENOMEM;
        day = &days->of[days->count++];
        *day = (struct day){.bytes = 0};
        memcpy(day->name, name + strlen("prcb-"), 10);
    }
    days->bytes += bytes;
    day->bytes += bytes;
    if (strcmp(name, h->name) && (!*day->oldest || strverscmp(name, day->oldest) < 0))
        snprintf(day->oldest, sizeof(day->oldest), "%.63s", name);
    return 0;
}

static int survey(const struct top_history *h, struct days *days)
{
    DIR *folder = opendir(h->path);
    struct dirent *entry;
    int result = 0;

    days->count = 0;
    days->bytes = 0;
    if (!folder)
        return -errno;
    while (!result && (entry = readdir(folder))) {
        struct stat about;

        if (is_ours(entry->d_name) &&
            !fstatat(dirfd(folder), entry->d_name, &about, AT_SYMLINK_NOFOLLOW))
            result = count_file(h, days, entry->d_name, (uint64_t)about.st_size);
    }
    closedir(folder);
    return result;
}

/* Too old is a day for its date and for so many days after it that have files: when the clock is
 * set to a wrong year for a while, it costs a day, and not all of them. */
static bool is_too_old(const struct top_history *h, const struct days *days, const struct day *day,
                       const char *first)
{
    size_t newer = 0;

    for (size_t i = 0; i < days->count; i++)
        newer += strcmp(days->of[i].name, day->name) > 0;
    return strcmp(day->name, first) < 0 && newer >= h->keep_days;
}

/* Returns the file to remove: one that is too old, or, if all take too much, the oldest of the
 * day that takes most. So a day in which much happens, or is made to happen, leaves the others
 * their files. NULL: there is none. */
static const char *one_too_many(const struct top_history *h, const struct days *days,
                                const char *first)
{
    const struct day *most = NULL;

    for (size_t i = 0; i < days->count; i++) {
        const struct day *day = &days->of[i];

        if (!*day->oldest)
            continue;
        if (is_too_old(h, days, day, first))
            return day->oldest;
        most = !most || day->bytes > most->bytes ? day : most;
    }
    return most && days->bytes > h->max_bytes ? most->oldest : NULL;
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

/* Removes files that are too old or too many. */
static int clean(const struct top_history *h)
{
    struct days days = {0};
    const char *name = "";
    char first[16];
    int result = 0;

    day_name(time(NULL) - (time_t)(h->keep_days * 86400), first, sizeof(first));
    while (!result && name) {
        result = survey(h, &days);
        name = result ? NULL : one_too_many(h, &days, first);
        if (name)
            result = remove_file(h, name);
    }
    free(days.of);
    return result;
}

/* Opens a day's file; files that earlier runs of the same day left stay, and the new one's name
 * has a number. */
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

/* Begins the next file on another day, or if the file has its share of the room. */
static int rotate(struct top_history *h, struct prcb_error *err)
{
    uint64_t most = h->directory ? h->max_bytes / (h->keep_days + 1) : h->max_bytes;
    uint64_t bytes = top_writer_bytes(h->writer, false), grown;
    char day[16];
    int result;

    if (bytes > most - most / 4)
        bytes = top_writer_bytes(h->writer, true);
    /* As much again as was added since the last look has to have room. */
    grown = h->near && bytes > h->bytes ? bytes - h->bytes : 0;
    h->near = bytes > most - most / 4;
    h->bytes = bytes;
    bytes += grown;
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
    int result = h->added++ % LOOK_EACH && !h->near ? 0 : rotate(h, err);

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
