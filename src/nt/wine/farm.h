/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A farm: a directory of symbolic links to the Wine that is installed, with copies of the few files
 * that must differ. Wine that is started from it has prcb-nt.dll among its own, and modules whose
 * export tables lead there. It is made under the user's cache, complete or not at all, once for
 * each Wine: another version, or another prcb-nt.dll, gets another.
 */
#ifndef PRCB_WINE_FARM_H
#define PRCB_WINE_FARM_H

#include <limits.h>
#include <stdbool.h>

#include <prcb/prcb.h>

/* Where things of the installed Wine are: absolute, without symbolic links. */
struct wine {
    char loader[PATH_MAX];  /* the program wine64, or wine */
    char bin[PATH_MAX];     /* its directory */
    char modules[PATH_MAX]; /* holds x86_64-unix and x86_64-windows */
    char data[PATH_MAX];    /* share/wine; empty: there is none */
};

/* wanted: the loader to use; NULL: the first of the usual places and PATH that is a 64-bit program.
 * -ENOENT: no Wine, or not all of it; -ENOEXEC: wanted is no 64-bit program. */
int wine_find(const char *wanted, struct wine *ret, struct prcb_error *err);

/* The directory that farms are kept in, made if need be: only the user may write to it.
 * -EPERM: it is somebody else's, or others may write to it. */
int farm_cache(char ret[PATH_MAX], struct prcb_error *err);

/* Makes the farm for this Wine unless it is there; *ret_loader is its loader. dll: the directory
 * that holds prcb-nt.dll.so and prcb-nt.dll. again: make it in any case. */
int farm_make(const struct wine *wine, const char *cache, const char *dll, bool again,
              char ret_loader[PATH_MAX], struct prcb_error *err);

/* Wine looks for modules that others name in the system directory of the prefix (WINEPREFIX, else
 * ~/.wine). Puts prcb-nt.dll there if there is one; into a prefix that it makes Wine puts it. */
int prefix_prepare(const char *dll, struct prcb_error *err);

#endif
