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

/* Finds the edges of a cause, or (NONE) of ready time. false: they do not sum to what the row
 * has. */
static bool rows_of(const struct stat_report *report, uint64_t group,
                    const struct account_sums *sums, uint32_t cause, bool holders,
                    struct prcb_edge **ret, size_t *ret_count)
{
    const struct wait_cell *cell = account_sums_cell(sums, cause);
    uint64_t count = 0, ns = 0;

    if ((holders ? whom_holders : whom_rows)(report->whom, group, cause, ret, ret_count))
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

typedef void (*edges_fn)(void *ctx, uint32_t cause, bool holders, const struct prcb_edge *edges,
                         size_t count);

/* Calls fn for each edge of a row. false: not known; then fn is not called. */
static bool each_edge(const struct stat_report *report, uint64_t group,
                      const struct account_sums *sums, edges_fn fn, void *ctx)
{
    struct prcb_edge *edges;
    bool known = report->whom;
    size_t count;

    for (int write = 0; write < 2; write++) {
        for (uint32_t i = 0; known && i <= sums->cell_count; i++) {
            uint32_t cause = i < sums->cell_count ? sums->cells[i].cause : PRCB_CAUSE_NONE;

            if (i < sums->cell_count && !is_wait(cause))
                continue;
            for (int holders = 0;
                 known && holders <= (report->owners && cause_has(cause, CAUSE_IS_KERNEL_LOCK));
                 holders++) {
                known = rows_of(report, group, sums, cause, holders, &edges, &count);
                if (!known)
                    break;
                if (write)
                    fn(ctx, cause, holders, edges, count);
                free(edges);
            }
        }
    }
    return known;
}

#define HOLDERS_LEAD "             " /* as wide as a cause's name */

/* ---- words --------------------------------------------------------------- */

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
}

/* ---- JSON ---------------------------------------------------------------- */

struct documents {
    struct json_doc *doc;
    json_object *woken, *held, *ready;
};

static void put_edges(void *ctx, uint32_t cause, bool holders, const struct prcb_edge *edges,
                      size_t count)
{
    struct documents *d = ctx;
    json_object *array = whom_edges_json(d->doc, edges, count);

    if (cause)
        json_doc_put(d->doc, holders ? d->held : d->woken, prcb_cause_info(cause)->name, array);
    else
        d->ready = array;
}

json_object *stat_whom_json(struct json_doc *b, const struct stat_report *report,
                            const struct account_row *row)
{
    struct documents d = {
        .doc = b, .woken = json_object_new_object(), .held = json_object_new_object()};
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
    return object;
}

/* ---- values per line ----------------------------------------------------- */

struct lines {
    struct csv csv;
    const struct stat_report *report;
    const struct account_row *row;
};

static void write_edge(struct lines *l, uint32_t cause, bool holder, const struct prcb_edge *edge)
{
    struct csv *csv = &l->csv;
    bool thread = edge->by == PRCB_BY_THREAD;
    char name[128];

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
    csv_text(csv, holder ? "held_by" : cause ? "woken_by" : "ready_behind");
    csv_text(csv, cause ? prcb_cause_info(cause)->name : "ready");
    csv_text(csv, prcb_edge_by_name(edge->by));
    whom_name(edge, name, sizeof(name));
    csv_text(csv, name);
    csv_number(csv, thread && edge->tid, (uint64_t)edge->tid);
    csv_number(csv, thread && edge->pid, (uint64_t)edge->pid);
    csv_number(csv, true, edge->count);
    csv_number(csv, true, edge->ns);
    csv_end(csv);
}

static void write_edges(void *ctx, uint32_t cause, bool holders, const struct prcb_edge *edges,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        write_edge(ctx, cause, holders, &edges[i]);
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
