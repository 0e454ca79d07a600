/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Two sets of measured values compared without any assumption of how they are distributed: the
 * rank test of Mann and Whitney, the shift of Hodges and Lehmann with its confidence interval, and
 * Holm's correction where many figures are tested at once.
 *
 * Values are finite. Nothing is kept; threads do not matter.
 */
#ifndef PRCB_COMPARE_RANK_H
#define PRCB_COMPARE_RANK_H

#include <stdbool.h>
#include <stddef.h>

#define RANK_VALUES 4096 /* at most, of either side */

struct rank_result {
    double median[2];
    double shift;     /* how much more b is: the median of all differences */
    double low, high; /* the interval in which the shift is, with the wanted confidence; NAN: so few
                         values have none */
    double p;         /* how likely equal sides differ by ranks as much as these, 0 to 1 */
};

/* alpha: 0.01 for an interval of 99 %. -EINVAL: a side has fewer than 2 values or more than
 * RANK_VALUES; -ENOMEM. */
int rank_compare(const double *a, size_t a_count, const double *b, size_t b_count, double alpha,
                 struct rank_result *ret);

/* Makes of the p of count tests, in place, those that hold for all of them together. 0 or
 * -ENOMEM. */
int rank_correct(double *p, size_t count);

/* The smallest p that so many values can have; with too few nothing is significant. */
double rank_least_p(size_t a_count, size_t b_count);

double rank_median(const double *values, size_t count); /* of a copy; NAN: no memory, or none */

#endif
