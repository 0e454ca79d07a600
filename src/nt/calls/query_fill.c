/* SPDX-License-Identifier: BSD-2-Clause
 *
 * NT's elements out of Linux' figures. members.c says which members have none.
 */
#include <stdlib.h>
#include <string.h>

#include "now.h"
#include "query.h"

#define NT_NS 100u

void nt_fill_performance(const struct nt_row *row, union nt_element *ret)
{
    SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION_EX *to = &ret->performance;
    int64_t times[NT_TIMES];

    nt_times(row->record, row->cpu, times);
    to->IdleTime.QuadPart = times[NT_IDLE];
    to->KernelTime.QuadPart = times[NT_KERNEL];
    to->UserTime.QuadPart = times[NT_USER];
    to->DpcTime.QuadPart = times[NT_DPC];
    to->InterruptTime.QuadPart = times[NT_INTERRUPT];
    to->InterruptCount = (uint32_t)row->record->interrupts;
}

void nt_fill_interrupt(const struct nt_row *row, union nt_element *ret)
{
    SYSTEM_INTERRUPT_INFORMATION *to = &ret->interrupt;

    to->ContextSwitches = (uint32_t)row->record->switches;
    to->DpcCount = (uint32_t)row->record->dpcs;
    if (row->record->present & PRCB_CPU_HAS_DPCS)
        to->DpcRate = nt_dpc_rate(row->cpu, row->record->dpcs, now_ns());
    to->TimeIncrement = nt_maximum_increment(); /* Linux has one tick length */
}

/* NT's C1 is the shallowest state that halts, C2 the next, C3 all below. Polling halts nothing. */
static void add_state(const struct prcb_idle_state *state, unsigned *depth,
                      SYSTEM_PROCESSOR_IDLE_INFORMATION *to)
{
    uint64_t *const times[] = {&to->C1Time, &to->C2Time, &to->C3Time};
    uint32_t *const transitions[] = {&to->C1Transitions, &to->C2Transitions, &to->C3Transitions};
    unsigned at = *depth < 3 ? *depth : 2;

    if (!strncmp(state->name, "POLL", sizeof(state->name)))
        return;
    *times[at] += state->residency_ns / NT_NS;
    *transitions[at] += (uint32_t)state->entries;
    ++*depth;
}

void nt_fill_idle(const struct nt_row *row, union nt_element *ret)
{
    unsigned depth = 0;

    ret->idle.IdleTime = row->record->idle_ns / NT_NS;
    for (uint32_t i = 0; i < row->record->idle_state_count && i < PRCB_IDLE_STATES_MAX; i++)
        add_state(&row->record->idle_states[i], &depth, &ret->idle);
}

/* Rounds to the nearest percent; 0 where either is not known. */
static uint8_t percent(uint64_t part, uint64_t whole)
{
    uint64_t result = whole ? (part * 100 + whole / 2) / whole : 0;

    return result < UINT8_MAX ? (uint8_t)result : UINT8_MAX;
}

void nt_fill_power(const struct nt_row *row, union nt_element *ret)
{
    const struct prcb_processor *from = row->record;
    SYSTEM_PROCESSOR_POWER_INFORMATION *to = &ret->power;
    struct nt_frequencies frequencies;

    to->CurrentFrequency = percent(from->mhz, from->max_mhz);
    to->ThermalLimitFrequency = percent(from->limit_mhz, from->max_mhz);
    to->ProcessorMinThrottle = percent(from->min_mhz, from->max_mhz);
    to->ProcessorMaxThrottle = percent(from->limit_mhz, from->max_mhz);
    nt_frequencies_read(nt_view_files(), from->number, &frequencies);
    to->NumberOfFrequencies = frequencies.count;
    to->CurrentProcessorTime = (from->idle_ns + from->user_ns + from->kernel_ns + from->dpc_ns +
                                from->interrupt_ns + from->steal_ns) /
                               NT_NS;
    to->CurrentProcessorIdleTime = from->idle_ns / NT_NS;
}

void nt_fill_idle_cycles(const struct nt_row *row, union nt_element *ret)
{
    ret->cycles.CycleTime = nt_cycles(row->record->idle_ns);
}

void nt_fill_cycles(const struct nt_row *row, union nt_element *ret)
{
    static const uint64_t both = PRCB_CPU_HAS_DPC | PRCB_CPU_HAS_INTERRUPT;

    /* A caller would take one of them alone for both. */
    if ((row->record->present & both) == both)
        ret->cycles.CycleTime = nt_cycles(row->record->dpc_ns + row->record->interrupt_ns);
}

void nt_fill_power_information(const struct nt_row *row, union nt_element *ret)
{
    const struct prcb_processor *from = row->record;
    PROCESSOR_POWER_INFORMATION *to = &ret->power_information;

    to->Number = from->number % NT_GROUP_SIZE;
    /* Without cpufreq no source has these values and the processor runs at one speed; Windows
     * then shows its nominal frequency in all three. */
    to->CurrentMhz = from->mhz;
    to->MaxMhz = from->max_mhz ? from->max_mhz : from->mhz;
    to->MhzLimit = from->limit_mhz ? from->limit_mhz : to->MaxMhz;
    to->MaxIdleState = from->idle_state_count ? from->idle_state_count - 1 : 0;
    if (from->present & PRCB_CPU_HAS_IDLE_STATE && from->flags & PRCB_CPU_IDLE)
        to->CurrentIdleState = from->idle_state;
}

/* ---- class 0x64: a head with offsets, then a distribution for each processor ---- */

#define STATE_SIZE ((uint32_t)sizeof(SYSTEM_PROCESSOR_PERFORMANCE_HITCOUNT))
#define STATES_AT  ((uint32_t)offsetof(SYSTEM_PROCESSOR_PERFORMANCE_STATE_DISTRIBUTION, States))
#define OFFSETS_AT ((uint32_t)offsetof(SYSTEM_PROCESSOR_PERFORMANCE_DISTRIBUTION, Offsets))

static uint32_t distribution_size(const struct nt_frequencies *frequencies)
{
    return STATES_AT + frequencies->count * STATE_SIZE;
}

static void put_distribution(const struct prcb_processor *record,
                             const struct nt_frequencies *frequencies, char *to)
{
    uint32_t head[2] = {record->number % NT_GROUP_SIZE, frequencies->count};
    uint64_t max_khz = record->max_mhz * 1000ull;

    if (!max_khz && frequencies->count)
        max_khz = frequencies->states[frequencies->count - 1].khz;
    memcpy(to, head, sizeof(head));
    for (uint32_t i = 0; i < frequencies->count; i++) {
        SYSTEM_PROCESSOR_PERFORMANCE_HITCOUNT state;

        memset(&state, 0, sizeof(state));
        state.Hits = frequencies->states[i].hits;
        state.PercentFrequency = percent(frequencies->states[i].khz, max_khz);
        memcpy(to + STATES_AT + i * STATE_SIZE, &state, sizeof(state));
    }
}

NTSTATUS nt_make_distribution(uint32_t first, uint32_t count, void **ret, uint32_t *ret_size)
{
    struct nt_frequencies *all = calloc(count, sizeof(*all));
    uint32_t head = (OFFSETS_AT + count * 4 + 7) & ~7u, size = head, at = head;
    char *made;

    for (uint32_t i = 0; i < count && all; i++) {
        nt_frequencies_read(nt_view_files(), first + i, &all[i]);
        size += distribution_size(&all[i]);
    }
    made = all ? calloc(1, size) : NULL;
    if (!made) {
        free(all);
        return nt_fail(STATUS_NO_MEMORY, "out of memory");
    }
    memcpy(made, &count, sizeof(count));
    for (uint32_t i = 0; i < count; i++) {
        memcpy(made + OFFSETS_AT + i * 4, &at, sizeof(at));
        put_distribution(nt_view_record(first + i), &all[i], made + at);
        at += distribution_size(&all[i]);
    }
    free(all);
    *ret = made;
    *ret_size = size;
    return STATUS_SUCCESS;
}
