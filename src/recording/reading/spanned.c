/* SPDX-License-Identifier: BSD-2-Clause */
#include "spanned.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "error.h"
#include "stretches.h"
#include "table.h"

struct making {
    const struct recording *recording;
    struct spanned result;
    size_t room;
    struct table places; /* of the rows */
};

bool spanned_same(const struct spanned_row *a, const struct spanned_row *b)
{
    return !strcmp(a->span_id, b->span_id) && !strcmp(a->trace_id, b->trace_id);
}

static uint64_t key_of(const struct spanned_row *row)
{
    return table_mix(table_mix(table_hash_text(row->span_id), table_hash_text(row->cause)),
                     table_mix(row->thread, row->stack));
}

static struct spanned_row *find(struct making *making, const struct spanned_row *row)
{
    const struct table_slot *slot = NULL;
    uint64_t key = key_of(row);

    while ((slot = table_next(&making->places, key, slot))) {
        struct spanned_row *at = &making->result.rows[slot->number - 1];

        if (at->thread == row->thread && at->stack == row->stack &&
            !strcmp(at->cause, row->cause) && spanned_same(at, row))
            return at;
    }
    return NULL;
}

static int add_stretch(const struct stretch *stretch, void *ctx)
{
    struct making *making = ctx;
    uint64_t ns = stretch->end_ns - stretch->start_ns;
    struct spanned_row row = {.thread = stretch->thread, .reason = stretch->reason}, *at;
    const struct recorded_wait *wait;

    if (stretch->kind != STRETCH_WAITING)
        return 0;
    wait = recording_wait(making->recording, stretch->thread, stretch->start_ns, stretch->end_ns);
    if (!wait || !*wait->span_id)
        return 0;
    strncpy(row.cause, stretch->cause, sizeof(row.cause) - 1);
    row.trace_id = wait->trace_id;
    row.span_id = wait->span_id;
    row.stack = wait->stack;
    row.word = wait->word;
    at = find(making, &row);
    if (!at) {
        if (array_add(making->result.rows, making->result.count, making->room, row) ||
            table_put_number(&making->places, key_of(&row), making->result.count))
            return -ENOMEM;
        at = &making->result.rows[making->result.count - 1];
    }
    at->ns += ns;
    at->count++;
    making->result.ns += ns;
    return 0;
}

static int by_id(const void *left, const void *right)
{
    const struct spanned_row *a = left, *b = right;
    int order = strcmp(a->span_id, b->span_id);

    return order ? order : strcmp(a->trace_id, b->trace_id);
}

static int by_time(const void *left, const void *right)
{
    const struct spanned_row *a = left, *b = right;
    int order;

    if (a->span_ns != b->span_ns)
        return a->span_ns < b->span_ns ? 1 : -1;
    order = by_id(a, b);
    if (order)
        return order;
    return a->ns != b->ns           ? (a->ns < b->ns ? 1 : -1)
           : a->thread != b->thread ? (a->thread > b->thread) - (a->thread < b->thread)
                                    : (a->stack > b->stack) - (a->stack < b->stack);
}

static void sum(struct spanned *s)
{
    array_sort(s->rows, s->count, by_id);
    for (size_t i = 0, end; i < s->count; i = end) {
        uint64_t ns = 0;

        for (end = i; end < s->count && spanned_same(&s->rows[i], &s->rows[end]); end++)
            ns += s->rows[end].ns;
        for (size_t k = i; k < end; k++)
            s->rows[k].span_ns = ns;
        s->spans++;
    }
    array_sort(s->rows, s->count, by_time);
}

int spanned_make(const struct recording *recording, struct spanned *ret, struct prcb_error *err)
{
    struct making making = {.recording = recording};
    int result = recording->has_spans ? stretches_walk(recording, add_stretch, &making, err) : 0;

    table_free(&making.places);
    if (result) {
        spanned_free(&making.result);
        return result == -ENOMEM ? prcb_fail(err, result, "out of memory") : result;
    }
    sum(&making.result);
    *ret = making.result;
    return 0;
}

void spanned_free(struct spanned *spanned)
{
    free(spanned->rows);
    *spanned = (struct spanned){0};
}
