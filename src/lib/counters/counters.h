/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Inside of counters: names to events, and sets opened from events. The public
 * calls are in prcb/counters.h.
 */
#ifndef PRCB_COUNTERS_COUNTERS_H
#define PRCB_COUNTERS_COUNTERS_H

#include <stdbool.h>

#include <prcb/counters.h>

#include "error.h"

#define COUNTER_NAME_MAX 128

/* What to count, as the kernel takes it. */
struct counter_event {
    char name[COUNTER_NAME_MAX]; /* as asked for */
    uint32_t type;               /* of struct perf_event_attr, as the rest */
    uint64_t config, config1, config2;
    bool no_user, no_kernel;
};

/* Finds the event of one name. -EINVAL: nobody knows it. -EOPNOTSUPP: it is known, and nothing
 * backs it on this processor. */
int counter_event_find(const char *name, struct counter_event *ret, struct prcb_error *err);

/* A list with commas between names; those inside /.../ belong to the name. *ret_count
 * of at most PRCB_COUNTERS_MAX. */
int counter_events_parse(const char *list, struct counter_event *ret, size_t *ret_count,
                         struct prcb_error *err);

uint32_t counter_event_source(const struct counter_event *event);

/* Does what prcb_counters_open says. */
int counters_open_events(const struct counter_event *events, size_t count, pid_t tid,
                         unsigned flags, struct prcb_counters **ret, struct prcb_error *err);

/* The values alone, scaled, without a system call where there is a way; bit i of
 * *ret_present says whether ret[i] counts. */
void counters_values(struct prcb_counters *counters, uint64_t *ret, uint64_t *ret_present);

/* Starts a set that was opened with COUNTERS_STOPPED. All that are opened start like
 * this: an event that joins a group whose leader counts already may stay silent until
 * the thread's next switch (seen on 6.18 behind task-clock). */
#define COUNTERS_STOPPED (1u << 31)
void counters_start(struct prcb_counters *counters);

/* Each thread that ends writes its own part of an inherited count to the event's buffer. */
#define COUNTERS_STAT (1u << 30)

/* The event counts always or not at all: it takes no turns with others. */
#define COUNTERS_PINNED (1u << 29)

/* Opens one event as an attribute of these flags, with the kernel's own work left
 * out where it may not be counted (*ret_user_only). cpu -1: wherever the thread
 * runs; pid -1: whoever runs there. A descriptor or -errno. */
int counter_open_fd(const struct counter_event *event, pid_t pid, int cpu, int group,
                    unsigned flags, uint64_t read_format, bool *ret_user_only);

/* Returns the text for an error of counter_open_fd. */
const char *counter_reason(const struct counter_event *event, int error);

#endif
