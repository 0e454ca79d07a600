/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A thread that looks at the figures: it opens the session and gives accounts back in time, and
 * makes a snapshot of the metrics when it is asked. The asking thread waits for a bounded time:
 * prcbd, which may be stopped or busy, never holds up pmcd. When there is no prcbd the thread
 * tries again each second.
 */
#ifndef PRCB_PMDA_LOOKER_H
#define PRCB_PMDA_LOOKER_H

#include "rows.h"

/* An instance. Its name is fit for PCP: unique up to its first blank, and printable. */
struct instance {
    char *name;
    char *labels; /* members of a JSON object, without braces; NULL: none */
    int id;       /* a cause or a processor has its own number; others' is made from the name */
};

struct value {
    unsigned row;
    int instance; /* index in the row's domain, later its number; -1: none */
    pmAtomValue atom;
};

struct snapshot {
    bool up;
    uint64_t taken;    /* CLOCK_MONOTONIC, ns */
    unsigned clusters; /* bits: what is in it */
    struct instance *instances[INDOMS];
    size_t instance_count[INDOMS];
    struct value *values;
    size_t value_count;
};

/* Starts the thread. It reports later failures with pmNotifyErr, once. */
int looker_start(const struct metrics_options *options);
/* Returns a snapshot with these clusters that is no older than 100 ms, if it can be had in time;
 * else one that is not up. The caller frees it. NULL: there is no memory. */
struct snapshot *looker_snapshot(unsigned clusters);
void snapshot_free(struct snapshot *s);

#endif
