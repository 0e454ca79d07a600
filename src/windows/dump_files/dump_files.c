/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The files behind the arguments. Below a directory, files named *.dmp, compressed or
 * not, in order of their names; symbolic links to directories are not followed.
 */
#include "dump_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "array.h"
#include "error.h"

#define DEPTH_MOST 32

static int add_path(struct dump_files *files, const char *path)
{
    char *copy = strdup(path);

    if (!copy || array_append(files->paths, files->count, copy)) {
        free(copy);
        return -ENOMEM;
    }
    return 0;
}

/* endings is a list that ends in NULL. */
static bool ends_in(const char *name, const char *const *endings)
{
    size_t length = strlen(name);

    for (; *endings; endings++) {
        size_t n = strlen(*endings);

        if (length > n && !strcasecmp(name + length - n, *endings))
            return true;
    }
    return false;
}

static int add_directory(struct dump_files *files, const char *path, const char *const *endings,
                         unsigned int depth, struct prcb_error *err);

static int add_entry(struct dump_files *files, const char *directory, const char *name,
                     const char *const *endings, unsigned int depth, struct prcb_error *err)
{
    struct stat st;
    char *path;
    int code = 0;

    if (!strcmp(name, ".") || !strcmp(name, ".."))
        return 0;
    if (asprintf(&path, "%s/%s", directory, name) < 0)
        return prcb_fail(err, -ENOMEM, "out of memory");
    if (lstat(path, &st))
        code = 0; /* gone since */
    else if (S_ISDIR(st.st_mode))
        code = add_directory(files, path, endings, depth + 1, err);
    else if (ends_in(name, endings) && add_path(files, path))
        code = prcb_fail(err, -ENOMEM, "out of memory");
    free(path);
    return code;
}

static int add_directory(struct dump_files *files, const char *path, const char *const *endings,
                         unsigned int depth, struct prcb_error *err)
{
    struct dirent **entries;
    int count, code = 0;

    if (depth > DEPTH_MOST)
        return prcb_fail(err, -ELOOP, "%s: more than %d directories deep", path, DEPTH_MOST);
    count = scandir(path, &entries, NULL, alphasort);
    if (count < 0)
        return prcb_fail(err, -errno, "%s: cannot read the directory: %s", path, strerror(errno));
    for (int i = 0; i < count; i++) {
        if (!code)
            code = add_entry(files, path, entries[i]->d_name, endings, depth, err);
        free(entries[i]);
    }
    free(entries);
    return code;
}

int dump_files_below(struct dump_files *files, const char *path, const char *const *endings,
                     struct prcb_error *err)
{
    return add_directory(files, path, endings, 0, err);
}

int dump_files_add(struct dump_files *files, const char *path, struct prcb_error *err)
{
    static const char *const endings[] = {".dmp",     ".dmp.xz",  ".dmp.zst", ".dmp.gz",
                                          ".dmp.bz2", ".dmp.zip", NULL};
    size_t before = files->count;
    struct stat st;
    int code;

    if (stat(path, &st) || !S_ISDIR(st.st_mode)) /* opening it says what is wrong */
        return add_path(files, path) ? prcb_fail(err, -ENOMEM, "out of memory") : 0;
    code = dump_files_below(files, path, endings, err);
    if (!code && files->count == before)
        code = prcb_fail(err, -ENOENT,
                         "%s: no *.dmp, also as .xz, .zst, .gz, .bz2 or .zip, below it", path);
    return code;
}

void dump_files_free(struct dump_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->paths[i]);
    free(files->paths);
    *files = (struct dump_files){0};
}
