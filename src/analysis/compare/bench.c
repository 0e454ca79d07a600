/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "error.h"

static const struct {
    const char *name, *words;
    enum bench_owner owner;
    bool counts;
} fixed[] = {
#define COUNT                                true
#define NS                                   false
#define PART(NAME, name, owner, unit, words) [BENCH_##NAME] = {name, words, BENCH_##owner, unit},
#include "bench_parts.def"
#undef PART
#undef COUNT
#undef NS
};

const char *const bench_verdict_names[] = {"same", "unknown", "more", "less"};

/* ---- parts ---------------------------------------------------------------------- */

#define CAUSE_COUNT ".count"

#define OF_READY false
#define OF_WAIT  true
#define OF_END   false
static const struct {
    const char *name, *count_name, *words;
    bool waits;
} causes[PRCB_CAUSE_MAX] = {
#define X(number, NAME, name, kind, reason, words)                                                 \
    [number] = {name, name CAUSE_COUNT, words, OF_##kind && number != PRCB_CAUSE_THROTTLED},
    PRCB_CAUSES(X)
#undef X
};

const char *bench_part_name(unsigned part)
{
    if (part < BENCH_FIXED)
        return fixed[part].name;
    if (part < BENCH_PARTS && !causes[(part - BENCH_FIXED) % PRCB_CAUSE_MAX].waits)
        return NULL;
    return part < BENCH_FIXED + PRCB_CAUSE_MAX ? causes[part - BENCH_FIXED].name
           : part < BENCH_PARTS ? causes[part - BENCH_FIXED - PRCB_CAUSE_MAX].count_name
                                : NULL;
}

const char *bench_part_words(unsigned part)
{
    return part < BENCH_FIXED ? fixed[part].words
                              : causes[(part - BENCH_FIXED) % PRCB_CAUSE_MAX].words;
}

enum bench_owner bench_part_owner(unsigned part)
{
    return part < BENCH_FIXED ? fixed[part].owner : BENCH_OWN;
}

bool bench_part_counts(unsigned part)
{
    return part < BENCH_FIXED ? fixed[part].counts : part >= BENCH_FIXED + PRCB_CAUSE_MAX;
}

int bench_part_find(const char *name)
{
    for (unsigned i = 0; i < BENCH_PARTS; i++) {
        if (bench_part_name(i) && !strcmp(bench_part_name(i), name))
            return (int)i;
    }
    return -1;
}

void bench_side_deinit(struct bench_side *side)
{
    free(side->command);
    free(side->runs);
    memset(side, 0, sizeof(*side));
}

/* ---- comparing ------------------------------------------------------------------ */

struct work {
    const struct bench_side *sides;
    const struct bench_options *options;
    struct bench_comparison *ret;
    double *values[2];
    double wall;  /* the median of a; of shares: 1 */
    double alpha; /* of this stage */
};

/* Whether a part's time goes with the speed of the machine and with nothing else. */
static bool goes_with_speed(unsigned part)
{
    return part == BENCH_RUN || part == BENCH_USER || part == BENCH_SYSTEM;
}

/* The values of a part. False: one is not known, or all are 0. */
static bool take_values(struct work *w, unsigned part)
{
    bool something = false, whole = part == BENCH_WALL || bench_part_counts(part) ||
                                    part == BENCH_REFERENCE || !w->options->shares;
    double speed = w->options->apart && goes_with_speed(part) ? w->ret->speed : 1;

    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < w->sides[side].count; i++) {
            const double *value = w->sides[side].runs[i].value;

            if (isnan(value[part]))
                return false;
            w->values[side][i] =
                (whole ? value[part] : value[part] / value[BENCH_WALL]) / (side ? speed : 1);
            something = something || value[part] > 0;
        }
    }
    return something;
}

static int add_row(struct work *w, unsigned part)
{
    struct bench_row row = {.part = part};
    int result;

    if (!bench_part_name(part) || !take_values(w, part))
        return 0;
    result = rank_compare(w->values[0], w->sides[0].count, w->values[1], w->sides[1].count,
                          w->alpha, &row.result);
    return result ? result : array_append(w->ret->rows, w->ret->count, row);
}

/* Corrects the own parts for how many there are. */
static int correct(struct bench_comparison *ret)
{
    double *p = malloc((ret->count ? ret->count : 1) * sizeof(*p));
    size_t own = 0;
    int result;

    if (!p)
        return -ENOMEM;
    for (size_t i = 0; i < ret->count; i++) {
        if (bench_part_owner(ret->rows[i].part) == BENCH_OWN)
            p[own++] = ret->rows[i].result.p;
    }
    result = rank_correct(p, own);
    own = 0;
    for (size_t i = 0; i < ret->count && !result; i++) {
        if (bench_part_owner(ret->rows[i].part) == BENCH_OWN)
            ret->rows[i].result.p = p[own++];
    }
    free(p);
    return result;
}

/* What the least difference is that matters in a part. */
static double least_of(const struct work *w, const struct bench_row *row)
{
    return !bench_part_counts(row->part) ? w->options->matters * w->wall
           : row->result.median[0] * w->options->matters > 0.5
               ? row->result.median[0] * w->options->matters
               : 0.5;
}

static void judge(struct work *w, struct bench_row *row)
{
    const struct rank_result *r = &row->result;
    double least = least_of(w, row);

    if (r->p < w->alpha && r->shift != 0)
        row->verdict = r->shift > 0 ? BENCH_MORE : BENCH_LESS;
    else
        row->verdict = r->low >= -least && r->high <= least ? BENCH_SAME : BENCH_UNKNOWN;
}

/* A host that was another one, while the sides were measured apart, made the waits for one's own
 * threads longer, too: no wait is judged then. */
static void judge_all(struct work *w)
{
    struct bench_comparison *ret = w->ret;

    for (size_t i = 0; i < ret->count; i++) {
        judge(w, &ret->rows[i]);
        ret->host_changed =
            ret->host_changed || (bench_part_owner(ret->rows[i].part) == BENCH_HOST &&
                                  ret->rows[i].verdict >= BENCH_MORE);
    }
    for (size_t i = 0; i < ret->count && w->options->apart && ret->host_changed; i++) {
        unsigned part = ret->rows[i].part;

        if ((part >= BENCH_FIXED || part == BENCH_WAIT) && !bench_part_counts(part) &&
            ret->rows[i].verdict >= BENCH_MORE)
            ret->rows[i].verdict = BENCH_UNKNOWN;
    }
}

/* An interval becomes narrower with the root of the number of runs; one around another middle than
 * 0 may have to become narrower than that says. With fewer than some runs there is none. */
static void find_enough(struct work *w)
{
    size_t runs = w->sides[0].count < w->sides[1].count ? w->sides[0].count : w->sides[1].count;
    double enough = 0;

    for (size_t least = runs; rank_least_p(least, least) > w->alpha;)
        enough = (double)++least;
    for (size_t i = 0; i < w->ret->count; i++) {
        const struct bench_row *row = &w->ret->rows[i];
        double width = (row->result.high - row->result.low) / 2, least = least_of(w, row);

        if (row->verdict == BENCH_UNKNOWN && !isnan(width) &&
            bench_part_owner(row->part) == BENCH_OWN && !bench_part_counts(row->part))
            enough = fmax(enough, fmax((double)runs * pow(width / least, 2), (double)runs + 1));
    }
    w->ret->enough = enough > (double)runs ? (size_t)fmin(ceil(enough), 1e9) : 0;
}

static int by_change(const void *left, const void *right)
{
    const struct bench_row *a = left, *b = right;
    int owner = (int)bench_part_owner(a->part) - (int)bench_part_owner(b->part);
    int counts = bench_part_counts(a->part) - bench_part_counts(b->part);
    double x = fabs(a->result.shift), y = fabs(b->result.shift);

    if (owner || counts)
        return owner ? owner : counts;
    return x == y ? (a->part > b->part) - (a->part < b->part) : x > y ? -1 : 1;
}

/* Run times of sides that were measured apart are compared by a clock that both had. */
static void note_speed(struct work *w)
{
    const struct bench_row *row = bench_row_of(w->ret, BENCH_REFERENCE);

    if (row && row->result.median[0] > 0 && row->result.p < w->alpha)
        w->ret->speed = row->result.median[1] / row->result.median[0];
}

static int compare(struct work *w)
{
    int result = add_row(w, BENCH_REFERENCE);

    w->wall = w->options->shares ? 1 : 0;
    note_speed(w);
    for (unsigned part = 0; part < BENCH_PARTS && !result; part++) {
        if (part != BENCH_REFERENCE && !(part == BENCH_WALL && w->options->no_wall))
            result = add_row(w, part);
    }
    if (!result && !w->options->shares && bench_row_of(w->ret, BENCH_WALL))
        w->wall = bench_row_of(w->ret, BENCH_WALL)->result.median[0];
    if (!result)
        result = correct(w->ret);
    if (result)
        return result;
    judge_all(w);
    find_enough(w);
    array_sort(w->ret->rows, w->ret->count, by_change);
    return 0;
}

int bench_compare(const struct bench_side sides[2], const struct bench_options *options,
                  struct bench_comparison *ret)
{
    struct bench_comparison comparison = {.options = *options, .speed = 1};
    struct work w = {.sides = sides,
                     .options = options,
                     .ret = &comparison,
                     .alpha = options->alpha / options->stages};
    int result = -ENOMEM;

    for (int i = 0; i < 2; i++) {
        if (sides[i].count < 2)
            return -EINVAL;
        w.values[i] = malloc(sides[i].count * sizeof(double));
    }
    if (w.values[0] && w.values[1])
        result = compare(&w);
    free(w.values[0]);
    free(w.values[1]);
    if (result)
        bench_comparison_deinit(&comparison);
    else
        *ret = comparison;
    return result;
}

void bench_comparison_deinit(struct bench_comparison *comparison)
{
    free(comparison->rows);
    memset(comparison, 0, sizeof(*comparison));
}

const struct bench_row *bench_row_of(const struct bench_comparison *comparison, unsigned part)
{
    for (size_t i = 0; i < comparison->count; i++) {
        if (comparison->rows[i].part == part)
            return &comparison->rows[i];
    }
    return NULL;
}

/* ---- conditions ----------------------------------------------------------------- */

int bench_check(const struct bench_comparison *comparison, const char *text, bool *ret,
                struct prcb_error *err)
{
    const struct bench_row *row;
    struct condition condition;
    int part, result = condition_parse(text, true, &condition, err);

    if (result)
        return result;
    part = bench_part_find(condition.figure);
    if (part < 0 || *condition.thread)
        return prcb_fail(err, -EINVAL,
                         "--fail-if '%s': no part of a run is called so: run, wall, faults, "
                         "major-faults, threads, a cause of waiting, or its count, as futex.count",
                         text);
    if (bench_part_owner((unsigned)part) == BENCH_HOST)
        return prcb_fail(err, -EINVAL,
                         "--fail-if '%s': %s is the host's part, not the program's; take run, wall "
                         "or a cause of waiting",
                         text, condition.figure);
    if (!condition.percent && condition.count != bench_part_counts((unsigned)part))
        return prcb_fail(
            err, -EINVAL, "--fail-if '%s': %s is %s: give its change as such, or in %%", text,
            condition.figure, bench_part_counts((unsigned)part) ? "a number" : "a time");
    row = bench_row_of(comparison, (unsigned)part);
    *ret = row && row->verdict >= BENCH_MORE &&
           condition_holds(&condition, row->result.median[0],
                           condition.less ? row->result.high : row->result.low);
    return 0;
}
