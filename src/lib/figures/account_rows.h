/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Accounts as rows: what each thread's account held when it was last looked at,
 * kept when the account itself has been given back. Rows can be summed (a process,
 * a total, ended threads of one name) and subtracted (an interval).
 * No session and no output here: accounts come in, sorted views go out.
 *
 * One thread. A struct account_rows owns its rows; a struct account_view borrows them
 * and owns only what it sums up itself.
 */
#ifndef PRCB_FIGURES_ACCOUNT_ROWS_H
#define PRCB_FIGURES_ACCOUNT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <prcb/prcb.h>

#include "figures.h"
#include "table.h"

/* What a row holds on one cause. */
struct wait_cell {
    uint32_t cause;   /* enum prcb_cause; PRCB_CAUSE_NONE: an open wait nobody knows the cause of */
    uint64_t count;   /* switches out */
    uint64_t ns;      /* closed */
    uint64_t open_ns; /* not closed: in no total */
    uint64_t spent_ns; /* closed and open; in an interval: what fell into it */
    uint64_t
        idle_ns; /* of spent_ns, idling by design; set by who can tell, until the next update */
};

/* One of the counters of -e, over one or more threads. It holds a value when counted
 * is not 0 and lacking is. */
struct event_count {
    uint64_t value; /* scaled where it was multiplexed */
    uint64_t enabled_ns, running_ns;
    uint64_t counted; /* threads that it was counted for */
    uint64_t idle;    /* threads that did not run while it would have counted */
    uint64_t lacking; /* threads that have no value although they may have run */
};

/* Sums over one or more threads. A member that one of them lacks is lacking. */
struct account_sums {
    uint64_t present; /* enum prcb_member bits */
    union {
        struct { /* the numbers of account_figures.def, by name */
#define COUNTER(name, ...) uint64_t name;
#define PART(name, ...)    uint64_t name;
#define GAUGE(name, ...)   uint64_t name;
#include "account_figures.def"
        };
        uint64_t numbers[ACCOUNT_NUMBERS]; /* by figure.index */
    };
    struct wait_cell *cells; /* owned; ascending by cause, none that holds nothing */
    uint32_t cell_count;
    uint32_t count_count;
    struct event_count *counts; /* owned; NULL: no counters. account_counters.h fills them */
};

struct account_row {
    uint64_t key;   /* the account's; a process: its number; 0: ended threads of one name */
    pid_t tid, pid; /* 0: none or several, or not visible in the caller's pid namespace */
    char comm[16];
    uint64_t cgroup;  /* as of struct prcb_account; 0: not known, or several */
    uint64_t threads; /* 0: only what threads did in a cgroup that they have left */
    uint64_t running; /* of these, the ones on a processor */
    uint64_t exited;
    uint64_t kernel; /* kernel threads */
    uint64_t ended;  /* that so many ended threads or processes of one name are one; 0: it is one */
    struct account_sums now;
    struct account_sums before; /* at the end of the last interval; zero: none yet */
    bool released;              /* the account was given back: the row changes no more */
    bool began;                 /* before holds something */
    struct account_sums base;   /* private: what the account had when its thread came here */
    bool counted;               /* private to account_counters.c, as the next */
    void *counters;             /* a set that is open; closed before the row is released */
    size_t place;               /* private: index in rows */
};

struct account_rows {
    struct account_row **rows; /* in order of arrival, until rows are folded */
    size_t count, room;
    struct table places;  /* private */
    size_t released;      /* rows whose account was given back */
    size_t keep_released; /* beyond this many they are summed by name; 0: ACCOUNT_KEEP_RELEASED */
    /* Rows are of one cgroup each: what a thread did in one that it has left goes to a row of its
     * name there. What it did since the last update counts for the one it was in then. Set before
     * the first update. */
    bool by_cgroup;
};
#define ACCOUNT_KEEP_RELEASED 32768
#define ACCOUNT_KEEP_NAMES    4096 /* names of summed rows; the rest is one row */

/* Puts an account's present values in its row. 0 or -ENOMEM. */
int account_rows_update(struct account_rows *rows, const struct prcb_account *account);
/* Notes that this row's account was given back. The row may be gone afterwards:
 * summed into the row of its name. 0 or -ENOMEM (nothing changed). */
int account_rows_released(struct account_rows *rows, struct account_row *row);
/* Begins an interval: before = now, for all rows. */
int account_rows_mark(struct account_rows *rows);
bool account_rows_all_exited(const struct account_rows *rows);
void account_rows_deinit(struct account_rows *rows);

/* Returns the cell of a cause, or NULL. */
const struct wait_cell *account_sums_cell(const struct account_sums *sums, uint32_t cause);
/* Does *to += from. */
int account_sums_add(struct account_sums *to, const struct account_sums *from);
/* Does *ret = later - earlier; open waits are later's. *ret is new, and is to be deinitialised. */
int account_sums_sub(const struct account_sums *later, const struct account_sums *earlier,
                     struct account_sums *ret);
void account_sums_deinit(struct account_sums *sums);
/* Returns the time spent waiting, open stretches included; in an interval, the part within it. */
uint64_t account_sums_waited(const struct account_sums *sums);

/* ---- views --------------------------------------------------------------- */

enum account_key {
    ACCOUNT_BY_RUN,
    ACCOUNT_BY_READY,
    ACCOUNT_BY_WAIT,
    ACCOUNT_BY_WALL,
    ACCOUNT_BY_OPEN,
    ACCOUNT_BY_SWITCHES,
    ACCOUNT_BY_TID,
    ACCOUNT_BY_COMM,
    ACCOUNT_BY_CAUSE,
};

struct account_order {
    enum account_key key;
    uint32_t cause; /* for ACCOUNT_BY_CAUSE */
    uint64_t top;   /* rows wanted; 0: all */
};

/* Rows in the order asked for. Ties go by tid, then pid, then key, so that the
 * order is the same each time. */
struct account_view {
    struct account_row **rows; /* the wanted ones, then those that order.top cut off */
    size_t count;              /* wanted */
    size_t other_rows;         /* cut off */
    struct account_row others; /* their sum; others.threads 0: none */
    struct account_row total;  /* sum of all */
    struct account_row *sums;  /* private: rows the view made: intervals, processes */
    size_t sum_count;
    struct account_row *folds; /* private: the same, of ended ones */
    size_t fold_count;
};

enum account_view_kind {
    ACCOUNT_VIEW_PROCESSES = 1, /* a row per process; else one per thread */
    ACCOUNT_VIEW_INTERVAL =
        2,                    /* what changed since account_rows_mark; rows that lived in it only */
    ACCOUNT_VIEW_CGROUPS = 4, /* a row per cgroup: key is its number, comm empty. account_rows has
                                 by_cgroup */
    ACCOUNT_VIEW_NAMES = 8,   /* a row per name, as account_family has it */
    ACCOUNT_VIEW_ENDED = 16,  /* ACCOUNT_FOLD_LEAST ended ones of a name and cgroup are a row */
};
#define ACCOUNT_FOLD_LEAST 4
/* The name that a thread is summed under: its own, but a kernel thread of which there is one for
 * each processor, or many, has that of them all: "kworker" for "kworker/0:1H". */
#define ACCOUNT_NAME 16
void account_family(const char *comm, bool kernel, char ret[ACCOUNT_NAME]);

int account_view_make(const struct account_rows *rows, unsigned kind,
                      const struct account_order *order, struct account_view *ret);
void account_view_deinit(struct account_view *view);

/* Finds "run", "tid", a cause's name ... as an order. 0 or -EINVAL. */
int account_order_parse(const char *text, struct account_order *ret);

#endif
