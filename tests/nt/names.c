/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The plain names behind windows.h and winternl.h, as a Windows program finds them.
 * Prints TAP.
 */
#define WIN32_NO_STATUS
#include <Windows.h>
#undef WIN32_NO_STATUS
#include <ntstatus.h>
#include <evntrace.h>
#include <powrprof.h>
#include <winternl.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int tests, failed;

static void check(int good, const char *name)
{
    printf("%s %d - %s\n", good ? "ok" : "not ok", ++tests, name);
    failed |= !good;
}

static LONGLONG units(FILETIME time)
{
    return ((LONGLONG)time.dwHighDateTime << 32) | time.dwLowDateTime;
}

static void check_modules(void)
{
    HMODULE kernel = LoadLibraryA("NtosKrnl.exe"), ntdll = GetModuleHandle("ntdll"),
            kernel32 = LoadLibraryExA("C:\\Windows\\System32\\KERNEL32.dll", NULL, 0);

    check(kernel && ntdll && kernel32 && kernel != ntdll, "modules by any spelling");
    check(LoadLibraryW(L"hal.dll") && GetModuleHandleW(L"NTDLL.DLL") == ntdll, "wide names");
    SetLastError(0);
    check(!LoadLibraryA("user32.dll") && GetLastError() == ERROR_MOD_NOT_FOUND, "unknown module");
    check(!LoadLibraryW(L"ntdl\x131") && GetLastError() == ERROR_MOD_NOT_FOUND, "foreign letters");
    check(!LoadLibraryA(NULL) && GetLastError() == ERROR_INVALID_PARAMETER, "no name");
    check(GetProcAddress(kernel, "KeSetHardwareCounterConfiguration") &&
              GetProcAddress(kernel, "KeQueryHardwareCounterConfiguration") &&
              GetProcAddress(LoadLibraryA("hal"), "HalAllocateHardwareCounters") &&
              GetProcAddress(kernel, "HalFreeHardwareCounters"),
          "kernel calls");
    check(GetProcAddress(ntdll, "RtlReadThreadProfilingData") &&
              GetProcAddress(ntdll, "RtlEnableThreadProfiling") &&
              GetProcAddress(ntdll, "RtlDisableThreadProfiling") &&
              GetProcAddress(ntdll, "RtlQueryThreadProfiling"),
          "Rtl forms");
    check(GetProcAddress(kernel32, "EnableThreadProfiling") == (FARPROC)EnableThreadProfiling,
          "a name is the function");
    SetLastError(0);
    check(!GetProcAddress(kernel32, "KeSetHardwareCounterConfiguration") &&
              GetLastError() == ERROR_PROC_NOT_FOUND,
          "a name of another module");
    check(!GetProcAddress(kernel, (LPCSTR)(ULONG_PTR)7), "an ordinal");
    check(!GetProcAddress((HMODULE)(ULONG_PTR)64, "Sleep") && FreeLibrary(kernel) &&
              !FreeLibrary(NULL),
          "no module");
}

typedef NTSTATUS(NTAPI *query_extended)(SYSTEM_INFORMATION_CLASS, PVOID, ULONG, PVOID, ULONG,
                                        PULONG);
typedef NTSTATUS(NTAPI *set_information)(SYSTEM_INFORMATION_CLASS, PVOID, ULONG);
typedef ULONG(NTAPI *query_increment)(VOID);
typedef VOID(NTAPI *set_increment)(ULONG, ULONG);

/* Classes of the whole system, as SDK programs have them, and lengths. */
static void check_whole_system(DWORD processors)
{
    SYSTEM_BASIC_INFORMATION basic;
    SYSTEM_PERFORMANCE_INFORMATION counts, more;
    SYSTEM_TIMEOFDAY_INFORMATION day;
    LONGLONG times[2], again;
    ULONG length = 0;
    FILETIME now;

    check(NtQuerySystemInformation(SystemBasicInformation, &basic, sizeof(basic), &length) ==
                  STATUS_SUCCESS &&
              length == sizeof(basic) && (DWORD)basic.NumberOfProcessors == processors &&
              NtQuerySystemInformation(SystemBasicInformation, &basic, sizeof(basic) - 1,
                                       &length) == STATUS_INFO_LENGTH_MISMATCH &&
              length == sizeof(basic),
          "SystemBasicInformation");
    check(NtQuerySystemInformation(SystemPerformanceInformation, &counts, sizeof(counts),
                                   &length) == STATUS_SUCCESS &&
              length == 0x138 &&
              NtQuerySystemInformation(SystemPerformanceInformation, &counts, sizeof(counts) - 1,
                                       &length) == STATUS_INFO_LENGTH_MISMATCH &&
              length == 0x138,
          "SystemPerformanceInformation");
    Sleep(20);
    NtQuerySystemInformation(SystemPerformanceInformation, &more, sizeof(more), NULL);
    check(*(LONGLONG *)(PVOID)&more >= *(LONGLONG *)(PVOID)&counts &&
              *(ULONG *)(PVOID)(more.Reserved1 + 0x128) !=
                  *(ULONG *)(PVOID)(counts.Reserved1 + 0x128),
          "idle time and switches grow");
    check(NtQuerySystemInformation(SystemTimeOfDayInformation, &day, sizeof(day), &length) ==
                  STATUS_SUCCESS &&
              length == sizeof(day) &&
              NtQuerySystemInformation(SystemTimeOfDayInformation, times, sizeof(times), &length) ==
                  STATUS_SUCCESS &&
              length == sizeof(times) &&
              NtQuerySystemInformation(SystemTimeOfDayInformation, &again, sizeof(again), NULL) ==
                  STATUS_SUCCESS &&
              again == times[0] &&
              NtQuerySystemInformation(SystemTimeOfDayInformation, NULL, 0, &length) ==
                  STATUS_SUCCESS &&
              length == 0,
          "SystemTimeOfDayInformation");
    GetSystemTimeAsFileTime(&now);
    check(times[0] < times[1] && times[1] / 10000000 <= units(now) / 10000000, "times of day");
}

/* The system information calls, by linking and by name: the same answers. */
static void check_system(void)
{
    HMODULE ntdll = LoadLibraryA("ntdll.dll"), kernel = LoadLibraryA("ntoskrnl.exe"),
            powrprof = LoadLibraryA("PowrProf.dll");
    query_extended extended = (query_extended)GetProcAddress(ntdll, "NtQuerySystemInformationEx");
    set_information set = (set_information)GetProcAddress(ntdll, "NtSetSystemInformation");
    query_increment increment = (query_increment)GetProcAddress(kernel, "KeQueryTimeIncrement");
    set_increment set_to = (set_increment)GetProcAddress(kernel, "KeSetTimeIncrement");
    SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION times[64];
    ULONG length = 0, interval;
    USHORT group = 0;
    SYSTEM_INFO info;
    FILETIME idle, busy, user;
    char byte;

    check(GetProcAddress(ntdll, "NtQuerySystemInformation") == (FARPROC)NtQuerySystemInformation &&
              GetProcAddress(kernel, "ZwQuerySystemInformation") &&
              GetProcAddress(ntdll, "ZwQuerySystemInformationEx") &&
              GetProcAddress(kernel, "ZwSetSystemInformation") &&
              GetProcAddress(ntdll, "NtPowerInformation") &&
              GetProcAddress(kernel, "ZwPowerInformation") &&
              GetProcAddress(powrprof, "CallNtPowerInformation") ==
                  (FARPROC)CallNtPowerInformation &&
              !GetProcAddress(powrprof, "NtPowerInformation"),
          "system information names");
    GetSystemInfo(&info);
    check(info.dwNumberOfProcessors >= 1 && info.dwNumberOfProcessors <= 64 &&
              info.dwNumberOfProcessors == GetActiveProcessorCount(0) &&
              GetActiveProcessorCount(ALL_PROCESSOR_GROUPS) >= info.dwNumberOfProcessors &&
              GetActiveProcessorGroupCount() >= 1 && info.dwActiveProcessorMask & 1 &&
              info.dwPageSize >= 4096,
          "GetSystemInfo");
    check(!GetActiveProcessorCount(900), "no such group");
    check(NtQuerySystemInformation(SystemProcessorPerformanceInformation, times, sizeof(times),
                                   &length) == STATUS_SUCCESS &&
              length == info.dwNumberOfProcessors * sizeof(times[0]) &&
              times[0].KernelTime.QuadPart >= times[0].IdleTime.QuadPart &&
              times[0].IdleTime.QuadPart + times[0].UserTime.QuadPart > 0,
          "NtQuerySystemInformation");
    check(extended &&
              extended(SystemProcessorPerformanceInformation, &group, sizeof(group), times,
                       sizeof(times), &length) == STATUS_SUCCESS &&
              length == GetActiveProcessorCount(0) * sizeof(times[0]),
          "NtQuerySystemInformationEx");
    check(NtQuerySystemInformation(SystemCodeIntegrityInformation, &byte, 0, NULL) ==
              STATUS_INVALID_INFO_CLASS,
          "a class that is not here");
    check_whole_system(info.dwNumberOfProcessors);
    check(set && set(SystemInterruptInformation, NULL, 0) == STATUS_INVALID_INFO_CLASS,
          "NtSetSystemInformation");
    check(CallNtPowerInformation(ProcessorInformation, NULL, 0, times, sizeof(times)) ==
              STATUS_SUCCESS,
          "CallNtPowerInformation");
    interval = increment ? increment() : 0;
    check(interval >= 9999 && interval <= 100000, "KeQueryTimeIncrement");
    if (set_to)
        set_to(interval * 2, interval);
    check(set_to && increment() == interval * 2, "KeSetTimeIncrement");
    check(GetSystemTimes(&idle, &busy, &user) && GetSystemTimes(NULL, NULL, NULL) &&
              (((ULONGLONG)busy.dwHighDateTime << 32) | busy.dwLowDateTime) >=
                  (((ULONGLONG)idle.dwHighDateTime << 32) | idle.dwLowDateTime),
          "GetSystemTimes");
}

typedef NTSTATUS(NTAPI *query_time)(PLARGE_INTEGER);

static void check_zw(void)
{
    HMODULE ntdll = LoadLibraryA("ntdll.dll");
    query_time zw = (query_time)GetProcAddress(ntdll, "ZwQuerySystemTime");
    LARGE_INTEGER now = {0}, then = {0};
    FILETIME file;
    ULONG seconds = 0;

    check(GetProcAddress(ntdll, "ZwClose") && GetProcAddress(ntdll, "ZwWaitForSingleObject") && zw,
          "Zw names");
    NtQuerySystemTime(&then);
    GetSystemTimeAsFileTime(&file);
    check(zw && NT_SUCCESS(zw(&now)) && now.QuadPart >= then.QuadPart, "ZwQuerySystemTime");
    check(now.HighPart - (LONG)file.dwHighDateTime <= 1, "GetSystemTimeAsFileTime");
    check(RtlTimeToSecondsSince1970(&now, &seconds) && seconds > 1577836800, "seconds since 1970");
    now.QuadPart = 0;
    check(!RtlTimeToSecondsSince1970(&now, &seconds), "before 1970");
    check(RtlNtStatusToDosError(STATUS_INVALID_HANDLE) == ERROR_INVALID_HANDLE &&
              RtlNtStatusToDosError(STATUS_WMI_ALREADY_ENABLED) == ERROR_WMI_ALREADY_ENABLED &&
              NtClose(NULL) == STATUS_INVALID_HANDLE,
          "status values");
}

static void check_strings(void)
{
    ANSI_STRING narrow;
    UNICODE_STRING wide;

    RtlInitAnsiString(&narrow, "four");
    RtlInitUnicodeString(&wide, L"four");
    check(narrow.Length == 4 && narrow.MaximumLength == 5 && wide.Length == 4 * sizeof(WCHAR) &&
              wide.MaximumLength == 5 * sizeof(WCHAR),
          "counted strings");
    RtlInitAnsiString(&narrow, NULL);
    RtlInitUnicodeString(&wide, NULL);
    check(!narrow.Length && !narrow.MaximumLength && !wide.Buffer && !wide.MaximumLength,
          "no strings");
}

static DWORD WINAPI worker(LPVOID event)
{
    while (!__atomic_load_n((int *)event, __ATOMIC_ACQUIRE))
        Sleep(1);
    return 42;
}

static void check_threads(void)
{
    LARGE_INTEGER timeout, begin, end, frequency;
    int go = 0;
    DWORD tid = 0, code = 0;
    HANDLE thread = CreateThread(NULL, 0, worker, &go, 0, &tid), own = NULL;
    BOOLEAN enabled = TRUE;

    check(thread && tid && tid != GetCurrentThreadId(), "CreateThread");
    check(GetExitCodeThread(thread, &code) && code == STILL_ACTIVE, "it runs");
    QueryPerformanceCounter(&begin);
    check(WaitForSingleObject(thread, 20) == WAIT_TIMEOUT, "a wait that times out");
    timeout.QuadPart = -10000;
    check(NtWaitForSingleObject(thread, FALSE, &timeout) == STATUS_TIMEOUT, "NT's own");
    QueryPerformanceCounter(&end);
    QueryPerformanceFrequency(&frequency);
    check((end.QuadPart - begin.QuadPart) * 1000 / frequency.QuadPart >= 20, "and took so long");
    check(EnableThreadProfiling(thread, THREAD_PROFILING_FLAG_DISPATCH, 0, &own) ==
              ERROR_INVALID_PARAMETER,
          "another thread cannot be profiled");
    check(QueryThreadProfiling(thread, &enabled) == ERROR_SUCCESS && !enabled,
          "another thread can be asked about");
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    check(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0 &&
              GetExitCodeThread(thread, &code) && code == 42,
          "its exit code");
    check(CloseHandle(thread) && !CloseHandle(thread) && GetLastError() == ERROR_INVALID_HANDLE &&
              WaitForSingleObject(thread, 0) == WAIT_FAILED,
          "a handle closes once");
    check(DuplicateHandle(GetCurrentProcess(), GetCurrentThread(), GetCurrentProcess(), &own, 0,
                          FALSE, DUPLICATE_SAME_ACCESS) &&
              own != GetCurrentThread() && QueryThreadProfiling(own, &enabled) == 0 &&
              GetThreadId(own) == GetCurrentThreadId() && GetExitCodeThread(own, &code) &&
              code == STILL_ACTIVE && WaitForSingleObject(own, 0) == WAIT_TIMEOUT &&
              CloseHandle(own),
          "a real handle on oneself");
    check(GetExitCodeThread(GetCurrentThread(), &code) && code == STILL_ACTIVE &&
              WaitForSingleObject(GetCurrentThread(), 1) == WAIT_TIMEOUT &&
              GetThreadId(GetCurrentThread()) == GetCurrentThreadId(),
          "the pseudo handle");
    check(!OpenThread(THREAD_ALL_ACCESS, FALSE, 0x7ffffff0) &&
              GetLastError() == ERROR_INVALID_PARAMETER,
          "no such thread");
}

/* Every handle on a thread that CreateThread started tells its end and its code. */
static void check_handles(void)
{
    int go = 0;
    DWORD tid = 0, code = 0;
    HANDLE thread = CreateThread(NULL, 0, worker, &go, 0, &tid), opened, copy = NULL, last = NULL;

    opened = OpenThread(SYNCHRONIZE | THREAD_QUERY_INFORMATION, FALSE, tid);
    check(opened && opened != thread && GetThreadId(opened) == tid, "OpenThread");
    check(DuplicateHandle(GetCurrentProcess(), opened, GetCurrentProcess(), &copy, 0, FALSE,
                          DUPLICATE_SAME_ACCESS) &&
              copy != opened && GetThreadId(copy) == tid,
          "DuplicateHandle of another's");
    check(WaitForSingleObject(opened, 5) == WAIT_TIMEOUT &&
              WaitForSingleObject(copy, 0) == WAIT_TIMEOUT && GetExitCodeThread(copy, &code) &&
              code == STILL_ACTIVE,
          "both tell that it runs");
    check(CloseHandle(thread) && WaitForSingleObject(thread, 0) == WAIT_FAILED,
          "closed, it runs on");
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    check(WaitForSingleObject(opened, INFINITE) == WAIT_OBJECT_0 &&
              WaitForSingleObject(copy, INFINITE) == WAIT_OBJECT_0 &&
              GetExitCodeThread(opened, &code) && code == 42,
          "both tell its end");
    check(DuplicateHandle(GetCurrentProcess(), opened, GetCurrentProcess(), &last, 0, FALSE,
                          DUPLICATE_SAME_ACCESS | DUPLICATE_CLOSE_SOURCE) &&
              !CloseHandle(opened) && GetExitCodeThread(last, &code) && code == 42,
          "also once it has ended, and in the place of another");
    check(CloseHandle(copy) && CloseHandle(last) && !GetExitCodeThread(last, &code) &&
              GetLastError() == ERROR_INVALID_HANDLE,
          "closed");
    check(!DuplicateHandle(GetCurrentProcess(), last, GetCurrentProcess(), &copy, 0, FALSE, 0) &&
              GetLastError() == ERROR_INVALID_HANDLE &&
              !DuplicateHandle(NULL, GetCurrentThread(), GetCurrentProcess(), &copy, 0, FALSE, 0),
          "no handle, no process");
}

static DWORD foreign_tid;
static int foreign_go;

static void *foreign(void *arg)
{
    __atomic_store_n(&foreign_tid, GetCurrentThreadId(), __ATOMIC_RELEASE);
    while (!__atomic_load_n(&foreign_go, __ATOMIC_ACQUIRE))
        Sleep(1);
    return arg;
}

/* A thread that CreateThread knows nothing of. */
static void check_foreign(void)
{
    DWORD code = 0, tid;
    pthread_t id;
    HANDLE handle;

    if (pthread_create(&id, NULL, foreign, NULL))
        return;
    while (!(tid = __atomic_load_n(&foreign_tid, __ATOMIC_ACQUIRE)))
        Sleep(1);
    handle = OpenThread(SYNCHRONIZE, FALSE, tid);
    check(handle && WaitForSingleObject(handle, 5) == WAIT_TIMEOUT &&
              GetExitCodeThread(handle, &code) && code == STILL_ACTIVE,
          "a thread of somebody else's");
    __atomic_store_n(&foreign_go, 1, __ATOMIC_RELEASE);
    check(WaitForSingleObject(handle, INFINITE) == WAIT_OBJECT_0, "its end");
    check(!GetExitCodeThread(handle, &code) && GetLastError() == ERROR_NOT_SUPPORTED,
          "its exit code nobody knows");
    CloseHandle(handle);
    pthread_join(id, NULL);
}

static DWORD WINAPI spin(LPVOID end)
{
    ULONG64 from = 0, cycles = 0;

    QueryThreadCycleTime(GetCurrentThread(), &from);
    while (QueryThreadCycleTime(GetCurrentThread(), &cycles) && cycles - from < 20000000)
        ;
    *(ULONG64 *)end = cycles;
    return 0;
}

/* What threads and the process have used. */
static void check_usage(void)
{
    FILETIME create, end, kernel, user, now, thread_create;
    ULONG64 seen = 0, cycles = 0, process = 0, more = 0;
    HANDLE thread = CreateThread(NULL, 0, spin, &seen, 0, NULL);
    ULONG64 idle[64];
    ULONG length = 0, idle_length = sizeof(idle);
    PROCESSOR_NUMBER number;
    LONGLONG times[5];

    WaitForSingleObject(thread, INFINITE);
    check(QueryThreadCycleTime(thread, &cycles) && cycles >= seen && seen > 0,
          "QueryThreadCycleTime of a thread that has ended");
    check(GetThreadTimes(thread, &thread_create, &end, &kernel, &user) && units(end) > 0 &&
              units(kernel) + units(user) > 0,
          "GetThreadTimes of it");
    CloseHandle(thread);
    check(QueryProcessCycleTime(GetCurrentProcess(), &process) && process > seen &&
              QueryProcessCycleTime(GetCurrentProcess(), &more) && more > process,
          "QueryProcessCycleTime");
    GetSystemTimeAsFileTime(&now);
    check(GetProcessTimes(GetCurrentProcess(), &create, &end, &kernel, &user) && !units(end) &&
              units(create) <= units(thread_create) && units(now) >= units(create) &&
              units(now) - units(create) < 600 * 10000000ll && units(kernel) + units(user) > 0,
          "GetProcessTimes");
    check(GetThreadTimes(GetCurrentThread(), &create, &end, &kernel, &user) && !units(end),
          "GetThreadTimes");
    check(QueryIdleProcessorCycleTime(&idle_length, idle) &&
              idle_length == GetActiveProcessorCount(0) * sizeof(idle[0]) && idle[0] > 0 &&
              QueryIdleProcessorCycleTimeEx(0, &idle_length, idle),
          "QueryIdleProcessorCycleTime");
    idle_length = 4;
    check(!QueryIdleProcessorCycleTime(&idle_length, idle) &&
              GetLastError() == ERROR_INSUFFICIENT_BUFFER && idle_length % sizeof(idle[0]) == 0 &&
              idle_length && !QueryIdleProcessorCycleTimeEx(900, &idle_length, idle) &&
              GetLastError() == ERROR_INVALID_PARAMETER,
          "too short a buffer, no such group");
    GetCurrentProcessorNumberEx(&number);
    check(number.Group == 0 || GetActiveProcessorGroupCount() > 1, "GetCurrentProcessorNumberEx");
    check(!QueryThreadCycleTime(thread, &cycles) && GetLastError() == ERROR_INVALID_HANDLE &&
              !QueryProcessCycleTime(thread, &cycles) && GetLastError() == ERROR_INVALID_HANDLE,
          "of no thread, of no process");
    check(NtQueryInformationThread(GetCurrentThread(), (THREADINFOCLASS)1, times, 0x20, &length) ==
                  STATUS_SUCCESS &&
              length == 0x20 &&
              NtQueryInformationThread(GetCurrentThread(), (THREADINFOCLASS)1, times, 0x28,
                                       &length) == STATUS_INFO_LENGTH_MISMATCH &&
              length == 0x20 &&
              NtQueryInformationThread(GetCurrentThread(), (THREADINFOCLASS)23, times, 0x10,
                                       NULL) == STATUS_SUCCESS &&
              NtQueryInformationProcess(GetCurrentProcess(), (PROCESSINFOCLASS)38, times, 0x10,
                                        NULL) == STATUS_SUCCESS &&
              NtQueryInformationProcess(GetCurrentProcess(), (PROCESSINFOCLASS)99, times, 0x10,
                                        NULL) == STATUS_INVALID_INFO_CLASS &&
              NtQueryInformationThread(GetCurrentThread(), (THREADINFOCLASS)1, (PVOID)(ULONG_PTR)64,
                                       0x20, NULL) == STATUS_ACCESS_VIOLATION,
          "by their classes");
}

/* Every processor is in one core, one package and one node; caches have a size. */
static void check_topology(void)
{
    static const LOGICAL_PROCESSOR_RELATIONSHIP parts[] = {
        RelationProcessorCore, RelationProcessorPackage, RelationNumaNode, RelationGroup};
    DWORD length = 0, all = 0;
    char *buffer;

    check(!GetLogicalProcessorInformationEx(RelationAll, NULL, &length) &&
              GetLastError() == ERROR_INSUFFICIENT_BUFFER && length > 0,
          "GetLogicalProcessorInformationEx tells its length");
    buffer = (char *)malloc(length);
    all = length;
    check(GetLogicalProcessorInformationEx(
              RelationAll, (PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX)(PVOID)buffer, &length) &&
              length == all,
          "GetLogicalProcessorInformationEx");
    for (size_t i = 0; i < ARRAYSIZE(parts); i++) {
        KAFFINITY seen = 0, twice = 0, mask;
        DWORD at = 0, bad = 0;

        while (at < length) {
            PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX record =
                (PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX)(PVOID)(buffer + at);

            at += record->Size;
            bad += record->Relationship == RelationCache &&
                   (!record->Cache.Level || record->Cache.Level > 4 || !record->Cache.CacheSize ||
                    record->Cache.GroupCount != 1 || record->Size != 0x38);
            if (record->Relationship != parts[i])
                continue;
            mask = parts[i] == RelationGroup      ? record->Group.GroupInfo[0].ActiveProcessorMask
                   : parts[i] == RelationNumaNode ? record->NumaNode.GroupMask.Mask
                                                  : record->Processor.GroupMask[0].Mask;
            twice |= seen & mask;
            seen |= mask;
        }
        if (GetActiveProcessorGroupCount() > 1)
            break;
        check(at == length && !bad && !twice &&
                  __builtin_popcountll(seen) == (int)GetActiveProcessorCount(0),
              "processors are in one of each");
    }
    length = 1;
    check(!GetLogicalProcessorInformationEx((LOGICAL_PROCESSOR_RELATIONSHIP)77, NULL, &length) &&
              GetLastError() == ERROR_INVALID_PARAMETER,
          "no such relation");
    free(buffer);
}

/* What a file of sysfs says of a processor, 0 where it is not there. */
static unsigned sysfs_first(unsigned cpu, const char *file)
{
    char path[128];
    unsigned first = 0;
    FILE *stream;

    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/%s", cpu, file);
    stream = fopen(path, "r");
    if (!stream)
        return cpu;
    if (fscanf(stream, "%u", &first) != 1)
        first = cpu;
    fclose(stream);
    return first;
}

static void check_cpu_sets(void)
{
    SYSTEM_LOGICAL_PROCESSOR_INFORMATION parts[512];
    SYSTEM_CPU_SET_INFORMATION sets[64];
    KAFFINITY cores = 0;
    DWORD length = 0, bad = 0, caches = 0;
    ULONG told = 7;

    if (GetActiveProcessorGroupCount() > 1)
        return;
    check(!GetLogicalProcessorInformation(NULL, &length) &&
              GetLastError() == ERROR_INSUFFICIENT_BUFFER && length > 0 &&
              length % sizeof(parts[0]) == 0,
          "GetLogicalProcessorInformation tells its length");
    length = sizeof(parts);
    check(GetLogicalProcessorInformation(parts, &length), "GetLogicalProcessorInformation");
    for (size_t i = 0; i < length / sizeof(parts[0]); i++) {
        if (parts[i].Relationship == RelationProcessorCore) {
            bad += cores & parts[i].ProcessorMask ? 1 : 0;
            bad += parts[i].ProcessorCore.Flags !=
                   (__builtin_popcountll(parts[i].ProcessorMask) > 1 ? LTP_PC_SMT : 0);
            cores |= parts[i].ProcessorMask;
        }
        caches += parts[i].Relationship == RelationCache;
        bad += parts[i].Relationship == RelationCache && !parts[i].Cache.Size;
    }
    check(!bad && __builtin_popcountll(cores) == (int)GetActiveProcessorCount(0),
          "each processor is in one core");
    check(!GetSystemCpuSetInformation(NULL, 0, &told, GetCurrentProcess(), 0) &&
              GetLastError() == ERROR_INSUFFICIENT_BUFFER &&
              told == GetActiveProcessorCount(0) * sizeof(sets[0]),
          "GetSystemCpuSetInformation tells its length");
    check(GetSystemCpuSetInformation(sets, sizeof(sets), &told, NULL, 0),
          "GetSystemCpuSetInformation");
    for (unsigned i = 0; i < told / sizeof(sets[0]); i++)
        bad += sets[i].CpuSet.Id != 0x100 + i || sets[i].CpuSet.LogicalProcessorIndex != i ||
               sets[i].CpuSet.CoreIndex != sysfs_first(i, "topology/thread_siblings_list") ||
               (caches && sets[i].CpuSet.LastLevelCacheIndex > i);
    check(!bad, "CPU sets are as sysfs has them");
    check(!GetSystemCpuSetInformation(sets, sizeof(sets), &told, NULL, 1) &&
              GetLastError() == ERROR_INVALID_PARAMETER,
          "flags are refused");
}

static CRITICAL_SECTION section;
static int shared;

static DWORD WINAPI add(LPVOID times)
{
    for (int i = 0; i < *(int *)times; i++) {
        EnterCriticalSection(&section);
        EnterCriticalSection(&section);
        shared = shared + 1;
        LeaveCriticalSection(&section);
        LeaveCriticalSection(&section);
    }
    return 0;
}

/* What programs use on the way. */
static void check_porting(void)
{
    int times = 20000;
    HANDLE thread;
    char text[64], *allocated = NULL;
    WCHAR wide[64];
    ULONG sources[2] = {2, 19};
    char *memory = (char *)HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, 100);

    InitializeCriticalSection(&section);
    thread = CreateThread(NULL, 0, add, &times, 0, NULL);
    add(&times);
    WaitForSingleObject(thread, INFINITE);
    check(shared == 2 * times && TryEnterCriticalSection(&section), "critical sections");
    LeaveCriticalSection(&section);
    DeleteCriticalSection(&section);
    CloseHandle(thread);
    check(memory && !memory[99] &&
              (memory = (char *)HeapReAlloc(GetProcessHeap(), 0, memory, 1000)) &&
              HeapFree(GetProcessHeap(), 0, memory),
          "the heap");
    check(FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL,
                         ERROR_INVALID_PARAMETER, 0, text, sizeof(text), NULL) &&
              !strcmp(text, "The parameter is incorrect.\r\n") &&
              FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM, NULL, 0, 0, wide, 64, NULL) > 10 &&
              FormatMessage(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_ALLOCATE_BUFFER, NULL,
                            ERROR_WMI_ALREADY_ENABLED, MAKELANGID(LANG_NEUTRAL, SUBLANG_DEFAULT),
                            (LPSTR)&allocated, 0, NULL) &&
              allocated && strstr(allocated, "enabled") && !LocalFree(allocated),
          "FormatMessage");
    check(!FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM, NULL, 5, 0, text, 4, NULL) &&
              GetLastError() == ERROR_INSUFFICIENT_BUFFER &&
              !FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM, NULL, 0xdead, 0, text, 64, NULL) &&
              GetLastError() == ERROR_MR_MID_NOT_FOUND,
          "no room, no words");
    check(TraceSetInformation(1, TracePmcCounterListInfo, sources, sizeof(sources)) ==
                  ERROR_NOT_SUPPORTED &&
              TraceSetInformation(1, TracePmcCounterListInfo, sources, 5) == ERROR_BAD_LENGTH &&
              TraceSetInformation(1, TracePmcCounterListInfo, NULL, 0) == ERROR_INVALID_PARAMETER &&
              GetProcAddress(LoadLibraryA("advapi32.dll"), "TraceSetInformation"),
          "no trace sessions");
    check(GetProcAddress(GetModuleHandleA("ntdll"), "RtlGetNativeSystemInformation") != NULL,
          "RtlGetNativeSystemInformation");
}

int main(void)
{
    check_modules();
    check_system();
    check_zw();
    check_strings();
    check_threads();
    check_handles();
    check_foreign();
    check_usage();
    check_topology();
    check_cpu_sets();
    check_porting();
    printf("1..%d\n", tests);
    return failed;
}
