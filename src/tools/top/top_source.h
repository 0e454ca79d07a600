/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Turns a session into intervals of the model: each take walks the accounts that did something
 * since the last, keeps what they held, and adds what changed. If accounts are in mapped memory
 * that makes no system call for threads that are known; a process's command line, cgroup and
 * user are read from /proc when it is new, and again while it is young, for a forked process
 * soon executes something.
 *
 * One thread. Errors: 0 or -errno, words in *err.
 */
#ifndef PRCB_TOP_SOURCE_H
#define PRCB_TOP_SOURCE_H

#include <prcb/processors.h>

#include "top_model.h"

struct top_source; /* opaque */

/* view may be NULL: then nothing is known of the processors. Both are borrowed. */
int top_source_open(struct prcb *session, struct prcb_processors *view, struct top_model *model,
                    struct top_source **ret, struct prcb_error *err);
void top_source_close(struct top_source *s); /* NULL is allowed */

/* Ends an interval now (the first call only begins one); *ret_added: it was added. */
int top_source_take(struct top_source *s, bool *ret_added, struct prcb_error *err);
/* Reads what /proc has of all living processes again. */
void top_source_read_again(struct top_source *s);

#endif
