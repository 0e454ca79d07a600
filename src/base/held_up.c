/* SPDX-License-Identifier: BSD-2-Clause */
#include "held_up.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup_at.h"
#include "read_file.h"

#define TEXT_BYTES 4096

static ssize_t read_text(const char *path, char *ret, size_t size)
{
    ssize_t length = read_start(path, ret, size - 1);

    if (length >= 0)
        ret[length] = '\0';
    return length;
}

/* Whether a file of a cgroup says so. */
static bool group_says(const struct cgroup_at *at, const char *file, const char *says)
{
    char text[256];

    return cgroup_at_read(at, file, text, sizeof(text)) > 0 && strstr(text, says);
}

/* Finds the cgroup that was told to freeze: the one nearest to the thread. */
static void name_frozen(struct cgroup_at *at, const char *file, struct held *held)
{
    while (!group_says(at, file, "1") && cgroup_at_up(at))
        ;
    snprintf(held->group, sizeof(held->group), "%.255s", at->group);
}

static void find_frozen(const char *text, struct held *held)
{
    struct cgroup_at at;

    while (!held->frozen && cgroup_at_next(&text, CGROUP_FREEZER, &at)) {
        if (!at.v1 && group_says(&at, "cgroup.events", "frozen 1")) {
            held->frozen = true;
            name_frozen(&at, "cgroup.freeze", held);
        } else if (at.v1 && (group_says(&at, "freezer.state", "FROZEN") ||
                             group_says(&at, "freezer.state", "FREEZING"))) {
            held->frozen = true;
            name_frozen(&at, "freezer.self_freezing", held);
        }
    }
}

bool held_process_frozen(pid_t pid)
{
    struct held held = {0};
    char path[64], text[TEXT_BYTES];

    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    if (read_text(path, text, sizeof(text)) > 0)
        find_frozen(text, &held);
    return held.frozen;
}

bool held_blocked(pid_t pid, pid_t tid)
{
    char path[64], text[512];
    const char *state;

    /* It does not read stat: that waits for a process that executes a program (since Linux
     * 6.18). */
    snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    state = read_text(path, text, sizeof(text)) > 0 ? strstr(text, "\nState:\t") : NULL;
    return state && state[8] == 'D';
}

int held_read(pid_t pid, pid_t tid, struct held *ret)
{
    struct held held = {0};
    char path[64], text[TEXT_BYTES];
    const char *line;
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    length = read_text(path, text, sizeof(text));
    if (length < 0)
        return length == -ENOENT ? -ESRCH : (int)length;
    line = strstr(text, "\nState:\t");
    held.state = line ? line[8] : '?';
    line = strstr(text, "\nTracerPid:\t");
    held.tracer = line ? (pid_t)strtol(line + 12, NULL, 10) : 0;
    /* Version 1 shows frozen threads in D, version 2 in S. */
    if (held.state == 'S' || held.state == 'D') {
        snprintf(path, sizeof(path), "/proc/%d/task/%d/cgroup", (int)pid, (int)tid);
        if (read_text(path, text, sizeof(text)) > 0)
            find_frozen(text, &held);
    }
    *ret = held;
    return 0;
}

const char *held_word(const struct held *held)
{
    static const struct {
        char state;
        const char *word;
    } words[] = {{'T', "stopped"}, {'t', "traced"}, {'R', "ready"}, {'D', "blocked in the kernel"}};

    if (held->frozen)
        return "frozen";
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        if (held->state == words[i].state)
            return words[i].word;
    }
    return NULL;
}

/* Reads the milliseconds of the run queue's clock, to the nanosecond, when it was last charged. */
static int read_stamp(const char *task, uint64_t *ret)
{
    char path[96], text[2 * TEXT_BYTES];
    unsigned long long ms, ns;
    const char *at;

    snprintf(path, sizeof(path), "%s/sched", task);
    if (read_text(path, text, sizeof(text)) <= 0 || !(at = strstr(text, "\nse.exec_start")) ||
        !(at = strchr(at, ':')) || sscanf(at + 1, "%llu.%6llu", &ms, &ns) != 2)
        return -EOPNOTSUPP;
    *ret = ms * 1000000 + ns;
    return 0;
}

/* Returns the processor that a thread was last on; negative: it is not told. */
static int last_processor(const char *stat)
{
    const char *at = strrchr(stat, ')');
    int cpu;

    for (int i = 0; at && i < 37; i++)
        at = strchr(at + 1, ' ');
    return at && sscanf(at, "%d", &cpu) == 1 ? cpu : -1;
}

/* Each processor has a clock of its own: both stamps must be of one. */
int held_off_ns(pid_t pid, pid_t tid, const char *stat, uint64_t *ret)
{
    cpu_set_t before, there;
    char task[64];
    uint64_t then, now = 0;
    int cpu, result;

    snprintf(task, sizeof(task), "/proc/%d/task/%d", (int)pid, (int)tid);
    cpu = last_processor(stat);
    result = read_stamp(task, &then);
    if (result)
        return result;
    if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(before), &before))
        return -EOPNOTSUPP;
    CPU_ZERO(&there);
    CPU_SET(cpu, &there);
    if (sched_setaffinity(0, sizeof(there), &there))
        return -EOPNOTSUPP;
    sched_yield(); /* which charges this thread up to now */
    result = read_stamp("/proc/thread-self", &now);
    sched_setaffinity(0, sizeof(before), &before);
    if (result)
        return result;
    *ret = now > then ? now - then : 0;
    return 0;
}

bool held_in_place(void)
{
    return cgroup_at_has_v1(CGROUP_FREEZER);
}
