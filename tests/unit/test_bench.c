/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Benchmarks compared. The rank test gives what tables of it have; of equal sides, however noisy,
 * no more differ than was promised, and 5 percent more work is found; conditions hold only for
 * certain; what belongs to the machine judges nobody.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench.h"

#define RUNS 40 /* of which a side has the first 20 where nothing else is said */

static uint64_t seed = 1;

static double uniform(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) / (double)(1ull << 53);
}

/* Most runs are alike, some take much longer: what a busy machine makes of a program. */
static double noisy(double base)
{
    double value = base * (1 + 0.02 * (uniform() + uniform() + uniform() - 1.5));

    return uniform() < 0.15 ? value * (1 + uniform()) : value;
}

static void near(double value, double wanted)
{
    if (fabs(value - wanted) > 1e-9 + 1e-6 * fabs(wanted))
        fail_msg("%.10g instead of %.10g", value, wanted);
}

/* The numbers are those of wilcox.test(exact = TRUE) where values differ. */
static void ranks(void **state)
{
    const double low[] = {1, 2, 3, 4, 5}, high[] = {6, 7, 8, 9, 10};
    const double a[] = {0.8, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
    const double b[] = {1.15, 0.88, 0.9, 0.74, 1.21};
    const double same[] = {3, 3, 3, 3}, one[] = {1};
    struct rank_result r;

    (void)state;
    assert_int_equal(rank_compare(low, 5, high, 5, 0.05, &r), 0);
    near(r.p, 2.0 / 252);
    near(r.shift, 5);
    near(r.median[0], 3);
    near(r.median[1], 8);
    assert_true(r.low >= 1 && r.low < 5 && r.high > 5 && r.high <= 9);
    assert_int_equal(rank_compare(a, 10, b, 5, 0.05, &r), 0);
    near(r.p, 0.254412254412254);
    near(r.shift, -0.305);
    assert_int_equal(rank_compare(same, 4, same, 4, 0.05, &r), 0);
    near(r.p, 1);
    near(r.shift, 0);
    assert_int_equal(rank_compare(one, 1, same, 4, 0.05, &r), -EINVAL);
    near(rank_least_p(5, 5), 2.0 / 252);
    /* No choice of 2 among 4 is that unlikely: there is no interval. */
    assert_int_equal(rank_compare(low, 2, high, 2, 0.05, &r), 0);
    near(r.shift, 5);
    assert_true(isnan(r.low) && isnan(r.high));
}

/* From 48 values on there are too many ways to count; both ways to compute it agree there. */
static void many_values(void **state)
{
    struct rank_result exact, normal;
    double a[26], b[26];

    (void)state;
    for (int i = 0; i < 26; i++) {
        a[i] = i;
        b[i] = i + 7.5;
    }
    assert_int_equal(rank_compare(a, 24, b, 24, 0.01, &exact), 0);
    assert_int_equal(rank_compare(a, 25, b, 25, 0.01, &normal), 0);
    assert_true(exact.p < 0.01 && normal.p < 0.01 && fabs(log(exact.p / normal.p)) < 0.7);
}

static void holm(void **state)
{
    double p[] = {0.01, 0.04, 0.03, 0.005, 1};

    (void)state;
    assert_int_equal(rank_correct(p, 5), 0);
    near(p[3], 0.025);
    near(p[0], 0.04);
    near(p[2], 0.09);
    near(p[1], 0.09);
    near(p[4], 1);
}

/* ---- sides ---- */

static struct bench_side side(double run, double ready, double futex, double count)
{
    struct bench_side s = {.runs = calloc(RUNS, sizeof(struct bench_run)), .count = RUNS / 2};

    assert_non_null(s.runs);
    for (size_t i = 0; i < RUNS; i++) {
        double *v = s.runs[i].value;

        for (unsigned part = 0; part < BENCH_PARTS; part++)
            v[part] = NAN;
        v[BENCH_RUN] = noisy(run);
        v[BENCH_READY] = noisy(ready);
        v[BENCH_FAULTS] = count + (uniform() < 0.3);
        v[BENCH_REFERENCE] = 1e6;
        v[BENCH_FIXED + PRCB_CAUSE_FUTEX] = noisy(futex);
        v[BENCH_FIXED + PRCB_CAUSE_MAX + PRCB_CAUSE_FUTEX] = 1;
        v[BENCH_WALL] = v[BENCH_RUN] + v[BENCH_READY] + v[BENCH_FIXED + PRCB_CAUSE_FUTEX];
    }
    return s;
}

static const struct bench_options usual = {.alpha = 0.01, .stages = 1, .matters = 0.02};

static void compare(struct bench_side a, struct bench_side b, const struct bench_options *options,
                    struct bench_comparison *ret)
{
    const struct bench_side sides[2] = {a, b};

    assert_int_equal(bench_compare(sides, options, ret), 0);
    bench_side_deinit(&a);
    bench_side_deinit(&b);
}

static enum bench_verdict verdict(const struct bench_comparison *c, unsigned part)
{
    const struct bench_row *row = bench_row_of(c, part);

    assert_non_null(row);
    return row->verdict;
}

/* Of 300 comparisons of equal programs three may differ; with 99.99 % fewer than 12 do. Where a
 * part is not known, so many runs were not enough. */
static void equal_programs(void **state)
{
    struct bench_comparison c;
    unsigned wrong = 0;

    (void)state;
    for (int i = 0; i < 300; i++) {
        bool differs = false;

        compare(side(50e6, 30e6, 5e6, 90), side(50e6, 30e6, 5e6, 90), &usual, &c);
        for (size_t k = 0; k < c.count; k++) {
            bool own = bench_part_owner(c.rows[k].part) == BENCH_OWN;

            differs = differs || (own && c.rows[k].verdict >= BENCH_MORE);
            if (own && c.rows[k].verdict == BENCH_UNKNOWN)
                assert_true(c.enough > RUNS / 2);
        }
        wrong += differs;
        bench_comparison_deinit(&c);
    }
    assert_true(wrong < 12);
}

static void more_work(void **state)
{
    struct bench_comparison c;
    unsigned found = 0;

    (void)state;
    for (int i = 0; i < 100; i++) {
        struct bench_side a = side(50e6, 30e6, 5e6, 90), b = side(52.5e6, 30e6, 5e6, 90);

        a.count = b.count = RUNS; /* of a second stage */
        compare(a, b, &usual, &c);
        found += verdict(&c, BENCH_RUN) == BENCH_MORE;
        assert_true(verdict(&c, BENCH_RUN) != BENCH_LESS);
        bench_comparison_deinit(&c);
    }
    if (found < 95)
        fail_msg("%u of 100", found);
}

static void what_is_the_machines(void **state)
{
    struct bench_options apart = usual;
    struct bench_comparison c;
    struct prcb_error err;
    bool holds = true;

    (void)state;
    compare(side(50e6, 30e6, 5e6, 90), side(50e6, 90e6, 9e6, 90), &usual, &c);
    assert_int_equal(verdict(&c, BENCH_READY), BENCH_MORE);
    assert_int_equal(verdict(&c, BENCH_FIXED + PRCB_CAUSE_FUTEX), BENCH_MORE);
    assert_true(c.host_changed);
    assert_int_equal(bench_check(&c, "ready>+1%", &holds, &err), -EINVAL);
    assert_non_null(strstr(err.text, "the host's part"));
    bench_comparison_deinit(&c);
    apart.apart = true;
    compare(side(50e6, 30e6, 5e6, 90), side(50e6, 90e6, 9e6, 90), &apart, &c);
    assert_int_equal(verdict(&c, BENCH_FIXED + PRCB_CAUSE_FUTEX), BENCH_UNKNOWN);
    bench_comparison_deinit(&c);
}

static struct bench_side whole(struct bench_side s)
{
    s.count = RUNS;
    return s;
}

static struct bench_side at_speed(struct bench_side s, double speed)
{
    s.count = RUNS;
    for (size_t i = 0; i < s.count; i++) {
        s.runs[i].value[BENCH_RUN] *= speed;
        s.runs[i].value[BENCH_REFERENCE] *= speed;
    }
    return s;
}

/* A machine that is a tenth slower than for the baseline makes nothing of the program's own. */
static void slower_machine(void **state)
{
    struct bench_options apart = usual;
    struct bench_comparison c;

    (void)state;
    apart.apart = true;
    compare(whole(side(50e6, 30e6, 5e6, 90)), at_speed(side(50e6, 30e6, 5e6, 90), 1.1), &apart, &c);
    assert_true(verdict(&c, BENCH_RUN) <= BENCH_UNKNOWN);
    near(c.speed, 1.1);
    bench_comparison_deinit(&c);
    compare(whole(side(50e6, 30e6, 5e6, 90)), at_speed(side(55e6, 30e6, 5e6, 90), 1.1), &apart, &c);
    assert_int_equal(verdict(&c, BENCH_RUN), BENCH_MORE);
    bench_comparison_deinit(&c);
}

static bool check(const struct bench_comparison *c, const char *condition)
{
    struct prcb_error err;
    bool holds = false;

    if (bench_check(c, condition, &holds, &err))
        fail_msg("%s", err.text);
    return holds;
}

static void conditions(void **state)
{
    static const char *const wrong[] = {
        "",        "run",     "run>",     ">5%",        "run>5",   "run>5kg",     "faults>5ms",
        "run>nan", "walk>5%", "run@a>5%", "stolen>1ms", "run>5%x", "reference>1%"};
    struct bench_comparison c;
    struct prcb_error err;
    bool holds;

    (void)state;
    compare(side(50e6, 30e6, 5e6, 90), side(60e6, 30e6, 5e6, 93), &usual, &c);
    assert_true(check(&c, "run>+5%"));
    assert_true(check(&c, "run>5ms"));
    assert_false(check(&c, "run>+22%")); /* some of the interval is below */
    assert_false(check(&c, "run>+40%"));
    assert_false(check(&c, "run<-1%"));
    assert_true(check(&c, "faults>1"));
    assert_false(check(&c, "faults>10"));
    assert_false(check(&c, "futex>0%"));
    assert_false(check(&c, "disk>0%")); /* there is none on either side */
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        if (bench_check(&c, wrong[i], &holds, &err) != -EINVAL)
            fail_msg("'%s' was taken", wrong[i]);
    }
    bench_comparison_deinit(&c);
}

/* So few runs cannot tell, and it is said how many can. */
static void too_few(void **state)
{
    struct bench_side a = side(50e6, 30e6, 5e6, 90), b = side(55e6, 30e6, 5e6, 90);
    struct bench_comparison c;

    (void)state;
    a.count = b.count = 3;
    compare(a, b, &usual, &c);
    assert_int_equal(verdict(&c, BENCH_RUN), BENCH_UNKNOWN);
    assert_true(c.enough > 3);
    bench_comparison_deinit(&c);
}

static void names(void **state)
{
    (void)state;
    for (unsigned part = 0; part < BENCH_PARTS; part++) {
        if (bench_part_name(part))
            assert_int_equal(bench_part_find(bench_part_name(part)), (int)part);
    }
    assert_int_equal(bench_part_find("nothing"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks),          cmocka_unit_test(many_values),
        cmocka_unit_test(holm),           cmocka_unit_test(equal_programs),
        cmocka_unit_test(more_work),      cmocka_unit_test(what_is_the_machines),
        cmocka_unit_test(slower_machine), cmocka_unit_test(conditions),
        cmocka_unit_test(too_few),        cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
