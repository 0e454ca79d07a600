/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench_report.h"
#include "format.h"
#include "text.h"

#define SMALL 0.001 /* a change of time below this share of the wall time is not worth a word */
#define NAMED 3     /* parts in the sentence */

void bench_format(const struct bench_report *report, unsigned part, double value, bool change,
                  char *ret, size_t size)
{
    const char *sign = !change || value == 0 ? "" : value < 0 ? "-" : "+";
    bool shares = report->comparison && report->comparison->options.shares;
    char time[FORMAT_CELL];

    if (isnan(value))
        snprintf(ret, size, "-");
    else if (bench_part_counts(part))
        snprintf(ret, size, "%s%.*f", sign, value == floor(value) ? 0 : 1, fabs(value));
    else if (shares && part != BENCH_WALL && part != BENCH_REFERENCE)
        snprintf(ret, size, "%s%.2f %%", sign, 100 * fabs(value));
    else {
        format_time((uint64_t)(fabs(value) + 0.5), time, sizeof(time));
        snprintf(ret, size, "%s%s", sign, time);
    }
}

static const struct bench_place *place_of(const struct bench_report *report, unsigned part)
{
    for (size_t i = 0; i < report->place_count; i++) {
        if (report->places[i].part == part && *report->places[i].function != '[')
            return &report->places[i];
    }
    return NULL;
}

/* "+2.4ms run (+5.0 %)", "+1.0ms futex in Cache.get". */
static void put_part(FILE *out, const struct bench_report *report, const struct bench_row *row)
{
    const struct bench_place *place = place_of(report, row->part);
    char change[FORMAT_CELL];

    bench_format(report, row->part, row->result.shift, true, change, sizeof(change));
    fprintf(out, "%s %s", change, bench_part_name(row->part));
    if (row->result.median[0] > 0)
        fprintf(out, " (%+.1f %%)", 100 * row->result.shift / row->result.median[0]);
    if (place) {
        fputs(" in ", out);
        text_print(out, TEXT_MARKS, place->function);
    }
}

/* Whether a change is one that the sentence tells. */
static bool worth(const struct bench_report *report, const struct bench_row *row)
{
    const struct bench_row *wall = bench_row_of(report->comparison, BENCH_WALL);
    double whole = report->comparison->options.shares ? 1 : wall ? wall->result.median[0] : 0;

    return row->verdict >= BENCH_MORE &&
           (bench_part_counts(row->part) || fabs(row->result.shift) >= SMALL * whole);
}

/* Whose parts they are is said in front of the first. False: none is worth a word. */
static bool put_parts(FILE *out, const struct bench_report *report, enum bench_owner owner)
{
    const struct bench_comparison *c = report->comparison;
    size_t named = 0;

    for (size_t i = 0; i < c->count && named < NAMED; i++) {
        if (bench_part_owner(c->rows[i].part) != owner || c->rows[i].part == BENCH_REFERENCE ||
            !worth(report, &c->rows[i]))
            continue;
        if (named++)
            fputs(", ", out);
        else if (owner == BENCH_OWN)
            fprintf(out, "%s differs from %s: ", report->names[1], report->names[0]);
        else
            fputs("; the machine's part: ", out);
        put_part(out, report, &c->rows[i]);
    }
    return named;
}

static void put_wall(FILE *out, const struct bench_report *report)
{
    const struct bench_row *wall = bench_row_of(report->comparison, BENCH_WALL);
    char from[FORMAT_CELL], to[FORMAT_CELL];

    if (!wall)
        return;
    bench_format(report, BENCH_WALL, wall->result.median[0], false, from, sizeof(from));
    bench_format(report, BENCH_WALL, wall->result.median[1], false, to, sizeof(to));
    if (wall->verdict >= BENCH_MORE)
        fprintf(out, "; it takes %.1f %% %s, %s instead of %s",
                fabs(100 * wall->result.shift / wall->result.median[0]),
                wall->verdict == BENCH_MORE ? "longer" : "less time", to, from);
    else
        fprintf(out, "; the time from start to end does not show it, %s and %s", from, to);
}

/* No own part changed. */
static void put_nothing(FILE *out, const struct bench_report *report)
{
    const struct bench_comparison *c = report->comparison;
    const struct bench_row *wall = bench_row_of(c, BENCH_WALL);
    double matters = 100 * c->options.matters;

    if (!c->enough) {
        fprintf(out, "%s does what %s does: any difference is below %.2g %% of its time",
                report->names[1], report->names[0], matters);
        return;
    }
    fprintf(out,
            "%zu runs are not enough to tell whether %s differs from %s by %.2g %%; about %zu "
            "would do",
            report->sides[1].count, report->names[1], report->names[0], matters, c->enough);
    if (wall && wall->result.median[0] > 0 && !isnan(wall->result.low))
        fprintf(out, ", for now it takes between %+.1f and %+.1f %%",
                100 * wall->result.low / wall->result.median[0],
                100 * wall->result.high / wall->result.median[0]);
}

static void put_speed(FILE *out, double speed)
{
    if (speed != 1)
        fprintf(out, "; the machine was %.1f %% %s", 100 * fabs(speed - 1),
                speed > 1 ? "slower" : "faster");
}

static void put_alone(FILE *out, const struct bench_report *report)
{
    const struct bench_side *side = report->sides;
    double *values = malloc(side->count * sizeof(*values)), median;
    char time[FORMAT_CELL];

    for (size_t i = 0; values && i < side->count; i++)
        values[i] = side->runs[i].value[BENCH_WALL];
    median = values ? rank_median(values, side->count) : 0;
    free(values);
    format_time((uint64_t)median, time, sizeof(time));
    fprintf(out, "%s takes %s, the median of %zu run%s", report->names[0], time, side->count,
            side->count == 1 ? "" : "s");
}

void bench_put_sentence(FILE *out, const struct bench_report *report)
{
    if (report->side_count < 2) {
        put_alone(out, report);
    } else {
        if (put_parts(out, report, BENCH_OWN))
            put_wall(out, report);
        else
            put_nothing(out, report);
        put_parts(out, report, BENCH_HOST);
        put_speed(out, report->comparison->speed);
    }
    fputc('.', out);
}

char *bench_sentence(const struct bench_report *report)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    bench_put_sentence(out, report);
    if (!fclose(out))
        return text;
    free(text);
    return NULL;
}
