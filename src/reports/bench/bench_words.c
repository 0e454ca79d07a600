/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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

struct text {
    char *at;
    size_t size, used;
};

static void add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *t, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(t->at + t->used, t->size - t->used, format, arguments);
    va_end(arguments);
    t->used += length > 0 ? (size_t)length : 0;
    t->used = t->used < t->size ? t->used : t->size - 1;
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
static void add_part(struct text *t, const struct bench_report *report, const struct bench_row *row)
{
    const struct bench_place *place = place_of(report, row->part);
    char change[FORMAT_CELL], function[256];

    bench_format(report, row->part, row->result.shift, true, change, sizeof(change));
    add(t, "%s %s", change, bench_part_name(row->part));
    if (row->result.median[0] > 0)
        add(t, " (%+.1f %%)", 100 * row->result.shift / row->result.median[0]);
    if (place) {
        text_copy(TEXT_MARKS, place->function, function, sizeof(function));
        add(t, " in %s", function);
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

static size_t add_parts(struct text *t, const struct bench_report *report, enum bench_owner owner)
{
    const struct bench_comparison *c = report->comparison;
    size_t named = 0;

    for (size_t i = 0; i < c->count && named < NAMED; i++) {
        if (bench_part_owner(c->rows[i].part) != owner || c->rows[i].part == BENCH_REFERENCE ||
            !worth(report, &c->rows[i]))
            continue;
        add(t, "%s", named++ ? ", " : "");
        add_part(t, report, &c->rows[i]);
    }
    return named;
}

static void add_wall(struct text *t, const struct bench_report *report)
{
    const struct bench_row *wall = bench_row_of(report->comparison, BENCH_WALL);
    char from[FORMAT_CELL], to[FORMAT_CELL];

    if (!wall)
        return;
    bench_format(report, BENCH_WALL, wall->result.median[0], false, from, sizeof(from));
    bench_format(report, BENCH_WALL, wall->result.median[1], false, to, sizeof(to));
    if (wall->verdict >= BENCH_MORE)
        add(t, "; it takes %.1f %% %s, %s instead of %s",
            fabs(100 * wall->result.shift / wall->result.median[0]),
            wall->verdict == BENCH_MORE ? "longer" : "less time", to, from);
    else
        add(t, "; the time from start to end does not show it, %s and %s", from, to);
}

/* No own part changed. */
static void add_nothing(struct text *t, const struct bench_report *report)
{
    const struct bench_comparison *c = report->comparison;
    const struct bench_row *wall = bench_row_of(c, BENCH_WALL);

    if (!c->enough) {
        add(t, "%s does what %s does: any difference is below %.2g %% of its time",
            report->names[1], report->names[0], 100 * c->options.matters);
        return;
    }
    add(t,
        "%zu runs are not enough to tell whether %s differs from %s by %.2g %%; about %zu would do",
        report->sides[1].count, report->names[1], report->names[0], 100 * c->options.matters,
        c->enough);
    if (wall && wall->result.median[0] > 0 && !isnan(wall->result.low))
        add(t, ", for now it takes between %+.1f and %+.1f %%",
            100 * wall->result.low / wall->result.median[0],
            100 * wall->result.high / wall->result.median[0]);
}

static void add_host(struct text *t, const struct bench_report *report)
{
    size_t before = t->used;

    add(t, "; the machine's part: ");
    if (!add_parts(t, report, BENCH_HOST)) {
        t->used = before;
        t->at[before] = '\0';
    }
    if (report->comparison->speed != 1)
        add(t, "; the machine was %.1f %% %s", 100 * fabs(report->comparison->speed - 1),
            report->comparison->speed > 1 ? "slower" : "faster");
}

static void alone(struct text *t, const struct bench_report *report)
{
    const struct bench_side *side = report->sides;
    double *values = malloc(side->count * sizeof(*values)), median;
    char time[FORMAT_CELL];

    for (size_t i = 0; values && i < side->count; i++)
        values[i] = side->runs[i].value[BENCH_WALL];
    median = values ? rank_median(values, side->count) : 0;
    free(values);
    format_time((uint64_t)median, time, sizeof(time));
    add(t, "%s takes %s, the median of %zu run%s", report->names[0], time, side->count,
        side->count == 1 ? "" : "s");
}

void bench_sentence(const struct bench_report *report, char *ret, size_t size)
{
    struct text t = {ret, size, 0};

    if (report->side_count < 2) {
        alone(&t, report);
    } else {
        add(&t, "%s differs from %s: ", report->names[1], report->names[0]);
        if (add_parts(&t, report, BENCH_OWN)) {
            add_wall(&t, report);
        } else {
            t.used = 0;
            add_nothing(&t, report);
        }
        add_host(&t, report);
    }
    add(&t, ".");
}
