/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes the report as one JSON object on a line. What is absent is null, and "absent" says why;
 * units are in the keys.
 */
#include "stat_report.h"

#include "json_doc.h"
#include "stat_tails.h"

struct builder {
    const struct stat_report *report;
    struct json_doc json;
};

/* Makes {"cause","reason","number"}: a cause in our words and in NT's. */
static json_object *make_cause(struct builder *b, uint32_t cause)
{
    const struct prcb_cause_info *info = prcb_cause_info(cause);
    json_object *object = json_object_new_object();

    json_doc_put_text(&b->json, object, "cause", info ? info->name : NULL);
    json_doc_put_text(&b->json, object, "reason",
                      info ? prcb_wait_reason_name(info->reason) : NULL);
    json_doc_put_member(&b->json, object, "number", info ? info->reason : 0, info);
    return object;
}

static json_object *make_waits(struct builder *b, const struct account_sums *figures)
{
    json_object *array = json_object_new_array();

    for (uint32_t i = 0; i < figures->cell_count; i++) {
        const struct wait_cell *cell = &figures->cells[i];
        json_object *wait;

        if (!cell->count && !cell->ns)
            continue;
        wait = make_cause(b, cell->cause);
        json_doc_put_number(&b->json, wait, "count", cell->count);
        json_doc_put_number(&b->json, wait, "ns", cell->ns);
        json_doc_append(&b->json, array, wait);
    }
    return array;
}

/* Makes one thread's open wait, or a sum of them: then the cause is null unless it is the same
 * for all. */
static json_object *make_open(struct builder *b, const struct account_sums *figures)
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
    json_doc_put_number(&b->json, open, "ns", figures->open_ns);
    return open;
}

static json_object *make_open_waits(struct builder *b, const struct account_sums *figures)
{
    json_object *array = json_object_new_array();

    for (uint32_t i = 0; i < figures->cell_count; i++) {
        const struct wait_cell *cell = &figures->cells[i];
        json_object *wait;

        if (!cell->open_ns)
            continue;
        wait = make_cause(b, cell->cause);
        json_doc_put_number(&b->json, wait, "ns", cell->open_ns);
        json_doc_append(&b->json, array, wait);
    }
    return array;
}

/* The waits by cause, and the open one, are objects behind the numbers. */
static bool is_object(const struct figure *figure)
{
    return figure->kind == FIGURE_LIST || figure->present == PRCB_HAS_OPEN;
}

static void put_figures(struct builder *b, json_object *object, const struct account_row *row,
                        bool sum)
{
    const struct account_sums *f = &row->now;
    bool waits = f->present & PRCB_HAS_WAITS, open = f->present & PRCB_HAS_OPEN;

    for (const struct figure *figure = account_figures; figure->name; figure++) {
        if (stat_figure_wanted(b->report, figure) && !is_object(figure))
            json_doc_put_member(&b->json, object, figure->name, f->numbers[figure->index],
                                f->present & figure->present);
    }
    json_doc_put_if(&b->json, object, "waits", waits, waits ? make_waits(b, f) : NULL);
    open = open && row->exited + row->running < row->threads;
    json_doc_put_if(&b->json, object, "open", open, open ? make_open(b, f) : NULL);
    if (sum)
        json_doc_put_if(&b->json, object, "open_waits", waits,
                        waits ? make_open_waits(b, f) : NULL);
}

/* Makes [{"name","value","enabled_ns","running_ns","source"}], and "reason" if there is no
 * value. */
static json_object *make_counters(struct builder *b, const struct account_row *row)
{
    const struct account_counters *counters = b->report->counters;
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < account_counters_count(counters); i++) {
        struct account_counter counter = account_counters_at(counters, i);
        const char *reason = NULL;
        const struct event_count *count = account_counters_find(counters, i, row, &reason);
        json_object *object = json_object_new_object();

        json_doc_put_text(&b->json, object, "name", counter.name);
        json_doc_put_member(&b->json, object, "value", count ? count->value : 0, count);
        json_doc_put_member(&b->json, object, "enabled_ns", count ? count->enabled_ns : 0, count);
        json_doc_put_member(&b->json, object, "running_ns", count ? count->running_ns : 0, count);
        json_doc_put_text(&b->json, object, "source", counter.source);
        if (reason)
            json_doc_put_text(&b->json, object, "reason", reason);
        json_doc_append(&b->json, array, object);
    }
    return array;
}

/* Names what a row is about. */
static void put_identity(struct builder *b, json_object *object, const struct account_row *row)
{
    struct cgroup_identity said = {0};
    const char *path;

    switch (b->report->rows) {
    case STAT_CGROUPS:
        path = row->cgroup ? cgroup_names_find(b->report->cgroups, row->cgroup) : NULL;
        if (path)
            cgroup_identify(path, &said);
        json_doc_put_text(&b->json, object, "cgroup", path);
        json_doc_put_member(&b->json, object, "cgroup_id", row->cgroup, row->cgroup);
        json_doc_put_text(&b->json, object, "unit", *said.unit ? said.unit : NULL);
        json_doc_put_text(&b->json, object, "container_id",
                          *said.container ? said.container : NULL);
        json_doc_put_text(&b->json, object, "pod_uid", *said.pod ? said.pod : NULL);
        break;
    case STAT_NAMES:
        json_doc_put_text(&b->json, object, "comm", row->comm);
        break;
    case STAT_THREADS:
        json_doc_put_member(&b->json, object, "tid", (uint64_t)row->tid, row->tid);
        /* fall through */
    case STAT_PROCESSES:
        json_doc_put_member(&b->json, object, "pid", (uint64_t)row->pid, row->pid);
        json_doc_put_text(&b->json, object, "comm", row->comm);
    }
    if (b->report->rows == STAT_THREADS)
        json_doc_put_member(&b->json, object, "cgroup_id", row->cgroup, row->cgroup);
}

static void put_whom(struct builder *b, json_object *object, const struct account_row *row)
{
    json_object *whom = stat_whom_json(&b->json, b->report, row);

    json_doc_put_if(&b->json, object, "by_whom", whom, whom);
}

static json_object *make_row(struct builder *b, const struct account_row *row)
{
    bool sum = b->report->rows || (!row->key && row->released);
    json_object *object = json_object_new_object();

    put_identity(b, object, row);
    if (sum) {
        json_doc_put_number(&b->json, object, "threads", row->threads);
        json_doc_put_number(&b->json, object, "exited_threads", row->exited);
    }
    put_figures(b, object, row, sum);
    if (b->report->counters)
        json_doc_put(&b->json, object, "counters", make_counters(b, row));
    if (b->report->by_whom)
        put_whom(b, object, row);
    json_doc_put_bool(&b->json, object, "exited", row->exited == row->threads);
    return object;
}

static json_object *make_total(struct builder *b)
{
    const struct account_row *total = &b->report->view->total;
    json_object *object = json_object_new_object();

    json_doc_put_number(&b->json, object, "threads", total->threads);
    json_doc_put_number(&b->json, object, "exited_threads", total->exited);
    put_figures(b, object, total, true);
    if (b->report->counters)
        json_doc_put(&b->json, object, "counters", make_counters(b, total));
    if (b->report->by_whom)
        put_whom(b, object, NULL);
    if (b->report->tails || *b->report->no_tails)
        json_doc_put_if(&b->json, object, "tails", b->report->tails,
                        b->report->tails ? stat_tails_json(&b->json, b->report->tails) : NULL);
    return object;
}

static json_object *make_absent(struct builder *b)
{
    json_object *object = json_object_new_object();

    for (const struct figure *figure = account_figures; figure->name; figure++) {
        const char *reason = figure->words ? stat_absent_reason(b->report, figure) : NULL;

        if (reason)
            json_doc_put_text(&b->json, object,
                              figure->present == PRCB_HAS_OPEN ? "open" : figure->name, reason);
    }
    if (*b->report->no_whom)
        json_doc_put_text(&b->json, object, "by_whom", b->report->no_whom);
    if (*b->report->no_tails)
        json_doc_put_text(&b->json, object, "tails", b->report->no_tails);
    return object;
}

static json_object *make_programs(struct builder *b)
{
    json_object *array = json_object_new_array();
    struct prcb_program program = {.size = sizeof(program)};

    for (uint32_t i = 0; !prcb_session_program(b->report->session, i, &program); i++) {
        json_object *object = json_object_new_object();

        json_doc_put_text(&b->json, object, "name", program.name);
        json_doc_put_member(&b->json, object, "recursion_misses", program.recursion_misses,
                            program.recursion_misses != UINT64_MAX);
        json_doc_append(&b->json, array, object);
    }
    return array;
}

static json_object *make_limits(struct builder *b)
{
    json_object *array = json_object_new_array();
    const char *limit;

    for (size_t i = 0; (limit = prcb_session_limit(b->report->session, i)); i++)
        json_doc_append(&b->json, array, json_object_new_string(limit));
    return array;
}

static json_object *make_report(struct builder *b)
{
    const struct stat_report *report = b->report;
    const struct account_view *view = report->view;
    json_object *object = json_doc_new(&b->json, JSON_STAT), *rows = json_object_new_array();

    json_doc_put_text(&b->json, object, "tier", prcb_tier_name(prcb_session_tier(report->session)));
    json_doc_put_text(&b->json, object, "tier_reason", prcb_session_tier_reason(report->session));
    if (report->interval_ns)
        json_doc_put_number(&b->json, object, "time_ns", report->time_ns);
    json_doc_put_number(&b->json, object, "wall_ns", report->wall_ns);
    for (size_t i = 0; i < view->count; i++)
        json_doc_append(&b->json, rows, make_row(b, view->rows[i]));
    json_doc_put(&b->json, object, stat_rows_kinds[report->rows].list, rows);
    json_doc_put_number(&b->json, object, "rows_left_out", view->other_rows);
    json_doc_put(&b->json, object, "total", make_total(b));
    json_doc_put_number(&b->json, object, "untracked_threads", report->status->untracked_threads);
    json_doc_put_bool(&b->json, object, "short_threads_missed",
                      report->status->short_threads_missed);
    if (report->status->recursion_misses == UINT64_MAX)
        json_doc_put_null(&b->json, object, "recursion_misses");
    else
        json_doc_put_number(&b->json, object, "recursion_misses", report->status->recursion_misses);
    json_doc_put(&b->json, object, "programs", make_programs(b));
    json_doc_put(&b->json, object, "absent", make_absent(b));
    json_doc_put(&b->json, object, "limits", make_limits(b));
    return object;
}

int stat_json_write(FILE *out, const struct stat_report *report)
{
    struct builder builder = {.report = report};
    json_object *object = make_report(&builder);

    return json_doc_write(&builder.json, object, out);
}
