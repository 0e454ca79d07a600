/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Figures for monitoring: the accounts of all threads summed for the machine, for each cgroup and,
 * if wanted, for each name of threads, with the processors' beside them, as families of counters
 * and gauges. Each family is a row of families.def; renderers walk the rows and ask for the samples
 * of each. A counter never falls: what ended threads and threads that were moved did stays in its
 * sum, and stretches that are not over are counted as far as they go.
 *
 *     metrics_open(&options, &m, &err);
 *     metrics_look(m, &err);                          // now and then: metrics_wait_ms
 *     for (f = metrics_families; f->name; f++)
 *         if (metrics_wanted(m, f))
 *             metrics_each(m, f, take_sample, ctx);
 *
 * No storage, no output, no network. Counting starts when metrics_open does.
 * Errors 0 or -errno, results unchanged on failure. One thread at a time.
 */
#ifndef PRCB_METRICS_H
#define PRCB_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <prcb/edges.h>
#include <prcb/prcb.h>
#include <prcb/processors.h>

struct metrics;

/* What is shown only if asked for; bits. */
enum metrics_optional {
    METRICS_PER_CPU = 1 << 0,       /* each processor by itself */
    METRICS_CGROUP_CAUSES = 1 << 1, /* each cgroup's waits by cause, not by class alone */
    METRICS_BY_NAME = 1 << 2,       /* threads by name */
    METRICS_READY = 1 << 3,         /* a histogram of how long threads had no processor; the session
                                       then keeps tails (prcb/tails.h) */
    METRICS_BY_WHOM = 1 << 4,       /* which cgroups had the processors meanwhile; the session then
                                       keeps edges (prcb/edges.h) */
    METRICS_CONTAINERS = 1 << 5,    /* names of containers, pods and images, from the files of the
                                       programs that run them */
    METRICS_MEMORY = 1 << 6,        /* what limits of memory do, by cgroup */
};

/* Whose names the families have: prcb's, Windows'; bits. */
enum metrics_names { METRICS_PRCB = 1 << 0, METRICS_NODE = 1 << 1, METRICS_WINDOWS = 1 << 2 };

/* "prcb,windows": adds the bits. -EINVAL: none of them. */
int metrics_parse_names(const char *text, unsigned *ret);

struct metrics_options {
    enum prcb_tier tier;     /* as of prcb_options */
    uint64_t max_threads;    /* accounts; 0: the default */
    const char *file_root;   /* below it are the files of METRICS_CONTAINERS; NULL: "" */
    const char *cgroup_root; /* mount of the cgroups of version 2; NULL: this machine's */
    uint64_t max_cgroups;    /* 0: 500. The busiest have names; the rest is "(other)" */
    uint64_t max_names;      /* 0: 200 */
    const char *include;     /* POSIX extended regular expressions on cgroups' paths: only these, */
    const char *exclude;     /* and not these; what is left out is in "(other)". NULL: none */
    unsigned optional;       /* enum metrics_optional */
    unsigned names;          /* enum metrics_names; 0: METRICS_PRCB */
    const char *record;      /* a file to write each look to; NULL: none */
    const char *replay;      /* such a file, to be looked at in place of this machine; NULL: none */
    double replay_scale;     /* seconds of it that pass in one; 0: it is over at once */
};

/* Opens a session for all threads and a view of the processors; without the latter, families of
 * processors have no samples. Errors as prcb_open and prcb_profile_all, and those of opening the
 * files; -EINVAL: an expression, or a file that is no record. */
int metrics_open(const struct metrics_options *options, struct metrics **ret,
                 struct prcb_error *err);
/* Opens without a session: accounts come by metrics_add, processors by metrics_set_processors. */
int metrics_open_fed(const struct metrics_options *options, struct metrics **ret,
                     struct prcb_error *err);
/* 0, or -errno of writing the record. */
int metrics_close(struct metrics *m);

/* Brings all samples up to date and gives the accounts of ended threads back. Samples show the
 * last look. -ENOTCONN: prcbd is not there; -ESTALE: the session is lost: open again, and
 * counters start again. -EINVAL: a line of the replayed file is no look. */
int metrics_look(struct metrics *m, struct prcb_error *err);
/* Looks as often as accounts of ended threads have to be given back. until: CLOCK_MONOTONIC, ns;
 * the last look begins then. */
int metrics_look_until(struct metrics *m, uint64_t until, struct prcb_error *err);
/* Returns the milliseconds within which metrics_look has to be called, so that accounts do not
 * run out: from 5, while threads come and go quickly, to 1000. */
unsigned metrics_wait_ms(const struct metrics *m);
/* Says why a histogram that was asked for is missing, after the first look; NULL: it is there. */
const char *metrics_no_ready(const struct metrics *m);
/* The same of METRICS_BY_WHOM. */
const char *metrics_no_edges(const struct metrics *m);
struct prcb *metrics_session(const struct metrics *m); /* its own; NULL: fed, or a replay */

/* For metrics_open_fed: between begin and end the caller adds each account that there is, once.
 * Those that have ended are counted once, however often they are seen; `end` calls `ended` for
 * each of them. */
void metrics_begin(struct metrics *m);
int metrics_add(struct metrics *m, const struct prcb_account *account);
/* METRICS_BY_WHOM: an edge of the account that is added next, as of the same moment. */
int metrics_add_edge(struct metrics *m, uint64_t key, const struct prcb_edge *edge);
void metrics_end(struct metrics *m, void (*ended)(void *ctx, uint64_t key), void *ctx);
void metrics_set_processors(struct metrics *m, const struct prcb_processor *processors,
                            uint32_t count);
void metrics_set_status(struct metrics *m, const struct prcb_status *status);

/* ---- families ---- */

enum metrics_type { METRICS_COUNTER, METRICS_GAUGE, METRICS_INFO, METRICS_HISTOGRAM };
enum metrics_unit { METRICS_NONE, METRICS_SECONDS, METRICS_HERTZ, METRICS_RATIO };

#define METRICS_LABELS 6

struct metrics_sample {
    const char *suffix;                /* of a histogram: "_bucket", "_sum", "_count"; else NULL */
    const char *label[METRICS_LABELS]; /* names; NULL: no more */
    const char *value[METRICS_LABELS]; /* any bytes; a label whose value is empty is left out */
    enum { METRICS_INTEGER, METRICS_NS, METRICS_REAL } kind;
    uint64_t number; /* METRICS_NS: nanoseconds, of which seconds are to be made */
    double real;
};
typedef void metrics_sample_fn(void *ctx, const struct metrics_sample *sample);

struct metrics_family {
    const char *name; /* OpenMetrics: without _total or _info */
    enum metrics_type type;
    enum metrics_unit unit;
    unsigned names;    /* enum metrics_names: one */
    unsigned optional; /* enum metrics_optional: all of these must be wanted; 0: always */
    void (*emit)(const struct metrics *m, const struct metrics_family *family,
                 metrics_sample_fn *fn, void *ctx);
    unsigned what;      /* for emit */
    const char *labels; /* for documents: "cpu, mode" */
    const char *help;
};
extern const struct metrics_family metrics_families[]; /* ends with a row without a name */

bool metrics_wanted(const struct metrics *m, const struct metrics_family *family);
void metrics_each(const struct metrics *m, const struct metrics_family *family,
                  metrics_sample_fn *fn, void *ctx);

/* Returns the class of a wait, of the ten by which cgroups are shown: "lock", "disk", ...; NULL:
 * the cause is no wait, or it is throttled, which has families of its own. */
const char *metrics_class_of(uint32_t cause);

#endif
