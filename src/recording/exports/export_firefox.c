/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The processed profile of the Firefox Profiler, version 47 of its format: tables of columns, a set
 * for each thread, that refer to each other by index. Here a stack, its frame and its place in
 * these tables have the same number, and a function the same as its name.
 */
#include "export.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "by_thread.h"
#include "error.h"

enum category { OTHER, USER, KERNEL, READY, WAITING };

/* The nodes or functions that a thread has, in the order in which they came up. */
struct local {
    uint32_t *number; /* plus one, of a node or function; 0: none yet */
    uint32_t *list;
    uint32_t count;
};

struct firefox {
    const struct page_data *data;
    FILE *out;
    struct local nodes, functions;
    bool begun;
};

static int local_open(struct local *local, size_t count)
{
    local->number = calloc(count + 1, sizeof(*local->number));
    local->list = malloc((count + 1) * sizeof(*local->list));
    return local->number && local->list ? 0 : -ENOMEM;
}

static void local_close(struct local *local)
{
    free(local->number);
    free(local->list);
}

static void local_clear(struct local *local)
{
    while (local->count)
        local->number[local->list[--local->count]] = 0;
}

static uint32_t local_number(struct local *local, uint32_t global)
{
    if (!local->number[global]) {
        local->list[local->count] = global;
        local->number[global] = ++local->count;
    }
    return local->number[global] - 1;
}

/* Adds callers before the functions that they call. */
static void add_node(struct firefox *f, uint32_t node)
{
    uint32_t at, up;

    while (node && !f->nodes.number[node]) {
        /* This finds the outermost node that is not there yet. The recording's reader bounds the
         * depth. */
        for (at = node; (up = f->data->nodes[2 * at]) && !f->nodes.number[up];)
            at = up;
        local_number(&f->nodes, at);
        local_number(&f->functions, f->data->nodes[2 * at + 1]);
    }
}

/* ---- columns ------------------------------------------------------------------------- */

/* Writes a column of the same value in all rows. */
static void put_same(const struct firefox *f, const char *name, const char *value, uint32_t count)
{
    fprintf(f->out, ",\"%s\":[", name);
    for (uint32_t i = 0; i < count; i++)
        fprintf(f->out, "%s%s", i ? "," : "", value);
    fputc(']', f->out);
}

static void begin_column(const struct firefox *f, const char *name)
{
    fprintf(f->out, ",\"%s\":[", name);
}

/* Writes the milliseconds since the recording began, exactly. */
static void put_ms(const struct firefox *f, uint64_t ns)
{
    fprintf(f->out, "%" PRIu64 ".%06u", ns / 1000000, (unsigned)(ns % 1000000));
}

static void put_tables(const struct firefox *f)
{
    uint32_t nodes = f->nodes.count, functions = f->functions.count;

    fprintf(f->out, ",\n\"stackTable\":{\"length\":%" PRIu32, nodes);
    begin_column(f, "frame");
    for (uint32_t i = 0; i < nodes; i++)
        fprintf(f->out, "%s%" PRIu32, i ? "," : "", i);
    fputc(']', f->out);
    begin_column(f, "prefix");
    for (uint32_t i = 0; i < nodes; i++) {
        uint32_t up = f->data->nodes[2 * f->nodes.list[i]];

        fputs(i ? "," : "", f->out);
        if (up)
            fprintf(f->out, "%" PRIu32, f->nodes.number[up] - 1);
        else
            fputs("null", f->out);
    }
    fputc(']', f->out);
    begin_column(f, "category");
    for (uint32_t i = 0; i < nodes; i++)
        fprintf(f->out, "%s%d", i ? "," : "",
                f->data->nodes[2 * f->nodes.list[i] + 1] & 1 ? KERNEL : USER);
    fputc(']', f->out);
    put_same(f, "subcategory", "0", nodes);
    fprintf(f->out, "},\n\"frameTable\":{\"length\":%" PRIu32, nodes);
    begin_column(f, "func");
    for (uint32_t i = 0; i < nodes; i++)
        fprintf(f->out, "%s%" PRIu32, i ? "," : "",
                f->functions.number[f->data->nodes[2 * f->nodes.list[i] + 1]] - 1);
    fputc(']', f->out);
    put_same(f, "address", "-1", nodes);
    put_same(f, "inlineDepth", "0", nodes);
    put_same(f, "category", "null", nodes);
    put_same(f, "subcategory", "null", nodes);
    put_same(f, "nativeSymbol", "null", nodes);
    put_same(f, "innerWindowID", "null", nodes);
    put_same(f, "implementation", "null", nodes);
    put_same(f, "line", "null", nodes);
    put_same(f, "column", "null", nodes);
    fprintf(f->out, "},\n\"funcTable\":{\"length\":%" PRIu32, functions);
    begin_column(f, "name");
    for (uint32_t i = 0; i < functions; i++)
        fprintf(f->out, "%s%" PRIu32, i ? "," : "", i);
    fputc(']', f->out);
    put_same(f, "isJS", "false", functions);
    put_same(f, "relevantForJS", "false", functions);
    put_same(f, "resource", "-1", functions);
    put_same(f, "fileName", "null", functions);
    put_same(f, "lineNumber", "null", functions);
    put_same(f, "columnNumber", "null", functions);
    fputs("},\n\"resourceTable\":{\"length\":0,\"lib\":[],\"name\":[],\"host\":[],\"type\":[]},"
          "\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],"
          "\"functionSize\":[]},\n\"stringArray\":[",
          f->out);
    for (uint32_t i = 0; i < functions; i++) {
        fputs(i ? "," : "", f->out);
        page_put_function(f->out, f->data, f->functions.list[i]);
    }
    for (size_t i = 0; i < f->data->state_count; i++) {
        fputs(functions || i ? "," : "", f->out);
        page_put_state(f->out, &f->data->states[i]);
    }
    fputc(']', f->out);
}

static void put_samples(const struct firefox *f, const struct page_thread *thread)
{
    bool ns = f->data->report.weight_is_ns;

    fprintf(f->out, ",\n\"samples\":{\"length\":%zu,\"weightType\":\"%s\"", thread->sample_count,
            ns ? "tracing-ms" : "samples");
    begin_column(f, "stack");
    for (size_t i = 0; i < thread->sample_count; i++) {
        uint32_t node = thread->samples[i].node;

        fputs(i ? "," : "", f->out);
        if (node)
            fprintf(f->out, "%" PRIu32, f->nodes.number[node] - 1);
        else
            fputs("null", f->out);
    }
    fputc(']', f->out);
    begin_column(f, "time");
    for (size_t i = 0; i < thread->sample_count; i++) {
        fputs(i ? "," : "", f->out);
        put_ms(f, thread->samples[i].time_ns);
    }
    fputc(']', f->out);
    begin_column(f, "weight");
    for (size_t i = 0; i < thread->sample_count; i++) {
        fputs(i ? "," : "", f->out);
        if (ns)
            put_ms(f, thread->samples[i].weight);
        else
            fprintf(f->out, "%" PRIu64, thread->samples[i].weight);
    }
    fputs("]}", f->out);
}

/* ---- markers ------------------------------------------------------------------------- */

static bool is_marked(const struct firefox *f, const struct page_stretch *stretch)
{
    char kind = f->data->states[stretch->state].kind;

    return kind == 'q' || kind == 'w';
}

static void put_name(const struct firefox *f, const struct page_stretch *s)
{
    fprintf(f->out, "%" PRIu32, f->functions.count + s->state);
}

static void put_start(const struct firefox *f, const struct page_stretch *s)
{
    put_ms(f, s->start_ns);
}

static void put_end(const struct firefox *f, const struct page_stretch *s)
{
    put_ms(f, s->start_ns + s->ns);
}

static void put_phase(const struct firefox *f, const struct page_stretch *s)
{
    fputc('1', f->out); /* an interval */
}

static void put_category(const struct firefox *f, const struct page_stretch *s)
{
    fprintf(f->out, "%d", f->data->states[s->state].kind == 'q' ? READY : WAITING);
}

static void put_payload(const struct firefox *f, const struct page_stretch *s)
{
    const struct page_state *state = &f->data->states[s->state];

    fputs("{\"type\":\"off\",\"why\":", f->out);
    page_put_text(f->out, *state->cause ? state->cause : "not known");
    if (s->place >> 1)
        fprintf(f->out, ",\"cause\":{\"stack\":%" PRIu32 "}", f->nodes.number[s->place >> 1] - 1);
    fputc('}', f->out);
}

static void put_markers(const struct firefox *f, const struct page_thread *thread)
{
    static const struct {
        const char *name;
        void (*put)(const struct firefox *f, const struct page_stretch *s);
    } columns[] = {{"name", put_name},   {"startTime", put_start},   {"endTime", put_end},
                   {"phase", put_phase}, {"category", put_category}, {"data", put_payload}};
    size_t count = 0;

    for (size_t i = 0; i < thread->stretch_count; i++)
        count += is_marked(f, &thread->stretches[i]);
    fprintf(f->out, ",\n\"markers\":{\"length\":%zu", count);
    for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); c++) {
        const char *between = "";

        begin_column(f, columns[c].name);
        for (size_t i = 0; i < thread->stretch_count; i++) {
            if (!is_marked(f, &thread->stretches[i]))
                continue;
            fputs(between, f->out);
            columns[c].put(f, &thread->stretches[i]);
            between = ",";
        }
        fputc(']', f->out);
    }
    fputc('}', f->out);
}

/* ---- threads ------------------------------------------------------------------------- */

static int put_thread(const struct page_thread *thread, void *ctx)
{
    struct firefox *f = ctx;
    const struct recording *r = f->data->recording;
    const struct recorded_thread *row = &r->threads[thread->index];
    uint64_t zero = r->start_ns;

    local_clear(&f->nodes);
    local_clear(&f->functions);
    for (size_t i = 0; i < thread->sample_count; i++)
        add_node(f, thread->samples[i].node);
    for (size_t i = 0; i < thread->stretch_count; i++)
        add_node(f, thread->stretches[i].place >> 1);
    fputs(f->begun ? ",\n{\"name\":" : "\n{\"name\":", f->out);
    f->begun = true;
    page_put_text(f->out, row->name);
    fputs(",\"processName\":", f->out);
    page_put_text(f->out, row->name);
    fprintf(f->out,
            ",\"processType\":\"default\",\"isMainThread\":%s,\"pid\":\"%" PRId64
            "\",\"tid\":%" PRId64
            ",\"pausedRanges\":[],\"processStartupTime\":0,\"processShutdownTime\":null,"
            "\"registerTime\":",
            row->pid == row->tid ? "true" : "false", row->pid, row->tid);
    put_ms(f, row->start_ns > zero ? row->start_ns - zero : 0);
    fputs(",\"unregisterTime\":", f->out);
    if (row->end_ns > zero)
        put_ms(f, row->end_ns - zero);
    else
        fputs("null", f->out);
    put_samples(f, thread);
    put_markers(f, thread);
    put_tables(f);
    fputc('}', f->out);
    return 0;
}

static void put_meta(const struct firefox *f)
{
    const struct recording *r = f->data->recording;
    char *text = recording_fact(r, "started"), *hz = recording_fact(r, "frequency");
    struct tm parts = {0};
    double interval = hz && atof(hz) > 0 ? 1000 / atof(hz) : 1;
    int64_t start = text && strptime(text, "%Y-%m-%dT%H:%M:%SZ", &parts) ? timegm(&parts) : 0;

    fprintf(f->out,
            "{\"meta\":{\"version\":27,\"preprocessedProfileVersion\":47,\"processType\":0,"
            "\"product\":\"prcb\",\"importedFrom\":\"prcb " PRCB_VERSION "\",\"stackwalk\":1,"
            "\"symbolicated\":true,\"interval\":%.6f,\"startTime\":%" PRId64 ",\"categories\":[",
            interval, 1000 * start);
    fputs("{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]},"
          "{\"name\":\"User\",\"color\":\"yellow\",\"subcategories\":[\"Other\"]},"
          "{\"name\":\"Kernel\",\"color\":\"orange\",\"subcategories\":[\"Other\"]},"
          "{\"name\":\"Ready\",\"color\":\"red\",\"subcategories\":[\"Other\"]},"
          "{\"name\":\"Waiting\",\"color\":\"blue\",\"subcategories\":[\"Other\"]}],"
          "\"markerSchema\":[{\"name\":\"off\",\"display\":[\"marker-chart\",\"marker-table\"],"
          "\"tooltipLabel\":\"{marker.name}\",\"tableLabel\":\"{marker.name}\","
          "\"chartLabel\":\"{marker.name}\",\"data\":["
          "{\"key\":\"why\",\"label\":\"Cause\",\"format\":\"string\"}]}]},\n"
          "\"libs\":[],\"pages\":[],\"threads\":[",
          f->out);
    free(text);
    free(hz);
}

int export_firefox(const struct recording *recording, FILE *out, struct prcb_error *err)
{
    struct page_names names = {0};
    struct page_data data;
    struct firefox f = {.data = &data, .out = out};
    int result = page_data_open(recording, &names, &data, err);

    if (result)
        return result;
    result = local_open(&f.nodes, data.node_count);
    if (!result)
        result = local_open(&f.functions, 2 * recording->function_count + 2);
    if (!result) {
        put_meta(&f);
        result = page_threads(&data, put_thread, &f);
        fputs("]}\n", out);
    }
    local_close(&f.nodes);
    local_close(&f.functions);
    page_data_close(&data);
    return result ? prcb_fail(err, result, "out of memory") : 0;
}
