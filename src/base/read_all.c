/* SPDX-License-Identifier: BSD-2-Clause */
#include "read_all.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_ROOM 65536

int read_all(FILE *in, size_t limit, char **ret, size_t *ret_length)
{
    size_t length = 0, room = FIRST_ROOM, got = 1;
    char *bytes = malloc(room);
    int result = bytes ? 0 : -ENOMEM;

    while (!result && got && length < limit) {
        size_t free_room = room - length - 1;

        if (!free_room) {
            char *grown = realloc(bytes, 2 * room);

            if (!grown) {
                result = -ENOMEM;
                break;
            }
            bytes = grown;
            room *= 2;
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
