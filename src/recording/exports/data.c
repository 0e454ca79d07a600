/* SPDX-License-Identifier: BSD-2-Clause */
#include "data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "array.h"
#include "cause.h"
#include "error.h"
#include "stretches.h"
#include "table.h"

/* ---- stretches ------------------------------------------------------------------- */

static char kind_of(enum stretch_kind kind)
{
    return kind == STRETCH_RUNNING ? 'r' : kind == STRETCH_READY ? 'q' : 'w';
}

static uint16_t state_of(struct page_data *d, const struct stretch *stretch)
{
    char kind = kind_of(stretch->kind);
    struct page_state *state = NULL;

    for (size_t i = 0; i < d->state_count; i++) {
        state = &d->states[i];
        if (state->kind == kind && state->reason == stretch->reason &&
            !strncmp(state->cause, stretch->cause, sizeof(state->cause) - 1))
            return (uint16_t)i;
    }
    if (d->state_count == PAGE_STATES)
        return 0;
    state = &d->states[d->state_count];
    *state = (struct page_state){.kind = kind, .reason = stretch->reason};
    strncpy(state->cause, stretch->cause, sizeof(state->cause) - 1);
    return (uint16_t)d->state_count++;
}

/* Finds where the thread waited, and whether it idles there: not where it is held up, whatever the
 * stack shows. 0: not known, or a sample of many short waits, which does not tell where a single
 * one was. */
static uint32_t place_of(const struct page_data *d, const struct stretch *stretch)
{
    const struct recorded_wait *wait =
        stretch->kind == STRETCH_WAITING
            ? recording_wait(d->recording, stretch->thread, stretch->start_ns, stretch->end_ns)
            : NULL;

    if (!wait || wait->stack == SIZE_MAX || wait->one_in > 1)
        return 0;
    return 2 * d->node_of_stack[wait->stack] +
           (!strcmp(wait->kind, "idle") && cause_name_may_idle(stretch->cause));
}

static int add_stretch(const struct stretch *stretch, void *ctx)
{
    struct page_data *d = ctx;
    uint64_t origin = d->recording->start_ns;
    struct page_stretch row = {
        .start_ns = stretch->start_ns > origin ? stretch->start_ns - origin : 0,
        .ns = stretch->end_ns - stretch->start_ns,
        .thread = (uint32_t)stretch->thread,
        .state = state_of(d, stretch),
        .cpu = stretch->cpu < PAGE_NO_CPU ? (uint16_t)stretch->cpu : PAGE_NO_CPU,
        .place = place_of(d, stretch),
        .waker = stretch->kind == STRETCH_WAITING && stretch->waker < d->recording->waker_count
                     ? (uint32_t)stretch->waker + 1
                     : 0,
    };

    if (array_append(d->stretches, d->stretch_count, row))
        return -ENOMEM;
    return stretch->kind == STRETCH_RUNNING ? array_append(d->run_order, d->run_count, row.thread)
                                            : 0;
}

/* Sorts by thread; the stretches of each thread are in the order of time already. */
static int sort_stretches(struct page_data *d)
{
    size_t threads = d->recording->thread_count, at = 0;
    size_t *places = calloc(threads + 1, sizeof(*places));
    struct page_stretch *sorted = malloc((d->stretch_count + 1) * sizeof(*sorted));

    if (!places || !sorted) {
        free(places);
        free(sorted);
        return -ENOMEM;
    }
    for (size_t i = 0; i < d->stretch_count; i++)
        places[d->stretches[i].thread]++;
    for (size_t i = 0; i < threads; i++) {
        size_t count = places[i];

        places[i] = at;
        at += count;
    }
    for (size_t i = 0; i < d->stretch_count; i++)
        sorted[places[d->stretches[i].thread]++] = d->stretches[i];
    free(places);
    free(d->stretches);
    d->stretches = sorted;
    return 0;
}

/* ---- stacks: a tree of functions --------------------------------------------------- */

static int find_node(struct page_data *d, struct table *table, uint32_t caller, uint32_t function,
                     uint32_t *ret)
{
    uint64_t key = (uint64_t)caller << 32 | function;
    size_t node = table_find_number(table, key);

    if (!node) {
        node = d->node_count;
        if (table_put_number(table, key, node))
            return -ENOMEM;
        d->nodes[2 * node] = caller;
        d->nodes[2 * node + 1] = function;
        d->node_count++;
    }
    *ret = (uint32_t)node;
    return 0;
}

/* Node 0 is the root: no stack. A function has twice its index, plus one in kernel mode; the
 * index behind the last is the unknown function. */
static int make_nodes(struct page_data *d)
{
    const struct recording *r = d->recording;
    struct table table = {0};
    int result = 0;

    d->nodes = calloc(r->stack_count + 1, 2 * sizeof(*d->nodes));
    d->node_of_stack = malloc((r->stack_count + 1) * sizeof(*d->node_of_stack));
    if (!d->nodes || !d->node_of_stack)
        return -ENOMEM;
    d->node_count = 1;
    for (size_t i = 0; i < r->stack_count && !result; i++) {
        const struct recorded_stack *stack = &r->stacks[i];
        size_t function = stack->function == SIZE_MAX ? r->function_count : stack->function;
        uint32_t caller =
            stack->caller_index == SIZE_MAX ? 0 : d->node_of_stack[stack->caller_index];

        result = find_node(d, &table, caller, (uint32_t)(2 * function + (stack->kernel ? 1 : 0)),
                           &d->node_of_stack[i]);
    }
    table_free(&table);
    return result;
}

static int add_sample(sqlite3_stmt *row, void *ctx)
{
    struct page_data *d = ctx;
    const struct recording *r = d->recording;
    uint64_t time = (uint64_t)sqlite3_column_int64(row, 0);
    size_t thread = recording_thread(r, sqlite3_column_int64(row, 1));
    size_t stack = recording_stack(r, sqlite3_column_int64(row, 2));

    return array_append(d->samples, d->sample_count,
                        (struct page_sample){
                            .time_ns = time > r->start_ns ? time - r->start_ns : 0,
                            .count = 1,
                            .weight = (uint64_t)sqlite3_column_int64(row, 3),
                            .thread = (uint32_t)(thread == SIZE_MAX ? r->thread_count : thread),
                            .node = stack == SIZE_MAX ? 0 : d->node_of_stack[stack],
                        });
}

int page_data_open(const struct recording *recording, const struct page_names *names,
                   struct page_data *ret, struct prcb_error *err)
{
    struct page_data d = {.recording = recording, .names = names};
    int result;

    d.states[d.state_count++] = (struct page_state){.kind = '?', .reason = -1};
    result = report_make(recording, REPORT_CELLS, &d.report, err);
    if (!result && make_nodes(&d))
        result = -ENOMEM;
    if (!result)
        result = stretches_walk(recording, add_stretch, &d, err);
    if (!result && sort_stretches(&d))
        result = -ENOMEM;
    if (!result)
        result =
            recording_query(recording,
                            "SELECT time_ns, thread, stack, weight FROM samples ORDER BY time_ns, "
                            "rowid",
                            add_sample, &d, err);
    if (result) {
        page_data_close(&d);
        return result == -ENOMEM ? prcb_fail(err, result, "out of memory") : result;
    }
    *ret = d;
    return 0;
}

void page_data_close(struct page_data *d)
{
    report_free(&d->report);
    free(d->stretches);
    free(d->run_order);
    free(d->samples);
    free(d->node_of_stack);
    free(d->nodes);
    memset(d, 0, sizeof(*d));
}
