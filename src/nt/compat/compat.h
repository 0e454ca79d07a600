/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Inside of prcb-nt: the plain names, as the compat headers declare them, over libprcb's
 * prefixed ones. This header declares what those headers leave to driver headers. The library
 * keeps no state except the last error of each thread and the threads that it started.
 */
#ifndef PRCB_COMPAT_INSIDE_H
#define PRCB_COMPAT_INSIDE_H

#include <windows.h>
#include <winternl.h>

#define EXPORT __attribute__((visibility("default")))

#define CURRENT_PROCESS ((HANDLE)(LONG_PTR)-1)

/* Set the last error; FALSE, or TRUE for STATUS_SUCCESS. */
BOOL fail(DWORD code);
BOOL fail_status(NTSTATUS status);

/* toolhelp.c: ends a snapshot; FALSE: it is none. */
BOOL snapshot_close(HANDLE handle);

typedef struct _HARDWARE_COUNTER HARDWARE_COUNTER;
typedef struct _PHYSICAL_COUNTER_RESOURCE_LIST PHYSICAL_COUNTER_RESOURCE_LIST;

NTSTATUS KeSetHardwareCounterConfiguration(HARDWARE_COUNTER *CounterArray, ULONG Count);
NTSTATUS KeQueryHardwareCounterConfiguration(HARDWARE_COUNTER *CounterArray, ULONG MaximumCount,
                                             ULONG *Count);
NTSTATUS HalAllocateHardwareCounters(GROUP_AFFINITY *GroupAffinty, ULONG GroupCount,
                                     PHYSICAL_COUNTER_RESOURCE_LIST *ResourceList,
                                     HANDLE *CounterSetHandle);
NTSTATUS HalFreeHardwareCounters(HANDLE CounterSetHandle);
NTSTATUS RtlEnableThreadProfiling(HANDLE ThreadHandle, ULONG Flags, ULONG64 HardwareCounters,
                                  PVOID *PerformanceDataHandle);
NTSTATUS RtlDisableThreadProfiling(PVOID PerformanceDataHandle);
NTSTATUS RtlQueryThreadProfiling(HANDLE ThreadHandle, BOOLEAN *Enabled);
NTSTATUS RtlReadThreadProfilingData(HANDLE PerformanceDataHandle, ULONG Flags,
                                    PERFORMANCE_DATA *PerformanceData);
NTSTATUS NtDelayExecution(BOOLEAN Alertable, LARGE_INTEGER *DelayInterval);
NTSTATUS NtYieldExecution(VOID);
NTSTATUS ZwQuerySystemInformation(SYSTEM_INFORMATION_CLASS SystemInformationClass,
                                  PVOID SystemInformation, ULONG SystemInformationLength,
                                  PULONG ReturnLength);
NTSTATUS RtlGetNativeSystemInformation(SYSTEM_INFORMATION_CLASS SystemInformationClass,
                                       PVOID SystemInformation, ULONG SystemInformationLength,
                                       PULONG ReturnLength);
NTSTATUS NtQuerySystemInformationEx(SYSTEM_INFORMATION_CLASS SystemInformationClass,
                                    PVOID InputBuffer, ULONG InputBufferLength,
                                    PVOID SystemInformation, ULONG SystemInformationLength,
                                    PULONG ReturnLength);
NTSTATUS ZwQuerySystemInformationEx(SYSTEM_INFORMATION_CLASS SystemInformationClass,
                                    PVOID InputBuffer, ULONG InputBufferLength,
                                    PVOID SystemInformation, ULONG SystemInformationLength,
                                    PULONG ReturnLength);
NTSTATUS NtSetSystemInformation(SYSTEM_INFORMATION_CLASS SystemInformationClass,
                                PVOID SystemInformation, ULONG SystemInformationLength);
NTSTATUS ZwSetSystemInformation(SYSTEM_INFORMATION_CLASS SystemInformationClass,
                                PVOID SystemInformation, ULONG SystemInformationLength);
NTSTATUS NtPowerInformation(POWER_INFORMATION_LEVEL InformationLevel, PVOID InputBuffer,
                            ULONG InputBufferLength, PVOID OutputBuffer, ULONG OutputBufferLength);
NTSTATUS ZwPowerInformation(POWER_INFORMATION_LEVEL InformationLevel, PVOID InputBuffer,
                            ULONG InputBufferLength, PVOID OutputBuffer, ULONG OutputBufferLength);
ULONG KeQueryTimeIncrement(VOID);
VOID KeSetTimeIncrement(ULONG MaximumIncrement, ULONG MinimumIncrement);
ULONG KeQueryActiveProcessorCountEx(USHORT GroupNumber);
USHORT KeQueryActiveGroupCount(VOID);
NTSTATUS ZwClose(HANDLE Handle);
NTSTATUS NtDuplicateObject(HANDLE SourceProcessHandle, HANDLE SourceHandle,
                           HANDLE TargetProcessHandle, HANDLE *TargetHandle,
                           ACCESS_MASK DesiredAccess, ULONG HandleAttributes, ULONG Options);
NTSTATUS ZwDuplicateObject(HANDLE SourceProcessHandle, HANDLE SourceHandle,
                           HANDLE TargetProcessHandle, HANDLE *TargetHandle,
                           ACCESS_MASK DesiredAccess, ULONG HandleAttributes, ULONG Options);
NTSTATUS ZwQueryInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass,
                                  PVOID ThreadInformation, ULONG ThreadInformationLength,
                                  PULONG ReturnLength);
NTSTATUS ZwQueryInformationProcess(HANDLE ProcessHandle, PROCESSINFOCLASS ProcessInformationClass,
                                   PVOID ProcessInformation, ULONG ProcessInformationLength,
                                   PULONG ReturnLength);
NTSTATUS ZwWaitForSingleObject(HANDLE Handle, BOOLEAN Alertable, PLARGE_INTEGER Timeout);
NTSTATUS ZwQuerySystemTime(PLARGE_INTEGER SystemTime);
NTSTATUS ZwSetInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass,
                                PVOID ThreadInformation, ULONG ThreadInformationLength);
ULONG NtGetCurrentProcessorNumber(VOID);
NTSTATUS ZwDelayExecution(BOOLEAN Alertable, LARGE_INTEGER *DelayInterval);
NTSTATUS ZwYieldExecution(VOID);

#endif
