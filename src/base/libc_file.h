/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Whether a file is of the C library: its functions say what a wait's cause says already.
 */
#ifndef PRCB_BASE_LIBC_FILE_H
#define PRCB_BASE_LIBC_FILE_H

#include <stdbool.h>
#include <string.h>

/* file: a path, as glibc and musl name theirs, or NULL. */
static inline bool is_libc_file(const char *file)
{
    const char *slash = file ? strrchr(file, '/') : NULL;

    return slash && (!strncmp(slash, "/libc.so", 8) || !strncmp(slash, "/libc-", 6) ||
                     !strncmp(slash, "/libpthread", 11) || !strncmp(slash, "/ld-", 4));
}

#endif
