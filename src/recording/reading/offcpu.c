/* SPDX-License-Identifier: BSD-2-Clause */
#include "offcpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cause.h"
#include "error.h"
#include "stretches.h"
#include "table.h"

#define TOO_SHORT "[too short]"

/* A row in the making. Waits that were chosen stand for more than themselves: for how much is
 * known once all are seen. */
struct cell {
    struct offcpu_row row;
    double chosen; /* ns that its chosen waits stand for */
};

struct making {
    const struct recording *recording;
    struct cell *cells;
    size_t count;
    struct table places; /* of the cells, by what is_same looks at */
    uint64_t ns;
};

static uint64_t key_of(const struct offcpu_row *row)
{
    return table_mix(table_mix(row->thread, row->stack), table_hash_text(row->cause));
}

static bool is_same(const struct offcpu_row *a, const struct offcpu_row *b)
{
    return a->thread == b->thread && a->stack == b->stack && !a->rest == !b->rest &&
           (!a->rest || !strcmp(a->rest, b->rest)) && !strcmp(a->cause, b->cause);
}

/* NULL: there is none. */
static struct cell *find(const struct making *making, const struct offcpu_row *row)
{
    const struct table_slot *slot = NULL;
    uint64_t key = key_of(row);

    while ((slot = table_next(&making->places, key, slot))) {
        if (is_same(&making->cells[slot->number - 1].row, row))
            return &making->cells[slot->number - 1];
    }
    return NULL;
}

const char *offcpu_rest(const struct recording *r, const struct recorded_wait *wait)
{
    static const struct {
        const char *missing, *rest;
    } words[] = {
        {"budget", "[not read]"}, {"kernel", "[kernel]"}, {"permission", "[no permission]"},
        {"no room", "[no room]"}, {"ended", "[ended]"},
    };

    if (!wait)
        return r->has_wait_stacks ? TOO_SHORT : "[no stacks]";
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        if (!strcmp(wait->missing, words[i].missing))
            return words[i].rest;
    }
    return "[unreadable]";
}

static int add(struct making *making, const struct offcpu_row *row, uint64_t ns, double chosen)
{
    struct cell *cell = find(making, row);

    if (!cell) {
        if (array_append(making->cells, making->count, (struct cell){.row = *row}) ||
            table_put_number(&making->places, key_of(row), making->count))
            return -ENOMEM;
        cell = &making->cells[making->count - 1];
    }
    cell->row.ns += ns;
    cell->row.count++;
    cell->chosen += chosen;
    return 0;
}

static int add_stretch(const struct stretch *stretch, void *ctx)
{
    struct making *making = ctx;
    uint64_t ns = stretch->end_ns - stretch->start_ns;
    const struct recorded_wait *wait;
    struct offcpu_row row = {.thread = stretch->thread, .reason = stretch->reason};
    struct offcpu_row rest;
    int result;

    if (stretch->kind != STRETCH_WAITING)
        return 0;
    making->ns += ns;
    wait = recording_wait(making->recording, stretch->thread, stretch->start_ns, stretch->end_ns);
    strncpy(row.cause, stretch->cause, sizeof(row.cause) - 1);
    row.stack = SIZE_MAX;
    rest = row;
    if (!wait || wait->stack == SIZE_MAX) {
        row.rest = offcpu_rest(making->recording, wait);
        return add(making, &row, ns, 0);
    }
    row.stack = wait->stack;
    row.kind = wait->kind;
    row.word = wait->word;
    if (row.kind && strcmp(row.kind, "blocked") && !cause_name_may_idle(row.cause)) {
        row.kind = "blocked";
        row.word = "";
    }
    if (wait->one_in == 1)
        return add(making, &row, ns, 0);
    /* Its time belongs to that of all short waits, which is divided by those that were chosen. */
    rest.rest = TOO_SHORT;
    result = add(making, &rest, ns, 0);
    return result ? result : add(making, &row, 0, (double)ns * (double)wait->one_in);
}

/* Divides the short waits of a thread and cause in proportion to the chosen ones of them. */
static void divide(struct making *making)
{
    for (size_t i = 0; i < making->count; i++) {
        struct cell *cell = &making->cells[i], *rest;
        struct offcpu_row wanted = cell->row;

        if (cell->chosen <= 0)
            continue;
        wanted.stack = SIZE_MAX;
        wanted.rest = TOO_SHORT;
        rest = find(making, &wanted);
        rest->chosen -= cell->chosen; /* below zero: what all of them stand for */
    }
    for (size_t i = 0; i < making->count; i++) {
        struct cell *cell = &making->cells[i], *rest;
        struct offcpu_row wanted = cell->row;
        uint64_t share;

        if (cell->chosen <= 0)
            continue;
        wanted.stack = SIZE_MAX;
        wanted.rest = TOO_SHORT;
        rest = find(making, &wanted);
        /* The share is of what is left of both, so that no rounding error remains after the
         * last. */
        share = (uint64_t)((double)rest->row.ns * (cell->chosen / -rest->chosen) + 0.5);
        share = share < rest->row.ns ? share : rest->row.ns;
        cell->row.ns += share;
        rest->row.ns -= share;
        rest->chosen += cell->chosen;
    }
}

bool offcpu_is_idle(const struct offcpu_row *row)
{
    return row->kind && !strcmp(row->kind, "idle");
}

static int by_time(const void *left, const void *right)
{
    const struct offcpu_row *a = left, *b = right;

    if (offcpu_is_idle(a) != offcpu_is_idle(b))
        return offcpu_is_idle(a) ? 1 : -1;
    if (a->ns != b->ns)
        return a->ns < b->ns ? 1 : -1;
    return a->thread != b->thread ? (a->thread > b->thread) - (a->thread < b->thread)
                                  : (a->stack > b->stack) - (a->stack < b->stack);
}

int offcpu_make(const struct recording *recording, struct offcpu *ret, struct prcb_error *err)
{
    struct making making = {.recording = recording};
    struct offcpu offcpu = {0};
    int result = stretches_walk(recording, add_stretch, &making, err);

    if (!result) {
        offcpu.rows = calloc(making.count + 1, sizeof(*offcpu.rows));
        result = offcpu.rows ? 0 : prcb_fail(err, -ENOMEM, "out of memory");
    }
    if (!result)
        divide(&making);
    for (size_t i = 0; !result && i < making.count; i++) {
        const struct offcpu_row *row = &making.cells[i].row;

        if (!row->ns)
            continue;
        offcpu.rows[offcpu.count++] = *row;
        offcpu.known_ns += row->rest ? 0 : row->ns;
        offcpu.idle_ns += offcpu_is_idle(row) ? row->ns : 0;
    }
    table_free(&making.places);
    free(making.cells);
    if (result)
        return result;
    array_sort(offcpu.rows, offcpu.count, by_time);
    offcpu.ns = making.ns;
    *ret = offcpu;
    return 0;
}

void offcpu_free(struct offcpu *offcpu)
{
    free(offcpu->rows);
    *offcpu = (struct offcpu){0};
}
