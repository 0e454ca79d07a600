/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Encodes a page's data as bytes: the length of the head, the head, the columns.
 */
#include "array.h"
#include "data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <prcb/causes.h>
#include <prcb/prcb.h>
#include <sqlite3.h>

#include "cause.h"
#include "columns.h"
#include "error.h"
#include "json_doc.h"
#include "pairing.h"
#include "table.h"

enum column {
    THREAD_STRETCHES,
    STRETCH_STATE,
    STRETCH_NS,
    STRETCH_CPU,
    STRETCH_PLACE,
    STRETCH_WAKER,
    RUN_THREAD,
    NODE_CALLER,
    NODE_FUNCTION,
    SAMPLE_TIME,
    SAMPLE_THREAD,
    SAMPLE_NODE,
    SAMPLE_COUNT,
    SAMPLE_WEIGHT,
    WAIT_THREAD,
    WAIT_STATE,
    WAIT_PLACE,
    WAIT_WORD,
    WAIT_NS,
    WAIT_COUNT,
    WAKE_THREAD,
    WAKE_STATE,
    WAKE_WAKER,
    WAKE_NS,
    WAKE_COUNT,
    TAIL_STATE,
    TAIL_BUCKET,
    TAIL_COUNT,
    COLUMNS
};

static const char *const column_names[COLUMNS] = {
    "thread_stretches", "stretch_state", "stretch_ns",   "stretch_cpu",   "stretch_place",
    "stretch_waker",    "run_thread",    "node_caller",  "node_function", "sample_time",
    "sample_thread",    "sample_node",   "sample_count", "sample_weight", "wait_thread",
    "wait_state",       "wait_place",    "wait_word",    "wait_ns",       "wait_count",
    "wake_thread",      "wake_state",    "wake_waker",   "wake_ns",       "wake_count",
    "tail_state",       "tail_bucket",   "tail_count",
};

#define WORDS_MOST 256
#define SPANS_MOST 500 /* rows */

struct encoding {
    const struct page_data *data;
    struct json_doc doc;
    struct page_column columns[COLUMNS];
    uint64_t fold_ns;
    uint64_t cursor;               /* where the thread's last stretch ended */
    uint64_t stretches;            /* of the thread */
    const char *words[WORDS_MOST]; /* of waits: "mutex", "[too short]"; borrowed */
    size_t word_count;
    bool failed; /* no memory */
};

static int put(struct encoding *e, enum column column, uint64_t number)
{
    if (page_column_put(&e->columns[column], number))
        e->failed = true;
    return e->failed ? -ENOMEM : 0;
}

/* ---- columns ------------------------------------------------------------------------- */

static int put_stretch(const struct page_stretch *row, void *ctx)
{
    struct encoding *e = ctx;

    if (row->start_ns > e->cursor) { /* not known meanwhile */
        put(e, STRETCH_STATE, 0);
        put(e, STRETCH_NS, row->start_ns - e->cursor);
        e->cursor = row->start_ns;
        e->stretches++;
    }
    put(e, STRETCH_STATE, row->state);
    if (e->data->states[row->state].kind == 'r')
        put(e, STRETCH_CPU, row->cpu);
    if (e->data->states[row->state].kind == 'w' && e->data->recording->has_wait_stacks &&
        !e->fold_ns)
        put(e, STRETCH_PLACE, row->place);
    if (e->data->states[row->state].kind == 'w' && e->data->recording->has_wakers && !e->fold_ns)
        put(e, STRETCH_WAKER, row->waker);
    e->cursor += row->ns;
    e->stretches++;
    return put(e, STRETCH_NS, row->ns);
}

/* Writes the timeline, one thread after the other. */
static void put_stretches(struct encoding *e)
{
    const struct page_data *d = e->data;
    size_t at = 0;

    for (size_t thread = 0; thread < d->recording->thread_count && !e->failed; thread++) {
        size_t first = at;

        while (at < d->stretch_count && d->stretches[at].thread == thread)
            at++;
        e->cursor = e->stretches = 0;
        if (e->fold_ns && e->fold_ns != PAGE_WHOLE)
            page_fold(&d->stretches[first], at - first, e->fold_ns, put_stretch, e);
        else if (!e->fold_ns)
            for (size_t i = first; i < at && !put_stretch(&d->stretches[i], e);)
                i++;
        put(e, THREAD_STRETCHES, e->stretches);
    }
    for (size_t i = 0; i < d->run_count && !e->fold_ns && !e->failed; i++)
        put(e, RUN_THREAD, d->run_order[i]);
}

static void put_nodes(struct encoding *e)
{
    for (size_t i = 1; i < e->data->node_count && !e->failed; i++) {
        put(e, NODE_CALLER, i - e->data->nodes[2 * i]);
        put(e, NODE_FUNCTION, e->data->nodes[2 * i + 1]);
    }
}

/* Sorts the same thread and stack in the same cell beside each other. */
static int by_place(const void *left, const void *right)
{
    const struct page_sample *a = left, *b = right;

    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return a->node == b->node ? 0 : a->node < b->node ? -1 : 1;
}

static struct page_sample *folded_samples(const struct page_data *d, uint64_t fold_ns, size_t *ret)
{
    struct page_sample *rows = malloc((d->sample_count + 1) * sizeof(*rows));
    size_t kept = 0;

    if (!rows)
        return NULL;
    for (size_t i = 0; i < d->sample_count; i++) {
        rows[i] = d->samples[i];
        if (fold_ns)
            rows[i].time_ns = fold_ns == PAGE_WHOLE ? 0 : rows[i].time_ns / fold_ns * fold_ns;
    }
    if (!fold_ns) {
        *ret = d->sample_count;
        return rows;
    }
    array_sort(rows, d->sample_count, by_place);
    for (size_t i = 0; i < d->sample_count; i++) {
        if (kept && !by_place(&rows[kept - 1], &rows[i])) {
            rows[kept - 1].count += rows[i].count;
            rows[kept - 1].weight += rows[i].weight;
        } else {
            rows[kept++] = rows[i];
        }
    }
    *ret = kept;
    return rows;
}

static void put_samples(struct encoding *e)
{
    size_t count = 0;
    struct page_sample *rows = folded_samples(e->data, e->fold_ns, &count);
    uint64_t before = 0;

    if (!rows)
        e->failed = true;
    for (size_t i = 0; i < count && !e->failed; i++) {
        put(e, SAMPLE_TIME, rows[i].time_ns - before);
        put(e, SAMPLE_THREAD, rows[i].thread);
        put(e, SAMPLE_NODE, rows[i].node);
        put(e, SAMPLE_COUNT, rows[i].count);
        put(e, SAMPLE_WEIGHT, rows[i].weight);
        before = rows[i].time_ns;
    }
    free(rows);
}

static size_t word_of(struct encoding *e, const char *word)
{
    for (size_t i = 0; i < e->word_count; i++) {
        if (!strcmp(e->words[i], word))
            return i;
    }
    if (e->word_count == WORDS_MOST) /* of a damaged recording */
        return 0;
    e->words[e->word_count] = word;
    return e->word_count++;
}

static size_t wait_state_of(const struct page_data *d, const struct offcpu_row *row)
{
    for (size_t i = 1; i < d->state_count; i++) {
        if (d->states[i].kind == 'w' && d->states[i].reason == row->reason &&
            !strcmp(d->states[i].cause, row->cause))
            return i;
    }
    return 0;
}

/* Writes waits by thread, cause and stack; a wait without a known stack has a word that says
 * why. */
static void put_waits(struct encoding *e)
{
    const struct page_data *d = e->data;

    word_of(e, "");
    for (size_t i = 0; i < d->report.offcpu.count && !e->failed; i++) {
        const struct offcpu_row *row = &d->report.offcpu.rows[i];
        bool idle = offcpu_is_idle(row);
        size_t node = row->stack == SIZE_MAX ? 0 : d->node_of_stack[row->stack];

        put(e, WAIT_THREAD, row->thread);
        put(e, WAIT_STATE, wait_state_of(d, row));
        put(e, WAIT_PLACE, 2 * node + idle);
        put(e, WAIT_WORD, word_of(e, row->rest ? row->rest : row->word ? row->word : ""));
        put(e, WAIT_NS, row->ns);
        put(e, WAIT_COUNT, row->count);
    }
}

/* Waits that somebody is known to have ended, by thread, state and who that was. */
struct wakes {
    uint64_t key; /* thread, state and waker in one */
    uint64_t ns, count;
};

static int by_key(const void *left, const void *right)
{
    const struct wakes *a = left, *b = right;

    return a->key == b->key ? 0 : a->key < b->key ? -1 : 1;
}

#define WAKE_KEY(thread, state, waker)                                                             \
    ((uint64_t)(thread) << 40 | (uint64_t)(state) << 30 | (waker))

static void put_wakes(struct encoding *e)
{
    const struct page_data *d = e->data;
    struct wakes *rows = NULL;
    size_t count = 0;

    if (!d->recording->has_wakers)
        return;
    rows = malloc((d->stretch_count + 1) * sizeof(*rows));
    for (size_t i = 0; rows && i < d->stretch_count; i++) {
        const struct page_stretch *row = &d->stretches[i];

        if (row->waker && row->waker < 1u << 30 && row->thread < 1u << 24)
            rows[count++] =
                (struct wakes){WAKE_KEY(row->thread, row->state, row->waker), row->ns, 1};
    }
    if (!rows)
        e->failed = true;
    else
        array_sort(rows, count, by_key);
    for (size_t i = 0, next; i < count && !e->failed; i = next) {
        for (next = i + 1; next < count && rows[next].key == rows[i].key; next++) {
            rows[i].ns += rows[next].ns;
            rows[i].count += rows[next].count;
        }
        put(e, WAKE_THREAD, rows[i].key >> 40);
        put(e, WAKE_STATE, rows[i].key >> 30 & 0x3ff);
        put(e, WAKE_WAKER, (rows[i].key & 0x3fffffff) - 1);
        put(e, WAKE_NS, rows[i].ns);
        put(e, WAKE_COUNT, rows[i].count);
    }
    free(rows);
}

/* Counts how many stretches of each state took how long, for a timeline that is folded: each
 * power of two has eight equal parts. */
#define TAIL_PARTS   8
#define TAIL_BUCKETS (64 * TAIL_PARTS)

static unsigned bucket_of(uint64_t ns)
{
    unsigned power = ns ? 63 - (unsigned)__builtin_clzll(ns) : 0;

    /* ns has power bits behind its first: three of them are the part. */
    return power * TAIL_PARTS +
           (power < 3 ? (unsigned)(ns << (3 - power) & 7) : (unsigned)(ns >> (power - 3) & 7));
}

static void put_tails(struct encoding *e)
{
    const struct page_data *d = e->data;
    uint64_t(*counts)[TAIL_BUCKETS] = calloc(PAGE_STATES, sizeof(*counts));

    for (size_t i = 0; counts && i < d->stretch_count; i++)
        counts[d->stretches[i].state][bucket_of(d->stretches[i].ns)]++;
    for (size_t state = 1; counts && state < d->state_count; state++) {
        for (unsigned bucket = 0; bucket < TAIL_BUCKETS && !e->failed; bucket++) {
            if (!counts[state][bucket])
                continue;
            put(e, TAIL_STATE, state);
            put(e, TAIL_BUCKET, bucket);
            put(e, TAIL_COUNT, counts[state][bucket]);
        }
    }
    if (!counts)
        e->failed = true;
    free(counts);
}

/* ---- head ------------------------------------------------------------------------------ */

static json_object *shown(struct encoding *e, const char *name)
{
    char *text = page_names_show(e->data->names, name ? name : "");
    json_object *value = text ? json_object_new_string(text) : NULL;

    if (!value)
        e->failed = true;
    free(text);
    return value;
}

static json_object *shown_pair(struct encoding *e, const char *name)
{
    char *pair = pairing_name(name);
    json_object *value = pair ? shown(e, pair) : NULL;

    if (!pair)
        e->failed = true;
    free(pair);
    return value;
}

static void append_number(struct encoding *e, json_object *array, uint64_t number)
{
    json_doc_append(&e->doc, array, json_object_new_uint64(number));
}

static json_object *states(struct encoding *e)
{
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < e->data->state_count; i++) {
        const struct page_state *state = &e->data->states[i];
        uint32_t cause = cause_by_name(state->cause);
        const struct prcb_cause_info *info = prcb_cause_info(cause);
        json_object *row = json_object_new_object();

        json_doc_put_text(&e->doc, row, "kind", (char[]){state->kind, 0});
        json_doc_put_text(&e->doc, row, "cause", *state->cause ? state->cause : NULL);
        json_doc_put_text(&e->doc, row, "words", info ? info->words : NULL);
        json_doc_put_text(&e->doc, row, "colour", cause_traits(cause)->colour);
        json_doc_put_bool(&e->doc, row, "held", cause && !cause_may_idle(cause));
        json_doc_append(&e->doc, array, row);
    }
    return array;
}

struct state_sum {
    uint64_t count, ns, longest;
};

static json_object *sums_of(struct encoding *e, const struct state_sum *sums)
{
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < e->data->state_count; i++) {
        json_object *row;

        if (!sums[i].count)
            continue;
        row = json_object_new_array();
        append_number(e, row, i);
        append_number(e, row, sums[i].count);
        append_number(e, row, sums[i].ns);
        append_number(e, row, sums[i].longest);
        json_doc_append(&e->doc, array, row);
    }
    return array;
}

/* Threads stand in the recording's order, which is that of the columns. */
static json_object *threads(struct encoding *e)
{
    const struct page_data *d = e->data;
    const struct recording *r = d->recording;
    json_object *array = json_object_new_array();
    uint64_t(*weights)[2] = calloc(r->thread_count + 1, sizeof(*weights));
    size_t at = 0;

    for (size_t i = 0; weights && i < d->report.thread_count; i++) {
        weights[d->report.threads[i].thread][0] = d->report.threads[i].samples;
        weights[d->report.threads[i].thread][1] = d->report.threads[i].weight;
    }
    if (!weights)
        e->failed = true;
    for (size_t i = 0; i < r->thread_count && !e->failed; i++) {
        const struct recorded_thread *thread = &r->threads[i];
        struct state_sum sums[PAGE_STATES] = {{0}};
        json_object *row = json_object_new_object();

        for (; at < d->stretch_count && d->stretches[at].thread == i; at++) {
            struct state_sum *sum = &sums[d->stretches[at].state];

            sum->count++;
            sum->ns += d->stretches[at].ns;
            if (d->stretches[at].ns > sum->longest)
                sum->longest = d->stretches[at].ns;
        }
        json_doc_put(&e->doc, row, "pid", json_object_new_int64(thread->pid));
        json_doc_put(&e->doc, row, "tid", json_object_new_int64(thread->tid));
        json_doc_put(&e->doc, row, "name", shown(e, thread->name));
        json_doc_put(&e->doc, row, "pair", shown_pair(e, thread->name));
        json_doc_put_number(&e->doc, row, "start_ns",
                            thread->start_ns > r->start_ns ? thread->start_ns - r->start_ns : 0);
        json_doc_put_number(&e->doc, row, "life_ns", recording_life(r, i));
        json_doc_put_number(&e->doc, row, "samples", weights[i][0]);
        json_doc_put_number(&e->doc, row, "weight", weights[i][1]);
        json_doc_put(&e->doc, row, "sums", sums_of(e, sums));
        json_doc_append(&e->doc, array, row);
    }
    free(weights);
    return array;
}

static json_object *functions(struct encoding *e)
{
    const struct recording *r = e->data->recording;
    json_object *array = json_object_new_array();

    for (size_t i = 0; i <= r->function_count && !e->failed; i++) {
        bool known = i < r->function_count;
        json_object *row = json_object_new_array();

        json_doc_append(&e->doc, row, shown(e, known ? r->functions[i].name : "[unknown]"));
        json_doc_append(&e->doc, row, shown(e, known ? r->functions[i].file : ""));
        json_doc_append(&e->doc, array, row);
    }
    return array;
}

/* Each waker has a kind, a name, a thread (index; -1: none that was recorded) and a thread
 * number (0: none). */
static json_object *wakers(struct encoding *e)
{
    const struct recording *r = e->data->recording;
    json_object *array = json_object_new_array();
    struct page_names plain = {0};

    for (size_t i = 0; i < r->waker_count && !e->failed; i++) {
        const struct recorded_waker *waker = &r->wakers[i];
        json_object *row = json_object_new_array();
        char line[160], *text;

        recording_waker_name(r, i, line, sizeof(line));
        text = page_names_show(&plain, line);
        json_doc_append(&e->doc, row, json_object_new_string(waker->by));
        if (waker->tid)
            json_doc_append(
                &e->doc, row,
                shown(e, waker->thread == SIZE_MAX ? waker->name : r->threads[waker->thread].name));
        else if (text)
            json_doc_append(&e->doc, row, json_object_new_string(text));
        else
            e->failed = true;
        free(text);
        json_doc_append(
            &e->doc, row,
            json_object_new_int64(waker->thread == SIZE_MAX ? -1 : (int64_t)waker->thread));
        json_doc_append(&e->doc, row, json_object_new_int64(waker->tid));
        json_doc_append(&e->doc, array, row);
    }
    return array;
}

static json_object *processors(struct encoding *e)
{
    const struct report *report = &e->data->report;
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < report->processor_count; i++) {
        const struct report_processor *row = &report->processors[i];
        json_object *object = json_object_new_object();

        json_doc_put_number(&e->doc, object, "cpu", row->cpu);
        json_doc_put_number(&e->doc, object, "samples", row->samples);
        json_doc_put_member(&e->doc, object, "run_ns", row->run_ns, report->has_switches);
        for (const struct figure *figure = processor_figures; figure->name; figure++) {
            if (figure->kind == FIGURE_PART)
                json_doc_put_member(&e->doc, object, figure->name,
                                    (uint64_t)row->parts[figure->index],
                                    row->parts[figure->index] >= 0);
        }
        json_doc_append(&e->doc, array, object);
    }
    return array;
}

struct facts {
    struct encoding *e;
    json_object *object;
};

static int add_fact(sqlite3_stmt *row, void *ctx)
{
    static const char *const private[] = {"host", "command", "boot_id", "saved_by", "saved_name"};
    const char *name = (const char *)sqlite3_column_text(row, 0);
    const char *value = (const char *)sqlite3_column_text(row, 1);
    struct facts *facts = ctx;
    struct page_names plain = {0};
    char *text;

    for (size_t i = 0; name && i < sizeof(private) / sizeof(private[0]); i++) {
        if (facts->e->data->names->redact && !strcmp(name, private[i]))
            return 0;
    }
    if (!name || !value)
        return 0;
    text = page_names_show(&plain, value);
    if (text)
        json_doc_put_text(&facts->e->doc, facts->object, name, text);
    free(text);
    return text ? 0 : -ENOMEM;
}

static int add_loss(sqlite3_stmt *row, void *ctx)
{
    const char *what = (const char *)sqlite3_column_text(row, 0);
    struct facts *losses = ctx;

    if (what)
        json_doc_put_number(&losses->e->doc, losses->object, what,
                            (uint64_t)sqlite3_column_int64(row, 1));
    return 0;
}

static json_object *rows_of(struct encoding *e, const char *sql,
                            int (*fn)(sqlite3_stmt *row, void *ctx))
{
    struct facts facts = {e, json_object_new_object()};

    if (recording_query(e->data->recording, sql, fn, &facts, NULL))
        e->failed = true;
    return facts.object;
}

static json_object *words(struct encoding *e)
{
    json_object *array = json_object_new_array();
    struct page_names plain = {0};

    for (size_t i = 0; i < e->word_count && !e->failed; i++) {
        char *text = page_names_show(&plain, e->words[i]);

        if (!text)
            e->failed = true;
        else
            json_doc_append(&e->doc, array, json_object_new_string(text));
        free(text);
    }
    return array;
}

/* Nodes of the stacks of waits that may be idling, each once. */
static json_object *either_nodes(struct encoding *e)
{
    const struct page_data *d = e->data;
    json_object *array = json_object_new_array();
    struct table seen = {.count = 0};

    for (size_t i = 0; i < d->report.offcpu.count && !e->failed; i++) {
        const struct offcpu_row *row = &d->report.offcpu.rows[i];
        size_t node = row->stack == SIZE_MAX ? 0 : d->node_of_stack[row->stack];

        if (!node || !row->kind || strcmp(row->kind, "either") != 0 ||
            table_find_number(&seen, node))
            continue;
        e->failed |= table_put_number(&seen, node, 1) != 0;
        append_number(e, array, node);
    }
    table_free(&seen);
    return array;
}

/* What spans waited for: span, trace, thread (index), state, node, ns and waits; the longest. */
static json_object *spans(struct encoding *e)
{
    const struct page_data *d = e->data;
    const struct spanned *s = &d->report.spanned;
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < s->count && i < SPANS_MOST; i++) {
        const struct spanned_row *row = &s->rows[i];
        struct offcpu_row as = {.reason = row->reason};
        json_object *object = json_object_new_array();

        memcpy(as.cause, row->cause, sizeof(as.cause));
        json_doc_append(&e->doc, object, shown(e, row->span_id));
        json_doc_append(&e->doc, object, shown(e, row->trace_id));
        append_number(e, object, row->thread);
        append_number(e, object, wait_state_of(d, &as));
        append_number(e, object, row->stack == SIZE_MAX ? 0 : d->node_of_stack[row->stack]);
        append_number(e, object, row->ns);
        append_number(e, object, row->count);
        json_doc_append(&e->doc, array, object);
    }
    return array;
}

static json_object *columns(struct encoding *e)
{
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < COLUMNS; i++) {
        json_object *row = json_object_new_array();

        json_doc_append(&e->doc, row, json_object_new_string(column_names[i]));
        append_number(e, row, e->columns[i].count);
        append_number(e, row, e->columns[i].length);
        json_doc_append(&e->doc, array, row);
    }
    return array;
}

static json_object *head(struct encoding *e)
{
    const struct report *report = &e->data->report;
    json_object *top = json_object_new_object();
    struct json_doc *b = &e->doc;

    json_doc_put_number(b, top, "version", 1);
    json_doc_put(b, top, "facts", rows_of(e, "SELECT name, value FROM facts", add_fact));
    json_doc_put_bool(b, top, "redacted", e->data->names->redact);
    json_doc_put_bool(b, top, "complete", e->data->recording->complete);
    json_doc_put_text(b, top, "unit", report->weight_is_ns ? "ns" : "events");
    json_doc_put_bool(b, top, "has_switches", report->has_switches);
    json_doc_put_bool(b, top, "has_stacks", report->has_stacks);
    json_doc_put_bool(b, top, "has_wait_stacks", e->data->recording->has_wait_stacks);
    json_doc_put_bool(b, top, "has_wakers", e->data->recording->has_wakers);
    json_doc_put(b, top, "wakers", wakers(e));
    json_doc_put(b, top, "words", words(e));
    json_doc_put(b, top, "either", either_nodes(e));
    json_doc_put_member(b, top, "fold_ns", e->fold_ns, e->fold_ns != PAGE_WHOLE);
    json_doc_put_number(b, top, "span_ns", report->span_ns);
    json_doc_put_number(b, top, "samples", report->samples);
    json_doc_put_number(b, top, "weight", report->weight);
    json_doc_put(
        b, top, "losses",
        rows_of(e, "SELECT what, sum(count) FROM losses GROUP BY what LIMIT 16", add_loss));
    json_doc_put(b, top, "states", states(e));
    json_doc_put(b, top, "threads", threads(e));
    json_doc_put(b, top, "functions", functions(e));
    json_doc_put(b, top, "processors", processors(e));
    json_doc_put(b, top, "spans", spans(e));
    json_doc_put(b, top, "columns", columns(e));
    return top;
}

/* ---- all of it --------------------------------------------------------------------------- */

static int write_all(struct encoding *e, FILE *out)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    int result;

    if (!memory)
        return -ENOMEM;
    result = json_doc_write(&e->doc, head(e), memory);
    if (fclose(memory) || e->failed)
        result = -ENOMEM;
    for (int i = 0; i < 4 && !result; i++)
        fputc((int)(size >> 8 * i & 0xff), out);
    if (!result)
        fwrite(text, 1, size, out);
    free(text);
    for (size_t i = 0; i < COLUMNS && !result; i++) {
        if (e->columns[i].length)
            fwrite(e->columns[i].bytes, 1, e->columns[i].length, out);
    }
    return result;
}

int page_data_write(const struct page_data *data, uint64_t fold_ns, uint8_t **ret, size_t *ret_size,
                    struct prcb_error *err)
{
    struct encoding e = {.data = data, .fold_ns = fold_ns};
    char *bytes = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&bytes, &size);
    int result = memory ? 0 : -ENOMEM;

    if (!result) {
        put_stretches(&e);
        put_nodes(&e);
        put_samples(&e);
        put_waits(&e);
        put_wakes(&e);
        if (fold_ns)
            put_tails(&e);
        result = e.failed ? -ENOMEM : write_all(&e, memory);
        if (fclose(memory) && !result)
            result = -ENOMEM;
    }
    for (size_t i = 0; i < COLUMNS; i++)
        free(e.columns[i].bytes);
    if (result) {
        free(bytes);
        return prcb_fail(err, result, "out of memory");
    }
    *ret = (uint8_t *)bytes;
    *ret_size = size;
    return 0;
}
