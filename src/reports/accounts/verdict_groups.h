/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A verdict in the making: waits that are one thing to people as one group, for the rules of
 * verdict.c. It says nothing. One thread; groups point into the figures.
 */
#ifndef PRCB_VERDICT_GROUPS_H
#define PRCB_VERDICT_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "table.h"
#include "verdict.h"

#define VERDICT_KEY_MOST    600
#define VERDICT_EITHER_PART 8 /* a wait that may be idling weighs one part in so many */

/* Waits that are one thing to people: for one lock, for one other end, or of one cause in one
 * function. */
struct group {
    char *key;
    const struct why_process *process; /* one of them */
    size_t processes;                  /* of one name and cgroup */
    const struct why_process *last;    /* of these that was added */
    bool ready;                        /* no wait: it has no processor */
    uint32_t cause;
    uint64_t ns, either_ns;        /* either: may be idling */
    const struct why_part *most;   /* the largest part */
    uint64_t object_ns, others_ns; /* for what the largest part is for, and for other things */
    const struct why_who *who;     /* one of them */
    uint64_t threads;
    size_t prefix; /* of their names, which all have */
};

struct making {
    const struct verdict_figures *f;
    struct verdict *verdict;
    struct group *groups;
    size_t count, room;
    struct table by_key, members;
    struct table by_pid; /* numbers of the report's processes, from 1 */
    bool *busy;          /* which of them say by themselves why somebody waits for them */
    uint64_t wall_ns, run_ns, ready_ns, idle_ns; /* wall: without waits for busy children */
    uint64_t sure_ns, either_ns;        /* ready, and waiting: surely held up, perhaps idling */
    const struct why_process *for_busy; /* who waits longest for busy ones, in one place: */
    const struct why_part *for_busy_part;
    uint64_t inside_ns; /* of sure_ns, for processes of the report that are not busy */
    bool several;       /* processes */
    bool no_causes;     /* the tier knows none */
    bool failed;
};

/* What is said of a way to wait; %s: for what, ~: the s of one that waits. */
struct phrase {
    const char *word;
    uint32_t cause;
    const char *known, *unknown;
    bool one; /* a process has one of it */
    bool own; /* each thread has a futex of its own for it */
};

/* Fills in the groups, those that tell most first, and the sums. m->failed: out of memory. */
void verdict_groups_make(struct making *m);
void verdict_groups_free(struct making *m);

const struct object *verdict_object_of(const struct making *m, uint32_t number);
/* The other end of a socket: "tcp 10.0.0.1:5 -> 10.0.0.2:80" has it behind the arrow. NULL: none.
 */
const char *verdict_remote_of(const struct object *object);
const char *verdict_word_of(const struct why_part *part);            /* NULL: none */
const struct phrase *verdict_phrase_of(const struct why_part *part); /* NULL: none */
/* Whether a wait is for a process that is in the report and busy: what that one does tells more. */
bool verdict_is_for_busy(const struct making *m, const struct why_part *part);
/* The parts of a cause, by what they are for where that is known. */
const struct why_part *verdict_parts_of(const struct why_cause *cause, size_t *ret_count);
uint64_t verdict_score_of(const struct group *group);

#endif
