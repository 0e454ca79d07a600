/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A program as it is written for Windows that includes the small headers of the SDK instead of
 * windows.h, and makes the calls of a benchmark's harness. Prints TAP.
 */
#include <apiset.h>
#include <apisetcconv.h>
#include <debugapi.h>
#include <errhandlingapi.h>
#include <evntcons.h>
#include <handleapi.h>
#include <heapapi.h>
#include <intrin.h>
#include <libloaderapi.h>
#include <memoryapi.h>
#include <minwinbase.h>
#include <ntdef.h>
#include <processenv.h>
#include <processthreadsapi.h>
#include <processtopologyapi.h>
#include <profileapi.h>
#include <psapi.h>
#include <realtimeapiset.h>
#include <specstrings.h>
#include <synchapi.h>
#include <sys/resource.h>
#include <sysinfoapi.h>
#include <systemtopologyapi.h>
#include <tchar.h>
#include <timezoneapi.h>
#include <tlhelp32.h>
#include <utilapiset.h>
#include <winapifamily.h>
#include <winternl.h>

static int tests, failed;

static void check(BOOL good, const TCHAR *name)
{
    _tprintf(_T("%s %d - %s\n"), good ? _T("ok") : _T("not ok"), ++tests, name);
    failed |= !good;
}

/* As driver headers have them. */
typedef struct _THREAD_BASIC_INFORMATION {
    NTSTATUS ExitStatus;
    PVOID TebBaseAddress;
    CLIENT_ID ClientId;
    KAFFINITY AffinityMask;
    KPRIORITY Priority;
    KPRIORITY BasePriority;
} THREAD_BASIC_INFORMATION;

typedef struct _SYSTEM_PROCESSOR_INFORMATION {
    USHORT ProcessorArchitecture;
    USHORT ProcessorLevel;
    USHORT ProcessorRevision;
    USHORT MaximumProcessors;
    ULONG ProcessorFeatureBits;
} SYSTEM_PROCESSOR_INFORMATION;

typedef ULONG(NTAPI *PROCESSOR_NUMBER_CALL)(VOID);

static void check_date(ULONGLONG time, WORD year, WORD month, WORD day, WORD weekday, WORD second,
                       WORD milliseconds)
{
    FILETIME file = {(DWORD)time, (DWORD)(time >> 32)};
    SYSTEMTIME is;

    check(FileTimeToSystemTime(&file, &is) && is.wYear == year && is.wMonth == month &&
              is.wDay == day && is.wDayOfWeek == weekday && is.wSecond == second &&
              is.wMilliseconds == milliseconds,
          _T("a date"));
}

static void check_dates(void)
{
    FILETIME far = {0, 0x80000000};
    SYSTEMTIME is;

    check_date(0, 1601, 1, 1, 1, 0, 0);
    check_date(94405824000000000ull, 1900, 3, 1, 4, 0, 0);
    check_date(116444736000000000ull, 1970, 1, 1, 4, 0, 0);
    check_date(125963012967890000ull, 2000, 2, 29, 2, 56, 789);
    check_date(252455615999990000ull, 2400, 12, 31, 0, 59, 999);
    check(!FileTimeToSystemTime(&far, &is) && GetLastError() == ERROR_INVALID_PARAMETER,
          _T("no date"));
}

/* Where threads run: pins the thread to one processor, by two calls, and sees it there. */
static void check_affinity(void)
{
    PROCESSOR_NUMBER_CALL number = (PROCESSOR_NUMBER_CALL)GetProcAddress(
        GetModuleHandle(_T("ntdll.dll")), "NtGetCurrentProcessorNumber");
    DWORD_PTR process = 0, machine = 0, last;
    THREAD_BASIC_INFORMATION thread;

    check(GetProcessAffinityMask(GetCurrentProcess(), &process, &machine) && process && machine &&
              !(process & ~machine),
          _T("GetProcessAffinityMask"));
    for (last = process; last & (last - 1); last &= last - 1)
        ;
    check(NtSetInformationThread(GetCurrentThread(), (THREADINFOCLASS)4, &last, sizeof(last)) ==
                  0 &&
              (DWORD_PTR)1 << number() == last,
          _T("NtSetInformationThread"));
    check(NtSetInformationThread(GetCurrentThread(), (THREADINFOCLASS)4, &last, 1) < 0 &&
              NtSetInformationThread(NULL, (THREADINFOCLASS)4, &last, sizeof(last)) < 0 &&
              NtSetInformationThread(GetCurrentThread(), (THREADINFOCLASS)99, &last, 8) < 0,
          _T("what it refuses"));
    check(NtQueryInformationThread(GetCurrentThread(), (THREADINFOCLASS)0, &thread, sizeof(thread),
                                   NULL) == 0 &&
              thread.AffinityMask == last && thread.ExitStatus == STILL_ACTIVE &&
              (DWORD)(ULONG_PTR)thread.ClientId.UniqueThread == GetCurrentThreadId() &&
              (DWORD)(ULONG_PTR)thread.ClientId.UniqueProcess == GetCurrentProcessId(),
          _T("ThreadBasicInformation"));
    check(SetThreadAffinityMask(GetCurrentThread(), process) == last, _T("and back"));
}

static DWORD WINAPI wait_for_it(LPVOID parameter)
{
    while (!*(volatile LONG *)parameter) {
        _ReadWriteBarrier();
        Sleep(1);
    }
    return 0;
}

/* Another thread's priority, and affinity; lowering is allowed to all. */
static void check_another(void)
{
    const int plain = getpriority(PRIO_PROCESS, 0) == 0; /* a nicer one may not become plain */
    volatile LONG done = 0;
    HANDLE thread = CreateThread(NULL, 0, wait_for_it, (LPVOID)&done, 0, NULL);
    THREAD_BASIC_INFORMATION is;
    DWORD_PTR mask;

    check(!plain || (GetThreadPriority(thread) == THREAD_PRIORITY_NORMAL &&
                     SetThreadPriority(thread, THREAD_PRIORITY_LOWEST) &&
                     GetThreadPriority(thread) == THREAD_PRIORITY_LOWEST &&
                     GetThreadPriority(GetCurrentThread()) == THREAD_PRIORITY_NORMAL),
          _T("SetThreadPriority"));
    check(NtQueryInformationThread(thread, (THREADINFOCLASS)0, &is, sizeof(is), NULL) == 0 &&
              (!plain || is.BasePriority == 6),
          _T("base priority"));
    check((!plain || (SetThreadPriority(thread, THREAD_PRIORITY_IDLE) &&
                      GetThreadPriority(thread) == THREAD_PRIORITY_IDLE)) &&
              !SetThreadPriority(thread, 7) && GetLastError() == ERROR_INVALID_PARAMETER &&
              !SetThreadPriority(NULL, 0) && GetLastError() == ERROR_INVALID_HANDLE &&
              GetThreadPriority(NULL) == THREAD_PRIORITY_ERROR_RETURN,
          _T("levels"));
    mask = SetThreadAffinityMask(thread, is.AffinityMask);
    check(mask && mask == is.AffinityMask, _T("another thread's mask"));
    done = 1;
    check(WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0 && CloseHandle(thread),
          _T("the thread ends"));
}

static void check_process(void)
{
    const int plain = getpriority(PRIO_PROCESS, 0) == 0;
    PROCESS_BASIC_INFORMATION basic;
    PROCESS_MEMORY_COUNTERS_EX before, after;
    const SIZE_T size = 64 << 20;
    char *memory;

    check(NtQueryInformationProcess(GetCurrentProcess(), ProcessBasicInformation, &basic,
                                    sizeof(basic), NULL) == 0 &&
              basic.UniqueProcessId == GetCurrentProcessId() &&
              basic.InheritedFromUniqueProcessId && (!plain || basic.BasePriority == 8),
          _T("ProcessBasicInformation"));
    check(GetProcessMemoryInfo(GetCurrentProcess(), (PPROCESS_MEMORY_COUNTERS)&before,
                               sizeof(before)),
          _T("GetProcessMemoryInfo"));
    memory = (char *)LocalAlloc(LPTR, size);
    check(memory && !memory[size - 1] && !LocalAlloc(2, 8) &&
              GetLastError() == ERROR_INVALID_PARAMETER,
          _T("LocalAlloc"));
    FillMemory(memory, size, 1);
    GetProcessMemoryInfo(GetCurrentProcess(), (PPROCESS_MEMORY_COUNTERS)&after, sizeof(after));
    check(after.WorkingSetSize >= before.WorkingSetSize + size &&
              after.PeakWorkingSetSize >= after.WorkingSetSize &&
              after.PrivateUsage >= before.PrivateUsage + size &&
              after.PageFaultCount > before.PageFaultCount,
          _T("memory that is written to"));
    LocalFree(memory);
    check(!GetProcessMemoryInfo(GetCurrentProcess(), (PPROCESS_MEMORY_COUNTERS)&after, 8) &&
              GetLastError() == ERROR_INSUFFICIENT_BUFFER,
          _T("a short buffer"));
}

static void check_machine(void)
{
    SYSTEM_PROCESSOR_INFORMATION processor;
    BYTE counts[0x200];
    SYSTEM_INFO info;
    ULONG length = 0;

    GetSystemInfo(&info);
    check(NtQuerySystemInformation((SYSTEM_INFORMATION_CLASS)1, &processor, sizeof(processor),
                                   &length) == 0 &&
              length == sizeof(processor) &&
              processor.ProcessorArchitecture == info.wProcessorArchitecture &&
              processor.ProcessorLevel == info.wProcessorLevel &&
              processor.ProcessorRevision == info.wProcessorRevision &&
              processor.MaximumProcessors == info.dwNumberOfProcessors,
          _T("SystemProcessorInformation"));
    check(NtQuerySystemInformation(SystemPerformanceInformation, counts, sizeof(counts), &length) ==
                  0 &&
              length == 0x158 && *(ULONGLONG *)(PVOID)(counts + 0x140) &&
              (ULONG) * (ULONGLONG *)(PVOID)(counts + 0x148) == *(ULONG *)(PVOID)(counts + 0x2c),
          _T("the tail of Windows 10"));
}

static void check_environment(void)
{
    TCHAR path[1 << 16];
    DWORD length = GetEnvironmentVariable(_T("PATH"), path, ARRAYSIZE(path));

    check(length && _tcslen(path) == length &&
              GetEnvironmentVariable(_T("PATH"), path, length) == length + 1,
          _T("GetEnvironmentVariable"));
    check(!GetEnvironmentVariable(_T("no such name"), path, 8) &&
              GetLastError() == ERROR_ENVVAR_NOT_FOUND,
          _T("no such variable"));
}

/* This process and its thread are listed, and what the rows say is what other calls say. */
static void check_lists(void)
{
    HANDLE list = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS | TH32CS_SNAPTHREAD, 0);
    PROCESSENTRY32 p = {.dwSize = sizeof(p)};
    THREADENTRY32 t = {.dwSize = sizeof(t)};
    DWORD threads = 0, here = 0, mine = 0;
    BOOL more;

    for (more = Process32First(list, &p); more; more = Process32Next(list, &p)) {
        if (p.th32ProcessID != GetCurrentProcessId())
            continue;
        here++;
        threads = p.cntThreads;
        check(p.th32ParentProcessID && p.pcPriClassBase > 0 && p.szExeFile[0], _T("its row"));
    }
    check(here == 1 && GetLastError() == ERROR_NO_MORE_FILES, _T("Process32Next"));
    for (here = 0, more = Thread32First(list, &t); more; more = Thread32Next(list, &t)) {
        mine += t.th32OwnerProcessID == GetCurrentProcessId();
        here +=
            t.th32ThreadID == GetCurrentThreadId() && t.th32OwnerProcessID == GetCurrentProcessId();
    }
    check(here == 1 && mine == threads, _T("Thread32Next"));
    t.dwSize = 4;
    check(!Thread32First(list, &t) && GetLastError() == ERROR_BAD_LENGTH, _T("a short entry"));
    check(CloseHandle(list) && !CloseHandle(list) && GetLastError() == ERROR_INVALID_HANDLE,
          _T("a list is closed once"));
    check(CreateToolhelp32Snapshot(TH32CS_SNAPHEAPLIST, 0) == INVALID_HANDLE_VALUE &&
              GetLastError() == ERROR_NOT_SUPPORTED,
          _T("no heaps"));
}

/* The program and the library that has the calls are among the modules, where code of theirs is. */
static void check_modules(void)
{
    HANDLE list = CreateToolhelp32Snapshot(TH32CS_SNAPMODULE, GetCurrentProcessId());
    BYTE *ours = (BYTE *)(ULONG_PTR)check_modules, *theirs = (BYTE *)(ULONG_PTR)Module32First;
    MODULEENTRY32 m = {.dwSize = sizeof(m)};
    DWORD with_ours = 0, with_theirs = 0;
    BOOL more;

    for (more = Module32First(list, &m); more; more = Module32Next(list, &m)) {
        with_ours += ours >= m.modBaseAddr && ours < m.modBaseAddr + m.modBaseSize;
        if (theirs >= m.modBaseAddr && theirs < m.modBaseAddr + m.modBaseSize)
            with_theirs += !_tcsncmp(m.szModule, _T("libprcb-nt.so"), 13) && m.szExePath[0] == '/';
    }
    check(with_ours == 1 && GetLastError() == ERROR_NO_MORE_FILES, _T("the program's module"));
    check(with_theirs == 1, _T("the library's module"));
    check(CloseHandle(list), _T("modules are closed"));
    check(CreateToolhelp32Snapshot(TH32CS_SNAPMODULE, 0x7fffffff) == INVALID_HANDLE_VALUE &&
              GetLastError() == ERROR_INVALID_PARAMETER,
          _T("modules of no process"));
}

int _tmain(int argc, TCHAR *argv[])
{
    UNREFERENCED_PARAMETER(argc);
    UNREFERENCED_PARAMETER(argv);
    check_dates();
    check_affinity();
    check_another();
    check_process();
    check_machine();
    check_environment();
    check_lists();
    check_modules();
    _tprintf(_T("1..%d\n"), tests);
    ExitProcess((UINT)failed);
}
