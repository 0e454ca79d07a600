/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Processor times as programs for Windows work them out, C and C++ alike: the arithmetic of a
 * library for scripts, of an event library and of a process viewer. It knows nothing of Linux.
 * Each line of input is a moment: it prints what each of the three makes of it, then "done".
 */
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>
#include <winternl.h>
#include <intrin.h>

/* The whole structure, as programs bring it along: winternl.h keeps the tail to itself. */
typedef struct _PROCESSOR_TIMES {
    LARGE_INTEGER IdleTime;
    LARGE_INTEGER KernelTime;
    LARGE_INTEGER UserTime;
    LARGE_INTEGER DpcTime;
    LARGE_INTEGER InterruptTime;
    ULONG InterruptCount;
} PROCESSOR_TIMES;

typedef struct _INTERRUPT_COUNTS {
    ULONG ContextSwitches;
    ULONG DpcCount;
    ULONG DpcRate;
    ULONG TimeIncrement;
    ULONG DpcBypassCount;
    ULONG ApcBypassCount;
} INTERRUPT_COUNTS;

#define IDLE_CYCLES ((SYSTEM_INFORMATION_CLASS)0x53)
#define LIMIT       64

typedef NTSTATUS(NTAPI *QUERY)(SYSTEM_INFORMATION_CLASS, PVOID, ULONG, PULONG);
typedef NTSTATUS(NTAPI *QUERY_EX)(SYSTEM_INFORMATION_CLASS, PVOID, ULONG, PVOID, ULONG, PULONG);

static QUERY Query;
static QUERY_EX QueryEx;

static void Fail(const char *What, NTSTATUS Status)
{
    printf("failed: %s: 0x%08x\n", What, (unsigned)Status);
    exit(1);
}

/* For scripts: seconds since the start, kernel time less idle time is system time. It asks for all
 * processors of all groups at once, and gets those of one. */
static void ForScripts(void)
{
    DWORD Count = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS), Interrupts = 0, Dpcs = 0, i;
    PROCESSOR_TIMES *Times = (PROCESSOR_TIMES *)calloc(Count, sizeof(PROCESSOR_TIMES));
    INTERRUPT_COUNTS *Counts = (INTERRUPT_COUNTS *)calloc(Count, sizeof(INTERRUPT_COUNTS));
    ULONG Size = 0;
    NTSTATUS Status = Query(SystemProcessorPerformanceInformation, Times,
                            (ULONG)(Count * sizeof(PROCESSOR_TIMES)), &Size);

    if (!NT_SUCCESS(Status))
        Fail("times", Status);
    for (i = 0; i < Size / sizeof(PROCESSOR_TIMES); i++) {
        double User = (double)Times[i].UserTime.QuadPart / 1e7;
        double Idle = (double)Times[i].IdleTime.QuadPart / 1e7;
        double Kernel = (double)Times[i].KernelTime.QuadPart / 1e7;
        double Interrupt = (double)Times[i].InterruptTime.QuadPart / 1e7;
        double Dpc = (double)Times[i].DpcTime.QuadPart / 1e7;

        printf("scripts %u %.7f %.7f %.7f %.7f %.7f\n", i, User, Kernel - Idle, Idle, Interrupt,
               Dpc);
        Interrupts += Times[i].InterruptCount;
    }
    Status =
        Query(SystemInterruptInformation, Counts, (ULONG)(Count * sizeof(INTERRUPT_COUNTS)), &Size);
    if (!NT_SUCCESS(Status))
        Fail("interrupts", Status);
    for (i = 0; i < Count; i++)
        Dpcs += Counts[i].DpcCount;
    printf("counts %u %u\n", Interrupts, Dpcs);
    free(Counts);
    free(Times);
}

/* An event library: whole milliseconds, a buffer for as many as GetSystemInfo says. */
static void ForEvents(void)
{
    PROCESSOR_TIMES *Times;
    SYSTEM_INFO System;
    ULONG Size, Got = 0, i;
    NTSTATUS Status;

    GetSystemInfo(&System);
    Size = (ULONG)(System.dwNumberOfProcessors * sizeof(PROCESSOR_TIMES));
    Times = (PROCESSOR_TIMES *)malloc(Size);
    Status = Query(SystemProcessorPerformanceInformation, Times, Size, &Got);
    if (!NT_SUCCESS(Status) || Got != Size)
        Fail("times of the group", Status);
    for (i = 0; i < System.dwNumberOfProcessors; i++)
        printf("events %u %llu %llu %llu %llu\n", i, (ULONGLONG)Times[i].UserTime.QuadPart / 10000,
               (ULONGLONG)(Times[i].KernelTime.QuadPart - Times[i].IdleTime.QuadPart) / 10000,
               (ULONGLONG)Times[i].IdleTime.QuadPart / 10000,
               (ULONGLONG)Times[i].InterruptTime.QuadPart / 10000);
    free(Times);
}

/* A process viewer: group by group, shares of what passed since the last moment. */
static void ForViewer(void)
{
    static PROCESSOR_TIMES Before[4][LIMIT];
    static BOOL Known;
    USHORT Group;

    for (Group = 0; Group < GetActiveProcessorGroupCount() && Group < 4; Group++) {
        PROCESSOR_TIMES Times[LIMIT];
        ULONG Size = 0, i;
        NTSTATUS Status = QueryEx(SystemProcessorPerformanceInformation, &Group, sizeof(Group),
                                  Times, sizeof(Times), &Size);

        if (!NT_SUCCESS(Status))
            Fail("times by group", Status);
        for (i = 0; i < Size / sizeof(PROCESSOR_TIMES); i++) {
            PROCESSOR_TIMES *Last = &Before[Group][i];
            LONGLONG Idle = Times[i].IdleTime.QuadPart - Last->IdleTime.QuadPart;
            LONGLONG User = Times[i].UserTime.QuadPart - Last->UserTime.QuadPart;
            LONGLONG Kernel = Times[i].KernelTime.QuadPart - Last->KernelTime.QuadPart - Idle;
            double All = (double)(Kernel + User + Idle);

            if (Known && All > 0)
                printf("viewer %u %u %.4f %.4f\n", Group, i, 100.0 * (double)Kernel / All,
                       100.0 * (double)User / All);
            *Last = Times[i];
        }
    }
    Known = TRUE;
}

/* And by cycles: what was not idle of all that passed. */
static void ByCycles(void)
{
#if defined(__x86_64__) || defined(__i386__)
    static ULONG64 Before[LIMIT], Then;
    ULONG64 Idle[LIMIT], Now;
    ULONG Size = 0, i;
    NTSTATUS Status = Query(IDLE_CYCLES, Idle, sizeof(Idle), &Size);

    if (!NT_SUCCESS(Status))
        Fail("idle cycles", Status);
    Now = __rdtsc();
    for (i = 0; i < Size / sizeof(Idle[0]); i++) {
        if (Then)
            printf("cycles %u %.4f\n", i,
                   100.0 * (1 - (double)(Idle[i] - Before[i]) / (double)(Now - Then)));
        Before[i] = Idle[i];
    }
    Then = Now;
#endif
}

int main(void)
{
    HMODULE Module = GetModuleHandleA("ntdll.dll");
    char Line[16];

    Query = (QUERY)GetProcAddress(Module, "NtQuerySystemInformation");
    QueryEx = (QUERY_EX)GetProcAddress(Module, "NtQuerySystemInformationEx");
    if (!Query || !QueryEx)
        return 1;
    while (fgets(Line, sizeof(Line), stdin)) {
        ForScripts();
        ForEvents();
        ForViewer();
        ByCycles();
        printf("done\n");
        fflush(stdout);
    }
    return 0;
}
