/* SPDX-License-Identifier: BSD-2-Clause
 *
 * LoadLibrary and GetProcAddress over what prcb-nt itself exports: one table of names,
 * each with the modules that have it on Windows.
 */
#include "compat.h"

#include <evntrace.h>
#include <powerbase.h>
#include <psapi.h>
#include <strings.h>
#include <toolhelp.h>
#include <wchar.h>

#define NTOSKRNL 1u
#define HAL      2u
#define NTDLL    4u
#define KERNEL32 8u
#define POWRPROF 16u
#define ADVAPI32 32u
#define PSAPI    64u

static const struct module {
    const char *name;
    unsigned bit;
} modules[] = {
    {"ntoskrnl.exe", NTOSKRNL},   {"hal.dll", HAL},
    {"ntdll.dll", NTDLL},         {"kernel32.dll", KERNEL32},
    {"kernelbase.dll", KERNEL32}, {"powrprof.dll", POWRPROF},
    {"advapi32.dll", ADVAPI32},   {"psapi.dll", PSAPI},
};
#define MODULES (sizeof(modules) / sizeof(modules[0]))

typedef void (*any_fn)(void);

#define ROW(modules, name)                                                                         \
    {                                                                                              \
        modules, #name, (any_fn)name                                                               \
    }

static const struct export
{
    unsigned modules;
    const char *name;
    any_fn function;
}
exports[] = {
    ROW(NTOSKRNL, KeSetHardwareCounterConfiguration),
    ROW(NTOSKRNL, KeQueryHardwareCounterConfiguration),
    ROW(NTOSKRNL | HAL, HalAllocateHardwareCounters),
    ROW(NTOSKRNL | HAL, HalFreeHardwareCounters),
    ROW(NTOSKRNL, KeQueryTimeIncrement),
    ROW(NTOSKRNL, KeSetTimeIncrement),
    ROW(NTOSKRNL, KeQueryActiveProcessorCountEx),
    ROW(NTOSKRNL, KeQueryActiveGroupCount),
    ROW(NTOSKRNL | NTDLL, NtQuerySystemInformation),
    ROW(NTOSKRNL | NTDLL, ZwQuerySystemInformation),
    ROW(NTDLL, RtlGetNativeSystemInformation),
    ROW(NTDLL, NtQuerySystemInformationEx),
    ROW(NTDLL, ZwQuerySystemInformationEx),
    ROW(NTOSKRNL | NTDLL, NtSetSystemInformation),
    ROW(NTOSKRNL | NTDLL, ZwSetSystemInformation),
    ROW(NTOSKRNL | NTDLL, NtPowerInformation),
    ROW(NTOSKRNL | NTDLL, ZwPowerInformation),
    ROW(POWRPROF, CallNtPowerInformation),
    ROW(NTDLL, RtlEnableThreadProfiling),
    ROW(NTDLL, RtlDisableThreadProfiling),
    ROW(NTDLL, RtlQueryThreadProfiling),
    ROW(NTDLL, RtlReadThreadProfilingData),
    ROW(NTOSKRNL | NTDLL, RtlNtStatusToDosError),
    ROW(NTOSKRNL | NTDLL, RtlTimeToSecondsSince1970),
    ROW(NTOSKRNL | NTDLL, RtlInitString),
    ROW(NTOSKRNL | NTDLL, RtlInitAnsiString),
    ROW(NTOSKRNL | NTDLL, RtlInitUnicodeString),
    ROW(NTOSKRNL | NTDLL, NtClose),
    ROW(NTOSKRNL | NTDLL, ZwClose),
    ROW(NTOSKRNL | NTDLL, NtWaitForSingleObject),
    ROW(NTOSKRNL | NTDLL, ZwWaitForSingleObject),
    ROW(NTOSKRNL | NTDLL, NtDuplicateObject),
    ROW(NTOSKRNL | NTDLL, ZwDuplicateObject),
    ROW(NTOSKRNL | NTDLL, NtQueryInformationThread),
    ROW(NTOSKRNL | NTDLL, ZwQueryInformationThread),
    ROW(NTOSKRNL | NTDLL, NtQueryInformationProcess),
    ROW(NTOSKRNL | NTDLL, ZwQueryInformationProcess),
    ROW(NTOSKRNL | NTDLL, NtSetInformationThread),
    ROW(NTOSKRNL | NTDLL, ZwSetInformationThread),
    ROW(NTDLL, NtGetCurrentProcessorNumber),
    ROW(NTDLL, NtQuerySystemTime),
    ROW(NTDLL, ZwQuerySystemTime),
    ROW(NTDLL, NtDelayExecution),
    ROW(NTDLL, ZwDelayExecution),
    ROW(NTDLL, NtYieldExecution),
    ROW(NTOSKRNL | NTDLL, ZwYieldExecution),
    ROW(KERNEL32, EnableThreadProfiling),
    ROW(KERNEL32, DisableThreadProfiling),
    ROW(KERNEL32, QueryThreadProfiling),
    ROW(KERNEL32, ReadThreadProfilingData),
    ROW(KERNEL32, GetCurrentProcess),
    ROW(KERNEL32, GetCurrentProcessId),
    ROW(KERNEL32, GetCurrentThread),
    ROW(KERNEL32, GetCurrentThreadId),
    ROW(KERNEL32, GetCurrentProcessorNumber),
    ROW(KERNEL32, GetThreadId),
    ROW(KERNEL32, GetThreadTimes),
    ROW(KERNEL32, GetProcessTimes),
    ROW(KERNEL32, QueryThreadCycleTime),
    ROW(KERNEL32, QueryProcessCycleTime),
    ROW(KERNEL32, QueryIdleProcessorCycleTime),
    ROW(KERNEL32, QueryIdleProcessorCycleTimeEx),
    ROW(KERNEL32, GetCurrentProcessorNumberEx),
    ROW(KERNEL32, GetLogicalProcessorInformation),
    ROW(KERNEL32, GetLogicalProcessorInformationEx),
    ROW(KERNEL32, GetSystemCpuSetInformation),
    ROW(KERNEL32, OpenThread),
    ROW(KERNEL32, CreateThread),
    ROW(KERNEL32, GetExitCodeThread),
    ROW(KERNEL32, WaitForSingleObject),
    ROW(KERNEL32, SetThreadAffinityMask),
    ROW(KERNEL32, GetProcessAffinityMask),
    ROW(KERNEL32, SetThreadPriority),
    ROW(KERNEL32, GetThreadPriority),
    ROW(PSAPI, GetProcessMemoryInfo),
    ROW(KERNEL32, K32GetProcessMemoryInfo),
    ROW(KERNEL32, GetEnvironmentVariableA),
    ROW(KERNEL32, ExitProcess),
    ROW(KERNEL32, SwitchToThread),
    ROW(KERNEL32, Sleep),
    ROW(KERNEL32, DuplicateHandle),
    ROW(KERNEL32, CloseHandle),
    ROW(KERNEL32, CreateToolhelp32Snapshot),
    ROW(KERNEL32, Module32First),
    ROW(KERNEL32, Module32FirstW),
    ROW(KERNEL32, Module32Next),
    ROW(KERNEL32, Module32NextW),
    ROW(KERNEL32, Process32First),
    ROW(KERNEL32, Process32FirstW),
    ROW(KERNEL32, Process32Next),
    ROW(KERNEL32, Process32NextW),
    ROW(KERNEL32, Thread32First),
    ROW(KERNEL32, Thread32Next),
    ROW(KERNEL32, GetSystemInfo),
    ROW(KERNEL32, GetActiveProcessorGroupCount),
    ROW(KERNEL32, GetActiveProcessorCount),
    ROW(KERNEL32, GetSystemTimes),
    ROW(KERNEL32, GetLastError),
    ROW(KERNEL32, SetLastError),
    ROW(KERNEL32, QueryPerformanceCounter),
    ROW(KERNEL32, QueryPerformanceFrequency),
    ROW(KERNEL32, GetTickCount),
    ROW(KERNEL32, GetTickCount64),
    ROW(KERNEL32, GetSystemTimeAsFileTime),
    ROW(KERNEL32, FileTimeToSystemTime),
    ROW(KERNEL32, FormatMessageA),
    ROW(KERNEL32, FormatMessageW),
    ROW(KERNEL32, InitializeCriticalSection),
    ROW(KERNEL32, InitializeCriticalSectionAndSpinCount),
    ROW(KERNEL32, EnterCriticalSection),
    ROW(KERNEL32, TryEnterCriticalSection),
    ROW(KERNEL32, LeaveCriticalSection),
    ROW(KERNEL32, DeleteCriticalSection),
    ROW(KERNEL32, GetProcessHeap),
    ROW(KERNEL32, HeapAlloc),
    ROW(KERNEL32, HeapReAlloc),
    ROW(KERNEL32, HeapFree),
    ROW(KERNEL32, LocalAlloc),
    ROW(KERNEL32, LocalFree),
    ROW(ADVAPI32, TraceSetInformation),
    ROW(ADVAPI32, TraceQueryInformation),
    ROW(KERNEL32, LoadLibraryA),
    ROW(KERNEL32, LoadLibraryW),
    ROW(KERNEL32, LoadLibraryExA),
    ROW(KERNEL32, LoadLibraryExW),
    ROW(KERNEL32, GetModuleHandleA),
    ROW(KERNEL32, GetModuleHandleW),
    ROW(KERNEL32, FreeLibrary),
    ROW(KERNEL32, GetProcAddress),
};
#define EXPORTS (sizeof(exports) / sizeof(exports[0]))

/* A module handle is the address of its row. */
static const struct module *find_module(const char *path)
{
    const char *slash = strrchr(path, '\\'), *name;
    char whole[64];
    size_t length;

    slash = slash ? slash : strrchr(path, '/');
    name = slash ? slash + 1 : path;
    length = strlen(name);
    if (length == 0 || length + sizeof(".dll") > sizeof(whole))
        return NULL;
    memcpy(whole, name, length + 1);
    if (!strchr(whole, '.'))
        memcpy(whole + length, ".dll", sizeof(".dll"));
    for (size_t i = 0; i < MODULES; i++) {
        if (!strcasecmp(whole, modules[i].name))
            return &modules[i];
    }
    return NULL;
}

static const struct module *module_of(HMODULE handle)
{
    for (size_t i = 0; i < MODULES; i++) {
        if ((const void *)handle == (const void *)&modules[i])
            return &modules[i];
    }
    return NULL;
}

EXPORT HMODULE LoadLibraryA(LPCSTR lpLibFileName)
{
    const struct module *module;

    if (!lpLibFileName) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    module = find_module(lpLibFileName);
    if (!module)
        SetLastError(ERROR_MOD_NOT_FOUND);
    return (HMODULE)(ULONG_PTR)module;
}

/* Names of modules are ASCII; another character finds none. */
EXPORT HMODULE LoadLibraryW(LPCWSTR lpLibFileName)
{
    char name[260];
    size_t i = 0;

    if (!lpLibFileName)
        return LoadLibraryA(NULL);
    for (; lpLibFileName[i] && i + 1 < sizeof(name); i++)
        name[i] = lpLibFileName[i] > 0 && lpLibFileName[i] < 128 ? (char)lpLibFileName[i] : '?';
    name[lpLibFileName[i] ? 0 : i] = '\0';
    return LoadLibraryA(name);
}

EXPORT HMODULE LoadLibraryExA(LPCSTR lpLibFileName, HANDLE hFile, DWORD dwFlags)
{
    if (hFile) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    return LoadLibraryA(lpLibFileName);
}

EXPORT HMODULE LoadLibraryExW(LPCWSTR lpLibFileName, HANDLE hFile, DWORD dwFlags)
{
    if (hFile) {
        SetLastError(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    return LoadLibraryW(lpLibFileName);
}

EXPORT HMODULE GetModuleHandleA(LPCSTR lpModuleName)
{
    return LoadLibraryA(lpModuleName);
}

EXPORT HMODULE GetModuleHandleW(LPCWSTR lpModuleName)
{
    return LoadLibraryW(lpModuleName);
}

EXPORT BOOL FreeLibrary(HMODULE hLibModule)
{
    if (module_of(hLibModule))
        return TRUE;
    SetLastError(ERROR_MOD_NOT_FOUND);
    return FALSE;
}

EXPORT FARPROC GetProcAddress(HMODULE hModule, LPCSTR lpProcName)
{
    const struct module *module = module_of(hModule);

    if (!module) {
        SetLastError(ERROR_MOD_NOT_FOUND);
        return NULL;
    }
    /* A value below 65536 is an ordinal, and no function has one here. */
    for (size_t i = 0; (ULONG_PTR)lpProcName >> 16 && i < EXPORTS; i++) {
        if (exports[i].modules & module->bit && !strcmp(exports[i].name, lpProcName))
            return (FARPROC)exports[i].function;
    }
    SetLastError(ERROR_PROC_NOT_FOUND);
    return NULL;
}
