/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The list that a just-in-time compiler writes of the functions it has made, /tmp/perf-PID.map,
 * as the process sees it. Its place is found only if it is a plain file of the process's user.
 * The functions may wait for the file system, for ever: reach.h does not. No state.
 */
#ifndef PRCB_BASE_PERF_LIST_H
#define PRCB_BASE_PERF_LIST_H

#include <sys/stat.h>
#include <sys/types.h>

/* Returns a descriptor (O_PATH); -ENOENT and others: there is none; -EPERM: it is somebody
 * else's; -EFBIG: it has more bytes. */
int perf_list_place(pid_t pid, uid_t owner, off_t most, struct stat *ret);

#endif
