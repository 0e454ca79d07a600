/* SPDX-License-Identifier: BSD-2-Clause */
#include "critical.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "error.h"

#include "path.h"
#include "stretches.h"

#define CAUSES  64                   /* different ones; more of them have no name */
#define NEAR_NS UINT64_C(1000000000) /* before and after the window */

struct finding {
    struct critical *critical;
    struct path_piece *pieces;
    size_t count;
    char (*causes)[24];
};

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
    static const enum path_kind kinds[] = {
        [STRETCH_RUNNING] = PATH_RUNS,
        [STRETCH_READY] = PATH_READY,
        [STRETCH_WAITING] = PATH_WAITS,
    };
    struct finding *f = ctx;
    const struct recording *r = f->critical->recording;

    /* What lies apart from the window is not met, but for what ran while a thread was ready. */
    if (stretch->end_ns + NEAR_NS < f->critical->from_ns ||
        stretch->start_ns > f->critical->to_ns + NEAR_NS)
        return 0;
    return array_append(
        f->pieces, f->count,
        (struct path_piece){
            .start_ns = stretch->start_ns,
            .end_ns = stretch->end_ns,
            .woken_ns = stretch->woken_ns,
            .thread = stretch->thread,
            .waker = stretch->waker == SIZE_MAX ? PATH_NONE : r->wakers[stretch->waker].thread,
            .by = stretch->waker,
            .cpu = stretch->cpu < STRETCH_CPUS ? stretch->cpu : PATH_NO_CPU,
            .kind = (uint8_t)kinds[stretch->kind],
            .cause = cause_of(f, stretch->cause),
            .idle = !strcmp(stretch->cause, "worker"),
        });
}

static int take_steps(struct critical *c, const struct path_step *steps, size_t count)
{
    static const enum critical_kind kinds[] = {
        [PATH_RUNS] = CRITICAL_RUNS,
        [PATH_READY] = CRITICAL_READY,
        [PATH_WAITS] = CRITICAL_WAITS,
        [PATH_UNKNOWN] = CRITICAL_UNKNOWN,
    };

    c->steps = calloc(count + 1, sizeof(*c->steps));
    if (!c->steps)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct path_step *step = &steps[i];
        bool waits = step->kind == PATH_WAITS || step->kind == PATH_READY;

        c->steps[c->count++] = (struct critical_step){
            .start_ns = step->start_ns,
            .end_ns = step->end_ns,
            .kind = kinds[step->kind],
            .thread = step->thread,
            .other = step->other == PATH_NONE ? SIZE_MAX : step->other,
            .waker = waits && step->piece->kind == PATH_WAITS ? step->piece->by : SIZE_MAX,
            .cause = waits ? c->causes[step->piece->cause] : "",
            .depth = step->depth,
        };
    }
    return 0;
}

static int find(struct finding *f)
{
    struct critical *c = f->critical;
    struct path_step *steps = NULL;
    struct path *path;
    size_t count = 0;
    int result = path_open(f->pieces, f->count, &path);

    f->pieces = NULL;
    if (result)
        return result;
    result = path_find(path, c->thread, c->from_ns, c->to_ns, &steps, &count);
    if (!result)
        result = take_steps(c, steps, count);
    free(steps);
    path_close(path);
    return result;
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
        result = find(&f);
    free(f.pieces);
    if (result == -ENOMEM)
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
