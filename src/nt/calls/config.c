/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Which counters there are: KeSetHardwareCounterConfiguration and its query. NT keeps
 * one set for the system; here each process has its own.
 */
#include "inside.h"

#include <string.h>

/* NT supports the calls on the processors of its Windows 7. A test defines it as 0. */
#ifndef NT_ARCHITECTURE_SUPPORTED
#if defined(__x86_64__) || defined(__i386__) || defined(__aarch64__)
#define NT_ARCHITECTURE_SUPPORTED 1
#else
#define NT_ARCHITECTURE_SUPPORTED 0
#endif
#endif

static struct nt_config config;
static uint32_t holders; /* profiles that count by this configuration */

const struct nt_config *nt_config(void)
{
    return &config;
}

void nt_config_hold(void)
{
    holders++;
}

void nt_config_release(void)
{
    holders--;
}

bool nt_config_held(void)
{
    return holders > 0;
}

void nt_config_forget(void)
{
    holders = 0;
}

static NTSTATUS check_elements(const HARDWARE_COUNTER *array, uint32_t count)
{
    NTSTATUS status;

    if (count > MAX_HW_COUNTERS)
        return nt_fail(STATUS_INVALID_PARAMETER, "%u counters: there can be %d", count,
                       MAX_HW_COUNTERS);
    if (!array && count)
        return nt_fail(STATUS_INVALID_PARAMETER, "no array of counters");
    status = nt_probe_read(array, count * sizeof(*array), 1);
    if (status)
        return status;
    for (uint32_t i = 0; i < count; i++) {
        if (array[i].Type != PMCCounter)
            return nt_fail(STATUS_INVALID_PARAMETER, "counter %u: Type must be PMCCounter", i);
        if (array[i].Reserved)
            return nt_fail(STATUS_INVALID_PARAMETER, "counter %u: Reserved must be 0", i);
    }
    return STATUS_SUCCESS;
}

/* What counts this source; an empty name if nothing does, with the reason in *err. */
static void find_event(uint64_t number, struct counter_event *ret, struct prcb_error *err)
{
    const struct prcb_profile_source *source = prcb_profile_source_find(number);
    struct prcb_counters *set;

    ret->name[0] = '\0';
    if (!source || !source->event) {
        prcb_fail(err, 0, "nothing here counts source %llu (prcb list names what does)",
                  (unsigned long long)number);
        return;
    }
    if (counter_event_find(source->event, ret, err) ||
        counters_open_events(ret, 1, 0, 0, &set, err)) {
        ret->name[0] = '\0';
        return;
    }
    prcb_counters_close(set);
}

static NTSTATUS make_config(const HARDWARE_COUNTER *array, uint32_t count, struct nt_config *ret)
{
    struct prcb_error err = {0}, first = {0};
    bool any = count == 0;

    ret->count = count;
    for (uint32_t i = 0; i < count; i++) {
        ret->counters[i] = array[i];
        find_event(array[i].Index, &ret->events[i], &err);
        any = any || ret->events[i].name[0];
        if (!first.text[0])
            first = err;
    }
    return any ? STATUS_SUCCESS
               : nt_fail(STATUS_NOT_SUPPORTED, "none of the counters can count: %s", first.text);
}

/* Bytes of an array that has places for so many; more than MAX_HW_COUNTERS are never touched. */
static size_t room_of(uint32_t count)
{
    return (count < MAX_HW_COUNTERS ? count : MAX_HW_COUNTERS) * sizeof(HARDWARE_COUNTER);
}

NTSTATUS prcb_KeSetHardwareCounterConfiguration(HARDWARE_COUNTER *CounterArray, uint32_t Count)
{
    struct nt_config made = {0};
    NTSTATUS status;

    if (!NT_ARCHITECTURE_SUPPORTED)
        return nt_fail(STATUS_NOT_IMPLEMENTED, "not on this kind of processor");
    status = check_elements(CounterArray, Count);
    if (status)
        return status;
    nt_enter();
    if (nt_config_held())
        status = nt_fail(STATUS_WMI_ALREADY_ENABLED, "a thread is counting: disable that first");
    else
        status = make_config(CounterArray, Count, &made);
    if (!status)
        config = made;
    nt_leave();
    return status;
}

NTSTATUS prcb_KeQueryHardwareCounterConfiguration(HARDWARE_COUNTER *CounterArray,
                                                  uint32_t MaximumCount, uint32_t *Count)
{
    NTSTATUS status = STATUS_SUCCESS;

    if (!NT_ARCHITECTURE_SUPPORTED)
        return nt_fail(STATUS_NOT_IMPLEMENTED, "not on this kind of processor");
    if (!Count)
        return nt_fail(STATUS_INVALID_PARAMETER, "no place for the count");
    status = nt_probe_write(Count, sizeof(*Count), 1);
    if (!status && CounterArray)
        status = nt_probe_write(CounterArray, room_of(MaximumCount), 1);
    if (status)
        return status;
    nt_enter();
    if (MaximumCount < config.count)
        status = nt_fail(STATUS_BUFFER_TOO_SMALL, "%u counters are configured", config.count);
    else if (config.count && !CounterArray)
        status = nt_fail(STATUS_INVALID_PARAMETER, "no array for the counters");
    else if (config.count)
        memcpy(CounterArray, config.counters, config.count * sizeof(config.counters[0]));
    if (!status || status == STATUS_BUFFER_TOO_SMALL)
        *Count = config.count;
    nt_leave();
    return status;
}
