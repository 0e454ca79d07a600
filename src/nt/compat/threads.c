/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Threads and their handles. Each handle that is given out here is kept with the thread it is
 * about: one that CreateThread started, whose end and exit code are known, or any other of the
 * process, of which Linux tells only that it has ended.
 */
#include "compat.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <prcb/nt.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

#define CURRENT_THREAD prcb_GetCurrentThread()

struct usage {
    KERNEL_USER_TIMES times;
    ULONG64 cycles;
};

struct thread {
    pid_t tid; /* 0: not running yet */
    BOOL started;
    LPTHREAD_START_ROUTINE routine; /* of a started one, as all that follows */
    LPVOID parameter;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    BOOL ended;
    DWORD exit_code;
    struct usage usage; /* when it has ended */
    int references;     /* its own, its handles', those of waits; under handles_lock */
};

struct handle {
    HANDLE value;
    struct thread *thread;
    struct handle *next;
};

static struct handle *handles;
static pthread_mutex_t handles_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- which thread a handle is about ---- */

static void drop(struct thread *thread)
{
    int left;

    pthread_mutex_lock(&handles_lock);
    left = --thread->references;
    pthread_mutex_unlock(&handles_lock);
    if (left)
        return;
    pthread_cond_destroy(&thread->changed);
    pthread_mutex_destroy(&thread->lock);
    free(thread);
}

static struct thread *hold(HANDLE value)
{
    struct handle *handle;
    struct thread *thread = NULL;

    pthread_mutex_lock(&handles_lock);
    for (handle = handles; handle && handle->value != value; handle = handle->next)
        ;
    if (handle) {
        thread = handle->thread;
        thread->references++;
    }
    pthread_mutex_unlock(&handles_lock);
    return thread;
}

/* Finds a running thread that was started here by its number and takes a reference. Called under
 * the lock. */
static struct thread *find_running(pid_t tid)
{
    for (struct handle *handle = handles; handle; handle = handle->next) {
        struct thread *thread = handle->thread;
        BOOL is;

        if (!thread->started)
            continue;
        pthread_mutex_lock(&thread->lock);
        is = thread->tid == tid && !thread->ended;
        pthread_mutex_unlock(&thread->lock);
        if (is)
            return thread;
    }
    return NULL;
}

static struct thread *make_thread(pid_t tid)
{
    struct thread *thread = calloc(1, sizeof(*thread));
    pthread_condattr_t clock;

    if (!thread)
        return NULL;
    thread->tid = tid;
    pthread_mutex_init(&thread->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&thread->changed, &clock);
    pthread_condattr_destroy(&clock);
    return thread;
}

/* Under the lock. Takes over neither on failure. */
static BOOL keep_handle(HANDLE value, struct thread *thread)
{
    struct handle *handle = malloc(sizeof(*handle));

    if (!handle)
        return FALSE;
    *handle = (struct handle){value, thread, handles};
    thread->references++;
    handles = handle;
    return TRUE;
}

/* Keeps the handle with the started thread of this number, or with a thread of its own. NULL, and
 * the handle is closed: out of memory. */
static HANDLE keep_opened(HANDLE value, pid_t tid)
{
    struct thread *thread, *made = NULL;
    BOOL kept;

    pthread_mutex_lock(&handles_lock);
    thread = find_running(tid);
    if (!thread)
        thread = made = make_thread(tid);
    kept = thread && keep_handle(value, thread);
    pthread_mutex_unlock(&handles_lock);
    if (kept)
        return value;
    free(made);
    prcb_NtClose(value);
    fail(ERROR_NOT_ENOUGH_MEMORY);
    return NULL;
}

EXPORT HANDLE OpenThread(DWORD dwDesiredAccess, BOOL bInheritHandle, DWORD dwThreadId)
{
    HANDLE handle = prcb_OpenThread(dwDesiredAccess, bInheritHandle, dwThreadId);

    if (handle)
        return keep_opened(handle, (pid_t)dwThreadId);
    fail(ERROR_INVALID_PARAMETER);
    return NULL;
}

EXPORT BOOL DuplicateHandle(HANDLE hSourceProcessHandle, HANDLE hSourceHandle,
                            HANDLE hTargetProcessHandle, LPHANDLE lpTargetHandle,
                            DWORD dwDesiredAccess, BOOL bInheritHandle, DWORD dwOptions)
{
    BOOL own = hSourceHandle == CURRENT_THREAD;
    struct thread *thread = own ? NULL : hold(hSourceHandle);
    HANDLE handle = NULL;
    BOOL result = TRUE;
    NTSTATUS status;

    if (!own && !thread)
        return fail(ERROR_INVALID_HANDLE);
    status = prcb_NtDuplicateObject(hSourceProcessHandle, hSourceHandle, hTargetProcessHandle,
                                    lpTargetHandle ? &handle : NULL, dwDesiredAccess, 0, 0);
    if (!status && handle && own)
        handle = keep_opened(handle, gettid());
    if (!status && handle && thread) {
        pthread_mutex_lock(&handles_lock);
        result = keep_handle(handle, thread);
        pthread_mutex_unlock(&handles_lock);
    }
    if (thread)
        drop(thread);
    if (status)
        return fail_status(status);
    if (!result || (lpTargetHandle && !handle))
        return fail(ERROR_NOT_ENOUGH_MEMORY);
    if (lpTargetHandle)
        *lpTargetHandle = handle;
    if (dwOptions & DUPLICATE_CLOSE_SOURCE && thread)
        CloseHandle(hSourceHandle);
    return TRUE;
}

EXPORT BOOL CloseHandle(HANDLE hObject)
{
    struct handle **at = &handles, *handle;
    NTSTATUS status;

    if (hObject == CURRENT_PROCESS || hObject == CURRENT_THREAD)
        return TRUE; /* Windows releases nothing and reports nothing */
    if (snapshot_close(hObject))
        return TRUE;
    status = prcb_NtClose(hObject);
    if (status)
        return fail_status(status);
    pthread_mutex_lock(&handles_lock);
    while (*at && (*at)->value != hObject)
        at = &(*at)->next;
    handle = *at;
    if (handle)
        *at = handle->next;
    pthread_mutex_unlock(&handles_lock);
    if (handle)
        drop(handle->thread);
    free(handle);
    return TRUE;
}

EXPORT NTSTATUS NtDuplicateObject(HANDLE SourceProcessHandle, HANDLE SourceHandle,
                                  HANDLE TargetProcessHandle, HANDLE *TargetHandle,
                                  ACCESS_MASK DesiredAccess, ULONG HandleAttributes, ULONG Options)
{
    if (DuplicateHandle(SourceProcessHandle, SourceHandle, TargetProcessHandle, TargetHandle,
                        DesiredAccess, FALSE, Options))
        return STATUS_SUCCESS;
    return (NTSTATUS)(GetLastError() == ERROR_NOT_ENOUGH_MEMORY ? STATUS_NO_MEMORY
                                                                : STATUS_INVALID_HANDLE);
}

EXPORT NTSTATUS ZwDuplicateObject(HANDLE SourceProcessHandle, HANDLE SourceHandle,
                                  HANDLE TargetProcessHandle, HANDLE *TargetHandle,
                                  ACCESS_MASK DesiredAccess, ULONG HandleAttributes, ULONG Options)
{
    return NtDuplicateObject(SourceProcessHandle, SourceHandle, TargetProcessHandle, TargetHandle,
                             DesiredAccess, HandleAttributes, Options);
}

EXPORT DWORD GetThreadId(HANDLE Thread)
{
    struct thread *thread = Thread == CURRENT_THREAD ? NULL : hold(Thread);
    DWORD tid = thread ? (DWORD)thread->tid : (DWORD)gettid();

    if (!thread && Thread != CURRENT_THREAD) {
        fail(ERROR_INVALID_HANDLE);
        return 0;
    }
    if (thread)
        drop(thread);
    return tid;
}

/* ---- what a thread has used ---- */

static NTSTATUS read_usage(HANDLE handle, struct usage *ret)
{
    THREAD_CYCLE_TIME_INFORMATION cycles;
    NTSTATUS status = prcb_NtQueryInformationThread(handle, PRCB_NT_THREAD_TIMES, &ret->times,
                                                    sizeof(ret->times), NULL);

    if (!status)
        status = prcb_NtQueryInformationThread(handle, PRCB_NT_THREAD_CYCLE_TIME, &cycles,
                                               sizeof(cycles), NULL);
    if (!status)
        ret->cycles = cycles.AccumulatedCycles;
    return status;
}

/* Times of a running thread, or of an ended one that was started here. */
static BOOL usage_of(HANDLE handle, struct usage *ret)
{
    struct thread *thread = handle == CURRENT_THREAD ? NULL : hold(handle);
    NTSTATUS status = STATUS_SUCCESS;
    BOOL ended = FALSE;

    if (thread) {
        pthread_mutex_lock(&thread->lock);
        ended = thread->ended;
        *ret = thread->usage;
        pthread_mutex_unlock(&thread->lock);
        drop(thread);
    }
    if (!ended)
        status = read_usage(handle, ret);
    return fail_status(status);
}

static void put_time(const LARGE_INTEGER *time, LPFILETIME ret)
{
    ret->dwLowDateTime = time->LowPart;
    ret->dwHighDateTime = (DWORD)time->HighPart;
}

static void put_times(const KERNEL_USER_TIMES *times, LPFILETIME creation, LPFILETIME end,
                      LPFILETIME kernel, LPFILETIME user)
{
    put_time(&times->CreateTime, creation);
    put_time(&times->ExitTime, end);
    put_time(&times->KernelTime, kernel);
    put_time(&times->UserTime, user);
}

EXPORT BOOL GetThreadTimes(HANDLE hThread, LPFILETIME lpCreationTime, LPFILETIME lpExitTime,
                           LPFILETIME lpKernelTime, LPFILETIME lpUserTime)
{
    struct usage usage;

    if (!usage_of(hThread, &usage))
        return FALSE;
    put_times(&usage.times, lpCreationTime, lpExitTime, lpKernelTime, lpUserTime);
    return TRUE;
}

EXPORT BOOL GetProcessTimes(HANDLE hProcess, LPFILETIME lpCreationTime, LPFILETIME lpExitTime,
                            LPFILETIME lpKernelTime, LPFILETIME lpUserTime)
{
    KERNEL_USER_TIMES times;
    NTSTATUS status = prcb_NtQueryInformationProcess(hProcess, PRCB_NT_PROCESS_TIMES, &times,
                                                     sizeof(times), NULL);

    if (status)
        return fail_status(status);
    put_times(&times, lpCreationTime, lpExitTime, lpKernelTime, lpUserTime);
    return TRUE;
}

EXPORT BOOL QueryThreadCycleTime(HANDLE ThreadHandle, PULONG64 CycleTime)
{
    struct usage usage;

    if (!usage_of(ThreadHandle, &usage))
        return FALSE;
    *CycleTime = usage.cycles;
    return TRUE;
}

EXPORT BOOL QueryProcessCycleTime(HANDLE ProcessHandle, PULONG64 CycleTime)
{
    PROCESS_CYCLE_TIME_INFORMATION cycles;
    NTSTATUS status = prcb_NtQueryInformationProcess(ProcessHandle, PRCB_NT_PROCESS_CYCLE_TIME,
                                                     &cycles, sizeof(cycles), NULL);

    if (!status)
        *CycleTime = cycles.AccumulatedCycles;
    return fail_status(status);
}

EXPORT NTSTATUS NtQueryInformationThread(HANDLE ThreadHandle,
                                         THREADINFOCLASS ThreadInformationClass,
                                         PVOID ThreadInformation, ULONG ThreadInformationLength,
                                         PULONG ReturnLength)
{
    return prcb_NtQueryInformationThread(ThreadHandle, (uint32_t)ThreadInformationClass,
                                         ThreadInformation, ThreadInformationLength, ReturnLength);
}

EXPORT NTSTATUS ZwQueryInformationThread(HANDLE ThreadHandle,
                                         THREADINFOCLASS ThreadInformationClass,
                                         PVOID ThreadInformation, ULONG ThreadInformationLength,
                                         PULONG ReturnLength)
{
    return NtQueryInformationThread(ThreadHandle, ThreadInformationClass, ThreadInformation,
                                    ThreadInformationLength, ReturnLength);
}

EXPORT NTSTATUS NtQueryInformationProcess(HANDLE ProcessHandle,
                                          PROCESSINFOCLASS ProcessInformationClass,
                                          PVOID ProcessInformation, ULONG ProcessInformationLength,
                                          PULONG ReturnLength)
{
    return prcb_NtQueryInformationProcess(ProcessHandle, (uint32_t)ProcessInformationClass,
                                          ProcessInformation, ProcessInformationLength,
                                          ReturnLength);
}

EXPORT NTSTATUS ZwQueryInformationProcess(HANDLE ProcessHandle,
                                          PROCESSINFOCLASS ProcessInformationClass,
                                          PVOID ProcessInformation, ULONG ProcessInformationLength,
                                          PULONG ReturnLength)
{
    return NtQueryInformationProcess(ProcessHandle, ProcessInformationClass, ProcessInformation,
                                     ProcessInformationLength, ReturnLength);
}

/* ---- starting one ---- */

static void *thread_main(void *arg)
{
    struct thread *thread = arg;
    struct usage usage;
    FILETIME now;
    DWORD code;

    pthread_mutex_lock(&thread->lock);
    thread->tid = gettid();
    pthread_cond_broadcast(&thread->changed);
    pthread_mutex_unlock(&thread->lock);
    code = thread->routine(thread->parameter);
    memset(&usage, 0, sizeof(usage));
    read_usage(CURRENT_THREAD, &usage);
    GetSystemTimeAsFileTime(&now);
    usage.times.ExitTime.LowPart = now.dwLowDateTime;
    usage.times.ExitTime.HighPart = (LONG)now.dwHighDateTime;
    pthread_mutex_lock(&thread->lock);
    thread->exit_code = code;
    thread->usage = usage;
    thread->ended = TRUE;
    pthread_cond_broadcast(&thread->changed);
    pthread_mutex_unlock(&thread->lock);
    drop(thread);
    return NULL;
}

/* Returns false if no thread was started. If there was no memory for its handle (NULL), one can
 * be made once the thread has a number. The thread may have ended by then, but its record is
 * there: drop() needs the lock that is held. */
static BOOL start(struct thread *thread, const pthread_attr_t *how, HANDLE *ret)
{
    pthread_t id;
    int result;

    *ret = NULL;
    thread->references = 1;
    pthread_mutex_lock(&handles_lock);
    result = pthread_create(&id, how, thread_main, thread);
    if (!result) {
        pthread_mutex_lock(&thread->lock);
        while (!thread->tid)
            pthread_cond_wait(&thread->changed, &thread->lock);
        pthread_mutex_unlock(&thread->lock);
        *ret = prcb_OpenThread(0, 0, (uint32_t)thread->tid);
        if (*ret && !keep_handle(*ret, thread)) {
            prcb_NtClose(*ret);
            *ret = NULL;
        }
    }
    pthread_mutex_unlock(&handles_lock);
    return !result;
}

static BOOL start_with_stack(struct thread *thread, SIZE_T stack, HANDLE *ret)
{
    pthread_attr_t how;
    BOOL result;

    pthread_attr_init(&how);
    pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    if (stack >= (SIZE_T)sysconf(_SC_THREAD_STACK_MIN))
        pthread_attr_setstacksize(&how, (size_t)stack);
    result = start(thread, &how, ret);
    pthread_attr_destroy(&how);
    return result;
}

EXPORT HANDLE CreateThread(LPSECURITY_ATTRIBUTES lpThreadAttributes, SIZE_T dwStackSize,
                           LPTHREAD_START_ROUTINE lpStartAddress, LPVOID lpParameter,
                           DWORD dwCreationFlags, LPDWORD lpThreadId)
{
    struct thread *thread;
    HANDLE handle;

    if (!lpStartAddress || dwCreationFlags) {
        fail(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    thread = make_thread(0);
    if (!thread) {
        fail(ERROR_NOT_ENOUGH_MEMORY);
        return NULL;
    }
    thread->started = TRUE;
    thread->routine = lpStartAddress;
    thread->parameter = lpParameter;
    if (!start_with_stack(thread, dwStackSize, &handle)) {
        free(thread);
        fail(ERROR_NO_SYSTEM_RESOURCES);
        return NULL;
    }
    if (!handle)
        fail(ERROR_NOT_ENOUGH_MEMORY);
    else if (lpThreadId)
        *lpThreadId = GetThreadId(handle);
    return handle;
}

/* ---- waiting for one ---- */

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

/* Returns the milliseconds until then, rounded up; 0: it has passed. */
static long long left_until(const struct timespec *deadline)
{
    struct timespec now;
    long long left;

    clock_gettime(CLOCK_MONOTONIC, &now);
    left = (deadline->tv_sec - now.tv_sec) * 1000000000ll + deadline->tv_nsec - now.tv_nsec;
    return left <= 0 ? 0 : (left + 999999) / 1000000;
}

static BOOL is_alive(pid_t tid)
{
    return !syscall(SYS_tgkill, getpid(), tid, 0);
}

/* Waits for a thread that was not started here: its descriptor reports its end (Linux 6.9), or
 * it is looked for every millisecond. */
static BOOL wait_foreign(pid_t tid, const struct timespec *deadline)
{
    struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, tid, O_EXCL), .events = POLLIN};
    BOOL alive;

    while ((alive = is_alive(tid))) {
        long long left = deadline ? left_until(deadline) : INT_MAX;

        if (!left)
            break;
        left = left > INT_MAX ? INT_MAX : left;
        if (poll(&end, end.fd >= 0, end.fd >= 0 ? (int)left : 1) > 0) {
            alive = FALSE;
            break;
        }
    }
    if (end.fd >= 0)
        close(end.fd);
    return !alive;
}

static BOOL wait_started(struct thread *thread, const struct timespec *deadline)
{
    int result = 0;
    BOOL ended;

    pthread_mutex_lock(&thread->lock);
    while (!thread->ended && !result)
        result = deadline ? pthread_cond_timedwait(&thread->changed, &thread->lock, deadline)
                          : pthread_cond_wait(&thread->changed, &thread->lock);
    ended = thread->ended;
    pthread_mutex_unlock(&thread->lock);
    return ended;
}

/* Waits for the calling thread itself: until the time is up. */
static DWORD wait_for_own(DWORD milliseconds)
{
    Sleep(milliseconds);
    return WAIT_TIMEOUT;
}

EXPORT DWORD WaitForSingleObject(HANDLE hHandle, DWORD dwMilliseconds)
{
    struct timespec deadline, *until = dwMilliseconds == INFINITE ? NULL : &deadline;
    struct thread *thread;
    BOOL ended;

    if (hHandle == CURRENT_THREAD || hHandle == CURRENT_PROCESS)
        return wait_for_own(dwMilliseconds);
    thread = hold(hHandle);
    if (!thread) {
        fail(ERROR_INVALID_HANDLE);
        return WAIT_FAILED;
    }
    if (until)
        deadline_in(dwMilliseconds, until);
    ended = thread->started ? wait_started(thread, until) : wait_foreign(thread->tid, until);
    drop(thread);
    return ended ? WAIT_OBJECT_0 : WAIT_TIMEOUT;
}

/* The exit code of an ended thread that was not started here is known to nobody. */
EXPORT BOOL GetExitCodeThread(HANDLE hThread, LPDWORD lpExitCode)
{
    BOOL own = hThread == CURRENT_THREAD, known = TRUE;
    struct thread *thread = own ? NULL : hold(hThread);
    DWORD code = STILL_ACTIVE;

    if (!own && !thread)
        return fail(ERROR_INVALID_HANDLE);
    if (thread && thread->started) {
        pthread_mutex_lock(&thread->lock);
        code = thread->ended ? thread->exit_code : STILL_ACTIVE;
        pthread_mutex_unlock(&thread->lock);
    } else if (thread) {
        known = is_alive(thread->tid);
    }
    if (thread)
        drop(thread);
    if (!known)
        return fail(ERROR_NOT_SUPPORTED);
    *lpExitCode = code;
    return TRUE;
}
