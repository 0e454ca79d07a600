/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Finds the Wine that is installed: its loader in the usual places, the rest from there, as Wine
 * finds it itself.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "farm.h"
#include "files.h"
#include "program_path.h"
#include "read_file.h"

/* A name without a slash is looked for in PATH. Distributions, then WineHQ's packages, then Wines
 * that are one program for 32 and 64 bits. */
static const char *const loaders[] = {
    "/usr/lib/wine/wine64",
    "wine64",
    "/opt/wine-stable/bin/wine64",
    "/opt/wine-devel/bin/wine64",
    "/opt/wine-staging/bin/wine64",
    "/usr/lib/wine/wine",
    "wine",
    "/opt/wine-stable/bin/wine",
    "/opt/wine-devel/bin/wine",
    "/opt/wine-staging/bin/wine",
};

/* Relative to the loader's directory. */
static const char *const module_places[] = {
    "../lib/wine",
    "../lib64/wine",
    "../lib/x86_64-linux-gnu/wine",
    "../x86_64-linux-gnu/wine",
    "../../lib64/wine",
    "../wine",
    ".",
};
static const char *const data_places[] = {"../share/wine", "../../share/wine"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* An x86-64 program, and no script that starts one. */
static bool is_program(const char *path)
{
    static const unsigned char start[] = {0x7f, 'E', 'L', 'F', 2, 1};
    unsigned char head[20] = {0};

    return !access(path, X_OK) && read_start(path, head, sizeof(head)) == sizeof(head) &&
           !memcmp(head, start, sizeof(start)) && head[18] == 62 && head[19] == 0;
}

static bool find_in_path(const char *name, char ret[PATH_MAX])
{
    const char *at = NULL;
    char path[PATH_MAX];

    while (program_next(&at, name, path)) {
        if (*path == '/' && is_program(path) && realpath(path, ret))
            return true;
    }
    return false;
}

static bool find_loader(char ret[PATH_MAX])
{
    for (size_t i = 0; i < COUNT(loaders); i++) {
        if (strchr(loaders[i], '/') ? is_program(loaders[i]) && realpath(loaders[i], ret)
                                    : find_in_path(loaders[i], ret))
            return true;
    }
    return false;
}

/* The first of the places beneath bin that holds the file. */
static bool find_place(const char *bin, const char *const *places, size_t count, const char *file,
                       char ret[PATH_MAX])
{
    for (size_t i = 0; i < count; i++) {
        char path[PATH_MAX];

        if (snprintf(path, sizeof(path), "%s/%s/%s", bin, places[i], file) < (int)sizeof(path) &&
            !access(path, R_OK)) {
            snprintf(path, sizeof(path), "%s/%s", bin, places[i]);
            return realpath(path, ret) != NULL;
        }
    }
    return false;
}

int wine_find(const char *wanted, struct wine *ret, struct prcb_error *err)
{
    memset(ret, 0, sizeof(*ret));
    if (wanted && !realpath(wanted, ret->loader))
        return prcb_fail(err, -errno, "%s: %s", wanted, strerror(errno));
    if (wanted && !is_program(ret->loader))
        return prcb_fail(err, -ENOEXEC,
                         "%s is not a 64-bit program: the loader of Wine, wine64, "
                         "is wanted, not a script that starts it",
                         wanted);
    if (!wanted && !find_loader(ret->loader))
        return prcb_fail(err, -ENOENT,
                         "no 64-bit Wine is installed: install it (Debian: apt "
                         "install wine64), or set PRCB_WINE to its loader, wine64");
    memcpy(ret->bin, ret->loader, sizeof(ret->bin));
    *strrchr(ret->bin, '/') = '\0';
    if (!find_place(ret->bin, module_places, COUNT(module_places), "x86_64-unix/ntdll.so",
                    ret->modules) ||
        !find_place(ret->modules, (const char *const[]){"."}, 1, "x86_64-windows/ntdll.dll",
                    ret->modules))
        return prcb_fail(err, -ENOENT,
                         "%s: its modules (x86_64-unix/ntdll.so and "
                         "x86_64-windows/ntdll.dll) are not found near it: Wine 7.0 "
                         "or later is wanted",
                         ret->loader);
    find_place(ret->bin, data_places, COUNT(data_places), "wine.inf", ret->data);
    return 0;
}
