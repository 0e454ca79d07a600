/* SPDX-License-Identifier: BSD-2-Clause */
#include "columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "data.h"

#define NUMBER_MAX 10 /* bytes of one */

int page_column_put(struct page_column *column, uint64_t number)
{
    if (array_reserve(column->bytes, column->length, column->room, NUMBER_MAX))
        return -ENOMEM;
    for (; number >= 0x80; number >>= 7)
        column->bytes[column->length++] = (uint8_t)(number | 0x80);
    column->bytes[column->length++] = (uint8_t)number;
    column->count++;
    return 0;
}

struct folding {
    uint64_t cell_ns;
    uint64_t cell;   /* the one that is being filled, by number */
    uint64_t filled; /* ns of it that rows have told of */
    uint64_t ns[PAGE_STATES];
    uint16_t cpus[PAGE_STATES];
    struct page_stretch row; /* not yet handed on; ns 0: none */
    int (*fn)(const struct page_stretch *row, void *ctx);
    void *ctx;
};

static int hand_on(struct folding *f, uint64_t start, uint64_t ns, uint16_t state, uint16_t cpu)
{
    int result = 0;

    if (f->row.ns && f->row.state == state && f->row.cpu == cpu &&
        f->row.start_ns + f->row.ns == start) {
        f->row.ns += ns;
        return 0;
    }
    if (f->row.ns)
        result = f->fn(&f->row, f->ctx);
    f->row.start_ns = start;
    f->row.ns = ns;
    f->row.state = state;
    f->row.cpu = cpu;
    return result;
}

/* Closes a cell that is complete, or that is the thread's last. */
static int close_cell(struct folding *f)
{
    uint16_t most = 0;
    int result;

    if (!f->filled)
        return 0;
    for (uint16_t i = 1; i < PAGE_STATES; i++) {
        if (f->ns[i] > f->ns[most])
            most = i;
    }
    result = f->ns[most] ? hand_on(f, f->cell * f->cell_ns, f->cell_ns, most, f->cpus[most]) : 0;
    memset(f->ns, 0, sizeof(f->ns));
    f->filled = 0;
    return result;
}

static void add_part(struct folding *f, const struct page_stretch *row, uint64_t ns)
{
    if (ns >= f->ns[row->state])
        f->cpus[row->state] = row->cpu;
    f->ns[row->state] += ns;
    f->filled += ns;
}

static int fold_row(struct folding *f, const struct page_stretch *row)
{
    uint64_t start = row->start_ns, end = row->start_ns + row->ns, whole;
    int result = 0;

    if (end < start) /* damaged */
        return 0;
    if (start / f->cell_ns != f->cell) {
        result = close_cell(f);
        f->cell = start / f->cell_ns;
    }
    if (result)
        return result;
    if (start % f->cell_ns) {
        uint64_t to = (f->cell + 1) * f->cell_ns;

        add_part(f, row, (end < to ? end : to) - start);
        if (end < to)
            return 0;
        result = close_cell(f);
        start = to;
    } else if (f->filled) { /* in a damaged recording the stretch before ended here */
        result = close_cell(f);
    }
    whole = (end - start) / f->cell_ns * f->cell_ns;
    if (!result && whole)
        result = hand_on(f, start, whole, row->state, row->cpu);
    start += whole;
    f->cell = start / f->cell_ns;
    if (end > start)
        add_part(f, row, end - start);
    return result;
}

int page_fold(const struct page_stretch *rows, size_t count, uint64_t cell_ns,
              int (*fn)(const struct page_stretch *row, void *ctx), void *ctx)
{
    struct folding f = {.cell_ns = cell_ns, .fn = fn, .ctx = ctx};
    int result = 0;

    if (count)
        f.row.thread = rows->thread;
    for (size_t i = 0; i < count && !result; i++)
        result = fold_row(&f, &rows[i]);
    if (!result)
        result = close_cell(&f);
    return !result && f.row.ns ? fn(&f.row, ctx) : result;
}
