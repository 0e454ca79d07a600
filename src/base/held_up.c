/* SPDX-License-Identifier: BSD-2-Clause */
#include "held_up.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "read_file.h"

#define TEXT_BYTES 4096

static ssize_t read_text(const char *path, char *ret, size_t size)
{
    ssize_t length = read_start(path, ret, size - 1);

    if (length >= 0)
        ret[length] = '\0';
    return length;
}

/* The places where hierarchies are mounted: version 2, and version 1 with the freezer; "":
 * nowhere. They stay for as long as a program runs. */
static char mounts[2][1024];
static pthread_once_t mounts_once = PTHREAD_ONCE_INIT;

static void find_mounts(void)
{
    char line[TEXT_BYTES], where[1024], type[64], options[1024];
    FILE *in = fopen("/proc/self/mounts", "re");

    while (in && fgets(line, sizeof(line), in)) {
        bool v1;

        if (sscanf(line, "%*s %1023s %63s %1023s", where, type, options) != 3)
            continue;
        v1 = !strcmp(type, "cgroup") && strstr(options, "freezer");
        if ((v1 || !strcmp(type, "cgroup2")) && !*mounts[v1])
            memcpy(mounts[v1], where, sizeof(where));
    }
    if (in)
        fclose(in);
}

/* Returns where the hierarchy is mounted; NULL: nowhere. */
static const char *mount_of(bool v1)
{
    pthread_once(&mounts_once, find_mounts);
    return *mounts[v1] ? mounts[v1] : NULL;
}

/* Whether a file of a cgroup says so. */
static bool group_says(const char *mount, const char *group, const char *file, const char *says)
{
    char path[2 * TEXT_BYTES], text[256];

    if ((size_t)snprintf(path, sizeof(path), "%s%s/%s", mount, group, file) >= sizeof(path))
        return false;
    return read_text(path, text, sizeof(text)) > 0 && strstr(text, says);
}

/* Finds the cgroup that was told to freeze: the one nearest to the thread. */
static void name_frozen(const char *mount, char *group, const char *file, struct held *held)
{
    for (;;) {
        char *slash = strrchr(group, '/');

        if (group_says(mount, group, file, "1") || !slash || slash == group)
            break;
        *slash = '\0';
    }
    snprintf(held->group, sizeof(held->group), "%s", group);
}

/* "N:controllers:/path" is a line of one hierarchy, "0::/path" that of version 2. */
static void find_frozen(const char *text, struct held *held)
{
    char line[TEXT_BYTES], controllers[256], group[TEXT_BYTES];

    while (*text && !held->frozen) {
        size_t length = strcspn(text, "\n");
        const char *mount;
        bool v1, v2;

        snprintf(line, sizeof(line), "%.*s", (int)length, text);
        text += length + (text[length] == '\n');
        *controllers = *group = '\0';
        v2 = sscanf(line, "0::%4095[^\n]", group) == 1;
        v1 = !v2 && sscanf(line, "%*u:%255[^:]:%4095[^\n]", controllers, group) == 2 &&
             strstr(controllers, "freezer");
        mount = v1 || v2 ? mount_of(v1) : NULL;
        if (!mount)
            continue;
        if (group[1] == '\0')
            *group = '\0'; /* the root, which cannot be frozen, is the mount itself */
        if (v2 && group_says(mount, group, "cgroup.events", "frozen 1")) {
            held->frozen = true;
            name_frozen(mount, group, "cgroup.freeze", held);
        } else if (v1 && (group_says(mount, group, "freezer.state", "FROZEN") ||
                          group_says(mount, group, "freezer.state", "FREEZING"))) {
            held->frozen = true;
            name_frozen(mount, group, "freezer.self_freezing", held);
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
    return mount_of(true) != NULL;
}
