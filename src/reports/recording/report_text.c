/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes the report for people.
 */
#include "array.h"
#include "critical.h"
#include "report.h"
#include "report_verdict.h"

#include <ctype.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "schema.h"
#include "text.h"

#define CELL         32
#define CAUSE_WIDTH  12
#define STACK_INDENT 31
#define NAME_MOST    60 /* columns of a function's name */
#define SPAN_PARTS   3
#define WIDE         100       /* on narrower terminals tables stand closer */
#define SHORT_NS     100000000 /* below this nothing is said: samples are few */

static const char *time_text(uint64_t ns, char *ret)
{
    format_time(ns, ret, CELL);
    return ret;
}

static const char *known_time(int64_t ns, char *ret)
{
    return ns < 0 ? "-" : time_text((uint64_t)ns, ret);
}

static const char *weight_text(const struct report *report, uint64_t weight, char *ret)
{
    if (report->weight_is_ns)
        return time_text(weight, ret);
    snprintf(ret, CELL, "%" PRIu64, weight);
    return ret;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* The width of a column of a table: wide, or on a terminal of few columns. */
static int width_of(size_t columns, int wide, int narrow)
{
    return columns < WIDE ? narrow : wide;
}

/* Names come from other people's files: nothing in them may move the cursor. */
static void print_name(FILE *out, const char *name)
{
    text_print(out, TEXT_MARKS, name);
}

static size_t shown(size_t count, const struct report_style *style)
{
    return style->top && count > style->top ? style->top : count;
}

static void print_rest(size_t count, size_t printed, FILE *out)
{
    if (count > printed)
        fprintf(out, "  ... %zu more; --top 0 shows all\n", count - printed);
}

/* A timer that runs only while a thread runs starts again with each thread, and never expires in
 * a short one. The threads' own time is known from their switches; a processor that a hypervisor
 * takes away explains some of the difference, but not half. */
static void note_short_threads(const struct report *report, FILE *out)
{
    char *user_only = recording_fact(report->recording, "user_only"), sampled[CELL], ran[CELL];
    uint64_t run_ns = 0;

    for (size_t i = 0; i < report->thread_count; i++)
        run_ns += report->threads[i].run_ns;
    if (report->weight_is_ns && !report->lost && run_ns > SHORT_NS && report->weight < run_ns / 2 &&
        (!user_only || strcmp(user_only, "1")))
        fprintf(out,
                "note: samples stand for %s of the %s that threads ran: those that live shorter "
                "than it is from one sample to the next are missing. A higher -F meets more of "
                "them; -a samples processors, and misses none\n",
                time_text(report->weight, sampled), time_text(run_ns, ran));
    free(user_only);
}

static int note_misses(sqlite3_stmt *row, void *ctx)
{
    const char *name = (const char *)sqlite3_column_text(row, 0);
    FILE *out = ctx;

    fprintf(out, "note: %lld time%s the kernel did not run the program ",
            (long long)sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 1) == 1 ? "" : "s");
    print_name(out, name ? name : "?");
    fprintf(out, ", being in the middle of it: switches, or what waits were for, may be missing\n");
    return 0;
}

/* A file of prcb flight has none. */
static bool has_samples(const struct report *report)
{
    char *source = recording_fact(report->recording, "sample_source");
    bool none = source && !strcmp(source, "none");

    free(source);
    return !none;
}

/* How many of the samples' stacks are whole, and what would make more of them so. */
static void print_complete(const struct report *report, FILE *out)
{
    static const struct {
        const char *missing, *words;
    } reasons[] = {
        {"cut", "deeper than what was copied (--stack-bytes)"},
        {"broken", "no rules for code that was met"},
        {"ended", "the process ended too soon"},
        {"budget", "no time to unwind them (a lower -F)"},
        {"permission", "no permission to read the process"},
        {"other program", "the process ran another program by then"},
        {"no copy", "no memory of the stack"},
    };

    if (!report->recording->has_copies || !report->samples)
        return;
    fprintf(out, "stacks are complete for %.1f%% of the samples",
            percent(report->complete, report->samples));
    for (size_t i = 0; i < report->gap_count; i++) {
        const struct report_gap *gap = &report->gaps[i];
        const char *words = "the process could not be read";

        for (size_t j = 0; j < sizeof(reasons) / sizeof(*reasons); j++)
            words = strcmp(gap->missing, reasons[j].missing) ? words : reasons[j].words;
        fprintf(out, "%s %.1f%%: %s", i ? "," : ";", percent(gap->samples, report->samples), words);
    }
    fputc('\n', out);
}

/* Prints how many of the interpreters' waits have all their functions. */
static void print_interpreted(const struct report *report, FILE *out)
{
    uint64_t whole = report_number_fact(report->recording, "interpreted_waits");
    uint64_t all = whole + report_number_fact(report->recording, "uninterpreted_waits");

    if (all)
        fprintf(out,
                "an interpreter's functions are all known for %.1f%% of %" PRIu64 " waits read\n",
                percent(whole, all), all);
}

static void print_head(const struct report *report, const struct verdict *verdict, size_t columns,
                       FILE *out)
{
    static const char *const facts[] = {"command", "event", "sample_source"};
    char *values[3], time[CELL];
    bool asked = report_print_saved(report, out);

    report_verdict_print(verdict, columns, out);
    for (size_t i = 0; i < 3; i++)
        values[i] = recording_fact(report->recording, facts[i]);
    if (values[0]) {
        print_name(out, values[0]);
        fputs(": ", out);
    }
    if (has_samples(report)) {
        fprintf(out, "%" PRIu64 " sample%s of ", report->samples, report->samples == 1 ? "" : "s");
        print_name(out, values[1] ? values[1] : "?");
        fputs(" (", out);
        print_name(out, values[2] ? values[2] : "?");
        fputs(")", out);
    } else {
        fprintf(out, "switches of %zu threads", report->thread_count);
    }
    fprintf(out, " in %s, %" PRIu64 " lost", time_text(report->span_ns, time), report->lost);
    if (report->missed)
        fprintf(out, ", %" PRIu64 " switch%s missed", report->missed,
                report->missed == 1 ? "" : "es");
    fputc('\n', out);
    if (!report->recording->complete)
        fprintf(out, "note: the recording is incomplete or still running; this is what it contains "
                     "so far\n");
    if (asked)
        report_print_path(report, out);
    print_complete(report, out);
    print_interpreted(report, out);
    note_short_threads(report, out);
    recording_query(report->recording,
                    "SELECT substr(name, 1 + length('" RECORD_MISSES "'), 64), "
                    "CAST(value AS INTEGER) "
                    "FROM facts WHERE name GLOB '" RECORD_MISSES
                    "*' AND CAST(value AS INTEGER) > 0 "
                    "ORDER BY 1 LIMIT 32",
                    note_misses, out, NULL);
    for (size_t i = 0; i < 3; i++)
        free(values[i]);
}

/* What a quota took, in a sentence: nothing else that is shown below helps against it. */
static void print_held_back(const struct report *report, FILE *out)
{
    uint64_t ns = 0, wait = 0;
    char time[CELL];

    for (size_t i = 0; i < report->wait_count; i++) {
        const struct report_wait *row = &report->waits[i];

        wait += row->ns;
        if (!row->ready && !strcmp(row->cause, "throttled"))
            ns += row->ns;
    }
    if (ns && ns * 100 >= wait)
        fprintf(out, "threads were held back by a CPU quota for %s\n", time_text(ns, time));
}

/* Its name and file: on a narrow terminal as much of the file's path as there is room for, from its
 * end. */
static void print_function(const struct report *report, const struct report_function *row,
                           size_t columns, FILE *out)
{
    size_t used = 8 + 8 + (report->has_stacks ? 19 : 0) + 10 + format_width(row->name) + 2;
    const char *file = row->file, *last = strrchr(file, '/');

    if (width_of(columns, 0, 1) && used + format_width(file) > columns) {
        file = last ? last + 1 : file;
        file = used + format_width(file) > columns ? "" : file;
    }
    print_name(out, row->name);
    if (*file) {
        fputs("  ", out);
        print_name(out, file);
    }
    fputc('\n', out);
}

static void print_functions(const struct report *report, const struct report_style *style,
                            FILE *out)
{
    size_t columns = format_columns(out);
    size_t count = shown(report->function_count, style);

    fprintf(out, "\n%*s %7s", width_of(columns, 10, 8), report->weight_is_ns ? "ON CPU" : "EVENTS",
            "SHARE");
    if (report->has_stacks)
        fprintf(out, "%*s %7s", width_of(columns, 12, 11), "WITH CALLS", "SHARE");
    fprintf(out, "%*s  %s\n", width_of(columns, 10, 8), "SAMPLES", "FUNCTION");
    for (size_t i = 0; i < count; i++) {
        const struct report_function *row = &report->functions[i];
        char self[CELL], total[CELL];

        fprintf(out, "%*s %6.2f%%", width_of(columns, 10, 8), weight_text(report, row->self, self),
                percent(row->self, report->weight));
        if (report->has_stacks)
            fprintf(out, "%*s %6.2f%%", width_of(columns, 12, 11),
                    weight_text(report, row->total, total), percent(row->total, report->weight));
        fprintf(out, "%*" PRIu64 "  ", width_of(columns, 10, 8), row->samples);
        print_function(report, row, columns, out);
    }
    print_rest(report->function_count, count, out);
}

static void print_threads(const struct report *report, const struct report_style *style, FILE *out)
{
    size_t columns = format_columns(out);
    size_t count = shown(report->thread_count, style);
    int time = width_of(columns, 10, 7);
    bool narrow = width_of(columns, 0, 1);

    fprintf(out, "\n%*s %7s%*s", narrow ? 8 : 10, report->weight_is_ns ? "ON CPU" : "EVENTS",
            "SHARE", narrow ? 8 : 10, "SAMPLES");
    if (report->has_switches)
        fprintf(out, "%*s %*s %*s", time + 1 + !narrow, "RUN", time, "READY", time, "WAIT");
    fprintf(out, "%*s %7s  %s\n", narrow ? 8 : 9, "PID", "TID", "THREAD");
    for (size_t i = 0; i < count; i++) {
        const struct report_thread *row = &report->threads[i];
        const struct recorded_thread *thread = &report->recording->threads[row->thread];
        char text[4][CELL];

        fprintf(out, "%*s %6.2f%%%*" PRIu64, narrow ? 8 : 10,
                weight_text(report, row->weight, text[0]), percent(row->weight, report->weight),
                narrow ? 8 : 10, row->samples);
        if (report->has_switches && !(row->run_ns + row->ready_ns + row->wait_ns) &&
            row->unknown_ns)
            fprintf(out, "%*s %*s %*s", time + 1 + !narrow, "-", time, "-", time, "-");
        else if (report->has_switches)
            fprintf(out, "%*s %*s %*s", time + 1 + !narrow, time_text(row->run_ns, text[1]), time,
                    time_text(row->ready_ns, text[2]), time, time_text(row->wait_ns, text[3]));
        fprintf(out, "%*" PRId64 " %7" PRId64 "  ", narrow ? 8 : 9, thread->pid, thread->tid);
        print_name(out, thread->name);
        fputc('\n', out);
    }
    print_rest(report->thread_count, count, out);
}

static void print_waits(const struct report *report, const struct report_style *style, FILE *out)
{
    size_t count = shown(report->wait_count, style);

    if (!report->has_switches) {
        fputs("\nno switches were recorded: waits are not known\n", out);
        return;
    }
    fprintf(out, "\n%10s %10s  %-8s CAUSE\n", "OFF CPU", "TIMES", "STATE");
    for (size_t i = 0; i < count; i++) {
        const struct report_wait *row = &report->waits[i];
        char time[CELL];

        fprintf(out, "%10s %10" PRIu64 "  %-8s ", time_text(row->ns, time), row->count,
                row->ready ? "ready" : "waiting");
        print_name(out, *row->cause ? row->cause : "-");
        fputc('\n', out);
    }
    print_rest(report->wait_count, count, out);
}

/* Threads of one process and name that waited in the same place are one row. */
struct place {
    struct offcpu_row row;
    const struct recorded_thread *thread; /* one of them */
    size_t threads;
};

static int by_place(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    int order = (a->thread->pid > b->thread->pid) - (a->thread->pid < b->thread->pid);

    if (!order)
        order = strcmp(a->thread->name, b->thread->name);
    if (!order)
        order = strcmp(a->row.cause, b->row.cause);
    if (!order)
        order = (a->row.stack > b->row.stack) - (a->row.stack < b->row.stack);
    if (!order)
        order = strcmp(a->row.rest ? a->row.rest : "", b->row.rest ? b->row.rest : "");
    return order;
}

static int by_place_time(const void *left, const void *right)
{
    const struct place *a = left, *b = right;

    if (offcpu_is_idle(&a->row) != offcpu_is_idle(&b->row))
        return offcpu_is_idle(&a->row) ? 1 : -1;
    return a->row.ns != b->row.ns ? (a->row.ns < b->row.ns ? 1 : -1) : by_place(a, b);
}

static size_t make_places(const struct report *report, struct place *places)
{
    const struct offcpu *offcpu = &report->offcpu;
    size_t count = 0;

    for (size_t i = 0; i < offcpu->count; i++)
        places[i] =
            (struct place){offcpu->rows[i], &report->recording->threads[offcpu->rows[i].thread], 1};
    array_sort(places, offcpu->count, by_place);
    for (size_t i = 0; i < offcpu->count; i++) {
        if (count && !by_place(&places[count - 1], &places[i])) {
            places[count - 1].row.ns += places[i].row.ns;
            places[count - 1].row.count += places[i].row.count;
            places[count - 1].threads += places[i].threads;
            continue;
        }
        places[count++] = places[i];
    }
    array_sort(places, count, by_place_time);
    return count;
}

/* Writes "a < b < c", innermost first, on lines of the terminal's width. */
static void print_stack(const struct report *report, size_t stack, size_t columns, FILE *out)
{
    const struct recording *r = report->recording;
    size_t indent = (size_t)width_of(columns, STACK_INDENT, STACK_INDENT / 2), used = indent;

    fprintf(out, "%*s", (int)indent, "");
    for (; stack != SIZE_MAX; stack = r->stacks[stack].caller_index) {
        size_t function = r->stacks[stack].function;
        const char *name = function == SIZE_MAX ? "[unknown]" : r->functions[function].name;
        bool last = r->stacks[stack].caller_index == SIZE_MAX;
        char text[4 * NAME_MOST + 1];
        size_t width;

        text_copy(TEXT_MARKS, name, text, sizeof(text));
        format_cut(text, NAME_MOST);
        width = format_width(text);
        if (used > indent && used + 1 + width + (last ? 0 : 2) > columns) {
            fprintf(out, "\n%*s", (int)indent, "");
            used = indent;
        } else if (used > indent) {
            fputc(' ', out);
            used++;
        }
        fprintf(out, "%s%s", text, last ? "" : " <");
        used += width + 2;
    }
    fputc('\n', out);
}

/* Who, and a word for it, which may go to the next line. */
static void print_waiters(const struct place *place, size_t columns, FILE *out)
{
    const struct offcpu_row *row = &place->row;
    const char *word = row->rest ? row->rest : row->word;
    const char *idle = row->rest                      ? ""
                       : offcpu_is_idle(row)          ? " (idle by design)"
                       : !strcmp(row->kind, "either") ? " (may be idle)"
                                                      : "";
    char who[CELL];

    print_name(out, *place->thread->name ? place->thread->name : "?");
    if (place->threads == 1)
        snprintf(who, sizeof(who), " (%" PRId64 ")", place->thread->tid);
    else
        snprintf(who, sizeof(who), " (%zu threads of %" PRId64 ")", place->threads,
                 place->thread->pid);
    fputs(who, out);
    if (*word && width_of(columns, 0, 1) &&
        36 + format_width(place->thread->name) + strlen(who) + format_width(word) + strlen(idle) >
            columns)
        fprintf(out, "\n%*s", STACK_INDENT / 2, "");
    else if (*word)
        fputs("  ", out);
    print_name(out, word);
    fprintf(out, "%s\n", idle);
}

static void print_place(const struct report *report, const struct place *place, size_t columns,
                        FILE *out)
{
    const struct offcpu_row *row = &place->row;
    size_t width = *row->cause ? strlen(row->cause) : 1;
    size_t cell = (size_t)width_of(columns, CAUSE_WIDTH, 9);
    char time[CELL];

    fprintf(out, "%*s %6.2f%%%*" PRIu64 "  ", width_of(columns, 10, 8), time_text(row->ns, time),
            percent(row->ns, report->offcpu.ns), width_of(columns, 11, 8), row->count);
    print_name(out, *row->cause ? row->cause : "-");
    fprintf(out, "%*s ", width < cell ? (int)(cell - width) : 0, "");
    print_waiters(place, columns, out);
    if (!row->rest)
        print_stack(report, row->stack, columns, out);
}

static void print_stacks(const struct report *report, const struct report_style *style, FILE *out)
{
    size_t columns = format_columns(out);
    const struct offcpu *offcpu = &report->offcpu;
    struct place *places;
    size_t count, printed;
    char text[CELL];

    if (!report->recording->has_wait_stacks) {
        if (style->tables != REPORT_ALL)
            fputs("\nno stacks of waits were recorded: record with prcb record -g\n", out);
        return;
    }
    places = calloc(offcpu->count + 1, sizeof(*places));
    if (!places)
        return;
    count = make_places(report, places);
    if (!style->idle) {
        while (count && offcpu_is_idle(&places[count - 1].row))
            count--;
    }
    printed = shown(count, style);
    fprintf(out, "\n%*s %7s%*s  %-*s %s\n", width_of(columns, 10, 8), "OFF CPU", "SHARE",
            width_of(columns, 11, 8), "TIMES", width_of(columns, CAUSE_WIDTH, 9), "CAUSE",
            "THREAD AND STACK");
    for (size_t i = 0; i < printed; i++)
        print_place(report, &places[i], columns, out);
    print_rest(count, printed, out);
    if (offcpu->idle_ns && !style->idle)
        fprintf(out, "%10s %6.2f%% idle by design (--idle shows where)\n",
                time_text(offcpu->idle_ns, text), percent(offcpu->idle_ns, offcpu->ns));
    fprintf(out, "stack known for %.1f%% of the waiting time\n",
            percent(offcpu->known_ns, offcpu->ns));
    free(places);
}

static void print_spanned(const struct report *report, const struct spanned_row *row,
                          size_t columns, FILE *out)
{
    const struct recorded_thread *thread = &report->recording->threads[row->thread];
    char time[CELL], place[4 * NAME_MOST + 1];
    const char *in = recording_place(report->recording, row->stack);

    fprintf(out, "%*s%s ", width_of(columns, STACK_INDENT, STACK_INDENT / 2), "",
            time_text(row->ns, time));
    print_name(out, *row->cause ? row->cause : "-");
    if (*in) {
        text_copy(TEXT_MARKS, in, place, sizeof(place));
        format_cut(place, NAME_MOST);
        fprintf(out, " in %s", place);
    }
    fputs(", ", out);
    print_name(out, *thread->name ? thread->name : "?");
    fprintf(out, " (%" PRId64 ")\n", thread->tid);
}

/* Prints each span, and on lines of their own what it waited for longest. */
static void print_spans(const struct report *report, const struct report_style *style, FILE *out)
{
    const struct spanned *s = &report->spanned;
    size_t columns = format_columns(out), printed = 0, inner = 0, most = shown(s->spans, style);
    char time[CELL];

    if (!s->count)
        return;
    fprintf(out, "\n%*s %7s  %-16s %s\n", width_of(columns, 10, 8), "WAITED", "SHARE", "SPAN",
            "TRACE, AND WHAT FOR");
    for (size_t i = 0; i < s->count && printed <= most; i++) {
        const struct spanned_row *row = &s->rows[i];

        if (!i || !spanned_same(row, row - 1)) {
            if (printed++ == most)
                break;
            inner = 0;
            fprintf(out, "%*s %6.2f%%  ", width_of(columns, 10, 8), time_text(row->span_ns, time),
                    percent(row->span_ns, s->ns));
            print_name(out, row->span_id);
            fputc(' ', out);
            print_name(out, row->trace_id);
            fputc('\n', out);
        }
        if (inner++ < SPAN_PARTS)
            print_spanned(report, row, columns, out);
    }
    print_rest(s->spans, most, out);
    fprintf(out, "spans are known of %.1f%% of the waiting time\n",
            percent(s->ns, report->offcpu.ns));
}

/* Writes "user_ns" as "USER". */
static const char *part_heading(const struct figure *figure, char *ret)
{
    const char *name = strcmp(figure->name, "dpc_ns") ? figure->name : "softirq";
    size_t i;

    for (i = 0; i + 1 < CELL && name[i] && name[i] != '_'; i++)
        ret[i] = (char)toupper((unsigned char)name[i]);
    ret[i] = '\0';
    return ret;
}

static void print_processors(const struct report *report, FILE *out)
{
    size_t columns = format_columns(out);
    char text[CELL];

    fprintf(out, "\n%*s %*s %*s", width_of(columns, 4, 3), "CPU", width_of(columns, 8, 7),
            "SAMPLES", width_of(columns, 10, 8), "RECORDED");
    for (const struct figure *figure = processor_figures; figure->name; figure++) {
        if (figure->kind == FIGURE_PART)
            fprintf(out, " %*s", width_of(columns, 10, 9), part_heading(figure, text));
    }
    fputc('\n', out);
    for (size_t i = 0; i < report->processor_count; i++) {
        const struct report_processor *row = &report->processors[i];

        fprintf(out, "%*u %*" PRIu64 " %*s", width_of(columns, 4, 3), row->cpu,
                width_of(columns, 8, 7), row->samples, width_of(columns, 10, 8),
                report->has_switches ? time_text(row->run_ns, text) : "-");
        for (int j = 0; j < PROCESSOR_PARTS; j++)
            fprintf(out, " %*s", width_of(columns, 10, 9), known_time(row->parts[j], text));
        fputc('\n', out);
    }
}

/* The threads that fill the most cells get letters. */
#define LETTERS 26
struct letters {
    size_t thread[LETTERS];
    size_t count;
};

static void choose_letters(const struct report *report, struct letters *ret)
{
    size_t *cells = calloc(report->recording->thread_count + 1, sizeof(*cells));

    ret->count = 0;
    for (size_t i = 0; cells && i < report->processor_count; i++) {
        for (size_t j = 0; j < report->cells; j++) {
            size_t thread = report->processors[i].cells[j].thread;

            if (thread != SIZE_MAX)
                cells[thread]++;
        }
    }
    while (cells && ret->count < LETTERS) {
        size_t best = 0;

        for (size_t i = 1; i < report->recording->thread_count; i++) {
            if (cells[i] > cells[best])
                best = i;
        }
        if (!cells[best])
            break;
        cells[best] = 0;
        ret->thread[ret->count++] = best;
    }
    free(cells);
}

static char letter_of(const struct letters *letters, const struct report_cell *cell,
                      uint64_t cell_ns)
{
    if (cell->thread == SIZE_MAX || cell->busy_ns * 20 < cell_ns)
        return '.';
    for (size_t i = 0; i < letters->count; i++) {
        if (letters->thread[i] == cell->thread)
            return (char)((cell->busy_ns * 2 >= cell_ns ? 'A' : 'a') + (int)i);
    }
    return '+';
}

static void print_timeline(const struct report *report, FILE *out)
{
    size_t columns = format_columns(out);
    struct letters letters;
    char time[CELL];

    if (!report->has_switches) {
        fputs("\nno switches were recorded: no timeline\n", out);
        return;
    }
    choose_letters(report, &letters);
    fprintf(out,
            "\nTIME  each column is %s: capital: a thread ran half of it or more,%ssmall: "
            "less, '.' below 1/20\n",
            time_text(report->span_ns / report->cells, time),
            width_of(columns, 0, 1) ? "\n      " : " ");
    for (size_t i = 0; i < report->processor_count; i++) {
        fprintf(out, "%4u  ", report->processors[i].cpu);
        for (size_t j = 0; j < report->cells; j++)
            fputc(letter_of(&letters, &report->processors[i].cells[j],
                            report->span_ns / report->cells),
                  out);
        fputc('\n', out);
    }
    for (size_t i = 0; i < letters.count; i++) {
        const struct recorded_thread *thread = &report->recording->threads[letters.thread[i]];

        fprintf(out, "%s%c ",
                i % (size_t)width_of(columns, 4, 3) ? "   "
                : i                                 ? "\n      "
                                                    : "      ",
                (char)('A' + (int)i));
        print_name(out, thread->name);
        fprintf(out, " (%" PRId64 ")", thread->tid);
    }
    fputc('\n', out);
}

void report_print_head(const struct report *report, const struct verdict *verdict, size_t columns,
                       FILE *out)
{
    print_head(report, verdict, columns, out);
    print_held_back(report, out);
}

void report_print_text(const struct report *report, const struct report_style *style, FILE *out)
{
    report_print_head(report, style->verdict, format_columns(out), out);
    if (style->tables & REPORT_FUNCTIONS && has_samples(report))
        print_functions(report, style, out);
    if (style->tables & REPORT_THREADS)
        print_threads(report, style, out);
    if (style->tables & REPORT_WAITS)
        print_waits(report, style, out);
    if (style->tables & REPORT_STACKS)
        print_stacks(report, style, out);
    if (style->tables & REPORT_SPANS)
        print_spans(report, style, out);
    if (style->tables & REPORT_PROCESSORS)
        print_processors(report, out);
    if (style->tables & REPORT_TIMELINE)
        print_timeline(report, out);
}
