/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The list that a just-in-time compiler writes of the functions it has made, /tmp/perf-PID.map, as
 * the process sees it. Opened only if it is a plain file of the process's user. No state.
 */
#ifndef PRCB_BASE_PERF_LIST_H
#define PRCB_BASE_PERF_LIST_H

#include <sys/types.h>

/* A descriptor; -ENOENT and others: there is none; -EPERM: somebody else's; -EFBIG: of more bytes.
 */
int perf_list_open(pid_t pid, uid_t owner, off_t most);

#endif
