/* SPDX-License-Identifier: BSD-2-Clause */
#include "switch_rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "block_abi.h"

#define ELEMENTS_MOST (1u << 20)

struct switch_rings {
    const char *memory;
    uint32_t processors;
    bool has_ready;
    size_t stride;   /* bytes from one ring to the next */
    uint64_t places; /* records of each */
    uint64_t lost, from_ns;
    bool rewound;
    bool cut;        /* of the ring that is read, records before the next are not handed out */
    uint64_t read[]; /* of each: how many records were read, or lost */
};

int switch_rings_open(const void *memory, uint32_t processors, uint32_t elements, bool has_ready,
                      struct switch_rings **ret)
{
    struct switch_rings *r;

    if (!processors || !elements || elements > ELEMENTS_MOST || elements & (elements - 1))
        return -EPROTONOSUPPORT;
    r = calloc(1, sizeof(*r) + processors * sizeof(r->read[0]));
    if (!r)
        return -ENOMEM;
    r->memory = memory;
    r->processors = processors;
    r->has_ready = has_ready;
    r->stride = ((size_t)elements + 1) * sizeof(struct prcb_switch_element);
    r->places = (uint64_t)elements * PRCB_SWITCHES_EACH;
    *ret = r;
    return 0;
}

void switch_rings_close(struct switch_rings *r)
{
    free(r);
}

static const struct prcb_switch_ring *ring_of(const struct switch_rings *r, uint32_t cpu)
{
    return (const void *)(r->memory + cpu * r->stride);
}

/* This is an acquire load: the records below it are there. It pairs with the store of `written`
 * that follows them in the program (end_record). */
static uint64_t written_of(const struct prcb_switch_ring *ring)
{
    return __atomic_load_n(&ring->written, __ATOMIC_ACQUIRE);
}

/* Leaves out what the writer has gone over, or may be at this moment. */
static void skip_lost(struct switch_rings *r, uint32_t cpu, uint64_t written)
{
    uint64_t *read = &r->read[cpu];

    if (written - *read < r->places)
        return;
    r->lost += written - *read - (r->places - 1);
    r->cut = true;
    *read = written - (r->places - 1);
}

void switch_rings_rewind(struct switch_rings *r)
{
    for (uint32_t cpu = 0; cpu < r->processors; cpu++) {
        uint64_t written = written_of(ring_of(r, cpu));

        r->read[cpu] = written < r->places ? 0 : written - (r->places - 1);
    }
    r->rewound = true;
}

/* Copies record number *read; false: it is gone. */
static bool copy_record(const struct switch_rings *r, uint32_t cpu, uint64_t number,
                        struct prcb_switch_record *ret)
{
    const struct prcb_switch_ring *ring = ring_of(r, cpu);
    const struct prcb_switch_record *records = (const void *)(ring + 1);
    const uint64_t *from = (const void *)&records[number & (r->places - 1)];
    uint64_t words[sizeof(*ret) / sizeof(uint64_t)];

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        words[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    memcpy(ret, words, sizeof(*ret));
    /* The copy comes before the second look: if a byte of it was of a later record, so is the
     * count. This pairs with the order of `written` and the next record's bytes in the program
     * (next_record). */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&ring->written, __ATOMIC_RELAXED) - number < r->places;
}

static void put_out(const struct prcb_switch_record *from, struct prcb_switch *to)
{
    bool left = from->kind & PRCB_SWITCH_LEFT;
    uint8_t cause = left ? from->left_cause : from->cause;
    const struct prcb_cause_info *info = prcb_cause_info(cause);

    to->old_tid = left ? from->left_tid : from->tid;
    to->old_pid = left ? from->left_pid : from->pid;
    to->old_state = from->state;
    to->old_syscall = from->syscall;
    to->old_prio = left ? (int16_t)(from->left_prio - 1) : from->prio;
    to->cause = info ? cause : PRCB_CAUSE_OTHER;
    to->reason = info ? (uint8_t)info->reason : 0;
    to->flags = from->flags & PRCB_SWITCH_USER ? PRCB_SWITCH_USER_MODE : 0;
    if (from->flags & PRCB_SWITCH_NAMED)
        memcpy(to->old_comm, left ? from->left : from->name, sizeof(to->old_comm) - 1);
}

static void put_in(const struct switch_rings *r, const struct prcb_switch_record *from,
                   struct prcb_switch *to)
{
    to->new_tid = from->tid;
    to->new_pid = from->pid;
    to->new_prio = from->prio;
    to->ready_ns = from->ready_ns;
    to->flags |= r->has_ready ? PRCB_SWITCH_READY : 0;
    if (from->flags & PRCB_SWITCH_NAMED) {
        memcpy(to->new_comm, from->came, sizeof(to->new_comm) - 1);
        to->wait_ns = from->wait_ns;
        to->new_cause = prcb_cause_info(from->cause) ? from->cause : PRCB_CAUSE_OTHER;
    }
    if (!from->by)
        return;
    to->waker_by = from->by;
    to->woken_ns = from->woken_ns;
    to->woken_cpu = from->woken_cpu;
    to->waker_vector = from->vector;
    to->waker_tid = from->waker_tid;
    to->waker_pid = from->waker_pid;
    memcpy(to->waker_comm, from->comm, sizeof(to->waker_comm) - 1);
}

/* The record that is next, with the one of the thread that comes where both are of one switch.
 * Returns how many it took; 0: they were overwritten. */
static unsigned take(const struct switch_rings *r, uint32_t cpu, uint64_t written,
                     struct prcb_switch *ret)
{
    struct prcb_switch_record record, next;
    uint64_t number = r->read[cpu];

    *ret = (struct prcb_switch){.cpu = cpu, .old_syscall = -1};
    if (!copy_record(r, cpu, number, &record))
        return 0;
    ret->time_ns = record.time_ns;
    if (record.kind == PRCB_SWITCH_IN) {
        put_in(r, &record, ret);
        return 1;
    }
    put_out(&record, ret);
    if (record.kind == (PRCB_SWITCH_LEFT | PRCB_SWITCH_IN))
        put_in(r, &record, ret);
    if (record.kind & PRCB_SWITCH_LEFT)
        return 1;
    if (number + 1 >= written || !copy_record(r, cpu, number + 1, &next) ||
        next.kind != PRCB_SWITCH_IN || next.time_ns != record.time_ns)
        return 1;
    put_in(r, &next, ret);
    return 2;
}

static int read_ring(struct switch_rings *r, uint32_t cpu, prcb_switch_fn fn, void *ctx,
                     uint32_t *full)
{
    uint64_t written = written_of(ring_of(r, cpu)), there = written - r->read[cpu];
    uint32_t percent = there < r->places ? (uint32_t)(there * 100 / r->places) : 100;
    int result = 0;

    if (percent > *full)
        *full = percent;
    r->cut = r->rewound && r->read[cpu];
    skip_lost(r, cpu, written);
    while (r->read[cpu] < written && !result) {
        struct prcb_switch record;
        unsigned taken = take(r, cpu, written, &record);

        r->read[cpu] += taken;
        if (!taken) {
            skip_lost(r, cpu, written = written_of(ring_of(r, cpu)));
            continue;
        }
        if (r->cut && record.time_ns > r->from_ns)
            r->from_ns = record.time_ns;
        r->cut = false;
        result = fn(&record, ctx);
    }
    return result;
}

int switch_rings_read(struct switch_rings *r, prcb_switch_fn fn, void *ctx,
                      struct prcb_switch_room *ret)
{
    int result = 0;

    ret->full = 0;
    r->from_ns = 0;
    for (uint32_t cpu = 0; cpu < r->processors && !result; cpu++)
        result = read_ring(r, cpu, fn, ctx, &ret->full);
    r->rewound = false;
    ret->from_ns = r->from_ns;
    /* It counts those of processors without a ring. It only grows, and goes with nothing that is
     * read here. */
    ret->lost = r->lost + __atomic_load_n(&ring_of(r, 0)->elsewhere, __ATOMIC_RELAXED);
    return result;
}
