/* SPDX-License-Identifier: BSD-2-Clause
 *
 * <winnt.h> for programs written for Windows: the subset around thread profiling.
 * It has what the SDK has there and nothing of the driver headers, so that programs can
 * bring their own HARDWARE_COUNTER and the like. Layouts are those of Windows, also with
 * -m32, where Linux would align 64-bit members to 4.
 */
#ifndef PRCB_COMPAT_WINNT_H
#define PRCB_COMPAT_WINNT_H

#include <stddef.h>
#include <string.h>

#include "minwindef.h"

#include "basetsd.h"

#ifndef VOID
#define VOID void
#endif
typedef char CHAR, *PCHAR, *LPCH, *PCH, *LPSTR, *PSTR, *NPSTR, CCHAR;
typedef const char *LPCSTR, *PCSTR, *LPCCH, *PCCH;
typedef short SHORT, *PSHORT;
typedef int LONG, *PLONG;
typedef void *PVOID, *HANDLE, **PHANDLE, **LPHANDLE;
typedef BYTE BOOLEAN, *PBOOLEAN;
typedef long long LONGLONG, *PLONGLONG;
typedef unsigned long long ULONGLONG, *PULONGLONG, DWORDLONG, *PDWORDLONG;
typedef LONG HRESULT;
typedef DWORD ACCESS_MASK, LCID, EXECUTION_STATE;

/* wchar_t, as L"..." is: four bytes here, two on Windows. */
typedef wchar_t WCHAR, *PWCHAR, *LPWSTR, *PWSTR, *LPWCH;
typedef const wchar_t *LPCWSTR, *PCWSTR;

#ifdef UNICODE
typedef WCHAR TCHAR, *PTCHAR, *LPTSTR;
typedef LPCWSTR LPCTSTR;
#ifndef TEXT
#define TEXT(quote) L##quote
#endif
#else
typedef char TCHAR, *PTCHAR, *LPTSTR;
typedef LPCSTR LPCTSTR;
#ifndef TEXT
#define TEXT(quote) quote
#endif
#endif

#if defined(__i386__)
#define PRCB_COMPAT_ALIGNED __attribute__((aligned(8)))
#else
#define PRCB_COMPAT_ALIGNED
#endif

typedef union _ULARGE_INTEGER {
    __extension__ struct {
        DWORD LowPart;
        DWORD HighPart;
    };
    struct {
        DWORD LowPart;
        DWORD HighPart;
    } u;
    ULONGLONG QuadPart PRCB_COMPAT_ALIGNED;
} ULARGE_INTEGER, *PULARGE_INTEGER;

typedef struct _LIST_ENTRY {
    struct _LIST_ENTRY *Flink;
    struct _LIST_ENTRY *Blink;
} LIST_ENTRY, *PLIST_ENTRY;

/* ---- shared with prcb/nt.h: whichever comes first ---- */

#ifndef PRCB_NT_LARGE_INTEGER
#define PRCB_NT_LARGE_INTEGER

typedef LONG NTSTATUS;

typedef union _LARGE_INTEGER {
    __extension__ struct {
        DWORD LowPart;
        LONG HighPart;
    };
    struct {
        DWORD LowPart;
        LONG HighPart;
    } u;
    LONGLONG QuadPart PRCB_COMPAT_ALIGNED;
} LARGE_INTEGER, *PLARGE_INTEGER;

#endif

#ifndef PRCB_NT_WINNT_TYPES
#define PRCB_NT_WINNT_TYPES

typedef enum _HARDWARE_COUNTER_TYPE {
    PMCCounter,
    MaxHardwareCounterType
} HARDWARE_COUNTER_TYPE,
    *PHARDWARE_COUNTER_TYPE;

typedef struct _HARDWARE_COUNTER_DATA {
    HARDWARE_COUNTER_TYPE Type;
    DWORD Reserved;
    DWORD64 Value PRCB_COMPAT_ALIGNED;
} HARDWARE_COUNTER_DATA, *PHARDWARE_COUNTER_DATA;

#define MAX_HW_COUNTERS 16

typedef struct _PERFORMANCE_DATA {
    WORD Size;
    BYTE Version;
    BYTE HwCountersCount;
    DWORD ContextSwitchCount;
    DWORD64 WaitReasonBitMap PRCB_COMPAT_ALIGNED;
    DWORD64 CycleTime PRCB_COMPAT_ALIGNED;
    DWORD RetryCount;
    DWORD Reserved;
    HARDWARE_COUNTER_DATA HwCounters[MAX_HW_COUNTERS];
} PERFORMANCE_DATA, *PPERFORMANCE_DATA;

typedef struct _SYSTEM_PROCESSOR_CYCLE_TIME_INFORMATION {
    DWORD64 CycleTime PRCB_COMPAT_ALIGNED;
} SYSTEM_PROCESSOR_CYCLE_TIME_INFORMATION, *PSYSTEM_PROCESSOR_CYCLE_TIME_INFORMATION;

#endif

#ifndef PRCB_NT_PROCESSOR_NUMBER
#define PRCB_NT_PROCESSOR_NUMBER

typedef struct _PROCESSOR_NUMBER {
    WORD Group;
    BYTE Number;
    BYTE Reserved;
} PROCESSOR_NUMBER, *PPROCESSOR_NUMBER;

typedef struct _GROUP_AFFINITY {
    KAFFINITY Mask;
    WORD Group;
    WORD Reserved[3];
} GROUP_AFFINITY, *PGROUP_AFFINITY;

#endif

#define PERFORMANCE_DATA_VERSION                     1
#define READ_THREAD_PROFILING_FLAG_DISPATCHING       0x00000001
#define READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS 0x00000002

/* ---- how processors hang together ---- */

typedef enum _LOGICAL_PROCESSOR_RELATIONSHIP {
    RelationProcessorCore,
    RelationNumaNode,
    RelationCache,
    RelationProcessorPackage,
    RelationGroup,
    RelationAll = 0xffff
} LOGICAL_PROCESSOR_RELATIONSHIP;

#define LTP_PC_SMT 0x1

typedef enum _PROCESSOR_CACHE_TYPE {
    CacheUnified,
    CacheInstruction,
    CacheData,
    CacheTrace
} PROCESSOR_CACHE_TYPE;

typedef struct _PROCESSOR_RELATIONSHIP {
    BYTE Flags;
    BYTE EfficiencyClass;
    BYTE Reserved[20];
    WORD GroupCount;
    GROUP_AFFINITY GroupMask[1]; /* GroupCount of them */
} PROCESSOR_RELATIONSHIP, *PPROCESSOR_RELATIONSHIP;

typedef struct _NUMA_NODE_RELATIONSHIP {
    DWORD NodeNumber;
    BYTE Reserved[18];
    WORD GroupCount;
    GROUP_AFFINITY GroupMask;
} NUMA_NODE_RELATIONSHIP, *PNUMA_NODE_RELATIONSHIP;

typedef struct _CACHE_RELATIONSHIP {
    BYTE Level;
    BYTE Associativity;
    WORD LineSize;
    DWORD CacheSize;
    PROCESSOR_CACHE_TYPE Type;
    BYTE Reserved[18];
    WORD GroupCount;
    GROUP_AFFINITY GroupMask;
} CACHE_RELATIONSHIP, *PCACHE_RELATIONSHIP;

typedef struct _PROCESSOR_GROUP_INFO {
    BYTE MaximumProcessorCount;
    BYTE ActiveProcessorCount;
    BYTE Reserved[38];
    KAFFINITY ActiveProcessorMask;
} PROCESSOR_GROUP_INFO, *PPROCESSOR_GROUP_INFO;

typedef struct _GROUP_RELATIONSHIP {
    WORD MaximumGroupCount;
    WORD ActiveGroupCount;
    BYTE Reserved[20];
    PROCESSOR_GROUP_INFO GroupInfo[1]; /* ActiveGroupCount of them */
} GROUP_RELATIONSHIP, *PGROUP_RELATIONSHIP;

typedef struct _SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX {
    LOGICAL_PROCESSOR_RELATIONSHIP Relationship;
    DWORD Size;
    __extension__ union {
        PROCESSOR_RELATIONSHIP Processor;
        NUMA_NODE_RELATIONSHIP NumaNode;
        CACHE_RELATIONSHIP Cache;
        GROUP_RELATIONSHIP Group;
    };
} SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX, *PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX;

/* As published, but for the names of the union's parts. */
typedef struct _CACHE_DESCRIPTOR {
    BYTE Level;
    BYTE Associativity;
    WORD LineSize;
    DWORD Size;
    PROCESSOR_CACHE_TYPE Type;
} CACHE_DESCRIPTOR, *PCACHE_DESCRIPTOR;

struct prcb_compat_core {
    BYTE Flags;
};
struct prcb_compat_node {
    DWORD NodeNumber;
};

typedef struct _SYSTEM_LOGICAL_PROCESSOR_INFORMATION {
    ULONG_PTR ProcessorMask;
    LOGICAL_PROCESSOR_RELATIONSHIP Relationship;
    __extension__ union {
        struct prcb_compat_core ProcessorCore;
        struct prcb_compat_node NumaNode;
        CACHE_DESCRIPTOR Cache;
        ULONGLONG Reserved[2] PRCB_COMPAT_ALIGNED;
    };
} SYSTEM_LOGICAL_PROCESSOR_INFORMATION, *PSYSTEM_LOGICAL_PROCESSOR_INFORMATION;

typedef enum _CPU_SET_INFORMATION_TYPE { CpuSetInformation } CPU_SET_INFORMATION_TYPE;

struct prcb_compat_cpu_set {
    DWORD Id;
    WORD Group;
    BYTE LogicalProcessorIndex;
    BYTE CoreIndex;
    BYTE LastLevelCacheIndex;
    BYTE NumaNodeIndex;
    BYTE EfficiencyClass;
    BYTE AllFlags;
    __extension__ union {
        DWORD Reserved;
        BYTE SchedulingClass;
    };
    DWORD64 AllocationTag PRCB_COMPAT_ALIGNED;
};

typedef struct _SYSTEM_CPU_SET_INFORMATION {
    DWORD Size; /* leads from one to the next */
    CPU_SET_INFORMATION_TYPE Type;
    __extension__ union {
        struct prcb_compat_cpu_set CpuSet;
    };
} SYSTEM_CPU_SET_INFORMATION, *PSYSTEM_CPU_SET_INFORMATION;

/* ---- the rest ---- */

#define ALL_PROCESSOR_GROUPS           0xffff
#define PROCESSOR_ARCHITECTURE_INTEL   0
#define PROCESSOR_ARCHITECTURE_AMD64   9
#define PROCESSOR_ARCHITECTURE_ARM64   12
#define PROCESSOR_ARCHITECTURE_UNKNOWN 0xffff
#define PROCESSOR_INTEL_PENTIUM        586
#define PROCESSOR_AMD_X8664            8664

/* Those that are answered; as on Windows, PROCESSOR_POWER_INFORMATION is in no header. */
typedef enum {
    ProcessorInformation = 11,
    ProcessorInformationEx = 46
} POWER_INFORMATION_LEVEL,
    *PPOWER_INFORMATION_LEVEL;

#define ANYSIZE_ARRAY 1
#define MINCHAR       0x80
#define MAXCHAR       0x7f
#define MINLONG       0x80000000
#define MAXLONG       0x7fffffff
#define MAXBYTE       0xff
#define MAXWORD       0xffff
#define MAXDWORD      0xffffffff

#define THREAD_TERMINATE                 0x0001
#define THREAD_SUSPEND_RESUME            0x0002
#define THREAD_GET_CONTEXT               0x0008
#define THREAD_SET_CONTEXT               0x0010
#define THREAD_QUERY_INFORMATION         0x0040
#define THREAD_SET_INFORMATION           0x0020
#define THREAD_SET_LIMITED_INFORMATION   0x0400
#define THREAD_QUERY_LIMITED_INFORMATION 0x0800
#define STANDARD_RIGHTS_REQUIRED         0x000F0000
#define SYNCHRONIZE                      0x00100000
#define THREAD_ALL_ACCESS                (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | 0xFFFF)
#define DUPLICATE_CLOSE_SOURCE           0x00000001
#define DUPLICATE_SAME_ACCESS            0x00000002

/* A program that wants all of them says WIN32_NO_STATUS here and includes ntstatus.h. */
#ifndef WIN32_NO_STATUS
#define STATUS_WAIT_0           ((DWORD)0x00000000)
#define STATUS_ABANDONED_WAIT_0 ((DWORD)0x00000080)
#define STATUS_TIMEOUT          ((DWORD)0x00000102)
#define STATUS_PENDING          ((DWORD)0x00000103)
#ifndef STATUS_DATATYPE_MISALIGNMENT
#define STATUS_DATATYPE_MISALIGNMENT ((DWORD)0x80000002)
#endif
#ifndef STATUS_ACCESS_VIOLATION
#define STATUS_ACCESS_VIOLATION ((DWORD)0xC0000005)
#endif
#ifndef STATUS_INVALID_HANDLE
#define STATUS_INVALID_HANDLE ((DWORD)0xC0000008)
#endif
#ifndef STATUS_INVALID_PARAMETER
#define STATUS_INVALID_PARAMETER ((DWORD)0xC000000D)
#endif
#ifndef STATUS_NO_MEMORY
#define STATUS_NO_MEMORY ((DWORD)0xC0000017)
#endif
#endif

#ifdef __cplusplus
#define EXTERN_C       extern "C"
#define EXTERN_C_START extern "C" {
#define EXTERN_C_END   }
#else
#define EXTERN_C extern
#define EXTERN_C_START
#define EXTERN_C_END
#endif

#define DECLSPEC_IMPORT
#define DECLSPEC_NORETURN    __attribute__((noreturn))
#define DECLSPEC_ALIGN(size) __attribute__((aligned(size)))
#define DECLSPEC_CACHEALIGN  DECLSPEC_ALIGN(64)
#define FORCEINLINE          static __forceinline
#define NTSYSAPI
#define NTSYSCALLAPI

#define UNREFERENCED_PARAMETER(name)     ((void)(name))
#define DBG_UNREFERENCED_PARAMETER(name) ((void)(name))
#define FIELD_OFFSET(type, field)        ((LONG)offsetof(type, field))
#define RTL_FIELD_SIZE(type, field)      (sizeof(((type *)0)->field))
#define CONTAINING_RECORD(address, type, field)                                                    \
    ((type *)((PCHAR)(address) - (ULONG_PTR)offsetof(type, field)))
#define ARRAYSIZE(array)     (sizeof(array) / sizeof((array)[0]))
#define RTL_NUMBER_OF(array) ARRAYSIZE(array)
#ifdef __cplusplus
#define C_ASSERT(condition) static_assert(condition, #condition)
#else
#define C_ASSERT(condition) _Static_assert(condition, #condition)
#endif

#define RtlEqualMemory(a, b, length)      (!memcmp((a), (b), (length)))
#define RtlMoveMemory(to, from, length)   memmove((to), (from), (length))
#define RtlCopyMemory(to, from, length)   memcpy((to), (from), (length))
#define RtlFillMemory(to, length, filler) memset((to), (filler), (length))
#define RtlZeroMemory(to, length)         memset((to), 0, (length))

#define MemoryBarrier() __sync_synchronize()
#if defined(__x86_64__) || defined(__i386__)
#define YieldProcessor()       __builtin_ia32_pause()
#define ReadTimeStampCounter() __builtin_ia32_rdtsc()
#elif defined(__aarch64__)
#define YieldProcessor() __asm__ volatile("yield")
#endif

#endif
