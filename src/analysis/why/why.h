/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Why and where threads waited, by process: the sum of looks at accounts and at the stacks of
 * waits that go on. The time of each cause is exactly that of the accounts; stacks divide it,
 * and time without a stack stays in rows that say why. No session, no clock, no output: accounts
 * come in, a report goes out.
 *
 * A wait's time gets to its stack in this way: while the wait goes on, each look adds the time
 * since the last one; when it has ended and no other wait of its cause has since, the rest is
 * what the cause's closed time grew by. What is left of the cause, waits that no look met, is
 * divided in proportion to those of them that were chosen at random, each by its length and how
 * many it stands for.
 *
 * What a lock's holder does is what its account and stack showed in a look in which the lock's word
 * named it: a thread that has not been switched since was in that wait when the word was read.
 *
 * What waits were for, and who held the locks that they were for, divides the same time once
 * more: each wait that was read has one object, or belongs to the row of the rest.
 *
 * One thread.
 */
#ifndef PRCB_WHY_H
#define PRCB_WHY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <prcb/edges.h>
#include <prcb/stack.h>

#include "objects.h"

struct why;

/* Reads the stack of the wait that a record shows; -errno as prcb_stacks_read, or -EBUSY: not now,
 * the budget is used up. */
struct why_source {
    int (*read)(void *ctx, const struct prcb_account *a, struct prcb_stack *ret);
    /* Reads what the wait is for; NULL: nobody asks. It is called before the stack is read, with
     * stack NULL: the wait may be over any moment. For a futex, and where no cause is known, it
     * is called after that, too: the stack, if there is one, tells which kind of lock it is. */
    struct object_wait (*object)(void *ctx, const struct prcb_account *a,
                                 const struct prcb_stack *stack);
    /* Returns the thread that a holder is (object_wait); 0: none of this machine's. */
    pid_t (*holder)(void *ctx, uint32_t number);
    /* Whether the thread is in the same wait as the record shows, or runs on as there. */
    bool (*still)(void *ctx, const struct prcb_account *a);
    /* Calls fn for each edge of an account (prcb_edges_walk); NULL: nobody asks for paths.
     * account: NULL, or gets the record of that moment. */
    int (*edges)(void *ctx, uint64_t key, struct prcb_account *account, prcb_edge_fn fn,
                 void *fn_ctx);
    void *ctx;
    uint64_t min_wait_ns; /* shorter ones are not asked for */
    /* Whether a thread is looked at for others' paths alone. The report has those of a process as
     * one of their own, aside, without paths. NULL: none is. */
    bool (*aside)(void *ctx, const struct prcb_account *a);
    /* The report has a row for the threads of each process that had the same name when they were
     * met first, instead of one a process; its comm is that name. */
    bool by_name;
    /* Parts are divided by the span that their waits were in, too: part.stack.span. */
    bool by_span;
};

int why_open(const struct why_source *source, struct why **ret); /* 0 or -ENOMEM */
void why_close(struct why *w);                                   /* NULL is allowed */

/* Takes a look at one account at a time. now: ns, of any clock that does not go back. */
int why_account(struct why *w, const struct prcb_account *a, uint64_t now);
/* Returns the report's process of an account. 0: kernel threads, which are one process: nothing
 * in it tells them apart. */
pid_t why_process_of(const struct prcb_account *a);
/* Returns the process with the most threads; 0: there is none. */
pid_t why_busiest(const struct why *w);
/* Writes the processes that have not ended as of the last look. Returns how many there are: if
 * these are more than `most`, that is most + 1. */
size_t why_living(const struct why *w, pid_t *ret, size_t most);
/* A wait that was chosen at random has ended (looks.h). */
int why_chosen(struct why *w, const struct prcb_chosen *chosen, const struct prcb_stack *stack,
               int result, struct object_wait wait);
/* A look is over: what holders do is looked at while it is the same. */
int why_looked(struct why *w);
/* The last look is over: finds which threads wait for each other. */
int why_confirm(struct why *w);
/* The account was given back: its figures stay. */
int why_released(struct why *w, uint64_t key);

/* ---- the report ---- */

enum why_part_kind {
    WHY_STACK,      /* stack holds it */
    WHY_SHORT,      /* ended before it was looked at */
    WHY_BUDGET,     /* not read: too many at once */
    WHY_UNREADABLE, /* a 32-bit program, not within limits */
    WHY_DENIED,     /* no permission: ptrace(2)'s rule */
    WHY_KERNEL,     /* a kernel thread */
    WHY_NO_ROOM,    /* chosen, and its stack found no place to be copied to */
    WHY_ENDED,      /* chosen, and its process ended before any stack of it was unwound */
    WHY_BETWEEN, /* where records do not tell how long a wait is: shorter than from one look to the
                 next, or what of it was before it was seen twice */
};
const char *why_part_name(enum why_part_kind kind); /* "[too short]" ...; "" for a stack */

/* A thread that waited. */
struct why_who {
    uint64_t key;
    pid_t tid;
    char comm[16];
};

/* A part of a cause's time. */
struct why_part {
    enum why_part_kind kind;
    uint32_t cause;            /* enum prcb_cause; NONE where the tier knows none */
    struct prcb_stack stack;   /* kind STACK; its frames are the reader's */
    struct object_wait wait;   /* numbers of the caller's objects; 0: not known */
    uint64_t ns, count;        /* count: waits that were looked at; SHORT, BETWEEN: 0 */
    uint64_t idle_ns;          /* of ns, idling by design */
    double chosen;             /* ns that the waits chosen at random among them stand for */
    const struct why_who *who; /* in parts that are not sums of others; borrowed until why_close */
    size_t who_count;
};

struct why_cause {
    uint32_t cause;
    uint64_t ns; /* exact, the open stretch included: the sum of its parts */
    uint64_t count;
    uint64_t known_ns;      /* of ns, with a stack */
    uint64_t idle_ns;       /* of these, idling by design */
    struct why_part *parts; /* by stack, longest first */
    size_t part_count;
    /* If somebody asks for objects: the same time by what was waited for, and by who held the
     * lock (if that is known of any wait); and each part by itself. Rows without an object, or
     * without a holder, are one for each kind; STACK means that it was looked for and not found. */
    struct why_part *objects, *holders, *pairs;
    size_t object_count, holder_count, pair_count;
};

/* A thread that waits now, and not by design. */
struct why_now {
    pid_t tid;
    char comm[16];
    uint32_t cause;
    uint64_t ns;
    bool before; /* the wait had begun before the thread was profiled, ns is since then */
    bool has_stack;
    struct prcb_stack stack;
    struct object_wait wait;
    pid_t held_by; /* a thread that waits as well, and holds what this one waits for; 0: none */
    uint32_t loop; /* number of the deadlock that it is part of; 0: none */
};

enum why_state { WHY_WAITS, WHY_RUNS, WHY_READY };

/* What a holder did while others waited for what it held. */
struct why_doing {
    uint32_t object, holder; /* numbers of the caller's objects */
    enum why_state state;
    struct why_part part; /* WHY_WAITS: its wait, kind, cause, stack and object */
    uint64_t ns, count;   /* of waits for it, as far as they were looked at */
};

/* What waits lead to: what threads do for which the process's threads wait, or do themselves where
 * nobody else is known, by the critical paths of these waits. It is what looks saw: of a wait the
 * moments at which they met it, and what the threads behind it did then. */
struct why_path {
    bool seen; /* else it is not known what the thread did */
    enum why_state state;
    pid_t pid, tid; /* one of the threads */
    char comm[16];
    uint64_t threads;
    struct why_part part;   /* WHY_WAITS: its wait, kind, cause, stack and object */
    uint64_t ns, others_ns; /* others_ns: of ns, for which other threads wait */
};

struct why_process {
    pid_t pid;
    char comm[16];
    uint64_t cgroup; /* of its first thread that was met; 0: not known */
    bool first;      /* the process's first thread is among these */
    bool aside;      /* why_source.aside */
    uint64_t ended;  /* that so many ended ones of the name are one; pid: of one. 0: it is one */
    uint64_t threads, wall_ns, run_ns, ready_ns, wait_ns, idle_ns, known_ns;
    struct why_cause *causes; /* by time that is not idling, longest first */
    size_t cause_count;
    struct why_now *now; /* those that cannot be idling first, longest first */
    size_t now_count;
    const struct why_doing *doings; /* borrowed until why_close */
    size_t doing_count;
    struct why_path *paths; /* longest first; waits that may be idling and lead nowhere are none */
    size_t path_count;
    uint64_t path_ns;        /* their sum */
    bool has_tasks;          /* a runtime's, which no thread is in while they wait: */
    struct prcb_tasks tasks; /* set by whoever reads them */
};

struct why_report {
    struct why_process *processes; /* by time neither running nor idling */
    size_t count;
};

/* Of waits of threads whose tasks were read in its place: these do not say what they are for. */
#define WHY_TASKS_WORD "Go scheduler"

/* The time of accounts once more, by the span of a trace that the thread was in (prcb_stack.span,
 * where the source reads that). What the spans got, what was in none, and what is not known sum to
 * the processes' time. */
struct why_span {
    struct prcb_span_id id;
    pid_t pid, tid; /* tid, comm: of the thread that was met in it last */
    char comm[16];
    uint64_t waits;                /* that looks met in it */
    uint64_t ns, run_ns, ready_ns; /* ns: of these and of its waits */
    uint64_t trace_ns;             /* of all spans of its trace */
    struct why_part *parts;        /* longest first; SHORT: no look met them */
    size_t part_count;
    struct prcb_edge *behind; /* ready_ns by whom (PRCB_EDGE_BEHIND), and the rest */
    size_t behind_count;
};

struct why_spans {
    struct why_span *rows; /* by trace, and in it by span, longest first */
    size_t count;
    struct why_span none, unknown;
};

int why_spans_open(struct why *w); /* before the first look; 0 or -ENOMEM */
int why_spans_make(const struct why *w, struct why_spans *ret);
void why_spans_deinit(struct why_spans *spans);

#define WHY_FOLD_LEAST 4
#define WHY_ROWS_MOST  10000
/* So many processes of one name and cgroup, or more, whose threads have all ended, become one;
 * where the report still had more rows than it may, all of a cgroup that have ended. by_need: only
 * where it has more. No look follows. 0 or -ENOMEM */
int why_fold_ended(struct why *w, bool by_need);
/* Returns the process of the report that a process is in; ctx: the struct why. */
uint64_t why_folded(uint64_t pid, void *ctx);

/* Before the first look, where reports are to have paths; 0 or -ENOMEM. most: pieces of time that
 * are kept, 88 bytes each; recent: beyond these the older ones are forgotten, and edges held
 * something before the first look. Else later looks are left out. */
#define WHY_PATHS_PIECES 500000
int why_paths_open(struct why *w, size_t most, bool recent);

int why_report_make(struct why *w, struct why_report *ret); /* 0 or -ENOMEM */
/* Takes a process's tasks, and what they say of its threads' waits. */
void why_set_tasks(struct why_process *process, const struct prcb_tasks *tasks);
void why_report_deinit(struct why_report *report);

#endif
