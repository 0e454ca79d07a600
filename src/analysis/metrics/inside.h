/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The inside of the metrics: sums by group, and what a look found. Only the metrics include it.
 */
#ifndef PRCB_METRICS_INSIDE_H
#define PRCB_METRICS_INSIDE_H

#include <regex.h>

#include <prcb/tails.h>

#include "account_rows.h"
#include "blame.h"
#include "cgroup_names.h"
#include "container_names.h"
#include "metrics.h"
#include "table.h"

/* What is summed: an account's numbers (enum account_number) and these. Unsigned numbers that wrap:
 * a difference may be below zero for a while. */
enum value {
    VALUE_INVOLUNTARY = ACCOUNT_NUMBERS,
    VALUE_CAUSE_NS,
    VALUE_CAUSE_COUNT = VALUE_CAUSE_NS + PRCB_CAUSE_MAX,
    VALUES = VALUE_CAUSE_COUNT + PRCB_CAUSE_MAX
};

struct values {
    uint64_t v[VALUES];
};

struct group {
    uint64_t cgroup;         /* number; 0: none */
    char name[ACCOUNT_NAME]; /* of threads; cgroups have a path */
    const char *path;        /* constant, or that of what is known of it */
    struct cgroup_identity said;
    struct container_said names; /* METRICS_CONTAINERS */
    bool named;
    uint8_t asked;                    /* how often */
    struct values folded;             /* of what will not be seen again: ended, moved away */
    struct values live;               /* of this look */
    struct values shown;              /* the highest there was: what is shown */
    uint64_t running, ready, waiting; /* threads */
    struct blame *blame[BLAMES];      /* NULL: nobody yet */
};

enum axis_number { AXIS_CGROUP, AXIS_NAME, AXES };

/* A cgroup at the top: system.slice, user.slice. Only root makes these, so a user who owns a
 * part of one gets no more than its share of the groups. */
struct slice {
    char name[64]; /* cut off where it is longer */
    size_t kept[AXES];
    size_t wanting[AXES];  /* left out for lack of room at the last look */
    size_t promised[AXES]; /* room that others made for these */
};
#define SLICES 32 /* those beyond count as the last */

/* A cgroup or a name that threads have. Its sums are stored apart: one without sums costs
 * little, and is forgotten at the first look that meets no thread of it. */
struct known {
    uint64_t cgroup;
    char name[ACCOUNT_NAME];
    char *path;          /* of a cgroup; owned */
    bool let_in;         /* by the expressions */
    struct slice *slice; /* that of the thread it was met with first */
    struct group *group; /* NULL: counted in "(other)" */
    struct group *past;  /* its sums from when it was shown: from these it goes on */
    uint64_t did, level; /* processor time in this look, in those lately */
    uint64_t given_at;   /* when it got its group; 0: at the first look */
    uint64_t busy_at;    /* when it had threads last */
    uint64_t since;      /* order in which groups were given */
};

/* Groups of one kind. */
struct axis {
    struct known **known; /* as they were met */
    size_t known_count, known_room;
    struct table places; /* of these, by cgroup and name */
    size_t kept, left_out;
    size_t most;
    size_t promised;    /* of all slices */
    uint64_t given;     /* groups so far */
    struct group other; /* those beyond */
    struct group gone;  /* cgroups without a name */
    bool other_used, gone_used;
};

/* An account that was seen, by its key. */
struct seen {
    uint64_t key;
    uint64_t look;
    uint64_t run; /* processor time at the last look */
    struct group *group[AXES];
    struct values *base[AXES]; /* what it had when it came into the group; NULL: nothing */
    bool done;                 /* ended and folded */
    uint64_t cgroup;           /* at the last look; 0: none */
    bool kernel;               /* a thread of the kernel's */
    struct blamed *blamed;     /* BLAMES; NULL: METRICS_BY_WHOM is not wanted */
};

/* What is shown of the machine as a whole. An empty text and 0 mean "not known". */
struct metrics_host {
    char name[256], system[65], release[65];
    uint64_t processes, processes_limit, booted_ns; /* the last is Unix time */
};

struct metrics {
    struct metrics_options options;
    struct prcb *session; /* NULL: fed, or a replay */
    struct replay *replay;
    struct replay_writer *writer; /* NULL: nothing is recorded */
    struct metrics_host host;
    struct prcb_processors *view;
    enum prcb_tier tier;
    struct cgroup_names *names;
    struct memory *memory; /* of memory.h; NULL: METRICS_MEMORY is not wanted */
    regex_t include, exclude;
    bool has_include, has_exclude;
    uint64_t present; /* PRCB_HAS_ bits of all accounts so far */
    bool baseline;    /* what accounts have at the first look was before counting began */
    bool orphan;      /* the last look met accounts of a session that is lost */

    struct group all;
    struct axis axes[AXES];
    struct slice slices[SLICES];
    uint64_t keep_ns;  /* for how long a group stays that has no threads */
    struct table seen; /* by key */
    uint64_t looks;

    struct prcb_processor *processors; /* of the last look */
    uint32_t processor_count;
    struct prcb_status status;
    uint64_t accounts_live, accounts_ended;
    uint64_t started;                   /* Unix time */
    uint64_t looked_at;                 /* when the look began, CLOCK_MONOTONIC, ns */
    uint64_t look_ns;                   /* how long the last look took */
    struct prcb_tail ready, ready_base; /* base: before counting began */
    bool has_ready;
    struct prcb_error no_ready;
    bool left_out;        /* threads found no room, and do not have it yet */
    uint64_t asked_again; /* when it was last asked to take them up, CLOCK_MONOTONIC */
    uint64_t births, born_at;
    double birth_rate; /* accounts that came about, a second */
    struct blaming blaming;
    struct prcb_error no_edges;
};

/* fold.c */
int metrics_fold_init(struct metrics *m, struct prcb_error *err);
void metrics_fold_deinit(struct metrics *m);
/* Calls fn for all groups that are shown on an axis, "(other)" and "(gone)" where they are used. */
void metrics_groups(const struct metrics *m, enum axis_number axis,
                    void (*fn)(void *ctx, const struct group *group), void *ctx);
/* Calls fn for all cgroups with a name, shown or not. */
void metrics_known_cgroups(const struct metrics *m,
                           void (*fn)(void *ctx, uint64_t cgroup, const char *path), void *ctx);

#endif
