/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes the report of a recording as a JSON object of at most JSON_BRIEF_BYTES: why it is there,
 * what held threads up, the largest waits, the stacks and functions behind them, what is covered,
 * and what the recording cannot say. What does not fit is left out from the end, and counted.
 */
#include "report.h"

#include <stdlib.h>
#include <string.h>

#include "critical.h"
#include "json_doc.h"
#include "text.h"

#define ROWS_MOST  12
#define WORDS_MOST 2000 /* bytes of all sentences */
#define NAME_MOST  120  /* of a name */
#define LINE_MOST  240  /* of a stack */

static void put_cut(struct json_doc *b, json_object *row, const char *key, const char *text,
                    size_t most)
{
    json_doc_put_cut(b, row, key, text && *text ? text : NULL, most);
}

/* Returns the thread whose path is told: of the first threads of processes the one that lived
 * longest, off processors or on one. SIZE_MAX: there is none. */
static size_t main_thread(const struct report *report)
{
    uint64_t most = 0;
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < report->thread_count; i++) {
        const struct report_thread *row = &report->threads[i];
        const struct recorded_thread *thread = &report->recording->threads[row->thread];
        uint64_t ns = row->run_ns + row->ready_ns + row->wait_ns;

        if (thread->tid == thread->pid && thread->pid && ns > most) {
            most = ns;
            found = row->thread;
        }
    }
    return found;
}

void report_print_path(const struct report *report, FILE *out)
{
    const struct recording *r = report->recording;
    size_t thread = main_thread(report);
    struct critical critical;

    if (thread == SIZE_MAX ||
        critical_make(r, r->threads[thread].tid, r->start_ns, r->end_ns, &critical, NULL))
        return;
    fputs("critical path of ", out);
    text_print(out, TEXT_MARKS, r->threads[thread].name);
    fprintf(out, " (%lld): ", (long long)r->threads[thread].tid);
    critical_print_sentence(&critical, out);
    fputc('\n', out);
    critical_free(&critical);
}

/* By prcb flight: the lines for people have a path already. */
static bool is_saved(const struct recording *r)
{
    char *by = recording_fact(r, "saved_by");

    free(by);
    return by != NULL;
}

struct brief {
    const struct report *report;
    const struct verdict *verdict;
};

/* The first lines of the report for people, and the critical path. */
static json_object *make_verdict(struct json_doc *b, const struct brief *brief)
{
    const struct report *report = brief->report;
    json_object *ret = json_object_new_array();
    char *text = NULL, *rest;
    size_t size, used = 0;
    FILE *out = open_memstream(&text, &size);

    if (out) {
        report_print_head(report, brief->verdict, SIZE_MAX, out);
        if (!is_saved(report->recording))
            report_print_path(report, out);
        fclose(out);
    }
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest)) {
        json_object *row = json_object_new_object();

        used += strlen(line);
        if (used < WORDS_MOST) {
            json_doc_put_text(b, row, "text", line);
            json_doc_append(b, ret, row);
        } else {
            json_object_put(row);
        }
    }
    free(text);
    return ret;
}

static json_object *make_waits(struct json_doc *b, const struct report *report, size_t shown)
{
    json_object *ret = json_object_new_array();

    for (size_t i = 0; i < shown && i < report->wait_count; i++) {
        const struct report_wait *wait = &report->waits[i];
        json_object *row = json_object_new_object();

        json_doc_put_text(b, row, "state", wait->ready ? "ready" : "waiting");
        put_cut(b, row, "cause", wait->cause, NAME_MOST);
        json_doc_put_number(b, row, "count", wait->count);
        json_doc_put_number(b, row, "ns", wait->ns);
        json_doc_append(b, ret, row);
    }
    return ret;
}

/* Those that idle by design are behind the others. */
static size_t count_stacks(const struct report *report)
{
    size_t count = 0;

    while (report->recording->has_wait_stacks && count < report->offcpu.count &&
           !offcpu_is_idle(&report->offcpu.rows[count]))
        count++;
    return count;
}

static json_object *make_stacks(struct json_doc *b, const struct report *report, size_t shown)
{
    json_object *ret = json_object_new_array();

    for (size_t i = 0; i < shown && i < count_stacks(report); i++) {
        const struct offcpu_row *wait = &report->offcpu.rows[i];
        const struct recorded_thread *thread = &report->recording->threads[wait->thread];
        json_object *row = json_object_new_object();
        char *line = wait->rest ? NULL : recording_stack_line(report->recording, wait->stack);

        put_cut(b, row, "name", thread->name, NAME_MOST);
        json_doc_put(b, row, "tid", json_object_new_int64(thread->tid));
        put_cut(b, row, "cause", wait->cause, NAME_MOST);
        put_cut(b, row, "word", wait->word, NAME_MOST);
        put_cut(b, row, "in", wait->rest ? wait->rest : line, LINE_MOST);
        json_doc_put_number(b, row, "ns", wait->ns);
        json_doc_append(b, ret, row);
        free(line);
    }
    return ret;
}

static json_object *make_functions(struct json_doc *b, const struct report *report, size_t shown)
{
    json_object *ret = json_object_new_array();

    for (size_t i = 0; i < shown && i < report->function_count; i++) {
        const struct report_function *function = &report->functions[i];
        json_object *row = json_object_new_object();

        put_cut(b, row, "function", function->name, NAME_MOST);
        json_doc_put_number(b, row, "self", function->self);
        json_doc_put_member(b, row, "total", function->total, report->has_stacks);
        json_doc_append(b, ret, row);
    }
    return ret;
}

static json_object *make_coverage(struct json_doc *b, const struct report *report)
{
    json_object *ret = json_object_new_object();
    bool stacks = report->recording->has_wait_stacks;

    json_doc_put_bool(b, ret, "complete", report->recording->complete);
    json_doc_put_number(b, ret, "samples", report->samples);
    json_doc_put_number(b, ret, "lost", report->lost);
    json_doc_put_member(b, ret, "missed_switches", report->missed, report->has_switches);
    json_doc_put_member(b, ret, "wait_ns", report->offcpu.ns, stacks);
    json_doc_put_member(b, ret, "wait_known_ns", report->offcpu.known_ns, stacks);
    return ret;
}

static json_object *make_limits(struct json_doc *b, const struct report *report)
{
    const struct recording *r = report->recording;
    json_object *ret = json_object_new_array();
    const struct {
        bool is;
        const char *text;
    } limits[] = {
        {!report->has_switches, "what threads waited for: no switches were recorded"},
        {report->has_switches && !r->has_wakers, "who woke threads, and critical paths"},
        {!r->has_wait_stacks, "where in the code threads waited: prcb record -g"},
        {!report->samples, "which functions ran: there are no samples"},
        {report->missed || report->lost, "what lost records and missed switches would have told"},
        {true, "who held locks: prcb why looks at what runs"},
    };

    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        if (limits[i].is)
            json_doc_append(b, ret, json_object_new_string(limits[i].text));
    }
    return ret;
}

static size_t left(size_t count, size_t shown)
{
    return count > shown ? count - shown : 0;
}

static json_object *make_brief(struct json_doc *b, const void *of, size_t shown)
{
    const struct brief *brief = of;
    const struct report *report = brief->report;
    json_object *ret = json_doc_new(b, JSON_REPORT_BRIEF);
    char *source = recording_fact(report->recording, "switch_source");

    put_cut(b, ret, "tier", source, NAME_MOST);
    json_doc_put_number(b, ret, "span_ns", report->span_ns);
    json_doc_put(b, ret, "verdict", make_verdict(b, brief));
    json_doc_put_number(b, ret, "threads", report->thread_count);
    json_doc_put_if(b, ret, "causes", report->has_switches,
                    report->has_switches ? make_waits(b, report, shown) : NULL);
    json_doc_put(b, ret, "stacks", make_stacks(b, report, shown));
    json_doc_put_text(b, ret, "unit", report->weight_is_ns ? "ns" : "events");
    json_doc_put(b, ret, "functions", make_functions(b, report, shown));
    json_doc_put_number(b, ret, "left_out",
                        left(report->wait_count, shown) + left(count_stacks(report), shown) +
                            left(report->function_count, shown));
    json_doc_put(b, ret, "coverage", make_coverage(b, report));
    json_doc_put(b, ret, "cannot_say", make_limits(b, report));
    json_doc_put_text(b, ret, "more", "prcb report -j");
    free(source);
    return ret;
}

int report_print_brief(const struct report *report, const struct verdict *verdict, FILE *out)
{
    const struct brief brief = {report, verdict};

    return json_doc_write_brief(make_brief, &brief, ROWS_MOST, out);
}
