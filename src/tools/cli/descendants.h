/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Processes that others have made, as procfs shows it now: those whose parent has ended have
 * another one, and are not found. Any thread.
 */
#ifndef PRCB_CLI_DESCENDANTS_H
#define PRCB_CLI_DESCENDANTS_H

#include <stddef.h>
#include <sys/types.h>

#define DESCENDANTS_MOST 256

/* Finds what some processes have made, and what these made, without themselves, this process and
 * its own. The caller frees *ret. Returns how many there are; if these are more than
 * DESCENDANTS_MOST, *ret has none. */
size_t descendants_find(const pid_t *pids, size_t count, pid_t **ret);

#endif
