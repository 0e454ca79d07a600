/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes what spans of traces waited for: `prcb why --spans`, as text and JSON. Numbers and names
 * are the program's: texts are made fit to be shown.
 */
#include "why_report.h"

#include <inttypes.h>
#include <string.h>

#include "format.h"
#include "place.h"
#include "text.h"
#include "whom_words.h"

#define REST_SHOWN  4
#define BRIEF_PARTS 3
#define BRIEF_TEXT  120
#define BEHIND_MOST 3

static uint64_t attributed(const struct why_spans *spans)
{
    uint64_t ns = 0;

    for (size_t i = 0; i < spans->count; i++)
        ns += spans->rows[i].ns;
    return ns;
}

/* Writes "in wal_write(), for /var/lib/x.db, held by worker (12)"; as far as it is known. */
static void describe(const struct why_output *output, const struct why_part *part, char *ret,
                     size_t size)
{
    char raw[512], text[512];
    size_t used = 0;

    *ret = '\0';
    if (part->kind == WHY_STACK)
        place_text(part, raw, sizeof(raw));
    else
        snprintf(raw, sizeof(raw), "[between looks]");
    text_copy(TEXT_MARKS, raw, text, sizeof(text));
    if (*text)
        used = (size_t)snprintf(ret, size, "%s%s", part->kind == WHY_STACK ? "in " : "", text);
    if (output->objects && part->wait.object && used < size) {
        why_object_text(output->objects, part->wait.object, text, sizeof(text));
        used += *text
                    ? (size_t)snprintf(ret + used, size - used, "%sfor %s", used ? ", " : "", text)
                    : 0;
    }
    if (output->objects && part->wait.holder && used < size) {
        why_object_text(output->objects, part->wait.holder, text, sizeof(text));
        if (*text)
            snprintf(ret + used, size - used, ", held by %s", text);
    }
}

static void write_line(FILE *out, const char *name, uint64_t ns, uint64_t whole, const char *text)
{
    char time[FORMAT_CELL], share[FORMAT_CELL];

    if (!ns)
        return;
    format_time(ns, time, sizeof(time));
    format_share(ns, whole, share, sizeof(share));
    fprintf(out, "    %-14s %8s  %6s%s%s\n", name, time, share, *text ? "  " : "", text);
}

/* Writes "behind worker (123) 80 %, cron (7) 11 %"; nothing where nobody is known. */
static void describe_behind(const struct why_span *span, char *ret, size_t size)
{
    char name[128], share[FORMAT_CELL];
    size_t used = 0, shown = 0;

    *ret = '\0';
    for (size_t i = 0; i < span->behind_count && shown < BEHIND_MOST && used < size; i++) {
        const struct prcb_edge *edge = &span->behind[i];

        if (edge->by == PRCB_BY_REST || edge->ns < span->ready_ns / 10)
            continue;
        whom_name(edge, name, sizeof(name));
        format_share(edge->ns, span->ready_ns, share, sizeof(share));
        used += (size_t)snprintf(ret + used, size - used, "%s%s %s", shown++ ? ", " : "behind ",
                                 name, share);
    }
}

static void write_ready(FILE *out, const struct why_span *span)
{
    char text[512];

    describe_behind(span, text, sizeof(text));
    write_line(out, "ready", span->ready_ns, span->ns, text);
}

static void write_figures(FILE *out, const struct why_output *output, const struct why_span *span,
                          uint64_t most)
{
    uint64_t longest = span->part_count ? span->parts[0].ns : 0;
    bool ready_first = span->ready_ns > longest, ran_first = span->run_ns > longest;
    char text[1536];

    /* The first line is what took longest. */
    if (ran_first && span->run_ns > span->ready_ns)
        write_line(out, "ran", span->run_ns, span->ns, "");
    if (ready_first)
        write_ready(out, span);
    if (ran_first && span->run_ns <= span->ready_ns)
        write_line(out, "ran", span->run_ns, span->ns, "");
    for (size_t i = 0; i < span->part_count && i < most; i++) {
        describe(output, &span->parts[i], text, sizeof(text));
        write_line(out, why_cause_name(span->parts[i].cause), span->parts[i].ns, span->ns, text);
    }
    if (span->part_count > most)
        fprintf(out, "    and %" PRIu64 " others\n", span->part_count - most);
    if (!ran_first)
        write_line(out, "ran", span->run_ns, span->ns, "");
    if (!ready_first)
        write_ready(out, span);
}

static void write_span(FILE *out, const struct why_output *output, const struct why_span *span)
{
    char id[33], name[64], time[FORMAT_CELL];

    text_hex(span->id.span_id, 8, id);
    text_copy(TEXT_MARKS, span->comm, name, sizeof(name));
    format_time(span->ns, time, sizeof(time));
    fprintf(out, "  span %s  %s in %s (%d)\n", id, time, name, (int)span->tid);
    write_figures(out, output, span, output->top_stacks ? output->top_stacks : UINT64_MAX);
}

void why_write_spans(FILE *out, const struct why_output *output)
{
    const struct why_spans *spans = output->spans;
    uint64_t most = output->top ? 2 * output->top : UINT64_MAX;
    size_t shown = 0;
    uint64_t theirs = attributed(spans), whole = theirs + spans->none.ns + spans->unknown.ns;
    char id[33], time[FORMAT_CELL], share[FORMAT_CELL];

    format_share(theirs, whole, share, sizeof(share));
    fprintf(out, "%zu spans of traces were met in waits; theirs is %s of all time.\n", spans->count,
            share);
    if (!spans->count)
        fputs("Nothing here publishes OpenTelemetry's thread context (otel_thread_ctx_v1), or no "
              "thread waited in a span: prcb-why(1), SPANS.\n",
              out);
    for (; shown < spans->count && shown < most; shown++) {
        const struct why_span *span = &spans->rows[shown];

        if (!shown || memcmp(span->id.trace_id, span[-1].id.trace_id, sizeof(span->id.trace_id))) {
            text_hex(span->id.trace_id, 16, id);
            format_time(span->trace_ns, time, sizeof(time));
            fprintf(out, "\ntrace %s  %s\n", id, time);
        }
        write_span(out, output, span);
    }
    if (shown < spans->count)
        fprintf(out, "\n%zu spans more: --top\n", spans->count - shown);
    fputs("\nof no span\n", out);
    write_figures(out, output, &spans->none, REST_SHOWN);
    fputs("\nnot known: between two looks, or not read\n", out);
    write_figures(out, output, &spans->unknown, REST_SHOWN);
}

/* ---- JSON ---- */

static json_object *make_part(struct json_doc *b, const struct why_output *output,
                              const struct why_part *part, bool brief)
{
    json_object *row = json_object_new_object();
    char text[1536];

    describe(output, part, text, sizeof(text));
    if (brief)
        text[BRIEF_TEXT] = '\0';
    json_doc_put_text(b, row, "cause", why_cause_name(part->cause));
    json_doc_put_number(b, row, "ns", part->ns);
    json_doc_put_bool(b, row, "met", part->kind == WHY_STACK);
    json_doc_put_text(b, row, "in", *text ? text : NULL);
    if (!brief && part->kind == WHY_STACK)
        why_put_stack(b, row, &part->stack);
    return row;
}

static json_object *make_span(struct json_doc *b, const struct why_output *output,
                              const struct why_span *span, bool rest, bool brief)
{
    json_object *row = json_object_new_object(), *parts = json_object_new_array();
    char id[33];

    if (!rest) {
        text_hex(span->id.trace_id, 16, id);
        json_doc_put_text(b, row, "trace_id", id);
        text_hex(span->id.span_id, 8, id);
        json_doc_put_text(b, row, "span_id", id);
        json_doc_put_number(b, row, "pid", (uint64_t)span->pid);
        json_doc_put_number(b, row, "tid", (uint64_t)span->tid);
        json_doc_put_text(b, row, "comm", span->comm);
        json_doc_put_number(b, row, "met", span->waits);
    }
    json_doc_put_number(b, row, "ns", span->ns);
    json_doc_put_number(b, row, "run_ns", span->run_ns);
    json_doc_put_number(b, row, "ready_ns", span->ready_ns);
    json_doc_put(b, row, "ready_behind",
                 whom_edges_json(b, span->behind,
                                 brief && span->behind_count > BRIEF_PARTS ? BRIEF_PARTS
                                                                           : span->behind_count));
    for (size_t i = 0; i < span->part_count && (!brief || i < BRIEF_PARTS); i++)
        json_doc_append(b, parts, make_part(b, output, &span->parts[i], brief));
    json_doc_put(b, row, "waits", parts);
    return row;
}

json_object *why_spans_json(struct json_doc *b, const struct why_output *output, size_t most)
{
    const struct why_spans *spans = output->spans;
    bool brief = most != SIZE_MAX;
    json_object *row = json_object_new_object(), *rows = json_object_new_array();

    json_doc_put_number(b, row, "count", spans->count);
    json_doc_put_number(b, row, "ns", attributed(spans));
    for (size_t i = 0; i < spans->count && i < most; i++)
        json_doc_append(b, rows, make_span(b, output, &spans->rows[i], false, brief));
    json_doc_put(b, row, "rows", rows);
    json_doc_put(b, row, "none", make_span(b, output, &spans->none, true, brief));
    json_doc_put(b, row, "unknown", make_span(b, output, &spans->unknown, true, brief));
    return row;
}
