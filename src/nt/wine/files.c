/* SPDX-License-Identifier: BSD-2-Clause */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "read_file.h"

#define SIZE_MOST (1ll << 30)

static int fail_file(struct prcb_error *err, const char *path)
{
    int code = -errno;

    return prcb_fail(err, code, "%s: %s", path, strerror(-code));
}

static int write_all(int fd, const char *from, size_t size)
{
    while (size) {
        ssize_t done = write(fd, from, size);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -errno;
        from += done;
        size -= (size_t)done;
    }
    return 0;
}

int file_read(const char *path, void **ret, size_t *ret_size, struct prcb_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), result;
    char *bytes = NULL;
    struct stat stat;

    if (fd < 0)
        return fail_file(err, path);
    if (fstat(fd, &stat))
        result = -errno;
    else if (!S_ISREG(stat.st_mode) || stat.st_size > SIZE_MOST)
        result = -EINVAL;
    else
        result = (bytes = malloc((size_t)stat.st_size + 1)) ? 0 : -ENOMEM;
    if (!result)
        result = read_full(fd, bytes, (size_t)stat.st_size) == stat.st_size ? 0 : -EIO;
    close(fd);
    if (result) {
        free(bytes);
        return prcb_fail(err, result, "%s: %s", path, strerror(-result));
    }
    *ret = bytes;
    *ret_size = (size_t)stat.st_size;
    return 0;
}

int file_write(const char *path, const void *bytes, size_t size, mode_t mode,
               struct prcb_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode), result;

    if (fd < 0)
        return fail_file(err, path);
    result = write_all(fd, bytes, size);
    if (!result && fsync(fd))
        result = -errno;
    if (close(fd) && !result)
        result = -errno;
    return result ? prcb_fail(err, result, "%s: %s", path, strerror(-result)) : 0;
}

int make_directories(const char *path, struct prcb_error *err)
{
    char part[PATH_MAX];
    size_t length = strlen(path);

    if (length >= sizeof(part))
        return prcb_fail(err, -ENAMETOOLONG, "%s: the path is too long", path);
    memcpy(part, path, length + 1);
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        part[i] = '\0';
        if (mkdir(part, 0700) && errno != EEXIST)
            return fail_file(err, part);
        part[i] = path[i];
    }
    return 0;
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *walk)
{
    (void)stat, (void)type, (void)walk;
    return remove(path);
}

int remove_tree(const char *path)
{
    return nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) && errno != ENOENT ? -errno : 0;
}
