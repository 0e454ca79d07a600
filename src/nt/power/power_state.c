/* SPDX-License-Identifier: BSD-2-Clause */
#include "power_state.h"

#include <string.h>

#define PERMILLE 1000

static struct power_value have(uint64_t value)
{
    return (struct power_value){.value = value};
}

static struct power_value lack(const char *reason)
{
    return (struct power_value){.reason = reason};
}

/* Returns a member of the record, or the reason why it is absent. */
static struct power_value member(const struct power_state *s, uint64_t bit, uint64_t value)
{
    const char *reason;

    if (s->p.present & bit)
        return have(value);
    if (!(s->p.flags & PRCB_CPU_ONLINE))
        return lack("the processor is offline");
    reason = prcb_processor_absent_reason(s->view, bit);
    return lack(reason ? reason : "this processor does not tell");
}

/* A figure that grows with time is absent for a processor that was never there. */
static struct power_value accrued(const struct power_state *s, uint64_t bit, uint64_t value)
{
    return processor_was_offline(&s->p) ? lack("the processor is offline") : member(s, bit, value);
}

/* A figure that only an idle processor has, on a tier that can tell. */
static struct power_value while_idle(const struct power_state *s, uint64_t bit, uint64_t value)
{
    bool online = s->p.flags & PRCB_CPU_ONLINE, idle = s->p.flags & PRCB_CPU_IDLE;

    if (online && !idle && !prcb_processor_absent_reason(s->view, bit))
        return lack("the processor was not idle at that moment");
    return member(s, bit, value);
}

struct power_value power_of(const struct power_state *s, enum processor_row row)
{
    const struct figure *figure = &processor_figures[row];
    uint64_t value = figure_get(figure, &s->p);

    if (row == PROCESSOR_ROW_idle_state)
        return while_idle(s, figure->present, value);
    return figure->kind == FIGURE_GAUGE ? member(s, figure->present, value)
                                        : accrued(s, figure->present, value);
}

static struct power_value share(uint64_t part, uint64_t whole, const char *nothing)
{
    return whole ? have((uint64_t)((double)part * PERMILLE / (double)whole + 0.5)) : lack(nothing);
}

/* ---- times --------------------------------------------------------------- */

struct power_value power_active(const struct power_state *s)
{
    uint64_t idle = s->p.idle_ns < s->p.wall_ns ? s->p.idle_ns : s->p.wall_ns;

    return accrued(s, PRCB_CPU_HAS_TIMES, s->p.wall_ns - idle);
}

struct power_value power_busy(const struct power_state *s)
{
    struct power_value active = power_active(s);

    return active.reason ? active
                         : share(active.value, s->p.wall_ns, "shorter than the kernel's tick");
}

struct power_value power_idle_since(const struct power_state *s)
{
    return while_idle(s, PRCB_CPU_HAS_RUNNING, s->now_ns - s->p.running_ns);
}

/* ---- frequency ----------------------------------------------------------- */

/* Returns a frequency as a share of another. */
static struct power_value ratio(struct power_value mhz, struct power_value whole)
{
    if (mhz.reason)
        return mhz;
    return whole.reason ? whole : share(mhz.value, whole.value, "a frequency of 0 is reported");
}

/* A processor above what cpufreq calls its highest frequency is not throttled. */
struct power_value power_throttle(const struct power_state *s)
{
    struct power_value throttle =
        ratio(power_of(s, PROCESSOR_ROW_mhz), power_of(s, PROCESSOR_ROW_max_mhz));

    return !throttle.reason && throttle.value > PERMILLE ? have(PERMILLE) : throttle;
}

struct power_value power_limit(const struct power_state *s)
{
    return ratio(power_of(s, PROCESSOR_ROW_limit_mhz), power_of(s, PROCESSOR_ROW_max_mhz));
}

struct power_value power_least(const struct power_state *s)
{
    return ratio(power_of(s, PROCESSOR_ROW_min_mhz), power_of(s, PROCESSOR_ROW_max_mhz));
}

/* Where the processor does not count what it delivered, the frequency that cpufreq tells stands for
 * it, and the highest frequency for a nominal one that is not told. */
struct power_value power_performance(const struct power_state *s)
{
    struct power_value nominal = power_of(s, PROCESSOR_ROW_nominal_mhz);

    if (s->p.present & PRCB_CPU_HAS_PERFORMANCE)
        return have(s->p.performance_permille);
    return ratio(power_of(s, PROCESSOR_ROW_mhz),
                 nominal.reason ? power_of(s, PROCESSOR_ROW_max_mhz) : nominal);
}

const char *power_performance_source(const struct power_state *s)
{
    if (s->p.present & PRCB_CPU_HAS_PERFORMANCE)
        return "aperf/mperf";
    return power_performance(s).reason ? NULL : "cpufreq";
}

struct power_value power_utility(const struct power_state *s)
{
    struct power_value busy = power_busy(s), performance = power_performance(s);

    if (busy.reason)
        return busy;
    return performance.reason ? performance
                              : have((busy.value * performance.value + PERMILLE / 2) / PERMILLE);
}

struct power_value power_parked(const struct power_state *s)
{
    return have(s->p.flags & PRCB_CPU_ONLINE ? 0 : 1);
}

/* ---- idle states as NT counts them --------------------------------------- */

#define LEVELS 3

/* Linux's first state may be a loop that polls: NT has no state for that. */
static uint32_t first_state(const struct power_state *s)
{
    return s->p.idle_state_count && !strcmp(s->p.idle_states[0].name, "POLL") ? 1 : 0;
}

struct power_value power_levels(const struct power_state *s)
{
    return accrued(s, PRCB_CPU_HAS_IDLE_STATES, s->p.idle_state_count - first_state(s));
}

static struct power_value level(const struct power_state *s, unsigned int number, bool entries)
{
    uint32_t at = first_state(s) + number, end = at + 1;
    struct power_value got = power_levels(s);

    if (got.reason)
        return got;
    if (number >= got.value)
        return lack("the processor has no such idle state");
    if (number == LEVELS - 1)
        end = s->p.idle_state_count;
    for (got.value = 0; at < end; at++)
        got.value += entries ? s->p.idle_states[at].entries : s->p.idle_states[at].residency_ns;
    return got;
}

struct power_value power_level_time(const struct power_state *s, unsigned int number)
{
    return level(s, number, false);
}

struct power_value power_level_entries(const struct power_state *s, unsigned int number)
{
    return level(s, number, true);
}
