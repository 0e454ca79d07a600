/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What `prcb bench` prints: one sentence, a table, JSON (which is also what --save keeps and
 * --baseline reads), JUnit XML and Markdown. No session. One thread.
 */
#ifndef PRCB_REPORTS_BENCH_H
#define PRCB_REPORTS_BENCH_H

#include <stdio.h>

#include "bench.h"

/* What figures of time depend on beside the program. */
struct bench_machine {
    char model[128], kernel[128], tier[16];
    unsigned processors;
};

/* Where in the code one side waits longer than the other, by runs of their own. */
struct bench_place {
    unsigned part; /* a cause's time */
    char *function;
    double ns[2]; /* a run, of either side */
};

struct bench_report {
    const struct bench_side *sides;
    size_t side_count;    /* 1: nothing is compared, and comparison is NULL */
    const char *names[2]; /* "A", "B" */
    const struct bench_comparison *comparison;
    const struct bench_machine *machine;
    const struct bench_place *places; /* the greatest difference first */
    size_t place_count;
    size_t warm_ups;
    const char *const *conditions; /* of --fail-if */
    const bool *holds;
    size_t condition_count;
    const char *const *notes; /* lines */
    size_t note_count;
};

/* Writes what is different, in one sentence. */
void bench_put_sentence(FILE *out, const struct bench_report *report);
/* Returns the same as text, for the caller to free; NULL: out of memory. */
char *bench_sentence(const struct bench_report *report);

void bench_write_text(const struct bench_report *report, FILE *out);
/* These return 0 or -ENOMEM. */
int bench_write_json(const struct bench_report *report, FILE *out);
int bench_write_junit(const struct bench_report *report, FILE *out); /* a case a condition */
int bench_write_markdown(const struct bench_report *report, FILE *out);

/* Writes a value of a part, or a change of it: "62.1ms", "+2.4ms", "+3", "4.2 %". */
void bench_format(const struct bench_report *report, unsigned part, double value, bool change,
                  char *ret, size_t size);

/* Reads what bench_write_json wrote: the first side, or the only one. The text may be anybody's.
 * -EINVAL: it is none of these; -ENOMEM; both leave the results as they were. */
int bench_parse(const char *text, size_t length, struct bench_side *ret,
                struct bench_machine *ret_machine);
/* Does the same for a file. Errors of reading besides. */
int bench_read(const char *path, struct bench_side *ret, struct bench_machine *ret_machine,
               struct prcb_error *err);

#endif
