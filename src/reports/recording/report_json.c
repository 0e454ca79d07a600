/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes the report for programs: JSON, and lines of values. Absent is null, or empty.
 */
#include "report.h"
#include "report_verdict.h"

#include <inttypes.h>

#include <sqlite3.h>

#include "json_doc.h"

/* Names that are not known are empty there. */
static const char *word(const char *text)
{
    return text && *text ? text : NULL;
}

static size_t shown(size_t rows, const struct report_style *style)
{
    return style->top && rows > style->top ? style->top : rows;
}

static json_object *functions(struct json_doc *b, const struct report *report,
                              const struct report_style *style)
{
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < shown(report->function_count, style); i++) {
        const struct report_function *row = &report->functions[i];
        json_object *object = json_object_new_object();

        json_doc_put_text(b, object, "function", word(row->name));
        json_doc_put_text(b, object, "file", word(row->file));
        json_doc_put_bool(b, object, "kernel", row->kernel);
        json_doc_put_number(b, object, "samples", row->samples);
        json_doc_put_number(b, object, "self", row->self);
        json_doc_put_member(b, object, "total", row->total, report->has_stacks);
        json_doc_append(b, array, object);
    }
    return array;
}

static json_object *threads(struct json_doc *b, const struct report *report,
                            const struct report_style *style)
{
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < shown(report->thread_count, style); i++) {
        const struct report_thread *row = &report->threads[i];
        const struct recorded_thread *thread = &report->recording->threads[row->thread];
        json_object *object = json_object_new_object();
        bool has = report->has_switches &&
                   (row->run_ns + row->ready_ns + row->wait_ns || !row->unknown_ns);

        json_doc_put(b, object, "pid", json_object_new_int64(thread->pid));
        json_doc_put(b, object, "tid", json_object_new_int64(thread->tid));
        json_doc_put_text(b, object, "name", word(thread->name));
        json_doc_put_number(b, object, "samples", row->samples);
        json_doc_put_number(b, object, "weight", row->weight);
        json_doc_put_member(b, object, "run_ns", row->run_ns, has);
        json_doc_put_member(b, object, "ready_ns", row->ready_ns, has);
        json_doc_put_member(b, object, "wait_ns", row->wait_ns, has);
        json_doc_put_member(b, object, "unknown_ns", row->unknown_ns, report->has_switches);
        json_doc_append(b, array, object);
    }
    return array;
}

static json_object *waits(struct json_doc *b, const struct report *report,
                          const struct report_style *style)
{
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < shown(report->wait_count, style); i++) {
        const struct report_wait *row = &report->waits[i];
        json_object *object = json_object_new_object();

        json_doc_put_text(b, object, "state", row->ready ? "ready" : "waiting");
        json_doc_put_text(b, object, "cause", word(row->cause));
        json_doc_put_member(b, object, "reason", (uint64_t)row->reason, row->reason >= 0);
        json_doc_put_text(b, object, "reason_name",
                          row->reason < 0 ? NULL : prcb_wait_reason_name((uint32_t)row->reason));
        json_doc_put_number(b, object, "count", row->count);
        json_doc_put_number(b, object, "ns", row->ns);
        json_doc_append(b, array, object);
    }
    return array;
}

static json_object *frames(struct json_doc *b, const struct recording *r, size_t stack)
{
    json_object *array = json_object_new_array();

    for (; stack != SIZE_MAX; stack = r->stacks[stack].caller_index) {
        size_t function = r->stacks[stack].function;
        json_object *object = json_object_new_object();

        json_doc_put_text(b, object, "function",
                          function == SIZE_MAX ? NULL : word(r->functions[function].name));
        json_doc_put_text(b, object, "file",
                          function == SIZE_MAX ? NULL : word(r->functions[function].file));
        json_doc_put_bool(b, object, "kernel", r->stacks[stack].kernel);
        json_doc_append(b, array, object);
    }
    return array;
}

/* Writes a row for each thread, cause and stack; all of them, including those that idle by
 * design. */
static json_object *stacks(struct json_doc *b, const struct report *report,
                           const struct report_style *style)
{
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < shown(report->offcpu.count, style); i++) {
        const struct offcpu_row *row = &report->offcpu.rows[i];
        const struct recorded_thread *thread = &report->recording->threads[row->thread];
        json_object *object = json_object_new_object();

        json_doc_put(b, object, "pid", json_object_new_int64(thread->pid));
        json_doc_put(b, object, "tid", json_object_new_int64(thread->tid));
        json_doc_put_text(b, object, "name", word(thread->name));
        json_doc_put_text(b, object, "cause", word(row->cause));
        json_doc_put_member(b, object, "reason", (uint64_t)row->reason, row->reason >= 0);
        json_doc_put_text(b, object, "rest", row->rest);
        json_doc_put_text(b, object, "kind", word(row->kind));
        json_doc_put_text(b, object, "word", word(row->word));
        json_doc_put_number(b, object, "count", row->count);
        json_doc_put_number(b, object, "ns", row->ns);
        json_doc_put_if(b, object, "stack", !row->rest,
                        row->rest ? NULL : frames(b, report->recording, row->stack));
        json_doc_append(b, array, object);
    }
    return array;
}

static json_object *span_waits(struct json_doc *b, const struct report *report,
                               const struct spanned_row *row, const struct spanned_row *end)
{
    json_object *array = json_object_new_array();

    for (const struct spanned_row *at = row; at < end && spanned_same(row, at); at++) {
        const struct recorded_thread *thread = &report->recording->threads[at->thread];
        json_object *object = json_object_new_object();

        json_doc_put(b, object, "pid", json_object_new_int64(thread->pid));
        json_doc_put(b, object, "tid", json_object_new_int64(thread->tid));
        json_doc_put_text(b, object, "name", word(thread->name));
        json_doc_put_text(b, object, "cause", word(at->cause));
        json_doc_put_text(b, object, "word", word(at->word));
        json_doc_put_number(b, object, "count", at->count);
        json_doc_put_number(b, object, "ns", at->ns);
        json_doc_put_text(b, object, "in", word(recording_place(report->recording, at->stack)));
        json_doc_append(b, array, object);
    }
    return array;
}

static json_object *spans(struct json_doc *b, const struct report *report,
                          const struct report_style *style)
{
    const struct spanned *s = &report->spanned;
    size_t most = shown(s->spans, style), count = 0;
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < s->count && count < most; i++) {
        const struct spanned_row *row = &s->rows[i];
        json_object *object;

        if (i && spanned_same(row, row - 1))
            continue;
        object = json_object_new_object();
        json_doc_put_text(b, object, "trace_id", word(row->trace_id));
        json_doc_put_text(b, object, "span_id", word(row->span_id));
        json_doc_put_number(b, object, "ns", row->span_ns);
        json_doc_put(b, object, "waits", span_waits(b, report, row, s->rows + s->count));
        json_doc_append(b, array, object);
        count++;
    }
    return array;
}

static json_object *cells(struct json_doc *b, const struct report *report,
                          const struct report_processor *row)
{
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < report->cells; i++) {
        const struct report_cell *cell = &row->cells[i];
        json_object *object = json_object_new_object();
        bool any = cell->thread != SIZE_MAX;

        json_doc_put_number(b, object, "busy_ns", cell->busy_ns);
        json_doc_put_if(b, object, "tid", any,
                        any ? json_object_new_int64(report->recording->threads[cell->thread].tid)
                            : NULL);
        json_doc_append(b, array, object);
    }
    return array;
}

static json_object *processors(struct json_doc *b, const struct report *report,
                               const struct report_style *style)
{
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < report->processor_count; i++) {
        const struct report_processor *row = &report->processors[i];
        json_object *object = json_object_new_object();

        json_doc_put(b, object, "cpu", json_object_new_int64(row->cpu));
        json_doc_put_number(b, object, "samples", row->samples);
        json_doc_put_member(b, object, "run_ns", row->run_ns, report->has_switches);
        for (const struct figure *figure = processor_figures; figure->name; figure++) {
            if (figure->kind == FIGURE_PART)
                json_doc_put_member(b, object, figure->name, (uint64_t)row->parts[figure->index],
                                    row->parts[figure->index] >= 0);
        }
        if (style->tables & REPORT_TIMELINE)
            json_doc_put_if(b, object, "timeline", report->has_switches,
                            report->has_switches ? cells(b, report, row) : NULL);
        json_doc_append(b, array, object);
    }
    return array;
}

struct facts {
    struct json_doc *b;
    json_object *object;
};

static int add_fact(sqlite3_stmt *row, void *ctx)
{
    const char *name = (const char *)sqlite3_column_text(row, 0);
    struct facts *facts = ctx;

    if (name)
        json_doc_put_text(facts->b, facts->object, name,
                          word((const char *)sqlite3_column_text(row, 1)));
    return 0;
}

static json_object *gaps(struct json_doc *b, const struct report *report)
{
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < report->gap_count; i++) {
        json_object *object = json_object_new_object();

        json_doc_put_text(b, object, "missing", report->gaps[i].missing);
        json_doc_put_number(b, object, "samples", report->gaps[i].samples);
        json_doc_append(b, array, object);
    }
    return array;
}

int report_print_json(const struct report *report, const struct report_style *style, FILE *out)
{
    struct json_doc doc = {0}, *b = &doc;
    json_object *top = json_doc_new(b, JSON_REPORT);
    struct facts facts = {b, json_object_new_object()};

    recording_query(report->recording, "SELECT name, value FROM facts ORDER BY name", add_fact,
                    &facts, NULL);
    json_doc_put(b, top, "facts", facts.object);
    json_doc_put_bool(b, top, "complete", report->recording->complete);
    json_doc_put_text(b, top, "unit", report->weight_is_ns ? "ns" : "events");
    json_doc_put_number(b, top, "span_ns", report->span_ns);
    json_doc_put_if(b, top, "verdict", style->verdict, report_verdict_json(b, style->verdict));
    json_doc_put_number(b, top, "samples", report->samples);
    json_doc_put_number(b, top, "weight", report->weight);
    json_doc_put_member(b, top, "samples_complete", report->complete,
                        report->recording->has_copies);
    json_doc_put_if(b, top, "samples_incomplete", report->recording->has_copies,
                    report->recording->has_copies ? gaps(b, report) : NULL);
    json_doc_put_number(b, top, "lost", report->lost);
    json_doc_put_number(b, top, "missed_switches", report->missed);
    if (style->tables & REPORT_FUNCTIONS)
        json_doc_put(b, top, "functions", functions(b, report, style));
    if (style->tables & REPORT_THREADS)
        json_doc_put(b, top, "threads", threads(b, report, style));
    if (style->tables & REPORT_WAITS)
        json_doc_put_if(b, top, "waits", report->has_switches,
                        report->has_switches ? waits(b, report, style) : NULL);
    if (style->tables & REPORT_STACKS) {
        bool has = report->recording->has_wait_stacks;

        json_doc_put_if(b, top, "wait_stacks", has, has ? stacks(b, report, style) : NULL);
        json_doc_put_member(b, top, "wait_ns", report->offcpu.ns, has);
        json_doc_put_member(b, top, "wait_known_ns", report->offcpu.known_ns, has);
        json_doc_put_member(b, top, "wait_idle_ns", report->offcpu.idle_ns, has);
    }
    if (style->tables & REPORT_SPANS)
        json_doc_put_if(b, top, "spans", report->recording->has_spans,
                        report->recording->has_spans ? spans(b, report, style) : NULL);
    if (style->tables & (REPORT_PROCESSORS | REPORT_TIMELINE))
        json_doc_put(b, top, "processors", processors(b, report, style));
    return json_doc_write_pretty(b, top, out);
}
