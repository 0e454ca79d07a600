/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Whole files, and trees that are made or taken away.
 */
#ifndef PRCB_WINE_FILES_H
#define PRCB_WINE_FILES_H

#include <stddef.h>
#include <sys/types.h>

#include <prcb/prcb.h>

/* *ret is for free(). Regular files of up to 1 GiB. */
int file_read(const char *path, void **ret, size_t *ret_size, struct prcb_error *err);
/* A new file, on the disk when this returns. */
int file_write(const char *path, const void *bytes, size_t size, mode_t mode,
               struct prcb_error *err);
/* The directory of this name and those above it, for the user alone where they are new. */
int make_directories(const char *path, struct prcb_error *err);
/* With all that is in it; what is not there is gone already. */
int remove_tree(const char *path);

#endif
