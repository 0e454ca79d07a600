/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The small calls that a program around thread profiling makes: who it is, sleeping, time, the last
 * error, strings.
 */
#include "compat.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <prcb/nt.h>

#define NT_SECOND 10000000ll           /* 100 ns */
#define NT_EPOCH  116444736000000000ll /* 1601 to 1970 */

static __thread DWORD last_error;

EXPORT DWORD GetLastError(VOID)
{
    return last_error;
}

EXPORT VOID SetLastError(DWORD dwErrCode)
{
    last_error = dwErrCode;
}

BOOL fail(DWORD code)
{
    last_error = code;
    return FALSE;
}

BOOL fail_status(NTSTATUS status)
{
    return status ? fail(prcb_RtlNtStatusToDosError(status)) : TRUE;
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

EXPORT BOOL SwitchToThread(VOID)
{
    sched_yield();
    return TRUE;
}

static void sleep_for(long long nanoseconds)
{
    struct timespec rest = {.tv_sec = (time_t)(nanoseconds / 1000000000),
                            .tv_nsec = (long)(nanoseconds % 1000000000)};

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

/* Years of the Gregorian calendar from 1 March on, so that a leap day is the last of its year. */
static void put_date(long long days, LPSYSTEMTIME ret)
{
    const long long day = days + 584694; /* from 0000-03-01, not 1601-01-01 */
    const long long era = day / 146097, in_era = day % 146097;
    const long long year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    const long long in_year = in_era - (365 * year + year / 4 - year / 100);
    const long long month = (5 * in_year + 2) / 153; /* 0: March */

    ret->wDay = (WORD)(in_year - (153 * month + 2) / 5 + 1);
    ret->wMonth = (WORD)(month < 10 ? month + 3 : month - 9);
    ret->wYear = (WORD)(era * 400 + year + (month >= 10));
    ret->wDayOfWeek = (WORD)((days + 1) % 7); /* 1601-01-01 was a Monday */
}

EXPORT BOOL FileTimeToSystemTime(const FILETIME *lpFileTime, LPSYSTEMTIME lpSystemTime)
{
    unsigned long long time =
        (unsigned long long)lpFileTime->dwHighDateTime << 32 | lpFileTime->dwLowDateTime;
    unsigned long long seconds = time / NT_SECOND, in_day = seconds % 86400;

    if (time >> 63)
        return fail(ERROR_INVALID_PARAMETER);
    put_date((long long)(seconds / 86400), lpSystemTime);
    lpSystemTime->wHour = (WORD)(in_day / 3600);
    lpSystemTime->wMinute = (WORD)(in_day / 60 % 60);
    lpSystemTime->wSecond = (WORD)(in_day % 60);
    lpSystemTime->wMilliseconds = (WORD)(time % NT_SECOND / 10000);
    return TRUE;
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
