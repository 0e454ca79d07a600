/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What waits lead to: each look notes what threads do, a piece of time from look to look; where a
 * wait is over, its edges say who ended it, or its lock's word had said who held it. The critical
 * path goes back through these pieces.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "inside.h"
#include "path.h"

#define EDGES_MOST 256 /* threads of a look whose edges are read */
#define ROWS_MOST  128 /* of a process's paths */

struct lived {
    const struct process *process;
    pid_t pid, tid;
    char comm[16];
    size_t piece; /* the one that goes on, from 1; 0: none */
    uint64_t switches;
    struct prcb_edge *edges; /* as they were when they were read last */
    size_t edge_count;
};

struct paths {
    struct path_piece *pieces;
    size_t count, room, most;
    struct lived *threads; /* number 1 is the first */
    size_t thread_count, thread_room;
    struct table by_tid; /* numbers of the last with that tid */
    uint64_t now;        /* of the last look */
    unsigned edges_read; /* in it */
    bool recent, full;
};

int why_paths_open(struct why *w, size_t most, bool recent)
{
    w->paths = calloc(1, sizeof(*w->paths));
    if (!w->paths)
        return -ENOMEM;
    w->paths->most = most;
    w->paths->recent = recent;
    return 0;
}

void paths_close(struct paths *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->thread_count; i++)
        free(p->threads[i].edges);
    free(p->threads);
    free(p->pieces);
    table_free(&p->by_tid);
    free(p);
}

static struct lived *lived_of(struct paths *p, size_t number)
{
    return &p->threads[number - 1];
}

/* ---- who ended a wait ---- */

struct growth {
    const struct lived *thread;
    struct prcb_edge *now; /* those that there are */
    size_t count, room;
    uint32_t cause;
    uint64_t all, most; /* ns by which the rows of the cause grew, and one of them */
    struct prcb_edge who;
    bool failed;
};

static bool same_who(const struct prcb_edge *a, const struct prcb_edge *b)
{
    return a->cause == b->cause && a->by == b->by && a->vector == b->vector && a->tid == b->tid &&
           a->pid == b->pid;
}

static int grow(const struct prcb_edge *edge, void *ctx)
{
    struct growth *g = ctx;
    const struct lived *lived = g->thread;
    uint64_t before = 0;
    size_t i = 0;

    if (edge->kind != PRCB_EDGE_WOKEN_BY || edge->by == PRCB_BY_REST)
        return 0;
    while (i < lived->edge_count && !same_who(&lived->edges[i], edge))
        i++;
    if (i < lived->edge_count && lived->edges[i].ns <= edge->ns)
        before = lived->edges[i].ns; /* else it was given up, and began anew */
    if (array_add(g->now, g->count, g->room, *edge)) {
        g->failed = true;
        return -ENOMEM;
    }
    if (edge->cause != g->cause || edge->ns <= before)
        return 0;
    g->all += edge->ns - before;
    if (edge->ns - before > g->most) {
        g->most = edge->ns - before;
        g->who = *edge;
    }
    return 0;
}

/* The kernel has a bounded number of edges, and gives up old ones: so do we. Of a reading that
 * failed nothing is kept. */
static int read_edges(struct why *w, uint64_t key, struct lived *lived, struct growth *g)
{
    int result = w->source.edges(w->source.ctx, key, NULL, grow, g);

    if (result) {
        free(g->now);
        *g = (struct growth){.failed = g->failed};
        return g->failed ? -ENOMEM : 0;
    }
    free(lived->edges);
    lived->edges = g->now;
    lived->edge_count = g->count;
    return 0;
}

static int meet(struct why *w, struct thread *thread, const struct prcb_account *a)
{
    struct lived lived = {.process = thread->process, .pid = why_process_of(a), .tid = a->tid};
    struct growth before = {.cause = PRCB_CAUSE_NONE};
    struct paths *p = w->paths;

    if (thread->path)
        return 0;
    table_remove(&p->by_tid, (uint32_t)a->tid, NULL);
    if (array_add(p->threads, p->thread_count, p->thread_room, lived) ||
        table_put_number(&p->by_tid, (uint32_t)a->tid, p->thread_count))
        return -ENOMEM;
    thread->path = p->thread_count;
    before.thread = lived_of(p, thread->path);
    return p->recent && w->source.edges ? read_edges(w, a->key, lived_of(p, thread->path), &before)
                                        : 0;
}

/* Sets who ended the wait that was going on at the look before: who ended at least so much of what
 * the cause grew by since the edges were read last, and more than all others. */
static int find_waker(struct why *w, struct thread *thread, struct path_piece *piece)
{
    struct paths *p = w->paths;
    struct growth g = {.thread = lived_of(p, thread->path), .cause = piece->cause};
    size_t waker;
    int result;

    if (!w->source.edges || p->edges_read++ >= EDGES_MOST)
        return 0;
    result = read_edges(w, thread->last.key, lived_of(p, thread->path), &g);
    if (result)
        return result;
    if (g.who.by != PRCB_BY_THREAD || g.most < thread->last.open.ns || g.most <= g.all / 2)
        return 0;
    waker = table_find_number(&p->by_tid, (uint32_t)g.who.tid);
    if (waker && lived_of(p, waker)->pid == g.who.pid)
        piece->waker = waker - 1;
    return 0;
}

/* Sets the thread that holds what the wait is for, if it does not run in another process. */
static void find_holder(const struct why *w, struct thread *thread, struct path_piece *piece)
{
    uint32_t holder = thread->cell->part.wait.holder;
    pid_t tid = holder && w->source.holder ? w->source.holder(w->source.ctx, holder) : 0;
    size_t number = tid > 0 ? table_find_number(&w->paths->by_tid, (uint32_t)tid) : 0;

    if (number && number != thread->path)
        piece->waker = number - 1;
}

/* ---- pieces ---- */

static enum path_kind kind_of(const struct prcb_account *a)
{
    const struct prcb_cause_info *info = prcb_cause_info(a->open.cause);

    if (a->flags & (PRCB_ACCOUNT_EXITED | PRCB_ACCOUNT_ORPHAN) || !(a->present & PRCB_HAS_OPEN))
        return PATH_UNKNOWN;
    if (a->flags & PRCB_ACCOUNT_RUNNING)
        return PATH_RUNS;
    return info && info->kind == PRCB_KIND_READY ? PATH_READY
           : why_is_wait(a)                      ? PATH_WAITS
                                                 : PATH_UNKNOWN;
}

static void end_piece(struct paths *p, struct lived *lived, uint64_t now)
{
    struct path_piece *piece = &p->pieces[lived->piece - 1];

    piece->end_ns = piece->woken_ns = now;
    lived->piece = 0;
}

/* A piece as of now: one that goes on has no end yet. */
static struct path_piece piece_at(const struct paths *p, size_t i)
{
    struct path_piece piece = p->pieces[i];

    if (!piece.end_ns)
        piece.end_ns = piece.woken_ns = p->now;
    return piece;
}

/* Forgets the older half of the pieces, but for those that go on. */
static void forget(struct paths *p)
{
    size_t kept = 0;

    for (size_t i = 0; i < p->count; i++) {
        if (i < p->count / 2 && p->pieces[i].end_ns)
            continue;
        if (!p->pieces[i].end_ns)
            lived_of(p, p->pieces[i].thread + 1)->piece = kept + 1;
        p->pieces[kept++] = p->pieces[i];
    }
    p->count = kept;
}

static int begin_piece(struct paths *p, size_t number, enum path_kind kind,
                       const struct prcb_account *a)
{
    struct lived *lived = lived_of(p, number);
    const struct path_piece piece = {
        .start_ns = p->now,
        .thread = number - 1,
        .waker = PATH_NONE,
        .by = PATH_NONE,
        .cpu = PATH_NO_CPU,
        .kind = (uint8_t)kind,
        .cause = (uint8_t)a->open.cause,
    };

    if (p->count >= p->most && p->recent)
        forget(p);
    p->full |= p->count >= p->most;
    if (kind == PATH_UNKNOWN || p->full)
        return 0;
    if (array_add(p->pieces, p->count, p->room, piece))
        return -ENOMEM;
    lived->piece = p->count;
    lived->switches = a->switches;
    return 0;
}

int paths_take(struct why *w, struct thread *thread, const struct prcb_account *a, uint64_t now)
{
    enum path_kind kind = kind_of(a);
    struct paths *p = w->paths;
    struct path_piece *piece;
    struct lived *lived;
    int result;

    _Static_assert(PRCB_CAUSE_MAX <= UINT8_MAX, "a cause fits into a piece");
    if (!p || p->full)
        return 0;
    if (now != p->now)
        p->edges_read = 0;
    p->now = now;
    result = meet(w, thread, a);
    if (result)
        return result;
    lived = lived_of(p, thread->path);
    memcpy(lived->comm, a->comm, sizeof(lived->comm));
    piece = lived->piece ? &p->pieces[lived->piece - 1] : NULL;
    if (piece && !(piece->kind == kind && (kind == PATH_RUNS || lived->switches == a->switches))) {
        if (piece->kind == PATH_WAITS && piece->waker == PATH_NONE)
            result = find_waker(w, thread, piece);
        end_piece(p, lived, now);
    }
    if (!result && !lived->piece)
        result = begin_piece(p, thread->path, kind, a);
    piece = lived->piece ? &p->pieces[lived->piece - 1] : NULL;
    if (!result && piece && kind == PATH_WAITS && thread->cell) {
        piece->what = thread->cell;
        find_holder(w, thread, piece);
    }
    return result;
}

void paths_released(struct why *w, struct thread *thread)
{
    struct paths *p = w->paths;

    if (p && thread->path && lived_of(p, thread->path)->piece)
        end_piece(p, lived_of(p, thread->path), p->now);
}

/* ---- the report ---- */

struct making {
    struct paths *p;
    const struct path *path;
    struct why_process *to;
    struct table met; /* a row and a thread of it */
    double (
        *seen)[PRCB_CAUSE_MAX]; /* of each process: time of its pieces of a cause; NONE: ready */
    double weight;              /* what an ns of the piece stands for */
};

static struct why_part part_of(const struct path_step *step)
{
    const struct cell *cell = step->piece ? step->piece->what : NULL;

    return cell ? cell->part
                : (struct why_part){.kind = WHY_SHORT,
                                    .cause = step->piece ? step->piece->cause : PRCB_CAUSE_NONE};
}

static enum why_state state_of(const struct path_step *step)
{
    return step->kind == PATH_RUNS ? WHY_RUNS : step->kind == PATH_READY ? WHY_READY : WHY_WAITS;
}

static bool is_row(const struct why_path *row, const struct why_path *of)
{
    const struct why_part *a = &row->part, *b = &of->part;

    return row->seen == of->seen && row->state == of->state &&
           !strncmp(row->comm, of->comm, sizeof(row->comm)) &&
           (row->state != WHY_WAITS ||
            (a->kind == b->kind && a->cause == b->cause && a->stack.id == b->stack.id &&
             a->wait.object == b->wait.object));
}

/* A wait of its own that may be idling, as far as is known, leads to nobody. */
static bool is_left_out(const struct path_step *step, const struct why_part *part)
{
    return step->kind == PATH_WAITS &&
           (why_is_idle(part) ||
            (!step->depth && (part->kind != WHY_STACK || part->stack.kind == PRCB_STACK_EITHER)));
}

static bool leads(const struct path_piece *piece)
{
    const struct cell *cell = piece->what;

    return piece->kind != PATH_RUNS && !(cell && why_is_idle(&cell->part));
}

static const struct process *process_at(const struct paths *p, const struct path_piece *piece)
{
    const struct process *process = p->threads[piece->thread].process;

    while (process->into)
        process = process->into;
    return process;
}

static double *seen_of(const struct making *m, const struct path_piece *piece)
{
    size_t number = process_at(m->p, piece)->number;

    return &m->seen[number][piece->kind == PATH_WAITS ? piece->cause : PRCB_CAUSE_NONE];
}

/* Looks divide the time that the accounts have of a cause. */
static double weight_of(const struct making *m, const struct path_piece *piece)
{
    uint64_t ns = piece->kind == PATH_WAITS ? 0 : m->to->ready_ns;

    for (size_t i = 0; i < m->to->cause_count && piece->kind == PATH_WAITS; i++) {
        if (m->to->causes[i].cause == piece->cause)
            ns = m->to->causes[i].ns - m->to->causes[i].idle_ns;
    }
    return (double)ns / *seen_of(m, piece);
}

static int add_step(struct making *m, const struct path_step *step)
{
    const struct lived *lived = lived_of(m->p, step->thread + 1);
    struct why_path row = {.seen = step->kind != PATH_UNKNOWN,
                           .state = state_of(step),
                           .pid = lived->pid,
                           .tid = lived->tid,
                           .part = part_of(step)};
    uint64_t ns = (uint64_t)(m->weight * (double)(step->end_ns - step->start_ns)), place;
    struct why_process *to = m->to;
    size_t i = 0;

    if (is_left_out(step, &row.part) || !ns)
        return 0;
    memcpy(row.comm, lived->comm, sizeof(row.comm));
    while (i < to->path_count && !is_row(&to->paths[i], &row))
        i++;
    if (i == ROWS_MOST)
        return 0;
    if (i == to->path_count && array_append(to->paths, to->path_count, row))
        return -ENOMEM;
    place = table_mix((uintptr_t)to, (uint64_t)i << 32 | step->thread);
    if (!table_find_number(&m->met, place)) {
        to->paths[i].threads++;
        if (table_put_number(&m->met, place, 1))
            return -ENOMEM;
    }
    to->paths[i].ns += ns;
    to->paths[i].others_ns += step->depth ? ns : 0;
    to->path_ns += ns;
    return 0;
}

static int add_piece(struct making *m, const struct path_piece *piece)
{
    struct path_step *steps = NULL;
    size_t count;
    int result;

    if (!leads(piece) || m->to->aside)
        return 0;
    m->weight = weight_of(m, piece);
    result = path_find(m->path, piece->thread, piece->start_ns, piece->end_ns, &steps, &count);
    for (size_t i = 0; i < count && !result; i++)
        result = add_step(m, &steps[i]);
    free(steps);
    return result;
}

static int by_time(const void *left, const void *right)
{
    const struct why_path *a = left, *b = right;

    return a->ns != b->ns ? (a->ns < b->ns ? 1 : -1) : (a->tid > b->tid) - (a->tid < b->tid);
}

int paths_make(struct why *w, struct why_report *report)
{
    struct paths *p = w->paths;
    struct making m = {.p = p};
    struct path_piece *pieces;
    struct path *path = NULL;
    int result;

    if (!p)
        return 0;
    pieces = malloc((p->count + 1) * sizeof(*pieces));
    if (!pieces)
        return -ENOMEM;
    for (size_t i = 0; i < p->count; i++)
        pieces[i] = piece_at(p, i);
    result = path_open(pieces, p->count, &path);
    m.path = path;
    m.seen = calloc(report->count + 1, sizeof(*m.seen));
    if (!m.seen)
        result = -ENOMEM;
    for (size_t i = 0; i < p->count && !result; i++) {
        const struct path_piece piece = piece_at(p, i);

        if (leads(&piece))
            *seen_of(&m, &piece) += (double)(piece.end_ns - piece.start_ns);
    }
    for (size_t i = 0; i < p->count && !result; i++) {
        const struct path_piece piece = piece_at(p, i);

        m.to = &report->processes[process_at(p, &piece)->number];
        result = add_piece(&m, &piece);
    }
    for (size_t i = 0; i < report->count; i++)
        array_sort(report->processes[i].paths, report->processes[i].path_count, by_time);
    table_free(&m.met);
    free(m.seen);
    path_close(path);
    return result;
}
