/* SPDX-License-Identifier: BSD-2-Clause */
#include "stat_counters.h"

#include <inttypes.h>
#include <string.h>

#include <prcb/counters.h>

#include "format.h"
#include "stat_report.h"
#include "text.h"

static void write_cell(const struct account_counters *counters, size_t i,
                       const struct account_row *row, char *ret)
{
    const char *reason;
    const struct event_count *count = account_counters_find(counters, i, row, &reason);

    if (!count)
        strcpy(ret, "-");
    else if (count->running_ns < count->enabled_ns - count->enabled_ns / 64)
        snprintf(ret, FORMAT_CELL, "%" PRIu64 " (%.0f%%)", count->value,
                 100.0 * (double)count->running_ns / (double)count->enabled_ns);
    else
        snprintf(ret, FORMAT_CELL, "%" PRIu64, count->value);
}

void stat_counters_write_line(FILE *out, const struct account_counters *counters,
                              const struct account_row *row)
{
    char cell[FORMAT_CELL];

    for (size_t i = 0; i < account_counters_count(counters); i++) {
        write_cell(counters, i, row, cell);
        fprintf(out, "%s%s %s", i ? ", " : "", account_counters_at(counters, i).name, cell);
    }
}

static size_t column_width(const struct account_counters *counters, size_t i,
                           const struct account_view *view)
{
    size_t width = strlen(account_counters_at(counters, i).name);
    char cell[FORMAT_CELL];

    for (size_t row = 0; row <= view->count; row++) {
        write_cell(counters, i, row < view->count ? view->rows[row] : &view->total, cell);
        width = strlen(cell) > width ? strlen(cell) : width;
    }
    return width;
}

static void write_row(FILE *out, const struct account_counters *counters,
                      const struct account_row *row, const char *id, const char *name,
                      const size_t *widths, size_t first, size_t last)
{
    char cell[FORMAT_CELL];

    fprintf(out, "%7s  %s%*s", id, name,
            (int)(format_width(name) < 15 ? 15 - format_width(name) : 0), "");
    for (size_t i = first; i < last; i++) {
        if (row)
            write_cell(counters, i, row, cell);
        fprintf(out, "  %*s", (int)widths[i], row ? cell : account_counters_at(counters, i).name);
    }
    fputc('\n', out);
}

static void write_rows(FILE *out, const struct account_counters *counters,
                       const struct stat_report *report, const size_t *widths, size_t first,
                       size_t last)
{
    const struct stat_rows_kind *kind = &stat_rows_kinds[report->rows];
    const struct account_view *view = report->view;

    write_row(out, counters, NULL, kind->id ? kind->id : "", kind->heading, widths, first, last);
    for (size_t i = 0; i < view->count; i++) {
        const struct account_row *row = view->rows[i];
        pid_t number = report->rows ? row->pid : row->tid;
        char id[FORMAT_CELL] = "-", name[FORMAT_CELL];

        if (number)
            snprintf(id, sizeof(id), "%d", (int)number);
        text_copy(TEXT_MARKS, stat_row_name(report, row), name, sizeof(name));
        write_row(out, counters, row, id, name, widths, first, last);
    }
    if (view->other_rows) {
        char name[FORMAT_CELL];

        snprintf(name, sizeof(name), "(%zu more)", view->other_rows);
        write_row(out, counters, &view->others, "", name, widths, first, last);
    }
    write_row(out, counters, &view->total, "", "total", widths, first, last);
}

/* Writes as many columns side by side as there is room for, then the rest below. */
void stat_counters_write(FILE *out, const struct stat_report *report)
{
    const struct account_counters *counters = report->counters;
    size_t widths[PRCB_COUNTERS_MAX], columns = format_columns(out), first = 0;

    for (size_t i = 0; i < account_counters_count(counters); i++)
        widths[i] = column_width(counters, i, report->view);
    while (first < account_counters_count(counters)) {
        size_t last = first, width = 24;

        while (last < account_counters_count(counters) &&
               (last == first || width + 2 + widths[last] <= columns))
            width += 2 + widths[last++];
        fputc('\n', out);
        write_rows(out, counters, report, widths, first, last);
        first = last;
    }
}

void stat_counters_write_notes(FILE *out, const char *prefix,
                               const struct account_counters *counters)
{
    struct account_counters_notes notes = account_counters_notes(counters);

    for (size_t i = 0; i < account_counters_count(counters); i++) {
        struct account_counter counter = account_counters_at(counters, i);

        if (counter.reason)
            fprintf(out, "%s%s absent: %s\n", prefix, counter.name, counter.reason);
    }
    if (notes.short_lived_lack)
        fprintf(out,
                "%sthis kernel does not tell the counts of threads that end: those that lived "
                "shorter than 100 ms have none, the total has them\n",
                prefix);
    if (notes.late)
        fprintf(out,
                "%s%" PRIu64 " thread%s counted from when first seen, up to 100 ms after the "
                "start\n",
                prefix, notes.late, notes.late == 1 ? " was" : "s were");
    if (notes.lost)
        fprintf(out, "%s%" PRIu64 " counts of ended threads were lost: the total has them\n",
                prefix, notes.lost);
    if (notes.failure)
        fprintf(out, "%ssome threads were not counted: %s\n", prefix, notes.failure);
}
