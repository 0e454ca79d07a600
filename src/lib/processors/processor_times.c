/* SPDX-License-Identifier: BSD-2-Clause */
#include "processor_map.h"
#include "wide.h"

static enum part live_part(const struct prcb_processor_block *copy)
{
    if (copy->hard_depth)
        return PART_INTERRUPT;
    if (copy->beneath & PRCB_PROCESSOR_IN_SOFT)
        return PART_DPC;
    if (copy->beneath & PRCB_PROCESSOR_IN_IDLE)
        return PART_IDLE;
    return PART_KERNEL;
}

/* Divides what tasks ran since the last tick by what the ticks have found so far: each tick hits
 * user mode with that probability. Before the first tick all of it is the kernel's. */
static uint64_t user_share(const struct prcb_processor_block *copy, uint64_t busy)
{
    uint64_t share = copy->user_share < 65536 ? copy->user_share : 65536;

    return wide_shift(busy, share, 16);
}

/* Returns the length of the present stretch, and of it what interrupted an update of the block. */
static uint64_t open_stretch(const struct prcb_processor_block *copy, uint64_t now,
                             uint64_t *ret_pending)
{
    uint64_t elapsed =
        copy->state == PRCB_PROCESSOR_ONLINE && now > copy->stamp ? now - copy->stamp : 0;
    uint64_t pending = copy->nested_ns - copy->folded_ns;

    *ret_pending = pending < elapsed ? pending : elapsed;
    return elapsed;
}

void processor_block_times(const struct prcb_processor_block *copy, uint64_t now, struct parts *ret,
                           enum part *live)
{
    uint64_t pending, elapsed = open_stretch(copy, now, &pending), busy = copy->busy_ns, user;

    *live = live_part(copy);
    ret->wall = copy->stamp + elapsed - copy->started - copy->offline_ns;
    ret->ns[PART_IDLE] = copy->idle_ns;
    ret->ns[PART_DPC] = copy->dpc_ns;
    ret->ns[PART_INTERRUPT] = copy->interrupt_ns + pending;
    ret->ns[PART_STEAL] = copy->steal_ns;
    if (*live == PART_KERNEL)
        busy += elapsed - pending;
    else
        ret->ns[*live] += elapsed - pending;
    user = user_share(copy, busy);
    ret->ns[PART_USER] = copy->user_ns + user;
    ret->ns[PART_KERNEL] = copy->kernel_ns + busy - user;
}

uint64_t processor_block_interrupted(const struct prcb_processor_block *copy, uint64_t now)
{
    uint64_t pending, elapsed = open_stretch(copy, now, &pending);
    enum part live = live_part(copy);

    return copy->interrupt_ns + copy->dpc_ns +
           (live == PART_INTERRUPT || live == PART_DPC ? elapsed : pending);
}
