/* SPDX-License-Identifier: BSD-2-Clause */
#include "ran.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <prcb/stack.h>

#ifdef HAVE_STACK

#include "fair.h"
#include "now.h"
#include "reach.h"

/* While stacks are unwound, the rings fill. */
#define FREE_NS  500000000ull
#define PERCENT  50           /* of the time that has passed */
#define COUNT_NS 100000000ull /* so often who is hungry is counted */
#define NOTES    64

/* What a thread executed at a moment. */
struct note {
    pid_t tid; /* 0: nothing */
    uint32_t node_count, whole;
    uint64_t time_ns, pc;
    struct prcb_node nodes[PRCB_CHAIN_NODES];
};

struct ran {
    struct prcb *session;       /* NULL: there is none */
    struct prcb_stacks *reader; /* NULL: nobody has needed it yet */
    struct note notes[NOTES];   /* by thread: one replaces another of its place */
    uint64_t opened_ns, used_ns, counted_ns;
    struct fair fair; /* who used it */
};

struct ran *ran_open(struct prcb *session)
{
    struct ran *ran = calloc(1, sizeof(*ran));

    if (ran) {
        ran->opened_ns = now_ns();
        ran->session = session;
    }
    return ran;
}

static struct note *note_of(struct ran *ran, pid_t tid)
{
    return &ran->notes[(uint32_t)tid % NOTES];
}

void ran_note(struct ran *ran, const struct ring_event *event)
{
    struct note *note = note_of(ran, event->tid);

    note->tid = event->tid;
    note->node_count = event->node_count <= PRCB_CHAIN_NODES ? event->node_count : 0;
    note->whole = event->whole;
    note->time_ns = event->time_ns + RINGS_RAN_NS;
    note->pc = event->ip;
    memcpy(note->nodes, event->nodes, note->node_count * sizeof(*note->nodes));
}

static void take_note(struct ran *ran, const struct ring_event *event, struct prcb_running *ret)
{
    struct note *note = note_of(ran, event->tid);

    if (note->tid != event->tid || note->pc != event->ip ||
        event->time_ns + RINGS_RAN_NS - note->time_ns > 2 * RINGS_RAN_NS)
        return;
    ret->nodes = note->nodes;
    ret->node_count = note->node_count;
    ret->whole = note->whole;
    ret->time_ns = note->time_ns;
    note->tid = 0;
}

void ran_close(struct ran *ran)
{
    if (ran && ran->reader)
        prcb_stacks_close(ran->reader);
    if (ran)
        fair_free(&ran->fair);
    free(ran);
}

static const char *explain(int result)
{
    switch (result) {
    case -EPERM:
        return "permission";
    case -ESRCH:
    case -ENOTSUP:
        return "ended";
    default:
        return "unreadable";
    }
}

/* Takes the frames that the process had at the sample's moment: the reader knows what it has
 * mapped now. Code that no file holds has no name there, and none here. */
static const char *take_frames(struct world *world, int32_t pid, const struct prcb_stack *stack,
                               uint64_t *ret, size_t *ret_count)
{
    for (uint32_t i = 0; i < stack->frame_count && i < RAN_FRAMES; i++) {
        const struct prcb_frame *frame = &stack->frames[i];

        if (frame->address && frame->file && !world_has_at(world, pid, frame)) {
            *ret_count = 0;
            return "other program";
        }
        ret[i] = ring_of_frame(frame);
        *ret_count = i + 1;
    }
    return stack->flags & PRCB_STACK_COMPLETE ? NULL
           : stack->flags & PRCB_STACK_CUT    ? "cut"
                                              : "broken";
}

static const char *unwind(struct ran *ran, struct world *world, const struct ring_event *event,
                          uint64_t *ret, size_t *ret_count)
{
    struct prcb_running running = {
        .size = sizeof(running),
        .pid = event->pid,
        .tid = event->tid,
        .stack = event->stack,
        .stack_bytes = event->stack_bytes,
    };
    struct prcb_stack stack = {.size = sizeof(stack)};
    uint64_t began = now_ns(), took;
    int result;

    running.pc = rings_registers(event->registers, running.registers);
    running.stack_at = running.registers[RINGS_SP];
    take_note(ran, event, &running);
    result = prcb_stacks_ran(ran->reader, &running, &stack, NULL);
    took = now_ns() - began;
    ran->used_ns += took;
    fair_charge(&ran->fair, event->pid, took / 1000);
    return result ? explain(result) : take_frames(world, event->pid, &stack, ret, ret_count);
}

/* Half of the time is not for a user, or a process of his, that had a fair share of it. */
static bool may_use(struct ran *ran, const struct world *world, int32_t pid)
{
    uint64_t now = now_ns(), budget = FREE_NS + (now - ran->opened_ns) * PERCENT / 100;

    if (now - ran->counted_ns >= COUNT_NS) {
        fair_count(&ran->fair, budget / 1000);
        ran->counted_ns = now;
    }
    fair_meet(&ran->fair, pid, (uint64_t)world_known_thread(world, pid, pid), reach_user);
    if (fair_is_greedy(&ran->fair, pid, reach_user))
        budget /= 2;
    if (ran->used_ns < budget)
        return true;
    fair_refuse(&ran->fair, pid, reach_user);
    return false;
}

const char *ran_unwind(struct ran *ran, struct world *world, const struct ring_event *event,
                       uint64_t *ret, size_t *ret_count)
{
    *ret_count = 0;
    if (event->kernel_only)
        return NULL;
    if (!event->registers || !event->stack_bytes)
        return "no copy";
    if (!may_use(ran, world, event->pid))
        return "budget";
    if (!ran->reader && prcb_stacks_open(ran->session, NULL, &ran->reader, NULL))
        return "unreadable";
    return unwind(ran, world, event, ret, ret_count);
}

#else

struct ran *ran_open(struct prcb *session)
{
    (void)session;
    return NULL;
}

void ran_note(struct ran *ran, const struct ring_event *event)
{
    (void)ran;
    (void)event;
}

void ran_close(struct ran *ran)
{
    (void)ran;
}

const char *ran_unwind(struct ran *ran, struct world *world, const struct ring_event *event,
                       uint64_t *ret, size_t *ret_count)
{
    (void)ran;
    (void)world;
    (void)event;
    (void)ret;
    *ret_count = 0;
    return "unreadable";
}

#endif
