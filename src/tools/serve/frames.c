/* SPDX-License-Identifier: BSD-2-Clause */
#include "frames.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include <prcb/causes.h>

#include "array.h"
#include "cause.h"
#include "error.h"
#include "now.h"
#include "pairing.h"
#include "text.h"
#include "top_source.h"

#ifdef HAVE_STACK
#include "looks.h"
#endif

#define PERCENT     5       /* of a processor, for unwinding */
#define LEAST_NS    1000000 /* shorter waits are not read */
#define NAME_MOST   1024
#define STACKS_MOST (1u << 18) /* others count as not known */
#define FRAMES_MOST 256        /* of a stack, on the page */

/* The states of the page: these come first, then one for each cause of waiting. */
enum { UNKNOWN, RUNNING, READY, WAITING };

/* The time of the interval that belongs to waits with a known stack. */
struct credit {
    uint32_t cause, stack;
    uint64_t ns;
};

/* What is known of a thread; it stands at the model's index. */
struct seen {
    uint64_t key;
    uint32_t number;                 /* on the page; from 1 */
    uint64_t switches, credited_ns;  /* of the wait that was looked at last */
    uint32_t stack;                  /* of it; 0: not known */
    uint32_t told_state, told_stack; /* what the page takes it to be in */
    struct credit *credits;
    uint32_t credit_count, credit_room;
};

/* What the page knows of a stack, by its id. */
struct told {
    uint64_t key_frame; /* the number of key frames when it was told last */
#ifdef HAVE_STACK
    struct prcb_stack stack; /* its frames stay until the looks are closed */
#endif
};

struct frames {
    struct prcb *session;
    struct frames_options options;
    struct top_model model;
    struct top_source *source;
    struct looks *looks; /* NULL: no stacks */
    struct seen *seen;
    struct told *told;
    uint32_t seen_room, told_room, numbers;
    uint64_t open_ns, last_ns; /* CLOCK_MONOTONIC */
    uint64_t taken, key_frames;
    FILE *out; /* of the frame that is made */
    bool key;  /* it is a key frame */
    char started[32];
};

/* Returns NULL if there is no memory. */
static struct seen *seen_of(struct frames *f, uint32_t index)
{
    const struct top_thread *thread = &f->model.threads[index];
    struct seen *seen;

    if (array_cover(f->seen, f->seen_room, index))
        return NULL;
    seen = &f->seen[index];
    if (seen->key != thread->key) {
        free(seen->credits);
        *seen = (struct seen){.key = thread->key, .number = ++f->numbers};
    }
    return seen;
}

/* ---- stacks of waits ------------------------------------------------------------------------ */

#ifdef HAVE_STACK
static int add_credit(struct seen *seen, uint32_t cause, uint64_t ns)
{
    for (uint32_t i = 0; i < seen->credit_count; i++) {
        if (seen->credits[i].cause == cause && seen->credits[i].stack == seen->stack) {
            seen->credits[i].ns += ns;
            return 0;
        }
    }
    return array_add(seen->credits, seen->credit_count, seen->credit_room,
                     (struct credit){cause, seen->stack, ns});
}

/* If a wait is looked at for the first time, only its part in this interval counts. */
static int begin_wait(struct frames *f, struct seen *seen, const struct prcb_account *a,
                      uint64_t now)
{
    struct prcb_stack stack = {.size = sizeof(stack)};
    uint64_t most = now > f->last_ns ? now - f->last_ns : 0;
    int result = looks_read(f->looks, a, &stack);

    if (result == -ENOMEM)
        return result;
    seen->switches = a->switches;
    seen->credited_ns = a->open.ns - (a->open.ns < most ? a->open.ns : most);
    seen->stack = result || stack.id >= STACKS_MOST ? 0 : stack.id;
    if (!seen->stack)
        return 0;
    if (array_cover(f->told, f->told_room, seen->stack))
        return -ENOMEM;
    /* Whether it is one in which threads idle; one that is stopped there does not. */
    if (f->told[seen->stack].stack.kind != PRCB_STACK_IDLE)
        f->told[seen->stack].stack = stack;
    return 0;
}

/* The growth of a wait since the last look belongs to its stack. */
static int look_account(void *ctx, const struct prcb_account *a, uint64_t now)
{
    const struct prcb_cause_info *info = prcb_cause_info(a->open.cause);
    struct frames *f = ctx;
    uint32_t index = top_model_find(&f->model, a->key);
    struct seen *seen;
    uint64_t ns;

    if (index == TOP_NONE || a->flags & (PRCB_ACCOUNT_RUNNING | PRCB_ACCOUNT_EXITED) ||
        !(a->present & PRCB_HAS_OPEN) || a->open.ns < LEAST_NS || a->open.cause >= PRCB_CAUSE_MAX ||
        (info && info->kind != PRCB_KIND_WAIT))
        return 0;
    seen = seen_of(f, index);
    if (!seen || ((seen->switches != a->switches || !seen->stack) && begin_wait(f, seen, a, now)))
        return -ENOMEM;
    if (!seen->stack || a->open.ns <= seen->credited_ns)
        return 0;
    ns = a->open.ns - seen->credited_ns;
    seen->credited_ns = a->open.ns;
    return add_credit(seen, a->open.cause, ns);
}

int frames_look(struct frames *f, struct prcb_error *err)
{
    const struct looks_fns fns = {.account = look_account, .keep_ended = true, .ctx = f};
    bool ended;

    return f->looks ? looks_take(f->looks, &fns, &ended, err) : 0;
}

uint64_t frames_next_look(const struct frames *f)
{
    return f->looks ? looks_next(f->looks) : UINT64_MAX;
}

static void open_looks(struct frames *f)
{
    struct prcb_error err;

    /* Without stacks the page says so. */
    if (f->options.stacks && looks_open(f->session, PERCENT, 0, &f->looks, &err))
        f->looks = NULL;
}

static void close_looks(struct frames *f)
{
    looks_close(f->looks);
}
#else
int frames_look(struct frames *f, struct prcb_error *err)
{
    return 0;
}

uint64_t frames_next_look(const struct frames *f)
{
    return UINT64_MAX;
}

static void open_looks(struct frames *f)
{
}

static void close_looks(struct frames *f)
{
}
#endif

/* ---- opening -------------------------------------------------------------------------------- */

int frames_open(struct prcb *session, struct prcb_processors *view,
                const struct frames_options *options, struct frames **ret, struct prcb_error *err)
{
    struct frames *f = calloc(1, sizeof(*f));
    time_t clock = time(NULL);
    struct tm parts;
    int result;

    if (!f)
        return prcb_fail(err, -ENOMEM, "out of memory");
    top_model_init(&f->model);
    f->session = session;
    f->options = *options;
    f->model.max_frames = 2; /* the page keeps the history */
    f->open_ns = f->last_ns = now_ns();
    if (gmtime_r(&clock, &parts))
        strftime(f->started, sizeof(f->started), "%Y-%m-%dT%H:%M:%SZ", &parts);
    open_looks(f);
    result = top_source_open(session, view, &f->model, &f->source, err);
    if (result)
        frames_close(f);
    else
        *ret = f;
    return result;
}

void frames_close(struct frames *f)
{
    if (!f)
        return;
    top_source_close(f->source);
    close_looks(f);
    for (uint32_t i = 0; i < f->seen_room; i++)
        free(f->seen[i].credits);
    free(f->seen);
    free(f->told);
    top_model_deinit(&f->model);
    free(f);
}

/* ---- a frame as JSON ------------------------------------------------------------------------- */

static void put_text(struct frames *f, const char *text)
{
    char shown[NAME_MOST];

    text_copy(TEXT_MARKS, text ? text : "", shown, sizeof(shown));
    fputc('"', f->out);
    text_print(f->out, TEXT_JSON, shown);
    fputc('"', f->out);
}

static void put_member(struct frames *f, const char *name, const char *text)
{
    fprintf(f->out, ",\"%s\":", name);
    put_text(f, text);
}

/* Writes the states as the head of a recording's page has them. */
static void put_states(struct frames *f)
{
    fputs(",\"states\":[{\"kind\":\"?\"},{\"kind\":\"r\"},{\"kind\":\"q\"}", f->out);
    for (uint32_t cause = 0; cause < PRCB_CAUSE_MAX; cause++) {
        const struct prcb_cause_info *info = cause ? prcb_cause_info(cause) : NULL;

        fputs(",{\"kind\":\"w\"", f->out);
        put_member(f, "colour", cause_traits(cause)->colour);
        fputs(cause && !cause_may_idle(cause) ? ",\"held\":1" : "", f->out);
        if (info) {
            put_member(f, "cause", info->name);
            put_member(f, "words", info->words);
        }
        fputc('}', f->out);
    }
    fputc(']', f->out);
}

static void put_facts(struct frames *f)
{
    enum prcb_tier tier = prcb_session_tier(f->session);
    const char *reason = prcb_session_tier_reason(f->session);
    struct utsname name;

    fprintf(f->out, ",\"facts\":{\"history_frames\":\"%" PRIu64 "\"", f->options.history_frames);
    put_member(f, "prcb_version", PRCB_VERSION);
    put_member(f, "tier", prcb_tier_name(tier));
    if (reason)
        put_member(f, "tier_reason", reason);
    put_member(f, "started", f->started);
    put_member(f, "scope", f->options.own ? "own" : f->options.all ? "system" : "chosen");
    put_member(f, "stacks", f->looks ? "1" : "0");
    put_member(f, "causes", tier == PRCB_TIER_PERF ? "0" : "1");
    if (!uname(&name)) {
        put_member(f, "host", name.nodename);
        put_member(f, "kernel", name.release);
    }
    fputc('}', f->out);
}

static uint32_t state_of(const struct top_now *now)
{
    switch (now->state) {
    case TOP_RUN:
        return RUNNING;
    case TOP_READY:
        return READY;
    case TOP_WAIT:
        return WAITING + now->cause;
    default:
        return UNKNOWN;
    }
}

static void put_part(struct frames *f, bool *first, uint32_t state, uint64_t count, uint64_t ns)
{
    if (!ns && !count)
        return;
    fprintf(f->out, "%s%u,%" PRIu64 ",%" PRIu64, *first ? "" : ",", state, count, ns);
    *first = false;
}

/* Writes the state, count and nanoseconds of each part, and then how stacks divide it. */
static void put_delta(struct frames *f, const struct top_frame *frame,
                      const struct top_delta *delta, struct seen *seen)
{
    const struct top_part *parts = frame->parts + delta->part_at;
    uint64_t ready_count = 0, parts_ns = 0, left[PRCB_CAUSE_MAX] = {0};
    bool first = true;

    for (uint16_t i = 0; i < delta->part_count; i++) {
        const struct prcb_cause_info *info = prcb_cause_info(parts[i].cause);

        if (info && info->kind == PRCB_KIND_READY)
            ready_count += parts[i].count;
    }
    put_part(f, &first, RUNNING, delta->run_ns ? delta->switches : 0, delta->run_ns);
    put_part(f, &first, READY, ready_count, delta->ready_ns);
    for (uint16_t i = 0; i < delta->part_count; i++) {
        const struct prcb_cause_info *info = prcb_cause_info(parts[i].cause);

        if (info && info->kind == PRCB_KIND_READY)
            continue;
        put_part(f, &first, WAITING + parts[i].cause, parts[i].count, parts[i].ns);
        parts_ns += parts[i].ns;
        left[parts[i].cause] = parts[i].ns;
    }
    if (delta->wait_ns > parts_ns) /* of a tier that knows no causes */
        put_part(f, &first, WAITING, 0, delta->wait_ns - parts_ns);
    fputs("],[", f->out);
    first = true;
    for (uint32_t i = 0; i < seen->credit_count; i++) {
        const struct credit *credit = &seen->credits[i];
        uint64_t ns = credit->ns < left[credit->cause] ? credit->ns : left[credit->cause];

        left[credit->cause] -= ns;
        if (!ns)
            continue;
        fprintf(f->out, "%s%u,%u,%" PRIu64, first ? "" : ",", WAITING + credit->cause,
                credit->stack, ns);
        first = false;
    }
}

/* Writes a thread; one that only went on waiting is written if that is news. */
static int put_thread(struct frames *f, const struct top_frame *frame, uint32_t index, bool *first)
{
    const struct top_thread *thread = &f->model.threads[index];
    const struct top_delta *delta = top_frame_delta(frame, index);
    struct seen *seen = seen_of(f, index);
    uint32_t state = state_of(delta ? &delta->now : &thread->shown), stack;
    char *pair;

    if (!seen)
        return -ENOMEM;
    stack = state >= WAITING ? seen->stack : 0;
    if (!delta && !f->key && seen->told_state == state && seen->told_stack == stack)
        return 0;
    seen->told_state = state;
    seen->told_stack = stack;
    pair = pairing_name(thread->comm);
    if (!pair)
        return -ENOMEM;
    fprintf(f->out, "%s[%u,%d,%d,", *first ? "" : ",", seen->number, (int)thread->pid,
            (int)thread->tid);
    *first = false;
    put_text(f, thread->comm);
    fputc(',', f->out);
    put_text(f, pair);
    free(pair);
    fprintf(f->out, ",%u,%u,%d,[", state, stack, thread->end_ns ? 1 : 0);
    if (delta)
        put_delta(f, frame, delta, seen);
    else /* it went on */
        fputs("],[", f->out);
    fputs("]]", f->out);
    return 0;
}

static int put_threads(struct frames *f, const struct top_frame *frame)
{
    bool first = true;
    int result = 0;

    fputs(",\"threads\":[", f->out);
    for (uint32_t i = 0; i < f->model.thread_count && !result; i++) {
        const struct top_thread *thread = &f->model.threads[i];

        if (thread->key && (!thread->end_ns || top_frame_delta(frame, i)))
            result = put_thread(f, frame, i, &first);
    }
    fputc(']', f->out);
    return result;
}

#ifdef HAVE_STACK
static void put_stack(struct frames *f, const struct prcb_stack *stack)
{
    uint32_t count = stack->frame_count < FRAMES_MOST ? stack->frame_count : FRAMES_MOST;

    fprintf(f->out, "[%u,%u,", stack->id, stack->kind);
    put_text(f, stack->word);
    fputs(",[", f->out);
    for (uint32_t i = count; i-- > 0;) { /* outermost first */
        put_text(f, stack->frames[i].function ? stack->frames[i].function : "[unknown]");
        fputc(',', f->out);
        put_text(f, stack->frames[i].file);
        if (i)
            fputc(',', f->out);
    }
    fputs("]]", f->out);
}

/* Writes the stacks that threads are in or were in, and that a reader which began at the last
 * key frame does not know. */
static void put_stacks(struct frames *f)
{
    bool first = true;

    fputs(",\"stacks\":[", f->out);
    for (uint32_t i = 0; i < f->seen_room; i++) {
        const struct seen *seen = &f->seen[i];

        for (uint32_t k = 0; k <= seen->credit_count; k++) {
            uint32_t id = k < seen->credit_count ? seen->credits[k].stack : seen->told_stack;

            if (!id || f->told[id].key_frame == f->key_frames)
                continue;
            f->told[id].key_frame = f->key_frames;
            fputs(first ? "" : ",", f->out);
            first = false;
            put_stack(f, &f->told[id].stack);
        }
    }
    fputc(']', f->out);
}
#else
static void put_stacks(struct frames *f)
{
    fputs(",\"stacks\":[]", f->out);
}
#endif

static void put_processors(struct frames *f, const struct top_processors *processors)
{
    if (!processors->known)
        return;
    fprintf(f->out, ",\"processors\":{\"online\":%u,\"exact\":%s", processors->online,
            processors->exact ? "true" : "false");
    for (const struct figure *row = processor_figures; row->name; row++) {
        if (row->kind == FIGURE_PART)
            fprintf(f->out, ",\"%s\":%" PRIu64, row->name, processors->parts[row->index]);
    }
    fputc('}', f->out);
}

static int put_frame(struct frames *f, const struct top_frame *frame)
{
    struct prcb_status status = {.size = sizeof(status)};
    int result;

    fprintf(f->out,
            "{\"version\":1,\"number\":%" PRIu64 ",\"key\":%s,\"end_ns\":%" PRIu64
            ",\"ns\":%" PRIu64 ",\"clock_ms\":%" PRIu64,
            f->taken, f->key ? "true" : "false", frame->end_ns - f->open_ns, frame->wall_ns,
            (uint64_t)frame->clock_ns / 1000000);
    if (!prcb_session_status(f->session, &status))
        fprintf(f->out, ",\"untracked\":%" PRIu64, status.untracked_threads);
    if (f->key) {
        put_facts(f);
        put_states(f);
    }
    put_processors(f, &frame->processors);
    result = put_threads(f, frame);
    put_stacks(f);
    fputc('}', f->out);
    return result;
}

static int write_frame(struct frames *f, struct frame *ret)
{
    const struct top_frame *frame = top_model_frame(&f->model, f->model.frame_count - 1);
    char *text = NULL;
    size_t size = 0;
    int result;

    f->key = f->taken % f->options.key_every == 0;
    f->key_frames += f->key;
    f->out = open_memstream(&text, &size);
    if (!f->out)
        return -ENOMEM;
    top_model_show(&f->model, f->model.frame_count - 1);
    result = put_frame(f, frame);
    if (ferror(f->out))
        result = -ENOMEM;
    if (fclose(f->out))
        result = -ENOMEM;
    if (result)
        free(text);
    else
        *ret = (struct frame){text, size, f->key};
    f->taken += !result;
    return result;
}

int frames_take(struct frames *f, struct frame *ret, struct prcb_error *err)
{
    bool added;
    int result = frames_look(f, err);

    if (!result)
        result = top_source_take(f->source, &added, err);
    if (result)
        return result;
    *ret = (struct frame){0};
    if (added && write_frame(f, ret))
        return prcb_fail(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < f->seen_room; i++)
        f->seen[i].credit_count = 0;
    f->last_ns = now_ns();
    return 0;
}
