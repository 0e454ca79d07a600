/* SPDX-License-Identifier: BSD-2-Clause */
#include "whom.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 64

struct sum {
    pid_t process;
    struct prcb_edge edge; /* of ready time: kind BEHIND, cause NONE */
};

/* Open addressing; edge.kind 0: free. */
struct whom {
    struct sum *sums;
    size_t count, room;
};

int whom_open(struct whom **ret)
{
    struct whom *w = calloc(1, sizeof(*w));

    if (!w)
        return -ENOMEM;
    w->room = FIRST_ROOM;
    w->sums = calloc(w->room, sizeof(*w->sums));
    if (!w->sums) {
        free(w);
        return -ENOMEM;
    }
    *ret = w;
    return 0;
}

void whom_close(struct whom *w)
{
    if (!w)
        return;
    free(w->sums);
    free(w);
}

/* One and the same who. A thread that had several names is as many. */
static bool same(const struct prcb_edge *a, const struct prcb_edge *b)
{
    return a->kind == b->kind && a->cause == b->cause && a->by == b->by && a->vector == b->vector &&
           a->tid == b->tid && a->pid == b->pid && !memcmp(a->comm, b->comm, sizeof(a->comm));
}

static struct sum *place_of(const struct whom *w, pid_t process, const struct prcb_edge *edge)
{
    uint64_t hash = (uint64_t)process * 31 + (uint64_t)edge->tid * 7919 + edge->vector * 127u +
                    edge->cause * 17u + edge->by * 5u + edge->kind;

    for (size_t at = (size_t)(hash * 0x9e3779b97f4a7c15ull >> 32);; at++) {
        struct sum *sum = &w->sums[at & (w->room - 1)];

        if (!sum->edge.kind || (sum->process == process && same(&sum->edge, edge)))
            return sum;
    }
}

static int grow(struct whom *w)
{
    struct whom grown = {calloc(2 * w->room, sizeof(*w->sums)), w->count, 2 * w->room};

    if (!grown.sums)
        return -ENOMEM;
    for (size_t i = 0; i < w->room; i++) {
        if (w->sums[i].edge.kind)
            *place_of(&grown, w->sums[i].process, &w->sums[i].edge) = w->sums[i];
    }
    free(w->sums);
    *w = grown;
    return 0;
}

static int add_to(struct whom *w, pid_t process, const struct prcb_edge *edge)
{
    struct sum *sum = place_of(w, process, edge);

    if (!sum->edge.kind) {
        if (4 * w->count >= 3 * w->room && grow(w))
            return -ENOMEM;
        sum = place_of(w, process, edge);
        sum->process = process;
        sum->edge = *edge;
        w->count++;
        return 0;
    }
    sum->edge.count += edge->count;
    sum->edge.ns += edge->ns;
    return 0;
}

int whom_add(struct whom *w, pid_t process, const struct prcb_edge *edge)
{
    struct prcb_edge one = *edge;
    int result;

    /* Ready time is ready time: whoever had the processor. */
    if (one.kind != PRCB_EDGE_WOKEN_BY) {
        one.kind = PRCB_EDGE_BEHIND;
        one.cause = PRCB_CAUSE_NONE;
    }
    result = add_to(w, process, &one);
    return result ? result : add_to(w, WHOM_ALL, &one);
}

struct take {
    struct whom *whom;
    struct prcb_account account;
};

static int take_edge(const struct prcb_edge *edge, void *ctx)
{
    struct take *take = ctx;

    return whom_add(take->whom, take->account.pid, edge);
}

int whom_take(struct whom *w, struct prcb *session, uint64_t key)
{
    struct take take = {.whom = w, .account.size = sizeof(take.account)};

    return prcb_edges_walk(session, key, &take.account, take_edge, &take, NULL);
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

int whom_take_all(struct whom *w, struct prcb *session, struct prcb_error *err)
{
    struct keys keys = {0};
    int result = prcb_walk(session, take_key, &keys, err);

    for (size_t i = 0; i < keys.count && !result; i++) {
        result = whom_take(w, session, keys.keys[i]);
        if (result == -ESTALE)
            result = 0;
    }
    free(keys.keys);
    return result;
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

int whom_rows(const struct whom *w, pid_t process, uint32_t cause, struct prcb_edge **ret,
              size_t *ret_count)
{
    struct prcb_edge *rows = calloc(w->count + 1, sizeof(*rows));
    size_t count = 0;

    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < w->room; i++) {
        if (w->sums[i].edge.kind && w->sums[i].process == process && w->sums[i].edge.cause == cause)
            rows[count++] = w->sums[i].edge;
    }
    qsort(rows, count, sizeof(*rows), by_time);
    *ret = rows;
    *ret_count = count;
    return 0;
}
