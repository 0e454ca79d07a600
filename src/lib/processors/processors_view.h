/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Inside of a view of the processors: what its parts share. processors.c holds the public calls and
 * what is the same wherever figures come from: they count from the opening of the view, and never
 * go backwards. A source gives figures that count from anywhere. Not public.
 */
#ifndef PRCB_PROCESSORS_PROCESSORS_VIEW_H
#define PRCB_PROCESSORS_PROCESSORS_VIEW_H

#include <pthread.h>
#include <stdbool.h>

#include <prcb/processors.h>

#include "clock.h"
#include "cpu_files.h"
#include "error.h"
#include "processor_parts.h"

/* What is not kept current in memory, of one processor; as of the last refresh. */
struct processor_facts {
    struct cpu_sysfs sysfs;
    bool online;
    bool absent; /* possible, not present */
    bool has_performance;
    uint32_t performance_permille;
};

/* What each read of times needs, apart from the rest: two cache lines a processor. */
struct processor_times {
    struct parts base, last; /* at open; returned last: both absolute */
};

struct processor_slot {
    struct processor_facts facts;
    struct prcb_processor from; /* the other counters at open */
    uint64_t last_residency[PRCB_IDLE_STATES_MAX];
};

/* Says where figures come from: one row of functions. All are called under the view's lock, but for
 * open, and for refresh, which is under refresh_lock. */
struct processor_source {
    enum prcb_tier number;
    int (*open)(struct prcb_processors *v, struct prcb_error *err);
    void (*close)(struct prcb_processors *v); /* takes half-opened views */
    /* The moment that the reads which follow are of; in the source's own clock. */
    uint64_t (*now)(struct prcb_processors *v);
    /* Times at that moment, and what the processor is doing: *live is the part that grows,
     * *flags enum prcb_processor_flag bits. -EAGAIN. */
    int (*times)(struct prcb_processors *v, uint32_t number, uint64_t now, struct parts *ret,
                 enum part *live, uint32_t *flags);
    /* Fills a whole record but number, size and what processors.c derives; times go to *parts. */
    int (*record)(struct prcb_processors *v, uint32_t number, uint64_t now, struct parts *parts,
                  enum part *live, struct prcb_processor *ret);
    /* After facts have been read again. */
    int (*refresh)(struct prcb_processors *v, struct prcb_error *err);
};

struct processor_map;      /* blocks in mapped memory: processor_map.h */
struct processor_programs; /* loaded programs: processors_bpf.c */
struct processor_counts;   /* the figures of one processor by procfs: processors_files.c */
struct msr_events;         /* processors_msr.c */

#define MEMBERS 32

struct prcb_processors {
    const struct processor_source *source;
    char tier_reason[256];            /* why not a better one; empty: none better, or forced */
    const char *absent[MEMBERS];      /* by number of the member's bit; NULL: not lacking */
    uint64_t present;                 /* members that records hold, all of this view */
    uint32_t count;                   /* possible processors */
    bool recorded;                    /* a tree, not this machine */
    struct procfs fs;                 /* on the root; refresh_lock */
    char idle_driver[CPU_FILES_NAME]; /* whose idle states the facts have; refresh_lock */
    struct processor_times *times;    /* count of them */
    struct processor_slot *slots;     /* as many */
    struct clock_base clock_base;
    struct clock clock;   /* lock */
    uint64_t last_now;    /* lock */
    pthread_mutex_t lock; /* over what reads change, and the facts */
    pthread_mutex_t refresh_lock;
    struct msr_events *msr;    /* NULL: none */
    bool threads_have_numbers; /* bpf: those of the first pid namespace, which the blocks hold */
    struct processor_map *map; /* bpf */
    struct processor_programs *programs; /* bpf */
    struct client_programs *missed;      /* daemon, what its programs missed; refresh_lock */
    struct processor_counts *counts;     /* perf: as of the last refresh */
};

extern const struct processor_source processors_from_daemon;
extern const struct processor_source processors_from_bpf; /* only in builds with the bpf tier */
extern const struct processor_source processors_from_files;

/* Notes that records lack these members, and why. The first reason stays. why: a literal, or as
 * long-lived as the view. */
void processors_lack(struct prcb_processors *v, uint64_t members, const char *why);

/* Later parts no smaller than what was returned last, of one processor: what was returned stays
 * and the difference is taken from what grew, so that they still sum to wall. */
void parts_never_back(const struct parts *last, struct parts *now, enum part live);

/* Opens what tells delivered performance by perf's msr events; *ret is NULL where the machine has
 * none, and why says it. */
int msr_open(uint32_t count, struct msr_events **ret, const char **why);
void msr_close(struct msr_events *m);
/* Tells it as a part of nominal, since the call before; false: it is not known for this
 * processor. */
bool msr_performance(struct msr_events *m, uint32_t number, uint32_t *ret_permille);

#endif
