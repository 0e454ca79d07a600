/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Edges of accounts in mapped memory, read together with the account that they divide.
 */
#include <prcb/edges.h>

#include <errno.h>
#include <string.h>

#include "account.h"
#include "cause.h"
#include "mapped.h"
#include "rest.h"
#include "seqcount_abi.h"
#include "session.h"
#include "sized.h"
#include "writer_wait.h"

#define KINDS (PRCB_EDGE_MEANWHILE + 1)

static const char *const kind_names[KINDS] = {
    [PRCB_EDGE_WOKEN_BY] = "woken by",   [PRCB_EDGE_PREEMPTED_BY] = "preempted by",
    [PRCB_EDGE_BEHIND] = "behind",       [PRCB_EDGE_HELD_BY] = "held by",
    [PRCB_EDGE_MEANWHILE] = "meanwhile",
};

static const char *const by_names[] = {
    [PRCB_BY_UNKNOWN] = "unknown",     [PRCB_BY_THREAD] = "thread",   [PRCB_BY_TIMER] = "timer",
    [PRCB_BY_INTERRUPT] = "interrupt", [PRCB_BY_SOFTIRQ] = "softirq", [PRCB_BY_IDLE] = "idle",
    [PRCB_BY_REST] = "rest",           [PRCB_BY_OTHERS] = "others",   [PRCB_BY_CGROUP] = "cgroup",
    [PRCB_BY_KERNEL] = "kernel",
};

/* They are those of include/linux/interrupt.h, which are the same since 2.6.39. */
static const char *const softirq_names[] = {"hi",       "timer",   "net_tx", "net_rx",  "block",
                                            "irq_poll", "tasklet", "sched",  "hrtimer", "rcu"};

#define NAME_OF(names, number)                                                                     \
    ((number) < sizeof(names) / sizeof((names)[0]) ? (names)[number] : NULL)

const char *prcb_edge_kind_name(uint32_t kind)
{
    return NAME_OF(kind_names, kind);
}

const char *prcb_edge_by_name(uint32_t by)
{
    return NAME_OF(by_names, by);
}

const char *prcb_softirq_name(uint32_t vector)
{
    return NAME_OF(softirq_names, vector);
}

/* Holds what edges of one kind and cause sum to. */
struct sums {
    uint64_t count[KINDS][PRCB_CAUSE_MAX];
    uint64_t ns[KINDS][PRCB_CAUSE_MAX];
    uint64_t ready_ns;
};

/* Copies the account and its edges, as of one moment, and that moment. */
static int copy_both(struct prcb *p, const struct prcb_account_block *block,
                     const struct prcb_edge_block *edges, struct prcb_account_block *ret,
                     struct prcb_edge_block *ret_edges, uint64_t *ret_now, uint32_t *retries)
{
    const struct seq_part parts[] = {{ret, block, sizeof(*ret)},
                                     {ret_edges, edges, sizeof(*ret_edges)}};
    struct clock clock = {0};
    int result, tries = MAPPED_TRIES;

    do
        result = seq_copy_parts(&block->seq, parts, 2, retries);
    while (!result && !mapped_now(p, &clock, block, ret, ret_now) && (++*retries, --tries));
    return result;
}

/* Returns false if it is nothing that is known here. */
static bool convert(const struct prcb_edge_cell *cell, struct prcb_edge *ret)
{
    bool behind = cell->kind == PRCB_EDGE_BEHIND || cell->kind == PRCB_EDGE_MEANWHILE;
    bool group = cell->by == PRCB_BY_CGROUP;

    *ret = (struct prcb_edge){
        .kind = cell->kind,
        .cause = behind ? PRCB_CAUSE_NONE : cell->cause,
        .by = cell->by,
        .vector = cell->vector,
        .tid = group ? 0 : (pid_t)cell->tid,
        .pid = (pid_t)cell->pid,
        .cgroup = group ? (uint64_t)cell->start << 32 | cell->tid : 0,
        .count = cell->count,
        .ns = cell->ns,
    };
    memcpy(ret->comm, cell->comm, sizeof(ret->comm) - 1);
    return prcb_edge_kind_name(cell->kind) && cell->by != PRCB_BY_REST &&
           prcb_edge_by_name(cell->by) && (behind || prcb_cause_info(cell->cause));
}

static void add(struct sums *sums, const struct prcb_edge *edge)
{
    sums->count[edge->kind][edge->cause] += edge->count;
    sums->ns[edge->kind][edge->cause] += edge->ns;
    if (edge->kind == PRCB_EDGE_PREEMPTED_BY || edge->kind == PRCB_EDGE_BEHIND)
        sums->ready_ns += edge->ns;
}

static int walk_holders_rest(const struct prcb_account *a, const struct sums *sums, prcb_edge_fn fn,
                             void *ctx)
{
    struct prcb_edge rest = {.kind = PRCB_EDGE_HELD_BY, .by = PRCB_BY_REST};
    int result = 0;

    for (uint32_t cause = 1; cause < PRCB_CAUSE_MAX && !result; cause++) {
        if (!cause_has(cause, CAUSE_IS_KERNEL_LOCK))
            continue;
        rest.cause = cause;
        rest.count = rest_of(a->waits[rest.cause].count, sums->count[rest.kind][rest.cause]);
        rest.ns = rest_of(a->waits[rest.cause].ns, sums->ns[rest.kind][rest.cause]);
        if (rest.count || rest.ns)
            result = fn(&rest, ctx);
    }
    return result;
}

static int walk_meanwhile_rest(const struct prcb_account *a, const struct sums *sums,
                               prcb_edge_fn fn, void *ctx)
{
    const uint64_t known = sums->ns[PRCB_EDGE_MEANWHILE][PRCB_CAUSE_NONE];
    const struct prcb_edge rest = {
        .kind = PRCB_EDGE_MEANWHILE, .by = PRCB_BY_REST, .ns = rest_of(a->ready_ns, known)};

    return rest.ns ? fn(&rest, ctx) : 0;
}

static int walk_rest(const struct prcb_account *a, const struct sums *sums, prcb_edge_fn fn,
                     void *ctx)
{
    struct prcb_edge rest = {.by = PRCB_BY_REST};
    int result = 0;

    for (uint32_t cause = 1; cause < PRCB_CAUSE_MAX && !result; cause++) {
        const struct prcb_cause_info *info = prcb_cause_info(cause);

        if (!info || info->kind == PRCB_KIND_END)
            continue;
        rest.cause = cause;
        rest.kind = info->kind == PRCB_KIND_READY ? PRCB_EDGE_PREEMPTED_BY : PRCB_EDGE_WOKEN_BY;
        rest.count = rest_of(a->waits[cause].count, sums->count[rest.kind][cause]);
        rest.ns = info->kind == PRCB_KIND_READY
                      ? 0
                      : rest_of(a->waits[cause].ns, sums->ns[rest.kind][cause]);
        if (rest.count || rest.ns)
            result = fn(&rest, ctx);
    }
    rest.kind = PRCB_EDGE_BEHIND;
    rest.cause = PRCB_CAUSE_NONE;
    rest.count = 0;
    rest.ns = rest_of(a->ready_ns, sums->ready_ns);
    return result || !rest.ns ? result : fn(&rest, ctx);
}

static int check(const struct prcb *p, struct prcb_error *err)
{
    if (p->mapped.edges_window.at)
        return 0;
    if (!(p->flags & PRCB_OPEN_EDGES))
        return prcb_fail(err, -EOPNOTSUPP, "the session was opened without PRCB_OPEN_EDGES");
    if (p->tier->number == PRCB_TIER_DAEMON)
        return prcb_fail(err, -EOPNOTSUPP,
                         "prcbd keeps no edges: it is an earlier version, or its processor "
                         "programs cannot be attached (prcb cpu says why)");
    return prcb_fail(err, -EOPNOTSUPP,
                     "the %s tier keeps no edges: run prcbd, or prcb as root or with CAP_BPF and "
                     "CAP_PERFMON",
                     p->tier->name);
}

int prcb_edges_walk(struct prcb *p, uint64_t key, struct prcb_account *account, prcb_edge_fn fn,
                    void *ctx, struct prcb_error *err)
{
    struct prcb_account record = {.size = sizeof(record)};
    const struct prcb_edge_block *block;
    struct prcb_account_block copy;
    struct prcb_edge_block edges = {0};
    struct sums sums = {0};
    uint32_t slot = (uint32_t)key;
    uint64_t now;
    int result = check(p, err);

    if (result)
        return result;
    if (slot >= mapped_used(&p->mapped))
        return prcb_fail(err, -ESTALE, "no account has this key");
    block = mapped_edges(&p->mapped, slot);
    if (!block)
        return prcb_fail(err, -ENOMEM, "the edges of account %u cannot be mapped", slot);
    result =
        copy_both(p, mapped_block(&p->mapped, slot), block, &copy, &edges, &now, &record.retries);
    if (result)
        return prcb_fail(err, result, "account %u stayed inconsistent: its writer is stuck", slot);
    if (copy.generation != (uint32_t)(key >> 32) || copy.state == PRCB_STATE_FREE)
        return prcb_fail(err, -ESTALE, "the account was released");
    mapped_record(p, slot, &copy, 0, now, clock_tick_rate(&p->clock) / 1e9, &record);
    if (account) {
        result = sized_hand_out(&record, sizeof(record), account);
        if (result)
            return result;
    }
    for (uint32_t i = 0; i < PRCB_EDGES && edges.generation == copy.generation && !result; i++) {
        struct prcb_edge edge;

        if (edges.cells[i].kind == PRCB_EDGE_NONE || !convert(&edges.cells[i], &edge))
            continue;
        if (edge.kind == PRCB_EDGE_MEANWHILE && !(p->flags & PRCB_OPEN_MEANWHILE))
            continue;
        add(&sums, &edge);
        result = fn(&edge, ctx);
    }
    if (!result && p->flags & PRCB_OPEN_OWNERS)
        result = walk_holders_rest(&record, &sums, fn, ctx);
    if (!result && p->flags & PRCB_OPEN_MEANWHILE && p->mapped.features & PRCB_FEATURE_MEANWHILE)
        result = walk_meanwhile_rest(&record, &sums, fn, ctx);
    return result ? result : walk_rest(&record, &sums, fn, ctx);
}
