/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What why.c keeps of processes, threads and waits, for itself and holding.c.
 */
#ifndef PRCB_WHY_INSIDE_H
#define PRCB_WHY_INSIDE_H

#include "behind.h"
#include "table.h"
#include "why.h"

/* A part that grows: the time of one process, one cause, and one stack or reason why there is
 * none. */
struct cell {
    struct why_part part;
    const struct process *process;
    struct cell *next;   /* of its process */
    struct why_who *who; /* which threads waited, each once */
    size_t who_count, who_room;
};

struct total {
    uint64_t ns, count;
};

struct process {
    pid_t pid;
    char comm[16];
    uint64_t cgroup; /* of the first account; 0: not known */
    bool first;      /* it has the process's first thread */
    bool over;       /* another process has its number since */
    /* The last account of its first thread, and when that was last seen to live. */
    uint64_t first_key, first_lived;
    bool aside; /* why_source.aside */
    uint64_t threads;
    /* Of threads whose accounts were given back. */
    uint64_t wall_ns, run_ns, ready_ns, wait_ns;
    struct total waits[PRCB_CAUSE_MAX];
    struct cell *cells;
    struct why_doing *doings;
    size_t doing_count, doing_room;
    struct thread *threads_here; /* those whose accounts are there */
    struct process *next;        /* of all */
    size_t number;               /* its place in the report that is made */
    struct process *into; /* a process of the same name, which has all of its time; or NULL */
    uint64_t ended;       /* processes that it has all of, itself among them; 0: it is one */
    /* Whether the process is frozen, and when that was asked (why_account's now); 0: not yet. */
    uint64_t frozen_asked;
    bool frozen;
};

struct thread {
    struct prcb_account last;
    pid_t number; /* its place in by_tid: another one's after an exec of not the first thread */
    struct process *process;
    /* The wait that was going on at the last look. */
    struct cell *cell;      /* NULL: none was */
    uint64_t since;         /* tiers that do not know how long it goes on: when it was first seen */
    uint64_t given;         /* of its time, to the cell */
    size_t doing;           /* what its holder does, from 1 of the process's; 0: not known */
    struct thread *held_by; /* at the end, if that is proven; NULL: not known */
    uint32_t loop;          /* then, the deadlock that it is part of; 0: none */
    bool later;             /* its stack is known, what it is for was not looked for yet */
    uint64_t count, ns;     /* the cause's, closed, at that look */
    uint64_t met;           /* switches of the last wait that a look gave to a cell, */
    struct cell *met_cell;  /* which that was, once it is over, */
    uint64_t met_given;     /* and what it got */
    /* Where spans are asked for: that of the wait with so many switches; as of the last look; and
     * the wait of that. NULL: not known. */
    struct span_row *span, *span_last;
    uint64_t span_of;
    const struct cell *span_cell;
    /* To whom the time between the last two looks was given; and waits since the last look, each
     * with its span, of which no look knows. */
    struct span_row *span_between;
    struct span_told *told;
    size_t told_count, told_room;
    struct behind_base behind;
    size_t path;                          /* its number in paths, from 1; 0: it has none yet */
    struct thread *sibling, **sibling_at; /* of its process; where the one before points to it */
};

/* A chosen wait of a thread that no look has met: it began and ended between two. */
struct early {
    struct prcb_chosen chosen;
    struct prcb_stack stack;
    bool has_stack;
    int result;
    struct object_wait wait;
    struct early *next;
};

struct why {
    struct why_source source;
    struct process *processes;
    struct table by_pid, by_tid, threads, cells; /* threads by the account's key */
    struct table members;                        /* cells, by the cell and a thread of it */
    uint64_t *fresh; /* threads that are met in a wait whose holder is known, by key */
    size_t fresh_count, fresh_room;
    uint32_t loops;
    struct early *early;
    size_t early_count;
    struct spans *spans; /* NULL: nobody asks */
    size_t span_cells;   /* cells of waits that were in a span, where these are told apart */
    struct paths *paths; /* the same */
};

/* Whether the account shows a wait that goes on. */
bool why_is_wait(const struct prcb_account *a);

/* Whether it idles by design. */
bool why_is_idle(const struct why_part *part);

/* Finds a cell of this kind, cause, stack and object, or makes one; NULL: no memory. */
/* Whether none of its threads that are known lives; false for kernel threads. */
bool why_has_ended(const struct process *process);
struct cell *why_cell(struct why *w, struct process *process, const struct why_part *wanted);

/* Adds an account's figures, the open stretch included. */
void why_add_figures(struct process *to, const struct prcb_account *a);

/* spans.c: a wait's span is read; a look is about to replace thread->last. */
void spans_met(struct why *w, struct thread *thread, const struct prcb_account *a,
               const struct prcb_stack *stack);
int spans_take(struct why *w, struct thread *thread, const struct prcb_account *a);
/* A wait that was chosen at random, and that no look met, is over. stack: NULL if it has none. */
int spans_chosen(struct why *w, struct thread *thread, const struct prcb_chosen *chosen,
                 const struct prcb_stack *stack, const struct cell *cell);
void spans_close(struct spans *s);

/* paths.c: a look is about to replace thread->last, or the account goes back. */
int paths_take(struct why *w, struct thread *thread, const struct prcb_account *a, uint64_t now);
void paths_released(struct why *w, struct thread *thread);
/* Sets the paths of processes, of which the report has those at the same places. */
int paths_make(struct why *w, struct why_report *report);
void paths_close(struct paths *p);

/* Adds to the time of the thread's wait, and of what its holder does meanwhile. */
static inline void why_give(struct thread *thread, uint64_t ns)
{
    thread->cell->part.ns += ns;
    if (thread->doing)
        thread->process->doings[thread->doing - 1].ns += ns;
}

/* A thread was met in a wait whose holder is known. */
int why_holder_is_fresh(struct why *w, const struct thread *thread);

#endif
