/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Tails of a session, in mapped memory: summed over the processors when they are read.
 */
#include <prcb/tails.h>

#include <errno.h>

#include "block_abi.h"
#include "session.h"
#include "sized.h"

static int check(const struct prcb *p, uint32_t cause, struct prcb_error *err)
{
    const struct prcb_cause_info *info = prcb_cause_info(cause);

    if (cause != PRCB_CAUSE_NONE && (!info || info->kind != PRCB_KIND_WAIT))
        return prcb_fail(err, -EINVAL, "cause %u is not a cause of waiting", cause);
    if (p->mapped.tail_processors)
        return 0;
    if (!(p->flags & PRCB_OPEN_TAILS))
        return prcb_fail(err, -EOPNOTSUPP, "the session was opened without PRCB_OPEN_TAILS");
    if (p->tier->number == PRCB_TIER_DAEMON)
        return prcb_fail(
            err, -EOPNOTSUPP,
            "prcbd keeps no tails: it is an earlier version, or, of the session that is "
            "shared, prcbd.conf does not say tails = yes");
    return prcb_fail(err, -EOPNOTSUPP,
                     "the %s tier keeps no tails: run prcbd, or prcb as root or with CAP_BPF and "
                     "CAP_PERFMON",
                     p->tier->name);
}

/* Words are whole, and stores of one processor to different words may be seen in any order: nothing
 * here relies on one (block_abi.h). */
static uint64_t load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

int prcb_tail_read(struct prcb *p, uint32_t cause, struct prcb_tail *ret, struct prcb_error *err)
{
    struct prcb_tail tail = {.size = sizeof(tail)};
    const struct mapped *m = &p->mapped;
    const struct prcb_tail_block *first;
    int result = check(p, cause, err);

    if (result)
        return result;
    first = (const void *)(m->accounts + (size_t)m->count * m->stride);
    if (load((const uint64_t *)&first->elsewhere))
        return prcb_fail(err, -ESTALE,
                         "a processor was added since the session began, which keeps no tails for "
                         "it: open another session");
    for (uint32_t i = 0; i < m->tail_processors; i++) {
        size_t element = m->count + (size_t)i * PRCB_CAUSE_MAX + cause;
        const struct prcb_tail_block *block = (const void *)(m->accounts + element * m->stride);
        uint64_t max = load((const uint64_t *)&block->max_ns);

        tail.ns += load((const uint64_t *)&block->ns);
        tail.max_ns = max > tail.max_ns ? max : tail.max_ns;
        for (uint32_t bucket = 0; bucket < PRCB_TAIL_BUCKETS; bucket++)
            tail.buckets[bucket] += load((const uint64_t *)&block->buckets[bucket]);
    }
    for (uint32_t bucket = 0; bucket < PRCB_TAIL_BUCKETS; bucket++)
        tail.count += tail.buckets[bucket];
    return sized_hand_out(&tail, sizeof(tail), ret);
}

uint64_t prcb_tail_bound(uint32_t bucket)
{
    if (bucket >= PRCB_TAIL_BUCKETS - 1)
        return UINT64_MAX;
    /* As add_tail of the programs: four to an octave, the first three octaves' whole microseconds.
     */
    return bucket < 4 ? (bucket + 1) * 1000ull : ((5 + bucket % 4) * 1000ull) << (bucket / 4 - 1);
}

bool prcb_tail_quantile(const struct prcb_tail *tail, double quantile, uint64_t *ret_low,
                        uint64_t *ret_high)
{
    struct prcb_tail own;
    double below = 0;
    uint32_t bucket = 0;

    sized_take_record(tail, &own, sizeof(own));
    if (!own.count)
        return false;
    while (bucket < PRCB_TAIL_BUCKETS - 1) {
        below += (double)own.buckets[bucket];
        if (below > 0 && below >= quantile * (double)own.count)
            break;
        bucket++;
    }
    *ret_low = bucket ? prcb_tail_bound(bucket - 1) : 0;
    *ret_high = prcb_tail_bound(bucket);
    if (own.max_ns > *ret_low && *ret_high > own.max_ns)
        *ret_high = own.max_ns;
    return true;
}
