/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The kernel's code in every program ([vdso]), which no file holds: as a file. Threads that run are
 * found in it, threads that wait are not.
 */
#ifndef PRCB_STACK_VDSO_H
#define PRCB_STACK_VDSO_H

/* Makes a file of this process's own, which is every other's, too; the caller closes it. -1: it
 * has none, or it cannot be had. */
int vdso_open(void);

#endif
