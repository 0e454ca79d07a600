/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What programs ask the system about its processors, under the plain names.
 */
#include "compat.h"

#include <powerbase.h>
#include <unistd.h>

#include <prcb/nt.h>

#define GROUP_SIZE (8 * sizeof(KAFFINITY))

EXPORT NTSTATUS NtQuerySystemInformation(SYSTEM_INFORMATION_CLASS SystemInformationClass,
                                         PVOID SystemInformation, ULONG SystemInformationLength,
                                         PULONG ReturnLength)
{
    return prcb_NtQuerySystemInformation((uint32_t)SystemInformationClass, SystemInformation,
                                         SystemInformationLength, ReturnLength);
}

EXPORT NTSTATUS ZwQuerySystemInformation(SYSTEM_INFORMATION_CLASS SystemInformationClass,
                                         PVOID SystemInformation, ULONG SystemInformationLength,
                                         PULONG ReturnLength)
{
    return NtQuerySystemInformation(SystemInformationClass, SystemInformation,
                                    SystemInformationLength, ReturnLength);
}

/* A 32-bit program on 64-bit Windows asks for this; here is one kind of system. */
EXPORT NTSTATUS RtlGetNativeSystemInformation(SYSTEM_INFORMATION_CLASS SystemInformationClass,
                                              PVOID SystemInformation,
                                              ULONG SystemInformationLength, PULONG ReturnLength)
{
    return NtQuerySystemInformation(SystemInformationClass, SystemInformation,
                                    SystemInformationLength, ReturnLength);
}

EXPORT NTSTATUS NtQuerySystemInformationEx(SYSTEM_INFORMATION_CLASS SystemInformationClass,
                                           PVOID InputBuffer, ULONG InputBufferLength,
                                           PVOID SystemInformation, ULONG SystemInformationLength,
                                           PULONG ReturnLength)
{
    return prcb_NtQuerySystemInformationEx((uint32_t)SystemInformationClass, InputBuffer,
                                           InputBufferLength, SystemInformation,
                                           SystemInformationLength, ReturnLength);
}

EXPORT NTSTATUS ZwQuerySystemInformationEx(SYSTEM_INFORMATION_CLASS SystemInformationClass,
                                           PVOID InputBuffer, ULONG InputBufferLength,
                                           PVOID SystemInformation, ULONG SystemInformationLength,
                                           PULONG ReturnLength)
{
    return NtQuerySystemInformationEx(SystemInformationClass, InputBuffer, InputBufferLength,
                                      SystemInformation, SystemInformationLength, ReturnLength);
}

EXPORT NTSTATUS NtSetSystemInformation(SYSTEM_INFORMATION_CLASS SystemInformationClass,
                                       PVOID SystemInformation, ULONG SystemInformationLength)
{
    return prcb_NtSetSystemInformation((uint32_t)SystemInformationClass, SystemInformation,
                                       SystemInformationLength);
}

EXPORT NTSTATUS ZwSetSystemInformation(SYSTEM_INFORMATION_CLASS SystemInformationClass,
                                       PVOID SystemInformation, ULONG SystemInformationLength)
{
    return NtSetSystemInformation(SystemInformationClass, SystemInformation,
                                  SystemInformationLength);
}

EXPORT NTSTATUS NtPowerInformation(POWER_INFORMATION_LEVEL InformationLevel, PVOID InputBuffer,
                                   ULONG InputBufferLength, PVOID OutputBuffer,
                                   ULONG OutputBufferLength)
{
    return prcb_NtPowerInformation((uint32_t)InformationLevel, InputBuffer, InputBufferLength,
                                   OutputBuffer, OutputBufferLength);
}

EXPORT NTSTATUS ZwPowerInformation(POWER_INFORMATION_LEVEL InformationLevel, PVOID InputBuffer,
                                   ULONG InputBufferLength, PVOID OutputBuffer,
                                   ULONG OutputBufferLength)
{
    return NtPowerInformation(InformationLevel, InputBuffer, InputBufferLength, OutputBuffer,
                              OutputBufferLength);
}

EXPORT NTSTATUS CallNtPowerInformation(POWER_INFORMATION_LEVEL InformationLevel, PVOID InputBuffer,
                                       ULONG InputBufferLength, PVOID OutputBuffer,
                                       ULONG OutputBufferLength)
{
    return NtPowerInformation(InformationLevel, InputBuffer, InputBufferLength, OutputBuffer,
                              OutputBufferLength);
}

EXPORT ULONG KeQueryTimeIncrement(VOID)
{
    return prcb_KeQueryTimeIncrement();
}

EXPORT VOID KeSetTimeIncrement(ULONG MaximumIncrement, ULONG MinimumIncrement)
{
    prcb_KeSetTimeIncrement(MaximumIncrement, MinimumIncrement);
}

EXPORT ULONG KeQueryActiveProcessorCountEx(USHORT GroupNumber)
{
    return prcb_KeQueryActiveProcessorCountEx(GroupNumber);
}

EXPORT USHORT KeQueryActiveGroupCount(VOID)
{
    return prcb_KeQueryActiveGroupCount();
}

EXPORT WORD GetActiveProcessorGroupCount(VOID)
{
    return prcb_KeQueryActiveGroupCount();
}

EXPORT DWORD GetActiveProcessorCount(WORD GroupNumber)
{
    DWORD count = prcb_KeQueryActiveProcessorCountEx(GroupNumber);

    if (!count)
        SetLastError(ERROR_INVALID_PARAMETER);
    return count;
}

static BOOL succeed(DWORD code)
{
    return code ? fail(code) : TRUE;
}

EXPORT BOOL QueryIdleProcessorCycleTime(PULONG BufferLength, PULONG64 ProcessorIdleCycleTime)
{
    return succeed(
        prcb_QueryIdleProcessorCycleTime(BufferLength, (uint64_t *)ProcessorIdleCycleTime));
}

EXPORT BOOL QueryIdleProcessorCycleTimeEx(USHORT Group, PULONG BufferLength,
                                          PULONG64 ProcessorIdleCycleTime)
{
    return succeed(prcb_QueryIdleProcessorCycleTimeEx(Group, BufferLength,
                                                      (uint64_t *)ProcessorIdleCycleTime));
}

EXPORT VOID GetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcNumber)
{
    DWORD number = GetCurrentProcessorNumber();

    ProcNumber->Group = (WORD)(number / GROUP_SIZE);
    ProcNumber->Number = (BYTE)(number % GROUP_SIZE);
    ProcNumber->Reserved = 0;
}

/* A status about lengths returns the wanted length; other statuses return none. */
static BOOL tell_length(NTSTATUS status, const DWORD *wanted, PDWORD ReturnedLength)
{
    const BOOL is_short = status == (NTSTATUS)STATUS_INFO_LENGTH_MISMATCH ||
                          status == (NTSTATUS)STATUS_BUFFER_TOO_SMALL;

    if (!status || is_short)
        *ReturnedLength = *wanted;
    return is_short ? fail(ERROR_INSUFFICIENT_BUFFER) : fail_status(status);
}

EXPORT BOOL GetLogicalProcessorInformationEx(LOGICAL_PROCESSOR_RELATIONSHIP RelationshipType,
                                             PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX Buffer,
                                             PDWORD ReturnedLength)
{
    ULONG relation = (ULONG)RelationshipType, wanted = 0;

    if (!ReturnedLength)
        return fail(ERROR_INVALID_PARAMETER);
    return tell_length(prcb_NtQuerySystemInformationEx(0x6b, &relation, sizeof(relation), Buffer,
                                                       Buffer ? *ReturnedLength : 0, &wanted),
                       &wanted, ReturnedLength);
}

EXPORT BOOL GetLogicalProcessorInformation(PSYSTEM_LOGICAL_PROCESSOR_INFORMATION Buffer,
                                           PDWORD ReturnedLength)
{
    PROCESSOR_NUMBER here;
    ULONG wanted = 0;

    if (!ReturnedLength)
        return fail(ERROR_INVALID_PARAMETER);
    GetCurrentProcessorNumberEx(&here);
    return tell_length(prcb_NtQuerySystemInformationEx(0x49, &here.Group, sizeof(here.Group),
                                                       Buffer, Buffer ? *ReturnedLength : 0,
                                                       &wanted),
                       &wanted, ReturnedLength);
}

EXPORT BOOL GetSystemCpuSetInformation(PSYSTEM_CPU_SET_INFORMATION Information, ULONG BufferLength,
                                       PULONG ReturnedLength, HANDLE Process, ULONG Flags)
{
    ULONG wanted = 0;

    if (!ReturnedLength || Flags)
        return fail(ERROR_INVALID_PARAMETER);
    *ReturnedLength = 0;
    return tell_length(prcb_NtQuerySystemInformationEx(0xaf, &Process, sizeof(Process), Information,
                                                       BufferLength, &wanted),
                       &wanted, ReturnedLength);
}

EXPORT VOID GetSystemInfo(LPSYSTEM_INFO lpSystemInfo)
{
    WORD group = (WORD)(GetCurrentProcessorNumber() / GROUP_SIZE);
    DWORD count = prcb_KeQueryActiveProcessorCountEx(group);
    PRCB_SYSTEM_PROCESSOR_INFORMATION kind;

    memset(lpSystemInfo, 0, sizeof(*lpSystemInfo));
    if (prcb_NtQuerySystemInformation(0x01, &kind, sizeof(kind), NULL))
        kind = (PRCB_SYSTEM_PROCESSOR_INFORMATION){.ProcessorArchitecture =
                                                       PROCESSOR_ARCHITECTURE_UNKNOWN};
    lpSystemInfo->wProcessorArchitecture = kind.ProcessorArchitecture;
    lpSystemInfo->wProcessorLevel = kind.ProcessorLevel;
    lpSystemInfo->wProcessorRevision = kind.ProcessorRevision;
    if (kind.ProcessorArchitecture == PROCESSOR_ARCHITECTURE_AMD64)
        lpSystemInfo->dwProcessorType = PROCESSOR_AMD_X8664;
    else if (kind.ProcessorArchitecture == PROCESSOR_ARCHITECTURE_INTEL)
        lpSystemInfo->dwProcessorType = PROCESSOR_INTEL_PENTIUM;
    lpSystemInfo->dwPageSize = (DWORD)sysconf(_SC_PAGESIZE);
    lpSystemInfo->dwAllocationGranularity = lpSystemInfo->dwPageSize;
    lpSystemInfo->lpMinimumApplicationAddress = (LPVOID)(ULONG_PTR)0x10000;
    lpSystemInfo->lpMaximumApplicationAddress =
        (LPVOID)(sizeof(void *) == 8 ? (ULONG_PTR)0x7ffffffeffff : (ULONG_PTR)0x7ffeffff);
    lpSystemInfo->dwNumberOfProcessors = count;
    lpSystemInfo->dwActiveProcessorMask =
        count >= GROUP_SIZE ? ~(DWORD_PTR)0 : ((DWORD_PTR)1 << count) - 1;
}

static void put_time(ULONGLONG time, LPFILETIME ret)
{
    if (!ret)
        return;
    ret->dwLowDateTime = (DWORD)time;
    ret->dwHighDateTime = (DWORD)(time >> 32);
}

EXPORT BOOL GetSystemTimes(LPFILETIME lpIdleTime, LPFILETIME lpKernelTime, LPFILETIME lpUserTime)
{
    SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION times[GROUP_SIZE];
    ULONGLONG idle = 0, kernel = 0, user = 0;
    USHORT groups = prcb_KeQueryActiveGroupCount();

    for (USHORT group = 0; group < groups || !group; group++) {
        ULONG length = 0;
        NTSTATUS status =
            prcb_NtQuerySystemInformationEx(SystemProcessorPerformanceInformation, &group,
                                            sizeof(group), times, sizeof(times), &length);

        if (status) {
            SetLastError(prcb_RtlNtStatusToDosError(status));
            return FALSE;
        }
        for (ULONG i = 0; i < length / sizeof(times[0]); i++) {
            idle += (ULONGLONG)times[i].IdleTime.QuadPart;
            kernel += (ULONGLONG)times[i].KernelTime.QuadPart;
            user += (ULONGLONG)times[i].UserTime.QuadPart;
        }
    }
    put_time(idle, lpIdleTime);
    put_time(kernel, lpKernelTime);
    put_time(user, lpUserTime);
    return TRUE;
}
