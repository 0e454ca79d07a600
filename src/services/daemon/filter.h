/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A seccomp filter: from here on prcbd can ask of the kernel only what a running daemon needs.
 */
#ifndef PRCB_DAEMON_FILTER_H
#define PRCB_DAEMON_FILTER_H

#include <prcb/error.h>

/* Installs the filter for all threads of the process, and for good. Call it after the privileges
 * were dropped, which sets no_new_privs. -EOPNOTSUPP: there is none here, and err says why; the
 * caller may go on without it. */
int filter_install(struct prcb_error *err);

#endif
