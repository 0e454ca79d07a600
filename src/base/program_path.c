/* SPDX-License-Identifier: BSD-2-Clause */
#include "program_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool program_next(const char **at, const char *name, char ret[PATH_MAX])
{
    const char *folders = getenv("PATH");
    size_t length;
    int size;

    do {
        if (!*at)
            *at = folders ? folders : "/bin:/usr/bin";
        else if (**at)
            ++*at; /* the colon */
        else
            return false;
        length = strcspn(*at, ":");
        size = snprintf(ret, PATH_MAX, "%.*s%s%s", (int)length, *at, length ? "/" : "./", name);
        *at += length;
    } while (size >= PATH_MAX);
    return true;
}

static int check(const char *path)
{
    struct stat about;

    if (stat(path, &about))
        return -errno;
    return S_ISREG(about.st_mode) && !eaccess(path, X_OK) ? 0 : -EACCES;
}

int program_find(const char *name, char ret[PATH_MAX])
{
    const char *at = NULL;
    int result = -ENOENT;
    char path[PATH_MAX];

    if (strchr(name, '/')) {
        if (snprintf(path, sizeof(path), "%s", name) >= (int)sizeof(path))
            return -ENAMETOOLONG;
        result = check(path);
    } else {
        while (result && program_next(&at, name, path)) {
            int found = check(path);

            if (!found || found == -EACCES)
                result = found;
        }
    }
    if (!result)
        memcpy(ret, path, strlen(path) + 1);
    return result;
}
