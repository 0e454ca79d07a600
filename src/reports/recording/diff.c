/* SPDX-License-Identifier: BSD-2-Clause */
#include "diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <prcb/causes.h>

#include "array.h"
#include "condition.h"
#include "csv.h"
#include "error.h"
#include "format.h"
#include "json_doc.h"
#include "pairing.h"
#include "report.h"
#include "text.h"

#define NAME_WIDTH 44
#define SECOND     1e9

static const char *const kind_names[] = {"total", "cause", "thread", "function"};

/* ---- rows ------------------------------------------------------------------------ */

/* Owns the name from here on. */
static int add(struct diff *d, enum diff_kind kind, char *name, const char *figure, int side,
               uint64_t value)
{
    struct diff_row row = {.kind = kind, .name = name, .figure = figure};

    row.value[side] = value;
    if (!name || array_append(d->rows, d->count, row)) {
        free(name);
        return -ENOMEM;
    }
    return 0;
}

static int add_thread(struct diff *d, const struct report_thread *row, int side)
{
    const char *name = d->recordings[side]->threads[row->thread].name;
    int result = add(d, DIFF_THREAD, pairing_name(name), "running", side, row->run_ns);

    if (!result)
        result = add(d, DIFF_THREAD, pairing_name(name), "ready", side, row->ready_ns);
    if (!result)
        result = add(d, DIFF_THREAD, pairing_name(name), "waiting", side, row->wait_ns);
    return result;
}

static int add_switches(struct diff *d, const struct report *report, int side)
{
    uint64_t run = 0, ready = 0, wait = 0;
    int result = 0;

    for (size_t i = 0; i < report->thread_count && !result; i++) {
        run += report->threads[i].run_ns;
        ready += report->threads[i].ready_ns;
        wait += report->threads[i].wait_ns;
        result = add_thread(d, &report->threads[i], side);
    }
    if (!result)
        result = add(d, DIFF_TOTAL, strdup("running"), "", side, run);
    if (!result)
        result = add(d, DIFF_TOTAL, strdup("ready"), "", side, ready);
    if (!result)
        result = add(d, DIFF_TOTAL, strdup("waiting"), "", side, wait);
    for (size_t i = 0; i < report->wait_count && !result; i++) {
        const char *cause = *report->waits[i].cause ? report->waits[i].cause : "[not known]";

        if (!report->waits[i].ready)
            result = add(d, DIFF_CAUSE, strdup(cause), "", side, report->waits[i].ns);
    }
    return result;
}

static int add_recording(struct diff *d, int side, struct prcb_error *err)
{
    struct report report;
    int result = report_make(d->recordings[side], REPORT_CELLS, &report, err);

    if (result)
        return result;
    if (d->has_switches)
        result = add_switches(d, &report, side);
    for (size_t i = 0; i < report.function_count && !result; i++)
        result = add(d, DIFF_FUNCTION, strdup(report.functions[i].name), report.functions[i].file,
                     side, report.functions[i].self);
    report_free(&report);
    return result ? prcb_fail(err, result, "out of memory") : 0;
}

static int by_name(const void *left, const void *right)
{
    const struct diff_row *a = left, *b = right;
    int order = (int)a->kind - (int)b->kind;

    if (!order)
        order = strcmp(a->name, b->name);
    return order ? order : strcmp(a->figure, b->figure);
}

static double change_of(const struct diff_row *row)
{
    return row->rate[1] - row->rate[0];
}

static int by_change(const void *left, const void *right)
{
    const struct diff_row *a = left, *b = right;
    double x = fabs(change_of(a)), y = fabs(change_of(b));

    if (a->kind != b->kind)
        return (int)a->kind - (int)b->kind;
    if (a->kind == DIFF_TOTAL || x == y)
        return by_name(left, right);
    return x > y ? -1 : 1;
}

/* Merges rows of the same thing. */
static void merge(struct diff *d)
{
    size_t kept = 0;

    array_sort(d->rows, d->count, by_name);
    for (size_t i = 0; i < d->count; i++) {
        if (kept && !by_name(&d->rows[kept - 1], &d->rows[i])) {
            d->rows[kept - 1].value[0] += d->rows[i].value[0];
            d->rows[kept - 1].value[1] += d->rows[i].value[1];
            free(d->rows[i].name);
        } else {
            d->rows[kept++] = d->rows[i];
        }
    }
    d->count = kept;
    for (size_t i = 0; i < kept; i++) {
        for (int side = 0; side < 2; side++)
            d->rows[i].rate[side] =
                (double)d->rows[i].value[side] * SECOND / (double)d->span_ns[side];
    }
    array_sort(d->rows, kept, by_change);
}

int diff_make(const struct recording *a, const struct recording *b, struct diff *ret,
              struct prcb_error *err)
{
    struct diff d = {
        .recordings = {a, b},
        .span_ns = {a->end_ns - a->start_ns, b->end_ns - b->start_ns},
        .has_switches = a->has_switches && b->has_switches,
        .weight_is_ns = recording_counts_ns(a),
    };
    int result;

    if (!d.span_ns[0] || !d.span_ns[1])
        return prcb_fail(err, -EINVAL, "the %s recording is empty",
                         d.span_ns[0] ? "second" : "first");
    if (d.weight_is_ns != recording_counts_ns(b))
        return prcb_fail(err, -EINVAL,
                         "one recording sampled time, the other another event: they cannot "
                         "to compare");
    result = add_recording(&d, 0, err);
    if (!result)
        result = add_recording(&d, 1, err);
    if (result) {
        diff_free(&d);
        return result;
    }
    merge(&d);
    *ret = d;
    return 0;
}

void diff_free(struct diff *diff)
{
    for (size_t i = 0; i < diff->count; i++)
        free(diff->rows[i].name);
    free(diff->rows);
    memset(diff, 0, sizeof(*diff));
}

/* ---- conditions ------------------------------------------------------------------ */

static bool is_cause(const char *name)
{
#define NAME(number, NAME, known, ...)                                                             \
    if (!strcmp(known, name))                                                                      \
        return true;
    PRCB_CAUSES(NAME)
#undef NAME
    return false;
}

static bool concerns(const struct condition *condition, const struct diff_row *row)
{
    if (*condition->thread)
        return row->kind == DIFF_THREAD && !strcmp(row->name, condition->thread) &&
               !strcmp(row->figure, condition->figure);
    return (row->kind == DIFF_TOTAL || row->kind == DIFF_CAUSE) &&
           !strcmp(row->name, condition->figure);
}

int diff_check(const struct diff *diff, const char *text, bool *ret, struct prcb_error *err)
{
    struct condition condition;
    int result = condition_parse(text, false, &condition, err);

    if (result)
        return result;
    if (!diff->has_switches)
        return prcb_fail(err, -EINVAL, "--fail-if '%s': not both recordings have context switches",
                         text);
    for (size_t i = 0; i < diff->count; i++) {
        if (concerns(&condition, &diff->rows[i])) {
            *ret = condition_holds(&condition, diff->rows[i].rate[0], change_of(&diff->rows[i]));
            return 0;
        }
    }
    if (*condition.thread || !is_cause(condition.figure))
        return prcb_fail(err, -EINVAL,
                         "--fail-if '%s': neither recording has such a figure: running, ready, "
                         "waiting or a cause, and behind '@' a thread's name with # for digits",
                         text);
    *ret = condition_holds(&condition, 0, 0);
    return 0;
}

/* ---- output ---------------------------------------------------------------------- */

/* Calls fn for the first rows of each kind. */
static void each(const struct diff *diff, size_t top,
                 void (*fn)(const struct diff *diff, const struct diff_row *row, bool first,
                            void *ctx),
                 void *ctx)
{
    size_t shown = 0;

    for (size_t i = 0; i < diff->count; i++) {
        const struct diff_row *row = &diff->rows[i];
        bool first = !i || diff->rows[i - 1].kind != row->kind;

        shown = first ? 0 : shown;
        if (!top || shown++ < top)
            fn(diff, row, first, ctx);
    }
}

static void format_rate(const struct diff *diff, const struct diff_row *row, double rate, char *ret,
                        size_t size)
{
    if (row->kind == DIFF_FUNCTION && !diff->weight_is_ns)
        snprintf(ret, size, "%.0f", rate);
    else
        format_time((uint64_t)(fabs(rate) + 0.5), ret, size);
}

static void print_row(const struct diff *diff, const struct diff_row *row, bool first, void *ctx)
{
    static const char *const headings[] = {"TOTAL", "WAITING FOR",
                                           "THREADS, by name without digits", "FUNCTIONS, self"};
    char name[256], cells[3][FORMAT_CELL], share[FORMAT_CELL] = "new";
    double change = change_of(row);
    FILE *out = ctx;

    if (first)
        fprintf(out, "\n%-*s %10s %10s %11s %9s\n", NAME_WIDTH, headings[row->kind], "A", "B",
                "CHANGE", "");
    text_copy(TEXT_MARKS, row->name, name, sizeof(name));
    if (row->kind == DIFF_THREAD) {
        format_cut(name, NAME_WIDTH - 10);
        snprintf(name + strlen(name), sizeof(name) - strlen(name), ", %s", row->figure);
    }
    format_cut(name, NAME_WIDTH);
    for (int i = 0; i < 2; i++)
        format_rate(diff, row, row->rate[i], cells[i], sizeof(cells[i]));
    *cells[2] = change < 0 ? '-' : '+';
    format_rate(diff, row, change, cells[2] + 1, sizeof(cells[2]) - 1);
    if (!row->value[0] && !row->value[1])
        strcpy(share, "-");
    else if (row->value[0])
        snprintf(share, sizeof(share), "%+.1f %%", 100 * change / row->rate[0]);
    fprintf(out, "%s%*s %10s %10s %11s %9s\n", name, (int)(NAME_WIDTH - format_width(name)), "",
            cells[0], cells[1], cells[2], share);
}

/* Names what a recording without a command is about. */
static const char *scope_word(const char *scope)
{
    return !scope                        ? "the recording"
           : !strcmp(scope, "system")    ? "the whole machine"
           : !strcmp(scope, "processes") ? "the processes of -p"
           : !strcmp(scope, "threads")   ? "the threads of -t or --cgroup"
                                         : "a command";
}

void diff_print_text(const struct diff *diff, size_t top, FILE *out)
{
    for (int i = 0; i < 2; i++) {
        char *command = recording_fact(diff->recordings[i], "command");
        char *scope = recording_fact(diff->recordings[i], "scope");
        char *started = recording_fact(diff->recordings[i], "started");
        char span[FORMAT_CELL];

        format_time(diff->span_ns[i], span, sizeof(span));
        fprintf(out, "%c: %s of ", 'A' + i, span);
        text_print(out, TEXT_MARKS, command && *command ? command : scope_word(scope));
        fputs(", ", out);
        text_print(out, TEXT_MARKS, started ? started : "start not known");
        fputc('\n', out);
        free(command);
        free(scope);
        free(started);
    }
    fputs("Figures are per second of each recording.\n", out);
    if (!diff->has_switches)
        fputs("Not both recordings have context switches: functions only.\n", out);
    each(diff, top, print_row, out);
}

static void print_csv_row(const struct diff *diff, const struct diff_row *row, bool first,
                          void *ctx)
{
    struct csv *csv = ctx;

    csv_text(csv, kind_names[row->kind]);
    csv_text(csv, row->name);
    csv_text(csv, row->figure);
    csv_number(csv, true, row->value[0]);
    csv_number(csv, true, row->value[1]);
    csv_print(csv, "%.0f", row->rate[0]);
    csv_print(csv, "%.0f", row->rate[1]);
    csv_end(csv);
}

void diff_print_csv(const struct diff *diff, size_t top, const char *separator, FILE *out)
{
    static const char *const names[] = {"kind", "name",    "figure",  "a",
                                        "b",    "a_per_s", "b_per_s", NULL};
    struct csv csv = {.out = out, .separator = separator};

    csv_names(&csv, names);
    each(diff, top, print_csv_row, &csv);
}

struct json {
    struct json_doc *doc;
    json_object *top, *array;
};

static void put_json_row(const struct diff *diff, const struct diff_row *row, bool first, void *ctx)
{
    static const char *const arrays[] = {"totals", "causes", "threads", "functions"};
    struct json *j = ctx;
    json_object *object = json_object_new_object();

    if (first) {
        j->array = json_object_new_array();
        json_doc_put(j->doc, j->top, arrays[row->kind], j->array);
    }
    json_doc_put_text(j->doc, object, "name", row->name);
    if (row->kind == DIFF_THREAD)
        json_doc_put_text(j->doc, object, "figure", row->figure);
    if (row->kind == DIFF_FUNCTION)
        json_doc_put_text(j->doc, object, "file", *row->figure ? row->figure : NULL);
    json_doc_put_number(j->doc, object, "a", row->value[0]);
    json_doc_put_number(j->doc, object, "b", row->value[1]);
    json_doc_put(j->doc, object, "a_per_s", json_object_new_double(round(row->rate[0])));
    json_doc_put(j->doc, object, "b_per_s", json_object_new_double(round(row->rate[1])));
    json_doc_append(j->doc, j->array, object);
}

int diff_print_json(const struct diff *diff, size_t top, FILE *out)
{
    struct json_doc doc = {0};
    struct json j = {&doc, json_doc_new(&doc, JSON_DIFF), NULL};

    json_doc_put_number(&doc, j.top, "a_span_ns", diff->span_ns[0]);
    json_doc_put_number(&doc, j.top, "b_span_ns", diff->span_ns[1]);
    json_doc_put_text(&doc, j.top, "unit", diff->weight_is_ns ? "ns" : "events");
    each(diff, top, put_json_row, &j);
    return json_doc_write_pretty(&doc, j.top, out);
}
