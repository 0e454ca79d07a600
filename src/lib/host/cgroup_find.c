/* SPDX-License-Identifier: BSD-2-Clause */
#include "cgroup_find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup_names.h"

#define PATH_BYTES 4096
#define LEVELS     64 /* as cgroup_names.c */

struct search {
    enum cgroup_wanted wanted;
    const char *name;
    struct cgroup_list *found;
    size_t mount; /* length of the mount's path, which each path begins with */
};

static bool is_unit(const char *folder, const char *unit)
{
    size_t length = strlen(unit);

    return !strncmp(folder, unit, length) &&
           (!folder[length] || (!strchr(unit, '.') && !strcmp(folder + length, ".service")));
}

/* path is that of a folder, from the mount on. */
static bool is_wanted(const struct search *s, const char *path)
{
    struct cgroup_identity said;

    if (s->wanted == CGROUP_BY_UNIT)
        return is_unit(strrchr(path, '/') + 1, s->name);
    cgroup_identify(path, &said);
    if (s->wanted == CGROUP_BY_POD)
        return !strcmp(said.pod, s->name);
    return (*said.machine && !strcmp(said.machine, s->name)) ||
           (s->wanted == CGROUP_BY_CONTAINER && *said.container &&
            !strncmp(said.container, s->name, strlen(s->name)));
}

/* Owns dir from here on. path is that of this folder, in PATH_BYTES; it is restored. */
static int search_folder(const struct search *s, int dir, char *path, int level)
{
    DIR *entries = fdopendir(dir);
    size_t length = strlen(path);
    struct dirent *entry;
    int result = 0;

    if (!entries) {
        close(dir);
        return 0;
    }
    while (!result && level < LEVELS && (entry = readdir(entries))) {
        size_t more = strlen(entry->d_name);
        int below;

        if (entry->d_type != DT_DIR || is_dots(entry->d_name) || length + more + 2 > PATH_BYTES)
            continue;
        path[length] = '/';
        memcpy(path + length + 1, entry->d_name, more + 1);
        below = openat(dir, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (is_wanted(s, path + s->mount)) {
            result = cgroup_list_add(s->found, path);
            close(below);
        } else if (below >= 0) {
            result = search_folder(s, below, path, level + 1);
        }
        path[length] = '\0';
    }
    closedir(entries);
    return result;
}

static bool is_cgroup(const char *path)
{
    char file[PATH_BYTES + 16];

    snprintf(file, sizeof(file), "%s/cgroup.procs", path);
    return !access(file, F_OK);
}

static int search_mount(const struct search *wanted, const char *mount)
{
    struct search s = *wanted;
    char path[PATH_BYTES];
    int dir;

    s.mount = strlen(mount);
    if (s.wanted == CGROUP_BY_PATH) {
        snprintf(path, sizeof(path), "%s%s", mount, strcmp(s.name, "/") != 0 ? s.name : "");
        return is_cgroup(path) ? cgroup_list_add(s.found, path) : 0;
    }
    dir = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof(path), "%s", mount);
    return dir < 0 ? 0 : search_folder(&s, dir, path, 0);
}

static int search_type(const struct search *s, const char *mounts, const char *type)
{
    char line[PATH_BYTES], where[1024], is[64];
    size_t before = s->found->count;
    FILE *in = fopen(mounts, "re");
    int result = 0;

    while (in && !result && s->found->count == before && fgets(line, sizeof(line), in)) {
        if (sscanf(line, "%*s %1023s %63s", where, is) == 2 && !strcmp(is, type))
            result = search_mount(s, where);
    }
    if (in)
        fclose(in);
    return result;
}

int cgroup_find(const char *mounts, enum cgroup_wanted wanted, const char *name,
                struct cgroup_list *ret)
{
    const struct search s = {.wanted = wanted, .name = name, .found = ret};
    size_t before = ret->count;
    int result;

    if (!*name || (wanted == CGROUP_BY_PATH && *name != '/'))
        return -ENOENT;
    result = search_type(&s, mounts, "cgroup2");
    if (!result && ret->count == before)
        result = search_type(&s, mounts, "cgroup");
    return result || ret->count > before ? result : -ENOENT;
}
