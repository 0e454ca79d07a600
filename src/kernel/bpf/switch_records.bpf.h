/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 *
 * Writes switch records of a session's threads into a ring of this processor's in the owner's
 * own map (block_abi.h). What a client might have written there leads to no place outside of
 * that ring. Part of accounts.bpf.c.
 */
#ifndef PRCB_SWITCH_RECORDS_BPF_H
#define PRCB_SWITCH_RECORDS_BPF_H

#include "owner.bpf.h"
#include "stretches.bpf.h"

/* Returns where the next record goes, and the head of this processor's ring; NULL: there is
 * none. Of clients it is not inlined: what leads to either is of no account to the verifier then.
 */
static RINGS_INLINE struct prcb_switch_record *next_record(__u32 number,
                                                           struct prcb_switch_ring **ret_ring)
{
    __u32 first, elements, processors, row, at, cpu = bpf_get_smp_processor_id();
    void *map = switch_rings_of(number, &first, &elements, &processors);
    bool here = cpu < processors;
    struct prcb_switch_element *element;
    struct prcb_switch_ring *ring;
    __u64 position;

    if (!map)
        return NULL;
    row = first + (here ? cpu * (elements + 1) : 0);
    ring = bpf_map_lookup_elem(map, &row);
    if (!ring)
        return NULL;
    if (!here) { /* it came after the session began */
        __sync_fetch_and_add(&ring->elsewhere, 1);
        return NULL;
    }
    position = *(volatile __u64 *)&ring->written;
    at = position % PRCB_SWITCHES_EACH;
    row += 1 + ((__u32)(position / PRCB_SWITCHES_EACH) & (elements - 1));
    element = bpf_map_lookup_elem(map, &row);
    *ret_ring = ring;
    /* The count was stored last before the bytes of this record: a reader that sees any of these
     * in a copy of the record that lay here sees it too. This pairs with the reader's second
     * look at `written` (switch_rings.c). */
    return element && in_order() ? &element->records[at] : NULL;
}

static __always_inline void fill_in(struct prcb_switch_record *record, struct switching *s,
                                    struct profile *profile,
                                    const struct prcb_account_block *account,
                                    const struct closed *closed)
{
    const struct who *waker = &profile->waker;

    record->by = 0;
    record->cause = closed->cause;
    record->tid = account->tid;
    record->pid = account->pid;
    record->wait_ns = closed->wait;
    __builtin_memcpy(record->came, account->comm, sizeof(record->came));
    record->prio = task_prio(s->next);
    record->ready_ns = closed->ready;
    if (cause_is_ready(closed->cause) || closed->cause == PRCB_CAUSE_THROTTLED ||
        !wants_wakers(profile) || !is_told(profile, waker))
        return;
    record->by = waker->what >> 16;
    record->vector = waker->what >> 32;
    record->waker_tid = waker->thread;
    record->waker_pid = waker->pid;
    __builtin_memcpy(record->comm, waker->comm, sizeof(record->comm));
    record->woken_ns = least(profile->woken_ns, record->time_ns);
    record->woken_cpu = profile->woken_cpu;
}

/* Returns the next record of the client, with its stamp; NULL: there is none. */
static __always_inline struct prcb_switch_record *begin_record(struct switching *s, __u32 client,
                                                               struct prcb_switch_ring **ret_ring)
{
    struct prcb_switch_record *record = next_record(client, ret_ring);

    if (!record)
        return NULL;
    if (!s->mono)
        s->mono = mono_of(s->now, *ret_ring);
    record->time_ns = s->mono;
    return record;
}

static __always_inline void end_record(struct prcb_switch_ring *ring)
{
    /* The record is stored before the count that announces it. This pairs with the reader's
     * first look at it. */
    if (in_order())
        *(volatile __u64 *)&ring->written = ring->written + 1;
}

/* Writes what a switch leaves besides the accounts. */
#ifdef PRCB_CLIENTS

static __always_inline void fill_out(struct prcb_switch_record *record, struct switching *s,
                                     const struct prcb_account_block *account)
{
    record->kind = PRCB_SWITCH_OUT;
    record->cause = s->cause;
    record->tid = account->tid;
    record->pid = account->pid;
    record->flags = PRCB_SWITCH_NAMED | (s->prev->flags & PF_KERNELS_ ? 0 : PRCB_SWITCH_USER);
    record->state = s->state;
    record->syscall = s->tag->call.number;
    record->prio = task_prio(s->prev);
    __builtin_memcpy(record->name, account->comm, sizeof(record->name));
}

static __always_inline void record_out(struct switching *s, struct profile *profile,
                                       struct prcb_account_block *account)
{
    struct prcb_switch_ring *ring;
    struct prcb_switch_record *record =
        wants_switches(profile) ? begin_record(s, client_of_profile(profile), &ring) : NULL;

    if (!record)
        return;
    fill_out(record, s, account);
    end_record(ring);
}

static __always_inline void record_in(struct switching *s, struct profile *profile,
                                      struct prcb_account_block *account,
                                      const struct closed *closed)
{
    struct prcb_switch_ring *ring;
    struct prcb_switch_record *record =
        wants_switches(profile) ? begin_record(s, client_of_profile(profile), &ring) : NULL;

    if (!record)
        return;
    fill_in(record, s, profile, account, closed);
    record->kind = PRCB_SWITCH_IN;
    record->flags = PRCB_SWITCH_NAMED;
    end_record(ring);
}

static __always_inline void record_end(struct switching *s)
{
}

#else

static __always_inline void fill_left(struct prcb_switch_record *record, struct switching *s,
                                      const struct prcb_account_block *account)
{
    record->kind = PRCB_SWITCH_LEFT;
    record->left_cause = s->cause;
    record->flags = PRCB_SWITCH_NAMED | (s->prev->flags & PF_KERNELS_ ? 0 : PRCB_SWITCH_USER);
    record->state = s->state;
    record->syscall = s->tag->call.number;
    record->left_prio = task_prio(s->prev) + 1;
    record->left_tid = account->tid;
    record->left_pid = account->pid;
    __builtin_memcpy(record->left, account->comm, sizeof(record->left));
}

/* One record has both sides: the lines of the cache are what costs. */
static __always_inline void record_out(struct switching *s, struct profile *profile,
                                       struct prcb_account_block *account)
{
    if (wants_switches(profile))
        s->record = begin_record(s, 0, &s->ring);
    if (s->record)
        fill_left(s->record, s, account);
}

static __always_inline void record_in(struct switching *s, struct profile *profile,
                                      struct prcb_account_block *account,
                                      const struct closed *closed)
{
    __u8 left = s->record ? PRCB_SWITCH_LEFT : 0;

    if (!wants_switches(profile))
        return;
    if (!left)
        s->record = begin_record(s, 0, &s->ring);
    if (!s->record)
        return;
    fill_in(s->record, s, profile, account, closed);
    s->record->kind = PRCB_SWITCH_IN | left;
    if (!left)
        s->record->flags = PRCB_SWITCH_NAMED;
}

static __always_inline void record_end(struct switching *s)
{
    if (s->record)
        end_record(s->ring);
}

#endif

#endif
