/* SPDX-License-Identifier: BSD-2-Clause */
#include "flight_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "array.h"
#include "moment.h"

#define NAME_MAX_OWN 64 /* bytes: theirs are shorter */
#define ASKED        "-asked.db"

struct file {
    char name[NAME_MAX_OWN];
    uint64_t bytes;
};

struct folder {
    DIR *dir;
    struct file *files; /* by name, which is by time */
    size_t count;
};

const char *flight_folder_unfit(const char *folder)
{
    struct stat about;

    if (stat(folder, &about))
        return strerror(errno);
    if (!S_ISDIR(about.st_mode))
        return strerror(ENOTDIR);
    if (access(folder, W_OK | X_OK))
        return strerror(errno);
    if (about.st_uid && about.st_uid != geteuid())
        return "the folder is another user's: name one of your own";
    if (about.st_mode & S_IWOTH)
        return "every user may write to that folder: name one of your own";
    return NULL;
}

void flight_file_name(const char *folder, bool asked, char *ret, size_t size)
{
    struct timespec now;
    struct tm parts;
    char text[32];

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    strftime(text, sizeof(text), "%Y%m%dT%H%M%S", &parts);
    snprintf(ret, size, "%s/flight-%s.%03ldZ%s", folder, text, now.tv_nsec / 1000000,
             asked ? ASKED : ".db");
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const struct file *)left)->name, ((const struct file *)right)->name);
}

/* What others have there counts for nothing and stays. */
static int take_file(struct folder *f, const char *name)
{
    struct file file;
    struct stat about;

    if ((size_t)snprintf(file.name, sizeof(file.name), "%s", name) >= sizeof(file.name) ||
        fstatat(dirfd(f->dir), name, &about, AT_SYMLINK_NOFOLLOW) || !S_ISREG(about.st_mode) ||
        about.st_uid != geteuid())
        return 0;
    file.bytes = (uint64_t)about.st_size;
    return array_append(f->files, f->count, file);
}

static void close_folder(struct folder *f)
{
    if (f->dir)
        closedir(f->dir);
    free(f->files);
}

/* pattern: of names alone, for the folder's own may have '*' and '['. */
static bool open_folder(const char *folder, const char *pattern, struct folder *ret)
{
    struct folder f = {.dir = opendir(folder)};
    struct dirent *entry;
    int result = f.dir ? 0 : -errno;

    while (!result && (entry = readdir(f.dir))) {
        if (!fnmatch(pattern, entry->d_name, 0))
            result = take_file(&f, entry->d_name);
    }
    if (result) {
        close_folder(&f);
        return false;
    }
    array_sort(f.files, f.count, by_name);
    *ret = f;
    return true;
}

static bool is_asked(const char *name)
{
    return !fnmatch("*" ASKED, name, 0);
}

void flight_remove_oldest(const char *folder, const char *newest, uint64_t count, uint64_t bytes)
{
    const char *slash = strrchr(newest, '/'), *last = slash ? slash + 1 : newest;
    uint64_t have = 0, left;
    struct folder f;

    if (!open_folder(folder, "flight-*.db", &f))
        return;
    left = f.count;
    for (size_t i = 0; i < f.count; i++)
        have += f.files[i].bytes;
    /* One that was asked for takes no room from the others: it goes itself, the last of its kind.
     */
    for (size_t i = 0; i < 2 * f.count && (left > count || (bytes && have > bytes)); i++) {
        const struct file *file = &f.files[i % f.count];

        if (is_asked(file->name) != (i < f.count) ||
            (!strcmp(file->name, last) && !is_asked(last)) || unlinkat(dirfd(f.dir), file->name, 0))
            continue;
        left--;
        have -= file->bytes;
    }
    close_folder(&f);
}

void flight_remove_parts(const char *folder)
{
    struct folder f;

    if (!open_folder(folder, "flight-*.db" MOMENT_PART "*", &f))
        return;
    for (size_t i = 0; i < f.count; i++)
        unlinkat(dirfd(f.dir), f.files[i].name, 0);
    close_folder(&f);
}
