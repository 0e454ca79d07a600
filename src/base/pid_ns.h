/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The pid namespace that the machine began with, by whose numbers eBPF programs know threads, and
 * that of /proc, which may be neither that one nor the caller's own.
 */
#ifndef PRCB_BASE_PID_NS_H
#define PRCB_BASE_PID_NS_H

#include <stdbool.h>

#include <prcb/prcb.h>

/* Whether this process is in it. */
bool in_first_pid_ns(void);

/* Checks that /proc has the caller's numbers of threads; a /proc that counts otherwise has other
 * threads under them. 0, or -EOPNOTSUPP: it is of another pid namespace, as after unshare --pid
 * without --mount-proc. */
int check_proc_numbers(struct prcb_error *err);

#endif
