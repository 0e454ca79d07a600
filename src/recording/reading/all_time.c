/* SPDX-License-Identifier: BSD-2-Clause */
#include "all_time.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "array.h"
#include "error.h"
#include "stretches.h"
#include "table.h"
#include "wide.h"

/* A thread's time so far. */
struct sums {
    uint64_t run_ns, known_ns;
    uint64_t weight; /* of its samples that were not given their part of run_ns yet */
};

struct making {
    const struct recording *recording;
    struct all_time *all;
    struct sums *sums;    /* a thread */
    struct table readies; /* rows of ready time, by thread and cause */
};

static int add_row(struct making *making, const struct all_time_row *row)
{
    making->all->ns += row->ns;
    return array_append(making->all->rows, making->all->count, *row);
}

/* ---- running --------------------------------------------------------------------- */

static int count_weight(sqlite3_stmt *row, void *ctx)
{
    struct making *making = ctx;
    size_t thread = recording_thread(making->recording, sqlite3_column_int64(row, 0));

    if (thread != SIZE_MAX)
        making->sums[thread].weight = (uint64_t)sqlite3_column_int64(row, 1);
    return 0;
}

/* Gives samples their part of what is left of the thread's time, so that no rounding error remains
 * after the last. */
static int add_samples(sqlite3_stmt *statement, void *ctx)
{
    struct making *making = ctx;
    const struct recording *r = making->recording;
    struct all_time_row row = {
        .kind = ALL_TIME_RUNNING,
        .thread = recording_thread(r, sqlite3_column_int64(statement, 0)),
        .stack = recording_stack(r, sqlite3_column_int64(statement, 1)),
        .samples = (uint64_t)sqlite3_column_int64(statement, 2),
        .weight = (uint64_t)sqlite3_column_int64(statement, 3),
    };
    struct sums *sums = row.thread == SIZE_MAX ? NULL : &making->sums[row.thread];

    row.rest = row.stack == SIZE_MAX ? "[no stack]" : NULL;
    if (sums && row.weight && row.weight <= sums->weight) {
        row.ns = wide_scale(sums->run_ns, row.weight, sums->weight);
        sums->run_ns -= row.ns;
        sums->weight -= row.weight;
    }
    return add_row(making, &row);
}

static int add_unsampled(struct making *making, size_t thread)
{
    const struct all_time_row row = {
        .kind = ALL_TIME_RUNNING,
        .thread = thread,
        .stack = SIZE_MAX,
        .rest = "[no samples]",
        .ns = making->sums[thread].run_ns,
    };

    return row.ns ? add_row(making, &row) : 0;
}

/* Where samples count something else than time, none of it is theirs. */
static int add_running(struct making *making, struct prcb_error *err)
{
    const struct recording *r = making->recording;
    int result = 0;

    if (recording_counts_ns(r))
        result = recording_query(r, "SELECT thread, sum(weight) FROM samples GROUP BY thread",
                                 count_weight, making, err);
    if (!result)
        result = recording_query(r,
                                 "SELECT thread, stack, count(*), sum(weight) FROM samples "
                                 "GROUP BY thread, stack",
                                 add_samples, making, err);
    for (size_t i = 0; i < r->thread_count && !result; i++)
        result = add_unsampled(making, i);
    return result;
}

/* ---- ready, waiting, not known ---------------------------------------------------- */

/* The row of a thread's ready time after a cause. NULL: there is none. */
static struct all_time_row *find_ready(const struct making *making, uint64_t key,
                                       const struct all_time_row *wanted)
{
    const struct table_slot *slot = NULL;

    while ((slot = table_next(&making->readies, key, slot))) {
        struct all_time_row *row = &making->all->rows[slot->number - 1];

        if (row->thread == wanted->thread && !strcmp(row->cause, wanted->cause))
            return row;
    }
    return NULL;
}

static int add_ready(struct making *making, const struct stretch *stretch)
{
    struct all_time_row made = {.kind = ALL_TIME_READY,
                                .thread = stretch->thread,
                                .stack = SIZE_MAX,
                                .ns = stretch->end_ns - stretch->start_ns};
    struct all_time_row *row;
    uint64_t key;

    strncpy(made.cause, stretch->cause, sizeof(made.cause) - 1);
    key = table_mix(made.thread, table_hash_text(made.cause));
    row = find_ready(making, key, &made);
    if (!row)
        return add_row(making, &made) ? -ENOMEM
                                      : table_put_number(&making->readies, key, making->all->count);
    row->ns += made.ns;
    making->all->ns += made.ns;
    return 0;
}

static int add_stretch(const struct stretch *stretch, void *ctx)
{
    struct making *making = ctx;
    struct sums *sums = &making->sums[stretch->thread];
    uint64_t ns = stretch->end_ns - stretch->start_ns;

    sums->known_ns += ns;
    sums->run_ns += stretch->kind == STRETCH_RUNNING ? ns : 0;
    return stretch->kind == STRETCH_READY ? add_ready(making, stretch) : 0;
}

static int add_unknown(struct making *making, size_t thread)
{
    const uint64_t life = recording_life(making->recording, thread);
    const uint64_t known = making->sums[thread].known_ns;
    const struct all_time_row row = {
        .kind = ALL_TIME_UNKNOWN,
        .thread = thread,
        .stack = SIZE_MAX,
        .ns = life > known ? life - known : 0,
    };

    return row.ns ? add_row(making, &row) : 0;
}

static int add_waits(struct making *making, struct prcb_error *err)
{
    struct offcpu offcpu;
    int result = offcpu_make(making->recording, &offcpu, err);

    if (result)
        return result;
    for (size_t i = 0; i < offcpu.count && !result; i++) {
        const struct offcpu_row *wait = &offcpu.rows[i];
        struct all_time_row row = {
            .kind = ALL_TIME_WAITING,
            .thread = wait->thread,
            .stack = wait->stack,
            .rest = wait->rest,
            .idle = offcpu_is_idle(wait),
            .ns = wait->ns,
        };

        memcpy(row.cause, wait->cause, sizeof(row.cause));
        result = add_row(making, &row);
    }
    offcpu_free(&offcpu);
    return result;
}

int all_time_make(const struct recording *recording, struct all_time *ret, struct prcb_error *err)
{
    struct all_time all = {0};
    struct making making = {.recording = recording, .all = &all};
    int result;

    if (!recording->has_switches)
        return prcb_fail(err, -ENOENT,
                         "no switches were recorded: how long threads ran is unknown");
    making.sums = calloc(recording->thread_count + 1, sizeof(*making.sums));
    result = making.sums ? stretches_walk(recording, add_stretch, &making, err) : -ENOMEM;
    for (size_t i = 0; i < recording->thread_count && !result; i++)
        result = add_unknown(&making, i);
    if (!result)
        result = add_running(&making, err);
    if (!result)
        result = add_waits(&making, err);
    table_free(&making.readies);
    free(making.sums);
    if (result) {
        all_time_free(&all);
        return result == -ENOMEM ? prcb_fail(err, result, "out of memory") : result;
    }
    *ret = all;
    return 0;
}

void all_time_free(struct all_time *all)
{
    free(all->rows);
    *all = (struct all_time){0};
}

const char *all_time_state(const struct all_time_row *row, char ret[ALL_TIME_STATE])
{
    switch (row->kind) {
    case ALL_TIME_RUNNING:
        return "running";
    case ALL_TIME_READY:
        snprintf(ret, ALL_TIME_STATE, "ready%s%s", *row->cause ? ", after " : "", row->cause);
        return ret;
    case ALL_TIME_WAITING:
        return row->cause;
    default:
        return "[not known]";
    }
}
