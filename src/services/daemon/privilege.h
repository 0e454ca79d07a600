/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Gives up the privileges that are needed only to start. privilege.c says what is kept and why.
 */
#ifndef PRCB_DAEMON_PRIVILEGE_H
#define PRCB_DAEMON_PRIVILEGE_H

#include <prcb/error.h>

/* Becomes the user, if one is named, with the capabilities that are kept, and can gain no
 * others any more. */
int privilege_drop(const char *user, struct prcb_error *err);

/* Checks that memory which is passed read-only stays so, because those who get it can load no
 * BPF programs: returns -EPERM with the remedy if every user can load them. Ask each time, for
 * root may change it. */
int privilege_check_bpf(struct prcb_error *err);

#endif
