/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The sums of a recording: functions, threads, waits, processors and a line of time for each
 * processor; and their printing. The exports are in export.h.
 */
#ifndef PRCB_RECORD_REPORT_H
#define PRCB_RECORD_REPORT_H

#include <stdio.h>

#include "figures.h"
#include "offcpu.h"
#include "recording.h"
#include "spanned.h"

#define REPORT_CELLS 100 /* of a processor's line of time, at most */

struct report_function {
    const char *name, *file; /* borrowed from the recording */
    bool kernel;
    uint64_t samples;
    uint64_t self;  /* weight of the samples in it */
    uint64_t total; /* and in what it called */
};

struct report_thread {
    size_t thread; /* index in the recording */
    uint64_t samples, weight;
    uint64_t run_ns, ready_ns, wait_ns; /* by its switches */
    uint64_t unknown_ns;                /* of its life, not told by these */
};

struct report_wait {
    char cause[24]; /* "": not known */
    int reason;     /* negative: not known */
    bool ready;     /* the thread could have run */
    uint64_t count, ns;
};

struct report_processor {
    uint32_t cpu;
    uint64_t samples;
    uint64_t run_ns;                /* of recorded threads, by their switches */
    int64_t parts[PROCESSOR_PARTS]; /* of everything; negative: not known */
    /* For each part of the time: ns that recorded threads ran, and the thread that ran most. */
    struct report_cell {
        uint64_t busy_ns;
        uint64_t most_ns;
        size_t thread; /* SIZE_MAX: none */
    } cells[REPORT_CELLS];
};

/* Samples whose stack is not complete. */
struct report_gap {
    char missing[16]; /* why, as the recording has it */
    uint64_t samples;
};

#define REPORT_GAPS 16

struct report {
    const struct recording *recording;
    bool weight_is_ns; /* else events */
    bool has_stacks, has_switches;
    uint64_t samples, weight, lost, span_ns;
    struct report_gap gaps[REPORT_GAPS]; /* the most first; none without recording.has_copies */
    size_t gap_count;
    uint64_t complete;                 /* samples with complete stacks; with has_copies */
    uint64_t missed;                   /* switches: stretches_walk_counting */
    struct report_function *functions; /* by self, the most first */
    size_t function_count;
    struct report_thread *threads; /* by weight, then by run time */
    size_t thread_count;
    struct report_wait *waits; /* by time */
    size_t wait_count;
    struct offcpu offcpu;                /* empty: stacks of waits were not recorded */
    struct spanned spanned;              /* empty: no wait's span is known */
    struct report_processor *processors; /* by number */
    size_t processor_count;
    size_t cells; /* of each one's line of time */
};

struct verdict;

/* cells: 1 to REPORT_CELLS. */
int report_make(const struct recording *recording, size_t cells, struct report *ret,
                struct prcb_error *err);
void report_free(struct report *report);

/* The tables that can be printed alone; a bit each. */
enum report_table {
    REPORT_FUNCTIONS = 1 << 0,
    REPORT_THREADS = 1 << 1,
    REPORT_WAITS = 1 << 2,
    REPORT_PROCESSORS = 1 << 3,
    REPORT_TIMELINE = 1 << 4,
    REPORT_STACKS = 1 << 5,
    REPORT_SPANS = 1 << 6,
    REPORT_ALL = (1 << 7) - 1,
};

struct report_style {
    unsigned tables;
    size_t top;                    /* rows of a table; 0: all */
    bool idle;                     /* stacks: those of threads that idle by design, too */
    const char *separator;         /* of report_print_csv */
    const struct verdict *verdict; /* report_verdict.h; NULL: none is shown */
};

void report_print_text(const struct report *report, const struct report_style *style, FILE *out);
void report_print_csv(const struct report *report, const struct report_style *style, FILE *out);
/* The lines in front of the tables: why the recording is there, what held threads up, what it is
 * of, what it lacks. */
void report_print_head(const struct report *report, const struct verdict *verdict, size_t columns,
                       FILE *out);
/* Returns a fact's number; 0: the recording does not tell it. */
uint64_t report_number_fact(const struct recording *r, const char *name);
/* Why a file of prcb flight was kept. Returns whether somebody asked for it, so that it is about no
 * thread in particular. */
bool report_print_saved(const struct report *report, FILE *out);
/* The critical path of the process that lived longest, in a sentence. */
void report_print_path(const struct report *report, FILE *out);
int report_print_brief(const struct report *report, const struct verdict *verdict, FILE *out);
int report_print_json(const struct report *report, const struct report_style *style, FILE *out);

#endif
