/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A recording for other programs.
 */
#ifndef PRCB_RECORD_EXPORT_H
#define PRCB_RECORD_EXPORT_H

#include <stdio.h>

#include "recording.h"

/* Each writes the whole recording; write errors stay in the stream. 0 or -errno. */

/* Writes a line for each stack: "thread;outermost;...;innermost weight". */
int export_folded(const struct recording *recording, FILE *out, struct prcb_error *err);
/* Does the same for waits: "thread;cause;outermost;...;innermost ns". idle: also those of
 * threads that idle by design. -ENOENT: no stacks of waits were recorded. */
int export_folded_waits(const struct recording *recording, bool idle, FILE *out,
                        struct prcb_error *err);
/* Does the same for all time of threads: "thread;running;outermost;...;innermost ns", ready and
 * each cause of waiting likewise; a thread's lines sum to its life. -ENOENT: no switches. */
int export_folded_all(const struct recording *recording, FILE *out, struct prcb_error *err);
/* Writes a trace of Perfetto's packets. -EOPNOTSUPP: not built in. */
int export_perfetto(const struct recording *recording, FILE *out, struct prcb_error *err);
/* Writes a protocol buffer of perftools.profiles.Profile, in gzip. -EOPNOTSUPP: not built in. */
int export_pprof(const struct recording *recording, FILE *out, struct prcb_error *err);
/* Writes the Firefox Profiler's processed profile, JSON: threads with samples, and a marker for
 * each time that they were ready or waited, with its stack if one is known. */
int export_firefox(const struct recording *recording, FILE *out, struct prcb_error *err);
/* Writes FOLDER/TABLE/RECORDING.parquet for each table that has rows; folders are made. Recordings
 * of many hosts go into one folder. */
int export_parquet(const struct recording *recording, const char *folder, struct prcb_error *err);

#endif
