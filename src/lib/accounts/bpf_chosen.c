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

struct chosen_reading {
    prcb_chosen_fn fn;
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
    if (!chosen.ended && size >= sizeof(struct prcb_chosen_stack)) {
        chosen.stack_at = record->user.sp - PRCB_CHOSEN_RED_ZONE;
        chosen.stack = ((const struct prcb_chosen_stack *)data)->bytes;
        chosen.stack_bytes = record->length;
    }
    if (!chosen.ended && p->flags & PRCB_OPEN_OBJECTS)
        describe_object(&chosen, record);
    reading->result = reading->fn(&chosen, reading->ctx);
    return 0;
}

int bpf_open_chosen(struct prcb *p, struct prcb_error *err)
{
    p->bpf->chosen =
        ring_buffer__new(bpf_map__fd(p->bpf->skeleton->maps.chosen_ring), take, p, NULL);
    return p->bpf->chosen ? 0
                          : prcb_fail(err, -errno, "the ring of chosen waits cannot be mapped: %s",
                                      strerror(errno));
}

/* By one thread at a time: whoever reads them is their only reader. */
int bpf_chosen_read(struct prcb *p, prcb_chosen_fn fn, void *ctx, uint64_t *ret_lost,
                    struct prcb_error *err)
{
    struct chosen_reading reading = {fn, ctx, 0};
    int result;

    p->bpf->reading = &reading;
    result = ring_buffer__consume(p->bpf->chosen);
    p->bpf->reading = NULL;
    *ret_lost = __atomic_load_n(&p->bpf->skeleton->bss->chosen_lost, __ATOMIC_RELAXED);
    if (result < 0)
        return prcb_fail(err, result, "the ring of chosen waits cannot be read: %s",
                         strerror(-result));
    return reading.result;
}
