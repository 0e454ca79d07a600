/* SPDX-License-Identifier: BSD-2-Clause
 *
 * HalAllocateHardwareCounters: reserves counters against other callers in the same process. As
 * on NT, a reservation binds nobody else: KeSetHardwareCounterConfiguration does not look at it,
 * and the kernel shares the counters out by itself.
 */
#include "inside.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "present.h"

#define CPUS         4096u
#define WORD         64u
#define ALL_COUNTERS UINT64_MAX /* and with them everything else a PMU has */

struct allocation {
    uint64_t counters; /* bit n: counter n */
    uint64_t cpus[CPUS / WORD];
    struct allocation *next;
};

static struct allocation *allocations;

void nt_hal_forget(void)
{
    while (allocations) {
        struct allocation *next = allocations->next;

        free(allocations);
        allocations = next;
    }
}

static unsigned cpu_count(void)
{
    uint32_t numbered = numbered_processors();

    return numbered > CPUS ? CPUS : numbered;
}

static NTSTATUS add_group(const GROUP_AFFINITY *affinity, struct allocation *allocation)
{
    unsigned cpus = cpu_count(), first = affinity->Group * NT_GROUP_SIZE;

    if (affinity->Reserved[0] || affinity->Reserved[1] || affinity->Reserved[2])
        return nt_fail(STATUS_INVALID_PARAMETER, "GROUP_AFFINITY.Reserved must be 0");
    if (!affinity->Mask || first >= cpus)
        return nt_fail(STATUS_INVALID_PARAMETER, "group %u has none of these processors",
                       affinity->Group);
    for (unsigned bit = 0; bit < NT_GROUP_SIZE; bit++) {
        unsigned cpu = first + bit;

        if (!(affinity->Mask >> bit & 1))
            continue;
        if (cpu >= cpus)
            return nt_fail(STATUS_INVALID_PARAMETER, "group %u has no processor %u",
                           affinity->Group, bit);
        allocation->cpus[cpu / WORD] |= 1ull << (cpu % WORD);
    }
    return STATUS_SUCCESS;
}

static NTSTATUS take_affinity(const GROUP_AFFINITY *affinity, uint32_t count,
                              struct allocation *allocation)
{
    NTSTATUS status = STATUS_SUCCESS;

    if (!affinity != !count)
        return nt_fail(STATUS_INVALID_PARAMETER, "an affinity and the number of its groups go "
                                                 "together");
    if (!affinity)
        memset(allocation->cpus, 0xff, sizeof(allocation->cpus));
    for (uint32_t i = 0; i < count && !status; i++)
        status = add_group(&affinity[i], allocation);
    return status;
}

static NTSTATUS add_range(uint32_t begin, uint32_t end, struct allocation *allocation)
{
    if (begin > end)
        return nt_fail(STATUS_INVALID_PARAMETER, "counters %u to %u: an empty range", begin, end);
    if (end >= WORD)
        return nt_fail(STATUS_NOT_SUPPORTED, "counter %u: there are at most %u", end, WORD);
    for (uint32_t n = begin; n <= end; n++)
        allocation->counters |= 1ull << n;
    return STATUS_SUCCESS;
}

static NTSTATUS add_resource(const PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR *resource,
                             struct allocation *allocation)
{
    if ((uint32_t)resource->Type >= ResourceTypeMax || resource->Flags)
        return nt_fail(STATUS_INVALID_PARAMETER, "resource: unknown type %u or flags 0x%x",
                       (unsigned)resource->Type, resource->Flags);
    switch (resource->Type) {
    case ResourceTypeSingle:
        return add_range(resource->u.CounterIndex, resource->u.CounterIndex, allocation);
    case ResourceTypeRange:
        return add_range(resource->u.Range.Begin, resource->u.Range.End, allocation);
    default:
        return nt_fail(STATUS_NOT_SUPPORTED, "resource type %u: there are counters only",
                       (unsigned)resource->Type);
    }
}

static NTSTATUS take_resources(const PHYSICAL_COUNTER_RESOURCE_LIST *list,
                               struct allocation *allocation)
{
    NTSTATUS status = STATUS_SUCCESS;

    if (!list) {
        allocation->counters = ALL_COUNTERS;
        return STATUS_SUCCESS;
    }
    if (!list->Count)
        return nt_fail(STATUS_INVALID_PARAMETER, "the list of resources is empty");
    for (uint32_t i = 0; i < list->Count && !status; i++)
        status = add_resource(&list->Descriptors[i], allocation);
    return status;
}

static bool is_busy(const struct allocation *wanted)
{
    for (const struct allocation *held = allocations; held; held = held->next) {
        if (!(held->counters & wanted->counters))
            continue;
        for (unsigned i = 0; i < CPUS / WORD; i++) {
            if (held->cpus[i] & wanted->cpus[i])
                return true;
        }
    }
    return false;
}

/* Owns the allocation when it succeeds. */
static NTSTATUS keep(struct allocation *allocation, void **ret)
{
    if (is_busy(allocation)) {
        *ret = NULL;
        return nt_fail(STATUS_INSUFFICIENT_RESOURCES, "somebody in this process holds them");
    }
    *ret = nt_handle_add(NT_COUNTER_SET, 0, allocation);
    if (!*ret)
        return nt_fail(STATUS_INSUFFICIENT_RESOURCES, "out of memory");
    allocation->next = allocations;
    allocations = allocation;
    return STATUS_SUCCESS;
}

NTSTATUS prcb_HalAllocateHardwareCounters(GROUP_AFFINITY *GroupAffinty, uint32_t GroupCount,
                                          PHYSICAL_COUNTER_RESOURCE_LIST *ResourceList,
                                          void **CounterSetHandle)
{
    struct allocation *allocation;
    NTSTATUS status;

    if (!CounterSetHandle)
        return nt_fail(STATUS_INVALID_PARAMETER, "no place for the handle");
    status = nt_probe_write(CounterSetHandle, sizeof(*CounterSetHandle), 1);
    if (status)
        return status;
    allocation = calloc(1, sizeof(*allocation));
    if (!allocation) {
        *CounterSetHandle = NULL;
        return nt_fail(STATUS_INSUFFICIENT_RESOURCES, "out of memory");
    }
    status = take_affinity(GroupAffinty, GroupCount, allocation);
    if (!status)
        status = take_resources(ResourceList, allocation);
    if (!status) {
        nt_enter();
        status = keep(allocation, CounterSetHandle);
        nt_leave();
    }
    if (status)
        free(allocation);
    return status;
}

NTSTATUS prcb_HalFreeHardwareCounters(void *CounterSetHandle)
{
    struct allocation **at = &allocations;
    void *object;

    nt_enter();
    if (!nt_handle_get(CounterSetHandle, NT_COUNTER_SET, NULL, &object)) {
        nt_leave();
        return nt_fail(STATUS_INVALID_PARAMETER, "%p is not a set of counters that is held",
                       CounterSetHandle);
    }
    nt_handle_remove(CounterSetHandle, NT_COUNTER_SET);
    while (*at != object)
        at = &(*at)->next;
    *at = (*at)->next;
    free(object);
    nt_leave();
    return STATUS_SUCCESS;
}
