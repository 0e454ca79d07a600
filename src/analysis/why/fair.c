/* SPDX-License-Identifier: BSD-2-Clause */
#include "fair.h"

#include <stdlib.h>

#include "array.h"

#define PROCESSES_MOST 65536 /* whose use is known */

void fair_free(struct fair *f)
{
    table_free(&f->by_process);
    table_free(&f->by_user);
    free(f->processes);
    free(f->users);
}

/* Returns the number of a share, made if there is none; 0: no room. */
static size_t find(struct table *t, struct fair_share **shares, size_t *count, size_t *room,
                   uint64_t key, int64_t user)
{
    const struct fair_share fresh = {.user = user};
    size_t number = table_find_number(t, key);

    if (number)
        return number;
    if (array_reserve(*shares, *count, *room, 1) || table_put_number(t, key, *count + 1))
        return 0;
    (*shares)[*count] = fresh;
    return ++*count;
}

static struct fair_share *user_of(const struct fair *f, const struct fair_share *process)
{
    size_t number = table_find_number(&f->by_user, (uint64_t)process->user);

    return number ? &f->users[number - 1] : NULL;
}

void fair_charge(struct fair *f, pid_t pid, uint64_t us)
{
    size_t number = table_find_number(&f->by_process, (uint32_t)pid);
    struct fair_share *user = number ? user_of(f, &f->processes[number - 1]) : NULL;

    if (!user)
        return;
    f->processes[number - 1].used += us;
    user->used += us;
}

/* Asked once for each count: it forgets who was refused. */
static bool is_hungry(struct fair_share *share, uint64_t budget)
{
    bool refused = share->refused;

    share->refused = false;
    return refused || share->used > budget / 100;
}

void fair_count(struct fair *f, uint64_t budget)
{
    f->budget = budget;
    f->hungry_users = 0;
    for (size_t i = 0; i < f->user_count; i++) {
        f->users[i].hungry = 0;
        f->hungry_users += is_hungry(&f->users[i], budget);
    }
    for (size_t i = 0; i < f->process_count; i++) {
        struct fair_share *user = user_of(f, &f->processes[i]);

        if (user)
            user->hungry += is_hungry(&f->processes[i], budget);
    }
}

/* Returns the process's share, with one of its user's; NULL: no room. */
static struct fair_share *meet(struct fair *f, pid_t pid, int64_t (*user)(pid_t pid))
{
    size_t number = table_find_number(&f->by_process, (uint32_t)pid);
    int64_t of;

    if (number)
        return &f->processes[number - 1];
    of = user(pid);
    if (f->process_count == PROCESSES_MOST) { /* users keep what they used */
        table_clear(&f->by_process);
        f->process_count = 0;
    }
    if (!find(&f->by_user, &f->users, &f->user_count, &f->user_room, (uint64_t)of, of))
        return NULL;
    number =
        find(&f->by_process, &f->processes, &f->process_count, &f->process_room, (uint32_t)pid, of);
    return number ? &f->processes[number - 1] : NULL;
}

void fair_meet(struct fair *f, pid_t pid, uint64_t key, int64_t (*user)(pid_t pid))
{
    size_t number = table_find_number(&f->by_process, (uint32_t)pid);
    struct fair_share *share = number ? &f->processes[number - 1] : NULL;

    if (!share || !key || share->key == key)
        return;
    if (share->key) {
        *share = (struct fair_share){.user = user(pid)};
        find(&f->by_user, &f->users, &f->user_count, &f->user_room, (uint64_t)share->user,
             share->user);
    }
    share->key = key;
}

bool fair_is_greedy(struct fair *f, pid_t pid, int64_t (*user)(pid_t pid))
{
    const struct fair_share *process = meet(f, pid, user);
    const struct fair_share *owner = process ? user_of(f, process) : NULL;
    uint64_t share = f->hungry_users ? f->budget / f->hungry_users : f->budget;

    if (!owner)
        return false;
    if (f->hungry_users > 1 && owner->used > share)
        return true;
    return owner->hungry > 1 && process->used > share / owner->hungry;
}

void fair_refuse(struct fair *f, pid_t pid, int64_t (*user)(pid_t pid))
{
    struct fair_share *process = meet(f, pid, user), *owner = process ? user_of(f, process) : NULL;

    if (!owner)
        return;
    process->refused = true;
    owner->refused = true;
}
