/* SPDX-License-Identifier: BSD-2-Clause */
#include "plain_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <sys/vfs.h>
#include <unistd.h>

static bool is_plain(int fd, struct stat *ret)
{
    struct statfs system;

    return !fstat(fd, ret) && S_ISREG(ret->st_mode) && ret->st_size > 0 && !fstatfs(fd, &system) &&
           system.f_type != PROC_SUPER_MAGIC && system.f_type != SYSFS_MAGIC;
}

int plain_file_place(int at, const char *path, int flags, struct stat *ret)
{
    int place = openat(at, path, O_PATH | O_CLOEXEC | flags);

    if (place < 0)
        return -errno;
    if (is_plain(place, ret))
        return place;
    close(place);
    return -EINVAL;
}
