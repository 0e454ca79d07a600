/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The perf tier's arithmetic, against made-up threads whose truth is known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <prcb/prcb.h>

#include "perf_figures.h"

#define ALL (PRCB_HAS_RUN | PRCB_HAS_READY | PRCB_HAS_SWITCHES)

static void counts_from_start(void **state)
{
    struct perf_sample sample = {.moment = 1000, .present = ALL, .run_ns = 500, .ready_ns = 50};
    struct perf_figures f;

    sample.voluntary = 9;
    sample.involuntary = 4;
    perf_figures_start(&f, &sample);
    assert_int_equal(f.wall_ns + f.run_ns + f.ready_ns + f.wait_ns + f.voluntary + f.involuntary,
                     0);
    sample.moment = 1100;
    sample.run_ns = 530;
    sample.ready_ns = 60;
    sample.voluntary = 11;
    sample.involuntary = 5;
    perf_figures_update(&f, &sample);
    assert_int_equal(f.wall_ns, 100);
    assert_int_equal(f.run_ns, 30);
    assert_int_equal(f.ready_ns, 10);
    assert_int_equal(f.wait_ns, 60);
    assert_int_equal(f.voluntary, 2);
    assert_int_equal(f.involuntary, 1);
}

/* A newborn has all it ever ran; its creation is taken in the middle, but not too late. */
static void counts_from_creation(void **state)
{
    struct perf_sample sample = {.moment = 1000, .present = ALL, .run_ns = 30, .ready_ns = 10};
    struct perf_figures f;

    sample.voluntary = 2;
    perf_figures_born(&f, &sample, 800, 900);
    assert_int_equal(f.wall_ns, 150);
    assert_int_equal(f.run_ns, 30);
    assert_int_equal(f.ready_ns, 10);
    assert_int_equal(f.wait_ns, 110);
    assert_int_equal(f.voluntary, 2);

    sample.run_ns = 170;
    perf_figures_born(&f, &sample, 800, 900);
    assert_int_equal(f.wall_ns, 180);
    assert_int_equal(f.wait_ns, 0);

    /* Never switched for a wait: what is not yet summed is no wait. */
    sample.run_ns = 30;
    sample.voluntary = 0;
    sample.runnable = true;
    perf_figures_born(&f, &sample, 800, 900);
    assert_int_equal(f.wall_ns, 150);
    assert_int_equal(f.wait_ns, 0);
}

static void without_sums_no_wait(void **state)
{
    struct perf_sample sample = {.moment = 1000, .present = PRCB_HAS_SWITCHES};
    struct perf_figures f;

    perf_figures_start(&f, &sample);
    sample.moment = 2000;
    perf_figures_update(&f, &sample);
    assert_int_equal(f.wall_ns, 1000);
    assert_int_equal(f.wait_ns, 0);
}

static void running_told(void **state)
{
    struct perf_sample sample = {.present = ALL, .arrivals = 8, .voluntary = 4, .involuntary = 3};

    assert_true(perf_sample_running(&sample));
    sample.voluntary++;
    assert_false(perf_sample_running(&sample));
    sample.voluntary--;
    sample.present = PRCB_HAS_SWITCHES;
    assert_false(perf_sample_running(&sample));
}

static void replaced_told(void **state)
{
    struct perf_sample sample = {.present = ALL, .voluntary = 4, .involuntary = 3};
    struct perf_figures f;

    perf_figures_start(&f, &sample);
    assert_false(perf_figures_replaced(&f, &sample));
    sample.involuntary = 2;
    assert_true(perf_figures_replaced(&f, &sample));
    sample.involuntary = 3;
    sample.voluntary = 3;
    assert_true(perf_figures_replaced(&f, &sample));
}

/* What the last whole sample was must not be forgotten over a peek: a wait between
 * the two would never be seen. */
static void peek_hides_no_wait(void **state)
{
    struct perf_sample sample = {.moment = 1000, .present = ALL, .runnable = true};
    struct perf_figures f;

    perf_figures_start(&f, &sample);
    sample.voluntary = 1;
    perf_figures_peek(&f, &sample);
    assert_int_equal(f.voluntary, 1);
    sample.moment = 1500;
    perf_figures_update(&f, &sample);
    assert_int_equal(f.wait_ns, 500);
}

static void creation_spans(void **state)
{
    const uint64_t tick = 10000000;
    struct perf_span span;

    /* Created in tick 700 of a machine that has slept 2 s since boot. */
    span = perf_creation(700, tick, 2000000000, 0, 6000000000);
    assert_int_equal(span.earliest, 5000000000);
    assert_int_equal(span.latest, 5010000000);
    /* A look in the middle of it did not find the thread. */
    span = perf_creation(700, tick, 2000000000, 5004000000, 6000000000);
    assert_int_equal(span.earliest, 5004000000);
    assert_int_equal(span.latest, 5010000000);
    /* It cannot have been created after now. */
    span = perf_creation(700, tick, 2000000000, 5004000000, 5006000000);
    assert_int_equal(span.earliest, 5004000000);
    assert_int_equal(span.latest, 5006000000);
    /* A look after it missed the thread. */
    span = perf_creation(700, tick, 2000000000, 5900000000, 6000000000);
    assert_int_equal(span.earliest, 5010000000);
    assert_int_equal(span.latest, 5010000000);
    /* Nonsense stays in order and at most now. */
    span = perf_creation(UINT64_MAX, tick, 2000000000, 0, 6000000000);
    assert_int_equal(span.earliest, 6000000000);
    assert_int_equal(span.latest, 6000000000);
    span = perf_creation(1, tick, 2000000000, 0, 6000000000);
    assert_int_equal(span.earliest, 0);
    assert_int_equal(span.latest, tick);
}

/* ---- a thread whose truth is known ---- */

#define TICK 4000

enum doing { RUNNING, QUEUED, WAITING };

struct truth {
    uint64_t now, run, ready, wait, last_tick;
    uint64_t queued_since, longest_queue;
    struct perf_sample sample; /* as the kernel would answer: sums of closed stretches */
    enum doing doing;
};

static void settle(struct truth *t)
{
    if (t->doing == RUNNING)
        t->sample.run_ns = t->run;
}

/* Lets time pass in the present state; a tick brings the running sum up to date. */
static void pass(struct truth *t, uint64_t ns)
{
    t->now += ns;
    *(t->doing == RUNNING ? &t->run : t->doing == QUEUED ? &t->ready : &t->wait) += ns;
    if (t->doing == QUEUED && t->now - t->queued_since > t->longest_queue)
        t->longest_queue = t->now - t->queued_since;
    if (t->now - t->last_tick >= TICK) {
        settle(t);
        t->last_tick = t->now;
    }
}

static void become(struct truth *t, enum doing next)
{
    settle(t);
    if (t->doing == RUNNING)
        next == WAITING ? t->sample.voluntary++ : t->sample.involuntary++;
    if (next == QUEUED)
        t->queued_since = t->now;
    if (next == RUNNING) {
        t->sample.ready_ns = t->ready;
        t->sample.arrivals++;
    }
    t->doing = next;
    t->sample.runnable = next != WAITING;
}

static void step(struct truth *t)
{
    static const enum doing next[3][2] = {{QUEUED, WAITING}, {RUNNING, RUNNING}, {QUEUED, QUEUED}};

    pass(t, (uint64_t)(random() % 5000));
    if (random() % 3)
        become(t, next[t->doing][random() % 2]);
}

static void check_against(const struct perf_figures *f, const struct perf_figures *before,
                          const struct truth *t)
{
    uint64_t unknown = TICK + 5000 + t->longest_queue;

    assert_true(f->wall_ns >= before->wall_ns && f->run_ns >= before->run_ns);
    assert_true(f->ready_ns >= before->ready_ns && f->wait_ns >= before->wait_ns);
    assert_int_equal(f->wall_ns, t->now);
    assert_true(f->run_ns + f->ready_ns <= f->wall_ns);
    assert_int_equal(f->run_ns, t->sample.run_ns);
    assert_int_equal(f->ready_ns, t->sample.ready_ns);
    assert_true(f->wait_ns <= t->wait + unknown);
    if (t->doing == WAITING) {
        assert_true(f->wait_ns >= t->wait);
        assert_true(f->run_ns + f->ready_ns + f->wait_ns >= f->wall_ns);
    }
    assert_true(perf_sample_running(&t->sample) == (t->doing == RUNNING));
}

static void random_threads(void **state)
{
    for (unsigned seed = 1; seed <= 200; seed++) {
        struct truth t = {.doing = QUEUED, .sample = {.present = ALL, .runnable = true}};
        struct perf_figures f, before;

        srandom(seed);
        perf_figures_start(&f, &t.sample);
        for (int look = 0; look < 200; look++) {
            for (long steps = random() % 4; steps >= 0; steps--)
                step(&t);
            before = f;
            t.sample.moment = t.now;
            perf_figures_update(&f, &t.sample);
            check_against(&f, &before, &t);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_from_start),    cmocka_unit_test(counts_from_creation),
        cmocka_unit_test(without_sums_no_wait), cmocka_unit_test(running_told),
        cmocka_unit_test(replaced_told),        cmocka_unit_test(peek_hides_no_wait),
        cmocka_unit_test(creation_spans),       cmocka_unit_test(random_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
