/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "farm.h"
#include "files.h"

static bool is_same(const char *path, const void *bytes, size_t size)
{
    void *there;
    size_t there_size;
    bool same;

    if (file_read(path, &there, &there_size, NULL))
        return false;
    same = there_size == size && !memcmp(there, bytes, size);
    free(there);
    return same;
}

/* In one step, for programs that may be starting. */
static int put(const char *path, const void *bytes, size_t size, struct prcb_error *err)
{
    char draft[PATH_MAX + 16];
    int result;

    snprintf(draft, sizeof(draft), "%s~%d", path, (int)getpid());
    result = file_write(draft, bytes, size, 0644, err);
    if (!result && rename(draft, path))
        result = prcb_fail(err, -errno, "%s: %s", path, strerror(errno));
    if (result)
        unlink(draft);
    return result;
}

int prefix_prepare(const char *dll, struct prcb_error *err)
{
    const char *prefix = getenv("WINEPREFIX"), *home = getenv("HOME");
    char system[PATH_MAX], from[PATH_MAX], to[PATH_MAX];
    bool named = prefix && *prefix;
    void *bytes;
    size_t size;
    int result;

    if (!named && !home)
        return 0; /* Wine says what it thinks of that */
    if (snprintf(system, sizeof(system), "%s%s/dosdevices/c:/windows/system32",
                 named ? prefix : home, named ? "" : "/.wine") >= (int)sizeof(system) ||
        snprintf(to, sizeof(to), "%s/prcb-nt.dll", system) >= (int)sizeof(to) ||
        snprintf(from, sizeof(from), "%s/prcb-nt.dll", dll) >= (int)sizeof(from))
        return prcb_fail(err, -ENAMETOOLONG, "WINEPREFIX: the path is too long");
    if (access(system, F_OK))
        return 0;
    result = file_read(from, &bytes, &size, err);
    if (result)
        return result;
    if (!is_same(to, bytes, size) && (result = put(to, bytes, size, err)))
        prcb_error_prepend(err, "cannot prepare the prefix: ");
    free(bytes);
    return result;
}
