/* SPDX-License-Identifier: BSD-2-Clause */
#include "comm.h"

#include <stdio.h>

#include "read_file.h"

bool comm_read(pid_t pid, pid_t tid, char *ret, size_t size)
{
    char path[64], text[128];
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
    length = read_start(path, text, sizeof(text));
    snprintf(ret, size, "%.*s", length > 0 ? (int)length - 1 : 0, text);
    return length > 0;
}
