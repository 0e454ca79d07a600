/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Stacks for `prcb top`: where the row that is looked at waits, and what the waits of the rows on
 * the screen are for. They are read and unwound by a thread of its own, for that can take long; the
 * screen asks for what is there.
 *
 * The functions are called by the screen's thread. Nothing is read before it is asked for.
 */
#ifndef PRCB_CLI_TOP_WHERE_H
#define PRCB_CLI_TOP_WHERE_H

#include "top_ui.h"

struct top_where; /* opaque */

/* The session is borrowed. -EOPNOTSUPP: this build or processor reads no stacks. */
int top_where_open(struct prcb *session, struct top_where **ret, struct prcb_error *err);
/* NULL is allowed. False: it is in the middle of something that takes long; the session must then
 * stay open, until the program ends. */
bool top_where_close(struct top_where *w);

/* These threads, by key, are looked at from now on; another set starts again. count 0: none. */
void top_where_watch(struct top_where *w, const uint64_t *keys, uint32_t count);
/* What is known of a cause's time since the watching began. */
void top_where_pieces(struct top_where *w, uint32_t cause, struct top_pieces *ret);

/* What a wait of a thread is for, "" where it is not known (yet); asking makes it known. age_ns: of
 * the thread when the wait began, which tells it from others. */
void top_where_wait(struct top_where *w, uint64_t key, uint64_t age_ns, char *ret, size_t size);
/* *ret: whether a thread's stack says that its wait keeps it from work. False: that is not known
 * yet; asking makes it known. */
bool top_where_blocked(struct top_where *w, uint64_t key, uint64_t age_ns, bool *ret);
/* Whether there is an answer that was not there when this was asked last. */
bool top_where_news(struct top_where *w);

#endif
