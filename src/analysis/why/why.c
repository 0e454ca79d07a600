/* SPDX-License-Identifier: BSD-2-Clause */
#include "why.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cause.h"
#include "held_up.h"
#include "inside.h"

#define EARLY_MOST      4096  /* more are left out: their time is then too short to be seen */
#define SPAN_CELLS_MOST 65536 /* of more, spans are not told */

const char *why_part_name(enum why_part_kind kind)
{
    static const char *const names[] = {
        "",         "[too short]", "[not read]", "[unreadable]",   "[no permission]",
        "[kernel]", "[no room]",   "[ended]",    "[between looks]"};

    return names[kind];
}

int why_open(const struct why_source *source, struct why **ret)
{
    struct why *w = calloc(1, sizeof(*w));

    if (!w)
        return -ENOMEM;
    w->source = *source;
    *ret = w;
    return 0;
}

static void free_thread(struct thread *thread)
{
    if (thread) {
        behind_free(&thread->behind.edges);
        free(thread->told);
    }
    free(thread);
}

void why_close(struct why *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->threads.room; i++)
        free_thread(w->threads.slots[i].item);
    table_free(&w->threads);
    table_free(&w->by_pid);
    table_free(&w->cells);
    table_free(&w->by_tid);
    table_free(&w->members);
    spans_close(w->spans);
    paths_close(w->paths);
    free(w->fresh);
    while (w->processes) {
        struct process *next = w->processes->next;

        while (w->processes->cells) {
            struct cell *cell = w->processes->cells->next;

            free(w->processes->cells->who);
            free(w->processes->cells);
            w->processes->cells = cell;
        }
        free(w->processes->doings);
        free(w->processes);
        w->processes = next;
    }
    while (w->early) {
        struct early *next = w->early->next;

        free(w->early);
        w->early = next;
    }
    free(w);
}

/* ---- looking ------------------------------------------------------------------------------ */

pid_t why_process_of(const struct prcb_account *a)
{
    return a->flags & PRCB_ACCOUNT_KTHREAD ? 0 : a->pid;
}

pid_t why_busiest(const struct why *w)
{
    const struct process *most = NULL;

    for (const struct process *at = w->processes; at; at = at->next) {
        if (at->pid && (!most || at->threads > most->threads))
            most = at;
    }
    return most ? most->pid : 0;
}

/* Whether an account that is met for the first time is of another process than those before that
 * had its number. A thread that lived beside the first one and has its number is the same process,
 * after an exec. */
static bool is_reused(const struct process *process, const struct prcb_account *a, uint64_t now)
{
    if (!process->pid)
        return false;
    if (process->first_key && a->tid == a->pid)
        return now - a->wall_ns > process->first_lived;
    return process->first && why_has_ended(process);
}

static struct process *process_of(struct why *w, const struct prcb_account *a, uint64_t now)
{
    bool by_name = w->source.by_name;
    bool aside = w->source.aside && w->source.aside(w->source.ctx, a);
    pid_t pid = why_process_of(a);
    const struct table_slot *slot = NULL;
    uint64_t key = (uint32_t)pid;
    struct process *process;

    if (by_name)
        key = table_mix(key, table_hash(a->comm, strnlen(a->comm, sizeof(a->comm))));
    while ((slot = table_next(&w->by_pid, key, slot))) {
        process = slot->item;
        if (process->over || process->pid != pid || process->aside != aside ||
            (by_name && strncmp(process->comm, a->comm, sizeof(a->comm))))
            continue;
        process->over = is_reused(process, a, now);
        if (!process->over)
            return process;
    }
    process = calloc(1, sizeof(*process));
    if (!process || table_put(&w->by_pid, key, process)) {
        free(process);
        return NULL;
    }
    process->pid = pid;
    process->aside = aside;
    process->cgroup = a->present & PRCB_HAS_CGROUP ? a->cgroup : 0;
    process->next = w->processes;
    w->processes = process;
    memcpy(process->comm, pid || by_name ? a->comm : "kernel threads\0", sizeof(process->comm));
    return process;
}

/* The last that has a number is found by it. 0 or -ENOMEM. */
static int set_number(struct why *w, struct thread *thread, pid_t tid)
{
    if (thread->number == tid)
        return 0;
    table_remove(&w->by_tid, (uint32_t)thread->number, thread);
    table_remove(&w->by_tid, (uint32_t)tid, NULL);
    thread->number = tid;
    return table_put(&w->by_tid, (uint32_t)tid, thread);
}

static struct thread *thread_of(struct why *w, const struct prcb_account *a, uint64_t now)
{
    struct thread *thread = table_find(&w->threads, a->key);

    if (thread)
        return set_number(w, thread, a->tid) ? NULL : thread;
    thread = calloc(1, sizeof(*thread));
    if (!thread)
        return NULL;
    thread->process = process_of(w, a, now);
    if (!thread->process || table_put(&w->threads, a->key, thread) ||
        set_number(w, thread, a->tid)) {
        table_remove(&w->threads, a->key, NULL);
        free_thread(thread);
        return NULL;
    }
    thread->process->threads++;
    thread->process->first |= a->tid == a->pid;
    thread->sibling_at = &thread->process->threads_here;
    thread->sibling = *thread->sibling_at;
    if (thread->sibling)
        thread->sibling->sibling_at = &thread->sibling;
    *thread->sibling_at = thread;
    return thread;
}

/* Whether both waits were in the same span, or neither was in one. */
static bool same_span(const struct prcb_stack *a, const struct prcb_stack *b)
{
    bool in_span = a->span_state == PRCB_SPAN_THERE;

    return in_span == (b->span_state == PRCB_SPAN_THERE) &&
           (!in_span || !memcmp(&a->span, &b->span, sizeof(a->span)));
}

/* There are too many: the wait is one of those whose span is not known. */
static struct cell *without_span(struct why *w, struct process *process,
                                 const struct why_part *wanted)
{
    struct why_part part = *wanted;

    part.stack.span_state = PRCB_SPAN_UNREAD;
    return why_cell(w, process, &part);
}

struct cell *why_cell(struct why *w, struct process *process, const struct why_part *wanted)
{
    bool in_span = w->source.by_span && wanted->stack.span_state == PRCB_SPAN_THERE;
    uint64_t key = table_mix((uint64_t)(uint32_t)process->pid << 32 | wanted->stack.id,
                             (uint64_t)wanted->cause << 8 | wanted->stack.kind << 4 | wanted->kind);
    const struct table_slot *slot = NULL;
    struct cell *cell;

    key = table_mix(key, (uint64_t)wanted->wait.holder << 32 | wanted->wait.object);
    if (in_span)
        key = table_mix(key, table_hash(&wanted->stack.span, sizeof(wanted->stack.span)));
    while ((slot = table_next(&w->cells, key, slot))) {
        cell = slot->item;
        if (cell->process == process && cell->part.kind == wanted->kind &&
            cell->part.cause == wanted->cause && cell->part.stack.id == wanted->stack.id &&
            cell->part.stack.kind == wanted->stack.kind &&
            cell->part.stack.word == wanted->stack.word &&
            cell->part.wait.object == wanted->wait.object &&
            cell->part.wait.holder == wanted->wait.holder &&
            (!w->source.by_span || same_span(&cell->part.stack, &wanted->stack)))
            return cell;
    }
    if (in_span && w->span_cells >= SPAN_CELLS_MOST)
        return without_span(w, process, wanted);
    w->span_cells += in_span;
    cell = calloc(1, sizeof(*cell));
    if (!cell || table_put(&w->cells, key, cell)) {
        free(cell);
        return NULL;
    }
    cell->part = *wanted;
    cell->process = process;
    cell->next = process->cells;
    process->cells = cell;
    return cell;
}

bool why_is_wait(const struct prcb_account *a)
{
    const struct prcb_cause_info *info = prcb_cause_info(a->open.cause);

    if (a->flags & (PRCB_ACCOUNT_RUNNING | PRCB_ACCOUNT_EXITED | PRCB_ACCOUNT_ORPHAN))
        return false;
    return !(a->present & PRCB_HAS_OPEN) || (info && info->kind == PRCB_KIND_WAIT);
}

/* Notes who was in a wait of the cell. */
static int join(struct why *w, struct cell *cell, const struct prcb_account *a)
{
    uint64_t key = table_mix((uintptr_t)cell, a->key);
    const struct table_slot *slot = NULL;
    struct why_who who = {.key = a->key, .tid = a->tid};

    while ((slot = table_next(&w->members, key, slot))) {
        if (slot->item == cell)
            return 0;
    }
    memcpy(who.comm, a->comm, sizeof(who.comm));
    if (table_put(&w->members, key, cell))
        return -ENOMEM;
    return array_add(cell->who, cell->who_count, cell->who_room, who);
}

static uint32_t cause_of(const struct prcb_account *a)
{
    return a->present & PRCB_HAS_OPEN ? a->open.cause : PRCB_CAUSE_NONE;
}

/* Returns how long the wait has been going on. */
static uint64_t age_of(const struct thread *thread, const struct prcb_account *a, uint64_t now)
{
    return a->present & PRCB_HAS_OPEN ? a->open.ns : now - thread->since;
}

/* The cell's wait is over. Where its cause has had no other wait since, what the cause grew by is
 * this wait's, to the nanosecond: also less than was given, for its end may have been ready time.
 */
static void settle_time(struct thread *thread, const struct prcb_account *a)
{
    uint32_t cause = thread->cell->part.cause;
    uint64_t whole, others;

    if (!(a->present & PRCB_HAS_WAITS) || cause >= PRCB_CAUSE_MAX)
        return;
    others = a->waits[cause].count - thread->count;
    if (others && why_is_wait(a) && a->open.cause == cause)
        others--;
    whole = a->waits[cause].ns - thread->ns;
    if (others && whole >= thread->given)
        return;
    why_give(thread, whole - thread->given);
    thread->met_given = whole;
}

static void settle(struct thread *thread, const struct prcb_account *a)
{
    thread->met_cell = thread->cell;
    thread->met_given = thread->given;
    settle_time(thread, a);
    thread->cell = NULL;
    thread->doing = 0;
}

/* Sets how long a wait was that looks have met. */
static void settle_chosen(struct thread *thread, uint64_t ns)
{
    if (thread->cell) {
        thread->met_cell = thread->cell;
        thread->met_given = thread->given;
        why_give(thread, ns - thread->given);
        thread->cell = NULL;
        thread->doing = 0;
        thread->met_given = ns;
    }
    if (thread->met_cell)
        thread->met_cell->part.ns += ns - thread->met_given;
    thread->met_given = ns;
}

/* The wait that a look met last was over before it was known what it was for; its record tells
 * that. */
static int name_met(struct why *w, struct thread *thread, struct object_wait wait)
{
    struct cell *from = thread->met_cell, *to;
    struct why_part part;

    if (!from || !wait.object || from->part.wait.object)
        return 0;
    part = (struct why_part){.kind = from->part.kind,
                             .cause = from->part.cause,
                             .stack = from->part.stack,
                             .wait = wait};
    to = why_cell(w, thread->process, &part);
    if (!to || join(w, to, &thread->last))
        return -ENOMEM;
    from->part.ns -= thread->met_given;
    from->part.count--;
    to->part.ns += thread->met_given;
    to->part.count++;
    thread->met_cell = to;
    return 0;
}

/* Reads the stack of the wait, and what it is for. A 64-bit stack, readable or not, shows whose
 * numbers of calls the thread uses. What the wait is for is read first, because that takes less
 * time and the wait may be over any moment; but a futex's stack tells what kind of lock it is,
 * and where no cause is known the wait may be for a futex. */
static int read_wait(struct why *w, const struct prcb_account *a, struct why_part *ret)
{
    uint32_t cause = cause_of(a);
    bool needs_stack = cause == PRCB_CAUSE_FUTEX || cause == PRCB_CAUSE_NONE;
    struct object_wait wait = {0};
    int result;

    if (w->source.object && !needs_stack)
        wait = w->source.object(w->source.ctx, a, NULL);
    result = w->source.read(w->source.ctx, a, &ret->stack);
    if (!w->source.object || (result && result != -EIO))
        return result;
    if (needs_stack || (!result && objects_by_stack(&ret->stack)))
        wait = w->source.object(w->source.ctx, a, result ? NULL : &ret->stack);
    ret->wait = wait;
    return result;
}

static int begin(struct why *w, struct thread *thread, const struct prcb_account *a)
{
    struct why_part part = {.cause = cause_of(a), .stack = {.size = sizeof(part.stack)}};
    int result;

    result = read_wait(w, a, &part);
    if (result == -ENOMEM)
        return result;
    if (result == -EAGAIN || result == -ESRCH || result == -ESTALE)
        return 0; /* over by now: it shows as too short */
    part.kind = !result                           ? WHY_STACK
                : a->flags & PRCB_ACCOUNT_KTHREAD ? WHY_KERNEL
                : result == -EBUSY                ? WHY_BUDGET
                : result == -EPERM                ? WHY_DENIED
                                                  : WHY_UNREADABLE;
    spans_met(w, thread, a, &part.stack);
    thread->cell = why_cell(w, thread->process, &part);
    if (!thread->cell || join(w, thread->cell, a))
        return -ENOMEM;
    thread->cell->part.count++;
    thread->later = part.wait.later;
    thread->given = 0;
    thread->doing = 0;
    thread->met = a->switches;
    thread->met_cell = NULL;
    if (a->present & PRCB_HAS_WAITS && part.cause < PRCB_CAUSE_MAX) {
        thread->count = a->waits[part.cause].count;
        thread->ns = a->waits[part.cause].ns;
    }
    return part.wait.holder ? why_holder_is_fresh(w, thread) : 0;
}

/* Puts a chosen wait off until a look meets its thread, whose process is not known before. */
static int put_off(struct why *w, const struct prcb_chosen *chosen, const struct prcb_stack *stack,
                   int result, struct object_wait wait)
{
    struct early *early = w->early_count < EARLY_MOST ? calloc(1, sizeof(*early)) : NULL;

    if (!early)
        return w->early_count < EARLY_MOST ? -ENOMEM : 0;
    early->chosen = *chosen;
    early->has_stack = stack;
    early->result = result;
    early->wait = wait;
    if (stack)
        early->stack = *stack;
    early->next = w->early;
    w->early = early;
    w->early_count++;
    return 0;
}

/* Takes the chosen waits that were put off until this thread was met. */
static int take_early(struct why *w, uint64_t key)
{
    struct early **at = &w->early;
    int result = 0;

    while (*at && !result) {
        struct early *early = *at;

        if (early->chosen.key != key) {
            at = &early->next;
            continue;
        }
        result = why_chosen(w, &early->chosen, early->has_stack ? &early->stack : NULL,
                            early->result, early->wait);
        *at = early->next;
        free(early);
        w->early_count--;
    }
    return result;
}

int why_chosen(struct why *w, const struct prcb_chosen *chosen, const struct prcb_stack *stack,
               int result, struct object_wait wait)
{
    struct why_part part = {
        .kind = stack               ? WHY_STACK
                : result == -EBUSY  ? WHY_BUDGET
                : result == -ENOSPC ? WHY_NO_ROOM
                : result == -ESRCH  ? WHY_ENDED
                : result == -EPERM  ? WHY_DENIED
                                    : WHY_UNREADABLE,
        .cause = chosen->cause,
        .wait = wait,
    };
    struct thread *thread = table_find(&w->threads, chosen->key);
    struct cell *cell;

    if (chosen->cause >= PRCB_CAUSE_MAX)
        return 0;
    if (!thread)
        return put_off(w, chosen, stack, result, wait);
    if (thread->met == chosen->switches) {
        settle_chosen(thread, chosen->ns);
        return name_met(w, thread, wait);
    }
    if (!chosen->one_in)
        return 0; /* another one stands for it */
    if (stack)
        part.stack = *stack;
    cell = why_cell(w, thread->process, &part);
    if (!cell || join(w, cell, &thread->last))
        return -ENOMEM;
    cell->part.count++;
    cell->part.chosen += (double)chosen->ns * chosen->one_in;
    return spans_chosen(w, thread, chosen, stack, cell);
}

/* The whole wait has this stack, from its beginning. */
static int move_wait(struct why *w, struct thread *thread, const struct why_part *part)
{
    struct cell *cell = why_cell(w, thread->process, part);
    bool fresh = part->wait.holder && part->wait.holder != thread->cell->part.wait.holder;

    if (!cell || join(w, cell, &thread->last))
        return -ENOMEM;
    thread->cell->part.ns -= thread->given;
    thread->cell->part.count--;
    cell->part.ns += thread->given;
    cell->part.count++;
    thread->cell = cell;
    return fresh ? why_holder_is_fresh(w, thread) : 0;
}

/* A wait that was passed over for lack of budget gets its stack, or what it is for, when some
 * budget is left. */
static int try_again(struct why *w, struct thread *thread, const struct prcb_account *a)
{
    struct why_part part = {.kind = WHY_STACK,
                            .cause = thread->cell->part.cause,
                            .stack = {.size = sizeof(part.stack)}};
    int result = read_wait(w, a, &part);

    thread->later = part.wait.later;
    if (result)
        return result == -ENOMEM ? result : 0;
    spans_met(w, thread, a, &part.stack);
    return move_wait(w, thread, &part);
}

#define FROZEN_ASK_NS 1000000000ull /* between two questions whether a process is frozen */

/* The freezer of version 1 stops a thread where it sleeps, without a switch. */
static bool is_frozen(struct process *process, uint64_t now)
{
    if (!held_in_place() || !process->pid)
        return false;
    if (!process->frozen_asked || now - process->frozen_asked >= FROZEN_ASK_NS) {
        process->frozen_asked = now ? now : 1;
        process->frozen = held_process_frozen(process->pid);
    }
    return process->frozen;
}

/* A thread that idled may be frozen by now: its stack is the same, but it means something else
 * (prcb_stacks_read). */
static int ask_again(struct why *w, struct thread *thread, const struct prcb_account *a)
{
    const struct why_part *before = &thread->cell->part;
    struct why_part part = {.kind = WHY_STACK,
                            .cause = before->cause,
                            .stack = {.size = sizeof(part.stack)},
                            .wait = before->wait};

    if (w->source.read(w->source.ctx, a, &part.stack) || part.stack.kind == before->stack.kind)
        return 0;
    return move_wait(w, thread, &part);
}

/* If a thread still is in the same wait, nothing but the wait's length has changed. */
static void keep(const struct why *w, struct thread *thread, const struct prcb_account *a,
                 bool same, uint64_t now)
{
    if (a->tid == a->pid && !(a->flags & PRCB_ACCOUNT_EXITED)) {
        thread->process->first_key = a->key;
        thread->process->first_lived = now;
    }
    if (same && why_is_wait(a)) {
        thread->last.open.ns = a->open.ns;
        thread->last.wall_ns = a->wall_ns;
        thread->last.wait_ns = a->wait_ns;
        return;
    }
    thread->last = *a;
    if (!w->source.by_name && a->tid == a->pid && !(a->flags & PRCB_ACCOUNT_KTHREAD))
        memcpy(thread->process->comm, a->comm, sizeof(thread->process->comm));
}

/* Returns how much of a wait that is met for the first time lies before this look, as far as the
 * record does not tell it: all waiting since the last look, if that was no wait and there is one
 * only. */
static uint64_t before_look(const struct prcb_account *last, const struct prcb_account *a)
{
    bool waited = last->key && why_is_wait(last);

    if (!why_is_wait(a) || a->present & PRCB_HAS_OPEN || waited ||
        a->voluntary_switches - last->voluntary_switches > 1)
        return 0;
    return a->wait_ns - last->wait_ns;
}

int why_account(struct why *w, const struct prcb_account *a, uint64_t now)
{
    struct thread *thread = thread_of(w, a, now);
    bool same, first;
    int result = 0;

    if (!thread)
        return -ENOMEM;
    first = !thread->last.key;
    same = !first && thread->last.switches == a->switches && why_is_wait(&thread->last);
    if (!same)
        thread->since = now - before_look(&thread->last, a);
    if (thread->cell && !(same && why_is_wait(a)))
        settle(thread, a);
    if (why_is_wait(a) && !thread->cell && age_of(thread, a, now) >= w->source.min_wait_ns &&
        (same || a->present & PRCB_HAS_OPEN))
        result = begin(w, thread, a);
    else if (thread->cell && (thread->cell->part.kind == WHY_BUDGET || thread->later))
        result = try_again(w, thread, a);
    else if (thread->cell && thread->cell->part.stack.kind != PRCB_STACK_BLOCKED &&
             is_frozen(thread->process, now))
        result = ask_again(w, thread, a);
    if (!result && thread->cell) {
        uint64_t age = age_of(thread, a, now);

        if (age > thread->given)
            why_give(thread, age - thread->given);
        thread->given = age > thread->given ? age : thread->given;
    }
    if (!result)
        result = spans_take(w, thread, a);
    if (!result)
        result = paths_take(w, thread, a, now);
    keep(w, thread, a, same, now);
    return result || !first ? result : take_early(w, a->key);
}

void why_add_figures(struct process *to, const struct prcb_account *a)
{
    const struct prcb_cause_info *info = prcb_cause_info(a->open.cause);
    bool open = a->present & PRCB_HAS_OPEN && !(a->flags & PRCB_ACCOUNT_EXITED);

    to->wall_ns += a->wall_ns;
    to->run_ns += a->run_ns;
    to->ready_ns += a->ready_ns;
    if (a->present & PRCB_HAS_WAITS) {
        for (uint32_t i = 0; i < PRCB_CAUSE_MAX; i++) {
            to->waits[i].ns += a->waits[i].ns;
            to->waits[i].count += a->waits[i].count;
        }
    } else {
        to->waits[PRCB_CAUSE_NONE].ns += a->wait_ns;
        to->waits[PRCB_CAUSE_NONE].count += a->voluntary_switches;
    }
    to->wait_ns += a->wait_ns;
    if (!open || a->flags & PRCB_ACCOUNT_RUNNING)
        return;
    /* Whether the thread is able to run: such an open stretch is ready time. */
    if (info && info->kind == PRCB_KIND_READY) {
        to->ready_ns += a->open.ns;
        return;
    }
    to->waits[a->open.cause < PRCB_CAUSE_MAX ? a->open.cause : PRCB_CAUSE_NONE].ns += a->open.ns;
    to->wait_ns += a->open.ns;
}

int why_released(struct why *w, uint64_t key)
{
    struct thread *thread = table_find(&w->threads, key);

    if (!thread)
        return -ESTALE;
    if (thread->cell)
        settle(thread, &thread->last);
    why_add_figures(thread->process, &thread->last);
    paths_released(w, thread);
    table_remove(&w->threads, key, NULL);
    table_remove(&w->by_tid, (uint32_t)thread->number, thread);
    *thread->sibling_at = thread->sibling;
    if (thread->sibling)
        thread->sibling->sibling_at = thread->sibling_at;
    free_thread(thread);
    return 0;
}

/* ---- the report --------------------------------------------------------------------------- */

static uint64_t not_idle(const struct why_cause *cause)
{
    return cause->ns - cause->idle_ns;
}

static int by_part(const void *left, const void *right)
{
    const struct why_part *a = left, *b = right;

    return a->ns != b->ns ? (a->ns < b->ns ? 1 : -1)
                          : (a->stack.id > b->stack.id) - (a->stack.id < b->stack.id);
}

static int by_cause(const void *left, const void *right)
{
    const struct why_cause *a = left, *b = right;

    if (not_idle(a) != not_idle(b))
        return not_idle(a) < not_idle(b) ? 1 : -1;
    return (a->cause > b->cause) - (a->cause < b->cause);
}

/* What may be idling comes after what is not. */
static int by_now(const void *left, const void *right)
{
    const struct why_now *a = left, *b = right;
    bool either_a = a->has_stack && a->stack.kind == PRCB_STACK_EITHER,
         either_b = b->has_stack && b->stack.kind == PRCB_STACK_EITHER;

    if (either_a != either_b)
        return either_a ? 1 : -1;
    return a->ns != b->ns ? (a->ns < b->ns ? 1 : -1) : (a->tid > b->tid) - (a->tid < b->tid);
}

static uint64_t hurts(const struct why_process *process)
{
    return process->ready_ns + process->wait_ns - process->idle_ns;
}

static int by_process(const void *left, const void *right)
{
    const struct why_process *a = left, *b = right;

    if (hurts(a) != hurts(b))
        return hurts(a) < hurts(b) ? 1 : -1;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

bool why_is_idle(const struct why_part *part)
{
    return part->kind == WHY_STACK ? part->stack.kind == PRCB_STACK_IDLE
                                   : cause_has(part->cause, CAUSE_IDLES);
}

/* The parts are what looks saw, the total is exact. If the parts exceed it (a look may be a
 * little later than the account that it belongs to), the excess is taken from the longest; what
 * is missing is divided by the waits that were chosen at random, and without such waits it was
 * too short to be seen. */
static void fit_parts(struct why_cause *cause)
{
    uint64_t sum = 0;
    double all = 0;

    for (size_t i = 0; i < cause->part_count; i++)
        sum += cause->parts[i].ns;
    array_sort(cause->parts, cause->part_count, by_part);
    for (size_t i = 0; i < cause->part_count && sum > cause->ns; i++) {
        uint64_t excess = sum - cause->ns,
                 taken = excess < cause->parts[i].ns ? excess : cause->parts[i].ns;

        cause->parts[i].ns -= taken;
        sum -= taken;
    }
    for (size_t i = 0; i < cause->part_count; i++)
        all += cause->parts[i].chosen;
    for (size_t i = 0; i < cause->part_count && sum < cause->ns; i++) {
        uint64_t left = cause->ns - sum, share;

        if (cause->parts[i].chosen <= 0)
            continue;
        /* Each gets its share of what is left, so that no rounding error remains after the last. */
        share = all > cause->parts[i].chosen
                    ? (uint64_t)((double)left * (cause->parts[i].chosen / all))
                    : left;
        all -= cause->parts[i].chosen;
        cause->parts[i].ns += share;
        sum += share;
    }
    if (sum < cause->ns)
        cause->parts[cause->part_count++] =
            (struct why_part){.kind = cause->cause == PRCB_CAUSE_NONE ? WHY_BETWEEN : WHY_SHORT,
                              .cause = cause->cause,
                              .ns = cause->ns - sum};
    array_sort(cause->parts, cause->part_count, by_part);
    while (cause->part_count && !cause->parts[cause->part_count - 1].ns)
        cause->part_count--;
    for (size_t i = 0; i < cause->part_count; i++) {
        cause->known_ns += cause->parts[i].kind == WHY_STACK ? cause->parts[i].ns : 0;
        cause->parts[i].idle_ns = why_is_idle(&cause->parts[i]) ? cause->parts[i].ns : 0;
        cause->idle_ns += cause->parts[i].idle_ns;
    }
}

/* ---- the same time by other orders ---- */

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_stack(const void *left, const void *right)
{
    const struct why_part *a = left, *b = right;
    int order = compare(a->kind, b->kind);

    order = order ? order : compare(a->stack.id, b->stack.id);
    order = order ? order : compare(a->stack.kind, b->stack.kind);
    return order ? order : compare((uintptr_t)a->stack.word, (uintptr_t)b->stack.word);
}

static int by_object(const void *left, const void *right)
{
    const struct why_part *a = left, *b = right;
    int order = compare(a->wait.object, b->wait.object);

    return order || a->wait.object ? order : compare(a->kind, b->kind);
}

static int by_holder(const void *left, const void *right)
{
    const struct why_part *a = left, *b = right;
    int order = compare(a->wait.holder, b->wait.holder);

    return order || a->wait.holder ? order : compare(a->kind, b->kind);
}

/* Parts that are the same in one order become one, which has the other members of the first. */
static int merge(const struct why_cause *cause, int (*by)(const void *, const void *),
                 struct why_part **ret, size_t *ret_count)
{
    struct why_part *parts = calloc(cause->pair_count + 1, sizeof(*parts));
    size_t count = 0;

    if (!parts)
        return -ENOMEM;
    array_copy(parts, cause->pairs, cause->pair_count);
    array_sort(parts, cause->pair_count, by);
    for (size_t i = 0; i < cause->pair_count; i++) {
        if (count && !by(&parts[count - 1], &parts[i])) {
            parts[count - 1].ns += parts[i].ns;
            parts[count - 1].count += parts[i].count;
            parts[count - 1].idle_ns += parts[i].idle_ns;
            parts[count - 1].who_count = 0;
        } else {
            parts[count++] = parts[i];
        }
    }
    array_sort(parts, count, by_part);
    *ret = parts;
    *ret_count = count;
    return 0;
}

static int add_orders(struct why_cause *cause)
{
    bool held = false;
    int result;

    cause->pairs = cause->parts;
    cause->pair_count = cause->part_count;
    cause->parts = NULL;
    cause->part_count = 0;
    for (size_t i = 0; i < cause->pair_count; i++)
        held |= cause->pairs[i].wait.holder != 0;
    result = merge(cause, by_stack, &cause->parts, &cause->part_count);
    if (!result)
        result = merge(cause, by_object, &cause->objects, &cause->object_count);
    if (!result && held)
        result = merge(cause, by_holder, &cause->holders, &cause->holder_count);
    return result;
}

static int make_cause(const struct process *process, uint32_t number, const struct total *total,
                      bool objects, struct why_cause *ret)
{
    size_t count = 0;

    for (const struct cell *cell = process->cells; cell; cell = cell->next)
        count += cell->part.cause == number;
    *ret = (struct why_cause){.cause = number, .ns = total->ns, .count = total->count};
    ret->parts = calloc(count + 1, sizeof(*ret->parts)); /* one more for what is too short */
    if (!ret->parts)
        return -ENOMEM;
    for (const struct cell *cell = process->cells; cell; cell = cell->next) {
        if (cell->part.cause != number || (!cell->part.ns && cell->part.chosen <= 0))
            continue;
        ret->parts[ret->part_count] = cell->part;
        ret->parts[ret->part_count].who = cell->who;
        ret->parts[ret->part_count++].who_count = cell->who_count;
    }
    fit_parts(ret);
    return objects ? add_orders(ret) : 0;
}

#define DEEPER_MOST 16            /* waits of a process, the longest */
#define LONG_NS     1000000000ull /* of waits so long the kernel's part of the stack is shown, too */

/* Reads the stack again of a wait that has lasted for long: with the kernel's functions, whatever
 * its cause. Stacks of causes stay those of short and long waits alike. */
static void look_deeper(const struct why *w, const struct thread *thread, struct why_now *now)
{
    struct prcb_stack stack = {.size = sizeof(stack)};
    struct prcb_account record;

    if (!thread || !(thread->last.present & PRCB_HAS_OPEN))
        return;
    record = thread->last;
    if (now->before && record.open.ns < LONG_NS)
        record.open.ns = LONG_NS;
    if (record.open.ns < LONG_NS || w->source.read(w->source.ctx, &record, &stack))
        return;
    now->stack = stack;
    now->has_stack = true;
}

static int add_now(const struct thread *thread, struct why_process *ret)
{
    const struct prcb_account *a = &thread->last;
    struct why_now now;

    if (!why_is_wait(a) || !thread->cell || why_is_idle(&thread->cell->part))
        return 0;
    now = (struct why_now){
        .tid = a->tid,
        .cause = thread->cell->part.cause,
        .ns = thread->given,
        .before = !a->switches,
        .has_stack = thread->cell->part.kind == WHY_STACK,
        .stack = thread->cell->part.stack,
        .wait = thread->cell->part.wait,
        .held_by = thread->held_by ? thread->held_by->last.tid : 0,
        .loop = thread->loop,
    };
    memcpy(now.comm, a->comm, sizeof(now.comm));
    return array_append(ret->now, ret->now_count, now);
}

static int make_process(const struct why *w, const struct process *process, struct why_process *ret)
{
    struct process sum = *process;
    size_t count = 0;
    int result = 0;

    *ret = (struct why_process){.pid = process->pid,
                                .threads = process->threads,
                                .cgroup = process->cgroup,
                                .first = process->first,
                                .aside = process->aside,
                                .ended = process->ended,
                                .doings = process->doings,
                                .doing_count = process->doing_count};
    memcpy(ret->comm, process->comm, sizeof(ret->comm));
    for (const struct thread *at = process->threads_here; at && !result; at = at->sibling) {
        why_add_figures(&sum, &at->last);
        result = add_now(at, ret);
    }
    ret->wall_ns = sum.wall_ns;
    ret->run_ns = sum.run_ns;
    ret->ready_ns = sum.ready_ns;
    ret->wait_ns = sum.wait_ns;
    for (uint32_t i = 0; i < PRCB_CAUSE_MAX; i++)
        count += sum.waits[i].ns != 0;
    ret->causes = calloc(count + 1, sizeof(*ret->causes));
    if (!ret->causes)
        return -ENOMEM;
    for (uint32_t i = 0; i < PRCB_CAUSE_MAX && !result; i++) {
        if (!sum.waits[i].ns)
            continue;
        result =
            make_cause(process, i, &sum.waits[i], w->source.object, &ret->causes[ret->cause_count]);
        ret->idle_ns += result ? 0 : ret->causes[ret->cause_count].idle_ns;
        ret->known_ns += result ? 0 : ret->causes[ret->cause_count].known_ns;
        ret->cause_count++;
    }
    if (result)
        return result;
    array_sort(ret->causes, ret->cause_count, by_cause);
    array_sort(ret->now, ret->now_count, by_now);
    for (size_t i = 0; i < ret->now_count && i < DEEPER_MOST; i++)
        look_deeper(w, table_find(&w->by_tid, (uint32_t)ret->now[i].tid), &ret->now[i]);
    return 0;
}

int why_report_make(struct why *w, struct why_report *ret)
{
    struct why_report report = {0};
    size_t count = 0;
    int result = 0;

    for (const struct process *at = w->processes; at; at = at->next)
        count++;
    report.processes = calloc(count ? count : 1, sizeof(*report.processes));
    if (!report.processes)
        return -ENOMEM;
    for (struct process *at = w->processes; at && !result; at = at->next) {
        if (at->into)
            continue;
        at->number = report.count;
        result = make_process(w, at, &report.processes[report.count++]);
    }
    if (!result)
        result = paths_make(w, &report);
    if (result) {
        why_report_deinit(&report);
        return result;
    }
    array_sort(report.processes, report.count, by_process);
    *ret = report;
    return 0;
}

static void set_word(struct prcb_stack *stack)
{
    if (stack->word && (!strncmp(stack->word, WHY_TASKS_WORD, strlen(WHY_TASKS_WORD)) ||
                        !strcmp(stack->word, "Go futex")))
        stack->word = WHY_TASKS_WORD;
}

void why_set_tasks(struct why_process *process, const struct prcb_tasks *tasks)
{
    process->has_tasks = true;
    process->tasks = *tasks;
    for (size_t i = 0; i < process->cause_count && !tasks->unread; i++) {
        struct why_cause *cause = &process->causes[i];

        for (size_t k = 0; k < cause->part_count; k++)
            set_word(&cause->parts[k].stack);
        for (size_t k = 0; k < cause->pair_count; k++)
            set_word(&cause->pairs[k].stack);
    }
    for (size_t i = 0; i < process->now_count && !tasks->unread; i++)
        set_word(&process->now[i].stack);
}

void why_report_deinit(struct why_report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        for (size_t k = 0; k < report->processes[i].cause_count; k++) {
            free(report->processes[i].causes[k].parts);
            free(report->processes[i].causes[k].objects);
            free(report->processes[i].causes[k].holders);
            free(report->processes[i].causes[k].pairs);
        }
        free(report->processes[i].causes);
        free(report->processes[i].now);
        free(report->processes[i].paths);
    }
    free(report->processes);
    *report = (struct why_report){0};
}
