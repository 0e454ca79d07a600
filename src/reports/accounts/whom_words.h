/* SPDX-License-Identifier: BSD-2-Clause
 *
 * By whom, for people and as JSON: what `prcb stat --by-whom` and `prcb why` print of edges.
 */
#ifndef PRCB_REPORTS_WHOM_WORDS_H
#define PRCB_REPORTS_WHOM_WORDS_H

#include <stdio.h>

#include "cgroup_names.h"
#include "json_doc.h"
#include "whom.h"

/* Writes "worker-5 (3338)", "timer (timed out)", "interrupt 45 (nvme0q1)", "rest". */
void whom_name(const struct prcb_edge *edge, char *ret, size_t size);

/* Writes "woken by  worker-5 (3338) 44 %, timer (20 of 214 timed out) 3 %, others 53 %", with a
 * line's end, behind lead (one column a byte), wrapped at columns; if there is nothing it writes
 * nothing, not even lead. cause: PRCB_CAUSE_NONE for ready time. lock: the waits are for locks,
 * so that whoever ended them has "released" these. */
void whom_write(FILE *out, const struct whom *w, uint64_t group, uint32_t cause, bool lock,
                const char *lead, size_t columns);

/* Writes "behind  /hog 60 %, itself 10 %, others 30 %": cgroups that had the processors. names: of
 * theirs; group: the number of the one that was ready. */
void whom_write_cgroups(FILE *out, const struct whom *w, struct cgroup_names *names, uint64_t group,
                        const char *lead, size_t columns);
/* Writes "/hog", "itself", "kernel threads". */
void whom_cgroup_name(const struct prcb_edge *edge, struct cgroup_names *names, uint64_t group,
                      char *ret, size_t size);

json_object *whom_edges_json(struct json_doc *b, const struct prcb_edge *edges, size_t count);
/* Writes "held by  ...", the same for those who held the locks that were waited for. */
void whom_write_holders(FILE *out, const struct whom *w, uint64_t group, uint32_t cause,
                        const char *lead, size_t columns);

/* Makes a list of {"by","tid","pid","comm","vector","name","count","ns"}: edges of the kind and
 * cause of all. The rest is what the others lack to its count (not of ready time) and time,
 * stretches that go on included. */
json_object *whom_json(struct json_doc *b, const struct whom *w, uint64_t group,
                       const struct prcb_edge *all);

#endif
