/* SPDX-License-Identifier: BSD-2-Clause */
#include "stat_idle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef HAVE_STACK

#include <prcb/stack.h>

#include "now.h"

#define LOOKS    4
#define TRIES    100
#define PAUSE_NS 15000000
#define LOOK_NS  300000000ull /* all of it takes no longer, but for the last stack */
#define THREADS  4096

/* The wait that goes on, of a row of one living thread; NULL: there is none. Where causes are not
 * known one is made, of all its waits, which adds nothing to the row's sums. */
static struct wait_cell *open_cell(struct account_row *row)
{
    struct wait_cell *cells = row->now.cells;

    if (!row->key || row->released || row->exited || row->kernel || row->running ||
        row->threads != 1)
        return NULL;
    for (uint32_t i = 0; i < row->now.cell_count; i++) {
        if (cells[i].open_ns)
            return &cells[i];
    }
    if (row->now.present & PRCB_HAS_WAITS || row->now.cell_count)
        return NULL;
    cells = realloc(cells, sizeof(*cells));
    if (!cells)
        return NULL;
    cells[0] = (struct wait_cell){.cause = PRCB_CAUSE_NONE};
    row->now.cells = cells;
    row->now.cell_count = 1;
    return cells;
}

static void count(struct stat_idle_word *words, const char *word, uint64_t ns)
{
    size_t i = 0;

    while (i < STAT_IDLE_WORDS && words[i].word && strcmp(words[i].word, word) != 0)
        i++;
    if (i == STAT_IDLE_WORDS)
        return;
    words[i].word = word;
    words[i].threads++;
    words[i].ns += ns;
}

/* What the looks at one thread found it in, of the cause that it waited for at the end. */
struct looked {
    struct account_row *row;
    struct wait_cell *cell;
    uint64_t ns;                 /* of its waits for that */
    unsigned seen, idle, either; /* looks with a stack, and what these showed */
    const char *idle_word, *either_word;
    bool refused;
};

static int by_waits(const void *left, const void *right)
{
    const struct looked *a = left, *b = right;

    return (a->ns < b->ns) - (a->ns > b->ns);
}

static void look(struct prcb *session, struct prcb_stacks *stacks, struct looked *at)
{
    struct prcb_account account = {.size = sizeof(account)};
    struct prcb_stack stack = {.size = sizeof(stack)};
    struct prcb_thread *thread;
    int result;

    if (at->refused || prcb_thread_open_key(session, at->row->key, &thread, NULL))
        return;
    result = prcb_thread_read(thread, &account);
    prcb_thread_close(thread);
    if (result || account.flags & PRCB_ACCOUNT_RUNNING || account.open.cause != at->cell->cause)
        return;
    result = prcb_stacks_read(stacks, &account, &stack, NULL);
    at->refused = result == -EPERM;
    if (result)
        return;
    at->seen++;
    if (stack.word && stack.kind == PRCB_STACK_IDLE) {
        at->idle++;
        at->idle_word = stack.word;
    } else if (stack.word && stack.kind == PRCB_STACK_EITHER) {
        at->either++;
        at->either_word = stack.word;
    }
}

static uint64_t share_of(uint64_t ns, unsigned part, unsigned whole)
{
    return part == whole ? ns : ns / whole * part;
}

/* A thread is found in one way of waiting as often as it spends its time so: what the looks say
 * of one is a guess, of a pool it is close. */
static void conclude(const struct looked *at, struct stat_idle *ret)
{
    uint64_t ns = at->ns;

    if (at->refused) {
        ret->refused++;
        ret->refused_ns += ns;
    }
    if (at->idle) {
        at->cell->idle_ns = share_of(ns, at->idle, at->seen);
        count(ret->idle, at->idle_word, at->cell->idle_ns);
    }
    if (at->either)
        count(ret->either, at->either_word, share_of(ns, at->either, at->seen));
}

static void look_at_all(struct prcb *session, struct prcb_stacks *stacks, struct looked *looked,
                        size_t waiting)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    uint64_t until = now_ns() + LOOK_NS;

    for (int i = 0; i < LOOKS && now_ns() < until; i++) {
        if (i)
            nanosleep(&pause, NULL);
        for (size_t k = 0; k < waiting && k < THREADS && now_ns() < until; k++)
            look(session, stacks, &looked[k]);
    }
    /* Waits that were over too soon each time. */
    for (size_t k = 0; k < waiting && k < THREADS; k++) {
        for (int i = 0; i < TRIES && !looked[k].seen && now_ns() < until; i++)
            look(session, stacks, &looked[k]);
    }
}

void stat_idle_find(struct prcb *session, struct account_rows *rows, struct stat_idle *ret)
{
    struct looked *looked = calloc(rows->count + 1, sizeof(*looked));
    struct prcb_stacks *stacks;
    size_t waiting = 0;

    *ret = (struct stat_idle){0};
    for (size_t i = 0; looked && i < rows->count; i++) {
        struct wait_cell *cell = open_cell(rows->rows[i]);

        if (cell)
            looked[waiting++] = (struct looked){
                .row = rows->rows[i],
                .cell = cell,
                .ns = cell->cause == PRCB_CAUSE_NONE ? rows->rows[i]->now.wait_ns : cell->spent_ns,
            };
    }
    if (waiting && !prcb_stacks_open(session, NULL, &stacks, NULL)) {
        qsort(looked, waiting, sizeof(*looked), by_waits);
        look_at_all(session, stacks, looked, waiting);
        for (size_t i = 0; i < waiting; i++)
            conclude(&looked[i], ret);
        prcb_stacks_close(stacks);
    }
    free(looked);
}

#else

void stat_idle_find(struct prcb *session, struct account_rows *rows, struct stat_idle *ret)
{
    (void)session;
    (void)rows;
    *ret = (struct stat_idle){0};
}

#endif
