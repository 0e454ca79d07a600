/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Whether a file is of the C library: its functions say what a wait's cause says already.
 */
#ifndef PRCB_BASE_LIBC_FILE_H
#define PRCB_BASE_LIBC_FILE_H

#include <stdbool.h>
#include <string.h>

/* name: of a file, without its folder. */
static inline bool is_libc_name(const char *name)
{
    return !strncmp(name, "libc.so", 7) || !strncmp(name, "libc-", 5) ||
           !strncmp(name, "libpthread", 10) || !strncmp(name, "ld-", 3);
}

/* file: a path, as glibc and musl name theirs, or NULL. */
static inline bool is_libc_file(const char *file)
{
    const char *slash = file ? strrchr(file, '/') : NULL;

    return slash && is_libc_name(slash + 1);
}

#endif
