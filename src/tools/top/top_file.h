/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes the history as a recording (docs/record-file.md), and reads recordings as a history:
 * those of `prcb top -w`, whose intervals are read as they are wanted, and those of `prcb
 * record`, whose switches are made into intervals. Nothing in a file is trusted.
 *
 * One thread. Errors: 0 or -errno, words in *err.
 */
#ifndef PRCB_TOP_FILE_H
#define PRCB_TOP_FILE_H

#include "top_model.h"

struct top_writer;

/* Creates the file; a recording that is there is replaced. host and tier become facts. */
int top_writer_open(const char *path, struct top_writer **ret, struct prcb_error *err);
/* Appends one interval of the model, and what it names. What was written survives a crash. */
int top_writer_add(struct top_writer *w, struct top_model *m, uint32_t index,
                   struct prcb_error *err);
/* Returns the size of the file. exact: without what its log has twice, which takes a moment. */
uint64_t top_writer_bytes(const struct top_writer *w, bool exact);
int top_writer_close(struct top_writer *w, struct prcb_error *err); /* NULL is allowed */

/* Opens what -w names: a file, or a directory with a file for each day. Of the latter those
 * older than `keep_days` are removed, and the oldest if all together exceed max_bytes. A single
 * file ends there: -EFBIG. */
struct top_history;
int top_history_open(const char *path, uint64_t keep_days, uint64_t max_bytes,
                     struct top_history **ret, struct prcb_error *err);
int top_history_add(struct top_history *h, struct top_model *m, uint32_t index,
                    struct prcb_error *err);
int top_history_close(struct top_history *h, struct prcb_error *err); /* NULL is allowed */

/* Writes which file is to be read: the path, or of a directory of -w the file that was written
 * last. 0 or -errno. */
int top_history_file(const char *path, char *ret, size_t size, struct prcb_error *err);

struct top_reader;

/* interval_ns: the length of the intervals that are made of switches. */
int top_reader_open(const char *path, uint64_t interval_ns, struct top_reader **ret,
                    struct prcb_error *err);
void top_reader_close(struct top_reader *r); /* NULL is allowed */
/* Before it is loaded: threads of a recording of switches that had not ended get keys of the
 * caller's, who goes on with them: each key once, 0: it has none. -ENOMEM */
int top_reader_set_keys(struct top_reader *r, uint64_t (*key_of)(void *ctx, pid_t tid), void *ctx);
/* Fills the model with intervals around a moment of the wall clock (INT64_MAX: the last ones), as
 * many as it keeps. *ret_changed: it has others now. */
int top_reader_load(struct top_reader *r, struct top_model *m, int64_t clock_ns, bool *ret_changed,
                    struct prcb_error *err);
/* Returns the host that was recorded; "" if the file does not name it. */
const char *top_reader_host(const struct top_reader *r);

#endif
