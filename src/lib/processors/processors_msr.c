/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Delivered performance: the processor's aperf and mperf counters, which count while it is not idle
 * at the rate it runs at and at its nominal rate, through perf's msr events.
 */
#include "processors_view.h"
#include "first_line.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEVICE "/sys/bus/event_source/devices/msr/"

enum { APERF, MPERF, EVENTS };

struct pair {
    int fd[EVENTS];
    uint64_t seen[EVENTS];
};

struct msr_events {
    uint32_t count;
    struct pair pairs[];
};

static int event_code(const char *name, uint64_t *ret)
{
    char path[96], line[64];
    unsigned code;

    snprintf(path, sizeof(path), DEVICE "events/%s", name);
    if (!first_line(path, line, sizeof(line)) || sscanf(line, "event=%x", &code) != 1)
        return -ENOENT;
    *ret = code;
    return 0;
}

static int open_event(uint32_t type, uint64_t code, uint32_t processor)
{
    struct perf_event_attr attr = {
        .type = type,
        .size = sizeof(attr),
        .config = code,
    };
    long fd = syscall(SYS_perf_event_open, &attr, -1, (int)processor, -1, PERF_FLAG_FD_CLOEXEC);

    return fd < 0 ? -errno : (int)fd;
}

/* The reason of the first failure that is not a processor that is off line. */
static int open_pair(struct pair *pair, uint32_t type, const uint64_t *codes, uint32_t processor)
{
    for (int i = 0; i < EVENTS; i++) {
        pair->fd[i] = open_event(type, codes[i], processor);
        if (pair->fd[i] < 0 && pair->fd[i] != -ENODEV && pair->fd[i] != -ENXIO)
            return pair->fd[i];
    }
    return 0;
}

int msr_open(uint32_t count, struct msr_events **ret, const char **why)
{
    uint64_t codes[EVENTS];
    char line[32];
    struct msr_events *m;
    uint32_t type;
    int result = 0;

    *why = "the processor has no aperf and mperf counters that perf's msr events could read "
           "(" DEVICE "events)";
    if (!first_line(DEVICE "type", line, sizeof(line)) || sscanf(line, "%u", &type) != 1 ||
        event_code("aperf", &codes[APERF]) || event_code("mperf", &codes[MPERF]))
        return -EOPNOTSUPP;
    m = malloc(sizeof(*m) + count * sizeof(m->pairs[0]));
    if (!m)
        return -ENOMEM;
    m->count = count;
    for (uint32_t i = 0; i < count; i++)
        m->pairs[i] = (struct pair){.fd = {-1, -1}};
    for (uint32_t i = 0; !result && i < count; i++)
        result = open_pair(&m->pairs[i], type, codes, i);
    if (result) {
        msr_close(m);
        *why = result == -EACCES || result == -EPERM
                   ? "perf's msr events of a whole processor need root, CAP_PERFMON or "
                     "kernel.perf_event_paranoid at 0 or less"
                   : "perf's msr events cannot be opened";
        return result;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t ignored;

        msr_performance(m, i, &ignored);
    }
    *ret = m;
    return 0;
}

void msr_close(struct msr_events *m)
{
    for (uint32_t i = 0; m && i < m->count; i++) {
        for (int k = 0; k < EVENTS; k++) {
            if (m->pairs[i].fd[k] >= 0)
                close(m->pairs[i].fd[k]);
        }
    }
    free(m);
}

bool msr_performance(struct msr_events *m, uint32_t number, uint32_t *ret_permille)
{
    struct pair *pair = &m->pairs[number];
    uint64_t grown[EVENTS];

    for (int i = 0; i < EVENTS; i++) {
        uint64_t now;

        if (pair->fd[i] < 0 || read(pair->fd[i], &now, sizeof(now)) != sizeof(now))
            return false;
        grown[i] = now - pair->seen[i];
        pair->seen[i] = now;
    }
    /* The processor idled all the time: it delivered nothing, and was asked for nothing. */
    if (!grown[MPERF])
        return false;
    *ret_permille = (uint32_t)((double)grown[APERF] * 1000 / (double)grown[MPERF] + 0.5);
    return true;
}
