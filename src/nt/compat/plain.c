/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The profiling calls under their plain names.
 */
#include "compat.h"

#include <prcb/nt.h>

EXPORT DWORD EnableThreadProfiling(HANDLE ThreadHandle, DWORD Flags, DWORD64 HardwareCounters,
                                   HANDLE *PerformanceDataHandle)
{
    return prcb_EnableThreadProfiling(ThreadHandle, Flags, HardwareCounters, PerformanceDataHandle);
}

EXPORT DWORD DisableThreadProfiling(HANDLE PerformanceDataHandle)
{
    return prcb_DisableThreadProfiling(PerformanceDataHandle);
}

EXPORT DWORD QueryThreadProfiling(HANDLE ThreadHandle, PBOOLEAN Enabled)
{
    return prcb_QueryThreadProfiling(ThreadHandle, Enabled);
}

EXPORT DWORD ReadThreadProfilingData(HANDLE PerformanceDataHandle, DWORD Flags,
                                     PPERFORMANCE_DATA PerformanceData)
{
    return prcb_ReadThreadProfilingData(PerformanceDataHandle, Flags, PerformanceData);
}

EXPORT NTSTATUS RtlEnableThreadProfiling(HANDLE ThreadHandle, ULONG Flags, ULONG64 HardwareCounters,
                                         PVOID *PerformanceDataHandle)
{
    return prcb_RtlEnableThreadProfiling(ThreadHandle, Flags, HardwareCounters,
                                         PerformanceDataHandle);
}

EXPORT NTSTATUS RtlDisableThreadProfiling(PVOID PerformanceDataHandle)
{
    return prcb_RtlDisableThreadProfiling(PerformanceDataHandle);
}

EXPORT NTSTATUS RtlQueryThreadProfiling(HANDLE ThreadHandle, BOOLEAN *Enabled)
{
    return prcb_RtlQueryThreadProfiling(ThreadHandle, Enabled);
}

EXPORT NTSTATUS RtlReadThreadProfilingData(HANDLE PerformanceDataHandle, ULONG Flags,
                                           PERFORMANCE_DATA *PerformanceData)
{
    return prcb_RtlReadThreadProfilingData(PerformanceDataHandle, Flags, PerformanceData);
}

EXPORT NTSTATUS KeSetHardwareCounterConfiguration(HARDWARE_COUNTER *CounterArray, ULONG Count)
{
    return prcb_KeSetHardwareCounterConfiguration(CounterArray, Count);
}

EXPORT NTSTATUS KeQueryHardwareCounterConfiguration(HARDWARE_COUNTER *CounterArray,
                                                    ULONG MaximumCount, ULONG *Count)
{
    return prcb_KeQueryHardwareCounterConfiguration(CounterArray, MaximumCount, Count);
}

EXPORT NTSTATUS HalAllocateHardwareCounters(GROUP_AFFINITY *GroupAffinty, ULONG GroupCount,
                                            PHYSICAL_COUNTER_RESOURCE_LIST *ResourceList,
                                            HANDLE *CounterSetHandle)
{
    return prcb_HalAllocateHardwareCounters(GroupAffinty, GroupCount, ResourceList,
                                            CounterSetHandle);
}

EXPORT NTSTATUS HalFreeHardwareCounters(HANDLE CounterSetHandle)
{
    return prcb_HalFreeHardwareCounters(CounterSetHandle);
}

EXPORT ULONG RtlNtStatusToDosError(NTSTATUS Status)
{
    return prcb_RtlNtStatusToDosError(Status);
}
