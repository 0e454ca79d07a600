/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The report for programs: JSON, and lines of values. Absent is null, or empty.
 */
#include "report.h"

#include <errno.h>
#include <inttypes.h>

#include <json-c/json.h>
#include <sqlite3.h>

#include "text.h"

static struct json_object *text(const char *value)
{
    return value && *value ? json_object_new_string(value) : NULL;
}

static struct json_object *count(uint64_t value)
{
    return json_object_new_uint64(value);
}

static struct json_object *known(int64_t value)
{
    return value < 0 ? NULL : json_object_new_int64(value);
}

static size_t shown(size_t rows, const struct report_style *style)
{
    return style->top && rows > style->top ? style->top : rows;
}

static struct json_object *functions(const struct report *report, const struct report_style *style)
{
    struct json_object *array = json_object_new_array();

    for (size_t i = 0; i < shown(report->function_count, style); i++) {
        const struct report_function *row = &report->functions[i];
        struct json_object *object = json_object_new_object();

        json_object_object_add(object, "function", text(row->name));
        json_object_object_add(object, "file", text(row->file));
        json_object_object_add(object, "kernel", json_object_new_boolean(row->kernel));
        json_object_object_add(object, "samples", count(row->samples));
        json_object_object_add(object, "self", count(row->self));
        json_object_object_add(object, "total", report->has_stacks ? count(row->total) : NULL);
        json_object_array_add(array, object);
    }
    return array;
}

static struct json_object *threads(const struct report *report, const struct report_style *style)
{
    struct json_object *array = json_object_new_array();

    for (size_t i = 0; i < shown(report->thread_count, style); i++) {
        const struct report_thread *row = &report->threads[i];
        const struct recorded_thread *thread = &report->recording->threads[row->thread];
        struct json_object *object = json_object_new_object();
        bool has = report->has_switches;

        json_object_object_add(object, "pid", json_object_new_int64(thread->pid));
        json_object_object_add(object, "tid", json_object_new_int64(thread->tid));
        json_object_object_add(object, "name", text(thread->name));
        json_object_object_add(object, "samples", count(row->samples));
        json_object_object_add(object, "weight", count(row->weight));
        json_object_object_add(object, "run_ns", has ? count(row->run_ns) : NULL);
        json_object_object_add(object, "ready_ns", has ? count(row->ready_ns) : NULL);
        json_object_object_add(object, "wait_ns", has ? count(row->wait_ns) : NULL);
        json_object_array_add(array, object);
    }
    return array;
}

static struct json_object *waits(const struct report *report, const struct report_style *style)
{
    struct json_object *array = json_object_new_array();

    for (size_t i = 0; i < shown(report->wait_count, style); i++) {
        const struct report_wait *row = &report->waits[i];
        struct json_object *object = json_object_new_object();

        json_object_object_add(object, "state", text(row->ready ? "ready" : "waiting"));
        json_object_object_add(object, "cause", text(row->cause));
        json_object_object_add(object, "reason", known(row->reason));
        json_object_object_add(
            object, "reason_name",
            text(row->reason < 0 ? NULL : prcb_wait_reason_name((uint32_t)row->reason)));
        json_object_object_add(object, "count", count(row->count));
        json_object_object_add(object, "ns", count(row->ns));
        json_object_array_add(array, object);
    }
    return array;
}

static struct json_object *cells(const struct report *report, const struct report_processor *row)
{
    struct json_object *array = json_object_new_array();

    for (size_t i = 0; i < report->cells; i++) {
        const struct report_cell *cell = &row->cells[i];
        struct json_object *object = json_object_new_object();
        bool any = cell->thread != SIZE_MAX;

        json_object_object_add(object, "busy_ns", count(cell->busy_ns));
        json_object_object_add(
            object, "tid",
            any ? json_object_new_int64(report->recording->threads[cell->thread].tid) : NULL);
        json_object_array_add(array, object);
    }
    return array;
}

static struct json_object *processors(const struct report *report, const struct report_style *style)
{
    struct json_object *array = json_object_new_array();

    for (size_t i = 0; i < report->processor_count; i++) {
        const struct report_processor *row = &report->processors[i];
        struct json_object *object = json_object_new_object();

        json_object_object_add(object, "cpu", json_object_new_int64(row->cpu));
        json_object_object_add(object, "samples", count(row->samples));
        json_object_object_add(object, "run_ns", report->has_switches ? count(row->run_ns) : NULL);
        for (const struct figure *figure = processor_figures; figure->name; figure++) {
            if (figure->kind == FIGURE_PART)
                json_object_object_add(object, figure->name, known(row->parts[figure->index]));
        }
        if (style->tables & REPORT_TIMELINE)
            json_object_object_add(object, "timeline",
                                   report->has_switches ? cells(report, row) : NULL);
        json_object_array_add(array, object);
    }
    return array;
}

static int add_fact(sqlite3_stmt *row, void *ctx)
{
    const char *name = (const char *)sqlite3_column_text(row, 0);

    if (name)
        json_object_object_add(ctx, name, text((const char *)sqlite3_column_text(row, 1)));
    return 0;
}

int report_print_json(const struct report *report, const struct report_style *style, FILE *out)
{
    struct json_object *top = json_object_new_object(), *facts = json_object_new_object();
    const char *whole;
    int result = -ENOMEM;

    recording_query(report->recording, "SELECT name, value FROM facts ORDER BY name", add_fact,
                    facts, NULL);
    json_object_object_add(top, "facts", facts);
    json_object_object_add(top, "complete", json_object_new_boolean(report->recording->complete));
    json_object_object_add(top, "unit", text(report->weight_is_ns ? "ns" : "events"));
    json_object_object_add(top, "span_ns", count(report->span_ns));
    json_object_object_add(top, "samples", count(report->samples));
    json_object_object_add(top, "weight", count(report->weight));
    json_object_object_add(top, "lost", count(report->lost));
    if (style->tables & REPORT_FUNCTIONS)
        json_object_object_add(top, "functions", functions(report, style));
    if (style->tables & REPORT_THREADS)
        json_object_object_add(top, "threads", threads(report, style));
    if (style->tables & REPORT_WAITS)
        json_object_object_add(top, "waits", report->has_switches ? waits(report, style) : NULL);
    if (style->tables & (REPORT_PROCESSORS | REPORT_TIMELINE))
        json_object_object_add(top, "processors", processors(report, style));
    whole = json_object_to_json_string_ext(top, JSON_C_TO_STRING_PRETTY |
                                                    JSON_C_TO_STRING_NOSLASHESCAPE);
    if (whole) {
        text_print(out, TEXT_DOCUMENT, whole);
        result = fputc('\n', out) < 0 || ferror(out) ? -EIO : 0;
    }
    json_object_put(top);
    return result;
}
