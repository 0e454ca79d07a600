/* SPDX-License-Identifier: BSD-2-Clause
 *
 * By whom in reports of `prcb stat`: under the table, in JSON, as values per line.
 */
#include "stat_report.h"

#include <stdlib.h>
#include <string.h>

#include "cause.h"
#include "csv.h"
#include "format.h"
#include "table.h"
#include "text.h"
#include "whom_words.h"

static uint64_t group_of_name(const char *comm, bool kernel)
{
    char name[ACCOUNT_NAME];

    account_family(comm, kernel, name);
    return table_hash_text(name);
}

uint64_t stat_whom_group_of(enum stat_rows rows, const struct prcb_account *account)
{
    switch (rows) {
    case STAT_PROCESSES:
        return (uint64_t)account->pid;
    case STAT_CGROUPS:
        return account->cgroup;
    case STAT_NAMES:
        return group_of_name(account->comm, account->flags & PRCB_ACCOUNT_KTHREAD);
    case STAT_THREADS:
        break;
    }
    return account->key;
}

/* Returns the group of a row of the view. */
static uint64_t group_of(const struct stat_report *report, const struct account_row *row)
{
    return report->rows == STAT_NAMES ? group_of_name(row->comm, false) : row->key;
}

static bool is_wait(uint32_t cause)
{
    const struct prcb_cause_info *info = prcb_cause_info(cause);

    return info && info->kind == PRCB_KIND_WAIT;
}

/* Finds the edges of a cause, or (NONE) of ready time. kind: HELD_BY, MEANWHILE, or else those who
 * ended waits and had processors. false: they do not sum to what the row has. */
static bool rows_of(const struct stat_report *report, uint64_t group,
                    const struct account_sums *sums, uint32_t cause, uint32_t kind,
                    struct prcb_edge **ret, size_t *ret_count)
{
    const struct wait_cell *cell = account_sums_cell(sums, cause);
    uint64_t count = 0, ns = 0;

    if (kind == PRCB_EDGE_MEANWHILE ? whom_meanwhile(report->whom, group, ret, ret_count)
                                    : (kind == PRCB_EDGE_HELD_BY ? whom_holders : whom_rows)(
                                          report->whom, group, cause, ret, ret_count))
        return false;
    for (size_t i = 0; i < *ret_count; i++) {
        count += (*ret)[i].count;
        ns += (*ret)[i].ns;
    }
    if (cause ? cell && cell->count == count && cell->ns == ns : sums->ready_ns == ns)
        return true;
    free(*ret);
    return false;
}

/* Whether it is told which cgroups had the processors. */
static bool has_cgroups(const struct stat_report *report)
{
    struct prcb_edge *edges;
    bool ret = false;
    size_t count;

    if (report->rows != STAT_CGROUPS || !report->whom ||
        whom_meanwhile(report->whom, WHOM_ALL, &edges, &count))
        return false;
    for (size_t i = 0; i < count; i++)
        ret |= edges[i].by != PRCB_BY_REST;
    free(edges);
    return ret;
}

/* Finds the kinds of edges of a cause that a report has. Returns how many they are. */
static size_t kinds_of(const struct stat_report *report, bool cgroups, uint32_t cause,
                       uint32_t ret[2])
{
    ret[0] = cause ? PRCB_EDGE_WOKEN_BY : PRCB_EDGE_BEHIND;
    ret[1] = cause ? PRCB_EDGE_HELD_BY : PRCB_EDGE_MEANWHILE;
    return cause ? 1 + (report->owners && cause_has(cause, CAUSE_IS_KERNEL_LOCK)) : 1 + cgroups;
}

typedef void (*edges_fn)(void *ctx, uint32_t cause, uint32_t kind, const struct prcb_edge *edges,
                         size_t count);

/* Calls fn for each edge of a row. false: not known; then fn is not called. */
static bool each_edge(const struct stat_report *report, uint64_t group,
                      const struct account_sums *sums, edges_fn fn, void *ctx)
{
    bool known = report->whom, cgroups = has_cgroups(report);
    struct prcb_edge *edges;
    uint32_t kinds[2];
    size_t count;

    for (int write = 0; write < 2; write++) {
        for (uint32_t i = 0; known && i <= sums->cell_count; i++) {
            uint32_t cause = i < sums->cell_count ? sums->cells[i].cause : PRCB_CAUSE_NONE;
            size_t kind_count = kinds_of(report, cgroups, cause, kinds);

            if (i < sums->cell_count && !is_wait(cause))
                continue;
            for (size_t k = 0; known && k < kind_count; k++) {
                known = rows_of(report, group, sums, cause, kinds[k], &edges, &count);
                if (!known)
                    break;
                if (write)
                    fn(ctx, cause, kinds[k], edges, count);
                free(edges);
            }
        }
    }
    return known;
}

#define PATH_CELL    40              /* of a cgroup's path, in columns */
#define HOLDERS_LEAD "             " /* as wide as a cause's name */

/* ---- words --------------------------------------------------------------- */

/* Writes behind which cgroups one was ready, if it was. */
static void write_cgroup(FILE *out, const struct stat_report *report, const struct account_row *row)
{
    char lead[4096 + 16], path[4096];

    if (!row->now.ready_ns)
        return;
    text_copy(TEXT_MARKS, stat_row_name(report, row), path, sizeof(path));
    format_cut(path, PATH_CELL);
    snprintf(lead, sizeof(lead), "  %s ", path);
    whom_write_cgroups(out, report->whom, report->cgroups, group_of(report, row), lead,
                       format_columns(out));
}

void stat_whom_write(FILE *out, const struct stat_report *report, int causes)
{
    const struct account_sums *sums = &report->view->total.now;
    bool named[PRCB_CAUSE_MAX] = {0};
    char lead[FORMAT_CELL];

    for (int n = 0; n < causes; n++) {
        const struct wait_cell *best = NULL;

        for (uint32_t i = 0; i < sums->cell_count; i++) {
            const struct wait_cell *cell = &sums->cells[i];

            if (is_wait(cell->cause) && cell->ns && !named[cell->cause] &&
                (!best || cell->ns > best->ns))
                best = cell;
        }
        if (!best)
            break;
        named[best->cause] = true;
        snprintf(lead, sizeof(lead), "  %-10s ", prcb_cause_info(best->cause)->name);
        whom_write(out, report->whom, WHOM_ALL, best->cause,
                   cause_has(best->cause, CAUSE_IS_KERNEL_LOCK), lead, format_columns(out));
        if (report->owners)
            whom_write_holders(out, report->whom, WHOM_ALL, best->cause, HOLDERS_LEAD,
                               format_columns(out));
    }
    if (sums->ready_ns) {
        snprintf(lead, sizeof(lead), "  %-10s ", "ready");
        whom_write(out, report->whom, WHOM_ALL, PRCB_CAUSE_NONE, false, lead, format_columns(out));
    }
    if (!has_cgroups(report))
        return;
    for (size_t i = 0; i < report->view->count; i++)
        write_cgroup(out, report, report->view->rows[i]);
}

/* ---- JSON ---------------------------------------------------------------- */

struct documents {
    struct json_doc *doc;
    struct cgroup_names *names;
    json_object *woken, *held, *ready, *cgroups;
};

static json_object *make_cgroups(struct documents *d, const struct prcb_edge *edges, size_t count)
{
    json_object *array = whom_edges_json(d->doc, edges, count);

    for (size_t i = 0; i < count; i++) {
        const char *path =
            edges[i].by == PRCB_BY_CGROUP ? cgroup_names_find(d->names, edges[i].cgroup) : NULL;
        json_object *row = json_object_array_get_idx(array, i);

        if (path)
            json_doc_put_text(d->doc, row, "name", path);
        json_doc_put_text(d->doc, row, "cgroup", path);
        json_doc_put_member(d->doc, row, "cgroup_id", edges[i].cgroup,
                            edges[i].by == PRCB_BY_CGROUP);
    }
    return array;
}

static void put_edges(void *ctx, uint32_t cause, uint32_t kind, const struct prcb_edge *edges,
                      size_t count)
{
    struct documents *d = ctx;

    if (kind == PRCB_EDGE_MEANWHILE)
        d->cgroups = make_cgroups(d, edges, count);
    else if (cause)
        json_doc_put(d->doc, kind == PRCB_EDGE_HELD_BY ? d->held : d->woken,
                     prcb_cause_info(cause)->name, whom_edges_json(d->doc, edges, count));
    else
        d->ready = whom_edges_json(d->doc, edges, count);
}

json_object *stat_whom_json(struct json_doc *b, const struct stat_report *report,
                            const struct account_row *row)
{
    struct documents d = {.doc = b,
                          .names = report->cgroups,
                          .woken = json_object_new_object(),
                          .held = json_object_new_object()};
    const struct account_row *of = row ? row : &report->view->total;
    uint64_t group = row ? group_of(report, row) : WHOM_ALL;
    json_object *object;

    if (!each_edge(report, group, &of->now, put_edges, &d)) {
        json_object_put(d.woken);
        json_object_put(d.held);
        return NULL;
    }
    object = json_object_new_object();
    json_doc_put(b, object, "woken_by", d.woken);
    if (report->owners)
        json_doc_put(b, object, "held_by", d.held);
    else
        json_object_put(d.held);
    json_doc_put(b, object, "ready_behind", d.ready);
    if (d.cgroups)
        json_doc_put(b, object, "ready_behind_cgroups", d.cgroups);
    return object;
}

/* ---- values per line ----------------------------------------------------- */

struct lines {
    struct csv csv;
    const struct stat_report *report;
    const struct account_row *row;
};

static const char *edge_word(uint32_t kind)
{
    return kind == PRCB_EDGE_HELD_BY     ? "held_by"
           : kind == PRCB_EDGE_WOKEN_BY  ? "woken_by"
           : kind == PRCB_EDGE_MEANWHILE ? "ready_behind_cgroup"
                                         : "ready_behind";
}

static void write_edge(struct lines *l, uint32_t cause, uint32_t kind, const struct prcb_edge *edge)
{
    struct csv *csv = &l->csv;
    bool thread = edge->by == PRCB_BY_THREAD;
    char name[4096];

    if (l->report->interval)
        csv_number(csv, true, l->report->time_ns);
    if (l->report->rows == STAT_CGROUPS) {
        csv_text(csv, stat_row_name(l->report, l->row));
        csv_number(csv, true, l->row->cgroup);
    } else {
        if (l->report->rows == STAT_THREADS)
            csv_number(csv, l->row->tid, (uint64_t)l->row->tid);
        csv_number(csv, l->row->pid, (uint64_t)l->row->pid);
        csv_text(csv, l->row->comm);
    }
    csv_text(csv, edge_word(kind));
    csv_text(csv, cause ? prcb_cause_info(cause)->name : "ready");
    csv_text(csv, prcb_edge_by_name(edge->by));
    whom_cgroup_name(edge, l->report->cgroups, UINT64_MAX, name, sizeof(name));
    csv_text(csv, name);
    csv_number(csv, thread && edge->tid, (uint64_t)edge->tid);
    csv_number(csv, thread && edge->pid, (uint64_t)edge->pid);
    csv_number(csv, true, edge->count);
    csv_number(csv, true, edge->ns);
    csv_end(csv);
}

static void write_edges(void *ctx, uint32_t cause, uint32_t kind, const struct prcb_edge *edges,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        write_edge(ctx, cause, kind, &edges[i]);
}

static void write_names(struct csv *csv, const struct stat_report *report)
{
    static const char *const names[] = {"edge",   "cause", "by", "by_name", "by_tid",
                                        "by_pid", "count", "ns", NULL};
    bool cgroups = report->rows == STAT_CGROUPS;

    if (report->interval)
        csv_text(csv, "time_ns");
    if (report->rows == STAT_THREADS)
        csv_text(csv, "tid");
    csv_text(csv, cgroups ? "cgroup" : "pid");
    csv_text(csv, cgroups ? "cgroup_id" : "comm");
    csv_names(csv, names);
}

void stat_whom_csv(FILE *out, const struct stat_report *report)
{
    struct lines lines = {.csv = {.out = out, .separator = report->separator}, .report = report};

    if (report->first)
        write_names(&lines.csv, report);
    for (size_t i = 0; i < report->view->count; i++) {
        lines.row = report->view->rows[i];
        each_edge(report, group_of(report, lines.row), &lines.row->now, write_edges, &lines);
    }
}
