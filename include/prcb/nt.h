/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Hardware Counter Profiling under its NT names, EnableThreadProfiling and its
 * relatives, the configuration of the counters; and what NtQuerySystemInformation and
 * NtPowerInformation tell of each processor. The structures are byte for byte as NT
 * has them on 32- and 64-bit processors. Calls carry the prefix
 * prcb_ here; the library prcb-nt exports them under their plain names for
 * programs written for Windows, which include <windows.h> instead of this header.
 *
 * Members keep NT's spelling and have fixed-width types. A type that winnt.h defines
 * too is taken from whichever of the two headers comes first.
 *
 * Threads  A thread profiles itself: Enable, Read and Disable act on the calling
 *          thread. All calls may be made by several threads at once.
 * Scope    Everything here belongs to the calling process. A forked child starts
 *          with nothing enabled and every handle invalid.
 * Lifetime A thread that ends without Disable gives everything back. What the first
 *          Enable with THREAD_PROFILING_FLAG_DISPATCH sets up stays until the
 *          process ends.
 *
 * No public source documents what NT does in some cases; the manual of each call
 * (EnableThreadProfiling(3) and others) marks what was chosen there.
 */
#ifndef PRCB_NT_H
#define PRCB_NT_H

#include <stddef.h>
#include <stdint.h>

#include <prcb/prcb.h>

/* Programs built by mingw or winegcc have a windows.h of their own, and types and class numbers
 * that it or winternl.h defines are that header's, whichever was included first. */
#if defined(_WIN32) || defined(__WINE__)
#include <windows.h>
#include <winternl.h>
#define PRCB_NT_FOREIGN_HEADERS
#define PRCB_NT_LARGE_INTEGER
#define PRCB_NT_WINTERNL_TYPES
#define PRCB_NT_PROCESSOR_NUMBER
#ifdef MAX_HW_COUNTERS
#define PRCB_NT_WINNT_TYPES
#endif
#ifdef _EVNTCONS_H_
#define PRCB_NT_EVNTCONS_TYPES
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* NT aligns 64-bit members to 8 everywhere; the i386 ABI of Linux would to 4. */
#if defined(__i386__)
#define PRCB_NT_ALIGNED __attribute__((aligned(8)))
#else
#define PRCB_NT_ALIGNED
#endif

/* ---- what winnt.h has too ---- */

#ifndef PRCB_NT_LARGE_INTEGER
#define PRCB_NT_LARGE_INTEGER

typedef int32_t NTSTATUS;

typedef union _LARGE_INTEGER {
    __extension__ struct {
        uint32_t LowPart;
        int32_t HighPart;
    };
    struct {
        uint32_t LowPart;
        int32_t HighPart;
    } u;
    long long QuadPart PRCB_NT_ALIGNED;
} LARGE_INTEGER, *PLARGE_INTEGER;

#endif

#ifndef PRCB_NT_WINNT_TYPES
#define PRCB_NT_WINNT_TYPES

typedef enum _HARDWARE_COUNTER_TYPE {
    PMCCounter = 0,
    MaxHardwareCounterType = 1,
} HARDWARE_COUNTER_TYPE,
    *PHARDWARE_COUNTER_TYPE;

typedef struct _HARDWARE_COUNTER_DATA {
    HARDWARE_COUNTER_TYPE Type;
    uint32_t Reserved;
    uint64_t Value PRCB_NT_ALIGNED; /* events since Enable */
} HARDWARE_COUNTER_DATA, *PHARDWARE_COUNTER_DATA;

#define MAX_HW_COUNTERS 16

typedef struct _PERFORMANCE_DATA {
    uint16_t Size;               /* set by the caller: sizeof(PERFORMANCE_DATA) */
    uint8_t Version;             /* set by the caller: PERFORMANCE_DATA_VERSION */
    uint8_t HwCountersCount;     /* elements of HwCounters that hold data; not the first so many */
    uint32_t ContextSwitchCount; /* since Enable; wraps */
    uint64_t WaitReasonBitMap PRCB_NT_ALIGNED; /* 1 << KWAIT_REASON, since the last read */
    uint64_t CycleTime PRCB_NT_ALIGNED;        /* cycles on a processor since Enable */
    uint32_t RetryCount;                       /* passes made to get a consistent snapshot */
    uint32_t Reserved;                         /* 0 */
    HARDWARE_COUNTER_DATA HwCounters[MAX_HW_COUNTERS]; /* [i] belongs to mask bit i */
} PERFORMANCE_DATA, *PPERFORMANCE_DATA;

typedef struct _SYSTEM_PROCESSOR_CYCLE_TIME_INFORMATION {
    uint64_t CycleTime PRCB_NT_ALIGNED; /* in softirqs and hard interrupts */
} SYSTEM_PROCESSOR_CYCLE_TIME_INFORMATION, *PSYSTEM_PROCESSOR_CYCLE_TIME_INFORMATION;

#endif

#ifndef PRCB_NT_PROCESSOR_NUMBER
#define PRCB_NT_PROCESSOR_NUMBER

typedef struct _PROCESSOR_NUMBER {
    uint16_t Group;
    uint8_t Number;
    uint8_t Reserved;
} PROCESSOR_NUMBER, *PPROCESSOR_NUMBER;

typedef struct _GROUP_AFFINITY {
    uintptr_t Mask; /* processors of the group */
    uint16_t Group; /* the group of processor n is n / 64 (32-bit: n / 32) */
    uint16_t Reserved[3];
} GROUP_AFFINITY, *PGROUP_AFFINITY;

#endif

#ifndef READ_THREAD_PROFILING_FLAG_DISPATCHING
#define PERFORMANCE_DATA_VERSION 1

/* ReadThreadProfilingData */
#define READ_THREAD_PROFILING_FLAG_DISPATCHING       0x00000001
#define READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS 0x00000002
#endif
/* EnableThreadProfiling */
#ifndef THREAD_PROFILING_FLAG_DISPATCH
#define THREAD_PROFILING_FLAG_DISPATCH 0x00000001
#endif

/* ---- what NT keeps in driver and private headers ---- */

#define THREAD_PROFILING_FLAG_HARDWARE_COUNTERS 0x00000002
#define THREAD_PERFORMANCE_DATA_VERSION         1

/* Bit of WaitReasonBitMap, above every KWAIT_REASON, that NT does not have: there
 * were switches whose reason is unknown (on the perf tier: all). */
#define PRCB_WAIT_REASON_UNKNOWN (UINT64_C(1) << 63)

typedef struct _HARDWARE_COUNTER {
    HARDWARE_COUNTER_TYPE Type;     /* PMCCounter */
    uint32_t Reserved;              /* 0 */
    uint64_t Index PRCB_NT_ALIGNED; /* what to count: prcb_profile_source */
} HARDWARE_COUNTER, *PHARDWARE_COUNTER;

typedef struct _COUNTER_READING {
    HARDWARE_COUNTER_TYPE Type;
    uint32_t Index;
    uint64_t Start PRCB_NT_ALIGNED;
    uint64_t Total PRCB_NT_ALIGNED;
} COUNTER_READING, *PCOUNTER_READING;

typedef struct _THREAD_PERFORMANCE_DATA {
    uint16_t Size;
    uint16_t Version;
    PROCESSOR_NUMBER ProcessorNumber;
    uint32_t ContextSwitches;
    uint32_t HwCountersCount;
    uint64_t UpdateCount PRCB_NT_ALIGNED;
    uint64_t WaitReasonBitMap PRCB_NT_ALIGNED;
    uint64_t HardwareCounters PRCB_NT_ALIGNED;
    COUNTER_READING CycleTime;
    COUNTER_READING HwCounters[MAX_HW_COUNTERS];
} THREAD_PERFORMANCE_DATA, *PTHREAD_PERFORMANCE_DATA;

typedef struct _THREAD_PROFILING_INFORMATION {
    uint64_t HardwareCounters PRCB_NT_ALIGNED;
    uint32_t Flags;
    uint32_t Enable;
    THREAD_PERFORMANCE_DATA *PerformanceData;
} THREAD_PROFILING_INFORMATION, *PTHREAD_PROFILING_INFORMATION;

typedef struct _KTHREAD_COUNTERS {
    uint64_t WaitReasonBitMap PRCB_NT_ALIGNED;
    THREAD_PERFORMANCE_DATA *UserData;
    uint32_t Flags;
    uint32_t ContextSwitches;
    uint64_t CycleTimeBias PRCB_NT_ALIGNED;
    uint64_t HardwareCounters PRCB_NT_ALIGNED;
    COUNTER_READING HwCounter[MAX_HW_COUNTERS];
} KTHREAD_COUNTERS, *PKTHREAD_COUNTERS;

typedef enum _PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE {
    ResourceTypeSingle = 0, /* one counter: u.CounterIndex */
    ResourceTypeRange,      /* counters u.Range.Begin to u.Range.End, both included */
    ResourceTypeExtendedCounterConfiguration,
    ResourceTypeOverflow,
    ResourceTypeEventBuffer,
    ResourceTypeIdentificationTag,
    ResourceTypeMax,
} PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE;

typedef struct _PHYSICAL_COUNTER_EVENT_BUFFER_CONFIGURATION {
    void *OverflowHandler;
    uint32_t CustomEventBufferEntrySize;
    uint32_t EventThreshold;
} PHYSICAL_COUNTER_EVENT_BUFFER_CONFIGURATION;

typedef struct _PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR {
    PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE Type;
    uint32_t Flags; /* 0 */
    union {
        uint32_t CounterIndex;
        uint32_t ExtendedRegisterAddress;
        void *OverflowHandler;
        struct {
            uint32_t Begin;
            uint32_t End;
        } Range;
        PHYSICAL_COUNTER_EVENT_BUFFER_CONFIGURATION EventBufferConfiguration;
        uint32_t IdentificationTag;
    } u;
} PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR;

typedef struct _PHYSICAL_COUNTER_RESOURCE_LIST {
    uint32_t Count; /* of Descriptors; declared with one, as NT does */
    PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR Descriptors[1];
} PHYSICAL_COUNTER_RESOURCE_LIST;

/* ---- status values ---- */

#ifndef STATUS_SUCCESS
#define STATUS_SUCCESS ((NTSTATUS)0x00000000)
#endif
#ifndef STATUS_DATATYPE_MISALIGNMENT
#define STATUS_DATATYPE_MISALIGNMENT ((NTSTATUS)0x80000002)
#endif
#ifndef STATUS_NOT_IMPLEMENTED
#define STATUS_NOT_IMPLEMENTED ((NTSTATUS)0xC0000002)
#endif
#ifndef STATUS_INVALID_INFO_CLASS
#define STATUS_INVALID_INFO_CLASS ((NTSTATUS)0xC0000003)
#endif
#ifndef STATUS_INFO_LENGTH_MISMATCH
#define STATUS_INFO_LENGTH_MISMATCH ((NTSTATUS)0xC0000004)
#endif
#ifndef STATUS_ACCESS_VIOLATION
#define STATUS_ACCESS_VIOLATION ((NTSTATUS)0xC0000005)
#endif
#ifndef STATUS_INVALID_HANDLE
#define STATUS_INVALID_HANDLE ((NTSTATUS)0xC0000008)
#endif
#ifndef STATUS_INVALID_CID
#define STATUS_INVALID_CID ((NTSTATUS)0xC000000B)
#endif
#ifndef STATUS_INVALID_PARAMETER
#define STATUS_INVALID_PARAMETER ((NTSTATUS)0xC000000D)
#endif
#ifndef STATUS_NO_MEMORY
#define STATUS_NO_MEMORY ((NTSTATUS)0xC0000017)
#endif
#ifndef STATUS_ACCESS_DENIED
#define STATUS_ACCESS_DENIED ((NTSTATUS)0xC0000022)
#endif
#ifndef STATUS_BUFFER_TOO_SMALL
#define STATUS_BUFFER_TOO_SMALL ((NTSTATUS)0xC0000023)
#endif
#ifndef STATUS_REVISION_MISMATCH
#define STATUS_REVISION_MISMATCH ((NTSTATUS)0xC0000059)
#endif
#ifndef STATUS_PRIVILEGE_NOT_HELD
#define STATUS_PRIVILEGE_NOT_HELD ((NTSTATUS)0xC0000061)
#endif
#ifndef STATUS_INSUFFICIENT_RESOURCES
#define STATUS_INSUFFICIENT_RESOURCES ((NTSTATUS)0xC000009A)
#endif
#ifndef STATUS_MEMORY_NOT_ALLOCATED
#define STATUS_MEMORY_NOT_ALLOCATED ((NTSTATUS)0xC00000A0)
#endif
#ifndef STATUS_NOT_SUPPORTED
#define STATUS_NOT_SUPPORTED ((NTSTATUS)0xC00000BB)
#endif
#ifndef STATUS_INTERNAL_ERROR
#define STATUS_INTERNAL_ERROR ((NTSTATUS)0xC00000E5)
#endif
#ifndef STATUS_INVALID_PARAMETER_2
#define STATUS_INVALID_PARAMETER_2 ((NTSTATUS)0xC00000F0)
#endif
#ifndef STATUS_ADDRESS_ALREADY_EXISTS
#define STATUS_ADDRESS_ALREADY_EXISTS ((NTSTATUS)0xC000020A)
#endif
#ifndef STATUS_RETRY
#define STATUS_RETRY ((NTSTATUS)0xC000022D)
#endif
#ifndef STATUS_WMI_ALREADY_ENABLED
#define STATUS_WMI_ALREADY_ENABLED ((NTSTATUS)0xC0000303)
#endif

/* The Win32 code of a status; 317 (ERROR_MR_MID_NOT_FOUND) for one this library
 * never gives. */
PRCB_API uint32_t prcb_RtlNtStatusToDosError(NTSTATUS Status);

/* One line about why this thread's last call of this header failed; "" when none
 * has. Borrowed until the thread's next call. */
PRCB_API const char *prcb_nt_error_text(void);

/* ---- threads and handles ---- */

/* The calling thread, as a handle that need not be closed: (void *)-2. */
PRCB_API void *prcb_GetCurrentThread(void);
/* A handle on a thread of this process, by its number (gettid). NULL: there is none. */
PRCB_API void *prcb_OpenThread(uint32_t DesiredAccess, int InheritHandle, uint32_t ThreadId);
/* STATUS_INVALID_HANDLE: not one of prcb_OpenThread's. */
PRCB_API NTSTATUS prcb_NtClose(void *Handle);
/* Another handle on the same thread, also when it has ended; both processes must be (void *)-1,
 * this one. Of Options, DUPLICATE_CLOSE_SOURCE (1) closes the source, whatever else happens.
 * STATUS_INVALID_HANDLE: not a thread's. */
PRCB_API NTSTATUS prcb_NtDuplicateObject(void *SourceProcessHandle, void *SourceHandle,
                                         void *TargetProcessHandle, void **TargetHandle,
                                         uint32_t DesiredAccess, uint32_t HandleAttributes,
                                         uint32_t Options);

/* ---- what a thread or this process has used ---- */

/* Classes of prcb_NtQueryInformationThread and ...Process; lengths are exact. */
#define PRCB_NT_THREAD_BASIC       0  /* PRCB_THREAD_BASIC_INFORMATION */
#define PRCB_NT_PROCESS_BASIC      0  /* PRCB_PROCESS_BASIC_INFORMATION */
#define PRCB_NT_THREAD_TIMES       1  /* ThreadTimes: KERNEL_USER_TIMES */
#define PRCB_NT_THREAD_CYCLE_TIME  23 /* ThreadCycleTime: THREAD_CYCLE_TIME_INFORMATION */
#define PRCB_NT_PROCESS_TIMES      4  /* ProcessTimes: KERNEL_USER_TIMES */
#define PRCB_NT_PROCESS_CYCLE_TIME 38 /* ProcessCycleTime: PROCESS_CYCLE_TIME_INFORMATION */

/* Masks are of the first processors; priorities are 8 less a fifth of the nice value, 1 and 15 from
 * 15 and -15 on. */
typedef struct _PRCB_THREAD_BASIC_INFORMATION {
    NTSTATUS ExitStatus;  /* STATUS_PENDING (0x103) */
    void *TebBaseAddress; /* NULL */
    uintptr_t UniqueProcess;
    uintptr_t UniqueThread;
    uintptr_t AffinityMask;
    int32_t Priority;
    int32_t BasePriority;
} PRCB_THREAD_BASIC_INFORMATION;

typedef struct _PRCB_PROCESS_BASIC_INFORMATION {
    NTSTATUS ExitStatus;    /* STATUS_PENDING (0x103) */
    void *PebBaseAddress;   /* NULL */
    uintptr_t AffinityMask; /* of the first thread, as BasePriority */
    int32_t BasePriority;
    uintptr_t UniqueProcessId;
    uintptr_t InheritedFromUniqueProcessId;
} PRCB_PROCESS_BASIC_INFORMATION;

#ifndef PRCB_NT_FOREIGN_HEADERS
typedef struct _KERNEL_USER_TIMES {
    LARGE_INTEGER CreateTime; /* 100 ns since 1601; to 10 ms */
    LARGE_INTEGER ExitTime;   /* 0 while it runs */
    LARGE_INTEGER KernelTime; /* 100 ns */
    LARGE_INTEGER UserTime;
} KERNEL_USER_TIMES, *PKERNEL_USER_TIMES;

typedef struct _THREAD_CYCLE_TIME_INFORMATION {
    uint64_t AccumulatedCycles PRCB_NT_ALIGNED; /* on a processor, of the time-stamp counter */
    uint64_t CurrentCycleCount PRCB_NT_ALIGNED; /* the same: Linux has no other */
} THREAD_CYCLE_TIME_INFORMATION, *PTHREAD_CYCLE_TIME_INFORMATION;

typedef struct _PROCESS_CYCLE_TIME_INFORMATION {
    uint64_t AccumulatedCycles PRCB_NT_ALIGNED; /* of all its threads, ended ones too */
    uint64_t CurrentCycleCount PRCB_NT_ALIGNED;
} PROCESS_CYCLE_TIME_INFORMATION, *PPROCESS_CYCLE_TIME_INFORMATION;
#endif

/* A thread of this process, while it lives: STATUS_INVALID_CID once it has ended. Times of the
 * calling thread are exact to the microsecond, another's to the kernel's 10 ms; cycles are exact of
 * either, as of the last switch or tick if it runs on another processor. Interrupts are in.
 * STATUS_INVALID_HANDLE, STATUS_INVALID_INFO_CLASS, STATUS_INFO_LENGTH_MISMATCH (*ReturnLength is
 * the length that it takes), STATUS_ACCESS_VIOLATION, STATUS_DATATYPE_MISALIGNMENT. */
PRCB_API NTSTATUS prcb_NtQueryInformationThread(void *ThreadHandle, uint32_t ThreadInformationClass,
                                                void *ThreadInformation,
                                                uint32_t ThreadInformationLength,
                                                uint32_t *ReturnLength);
/* The same of this process: ProcessHandle is (void *)-1. */
PRCB_API NTSTATUS prcb_NtQueryInformationProcess(void *ProcessHandle,
                                                 uint32_t ProcessInformationClass,
                                                 void *ProcessInformation,
                                                 uint32_t ProcessInformationLength,
                                                 uint32_t *ReturnLength);

/* ---- thread profiling: kernel32's form (Win32 codes), then ntdll's (NTSTATUS) ---- */

PRCB_API uint32_t prcb_EnableThreadProfiling(void *ThreadHandle, uint32_t Flags,
                                             uint64_t HardwareCounters,
                                             void **PerformanceDataHandle);
PRCB_API uint32_t prcb_DisableThreadProfiling(void *PerformanceDataHandle);
PRCB_API uint32_t prcb_QueryThreadProfiling(void *ThreadHandle, uint8_t *Enabled);
PRCB_API uint32_t prcb_ReadThreadProfilingData(void *PerformanceDataHandle, uint32_t Flags,
                                               PERFORMANCE_DATA *PerformanceData);

PRCB_API NTSTATUS prcb_RtlEnableThreadProfiling(void *ThreadHandle, uint32_t Flags,
                                                uint64_t HardwareCounters,
                                                void **PerformanceDataHandle);
PRCB_API NTSTATUS prcb_RtlDisableThreadProfiling(void *PerformanceDataHandle);
PRCB_API NTSTATUS prcb_RtlQueryThreadProfiling(void *ThreadHandle, uint8_t *Enabled);
PRCB_API NTSTATUS prcb_RtlReadThreadProfilingData(void *PerformanceDataHandle, uint32_t Flags,
                                                  PERFORMANCE_DATA *PerformanceData);

/* The tier that Enable with THREAD_PROFILING_FLAG_DISPATCH shall use, instead of the
 * best there is. Before the first such Enable of the process: -EBUSY afterwards. */
PRCB_API int prcb_nt_set_tier(enum prcb_tier tier);
/* The tier in use; PRCB_TIER_AUTO: none yet. */
PRCB_API enum prcb_tier prcb_nt_tier(void);

/* ---- which counters there are: for the process ---- */

PRCB_API NTSTATUS prcb_KeSetHardwareCounterConfiguration(HARDWARE_COUNTER *CounterArray,
                                                         uint32_t Count);
PRCB_API NTSTATUS prcb_KeQueryHardwareCounterConfiguration(HARDWARE_COUNTER *CounterArray,
                                                           uint32_t MaximumCount, uint32_t *Count);

/* Reservations, among those in this process who ask. */
PRCB_API NTSTATUS prcb_HalAllocateHardwareCounters(GROUP_AFFINITY *GroupAffinty,
                                                   uint32_t GroupCount,
                                                   PHYSICAL_COUNTER_RESOURCE_LIST *ResourceList,
                                                   void **CounterSetHandle);
PRCB_API NTSTATUS prcb_HalFreeHardwareCounters(void *CounterSetHandle);

/* What HARDWARE_COUNTER.Index may name: KPROFILE_SOURCE numbers, fixed counters
 * (0x40000000 + n) and, from PRCB_PROFILE_SOURCE_LINUX on, the kernel's software
 * events (PERF_COUNT_SW_* above it). */
#define PRCB_PROFILE_SOURCE_LINUX UINT64_C(0x10000)

struct prcb_profile_source {
    uint64_t number;
    const char *name;  /* "ProfileTotalIssues"; NULL where NT has none */
    const char *event; /* what counts it here, a name of prcb_counters_open; NULL: nothing does */
};
/* Row i, static; NULL beyond the last. */
PRCB_API const struct prcb_profile_source *prcb_profile_source(size_t i);
/* The row of a number; NULL if there is none. */
PRCB_API const struct prcb_profile_source *prcb_profile_source_find(uint64_t number);

/* ---- system information ----
 *
 * Per processor, as NtQuerySystemInformation has it. What feeds it is one view of the processors
 * (prcb/processors.h) for the process, opened by the first call and kept until the process ends; a
 * forked child opens its own.
 *
 * Times count from the system's start: the kernel's own figures as of when the view was opened,
 * to its tick, and what the view has measured since. Processors are numbered as Linux numbers
 * them, in groups of 64 (32-bit: 32). One is active when it has been online since the view was
 * opened; it stays so, and keeps its figures, when it goes offline. */

/* The two that winternl.h defines too are taken from whichever header comes first. */
#ifndef PRCB_NT_WINTERNL_TYPES
#define PRCB_NT_WINTERNL_TYPES

enum {
    SystemProcessorPerformanceInformation = 0x08,
    SystemInterruptInformation = 0x17,
};

typedef struct _SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION {
    LARGE_INTEGER IdleTime;      /* 100 ns, as all of these */
    LARGE_INTEGER KernelTime;    /* with IdleTime, DpcTime and InterruptTime */
    LARGE_INTEGER UserTime;      /* with KernelTime it is all time */
    LARGE_INTEGER DpcTime;       /* softirqs */
    LARGE_INTEGER InterruptTime; /* hard interrupts */
    uint32_t InterruptCount;     /* wraps */
    uint32_t Spare0;             /* 0 */
} SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION, *PSYSTEM_PROCESSOR_PERFORMANCE_INFORMATION;

typedef struct _SYSTEM_INTERRUPT_INFORMATION {
    uint32_t ContextSwitches;
    uint32_t DpcCount; /* softirqs run */
    uint32_t DpcRate;  /* of these a tick, a mean that halves with each tick */
    uint32_t TimeIncrement;
    uint32_t DpcBypassCount; /* 0, as on NT since 5.1 */
    uint32_t ApcBypassCount; /* 0, as on NT since 5.1 */
} SYSTEM_INTERRUPT_INFORMATION, *PSYSTEM_INTERRUPT_INFORMATION;

#endif

/* Classes 0x00 to 0x03, of the whole system. winternl.h has types of their names in which
 * all is Reserved. */
typedef struct _PRCB_SYSTEM_BASIC_INFORMATION {
    uint32_t Reserved;
    uint32_t TimerResolution; /* KeQueryTimeIncrement's */
    uint32_t PageSize;
    uint32_t NumberOfPhysicalPages;
    uint32_t LowestPhysicalPageNumber;  /* 0 */
    uint32_t HighestPhysicalPageNumber; /* 0 */
    uint32_t AllocationGranularity;     /* PageSize */
    uintptr_t MinimumUserModeAddress;
    uintptr_t MaximumUserModeAddress;
    uintptr_t ActiveProcessorsAffinityMask; /* of the caller's group, as the next */
    int8_t NumberOfProcessors;
} PRCB_SYSTEM_BASIC_INFORMATION;

/* Class 0x01. */
typedef struct _PRCB_SYSTEM_PROCESSOR_INFORMATION {
    uint16_t ProcessorArchitecture; /* 0 x86, 9 x64, 12 Arm64, 0xffff another */
    uint16_t ProcessorLevel;        /* x86: the family */
    uint16_t ProcessorRevision;     /* x86: model << 8 | stepping */
    uint16_t MaximumProcessors;     /* of the caller's group */
    uint32_t ProcessorFeatureBits;  /* 0: NT's own bits, which no public header has */
} PRCB_SYSTEM_PROCESSOR_INFORMATION;

typedef struct _PRCB_SYSTEM_PERFORMANCE_INFORMATION {
    LARGE_INTEGER IdleProcessTime; /* of all processors */
    LARGE_INTEGER IoTransferCount[3];
    uint32_t IoOperationCount[3];
    uint32_t AvailablePages;
    uint32_t CommittedPages;
    uint32_t CommitLimit;
    uint32_t PeakCommitment;
    uint32_t PageFaultCount;  /* wraps */
    uint32_t Others[58];      /* 0 */
    uint32_t ContextSwitches; /* of all processors; wraps */
    uint32_t FirstLevelTbFills;
    uint32_t SecondLevelTbFills;
    uint32_t SystemCalls;
    /* Windows 10; a caller of before asks for 0x138 bytes. */
    uint64_t CcTotalDirtyPages PRCB_NT_ALIGNED;
    uint64_t CcDirtyPageThreshold PRCB_NT_ALIGNED;
    int64_t ResidentAvailablePages PRCB_NT_ALIGNED;
    uint64_t SharedCommittedPages PRCB_NT_ALIGNED;
} PRCB_SYSTEM_PERFORMANCE_INFORMATION;

typedef struct _PRCB_SYSTEM_TIMEOFDAY_INFORMATION {
    LARGE_INTEGER BootTime; /* 100 ns since 1601 */
    LARGE_INTEGER CurrentTime;
    LARGE_INTEGER TimeZoneBias; /* 100 ns, west of Greenwich */
    uint32_t TimeZoneId;        /* 1 standard time, 2 summer time, 0 not known */
    uint32_t Reserved;
    uint64_t BootTimeBias PRCB_NT_ALIGNED;  /* 0 */
    uint64_t SleepTimeBias PRCB_NT_ALIGNED; /* 100 ns suspended since boot */
} PRCB_SYSTEM_TIMEOFDAY_INFORMATION;

#ifndef PRCB_NT_FOREIGN_HEADERS
enum {
    SystemTimeAdjustmentInformation = 0x1c,
    SystemContextSwitchInformation = 0x24,
    SystemProcessorIdleInformation = 0x2a,
    SystemProcessorPowerInformation = 0x3d,
    SystemLogicalProcessorInformation = 0x49,
    SystemProcessorIdleCycleTimeInformation = 0x53,
    SystemProcessorPerformanceDistribution = 0x64,
    SystemProcessorCycleTimeInformation = 0x6c,
    SystemProcessorPerformanceInformationEx = 0x8d,
    SystemCpuSetInformation = 0xaf,
};
#endif

typedef struct _SYSTEM_QUERY_TIME_ADJUST_INFORMATION {
    uint32_t TimeAdjustment; /* 100 ns added to the time of day every TimeIncrement */
    uint32_t TimeIncrement;
    uint8_t Enable; /* TRUE: nothing is adjusted */
} SYSTEM_QUERY_TIME_ADJUST_INFORMATION, *PSYSTEM_QUERY_TIME_ADJUST_INFORMATION;

typedef struct _SYSTEM_SET_TIME_ADJUST_INFORMATION {
    uint32_t TimeAdjustment;
    uint8_t Enable; /* TRUE: stop adjusting */
} SYSTEM_SET_TIME_ADJUST_INFORMATION, *PSYSTEM_SET_TIME_ADJUST_INFORMATION;

typedef struct _SYSTEM_CONTEXT_SWITCH_INFORMATION {
    uint32_t ContextSwitches; /* of all processors */
    uint32_t FindAny;
    uint32_t FindLast;
    uint32_t FindIdeal;
    uint32_t IdleAny;
    uint32_t IdleCurrent;
    uint32_t IdleLast;
    uint32_t IdleIdeal;
    uint32_t PreemptAny;
    uint32_t PreemptCurrent;
    uint32_t PreemptLast;
    uint32_t SwitchToIdle; /* times a processor went idle */
} SYSTEM_CONTEXT_SWITCH_INFORMATION, *PSYSTEM_CONTEXT_SWITCH_INFORMATION;

typedef struct _SYSTEM_PROCESSOR_IDLE_INFORMATION {
    uint64_t IdleTime PRCB_NT_ALIGNED; /* 100 ns, as all of these */
    uint64_t C1Time PRCB_NT_ALIGNED;
    uint64_t C2Time PRCB_NT_ALIGNED;
    uint64_t C3Time PRCB_NT_ALIGNED;
    uint32_t C1Transitions;
    uint32_t C2Transitions;
    uint32_t C3Transitions;
    uint32_t Padding;
} SYSTEM_PROCESSOR_IDLE_INFORMATION, *PSYSTEM_PROCESSOR_IDLE_INFORMATION;

typedef struct _SYSTEM_PROCESSOR_POWER_INFORMATION {
    uint8_t CurrentFrequency; /* percent of the highest, as all these */
    uint8_t ThermalLimitFrequency;
    uint8_t ConstantThrottleFrequency;
    uint8_t DegradedThrottleFrequency;
    uint8_t LastBusyFrequency;
    uint8_t LastC3Frequency;
    uint8_t LastAdjustedBusyFrequency;
    uint8_t ProcessorMinThrottle;
    uint8_t ProcessorMaxThrottle;
    uint32_t NumberOfFrequencies;
    uint32_t PromotionCount;
    uint32_t DemotionCount;
    uint32_t ErrorCount;
    uint32_t RetryCount;
    uint64_t CurrentFrequencyTime PRCB_NT_ALIGNED; /* 100 ns, as all these */
    uint64_t CurrentProcessorTime PRCB_NT_ALIGNED;
    uint64_t CurrentProcessorIdleTime PRCB_NT_ALIGNED;
    uint64_t LastProcessorTime PRCB_NT_ALIGNED;
    uint64_t LastProcessorIdleTime PRCB_NT_ALIGNED;
    uint64_t Energy PRCB_NT_ALIGNED;
} SYSTEM_PROCESSOR_POWER_INFORMATION, *PSYSTEM_PROCESSOR_POWER_INFORMATION;

typedef struct _SYSTEM_PROCESSOR_IDLE_CYCLE_TIME_INFORMATION {
    uint64_t CycleTime PRCB_NT_ALIGNED; /* idle */
} SYSTEM_PROCESSOR_IDLE_CYCLE_TIME_INFORMATION, *PSYSTEM_PROCESSOR_IDLE_CYCLE_TIME_INFORMATION;

typedef struct _SYSTEM_PROCESSOR_PERFORMANCE_HITCOUNT {
    uint64_t Hits PRCB_NT_ALIGNED;
    uint8_t PercentFrequency;
} SYSTEM_PROCESSOR_PERFORMANCE_HITCOUNT, *PSYSTEM_PROCESSOR_PERFORMANCE_HITCOUNT;

typedef struct _SYSTEM_PROCESSOR_PERFORMANCE_STATE_DISTRIBUTION {
    uint32_t ProcessorNumber; /* in its group */
    uint32_t StateCount;
    SYSTEM_PROCESSOR_PERFORMANCE_HITCOUNT States[1]; /* StateCount of them */
} SYSTEM_PROCESSOR_PERFORMANCE_STATE_DISTRIBUTION,
    *PSYSTEM_PROCESSOR_PERFORMANCE_STATE_DISTRIBUTION;

typedef struct _SYSTEM_PROCESSOR_PERFORMANCE_DISTRIBUTION {
    uint32_t ProcessorCount;
    uint32_t Offsets[1]; /* ProcessorCount of them: bytes from here to each's distribution */
} SYSTEM_PROCESSOR_PERFORMANCE_DISTRIBUTION, *PSYSTEM_PROCESSOR_PERFORMANCE_DISTRIBUTION;

typedef struct _SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION_EX {
    LARGE_INTEGER IdleTime; /* the first as in SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION */
    LARGE_INTEGER KernelTime;
    LARGE_INTEGER UserTime;
    LARGE_INTEGER DpcTime;
    LARGE_INTEGER InterruptTime;
    uint32_t InterruptCount;
    uint32_t Spare0;
    LARGE_INTEGER AvailableTime;
    LARGE_INTEGER Spare1;
    LARGE_INTEGER Spare2;
} SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION_EX, *PSYSTEM_PROCESSOR_PERFORMANCE_INFORMATION_EX;

PRCB_API NTSTATUS prcb_NtQuerySystemInformation(uint32_t SystemInformationClass,
                                                void *SystemInformation,
                                                uint32_t SystemInformationLength,
                                                uint32_t *ReturnLength);
PRCB_API NTSTATUS prcb_ZwQuerySystemInformation(uint32_t SystemInformationClass,
                                                void *SystemInformation,
                                                uint32_t SystemInformationLength,
                                                uint32_t *ReturnLength);
/* InputBuffer: the number of a processor group, 16 bits; 0x6B and 0xAF say below what. */
PRCB_API NTSTATUS prcb_NtQuerySystemInformationEx(uint32_t SystemInformationClass,
                                                  void *InputBuffer, uint32_t InputBufferLength,
                                                  void *SystemInformation,
                                                  uint32_t SystemInformationLength,
                                                  uint32_t *ReturnLength);
PRCB_API NTSTATUS prcb_ZwQuerySystemInformationEx(uint32_t SystemInformationClass,
                                                  void *InputBuffer, uint32_t InputBufferLength,
                                                  void *SystemInformation,
                                                  uint32_t SystemInformationLength,
                                                  uint32_t *ReturnLength);

/* Class 0x53 as kernel32 has it, of the caller's group and of any: Win32 codes. *BufferLength is
 * the buffer's size in bytes and becomes what is filled; ERROR_INSUFFICIENT_BUFFER (122), or a NULL
 * buffer, which is a success: what it takes. */
PRCB_API uint32_t prcb_QueryIdleProcessorCycleTime(uint32_t *BufferLength,
                                                   uint64_t *ProcessorIdleCycleTime);
PRCB_API uint32_t prcb_QueryIdleProcessorCycleTimeEx(uint16_t Group, uint32_t *BufferLength,
                                                     uint64_t *ProcessorIdleCycleTime);

/* Class 0x6B, SystemLogicalProcessorAndGroupInformation: the Ex call only, whose input is a
 * LOGICAL_PROCESSOR_RELATIONSHIP, 32 bits. Records of SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX. */
#define PRCB_NT_RELATION_CORE    0u
#define PRCB_NT_RELATION_NODE    1u
#define PRCB_NT_RELATION_CACHE   2u
#define PRCB_NT_RELATION_PACKAGE 3u
#define PRCB_NT_RELATION_GROUP   4u
#define PRCB_NT_RELATION_ALL     0xffffu

typedef struct _PRCB_NT_CORE {
    uint8_t Flags; /* 1: several processors, LTP_PC_SMT */
} PRCB_NT_CORE;

typedef struct _PRCB_NT_NODE {
    uint32_t NodeNumber;
} PRCB_NT_NODE;

typedef struct _PRCB_NT_CACHE {
    uint8_t Level;
    uint8_t Associativity; /* ways */
    uint16_t LineSize;     /* bytes, as Size */
    uint32_t Size;
    uint32_t Type; /* 0 unified, 1 instruction, 2 data */
} PRCB_NT_CACHE;

/* Class 0x49, SystemLogicalProcessorInformation, of one group: the plain call's is group 0. */
typedef struct _PRCB_SYSTEM_LOGICAL_PROCESSOR_INFORMATION {
    uintptr_t ProcessorMask;
    uint32_t Relationship; /* PRCB_NT_RELATION_CORE, _NODE, _CACHE, _PACKAGE */
    __extension__ union {
        PRCB_NT_CORE ProcessorCore;
        PRCB_NT_NODE NumaNode;
        PRCB_NT_CACHE Cache;
        uint64_t Reserved[2] PRCB_NT_ALIGNED;
    };
} PRCB_SYSTEM_LOGICAL_PROCESSOR_INFORMATION;

/* Class 0xAF, SystemCpuSetInformation: the Ex call only, whose input is a handle of this process,
 * or NULL. An element for each processor of the system. */
typedef struct _PRCB_SYSTEM_CPU_SET_INFORMATION {
    uint32_t Size; /* from one element to the next */
    uint32_t Type; /* CpuSetInformation, 0 */
    uint32_t Id;   /* 0x100 + the number of Linux */
    uint16_t Group;
    uint8_t LogicalProcessorIndex; /* in the group, and so the next three: of the first that... */
    uint8_t CoreIndex;             /* ... is in the same core */
    uint8_t LastLevelCacheIndex;   /* ... has the same outermost cache */
    uint8_t NumaNodeIndex;         /* ... is on the same node */
    uint8_t EfficiencyClass;       /* 0 */
    uint8_t AllFlags;              /* 0: none is parked or allocated */
    uint8_t SchedulingClass;       /* 0 */
    uint8_t Reserved[3];
    uint64_t AllocationTag PRCB_NT_ALIGNED; /* 0 */
} PRCB_SYSTEM_CPU_SET_INFORMATION;

/* Active processors of a group, or of all of them; 0: there is no such group, or no view could be
 * opened. */
#define PRCB_NT_ALL_GROUPS 0xffff
PRCB_API uint32_t prcb_KeQueryActiveProcessorCountEx(uint16_t GroupNumber);
PRCB_API uint16_t prcb_KeQueryActiveGroupCount(void);

/* ---- NtPowerInformation ---- */

#define PRCB_NT_PROCESSOR_INFORMATION    11 /* POWER_INFORMATION_LEVEL ProcessorInformation */
#define PRCB_NT_PROCESSOR_INFORMATION_EX 46 /* ProcessorInformationEx: input, a group's number */

#ifndef __WINE__
typedef struct _PROCESSOR_POWER_INFORMATION {
    uint32_t Number; /* in its group */
    uint32_t MaxMhz;
    uint32_t CurrentMhz;
    uint32_t MhzLimit;
    uint32_t MaxIdleState; /* the deepest's number, from 0 */
    uint32_t CurrentIdleState;
} PROCESSOR_POWER_INFORMATION, *PPROCESSOR_POWER_INFORMATION;
#endif

PRCB_API NTSTATUS prcb_NtPowerInformation(uint32_t InformationLevel, void *InputBuffer,
                                          uint32_t InputBufferLength, void *OutputBuffer,
                                          uint32_t OutputBufferLength);
PRCB_API NTSTATUS prcb_ZwPowerInformation(uint32_t InformationLevel, void *InputBuffer,
                                          uint32_t InputBufferLength, void *OutputBuffer,
                                          uint32_t OutputBufferLength);

/* ---- what these calls fill in ---- */

/* A member of the element that a class gives for each processor. */
struct prcb_nt_member {
    uint32_t information_class; /* or PRCB_NT_POWER_LEVEL(level) */
    uint16_t offset;
    uint16_t size;
    const char *name; /* "IdleTime" */
    const char *unit; /* "100 ns", "cycles", "%", "MHz", "" */
};
#define PRCB_NT_POWER_LEVEL(level) (0x10000u + (level))

/* Member i of a class, static; NULL beyond the last, and for a class that there is not. */
PRCB_API const struct prcb_nt_member *prcb_nt_member(uint32_t information_class, size_t i);

/* Why the member at this offset is not filled in here but 0: one line, borrowed until
 * prcb_nt_set_processors; NULL if it holds a value. */
PRCB_API const char *prcb_nt_absent(uint32_t information_class, uint32_t offset);

/* How times are reported: classes 0x08 and 0x8D. */
enum prcb_nt_time_mode {
    PRCB_NT_TIME_V310 = 0, /* to 100 ns, 64 bits, as NT 3.10: the default */
    PRCB_NT_TIME_TICKS,    /* as NT since 3.50: 32-bit counts of time increments, times the
                              increment. Wraps after 2^32 of them in one state */
};
/* For the process. Also the variable PRCB_NT_TIME of the environment, "v310" or "ticks", until the
 * first call that wants it. -EINVAL: no such mode. */
PRCB_API int prcb_nt_set_time_mode(enum prcb_nt_time_mode mode);
PRCB_API enum prcb_nt_time_mode prcb_nt_time_mode(void);

struct prcb_processors_options;
/* How the view is opened (prcb/processors.h: tier, a recorded machine), from the next call on: what
 * there was is closed and its figures are forgotten. NULL: as in the beginning. Errors: -EINVAL,
 * -E2BIG, -ENOMEM. */
PRCB_API int prcb_nt_set_processors(const struct prcb_processors_options *opts);
/* As prcb_NtQuerySystemInformationEx, of all groups: processors by Linux' number, in one look. On
 * the perf tier each look reads files of every processor, whichever group is asked for. */
PRCB_API NTSTATUS prcb_nt_query_all_groups(uint32_t information_class, void *buffer,
                                           uint32_t length, uint32_t *ret_length);
/* The tier in use; opens the view. PRCB_TIER_AUTO: none could be opened. */
PRCB_API enum prcb_tier prcb_nt_processors_tier(void);
/* Why it is not the best, as prcb_processors_tier_reason; NULL: it is, or was asked for. Borrowed
 * until prcb_nt_set_processors. */
PRCB_API const char *prcb_nt_processors_tier_reason(void);

/* ---- time increment ---- */

/* In 100 ns: the length of the kernel's tick, or what was set. */
PRCB_API uint32_t prcb_KeQueryTimeIncrement(void);
/* Says that from now on a clock interrupt comes every MaximumIncrement, for this process. In mode
 * `ticks` what was counted before is multiplied by the new increment too, as on NT: all of the
 * past is reported again. 0, or a minimum above the maximum, sets nothing. */
PRCB_API void prcb_KeSetTimeIncrement(uint32_t MaximumIncrement, uint32_t MinimumIncrement);

/* ---- NtSetSystemInformation ---- */

/* Who asks. On NT a system call from user mode has the previous mode UserMode, a driver's Zw call
 * KernelMode, and a few classes are for the latter only. */
enum prcb_nt_mode {
    PRCB_NT_KERNEL_MODE = 0,
    PRCB_NT_USER_MODE = 1,
};

/* A library has no callers in the kernel: plain calls are answered as drivers are, and this one
 * gives the answer for either. Memory is checked in both modes, as NT does for user mode. */
PRCB_API NTSTATUS prcb_nt_set_system_information(uint32_t SystemInformationClass,
                                                 void *SystemInformation,
                                                 uint32_t SystemInformationLength,
                                                 enum prcb_nt_mode PreviousMode);
PRCB_API NTSTATUS prcb_NtSetSystemInformation(uint32_t SystemInformationClass,
                                              void *SystemInformation,
                                              uint32_t SystemInformationLength);
PRCB_API NTSTATUS prcb_ZwSetSystemInformation(uint32_t SystemInformationClass,
                                              void *SystemInformation,
                                              uint32_t SystemInformationLength);

/* ---- processor profiling: class 0x81, and CSwitch events with the PEBS index ---- */

/* Intel's 64-bit DS save area as NT names it since Windows 10 1903; struct prcb_ds_area of
 * prcb/sample.h is the same. */
typedef struct _PEBS_DS_SAVE_AREA64 {
    uint64_t BtsBufferBase PRCB_NT_ALIGNED;
    uint64_t BtsIndex PRCB_NT_ALIGNED;
    uint64_t BtsAbsoluteMaximum PRCB_NT_ALIGNED;
    uint64_t BtsInterruptThreshold PRCB_NT_ALIGNED;
    uint64_t PebsBufferBase PRCB_NT_ALIGNED;
    uint64_t PebsIndex PRCB_NT_ALIGNED;
    uint64_t PebsAbsoluteMaximum PRCB_NT_ALIGNED;
    uint64_t PebsInterruptThreshold PRCB_NT_ALIGNED;
    uint64_t PebsGpCounterReset[8] PRCB_NT_ALIGNED;
    uint64_t PebsFixedCounterReset[4] PRCB_NT_ALIGNED;
} PEBS_DS_SAVE_AREA64, *PPEBS_DS_SAVE_AREA64;

typedef struct _PEBS_DS_SAVE_AREA32 {
    uint32_t BtsBufferBase;
    uint32_t BtsIndex;
    uint32_t BtsAbsoluteMaximum;
    uint32_t BtsInterruptThreshold;
    uint32_t PebsBufferBase;
    uint32_t PebsIndex;
    uint32_t PebsAbsoluteMaximum;
    uint32_t PebsInterruptThreshold;
    uint64_t PebsGpCounterReset[8] PRCB_NT_ALIGNED;
    uint64_t PebsFixedCounterReset[4] PRCB_NT_ALIGNED;
} PEBS_DS_SAVE_AREA32, *PPEBS_DS_SAVE_AREA32;

typedef union _PEBS_DS_SAVE_AREA {
    PEBS_DS_SAVE_AREA32 As32Bit; /* never used here */
    PEBS_DS_SAVE_AREA64 As64Bit;
} PEBS_DS_SAVE_AREA, *PPEBS_DS_SAVE_AREA;

/* PEBS_DS_SAVE_AREA from Windows 8 to Windows 10 1809: the beginning of As64Bit under other
 * names. A program for these defines PRCB_NT_DS_AREA_WIN8 and has it as PEBS_DS_SAVE_AREA. */
typedef struct _PRCB_PEBS_DS_SAVE_AREA_WIN8 {
    uint64_t BtsBufferBase PRCB_NT_ALIGNED;
    uint64_t BtsIndex PRCB_NT_ALIGNED;
    uint64_t BtsAbsoluteMaximum PRCB_NT_ALIGNED;
    uint64_t BtsInterruptThreshold PRCB_NT_ALIGNED;
    uint64_t PebsBufferBase PRCB_NT_ALIGNED;
    uint64_t PebsIndex PRCB_NT_ALIGNED;
    uint64_t PebsAbsoluteMaximum PRCB_NT_ALIGNED;
    uint64_t PebsInterruptThreshold PRCB_NT_ALIGNED;
    uint64_t PebsCounterReset0 PRCB_NT_ALIGNED;
    uint64_t PebsCounterReset1 PRCB_NT_ALIGNED;
    uint64_t PebsCounterReset2 PRCB_NT_ALIGNED;
    uint64_t PebsCounterReset3 PRCB_NT_ALIGNED;
} PRCB_PEBS_DS_SAVE_AREA_WIN8;

typedef struct _PROCESSOR_PROFILE_CONTROL_AREA {
#ifdef PRCB_NT_DS_AREA_WIN8
    PRCB_PEBS_DS_SAVE_AREA_WIN8 PebsDsSaveArea;
#define PEBS_DS_SAVE_AREA PRCB_PEBS_DS_SAVE_AREA_WIN8
#else
    PEBS_DS_SAVE_AREA PebsDsSaveArea;
#endif
} PROCESSOR_PROFILE_CONTROL_AREA, *PPROCESSOR_PROFILE_CONTROL_AREA;

/* Class 0x81, set only. */
typedef struct _SYSTEM_PROCESSOR_PROFILE_CONTROL_AREA {
    PROCESSOR_PROFILE_CONTROL_AREA *ProcessorProfileControlArea; /* out */
    uint8_t Allocate;                                            /* in */
} SYSTEM_PROCESSOR_PROFILE_CONTROL_AREA, *PSYSTEM_PROCESSOR_PROFILE_CONTROL_AREA;

struct prcb_sampler;
struct prcb_switch;

/* The sampler of this process that class 0x81 gives areas of: buffers, samples and switch records
 * are had of it by prcb/sample.h. Opened by the first use of either; do not close it. */
PRCB_API int prcb_nt_sampler(struct prcb_sampler **ret, struct prcb_error *err);

/* How class 0x81 behaves; NULL: as in the beginning. Before the process's first area: -EBUSY
 * afterwards. -EINVAL, -E2BIG: the options' size. */
struct prcb_nt_profile_options {
    size_t size;    /* sizeof(struct prcb_nt_profile_options) */
    uint32_t build; /* of Windows: areas end at 0x60 up to 17763 and at 0xA0 from 18362 on. 0: the
                       newest */
    uint32_t intel; /* not 0: a processor is supported only if NT's own test holds too: it is
                       Intel's, and bits 7 and 12 of its IA32_MISC_ENABLE are 1 and 0 */
    size_t memory;  /* of the sampler: prcb_sampler_options.memory */
};
PRCB_API int prcb_nt_profile_configure(const struct prcb_nt_profile_options *opts,
                                       struct prcb_error *err);
/* The size of the areas: 0x60 or 0xA0. */
PRCB_API uint32_t prcb_nt_profile_area_size(void);

/* Class 0x1F, of which EventTracePebsTracingInformation alone is known here: which events carry the
 * PEBS index. Length 0x10 (no hook: none does) or 0x14 (one, which must be 0x0524). */
typedef struct _EVENT_TRACE_SYSTEM_EVENT_INFORMATION {
    uint32_t EventTraceInformationClass; /* 0x0B */
    uint32_t Pad;
    uint64_t TraceHandle PRCB_NT_ALIGNED; /* not looked at: a process has one stream of switches */
    uint32_t HookId[1];
} EVENT_TRACE_SYSTEM_EVENT_INFORMATION, *PEVENT_TRACE_SYSTEM_EVENT_INFORMATION;

#define PRCB_NT_HOOK_CSWITCH 0x0524

/* A context switch as NT's event: opcode 36 of the Thread class, versions 2 (Windows Vista to 10
 * 1607), 3 (1703) and 4 (1709 on), which differ in bits of OldThreadWaitMode that are 0 here. */
typedef struct _PRCB_CSWITCH {
    uint32_t NewThreadId;
    uint32_t OldThreadId;
    int8_t NewThreadPriority; /* 16..31 real-time, 1..15 by nice, 0 idle */
    int8_t OldThreadPriority;
    uint8_t PreviousCState; /* 0: not known here */
    int8_t SpareByte;       /* 0 */
    uint8_t OldThreadWaitReason;
    int8_t OldThreadWaitMode;
    uint8_t OldThreadState;
    uint8_t OldThreadIdealProcessor;   /* Linux has none: the processor it ran on */
    uint32_t NewThreadWaitTime;        /* in ticks of 1/64 s, since it was made ready */
    int32_t OldThreadRemainingQuantum; /* 0: Linux has none */
} PRCB_CSWITCH;

#ifndef PRCB_NT_EVNTCONS_TYPES
#define PRCB_NT_EVNTCONS_TYPES
#define EVENT_HEADER_EXT_TYPE_PEBS_INDEX 0x0007

typedef struct _EVENT_HEADER_EXTENDED_DATA_ITEM {
    uint16_t Reserved1;
    uint16_t ExtType;
    uint16_t Linkage; /* bit 0 */
    uint16_t DataSize;
    uint64_t DataPtr PRCB_NT_ALIGNED;
} EVENT_HEADER_EXTENDED_DATA_ITEM, *PEVENT_HEADER_EXTENDED_DATA_ITEM;

typedef struct _EVENT_EXTENDED_ITEM_PEBS_INDEX {
    uint64_t PebsIndex PRCB_NT_ALIGNED;
} EVENT_EXTENDED_ITEM_PEBS_INDEX, *PEVENT_EXTENDED_ITEM_PEBS_INDEX;
#endif

/* The data of the event; and, while class 0x1F names its hook and the record has an index, the
 * extended data item for it, which points to *PebsIndex. Item->ExtType is 0 when there is none.
 * Item and PebsIndex may be NULL together. STATUS_INVALID_PARAMETER: no such version. */
PRCB_API NTSTATUS prcb_nt_cswitch(const struct prcb_switch *Record, uint8_t Version,
                                  PRCB_CSWITCH *Data, EVENT_HEADER_EXTENDED_DATA_ITEM *Item,
                                  EVENT_EXTENDED_ITEM_PEBS_INDEX *PebsIndex);
/* The event as it stands in a trace buffer: PERFINFO_TRACE_HEADER, the index if there is one, the
 * data. STATUS_BUFFER_TOO_SMALL: *ReturnLength bytes are needed. */
#define PRCB_NT_CSWITCH_MAX 0x30
PRCB_API NTSTATUS prcb_nt_cswitch_trace(const struct prcb_switch *Record, uint8_t Version,
                                        void *Buffer, uint32_t Length, uint32_t *ReturnLength);

#ifdef __cplusplus
}
#endif
#endif
