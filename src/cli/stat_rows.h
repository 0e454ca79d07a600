/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The rows of `prcb stat`: what each thread's account held when it was last
 * looked at, kept when the account itself has been given back. Rows can be summed
 * (a process, a total, ended threads of one name) and subtracted (an interval).
 * No session and no output here: accounts come in, sorted views go out.
 *
 * One thread. A struct stat_rows owns its rows; a struct stat_view borrows them
 * and owns only what it sums up itself.
 */
#ifndef PRCB_CLI_STAT_ROWS_H
#define PRCB_CLI_STAT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <prcb/prcb.h>

/* What a row holds on one cause. */
struct stat_cell {
    uint32_t cause;   /* enum prcb_cause; PRCB_CAUSE_NONE: an open wait nobody knows the cause of */
    uint64_t count;   /* switches out */
    uint64_t ns;      /* closed */
    uint64_t open_ns; /* not closed: in no total */
    uint64_t spent_ns; /* closed and open; in an interval: what fell into it */
};

/* One of the counters of -e, over one or more threads. It holds a value when counted
 * is not 0 and lacking is. */
struct stat_count {
    uint64_t value; /* scaled where it was multiplexed */
    uint64_t enabled_ns, running_ns;
    uint64_t counted; /* threads that it was counted for */
    uint64_t idle;    /* threads that did not run while it would have counted */
    uint64_t lacking; /* threads that have no value although they may have run */
};

/* Sums over one or more threads. A member that one of them lacks is lacking. */
struct stat_figures {
    uint64_t present; /* enum prcb_member bits */
    uint64_t wall_ns, run_ns, ready_ns, wait_ns, open_ns;
    uint64_t switches, voluntary_switches, migrations, tsc_cycles, missed_switches;
    uint64_t interrupted_ns;
    struct stat_cell *cells; /* owned; ascending by cause, none that holds nothing */
    uint32_t cell_count;
    uint32_t count_count;
    struct stat_count *counts; /* owned; NULL: no counters. stat_counters.h fills them */
};

struct stat_row {
    uint64_t key;   /* the account's; a process: its number; 0: ended threads of one name */
    pid_t tid, pid; /* 0: none or several, or not visible in the caller's pid namespace */
    char comm[16];
    uint64_t threads;
    uint64_t running; /* of these, the ones on a processor */
    uint64_t exited;
    uint64_t kernel; /* kernel threads */
    struct stat_figures now;
    struct stat_figures before; /* at the end of the last interval; zero: none yet */
    bool released;              /* the account was given back: the row changes no more */
    bool began;                 /* before holds something */
    bool counted;               /* private to stat_counters.c, as the next */
    void *counters;             /* a set that is open; closed before the row is released */
    size_t place;               /* private: index in rows */
    struct stat_row *next;      /* private: same bucket */
};

struct stat_rows {
    struct stat_row **rows; /* in order of arrival, until rows are folded */
    size_t count, room;
    struct stat_row **buckets; /* private */
    size_t bucket_count;
    size_t released;      /* rows whose account was given back */
    size_t keep_released; /* beyond this many they are summed by name; 0: STAT_KEEP_RELEASED */
};
#define STAT_KEEP_RELEASED 32768
#define STAT_KEEP_NAMES    4096 /* names of summed rows; the rest is one row */

/* Puts an account's present values in its row. 0 or -ENOMEM. */
int stat_rows_update(struct stat_rows *rows, const struct prcb_account *account);
/* Notes that this row's account was given back. The row may be gone afterwards:
 * summed into the row of its name. 0 or -ENOMEM (nothing changed). */
int stat_rows_released(struct stat_rows *rows, struct stat_row *row);
/* Begins an interval: before = now, for all rows. */
int stat_rows_mark(struct stat_rows *rows);
bool stat_rows_all_exited(const struct stat_rows *rows);
void stat_rows_deinit(struct stat_rows *rows);

/* The cell of a cause, or NULL. */
const struct stat_cell *stat_figures_cell(const struct stat_figures *figures, uint32_t cause);
/* *to += from. */
int stat_figures_add(struct stat_figures *to, const struct stat_figures *from);
/* *ret = later - earlier; open waits are later's. *ret is new, to be deinitialised. */
int stat_figures_sub(const struct stat_figures *later, const struct stat_figures *earlier,
                     struct stat_figures *ret);
void stat_figures_deinit(struct stat_figures *figures);
/* Time spent ready to run, open stretches included. */
uint64_t stat_figures_ready(const struct stat_figures *figures);
/* Time spent waiting, open stretches included; in an interval: within it. */
uint64_t stat_figures_waited(const struct stat_figures *figures);

/* ---- views --------------------------------------------------------------- */

enum stat_key {
    STAT_BY_RUN,
    STAT_BY_READY,
    STAT_BY_WAIT,
    STAT_BY_WALL,
    STAT_BY_OPEN,
    STAT_BY_SWITCHES,
    STAT_BY_TID,
    STAT_BY_COMM,
    STAT_BY_CAUSE,
};

struct stat_order {
    enum stat_key key;
    uint32_t cause; /* for STAT_BY_CAUSE */
    uint64_t top;   /* rows wanted; 0: all */
};

/* Rows in the order asked for. Ties go by tid, then pid, then key, so that the
 * order is the same each time. */
struct stat_view {
    struct stat_row **rows; /* the wanted ones, then those that order.top cut off */
    size_t count;           /* wanted */
    size_t other_rows;      /* cut off */
    struct stat_row others; /* their sum; others.threads 0: none */
    struct stat_row total;  /* sum of all */
    struct stat_row *sums;  /* private: rows the view made: intervals, processes */
    size_t sum_count;
};

enum stat_view_kind {
    STAT_VIEW_PROCESSES = 1, /* a row per process; else one per thread */
    STAT_VIEW_INTERVAL = 2,  /* what changed since stat_rows_mark; rows that lived in it only */
};
int stat_view_make(const struct stat_rows *rows, unsigned kind, const struct stat_order *order,
                   struct stat_view *ret);
void stat_view_deinit(struct stat_view *view);

/* "run", "tid", a cause's name ... as an order. 0 or -EINVAL. */
int stat_order_parse(const char *text, struct stat_order *ret);

#endif
