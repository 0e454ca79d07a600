/* SPDX-License-Identifier: BSD-2-Clause */
#include "quota.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read_file.h"

#define TEXT_BYTES 4096

/* Reads what a cgroup may use. It is "max", or negative, without a quota. */
static int read_limit(const struct cgroup_at *at, struct quota *ret)
{
    char text[256];
    unsigned long long quota, period;

    if (!at->v1) {
        if (cgroup_at_read(at, "cpu.max", text, sizeof(text)) <= 0 ||
            sscanf(text, "%llu %llu", &quota, &period) != 2)
            return -ENOENT;
    } else {
        if (cgroup_at_read(at, "cpu.cfs_quota_us", text, sizeof(text)) <= 0 || *text == '-')
            return -ENOENT;
        quota = strtoull(text, NULL, 10);
        if (cgroup_at_read(at, "cpu.cfs_period_us", text, sizeof(text)) <= 0)
            return -ENOENT;
        period = strtoull(text, NULL, 10);
    }
    ret->quota_us = quota;
    ret->period_us = period;
    return quota && period ? 0 : -ENOENT;
}

int quota_of(const struct cgroup_at *at, struct quota *ret)
{
    char text[TEXT_BYTES];
    int result = read_limit(at, ret);

    if (result || cgroup_at_read(at, "cpu.stat", text, sizeof(text)) <= 0)
        return -ENOENT;
    ret->periods = ret->throttled = 0;
    cgroup_count(text, "nr_periods", &ret->periods);
    cgroup_count(text, "nr_throttled", &ret->throttled);
    snprintf(ret->group, sizeof(ret->group), "%.255s", *at->group ? at->group : "/");
    return ret->throttled ? 0 : -ENOENT;
}

int quota_read(pid_t pid, pid_t tid, struct quota *ret)
{
    char path[64], text[TEXT_BYTES];
    struct quota best = {.throttled = 0}, quota;
    const char *lines = text;
    struct cgroup_at at;
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/cgroup", (int)pid, (int)tid);
    length = read_start(path, text, sizeof(text) - 1);
    if (length < 0)
        return (int)length;
    text[length] = '\0';
    while (cgroup_at_next(&lines, CGROUP_CPU, &at)) {
        do {
            if (!quota_of(&at, &quota) && quota.throttled > best.throttled)
                best = quota;
        } while (cgroup_at_up(&at));
    }
    if (!best.throttled)
        return -ENOENT;
    *ret = best;
    return 0;
}
