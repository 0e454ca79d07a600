/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb-nt.dll: the NT calls of libprcb for Windows programs under Wine. Compiled by winegcc: what
 * Windows programs call has their calling convention (WINAPI), what it calls has Linux'.
 *
 * A call is to such a program what a system call is on Windows: the thread is neither suspended
 * nor ended in the middle of it. Wine does both by signals, so these are held back meanwhile;
 * else a thread could leave with the library's lock.
 *
 * Threads  Windows' numbers of threads are Wine's. The table from these to Linux' is filled as
 *          threads begin (DllMain) or call in here.
 */
#include <windows.h>
#include <winternl.h>

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <prcb/nt.h>

#define CURRENT_THREAD ((HANDLE)(LONG_PTR)-2)
#define ARRAY_END(a)   ((a) + sizeof(a) / sizeof((a)[0]))

/* ---- held back: what Wine suspends and ends threads by ---- */

static void enter(sigset_t *ret)
{
    sigset_t held;

    sigemptyset(&held);
    sigaddset(&held, SIGUSR1);
    sigaddset(&held, SIGQUIT);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGALRM);
    sigaddset(&held, SIGIO);
    sigaddset(&held, SIGHUP);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGUSR2);
    sigaddset(&held, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &held, ret);
}

static void leave(const sigset_t *mask)
{
    pthread_sigmask(SIG_SETMASK, mask, NULL);
}

/* ---- Wine's own functions, which the farm keeps under other names ---- */

typedef NTSTATUS(WINAPI *query_system)(ULONG, PVOID, ULONG, PULONG);
typedef NTSTATUS(WINAPI *query_system_ex)(ULONG, PVOID, ULONG, PVOID, ULONG, PULONG);
typedef NTSTATUS(WINAPI *query_object)(HANDLE, ULONG, PVOID, ULONG, PULONG);
typedef NTSTATUS(WINAPI *power)(ULONG, PVOID, ULONG, PVOID, ULONG);

enum original { QUERY_SYSTEM, QUERY_SYSTEM_EX, QUERY_THREAD, QUERY_PROCESS, POWER, ORIGINALS };

static const struct {
    const char *kept, *plain; /* without a farm the second alone is there, and is Wine's */
} original_names[ORIGINALS] = {
#define ORIGINAL(name)                                                                             \
    {                                                                                              \
        "prcb_wine_" name, name                                                                    \
    }
    [QUERY_SYSTEM] = ORIGINAL("NtQuerySystemInformation"),
    [QUERY_SYSTEM_EX] = ORIGINAL("NtQuerySystemInformationEx"),
    [QUERY_THREAD] = ORIGINAL("NtQueryInformationThread"),
    [QUERY_PROCESS] = ORIGINAL("NtQueryInformationProcess"),
    [POWER] = ORIGINAL("NtPowerInformation"),
};

static NTSTATUS find_export(HMODULE module, const char *name, void **ret)
{
    ANSI_STRING string;

    RtlInitAnsiString(&string, name);
    return LdrGetProcedureAddress(module, &string, 0, ret);
}

/* NULL only if this is no Wine. Found again by whoever comes first: each finds the same. */
static void *original(enum original which)
{
    static void *found[ORIGINALS];
    static const WCHAR ntdll[] = {'n', 't', 'd', 'l', 'l', '.', 'd', 'l', 'l', 0};
    void *function = __atomic_load_n(&found[which], __ATOMIC_RELAXED); /* stands alone */
    UNICODE_STRING name;
    HMODULE module;

    if (function)
        return function;
    RtlInitUnicodeString(&name, ntdll);
    if (LdrGetDllHandle(NULL, 0, &name, &module))
        return NULL;
    if (find_export(module, original_names[which].kept, &function) &&
        find_export(module, original_names[which].plain, &function))
        return NULL;
    __atomic_store_n(&found[which], function, __ATOMIC_RELAXED);
    return function;
}

/* ---- the table of threads ---- */

struct row {
    DWORD id; /* Windows' */
    pid_t tid;
    struct row *next;
};

#define BUCKETS 256u

/* Signals are held back while the lock is held. A thread that is ended by another leaves its row;
 * the next that has its number, either of the two, takes it away. */
static struct row *table[BUCKETS];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread BOOL known;

static void remove_rows(DWORD id, pid_t tid)
{
    for (struct row **bucket = table; bucket < ARRAY_END(table); bucket++) {
        for (struct row **at = bucket; *at;) {
            struct row *row = *at;

            if (row->id == id || row->tid == tid) {
                *at = row->next;
                free(row);
            } else {
                at = &row->next;
            }
        }
    }
}

static DWORD own_id(void)
{
    return (DWORD)(ULONG_PTR)NtCurrentTeb()->ClientId.UniqueThread;
}

static void note_thread(BOOL begins)
{
    struct row *row = begins ? malloc(sizeof(*row)) : NULL;
    pid_t tid = gettid();
    DWORD id = own_id();
    sigset_t mask;

    enter(&mask);
    pthread_mutex_lock(&table_lock);
    remove_rows(id, tid);
    if (row) {
        *row = (struct row){id, tid, table[id / 4 % BUCKETS]};
        table[id / 4 % BUCKETS] = row;
    }
    pthread_mutex_unlock(&table_lock);
    leave(&mask);
    known = row != NULL;
}

/* 0: no living thread of this process that is known. */
static pid_t find_tid(DWORD id)
{
    pid_t tid = 0;
    sigset_t mask;

    if (id == own_id())
        return gettid();
    enter(&mask);
    pthread_mutex_lock(&table_lock);
    for (struct row *row = table[id / 4 % BUCKETS]; row && !tid; row = row->next)
        tid = row->id == id ? row->tid : 0;
    pthread_mutex_unlock(&table_lock);
    leave(&mask);
    return tid && !syscall(SYS_tgkill, getpid(), tid, 0) ? tid : 0;
}

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, LPVOID reserved)
{
    if (reason == DLL_PROCESS_ATTACH || reason == DLL_THREAD_ATTACH)
        note_thread(TRUE);
    else if (reason == DLL_THREAD_DETACH)
        note_thread(FALSE);
    return TRUE;
}

/* ---- a Windows handle on a thread as one of the library's ---- */

struct thread_info { /* THREAD_BASIC_INFORMATION, which Wine's headers have by another name too */
    NTSTATUS ExitStatus;
    PVOID TebBaseAddress;
    CLIENT_ID ClientId;
    ULONG_PTR AffinityMask;
    LONG Priority, BasePriority;
};

static BOOL own_process(HANDLE id)
{
    return id == NtCurrentTeb()->ClientId.UniqueProcess;
}

static NTSTATUS tid_of(HANDLE handle, pid_t *ret)
{
    query_object query = original(QUERY_THREAD);
    struct thread_info info;
    NTSTATUS status;

    *ret = gettid();
    if (handle == CURRENT_THREAD)
        return STATUS_SUCCESS;
    status = query ? query(handle, ThreadBasicInformation, &info, sizeof(info), NULL)
                   : STATUS_NOT_SUPPORTED;
    if (status)
        return status;
    if (!own_process(info.ClientId.UniqueProcess))
        return STATUS_INVALID_PARAMETER;
    *ret = find_tid((DWORD)(ULONG_PTR)info.ClientId.UniqueThread);
    return *ret ? STATUS_SUCCESS : STATUS_INVALID_CID;
}

/* To be closed by close_thread. */
static NTSTATUS open_thread(HANDLE handle, void **ret)
{
    pid_t tid;
    NTSTATUS status = tid_of(handle, &tid);

    if (!known)
        note_thread(TRUE);
    *ret = prcb_GetCurrentThread();
    if (!status && tid != gettid())
        *ret = prcb_OpenThread(0, 0, (uint32_t)tid);
    return status || *ret ? status : STATUS_INVALID_CID;
}

static void close_thread(void *thread)
{
    if (thread != prcb_GetCurrentThread())
        prcb_NtClose(thread);
}

/* ---- thread profiling ---- */

NTSTATUS WINAPI RtlEnableThreadProfiling(HANDLE ThreadHandle, ULONG Flags, ULONG64 HardwareCounters,
                                         PVOID *PerformanceDataHandle)
{
    NTSTATUS status;
    void *thread;
    sigset_t mask;

    enter(&mask);
    status = open_thread(ThreadHandle, &thread);
    if (!status) {
        status =
            prcb_RtlEnableThreadProfiling(thread, Flags, HardwareCounters, PerformanceDataHandle);
        close_thread(thread);
    }
    leave(&mask);
    return status;
}

NTSTATUS WINAPI RtlDisableThreadProfiling(PVOID PerformanceDataHandle)
{
    NTSTATUS status;
    sigset_t mask;

    enter(&mask);
    status = prcb_RtlDisableThreadProfiling(PerformanceDataHandle);
    leave(&mask);
    return status;
}

NTSTATUS WINAPI RtlQueryThreadProfiling(HANDLE ThreadHandle, BOOLEAN *Enabled)
{
    NTSTATUS status;
    void *thread;
    sigset_t mask;

    enter(&mask);
    status = open_thread(ThreadHandle, &thread);
    if (!status) {
        status = prcb_RtlQueryThreadProfiling(thread, Enabled);
        close_thread(thread);
    }
    leave(&mask);
    return status;
}

/* Does not block signals, for it makes no system call: it takes no lock unless the handle is
 * another thread's. */
NTSTATUS WINAPI RtlReadThreadProfilingData(HANDLE PerformanceDataHandle, ULONG Flags,
                                           PERFORMANCE_DATA *PerformanceData)
{
    return prcb_RtlReadThreadProfilingData(PerformanceDataHandle, Flags, PerformanceData);
}

DWORD WINAPI EnableThreadProfiling(HANDLE ThreadHandle, DWORD Flags, DWORD64 HardwareCounters,
                                   HANDLE *PerformanceDataHandle)
{
    return RtlNtStatusToDosError(
        RtlEnableThreadProfiling(ThreadHandle, Flags, HardwareCounters, PerformanceDataHandle));
}

DWORD WINAPI DisableThreadProfiling(HANDLE PerformanceDataHandle)
{
    return RtlNtStatusToDosError(RtlDisableThreadProfiling(PerformanceDataHandle));
}

DWORD WINAPI QueryThreadProfiling(HANDLE ThreadHandle, BOOLEAN *Enabled)
{
    return RtlNtStatusToDosError(RtlQueryThreadProfiling(ThreadHandle, Enabled));
}

DWORD WINAPI ReadThreadProfilingData(HANDLE PerformanceDataHandle, DWORD Flags,
                                     PERFORMANCE_DATA *PerformanceData)
{
    return RtlNtStatusToDosError(
        RtlReadThreadProfilingData(PerformanceDataHandle, Flags, PerformanceData));
}

/* ---- which counters there are ---- */

NTSTATUS WINAPI KeSetHardwareCounterConfiguration(HARDWARE_COUNTER *CounterArray, ULONG Count)
{
    NTSTATUS status;
    sigset_t mask;

    enter(&mask);
    status = prcb_KeSetHardwareCounterConfiguration(CounterArray, Count);
    leave(&mask);
    return status;
}

NTSTATUS WINAPI KeQueryHardwareCounterConfiguration(HARDWARE_COUNTER *CounterArray,
                                                    ULONG MaximumCount, ULONG *Count)
{
    NTSTATUS status;
    sigset_t mask;

    enter(&mask);
    status =
        prcb_KeQueryHardwareCounterConfiguration(CounterArray, MaximumCount, (uint32_t *)Count);
    leave(&mask);
    return status;
}

NTSTATUS WINAPI HalAllocateHardwareCounters(GROUP_AFFINITY *GroupAffinty, ULONG GroupCount,
                                            PHYSICAL_COUNTER_RESOURCE_LIST *ResourceList,
                                            HANDLE *CounterSetHandle)
{
    NTSTATUS status;
    sigset_t mask;

    enter(&mask);
    status =
        prcb_HalAllocateHardwareCounters(GroupAffinty, GroupCount, ResourceList, CounterSetHandle);
    leave(&mask);
    return status;
}

NTSTATUS WINAPI HalFreeHardwareCounters(HANDLE CounterSetHandle)
{
    NTSTATUS status;
    sigset_t mask;

    enter(&mask);
    status = prcb_HalFreeHardwareCounters(CounterSetHandle);
    leave(&mask);
    return status;
}

/* ---- the system: all classes, for programs that ask here by name ---- */

NTSTATUS WINAPI NtQuerySystemInformation(SYSTEM_INFORMATION_CLASS SystemInformationClass,
                                         PVOID SystemInformation, ULONG SystemInformationLength,
                                         PULONG ReturnLength)
{
    NTSTATUS status;
    sigset_t mask;

    enter(&mask);
    status = prcb_NtQuerySystemInformation((uint32_t)SystemInformationClass, SystemInformation,
                                           SystemInformationLength, (uint32_t *)ReturnLength);
    leave(&mask);
    return status;
}

NTSTATUS WINAPI NtQuerySystemInformationEx(SYSTEM_INFORMATION_CLASS SystemInformationClass,
                                           PVOID InputBuffer, ULONG InputBufferLength,
                                           PVOID SystemInformation, ULONG SystemInformationLength,
                                           PULONG ReturnLength)
{
    NTSTATUS status;
    sigset_t mask;

    enter(&mask);
    status = prcb_NtQuerySystemInformationEx((uint32_t)SystemInformationClass, InputBuffer,
                                             InputBufferLength, SystemInformation,
                                             SystemInformationLength, (uint32_t *)ReturnLength);
    leave(&mask);
    return status;
}

NTSTATUS WINAPI NtPowerInformation(POWER_INFORMATION_LEVEL InformationLevel, PVOID InputBuffer,
                                   ULONG InputBufferLength, PVOID OutputBuffer,
                                   ULONG OutputBufferLength)
{
    NTSTATUS status;
    sigset_t mask;

    enter(&mask);
    status = prcb_NtPowerInformation((uint32_t)InformationLevel, InputBuffer, InputBufferLength,
                                     OutputBuffer, OutputBufferLength);
    leave(&mask);
    return status;
}

/* ---- in Wine's place: what it has no figures for, or coarse ones ---- */

/* Not 0x17, of which Wine's own libraries take random numbers, nor 0x1C, where it has Windows'
 * usual clock interrupt. */
static BOOL is_ours(ULONG class)
{
    static const unsigned char ours[] = {0x08, 0x24, 0x2a, 0x3d, 0x53, 0x64, 0x6c, 0x8d};

    for (const unsigned char *at = ours; at < ARRAY_END(ours); at++) {
        if (*at == class)
            return TRUE;
    }
    return FALSE;
}

/* An error of the caller is answered here; what this machine cannot do is left to Wine. */
static BOOL is_answer(NTSTATUS status)
{
    switch ((ULONG)status) {
    case (ULONG)STATUS_SUCCESS:
    case (ULONG)STATUS_INFO_LENGTH_MISMATCH:
    case (ULONG)STATUS_BUFFER_TOO_SMALL:
    case (ULONG)STATUS_ACCESS_VIOLATION:
    case (ULONG)STATUS_DATATYPE_MISALIGNMENT:
    case (ULONG)STATUS_INVALID_PARAMETER:
        return TRUE;
    default:
        return FALSE;
    }
}

NTSTATUS WINAPI wine_NtQuerySystemInformation(ULONG class, PVOID buffer, ULONG length,
                                              PULONG return_length)
{
    NTSTATUS status = STATUS_NOT_SUPPORTED;
    query_system wine;

    if (is_ours(class))
        status = NtQuerySystemInformation((SYSTEM_INFORMATION_CLASS) class, buffer, length,
                                          return_length);
    if (is_answer(status))
        return status;
    wine = original(QUERY_SYSTEM);
    return wine ? wine(class, buffer, length, return_length) : status;
}

NTSTATUS WINAPI wine_NtQuerySystemInformationEx(ULONG class, PVOID input, ULONG input_length,
                                                PVOID buffer, ULONG length, PULONG return_length)
{
    NTSTATUS status = STATUS_NOT_SUPPORTED;
    query_system_ex wine;

    if (is_ours(class))
        status = NtQuerySystemInformationEx((SYSTEM_INFORMATION_CLASS) class, input, input_length,
                                            buffer, length, return_length);
    if (is_answer(status))
        return status;
    wine = original(QUERY_SYSTEM_EX);
    return wine ? wine(class, input, input_length, buffer, length, return_length) : status;
}

NTSTATUS WINAPI wine_NtPowerInformation(ULONG level, PVOID input, ULONG input_length, PVOID output,
                                        ULONG output_length)
{
    NTSTATUS status = STATUS_NOT_SUPPORTED;
    power wine;

    if (level == PRCB_NT_PROCESSOR_INFORMATION || level == PRCB_NT_PROCESSOR_INFORMATION_EX)
        status = NtPowerInformation((POWER_INFORMATION_LEVEL)level, input, input_length, output,
                                    output_length);
    if (is_answer(status))
        return status;
    wine = original(POWER);
    return wine ? wine(level, input, input_length, output, output_length) : status;
}

/* ---- cycles of threads and of this process ---- */

static NTSTATUS query_thread_cycles(HANDLE handle, PVOID buffer, ULONG length, PULONG return_length)
{
    NTSTATUS status;
    void *thread;
    sigset_t mask;

    enter(&mask);
    status = open_thread(handle, &thread);
    if (!status) {
        status = prcb_NtQueryInformationThread(thread, PRCB_NT_THREAD_CYCLE_TIME, buffer, length,
                                               (uint32_t *)return_length);
        close_thread(thread);
    }
    leave(&mask);
    return status;
}

struct process_info { /* PROCESS_BASIC_INFORMATION */
    NTSTATUS ExitStatus;
    PVOID PebBaseAddress;
    ULONG_PTR AffinityMask;
    LONG BasePriority;
    HANDLE UniqueProcessId, InheritedFromUniqueProcessId;
};

static NTSTATUS query_process_cycles(HANDLE handle, PVOID buffer, ULONG length,
                                     PULONG return_length)
{
    query_object query = original(QUERY_PROCESS);
    struct process_info info;
    NTSTATUS status = STATUS_SUCCESS;
    sigset_t mask;

    if (handle != NtCurrentProcess())
        status = query ? query(handle, ProcessBasicInformation, &info, sizeof(info), NULL)
                       : STATUS_NOT_SUPPORTED;
    if (!status && handle != NtCurrentProcess() && !own_process(info.UniqueProcessId))
        status = STATUS_NOT_SUPPORTED; /* Wine does not tell which Linux process that is */
    if (status)
        return status;
    enter(&mask);
    status = prcb_NtQueryInformationProcess(NtCurrentProcess(), PRCB_NT_PROCESS_CYCLE_TIME, buffer,
                                            length, (uint32_t *)return_length);
    leave(&mask);
    return status;
}

NTSTATUS WINAPI wine_NtQueryInformationThread(HANDLE handle, ULONG class, PVOID buffer,
                                              ULONG length, PULONG return_length)
{
    query_object wine;

    if (class == PRCB_NT_THREAD_CYCLE_TIME)
        return query_thread_cycles(handle, buffer, length, return_length);
    wine = original(QUERY_THREAD);
    return wine ? wine(handle, class, buffer, length, return_length) : STATUS_NOT_SUPPORTED;
}

NTSTATUS WINAPI wine_NtQueryInformationProcess(HANDLE handle, ULONG class, PVOID buffer,
                                               ULONG length, PULONG return_length)
{
    query_object wine;

    if (class == PRCB_NT_PROCESS_CYCLE_TIME)
        return query_process_cycles(handle, buffer, length, return_length);
    wine = original(QUERY_PROCESS);
    return wine ? wine(handle, class, buffer, length, return_length) : STATUS_NOT_SUPPORTED;
}

/* TRUE, or the last error. */
static BOOL succeed(DWORD code)
{
    if (code)
        NtCurrentTeb()->LastErrorValue = code;
    return !code;
}

/* THREAD_ and PROCESS_CYCLE_TIME_INFORMATION: some releases of Wine's headers have one of them. */
struct cycle_times {
    ULONGLONG AccumulatedCycles, CurrentCycleCount;
};

BOOL WINAPI QueryThreadCycleTime(HANDLE ThreadHandle, PULONG64 CycleTime)
{
    struct cycle_times cycles;
    NTSTATUS status = query_thread_cycles(ThreadHandle, &cycles, sizeof(cycles), NULL);

    if (!status)
        *CycleTime = cycles.AccumulatedCycles;
    return succeed(RtlNtStatusToDosError(status));
}

BOOL WINAPI QueryProcessCycleTime(HANDLE ProcessHandle, PULONG64 CycleTime)
{
    struct cycle_times cycles;
    NTSTATUS status = query_process_cycles(ProcessHandle, &cycles, sizeof(cycles), NULL);

    if (!status)
        *CycleTime = cycles.AccumulatedCycles;
    return succeed(RtlNtStatusToDosError(status));
}

BOOL WINAPI QueryIdleProcessorCycleTime(PULONG BufferLength, PULONG64 ProcessorIdleCycleTime)
{
    sigset_t mask;
    DWORD code;

    enter(&mask);
    code = prcb_QueryIdleProcessorCycleTime((uint32_t *)BufferLength,
                                            (uint64_t *)ProcessorIdleCycleTime);
    leave(&mask);
    return succeed(code);
}

BOOL WINAPI QueryIdleProcessorCycleTimeEx(USHORT Group, PULONG BufferLength,
                                          PULONG64 ProcessorIdleCycleTime)
{
    sigset_t mask;
    DWORD code;

    enter(&mask);
    code = prcb_QueryIdleProcessorCycleTimeEx(Group, (uint32_t *)BufferLength,
                                              (uint64_t *)ProcessorIdleCycleTime);
    leave(&mask);
    return succeed(code);
}

/* ---- beyond Windows ---- */

/* Linux' number of a thread of this process, by Windows'; 0: not known. For prcb stat -t. */
DWORD WINAPI PrcbThreadId(DWORD ThreadId)
{
    return (DWORD)find_tid(ThreadId);
}

/* As prcb_nt_error_text. */
const char *WINAPI PrcbErrorText(void)
{
    return prcb_nt_error_text();
}
