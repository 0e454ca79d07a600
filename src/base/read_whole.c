/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "array.h"
#include "read_file.h"

#define FIRST_ROOM 65536

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
