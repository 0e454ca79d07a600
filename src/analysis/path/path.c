/* SPDX-License-Identifier: BSD-2-Clause */
#include "path.h"

#include <errno.h>
#include <stdlib.h>

#include "array.h"

#define DEPTH_MAX 64 /* waits behind each other that are followed */

struct path {
    struct path_piece *pieces; /* by thread, then by time */
    size_t *runs;              /* places of those that ran somewhere, by processor, then by time */
    size_t count, run_count;
};

/* A thread that is followed, back to a moment. */
struct frame {
    size_t thread;
    uint64_t bound;
    const struct path_piece *wait; /* that led here; NULL: it is the path's own thread */
};

struct finding {
    const struct path *path;
    struct path_step *steps; /* the last one first */
    size_t count;
    struct frame frames[DEPTH_MAX];
    unsigned depth;
    bool failed;
};

/* ---- all pieces ----------------------------------------------------------------------------- */

static int by_thread(const void *left, const void *right)
{
    const struct path_piece *a = left, *b = right;

    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

/* Orders places in the pieces. */
static int by_processor(const void *left, const void *right, void *pieces)
{
    const struct path_piece *a = (const struct path_piece *)pieces + *(const size_t *)left;
    const struct path_piece *b = (const struct path_piece *)pieces + *(const size_t *)right;

    if (a->cpu != b->cpu)
        return a->cpu < b->cpu ? -1 : 1;
    return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

static bool runs_somewhere(const struct path_piece *piece)
{
    return piece->kind == PATH_RUNS && piece->cpu != PATH_NO_CPU;
}

int path_open(struct path_piece *pieces, size_t count, struct path **ret)
{
    struct path *path = calloc(1, sizeof(*path));
    size_t runs = 0;

    for (size_t i = 0; i < count; i++)
        runs += runs_somewhere(&pieces[i]);
    if (path)
        path->runs = malloc((runs + 1) * sizeof(*path->runs));
    if (!path || !path->runs) {
        free(path);
        free(pieces);
        return -ENOMEM;
    }
    path->pieces = pieces;
    path->count = count;
    array_sort(path->pieces, path->count, by_thread);
    for (size_t i = 0; i < count; i++) {
        if (runs_somewhere(&pieces[i]))
            path->runs[path->run_count++] = i;
    }
    array_sort_r(path->runs, path->run_count, by_processor, path->pieces);
    *ret = path;
    return 0;
}

void path_close(struct path *path)
{
    if (!path)
        return;
    free(path->pieces);
    free(path->runs);
    free(path);
}

/* Finds the first piece of a thread that ends at a moment or later. */
static size_t first_of(const struct path *path, size_t thread, uint64_t end_ns)
{
    const struct path_piece at = {.thread = thread, .end_ns = end_ns};

    return array_front(i, path->count, by_thread(&path->pieces[i], &at) < 0);
}

static const struct path_piece *run_at(const struct path *path, size_t at)
{
    return &path->pieces[path->runs[at]];
}

/* The same of those that ran on a processor: its place in runs. */
static size_t first_run(const struct path *path, uint32_t cpu, uint64_t end_ns)
{
    return array_front(i, path->run_count,
                       run_at(path, i)->cpu < cpu ||
                           (run_at(path, i)->cpu == cpu && run_at(path, i)->end_ns < end_ns));
}

/* Finds what a thread did just before a moment; NULL: not known, and *ret_before is the last
 * moment before it at which that is known. */
static const struct path_piece *piece_before(const struct path *path, size_t thread,
                                             uint64_t moment, uint64_t *ret_before)
{
    size_t at = first_of(path, thread, moment);

    if (at < path->count && path->pieces[at].thread == thread && path->pieces[at].start_ns < moment)
        return &path->pieces[at];
    *ret_before = at && path->pieces[at - 1].thread == thread ? path->pieces[at - 1].end_ns : 0;
    return NULL;
}

/* Finds who had the processor that the thread got at the end of its ready time, for the most
 * part of that time. */
static size_t who_ran(const struct path *path, size_t thread, uint64_t start, uint64_t end)
{
    size_t at = first_of(path, thread, end + 1), best = PATH_NONE;
    uint64_t most = 0;
    uint32_t cpu;

    if (at == path->count || path->pieces[at].thread != thread ||
        !runs_somewhere(&path->pieces[at]))
        return PATH_NONE;
    cpu = path->pieces[at].cpu;
    for (at = first_run(path, cpu, start + 1);
         at < path->run_count && run_at(path, at)->cpu == cpu && run_at(path, at)->start_ns < end;
         at++) {
        const struct path_piece *run = run_at(path, at);
        uint64_t from = run->start_ns > start ? run->start_ns : start;
        uint64_t to = run->end_ns < end ? run->end_ns : end;

        if (run->thread != thread && to > from && to - from > most) {
            most = to - from;
            best = run->thread;
        }
    }
    return best;
}

/* ---- the path ------------------------------------------------------------------------------- */

static void add(struct finding *f, const struct path_step *step)
{
    if (step->end_ns > step->start_ns && !f->failed)
        f->failed = array_append(f->steps, f->count, *step) != 0;
}

/* Goes one step back from a moment that is after the frame's bound; returns the moment at which
 * the step begins. */
static uint64_t step_back(struct finding *f, uint64_t moment)
{
    const struct frame frame = f->frames[f->depth];
    uint64_t before = 0, start, woken;
    const struct path_piece *piece = piece_before(f->path, frame.thread, moment, &before);
    struct path_step step = {
        .end_ns = moment,
        .kind = piece ? (enum path_kind)piece->kind : PATH_UNKNOWN,
        .thread = frame.thread,
        .other = PATH_NONE,
        .piece = piece,
        .depth = f->depth,
    };

    start = piece ? piece->start_ns : before;
    step.start_ns = start = start > frame.bound ? start : frame.bound;
    if (step.kind == PATH_WAITS && piece->idle && frame.wait) {
        step.piece = frame.wait;
        step.thread = frame.wait->thread;
        step.depth--;
        add(f, &step);
        return start;
    }
    if (step.kind == PATH_READY)
        step.other = who_ran(f->path, frame.thread, start, moment);
    if (step.kind != PATH_WAITS) {
        add(f, &step);
        return start;
    }
    woken = piece->woken_ns > start ? piece->woken_ns : start;
    /* The path goes from the wait to its waker only if that woke the thread before this moment. */
    if (piece->waker == PATH_NONE || piece->waker == frame.thread || woken > moment ||
        f->depth + 1 == DEPTH_MAX) {
        add(f, &step);
        return start;
    }
    /* After the waking the thread is on its way to a processor. */
    step.start_ns = woken;
    step.kind = PATH_READY;
    add(f, &step);
    if (woken > start)
        f->frames[++f->depth] = (struct frame){piece->waker, start, piece};
    return woken;
}

int path_find(const struct path *path, size_t thread, uint64_t from_ns, uint64_t to_ns,
              struct path_step **ret, size_t *ret_count)
{
    struct finding f = {.path = path, .frames[0] = {thread, from_ns, NULL}};

    for (uint64_t moment = to_ns; moment > from_ns && !f.failed;) {
        moment = step_back(&f, moment);
        while (f.depth && moment <= f.frames[f.depth].bound)
            f.depth--;
    }
    if (f.failed) {
        free(f.steps);
        return -ENOMEM;
    }
    for (size_t i = 0; i < f.count / 2; i++) {
        struct path_step step = f.steps[i];

        f.steps[i] = f.steps[f.count - 1 - i];
        f.steps[f.count - 1 - i] = step;
    }
    *ret = f.steps;
    *ret_count = f.count;
    return 0;
}
