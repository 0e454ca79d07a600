/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdlib.h>

#include "bench_report.h"
#include "format.h"
#include "text.h"

#define NAME_WIDTH 20

static void write_head(const struct bench_report *report, FILE *out)
{
    for (size_t i = 0; i < report->side_count; i++) {
        fprintf(out, "%s: ", report->names[i]);
        text_print(out, TEXT_MARKS, report->sides[i].command);
        fprintf(out, " (%zu runs)\n", report->sides[i].count);
    }
}

/* ---- two sides ------------------------------------------------------------------ */

static void write_row(const struct bench_report *report, const struct bench_row *row, FILE *out)
{
    static const char *const verdicts[] = {"same", "not known", "more", "less"};
    const struct rank_result *r = &row->result;
    char cells[5][FORMAT_CELL];

    bench_format(report, row->part, r->median[0], false, cells[0], sizeof(cells[0]));
    bench_format(report, row->part, r->median[1], false, cells[1], sizeof(cells[1]));
    bench_format(report, row->part, r->shift, true, cells[2], sizeof(cells[2]));
    bench_format(report, row->part, r->low, true, cells[3], sizeof(cells[3]));
    bench_format(report, row->part, r->high, true, cells[4], sizeof(cells[4]));
    fprintf(out, "%-*s %10s %10s %10s %10s to %-10s %s\n", NAME_WIDTH, bench_part_name(row->part),
            cells[0], cells[1], cells[2], cells[3], cells[4], verdicts[row->verdict]);
}

static void write_rows(const struct bench_report *report, enum bench_owner owner,
                       const char *heading, FILE *out)
{
    const struct bench_comparison *c = report->comparison;
    bool first = true;

    for (size_t i = 0; i < c->count; i++) {
        if (bench_part_owner(c->rows[i].part) != owner)
            continue;
        if (first)
            fprintf(out, "\n%-*s %10s %10s %10s %24s\n", NAME_WIDTH, heading, report->names[0],
                    report->names[1], "CHANGE", "BETWEEN");
        first = false;
        write_row(report, &c->rows[i], out);
    }
}

static void write_places(const struct bench_report *report, FILE *out)
{
    char cells[2][FORMAT_CELL];

    if (report->place_count)
        fprintf(out, "\n%-*s %10s %10s  %s\n", NAME_WIDTH, "WAITS IN", report->names[0],
                report->names[1], "FUNCTION");
    for (size_t i = 0; i < report->place_count; i++) {
        const struct bench_place *place = &report->places[i];

        for (int side = 0; side < 2; side++)
            format_time((uint64_t)place->ns[side], cells[side], sizeof(cells[side]));
        fprintf(out, "%-*s %10s %10s  ", NAME_WIDTH, bench_part_name(place->part), cells[0],
                cells[1]);
        text_print(out, TEXT_MARKS, place->function);
        fputc('\n', out);
    }
}

/* ---- one side ------------------------------------------------------------------- */

static void write_spread(const struct bench_report *report, unsigned part, double *values,
                         FILE *out)
{
    const struct bench_side *side = report->sides;
    double shown[3] = {0, INFINITY, 0}; /* median, least, most */
    char cells[3][FORMAT_CELL];

    for (size_t i = 0; i < side->count; i++) {
        values[i] = side->runs[i].value[part];
        if (isnan(values[i]))
            return;
        shown[1] = fmin(shown[1], values[i]);
        shown[2] = fmax(shown[2], values[i]);
    }
    if (shown[2] <= 0)
        return;
    shown[0] = rank_median(values, side->count);
    for (int i = 0; i < 3; i++)
        bench_format(report, part, shown[i], false, cells[i], sizeof(cells[i]));
    fprintf(out, "%-*s %10s %10s %10s  %s\n", NAME_WIDTH, bench_part_name(part), cells[0], cells[1],
            cells[2], bench_part_words(part));
}

static void write_alone(const struct bench_report *report, FILE *out)
{
    double *values = malloc((report->sides->count ? report->sides->count : 1) * sizeof(*values));

    fprintf(out, "\n%-*s %10s %10s %10s\n", NAME_WIDTH, "PART", "MEDIAN", "LEAST", "MOST");
    for (unsigned part = 0; values && part < BENCH_PARTS; part++) {
        if (bench_part_name(part))
            write_spread(report, part, values, out);
    }
    free(values);
}

void bench_write_text(const struct bench_report *report, FILE *out)
{
    bench_put_sentence(out, report);
    fputs("\n\n", out);
    write_head(report, out);
    if (report->comparison) {
        write_rows(report, BENCH_ALL, "TIME", out);
        write_rows(report, BENCH_OWN, "THE PROGRAM'S", out);
        write_rows(report, BENCH_DETAIL, "OF RUN, BY TICKS", out);
        write_rows(report, BENCH_HOST, "THE MACHINE'S", out);
        write_places(report, out);
        fprintf(out,
                "\nIntervals are of %.3g %%; the program's parts are tested together, so that one "
                "in %.0f comparisons\nof equal programs finds a difference.\n",
                100 * (1 - report->comparison->options.alpha / report->comparison->options.stages),
                1 / report->comparison->options.alpha);
    } else {
        write_alone(report, out);
    }
    for (size_t i = 0; i < report->note_count; i++) {
        text_print(out, TEXT_MARKS, report->notes[i]);
        fputc('\n', out);
    }
}
