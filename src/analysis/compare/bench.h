/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Runs of two programs, each split into parts, and what is different between the two. The
 * program's own parts are tested all together (rank.h); what belongs to the host, waiting for a
 * processor and such, is told and judges nobody. No session, no clock, no output.
 */
#ifndef PRCB_COMPARE_BENCH_H
#define PRCB_COMPARE_BENCH_H

#include <stdbool.h>
#include <stddef.h>

#include <prcb/causes.h>

#include "condition.h"
#include "rank.h"

enum bench_part {
#define PART(NAME, ...) BENCH_##NAME,
#include "bench_parts.def"
#undef PART
    BENCH_FIXED, /* from here on the times of the causes, by number, and then their counts */
    BENCH_PARTS = BENCH_FIXED + 2 * PRCB_CAUSE_MAX
};

enum bench_owner { BENCH_OWN, BENCH_HOST, BENCH_DETAIL, BENCH_ALL };

const char *bench_part_name(unsigned part);  /* "run", "futex", "futex.count"; NULL: none */
const char *bench_part_words(unsigned part); /* "running, ..." */
enum bench_owner bench_part_owner(unsigned part);
bool bench_part_counts(unsigned part); /* it is no time */
/* -1: none has this name. */
int bench_part_find(const char *name);

struct bench_run {
    double value[BENCH_PARTS]; /* ns, or a number; NAN: not known */
};

struct bench_side {
    char *command; /* as to be shown; owned */
    struct bench_run *runs;
    size_t count;
};

enum bench_verdict {
    BENCH_SAME,    /* whatever the difference is, it is less than what matters */
    BENCH_UNKNOWN, /* there may be one that matters: so many runs do not tell */
    BENCH_MORE,
    BENCH_LESS,
};
extern const char *const bench_verdict_names[]; /* "same", "unknown", "more", "less" */

struct bench_row {
    unsigned part;
    struct rank_result result; /* .p: of the own parts corrected for how many there are */
    enum bench_verdict verdict;
};

struct bench_options {
    double alpha;    /* how likely a difference is claimed where there is none, in all stages */
    unsigned stages; /* how often the runs are compared at most, until there are enough; each has
                        its share of alpha */
    double matters;  /* what is the least difference to tell, as a share of the wall time */
    bool apart;      /* the sides were not measured by turns: a host that changed judges waits */
    bool shares;     /* compare each part as a share of its run: they are of different machines */
    bool no_wall;    /* how long a run took says nothing: it was ended when somebody wanted it to */
};

struct bench_comparison {
    struct bench_options options;
    struct bench_row *rows; /* own parts, the greatest change first, then those of the host */
    size_t count;
    size_t enough;     /* runs a side that would tell what is not known; 0: these did */
    double speed;      /* how many times as long the fixed loop took beside b; 1: as long. Of sides
                          that were measured apart, b's running was divided by it */
    bool host_changed; /* the host's parts are different */
};

/* 0, -EINVAL (a side has fewer than 2 runs) or -ENOMEM. */
int bench_compare(const struct bench_side sides[2], const struct bench_options *options,
                  struct bench_comparison *ret);
void bench_comparison_deinit(struct bench_comparison *comparison);
void bench_side_deinit(struct bench_side *side);

const struct bench_row *bench_row_of(const struct bench_comparison *comparison, unsigned part);

/* Whether a condition holds for certain: the whole interval of the part's change is beyond it, and
 * the part is different at all. -EINVAL: it is none of an own part. */
int bench_check(const struct bench_comparison *comparison, const char *condition, bool *ret,
                struct prcb_error *err);

#endif
