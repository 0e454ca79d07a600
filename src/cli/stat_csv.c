/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The report as values with a separator. The columns are rows of one table, then
 * two per cause: its count and its nanoseconds. A report at the end has the
 * causes that occurred; intervals have all there are, since the line of names is
 * written before anything has happened. What is absent is an empty value.
 */
#include "stat_report.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "stat_text.h"

/* Number columns, in order. */
static const struct {
    const char *name;
    uint64_t member; /* without it the value is absent */
    size_t offset;   /* in struct stat_figures */
} numbers[] = {
    {"wall_ns", PRCB_HAS_WALL, offsetof(struct stat_figures, wall_ns)},
    {"run_ns", PRCB_HAS_RUN, offsetof(struct stat_figures, run_ns)},
    {"ready_ns", PRCB_HAS_READY, offsetof(struct stat_figures, ready_ns)},
    {"wait_ns", PRCB_HAS_WAIT, offsetof(struct stat_figures, wait_ns)},
    {"open_ns", PRCB_HAS_OPEN, offsetof(struct stat_figures, open_ns)},
    {"switches", PRCB_HAS_SWITCHES, offsetof(struct stat_figures, switches)},
    {"voluntary_switches", PRCB_HAS_SWITCHES, offsetof(struct stat_figures, voluntary_switches)},
    {"migrations", PRCB_HAS_MIGRATIONS, offsetof(struct stat_figures, migrations)},
    {"tsc_cycles", PRCB_HAS_CYCLES, offsetof(struct stat_figures, tsc_cycles)},
    {"missed_switches", PRCB_HAS_WAITS, offsetof(struct stat_figures, missed_switches)},
    /* the last: with --interrupted only */
    {"interrupted_ns", PRCB_HAS_INTERRUPTED, offsetof(struct stat_figures, interrupted_ns)},
};
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static size_t number_columns(const struct stat_report *report)
{
    return report->options->interrupted ? NUMBERS : NUMBERS - 1;
}

static bool cause_has_columns(const struct stat_report *report, uint32_t cause)
{
    const struct stat_cell *cell = stat_figures_cell(&report->view->total.now, cause);

    if (!prcb_cause_info(cause))
        return false;
    return report->options->interval_ns || (cell && (cell->count || cell->ns));
}

static void write_names(FILE *out, const struct stat_report *report)
{
    const char *separator = report->options->separator;

    if (report->interval)
        fprintf(out, "time_ns%s", separator);
    if (!report->options->per_process)
        fprintf(out, "tid%s", separator);
    fprintf(out, "pid%scomm%sthreads%sexited%sopen_cause", separator, separator, separator,
            separator);
    for (size_t i = 0; i < number_columns(report); i++)
        fprintf(out, "%s%s", separator, numbers[i].name);
    for (uint32_t cause = 1; cause < PRCB_CAUSE_MAX; cause++) {
        if (!cause_has_columns(report, cause))
            continue;
        fprintf(out, "%s%s_count", separator, prcb_cause_info(cause)->name);
        fprintf(out, "%s%s_ns", separator, prcb_cause_info(cause)->name);
    }
    for (size_t i = 0; i < stat_counters_count(report->counters); i++) {
        const char *name = stat_counters_at(report->counters, i).name;

        fputs(separator, out);
        stat_text_csv(out, name, separator);
        fprintf(out, "%s%s_enabled_ns%s%s_running_ns", separator, name, separator, name);
    }
    fputc('\n', out);
}

static void write_counters(FILE *out, const struct stat_report *report, const struct stat_row *row)
{
    const char *separator = report->options->separator, *reason;

    for (size_t i = 0; i < stat_counters_count(report->counters); i++) {
        const struct stat_count *count = stat_counters_find(report->counters, i, row, &reason);

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
static void write_open(FILE *out, const struct stat_figures *now)
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

static void write_row(FILE *out, const struct stat_report *report, const struct stat_row *row)
{
    const char *separator = report->options->separator;
    const struct stat_figures *now = &row->now;
    char comm[STAT_CELL];

    if (report->interval)
        fprintf(out, "%" PRIu64 "%s", report->time_ns, separator);
    if (!report->options->per_process)
        write_id(out, row->tid, separator);
    write_id(out, row->pid, separator);
    stat_text_comm(row->comm, comm, sizeof(comm));
    stat_text_csv(out, comm, separator);
    fprintf(out, "%s%" PRIu64 "%s%" PRIu64 "%s", separator, row->threads, separator, row->exited,
            separator);
    write_open(out, now);
    for (size_t i = 0; i < number_columns(report); i++) {
        fputs(separator, out);
        if (now->present & numbers[i].member)
            fprintf(out, "%" PRIu64, *(const uint64_t *)((const char *)now + numbers[i].offset));
    }
    for (uint32_t cause = 1; cause < PRCB_CAUSE_MAX; cause++) {
        const struct stat_cell *cell = stat_figures_cell(now, cause);

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
