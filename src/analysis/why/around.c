/* SPDX-License-Identifier: BSD-2-Clause */
#include "around.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup_at.h"
#include "first_line.h"
#include "read_file.h"

#define TEXT_BYTES 16384
#define NO_LIMIT   (UINT64_C(1) << 62) /* version 1 says nearly twice that */

/* Reads the number that a file of a cgroup begins with; 0: there is none. */
static uint64_t number_in(const struct cgroup_at *at, const char *file)
{
    char text[64];

    return cgroup_at_read(at, file, text, sizeof(text)) > 0 ? strtoull(text, NULL, 10) : 0;
}

/* Reads the number of the line of a file that begins with a name; 0: there is none. */
static uint64_t count_in(const struct cgroup_at *at, const char *file, const char *name)
{
    char text[TEXT_BYTES];
    uint64_t count = 0;

    if (cgroup_at_read(at, file, text, sizeof(text)) > 0)
        cgroup_count(text, name, &count);
    return count;
}

/* Goes up to the nearest cgroup with a limit; 0: none has one. */
static uint64_t find_limit(struct cgroup_at *at)
{
    do {
        uint64_t limit = number_in(at, at->v1 ? "memory.limit_in_bytes" : "memory.max");

        if (limit && limit < NO_LIMIT)
            return limit;
    } while (cgroup_at_up(at));
    return 0;
}

static void read_counts(const struct cgroup_at *at, struct around *ret)
{
    snprintf(ret->group, sizeof(ret->group), "%.1023s", *at->group ? at->group : "/");
    if (at->v1) {
        ret->limit_hits = number_in(at, "memory.failcnt");
        ret->kills = count_in(at, "memory.oom_control", "oom_kill");
        ret->swapins = count_in(at, "memory.stat", "total_workingset_refault_anon");
        ret->refaults = count_in(at, "memory.stat", "total_workingset_refault_file");
    } else {
        ret->limit_hits = count_in(at, "memory.events", "max");
        ret->kills = count_in(at, "memory.events", "oom_kill");
        ret->swapins = count_in(at, "memory.stat", "workingset_refault_anon");
        ret->refaults = count_in(at, "memory.stat", "workingset_refault_file");
    }
}

static void read_memory(pid_t pid, struct around *ret)
{
    char path[64], text[TEXT_BYTES];
    const char *lines = text;
    struct cgroup_at at;
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    length = read_start(path, text, sizeof(text) - 1);
    text[length > 0 ? length : 0] = '\0';
    while (!ret->limit && cgroup_at_next(&lines, CGROUP_MEMORY, &at)) {
        ret->limit = find_limit(&at);
        if (ret->limit)
            read_counts(&at, ret);
    }
}

/* The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal, in ticks. */
static void read_processors(struct around *ret)
{
    uint64_t tick = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    char line[512], *at = line + 3;

    if (!first_line("/proc/stat", line, sizeof(line)) || strncmp(line, "cpu", 3) != 0)
        return;
    for (int i = 0; i < 8; i++) {
        uint64_t ns = strtoull(at, &at, 10) * tick;

        ret->processors_ns += ns;
        ret->stolen_ns = ns;
    }
}

void around_read(pid_t pid, struct around *ret)
{
    *ret = (struct around){.limit = 0};
    if (pid > 0)
        read_memory(pid, ret);
    read_processors(ret);
}

static void subtract(uint64_t *from, uint64_t what, bool same)
{
    *from = same && *from > what ? *from - what : 0;
}

void around_since(struct around *now, const struct around *before)
{
    bool same = !strcmp(now->group, before->group);

    subtract(&now->limit_hits, before->limit_hits, same);
    subtract(&now->refaults, before->refaults, same);
    subtract(&now->swapins, before->swapins, same);
    subtract(&now->kills, before->kills, same);
    subtract(&now->processors_ns, before->processors_ns, true);
    subtract(&now->stolen_ns, before->stolen_ns, true);
}
