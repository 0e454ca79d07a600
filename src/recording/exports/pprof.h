/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes a profile for pprof: perftools.profiles.Profile, a protocol buffer in gzip. The whole
 * message is never in memory: each row is packed alone and goes through zlib, so rows are written
 * in any order, also those that others refer to. Numbers of mappings, functions and locations are
 * the caller's, from 1; 0: none.
 *
 * Threads  One at a time.
 * Errors   A failure sticks until pprof_close returns it; write errors stay in the stream.
 */
#ifndef PRCB_RECORD_PPROF_H
#define PRCB_RECORD_PPROF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Labels that OTLP has links for: a span in hexadecimal digits. */
#define PPROF_TRACE_LABEL "trace_id"
#define PPROF_SPAN_LABEL  "span_id"

struct pprof;

/* plain: not in gzip. 0 or -ENOMEM; the stream is the caller's. */
int pprof_open(FILE *out, bool plain, struct pprof **ret);
int pprof_close(struct pprof *p); /* 0 or -ENOMEM */

/* Writes a text, made UTF-8, and returns its place. Equal texts may be written again. */
int64_t pprof_string(struct pprof *p, const char *text);
/* Writes a remark for people. */
void pprof_comment(struct pprof *p, const char *text);

struct pprof_type {
    int64_t type, unit; /* places of texts */
};
/* Writes a type of the values; samples have them in this order. */
struct pprof_type pprof_type(struct pprof *p, const char *type, const char *unit);

struct pprof_head {
    int64_t time_ns, duration_ns; /* since 1970 */
    int64_t period;
    struct pprof_type type; /* of the period, and what is shown at first */
};
void pprof_head(struct pprof *p, const struct pprof_head *head);

struct pprof_mapping {
    uint64_t start, length, file_offset;
    const char *file, *build_id;
};
void pprof_mapping(struct pprof *p, uint64_t number, const struct pprof_mapping *mapping);

void pprof_function(struct pprof *p, uint64_t number, const char *name, const char *file);

struct pprof_location {
    uint64_t mapping, address, function;
    int64_t line; /* of the function's file; 0: not known */
};
void pprof_location(struct pprof *p, uint64_t number, const struct pprof_location *location);

/* Has a text or a number. */
struct pprof_label {
    int64_t key, text, number;
};

struct pprof_sample {
    uint64_t *locations; /* innermost first */
    size_t location_count;
    int64_t *values; /* as many as there are types */
    size_t value_count;
    const struct pprof_label *labels;
    size_t label_count; /* at most PPROF_LABELS */
};
#define PPROF_LABELS 12
int pprof_sample(struct pprof *p, const struct pprof_sample *sample); /* 0 or -ENOMEM */

#endif
