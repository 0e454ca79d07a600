/* SPDX-License-Identifier: BSD-2-Clause */
#include "rank.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

#define EXACT 48 /* values of both sides, up to which all ways to choose are counted */

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static double median_sorted(const double *sorted, size_t count)
{
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

double rank_median(const double *values, size_t count)
{
    double *copy = count ? malloc(count * sizeof(*copy)) : NULL, median = NAN;

    if (copy) {
        memcpy(copy, values, count * sizeof(*copy));
        array_sort(copy, count, by_value);
        median = median_sorted(copy, count);
    }
    free(copy);
    return median;
}

/* ---- ranks ---------------------------------------------------------------------- */

/* Twice the ranks of all values in ascending order, so that equal values share a whole number. */
static double twice_ranks(const double *sorted, size_t count, unsigned *ret)
{
    double ties = 0;

    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && sorted[end] == sorted[i]; end++)
            ;
        for (size_t k = i; k < end; k++)
            ret[k] = (unsigned)(i + end + 1);
        ties += pow((double)(end - i), 3) - (double)(end - i);
    }
    return ties;
}

static unsigned twice_sum_of(const double *sorted, const unsigned *ranks, size_t count,
                             const double *values, size_t value_count)
{
    unsigned sum = 0;

    for (size_t i = 0; i < value_count; i++) {
        const double *at = array_search(&values[i], sorted, count, by_value);

        sum += at ? ranks[at - sorted] : 0;
    }
    return sum;
}

/* Counts for each sum of ranks in how many ways so many of all values have it: ways[k][sum]. The
 * share of the ways whose sum is at least as far from the middle as the one that was found. */
static int exact_p(const unsigned *ranks, size_t count, size_t chosen, unsigned found, double *ret)
{
    size_t sums = count * (count + 1) + 1; /* twice the sum of all ranks, and 0 */
    double *ways = calloc((chosen + 1) * sums, sizeof(*ways)), all = 0, far = 0;
    double middle = (double)(chosen * (count + 1)), distance = fabs(found - middle);

    if (!ways)
        return -ENOMEM;
    ways[0] = 1;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = i + 1 < chosen ? i + 1 : chosen; k > 0; k--) {
            for (size_t s = ranks[i]; s < sums; s++)
                ways[k * sums + s] += ways[(k - 1) * sums + s - ranks[i]];
        }
    }
    for (size_t s = 0; s < sums; s++) {
        double here = ways[chosen * sums + s];

        all += here;
        far += fabs((double)s - middle) >= distance - 1e-9 ? here : 0;
    }
    free(ways);
    *ret = far / all;
    return 0;
}

/* The normal distribution in place of the exact one, with equal values and steps allowed for. */
static double normal_p(double n, double m, double ties, unsigned found)
{
    double all = n + m, variance = n * m / 12 * (all + 1 - ties / (all * (all - 1)));
    double distance = fabs(found / 2.0 - n * (all + 1) / 2) - 0.5;

    return variance <= 0 || distance <= 0 ? 1 : erfc(distance / sqrt(2 * variance));
}

static int find_p(const double *a, size_t a_count, const double *b, size_t b_count, double *ret)
{
    size_t count = a_count + b_count;
    double *sorted = malloc(count * sizeof(*sorted)), ties;
    unsigned *ranks = malloc(count * sizeof(*ranks)), found;
    int result = sorted && ranks ? 0 : -ENOMEM;

    if (!result) {
        memcpy(sorted, a, a_count * sizeof(*a));
        memcpy(sorted + a_count, b, b_count * sizeof(*b));
        array_sort(sorted, count, by_value);
        ties = twice_ranks(sorted, count, ranks);
        found = twice_sum_of(sorted, ranks, count, a, a_count);
        if (count <= EXACT)
            result = exact_p(ranks, count, a_count, found, ret);
        else
            *ret = normal_p((double)a_count, (double)b_count, ties, found);
    }
    free(sorted);
    free(ranks);
    return result;
}

double rank_least_p(size_t a_count, size_t b_count)
{
    double ways = 1;

    for (size_t i = 1; i <= b_count; i++)
        ways *= (double)(a_count + i) / (double)i;
    return ways > 2 ? 2 / ways : 1;
}

/* ---- shift ---------------------------------------------------------------------- */

/* The value that a normal variable exceeds with this probability, by halving. */
static double normal_quantile(double above)
{
    double low = 0, high = 40;

    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;

        if (erfc(middle / sqrt(2)) / 2 > above)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Without an interval where so few values have none of this confidence. */
static int find_shift(const double *a, size_t a_count, const double *b, size_t b_count,
                      double alpha, struct rank_result *ret)
{
    size_t count = a_count * b_count, cut;
    double *differences = malloc(count * sizeof(*differences)), middle, spread;
    bool known;

    if (!differences)
        return -ENOMEM;
    for (size_t i = 0; i < a_count; i++) {
        for (size_t k = 0; k < b_count; k++)
            differences[i * b_count + k] = b[k] - a[i];
    }
    array_sort(differences, count, by_value);
    middle = (double)count / 2;
    spread =
        normal_quantile(alpha / 2) * sqrt((double)count * (double)(a_count + b_count + 1) / 12);
    cut = spread < middle ? (size_t)(middle - spread) : 0;
    ret->shift = median_sorted(differences, count);
    known = rank_least_p(a_count, b_count) <= alpha;
    ret->low = known ? differences[cut] : NAN;
    ret->high = known ? differences[count - 1 - cut] : NAN;
    free(differences);
    return 0;
}

int rank_compare(const double *a, size_t a_count, const double *b, size_t b_count, double alpha,
                 struct rank_result *ret)
{
    struct rank_result r;
    int result;

    if (a_count < 2 || b_count < 2 || a_count > RANK_VALUES || b_count > RANK_VALUES)
        return -EINVAL;
    r.median[0] = rank_median(a, a_count);
    r.median[1] = rank_median(b, b_count);
    if (isnan(r.median[0]) || isnan(r.median[1]))
        return -ENOMEM;
    result = find_p(a, a_count, b, b_count, &r.p);
    if (!result)
        result = find_shift(a, a_count, b, b_count, alpha, &r);
    if (!result)
        *ret = r;
    return result;
}

/* ---- many at once --------------------------------------------------------------- */

static int by_p(const void *left, const void *right)
{
    return by_value(*(double *const *)left, *(double *const *)right);
}

/* Holm: the smallest counts as often as there are tests, the next once less, and so on. */
int rank_correct(double *p, size_t count)
{
    double **order = malloc((count ? count : 1) * sizeof(*order)), least = 0;

    if (!order)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        order[i] = &p[i];
    array_sort(order, count, by_p);
    for (size_t i = 0; i < count; i++) {
        double corrected = *order[i] * (double)(count - i);

        least = corrected > least ? corrected : least;
        *order[i] = least < 1 ? least : 1;
    }
    free(order);
    return 0;
}
