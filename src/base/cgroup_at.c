/* SPDX-License-Identifier: BSD-2-Clause */
#include "cgroup_at.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read_file.h"

#define LINE_BYTES 4096

static const char *const names[CGROUP_CONTROLLERS] = {"freezer", "cpu", "memory"};

/* The places where hierarchies are mounted: version 1 by controller, and version 2 behind them;
 * "": nowhere. They stay for as long as a program runs. */
#define V2 CGROUP_CONTROLLERS
static char mounts[CGROUP_CONTROLLERS + 1][1024];
static pthread_once_t mounts_once = PTHREAD_ONCE_INIT;

/* Whether a word is in a list with commas. */
static bool is_listed(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = list; (at = strstr(at, word)); at += length) {
        if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
            return true;
    }
    return false;
}

static void find_mounts(void)
{
    char line[LINE_BYTES], where[1024], type[64], options[1024];
    FILE *in = fopen("/proc/self/mounts", "re");

    while (in && fgets(line, sizeof(line), in)) {
        if (sscanf(line, "%*s %1023s %63s %1023s", where, type, options) != 3)
            continue;
        if (!strcmp(type, "cgroup2") && !*mounts[V2])
            memcpy(mounts[V2], where, sizeof(where));
        for (int i = 0; !strcmp(type, "cgroup") && i < CGROUP_CONTROLLERS; i++) {
            if (is_listed(options, names[i]) && !*mounts[i])
                memcpy(mounts[i], where, sizeof(where));
        }
    }
    if (in)
        fclose(in);
}

static const char *mount_of(int hierarchy)
{
    pthread_once(&mounts_once, find_mounts);
    return *mounts[hierarchy] ? mounts[hierarchy] : NULL;
}

bool cgroup_count(const char *text, const char *name, uint64_t *ret)
{
    size_t length = strlen(name);

    while (text && (strncmp(text, name, length) != 0 || text[length] != ' ')) {
        text = strchr(text, '\n');
        text += text != NULL;
    }
    if (text)
        *ret = strtoull(text + length, NULL, 10);
    return text != NULL;
}

bool cgroup_at_has_v1(enum cgroup_controller controller)
{
    return mount_of(controller) != NULL;
}

/* "N:controllers:/path" is a line of one hierarchy, "0::/path" that of version 2. */
bool cgroup_at_next(const char **text, enum cgroup_controller controller, struct cgroup_at *ret)
{
    char line[LINE_BYTES], controllers[256];

    while (**text) {
        size_t length = strcspn(*text, "\n");
        bool v2;

        snprintf(line, sizeof(line), "%.*s", (int)length, *text);
        *text += length + ((*text)[length] == '\n');
        *ret = (struct cgroup_at){.v1 = false};
        v2 = sscanf(line, "0::%4095[^\n]", ret->group) == 1;
        ret->v1 = !v2 && sscanf(line, "%*u:%255[^:]:%4095[^\n]", controllers, ret->group) == 2 &&
                  is_listed(controllers, names[controller]);
        ret->mount = v2 ? mount_of(V2) : ret->v1 ? mount_of(controller) : NULL;
        if (!strcmp(ret->group, "/"))
            *ret->group = '\0';
        if (ret->mount)
            return true;
    }
    return false;
}

bool cgroup_at_up(struct cgroup_at *at)
{
    char *slash = strrchr(at->group, '/');

    if (!slash || slash == at->group)
        return false;
    *slash = '\0';
    return true;
}

ssize_t cgroup_at_read(const struct cgroup_at *at, const char *file, char *ret, size_t size)
{
    char path[2 * LINE_BYTES];
    ssize_t length;

    if ((size_t)snprintf(path, sizeof(path), "%s%s/%s", at->mount, at->group, file) >= sizeof(path))
        return -ENAMETOOLONG;
    length = read_start(path, ret, size - 1);
    if (length >= 0)
        ret[length] = '\0';
    return length;
}
