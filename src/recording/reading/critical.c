/* SPDX-License-Identifier: BSD-2-Clause */
#include "critical.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "error.h"
#include "stretches.h"

#define DEPTH_MAX 64 /* waits behind each other that are followed */
#define CAUSES    64 /* different ones; more of them have no name */

/* A stretch with its times, its thread and its processor. */
struct piece {
    uint64_t start_ns, end_ns, woken_ns;
    size_t thread, waker;
    uint32_t cpu;
    uint8_t kind, cause; /* cause: 0: not known */
};

/* A thread that is followed, back to a moment. */
struct frame {
    size_t thread;
    uint64_t bound;
};

struct finding {
    struct critical *critical;
    struct piece *pieces; /* by thread, then by time */
    struct piece *runs;   /* those that ran somewhere, by processor, then by time */
    size_t count, run_count;
    char (*causes)[24];
    struct frame frames[DEPTH_MAX];
    unsigned depth;
    bool failed;
};

/* ---- all stretches -------------------------------------------------------------------------- */

static uint8_t cause_of(struct finding *f, const char *cause)
{
    uint8_t i = 1;

    if (!*cause)
        return 0;
    while (i < CAUSES && *f->causes[i] && strcmp(f->causes[i], cause) != 0)
        i++;
    if (i == CAUSES)
        return 0;
    snprintf(f->causes[i], sizeof(f->causes[i]), "%s", cause);
    return i;
}

static int keep(const struct stretch *stretch, void *ctx)
{
    struct finding *f = ctx;

    f->run_count += stretch->kind == STRETCH_RUNNING && stretch->cpu != STRETCH_NO_CPU;
    return array_append(f->pieces, f->count,
                        (struct piece){
                            .start_ns = stretch->start_ns,
                            .end_ns = stretch->end_ns,
                            .woken_ns = stretch->woken_ns,
                            .thread = stretch->thread,
                            .waker = stretch->waker,
                            .cpu = stretch->cpu,
                            .kind = (uint8_t)stretch->kind,
                            .cause = cause_of(f, stretch->cause),
                        });
}

static int by_thread(const void *left, const void *right)
{
    const struct piece *a = left, *b = right;

    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

static int by_processor(const void *left, const void *right)
{
    const struct piece *a = left, *b = right;

    if (a->cpu != b->cpu)
        return a->cpu < b->cpu ? -1 : 1;
    return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

static int sort(struct finding *f)
{
    size_t count = 0;

    f->runs = malloc((f->run_count + 1) * sizeof(*f->runs));
    if (!f->runs)
        return -ENOMEM;
    for (size_t i = 0; i < f->count; i++) {
        if (f->pieces[i].kind == STRETCH_RUNNING && f->pieces[i].cpu != STRETCH_NO_CPU)
            f->runs[count++] = f->pieces[i];
    }
    array_sort(f->pieces, f->count, by_thread);
    array_sort(f->runs, count, by_processor);
    return 0;
}

/* Finds the first piece that ends at a moment or later, among all that a comparison puts in
 * order. */
static size_t first_from(const struct piece *pieces, size_t count, const struct piece *at,
                         int (*compare)(const void *, const void *))
{
    return array_front(i, count, compare(&pieces[i], at) < 0);
}

/* Finds what a thread did just before a moment; NULL: not known, and *ret_before is the last
 * moment before it at which that is known. */
static const struct piece *piece_before(const struct finding *f, size_t thread, uint64_t moment,
                                        uint64_t *ret_before)
{
    const struct piece key = {.thread = thread, .end_ns = moment};
    size_t at = first_from(f->pieces, f->count, &key, by_thread);

    if (at < f->count && f->pieces[at].thread == thread && f->pieces[at].start_ns < moment)
        return &f->pieces[at];
    *ret_before = at && f->pieces[at - 1].thread == thread ? f->pieces[at - 1].end_ns : 0;
    return NULL;
}

/* Finds who had the processor that the thread got at the end of its ready time, for the most
 * part of that time. */
static size_t who_ran(const struct finding *f, size_t thread, uint64_t start, uint64_t end)
{
    const struct piece after = {.thread = thread, .end_ns = end + 1};
    size_t at = first_from(f->pieces, f->count, &after, by_thread), best = SIZE_MAX;
    struct piece key = {.end_ns = start + 1};
    uint64_t most = 0;

    if (at == f->count || f->pieces[at].thread != thread || f->pieces[at].cpu == STRETCH_NO_CPU ||
        f->pieces[at].kind != STRETCH_RUNNING)
        return SIZE_MAX;
    key.cpu = f->pieces[at].cpu;
    for (at = first_from(f->runs, f->run_count, &key, by_processor);
         at < f->run_count && f->runs[at].cpu == key.cpu && f->runs[at].start_ns < end; at++) {
        uint64_t from = f->runs[at].start_ns > start ? f->runs[at].start_ns : start;
        uint64_t to = f->runs[at].end_ns < end ? f->runs[at].end_ns : end;

        if (f->runs[at].thread != thread && to > from && to - from > most) {
            most = to - from;
            best = f->runs[at].thread;
        }
    }
    return best;
}

/* ---- the path ------------------------------------------------------------------------------- */

static void add(struct finding *f, const struct critical_step *step)
{
    struct critical *c = f->critical;

    if (step->end_ns > step->start_ns && !f->failed)
        f->failed = array_append(c->steps, c->count, *step) != 0;
}

/* Goes one step back from a moment that is after the frame's bound; returns the moment at which
 * the step begins. */
static uint64_t step_back(struct finding *f, uint64_t moment)
{
    const struct frame frame = f->frames[f->depth];
    uint64_t before = 0, start, woken;
    const struct piece *piece = piece_before(f, frame.thread, moment, &before);
    struct critical_step step = {
        .end_ns = moment,
        .kind = CRITICAL_UNKNOWN,
        .thread = frame.thread,
        .other = SIZE_MAX,
        .waker = SIZE_MAX,
        .cause = "",
        .depth = f->depth,
    };
    size_t waker;

    start = piece ? piece->start_ns : before;
    step.start_ns = start = start > frame.bound ? start : frame.bound;
    if (!piece) {
        add(f, &step);
        return start;
    }
    step.cause = f->causes[piece->cause];
    if (piece->kind == STRETCH_RUNNING) {
        step.kind = CRITICAL_RUNS;
        step.cause = "";
        add(f, &step);
        return start;
    }
    if (piece->kind == STRETCH_READY) {
        step.kind = CRITICAL_READY;
        step.other = who_ran(f, frame.thread, start, moment);
        add(f, &step);
        return start;
    }
    step.kind = CRITICAL_WAITS;
    step.waker = piece->waker;
    waker =
        piece->waker == SIZE_MAX ? SIZE_MAX : f->critical->recording->wakers[piece->waker].thread;
    woken = piece->woken_ns > start ? piece->woken_ns : start;
    /* The path goes from the wait to its waker only if that woke the thread before this moment. */
    if (waker == SIZE_MAX || waker == frame.thread || woken > moment || f->depth + 1 == DEPTH_MAX) {
        add(f, &step);
        return start;
    }
    /* After the waking the thread is on its way to a processor. */
    step.start_ns = woken;
    step.kind = CRITICAL_READY;
    add(f, &step);
    if (woken > start)
        f->frames[++f->depth] = (struct frame){waker, start};
    return woken;
}

static void find(struct finding *f)
{
    struct critical *c = f->critical;
    uint64_t moment = c->to_ns;

    f->frames[0] = (struct frame){c->thread, c->from_ns};
    while (moment > c->from_ns && !f->failed) {
        moment = step_back(f, moment);
        while (f->depth && moment <= f->frames[f->depth].bound)
            f->depth--;
    }
    for (size_t i = 0; i < c->count / 2; i++) {
        struct critical_step step = c->steps[i];

        c->steps[i] = c->steps[c->count - 1 - i];
        c->steps[c->count - 1 - i] = step;
    }
}

/* Finds the last row of a thread's number that lived in the window. */
static size_t thread_of(const struct recording *r, int64_t tid, uint64_t from_ns, uint64_t to_ns)
{
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < r->thread_count; i++) {
        const struct recorded_thread *row = &r->threads[i];

        if (row->tid == tid && row->start_ns < to_ns && (!row->end_ns || row->end_ns > from_ns))
            found = i;
    }
    return found;
}

static int prepare(const struct recording *r, int64_t tid, uint64_t from_ns, uint64_t to_ns,
                   struct critical *c, struct prcb_error *err)
{
    const struct recorded_thread *row;

    if (!r->has_switches || !r->has_wakers)
        return prcb_fail(err, -ENODATA,
                         "the recording does not tell who woke threads: prcb record does where "
                         "switches come from eBPF");
    if (to_ns > r->end_ns)
        to_ns = r->end_ns;
    if (from_ns >= to_ns)
        return prcb_fail(err, -EINVAL, "nothing of the recording lies in that time");
    c->recording = r;
    c->thread = thread_of(r, tid, from_ns, to_ns);
    if (c->thread == SIZE_MAX)
        return prcb_fail(err, -ESRCH, "no thread %" PRId64 " is recorded in that time", tid);
    row = &r->threads[c->thread];
    c->from_ns = from_ns > row->start_ns ? from_ns : row->start_ns;
    c->to_ns = row->end_ns && row->end_ns < to_ns ? row->end_ns : to_ns;
    return 0;
}

int critical_make(const struct recording *recording, int64_t tid, uint64_t from_ns, uint64_t to_ns,
                  struct critical *ret, struct prcb_error *err)
{
    struct critical c = {0};
    struct finding f = {.critical = &c};
    int result = prepare(recording, tid, from_ns, to_ns, &c, err);

    if (result)
        return result;
    c.causes = f.causes = calloc(CAUSES, sizeof(*f.causes));
    if (!f.causes)
        return prcb_fail(err, -ENOMEM, "out of memory");
    result = stretches_walk(recording, keep, &f, err);
    if (!result)
        result = sort(&f);
    if (!result)
        find(&f);
    free(f.pieces);
    free(f.runs);
    if (f.failed || result == -ENOMEM)
        result = prcb_fail(err, -ENOMEM, "out of memory");
    if (result)
        critical_free(&c);
    else
        *ret = c;
    return result;
}

void critical_free(struct critical *c)
{
    free(c->steps);
    free(c->causes);
    memset(c, 0, sizeof(*c));
}
