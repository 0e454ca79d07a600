/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the perf tier remembers: the threads it knows of, found by their number, and
 * the accounts, found by their key. An account outlives its thread, until it is
 * released. No I/O, no judgement. One caller at a time (the session's lock); all
 * pointers stay valid until the thing itself is removed.
 */
#ifndef PRCB_ACCOUNTS_PERF_TABLE_H
#define PRCB_ACCOUNTS_PERF_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "perf_figures.h"
#include "table.h"

struct perf_account {
    uint32_t slot, generation; /* together its key */
    pid_t tid, pid;
    char comm[16];
    uint32_t flags;   /* enum prcb_account_flag */
    uint64_t present; /* enum prcb_member */
    struct perf_figures figures;
    uint64_t cycles;
    bool settled;           /* the last two looks found it off its processor, with the same sums */
    struct perf_task *task; /* NULL: the thread has ended */
};

/* A thread that lives, as far as is known: profiled (account set) or not, and why. */
struct perf_task {
    pid_t tid, pid;
    uint64_t start; /* with tid: names the thread for good; clock ticks since boot */
    unsigned follow;
    unsigned pass;  /* of a process's first thread: what its new threads pass on; 0: not followed */
    bool outside;   /* was there before its process or parent was followed */
    bool untracked; /* found no free account, and was counted for that */
    bool gone;      /* taken out; its memory goes with the next sweep */
    uint64_t seen;  /* scan that last found it in a list */
    uint64_t listed; /* of a process's first thread: scan that last listed its threads */
    struct perf_account *account;
};

/* Zero-initialised is empty. */
struct perf_table {
    struct perf_task **tasks; /* those gone included, until the sweep */
    size_t task_count, task_room;
    struct table places;            /* of those that are not gone, by number */
    struct perf_account **accounts; /* by slot; NULL: free */
    uint32_t *generations;          /* by slot: how often it was given out */
    uint32_t slot_count, slot_room; /* slots ever used */
    uint32_t *free_slots;
    uint32_t free_count;
};

void perf_table_free(struct perf_table *table);

struct perf_task *perf_table_find(const struct perf_table *table, pid_t tid);
/* The number must not be in the table. 0 or -ENOMEM. */
int perf_table_add(struct perf_table *table, pid_t pid, pid_t tid, uint64_t start,
                   struct perf_task **ret);
/* Ends the task's account, if it has one, and takes the task out: it can no longer
 * be found, but its memory stays until the sweep. */
void perf_table_remove(struct perf_table *table, struct perf_task *task);
void perf_table_sweep(struct perf_table *table);

uint32_t perf_table_accounts(const struct perf_table *table); /* in use */
/* Gives the task an account of zeros, unless most are in use. 0, -ENOSPC, -ENOMEM. */
int perf_table_open_account(struct perf_table *table, struct perf_task *task, uint32_t most);
/* Marks it exited; the task, if it is still there, has none any more. */
void perf_table_end_account(struct perf_account *account);
void perf_table_release_account(struct perf_table *table, struct perf_account *account);

uint64_t perf_account_key(const struct perf_account *account);
/* Returns NULL if it was released, or never given out. */
struct perf_account *perf_table_account(const struct perf_table *table, uint64_t key);

#endif
