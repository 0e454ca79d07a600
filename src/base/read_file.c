/* SPDX-License-Identifier: BSD-2-Clause */
#include "read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "array.h"

#define FIRST_ROOM 65536

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

int read_stream(FILE *in, size_t limit, char **ret, size_t *ret_length)
{
    size_t length = 0, room = FIRST_ROOM, got = 1;
    char *bytes = malloc(room);
    int result = bytes ? 0 : -ENOMEM;

    while (!result && got && length < limit) {
        size_t free_room = room - length - 1;

        if (!free_room) {
            result = array_reserve(bytes, room, room, 1);
            continue;
        }
        errno = 0;
        got = fread(bytes + length, 1, free_room < limit - length ? free_room : limit - length, in);
        length += got;
        if (ferror(in))
            result = errno ? -errno : -EIO;
    }
    if (result) {
        free(bytes);
        return result;
    }
    bytes[length] = '\0';
    *ret = bytes;
    *ret_length = length;
    return 0;
}

int read_file(const char *path, size_t limit, char **ret, size_t *ret_length)
{
    FILE *in = fopen(path, "re");
    char *bytes = NULL;
    size_t length;
    int result;

    if (!in)
        return -errno;
    result = read_stream(in, limit + 1, &bytes, &length);
    fclose(in);
    if (!result && length > limit) {
        free(bytes);
        result = -EFBIG;
    }
    if (result)
        return result;
    *ret = bytes;
    *ret_length = length;
    return 0;
}
