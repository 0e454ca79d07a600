/* SPDX-License-Identifier: BSD-2-Clause */
#include "caused.h"

#include <stdint.h>

/* eBPF reports all threads of every processor: those that are not recorded are left out. */
static int64_t recorded_thread(const struct caused *c, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
    if (!tid)
        return 0;
    return c->all ? world_thread(c->world, (int32_t)pid, (int32_t)tid, time_ns, NULL)
                  : world_known_thread(c->world, (int32_t)pid, (int32_t)tid);
}

int caused_write(struct caused *c, const struct prcb_switch *record)
{
    static const char *const states[] = {
        [PRCB_KIND_READY] = "ready",
        [PRCB_KIND_WAIT] = "waiting",
        [PRCB_KIND_END] = "ended",
    };
    const struct prcb_cause_info *cause = prcb_cause_info(record->cause);
    struct writer_switch row = {
        .time_ns = record->time_ns,
        .cpu = record->cpu,
        .old_thread = recorded_thread(c, record->old_pid, record->old_tid, record->time_ns),
        .new_thread = recorded_thread(c, record->new_pid, record->new_tid, record->time_ns),
        .reason = -1,
        .ready_ns = record->flags & PRCB_SWITCH_READY ? (int64_t)record->ready_ns : -1,
        .pebs_index = record->flags & PRCB_SWITCH_INDEX ? (int64_t)record->pebs_index : -1,
        .woken_cpu = -1,
    };

    if (!row.old_thread && !row.new_thread)
        return 0;
    if (row.new_thread && record->waker_by && c->wakers) {
        int64_t waker = recorded_thread(c, record->waker_pid, record->waker_tid, record->woken_ns);
        int result = wakers_row(c->wakers, record, waker, &row.waker);

        if (result)
            return result;
        row.woken_ns = record->woken_ns;
        row.woken_cpu = record->woken_cpu == UINT32_MAX ? -1 : (int64_t)record->woken_cpu;
    }
    if (row.old_thread && cause) {
        row.state = states[cause->kind];
        row.cause = cause->name;
        row.reason = record->reason;
    }
    c->switches++;
    return writer_switch(c->writer, &row);
}
