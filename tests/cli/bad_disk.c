/* SPDX-License-Identifier: BSD-2-Clause
 *
 * For LD_PRELOAD: a disk that takes as many writes at a place of a file as BAD_DISK says, and no
 * more.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* these are called in place of libc's */
ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t at);
#pragma GCC visibility pop

static atomic_long writes;

ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t at)
{
    const char *most = getenv("BAD_DISK");

    if (most && atomic_fetch_add(&writes, 1) >= atol(most)) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, bytes, size, at);
}
