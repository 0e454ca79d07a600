/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Every member of every structure that is filled in here: what it needs of a processor's record, or
 * why there is nothing on Linux to fill it from.
 */
#include <string.h>

#include "query.h"

struct row {
    struct prcb_nt_member public;
    uint64_t needs;     /* enum prcb_processor_member bits */
    const char *reason; /* not NULL: never filled in */
    uint64_t instead;   /* a bit that does as well as all that it needs */
};

#define M(number, type, member, unit, needs, reason)                                               \
    {                                                                                              \
        {number, offsetof(type, member), sizeof(((type *)0)->member), #member, unit}, needs,       \
            reason                                                                                 \
    }
#define HAVE(number, type, member, unit, needs) M(number, type, member, unit, needs, NULL)
#define EITHER(number, type, member, unit, needs, instead)                                         \
    {                                                                                              \
        {number, offsetof(type, member), sizeof(((type *)0)->member), #member, unit}, needs, NULL, \
            instead                                                                                \
    }
#define LACKS(number, type, member, unit, reason) M(number, type, member, unit, 0, reason)
#define HNS                                       "100 ns"
#define PPI                                       SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION
#define PPIX                                      SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION_EX
#define SII                                       SYSTEM_INTERRUPT_INFORMATION
#define SQTA                                      SYSTEM_QUERY_TIME_ADJUST_INFORMATION
#define SCS                                       SYSTEM_CONTEXT_SWITCH_INFORMATION
#define SPI                                       SYSTEM_PROCESSOR_IDLE_INFORMATION
#define SPP                                       SYSTEM_PROCESSOR_POWER_INFORMATION
#define SPICT                                     SYSTEM_PROCESSOR_IDLE_CYCLE_TIME_INFORMATION
#define SPPD                                      SYSTEM_PROCESSOR_PERFORMANCE_DISTRIBUTION
#define SPCT                                      SYSTEM_PROCESSOR_CYCLE_TIME_INFORMATION
#define LOGICAL                                   PRCB_SYSTEM_LOGICAL_PROCESSOR_INFORMATION
#define CPU_SET                                   PRCB_SYSTEM_CPU_SET_INFORMATION
#define POWER                                     PROCESSOR_POWER_INFORMATION
#define LEVEL                                     PRCB_NT_POWER_LEVEL

#define MAX_MHZ PRCB_CPU_HAS_MAX_MHZ
#define IDLES   PRCB_CPU_HAS_IDLE_STATES

#define NO_PLACEMENT "Linux does not count how it found a processor for a thread"
#define NO_PREEMPT   "Linux does not count preemptions by how the processor was found"
#define NO_THROTTLE  "Linux does not tell throttling by its cause"
#define NO_LAST      "Linux has no such periodic check that would leave a last value"
#define NO_CLASSES   "classes of processors are not read from Linux"
#define NO_CSTATE    "cpuidle chooses a state at each entry: none is promoted or demoted"

static const struct row rows[] = {
    HAVE(0x08, PPI, IdleTime, HNS, PRCB_CPU_HAS_TIMES),
    HAVE(0x08, PPI, KernelTime, HNS, PRCB_CPU_HAS_TIMES),
    HAVE(0x08, PPI, UserTime, HNS, PRCB_CPU_HAS_TIMES),
    HAVE(0x08, PPI, DpcTime, HNS, PRCB_CPU_HAS_DPC),
    HAVE(0x08, PPI, InterruptTime, HNS, PRCB_CPU_HAS_INTERRUPT),
    HAVE(0x08, PPI, InterruptCount, "", PRCB_CPU_HAS_INTERRUPTS),
    HAVE(0x17, SII, ContextSwitches, "", PRCB_CPU_HAS_SWITCHES),
    HAVE(0x17, SII, DpcCount, "", PRCB_CPU_HAS_DPCS),
    HAVE(0x17, SII, DpcRate, "per tick", PRCB_CPU_HAS_DPCS),
    HAVE(0x17, SII, TimeIncrement, HNS, 0),
    HAVE(0x17, SII, DpcBypassCount, "", 0),
    HAVE(0x17, SII, ApcBypassCount, "", 0),
    HAVE(0x1c, SQTA, TimeAdjustment, HNS, 0),
    HAVE(0x1c, SQTA, TimeIncrement, HNS, 0),
    HAVE(0x1c, SQTA, Enable, "", 0),
    HAVE(0x24, SCS, ContextSwitches, "", 0),
    LACKS(0x24, SCS, FindAny, "", NO_PLACEMENT),
    LACKS(0x24, SCS, FindLast, "", NO_PLACEMENT),
    LACKS(0x24, SCS, FindIdeal, "", NO_PLACEMENT),
    LACKS(0x24, SCS, IdleAny, "", NO_PLACEMENT),
    LACKS(0x24, SCS, IdleCurrent, "", NO_PLACEMENT),
    LACKS(0x24, SCS, IdleLast, "", NO_PLACEMENT),
    LACKS(0x24, SCS, IdleIdeal, "", NO_PLACEMENT),
    LACKS(0x24, SCS, PreemptAny, "", NO_PREEMPT),
    LACKS(0x24, SCS, PreemptCurrent, "", NO_PREEMPT),
    LACKS(0x24, SCS, PreemptLast, "", NO_PREEMPT),
    HAVE(0x24, SCS, SwitchToIdle, "", PRCB_CPU_HAS_IDLE_ENTRIES),
    HAVE(0x2a, SPI, IdleTime, HNS, PRCB_CPU_HAS_TIMES),
    HAVE(0x2a, SPI, C1Time, HNS, IDLES),
    HAVE(0x2a, SPI, C2Time, HNS, IDLES),
    HAVE(0x2a, SPI, C3Time, HNS, IDLES),
    HAVE(0x2a, SPI, C1Transitions, "", IDLES),
    HAVE(0x2a, SPI, C2Transitions, "", IDLES),
    HAVE(0x2a, SPI, C3Transitions, "", IDLES),
    HAVE(0x3d, SPP, CurrentFrequency, "%", PRCB_CPU_HAS_MHZ | MAX_MHZ),
    HAVE(0x3d, SPP, ThermalLimitFrequency, "%", PRCB_CPU_HAS_LIMIT_MHZ | MAX_MHZ),
    LACKS(0x3d, SPP, ConstantThrottleFrequency, "%", NO_THROTTLE),
    LACKS(0x3d, SPP, DegradedThrottleFrequency, "%", NO_THROTTLE),
    LACKS(0x3d, SPP, LastBusyFrequency, "%", NO_LAST),
    LACKS(0x3d, SPP, LastC3Frequency, "%", NO_LAST),
    LACKS(0x3d, SPP, LastAdjustedBusyFrequency, "%", NO_LAST),
    HAVE(0x3d, SPP, ProcessorMinThrottle, "%", PRCB_CPU_HAS_MIN_MHZ | MAX_MHZ),
    HAVE(0x3d, SPP, ProcessorMaxThrottle, "%", PRCB_CPU_HAS_LIMIT_MHZ | MAX_MHZ),
    HAVE(0x3d, SPP, NumberOfFrequencies, "", 0),
    LACKS(0x3d, SPP, PromotionCount, "", NO_CSTATE),
    LACKS(0x3d, SPP, DemotionCount, "", NO_CSTATE),
    LACKS(0x3d, SPP, ErrorCount, "", NO_CSTATE),
    LACKS(0x3d, SPP, RetryCount, "", NO_CSTATE),
    LACKS(0x3d, SPP, CurrentFrequencyTime, HNS, "Linux does not tell since when a frequency holds"),
    HAVE(0x3d, SPP, CurrentProcessorTime, HNS, PRCB_CPU_HAS_TIMES),
    HAVE(0x3d, SPP, CurrentProcessorIdleTime, HNS, PRCB_CPU_HAS_TIMES),
    LACKS(0x3d, SPP, LastProcessorTime, HNS, NO_LAST),
    LACKS(0x3d, SPP, LastProcessorIdleTime, HNS, NO_LAST),
    LACKS(0x3d, SPP, Energy, "", "energy is metered for packages, not for processors"),
    HAVE(0x49, LOGICAL, ProcessorMask, "", 0),
    HAVE(0x49, LOGICAL, Relationship, "", 0),
    HAVE(0x49, LOGICAL, Reserved, "", 0),
    HAVE(0x53, SPICT, CycleTime, "cycles", PRCB_CPU_HAS_TIMES),
    HAVE(0x64, SPPD, ProcessorCount, "", 0),
    HAVE(0x64, SPPD, Offsets, "bytes", 0),
    HAVE(0x6c, SPCT, CycleTime, "cycles", PRCB_CPU_HAS_DPC | PRCB_CPU_HAS_INTERRUPT),
    HAVE(0x8d, PPIX, IdleTime, HNS, PRCB_CPU_HAS_TIMES),
    HAVE(0x8d, PPIX, KernelTime, HNS, PRCB_CPU_HAS_TIMES),
    HAVE(0x8d, PPIX, UserTime, HNS, PRCB_CPU_HAS_TIMES),
    HAVE(0x8d, PPIX, DpcTime, HNS, PRCB_CPU_HAS_DPC),
    HAVE(0x8d, PPIX, InterruptTime, HNS, PRCB_CPU_HAS_INTERRUPT),
    HAVE(0x8d, PPIX, InterruptCount, "", PRCB_CPU_HAS_INTERRUPTS),
    LACKS(0x8d, PPIX, AvailableTime, HNS, "no public source tells what it means on Windows"),
    HAVE(0xaf, CPU_SET, Size, "bytes", 0),
    HAVE(0xaf, CPU_SET, Type, "", 0),
    HAVE(0xaf, CPU_SET, Id, "", 0),
    HAVE(0xaf, CPU_SET, Group, "", 0),
    HAVE(0xaf, CPU_SET, LogicalProcessorIndex, "", 0),
    HAVE(0xaf, CPU_SET, CoreIndex, "", 0),
    HAVE(0xaf, CPU_SET, LastLevelCacheIndex, "", 0),
    HAVE(0xaf, CPU_SET, NumaNodeIndex, "", 0),
    LACKS(0xaf, CPU_SET, EfficiencyClass, "", NO_CLASSES),
    HAVE(0xaf, CPU_SET, AllFlags, "", 0),
    LACKS(0xaf, CPU_SET, SchedulingClass, "", NO_CLASSES),
    LACKS(0xaf, CPU_SET, AllocationTag, "", "Linux does not allocate processors to CPU sets"),
    HAVE(LEVEL(11), POWER, Number, "", 0),
    EITHER(LEVEL(11), POWER, MaxMhz, "MHz", MAX_MHZ, PRCB_CPU_HAS_MHZ),
    HAVE(LEVEL(11), POWER, CurrentMhz, "MHz", PRCB_CPU_HAS_MHZ),
    EITHER(LEVEL(11), POWER, MhzLimit, "MHz", PRCB_CPU_HAS_LIMIT_MHZ, PRCB_CPU_HAS_MHZ),
    HAVE(LEVEL(11), POWER, MaxIdleState, "", IDLES),
    HAVE(LEVEL(11), POWER, CurrentIdleState, "", PRCB_CPU_HAS_IDLE_STATE),
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* Both levels have the same structure. */
static uint32_t fold(uint32_t number)
{
    return number == LEVEL(PRCB_NT_PROCESSOR_INFORMATION_EX) ? LEVEL(PRCB_NT_PROCESSOR_INFORMATION)
                                                             : number;
}

const struct prcb_nt_member *prcb_nt_member(uint32_t information_class, size_t i)
{
    for (size_t at = 0; at < ROWS; at++) {
        if (rows[at].public.information_class == fold(information_class) && !i--)
            return &rows[at].public;
    }
    return NULL;
}

static const struct row *find(uint32_t number, uint32_t offset)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].public.information_class == number && rows[i].public.offset == offset)
            return &rows[i];
    }
    return NULL;
}

/* Members that cpufreq's own counts fill: all of them are present, or none is. */
static bool wants_frequencies(const struct prcb_nt_member *member)
{
    return (member->information_class == 0x64 &&
            member->offset == offsetof(SYSTEM_PROCESSOR_PERFORMANCE_DISTRIBUTION, Offsets)) ||
           (member->information_class == 0x3d &&
            member->offset == offsetof(SYSTEM_PROCESSOR_POWER_INFORMATION, NumberOfFrequencies));
}

static const char *frequencies_reason(void)
{
    struct nt_frequencies frequencies;

    for (uint32_t i = 0; i < nt_view_active(); i++) {
        nt_frequencies_read(nt_view_files(), i, &frequencies);
        if (frequencies.count)
            return NULL;
    }
    return "cpufreq keeps no count of frequencies here: cpu*/cpufreq/stats/time_in_state";
}

static const char *live_reason(const struct row *row)
{
    const char *reason = NULL;

    if (nt_view_have())
        return "the processors cannot be read";
    if (wants_frequencies(&row->public))
        return frequencies_reason();
    if (row->instead && !nt_view_absent_reason(row->instead))
        return NULL;
    for (uint64_t bits = row->needs; bits && !reason; bits &= bits - 1)
        reason = nt_view_absent_reason(bits & -bits);
    return reason;
}

const char *prcb_nt_absent(uint32_t information_class, uint32_t offset)
{
    const struct row *row = find(fold(information_class), offset);
    const char *reason;

    if (!row)
        return "no member begins there";
    if (row->reason || !(row->needs || wants_frequencies(&row->public)))
        return row->reason;
    nt_enter();
    reason = live_reason(row);
    nt_leave();
    return reason;
}
