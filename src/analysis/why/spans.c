/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Whose waits they were: the time of accounts once more, by the span of a trace that the thread was
 * in. A wait's span is what its thread published when its stack was read, and it is that of the
 * whole wait. What lies between two waits that looks met belongs to the span that both are of, or
 * to nobody: the thread may have been in any other meanwhile. But for waits that were chosen at
 * random, with which their span was copied: of these alone it is known how long they were.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "inside.h"

#define SPANS_MOST 65536 /* of more, the time is nobody's */
#define CELLS_MOST 64    /* of a span: different waits; of more, the stacks are not told */

/* A wait of a span: a part of the report's, or of a cause alone. */
struct span_cell {
    const struct cell *cell; /* NULL: no look met it */
    uint32_t cause;
    int64_t ns;
    uint64_t count;
};

struct span_row {
    struct why_span is;
    int64_t run_ns, ready_ns;
    struct span_cell *cells;
    size_t cell_count, cell_room;
    struct behind behind;
    struct span_row *next;
};

struct spans {
    struct table by_id;
    struct span_row *rows, none, unknown;
    size_t count;
    int error;
};

int why_spans_open(struct why *w)
{
    w->spans = calloc(1, sizeof(*w->spans));
    return w->spans ? 0 : -ENOMEM;
}

static void free_row(struct span_row *row)
{
    free(row->cells);
    behind_free(&row->behind);
}

void spans_close(struct spans *s)
{
    if (!s)
        return;
    while (s->rows) {
        struct span_row *next = s->rows->next;

        free_row(s->rows);
        free(s->rows);
        s->rows = next;
    }
    free_row(&s->none);
    free_row(&s->unknown);
    table_free(&s->by_id);
    free(s);
}

static struct span_row *row_of(struct spans *s, const struct prcb_span_id *id, pid_t pid)
{
    uint64_t hash = table_mix(table_hash(id->trace_id, sizeof(id->trace_id)),
                              table_hash(id->span_id, sizeof(id->span_id)));
    const struct table_slot *slot = NULL;
    struct span_row *row;

    hash = table_mix(hash, (uint32_t)pid);
    while ((slot = table_next(&s->by_id, hash, slot))) {
        row = slot->item;
        if (row->is.pid == pid &&
            !memcmp(row->is.id.trace_id, id->trace_id, sizeof(id->trace_id)) &&
            !memcmp(row->is.id.span_id, id->span_id, sizeof(id->span_id)))
            return row;
    }
    row = s->count < SPANS_MOST ? calloc(1, sizeof(*row)) : NULL;
    if (!row || table_put(&s->by_id, hash, row)) {
        s->error = s->count < SPANS_MOST ? -ENOMEM : s->error;
        free(row);
        return &s->unknown;
    }
    row->is.id = *id;
    row->is.pid = pid;
    row->next = s->rows;
    s->rows = row;
    s->count++;
    return row;
}

/* Finds whose wait it is. NULL: that is not known. */
static struct span_row *row_met(struct spans *s, const struct prcb_account *a,
                                const struct prcb_stack *stack)
{
    struct span_row *row;

    if (stack->span_state <= PRCB_SPAN_UNREAD)
        return NULL;
    if (stack->span_state == PRCB_SPAN_NONE)
        return &s->none;
    row = row_of(s, &stack->span, why_process_of(a));
    row->is.tid = a->tid;
    row->is.waits++;
    memcpy(row->is.comm, a->comm, sizeof(row->is.comm));
    return row;
}

void spans_met(struct why *w, struct thread *thread, const struct prcb_account *a,
               const struct prcb_stack *stack)
{
    struct span_row *row = w->spans ? row_met(w->spans, a, stack) : NULL;

    if (!row)
        return;
    thread->span_of = a->switches;
    thread->span = row;
}

static void give(struct spans *s, struct span_row *row, uint32_t cause, const struct cell *cell,
                 int64_t ns)
{
    struct span_cell fresh = {.cause = cause, .ns = ns, .count = 1};

    if (!ns)
        return;
    if (row->cell_count >= CELLS_MOST || (cell && cell->part.kind != WHY_STACK))
        cell = NULL;
    for (size_t i = 0; i < row->cell_count; i++) {
        if (row->cells[i].cell == cell && row->cells[i].cause == cause) {
            row->cells[i].ns += ns;
            return;
        }
    }
    fresh.cell = cell;
    if (array_add(row->cells, row->cell_count, row->cell_room, fresh))
        s->error = -ENOMEM;
}

/* What an account grew by, and how its waits at both ends divide that. */
struct growth {
    struct process before, after;
    int64_t ns[PRCB_CAUSE_MAX];
};

static bool is_off(const struct prcb_account *a)
{
    return !(a->flags & (PRCB_ACCOUNT_RUNNING | PRCB_ACCOUNT_EXITED | PRCB_ACCOUNT_ORPHAN));
}

/* A wait between two looks. */
struct span_told {
    struct span_row *row;
    const struct cell *cell;
    uint32_t cause;
    int64_t ns;
};

/* Its time is a part of what the account grows by until the next look; or grew by until the last
 * one, if it was over by then and not read yet. */
int spans_chosen(struct why *w, struct thread *thread, const struct prcb_chosen *chosen,
                 const struct prcb_stack *stack, const struct cell *cell)
{
    const struct prcb_account *last = &thread->last;
    struct span_told told = {NULL, cell, chosen->cause, (int64_t)chosen->ns};

    bool over =
        chosen->switches < last->switches || (chosen->switches == last->switches && !is_off(last));

    /* A look that saw a part of it has given that to nobody. */
    if (!w->spans || !stack || (chosen->switches <= last->switches && !over) ||
        (over && !thread->span_between))
        return 0;
    told.row = row_met(w->spans, last, stack);
    if (!told.row)
        return w->spans->error;
    if (!over)
        return array_add(thread->told, thread->told_count, thread->told_room, told);
    give(w->spans, thread->span_between, told.cause, NULL, -told.ns);
    give(w->spans, told.row, told.cause, told.cell, told.ns);
    return w->spans->error;
}

static uint64_t open_ready(const struct prcb_account *a)
{
    return a->present & PRCB_HAS_OPEN && is_off(a) && !why_is_wait(a) ? a->open.ns : 0;
}

static uint64_t open_of(const struct prcb_account *a)
{
    return a->present & PRCB_HAS_OPEN && why_is_wait(a) && a->open.cause < PRCB_CAUSE_MAX
               ? a->open.ns
               : 0;
}

/* The wait of the look before is over. Its rest is what the cause grew by, if that had no other
 * wait since; it may be less than nothing, for the end of the wait may have been ready time. */
static void give_end(struct spans *s, struct thread *thread, const struct prcb_account *a,
                     struct growth *g)
{
    const struct prcb_account *last = &thread->last;
    uint32_t cause = last->open.cause;
    uint64_t others;
    int64_t rest;

    if (!open_of(last) || !(a->present & PRCB_HAS_WAITS))
        return;
    others = g->after.waits[cause].count - g->before.waits[cause].count;
    others -= others && open_of(a) && a->open.cause == cause;
    rest = g->ns[cause] - (a->open.cause == cause ? (int64_t)open_of(a) : 0);
    if (others && rest >= 0)
        return;
    give(s, thread->span_last, cause, thread->span_cell, rest);
    g->ns[cause] -= rest;
}

/* Waits in between whose span is known. */
static void give_told(struct spans *s, const struct thread *thread, struct growth *g)
{
    for (size_t i = 0; i < thread->told_count; i++) {
        const struct span_told *told = &thread->told[i];

        if (told->ns > g->ns[told->cause])
            continue;
        give(s, told->row, told->cause, told->cell, told->ns);
        g->ns[told->cause] -= told->ns;
    }
}

/* The thread has not run since the look before. */
static void divide_off(struct spans *s, const struct thread *thread, const struct prcb_account *a,
                       struct span_row *now, const struct growth *g)
{
    for (uint32_t i = 0; i < PRCB_CAUSE_MAX; i++)
        give(s, now, i,
             open_of(a) && i == a->open.cause ? thread->cell
             : i == thread->last.open.cause   ? thread->span_cell
                                              : NULL,
             g->ns[i]);
    now->ready_ns += (int64_t)(g->after.ready_ns - g->before.ready_ns);
}

/* Whose time it is between two looks that both met the thread off. */
static struct span_row *between_of(struct spans *s, const struct thread *thread,
                                   struct span_row *now)
{
    return thread->span_last == now && now != &s->none ? now : &s->unknown;
}

/* Whose ready time is over: of the wait before if the thread ran once since, for it did not change
 * its memory before that. */
static struct span_row *ready_over(struct spans *s, const struct thread *thread,
                                   const struct prcb_account *a, struct span_row *now)
{
    return is_off(&thread->last) && is_off(a) && a->switches == thread->last.switches + 1
               ? thread->span_last
               : between_of(s, thread, now);
}

static void divide(struct spans *s, struct thread *thread, const struct prcb_account *a,
                   struct span_row *now, struct growth *g)
{
    struct span_row *between = thread->span_between = between_of(s, thread, now);
    int64_t ready = (int64_t)(g->after.ready_ns - g->before.ready_ns);

    give_end(s, thread, a, g);
    if (open_of(a)) {
        give(s, now, a->open.cause, thread->cell, (int64_t)open_of(a));
        g->ns[a->open.cause] -= (int64_t)open_of(a);
    }
    give_told(s, thread, g);
    now->ready_ns += (int64_t)open_ready(a);
    ready_over(s, thread, a, now)->ready_ns += ready - (int64_t)open_ready(a);
    between->run_ns += (int64_t)(g->after.run_ns - g->before.run_ns);
    for (uint32_t i = 0; i < PRCB_CAUSE_MAX; i++)
        give(s, between, i, NULL, g->ns[i]);
}

/* A thread that has no processor does not change its memory either. */
static void meet_ready(struct why *w, struct thread *thread, const struct prcb_account *a)
{
    struct prcb_stack stack = {.size = sizeof(stack)};

    if (open_ready(a) >= w->source.min_wait_ns && thread->span_of != a->switches &&
        !(a->flags & PRCB_ACCOUNT_KTHREAD) && !w->source.read(w->source.ctx, a, &stack))
        spans_met(w, thread, a, &stack);
}

int spans_take(struct why *w, struct thread *thread, const struct prcb_account *a)
{
    bool first = !thread->last.key, still;
    struct spans *s = w->spans;
    struct span_row *now;
    struct growth g = {0};
    int result;

    if (!s)
        return 0;
    meet_ready(w, thread, a);
    now = is_off(a) && thread->span && thread->span_of == a->switches ? thread->span : &s->unknown;
    if (!thread->span_last)
        thread->span_last = &s->unknown;
    why_add_figures(&g.before, &thread->last);
    why_add_figures(&g.after, a);
    for (uint32_t i = 0; i < PRCB_CAUSE_MAX; i++)
        g.ns[i] = (int64_t)(g.after.waits[i].ns - g.before.waits[i].ns);
    still = !first && thread->last.switches == a->switches && is_off(&thread->last) && is_off(a);
    result = behind_take(&w->source, a, &thread->behind,
                         first   ? NULL
                         : still ? &now->behind
                                 : &ready_over(s, thread, a, now)->behind);
    thread->span_between = NULL;
    if (still)
        divide_off(s, thread, a, now, &g);
    else
        divide(s, thread, a, now, &g);
    thread->span_last = now;
    thread->span_cell = thread->cell;
    thread->told_count = 0;
    return result ? result : s->error;
}

/* ---- the report ---- */

static int by_ns(const void *left, const void *right)
{
    const struct why_part *a = left, *b = right;

    return a->ns != b->ns ? (a->ns < b->ns ? 1 : -1)
                          : (a->cause > b->cause) - (a->cause < b->cause);
}

static int make_span(const struct span_row *row, struct why_span *ret)
{
    *ret = row->is;
    ret->run_ns = row->run_ns > 0 ? (uint64_t)row->run_ns : 0;
    ret->ready_ns = row->ready_ns > 0 ? (uint64_t)row->ready_ns : 0;
    ret->ns = ret->run_ns + ret->ready_ns;
    ret->parts = calloc(row->cell_count + 1, sizeof(*ret->parts));
    ret->behind = behind_rows(&row->behind, ret->ready_ns, &ret->behind_count);
    if (!ret->parts || !ret->behind)
        return -ENOMEM;
    for (size_t i = 0; i < row->cell_count; i++) {
        const struct span_cell *cell = &row->cells[i];
        struct why_part *part = &ret->parts[ret->part_count];

        if (cell->ns <= 0)
            continue;
        *part = (struct why_part){.kind = WHY_SHORT, .cause = cell->cause};
        if (cell->cell)
            *part = cell->cell->part;
        part->ns = (uint64_t)cell->ns;
        ret->ns += part->ns;
        ret->part_count++;
    }
    array_sort(ret->parts, ret->part_count, by_ns);
    return 0;
}

static int by_id(const void *left, const void *right)
{
    const struct why_span *a = left, *b = right;

    return memcmp(&a->id, &b->id, sizeof(a->id));
}

/* Sums the spans of each trace, which stand beside one another. */
static void sum_traces(struct why_spans *spans)
{
    for (size_t i = 0, end; i < spans->count; i = end) {
        uint64_t ns = 0;

        for (end = i; end < spans->count &&
                      !memcmp(spans->rows[end].id.trace_id, spans->rows[i].id.trace_id, 16);
             end++)
            ns += spans->rows[end].ns;
        for (size_t k = i; k < end; k++)
            spans->rows[k].trace_ns = ns;
    }
}

static int by_trace(const void *left, const void *right)
{
    const struct why_span *a = left, *b = right;
    int order;

    if (a->trace_ns != b->trace_ns)
        return a->trace_ns < b->trace_ns ? 1 : -1;
    order = memcmp(a->id.trace_id, b->id.trace_id, sizeof(a->id.trace_id));
    return order            ? order
           : a->ns != b->ns ? (a->ns < b->ns ? 1 : -1)
                            : memcmp(a->id.span_id, b->id.span_id, sizeof(a->id.span_id));
}

int why_spans_make(const struct why *w, struct why_spans *ret)
{
    struct why_spans spans = {.rows = calloc(w->spans->count + 1, sizeof(*spans.rows))};
    int result = spans.rows ? 0 : -ENOMEM;

    for (const struct span_row *row = w->spans->rows; row && !result; row = row->next) {
        result = make_span(row, &spans.rows[spans.count]);
        spans.count++;
    }
    if (!result)
        result = make_span(&w->spans->none, &spans.none);
    if (!result)
        result = make_span(&w->spans->unknown, &spans.unknown);
    if (result) {
        why_spans_deinit(&spans);
        return result;
    }
    array_sort(spans.rows, spans.count, by_id);
    sum_traces(&spans);
    array_sort(spans.rows, spans.count, by_trace);
    *ret = spans;
    return 0;
}

static void free_span(struct why_span *span)
{
    free(span->parts);
    free(span->behind);
}

void why_spans_deinit(struct why_spans *spans)
{
    for (size_t i = 0; i < spans->count; i++)
        free_span(&spans->rows[i]);
    free(spans->rows);
    free_span(&spans->none);
    free_span(&spans->unknown);
    *spans = (struct why_spans){0};
}
