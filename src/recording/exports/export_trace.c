/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Trace events: process 0 has a line for each processor with the thread that ran there;
 * each thread has a line with its stretches, running, ready, waiting. Inside of running
 * stretches lie the sampled functions, one within the other as they called each other.
 *
 * Readers order events by time and keep those of one moment as they stand in the file:
 * what lies in something else comes after it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "error.h"
#include "export.h"
#include "json_stream.h"
#include "report.h"
#include "stretches.h"

#define DEPTH_MAX 64

/* A sample whose stretch has not ended yet. */
struct pending {
    uint64_t time_ns;
    size_t stack; /* index */
};

/* The functions that a thread is in, begun and not ended. */
struct open_stack {
    size_t function[DEPTH_MAX]; /* outermost first */
    size_t depth;
    uint64_t until; /* time of its last sample */
    struct pending *pending;
    size_t pending_count;
};

struct tracing {
    const struct recording *recording;
    struct json_stream json;
    struct open_stack **open; /* a thread each; NULL: none */
    uint64_t gap_ns;          /* samples farther apart do not belong together */
    sqlite3_stmt *samples;    /* the next ones, by time */
    bool more;                /* there is one */
    bool stretches;           /* there are any */
};

/* An event, whose scope the caller closes. */
static struct json_stream *begin(struct tracing *tracing, const char *phase)
{
    struct json_stream *json = &tracing->json;

    json_stream_line(json);
    json_stream_open(json, NULL, '{');
    json_stream_text(json, "ph", phase);
    return json;
}

static struct json_stream *begin_slice(struct tracing *tracing, const char *name,
                                       const char *category, int64_t pid, int64_t tid,
                                       uint64_t start, uint64_t end)
{
    uint64_t zero = tracing->recording->start_ns;
    struct json_stream *json = begin(tracing, "X");

    json_stream_text(json, "name", name);
    json_stream_text(json, "cat", category);
    json_stream_signed(json, "pid", pid);
    json_stream_signed(json, "tid", tid);
    json_stream_micros(json, "ts", start > zero ? start - zero : 0);
    json_stream_micros(json, "dur", end > start ? end - start : 0);
    json_stream_open(json, "args", '{');
    return json;
}

static void end_slice(struct json_stream *json)
{
    json_stream_close(json, '}');
    json_stream_close(json, '}');
}

/* ---- functions ------------------------------------------------------------------- */

static void print_edge(struct tracing *tracing, size_t thread, const char *name, uint64_t at)
{
    const struct recorded_thread *row = &tracing->recording->threads[thread];
    struct json_stream *json = begin(tracing, name ? "B" : "E");
    uint64_t zero = tracing->recording->start_ns;

    json_stream_signed(json, "pid", row->pid);
    json_stream_signed(json, "tid", row->tid);
    if (name) {
        json_stream_text(json, "cat", "function");
        json_stream_text(json, "name", name);
    }
    json_stream_micros(json, "ts", at > zero ? at - zero : 0);
    json_stream_close(json, '}');
}

/* Ends the frames from depth on. */
static void end_frames(struct tracing *tracing, size_t thread, size_t depth, uint64_t at)
{
    struct open_stack *open = tracing->open[thread];

    for (; open->depth > depth; open->depth--)
        print_edge(tracing, thread, NULL, at);
}

static size_t functions_of(const struct recording *r, size_t stack, size_t *ret)
{
    size_t depth = 0, skip;

    for (size_t at = stack; at != SIZE_MAX; at = r->stacks[at].caller_index)
        depth++;
    /* Of a deeper one the outer part. */
    for (skip = depth > DEPTH_MAX ? depth - DEPTH_MAX : 0; skip; skip--, depth--)
        stack = r->stacks[stack].caller_index;
    for (size_t i = depth; i-- > 0; stack = r->stacks[stack].caller_index)
        ret[i] = r->stacks[stack].function;
    return depth;
}

/* From this moment on the thread is in another stack: what both have goes on. */
static void set_stack(struct tracing *tracing, size_t thread, size_t stack, uint64_t from)
{
    const struct recording *r = tracing->recording;
    struct open_stack *open = tracing->open[thread];
    size_t functions[DEPTH_MAX], depth = functions_of(r, stack, functions), same = 0;

    while (same < depth && same < open->depth && functions[same] == open->function[same])
        same++;
    end_frames(tracing, thread, same, from);
    for (; open->depth < depth; open->depth++) {
        size_t function = functions[open->depth];

        open->function[open->depth] = function;
        print_edge(tracing, thread,
                   function == SIZE_MAX ? "[unknown]" : r->functions[function].name, from);
    }
}

/* The thread of the sample that the statement is at, with room for it; SIZE_MAX: none. */
static int thread_of_sample(struct tracing *tracing, sqlite3_stmt *row, size_t *ret)
{
    size_t thread = recording_thread(tracing->recording, sqlite3_column_int64(row, 1));

    *ret = thread;
    if (thread == SIZE_MAX || tracing->open[thread])
        return 0;
    tracing->open[thread] = calloc(1, sizeof(struct open_stack));
    return tracing->open[thread] ? 0 : -ENOMEM;
}

static int keep_sample(struct open_stack *open, uint64_t time_ns, size_t stack)
{
    if (!(open->pending_count & (open->pending_count - 1))) {
        size_t room = open->pending_count ? 2 * open->pending_count : 1;
        struct pending *grown = realloc(open->pending, room * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        open->pending = grown;
    }
    open->pending[open->pending_count++] = (struct pending){time_ns, stack};
    return 0;
}

/* Keeps the samples up to a moment, each for its thread. */
static int take_samples(struct tracing *tracing, uint64_t until)
{
    while (tracing->more && (uint64_t)sqlite3_column_int64(tracing->samples, 0) <= until) {
        sqlite3_stmt *row = tracing->samples;
        size_t thread;
        int result = thread_of_sample(tracing, row, &thread);

        if (!result && thread != SIZE_MAX)
            result = keep_sample(tracing->open[thread], (uint64_t)sqlite3_column_int64(row, 0),
                                 recording_stack(tracing->recording, sqlite3_column_int64(row, 2)));
        if (result)
            return result;
        tracing->more = sqlite3_step(row) == SQLITE_ROW;
    }
    return 0;
}

/* The functions of a running stretch: a sample stands for the time from the one before it,
 * or from the stretch's beginning, and the last one for the rest. */
static int print_functions(struct tracing *tracing, const struct stretch *stretch)
{
    int result = take_samples(tracing, stretch->end_ns);
    struct open_stack *open = tracing->open[stretch->thread];
    uint64_t from = stretch->start_ns;

    if (result || !open)
        return result;
    for (size_t i = 0; i < open->pending_count; i++) {
        if (open->pending[i].time_ns < stretch->start_ns)
            continue; /* of a stretch that was not told */
        set_stack(tracing, stretch->thread, open->pending[i].stack, from);
        from = open->pending[i].time_ns;
    }
    end_frames(tracing, stretch->thread, 0, stretch->end_ns);
    free(open->pending);
    open->pending = NULL;
    open->pending_count = 0;
    return 0;
}

/* Where no switches were recorded: samples that follow each other closely belong together. */
static int print_sample(sqlite3_stmt *row, void *ctx)
{
    struct tracing *tracing = ctx;
    uint64_t now = (uint64_t)sqlite3_column_int64(row, 0);
    size_t stack = recording_stack(tracing->recording, sqlite3_column_int64(row, 2)), thread;
    struct open_stack *open;
    int result = thread_of_sample(tracing, row, &thread);

    if (result || thread == SIZE_MAX)
        return result;
    open = tracing->open[thread];
    if (open->depth && now > open->until + tracing->gap_ns)
        end_frames(tracing, thread, 0, open->until);
    set_stack(tracing, thread, stack, open->depth ? open->until : now);
    open->until = now;
    return 0;
}

/* ---- stretches ------------------------------------------------------------------- */

/* Where it was, as one line: what shows traces keeps no stacks of slices in this format. */
static void print_wait(struct tracing *tracing, const struct stretch *stretch)
{
    const struct recording *r = tracing->recording;
    const struct recorded_wait *wait =
        recording_wait(r, stretch->thread, stretch->start_ns, stretch->end_ns);
    char *text;

    if (!wait || wait->stack == SIZE_MAX)
        return;
    text = recording_stack_line(r, wait->stack);
    json_stream_text(&tracing->json, "stack", text);
    free(text);
    if (*wait->word)
        json_stream_text(&tracing->json, "in", wait->word);
    if (!strcmp(wait->kind, "idle"))
        json_stream_bool(&tracing->json, "idle", true);
}

static int print_stretch(const struct stretch *stretch, void *ctx)
{
    static const char *const names[] = {"running", "ready", "waiting"};
    struct tracing *tracing = ctx;
    const struct recorded_thread *thread = &tracing->recording->threads[stretch->thread];
    const char *reason =
        stretch->reason < 0 ? NULL : prcb_wait_reason_name((uint32_t)stretch->reason);
    struct json_stream *json;
    char name[64];

    tracing->stretches = true;
    snprintf(name, sizeof(name), "%s%s%s", names[stretch->kind],
             stretch->kind == STRETCH_WAITING && *stretch->cause ? ": " : "",
             stretch->kind == STRETCH_WAITING ? stretch->cause : "");
    json = begin_slice(tracing, name, "state", thread->pid, thread->tid, stretch->start_ns,
                       stretch->end_ns);
    if (stretch->kind == STRETCH_RUNNING && stretch->cpu != STRETCH_NO_CPU) {
        json_stream_number(json, "cpu", stretch->cpu);
    } else if (reason) {
        json_stream_text(json, "reason", reason);
        json_stream_signed(json, "reason_number", stretch->reason);
    }
    if (stretch->kind == STRETCH_WAITING)
        print_wait(tracing, stretch);
    end_slice(json);
    if (stretch->kind != STRETCH_RUNNING)
        return 0;
    if (stretch->cpu != STRETCH_NO_CPU) {
        json = begin_slice(tracing, *thread->name ? thread->name : "?", "cpu", 0, stretch->cpu,
                           stretch->start_ns, stretch->end_ns);
        json_stream_signed(json, "pid", thread->pid);
        json_stream_signed(json, "tid", thread->tid);
        end_slice(json);
    }
    return print_functions(tracing, stretch);
}

/* ---- names ------------------------------------------------------------------------- */

static void print_meta(struct tracing *tracing, const char *what, int64_t pid, int64_t tid,
                       const char *name)
{
    struct json_stream *json = begin(tracing, "M");

    json_stream_text(json, "name", what);
    json_stream_signed(json, "pid", pid);
    json_stream_signed(json, "tid", tid);
    json_stream_open(json, "args", '{');
    json_stream_text(json, "name", name);
    end_slice(json);
}

static int print_processor(sqlite3_stmt *row, void *ctx)
{
    char name[32];
    int64_t cpu = sqlite3_column_int64(row, 0);

    snprintf(name, sizeof(name), "CPU %" PRId64, cpu);
    print_meta(ctx, "thread_name", 0, cpu, name);
    return 0;
}

static int print_names(struct tracing *tracing, struct prcb_error *err)
{
    const struct recording *r = tracing->recording;

    print_meta(tracing, "process_name", 0, 0, "processors");
    for (size_t i = 0; i < r->thread_count; i++) {
        const struct recorded_thread *thread = &r->threads[i];

        if (thread->pid == thread->tid)
            print_meta(tracing, "process_name", thread->pid, thread->tid, thread->name);
        print_meta(tracing, "thread_name", thread->pid, thread->tid, thread->name);
    }
    return recording_query(r, "SELECT DISTINCT cpu FROM processor_times ORDER BY cpu",
                           print_processor, tracing, err);
}

#define SAMPLES "SELECT time_ns, thread, stack FROM samples ORDER BY time_ns, rowid"

/* Stretches with the functions in them, or functions alone. */
static int print_all(struct tracing *tracing, struct prcb_error *err)
{
    const struct recording *r = tracing->recording;
    int result;

    tracing->open = calloc(r->thread_count + 1, sizeof(struct open_stack *));
    if (!tracing->open ||
        sqlite3_prepare_v2(r->db, SAMPLES, -1, &tracing->samples, NULL) != SQLITE_OK) {
        free(tracing->open);
        return prcb_fail(err, -ENOMEM, "the samples cannot be read: %s", sqlite3_errmsg(r->db));
    }
    tracing->more = sqlite3_step(tracing->samples) == SQLITE_ROW;
    result = stretches_walk(r, print_stretch, tracing, err);
    sqlite3_finalize(tracing->samples);
    if (!result && !tracing->stretches)
        result = recording_query(r, SAMPLES, print_sample, tracing, err);
    for (size_t i = 0; i < r->thread_count; i++) {
        if (!tracing->open[i])
            continue;
        if (!result)
            end_frames(tracing, i, 0, tracing->open[i]->until);
        free(tracing->open[i]->pending);
        free(tracing->open[i]);
    }
    free(tracing->open);
    return result;
}

int export_trace(const struct recording *recording, FILE *out, struct prcb_error *err)
{
    struct tracing tracing = {.recording = recording, .json = {.out = out, .dense = true}};
    char *frequency = recording_fact(recording, "frequency");
    long hz = frequency ? atol(frequency) : 0;
    int result;

    free(frequency);
    tracing.gap_ns = hz > 0 ? 3000000000u / (uint64_t)hz : 10000000;
    json_stream_open(&tracing.json, NULL, '{');
    json_stream_text(&tracing.json, "displayTimeUnit", "ns");
    json_stream_open(&tracing.json, "traceEvents", '[');
    result = print_names(&tracing, err);
    if (!result)
        result = print_all(&tracing, err);
    fputc('\n', out);
    json_stream_close(&tracing.json, ']');
    json_stream_close(&tracing.json, '}');
    fputc('\n', out);
    return result;
}
