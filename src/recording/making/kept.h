/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The stacks of the last waits of a session's threads, as `prcb flight --stacks` keeps them in
 * memory: a fixed number of waits, the oldest of which are overwritten, and the names of their
 * functions. Looks are taken within a budget, as a recording takes them.
 *
 * Threads  One at a time.
 * Errors   0 or -errno, words in *err.
 */
#ifndef PRCB_RECORD_KEPT_H
#define PRCB_RECORD_KEPT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <prcb/prcb.h>

#include "world.h"
#include "writer.h"

struct kept; /* opaque */

/* spans: and the span of a trace that the thread is in. Close it before the session. -EOPNOTSUPP:
 * this build reads no stacks. */
int kept_open(struct prcb *session, bool spans, struct kept **ret, struct prcb_error *err);
void kept_close(struct kept *k); /* NULL is allowed */

/* Looks, if it is time or for a file. *ret_ns: look again by then, CLOCK_MONOTONIC. */
int kept_look(struct kept *k, bool last, uint64_t *ret_ns, struct prcb_error *err);

/* These write into a file; call kept_begin first. thread: its row; from_ns: of the file, where a
 * wait's row is that began before. 0 or -errno. */
int kept_begin(struct kept *k);
/* The wait of a thread that began and ended then, if it is kept. */
int kept_write(const struct kept *k, struct world *world, struct writer *writer, int64_t thread,
               pid_t tid, uint64_t began_ns, uint64_t ended_ns, uint64_t from_ns);
/* The wait that an account is in. */
int kept_write_open(const struct kept *k, struct world *world, struct writer *writer,
                    int64_t thread, uint64_t key, uint64_t switches, uint64_t from_ns);

#endif
