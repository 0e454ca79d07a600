/* SPDX-License-Identifier: BSD-2-Clause */
#include "realtime.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "first_line.h"

bool kernel_is_realtime(const char *root)
{
    char path[PATH_MAX], version[256];
    uint64_t realtime;

    snprintf(path, sizeof(path), "%s/sys/kernel/realtime", root);
    if (first_number(path, &realtime) && realtime)
        return true;
    snprintf(path, sizeof(path), "%s/proc/sys/kernel/version", root);
    return first_line(path, version, sizeof(version)) && strstr(version, "PREEMPT_RT");
}
