/* SPDX-License-Identifier: BSD-2-Clause */
#include "stretches.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "error.h"

/* The state of a thread between two switches. */
struct state {
    enum { UNSEEN, ON, OFF, LOST, GONE } at;
    bool ready; /* OFF: it could run */
    bool whole; /* OFF: which part of it is ready cannot be known: none */
    uint32_t cpu;
    uint64_t since;
    char cause[24];
    int reason;
};

struct walk {
    const struct recording *recording;
    struct state *states;
    size_t on[STRETCH_CPUS]; /* the thread that is on the processor, plus one; 0: none is known */
    uint64_t last[STRETCH_CPUS]; /* when something last switched there */
    int (*fn)(const struct stretch *stretch, void *ctx);
    void *ctx;
    uint64_t missed; /* switches that were not told, of those that the others show */
};

static int tell(const struct walk *walk, const struct stretch *stretch)
{
    return stretch->end_ns > stretch->start_ns ? walk->fn(stretch, walk->ctx) : 0;
}

/* Who ended a wait. */
struct waking {
    size_t waker;
    uint64_t ns;
    uint32_t cpu;
};

static const struct waking not_woken = {SIZE_MAX, 0, STRETCH_NO_CPU};

/* Tells the stretches of a thread that was off until now. It was ready for the last ready_ns
 * (negative: not known), but not before it was woken: the kernel counts a thread that it moves
 * to another processor's queue while it sleeps (delayed dequeue, 6.12) as ready from then on. */
static int tell_off(const struct walk *walk, size_t thread, uint64_t now, int64_t ready_ns,
                    const struct waking *waking, bool open)
{
    const struct state *state = &walk->states[thread];
    uint64_t off = now > state->since ? now - state->since : 0, ready = 0;
    struct stretch stretch = {
        .kind = state->ready ? STRETCH_READY : STRETCH_WAITING,
        .thread = thread,
        .start_ns = state->since,
        .end_ns = now,
        .open = open,
        .cause = state->cause,
        .reason = state->reason,
    };
    int result;

    waking = state->ready ? &not_woken : waking;
    stretch.waker = waking->waker;
    stretch.woken_ns = waking->ns;
    stretch.woken_cpu = waking->cpu;
    if (!state->ready && ready_ns > 0)
        ready = (uint64_t)ready_ns < off ? (uint64_t)ready_ns : off;
    if (ready && waking->waker != SIZE_MAX && waking->ns > now - ready)
        ready = waking->ns < now ? now - waking->ns : 0;
    stretch.end_ns = now - ready;
    result = tell(walk, &stretch);
    if (result || !ready)
        return result;
    stretch.kind = STRETCH_READY;
    stretch.start_ns = now - ready;
    stretch.end_ns = now;
    return tell(walk, &stretch);
}

static int tell_on(const struct walk *walk, size_t thread, uint64_t now, bool open)
{
    const struct state *state = &walk->states[thread];

    return tell(walk, &(struct stretch){
                          .kind = STRETCH_RUNNING,
                          .thread = thread,
                          .cpu = state->cpu,
                          .start_ns = state->since,
                          .end_ns = now,
                          .open = open,
                          .cause = "",
                          .reason = -1,
                          .waker = SIZE_MAX,
                          .woken_cpu = STRETCH_NO_CPU,
                      });
}

/* Sets the state before the first switch of a thread: what it did when it began, or when the
 * recording began. */
static void see(struct walk *walk, size_t thread)
{
    const struct recorded_thread *row = &walk->recording->threads[thread];
    struct state *state = &walk->states[thread];
    bool born = row->start_ns > walk->recording->start_ns;
    bool running = !strcmp(row->start_state, "running");
    bool waiting = !strcmp(row->start_state, "waiting");

    *state = (struct state){
        .at = running                                ? ON
              : waiting || born || *row->start_state ? OFF
                                                     : LOST,
        .ready = !waiting, /* new threads begin so */
        /* The quota held the thread back since before the switches were seen: they do not tell
         * for how long. */
        .whole = waiting && !strcmp(row->start_cause, "throttled"),
        .cpu = STRETCH_NO_CPU,
        .since = born ? row->start_ns : walk->recording->start_ns,
        .reason = waiting ? row->start_reason : -1,
    };
    snprintf(state->cause, sizeof(state->cause), "%s", row->start_cause);
}

static int leave(struct walk *walk, size_t thread, uint64_t now, uint32_t cpu, sqlite3_stmt *row)
{
    const char *how = (const char *)sqlite3_column_text(row, 4);
    const char *cause = (const char *)sqlite3_column_text(row, 5);
    struct state *state = &walk->states[thread];
    int result = 0;

    /* The thread's first switch is a leave: nothing else is known, so it ran. If something else
     * ran on that processor meanwhile, the thread came by a switch that was not told, at an
     * unknown time. */
    if (state->at == UNSEEN) {
        see(walk, thread);
        state->at = cpu < STRETCH_CPUS && walk->last[cpu] > state->since ? LOST : ON;
        state->cpu = cpu;
    }
    if (state->at == ON)
        result = tell_on(walk, thread, now, false);
    state->at = how && !strcmp(how, "ended") ? GONE : OFF;
    state->ready = how && !strcmp(how, "ready");
    state->whole = false;
    state->since = now;
    snprintf(state->cause, sizeof(state->cause), "%s", cause ? cause : "");
    state->reason = sqlite3_column_type(row, 6) == SQLITE_NULL ? -1 : sqlite3_column_int(row, 6);
    return result;
}

static int come(struct walk *walk, size_t thread, uint64_t now, uint32_t cpu, sqlite3_stmt *row)
{
    struct state *state = &walk->states[thread];
    struct waking waking = not_woken;
    int64_t ready_ns =
        sqlite3_column_type(row, 7) == SQLITE_NULL ? -1 : sqlite3_column_int64(row, 7);
    int result = 0;

    if (sqlite3_column_type(row, 8) != SQLITE_NULL) {
        waking.waker = recording_waker(walk->recording, sqlite3_column_int64(row, 8));
        waking.ns = (uint64_t)sqlite3_column_int64(row, 9);
        waking.cpu = sqlite3_column_type(row, 10) == SQLITE_NULL
                         ? STRETCH_NO_CPU
                         : (uint32_t)sqlite3_column_int64(row, 10);
    }
    if (state->at == UNSEEN)
        see(walk, thread);
    if (state->at == OFF)
        result = tell_off(walk, thread, now, state->whole ? -1 : ready_ns, &waking, false);
    state->at = ON;
    state->since = now;
    state->cpu = cpu;
    if (cpu < STRETCH_CPUS)
        walk->on[cpu] = thread + 1;
    return result;
}

/* Another thread is on the processor than was last told. That one ended, or went on as another
 * program, which has a row of its own; or the switch between was not told, and then it is not
 * known where the thread has been since. */
static int miss(struct walk *walk, uint32_t cpu, size_t leaving, uint64_t now)
{
    size_t before = cpu < STRETCH_CPUS ? walk->on[cpu] : 0;
    struct state *state = before ? &walk->states[before - 1] : NULL;
    uint64_t end = before ? walk->recording->threads[before - 1].end_ns : 0;

    if (cpu < STRETCH_CPUS)
        walk->on[cpu] = 0;
    if (!state || before - 1 == leaving || state->at != ON || state->cpu != cpu)
        return 0;
    if (end && end <= now) {
        state->at = GONE;
        walk->last[cpu] = end; /* who leaves now did not run there before */
        return tell_on(walk, before - 1, end, false);
    }
    *state = (struct state){.at = LOST, .since = now, .reason = -1};
    walk->missed++;
    return 0;
}

static int on_switch(sqlite3_stmt *row, void *ctx)
{
    struct walk *walk = ctx;
    uint64_t now = (uint64_t)sqlite3_column_int64(row, 0);
    uint32_t cpu = (uint32_t)sqlite3_column_int64(row, 1);
    size_t old = recording_thread(walk->recording, sqlite3_column_int64(row, 2));
    size_t new = recording_thread(walk->recording, sqlite3_column_int64(row, 3));
    uint64_t missed = walk->missed;
    int result = miss(walk, cpu, old, now);

    /* The thread leaves but had not come: this is the same missed switch, for another thread was
     * thought to be there. */
    if (old != SIZE_MAX && walk->states[old].at == OFF && walk->missed == missed)
        walk->missed++;
    if (!result && old != SIZE_MAX)
        result = leave(walk, old, now, cpu, row);
    if (!result && new != SIZE_MAX)
        result = come(walk, new, now, cpu, row);
    if (cpu < STRETCH_CPUS)
        walk->last[cpu] = now;
    return result;
}

static int take_losses(sqlite3_stmt *row, void *ctx)
{
    *(bool *)ctx = sqlite3_column_int64(row, 0) != 0;
    return 0;
}

/* Tells what is going on at the end of the recording, or of the thread. A thread without
 * switches did the same all the time, unless switches were lost. */
static int close_all(struct walk *walk, struct prcb_error *err)
{
    const struct recording *r = walk->recording;
    bool lost = false;
    int result =
        recording_query(r, "SELECT count(*) FROM losses WHERE what IN ('ring', 'switches')",
                        take_losses, &lost, err);

    for (size_t i = 0; i < r->thread_count && !result; i++) {
        uint64_t end = r->threads[i].end_ns ? r->threads[i].end_ns : r->end_ns;
        bool open = !r->threads[i].end_ns;

        if (walk->states[i].at == UNSEEN && *r->threads[i].start_state && !lost)
            see(walk, i);
        if (walk->states[i].at == ON)
            result = tell_on(walk, i, end, open);
        else if (walk->states[i].at == OFF)
            result = tell_off(walk, i, end, 0, &not_woken, open);
    }
    return result;
}

int stretches_walk(const struct recording *recording,
                   int (*fn)(const struct stretch *stretch, void *ctx), void *ctx,
                   struct prcb_error *err)
{
    uint64_t missed;

    return stretches_walk_counting(recording, fn, ctx, &missed, err);
}

int stretches_walk_counting(const struct recording *recording,
                            int (*fn)(const struct stretch *stretch, void *ctx), void *ctx,
                            uint64_t *ret_missed, struct prcb_error *err)
{
    struct walk *walk;
    int result;

    *ret_missed = 0;
    if (!recording->has_switches)
        return 0;
    walk = calloc(1, sizeof(*walk));
    if (walk)
        *walk = (struct walk){.recording = recording, .fn = fn, .ctx = ctx};
    if (walk)
        walk->states = calloc(recording->thread_count + 1, sizeof(*walk->states));
    if (!walk || !walk->states) {
        free(walk);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    result = recording_query(recording,
                             recording->has_wakers
                                 ? "SELECT time_ns, cpu, old_thread, new_thread, state, cause, "
                                   "reason, ready_ns, waker, woken_ns, woken_cpu FROM switches "
                                   "ORDER BY time_ns, rowid"
                                 : "SELECT time_ns, cpu, old_thread, new_thread, state, cause, "
                                   "reason, ready_ns, NULL FROM switches ORDER BY time_ns, rowid",
                             on_switch, walk, err);
    if (!result)
        result = close_all(walk, err);
    *ret_missed = walk->missed;
    free(walk->states);
    free(walk);
    return result;
}
