/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf_figures.h"

#include <prcb/prcb.h>

static uint64_t less(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t growth(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

static void raise(uint64_t *figure, uint64_t to)
{
    if (*figure < to)
        *figure = to;
}

void perf_figures_start(struct perf_figures *f, const struct perf_sample *now)
{
    *f = (struct perf_figures){.enabled = now->moment, .base = *now, .last = *now};
}

void perf_figures_born(struct perf_figures *f, const struct perf_sample *now, uint64_t earliest,
                       uint64_t latest)
{
    uint64_t middle = earliest + growth(latest, earliest) / 2;
    uint64_t fits = growth(now->moment, now->run_ns + now->ready_ns);

    /* It is born able to run, so no wait is counted before its first switch for one. */
    *f = (struct perf_figures){.enabled = less(middle, fits), .last.runnable = true};
    perf_figures_update(f, now);
}

/* What is neither run nor ready was waiting, for a thread whose sums are complete.
 * For one able to run the difference also holds what the kernel has not yet summed;
 * it is taken only if the thread has waited since the last look. */
static void update_wait(struct perf_figures *f, const struct perf_sample *now)
{
    bool has_not_waited = now->runnable && f->last.runnable && now->voluntary == f->last.voluntary;

    if (!(now->present & PRCB_HAS_READY) || !(now->present & PRCB_HAS_RUN))
        return;
    /* The account started in mid-tick, or the thread was created earlier than thought. */
    raise(&f->wall_ns, f->run_ns + f->ready_ns);
    if (!has_not_waited)
        raise(&f->wait_ns, f->wall_ns - f->run_ns - f->ready_ns);
}

void perf_figures_peek(struct perf_figures *f, const struct perf_sample *now)
{
    raise(&f->run_ns, growth(now->run_ns, f->base.run_ns));
    raise(&f->voluntary, growth(now->voluntary, f->base.voluntary));
    raise(&f->involuntary, growth(now->involuntary, f->base.involuntary));
}

void perf_figures_update(struct perf_figures *f, const struct perf_sample *now)
{
    raise(&f->wall_ns, growth(now->moment, f->enabled));
    raise(&f->ready_ns, growth(now->ready_ns, f->base.ready_ns));
    perf_figures_peek(f, now);
    update_wait(f, now);
    f->last = *now;
}

bool perf_figures_replaced(const struct perf_figures *f, const struct perf_sample *now)
{
    return now->voluntary < f->last.voluntary || now->involuntary < f->last.involuntary;
}

bool perf_sample_running(const struct perf_sample *sample)
{
    const uint64_t needed = PRCB_HAS_READY | PRCB_HAS_SWITCHES;

    return (sample->present & needed) == needed &&
           sample->arrivals == sample->voluntary + sample->involuntary + 1;
}

struct perf_span perf_creation(uint64_t start_ticks, uint64_t tick_ns, int64_t boot_offset,
                               uint64_t unseen, uint64_t now)
{
    struct perf_span span = {.earliest = now};
    int64_t moment;

    if (!__builtin_mul_overflow(start_ticks, tick_ns, &moment) &&
        !__builtin_sub_overflow(moment, boot_offset, &moment))
        span.earliest = moment < 0 ? 0 : less((uint64_t)moment, now);
    span.latest = less(span.earliest + tick_ns, now);
    if (span.earliest < unseen)
        span.earliest = less(unseen, span.latest);
    return span;
}
