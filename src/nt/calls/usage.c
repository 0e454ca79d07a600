/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a thread, or this process, is and has used: NtQueryInformationThread and ...Process, each
 * with a basic class and those of times and of cycles.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "procfs.h"
#include "view.h"

#define NT_NS         100ull
#define NT_EPOCH      116444736000000000ll /* 1601 to 1970, in 100 ns */
#define STILL_RUNNING ((NTSTATUS)0x103)    /* STATUS_PENDING */
#define USER_HZ_NT    100000ll             /* 10 ms in 100 ns */

struct usage {
    int64_t create, kernel, user; /* 100 ns */
};

static int64_t nt_of_timespec(const struct timespec *time)
{
    return time->tv_sec * 10000000ll + time->tv_nsec / (long)NT_NS;
}

static int64_t nt_of_timeval(const struct timeval *time)
{
    return time->tv_sec * 10000000ll + time->tv_usec * 10ll;
}

/* When the system was started, in 100 ns since 1601. It is read at one moment, for values
 * derived from it would otherwise move with each setting of the time of day. */
int64_t nt_boot_time(void)
{
    static int64_t known; /* under the lock */
    struct timespec wall, up;

    if (!known) {
        clock_gettime(CLOCK_REALTIME, &wall);
        clock_gettime(CLOCK_BOOTTIME, &up);
        known = nt_of_timespec(&wall) - nt_of_timespec(&up) + NT_EPOCH;
    }
    return known;
}

/* Reads what a thread used; tid 0: the whole process. getrusage is exact to the microsecond, and
 * only for oneself. */
static int read_usage(pid_t tid, struct usage *ret)
{
    bool exact = !tid || tid == gettid();
    struct procfs_stat stat;
    struct procfs files;
    struct rusage rusage;
    int result = procfs_open(&files, "/proc");

    if (!result)
        result = procfs_read_stat(&files, getpid(), tid ? tid : getpid(), &stat);
    procfs_close(&files);
    if (result)
        return result;
    ret->create = nt_boot_time() + (int64_t)stat.start * USER_HZ_NT;
    ret->kernel = (int64_t)stat.kernel * USER_HZ_NT;
    ret->user = (int64_t)stat.user * USER_HZ_NT;
    if (exact && !getrusage(tid ? RUSAGE_THREAD : RUSAGE_SELF, &rusage)) {
        ret->kernel = nt_of_timeval(&rusage.ru_stime);
        ret->user = nt_of_timeval(&rusage.ru_utime);
    }
    return 0;
}

static NTSTATUS fill_times(pid_t tid, void *ret)
{
    struct usage usage;
    int result = read_usage(tid, &usage);
    int64_t times[4]; /* KERNEL_USER_TIMES */

    if (result)
        return nt_fail(nt_status(result), "thread %d: %s", (int)tid, strerror(-result));
    times[0] = usage.create;
    times[1] = 0;
    times[2] = usage.kernel;
    times[3] = usage.user;
    memcpy(ret, times, sizeof(times));
    return STATUS_SUCCESS;
}

/* Returns the kernel's clock of what a thread ran (CPUCLOCK_SCHED of a thread, in the kernel's
 * words); another process's has none. */
static clockid_t clock_of(pid_t tid)
{
    return tid ? (clockid_t)((~(unsigned)tid << 3) | 6) : CLOCK_PROCESS_CPUTIME_ID;
}

static NTSTATUS fill_cycles(pid_t tid, void *ret)
{
    struct timespec ran;
    uint64_t cycles[2];

    if (clock_gettime(clock_of(tid), &ran))
        return nt_fail(STATUS_INVALID_CID, "thread %d has ended", (int)tid);
    cycles[0] = nt_cycles((uint64_t)ran.tv_sec * 1000000000 + (uint64_t)ran.tv_nsec);
    cycles[1] = cycles[0];
    memcpy(ret, cycles, sizeof(cycles));
    return STATUS_SUCCESS;
}

/* Returns NT's base priority of a nice value: 8 is normal, and a level of a thread is five of nice,
 * as SetThreadPriority sets them; 1 and 15 are beyond the levels. */
static int32_t base_priority(pid_t tid)
{
    int nice = getpriority(PRIO_PROCESS, (id_t)tid);

    if (nice >= 15 || nice <= -15)
        return nice > 0 ? 1 : 15;
    return 8 - (nice + (nice > 0 ? 2 : -2)) / 5;
}

static uintptr_t affinity_of(pid_t tid)
{
    uintptr_t mask = 0;
    cpu_set_t set;

    CPU_ZERO(&set);
    sched_getaffinity(tid, sizeof(set), &set);
    for (size_t cpu = 0; cpu < 8 * sizeof(mask); cpu++)
        mask |= CPU_ISSET(cpu, &set) ? (uintptr_t)1 << cpu : 0;
    return mask;
}

static NTSTATUS fill_basic_thread(pid_t tid, void *ret)
{
    const PRCB_THREAD_BASIC_INFORMATION made = {
        .ExitStatus = STILL_RUNNING,
        .UniqueProcess = (uintptr_t)getpid(),
        .UniqueThread = (uintptr_t)tid,
        .AffinityMask = affinity_of(tid),
        .Priority = base_priority(tid),
        .BasePriority = base_priority(tid),
    };

    memcpy(ret, &made, sizeof(made));
    return STATUS_SUCCESS;
}

static NTSTATUS fill_basic_process(pid_t tid, void *ret)
{
    const PRCB_PROCESS_BASIC_INFORMATION made = {
        .ExitStatus = STILL_RUNNING,
        .AffinityMask = affinity_of(getpid()),
        .BasePriority = base_priority(getpid()),
        .UniqueProcessId = (uintptr_t)getpid(),
        .InheritedFromUniqueProcessId = (uintptr_t)getppid(),
    };

    memcpy(ret, &made, sizeof(made));
    return STATUS_SUCCESS;
}

static const struct usage_class {
    bool process;
    uint32_t number, size;
    NTSTATUS (*fill)(pid_t tid, void *ret); /* under the lock */
} classes[] = {
    {false, PRCB_NT_THREAD_BASIC, sizeof(PRCB_THREAD_BASIC_INFORMATION), fill_basic_thread},
    {true, PRCB_NT_PROCESS_BASIC, sizeof(PRCB_PROCESS_BASIC_INFORMATION), fill_basic_process},
    {false, PRCB_NT_THREAD_TIMES, 0x20, fill_times},
    {false, PRCB_NT_THREAD_CYCLE_TIME, 0x10, fill_cycles},
    {true, PRCB_NT_PROCESS_TIMES, 0x20, fill_times},
    {true, PRCB_NT_PROCESS_CYCLE_TIME, 0x10, fill_cycles},
};

static const struct usage_class *find(bool process, uint32_t number)
{
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (classes[i].process == process && classes[i].number == number)
            return &classes[i];
    }
    return NULL;
}

struct request {
    bool process;
    void *handle;
    uint32_t number;
    void *buffer;
    uint32_t length;
    uint32_t *return_length;
};

static NTSTATUS fill(const struct usage_class *row, const struct request *request)
{
    char made[0x30]; /* the largest */
    NTSTATUS status;
    pid_t tid = 0;

    if (request->process ? request->handle != NT_CURRENT_PROCESS
                         : !nt_thread_of(request->handle, &tid))
        return nt_fail(STATUS_INVALID_HANDLE, "%p is not a handle on %s", request->handle,
                       request->process ? "this process" : "a thread");
    status = row->fill(tid, made);
    if (!status)
        memcpy(request->buffer, made, row->size);
    return status;
}

static NTSTATUS query(const struct request *request)
{
    const struct usage_class *row = find(request->process, request->number);
    NTSTATUS status = nt_probe_write(request->buffer, request->length, sizeof(uint32_t));

    if (!status && request->return_length)
        status = nt_probe_write(request->return_length, sizeof(uint32_t), sizeof(uint32_t));
    if (status)
        return status;
    if (!row)
        return nt_fail(STATUS_INVALID_INFO_CLASS, "class %u is not one of those that are here",
                       request->number);
    if (request->length == row->size) {
        nt_enter();
        status = fill(row, request);
        nt_leave();
    } else {
        status = nt_fail(STATUS_INFO_LENGTH_MISMATCH, "class %u has %u bytes, not %u",
                         request->number, row->size, request->length);
    }
    if (request->return_length && (!status || status == STATUS_INFO_LENGTH_MISMATCH))
        *request->return_length = row->size;
    return status;
}

NTSTATUS prcb_NtQueryInformationThread(void *ThreadHandle, uint32_t ThreadInformationClass,
                                       void *ThreadInformation, uint32_t ThreadInformationLength,
                                       uint32_t *ReturnLength)
{
    const struct request request = {false,
                                    ThreadHandle,
                                    ThreadInformationClass,
                                    ThreadInformation,
                                    ThreadInformationLength,
                                    ReturnLength};

    return query(&request);
}

NTSTATUS prcb_NtQueryInformationProcess(void *ProcessHandle, uint32_t ProcessInformationClass,
                                        void *ProcessInformation, uint32_t ProcessInformationLength,
                                        uint32_t *ReturnLength)
{
    const struct request request = {true,
                                    ProcessHandle,
                                    ProcessInformationClass,
                                    ProcessInformation,
                                    ProcessInformationLength,
                                    ReturnLength};

    return query(&request);
}
