/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Switch records as NT's CSwitch events, and the rule that says which events carry the
 * PEBS index.
 */
#include "inside.h"

#include <string.h>
#include <unistd.h>

#define PEBS_TRACING   0x0b
#define HOOKS_AT       offsetof(EVENT_TRACE_SYSTEM_EVENT_INFORMATION, HookId)
#define VERSION_FIRST  2
#define VERSION_LAST   4
#define MARKER         (sizeof(void *) == 8 ? 0xc0110000u : 0xc0100000u)
#define MARKER_PEBS    0x8000u
#define TICK_NS        15625000u /* 1/64 s */
#define STATE_READY    1
#define STATE_RUNNING  2
#define STATE_ENDED    4
#define STATE_WAITING  5
#define PRIO_REAL_TIME 100 /* the kernel's priorities below are real-time */
#define PRIO_NORMAL    120
#define PRIO_LAST      140

_Static_assert(sizeof(PRCB_CSWITCH) == 0x18 && sizeof(EVENT_HEADER_EXTENDED_DATA_ITEM) == 0x10 &&
                   HOOKS_AT == 0x10,
               "NT's sizes");

/* Whether CSwitch carries the index: one word, set by one call and read by others. */
static bool traced;

static bool may_profile(enum prcb_nt_mode mode)
{
    return mode == PRCB_NT_KERNEL_MODE || geteuid() == 0;
}

NTSTATUS nt_set_trace(void *buffer, uint32_t length, enum prcb_nt_mode mode)
{
    EVENT_TRACE_SYSTEM_EVENT_INFORMATION wanted = {0};
    uint32_t hooks;

    if (length < sizeof(wanted.EventTraceInformationClass))
        return nt_fail(STATUS_INFO_LENGTH_MISMATCH, "class 0x1f has at least 4 bytes, not %u",
                       length);
    memcpy(&wanted, buffer, length < sizeof(wanted) ? length : sizeof(wanted));
    if (wanted.EventTraceInformationClass != PEBS_TRACING)
        return nt_fail(STATUS_INVALID_INFO_CLASS, "class 0x1f: event trace class %u is not known",
                       wanted.EventTraceInformationClass);
    if (length < HOOKS_AT || (length - HOOKS_AT) % sizeof(uint32_t))
        return nt_fail(STATUS_INFO_LENGTH_MISMATCH, "%u bytes are no list of hooks", length);
    if (!may_profile(mode))
        return nt_fail(STATUS_PRIVILEGE_NOT_HELD, "tracing by the PEBS index is for root");
    hooks = (length - (uint32_t)HOOKS_AT) / (uint32_t)sizeof(uint32_t);
    if (hooks > 1)
        return nt_fail(STATUS_INVALID_PARAMETER, "%u hooks: there can be one", hooks);
    if (hooks && wanted.HookId[0] != PRCB_NT_HOOK_CSWITCH)
        return nt_fail(STATUS_INVALID_PARAMETER, "hook 0x%04x: only 0x%04x carries the index",
                       wanted.HookId[0], PRCB_NT_HOOK_CSWITCH);
    __atomic_store_n(&traced, hooks, __ATOMIC_RELAXED);
    return STATUS_SUCCESS;
}

/* Real-time priorities go to 16..31, nice values to 1..15 with 0 at 8, idle to 0. */
static int8_t priority_of(uint32_t tid, int prio)
{
    if (!tid)
        return 0;
    if (prio < PRIO_REAL_TIME)
        return (int8_t)(31 - (prio < 0 ? 0 : prio) * 16 / PRIO_REAL_TIME);
    if (prio >= PRIO_LAST)
        return 1;
    return (int8_t)(8 + (PRIO_NORMAL - prio) * 7 / 20);
}

static uint8_t state_of(const struct prcb_switch *record)
{
    const struct prcb_cause_info *cause = prcb_cause_info(record->cause);

    if (!record->old_tid || !cause)
        return STATE_RUNNING; /* the idle thread never waits */
    if (cause->kind == PRCB_KIND_END)
        return STATE_ENDED;
    return cause->kind == PRCB_KIND_READY ? STATE_READY : STATE_WAITING;
}

static uint32_t ticks_of(uint64_t ns)
{
    uint64_t ticks = ns / TICK_NS;

    return ticks > UINT32_MAX ? UINT32_MAX : (uint32_t)ticks;
}

static bool has_index(const struct prcb_switch *record)
{
    return __atomic_load_n(&traced, __ATOMIC_RELAXED) && record->flags & PRCB_SWITCH_INDEX;
}

NTSTATUS prcb_nt_cswitch(const struct prcb_switch *Record, uint8_t Version, PRCB_CSWITCH *Data,
                         EVENT_HEADER_EXTENDED_DATA_ITEM *Item,
                         EVENT_EXTENDED_ITEM_PEBS_INDEX *PebsIndex)
{
    if (!Record || !Data || !Item != !PebsIndex)
        return nt_fail(STATUS_INVALID_PARAMETER, "no record, or no place for the event");
    if (Version < VERSION_FIRST || Version > VERSION_LAST)
        return nt_fail(STATUS_INVALID_PARAMETER, "CSwitch of version %u: %d to %d can be made",
                       Version, VERSION_FIRST, VERSION_LAST);
    *Data = (PRCB_CSWITCH){
        .NewThreadId = Record->new_tid,
        .OldThreadId = Record->old_tid,
        .NewThreadPriority = priority_of(Record->new_tid, Record->new_prio),
        .OldThreadPriority = priority_of(Record->old_tid, Record->old_prio),
        .OldThreadWaitReason = Record->reason,
        .OldThreadWaitMode = Record->flags & PRCB_SWITCH_USER_MODE ? 1 : 0,
        .OldThreadState = state_of(Record),
        .OldThreadIdealProcessor = (uint8_t)Record->cpu,
        .NewThreadWaitTime = ticks_of(Record->ready_ns),
    };
    if (!Item)
        return STATUS_SUCCESS;
    memset(Item, 0, sizeof(*Item));
    memset(PebsIndex, 0, sizeof(*PebsIndex));
    if (has_index(Record)) {
        PebsIndex->PebsIndex = Record->pebs_index;
        Item->ExtType = EVENT_HEADER_EXT_TYPE_PEBS_INDEX;
        Item->DataSize = sizeof(*PebsIndex);
        Item->DataPtr = (uintptr_t)PebsIndex;
    }
    return STATUS_SUCCESS;
}

/* This is a PERFINFO_TRACE_HEADER. */
struct trace_header {
    uint32_t marker;
    uint16_t size, hook;
    uint64_t time PRCB_NT_ALIGNED; /* 100 ns, as NT's performance counter ticks */
};

NTSTATUS prcb_nt_cswitch_trace(const struct prcb_switch *Record, uint8_t Version, void *Buffer,
                               uint32_t Length, uint32_t *ReturnLength)
{
    EVENT_HEADER_EXTENDED_DATA_ITEM item = {0};
    EVENT_EXTENDED_ITEM_PEBS_INDEX index = {0};
    PRCB_CSWITCH data;
    struct trace_header header = {.hook = PRCB_NT_HOOK_CSWITCH};
    uint8_t *at = Buffer;
    NTSTATUS status = prcb_nt_cswitch(Record, Version, &data, &item, &index);

    if (status)
        return status;
    header.size = (uint16_t)(sizeof(header) + item.DataSize + sizeof(data));
    header.marker = MARKER | Version | (item.ExtType ? MARKER_PEBS : 0);
    header.time = Record->time_ns / 100;
    if (ReturnLength)
        *ReturnLength = header.size;
    if (Length < header.size)
        return nt_fail(STATUS_BUFFER_TOO_SMALL, "the event has %u bytes", header.size);
    if (!Buffer)
        return nt_fail(STATUS_ACCESS_VIOLATION, "no buffer");
    memcpy(at, &header, sizeof(header));
    memcpy(at + sizeof(header), &index, item.DataSize);
    memcpy(at + sizeof(header) + item.DataSize, &data, sizeof(data));
    return STATUS_SUCCESS;
}
