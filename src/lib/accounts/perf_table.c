/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <prcb/prcb.h>

/* ---- tasks ---- */

static struct perf_task **bucket_of(const struct perf_table *table, pid_t tid)
{
    /* Numbers are given out in sequence: their low bits spread well. */
    return &table->buckets[(size_t)tid & (table->bucket_count - 1)];
}

struct perf_task *perf_table_find(const struct perf_table *table, pid_t tid)
{
    struct perf_task *task = table->bucket_count ? *bucket_of(table, tid) : NULL;

    while (task && task->tid != tid)
        task = task->next;
    return task;
}

static void put_in_bucket(struct perf_table *table, struct perf_task *task)
{
    struct perf_task **bucket = bucket_of(table, task->tid);

    task->next = *bucket;
    *bucket = task;
}

static int grow_tasks(struct perf_table *table)
{
    size_t room = table->task_room ? 2 * table->task_room : 256;
    struct perf_task **tasks = reallocarray(table->tasks, room, sizeof(*tasks));
    struct perf_task **buckets;

    if (!tasks)
        return -ENOMEM;
    table->tasks = tasks;
    buckets = calloc(room, sizeof(*buckets));
    if (!buckets)
        return -ENOMEM;
    free(table->buckets);
    table->buckets = buckets;
    table->bucket_count = table->task_room = room;
    for (size_t i = 0; i < table->task_count; i++) {
        if (!tasks[i]->gone)
            put_in_bucket(table, tasks[i]);
    }
    return 0;
}

int perf_table_add(struct perf_table *table, pid_t pid, pid_t tid, uint64_t start,
                   struct perf_task **ret)
{
    int result = table->task_count == table->task_room ? grow_tasks(table) : 0;
    struct perf_task *task = result ? NULL : calloc(1, sizeof(*task));

    if (!task)
        return -ENOMEM;
    task->pid = pid;
    task->tid = tid;
    task->start = start;
    table->tasks[table->task_count++] = task;
    put_in_bucket(table, task);
    *ret = task;
    return 0;
}

void perf_table_remove(struct perf_table *table, struct perf_task *task)
{
    struct perf_task **link = bucket_of(table, task->tid);

    if (task->gone)
        return;
    while (*link != task)
        link = &(*link)->next;
    *link = task->next;
    if (task->account)
        perf_table_end_account(task->account);
    task->gone = true;
}

void perf_table_sweep(struct perf_table *table)
{
    size_t kept = 0;

    for (size_t i = 0; i < table->task_count; i++) {
        if (table->tasks[i]->gone)
            free(table->tasks[i]);
        else
            table->tasks[kept++] = table->tasks[i];
    }
    table->task_count = kept;
}

/* ---- accounts ---- */

uint64_t perf_account_key(const struct perf_account *account)
{
    return (uint64_t)account->generation << 32 | account->slot;
}

struct perf_account *perf_table_account(const struct perf_table *table, uint64_t key)
{
    uint32_t slot = (uint32_t)key;
    struct perf_account *account = slot < table->slot_count ? table->accounts[slot] : NULL;

    return account && account->generation == (uint32_t)(key >> 32) ? account : NULL;
}

uint32_t perf_table_accounts(const struct perf_table *table)
{
    return table->slot_count - table->free_count;
}

static int grow_slots(struct perf_table *table)
{
    uint32_t room = table->slot_room ? 2 * table->slot_room : 64;
    struct perf_account **accounts = reallocarray(table->accounts, room, sizeof(*accounts));
    uint32_t *generations, *free_slots;

    if (!accounts)
        return -ENOMEM;
    table->accounts = accounts;
    generations = reallocarray(table->generations, room, sizeof(*generations));
    if (!generations)
        return -ENOMEM;
    table->generations = generations;
    free_slots = reallocarray(table->free_slots, room, sizeof(*free_slots));
    if (!free_slots)
        return -ENOMEM;
    table->free_slots = free_slots;
    table->slot_room = room;
    return 0;
}

static int take_slot(struct perf_table *table, uint32_t most, uint32_t *ret)
{
    int result;

    if (table->free_count) {
        *ret = table->free_slots[--table->free_count];
        return 0;
    }
    if (table->slot_count >= most)
        return -ENOSPC;
    result = table->slot_count == table->slot_room ? grow_slots(table) : 0;
    if (result)
        return result;
    table->generations[table->slot_count] = 0;
    *ret = table->slot_count++;
    return 0;
}

int perf_table_open_account(struct perf_table *table, struct perf_task *task, uint32_t most)
{
    struct perf_account *account = calloc(1, sizeof(*account));
    int result = account ? take_slot(table, most, &account->slot) : -ENOMEM;

    if (result) {
        free(account);
        return result;
    }
    account->generation = ++table->generations[account->slot];
    account->tid = task->tid;
    account->pid = task->pid;
    account->task = task;
    task->account = account;
    table->accounts[account->slot] = account;
    return 0;
}

void perf_table_end_account(struct perf_account *account)
{
    account->flags = (account->flags & ~(uint32_t)PRCB_ACCOUNT_RUNNING) | PRCB_ACCOUNT_EXITED;
    if (account->task)
        account->task->account = NULL;
    account->task = NULL;
}

void perf_table_release_account(struct perf_table *table, struct perf_account *account)
{
    if (account->task)
        account->task->account = NULL;
    table->accounts[account->slot] = NULL;
    table->free_slots[table->free_count++] = account->slot;
    free(account);
}

void perf_table_free(struct perf_table *table)
{
    for (uint32_t slot = 0; slot < table->slot_count; slot++)
        free(table->accounts[slot]);
    for (size_t i = 0; i < table->task_count; i++)
        free(table->tasks[i]);
    free(table->accounts);
    free(table->generations);
    free(table->free_slots);
    free(table->tasks);
    free(table->buckets);
    *table = (struct perf_table){0};
}
