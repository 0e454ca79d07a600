/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where a program is that is named as for execvp(3): a name with a slash is a path, others are
 * looked for in the folders of $PATH. No state. Any thread, as long as none sets the environment.
 */
#ifndef PRCB_BASE_PROGRAM_PATH_H
#define PRCB_BASE_PROGRAM_PATH_H

#include <limits.h>
#include <stdbool.h>

/* Writes the next place where a name without a slash is looked for; *at is NULL before the first.
 * An empty folder is the current one: "./name". Returns false if there is none any more. Places
 * that are too long are passed over. */
bool program_next(const char **at, const char *name, char ret[PATH_MAX]);

/* Finds the program that execvp would start. 0, or -errno: -EACCES where there are only files that
 * may not be executed. */
int program_find(const char *name, char ret[PATH_MAX]);

#endif
