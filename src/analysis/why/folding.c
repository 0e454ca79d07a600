/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Processes that have ended become one for each name and cgroup, where they are many: of a build,
 * the compilers.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "inside.h"

bool why_has_ended(const struct process *process)
{
    for (const struct thread *at = process->threads_here; at; at = at->sibling) {
        if (!(at->last.flags & PRCB_ACCOUNT_EXITED))
            return false;
    }
    return process->pid != 0;
}

size_t why_living(const struct why *w, pid_t *ret, size_t most)
{
    size_t count = 0;

    for (const struct process *at = w->processes; at && count <= most; at = at->next) {
        if (!at->pid || at->aside || why_has_ended(at))
            continue;
        if (count < most)
            ret[count] = at->pid;
        count++;
    }
    return count;
}

static uint64_t name_of(const struct process *process)
{
    return table_mix(process->cgroup, table_hash(process->comm, sizeof(process->comm)));
}

/* The one before it in the list that has its name; NULL: there is none. */
static struct process *like(const struct table *names, uint64_t key, const struct process *process)
{
    const struct table_slot *slot = NULL;

    while ((slot = table_next(names, key, slot))) {
        struct process *other = slot->item;

        if (other->cgroup == process->cgroup &&
            !memcmp(other->comm, process->comm, sizeof(other->comm)))
            return other;
    }
    return NULL;
}

static int move_cells(struct why *w, struct process *from, struct process *to)
{
    for (const struct cell *at = from->cells; at; at = at->next) {
        struct why_part kind = at->part;
        struct cell *cell;

        kind.ns = kind.count = kind.idle_ns = 0;
        kind.chosen = 0;
        cell = why_cell(w, to, &kind);
        if (!cell)
            return -ENOMEM;
        cell->part.ns += at->part.ns;
        cell->part.count += at->part.count;
        cell->part.chosen += at->part.chosen;
        for (size_t i = 0; i < at->who_count; i++) {
            if (array_add(cell->who, cell->who_count, cell->who_room, at->who[i]))
                return -ENOMEM;
        }
    }
    return 0;
}

static int move_all(struct why *w, struct process *from, struct process *to)
{
    int result = move_cells(w, from, to);

    for (size_t i = 0; i < from->doing_count && !result; i++)
        result = array_add(to->doings, to->doing_count, to->doing_room, from->doings[i]);
    if (result)
        return result;
    for (const struct thread *at = from->threads_here; at; at = at->sibling)
        why_add_figures(to, &at->last);
    to->threads += from->threads;
    to->wall_ns += from->wall_ns;
    to->run_ns += from->run_ns;
    to->ready_ns += from->ready_ns;
    to->wait_ns += from->wait_ns;
    for (size_t i = 0; i < PRCB_CAUSE_MAX; i++) {
        to->waits[i].ns += from->waits[i].ns;
        to->waits[i].count += from->waits[i].count;
    }
    from->into = to;
    return 0;
}

static int count_names(const struct why *w, struct table *names)
{
    int result = 0;

    for (struct process *at = w->processes; at && !result; at = at->next) {
        struct process *first = why_has_ended(at) ? like(names, name_of(at), at) : NULL;

        if (first)
            first->ended++;
        else if (why_has_ended(at))
            result = table_put(names, name_of(at), at);
    }
    return result;
}

static int fold_by_name(struct why *w)
{
    struct table names = {0};
    int result = count_names(w, &names);

    for (struct process *at = w->processes; at && !result; at = at->next) {
        struct process *first = why_has_ended(at) ? like(&names, name_of(at), at) : NULL;

        if (first && first != at && first->ended + 1 >= WHY_FOLD_LEAST)
            result = move_all(w, at, first);
    }
    for (struct process *at = w->processes; at; at = at->next)
        at->ended = at->ended + 1 >= WHY_FOLD_LEAST ? at->ended + 1 : 0;
    table_free(&names);
    return result;
}

/* Whoever starts processes without end gives each another name. */
static int fold_the_rest(struct why *w)
{
    struct table cgroups = {0};
    int result = 0;

    for (struct process *at = w->processes; at && !result; at = at->next) {
        struct process *first;
        uint64_t count = at->ended ? at->ended : 1;

        if (at->into || !why_has_ended(at))
            continue;
        first = table_find(&cgroups, at->cgroup);
        if (first) {
            result = move_all(w, at, first);
            first->ended += count;
        } else {
            result = table_put(&cgroups, at->cgroup, at);
            at->ended = count;
            snprintf(at->comm, sizeof(at->comm), "(ended)");
        }
    }
    table_free(&cgroups);
    return result;
}

static size_t rows_of(const struct why *w)
{
    size_t count = 0;

    for (const struct process *at = w->processes; at; at = at->next)
        count += !at->into;
    return count;
}

int why_fold_ended(struct why *w, bool by_need)
{
    int result = by_need && rows_of(w) <= WHY_ROWS_MOST ? 0 : fold_by_name(w);

    return !result && rows_of(w) > WHY_ROWS_MOST ? fold_the_rest(w) : result;
}

uint64_t why_folded(uint64_t pid, void *ctx)
{
    const struct why *w = ctx;
    const struct process *process = table_find(&w->by_pid, pid);

    while (process && process->into)
        process = process->into;
    return process ? (uint64_t)process->pid : pid;
}
