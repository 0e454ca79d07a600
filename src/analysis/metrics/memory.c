/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What limits of memory do, as the kernel counts it by cgroup: read from the files of version 2
 * when somebody asks, for each cgroup that is shown and for those above it that have a limit, which
 * is where the kernel counts that it was met. Files of the kernel are read, which never wait.
 */
#include "memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cgroup_at.h"
#include "inside.h"
#include "read_file.h"

#define PATH_BYTES 4096
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

static bool read_text(const char *root, const char *path, const char *file, char *ret, size_t size)
{
    char name[PATH_BYTES + 512];
    ssize_t length;

    if (snprintf(name, sizeof(name), "%s%s/%s", root, path, file) >= (int)sizeof(name))
        return false;
    length = read_start(name, ret, size - 1);
    if (length <= 0)
        return false;
    ret[length] = '\0';
    return true;
}

static bool has_limit(const char *root, const char *path)
{
    char text[64];

    return read_text(root, path, "memory.max", text, sizeof(text)) && *text >= '0' && *text <= '9';
}

/* Paths of which each is met once. */
struct paths {
    const char *root;
    char **paths;
    size_t count, room;
    struct table there; /* by hash: numbers from 1 */
    bool failed;
};

/* Returns false if the path was there. */
static bool add_path(struct paths *p, const char *path)
{
    const struct table_slot *slot = NULL;
    uint64_t key = table_hash_text(path);
    char *copy;

    while ((slot = table_next(&p->there, key, slot))) {
        if (!strcmp(p->paths[slot->number - 1], path))
            return false;
    }
    copy = strdup(path);
    if (!copy || array_add(p->paths, p->count, p->room, copy) ||
        table_put_number(&p->there, key, p->count)) {
        if (!p->count || p->paths[p->count - 1] != copy)
            free(copy);
        p->failed = true;
    }
    return true;
}

static void add_group(void *ctx, const struct group *group)
{
    if (*group->path == '/' && group->path[1])
        add_path(ctx, group->path);
}

/* Adds the cgroups above one that have a limit of their own. */
static void add_above(struct paths *p, const char *path)
{
    char above[PATH_BYTES], *slash;

    if (strlen(path) >= sizeof(above))
        return;
    memcpy(above, path, strlen(path) + 1);
    while ((slash = strrchr(above, '/')) && slash != above) {
        *slash = '\0';
        if (has_limit(p->root, above) && !add_path(p, above))
            return; /* and what is above it */
    }
}

static void emit_path(const struct paths *p, const char *path, enum memory_family family,
                      metrics_sample_fn *fn, void *ctx)
{
    char text[TEXT_BYTES];
    size_t first = families[family].first;
    struct metrics_sample sample = {
        .kind = METRICS_INTEGER, .label = {"cgroup", families[family].label}, .value = {path}};

    if (!read_text(p->root, path, rows[first].file, text, sizeof(text)))
        return;
    for (size_t i = first; i < first + families[family].count; i++) {
        sample.value[1] = rows[i].label;
        if (cgroup_count(text, rows[i].line, &sample.number))
            fn(ctx, &sample);
    }
}

void memory_each(const struct metrics *m, enum memory_family family, metrics_sample_fn *fn,
                 void *ctx)
{
    struct paths p = {.root = m->names ? cgroup_names_root(m->names) : ""};
    size_t groups;

    if (m->replay || !*p.root)
        return; /* paths of another machine, or of none */
    metrics_groups(m, AXIS_CGROUP, add_group, &p);
    groups = p.count;
    for (size_t i = 0; i < groups && !p.failed; i++)
        add_above(&p, p.paths[i]);
    for (size_t i = 0; i < p.count; i++) {
        emit_path(&p, p.paths[i], family, fn, ctx);
        free(p.paths[i]);
    }
    free(p.paths);
    table_free(&p.there);
}
