/* SPDX-License-Identifier: BSD-2-Clause */
#include "whom.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "table.h"

struct sum {
    uint64_t group;
    struct prcb_edge edge; /* of ready time: kind BEHIND, cause NONE */
    size_t next;           /* number of the one before of this group and cause; 0: none */
};

/* A sum's number is its place from 1. */
struct whom {
    struct sum *sums;
    size_t count, room;
    struct table places; /* by all that same() looks at */
    struct table lists;  /* the last sum of a group and a cause */
};

int whom_open(struct whom **ret)
{
    struct whom *w = calloc(1, sizeof(*w));

    if (w)
        *ret = w;
    return w ? 0 : -ENOMEM;
}

void whom_close(struct whom *w)
{
    if (!w)
        return;
    table_free(&w->places);
    table_free(&w->lists);
    free(w->sums);
    free(w);
}

static uint64_t list_key(uint64_t group, uint32_t cause)
{
    return table_mix(group, cause);
}

/* Where the number of the last sum of a group and a cause is; NULL: there is none. */
static struct table_slot *list_of(const struct whom *w, uint64_t group, uint32_t cause)
{
    struct table_slot *slot = NULL;

    while ((slot = table_next(&w->lists, list_key(group, cause), slot))) {
        if (w->sums[slot->number - 1].group == group &&
            w->sums[slot->number - 1].edge.cause == cause)
            return slot;
    }
    return NULL;
}

/* Finds the first one of a kind, from a sum on; number 0: there is none. */
static struct sum *find_in(const struct whom *w, size_t number, uint32_t kind)
{
    while (number && w->sums[number - 1].edge.kind != kind)
        number = w->sums[number - 1].next;
    return number ? &w->sums[number - 1] : NULL;
}

/* Finds those of a group, a kind and a cause. */
static struct sum *first_of(const struct whom *w, uint64_t group, uint32_t kind, uint32_t cause)
{
    const struct table_slot *list = list_of(w, group, cause);

    return find_in(w, list ? list->number : 0, kind);
}

static struct sum *next_of(const struct whom *w, const struct sum *sum)
{
    return find_in(w, sum->next, sum->edge.kind);
}

/* One and the same who. A thread that had several names is as many. */
static bool same(const struct prcb_edge *a, const struct prcb_edge *b)
{
    return a->kind == b->kind && a->cause == b->cause && a->by == b->by && a->vector == b->vector &&
           a->tid == b->tid && a->pid == b->pid && a->cgroup == b->cgroup &&
           !memcmp(a->comm, b->comm, sizeof(a->comm));
}

static uint64_t place_of(uint64_t group, const struct prcb_edge *edge)
{
    uint64_t who = edge->cgroup ? edge->cgroup : (uint64_t)(uint32_t)edge->tid << 32 | edge->vector;
    uint64_t place = table_mix(group, who);

    return table_mix(place, (uint64_t)edge->cause << 32 | edge->by << 8 | edge->kind);
}

/* Returns NULL if there is none. */
static struct sum *find(const struct whom *w, uint64_t group, const struct prcb_edge *edge)
{
    const struct table_slot *slot = NULL;
    uint64_t place = place_of(group, edge);

    while ((slot = table_next(&w->places, place, slot))) {
        struct sum *sum = &w->sums[slot->number - 1];

        if (sum->group == group && same(&sum->edge, edge))
            return sum;
    }
    return NULL;
}

static int add_to(struct whom *w, uint64_t group, const struct prcb_edge *edge)
{
    struct sum *sum = find(w, group, edge);
    struct table_slot *list;

    if (sum) {
        sum->edge.count += edge->count;
        sum->edge.ns += edge->ns;
        return 0;
    }
    list = list_of(w, group, edge->cause);
    if (array_reserve(w->sums, w->count, w->room, 1) ||
        table_put_number(&w->places, place_of(group, edge), w->count + 1))
        return -ENOMEM;
    w->sums[w->count++] = (struct sum){group, *edge, list ? list->number : 0};
    if (!list)
        return table_put_number(&w->lists, list_key(group, edge->cause), w->count);
    list->number = w->count;
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
    size_t count;
};

static int take_key(const struct prcb_account *a, void *ctx)
{
    struct keys *keys = ctx;

    return array_append(keys->keys, keys->count, a->key);
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

    for (size_t i = 0; i < from->count && !result; i++)
        result = add_to(w, from->sums[i].group, &from->sums[i].edge);
    return result;
}

int whom_regroup(struct whom *w, uint64_t (*to)(uint64_t group, void *ctx), void *ctx)
{
    size_t count = w->count;
    int result = 0;

    for (size_t i = 0; i < count && !result; i++) {
        uint64_t group = w->sums[i].group == WHOM_ALL ? WHOM_ALL : to(w->sums[i].group, ctx);
        const struct prcb_edge edge = w->sums[i].edge; /* the array may move */

        if (group != w->sums[i].group)
            result = add_to(w, group, &edge);
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
         sum = next_of(w, sum)) {
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
    for (size_t i = 0; i < w->count; i++) {
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

    for (size_t i = 0; !result && i < before->count; i++) {
        const struct sum *old = &before->sums[i];

        /* Sums wrap round until what is now has been added. */
        result = add_rest(w, old, -old->edge.count, -old->edge.ns);
    }
    for (size_t i = 0; !result && i < now->count; i++) {
        const struct sum *new = &now->sums[i];
        struct prcb_edge grown = new->edge;
        const struct sum *old;

        result = add_rest(w, new, new->edge.count, new->edge.ns);
        if (result || new->edge.by == PRCB_BY_REST)
            continue;
        old = find(before, new->group, &new->edge);
        if (old && (grown.count < old->edge.count || grown.ns < old->edge.ns))
            continue;
        grown.count -= old ? old->edge.count : 0;
        grown.ns -= old ? old->edge.ns : 0;
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

    for (struct sum *sum = first_of(w, group, kind, cause); sum; sum = next_of(w, sum))
        count += sum->edge.count || sum->edge.ns;
    rows = calloc(count + 1, sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    count = 0;
    for (struct sum *sum = first_of(w, group, kind, cause); sum; sum = next_of(w, sum)) {
        if (sum->edge.count || sum->edge.ns)
            rows[count++] = sum->edge;
    }
    array_sort(rows, count, by_time);
    *ret = rows;
    *ret_count = count;
    return 0;
}

int whom_rows(const struct whom *w, uint64_t group, uint32_t cause, struct prcb_edge **ret,
              size_t *ret_count)
{
    return rows_of(w, group, cause ? PRCB_EDGE_WOKEN_BY : PRCB_EDGE_BEHIND, cause, ret, ret_count);
}

int whom_meanwhile(const struct whom *w, uint64_t group, struct prcb_edge **ret, size_t *ret_count)
{
    return rows_of(w, group, PRCB_EDGE_MEANWHILE, PRCB_CAUSE_NONE, ret, ret_count);
}

int whom_holders(const struct whom *w, uint64_t group, uint32_t cause, struct prcb_edge **ret,
                 size_t *ret_count)
{
    return rows_of(w, group, PRCB_EDGE_HELD_BY, cause, ret, ret_count);
}
