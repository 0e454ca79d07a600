/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Looks in a file: what metrics_look found, one JSON document a line, written while looks are
 * made and read again as if they were made now. docs/fleet.md has the format. The file may come
 * from anyone; its numbers are believed, its form is checked. Only src/analysis/metrics uses it.
 */
#ifndef PRCB_METRICS_REPLAY_H
#define PRCB_METRICS_REPLAY_H

#include "metrics.h"

struct replay;

/* Opens the file and reads the first look's time. scale: seconds of the file that pass in one;
 * 0: all looks are due. -EINVAL: it is no such file. */
int replay_open(const char *path, double scale, struct replay **ret, struct prcb_error *err);
/* Makes the looks that are due by now, at least the first. After the last one nothing changes any
 * more. -EINVAL: a line is no look; those before it were made. */
int replay_look(struct replay *replay, struct metrics *m, struct prcb_error *err);
void replay_close(struct replay *replay);

struct replay_writer;

int replay_writer_open(const char *path, struct replay_writer **ret, struct prcb_error *err);
/* These write a look: begin starts it anew, add adds an account, end writes the line. */
void replay_writer_begin(struct replay_writer *writer);
void replay_writer_add(struct replay_writer *writer, const struct metrics *m,
                       const struct prcb_account *account);
void replay_writer_end(struct replay_writer *writer, const struct metrics *m);
/* 0 or -errno of what could not be written. */
int replay_writer_close(struct replay_writer *writer);

#endif
