/* SPDX-License-Identifier: BSD-2-Clause */
#include "frozen.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "array.h"

/* Below the stack pointer functions that call no other may keep values: x86-64's red zone. */
#define RED_ZONE 128
#define PAGE     4096u /* the smallest: a copy is tried page by page at the stack's end */

/* "running", "-1 SP PC" (not in a system call), or "NUMBER ARG1 .. ARG6 SP PC". */
static int parse_syscall(const char *text, struct frozen_registers *ret)
{
    struct frozen_registers at = {0};
    const char *space;

    if (!strncmp(text, "running", 7))
        return -EAGAIN;
    space = strchr(text, ' ');
    for (int skip = text[0] == '-' ? 0 : 6; space && skip; skip--)
        space = strchr(space + 1, ' ');
    if (!space || sscanf(space, "%" SCNx64 " %" SCNx64, &at.sp, &at.pc) != 2)
        return -EPROTO;
    *ret = at;
    return 0;
}

int frozen_registers_read(pid_t pid, pid_t tid, struct frozen_registers *ret)
{
    char path[64], text[256];
    ssize_t length;
    int fd, result;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES                                          ? -EPERM
               : errno == ENOENT && !access("/proc/self/syscall", F_OK) ? -ESRCH
               : errno == ENOENT                                        ? -EOPNOTSUPP
                                                                        : -errno;
    length = read(fd, text, sizeof(text) - 1);
    result = length < 0 ? -errno : 0;
    close(fd);
    if (result)
        return result;
    text[length] = '\0';
    return parse_syscall(text, ret);
}

int frozen_copy(pid_t tid, const struct frozen_registers *at, size_t want, struct frozen *ret)
{
    uint64_t low = at->sp >= RED_ZONE ? at->sp - RED_ZONE : 0;
    struct iovec local, remote[64];
    size_t pieces = 0, taken = 0;
    int result = array_reserve(ret->bytes, (size_t)0, ret->room, want);
    ssize_t length;

    if (result)
        return result;
    /* A piece that is not mapped ends the copy, and a piece is copied whole or not at all: so
     * pieces end where pages do, and are no longer than it takes to name all. */
    while (taken < want && pieces < sizeof(remote) / sizeof(*remote)) {
        size_t step = pieces + 1 < sizeof(remote) / sizeof(*remote)
                          ? PAGE - (size_t)((low + taken) % PAGE)
                          : want - taken;

        if (step > want - taken)
            step = want - taken;
        remote[pieces++] = (struct iovec){(void *)(uintptr_t)(low + taken), step};
        taken += step;
    }
    local = (struct iovec){ret->bytes, want};
    length = process_vm_readv(tid, &local, 1, remote, pieces, 0);
    if (length < 0)
        return -errno;
    ret->at = *at;
    ret->low = low;
    ret->length = (size_t)length;
    return 0;
}

void frozen_deinit(struct frozen *frozen)
{
    free(frozen->bytes);
    *frozen = (struct frozen){0};
}
