/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Makes the rows of one interval: threads, or their sums by process, name, cgroup or cause;
 * filtered and sorted, with those that sleep folded. The times of a row add up to its wall time.
 *
 * Borrows the model's texts until the model changes. One thread. Errors: 0 or -ENOMEM.
 */
#ifndef PRCB_TOP_ROWS_H
#define PRCB_TOP_ROWS_H

#include "top_model.h"

enum top_group { TOP_THREADS, TOP_PROCESSES, TOP_NAMES, TOP_CGROUPS, TOP_CAUSES, TOP_GROUPS };

enum top_sort {
    TOP_BY_BUSY, /* neither running nor idle */
    TOP_BY_RUN,
    TOP_BY_READY,
    TOP_BY_WAIT,
    TOP_BY_SWITCHES,
    TOP_BY_FOR, /* how long it has been in what it is in */
    TOP_BY_PID,
    TOP_BY_NAME,
    TOP_BY_CAUSE, /* order.cause */
    TOP_SORTS
};
#define TOP_NO_CGROUP "(not known)"
extern const char *const top_group_names[TOP_GROUPS];
extern const char *const top_sort_names[TOP_SORTS]; /* of BY_CAUSE: "cause" */

struct top_order {
    enum top_sort key;
    uint32_t cause;
    bool inverted;
};

/* The rows of group CAUSES: causes, and states that are no wait. */
#define TOP_ROW_RUN   PRCB_CAUSE_MAX
#define TOP_ROW_READY (PRCB_CAUSE_MAX + 1)

struct top_row {
    uint64_t id;        /* the same from interval to interval, in its group */
    uint32_t thread;    /* index; of a sum: one that speaks for it */
    const char *name;   /* as it came: not fit to be printed */
    const char *detail; /* command line or cgroup; NULL: none */
    pid_t pid, tid;     /* 0: none, or several */
    uint32_t threads, asleep;
    uint32_t depth; /* 1: below its process in a tree */
    bool folded;    /* a process whose threads are not shown */
    bool kernel, sleeps, ended;
    struct top_now now; /* of a sum: UNKNOWN unless its threads agree */
    uint64_t wall_ns, run_ns, ready_ns, wait_ns, switches;
    uint64_t busy_ns;            /* ready, and waiting for what is not idleness */
    uint64_t ns[PRCB_CAUSE_MAX]; /* by cause; READY causes: 0 */
    uint32_t counts[PRCB_CAUSE_MAX];
};

/* A word of a filter. */
struct top_term {
    enum { TERM_TEXT, TERM_CAUSE, TERM_CGROUP, TERM_USER, TERM_PID, TERM_MORE, TERM_LESS } kind;
    uint32_t column; /* MORE, LESS: TOP_ROW_RUN, TOP_ROW_READY, a cause; TOP_COLUMN_WAIT */
    double percent;
    pid_t pid;
    char text[64];
};
#define TOP_COLUMN_WAIT (PRCB_CAUSE_MAX + 2)
#define TOP_TERMS       8

struct top_filter {
    struct top_term terms[TOP_TERMS];
    uint32_t count;
};
/* Parses words such as "text", "cause:futex", "ready>5", "futex<1", "cgroup:x", "user:x",
 * "pid:1"; all must hold. A wrong word is written to *ret_error, with -EINVAL; *ret is then
 * unchanged. */
int top_filter_parse(const char *text, struct top_filter *ret, char *ret_error, size_t size);

struct top_choice {
    enum top_group group;
    struct top_order order;
    const struct top_filter *filter;
    bool sleeping; /* show those that sleep */
    bool no_kernel;
    bool tree;           /* TOP_PROCESSES: threads below */
    const char *user;    /* only this one's; NULL: all */
    const pid_t *closed; /* processes whose threads are not shown, ascending */
    size_t closed_count;
    uint32_t only_thread; /* TOP_NONE: all */
    pid_t only_pid;       /* 0: all */
};

struct top_rows {
    struct top_row *rows;
    uint32_t count, room;
    uint64_t asleep_ns[PRCB_CAUSE_MAX];             /* of the total: of threads that slept */
    struct top_row total;                           /* of all threads, filtered or not */
    uint32_t threads, sleeping, sleeping_processes; /* sleeping: those that are not shown */
    uint32_t causes[PRCB_CAUSE_MAX];                /* waits of the interval, most time first */
    uint32_t cause_count;
    uint64_t present;
};

/* Makes the rows of the interval `index` in *rows, whose memory is used again. */
int top_rows_make(struct top_model *m, uint32_t index, const struct top_choice *choice,
                  struct top_rows *rows);
void top_rows_deinit(struct top_rows *rows);

/* Returns struct top_row.id of the row that a thread is in. group: not CAUSES. */
uint64_t top_row_id(const struct top_model *m, uint32_t thread, enum top_group group);

/* Sums some threads over the intervals up to `index`: over all, or the last of them if that
 * would take long. wall_ns is the time that the sum covers. */
void top_rows_history(const struct top_model *m, uint32_t index, const uint32_t *threads,
                      uint32_t thread_count, struct top_row *ret);

/* Returns whether its name, its detail or its number is or contains a text, ignoring case. */
bool top_row_has_text(const struct top_row *row, const char *text);
/* Returns the cause with the most time, or TOP_ROW_READY or TOP_ROW_RUN if these have more; else
 * TOP_NONE. */
uint32_t top_row_most(const struct top_row *row, bool with_run);

#endif
