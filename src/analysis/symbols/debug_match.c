/* SPDX-License-Identifier: BSD-2-Clause */
#include "debug_match.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>

static bool has_id(int fd, const void *id, size_t length)
{
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    const void *found;
    ssize_t size = elf ? dwelf_elf_gnu_build_id(elf, &found) : -1;
    bool same = size > 0 && (size_t)size == length && !memcmp(found, id, length);

    elf_end(elf);
    return same;
}

int debug_match(int fd, const void *id, size_t length)
{
    if (fd < 0)
        return -1;
    elf_version(EV_CURRENT);
    if (has_id(fd, id, length))
        return fd;
    close(fd);
    return -1;
}
