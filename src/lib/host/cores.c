/* SPDX-License-Identifier: BSD-2-Clause */
#include "cores.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

/* Reads the number in a name such as "cpu12"; false: it is none, or not below `limit`. */
static bool numbered(const char *name, const char *prefix, uint32_t limit, uint32_t *ret)
{
    size_t length = strlen(prefix);
    uint64_t number;

    if (!limit || strncmp(name, prefix, length) ||
        number_parse(name + length, 0, limit - 1, &number))
        return false;
    *ret = (uint32_t)number;
    return true;
}

/* Notes that the processors in a folder are of `node`. */
static void take_folder(const char *path, uint32_t node, struct core *ret, uint32_t count)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    uint32_t cpu;

    while (dir && (entry = readdir(dir))) {
        if (numbered(entry->d_name, "cpu", count, &cpu))
            ret[cpu] = (struct core){.node = node, .known = true};
    }
    if (dir)
        closedir(dir);
}

static void take_nodes(const char *root, struct core *ret, uint32_t count)
{
    char path[4096];
    struct dirent *entry;
    uint32_t node;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/sys/devices/system/node", root);
    dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        if (!numbered(entry->d_name, "node", UINT32_MAX, &node))
            continue;
        snprintf(path, sizeof(path), "%s/sys/devices/system/node/node%u", root, node);
        take_folder(path, node, ret, count);
    }
    if (dir)
        closedir(dir);
}

/* Returns a processor's place: how many of its node come before it. */
static uint32_t place_of(const struct core *cores, uint32_t cpu)
{
    for (uint32_t before = cpu; before-- > 0;) {
        if (cores[before].known && cores[before].node == cores[cpu].node)
            return cores[before].index + 1;
    }
    return 0;
}

void cores_read(const char *root, struct core *ret, uint32_t count)
{
    char path[4096];

    memset(ret, 0, count * sizeof(*ret));
    snprintf(path, sizeof(path), "%s/sys/devices/system/cpu", root);
    take_folder(path, 0, ret, count);
    take_nodes(root, ret, count);
    for (uint32_t cpu = 0; cpu < count; cpu++)
        ret[cpu].index = ret[cpu].known ? place_of(ret, cpu) : 0;
}
