/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The power state of one processor: what its record says, and what follows from it
 * (busy, performance, utility, throttle, parked). Every figure is a number or the
 * reason why there is none.
 */
#ifndef PRCB_POWER_STATE_H
#define PRCB_POWER_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <prcb/processors.h>

#include "figures.h"

struct power_state {
    const struct prcb_processors *view;
    struct prcb_processor p; /* since the start of the look */
    uint64_t now_ns;         /* CLOCK_MONOTONIC at its end */
};

/* A figure. Without a value the reason is set: one line, borrowed until the view is closed. */
struct power_value {
    uint64_t value;
    const char *reason; /* NULL: the value is there */
};
typedef struct power_value power_figure(const struct power_state *s);

/* A row of processor_figures as it is. */
struct power_value power_of(const struct power_state *s, enum processor_row row);

power_figure power_active;      /* ns */
power_figure power_idle_since;  /* ns of CLOCK_MONOTONIC; while it is idle */
power_figure power_busy;        /* permille of wall that was not idle */
power_figure power_performance; /* permille of nominal */
power_figure power_utility;     /* permille: busy x performance */
power_figure power_throttle;    /* permille: present frequency of the highest, at most 1000 */
power_figure power_limit;       /* permille: highest allowed frequency of the highest */
power_figure power_least;       /* permille: lowest allowed frequency of the highest */
power_figure power_parked;      /* 0 or 1 */

/* "aperf/mperf" or "cpufreq": what power_performance was made of; NULL: it is absent. */
const char *power_performance_source(const struct power_state *s);

/* Figures of NT's C1, C2 or C3 (level 0 to 2): the states in which the processor does not poll, in
 * their order; the third is all from there on. */
struct power_value power_level_time(const struct power_state *s, unsigned int level); /* ns */
struct power_value power_level_entries(const struct power_state *s, unsigned int level);
power_figure power_levels; /* how many such states */

#endif
