/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The report as one JSON object on a line. What is absent is null, and "absent"
 * says why; units are in the keys.
 */
#include "stat_report.h"

#include <errno.h>
#include <string.h>

#include <json-c/json.h>

#include "stat_text.h"

/* A tree being built. json-c reports lack of memory call by call; here it is kept
 * until the end. */
struct builder {
    const struct stat_report *report;
    bool failed;
};

static void put(struct builder *b, json_object *object, const char *key, json_object *value,
                bool null)
{
    if ((!value && !null) || !object || json_object_object_add(object, key, value)) {
        json_object_put(value);
        b->failed = true;
    }
}

static void put_null(struct builder *b, json_object *object, const char *key)
{
    put(b, object, key, NULL, true);
}

static void put_number(struct builder *b, json_object *object, const char *key, uint64_t number)
{
    put(b, object, key, json_object_new_uint64(number), false);
}

static void put_member(struct builder *b, json_object *object, const char *key, uint64_t number,
                       bool present)
{
    if (present)
        put_number(b, object, key, number);
    else
        put_null(b, object, key);
}

static void put_text(struct builder *b, json_object *object, const char *key, const char *text)
{
    char safe[1024];

    if (!text) {
        put_null(b, object, key);
        return;
    }
    stat_text_utf8(text, safe, sizeof(safe));
    put(b, object, key, json_object_new_string(safe), false);
}

static void append(struct builder *b, json_object *array, json_object *value)
{
    if (!array || !value || json_object_array_add(array, value)) {
        json_object_put(value);
        b->failed = true;
    }
}

/* {"cause","reason","number"}: a cause in our words and in NT's. */
static json_object *make_cause(struct builder *b, uint32_t cause)
{
    const struct prcb_cause_info *info = prcb_cause_info(cause);
    json_object *object = json_object_new_object();

    put_text(b, object, "cause", info ? info->name : NULL);
    put_text(b, object, "reason", info ? prcb_wait_reason_name(info->reason) : NULL);
    put_member(b, object, "number", info ? info->reason : 0, info);
    return object;
}

static json_object *make_waits(struct builder *b, const struct stat_figures *figures)
{
    json_object *array = json_object_new_array();

    for (uint32_t i = 0; i < figures->cell_count; i++) {
        const struct stat_cell *cell = &figures->cells[i];
        json_object *wait;

        if (!cell->count && !cell->ns)
            continue;
        wait = make_cause(b, cell->cause);
        put_number(b, wait, "count", cell->count);
        put_number(b, wait, "ns", cell->ns);
        append(b, array, wait);
    }
    return array;
}

/* One thread's open wait, or a sum: then the cause is null unless it is the same
 * for all. */
static json_object *make_open(struct builder *b, const struct stat_figures *figures)
{
    uint32_t cause = PRCB_CAUSE_NONE, causes = 0;
    json_object *open;

    for (uint32_t i = 0; i < figures->cell_count; i++) {
        if (figures->cells[i].open_ns) {
            cause = figures->cells[i].cause;
            causes++;
        }
    }
    open = make_cause(b, causes == 1 ? cause : PRCB_CAUSE_NONE);
    put_number(b, open, "ns", figures->open_ns);
    return open;
}

static json_object *make_open_waits(struct builder *b, const struct stat_figures *figures)
{
    json_object *array = json_object_new_array();

    for (uint32_t i = 0; i < figures->cell_count; i++) {
        const struct stat_cell *cell = &figures->cells[i];
        json_object *wait;

        if (!cell->open_ns)
            continue;
        wait = make_cause(b, cell->cause);
        put_number(b, wait, "ns", cell->open_ns);
        append(b, array, wait);
    }
    return array;
}

static void put_figures(struct builder *b, json_object *object, const struct stat_row *row,
                        bool sum)
{
    const struct stat_figures *f = &row->now;
    bool switches = f->present & PRCB_HAS_SWITCHES, waits = f->present & PRCB_HAS_WAITS;
    bool open = f->present & PRCB_HAS_OPEN;

    put_member(b, object, "wall_ns", f->wall_ns, f->present & PRCB_HAS_WALL);
    put_member(b, object, "run_ns", f->run_ns, f->present & PRCB_HAS_RUN);
    put_member(b, object, "ready_ns", f->ready_ns, f->present & PRCB_HAS_READY);
    put_member(b, object, "wait_ns", f->wait_ns, f->present & PRCB_HAS_WAIT);
    put_member(b, object, "switches", f->switches, switches);
    put_member(b, object, "voluntary_switches", f->voluntary_switches, switches);
    put_member(b, object, "missed_switches", f->missed_switches, waits);
    put_member(b, object, "migrations", f->migrations, f->present & PRCB_HAS_MIGRATIONS);
    put_member(b, object, "tsc_cycles", f->tsc_cycles, f->present & PRCB_HAS_CYCLES);
    put(b, object, "waits", waits ? make_waits(b, f) : NULL, !waits);
    open = open && row->exited + row->running < row->threads;
    put(b, object, "open", open ? make_open(b, f) : NULL, !open);
    if (sum)
        put(b, object, "open_waits", waits ? make_open_waits(b, f) : NULL, !waits);
}

/* [{"name","value","enabled_ns","running_ns","source"}], and "reason" where there is no
 * value. */
static json_object *make_counters(struct builder *b, const struct stat_row *row)
{
    const struct stat_counters *counters = b->report->counters;
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < stat_counters_count(counters); i++) {
        struct stat_counter counter = stat_counters_at(counters, i);
        const char *reason = NULL;
        const struct stat_count *count = stat_counters_find(counters, i, row, &reason);
        json_object *object = json_object_new_object();

        put_text(b, object, "name", counter.name);
        put_member(b, object, "value", count ? count->value : 0, count);
        put_member(b, object, "enabled_ns", count ? count->enabled_ns : 0, count);
        put_member(b, object, "running_ns", count ? count->running_ns : 0, count);
        put_text(b, object, "source", counter.source);
        if (reason)
            put_text(b, object, "reason", reason);
        append(b, array, object);
    }
    return array;
}

static json_object *make_row(struct builder *b, const struct stat_row *row)
{
    bool process = b->report->options->per_process, sum = process || (!row->key && row->released);
    json_object *object = json_object_new_object();

    if (!process)
        put_member(b, object, "tid", (uint64_t)row->tid, row->tid);
    put_member(b, object, "pid", (uint64_t)row->pid, row->pid);
    put_text(b, object, "comm", row->comm);
    if (sum) {
        put_number(b, object, "threads", row->threads);
        put_number(b, object, "exited_threads", row->exited);
    }
    put_figures(b, object, row, sum);
    if (b->report->counters)
        put(b, object, "counters", make_counters(b, row), false);
    put(b, object, "exited", json_object_new_boolean(row->exited == row->threads), false);
    return object;
}

static json_object *make_total(struct builder *b)
{
    const struct stat_row *total = &b->report->view->total;
    json_object *object = json_object_new_object();

    put_number(b, object, "threads", total->threads);
    put_number(b, object, "exited_threads", total->exited);
    put_figures(b, object, total, true);
    if (b->report->counters)
        put(b, object, "counters", make_counters(b, total), false);
    return object;
}

static json_object *make_absent(struct builder *b)
{
    json_object *object = json_object_new_object();

    for (const struct stat_member *member = stat_members; member->bit; member++) {
        const char *reason = prcb_absent_reason(b->report->session, member->bit);

        if (reason)
            put_text(b, object, member->name, reason);
    }
    return object;
}

static json_object *make_report(struct builder *b)
{
    const struct stat_report *report = b->report;
    const struct stat_view *view = report->view;
    json_object *object = json_object_new_object(), *rows = json_object_new_array();

    put_text(b, object, "tier", prcb_tier_name(prcb_session_tier(report->session)));
    put_text(b, object, "tier_reason", prcb_session_tier_reason(report->session));
    if (report->options->interval_ns)
        put_number(b, object, "time_ns", report->time_ns);
    put_number(b, object, "wall_ns", report->wall_ns);
    for (size_t i = 0; i < view->count; i++)
        append(b, rows, make_row(b, view->rows[i]));
    put(b, object, report->options->per_process ? "processes" : "threads", rows, false);
    put_number(b, object, "rows_left_out", view->other_rows);
    put(b, object, "total", make_total(b), false);
    put_number(b, object, "untracked_threads", report->status->untracked_threads);
    put(b, object, "short_threads_missed",
        json_object_new_boolean(report->status->short_threads_missed), false);
    put(b, object, "absent", make_absent(b), false);
    return object;
}

int stat_json_write(FILE *out, const struct stat_report *report)
{
    struct builder builder = {.report = report};
    json_object *object = make_report(&builder);
    const char *text = builder.failed
                           ? NULL
                           : json_object_to_json_string_ext(
                                 object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

    if (text)
        fprintf(out, "%s\n", text);
    json_object_put(object);
    return text ? 0 : -ENOMEM;
}
