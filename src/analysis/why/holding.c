/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the holders of locks do while others wait for these, and which threads wait for each other.
 */
#include <errno.h>
#include <stdlib.h>

#include "array.h"
#include "inside.h"

int why_holder_is_fresh(struct why *w, const struct thread *thread)
{
    if (!w->source.holder || !w->source.still)
        return 0;
    return array_add(w->fresh, w->fresh_count, w->fresh_room, thread->last.key);
}

static struct thread *thread_of(const struct why *w, pid_t tid)
{
    return tid > 0 ? table_find(&w->by_tid, (uint32_t)tid) : NULL;
}

/* False: it is off the processor, and it is not known what for. */
static bool state_of(const struct thread *thread, enum why_state *ret)
{
    const struct prcb_account *a = &thread->last;
    const struct prcb_cause_info *info = prcb_cause_info(a->open.cause);

    *ret = a->flags & PRCB_ACCOUNT_RUNNING ? WHY_RUNS : thread->cell ? WHY_WAITS : WHY_READY;
    return *ret != WHY_READY || (!(a->flags & PRCB_ACCOUNT_EXITED) && a->present & PRCB_HAS_OPEN &&
                                 info && info->kind == PRCB_KIND_READY);
}

/* Returns the thread that holds what this one waits for, which its lock's word says once more, and
 * which has not been switched since the look. NULL: it is not proven. */
static struct thread *proven_holder(const struct why *w, const struct thread *thread)
{
    const struct why_part *part = &thread->cell->part;
    struct thread *holder = thread_of(w, w->source.holder(w->source.ctx, part->wait.holder));
    struct object_wait again;

    if (!holder || holder == thread || holder->process != thread->process)
        return NULL;
    again = w->source.object(w->source.ctx, &thread->last,
                             part->kind == WHY_STACK ? &part->stack : NULL);
    return again.holder == part->wait.holder && again.object == part->wait.object &&
                   w->source.still(w->source.ctx, &holder->last)
               ? holder
               : NULL;
}

static bool is_same(const struct why_doing *doing, const struct thread *waiter,
                    enum why_state state, const struct cell *does)
{
    const struct object_wait *wait = &waiter->cell->part.wait;

    return doing->object == wait->object && doing->holder == wait->holder &&
           doing->state == state &&
           (!does ||
            (doing->part.kind == does->part.kind && doing->part.cause == does->part.cause &&
             doing->part.stack.id == does->part.stack.id &&
             doing->part.wait.object == does->part.wait.object &&
             doing->part.wait.holder == does->part.wait.holder));
}

#define DOINGS_MOST 1024 /* of a process */

static int note_doing(struct thread *waiter, const struct thread *holder, enum why_state state)
{
    struct process *process = waiter->process;
    const struct cell *does = state == WHY_WAITS ? holder->cell : NULL;
    struct why_doing doing = {.object = waiter->cell->part.wait.object,
                              .holder = waiter->cell->part.wait.holder,
                              .state = state};
    size_t i = 0;

    while (i < process->doing_count && !is_same(&process->doings[i], waiter, state, does))
        i++;
    if (i == DOINGS_MOST)
        return 0;
    if (does)
        doing.part = does->part;
    if (i == process->doing_count &&
        array_add(process->doings, process->doing_count, process->doing_room, doing))
        return -ENOMEM;
    process->doings[i].ns += waiter->given;
    process->doings[i].count++;
    waiter->doing = i + 1;
    return 0;
}

int why_looked(struct why *w)
{
    int result = 0;

    for (size_t i = 0; i < w->fresh_count && !result; i++) {
        struct thread *waiter = table_find(&w->threads, w->fresh[i]), *holder;
        enum why_state state;

        if (!waiter || !waiter->cell || !waiter->cell->part.wait.holder || waiter->doing)
            continue;
        holder = proven_holder(w, waiter);
        if (holder && state_of(holder, &state))
            result = note_doing(waiter, holder, state);
    }
    w->fresh_count = 0;
    return result;
}

/* ---- threads that wait for each other ----------------------------------------------------- */

/* Whether all threads on the way from this one back to it are in the waits that they were in
 * before their locks were read: then these waits go on at one moment. */
static bool is_loop(const struct why *w, const struct thread *first)
{
    const struct thread *at = first;

    do {
        if (!at->cell || !w->source.still(w->source.ctx, &at->last))
            return false;
        at = at->held_by;
    } while (at != first);
    return true;
}

/* Each thread has one holder at most, so a walk along them ends or comes to where it was. */
static void find_loop(struct why *w, struct thread *from, uint32_t walk, struct table *seen)
{
    struct thread *at = from;

    while (at && !table_find_number(seen, at->last.key)) {
        if (table_put_number(seen, at->last.key, walk))
            return;
        at = at->held_by;
    }
    if (!at || at->loop || table_find_number(seen, at->last.key) != walk || !is_loop(w, at))
        return;
    w->loops++;
    for (; !at->loop; at = at->held_by)
        at->loop = w->loops;
}

int why_confirm(struct why *w)
{
    struct table seen = {0};
    uint32_t walk = 0;

    if (!w->source.holder || !w->source.still)
        return 0;
    for (struct process *process = w->processes; process; process = process->next) {
        for (struct thread *at = process->threads_here; at; at = at->sibling) {
            at->held_by = at->cell && at->cell->part.wait.holder ? proven_holder(w, at) : NULL;
            at->loop = 0;
        }
        for (struct thread *at = process->threads_here; at; at = at->sibling) {
            if (at->held_by)
                find_loop(w, at, ++walk, &seen);
        }
    }
    table_free(&seen);
    return 0;
}
