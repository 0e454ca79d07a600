/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Offsets and sizes of NT's structures as asserts, for whichever header came before:
 * windows.h (with DRIVER_TYPES unset) or prcb/nt.h. C and C++, 32 and 64 bits.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define CHECK(condition) static_assert(condition, #condition)
#else
#define CHECK(condition) _Static_assert(condition, #condition)
#endif
#define SIZE(type, size)         CHECK(sizeof(type) == (size))
#define AT(type, member, offset) CHECK(offsetof(type, member) == (offset))
#define POINTER(wide, narrow)    (sizeof(void *) == 8 ? (wide) : (narrow))

SIZE(HARDWARE_COUNTER_TYPE, 4);
SIZE(NTSTATUS, 4);
CHECK(PMCCounter == 0 && MaxHardwareCounterType == 1);
CHECK(MAX_HW_COUNTERS == 0x10);
CHECK(PERFORMANCE_DATA_VERSION == 1);
CHECK(THREAD_PROFILING_FLAG_DISPATCH == 0x1);
CHECK(READ_THREAD_PROFILING_FLAG_DISPATCHING == 0x1);
CHECK(READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS == 0x2);

SIZE(PERFORMANCE_DATA, 0x120);
AT(PERFORMANCE_DATA, Size, 0x00);
AT(PERFORMANCE_DATA, Version, 0x02);
AT(PERFORMANCE_DATA, HwCountersCount, 0x03);
AT(PERFORMANCE_DATA, ContextSwitchCount, 0x04);
AT(PERFORMANCE_DATA, WaitReasonBitMap, 0x08);
AT(PERFORMANCE_DATA, CycleTime, 0x10);
AT(PERFORMANCE_DATA, RetryCount, 0x18);
AT(PERFORMANCE_DATA, Reserved, 0x1c);
AT(PERFORMANCE_DATA, HwCounters, 0x20);
CHECK(sizeof(((PERFORMANCE_DATA *)0)->Size) == 2);
CHECK(sizeof(((PERFORMANCE_DATA *)0)->Version) == 1);
CHECK(sizeof(((PERFORMANCE_DATA *)0)->HwCountersCount) == 1);
CHECK(sizeof(((PERFORMANCE_DATA *)0)->WaitReasonBitMap) == 8);
CHECK(sizeof(((PERFORMANCE_DATA *)0)->HwCounters) == 16 * 0x10);

SIZE(HARDWARE_COUNTER_DATA, 0x10);
AT(HARDWARE_COUNTER_DATA, Type, 0x00);
AT(HARDWARE_COUNTER_DATA, Reserved, 0x04);
AT(HARDWARE_COUNTER_DATA, Value, 0x08);

SIZE(PROCESSOR_NUMBER, 4);
SIZE(GROUP_AFFINITY, POINTER(0x10, 0x0c));
AT(GROUP_AFFINITY, Group, POINTER(0x8, 0x4));

#ifdef PRCB_NT_H /* driver and private headers */
CHECK(THREAD_PROFILING_FLAG_HARDWARE_COUNTERS == 0x2);
CHECK(THREAD_PERFORMANCE_DATA_VERSION == 1);

SIZE(HARDWARE_COUNTER, 0x10);
AT(HARDWARE_COUNTER, Type, 0x00);
AT(HARDWARE_COUNTER, Reserved, 0x04);
AT(HARDWARE_COUNTER, Index, 0x08);

SIZE(COUNTER_READING, 0x18);
AT(COUNTER_READING, Type, 0x00);
AT(COUNTER_READING, Index, 0x04);
AT(COUNTER_READING, Start, 0x08);
AT(COUNTER_READING, Total, 0x10);

SIZE(THREAD_PERFORMANCE_DATA, 0x1c0);
AT(THREAD_PERFORMANCE_DATA, Size, 0x00);
AT(THREAD_PERFORMANCE_DATA, Version, 0x02);
CHECK(sizeof(((THREAD_PERFORMANCE_DATA *)0)->Version) == 2);
AT(THREAD_PERFORMANCE_DATA, ProcessorNumber, 0x04);
AT(THREAD_PERFORMANCE_DATA, ContextSwitches, 0x08);
AT(THREAD_PERFORMANCE_DATA, HwCountersCount, 0x0c);
AT(THREAD_PERFORMANCE_DATA, UpdateCount, 0x10);
AT(THREAD_PERFORMANCE_DATA, WaitReasonBitMap, 0x18);
AT(THREAD_PERFORMANCE_DATA, HardwareCounters, 0x20);
AT(THREAD_PERFORMANCE_DATA, CycleTime, 0x28);
AT(THREAD_PERFORMANCE_DATA, HwCounters, 0x40);

SIZE(THREAD_PROFILING_INFORMATION, 0x18);
AT(THREAD_PROFILING_INFORMATION, HardwareCounters, 0x00);
AT(THREAD_PROFILING_INFORMATION, Flags, 0x08);
AT(THREAD_PROFILING_INFORMATION, Enable, 0x0c);
AT(THREAD_PROFILING_INFORMATION, PerformanceData, 0x10);

SIZE(KTHREAD_COUNTERS, 0x1a8);
AT(KTHREAD_COUNTERS, WaitReasonBitMap, 0x00);
AT(KTHREAD_COUNTERS, UserData, 0x08);
AT(KTHREAD_COUNTERS, Flags, POINTER(0x10, 0x0c));
AT(KTHREAD_COUNTERS, ContextSwitches, POINTER(0x14, 0x10));
AT(KTHREAD_COUNTERS, CycleTimeBias, 0x18);
AT(KTHREAD_COUNTERS, HardwareCounters, 0x20);
AT(KTHREAD_COUNTERS, HwCounter, 0x28);
#endif

#ifdef PRCB_COMPAT_WINNT_H
SIZE(BOOL, 4);
SIZE(BOOLEAN, 1);
SIZE(WORD, 2);
SIZE(DWORD, 4);
SIZE(LONG, 4);
SIZE(ULONG, 4);
SIZE(DWORD64, 8);
SIZE(ULONG64, 8);
SIZE(LONGLONG, 8);
SIZE(HANDLE, sizeof(void *));
SIZE(SIZE_T, sizeof(void *));
SIZE(ULONG_PTR, sizeof(void *));
SIZE(LARGE_INTEGER, 8);
SIZE(FILETIME, 8);
CHECK((DWORD)-1 > 0 && (ULONG64)-1 > 0 && (LONG)-1 < 0);
#ifdef __cplusplus
template <typename a, typename b> struct same {
    enum { value = 0 };
};
template <typename a> struct same<a, a> {
    enum { value = 1 };
};
CHECK((same<DWORD64, unsigned long long>::value));
CHECK((same<ULONG64, unsigned long long>::value));
CHECK((same<LONGLONG, long long>::value));
#else
CHECK(_Generic((DWORD64)0, unsigned long long : 1, default : 0));
CHECK(_Generic((LONG64)0, long long : 1, default : 0));
#endif
#endif
