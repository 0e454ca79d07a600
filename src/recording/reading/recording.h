/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Reading a recording: the file as tables in memory, except samples and switches, which are
 * walked. Nothing in the file is trusted: a row that refers to nothing counts as unknown.
 *
 * Threads  One at a time.
 * Errors   0 or -errno, words in *err.
 */
#ifndef PRCB_RECORD_RECORDING_H
#define PRCB_RECORD_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <prcb/prcb.h>

#include "names.h"

struct recorded_function {
    int64_t id;
    const char *name, *file; /* file "": none */
};

struct recorded_stack { /* one frame */
    int64_t id, caller; /* caller 0: outermost */
    uint64_t address;
    size_t function;     /* index; SIZE_MAX: none */
    size_t caller_index; /* index of the caller's row; SIZE_MAX: none */
    size_t map;          /* index; SIZE_MAX: none */
    size_t depth;        /* callers it has */
    bool kernel;
    uint32_t line; /* of the source, of a function that an interpreter runs; else 0 */
};

struct recorded_thread {
    int64_t id, pid, tid;
    const char *name;
    uint64_t start_ns, end_ns; /* end_ns 0: it had not ended */
    /* What the thread did when it began, or when the recording began; "": not known. */
    const char *start_state, *start_cause;
    int start_reason; /* negative: not known */
};

/* The stack of the wait that a thread was in at the time. */
struct recorded_wait {
    size_t thread; /* index */
    uint64_t time_ns;
    size_t stack;                   /* index; SIZE_MAX: none */
    const char *missing;            /* why there is no stack; "": there is */
    const char *kind, *word;        /* "blocked", "idle", "either"; "mutex"; "": not known */
    uint64_t one_in;                /* waits that it stands for */
    const char *trace_id, *span_id; /* in hexadecimal digits; "": in none, or not known */
};

/* Somebody who wakes threads. */
struct recorded_waker {
    int64_t id;
    const char *by;   /* "thread", "timer", "interrupt", "softirq", "others", "unknown" */
    const char *name; /* "": none */
    size_t thread;    /* index; SIZE_MAX: none, or not recorded */
    int64_t pid, tid; /* 0: no thread */
    int64_t number;   /* of an interrupt or softirq; negative: none */
};

struct recorded_map {
    int64_t id, pid;
    uint64_t start, length, file_offset;
    const char *file, *build_id; /* build_id "": not known */
};

struct recording {
    struct sqlite3 *db;
    struct recorded_function *functions;
    size_t function_count;
    struct recorded_stack *stacks;
    size_t stack_count;
    struct recorded_thread *threads;
    size_t thread_count;
    struct recorded_map *maps;
    size_t map_count;
    struct recorded_wait *waits; /* by thread, then time */
    size_t wait_count;
    struct recorded_waker *wakers;
    size_t waker_count;
    bool has_wakers;           /* they were recorded */
    bool has_switches;         /* they were to be recorded */
    bool has_wait_stacks;      /* so were these */
    bool has_sources;          /* the file says which functions interpreters ran */
    bool has_copies;           /* stacks of samples were unwound from copies; `missing` says which
                                  are not complete */
    bool has_history;          /* it is of prcb top -w: intervals, no samples */
    bool has_spans;            /* the file has columns for the spans that waits were in */
    bool has_states;           /* the file has columns for what threads did at the start */
    uint64_t start_ns, end_ns; /* end_ns: of the last record, where the recording was cut off */
    bool complete;             /* it came to its end in order */
    struct namer namer;        /* functions that were named now: what could not be read */
    char **texts;              /* owned: what the names above point to */
    size_t text_count;
    /* What the file can hold at most. A small file can look endless if it refers to the same
     * pages again and again. */
    uint64_t file_bytes, kept_bytes, kept_rows;
    bool named_here; /* its functions were not named in the file */
    struct recording_patience {
        uint64_t steps, most;
    } * patience; /* owned; SQLite's steps so far */
};

/* -ENOENT; -EINVAL: no recording, or of a version that is not known here. */
int recording_open(const char *path, struct recording *ret, struct prcb_error *err);
void recording_close(struct recording *recording);

/* Returns a fact's text, for the caller to free; NULL: not told. */
char *recording_fact(const struct recording *recording, const char *name);

#define RECORDING_ID 64
/* Writes the first part of the boot's id, and the beginning by that boot's clock: no other
 * recording has both. It names files, so it is of digits, letters up to f and one '-' alone. */
void recording_id(const struct recording *recording, char ret[RECORDING_ID]);

/* Finds what is to be added to the recording's times for those of the wall clock; exact since there
 * is a fact wall_ns, else to the second. false: it is not known. */
bool recording_wall(const struct recording *recording, int64_t *ret);

/* Returns for how long a thread (by index) lived within the recording. */
uint64_t recording_life(const struct recording *recording, size_t thread);

/* Whether weights are nanoseconds: the event is a clock. */
bool recording_counts_ns(const struct recording *recording);

/* These find indexes by id; SIZE_MAX: there is no such row. */
size_t recording_thread(const struct recording *recording, int64_t id);
size_t recording_stack(const struct recording *recording, int64_t id);
size_t recording_waker(const struct recording *recording, int64_t id);

/* Returns the functions of a stack, "a < b < c", innermost first; SIZE_MAX: "". For the caller
 * to free; NULL: no memory. */
char *recording_stack_line(const struct recording *recording, size_t stack);

/* Returns the innermost function that an interpreter ran; or the innermost that is neither the C
 * library's nor the kernel's; or else the innermost; "": SIZE_MAX, or none is named. */
const char *recording_place(const struct recording *recording, size_t stack);

/* Writes who that is, in one line: "worker-5 (3338)", "timer", "softirq net_rx". It contains
 * text of the recording as it is. */
void recording_waker_name(const struct recording *recording, size_t waker, char *ret, size_t size);

/* Finds where the thread waited from one moment to another; a stack is preferred to a reason why
 * there is none; NULL: nothing tells. */
const struct recorded_wait *recording_wait(const struct recording *recording, size_t thread,
                                           uint64_t from_ns, uint64_t to_ns);

/* Calls fn for each row of a query with its values as the statement has them; stops at the
 * first non-zero return and returns it. */
struct sqlite3_stmt;
int recording_query(const struct recording *recording, const char *sql,
                    int (*fn)(struct sqlite3_stmt *row, void *ctx), void *ctx,
                    struct prcb_error *err);

#endif
