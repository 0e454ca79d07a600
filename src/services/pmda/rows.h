/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The metrics of PCP: each is a family of src/analysis/metrics, or the part of it that one value
 * of a label names, under a number that never changes. Names, types, units and help come from
 * here. The only state is the table, which rows_init makes once.
 */
#ifndef PRCB_PMDA_ROWS_H
#define PRCB_PMDA_ROWS_H

#include <pcp/pmapi.h>
#include <pcp/pmda.h>

#include "metrics.h"

#define PRCB_DOMAIN 460

/* The numbers are part of archives: append new ones. */
enum row_indom {
    INDOM_CAUSE,
    INDOM_CPU,
    INDOM_IDLE_STATE,
    INDOM_CGROUP,
    INDOM_NAME,
    INDOM_THREAD,
    INDOM_BEHIND,
    INDOMS,
    INDOM_NONE = INDOMS
};

enum row_cluster {
    CLUSTER_AGENT,
    CLUSTER_ALL,
    CLUSTER_CPU,
    CLUSTER_IDLE_STATE,
    CLUSTER_WAIT,
    CLUSTER_CGROUP,
    CLUSTER_CGROUP_CAUSE,
    CLUSTER_NAME,
    CLUSTER_THREAD,
    CLUSTER_BEHIND,
    CLUSTERS
};

/* The part of a sample that is the value. */
enum row_kind {
    ROW_VALUE,   /* its number, summed over samples with this label's value, or (label "*") all */
    ROW_TEXT,    /* the value of the label */
    ROW_SECONDS, /* whole seconds */
    ROW_MHZ,
    ROW_REAL,
    ROW_THREAD, /* there is no family: the value is of a thread's account, see item */
};

struct row {
    unsigned cluster, item;
    char name[64]; /* below "prcb." */
    const struct metrics_family *family;
    const char *label, *value; /* only samples with this; NULL: all */
    enum row_kind kind;
    enum row_indom indom;
    int type, semantics;
    pmUnits units;
    char help[256];
};

/* Items of CLUSTER_THREAD. */
enum {
    THREAD_RUN,
    THREAD_READY,
    THREAD_WAIT,
    THREAD_SWITCHES,
    THREAD_OPEN_TIME,
    THREAD_OPEN_CAUSE
};

extern struct row rows[];
extern size_t row_count;

/* Call it once, before anything else. */
void rows_init(void);

/* Makes a name of PCP: a letter, then letters, digits and '_'. */
void rows_component(const char *text, char *ret, size_t size);

#endif
