/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The number by which /proc and process_vm_readv tell of a process. A thread that has ended has
 * no memory, no files, no namespaces and no owner any more, and a process's number is that of
 * its first thread, which may end before the others.
 */
#ifndef PRCB_BASE_LIVING_H
#define PRCB_BASE_LIVING_H

#include <sys/types.h>

/* Returns pid or, if that thread has ended, the number of another thread of the process that
 * lives, if there is one. Both are names in /proc. */
pid_t living_thread(pid_t pid);

/* Reads a number of /proc/TID/status, as "Tgid" or "PPid". 0: it is 0, or there is no such thread.
 * Unlike stat, this file never waits for a process that executes a program. */
pid_t status_number(pid_t tid, const char *name);

#endif
