/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The calls that a program around thread profiling makes: threads, sleeping, time,
 * the last error. A thread that CreateThread started is kept here, by its handle,
 * until the handle is closed.
 */
#include "compat.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <prcb/nt.h>

#define NT_SECOND       10000000ll           /* 100 ns */
#define NT_EPOCH        116444736000000000ll /* 1601 to 1970 */
#define CURRENT_PROCESS ((HANDLE)(LONG_PTR)-1)

struct started {
    HANDLE handle;
    LPTHREAD_START_ROUTINE routine;
    LPVOID parameter;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pid_t tid; /* 0: not running yet */
    BOOL ended;
    DWORD exit_code;
    int references; /* the thread's, the handle's, those of waits; under started_lock */
    struct started *next;
};

static __thread DWORD last_error;
static struct started *all_started;
static pthread_mutex_t started_lock = PTHREAD_MUTEX_INITIALIZER;

EXPORT DWORD GetLastError(VOID)
{
    return last_error;
}

EXPORT VOID SetLastError(DWORD dwErrCode)
{
    last_error = dwErrCode;
}

static BOOL fail(DWORD code)
{
    last_error = code;
    return FALSE;
}

static BOOL fail_status(NTSTATUS status)
{
    return status ? fail(prcb_RtlNtStatusToDosError(status)) : TRUE;
}

/* ---- started threads ---- */

static void drop(struct started *thread)
{
    int left;

    pthread_mutex_lock(&started_lock);
    left = --thread->references;
    pthread_mutex_unlock(&started_lock);
    if (left)
        return;
    pthread_cond_destroy(&thread->changed);
    pthread_mutex_destroy(&thread->lock);
    free(thread);
}

static struct started *hold(HANDLE handle)
{
    struct started *thread;

    pthread_mutex_lock(&started_lock);
    for (thread = all_started; thread && thread->handle != handle; thread = thread->next)
        ;
    if (thread)
        thread->references++;
    pthread_mutex_unlock(&started_lock);
    return thread;
}

static void *thread_main(void *arg)
{
    struct started *thread = arg;
    DWORD code;

    pthread_mutex_lock(&thread->lock);
    thread->tid = gettid();
    pthread_cond_broadcast(&thread->changed);
    pthread_mutex_unlock(&thread->lock);
    code = thread->routine(thread->parameter);
    pthread_mutex_lock(&thread->lock);
    thread->exit_code = code;
    thread->ended = TRUE;
    pthread_cond_broadcast(&thread->changed);
    pthread_mutex_unlock(&thread->lock);
    drop(thread);
    return NULL;
}

/* False: no thread was started. Its handle, NULL if there was no memory for one, can
 * be made once it has a number; it may be at its end by then, but not gone: drop()
 * wants the lock that is held. */
static BOOL start(struct started *thread, const pthread_attr_t *how)
{
    pthread_t id;
    int result;

    thread->references = 2;
    pthread_mutex_lock(&started_lock);
    result = pthread_create(&id, how, thread_main, thread);
    if (!result) {
        pthread_mutex_lock(&thread->lock);
        while (!thread->tid)
            pthread_cond_wait(&thread->changed, &thread->lock);
        pthread_mutex_unlock(&thread->lock);
        thread->handle = prcb_OpenThread(0, 0, (uint32_t)thread->tid);
        thread->next = all_started;
        all_started = thread->handle ? thread : all_started;
    }
    pthread_mutex_unlock(&started_lock);
    return !result;
}

static BOOL start_with_stack(struct started *thread, SIZE_T stack)
{
    pthread_condattr_t clock;
    pthread_attr_t how;
    BOOL result;

    pthread_mutex_init(&thread->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&thread->changed, &clock);
    pthread_condattr_destroy(&clock);
    pthread_attr_init(&how);
    pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    if (stack >= (SIZE_T)sysconf(_SC_THREAD_STACK_MIN))
        pthread_attr_setstacksize(&how, (size_t)stack);
    result = start(thread, &how);
    pthread_attr_destroy(&how);
    return result;
}

EXPORT HANDLE CreateThread(LPSECURITY_ATTRIBUTES lpThreadAttributes, SIZE_T dwStackSize,
                           LPTHREAD_START_ROUTINE lpStartAddress, LPVOID lpParameter,
                           DWORD dwCreationFlags, LPDWORD lpThreadId)
{
    struct started *thread;
    HANDLE handle;

    if (!lpStartAddress || dwCreationFlags) {
        fail(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    thread = calloc(1, sizeof(*thread));
    if (!thread) {
        fail(ERROR_NOT_ENOUGH_MEMORY);
        return NULL;
    }
    thread->routine = lpStartAddress;
    thread->parameter = lpParameter;
    if (!start_with_stack(thread, dwStackSize)) {
        free(thread);
        fail(ERROR_NO_SYSTEM_RESOURCES);
        return NULL;
    }
    handle = thread->handle;
    if (lpThreadId)
        *lpThreadId = (DWORD)thread->tid;
    if (!handle) {
        drop(thread);
        fail(ERROR_NOT_ENOUGH_MEMORY);
    }
    return handle;
}

static void deadline_in(DWORD milliseconds, struct timespec *ret)
{
    clock_gettime(CLOCK_MONOTONIC, ret);
    ret->tv_sec += milliseconds / 1000;
    ret->tv_nsec += milliseconds % 1000 * 1000000l;
    if (ret->tv_nsec >= 1000000000l) {
        ret->tv_sec++;
        ret->tv_nsec -= 1000000000l;
    }
}

EXPORT DWORD WaitForSingleObject(HANDLE hHandle, DWORD dwMilliseconds)
{
    struct started *thread = hold(hHandle);
    struct timespec deadline;
    int result = 0;

    if (!thread) {
        fail(ERROR_INVALID_HANDLE);
        return WAIT_FAILED;
    }
    if (dwMilliseconds != INFINITE)
        deadline_in(dwMilliseconds, &deadline);
    pthread_mutex_lock(&thread->lock);
    while (!thread->ended && !result) {
        result = dwMilliseconds == INFINITE
                     ? pthread_cond_wait(&thread->changed, &thread->lock)
                     : pthread_cond_timedwait(&thread->changed, &thread->lock, &deadline);
    }
    result = thread->ended ? WAIT_OBJECT_0 : WAIT_TIMEOUT;
    pthread_mutex_unlock(&thread->lock);
    drop(thread);
    return (DWORD)result;
}

EXPORT BOOL GetExitCodeThread(HANDLE hThread, LPDWORD lpExitCode)
{
    struct started *thread = hold(hThread);

    if (!thread)
        return fail(ERROR_INVALID_HANDLE);
    pthread_mutex_lock(&thread->lock);
    *lpExitCode = thread->ended ? thread->exit_code : STILL_ACTIVE;
    pthread_mutex_unlock(&thread->lock);
    drop(thread);
    return TRUE;
}

EXPORT BOOL CloseHandle(HANDLE hObject)
{
    struct started **at = &all_started, *thread;
    NTSTATUS status = prcb_NtClose(hObject);

    if (status)
        return fail_status(status);
    pthread_mutex_lock(&started_lock);
    while (*at && (*at)->handle != hObject)
        at = &(*at)->next;
    thread = *at;
    if (thread)
        *at = thread->next;
    pthread_mutex_unlock(&started_lock);
    if (thread)
        drop(thread);
    return TRUE;
}

/* ---- threads in general ---- */

EXPORT HANDLE GetCurrentProcess(VOID)
{
    return CURRENT_PROCESS;
}

EXPORT DWORD GetCurrentProcessId(VOID)
{
    return (DWORD)getpid();
}

EXPORT HANDLE GetCurrentThread(VOID)
{
    return prcb_GetCurrentThread();
}

EXPORT DWORD GetCurrentThreadId(VOID)
{
    return (DWORD)gettid();
}

EXPORT DWORD GetCurrentProcessorNumber(VOID)
{
    return (DWORD)sched_getcpu();
}

EXPORT HANDLE OpenThread(DWORD dwDesiredAccess, BOOL bInheritHandle, DWORD dwThreadId)
{
    HANDLE handle = prcb_OpenThread(dwDesiredAccess, bInheritHandle, dwThreadId);

    if (!handle)
        fail(ERROR_INVALID_PARAMETER);
    return handle;
}

/* Of the calling thread's pseudo handle only, which is what programs need it for. */
EXPORT BOOL DuplicateHandle(HANDLE hSourceProcessHandle, HANDLE hSourceHandle,
                            HANDLE hTargetProcessHandle, LPHANDLE lpTargetHandle,
                            DWORD dwDesiredAccess, BOOL bInheritHandle, DWORD dwOptions)
{
    HANDLE handle;

    if (hSourceProcessHandle != CURRENT_PROCESS || hTargetProcessHandle != CURRENT_PROCESS ||
        !lpTargetHandle)
        return fail(ERROR_INVALID_PARAMETER);
    if (hSourceHandle != prcb_GetCurrentThread())
        return fail(ERROR_INVALID_HANDLE);
    handle = prcb_OpenThread(dwDesiredAccess, bInheritHandle, (uint32_t)gettid());
    if (!handle)
        return fail(ERROR_NOT_ENOUGH_MEMORY);
    *lpTargetHandle = handle;
    return TRUE;
}

/* The calling thread's, and the first processors that a mask has bits for. */
EXPORT DWORD_PTR SetThreadAffinityMask(HANDLE hThread, DWORD_PTR dwThreadAffinityMask)
{
    const int bits = (int)(8 * sizeof(DWORD_PTR));
    cpu_set_t old, wanted;
    DWORD_PTR mask = 0;

    if (hThread != prcb_GetCurrentThread()) {
        fail(ERROR_INVALID_HANDLE);
        return 0;
    }
    CPU_ZERO(&wanted);
    for (int cpu = 0; cpu < bits; cpu++) {
        if (dwThreadAffinityMask >> cpu & 1)
            CPU_SET(cpu, &wanted);
    }
    if (sched_getaffinity(0, sizeof(old), &old) || sched_setaffinity(0, sizeof(wanted), &wanted)) {
        fail(ERROR_INVALID_PARAMETER);
        return 0;
    }
    for (int cpu = 0; cpu < bits; cpu++)
        mask |= CPU_ISSET(cpu, &old) ? (DWORD_PTR)1 << cpu : 0;
    return mask;
}

EXPORT BOOL SwitchToThread(VOID)
{
    sched_yield();
    return TRUE;
}

static void sleep_for(long long nanoseconds)
{
    struct timespec rest = {.tv_sec = nanoseconds / 1000000000,
                            .tv_nsec = nanoseconds % 1000000000};

    while (nanosleep(&rest, &rest) && errno == EINTR)
        ;
}

EXPORT VOID Sleep(DWORD dwMilliseconds)
{
    if (dwMilliseconds == INFINITE) {
        for (;;)
            pause();
    }
    if (dwMilliseconds == 0)
        sched_yield();
    else
        sleep_for(dwMilliseconds * 1000000ll);
}

/* ---- time ---- */

static long long nanoseconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

EXPORT BOOL QueryPerformanceCounter(LARGE_INTEGER *lpPerformanceCount)
{
    lpPerformanceCount->QuadPart = nanoseconds(CLOCK_MONOTONIC) / 100;
    return TRUE;
}

EXPORT BOOL QueryPerformanceFrequency(LARGE_INTEGER *lpFrequency)
{
    lpFrequency->QuadPart = NT_SECOND;
    return TRUE;
}

EXPORT ULONGLONG GetTickCount64(VOID)
{
    return (ULONGLONG)nanoseconds(CLOCK_BOOTTIME) / 1000000;
}

EXPORT DWORD GetTickCount(VOID)
{
    return (DWORD)GetTickCount64();
}

static long long system_time(void)
{
    return nanoseconds(CLOCK_REALTIME) / 100 + NT_EPOCH;
}

EXPORT VOID GetSystemTimeAsFileTime(LPFILETIME lpSystemTimeAsFileTime)
{
    long long now = system_time();

    lpSystemTimeAsFileTime->dwLowDateTime = (DWORD)now;
    lpSystemTimeAsFileTime->dwHighDateTime = (DWORD)(now >> 32);
}

/* ---- ntdll's ---- */

EXPORT NTSTATUS NtClose(HANDLE Handle)
{
    return CloseHandle(Handle) ? STATUS_SUCCESS : (NTSTATUS)STATUS_INVALID_HANDLE;
}

/* Timeouts: negative from now, positive an instant, NULL for ever. */
static DWORD milliseconds_of(const LARGE_INTEGER *timeout)
{
    long long time = timeout ? timeout->QuadPart : 0;

    if (!timeout)
        return INFINITE;
    time = time < 0 ? -time : time - system_time();
    return time <= 0 ? 0 : time / 10000 >= INFINITE ? INFINITE - 1 : (DWORD)((time + 9999) / 10000);
}

EXPORT NTSTATUS NtWaitForSingleObject(HANDLE Handle, BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    DWORD result = WaitForSingleObject(Handle, milliseconds_of(Timeout));

    if (result == WAIT_FAILED)
        return (NTSTATUS)STATUS_INVALID_HANDLE;
    return result == WAIT_OBJECT_0 ? STATUS_SUCCESS : (NTSTATUS)STATUS_TIMEOUT;
}

EXPORT NTSTATUS NtQuerySystemTime(PLARGE_INTEGER SystemTime)
{
    if (!SystemTime)
        return (NTSTATUS)STATUS_ACCESS_VIOLATION;
    SystemTime->QuadPart = system_time();
    return STATUS_SUCCESS;
}

EXPORT NTSTATUS NtDelayExecution(BOOLEAN Alertable, LARGE_INTEGER *DelayInterval)
{
    long long time;

    if (!DelayInterval)
        return (NTSTATUS)STATUS_ACCESS_VIOLATION;
    time = DelayInterval->QuadPart;
    time = time < 0 ? -time : time - system_time();
    if (time > 0)
        sleep_for(time > LLONG_MAX / 100 ? LLONG_MAX : time * 100);
    return STATUS_SUCCESS;
}

EXPORT NTSTATUS NtYieldExecution(VOID)
{
    sched_yield();
    return STATUS_SUCCESS;
}

/* A user-mode caller has the same calls under both prefixes. */
EXPORT NTSTATUS ZwClose(HANDLE Handle)
{
    return NtClose(Handle);
}

EXPORT NTSTATUS ZwWaitForSingleObject(HANDLE Handle, BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    return NtWaitForSingleObject(Handle, Alertable, Timeout);
}

EXPORT NTSTATUS ZwQuerySystemTime(PLARGE_INTEGER SystemTime)
{
    return NtQuerySystemTime(SystemTime);
}

EXPORT NTSTATUS ZwDelayExecution(BOOLEAN Alertable, LARGE_INTEGER *DelayInterval)
{
    return NtDelayExecution(Alertable, DelayInterval);
}

EXPORT NTSTATUS ZwYieldExecution(VOID)
{
    return NtYieldExecution();
}

/* ---- strings, and the years since 1601 ---- */

EXPORT BOOLEAN RtlTimeToSecondsSince1970(PLARGE_INTEGER Time, PULONG ElapsedSeconds)
{
    long long seconds = (Time->QuadPart - NT_EPOCH) / NT_SECOND;

    if (Time->QuadPart < NT_EPOCH || seconds > UINT_MAX)
        return FALSE;
    *ElapsedSeconds = (ULONG)seconds;
    return TRUE;
}

EXPORT VOID RtlInitString(STRING *DestinationString, PCSZ SourceString)
{
    size_t length = SourceString ? strlen(SourceString) : 0;

    length = length > USHRT_MAX - 1 ? USHRT_MAX - 1 : length;
    DestinationString->Length = (USHORT)length;
    DestinationString->MaximumLength = SourceString ? (USHORT)(length + 1) : 0;
    DestinationString->Buffer = (PCHAR)(ULONG_PTR)SourceString;
}

EXPORT VOID RtlInitAnsiString(PANSI_STRING DestinationString, PCSZ SourceString)
{
    RtlInitString(DestinationString, SourceString);
}

EXPORT VOID RtlInitUnicodeString(PUNICODE_STRING DestinationString, PCWSTR SourceString)
{
    const size_t unit = sizeof(WCHAR), most = (USHRT_MAX / unit - 1) * unit;
    size_t length = 0;

    while (SourceString && SourceString[length / unit] && length < most)
        length += unit;
    DestinationString->Length = (USHORT)length;
    DestinationString->MaximumLength = SourceString ? (USHORT)(length + unit) : 0;
    DestinationString->Buffer = (PWSTR)(ULONG_PTR)SourceString;
}
