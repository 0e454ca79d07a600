/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The report as lines of values: one table, or each behind the other with an empty line
 * between.
 */
#include "report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "text.h"

struct csv {
    FILE *out;
    const char *separator;
    bool begun; /* the line has a value */
};

static void put(struct csv *csv, const char *value)
{
    if (csv->begun)
        fputs(csv->separator, csv->out);
    csv->begun = true;
    text_print_csv(csv->out, value, csv->separator);
}

static void put_number(struct csv *csv, bool known, uint64_t value)
{
    char text[24] = "";

    if (known)
        snprintf(text, sizeof(text), "%" PRIu64, value);
    put(csv, text);
}

static void end(struct csv *csv)
{
    fputc('\n', csv->out);
    csv->begun = false;
}

static void put_names(struct csv *csv, const char *const *names)
{
    for (; *names; names++)
        put(csv, *names);
    end(csv);
}

static void functions(struct csv *csv, const struct report *report, size_t top)
{
    static const char *const names[] = {"function", "file",  "kernel", "samples",
                                        "self",     "total", NULL};

    put_names(csv, names);
    for (size_t i = 0; i < report->function_count && (!top || i < top); i++) {
        const struct report_function *row = &report->functions[i];

        put(csv, row->name);
        put(csv, row->file);
        put_number(csv, true, row->kernel);
        put_number(csv, true, row->samples);
        put_number(csv, true, row->self);
        put_number(csv, report->has_stacks, row->total);
        end(csv);
    }
}

static void threads(struct csv *csv, const struct report *report, size_t top)
{
    static const char *const names[] = {"pid",    "tid",      "name",    "samples",    "weight",
                                        "run_ns", "ready_ns", "wait_ns", "unknown_ns", NULL};

    put_names(csv, names);
    for (size_t i = 0; i < report->thread_count && (!top || i < top); i++) {
        const struct report_thread *row = &report->threads[i];
        const struct recorded_thread *thread = &report->recording->threads[row->thread];
        bool has = report->has_switches &&
                   (row->run_ns + row->ready_ns + row->wait_ns || !row->unknown_ns);

        put_number(csv, thread->pid >= 0, (uint64_t)thread->pid);
        put_number(csv, thread->tid >= 0, (uint64_t)thread->tid);
        put(csv, thread->name);
        put_number(csv, true, row->samples);
        put_number(csv, true, row->weight);
        put_number(csv, has, row->run_ns);
        put_number(csv, has, row->ready_ns);
        put_number(csv, has, row->wait_ns);
        put_number(csv, report->has_switches, row->unknown_ns);
        end(csv);
    }
}

static void waits(struct csv *csv, const struct report *report, size_t top)
{
    static const char *const names[] = {"state", "cause", "reason", "reason_name",
                                        "count", "ns",    NULL};

    put_names(csv, names);
    for (size_t i = 0; i < report->wait_count && (!top || i < top); i++) {
        const struct report_wait *row = &report->waits[i];
        const char *reason = row->reason < 0 ? NULL : prcb_wait_reason_name((uint32_t)row->reason);

        put(csv, row->ready ? "ready" : "waiting");
        put(csv, row->cause);
        put_number(csv, row->reason >= 0, (uint64_t)row->reason);
        put(csv, reason ? reason : "");
        put_number(csv, true, row->count);
        put_number(csv, true, row->ns);
        end(csv);
    }
}

static void processors(struct csv *csv, const struct report *report)
{
    put(csv, "cpu");
    put(csv, "samples");
    put(csv, "run_ns");
    for (const struct figure *figure = processor_figures; figure->name; figure++) {
        if (figure->kind == FIGURE_PART)
            put(csv, figure->name);
    }
    end(csv);
    for (size_t i = 0; i < report->processor_count; i++) {
        const struct report_processor *row = &report->processors[i];

        put_number(csv, true, row->cpu);
        put_number(csv, true, row->samples);
        put_number(csv, report->has_switches, row->run_ns);
        for (size_t j = 0; j < PROCESSOR_PARTS; j++)
            put_number(csv, row->parts[j] >= 0, (uint64_t)row->parts[j]);
        end(csv);
    }
}

static void timeline(struct csv *csv, const struct report *report)
{
    static const char *const names[] = {"cpu", "start_ns", "busy_ns", "tid", "name", NULL};

    put_names(csv, names);
    for (size_t i = 0; i < report->processor_count; i++) {
        for (size_t j = 0; j < report->cells; j++) {
            const struct report_cell *cell = &report->processors[i].cells[j];
            const struct recorded_thread *thread =
                cell->thread == SIZE_MAX ? NULL : &report->recording->threads[cell->thread];

            put_number(csv, true, report->processors[i].cpu);
            put_number(csv, true, report->span_ns / report->cells * j);
            put_number(csv, report->has_switches, cell->busy_ns);
            put_number(csv, thread, thread ? (uint64_t)thread->tid : 0);
            put(csv, thread ? thread->name : "");
            end(csv);
        }
    }
}

/* The stack is one value: functions, innermost first. */
static void stacks(struct csv *csv, const struct report *report, size_t top)
{
    static const char *const names[] = {"pid",  "tid",   "name", "cause", "rest", "kind",
                                        "word", "count", "ns",   "stack", NULL};
    const struct recording *r = report->recording;

    put_names(csv, names);
    for (size_t i = 0; i < report->offcpu.count && (!top || i < top); i++) {
        const struct offcpu_row *row = &report->offcpu.rows[i];
        const struct recorded_thread *thread = &r->threads[row->thread];
        char *text = recording_stack_line(r, row->stack);

        put_number(csv, thread->pid >= 0, (uint64_t)thread->pid);
        put_number(csv, thread->tid >= 0, (uint64_t)thread->tid);
        put(csv, thread->name);
        put(csv, row->cause);
        put(csv, row->rest ? row->rest : "");
        put(csv, row->kind ? row->kind : "");
        put(csv, row->word ? row->word : "");
        put_number(csv, true, row->count);
        put_number(csv, true, row->ns);
        put(csv, text ? text : "");
        free(text);
        end(csv);
    }
}

void report_print_csv(const struct report *report, const struct report_style *style, FILE *out)
{
    struct csv csv = {.out = out, .separator = style->separator};
    bool more = false;

    for (unsigned bit = 1; bit < REPORT_ALL; bit <<= 1) {
        if (!(style->tables & bit) || (bit == REPORT_STACKS && !report->recording->has_wait_stacks))
            continue;
        if (more)
            fputc('\n', out);
        more = true;
        switch (bit) {
        case REPORT_FUNCTIONS:
            functions(&csv, report, style->top);
            break;
        case REPORT_THREADS:
            threads(&csv, report, style->top);
            break;
        case REPORT_WAITS:
            waits(&csv, report, style->top);
            break;
        case REPORT_STACKS:
            stacks(&csv, report, style->top);
            break;
        case REPORT_PROCESSORS:
            processors(&csv, report);
            break;
        default:
            timeline(&csv, report);
        }
    }
}
