// SPDX-License-Identifier: BSD-2-Clause
// A C++ program as it is written for Windows: the usual mix of types, {} initialisers,
// overloads, casts. Compiled unchanged as a test.
#include <stdio.h>
#include <windows.h>
#include <algorithm>
#include <string>
#include <vector>

typedef struct _HARDWARE_COUNTER {
    HARDWARE_COUNTER_TYPE Type;
    ULONG Reserved;
    ULONG64 Index;
} HARDWARE_COUNTER, *PHARDWARE_COUNTER;

typedef NTSTATUS(NTAPI *KeSetHardwareCounterConfiguration)(_In_ PHARDWARE_COUNTER CounterArray,
                                                           _In_ ULONG Count);

struct PerfTest {
    PERFORMANCE_DATA Before, After;
    BOOL Valid;
};

static void Show(char const *Name, DWORD Value)
{
    printf("%s %u\n", Name, Value);
}
static void Show(char const *Name, ULONG64 Value)
{
    printf("%s %llu\n", Name, Value);
}
static void Show(char const *Name, int Value)
{
    printf("%s %d\n", Name, Value);
}

static BOOL ReadPerf(HANDLE Handle, PERFORMANCE_DATA *Result)
{
    PERFORMANCE_DATA Data = {sizeof(Data), PERFORMANCE_DATA_VERSION};
    BOOL Good = ReadThreadProfilingData(Handle,
                                        READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS |
                                            READ_THREAD_PROFILING_FLAG_DISPATCHING,
                                        &Data) == ERROR_SUCCESS;
    *Result = Data;
    return Good;
}

static DWORD CALLBACK Worker(void *Parameter)
{
    HANDLE PerfHandle{};
    PerfTest *Test{static_cast<PerfTest *>(Parameter)};
    if (EnableThreadProfiling(GetCurrentThread(), THREAD_PROFILING_FLAG_DISPATCH, 1ull | (1 << 2),
                              &PerfHandle) != 0)
        return 1;
    Test->Valid = ReadPerf(PerfHandle, &Test->Before);
    std::vector<ULONG64> Work(5000000);
    for (ULONG64 &At : Work)
        At = GetTickCount64();
    for (int i{}; i < 4; ++i)
        Sleep(1);
    Test->Valid = Test->Valid && ReadPerf(PerfHandle, &Test->After);
    return DisableThreadProfiling(PerfHandle);
}

int main()
{
    HARDWARE_COUNTER Config[] = {
        {PMCCounter, 0, 0},
        {PMCCounter, 0, 19},
        {PMCCounter, 0, 0x10002},
    };
    HMODULE Kernel = LoadLibraryW(L"ntoskrnl.exe");
    auto KeSet = reinterpret_cast<KeSetHardwareCounterConfiguration>(
        GetProcAddress(Kernel, "KeSetHardwareCounterConfiguration"));
    if (KeSet == nullptr || KeSet(Config, ARRAYSIZE(Config)) != 0) {
        fprintf(stderr, "ERROR: configuration, %u\n", GetLastError());
        return 1;
    }

    PerfTest Test{};
    DWORD ThreadId{}, ExitCode{};
    HANDLE Thread = CreateThread(nullptr, 0, Worker, &Test, 0, &ThreadId);
    if (WaitForSingleObject(Thread, INFINITE) != WAIT_OBJECT_0 ||
        !GetExitCodeThread(Thread, &ExitCode) || ExitCode != 0) {
        fprintf(stderr, "ERROR: thread, %u\n", ExitCode);
        return 1;
    }
    CloseHandle(Thread);

    PERFORMANCE_DATA const &Before{Test.Before}, &After{Test.After};
    Show("valid", Test.Valid);
    Show("switches", After.ContextSwitchCount - Before.ContextSwitchCount);
    Show("reasons", After.WaitReasonBitMap);
    Show("cycles", After.CycleTime - Before.CycleTime);
    Show("counters", DWORD{After.HwCountersCount});
    Show("time", After.HwCounters[0].Value - Before.HwCounters[0].Value);
    Show("not asked for", After.HwCounters[1].Value);
    Show("faults", After.HwCounters[2].Value - Before.HwCounters[2].Value);
    Show("retries", std::max(Before.RetryCount, After.RetryCount));
    std::string const Name{"done"};
    printf("%s\n", Name.c_str());
    return Test.Valid ? 0 : 1;
}
