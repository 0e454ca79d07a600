/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Microsoft published neither units nor meanings of most members. What is filled is what
 * its name says, in 100 ns or in per cent, where Linux has just that; the manual of
 * `prcb power` has the same table for readers.
 */
#include "power_members.h"

#include <string.h>

/* ---- sources ------------------------------------------------------------- */

static struct power_value scaled(struct power_value value, uint64_t by)
{
    value.value /= by;
    return value;
}

static struct power_value percent(struct power_value permille)
{
    permille.value = (permille.value + 5) / 10;
    return permille;
}

#define NT_TIME(name, figure)                                                                      \
    static struct power_value name(const struct power_state *s)                                    \
    {                                                                                              \
        return scaled(figure, 100);                                                                \
    }
NT_TIME(wall_time, power_of(s, PROCESSOR_ROW_wall_ns))
NT_TIME(idle_time, power_of(s, PROCESSOR_ROW_idle_ns))
NT_TIME(active_time, power_active(s))
NT_TIME(idle_since, power_idle_since(s))

#define PERCENT(name, figure)                                                                      \
    static struct power_value name(const struct power_state *s)                                    \
    {                                                                                              \
        return percent(figure(s));                                                                 \
    }
PERCENT(busy, power_busy)
PERCENT(performance, power_performance)
PERCENT(utility, power_utility)
PERCENT(throttle, power_throttle)
PERCENT(limit, power_limit)
PERCENT(least, power_least)

#define LEVEL(number)                                                                              \
    static struct power_value level_time_##number(const struct power_state *s)                     \
    {                                                                                              \
        return scaled(power_level_time(s, number), 100);                                           \
    }                                                                                              \
    static struct power_value level_entries_##number(const struct power_state *s)                  \
    {                                                                                              \
        return power_level_entries(s, number);                                                     \
    }
LEVEL(0)
LEVEL(1)
LEVEL(2)

static struct power_value idle_state(const struct power_state *s)
{
    return power_of(s, PROCESSOR_ROW_idle_state);
}

/* The share of time in C3. */
static struct power_value deepest(const struct power_state *s)
{
    struct power_value time = power_level_time(s, 2);

    if (!time.reason && !s->p.wall_ns)
        time.reason = "shorter than the kernel's tick";
    if (!time.reason)
        time.value = (uint64_t)((double)time.value * 100 / (double)s->p.wall_ns + 0.5);
    return time;
}

/* The frequency that limits allow, of nominal; more than that is no guarantee. */
static struct power_value guaranteed(const struct power_state *s)
{
    struct power_value allowed = power_of(s, PROCESSOR_ROW_limit_mhz);
    struct power_value nominal = power_of(s, PROCESSOR_ROW_nominal_mhz);

    if (allowed.reason || nominal.reason)
        return allowed.reason ? allowed : nominal;
    if (allowed.value >= nominal.value)
        allowed.value = 100;
    else
        allowed.value = (allowed.value * 100 + nominal.value / 2) / nominal.value;
    return allowed;
}

static const struct power_source WALL = {"time looked at, 100 ns", wall_time, true};
static const struct power_source IDLE = {"idle time, 100 ns", idle_time, true};
static const struct power_source ACTIVE = {"time not idle, 100 ns", active_time, true};
static const struct power_source SINCE = {
    "CLOCK_MONOTONIC when the present idle stay began, 100 ns", idle_since, true};
static const struct power_source C1_TIME = {"time in the first idle state, 100 ns", level_time_0,
                                            true};
static const struct power_source C2_TIME = {"time in the second idle state, 100 ns", level_time_1,
                                            true};
static const struct power_source C3_TIME = {"time in the third idle state and deeper, 100 ns",
                                            level_time_2, true};
static const struct power_source C1_ENTRIES = {"entries of the first idle state", level_entries_0,
                                               true};
static const struct power_source C2_ENTRIES = {"entries of the second idle state", level_entries_1,
                                               true};
static const struct power_source C3_ENTRIES = {"entries of the third idle state and deeper",
                                               level_entries_2, true};
static const struct power_source LEVELS = {"number of idle states, polling left out", power_levels,
                                           false};
static const struct power_source STATE = {"index of the idle state it is in", idle_state, false};
static const struct power_source C3_PERCENT = {"time in the third idle state and deeper, per cent",
                                               deepest, false};
static const struct power_source BUSY = {"time not idle, per cent", busy, false};
static const struct power_source PERFORMANCE = {"performance of nominal, per cent", performance,
                                                false};
static const struct power_source UTILITY = {"busy x performance, per cent", utility, false};
static const struct power_source THROTTLE = {"frequency of the highest, per cent", throttle, false};
static const struct power_source LIMIT = {"highest allowed frequency of the highest, per cent",
                                          limit, false};
static const struct power_source LEAST = {"lowest allowed frequency of the highest, per cent",
                                          least, false};
static const struct power_source GUARANTEED = {
    "highest allowed frequency of nominal, at most 100 per cent", guaranteed, false};
static const struct power_source PARKED = {"1: offline", power_parked, false};

/* ---- reasons ------------------------------------------------------------- */

#define ADDRESS  "an address in the NT kernel"
#define OBJECT   "part of a timer or DPC of the NT kernel"
#define PADDING  "padding: it means nothing"
#define POLICY   "a setting or a count of NT's own power policy"
#define STAMP    "a reading of NT's clock that its power policy kept"
#define INDEX    "an index into NT's table of performance states"
#define HYPERV   "of Hyper-V"
#define BOUND    "the part of threads bound to the processor: Linux keeps no such sum"
#define UNKNOWN  "its meaning is not published"
#define FEEDBACK "the state of NT's own feedback counters"
#define CORES    "NT's classes of cores and threads"
#define HARDWARE "of NT's use of Intel's thread director"
#define ENERGY   "Linux has energy for a package, not for a processor"
#define PACKAGE  "of the package, not of the processor"
#define STAY     "Linux keeps no length of the last idle stay"

/* ---- the table ----------------------------------------------------------- */

/* clang-format off */
const struct power_member power_members[] = {
    /* 5.0 to 5.2 */
    {"IdleFunction", NULL, ADDRESS},
    {"Idle0KernelTimeLimit", NULL, POLICY},
    {"Idle0LastTime", NULL, STAMP},
    {"IdleHandlers", NULL, ADDRESS},
    {"IdleState", NULL, ADDRESS},
    {"IdleHandlersCount", &LEVELS, NULL},
    {"LastCheck", NULL, STAMP},
    {"IdleTimes.StartTime", &SINCE, NULL},
    {"IdleTimes.EndTime", NULL, STAY},
    {"IdleTimes.IdleHandlerReserved", NULL, PADDING},
    {"IdleTimes.Reserved", NULL, PADDING},
    {"IdleTime1", NULL, POLICY},
    {"PromotionCheck", NULL, POLICY},
    {"IdleTime2", NULL, POLICY},
    {"CurrentThrottle", &THROTTLE, NULL},
    {"ThrottleLimit", &LIMIT, NULL},
    {"ThermalThrottleLimit", &LIMIT, NULL},
    {"CurrentThrottleIndex", NULL, INDEX},
    {"ThermalThrottleIndex", NULL, INDEX},
    {"KneeThrottleIndex", NULL, INDEX},
    {"ThrottleLimitIndex", NULL, INDEX},
    {"Spare1", NULL, PADDING},
    {"Spare2", NULL, PADDING},
    {"SetMember", NULL, UNKNOWN},
    {"AbortThrottle", NULL, ADDRESS},
    {"DebugDelta", NULL, UNKNOWN},
    {"DebugCount", NULL, UNKNOWN},
    {"LastSysTime", NULL, STAMP},
    {"PerfSystemTime", NULL, STAMP},
    {"PerfIdleTime", NULL, STAMP},
    {"TotalIdleStateTime[0]", &C1_TIME, NULL},
    {"TotalIdleStateTime[1]", &C2_TIME, NULL},
    {"TotalIdleStateTime[2]", &C3_TIME, NULL},
    {"TotalIdleTransitions[0]", &C1_ENTRIES, NULL},
    {"TotalIdleTransitions[1]", &C2_ENTRIES, NULL},
    {"TotalIdleTransitions[2]", &C3_ENTRIES, NULL},
    {"PreviousC3StateTime", NULL, POLICY},
    {"PerfStatesCount", NULL, "Linux's drivers need no table of performance states"},
    {"ProcessorMinThrottle", &LEAST, NULL},
    {"ProcessorMaxThrottle", &LIMIT, NULL},
    {"LastBusyPercentage", &BUSY, NULL},
    {"LastC3Percentage", &C3_PERCENT, NULL},
    {"LastAdjustedBusyPercentage", &UTILITY, NULL},
    {"PromotionCount", NULL, POLICY},
    {"DemotionCount", NULL, POLICY},
    {"ErrorCount", NULL, POLICY},
    {"RetryCount", NULL, POLICY},
    {"Flags", NULL, POLICY},
    {"PerfCounterFrequency", NULL, STAMP},
    {"PerfTickCount", NULL, STAMP},
    {"PerfTimer.", NULL, OBJECT},
    {"PerfDpc.", NULL, OBJECT},
    {"PerfStates", NULL, ADDRESS},
    {"PerfSetThrottle", NULL, ADDRESS},
    {"LastKernelUserTime", NULL, STAMP},
    {"LastC3KernelUserTime", NULL, STAMP},
    {"LastIdleThreadKernelTime", NULL, STAMP},
    {"PackageIdleStartTime", NULL, PACKAGE},
    {"PackageIdleTime", NULL, PACKAGE},
    {"LastPackageIdleTime", NULL, PACKAGE},
    {"EnableIdleAccounting", NULL, POLICY},
    /* 6.0 */
    {"IdleStates", NULL, ADDRESS},
    {"IdleAccounting", NULL, ADDRESS},
    {"LastTimeCheck", NULL, STAMP},
    {"LastIdleTime", NULL, STAMP},
    {"LastIdleThreadKTime", NULL, STAMP},
    {"LastGlobalTimeHv", NULL, HYPERV},
    {"LastProcessorTimeHv", NULL, HYPERV},
    {"ThermalConstraint", &LIMIT, NULL},
    {"Flags.", NULL, POLICY},
    {"PStateMaster", NULL, ADDRESS},
    {"PStateSet", NULL, POLICY},
    {"CurrentPState", NULL, INDEX},
    {"DesiredPState", NULL, INDEX},
    {"Reserved0", NULL, PADDING},
    {"Reserved1", NULL, PADDING},
    {"PStateIdleStartTime", NULL, STAMP},
    {"PStateIdleTime", NULL, STAMP},
    {"LastPStateIdleTime", NULL, STAMP},
    {"PStateStartTime", NULL, STAMP},
    {"DiaIndex", NULL, INDEX},
    {"WmiDispatchPtr", NULL, ADDRESS},
    {"WmiInterfaceEnabled", NULL, POLICY},
    {"IdleTimeAccumulated", &IDLE, NULL},
    {"Native.IdleTransitionTime", NULL, STAMP},
    {"Hv.LastIdleCheck", NULL, HYPERV},
    /* 6.1 and later */
    {"IdleTimeLast", NULL, STAY},
    {"IdleTimeTotal", &IDLE, NULL},
    {"IdleTimeEntry", &SINCE, NULL},
    {"IdleTimeExpiration", NULL, POLICY},
    {"IdleSequenceNumber", NULL, UNKNOWN},
    {"IdleWakeTime", NULL, POLICY},
    {"IdleWakeLatencyLimit", NULL, POLICY},
    {"PlatformIdleAccounting", NULL, ADDRESS},
    {"Hypervisor", NULL, HYPERV},
    {"HvTargetState", NULL, HYPERV},
    {"HvIdleCheck.", NULL, HYPERV},
    {"PerfHistoryTotal", NULL, POLICY},
    {"PerfHistoryCount", NULL, POLICY},
    {"PerfHistorySlot", NULL, POLICY},
    {"Reserved", NULL, PADDING},
    {"Unused", NULL, PADDING},
    {"NotUsed", NULL, PADDING},
    {"FFHThrottleStateInfo.", NULL, POLICY},
    {"PerfActionDpc.", NULL, OBJECT},
    {"PerfActionMask", NULL, POLICY},
    {"IdleCheck.Time", &WALL, NULL},
    {"IdleCheck.Idle", &IDLE, NULL},
    {"PerfCheck.Time", &WALL, NULL},
    {"PerfCheck.Idle", &IDLE, NULL},
    {"PerfCheck.Active", &ACTIVE, NULL},
    {"PerfCheck.LastTime", NULL, STAMP},
    {"PerfCheck.LastActive", NULL, STAMP},
    {"PerfCheck.FrequencyScaledActive", NULL, UNKNOWN},
    {"PerfCheck.PerformanceScaledActive", NULL, UNKNOWN},
    {"PerfCheck.CyclesActive", NULL, FEEDBACK},
    {"PerfCheck.CyclesAffinitized", NULL, BOUND},
    {"PerfCheck", NULL, ADDRESS},
    {"Domain", NULL, ADDRESS},
    {"PerfConstraint", NULL, ADDRESS},
    {"Load", NULL, ADDRESS},
    {"PerfHistory", NULL, ADDRESS},
    {"Concurrency", NULL, ADDRESS},
    {"ClassConcurrency", NULL, ADDRESS},
    {"FxDevice", NULL, ADDRESS},
    {"Utility", &UTILITY, NULL},
    {"Utility[0].", NULL, UNKNOWN},
    {"Utility[1].", NULL, UNKNOWN},
    {"Utility[2].", NULL, UNKNOWN},
    {"OverUtilizedHistory", NULL, POLICY},
    {"AffinityCount", NULL, POLICY},
    {"AffinityHistory", NULL, POLICY},
    {"IdlePolicy.", NULL, POLICY},
    {"Synchronization.", NULL, POLICY},
    {"PerfFeedback.", NULL, FEEDBACK},
    {"GuaranteedPerformancePercent", &GUARANTEED, NULL},
    {"Parked", &PARKED, NULL},
    {"SoftParked", NULL, "Linux has nothing between parked and not"},
    {"OverUtilized", NULL, POLICY},
    {"LatestPerformancePercent", &PERFORMANCE, NULL},
    {"AveragePerformancePercent", &PERFORMANCE, NULL},
    {"LatestAffinitizedPercent", NULL, BOUND},
    {"AffinitizedUtility", NULL, BOUND},
    {"ExpectedUtility", NULL, POLICY},
    {"RelativePerformance", NULL, UNKNOWN},
    {"NonInterruptibleTransition", NULL, POLICY},
    {"PepWokenTransition", NULL, POLICY},
    {"TargetIdleState", &STATE, NULL},
    {"SnapTimeLast", NULL, STAMP},
    {"EnergyConsumed", NULL, ENERGY},
    {"ActiveTime", &ACTIVE, NULL},
    {"TotalTime", &WALL, NULL},
    {"CheckContext.Domain", NULL, ADDRESS},
    {"CheckContext.Constraint", NULL, ADDRESS},
    {"CheckContext.PerfCheck", NULL, ADDRESS},
    {"CheckContext.Load", NULL, ADDRESS},
    {"CheckContext.PerfHistory", NULL, ADDRESS},
    {"CheckContext.Utility", &UTILITY, NULL},
    {"CheckContext.AffinitizedUtility", NULL, BOUND},
    {"CheckContext.MediaUtility", NULL, CORES},
    {"CheckContext.ImportantUtility", NULL, CORES},
    {"CheckContext.IdealUtility", NULL, CORES},
    {"CheckContext.LatestAffinitizedPercent", NULL, BOUND},
    {"CheckContext.AveragePerformancePercent", &PERFORMANCE, NULL},
    {"CheckContext.RelativePerformance", NULL, UNKNOWN},
    {"CheckContext.NtProcessor", NULL, UNKNOWN},
    {"Class", NULL, CORES},
    {"EfficiencyClass", NULL, CORES},
    {"SchedulingClass", NULL, CORES},
    {"ArchitecturalEfficiencyClass", NULL, CORES},
    {"EarlyBootArchitecturalEfficiencyClass", NULL, CORES},
    {"PerformanceSchedulingClass", NULL, CORES},
    {"EfficiencySchedulingClass", NULL, CORES},
    {"LongPriorQosPeriod", NULL, CORES},
    {"LastQosTranstionTsc", NULL, CORES},
    {"LastQosTransitionTime", NULL, CORES},
    {"QosTransitionHysteresis", NULL, CORES},
    {"RequestedQosClass", NULL, CORES},
    {"ResolvedQosClass", NULL, CORES},
    {"QosEquivalencyMask", NULL, CORES},
    {"ContainmentGroupType", NULL, CORES},
    {"HeteroCoreType", NULL, CORES},
    {"FrequencyBucketThresholds", NULL, POLICY},
    {"HwFeedbackTableIndex", NULL, HARDWARE},
    {"HwFeedbackTableOffset", NULL, HARDWARE},
    {"HwFeedbackParkHint", NULL, HARDWARE},
    {"HwFeedbackPerformanceClass", NULL, HARDWARE},
    {"HwFeedbackEfficiencyClass", NULL, HARDWARE},
    {"HwFeedbackClassList", NULL, ADDRESS},
    {"EeCyclesWorkloadClassList", NULL, ADDRESS},
    {"PerfCyclesWorkloadClassList", NULL, ADDRESS},
    {0},
};
/* clang-format on */

/* How well a row fits: 3 the leaf itself, 2 the array it is an element of, 1 what it is in. */
static int fit(const struct power_member *row, const char *leaf)
{
    size_t length = strlen(row->name);

    if (strncmp(row->name, leaf, length))
        return 0;
    if (!leaf[length])
        return 3;
    if (row->name[length - 1] == '.')
        return 1;
    return leaf[length] == '[' && !strchr(leaf + length, '.') ? 2 : 0;
}

const struct power_member *power_member_find(const char *leaf)
{
    const struct power_member *best = NULL;
    int best_fit = 0;

    for (const struct power_member *row = power_members; row->name; row++) {
        int this_fit = fit(row, leaf);

        if (this_fit > best_fit) {
            best = row;
            best_fit = this_fit;
        }
    }
    return best;
}
