/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Who had the processors while threads of a group were ready, and who held the kernel's locks that
 * they waited for: time that is over, divided by the cgroups that edges name. Each nanosecond goes
 * to one of them, once, in the look that meets it first: a counter that was shown never falls. What
 * edges do not tell is "(other)". Only the metrics include it.
 */
#ifndef PRCB_METRICS_BLAME_H
#define PRCB_METRICS_BLAME_H

#include <stdbool.h>
#include <stdint.h>

#include <prcb/edges.h>

#include "table.h"

/* What somebody is named for. */
enum blame_of {
    BLAME_READY, /* had the processor */
    BLAME_LOCKS, /* held the lock */
    BLAMES
};

#define CULPRITS 8 /* that a group has by name: the first ones, for as long as they exist */

/* Those that are no cgroup of their own. */
enum culprit_word {
    CULPRIT_SELF,   /* threads of the same cgroup */
    CULPRIT_KERNEL, /* kernel threads */
    CULPRIT_IDLE,   /* nobody: the processor was idle, and had to wake up */
    CULPRIT_OTHER,  /* cgroups beyond CULPRITS, and what nothing is known of */
    CULPRIT_GONE,   /* sums of cgroups that were removed, and whose place another has now */
    CULPRIT_WORDS
};
extern const char *const culprit_words[CULPRIT_WORDS];

struct culprit {
    uint64_t cgroup;
    char *path; /* owned */
    uint64_t ns;
    uint64_t grew_at; /* CLOCK_MONOTONIC, ns */
};

struct blame {
    uint64_t word_ns[CULPRIT_WORDS];
    struct culprit named[CULPRITS];
    unsigned count;
};
uint64_t blame_sum(const struct blame *blame); /* NULL: 0 */
void blame_free(struct blame *blame);          /* NULL is allowed */

/* Edges of one who, as they were at the last look. */
struct blame_cell {
    uint64_t who; /* number of a cgroup, or of a thread (PRCB_BY_THREAD) */
    uint32_t by;
    uint64_t ns;
};

/* Of an account. */
struct blamed {
    struct blame_cell *cells;
    size_t count, room;
    uint64_t given_ns; /* time that somebody has been given; what there was before the account came
                          into its group is nobody's there */
    bool unknown;      /* there were no edges at the last look */
};

/* Time of an account that is divided. */
struct blame_time {
    uint64_t closed_ns, open_ns; /* open: of a stretch that is not over */
};

/* Time that was met in this look: whose, and by whom. */
struct blame_share {
    struct group *victim;
    enum blame_of of;
    uint64_t cgroup; /* the victim's */
    struct blame_cell cell;
};

/* Edges of one account. */
struct blame_cells {
    struct blame_cell *cells;
    size_t count, room;
};

/* The state of all. */
struct blaming {
    struct blame_cells of[BLAMES]; /* of the account that is added next */
    uint64_t key;                  /* that account's; 0: it has none */
    struct table threads;          /* of this look, by number: struct seen */
    bool available;
    struct blame_share *shares;
    size_t share_count, share_room;
};

struct metrics;
struct group;

/* Divides what an account has more than at the last look. blamed: for each of enum blame_of;
 * victim: the group in which this time counts; left: it leaves that group now. -ENOMEM: not all
 * was divided. */
int blame_account(struct metrics *m, struct blamed *blamed, struct group *victim, bool left,
                  const struct prcb_account *account, uint64_t cgroup);
/* What a group shows and nobody has been given: of stretches that are not over. */
uint64_t blame_left(const struct group *victim, enum blame_of of);
/* Gives the shares of a look to the cgroups, when all threads have been met, and all groups show
 * what their threads did. */
void blame_settle(struct metrics *m);
void blame_deinit(struct blaming *blaming);

#endif
