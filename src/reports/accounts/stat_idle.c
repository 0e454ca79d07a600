/* SPDX-License-Identifier: BSD-2-Clause */
#include "stat_idle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_STACK
#include <prcb/stack.h>
#endif

#include "array.h"
#include "now.h"
#include "reach.h"

#define TRIES   3
#define LOOK_NS 300000000ull /* all of it takes no longer, but for the last stack */
#define THREADS 4096

/* A wait that goes on, of a living thread. */
struct going_on {
    struct account_row *row;
    struct wait_cell *cell;
    uint64_t ns; /* of what was measured */
    int64_t user;
    size_t turn; /* how many of its process, or user, are looked at before it */
};

/* ---- in which order ---- */

static int by_ns(const void *left, const void *right)
{
    const struct going_on *a = left, *b = right;

    return (a->ns < b->ns) - (a->ns > b->ns);
}

static int by_process(const void *left, const void *right)
{
    const struct going_on *a = left, *b = right;

    return a->row->pid != b->row->pid ? (a->row->pid < b->row->pid ? -1 : 1) : by_ns(left, right);
}

static int by_turn(const void *left, const void *right)
{
    const struct going_on *a = left, *b = right;

    return a->turn != b->turn ? (a->turn < b->turn ? -1 : 1) : by_ns(left, right);
}

static int by_user(const void *left, const void *right)
{
    const struct going_on *a = left, *b = right;

    return a->user != b->user ? (a->user < b->user ? -1 : 1) : by_turn(left, right);
}

/* Users take turns, and processes of one user: one with thousands of threads, or of processes,
 * leaves room for others. Longer waits come first. */
static void take_turns(struct going_on *waits, size_t count)
{
    array_sort(waits, count, by_process);
    for (size_t i = 0; i < count; i++) {
        bool same = i && waits[i - 1].row->pid == waits[i].row->pid;

        waits[i].turn = same ? waits[i - 1].turn + 1 : 0;
        waits[i].user = same ? waits[i - 1].user : reach_user(waits[i].row->pid);
    }
    array_sort(waits, count, by_user);
    for (size_t i = 0, first = 0; i < count; i++) {
        first = waits[first].user == waits[i].user ? first : i;
        waits[i].turn = i - first;
    }
    array_sort(waits, count, by_turn);
}

/* ---- which waits ---- */

/* If causes are not known the wait has no cell: one is made, which adds nothing to the row's
 * sums. Its time is not known either, unless the thread has done nothing else. */
static bool make_cell(struct account_row *row)
{
    struct wait_cell *cells;

    if (row->now.present & (PRCB_HAS_WAITS | PRCB_HAS_OPEN) || row->now.cell_count ||
        !(row->now.present & PRCB_HAS_SWITCHES) || row->now.switches)
        return false;
    cells = realloc(row->now.cells, sizeof(*cells));
    if (!cells)
        return false;
    cells[0] = (struct wait_cell){.cause = PRCB_CAUSE_NONE};
    row->now.cells = cells;
    row->now.cell_count = 1;
    return true;
}

static bool find_going_on(struct account_row *row, struct going_on *ret)
{
    struct wait_cell *cells;

    if (!row->key || row->released || row->exited || row->kernel || row->running ||
        row->threads != 1)
        return false;
    if (make_cell(row)) {
        *ret = (struct going_on){.row = row, .cell = row->now.cells, .ns = row->now.wait_ns};
        return row->now.wait_ns;
    }
    cells = row->now.cells;
    for (uint32_t i = 0; i < row->now.cell_count; i++) {
        if (!cells[i].open_ns)
            continue;
        ret->row = row;
        ret->cell = &cells[i];
        ret->ns = cells[i].open_ns < cells[i].spent_ns ? cells[i].open_ns : cells[i].spent_ns;
        return true;
    }
    return false;
}

/* Finds threads that are held: those whose cause says so, or those that no cause tells of. */
static void find_held(const struct going_on *waits, size_t count, bool in_place,
                      struct held_threads *ret)
{
    for (size_t i = 0; i < count && i < THREADS; i++) {
        const struct account_row *row = waits[i].row;
        uint32_t cause = waits[i].cell->cause;

        if (held_cause(cause, NULL) || cause == PRCB_CAUSE_NONE || in_place)
            held_threads_add(ret, row->pid, row->tid, row->comm, waits[i].ns, !row->now.switches);
    }
}

#ifdef HAVE_STACK

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

/* Whether an account, read later, shows the same wait. */
static bool is_same_wait(const struct going_on *at, const struct prcb_account *account)
{
    if (account->flags & (PRCB_ACCOUNT_RUNNING | PRCB_ACCOUNT_EXITED))
        return false;
    if (at->cell->cause == PRCB_CAUSE_NONE && !(account->present & PRCB_HAS_OPEN))
        return account->wait_ns >= at->ns;
    return account->open.cause == at->cell->cause && account->open.ns >= at->cell->open_ns;
}

/* A wait has one stack from its beginning to its end: what that shows is true of all of this
 * wait, and of no other wait of the thread. */
static void look(struct prcb *session, struct prcb_stacks *stacks, const struct going_on *at,
                 struct stat_idle *ret)
{
    struct prcb_account account = {.size = sizeof(account)};
    struct prcb_stack stack = {.size = sizeof(stack)};
    struct prcb_thread *thread;
    int result = -EAGAIN;

    if (prcb_thread_open_key(session, at->row->key, &thread, NULL))
        return;
    for (int i = 0; i < TRIES && result == -EAGAIN; i++) {
        result = prcb_thread_read(thread, &account);
        if (!result && !is_same_wait(at, &account))
            break;
        if (!result)
            result = prcb_stacks_read(stacks, &account, &stack, NULL);
    }
    prcb_thread_close(thread);
    if (result == -EPERM) {
        ret->refused++;
        ret->refused_ns += at->ns;
    } else if (!result && stack.word && stack.kind == PRCB_STACK_IDLE) {
        at->cell->idle_ns = at->ns;
        count(ret->idle, stack.word, at->ns);
    } else if (!result && stack.word && stack.kind == PRCB_STACK_EITHER) {
        count(ret->either, stack.word, at->ns);
    }
}

static void look_at_all(struct prcb *session, const struct going_on *waits, size_t count,
                        struct stat_idle *ret)
{
    uint64_t until = now_ns() + LOOK_NS;
    struct prcb_stacks *stacks;

    if (!count || prcb_stacks_open(session, NULL, &stacks, NULL))
        return;
    for (size_t i = 0; i < count && i < THREADS && now_ns() < until; i++)
        look(session, stacks, &waits[i], ret);
    prcb_stacks_close(stacks);
}

#else

static void look_at_all(struct prcb *session, const struct going_on *waits, size_t count,
                        struct stat_idle *ret)
{
    (void)session;
    (void)waits;
    (void)count;
    (void)ret;
}

#endif

void stat_idle_find(struct prcb *session, struct account_rows *rows, struct stat_idle *ret)
{
    struct going_on *waits = calloc(rows->count + 1, sizeof(*waits));
    size_t count = 0;

    *ret = (struct stat_idle){0};
    for (size_t i = 0; waits && i < rows->count; i++)
        count += find_going_on(rows->rows[i], &waits[count]);
    if (count)
        take_turns(waits, count);
    find_held(waits, count, held_in_place(), &ret->held);
    look_at_all(session, waits, count, ret);
    free(waits);
}
