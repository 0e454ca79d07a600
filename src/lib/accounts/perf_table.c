/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <prcb/prcb.h>

#include "array.h"

/* ---- tasks ---- */

struct perf_task *perf_table_find(const struct perf_table *table, pid_t tid)
{
    return table_find(&table->places, (uint32_t)tid);
}

int perf_table_add(struct perf_table *table, pid_t pid, pid_t tid, uint64_t start,
                   struct perf_task **ret)
{
    struct perf_task *task = calloc(1, sizeof(*task));

    if (!task || array_reserve(table->tasks, table->task_count, table->task_room, 1) ||
        table_put(&table->places, (uint32_t)tid, task)) {
        free(task);
        return -ENOMEM;
    }
    task->pid = pid;
    task->tid = tid;
    task->start = start;
    table->tasks[table->task_count++] = task;
    *ret = task;
    return 0;
}

void perf_table_remove(struct perf_table *table, struct perf_task *task)
{
    if (task->gone)
        return;
    table_remove(&table->places, (uint32_t)task->tid, task);
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
    uint32_t count = table->slot_count, accounts = table->slot_room, others = table->slot_room;

    if (array_reserve(table->accounts, count, accounts, 1) ||
        array_reserve(table->generations, count, others, 1))
        return -ENOMEM;
    return array_reserve(table->free_slots, count, table->slot_room, 1);
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
    table_free(&table->places);
    *table = (struct perf_table){0};
}
