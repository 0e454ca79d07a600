/* SPDX-License-Identifier: BSD-2-Clause */
#include "waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <prcb/edges.h>
#include <prcb/sample.h>

#include "array.h"
#include "error.h"
#include "table.h"

#ifdef HAVE_STACK
#include "looks.h"
#include "now.h"
#else
struct looks;
#endif

#define PERCENT   5       /* of a processor, for unwinding */
#define WAIT_NS   1000000 /* shorter waits are not read */
#define NS_PER_MS 1000000u

/* The last wait of an account about which something was recorded. */
struct seen {
    uint64_t switches;
    bool stack; /* its stack, or why it has none; else that there was no time for it */
};

struct waits {
    struct prcb *session;
    struct looks *looks; /* NULL: no stacks */
    struct seen *seen;
    size_t seen_count, seen_room;
    struct table places; /* of seen, by the account's key */
    struct rings *rings; /* of the look */
    bool switches;       /* the session keeps switch records */
    uint64_t lost_switches;
};

int waits_program(struct waits *w, uint32_t i, struct prcb_program *ret)
{
    return prcb_session_program(w->session, i, ret);
}

/* ---- opening ------------------------------------------------------------------------------ */

static int put_switch(const struct prcb_switch *record, void *ctx)
{
    return rings_put_switch(ctx, record);
}

bool waits_has_switches(const struct waits *w)
{
    return w->switches;
}

int waits_switches(struct waits *w, struct rings *rings, unsigned *ret_full)
{
    struct prcb_switch_room room = {.size = sizeof(room)};
    int result = prcb_session_switches(w->session, put_switch, rings, &room, NULL);

    w->lost_switches = room.lost;
    if (room.full > *ret_full)
        *ret_full = room.full;
    return result;
}

struct prcb *waits_session(struct waits *w)
{
    return w->session;
}

static int put_ran(const struct prcb_ran *ran, void *ctx)
{
    return rings_put_ran(ctx, ran);
}

int waits_ran(struct waits *w, struct rings *rings)
{
    int result = prcb_ran_read(w->session, put_ran, rings, NULL);

    return result == -ENOMEM ? result : 0;
}

bool waits_has_wakers(const struct waits *w, struct prcb_error *err)
{
    return prcb_edges_walk(w->session, UINT64_MAX, NULL, NULL, NULL, err) != -EOPNOTSUPP;
}

uint64_t waits_lost_switches(const struct waits *w)
{
    return w->lost_switches;
}

static uint32_t flags_of(const struct waits_options *options)
{
    return (options->stacks ? PRCB_OPEN_REGISTERS | PRCB_OPEN_CHOSEN : 0u) |
           (options->stacks && options->samples && !options->native ? PRCB_OPEN_RAN : 0u) |
           (options->switches ? PRCB_OPEN_SWITCHES : 0u) |
           (options->switches && options->wakers ? PRCB_OPEN_EDGES : 0u);
}

int waits_open(const struct waits_options *options, struct waits **ret, struct prcb_error *err)
{
    struct prcb_options how = {
        .size = sizeof(how),
        .tier = options->tier,
        .flags = flags_of(options),
    };
    struct waits *w = calloc(1, sizeof(*w));
    int result;

    if (!w)
        return prcb_fail(err, -ENOMEM, "out of memory");
    result = prcb_open(&how, &w->session, err);
    /* prcbd may have refused only the records: the user's other sessions may keep all that are
     * allowed. */
    if (!result && options->switches && prcb_session_tier(w->session) == PRCB_TIER_PERF) {
        prcb_close(w->session);
        w->session = NULL;
        how.flags &= ~(uint32_t)(PRCB_OPEN_SWITCHES | PRCB_OPEN_EDGES);
        result = prcb_open(&how, &w->session, err);
    }
#ifdef HAVE_STACK
    if (!result && options->stacks)
        result = looks_open(w->session, PERCENT,
                            (options->native ? PRCB_STACKS_NATIVE : 0) |
                                (options->spans ? PRCB_STACKS_SPANS : 0),
                            &w->looks, err);
#else
    if (!result && options->stacks)
        result = prcb_fail(err, -EOPNOTSUPP, "this build cannot read stacks of waits");
#endif
    if (result) {
        waits_close(w);
        return result;
    }
    w->switches =
        options->switches && !prcb_session_switches(w->session, put_switch, NULL, NULL, NULL);
    *ret = w;
    return 0;
}

void waits_close(struct waits *w)
{
    if (!w)
        return;
#ifdef HAVE_STACK
    looks_close(w->looks);
#endif
    prcb_close(w->session);
    table_free(&w->places);
    free(w->seen);
    free(w);
}

void waits_stop_looking(struct waits *w)
{
#ifdef HAVE_STACK
    looks_close(w->looks);
#endif
    w->looks = NULL;
}

static void meet(const struct waits *w, pid_t pid)
{
#ifdef HAVE_STACK
    if (w->looks)
        prcb_stacks_meet(looks_stacks(w->looks), pid, NULL);
#else
    (void)w;
    (void)pid;
#endif
}

int waits_add(struct waits *w, pid_t pid, bool child, struct prcb_error *err)
{
    int result;

    if (!pid)
        return prcb_profile_all(w->session, err);
    if (child)
        return prcb_profile_thread(w->session, pid, PRCB_FOLLOW_ALL, err);
    /* What takes longest comes first; then its threads have accounts. */
    meet(w, pid);
    result = prcb_profile_process(w->session, pid, PRCB_FOLLOW_ALL, err);
    if (!result)
        meet(w, pid);
    return result;
}

/* ---- the beginning ------------------------------------------------------------------------ */

/* A thread that has switched since profiling began is described by its switches. What it waits
 * for may be known even if it is not known for how long. */
static int begin_thread(const struct prcb_account *a, void *ctx)
{
    const struct prcb_cause_info *cause =
        a->present & PRCB_HAS_OPEN ? prcb_cause_info(a->open.cause) : NULL;
    bool running = a->flags & PRCB_ACCOUNT_RUNNING;
    bool ready = !running && cause && cause->kind == PRCB_KIND_READY;
    struct writer_state state = {
        .state = running ? "running"
                 : ready ? "ready"
                         : "waiting",
        .cause = !running && cause && a->open.cause != PRCB_CAUSE_NONE ? cause->name : NULL,
        .reason = -1,
    };

    if (a->flags & (PRCB_ACCOUNT_EXITED | PRCB_ACCOUNT_ORPHAN) || a->switches ||
        !(a->present & PRCB_HAS_SWITCHES) || (running && a->wait_ns))
        return 0;
    if (state.cause)
        state.reason = cause->reason;
    return world_state(ctx, a->pid, a->tid, &state);
}

int waits_begin(struct waits *w, struct world *world, struct prcb_error *err)
{
    int result = -EAGAIN;

    for (int i = 0; i < 3 && result == -EAGAIN; i++)
        result = prcb_walk(w->session, begin_thread, world, err);
    return result == -EAGAIN ? 0 : result;
}

/* ---- stacks ------------------------------------------------------------------------------- */

#ifdef HAVE_STACK

/* NULL: there is none. */
static struct seen *find_seen(const struct waits *w, uint64_t key)
{
    size_t number = table_find_number(&w->places, key);

    return number ? &w->seen[number - 1] : NULL;
}

static int add_seen(struct waits *w, uint64_t key)
{
    if (array_add(w->seen, w->seen_count, w->seen_room, (struct seen){.switches = UINT64_MAX}))
        return -ENOMEM;
    return table_put_number(&w->places, key, w->seen_count);
}

/* Returns the account's place; if there is no memory for more, all is forgotten and recorded
 * again. NULL: no memory at all. */
static struct seen *seen_of(struct waits *w, uint64_t key)
{
    struct seen *place = find_seen(w, key);

    if (place)
        return place;
    if (!add_seen(w, key))
        return &w->seen[w->seen_count - 1];
    w->seen_count = 0;
    table_clear(&w->places);
    return add_seen(w, key) ? NULL : w->seen;
}

bool waits_is_wait(const struct prcb_account *a)
{
    const struct prcb_cause_info *info = prcb_cause_info(a->open.cause);

    if (a->flags & (PRCB_ACCOUNT_RUNNING | PRCB_ACCOUNT_EXITED | PRCB_ACCOUNT_ORPHAN))
        return false;
    return !(a->present & PRCB_HAS_OPEN) ||
           (a->open.ns >= WAIT_NS && info && info->kind == PRCB_KIND_WAIT);
}

const char *waits_missing(const struct prcb_account *a, int result)
{
    return a->flags & PRCB_ACCOUNT_KTHREAD ? "kernel" : result == -EBUSY ? "budget" : "unreadable";
}

const char *waits_kind(const struct prcb_stack *stack)
{
    static const char *const kinds[] = {"blocked", "idle", "either"};

    return kinds[stack->kind <= PRCB_STACK_EITHER ? stack->kind : 0];
}

static int put_stack(struct waits *w, struct ring_event *event, const struct prcb_stack *stack)
{
    const char *names[RINGS_FRAMES]; /* the reader's, one copy of each name */
    uint64_t chain[RINGS_FRAMES];

    for (uint32_t i = 0; i < stack->frame_count; i++) {
        const struct prcb_frame *frame = &stack->frames[i];

        /* The kernel's part has only names, an interpreter's a source and a line. */
        if ((frame->address || frame->place) && event->chain_count < RINGS_FRAMES)
            chain[event->chain_count++] = ring_of_frame(frame);
        else if (!frame->address && !frame->place && frame->function &&
                 event->kernel_count < RINGS_FRAMES)
            names[event->kernel_count++] = frame->function;
    }
    if (!event->chain_count && !event->kernel_count)
        event->missing = "kernel";
    event->chain = chain;
    event->kernel_names = names;
    event->wait_kind = waits_kind(stack);
    event->word = stack->word;
    event->has_span = stack->span_state == PRCB_SPAN_THERE;
    event->span = stack->span;
    return rings_put_wait(w->rings, event);
}

/* Records a stack as it is read: at this moment the thread was in that wait, for it had been
 * before, and still was when the stack had been copied. */
static int look_account(void *ctx, const struct prcb_account *a, uint64_t now)
{
    struct waits *w = ctx;
    struct prcb_stack stack = {.size = sizeof(stack)};
    struct ring_event event = {.pid = a->pid, .tid = a->tid, .time_ns = now, .one_in = 1};
    struct seen *seen;
    int result;

    if (!waits_is_wait(a) || !a->tid)
        return 0;
    seen = seen_of(w, a->key);
    if (!seen)
        return -ENOMEM;
    if (seen->switches == a->switches && seen->stack)
        return 0;
    result = looks_read(w->looks, a, &stack);
    if (result == -ENOMEM)
        return result;
    if (result == -EAGAIN || result == -ESRCH || result == -ESTALE)
        return 0; /* it is over */
    if (result == -EBUSY && seen->switches == a->switches)
        return 0; /* that was said */
    *seen = (struct seen){a->switches, result != -EBUSY};
    if (result) {
        event.missing = waits_missing(a, result);
        return rings_put_wait(w->rings, &event);
    }
    return put_stack(w, &event, &stack);
}

/* The middle of the wait lies within it, whichever program's stamp of its ends is the earlier. */
static int look_chosen(void *ctx, const struct prcb_chosen *chosen, const struct prcb_stack *stack,
                       int result, struct object_wait wait)
{
    struct waits *w = ctx;
    struct ring_event event = {
        .pid = chosen->pid,
        .tid = chosen->tid,
        .time_ns = chosen->began_ns + chosen->ns / 2,
        .one_in = chosen->one_in,
    };
    const struct seen *seen = find_seen(w, chosen->key);

    (void)wait; /* recordings have no objects */
    if (seen && seen->switches == chosen->switches && seen->stack)
        return 0; /* it was read as it lasted */
    if (stack)
        return put_stack(w, &event, stack);
    event.missing = result == -EBUSY    ? "budget"
                    : result == -EPERM  ? "permission"
                    : result == -ENOSPC ? "no room"
                    : result == -ESRCH  ? "ended"
                                        : "unreadable";
    return rings_put_wait(w->rings, &event);
}

int waits_look(struct waits *w, struct rings *rings, bool last, int *ret_ms, struct prcb_error *err)
{
    const struct looks_fns fns = {
        .account = look_account, .chosen = look_chosen, .last = last, .ctx = w};
    uint64_t now = now_ns(), next;
    bool ended;
    int result = 0;

    if (!w->looks)
        return 0;
    w->rings = rings;
    if (last || now >= looks_next(w->looks))
        result = looks_take(w->looks, &fns, &ended, err);
    now = now_ns();
    next = looks_next(w->looks);
    if (next < now + (uint64_t)*ret_ms * NS_PER_MS)
        *ret_ms = next > now ? (int)((next - now) / NS_PER_MS) + 1 : 1;
    return result;
}

void waits_interpreted(const struct waits *w, uint64_t *ret_whole, uint64_t *ret_partly)
{
    struct prcb_stacks_status status = {.size = sizeof(status)};

    if (w->looks && !prcb_stacks_status(looks_stacks(w->looks), &status)) {
        *ret_whole = status.interpreted;
        *ret_partly = status.uninterpreted;
    }
}

#else

int waits_look(struct waits *w, struct rings *rings, bool last, int *ret_ms, struct prcb_error *err)
{
    (void)w;
    (void)rings;
    (void)last;
    (void)ret_ms;
    (void)err;
    return 0;
}

void waits_interpreted(const struct waits *w, uint64_t *ret_whole, uint64_t *ret_partly)
{
    (void)w, (void)ret_whole, (void)ret_partly;
}

#endif
