/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Trace events: process 0 has a line for each processor with the thread that ran there;
 * each thread has a line with its stretches, running, ready, waiting. Inside of running
 * stretches lie the sampled functions, one within the other as they called each other.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "error.h"
#include "export.h"
#include "report.h"
#include "stretches.h"
#include "utf8.h"

#define DEPTH_MAX 64

/* What a thread's last samples had in common, not written yet. */
struct open_stack {
    size_t function[DEPTH_MAX]; /* outermost first */
    uint64_t since[DEPTH_MAX];
    size_t depth;
    uint64_t until; /* time of its last sample */
};

struct tracing {
    const struct recording *recording;
    FILE *out;
    struct open_stack **open; /* a thread each; NULL: none */
    uint64_t gap_ns;          /* samples farther apart do not belong together */
    bool begun;
};

static void print_text(FILE *out, const char *text)
{
    char *clean = utf8_clean(text);

    fputc('"', out);
    for (const char *at = clean ? clean : ""; *at; at++) {
        if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else if ((unsigned char)*at < ' ')
            fprintf(out, "\\u%04x", (unsigned char)*at);
        else
            fputc(*at, out);
    }
    fputc('"', out);
    free(clean);
}

static void next(struct tracing *tracing)
{
    fputs(tracing->begun ? ",\n" : "\n", tracing->out);
    tracing->begun = true;
}

/* Microseconds since the recording began, exact. */
static void print_time(const struct tracing *tracing, const char *name, uint64_t ns)
{
    fprintf(tracing->out, ",\"%s\":%" PRIu64 ".%03u", name, ns / 1000, (unsigned)(ns % 1000));
}

static void begin_slice(struct tracing *tracing, const char *name, const char *category,
                        int64_t pid, int64_t tid, uint64_t start, uint64_t end)
{
    uint64_t zero = tracing->recording->start_ns;

    next(tracing);
    fputs("{\"ph\":\"X\",\"name\":", tracing->out);
    print_text(tracing->out, name);
    fprintf(tracing->out, ",\"cat\":\"%s\",\"pid\":%" PRId64 ",\"tid\":%" PRId64, category, pid,
            tid);
    print_time(tracing, "ts", start > zero ? start - zero : 0);
    print_time(tracing, "dur", end > start ? end - start : 0);
}

static int print_stretch(const struct stretch *stretch, void *ctx)
{
    static const char *const names[] = {"running", "ready", "waiting"};
    struct tracing *tracing = ctx;
    const struct recorded_thread *thread = &tracing->recording->threads[stretch->thread];
    const char *reason =
        stretch->reason < 0 ? NULL : prcb_wait_reason_name((uint32_t)stretch->reason);
    char name[64];

    snprintf(name, sizeof(name), "%s%s%s", names[stretch->kind],
             stretch->kind == STRETCH_WAITING && *stretch->cause ? ": " : "",
             stretch->kind == STRETCH_WAITING ? stretch->cause : "");
    begin_slice(tracing, name, "state", thread->pid, thread->tid, stretch->start_ns,
                stretch->end_ns);
    fputs(",\"args\":{", tracing->out);
    if (stretch->kind == STRETCH_RUNNING)
        fprintf(tracing->out, "\"cpu\":%u", stretch->cpu);
    else if (reason)
        fprintf(tracing->out, "\"reason\":\"%s\",\"reason_number\":%d", reason, stretch->reason);
    fprintf(tracing->out, "}}");
    if (stretch->kind == STRETCH_RUNNING) {
        begin_slice(tracing, *thread->name ? thread->name : "?", "cpu", 0, stretch->cpu,
                    stretch->start_ns, stretch->end_ns);
        fprintf(tracing->out, ",\"args\":{\"pid\":%" PRId64 ",\"tid\":%" PRId64 "}}", thread->pid,
                thread->tid);
    }
    return 0;
}

/* ---- functions ------------------------------------------------------------------- */

static const char *function_name(const struct recording *r, size_t function)
{
    return function == SIZE_MAX ? "[unknown]" : r->functions[function].name;
}

/* Writes and forgets the frames from depth on. */
static void end_frames(struct tracing *tracing, size_t thread, size_t depth)
{
    const struct recorded_thread *row = &tracing->recording->threads[thread];
    struct open_stack *open = tracing->open[thread];

    for (; open->depth > depth; open->depth--) {
        begin_slice(tracing, function_name(tracing->recording, open->function[open->depth - 1]),
                    "function", row->pid, row->tid, open->since[open->depth - 1], open->until);
        fputc('}', tracing->out);
    }
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

/* A sample stands for the time since the sample before it, or since the thread got the
 * processor; the stretches say when that was. */
static int print_sample(sqlite3_stmt *row, void *ctx)
{
    struct tracing *tracing = ctx;
    const struct recording *r = tracing->recording;
    uint64_t now = (uint64_t)sqlite3_column_int64(row, 0), from;
    size_t thread = recording_thread(r, sqlite3_column_int64(row, 1));
    size_t stack = recording_stack(r, sqlite3_column_int64(row, 2));
    size_t functions[DEPTH_MAX], depth, same = 0;
    struct open_stack *open;

    if (thread == SIZE_MAX)
        return 0;
    if (!tracing->open[thread]) {
        tracing->open[thread] = calloc(1, sizeof(struct open_stack));
        if (!tracing->open[thread])
            return -ENOMEM;
    }
    open = tracing->open[thread];
    depth = functions_of(r, stack, functions);
    if (open->depth && now > open->until + tracing->gap_ns)
        end_frames(tracing, thread, 0);
    while (same < depth && same < open->depth && functions[same] == open->function[same])
        same++;
    from = open->depth ? open->until : now;
    end_frames(tracing, thread, same);
    for (; open->depth < depth; open->depth++) {
        open->function[open->depth] = functions[open->depth];
        open->since[open->depth] = from;
    }
    open->until = now;
    return 0;
}

static int print_functions(struct tracing *tracing, struct prcb_error *err)
{
    const struct recording *r = tracing->recording;
    int result;

    tracing->open = calloc(r->thread_count + 1, sizeof(struct open_stack *));
    if (!tracing->open)
        return prcb_fail(err, -ENOMEM, "out of memory");
    result =
        recording_query(r, "SELECT time_ns, thread, stack FROM samples ORDER BY time_ns, rowid",
                        print_sample, tracing, err);
    for (size_t i = 0; i < r->thread_count; i++) {
        if (!result && tracing->open[i])
            end_frames(tracing, i, 0);
        free(tracing->open[i]);
    }
    free(tracing->open);
    return result;
}

/* ---- names ------------------------------------------------------------------------- */

static void print_meta(struct tracing *tracing, const char *what, int64_t pid, int64_t tid,
                       const char *name)
{
    next(tracing);
    fprintf(tracing->out,
            "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%" PRId64 ",\"tid\":%" PRId64
            ",\"args\":{\"name\":",
            what, pid, tid);
    print_text(tracing->out, name);
    fputs("}}", tracing->out);
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

int export_trace(const struct recording *recording, FILE *out, struct prcb_error *err)
{
    struct tracing tracing = {.recording = recording, .out = out};
    char *frequency = recording_fact(recording, "frequency");
    long hz = frequency ? atol(frequency) : 0;
    int result;

    free(frequency);
    tracing.gap_ns = hz > 0 ? 3000000000u / (uint64_t)hz : 10000000;
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", out);
    result = print_names(&tracing, err);
    if (!result)
        result = stretches_walk(recording, print_stretch, &tracing, err);
    if (!result)
        result = print_functions(&tracing, err);
    fputs("\n]}\n", out);
    return result;
}
