/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Giving up what is needed only to start. What is kept and why: privilege.c.
 */
#ifndef PRCB_DAEMON_PRIVILEGE_H
#define PRCB_DAEMON_PRIVILEGE_H

#include <prcb/error.h>

/* Becomes the user, if one is named, with the capabilities that are kept, and can gain no
 * others any more. */
int privilege_drop(const char *user, struct prcb_error *err);

/* Memory that is passed read-only stays so when those who get it can load no BPF programs: -EPERM
 * with the remedy where every user can. To be asked each time, for root may change it. */
int privilege_check_bpf(struct prcb_error *err);

#endif
