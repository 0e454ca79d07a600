/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes the report as values with a separator. The columns are the figures of an account, then
 * two per cause: its count and its nanoseconds. A report at the end has the causes that
 * occurred; intervals have all there are, since the line of names is written before anything has
 * happened. What is absent is an empty value.
 */
#include "stat_report.h"

#include "csv.h"

static bool has_column(const struct stat_report *report, const struct figure *figure)
{
    return figure->kind != FIGURE_LIST && stat_figure_wanted(report, figure);
}

static bool cause_has_columns(const struct stat_report *report, uint32_t cause)
{
    const struct wait_cell *cell = account_sums_cell(&report->view->total.now, cause);

    if (!prcb_cause_info(cause))
        return false;
    return report->interval_ns || (cell && (cell->count || cell->ns));
}

static void write_names(struct csv *csv, const struct stat_report *report)
{
    if (report->interval)
        csv_text(csv, "time_ns");
    if (report->rows == STAT_CGROUPS) {
        csv_text(csv, "cgroup");
        csv_text(csv, "cgroup_id");
    }
    if (!report->rows)
        csv_text(csv, "tid");
    csv_text(csv, "pid");
    csv_text(csv, "comm");
    csv_text(csv, "threads");
    csv_text(csv, "exited");
    csv_text(csv, "open_cause");
    for (const struct figure *figure = account_figures; figure->name; figure++) {
        if (has_column(report, figure))
            csv_text(csv, figure->name);
    }
    for (uint32_t cause = 1; cause < PRCB_CAUSE_MAX; cause++) {
        if (!cause_has_columns(report, cause))
            continue;
        csv_print(csv, "%s_count", prcb_cause_info(cause)->name);
        csv_print(csv, "%s_ns", prcb_cause_info(cause)->name);
    }
    for (size_t i = 0; i < account_counters_count(report->counters); i++) {
        const char *name = account_counters_at(report->counters, i).name;

        csv_text(csv, name);
        csv_print(csv, "%s_enabled_ns", name);
        csv_print(csv, "%s_running_ns", name);
    }
    csv_end(csv);
}

static void write_counters(struct csv *csv, const struct stat_report *report,
                           const struct account_row *row)
{
    const char *reason;

    for (size_t i = 0; i < account_counters_count(report->counters); i++) {
        const struct event_count *count = account_counters_find(report->counters, i, row, &reason);

        csv_number(csv, count, count ? count->value : 0);
        csv_number(csv, count, count ? count->enabled_ns : 0);
        csv_number(csv, count, count ? count->running_ns : 0);
    }
}

/* Writes the causes of open waits: one, or several with + between them. */
static void write_open(struct csv *csv, const struct account_sums *now)
{
    const char *before = "";

    csv_next(csv);
    if (!(now->present & PRCB_HAS_WAITS))
        return;
    for (uint32_t i = 0; i < now->cell_count; i++) {
        if (!now->cells[i].open_ns || !now->cells[i].cause)
            continue;
        fprintf(csv->out, "%s%s", before, prcb_cause_info(now->cells[i].cause)->name);
        before = "+";
    }
}

static void write_row(struct csv *csv, const struct stat_report *report,
                      const struct account_row *row)
{
    const struct account_sums *now = &row->now;
    bool waits = now->present & PRCB_HAS_WAITS;

    if (report->interval)
        csv_number(csv, true, report->time_ns);
    if (report->rows == STAT_CGROUPS) {
        csv_text(csv, stat_row_name(report, row));
        csv_number(csv, true, row->cgroup);
    }
    if (!report->rows)
        csv_signed(csv, row->tid, row->tid);
    csv_signed(csv, row->pid, row->pid);
    csv_text(csv, row->comm);
    csv_number(csv, true, row->threads);
    csv_number(csv, true, row->exited);
    write_open(csv, now);
    for (const struct figure *figure = account_figures; figure->name; figure++) {
        if (has_column(report, figure))
            csv_number(csv, now->present & figure->present, now->numbers[figure->index]);
    }
    for (uint32_t cause = 1; cause < PRCB_CAUSE_MAX; cause++) {
        const struct wait_cell *cell = account_sums_cell(now, cause);

        if (!cause_has_columns(report, cause))
            continue;
        csv_number(csv, waits, cell ? cell->count : 0);
        csv_number(csv, waits, cell ? cell->ns : 0);
    }
    write_counters(csv, report, row);
    csv_end(csv);
}

void stat_csv_write(FILE *out, const struct stat_report *report)
{
    struct csv csv = {.out = out, .separator = report->separator};

    if (report->by_whom) {
        stat_whom_csv(out, report);
        return;
    }
    if (report->first)
        write_names(&csv, report);
    for (size_t i = 0; i < report->view->count; i++)
        write_row(&csv, report, report->view->rows[i]);
}
