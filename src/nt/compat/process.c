/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where threads may run and how urgent they are; memory, environment and end of this process.
 */
#include "compat.h"

#include <errno.h>
#include <psapi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <prcb/nt.h>

#define MASK_BITS ((int)(8 * sizeof(DWORD_PTR)))

/* ---- where threads may run: the first processors, which a mask has bits for ---- */

static BOOL read_mask(pid_t tid, DWORD_PTR *ret)
{
    cpu_set_t set;

    if (sched_getaffinity(tid, sizeof(set), &set))
        return FALSE;
    *ret = 0;
    for (int cpu = 0; cpu < MASK_BITS; cpu++)
        *ret |= CPU_ISSET(cpu, &set) ? (DWORD_PTR)1 << cpu : 0;
    return TRUE;
}

EXPORT DWORD_PTR SetThreadAffinityMask(HANDLE hThread, DWORD_PTR dwThreadAffinityMask)
{
    pid_t tid = (pid_t)GetThreadId(hThread);
    cpu_set_t wanted;
    DWORD_PTR old;

    if (!tid)
        return 0;
    CPU_ZERO(&wanted);
    for (int cpu = 0; cpu < MASK_BITS; cpu++) {
        if (dwThreadAffinityMask >> cpu & 1)
            CPU_SET(cpu, &wanted);
    }
    if (!read_mask(tid, &old) || sched_setaffinity(tid, sizeof(wanted), &wanted)) {
        fail(ERROR_INVALID_PARAMETER);
        return 0;
    }
    return old;
}

EXPORT BOOL GetProcessAffinityMask(HANDLE hProcess, PDWORD_PTR lpProcessAffinityMask,
                                   PDWORD_PTR lpSystemAffinityMask)
{
    PROCESS_BASIC_INFORMATION process;
    SYSTEM_INFO system;
    NTSTATUS status = prcb_NtQueryInformationProcess(hProcess, 0, &process, sizeof(process), NULL);

    if (status)
        return fail_status(status);
    GetSystemInfo(&system);
    *lpProcessAffinityMask = process.AffinityMask;
    *lpSystemAffinityMask = system.dwActiveProcessorMask;
    return TRUE;
}

#define THREAD_AFFINITY_MASK 4

EXPORT NTSTATUS NtSetInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass,
                                       PVOID ThreadInformation, ULONG ThreadInformationLength)
{
    KAFFINITY mask;

    if (ThreadInformationClass != (THREADINFOCLASS)THREAD_AFFINITY_MASK)
        return (NTSTATUS)STATUS_INVALID_INFO_CLASS;
    if (ThreadInformationLength != sizeof(mask))
        return (NTSTATUS)STATUS_INFO_LENGTH_MISMATCH;
    if (!ThreadInformation)
        return (NTSTATUS)STATUS_ACCESS_VIOLATION;
    memcpy(&mask, ThreadInformation, sizeof(mask));
    if (SetThreadAffinityMask(ThreadHandle, mask))
        return STATUS_SUCCESS;
    return (NTSTATUS)(GetLastError() == ERROR_INVALID_HANDLE ? STATUS_INVALID_HANDLE
                                                             : STATUS_INVALID_PARAMETER);
}

EXPORT NTSTATUS ZwSetInformationThread(HANDLE ThreadHandle, THREADINFOCLASS ThreadInformationClass,
                                       PVOID ThreadInformation, ULONG ThreadInformationLength)
{
    return NtSetInformationThread(ThreadHandle, ThreadInformationClass, ThreadInformation,
                                  ThreadInformationLength);
}

EXPORT ULONG NtGetCurrentProcessorNumber(VOID)
{
    return GetCurrentProcessorNumber();
}

/* ---- how urgent threads are: a level of Windows is a nice value ---- */

static const struct {
    int level, nice;
} levels[] = {
    {THREAD_PRIORITY_IDLE, 19},           {THREAD_PRIORITY_LOWEST, 10},
    {THREAD_PRIORITY_BELOW_NORMAL, 5},    {THREAD_PRIORITY_NORMAL, 0},
    {THREAD_PRIORITY_ABOVE_NORMAL, -5},   {THREAD_PRIORITY_HIGHEST, -10},
    {THREAD_PRIORITY_TIME_CRITICAL, -20},
};

EXPORT BOOL SetThreadPriority(HANDLE hThread, int nPriority)
{
    DWORD tid = GetThreadId(hThread);
    size_t i = 0;

    while (i < ARRAYSIZE(levels) && levels[i].level != nPriority)
        i++;
    if (i == ARRAYSIZE(levels))
        return fail(ERROR_INVALID_PARAMETER);
    if (!tid)
        return FALSE;
    if (!setpriority(PRIO_PROCESS, tid, levels[i].nice))
        return TRUE;
    return fail(errno == ESRCH ? ERROR_INVALID_HANDLE : ERROR_ACCESS_DENIED);
}

/* The level whose nice value is nearest, of two the less urgent. */
EXPORT int GetThreadPriority(HANDLE hThread)
{
    DWORD tid = GetThreadId(hThread);
    size_t nearest = 0;
    int nice;

    if (!tid)
        return THREAD_PRIORITY_ERROR_RETURN;
    errno = 0;
    nice = getpriority(PRIO_PROCESS, tid);
    if (errno) {
        fail(ERROR_INVALID_HANDLE);
        return THREAD_PRIORITY_ERROR_RETURN;
    }
    for (size_t i = 1; i < ARRAYSIZE(levels); i++) {
        if (abs(levels[i].nice - nice) < abs(levels[nearest].nice - nice))
            nearest = i;
    }
    return levels[nearest].level;
}

/* ---- memory ---- */

struct memory {
    SIZE_T peak, resident, data; /* bytes */
};

static BOOL read_memory(struct memory *ret)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    unsigned long long kib;

    if (!file)
        return FALSE;
    memset(ret, 0, sizeof(*ret));
    while (fgets(line, sizeof(line), file)) {
        if (sscanf(line, "VmHWM: %llu", &kib) == 1)
            ret->peak = (SIZE_T)(kib * 1024);
        else if (sscanf(line, "VmRSS: %llu", &kib) == 1)
            ret->resident = (SIZE_T)(kib * 1024);
        else if (sscanf(line, "VmData: %llu", &kib) == 1)
            ret->data = (SIZE_T)(kib * 1024);
    }
    fclose(file);
    return ret->resident != 0;
}

static SIZE_T raise_peak(SIZE_T now)
{
    static SIZE_T peak;
    SIZE_T old = __atomic_load_n(&peak, __ATOMIC_RELAXED);

    while (old < now &&
           !__atomic_compare_exchange_n(&peak, &old, now, TRUE, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    return old > now ? old : now;
}

EXPORT BOOL GetProcessMemoryInfo(HANDLE Process, PPROCESS_MEMORY_COUNTERS ppsmemCounters, DWORD cb)
{
    const DWORD whole = sizeof(PROCESS_MEMORY_COUNTERS_EX);
    const DWORD size = cb < whole ? (DWORD)sizeof(PROCESS_MEMORY_COUNTERS) : whole;
    PROCESS_MEMORY_COUNTERS_EX made = {.cb = size};
    struct memory memory;
    struct rusage usage;

    if (Process != CURRENT_PROCESS)
        return fail(ERROR_INVALID_HANDLE);
    if (cb < size)
        return fail(ERROR_INSUFFICIENT_BUFFER);
    if (!ppsmemCounters)
        return fail(ERROR_NOACCESS);
    if (!read_memory(&memory) || getrusage(RUSAGE_SELF, &usage))
        return fail(ERROR_NOT_SUPPORTED);
    made.PageFaultCount = (DWORD)(usage.ru_minflt + usage.ru_majflt);
    made.PeakWorkingSetSize = memory.peak;
    made.WorkingSetSize = memory.resident;
    made.PagefileUsage = memory.data;
    made.PeakPagefileUsage = raise_peak(memory.data);
    made.PrivateUsage = memory.data;
    memcpy(ppsmemCounters, &made, size);
    return TRUE;
}

EXPORT BOOL K32GetProcessMemoryInfo(HANDLE Process, PPROCESS_MEMORY_COUNTERS ppsmemCounters,
                                    DWORD cb)
{
    return GetProcessMemoryInfo(Process, ppsmemCounters, cb);
}

/* ---- environment, end ---- */

EXPORT DWORD GetEnvironmentVariableA(LPCSTR lpName, LPSTR lpBuffer, DWORD nSize)
{
    const char *value = lpName ? getenv(lpName) : NULL;
    size_t length = value ? strlen(value) : 0;

    if (!value || length >= MAXDWORD)
        return (DWORD)fail(ERROR_ENVVAR_NOT_FOUND);
    if (length >= nSize)
        return (DWORD)length + 1;
    memcpy(lpBuffer, value, length + 1);
    SetLastError(ERROR_SUCCESS);
    return (DWORD)length;
}

EXPORT VOID ExitProcess(UINT uExitCode)
{
    exit((int)uExitCode);
}
