/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A seccomp filter: what prcbd asks of the kernel from here on is what a running daemon needs.
 */
#ifndef PRCB_DAEMON_FILTER_H
#define PRCB_DAEMON_FILTER_H

#include <prcb/error.h>

/* For all threads of the process, and for good. After the privileges were dropped, which sets
 * no_new_privs. -EOPNOTSUPP: there is none here, and err says why; nothing is wrong with going on.
 */
int filter_install(struct prcb_error *err);

#endif
