/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The report as values with a separator. The columns are the figures of an account, then
 * two per cause: its count and its nanoseconds. A report at the end has the
 * causes that occurred; intervals have all there are, since the line of names is
 * written before anything has happened. What is absent is an empty value.
 */
#include "stat_report.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "text.h"

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

static void write_names(FILE *out, const struct stat_report *report)
{
    const char *separator = report->separator;

    if (report->interval)
        fprintf(out, "time_ns%s", separator);
    if (report->rows == STAT_CGROUPS)
        fprintf(out, "cgroup%scgroup_id%s", separator, separator);
    if (!report->rows)
        fprintf(out, "tid%s", separator);
    fprintf(out, "pid%scomm%sthreads%sexited%sopen_cause", separator, separator, separator,
            separator);
    for (const struct figure *figure = account_figures; figure->name; figure++) {
        if (has_column(report, figure))
            fprintf(out, "%s%s", separator, figure->name);
    }
    for (uint32_t cause = 1; cause < PRCB_CAUSE_MAX; cause++) {
        if (!cause_has_columns(report, cause))
            continue;
        fprintf(out, "%s%s_count", separator, prcb_cause_info(cause)->name);
        fprintf(out, "%s%s_ns", separator, prcb_cause_info(cause)->name);
    }
    for (size_t i = 0; i < account_counters_count(report->counters); i++) {
        const char *name = account_counters_at(report->counters, i).name;

        fputs(separator, out);
        text_print_csv(out, name, separator);
        fprintf(out, "%s%s_enabled_ns%s%s_running_ns", separator, name, separator, name);
    }
    fputc('\n', out);
}

static void write_counters(FILE *out, const struct stat_report *report,
                           const struct account_row *row)
{
    const char *separator = report->separator, *reason;

    for (size_t i = 0; i < account_counters_count(report->counters); i++) {
        const struct event_count *count = account_counters_find(report->counters, i, row, &reason);

        if (count)
            fprintf(out, "%s%" PRIu64 "%s%" PRIu64 "%s%" PRIu64, separator, count->value, separator,
                    count->enabled_ns, separator, count->running_ns);
        else
            fprintf(out, "%s%s%s", separator, separator, separator);
    }
}

static void write_id(FILE *out, pid_t id, const char *separator)
{
    if (id)
        fprintf(out, "%d", (int)id);
    fputs(separator, out);
}

/* The causes of open waits: one, or several with + between them. */
static void write_open(FILE *out, const struct account_sums *now)
{
    const char *before = "";

    if (!(now->present & PRCB_HAS_WAITS))
        return;
    for (uint32_t i = 0; i < now->cell_count; i++) {
        if (!now->cells[i].open_ns || !now->cells[i].cause)
            continue;
        fprintf(out, "%s%s", before, prcb_cause_info(now->cells[i].cause)->name);
        before = "+";
    }
}

static void write_row(FILE *out, const struct stat_report *report, const struct account_row *row)
{
    const char *separator = report->separator;
    const struct account_sums *now = &row->now;

    if (report->interval)
        fprintf(out, "%" PRIu64 "%s", report->time_ns, separator);
    if (report->rows == STAT_CGROUPS) {
        text_print_csv(out, stat_row_name(report, row), separator);
        fprintf(out, "%s%" PRIu64 "%s", separator, row->cgroup, separator);
    }
    if (!report->rows)
        write_id(out, row->tid, separator);
    write_id(out, row->pid, separator);
    text_print_csv(out, row->comm, separator);
    fprintf(out, "%s%" PRIu64 "%s%" PRIu64 "%s", separator, row->threads, separator, row->exited,
            separator);
    write_open(out, now);
    for (const struct figure *figure = account_figures; figure->name; figure++) {
        if (!has_column(report, figure))
            continue;
        fputs(separator, out);
        if (now->present & figure->present)
            fprintf(out, "%" PRIu64, now->numbers[figure->index]);
    }
    for (uint32_t cause = 1; cause < PRCB_CAUSE_MAX; cause++) {
        const struct wait_cell *cell = account_sums_cell(now, cause);

        if (!cause_has_columns(report, cause))
            continue;
        fputs(separator, out);
        if (now->present & PRCB_HAS_WAITS)
            fprintf(out, "%" PRIu64 "%s%" PRIu64, cell ? cell->count : 0, separator,
                    cell ? cell->ns : 0);
        else
            fputs(separator, out);
    }
    write_counters(out, report, row);
    fputc('\n', out);
}

void stat_csv_write(FILE *out, const struct stat_report *report)
{
    if (report->first)
        write_names(out, report);
    for (size_t i = 0; i < report->view->count; i++)
        write_row(out, report, report->view->rows[i]);
}
