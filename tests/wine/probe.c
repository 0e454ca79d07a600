/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A Windows program, built by mingw, that knows nothing of Linux or prcb but for PrcbThreadId, by
 * which the test finds its threads. Does what its first argument says and prints "name value"
 * lines.
 */
#include <windows.h>
#include <winternl.h>

#include <stdio.h>
#include <string.h>

typedef LONG(WINAPI *query)(ULONG, PVOID, ULONG, PULONG);
typedef LONG(WINAPI *query_ex)(ULONG, PVOID, ULONG, PVOID, ULONG, PULONG);
typedef LONG(WINAPI *power)(ULONG, PVOID, ULONG, PVOID, ULONG);
typedef LONG(WINAPI *query_object)(HANDLE, ULONG, PVOID, ULONG, PULONG);
typedef DWORD(WINAPI *thread_number)(DWORD);

typedef struct {
    ULONG Type, Reserved;
    ULONG64 Index;
} COUNTER;
typedef LONG(WINAPI *set_counters)(COUNTER *, ULONG);

static FARPROC Find(const char *Module, const char *Name)
{
    HMODULE Handle = LoadLibraryA(Module);
    FARPROC Function = Handle ? GetProcAddress(Handle, Name) : NULL;

    if (!Function) {
        printf("missing %s %s\n", Module, Name);
        ExitProcess(1);
    }
    return Function;
}

static void Say(const char *Name, unsigned long long Value)
{
    printf("%s %llu\n", Name, Value);
    fflush(stdout);
}

static DWORD LinuxId(DWORD Thread)
{
    return ((thread_number)Find("prcb-nt.dll", "PrcbThreadId"))(Thread);
}

static BOOL Read(HANDLE Profile, DWORD Flags, PERFORMANCE_DATA *Data)
{
    DWORD Code;

    memset(Data, 0, sizeof(*Data));
    Data->Size = sizeof(*Data);
    Data->Version = PERFORMANCE_DATA_VERSION;
    Code = ReadThreadProfilingData(Profile, Flags, Data);
    if (Code)
        Say("read", Code);
    return !Code;
}

static void Spin(unsigned Milliseconds)
{
    ULONGLONG End = GetTickCount64() + Milliseconds;

    while (GetTickCount64() < End)
        ;
}

/* Waits for a line twice: between the two lies what is compared with others' counts. */
static int Profile(void)
{
    PERFORMANCE_DATA Before, After;
    HANDLE Handle = NULL;
    BOOLEAN Enabled = FALSE;
    char Line[16];
    unsigned i;

    Say("enable",
        EnableThreadProfiling(GetCurrentThread(), THREAD_PROFILING_FLAG_DISPATCH, 0, &Handle));
    QueryThreadProfiling(GetCurrentThread(), &Enabled);
    Say("enabled", Enabled);
    Say("tid", LinuxId(GetCurrentThreadId()));
    if (!fgets(Line, sizeof(Line), stdin))
        return 1;
    Read(Handle, READ_THREAD_PROFILING_FLAG_DISPATCHING, &Before);
    for (i = 0; i < 50; i++)
        Sleep(2);
    Spin(200);
    Read(Handle, READ_THREAD_PROFILING_FLAG_DISPATCHING, &After);
    Say("switches", After.ContextSwitchCount - Before.ContextSwitchCount);
    Say("cycles", After.CycleTime - Before.CycleTime);
    Say("reasons", After.WaitReasonBitMap);
    if (!fgets(Line, sizeof(Line), stdin))
        return 1;
    Say("disable", DisableThreadProfiling(Handle));
    Say("twice", DisableThreadProfiling(Handle));
    Say("bad", EnableThreadProfiling(GetCurrentThread(), 0x80, 0, &Handle));
    Say("pointer", EnableThreadProfiling(GetCurrentThread(), 1, 0, (HANDLE *)64));
    return 0;
}

/* Events that count everywhere: page faults. */
static int Counters(void)
{
    set_counters Set = (set_counters)Find("ntoskrnl.exe", "KeSetHardwareCounterConfiguration");
    COUNTER Faults = {0, 0, 0x10002};
    PERFORMANCE_DATA Data;
    HANDLE Handle = NULL;
    LONG Status = Set(&Faults, 1);
    char *Memory;
    unsigned i;

    Say("configured", (ULONG)Status);
    if (Status)
        return 0;
    Say("enable", EnableThreadProfiling(GetCurrentThread(), 0, 1, &Handle));
    Memory = VirtualAlloc(NULL, 400 * 4096, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
    for (i = 0; i < 400; i++)
        Memory[i * 4096] = 1;
    Read(Handle, READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS, &Data);
    Say("counters", Data.HwCountersCount);
    Say("faults", Data.HwCounters[0].Value);
    return 0;
}

static HANDLE Begun, Done;

static DWORD WINAPI Worker(LPVOID Enable)
{
    HANDLE Handle;

    if (Enable)
        EnableThreadProfiling(GetCurrentThread(), 1, 0, &Handle);
    Spin(50);
    SetEvent(Begun);
    WaitForSingleObject(Done, INFINITE);
    return 7;
}

/* Other threads of the process, by their handles. */
static int Threads(void)
{
    BOOLEAN First = 9, Second = 9;
    ULONG64 Cycles = 0, Whole = 0;
    DWORD Ids[2], i;
    HANDLE Handles[2], Handle;

    Begun = CreateEventA(NULL, FALSE, FALSE, NULL);
    Done = CreateEventA(NULL, TRUE, FALSE, NULL);
    for (i = 0; i < 2; i++) {
        Handles[i] = CreateThread(NULL, 0, Worker, i ? &Ids : NULL, 0, &Ids[i]);
        WaitForSingleObject(Begun, INFINITE);
    }
    Say("own", LinuxId(GetCurrentThreadId()));
    Say("first", LinuxId(Ids[0]));
    Say("second", LinuxId(Ids[1]));
    Say("nobody", LinuxId(4000000));
    QueryThreadProfiling(Handles[0], &First);
    QueryThreadProfiling(Handles[1], &Second);
    Say("first_enabled", First);
    Say("second_enabled", Second);
    Say("another", EnableThreadProfiling(Handles[0], 1, 0, &Handle));
    Say("no_handle", QueryThreadProfiling((HANDLE)(ULONG_PTR)0x7770, &First));
    Say("cycles_told", QueryThreadCycleTime(Handles[0], &Cycles));
    Say("cycles", Cycles);
    Say("process_told", QueryProcessCycleTime(GetCurrentProcess(), &Whole));
    Say("process", Whole);
    SetEvent(Done);
    WaitForMultipleObjects(2, Handles, TRUE, INFINITE);
    Say("ended", LinuxId(Ids[0]));
    return 0;
}

/* The end of a thread in the middle of its calls leaves the others theirs. */
static volatile LONG Calls;

static DWORD WINAPI Asker(LPVOID Unused)
{
    for (;;) {
        LARGE_INTEGER Times[6 * 64];
        ULONG64 Cycles;
        BOOLEAN Enabled;
        ULONG Length;

        QueryThreadProfiling(GetCurrentThread(), &Enabled);
        QueryThreadCycleTime(GetCurrentThread(), &Cycles);
        NtQuerySystemInformation(SystemProcessorPerformanceInformation, Times, sizeof(Times),
                                 &Length);
        InterlockedIncrement(&Calls);
    }
    return 0;
}

static int Ends(void)
{
    unsigned i, Stopped = 0;

    for (i = 0; i < 100; i++) {
        HANDLE Thread = CreateThread(NULL, 0, Asker, NULL, 0, NULL);
        LONG Then = Calls;
        ULONG64 Cycles;
        BOOLEAN Enabled;

        while (Calls < Then + 3)
            Sleep(0);
        SuspendThread(Thread); /* its lock, if it were held, would be waited for here */
        Stopped += QueryThreadProfiling(GetCurrentThread(), &Enabled) == 0 &&
                   QueryThreadCycleTime(GetCurrentThread(), &Cycles);
        ResumeThread(Thread);
        TerminateThread(Thread, 1);
        WaitForSingleObject(Thread, INFINITE);
        Stopped += QueryThreadProfiling(GetCurrentThread(), &Enabled) == 0;
        CloseHandle(Thread);
    }
    Say("stopped", Stopped);
    return 0;
}

static unsigned long long Units(FILETIME Time)
{
    return ((unsigned long long)Time.dwHighDateTime << 32) | Time.dwLowDateTime;
}

/* The processors: times of one moment, then again after each line of input. */
static int Processors(void)
{
    query Query = (query)Find("ntdll.dll", "NtQuerySystemInformation");
    query_ex QueryEx = (query_ex)Find("ntdll.dll", "NtQuerySystemInformationEx");
    char Line[16];

    do {
        LARGE_INTEGER Times[6 * 64], Again[6 * 64];
        unsigned long long Sum[6] = {0};
        FILETIME Idle, Kernel, User;
        ULONG Length = 0, i, j;
        USHORT Group = 0;

        Say("status", (ULONG)Query(8, Times, sizeof(Times), &Length));
        Say("processors", Length / 0x30);
        GetSystemTimes(&Idle, &Kernel, &User);
        Say("ex", (ULONG)QueryEx(8, &Group, sizeof(Group), Again, sizeof(Again), &Length));
        for (i = 0; i < Length / 0x30; i++) {
            for (j = 0; j < 5; j++)
                Sum[j] += Times[i * 6 + j].QuadPart;
            Sum[5] += Times[i * 6 + 5].LowPart;
        }
        Say("idle", Sum[0]);
        Say("kernel", Sum[1]);
        Say("user", Sum[2]);
        Say("dpc", Sum[3]);
        Say("interrupt", Sum[4]);
        Say("interrupts", Sum[5]);
        Say("system_idle", Units(Idle));
        Say("system_kernel", Units(Kernel));
        Say("system_user", Units(User));
        printf("done\n");
        fflush(stdout);
    } while (fgets(Line, sizeof(Line), stdin));
    return 0;
}

/* Classes that Wine has not, that it has, and lengths. */
static int Classes(void)
{
    query Query = (query)Find("ntdll.dll", "ZwQuerySystemInformation");
    query Direct = (query)Find("prcb-nt.dll", "NtQuerySystemInformation");
    query Native = (query)Find("ntdll.dll", "RtlGetNativeSystemInformation");
    query_object Thread = (query_object)Find("ntdll.dll", "NtQueryInformationThread");
    power Power = (power)Find("ntdll.dll", "NtPowerInformation");
    ULONG64 Buffer[1024], Idle[64];
    ULONG Length = 0, Size = sizeof(Idle), First, i;

    Say("native_2a", (ULONG)Native(0x2a, Buffer, sizeof(Buffer), &Length));
    Say("native_8d", (ULONG)Native(0x8d, Buffer, 64 * 0x48, &Length));
    Say("native_0", (ULONG)Native(0, Buffer, 0x40, &Length)); /* Wine's own */
    Say("class_2a", (ULONG)Query(0x2a, Buffer, sizeof(Buffer), &Length));
    Say("class_53", (ULONG)Query(0x53, Buffer, sizeof(Buffer), &Length));
    Say("class_6c", (ULONG)Query(0x6c, Buffer, sizeof(Buffer), &Length));
    Say("class_8d", (ULONG)Query(0x8d, Buffer, 64 * 0x48, &Length));
    Say("processors", Length / 0x48);
    Say("class_8_odd", (ULONG)Query(8, Buffer, 0x31, &Length));
    Say("class_8_pointer", (ULONG)Query(8, (PVOID)64, 0x30, &Length));
    Say("class_0", (ULONG)Query(0, Buffer, 0x40, &Length)); /* Wine's own */
    Say("class_none", (ULONG)Query(0x7777, Buffer, 0x40, &Length));
    /* Wine's random numbers stay what they are; here they would be counts. */
    Query(0x17, Buffer, sizeof(Buffer), &Length);
    First = *(ULONG *)Buffer;
    for (i = 0; i < 8 && *(ULONG *)Buffer == First; i++)
        Query(0x17, Buffer, sizeof(Buffer), &Length);
    Say("random", *(ULONG *)Buffer != First);
    Say("direct_17", (ULONG)Direct(0x17, Buffer, sizeof(Buffer), &Length));
    Say("direct_17_length", Length % 0x18);
    Say("idle_cycles", QueryIdleProcessorCycleTime(&Size, Idle));
    Say("idle_length", Size);
    Size = 4;
    Say("idle_short", QueryIdleProcessorCycleTime(&Size, Idle));
    Say("idle_error", GetLastError());
    Say("power", (ULONG)Power(11, NULL, 0, Buffer, sizeof(Buffer)));
    Say("current_mhz", ((ULONG *)Buffer)[2]);
    Say("max_mhz", ((ULONG *)Buffer)[1]);
    Say("thread_basic", (ULONG)Thread(GetCurrentThread(), 0, Buffer, 0x30, &Length));
    Say("thread_cycles", (ULONG)Thread(GetCurrentThread(), 23, Buffer, 0x10, &Length));
    return 0;
}

int main(int Count, char **Arguments)
{
    static const struct {
        const char *Name;
        int (*Do)(void);
    } Works[] = {
        {"profile", Profile}, {"counters", Counters},     {"threads", Threads},
        {"ends", Ends},       {"processors", Processors}, {"classes", Classes},
    };
    unsigned i;

    for (i = 0; Count > 1 && i < sizeof(Works) / sizeof(Works[0]); i++) {
        if (!strcmp(Arguments[1], Works[i].Name))
            return Works[i].Do();
    }
    printf("arguments %d %s\n", Count, Count > 2 ? Arguments[2] : "");
    return 3;
}
