/* SPDX-License-Identifier: BSD-2-Clause */
#include "whom.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 64

struct sum {
    uint64_t group;
    struct prcb_edge edge; /* of ready time: kind BEHIND, cause NONE */
    struct sum *next;      /* of the same list, of group and cause */
};

/* Open addressing; edge.kind 0: free. */
struct whom {
    struct sum *sums;
    struct sum **lists;
    size_t count, room;
};

static int make_room(struct whom *w, size_t room)
{
    w->room = room;
    w->sums = calloc(room, sizeof(*w->sums));
    w->lists = calloc(room, sizeof(struct sum *));
    return w->sums && w->lists ? 0 : -ENOMEM;
}

static void free_room(struct whom *w)
{
    free(w->sums);
    free(w->lists);
}

int whom_open(struct whom **ret)
{
    struct whom *w = calloc(1, sizeof(*w));

    if (!w)
        return -ENOMEM;
    if (make_room(w, FIRST_ROOM)) {
        whom_close(w);
        return -ENOMEM;
    }
    *ret = w;
    return 0;
}

void whom_close(struct whom *w)
{
    if (!w)
        return;
    free_room(w);
    free(w);
}

static struct sum **list_of(const struct whom *w, uint64_t group, uint32_t cause)
{
    return &w->lists[(size_t)((group * 31 + cause) * 0x9e3779b97f4a7c15ull >> 32) & (w->room - 1)];
}

/* The next from here on that is of a group, a kind and a cause. */
static struct sum *find_in(struct sum *sum, uint64_t group, uint32_t kind, uint32_t cause)
{
    while (sum && (sum->group != group || sum->edge.kind != kind || sum->edge.cause != cause))
        sum = sum->next;
    return sum;
}

/* Those of a group, a kind and a cause. */
static struct sum *first_of(const struct whom *w, uint64_t group, uint32_t kind, uint32_t cause)
{
    return find_in(*list_of(w, group, cause), group, kind, cause);
}

static struct sum *next_of(const struct sum *sum)
{
    return find_in(sum->next, sum->group, sum->edge.kind, sum->edge.cause);
}

/* One and the same who. A thread that had several names is as many. */
static bool same(const struct prcb_edge *a, const struct prcb_edge *b)
{
    return a->kind == b->kind && a->cause == b->cause && a->by == b->by && a->vector == b->vector &&
           a->tid == b->tid && a->pid == b->pid && !memcmp(a->comm, b->comm, sizeof(a->comm));
}

static struct sum *place_of(const struct whom *w, uint64_t group, const struct prcb_edge *edge)
{
    uint64_t hash = group * 31 + (uint64_t)edge->tid * 7919 + edge->vector * 127u +
                    edge->cause * 17u + edge->by * 5u + edge->kind;

    for (size_t at = (size_t)(hash * 0x9e3779b97f4a7c15ull >> 32);; at++) {
        struct sum *sum = &w->sums[at & (w->room - 1)];

        if (!sum->edge.kind || (sum->group == group && same(&sum->edge, edge)))
            return sum;
    }
}

static void put(struct whom *w, struct sum *sum, uint64_t group, const struct prcb_edge *edge)
{
    struct sum **list = list_of(w, group, edge->cause);

    *sum = (struct sum){group, *edge, *list};
    *list = sum;
    w->count++;
}

static int grow(struct whom *w)
{
    struct whom grown = {0};

    if (make_room(&grown, 2 * w->room)) {
        free_room(&grown);
        return -ENOMEM;
    }
    for (size_t i = 0; i < w->room; i++) {
        if (w->sums[i].edge.kind)
            put(&grown, place_of(&grown, w->sums[i].group, &w->sums[i].edge), w->sums[i].group,
                &w->sums[i].edge);
    }
    free_room(w);
    *w = grown;
    return 0;
}

static int add_to(struct whom *w, uint64_t group, const struct prcb_edge *edge)
{
    struct sum *sum = place_of(w, group, edge);

    if (!sum->edge.kind) {
        if (4 * w->count >= 3 * w->room && grow(w))
            return -ENOMEM;
        put(w, place_of(w, group, edge), group, edge);
        return 0;
    }
    sum->edge.count += edge->count;
    sum->edge.ns += edge->ns;
    return 0;
}

int whom_add(struct whom *w, uint64_t group, const struct prcb_edge *edge)
{
    struct prcb_edge one = *edge;
    int result;

    /* Ready time is ready time: whoever had the processor. */
    if (one.kind == PRCB_EDGE_PREEMPTED_BY || one.kind == PRCB_EDGE_BEHIND) {
        one.kind = PRCB_EDGE_BEHIND;
        one.cause = PRCB_CAUSE_NONE;
    }
    result = add_to(w, group, &one);
    return result ? result : add_to(w, WHOM_ALL, &one);
}

struct take {
    struct whom *whom;
    const struct whom_taker *taker;
    struct prcb_account account;
};

static uint64_t group_of(const struct take *take)
{
    return take->taker ? take->taker->group(&take->account, take->taker->ctx)
                       : (uint64_t)take->account.pid;
}

static int take_edge(const struct prcb_edge *edge, void *ctx)
{
    struct take *take = ctx;

    return whom_add(take->whom, group_of(take), edge);
}

int whom_take(struct whom *w, struct prcb *session, uint64_t key, const struct whom_taker *taker)
{
    struct take take = {.whom = w, .taker = taker, .account.size = sizeof(take.account)};
    int result = prcb_edges_walk(session, key, &take.account, take_edge, &take, NULL);

    return result || !taker ? result : taker->seen(&take.account, taker->ctx);
}

struct keys {
    uint64_t *keys;
    size_t count, room;
};

static int take_key(const struct prcb_account *a, void *ctx)
{
    struct keys *keys = ctx;

    if (keys->count == keys->room) {
        size_t room = keys->room ? 2 * keys->room : 256;
        uint64_t *grown = realloc(keys->keys, room * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        keys->keys = grown;
        keys->room = room;
    }
    keys->keys[keys->count++] = a->key;
    return 0;
}

int whom_take_all(struct whom *w, struct prcb *session, const struct whom_taker *taker,
                  struct prcb_error *err)
{
    struct keys keys = {0};
    int result = prcb_walk(session, take_key, &keys, err);

    for (size_t i = 0; i < keys.count && !result; i++) {
        result = whom_take(w, session, keys.keys[i], taker);
        if (result == -ESTALE)
            result = 0;
    }
    free(keys.keys);
    return result;
}

int whom_join(struct whom *w, const struct whom *from)
{
    int result = 0;

    for (size_t i = 0; i < from->room && !result; i++) {
        if (from->sums[i].edge.kind)
            result = add_to(w, from->sums[i].group, &from->sums[i].edge);
    }
    return result;
}

static int add_rest(struct whom *w, const struct sum *of, uint64_t count, uint64_t ns)
{
    struct prcb_edge rest = {.kind = of->edge.kind,
                             .cause = of->edge.cause,
                             .by = PRCB_BY_REST,
                             .count = count,
                             .ns = ns};

    return add_to(w, of->group, &rest);
}

/* The longest of those that a rest stands beside, or of most. */
static struct prcb_edge *most_beside(struct whom *w, const struct sum *rest, bool time)
{
    struct prcb_edge *most = NULL;

    for (struct sum *sum = first_of(w, rest->group, rest->edge.kind, rest->edge.cause); sum;
         sum = next_of(sum)) {
        struct prcb_edge *edge = &sum->edge;

        if (sum != rest && (!most || (time ? edge->ns > most->ns : edge->count > most->count)))
            most = edge;
    }
    return most;
}

/* What was open at the beginning was in the rest, and has a name now that it is closed: a rest of
 * less than nothing. What had been counted of it is taken off the longest. */
static void even_out(struct whom *w)
{
    for (size_t i = 0; i < w->room; i++) {
        struct sum *rest = &w->sums[i];
        struct prcb_edge *most;

        if (rest->edge.by != PRCB_BY_REST)
            continue;
        while ((int64_t)rest->edge.ns < 0 && (most = most_beside(w, rest, true)) && most->ns) {
            uint64_t part = most->ns < -rest->edge.ns ? most->ns : -rest->edge.ns;

            most->ns -= part;
            rest->edge.ns += part;
        }
        while ((int64_t)rest->edge.count < 0 && (most = most_beside(w, rest, false)) &&
               most->count) {
            uint64_t part = most->count < -rest->edge.count ? most->count : -rest->edge.count;

            most->count -= part;
            rest->edge.count += part;
        }
    }
}

/* What a cell that was given up meanwhile had of before is in the rest: of it nothing is known of
 * this interval either. */
int whom_since(const struct whom *now, const struct whom *before, struct whom **ret)
{
    struct whom *w = NULL;
    int result = whom_open(&w);

    for (size_t i = 0; !result && i < before->room; i++) {
        const struct sum *old = &before->sums[i];

        /* Sums wrap round until what is now has been added. */
        if (old->edge.kind)
            result = add_rest(w, old, -old->edge.count, -old->edge.ns);
    }
    for (size_t i = 0; !result && i < now->room; i++) {
        const struct sum *new = &now->sums[i];
        struct prcb_edge grown = new->edge;
        const struct prcb_edge *old;

        if (!new->edge.kind)
            continue;
        result = add_rest(w, new, new->edge.count, new->edge.ns);
        if (result || new->edge.by == PRCB_BY_REST)
            continue;
        old = &place_of(before, new->group, &new->edge)->edge;
        if (old->kind && (grown.count < old->count || grown.ns < old->ns))
            continue;
        grown.count -= old->count;
        grown.ns -= old->ns;
        if (grown.count || grown.ns)
            result = add_to(w, new->group, &grown);
        if (!result)
            result = add_rest(w, new, -grown.count, -grown.ns);
    }
    if (result) {
        whom_close(w);
        return result;
    }
    even_out(w);
    *ret = w;
    return 0;
}

static int by_time(const void *left, const void *right)
{
    const struct prcb_edge *a = left, *b = right;

    if ((a->by == PRCB_BY_REST) != (b->by == PRCB_BY_REST))
        return a->by == PRCB_BY_REST ? 1 : -1;
    if (a->ns != b->ns)
        return a->ns > b->ns ? -1 : 1;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return a->tid < b->tid ? -1 : a->tid > b->tid;
}

static int rows_of(const struct whom *w, uint64_t group, uint32_t kind, uint32_t cause,
                   struct prcb_edge **ret, size_t *ret_count)
{
    struct prcb_edge *rows;
    size_t count = 0;

    for (struct sum *sum = first_of(w, group, kind, cause); sum; sum = next_of(sum))
        count += sum->edge.count || sum->edge.ns;
    rows = calloc(count + 1, sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    count = 0;
    for (struct sum *sum = first_of(w, group, kind, cause); sum; sum = next_of(sum)) {
        if (sum->edge.count || sum->edge.ns)
            rows[count++] = sum->edge;
    }
    qsort(rows, count, sizeof(*rows), by_time);
    *ret = rows;
    *ret_count = count;
    return 0;
}

int whom_rows(const struct whom *w, uint64_t group, uint32_t cause, struct prcb_edge **ret,
              size_t *ret_count)
{
    return rows_of(w, group, cause ? PRCB_EDGE_WOKEN_BY : PRCB_EDGE_BEHIND, cause, ret, ret_count);
}

int whom_holders(const struct whom *w, uint64_t group, uint32_t cause, struct prcb_edge **ret,
                 size_t *ret_count)
{
    return rows_of(w, group, PRCB_EDGE_HELD_BY, cause, ret, ret_count);
}
