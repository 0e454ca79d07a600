/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What limits of memory do, as the kernel counts it by cgroup. The files of version 2 are read when
 * somebody first asks after a look, of each cgroup that is shown and of those above it that have a
 * limit, which is where the kernel counts that it was met. Files of the kernel never wait.
 */
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cgroup_at.h"
#include "inside.h"

#define TEXT_BYTES 16384 /* memory.stat has about 1.5 KiB */

/* What is read; a family has some of these rows, side by side. */
static const struct {
    const char *file, *line, *label;
} rows[] = {
    {"memory.events", "low", "low"},
    {"memory.events", "high", "high"},
    {"memory.events", "max", "max"},
    {"memory.events", "oom", "oom"},
    {"memory.events", "oom_kill", "oom_kill"},
    {"memory.stat", "workingset_refault_anon", "anon"},
    {"memory.stat", "workingset_refault_file", "file"},
    {"memory.stat", "pgsteal_kswapd", "kswapd"},
    {"memory.stat", "pgsteal_direct", "direct"},
};

/* The rows that each family has. */
static const struct {
    const char *label;
    size_t first, count;
} families[] = {
    [MEMORY_EVENTS] = {"event", 0, 5},
    [MEMORY_REFAULTS] = {"type", 5, 2},
    [MEMORY_RECLAIMED] = {"by", 7, 2},
};

#define ROWS (sizeof(rows) / sizeof(*rows))

/* What was read of a cgroup. */
struct reading {
    char *path;
    bool shown;   /* it has threads that are shown, or a limit */
    uint32_t has; /* a bit a row */
    uint64_t values[ROWS];
};

/* Of one look: each cgroup is there once, and each file is read once. */
struct memory {
    uint64_t look;
    const char *root;
    struct reading *readings;
    size_t count, room;
    struct table there; /* by path: numbers from 1 */
    bool failed;
};

static bool has_limit(const struct cgroup_at *at)
{
    char text[64];

    return cgroup_at_read(at, "memory.max", text, sizeof(text)) > 0 && *text >= '0' && *text <= '9';
}

/* Returns NULL if the path was there, or there is no room for it. */
static struct reading *add_path(struct memory *memory, const char *path)
{
    const struct table_slot *slot = NULL;
    uint64_t key = table_hash_text(path);
    struct reading reading = {.path = NULL};

    while ((slot = table_next(&memory->there, key, slot))) {
        if (!strcmp(memory->readings[slot->number - 1].path, path))
            return NULL;
    }
    reading.path = strdup(path);
    if (!reading.path || array_add(memory->readings, memory->count, memory->room, reading)) {
        free(reading.path);
        memory->failed = true;
        return NULL;
    }
    memory->failed |= table_put_number(&memory->there, key, memory->count) != 0;
    return &memory->readings[memory->count - 1];
}

static void add_group(void *ctx, const struct group *group)
{
    struct reading *reading =
        *group->path == '/' && group->path[1] ? add_path(ctx, group->path) : NULL;

    if (reading)
        reading->shown = true;
}

/* Returns false if the path is too long. */
static bool place(const struct memory *memory, const char *path, struct cgroup_at *ret)
{
    *ret = (struct cgroup_at){.mount = memory->root};
    return snprintf(ret->group, sizeof(ret->group), "%s", path) < (int)sizeof(ret->group);
}

/* Adds the cgroups above one, of which those are shown that have a limit of their own. */
static void add_above(struct memory *memory, const char *path)
{
    struct cgroup_at at;

    if (!place(memory, path, &at))
        return;
    while (cgroup_at_up(&at)) {
        struct reading *reading = add_path(memory, at.group);

        if (!reading)
            return; /* and what is above it is there, too */
        reading->shown = has_limit(&at);
    }
}

static void read_files(const struct memory *memory, struct reading *ret)
{
    char text[TEXT_BYTES];
    struct cgroup_at at;

    if (!place(memory, ret->path, &at))
        return;
    for (size_t i = 0; i < ROWS; i++) {
        if ((!i || strcmp(rows[i].file, rows[i - 1].file) != 0) &&
            cgroup_at_read(&at, rows[i].file, text, sizeof(text)) <= 0)
            *text = '\0';
        if (cgroup_count(text, rows[i].line, &ret->values[i]))
            ret->has |= 1u << i;
    }
}

static void forget(struct memory *memory)
{
    for (size_t i = 0; i < memory->count; i++)
        free(memory->readings[i].path);
    free(memory->readings);
    table_free(&memory->there);
    *memory = (struct memory){.look = 0};
}

static void read_all(struct memory *memory, const struct metrics *m)
{
    size_t groups;

    forget(memory);
    memory->look = m->looks;
    memory->root = cgroup_names_root(m->names);
    metrics_groups(m, AXIS_CGROUP, add_group, memory);
    groups = memory->count;
    for (size_t i = 0; i < groups && !memory->failed; i++)
        add_above(memory, memory->readings[i].path);
    for (size_t i = 0; i < memory->count; i++) {
        if (memory->readings[i].shown)
            read_files(memory, &memory->readings[i]);
    }
}

struct memory *memory_new(void)
{
    return calloc(1, sizeof(struct memory));
}

void memory_free(struct memory *memory)
{
    if (memory)
        forget(memory);
    free(memory);
}

void memory_each(const struct metrics *m, enum memory_family family, metrics_sample_fn *fn,
                 void *ctx)
{
    struct memory *memory = m->memory;
    size_t first = families[family].first;

    if (m->replay || !memory || !m->names || !*cgroup_names_root(m->names))
        return; /* paths of another machine, or of none */
    if (memory->look != m->looks)
        read_all(memory, m);
    for (size_t i = 0; i < memory->count; i++) {
        const struct reading *reading = &memory->readings[i];
        struct metrics_sample sample = {.kind = METRICS_INTEGER,
                                        .label = {"cgroup", families[family].label},
                                        .value = {reading->path}};

        for (size_t row = first; row < first + families[family].count; row++) {
            if (!(reading->has & 1u << row))
                continue;
            sample.value[1] = rows[row].label;
            sample.number = reading->values[row];
            fn(ctx, &sample);
        }
    }
}
