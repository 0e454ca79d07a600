/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A program as it is written for Windows, by the public pages of the calls: it knows
 * nothing of Linux or prcb. Compiled unchanged as a test. */
#include <stdio.h>
#include <windows.h>

/* From the driver kit, copied in as such programs do. */
typedef struct _HARDWARE_COUNTER {
    HARDWARE_COUNTER_TYPE Type;
    ULONG Reserved;
    ULONG64 Index;
} HARDWARE_COUNTER, *PHARDWARE_COUNTER;

typedef NTSTATUS KeSetHardwareCounterConfiguration(PHARDWARE_COUNTER CounterArray, ULONG Count);

static void Print(const PERFORMANCE_DATA *Data)
{
    int i;

    printf("ContextSwitchCount %u WaitReasonBitMap 0x%llx CycleTime %llu RetryCount %u\n",
           Data->ContextSwitchCount, Data->WaitReasonBitMap, Data->CycleTime, Data->RetryCount);
    printf("HwCountersCount %u\n", Data->HwCountersCount);
    for (i = 0; i < MAX_HW_COUNTERS; i++) {
        if (Data->HwCounters[i].Value)
            printf("HwCounters[%d] type %d value %llu\n", i, Data->HwCounters[i].Type,
                   Data->HwCounters[i].Value);
    }
}

int main(void)
{
    HARDWARE_COUNTER Counters[2];
    KeSetHardwareCounterConfiguration *SetConfiguration;
    PERFORMANCE_DATA Data;
    HANDLE Profile = NULL;
    BOOLEAN Enabled = FALSE;
    HMODULE Kernel;
    NTSTATUS Status;
    DWORD Error;

    ZeroMemory(Counters, sizeof(Counters));
    Counters[0].Type = PMCCounter;
    Counters[0].Index = 0; /* ProfileTime */
    Counters[1].Type = PMCCounter;
    Counters[1].Index = 2; /* ProfileTotalIssues */

    Kernel = LoadLibrary("NtosKrnl.exe");
    if (!Kernel) {
        printf("LoadLibrary: %u\n", GetLastError());
        return 1;
    }
    SetConfiguration = (KeSetHardwareCounterConfiguration *)GetProcAddress(
        Kernel, "KeSetHardwareCounterConfiguration");
    if (!SetConfiguration) {
        printf("GetProcAddress: %u\n", GetLastError());
        return 1;
    }
    Status = SetConfiguration(Counters, 2);
    if (Status != 0) {
        printf("KeSetHardwareCounterConfiguration: 0x%08x\n", (unsigned)Status);
        return 1;
    }

    Error =
        EnableThreadProfiling(GetCurrentThread(), THREAD_PROFILING_FLAG_DISPATCH, 0x3, &Profile);
    if (Error != ERROR_SUCCESS) {
        printf("EnableThreadProfiling: %u\n", Error);
        return 1;
    }
    Error = QueryThreadProfiling(GetCurrentThread(), &Enabled);
    printf("QueryThreadProfiling: %u, %d\n", Error, Enabled);

    Sleep(10);

    ZeroMemory(&Data, sizeof(Data));
    Data.Size = sizeof(Data);
    Data.Version = PERFORMANCE_DATA_VERSION;
    Error = ReadThreadProfilingData(Profile,
                                    READ_THREAD_PROFILING_FLAG_DISPATCHING |
                                        READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS,
                                    &Data);
    if (Error != ERROR_SUCCESS) {
        printf("ReadThreadProfilingData: %u\n", Error);
        return 1;
    }
    Print(&Data);

    Error = DisableThreadProfiling(Profile);
    printf("DisableThreadProfiling: %u\n", Error);
    return Error == ERROR_SUCCESS ? 0 : 1;
}
