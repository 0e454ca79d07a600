/* SPDX-License-Identifier: BSD-2-Clause */
#include "switch_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "csv.h"
#include "error.h"
#include "stretches.h"

#define CPUS 4096 /* of more, who had the processor before is not known */
#define NAME 96
#define FULL 1 /* the rows that were asked for are printed */

/* What a thread has done since it left a processor. */
struct off {
    uint64_t left_ns, wait_ns, ready_ns; /* left_ns 0: not known */
    uint64_t woken_ns;
    size_t waker; /* SIZE_MAX: not known */
    char state[8], cause[24];
    int reason;
    size_t stack; /* SIZE_MAX: none */
};

/* The first thread of a process, under one of its names. */
struct leader {
    int64_t pid;
    const char *name;
};

struct writing {
    const struct recording *recording;
    enum switch_names names;
    struct csv csv;
    size_t top, rows;
    struct off *offs;       /* a thread each */
    struct leader *leaders; /* by pid */
    size_t leader_count;
    struct {
        size_t thread;
        uint64_t end_ns; /* 0: nothing is known */
    } last[CPUS];
    bool whole; /* every thread is recorded: who is not is idle */
};

/* clang-format off */
#define COLUMNS(X)                                                            \
    X(IN, "time_ns", "Switch-In Time (s)")                                    \
    X(CPU, "cpu", "CPU")                                                      \
    X(PROCESS, NULL, "New Process")                                           \
    X(PID, "pid", NULL)                                                       \
    X(TID, "tid", "New Thread Id")                                            \
    X(THREAD, "name", "New Thread Name")                                      \
    X(LEFT, "left_ns", "Last Switch-Out Time (s)")                            \
    X(STATE, "state", "New Prev State")                                       \
    X(CAUSE, "cause", NULL)                                                   \
    X(REASON, "reason_name", "New Prev Wait Reason")                          \
    X(WAIT, "wait_ns", "Waits (us)")                                          \
    X(READY, "ready_ns", "Ready (us)")                                        \
    X(RUN, "run_ns", "New In Switch Time (us)")                               \
    X(BY, "waker_by", NULL)                                                   \
    X(IN_DPC, NULL, "Ready Thread In DPC")                                    \
    X(WAKER_PROCESS, NULL, "Readying Process")                                \
    X(WAKER_PID, "waker_pid", NULL)                                           \
    X(WAKER_TID, "waker_tid", "Readying Thread Id")                           \
    X(WAKER, "waker", "Readying Thread Name")                                 \
    X(WOKEN, "woken_ns", "Ready Time (s)")                                    \
    X(OLD_PROCESS, NULL, "Old Process")                                       \
    X(OLD_PID, "old_pid", NULL)                                               \
    X(OLD_TID, "old_tid", "Old Thread Id")                                    \
    X(OLD_THREAD, "old_name", "Old Thread Name")                              \
    X(STACK, "stack", "New Thread Stack")
#define NUMBER(number, ...) number,
enum column { COLUMNS(NUMBER) COLUMN_COUNT };
#define NAMES(number, own, wpa) {own, wpa},
static const char *const names[COLUMN_COUNT][2] = {COLUMNS(NAMES)};
/* clang-format on */

/* ---- values ---------------------------------------------------------------------------------- */

/* Writes a moment of the recording; for WPA in seconds. */
static void put_moment(struct writing *w, uint64_t ns)
{
    uint64_t since = ns > w->recording->start_ns ? ns - w->recording->start_ns : 0;
    char text[40] = "";

    if (ns && w->names == SWITCH_NAMES_WPA)
        snprintf(text, sizeof(text), "%" PRIu64 ".%09u", since / 1000000000,
                 (unsigned)(since % 1000000000));
    else if (ns)
        snprintf(text, sizeof(text), "%" PRIu64, since);
    csv_text(&w->csv, text);
}

/* Writes a time; for WPA in microseconds. */
static void put_time(struct writing *w, bool known, uint64_t ns)
{
    char text[40] = "";

    if (known && w->names == SWITCH_NAMES_WPA)
        snprintf(text, sizeof(text), "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
    else if (known)
        snprintf(text, sizeof(text), "%" PRIu64, ns);
    csv_text(&w->csv, text);
}

static int by_pid(const void *left, const void *right)
{
    const struct leader *a = left, *b = right;

    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

/* Writes "bash (1234)": WPA's way to name a process, here by the name of its first thread, or
 * else of the one in question. */
static void put_process(struct writing *w, int64_t pid, const char *name)
{
    const struct leader key = {.pid = pid};
    const struct leader *leader = array_search(&key, w->leaders, w->leader_count, by_pid);
    char text[NAME];

    if (leader)
        name = leader->name;
    snprintf(text, sizeof(text), "%s (%" PRId64 ")", name, pid);
    csv_text(&w->csv, text);
}

static void put_stack(struct writing *w, size_t stack)
{
    char *text = recording_stack_line(w->recording, stack);

    csv_text(&w->csv, text ? text : "");
    free(text);
}

static void put_waker(struct writing *w, enum column column, const struct off *off)
{
    const struct recorded_waker *waker =
        off->waker == SIZE_MAX ? NULL : &w->recording->wakers[off->waker];
    bool thread = waker && waker->tid, others = waker && !strcmp(waker->by, "others");
    char name[NAME] = "";

    if (waker && thread)
        snprintf(name, sizeof(name), "%s",
                 waker->thread == SIZE_MAX ? waker->name
                                           : w->recording->threads[waker->thread].name);
    else if (waker)
        recording_waker_name(w->recording, off->waker, name, sizeof(name));
    switch (column) {
    case BY:
        csv_text(&w->csv, waker ? waker->by : "");
        return;
    case IN_DPC: /* as Windows calls what softirqs and interrupts are */
        csv_text(&w->csv, !waker || !strcmp(waker->by, "unknown") ? ""
                          : thread || others                      ? "False"
                                                                  : "True");
        return;
    case WAKER_PROCESS:
        if (thread)
            put_process(w, waker->pid, name);
        else
            csv_text(&w->csv, name);
        return;
    case WAKER_PID:
        csv_signed(&w->csv, thread, thread ? waker->pid : 0);
        return;
    case WAKER_TID:
        csv_signed(&w->csv, thread, thread ? waker->tid : 0);
        return;
    default:
        csv_text(&w->csv, name);
    }
}

static void put_old(struct writing *w, enum column column, const struct stretch *run)
{
    const struct recorded_thread *old = NULL;
    bool idle = false;

    if (run->cpu < CPUS && w->last[run->cpu].end_ns == run->start_ns) {
        old = &w->recording->threads[w->last[run->cpu].thread];
        if (old->tid == w->recording->threads[run->thread].tid)
            old = NULL; /* it executed another program, and goes on in a row of its own */
    } else {
        idle = w->whole && run->cpu < CPUS && w->last[run->cpu].end_ns;
    }
    switch (column) {
    case OLD_PROCESS:
        if (old)
            put_process(w, old->pid, old->name);
        else
            csv_text(&w->csv, idle ? "Idle (0)" : "");
        return;
    case OLD_PID:
        csv_signed(&w->csv, old || idle, old ? old->pid : 0);
        return;
    case OLD_TID:
        csv_signed(&w->csv, old || idle, old ? old->tid : 0);
        return;
    default:
        csv_text(&w->csv, old ? old->name : idle ? "idle" : "");
    }
}

static void put_value(struct writing *w, enum column column, const struct stretch *run,
                      const struct off *off)
{
    const struct recorded_thread *thread = &w->recording->threads[run->thread];
    const char *reason = off->reason < 0 ? NULL : prcb_wait_reason_name((uint32_t)off->reason);

    switch (column) {
    case IN:
        put_moment(w, run->start_ns);
        return;
    case CPU:
        csv_signed(&w->csv, run->cpu != STRETCH_NO_CPU, run->cpu);
        return;
    case PROCESS:
        put_process(w, thread->pid, thread->name);
        return;
    case PID:
        csv_signed(&w->csv, true, thread->pid);
        return;
    case TID:
        csv_signed(&w->csv, true, thread->tid);
        return;
    case THREAD:
        csv_text(&w->csv, thread->name);
        return;
    case LEFT:
        put_moment(w, off->left_ns);
        return;
    case STATE:
        csv_text(&w->csv, off->state);
        return;
    case CAUSE:
        csv_text(&w->csv, off->cause);
        return;
    case REASON:
        csv_text(&w->csv, reason ? reason : "");
        return;
    case WAIT:
        put_time(w, off->left_ns != 0, off->wait_ns);
        return;
    case READY:
        put_time(w, off->left_ns != 0, off->ready_ns);
        return;
    case RUN:
        put_time(w, true, run->end_ns - run->start_ns);
        return;
    case WOKEN:
        put_moment(w, off->woken_ns);
        return;
    case STACK:
        put_stack(w, off->stack);
        return;
    case OLD_PROCESS:
    case OLD_PID:
    case OLD_TID:
    case OLD_THREAD:
        put_old(w, column, run);
        return;
    default:
        put_waker(w, column, off);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void forget(struct off *off)
{
    *off = (struct off){.waker = SIZE_MAX, .reason = -1, .stack = SIZE_MAX};
}

/* Finds the first threads of processes. A process that executed another program has two: either
 * will do. */
static void find_leaders(struct writing *w)
{
    const struct recording *r = w->recording;

    for (size_t i = 0; i < r->thread_count; i++) {
        if (r->threads[i].tid == r->threads[i].pid && *r->threads[i].name)
            w->leaders[w->leader_count++] = (struct leader){r->threads[i].pid, r->threads[i].name};
    }
    array_sort(w->leaders, w->leader_count, by_pid);
}

/* A wait is told before the ready time that ends it. */
static void add_off(struct writing *w, const struct stretch *stretch)
{
    struct off *off = &w->offs[stretch->thread];
    bool waiting = stretch->kind == STRETCH_WAITING;
    const struct recorded_wait *where;

    if (!off->left_ns) {
        off->left_ns = stretch->start_ns;
        off->reason = stretch->reason;
        snprintf(off->cause, sizeof(off->cause), "%s", stretch->cause);
        snprintf(off->state, sizeof(off->state), "%s",
                 w->names == SWITCH_NAMES_WPA ? (waiting ? "Waiting" : "Ready")
                                              : (waiting ? "waiting" : "ready"));
    }
    off->waker = stretch->waker;
    off->woken_ns = stretch->waker == SIZE_MAX ? 0 : stretch->woken_ns;
    if (!waiting) {
        off->ready_ns += stretch->end_ns - stretch->start_ns;
        return;
    }
    off->wait_ns += stretch->end_ns - stretch->start_ns;
    where = recording_wait(w->recording, stretch->thread, stretch->start_ns, stretch->end_ns);
    off->stack = where ? where->stack : SIZE_MAX;
}

static int add_stretch(const struct stretch *stretch, void *ctx)
{
    struct writing *w = ctx;
    struct off *off = &w->offs[stretch->thread];

    if (stretch->kind != STRETCH_RUNNING) {
        add_off(w, stretch);
        return 0;
    }
    for (int i = 0; i < COLUMN_COUNT; i++) {
        if (names[i][w->names])
            put_value(w, (enum column)i, stretch, off);
    }
    csv_end(&w->csv);
    if (stretch->cpu < CPUS) {
        w->last[stretch->cpu].thread = stretch->thread;
        w->last[stretch->cpu].end_ns = stretch->end_ns;
    }
    forget(off);
    return ++w->rows == w->top ? FULL : 0;
}

int switch_rows_print_csv(const struct recording *r, enum switch_names which, size_t top,
                          const char *separator, FILE *out, struct prcb_error *err)
{
    struct writing *w;
    char *scope;
    int result;

    if (!r->has_switches)
        return prcb_fail(err, -ENODATA, "no switches were recorded");
    scope = recording_fact(r, "scope");
    w = calloc(1, sizeof(*w));
    if (w)
        *w = (struct writing){.recording = r,
                              .names = which,
                              .csv = {.out = out, .separator = separator},
                              .top = top,
                              .offs = calloc(r->thread_count + 1, sizeof(struct off)),
                              .leaders = calloc(r->thread_count + 1, sizeof(struct leader)),
                              .whole = scope && !strcmp(scope, "system")};
    free(scope);
    if (!w || !w->offs || !w->leaders) {
        result = prcb_fail(err, -ENOMEM, "out of memory");
        goto out;
    }
    find_leaders(w);
    for (size_t i = 0; i < r->thread_count; i++)
        forget(&w->offs[i]);
    for (int i = 0; i < COLUMN_COUNT; i++) {
        if (names[i][which])
            csv_text(&w->csv, names[i][which]);
    }
    csv_end(&w->csv);
    result = stretches_walk(r, add_stretch, w, err);
out:
    free(w ? w->offs : NULL);
    free(w ? w->leaders : NULL);
    free(w);
    return result == FULL ? 0 : result;
}
