/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Fills the panes of `prcb top` for a row: where its threads wait, and by whom they were held
 * up.
 */
#include "now.h"
#include "top_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_STACK
#include "top_where.h"
#endif
#include "cgroup_names.h"
#include "whom_words.h"

#define LONG_NS   (20 * 1000000ull) /* waits of such length are worth a look at their stack */
#define SLEEPERS  32                /* how many are asked about at a time */
#define WHOM_MOST 256               /* threads of a row whose edges are summed */

static uint32_t find_thread(const struct top_model *m, pid_t tid)
{
    for (uint32_t i = 0; tid && i < m->thread_count; i++) {
        if (m->threads[i].key && m->threads[i].tid == tid && !m->threads[i].end_ns)
            return i;
    }
    return TOP_NONE;
}

/* ---- stacks -------------------------------------------------------------------------------- */

#ifdef HAVE_STACK
static void where_pieces(void *ctx, const struct top_row *row, uint32_t cause,
                         struct top_pieces *ret)
{
    top_where_pieces(((struct top_run *)ctx)->where, cause, ret);
}

/* Asks only about waits that have lasted for an interval: others are over before anybody reads
 * this. */
static void where_wait(void *ctx, const struct top_row *row, char *ret, size_t size)
{
    struct top_run *run = ctx;

    *ret = '\0';
    if (run->ui.mode == TOP_LIVE && row->now.state == TOP_WAIT && row->now.since_ns &&
        !row->kernel && row->now.since_ns + LONG_NS <= now_ns())
        top_where_wait(run->where, row->id,
                       row->now.since_ns - run->model.threads[row->thread].start_ns, ret, size);
}

/* Asks about threads that slept through the interval in a wait that may be for a lock, and is
 * then no idleness. */
void top_run_ask_sleepers(struct top_run *run)
{
    struct top_thread *thread;
    uint32_t at = 0;
    bool blocked;

    for (int open = 0; run->where && run->ui.mode == TOP_LIVE && open < SLEEPERS &&
                       (thread = top_model_next_unknown(&run->model, &at));) {
        if (!top_where_blocked(run->where, thread->key, thread->shown.since_ns - thread->start_ns,
                               &blocked)) {
            open++;
            continue;
        }
        thread->asked_ns = thread->shown.since_ns;
        thread->blocked_ns = blocked ? thread->shown.since_ns : 0;
    }
}

static bool is_subject(const struct top_ui *ui, uint32_t index)
{
    for (uint32_t i = 0; i < ui->subject_count; i++) {
        if (ui->subject_threads[i] == index)
            return true;
    }
    return false;
}

/* Adds threads of the same process, for which those of the row may wait. */
static uint32_t add_others(const struct top_run *run, uint64_t *keys, uint32_t count)
{
    const struct top_ui *ui = &run->ui;

    if (ui->screen != TOP_PANES || ui->subject_group != TOP_THREADS || !ui->subject_count)
        return count;
    for (uint32_t i = 0; i < run->model.thread_count && count < TOP_WHERE_MOST; i++) {
        const struct top_thread *thread = &run->model.threads[i];

        if (thread->key && !thread->end_ns && !thread->kernel && !is_subject(ui, i) &&
            thread->process == run->model.threads[ui->subject_threads[0]].process)
            keys[count++] = thread->key;
    }
    return count;
}

/* Watches the threads of the row that is open, as long as it is. */
void top_run_watch(struct top_run *run)
{
    const struct top_ui *ui = &run->ui;
    uint64_t keys[TOP_WHERE_MOST];
    uint32_t count = 0, all;

    if (!run->where)
        return;
    for (uint32_t i = 0; ui->screen == TOP_PANES && i < ui->subject_count && count < TOP_WHERE_MOST;
         i++) {
        const struct top_thread *thread = &run->model.threads[ui->subject_threads[i]];

        if (!thread->end_ns)
            keys[count++] = thread->key;
    }
    all = add_others(run, keys, count);
    top_where_watch(run->where, keys, all, all - count);
}

static void path_pieces(void *ctx, const struct top_row *row, struct top_pieces *ret)
{
    struct top_run *run = ctx;

    top_where_path(run->where, ret);
    for (uint32_t i = 0; i < ret->count; i++)
        ret->pieces[i].thread = find_thread(&run->model, ret->pieces[i].tid);
}

void top_run_open_stacks(struct top_run *run)
{
    struct prcb_error err;

    if (top_where_open(run->session, &run->where, &err)) {
        run->where = NULL;
        return;
    }
    run->ui.details.where = where_pieces;
    run->ui.details.wait = where_wait;
    run->ui.details.path = run->perf ? NULL : path_pieces;
    run->ui.details.ctx = run;
}

bool top_run_has_news(struct top_run *run)
{
    return run->where && (run->ui.screen == TOP_PANES || top_where_news(run->where));
}

bool top_run_close_stacks(struct top_run *run)
{
    return top_where_close(run->where);
}
#else
void top_run_watch(struct top_run *run)
{
}
void top_run_ask_sleepers(struct top_run *run)
{
}
void top_run_open_stacks(struct top_run *run)
{
}
bool top_run_has_news(struct top_run *run)
{
    return false;
}
bool top_run_close_stacks(struct top_run *run)
{
    return true;
}
#endif

/* ---- by whom --------------------------------------------------------------------------------- */

/* Adds a piece for an edge. names: those of cgroups, if it names one. */
static void add_edge(const struct top_model *m, const struct top_row *row,
                     const struct prcb_edge *edge, struct cgroup_names *names,
                     struct top_pieces *to)
{
    bool known = edge->by != PRCB_BY_REST && edge->by != PRCB_BY_UNKNOWN;
    struct top_piece piece = {.ns = edge->ns, .count = edge->count, .thread = TOP_NONE};

    to->whole_ns += edge->ns;
    to->known_ns += known ? edge->ns : 0;
    whom_cgroup_name(edge, names, UINT64_MAX, piece.text, sizeof(piece.text));
    if (row->name && !strcmp(piece.text, row->name))
        snprintf(piece.text, sizeof(piece.text), "itself");
    if (edge->by == PRCB_BY_THREAD)
        piece.thread = find_thread(m, edge->tid);
    top_pieces_add(to, &piece);
}

/* Of a cgroup's ready time: the cgroups that had the processors; else threads. */
static int find_rows(struct top_run *run, const struct whom *whom, uint32_t cause,
                     struct prcb_edge **ret, size_t *ret_count)
{
    bool ready = cause == TOP_ROW_READY;
    struct prcb_error err;

    if (ready && run->ui.choice.group == TOP_CGROUPS &&
        (run->cgroups || !cgroup_names_open(NULL, &run->cgroups, &err)) &&
        !whom_meanwhile(whom, WHOM_ALL, ret, ret_count)) {
        cgroup_names_refresh(run->cgroups);
        if (*ret_count)
            return 0;
        free(*ret);
    }
    return whom_rows(whom, WHOM_ALL, ready ? PRCB_CAUSE_NONE : cause, ret, ret_count);
}

/* The pieces are those of the row's threads, since they are profiled. */
void top_run_whom_pieces(void *ctx, const struct top_row *row, uint32_t cause,
                         struct top_pieces *ret)
{
    struct top_run *run = ctx;
    struct prcb_edge *edges = NULL;
    struct whom *whom;
    size_t count = 0;

    if (whom_open(&whom))
        return;
    for (uint32_t i = 0; i < run->ui.subject_count && i < WHOM_MOST; i++)
        whom_take(whom, run->session, run->model.threads[run->ui.subject_threads[i]].key, NULL);
    if (!find_rows(run, whom, cause, &edges, &count)) {
        for (size_t i = 0; i < count; i++)
            add_edge(&run->model, row, &edges[i], run->cgroups, ret);
        free(edges);
    }
    whom_close(whom);
    if (!ret->count)
        snprintf(ret->reason, sizeof(ret->reason), "none of these waits has ended yet");
}
