/* SPDX-License-Identifier: BSD-2-Clause */
#include "behind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

static bool same_culprit(const struct prcb_edge *a, const struct prcb_edge *b)
{
    return a->by == b->by && a->vector == b->vector && a->tid == b->tid && a->pid == b->pid &&
           a->cgroup == b->cgroup;
}

/* Adds an edge to the row that a span has of its culprit. */
static int add(struct behind *to, const struct prcb_edge *edge)
{
    struct prcb_edge row = *edge;
    size_t i = 0;

    while (i < to->count && !same_culprit(&to->rows[i], edge))
        i++;
    if (i < to->count) {
        to->rows[i].ns += edge->ns;
        to->rows[i].count += edge->count;
        return 0;
    }
    if (to->count >= BEHIND_MOST)
        return 0;
    row.kind = PRCB_EDGE_BEHIND;
    row.cause = PRCB_CAUSE_NONE;
    return array_add(to->rows, to->count, to->room, row) ? -ENOMEM : 0;
}

static int collect(const struct prcb_edge *edge, void *ctx)
{
    struct behind *to = ctx;

    if ((edge->kind != PRCB_EDGE_BEHIND && edge->kind != PRCB_EDGE_PREEMPTED_BY) ||
        edge->by == PRCB_BY_REST)
        return 0;
    return array_add(to->rows, to->count, to->room, *edge) ? -ENOMEM : 0;
}

static uint64_t grown(uint64_t now, uint64_t before)
{
    return now >= before ? now - before : now; /* else it was given up, and began anew */
}

static int add_growth(const struct behind *now, const struct behind *before, struct behind *to)
{
    int result = 0;

    for (size_t i = 0; i < now->count && !result; i++) {
        struct prcb_edge edge = now->rows[i];

        for (size_t k = 0; k < before->count; k++) {
            if (before->rows[k].kind != edge.kind || before->rows[k].cause != edge.cause ||
                !same_culprit(&before->rows[k], &edge))
                continue;
            edge.ns = grown(edge.ns, before->rows[k].ns);
            edge.count = grown(edge.count, before->rows[k].count);
        }
        if (edge.ns)
            result = add(to, &edge);
    }
    return result;
}

static bool same_moment(const struct prcb_account *a, const struct prcb_account *b)
{
    return a->switches == b->switches &&
           !((a->flags ^ b->flags) & (PRCB_ACCOUNT_RUNNING | PRCB_ACCOUNT_EXITED));
}

int behind_take(const struct why_source *source, const struct prcb_account *a,
                struct behind_base *base, struct behind *to)
{
    struct prcb_account then = {.size = sizeof(then)};
    struct behind now = {0};
    int result;

    if (!source->edges || (base->known && base->ready_ns == a->ready_ns))
        return 0;
    result = source->edges(source->ctx, a->key, &then, collect, &now);
    if (result) {
        behind_free(&now);
        base->known = false;
        return result == -ENOMEM ? result : 0;
    }
    /* What is of a later moment than the account is of whatever the thread is in by then. */
    if (base->known && to && same_moment(a, &then))
        result = add_growth(&now, &base->edges, to);
    behind_free(&base->edges);
    *base = (struct behind_base){now, then.ready_ns, true};
    return result;
}

static int by_ns(const void *left, const void *right)
{
    const struct prcb_edge *a = left, *b = right;

    return a->ns != b->ns     ? (a->ns < b->ns ? 1 : -1)
           : a->pid != b->pid ? (a->pid > b->pid) - (a->pid < b->pid)
                              : (a->tid > b->tid) - (a->tid < b->tid);
}

struct prcb_edge *behind_rows(const struct behind *behind, uint64_t ready_ns, size_t *ret_count)
{
    struct prcb_edge *rows = calloc(behind->count + 1, sizeof(*rows));
    uint64_t known = 0;
    size_t count = 0;

    if (!rows)
        return NULL;
    if (behind->count)
        memcpy(rows, behind->rows, behind->count * sizeof(*rows));
    array_sort(rows, behind->count, by_ns);
    /* Of time that is nobody's, a part may be a span's that the thread was met ready in. */
    for (; count < behind->count && known < ready_ns; known += rows[count++].ns)
        rows[count].ns = rows[count].ns < ready_ns - known ? rows[count].ns : ready_ns - known;
    if (ready_ns > known)
        rows[count++] = (struct prcb_edge){
            .kind = PRCB_EDGE_BEHIND, .by = PRCB_BY_REST, .ns = ready_ns - known};
    *ret_count = count;
    return rows;
}

void behind_free(struct behind *behind)
{
    free(behind->rows);
    *behind = (struct behind){0};
}
