/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes the report as lines of values: one table, or all of them with an empty line between.
 */
#include "report.h"

#include <stdlib.h>

#include "csv.h"

static void functions(struct csv *csv, const struct report *report, size_t top)
{
    static const char *const names[] = {"function", "file",  "kernel", "samples",
                                        "self",     "total", NULL};

    csv_names(csv, names);
    for (size_t i = 0; i < report->function_count && (!top || i < top); i++) {
        const struct report_function *row = &report->functions[i];

        csv_text(csv, row->name);
        csv_text(csv, row->file);
        csv_number(csv, true, row->kernel);
        csv_number(csv, true, row->samples);
        csv_number(csv, true, row->self);
        csv_number(csv, report->has_stacks, row->total);
        csv_end(csv);
    }
}

static void threads(struct csv *csv, const struct report *report, size_t top)
{
    static const char *const names[] = {"pid",    "tid",      "name",    "samples",    "weight",
                                        "run_ns", "ready_ns", "wait_ns", "unknown_ns", NULL};

    csv_names(csv, names);
    for (size_t i = 0; i < report->thread_count && (!top || i < top); i++) {
        const struct report_thread *row = &report->threads[i];
        const struct recorded_thread *thread = &report->recording->threads[row->thread];
        bool has = report->has_switches &&
                   (row->run_ns + row->ready_ns + row->wait_ns || !row->unknown_ns);

        csv_number(csv, thread->pid >= 0, (uint64_t)thread->pid);
        csv_number(csv, thread->tid >= 0, (uint64_t)thread->tid);
        csv_text(csv, thread->name);
        csv_number(csv, true, row->samples);
        csv_number(csv, true, row->weight);
        csv_number(csv, has, row->run_ns);
        csv_number(csv, has, row->ready_ns);
        csv_number(csv, has, row->wait_ns);
        csv_number(csv, report->has_switches, row->unknown_ns);
        csv_end(csv);
    }
}

static void waits(struct csv *csv, const struct report *report, size_t top)
{
    static const char *const names[] = {"state", "cause", "reason", "reason_name",
                                        "count", "ns",    NULL};

    csv_names(csv, names);
    for (size_t i = 0; i < report->wait_count && (!top || i < top); i++) {
        const struct report_wait *row = &report->waits[i];
        const char *reason = row->reason < 0 ? NULL : prcb_wait_reason_name((uint32_t)row->reason);

        csv_text(csv, row->ready ? "ready" : "waiting");
        csv_text(csv, row->cause);
        csv_number(csv, row->reason >= 0, (uint64_t)row->reason);
        csv_text(csv, reason ? reason : "");
        csv_number(csv, true, row->count);
        csv_number(csv, true, row->ns);
        csv_end(csv);
    }
}

static void processors(struct csv *csv, const struct report *report)
{
    csv_text(csv, "cpu");
    csv_text(csv, "samples");
    csv_text(csv, "run_ns");
    for (const struct figure *figure = processor_figures; figure->name; figure++) {
        if (figure->kind == FIGURE_PART)
            csv_text(csv, figure->name);
    }
    csv_end(csv);
    for (size_t i = 0; i < report->processor_count; i++) {
        const struct report_processor *row = &report->processors[i];

        csv_number(csv, true, row->cpu);
        csv_number(csv, true, row->samples);
        csv_number(csv, report->has_switches, row->run_ns);
        for (size_t j = 0; j < PROCESSOR_PARTS; j++)
            csv_number(csv, row->parts[j] >= 0, (uint64_t)row->parts[j]);
        csv_end(csv);
    }
}

static void timeline(struct csv *csv, const struct report *report)
{
    static const char *const names[] = {"cpu", "start_ns", "busy_ns", "tid", "name", NULL};

    csv_names(csv, names);
    for (size_t i = 0; i < report->processor_count; i++) {
        for (size_t j = 0; j < report->cells; j++) {
            const struct report_cell *cell = &report->processors[i].cells[j];
            const struct recorded_thread *thread =
                cell->thread == SIZE_MAX ? NULL : &report->recording->threads[cell->thread];

            csv_number(csv, true, report->processors[i].cpu);
            csv_number(csv, true, report->span_ns / report->cells * j);
            csv_number(csv, report->has_switches, cell->busy_ns);
            csv_number(csv, thread, thread ? (uint64_t)thread->tid : 0);
            csv_text(csv, thread ? thread->name : "");
            csv_end(csv);
        }
    }
}

/* The stack is one value: functions, innermost first. */
static void stacks(struct csv *csv, const struct report *report, size_t top)
{
    static const char *const names[] = {"pid",  "tid",   "name", "cause", "rest", "kind",
                                        "word", "count", "ns",   "stack", NULL};
    const struct recording *r = report->recording;

    csv_names(csv, names);
    for (size_t i = 0; i < report->offcpu.count && (!top || i < top); i++) {
        const struct offcpu_row *row = &report->offcpu.rows[i];
        const struct recorded_thread *thread = &r->threads[row->thread];
        char *text = recording_stack_line(r, row->stack);

        csv_number(csv, thread->pid >= 0, (uint64_t)thread->pid);
        csv_number(csv, thread->tid >= 0, (uint64_t)thread->tid);
        csv_text(csv, thread->name);
        csv_text(csv, row->cause);
        csv_text(csv, row->rest ? row->rest : "");
        csv_text(csv, row->kind ? row->kind : "");
        csv_text(csv, row->word ? row->word : "");
        csv_number(csv, true, row->count);
        csv_number(csv, true, row->ns);
        csv_text(csv, text ? text : "");
        free(text);
        csv_end(csv);
    }
}

static void spans(struct csv *csv, const struct report *report, size_t top)
{
    static const char *const names[] = {"trace_id", "span_id", "span_ns", "pid", "tid", "name",
                                        "cause",    "word",    "count",   "ns",  "in",  NULL};

    csv_names(csv, names);
    for (size_t i = 0; i < report->spanned.count && (!top || i < top); i++) {
        const struct spanned_row *row = &report->spanned.rows[i];
        const struct recorded_thread *thread = &report->recording->threads[row->thread];

        csv_text(csv, row->trace_id);
        csv_text(csv, row->span_id);
        csv_number(csv, true, row->span_ns);
        csv_number(csv, thread->pid >= 0, (uint64_t)thread->pid);
        csv_number(csv, thread->tid >= 0, (uint64_t)thread->tid);
        csv_text(csv, thread->name);
        csv_text(csv, row->cause);
        csv_text(csv, row->word);
        csv_number(csv, true, row->count);
        csv_number(csv, true, row->ns);
        csv_text(csv, recording_place(report->recording, row->stack));
        csv_end(csv);
    }
}

void report_print_csv(const struct report *report, const struct report_style *style, FILE *out)
{
    struct csv csv = {.out = out, .separator = style->separator};
    bool more = false;

    for (unsigned bit = 1; bit < REPORT_ALL; bit <<= 1) {
        if (!(style->tables & bit) ||
            (bit == REPORT_STACKS && !report->recording->has_wait_stacks) ||
            (bit == REPORT_SPANS && !report->spanned.count))
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
        case REPORT_SPANS:
            spans(&csv, report, style->top);
            break;
        case REPORT_PROCESSORS:
            processors(&csv, report);
            break;
        default:
            timeline(&csv, report);
        }
    }
}
