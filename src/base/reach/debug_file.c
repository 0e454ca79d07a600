/* SPDX-License-Identifier: BSD-2-Clause */
#include "debug_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reach.h"

#define PATH_MOST 4096

static bool is_build_id(const char *text)
{
    size_t length = strlen(text);

    return length > 2 && length <= 128 && strspn(text, "0123456789abcdef") == length;
}

bool debug_file_cache(char *ret, size_t size)
{
    const char *own = getenv("DEBUGINFOD_CACHE_PATH"), *caches = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    int length = 0;

    if (own && *own)
        length = snprintf(ret, size, "%s", own);
    else if (caches && *caches)
        length = snprintf(ret, size, "%s/debuginfod_client", caches);
    else if (home && *home)
        length = snprintf(ret, size, "%s/.cache/debuginfod_client", home);
    return length > 0 && (size_t)length < size && *ret == '/';
}

static int open_fetched(const char *build_id)
{
    char folder[PATH_MOST], path[PATH_MOST + 160];
    struct stat about;
    int place;

    if (!debug_file_cache(folder, sizeof(folder)))
        return -ENOENT;
    snprintf(path, sizeof(path), "%s/%s/debuginfo", folder, build_id);
    place = reach_open(0, path, &about);
    if (place < 0 || !about.st_uid || about.st_uid == geteuid())
        return place;
    close(place);
    return -EPERM;
}

int debug_file_open(const char *build_id, bool fetched)
{
    char path[256];
    struct stat about;
    int place;

    if (!is_build_id(build_id))
        return -EINVAL;
    snprintf(path, sizeof(path), DEBUG_FOLDER "/.build-id/%.2s/%s.debug", build_id, build_id + 2);
    place = reach_open(0, path, &about);
    return place < 0 && fetched ? open_fetched(build_id) : place;
}
