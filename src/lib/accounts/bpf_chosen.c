/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The bpf tier's waits that were chosen at random: from the programs' ring to the caller.
 */
#include "tier_bpf.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

/* These say in messages what the rings hold. */
static const char chosen_waits[] = "chosen waits", ran_lists[] = "running threads' lists";

struct chosen_reading {
    prcb_chosen_fn fn;
    prcb_ran_fn ran_fn; /* or this */
    void *ctx;
    int result; /* the first that was not 0 */
};

static void describe_object(struct prcb_chosen *chosen, const struct prcb_chosen_record *record)
{
    chosen->object = (struct prcb_object){record->object.inode, record->object.device,
                                          record->object.descriptor, record->object.lock};
    chosen->syscall = record->syscall;
    chosen->mode = record->mode;
    chosen->words = record->words;
    memcpy(chosen->args, record->args, sizeof(chosen->args));
    memcpy(chosen->word, record->word, sizeof(chosen->word));
    snprintf(chosen->name, sizeof(chosen->name), "%.*s", (int)sizeof(record->name), record->name);
}

/* Both are made by programs of this session. */
_Static_assert(sizeof(struct prcb_node) == sizeof(struct prcb_chosen_node), "nodes are handed on");

static uint32_t count_of(const struct prcb_chosen_list *list)
{
    return list->count <= PRCB_CHAIN_NODES ? list->count : 0;
}

static void describe_chain(struct prcb_chosen *chosen, const struct prcb_chosen_list *list)
{
    chosen->node_count = count_of(list);
    chosen->whole = list->whole;
    chosen->lock_holder = list->holder <= INT32_MAX ? (pid_t)list->holder : 0;
    chosen->nodes = (const struct prcb_node *)list->nodes;
}

/* Records are the session's own programs': what is checked is that there are no others. */
static int take(void *ctx, void *data, size_t size)
{
    struct prcb *p = ctx;
    struct chosen_reading *reading = p->bpf->reading;
    const struct prcb_chosen_record *record = data;
    struct prcb_chosen chosen = {.size = sizeof(chosen), .syscall = -1};

    if (reading->result || size < sizeof(*record))
        return 0;
    chosen.key = record->slot | (uint64_t)record->generation << 32;
    chosen.switches = record->switches;
    chosen.tid = (pid_t)record->tid;
    chosen.pid = (pid_t)record->pid;
    chosen.cause = record->cause;
    chosen.one_in = record->one_in;
    chosen.began_ns = record->began_ns;
    chosen.ended = record->kind == PRCB_CHOSEN_IN;
    chosen.ns = record->ns;
    chosen.registers =
        (struct prcb_registers){record->user.pc, record->user.sp, record->user.fp, record->user.lr};
    if (!chosen.ended) {
        chosen.span_state = record->span_state;
        memcpy(chosen.span_record, record->span, sizeof(chosen.span_record));
    }
    if (!chosen.ended && size >= sizeof(struct prcb_chosen_stack)) {
        chosen.stack_at = record->user.sp - PRCB_CHOSEN_RED_ZONE;
        chosen.stack = ((const struct prcb_chosen_stack *)data)->bytes;
        chosen.stack_bytes = record->length;
    }
    if (!chosen.ended && size >= sizeof(struct prcb_chosen_chain))
        describe_chain(&chosen, &((const struct prcb_chosen_chain *)data)->list);
    if (!chosen.ended && p->flags & PRCB_OPEN_OBJECTS)
        describe_object(&chosen, record);
    reading->result = reading->fn(&chosen, reading->ctx);
    return 0;
}

static int take_ran(void *ctx, void *data, size_t size)
{
    struct prcb *p = ctx;
    struct chosen_reading *reading = p->bpf->reading;
    const struct prcb_ran_record *record = data;
    struct prcb_ran ran = {.size = sizeof(ran)};

    if (reading->result || size < sizeof(*record) || !record->list.count)
        return 0;
    ran.time_ns = record->time_ns;
    ran.pc = record->pc;
    ran.tid = (pid_t)record->tid;
    ran.pid = (pid_t)record->pid;
    ran.node_count = count_of(&record->list);
    ran.whole = record->list.whole;
    ran.nodes = (const struct prcb_node *)record->list.nodes;
    reading->result = reading->ran_fn(&ran, reading->ctx);
    return 0;
}

static int open_ring(struct prcb *p, const struct bpf_map *map, const char *of,
                     ring_buffer_sample_fn fn, struct ring_buffer **ret, struct prcb_error *err)
{
    *ret = ring_buffer__new(bpf_map__fd(map), fn, p, NULL);
    return *ret
               ? 0
               : prcb_fail(err, -errno, "the ring of %s cannot be mapped: %s", of, strerror(errno));
}

int bpf_open_chosen(struct prcb *p, struct prcb_error *err)
{
    struct accounts_bpf *skeleton = p->bpf->skeleton;
    int result = open_ring(p, skeleton->maps.chosen_ring, chosen_waits, take, &p->bpf->chosen, err);

    if (!result && p->flags & PRCB_OPEN_RAN)
        result = open_ring(p, skeleton->maps.ran_ring, ran_lists, take_ran, &p->bpf->ran, err);
    return result;
}

/* Is called by one thread at a time: whoever reads a ring is its only reader. */
static int read_ring(struct prcb *p, struct ring_buffer *ring, struct chosen_reading *reading,
                     struct prcb_error *err)
{
    int result;

    p->bpf->reading = reading;
    result = ring_buffer__consume(ring);
    p->bpf->reading = NULL;
    if (result < 0)
        return prcb_fail(err, result, "the ring of %s cannot be read: %s",
                         reading->fn ? chosen_waits : ran_lists, strerror(-result));
    return reading->result;
}

int bpf_chosen_read(struct prcb *p, prcb_chosen_fn fn, void *ctx, uint64_t *ret_lost,
                    struct prcb_error *err)
{
    struct chosen_reading reading = {.fn = fn, .ctx = ctx};
    int result = read_ring(p, p->bpf->chosen, &reading, err);

    *ret_lost = __atomic_load_n(&p->bpf->skeleton->bss->chosen_lost, __ATOMIC_RELAXED);
    return result;
}

int bpf_ran_read(struct prcb *p, prcb_ran_fn fn, void *ctx, struct prcb_error *err)
{
    struct chosen_reading reading = {.ran_fn = fn, .ctx = ctx};

    return read_ring(p, p->bpf->ran, &reading, err);
}

int bpf_ran_program(const struct prcb *p)
{
    return bpf_program__fd(p->bpf->skeleton->progs.prcb_ran);
}

int bpf_chosen_chain(struct prcb *p, uint64_t key, const struct prcb_chain *chain,
                     struct prcb_error *err)
{
    const struct prcb_bpf_chain own = {
        .generation = (uint32_t)(key >> 32),
        .slot = (uint32_t)key,
        .head = chain->head,
        .proof = chain->proof,
        .proof_at = chain->proof_at,
        .hop = chain->hop,
        .first = chain->first,
        .next = chain->next,
        .words = {chain->words[0], chain->words[1]},
        .byte = chain->byte,
        .lock_at = chain->lock_at,
        .lock_number = chain->lock_number,
        .span_at = chain->span_at,
    };
    const uint32_t slot = (uint32_t)key;
    const struct prcb_account_block *block;

    block = slot < mapped_used(&p->mapped) ? mapped_block(&p->mapped, slot) : NULL;
    if (!block || __atomic_load_n(&block->generation, __ATOMIC_RELAXED) != own.generation ||
        __atomic_load_n(&block->state, __ATOMIC_RELAXED) == PRCB_STATE_FREE)
        return prcb_fail(err, -ESTALE, "there is no account %#llx", (unsigned long long)key);
    if (bpf_map_update_elem(bpf_map__fd(p->bpf->skeleton->maps.chains), &slot, &own, BPF_ANY))
        return prcb_fail(err, -errno, "a list of nodes cannot be followed: %s", strerror(errno));
    return 0;
}
