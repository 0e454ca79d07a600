/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Classes 0x00 to 0x03: fills everything about processors and time, what /proc has about
 * memory, and 0 for the rest.
 */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "query.h"
#include "words.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#define NT_EPOCH 116444736000000000ll /* 1601 to 1970, in 100 ns */

_Static_assert(sizeof(PRCB_SYSTEM_BASIC_INFORMATION) == (sizeof(void *) == 8 ? 0x40 : 0x2c) &&
                   sizeof(PRCB_SYSTEM_PERFORMANCE_INFORMATION) == NT_SYSTEM_MOST &&
                   sizeof(PRCB_SYSTEM_TIMEOFDAY_INFORMATION) == 0x30,
               "as Windows has them");

static uint32_t cut(uint64_t value)
{
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

NTSTATUS nt_make_basic(void *ret)
{
    PRCB_SYSTEM_BASIC_INFORMATION *to = ret;
    long page = sysconf(_SC_PAGESIZE), pages = sysconf(_SC_PHYS_PAGES);
    uint32_t first = 0, count = 0;

    nt_group(nt_current_group(), &first, &count);
    to->TimerResolution = nt_maximum_increment();
    to->PageSize = (uint32_t)page;
    to->NumberOfPhysicalPages = cut(pages > 0 ? (uint64_t)pages : 0);
    to->AllocationGranularity = (uint32_t)page;
    to->MinimumUserModeAddress = 0x10000;
    to->MaximumUserModeAddress =
        sizeof(void *) == 8 ? (uintptr_t)0x7ffffffeffffull : (uintptr_t)0x7ffeffff;
    to->NumberOfProcessors = (int8_t)count; /* 64 at the most */
    to->ActiveProcessorsAffinityMask =
        count >= NT_GROUP_SIZE ? UINTPTR_MAX : ((uintptr_t)1 << count) - 1;
    return STATUS_SUCCESS;
}

/* Family, and model above stepping, as Windows has them on x86. */
static void identify(PRCB_SYSTEM_PROCESSOR_INFORMATION *to)
{
#if defined(__x86_64__) || defined(__i386__)
    unsigned eax = 0, ebx, ecx, edx, family, model;

    __get_cpuid(1, &eax, &ebx, &ecx, &edx);
    family = eax >> 8 & 0xf;
    model = (eax >> 4 & 0xf) | (family == 6 || family == 15 ? eax >> 12 & 0xf0 : 0);
    family += family == 15 ? eax >> 20 & 0xff : 0;
    to->ProcessorLevel = (uint16_t)family;
    to->ProcessorRevision = (uint16_t)(model << 8 | (eax & 0xf));
    to->ProcessorArchitecture = sizeof(void *) == 8 ? 9 : 0;
#elif defined(__aarch64__)
    to->ProcessorArchitecture = 12;
#else
    to->ProcessorArchitecture = UINT16_MAX;
#endif
}

NTSTATUS nt_make_processor(void *ret)
{
    PRCB_SYSTEM_PROCESSOR_INFORMATION *to = ret;
    uint32_t first = 0, count = 0;

    nt_group(nt_current_group(), &first, &count);
    identify(to);
    to->MaximumProcessors = (uint16_t)count;
    return STATUS_SUCCESS;
}

/* Reads the number behind a key at the start of a line; 0: there is none. */
static uint64_t number_of(const char *text, size_t length, const char *key)
{
    struct words all = {text, text + length}, line;
    uint64_t value = 0;

    while (words_take_line(&all, &line)) {
        if (!words_take_prefix(&line, key))
            continue;
        words_skip_blanks(&line);
        words_take_digits(&line, &value);
        break;
    }
    return value;
}

static void fill_memory(struct procfs *files, PRCB_SYSTEM_PERFORMANCE_INFORMATION *to)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
    size_t length;

    if (!procfs_read(files, "proc/meminfo", &length)) {
        to->AvailablePages = cut(number_of(files->buffer, length, "MemAvailable:") / page);
        to->CommittedPages = cut(number_of(files->buffer, length, "Committed_AS:") / page);
        to->CommitLimit = cut(number_of(files->buffer, length, "CommitLimit:") / page);
        to->ResidentAvailablePages =
            (int64_t)(number_of(files->buffer, length, "MemAvailable:") / page);
        to->SharedCommittedPages = number_of(files->buffer, length, "Shmem:") / page;
    }
    if (procfs_read(files, "proc/vmstat", &length))
        return;
    to->CcTotalDirtyPages = number_of(files->buffer, length, "nr_dirty ");
    to->CcDirtyPageThreshold = number_of(files->buffer, length, "nr_dirty_threshold ");
    to->PageFaultCount = (uint32_t)number_of(files->buffer, length, "pgfault ");
}

NTSTATUS nt_make_performance(void *ret)
{
    PRCB_SYSTEM_PERFORMANCE_INFORMATION *to = ret;
    NTSTATUS status = nt_view_read(0, nt_view_active());
    uint64_t switches = 0;

    if (!status)
        status = nt_status(nt_view_switches(&switches));
    if (status)
        return status;
    to->ContextSwitches = (uint32_t)switches;
    for (uint32_t i = 0; i < nt_view_active(); i++) {
        int64_t times[NT_TIMES];

        nt_times(nt_view_record(i), nt_view_cpu(i), times);
        to->IdleProcessTime.QuadPart += times[NT_IDLE];
    }
    fill_memory(nt_view_files(), to);
    return STATUS_SUCCESS;
}

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * 10000000ll + now.tv_nsec / 100;
}

NTSTATUS nt_make_time_of_day(void *ret)
{
    PRCB_SYSTEM_TIMEOFDAY_INFORMATION *to = ret;
    int64_t now = read_clock(CLOCK_REALTIME), up = read_clock(CLOCK_BOOTTIME);
    int64_t awake = read_clock(CLOCK_MONOTONIC);
    time_t seconds = (time_t)(now / 10000000);
    struct tm local;

    to->CurrentTime.QuadPart = now + NT_EPOCH;
    to->BootTime.QuadPart = nt_boot_time();
    to->SleepTimeBias = up > awake ? (uint64_t)(up - awake) : 0;
    if (localtime_r(&seconds, &local)) {
        to->TimeZoneBias.QuadPart = -local.tm_gmtoff * 10000000ll;
        to->TimeZoneId = local.tm_isdst > 0 ? 2 : local.tm_isdst == 0;
    }
    return STATUS_SUCCESS;
}
