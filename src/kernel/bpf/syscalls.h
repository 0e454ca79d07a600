/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Tells what a thread that waits inside a system call waits for: the meaning of the cause column
 * in syscalls_*.def. The tables' rows are S(number, name, cause); a call without a row is an
 * "other" wait.
 */
#ifndef PRCB_SYSCALLS_H
#define PRCB_SYSCALLS_H

#define PRCB_SYSCALL_MAX 512

/* Besides the causes: the file behind the call's first argument decides. */
#define PRCB_CAUSE_BY_FD 64
/* The file that is being opened decides. */
#define PRCB_CAUSE_BY_OPEN 67
/* The call's first argument decides: ipc(2) of 32-bit x86. */
#define PRCB_CAUSE_BY_IPC 66
/* One of two files decides: the first or the third argument's. */
#define PRCB_CAUSE_BY_SPLICE 68
/* It waits for the process's other threads, or for the file. */
#define PRCB_CAUSE_BY_EXEC 69
/* restart_syscall goes on with the call the thread was last seen in. */
#define PRCB_CAUSE_RESTART 65

#endif
