/* SPDX-License-Identifier: BSD-2-Clause */
#include "read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

ssize_t read_full(int fd, void *to, size_t size)
{
    size_t have = 0;
    ssize_t got = 1;

    while (have < size && got) {
        got = read(fd, (char *)to + have, size - have);
        if (got < 0 && errno != EINTR)
            return -errno;
        have += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)have;
}

ssize_t read_start(const char *path, void *to, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t got;

    if (fd < 0)
        return -errno;
    got = read_full(fd, to, size);
    close(fd);
    return got;
}
