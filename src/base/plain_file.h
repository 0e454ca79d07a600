/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Places of files that somebody else chose: by a path in a recording, in another process's memory
 * or in a folder where anybody may write. To open a device or a pipe may do something, or never
 * end; so the place is found first, and only that of a plain file with something in it is handed
 * out. Files of procfs and sysfs are none: to read some of them does something as well. May wait
 * for the file system, for ever: reach.h does not. No state.
 */
#ifndef PRCB_BASE_PLAIN_FILE_H
#define PRCB_BASE_PLAIN_FILE_H

#include <sys/stat.h>

/* Finds the place relative to the folder `at` (AT_FDCWD: this process's). flags: O_NOFOLLOW or
 * 0. Returns a descriptor (O_PATH), and what it is; -EINVAL: no plain file, or empty; else
 * -errno. */
int plain_file_place(int at, const char *path, int flags, struct stat *ret);

#endif
