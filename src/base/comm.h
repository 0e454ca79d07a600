/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The name of a thread, as procfs has it. A name may have line ends in it: only the last one is the
 * file's.
 */
#ifndef PRCB_BASE_COMM_H
#define PRCB_BASE_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Reads the name as far as there is room; it may be "". False: there is no such thread of that
 * process, and ret is "". */
bool comm_read(pid_t pid, pid_t tid, char *ret, size_t size);

#endif
