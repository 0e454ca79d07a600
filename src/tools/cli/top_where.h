/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Reads stacks for `prcb top`: where the row that is looked at waits, and what the waits of the
 * rows on the screen are for. A thread of its own reads and unwinds them, for that can take
 * long; the screen asks for what is there.
 *
 * The screen's thread calls the functions. Nothing is read before it is asked for.
 */
#ifndef PRCB_CLI_TOP_WHERE_H
#define PRCB_CLI_TOP_WHERE_H

#include "top_ui.h"

struct top_where; /* opaque */

/* The session is borrowed. -EOPNOTSUPP: this build or processor reads no stacks. */
int top_where_open(struct prcb *session, struct top_where **ret, struct prcb_error *err);
/* Closes it; NULL is allowed. Returns false if it is in the middle of something that takes long;
 * the session must then stay open until the program ends. */
bool top_where_close(struct top_where *w);

#define TOP_WHERE_MOST 256 /* threads that are looked at; of more the first ones are */

/* Looks at these threads, by key, from now on; another set starts again. count 0: none. So many of
 * the last ones are aside: they are looked at for the others' paths alone, and may change. */
void top_where_watch(struct top_where *w, const uint64_t *keys, uint32_t count, uint32_t aside);
/* Gets what is known of a cause's time since the watching began. */
void top_where_pieces(struct top_where *w, uint32_t cause, struct top_pieces *ret);
/* Gets what the waits lead to since then. */
void top_where_path(struct top_where *w, struct top_pieces *ret);

/* Tells what a wait of a thread is for, "" if that is not known (yet); asking makes it known.
 * age_ns: the age of the thread when the wait began, which tells it from others. */
void top_where_wait(struct top_where *w, uint64_t key, uint64_t age_ns, char *ret, size_t size);
/* *ret: whether a thread's stack says that its wait keeps it from work. Returns false if that is
 * not known yet; asking makes it known. */
bool top_where_blocked(struct top_where *w, uint64_t key, uint64_t age_ns, bool *ret);
/* Returns whether there is an answer that was not there when this was last asked. */
bool top_where_news(struct top_where *w);

#endif
