/* SPDX-License-Identifier: BSD-2-Clause */
#include "offcpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "stretches.h"

#define TOO_SHORT "[too short]"

/* A row under way. Waits that were chosen stand for more than themselves: what they stand for is
 * known once all are seen. */
struct cell {
    struct offcpu_row row; /* cause "" and count 0: a free place */
    double chosen;         /* ns that its chosen waits stand for */
};

struct making {
    const struct recording *recording;
    struct cell *cells; /* open addressing */
    size_t count, room; /* room: a power of two */
    uint64_t ns;
};

static uint64_t hash_of(const struct offcpu_row *row)
{
    uint64_t hash = row->thread * 0x9e3779b97f4a7c15u ^ row->stack * 0xc2b2ae3d27d4eb4fu;

    for (const char *at = row->cause; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    for (const char *at = row->rest ? row->rest : ""; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

static bool is_same(const struct offcpu_row *a, const struct offcpu_row *b)
{
    return a->thread == b->thread && a->stack == b->stack && !a->rest == !b->rest &&
           (!a->rest || !strcmp(a->rest, b->rest)) && !strcmp(a->cause, b->cause);
}

static struct cell *place_of(struct cell *cells, size_t room, const struct offcpu_row *row)
{
    size_t at = (size_t)hash_of(row) & (room - 1);

    while (cells[at].row.count && !is_same(&cells[at].row, row))
        at = (at + 1) & (room - 1);
    return &cells[at];
}

static struct cell *cell_of(struct making *making, const struct offcpu_row *row)
{
    if (2 * (making->count + 1) > making->room) {
        size_t room = making->room ? 2 * making->room : 256;
        struct cell *grown = calloc(room, sizeof(*grown));

        if (!grown)
            return NULL;
        for (size_t i = 0; i < making->room; i++) {
            if (making->cells[i].row.count)
                *place_of(grown, room, &making->cells[i].row) = making->cells[i];
        }
        free(making->cells);
        making->cells = grown;
        making->room = room;
    }
    return place_of(making->cells, making->room, row);
}

static const char *rest_of(const struct recording *r, const struct recorded_wait *wait)
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
    struct cell *cell = cell_of(making, row);

    if (!cell)
        return -ENOMEM;
    if (!cell->row.count) {
        cell->row = *row;
        cell->row.ns = cell->row.count = 0;
        making->count++;
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
        row.rest = rest_of(making->recording, wait);
        return add(making, &row, ns, 0);
    }
    row.stack = wait->stack;
    row.kind = wait->kind;
    row.word = wait->word;
    if (wait->one_in == 1)
        return add(making, &row, ns, 0);
    /* Its time is among that of all short ones, which those that were chosen divide. */
    rest.rest = TOO_SHORT;
    result = add(making, &rest, ns, 0);
    return result ? result : add(making, &row, 0, (double)ns * (double)wait->one_in);
}

/* The short waits of a thread and cause are divided as the chosen ones of them say. */
static void divide(struct making *making)
{
    for (size_t i = 0; i < making->room; i++) {
        struct cell *cell = &making->cells[i], *rest;
        struct offcpu_row wanted = cell->row;

        if (!cell->row.count || cell->chosen <= 0)
            continue;
        wanted.stack = SIZE_MAX;
        wanted.rest = TOO_SHORT;
        rest = place_of(making->cells, making->room, &wanted);
        rest->chosen -= cell->chosen; /* below zero: what all of them stand for */
    }
    for (size_t i = 0; i < making->room; i++) {
        struct cell *cell = &making->cells[i], *rest;
        struct offcpu_row wanted = cell->row;
        uint64_t share;

        if (!cell->row.count || cell->chosen <= 0)
            continue;
        wanted.stack = SIZE_MAX;
        wanted.rest = TOO_SHORT;
        rest = place_of(making->cells, making->room, &wanted);
        /* What is left of both, so that roundings end with the last. */
        share = (uint64_t)((double)rest->row.ns * (cell->chosen / -rest->chosen) + 0.5);
        share = share < rest->row.ns ? share : rest->row.ns;
        cell->row.ns += share;
        rest->row.ns -= share;
        rest->chosen += cell->chosen;
    }
}

static bool is_idle(const struct offcpu_row *row)
{
    return row->kind && !strcmp(row->kind, "idle");
}

static int by_time(const void *left, const void *right)
{
    const struct offcpu_row *a = left, *b = right;

    if (is_idle(a) != is_idle(b))
        return is_idle(a) ? 1 : -1;
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
    if (result) {
        free(making.cells);
        return result;
    }
    divide(&making);
    for (size_t i = 0; i < making.room; i++) {
        const struct offcpu_row *row = &making.cells[i].row;

        if (!row->count || !row->ns)
            continue;
        offcpu.rows[offcpu.count++] = *row;
        offcpu.known_ns += row->rest ? 0 : row->ns;
        offcpu.idle_ns += is_idle(row) ? row->ns : 0;
    }
    free(making.cells);
    qsort(offcpu.rows, offcpu.count, sizeof(*offcpu.rows), by_time);
    offcpu.ns = making.ns;
    *ret = offcpu;
    return 0;
}

void offcpu_free(struct offcpu *offcpu)
{
    free(offcpu->rows);
    *offcpu = (struct offcpu){0};
}
