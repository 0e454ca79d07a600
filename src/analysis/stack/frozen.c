/* SPDX-License-Identifier: BSD-2-Clause */
#include "frozen.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "reach.h"

/* Functions that call no other may keep values below the stack pointer: x86-64's red zone. */
#define RED_ZONE 128

/* The file has "running", "-1 SP PC" (not in a system call), or "NUMBER ARG1 .. ARG6 SP PC". */
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

    snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
    length = reach_read(pid, path, text, sizeof(text) - 1);
    if (length < 0)
        return length == -EACCES                                          ? -EPERM
               : length == -ENOENT && !access("/proc/self/syscall", F_OK) ? -ESRCH
               : length == -ENOENT                                        ? -EOPNOTSUPP
                                                                          : (int)length;
    text[length] = '\0';
    return parse_syscall(text, ret);
}

int frozen_copy(pid_t tid, const struct frozen_registers *at, size_t want, struct frozen *ret)
{
    uint64_t low = at->sp >= RED_ZONE ? at->sp - RED_ZONE : 0;
    int result = array_reserve(ret->bytes, (size_t)0, ret->room, want);
    ssize_t length;
    char path[64];

    if (result)
        return result;
    snprintf(path, sizeof(path), "/proc/%d/auxv", (int)tid);
    length = reach_memory_after(tid, path, ret->auxv, sizeof(ret->auxv), &ret->auxv_length, low,
                                ret->bytes, want);
    if (length < 0)
        return (int)length;
    ret->at = *at;
    ret->registers = NULL;
    ret->low = low;
    ret->length = (size_t)length;
    return 0;
}

void frozen_deinit(struct frozen *frozen)
{
    free(frozen->bytes);
    *frozen = (struct frozen){0};
}
