/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes a recording as a profile for pprof.
 */
#include <errno.h>

#include "error.h"
#include "export.h"

#ifdef HAVE_PPROF

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sqlite3.h>

#include "all_time.h"
#include "pprof.h"

#define TYPES  2  /* of samples: how many, and what they stand for; then one a cause of waiting */
#define RESTS  12 /* reasons why there is no stack, and states that have none */
#define VALUES (TYPES + PRCB_CAUSE_MAX + 1) /* and all of a thread's time */

struct profiling {
    const struct recording *recording;
    struct pprof *out;
    int64_t key_thread, key_tid, key_pid, key_state;
    int64_t *thread_names;                             /* their texts; 0: not written yet */
    uint64_t *locations;                               /* of a stack, innermost first */
    const char *causes[PRCB_CAUSE_MAX], *rests[RESTS]; /* of waits */
    size_t cause_count, rest_count;
    struct all_time all; /* empty: no switches */
};

/* ---- rows ------------------------------------------------------------------------ */

static void put_functions(struct profiling *p)
{
    const struct recording *r = p->recording;

    for (size_t i = 0; i < r->function_count; i++)
        pprof_function(p->out, i + 1, r->functions[i].name, r->functions[i].file);
}

static void put_mappings(struct profiling *p)
{
    const struct recording *r = p->recording;

    for (size_t i = 0; i < r->map_count; i++) {
        const struct pprof_mapping row = {
            .start = r->maps[i].start,
            .length = r->maps[i].length,
            .file_offset = r->maps[i].file_offset,
            .file = r->maps[i].file,
            .build_id = r->maps[i].build_id,
        };

        pprof_mapping(p->out, i + 1, &row);
    }
}

static void put_locations(struct profiling *p)
{
    const struct recording *r = p->recording;

    for (size_t i = 0; i < r->stack_count; i++) {
        const struct pprof_location row = {
            .mapping = r->stacks[i].map == SIZE_MAX ? 0 : r->stacks[i].map + 1,
            .address = r->stacks[i].address,
            .function = r->stacks[i].function == SIZE_MAX ? 0 : r->stacks[i].function + 1,
        };

        pprof_location(p->out, i + 1, &row);
    }
}

/* Writes a stack of a thread with its values; rest: the number, from 1, of the reason why there
 * is none. state: what the thread did; NULL: not told. */
static int put_stack(struct profiling *p, size_t thread, size_t stack, size_t rest,
                     const char *state, int64_t *values)
{
    const struct recording *r = p->recording;
    struct pprof_label labels[4];
    struct pprof_sample row = {.locations = p->locations,
                               .values = values,
                               .value_count = TYPES + p->cause_count + (p->all.count != 0),
                               .labels = labels};

    for (; stack != SIZE_MAX; stack = r->stacks[stack].caller_index)
        p->locations[row.location_count++] = stack + 1;
    if (rest)
        p->locations[row.location_count++] = r->stack_count + rest;
    if (thread != SIZE_MAX) {
        if (!p->thread_names[thread])
            p->thread_names[thread] = pprof_string(p->out, r->threads[thread].name);
        labels[0] = (struct pprof_label){p->key_thread, p->thread_names[thread], 0};
        labels[1] = (struct pprof_label){p->key_tid, 0, r->threads[thread].tid};
        labels[2] = (struct pprof_label){p->key_pid, 0, r->threads[thread].pid};
        row.label_count = 3;
    }
    if (state)
        labels[row.label_count++] =
            (struct pprof_label){p->key_state, pprof_string(p->out, state), 0};
    return pprof_sample(p->out, &row);
}

static int put_sample(sqlite3_stmt *statement, void *ctx)
{
    struct profiling *p = ctx;
    int64_t values[VALUES] = {sqlite3_column_int64(statement, 2),
                              sqlite3_column_int64(statement, 3)};

    return put_stack(p, recording_thread(p->recording, sqlite3_column_int64(statement, 0)),
                     recording_stack(p->recording, sqlite3_column_int64(statement, 1)), 0, NULL,
                     values);
}

/* Returns the text's number in a list, to which a new text is added; `most` if that is full. */
static size_t number_of(const char **texts, size_t *count, size_t most, const char *text)
{
    size_t i = 0;

    while (i < *count && strcmp(texts[i], text) != 0)
        i++;
    if (i == *count && i < most)
        texts[(*count)++] = text;
    return i;
}

/* Returns the number, from 1, of what stands in a stack's place; 0: there is a stack. */
static size_t rest_of(struct profiling *p, const struct all_time_row *row)
{
    const char *rest = row->kind == ALL_TIME_READY     ? "[ready]"
                       : row->kind == ALL_TIME_UNKNOWN ? "[not known]"
                                                       : row->rest;

    return rest ? number_of(p->rests, &p->rest_count, RESTS, rest) + 1 : 0;
}

/* Without stacks of waits, waits are in no type but that of all time. */
static int put_all_time(struct profiling *p)
{
    int result = 0;

    for (size_t i = 0; i < p->all.count && !result; i++) {
        const struct all_time_row *row = &p->all.rows[i];
        int64_t values[VALUES] = {(int64_t)row->samples, (int64_t)row->weight};
        size_t rest = rest_of(p, row), cause = p->cause_count;
        char state[ALL_TIME_STATE];

        if (row->kind == ALL_TIME_WAITING)
            cause = number_of(p->causes, &p->cause_count, p->cause_count, row->cause);
        if (cause < p->cause_count)
            values[TYPES + cause] = (int64_t)row->ns;
        values[TYPES + p->cause_count] = (int64_t)row->ns;
        if (rest <= RESTS)
            result =
                put_stack(p, row->thread, row->stack, rest, all_time_state(row, state), values);
    }
    return result;
}

/* Writes a function and a location for each reason why there is no stack. */
static void put_rests(struct profiling *p)
{
    for (size_t i = 0; i < p->rest_count; i++) {
        const struct pprof_location row = {.function = p->recording->function_count + i + 1};

        pprof_function(p->out, row.function, p->rests[i], "");
        pprof_location(p->out, p->recording->stack_count + i + 1, &row);
    }
}

/* Returns when the recording was begun: seconds since 1970, from the fact in words. */
static int64_t started(const struct recording *r)
{
    char *text = recording_fact(r, "started");
    struct tm parts = {0};
    int64_t seconds = 0;

    if (text && strptime(text, "%Y-%m-%dT%H:%M:%SZ", &parts))
        seconds = timegm(&parts);
    free(text);
    return seconds;
}

static void put_head(struct profiling *p, const struct pprof_type *type)
{
    const struct recording *r = p->recording;
    char *hz = recording_fact(r, "frequency"), *each = recording_fact(r, "period");
    struct pprof_head head = {.time_ns = started(r) * 1000000000,
                              .duration_ns = (int64_t)(r->end_ns - r->start_ns),
                              .type = *type};

    if (each)
        head.period = atoll(each);
    else if (hz && atoll(hz) > 0)
        head.period = 1000000000 / atoll(hz);
    pprof_head(p->out, &head);
    free(hz);
    free(each);
}

static void put_types(struct profiling *p)
{
    char *event = recording_fact(p->recording, "event");
    bool clock = recording_counts_ns(p->recording);
    struct pprof_type weight;

    pprof_type(p->out, "samples", "count");
    weight = pprof_type(p->out,
                        clock   ? "cpu"
                        : event ? event
                                : "events",
                        clock ? "nanoseconds" : "count");
    free(event);
    for (size_t i = 0; i < p->cause_count; i++) {
        char name[64];

        snprintf(name, sizeof(name), "wait%s%s", *p->causes[i] ? "_" : "", p->causes[i]);
        pprof_type(p->out, name, "nanoseconds");
    }
    if (p->all.count)
        pprof_type(p->out, "time", "nanoseconds");
    put_head(p, &weight);
}

static int put_all(struct profiling *p, struct prcb_error *err)
{
    int result;

    for (size_t i = 0; i < p->all.count && p->recording->has_wait_stacks; i++) {
        if (p->all.rows[i].kind == ALL_TIME_WAITING)
            number_of(p->causes, &p->cause_count, PRCB_CAUSE_MAX, p->all.rows[i].cause);
    }
    put_types(p);
    p->key_thread = pprof_string(p->out, "thread");
    p->key_tid = pprof_string(p->out, "tid");
    p->key_pid = pprof_string(p->out, "pid");
    put_mappings(p);
    put_functions(p);
    put_locations(p);
    p->key_state = pprof_string(p->out, "state");
    result = p->all.count ? put_all_time(p)
                          : recording_query(p->recording,
                                            "SELECT thread, stack, count(*), sum(weight) FROM "
                                            "samples GROUP BY thread, stack",
                                            put_sample, p, err);
    put_rests(p);
    return result;
}

int export_pprof(const struct recording *recording, FILE *out, struct prcb_error *err)
{
    struct profiling p = {.recording = recording};
    int result = 0;

    p.thread_names = calloc(recording->thread_count + 1, sizeof(*p.thread_names));
    p.locations = malloc((recording->stack_count + 2) * sizeof(*p.locations));
    if (!p.thread_names || !p.locations || pprof_open(out, false, &p.out)) {
        free(p.thread_names);
        free(p.locations);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    if (recording->has_switches)
        result = all_time_make(recording, &p.all, err);
    if (!result)
        result = put_all(&p, err);
    if (pprof_close(p.out) && !result)
        result = prcb_fail(err, -ENOMEM, "out of memory");
    all_time_free(&p.all);
    free(p.thread_names);
    free(p.locations);
    return result;
}

#else

int export_pprof(const struct recording *recording, FILE *out, struct prcb_error *err)
{
    return prcb_fail(err, -EOPNOTSUPP,
                     "this prcb was built without protobuf-c or zlib, which --pprof needs (meson "
                     "option 'pprof')");
}

#endif
