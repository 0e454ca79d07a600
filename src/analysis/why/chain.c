/* SPDX-License-Identifier: BSD-2-Clause */
#include "chain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cause.h"
#include "futex.h"

#define WALK_TRIES 50
#define LONG_NS    1000000000ull /* of waits so long stacks have the kernel's part (stacks.c) */

/* ---- accounts ---- */

struct walk {
    struct chain *chain;
    size_t room;
};

static bool is_wait(const struct prcb_account *a)
{
    const struct prcb_cause_info *info = prcb_cause_info(a->open.cause);

    if (a->flags & (PRCB_ACCOUNT_RUNNING | PRCB_ACCOUNT_EXITED))
        return false;
    return !(a->present & PRCB_HAS_OPEN) || (info && info->kind == PRCB_KIND_WAIT);
}

static int take_account(const struct prcb_account *a, void *ctx)
{
    struct walk *w = ctx;
    struct chain *c = w->chain;

    if (a->flags & PRCB_ACCOUNT_EXITED)
        return 0;
    if (array_reserve(c->threads, c->count, w->room, 1))
        return -ENOMEM;
    c->threads[c->count] = (struct chain_thread){
        .key = a->key,
        .switches = a->switches,
        .tid = a->tid,
        .pid = a->pid,
        .waits = is_wait(a),
        .cause = a->present & PRCB_HAS_OPEN ? a->open.cause : PRCB_CAUSE_NONE,
        .wait_ns = a->present & PRCB_HAS_OPEN ? a->open.ns : 0,
        .longer = a->open.ns == a->wall_ns,
        .next = CHAIN_NONE,
    };
    memcpy(c->threads[c->count++].comm, a->comm, sizeof(a->comm));
    return 0;
}

static int by_key(const void *left, const void *right)
{
    const struct chain_thread *a = left, *b = right;

    return a->key < b->key ? -1 : a->key > b->key;
}

/* The second look: a thread that is in another wait by now has no known wait. */
static int compare_account(const struct prcb_account *a, void *ctx)
{
    const struct chain_thread wanted = {.key = a->key};
    struct chain *c = ctx;
    struct chain_thread *t = array_search(&wanted, c->threads, c->count, by_key);

    if (t && t->waits && t->switches == a->switches && is_wait(a))
        t->loop = 1; /* seen again */
    return 0;
}

static int walk(struct prcb *session, prcb_walk_fn fn, struct walk *w, struct prcb_error *err)
{
    int result = -EAGAIN;

    for (int i = 0; i < WALK_TRIES && result == -EAGAIN; i++) {
        if (fn == take_account)
            w->chain->count = 0;
        result = prcb_walk(session, fn, fn == take_account ? (void *)w : (void *)w->chain, err);
    }
    return result;
}

/* ---- what it waits for ---- */

static struct chain_thread *thread_of(struct chain *c, pid_t pid, pid_t own)
{
    for (size_t i = 0; i < c->count; i++) {
        struct chain_thread *t = &c->threads[i];

        if (t->pid != pid)
            continue;
        if (!t->own)
            t->own = futex_own_number(t->pid, t->tid);
        if (t->own == own)
            return t;
    }
    return NULL;
}

static void look_at_futex(struct chain *c, struct chain_thread *t, const struct futex *futex)
{
    struct futex_place place;
    struct chain_thread *holder;
    pid_t own;

    t->futex = futex->address;
    t->timed = futex->timed;
    futex_find_place(t->pid, t->tid, futex->address, &place);
    snprintf(t->place, sizeof(t->place), "%s", place.name);
    own = futex_holder(t->tid, futex, t->has_stack ? &t->stack : NULL, !c->no_mutexes);
    holder = own > 0 ? thread_of(c, t->pid, own) : NULL;
    if (!holder || holder == t)
        return;
    t->holder = holder->tid;
    t->next = (size_t)(holder - c->threads);
}

/* Whether a thread is all that there is of its process, as far as is known here. */
static bool is_alone(const struct chain *c, const struct chain_thread *t)
{
    for (size_t i = 0; i < c->count; i++) {
        if (c->threads[i].pid == t->pid && &c->threads[i] != t)
            return false;
    }
    return true;
}

/* Takes who is waited for from what the wait is for: a holder, or a child. Of a process with
 * several threads it is not known which of them is waited for, so it does not lead on. */
static void look_at_whom(struct chain *c, struct chain_thread *t, const struct objects *objects,
                         struct object_wait wait)
{
    const struct object *object = wait.object ? objects_at(objects, wait.object) : NULL;
    bool child = object && object->kind == OBJECT_PROCESS && !wait.holder;
    uint32_t number = wait.holder ? wait.holder : child ? wait.object : 0;
    bool leads;

    if (!number || t->holder)
        return;
    object = objects_at(objects, number);
    if (!object->tid || object->tid == t->tid)
        return;
    leads = t->futex || t->cause == PRCB_CAUSE_TRACED || cause_has(t->cause, CAUSE_IS_KERNEL_LOCK);
    t->holder = object->tid;
    t->whom = number;
    for (size_t i = 0; i < c->count; i++) {
        if (c->threads[i].tid != object->tid || !(leads || is_alone(c, &c->threads[i])))
            continue;
        t->next = i;
        return;
    }
}

static void look_at(struct chain *c, struct chain_thread *t, struct prcb *session,
                    struct prcb_stacks *stacks, struct objects *objects)
{
    struct prcb_account a = {.size = sizeof(a)};
    struct object_wait wait = {0};
    struct object_call call;
    struct prcb_thread *handle;
    struct futex futex;
    int result;

    if (prcb_thread_open_key(session, t->key, &handle, NULL))
        return;
    t->stack.size = sizeof(t->stack);
    result = prcb_thread_read(handle, &a);
    prcb_thread_close(handle);
    if (result || a.switches != t->switches)
        return;
    if (t->longer && a.open.ns < LONG_NS)
        a.open.ns = LONG_NS;
    t->has_stack = !prcb_stacks_read(stacks, &a, &t->stack, NULL);
    if (t->has_stack)
        wait = objects_read(objects, &a, &t->stack);
    t->object = wait.object;
    if (object_call_read(t->pid, t->tid, &call) && futex_of_call(&call, &futex))
        look_at_futex(c, t, &futex);
    look_at_whom(c, t, objects, wait);
}

/* Whether the chain that begins at one thread leads to another. */
static bool leads_to(const struct chain *c, size_t at, size_t to)
{
    for (size_t i = 0; i < c->count && at != CHAIN_NONE && at != to; i++)
        at = c->threads[at].next;
    return at == to;
}

void chain_add_ends(struct chain *c, const struct objects *objects)
{
    for (size_t i = 0; i < c->count; i++) {
        struct chain_thread *t = &c->threads[i];
        pid_t other = t->object && !t->holder ? objects_at(objects, t->object)->other : 0;

        if (!other || other == t->pid)
            continue;
        t->holder = other;
        t->whom = t->object;
        for (size_t k = 0; k < c->count && t->next == CHAIN_NONE; k++) {
            if (c->threads[k].pid != other || !is_alone(c, &c->threads[k]) || leads_to(c, k, i))
                continue;
            t->next = k;
            c->threads[k].waiters++;
        }
    }
}

/* ---- loops ---- */

/* Each thread has one holder at most, so a walk along them ends or comes to where it was. */
static int find_loops(struct chain *c)
{
    size_t *seen = calloc(c->count ? c->count : 1, sizeof(*seen)); /* by which walk, from 1 */

    if (!seen)
        return -ENOMEM;
    for (size_t i = 0; i < c->count; i++) {
        size_t at = i;

        while (at != CHAIN_NONE && !seen[at]) {
            seen[at] = i + 1;
            at = c->threads[at].next;
        }
        if (at == CHAIN_NONE || seen[at] != i + 1 || c->threads[at].loop)
            continue;
        c->loops++;
        for (; !c->threads[at].loop; at = c->threads[at].next)
            c->threads[at].loop = c->loops;
    }
    free(seen);
    return 0;
}

/* A thread that was not in the same wait throughout waits for nobody. */
static void keep_confirmed(struct chain *c)
{
    for (size_t i = 0; i < c->count; i++) {
        struct chain_thread *t = &c->threads[i];

        if (!t->loop) {
            t->holder = 0;
            t->whom = 0;
            t->next = CHAIN_NONE;
            t->has_stack = false;
            t->object = 0;
        }
        t->loop = 0;
    }
    for (size_t i = 0; i < c->count; i++) {
        if (c->threads[i].next != CHAIN_NONE)
            c->threads[c->threads[i].next].waiters++;
    }
}

int chain_take(struct prcb *session, struct prcb_stacks *stacks, struct objects *objects,
               uint64_t min_wait_ns, struct chain *ret, struct prcb_error *err)
{
    struct walk w = {.chain = ret};
    int result;

    *ret = (struct chain){.no_mutexes = !futex_mutex_names_its_owner()};
    result = walk(session, take_account, &w, err);
    if (!result)
        array_sort(ret->threads, ret->count, by_key);
    for (size_t i = 0; i < ret->count && !result; i++) {
        if (ret->threads[i].waits &&
            (ret->threads[i].wait_ns >= min_wait_ns || !ret->threads[i].cause))
            look_at(ret, &ret->threads[i], session, stacks, objects);
    }
    if (!result)
        result = walk(session, compare_account, &w, err);
    if (!result) {
        keep_confirmed(ret);
        result = find_loops(ret);
    }
    if (result)
        chain_deinit(ret);
    return result;
}

void chain_deinit(struct chain *c)
{
    free(c->threads);
    *c = (struct chain){0};
}
