/* SPDX-License-Identifier: BSD-2-Clause
 *
 * <winbase.h> for programs written for Windows: the calls that prcb-nt exports.
 */
#ifndef PRCB_COMPAT_WINBASE_H
#define PRCB_COMPAT_WINBASE_H

#include "windef.h"

#include "winerror.h"

#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WINBASEAPI

#define INVALID_HANDLE_VALUE ((HANDLE)(LONG_PTR)-1)
#define INFINITE             0xFFFFFFFF
#define WAIT_OBJECT_0        0
#define WAIT_ABANDONED       0x80
#define WAIT_FAILED          ((DWORD)0xFFFFFFFF)
#define STILL_ACTIVE         0x103

#define MoveMemory RtlMoveMemory
#define CopyMemory RtlCopyMemory
#define FillMemory RtlFillMemory
#define ZeroMemory RtlZeroMemory

/* ---- thread profiling ---- */

#if _WIN32_WINNT >= _WIN32_WINNT_WIN7
#define THREAD_PROFILING_FLAG_DISPATCH 0x00000001

DWORD WINAPI EnableThreadProfiling(HANDLE ThreadHandle, DWORD Flags, DWORD64 HardwareCounters,
                                   HANDLE *PerformanceDataHandle);
DWORD WINAPI DisableThreadProfiling(HANDLE PerformanceDataHandle);
DWORD WINAPI QueryThreadProfiling(HANDLE ThreadHandle, PBOOLEAN Enabled);
DWORD WINAPI ReadThreadProfilingData(HANDLE PerformanceDataHandle, DWORD Flags,
                                     PPERFORMANCE_DATA PerformanceData);
#endif

/* ---- threads ---- */

typedef DWORD(WINAPI *PTHREAD_START_ROUTINE)(LPVOID lpThreadParameter);
typedef PTHREAD_START_ROUTINE LPTHREAD_START_ROUTINE;

typedef struct _SECURITY_ATTRIBUTES {
    DWORD nLength;
    LPVOID lpSecurityDescriptor;
    BOOL bInheritHandle;
} SECURITY_ATTRIBUTES, *PSECURITY_ATTRIBUTES, *LPSECURITY_ATTRIBUTES;

HANDLE WINAPI GetCurrentProcess(VOID);
DWORD WINAPI GetCurrentProcessId(VOID);
HANDLE WINAPI GetCurrentThread(VOID);
DWORD WINAPI GetCurrentThreadId(VOID);
#if _WIN32_WINNT >= _WIN32_WINNT_VISTA
DWORD WINAPI GetCurrentProcessorNumber(VOID);
DWORD WINAPI GetThreadId(HANDLE Thread);
/* Cycles on a processor; of a thread that has ended, if CreateThread started it. */
BOOL WINAPI QueryThreadCycleTime(HANDLE ThreadHandle, PULONG64 CycleTime);
BOOL WINAPI QueryProcessCycleTime(HANDLE ProcessHandle, PULONG64 CycleTime);
/* *BufferLength: bytes; what is filled, or what it takes. */
BOOL WINAPI QueryIdleProcessorCycleTime(PULONG BufferLength, PULONG64 ProcessorIdleCycleTime);
#endif
#if _WIN32_WINNT >= _WIN32_WINNT_WINXP
/* Of the caller's group. */
BOOL WINAPI GetLogicalProcessorInformation(PSYSTEM_LOGICAL_PROCESSOR_INFORMATION Buffer,
                                           PDWORD ReturnedLength);
#endif
#if _WIN32_WINNT >= _WIN32_WINNT_WIN10
BOOL WINAPI GetSystemCpuSetInformation(PSYSTEM_CPU_SET_INFORMATION Information, ULONG BufferLength,
                                       PULONG ReturnedLength, HANDLE Process, ULONG Flags);
#endif
#if _WIN32_WINNT >= _WIN32_WINNT_WIN7
BOOL WINAPI QueryIdleProcessorCycleTimeEx(USHORT Group, PULONG BufferLength,
                                          PULONG64 ProcessorIdleCycleTime);
VOID WINAPI GetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcNumber);
/* Records of any length: Size leads from one to the next. */
BOOL WINAPI GetLogicalProcessorInformationEx(LOGICAL_PROCESSOR_RELATIONSHIP RelationshipType,
                                             PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX Buffer,
                                             PDWORD ReturnedLength);
#endif
BOOL WINAPI GetThreadTimes(HANDLE hThread, LPFILETIME lpCreationTime, LPFILETIME lpExitTime,
                           LPFILETIME lpKernelTime, LPFILETIME lpUserTime);
BOOL WINAPI GetProcessTimes(HANDLE hProcess, LPFILETIME lpCreationTime, LPFILETIME lpExitTime,
                            LPFILETIME lpKernelTime, LPFILETIME lpUserTime);
HANDLE WINAPI OpenThread(DWORD dwDesiredAccess, BOOL bInheritHandle, DWORD dwThreadId);
/* dwCreationFlags 0 only. */
HANDLE WINAPI CreateThread(LPSECURITY_ATTRIBUTES lpThreadAttributes, SIZE_T dwStackSize,
                           LPTHREAD_START_ROUTINE lpStartAddress, LPVOID lpParameter,
                           DWORD dwCreationFlags, LPDWORD lpThreadId);
BOOL WINAPI GetExitCodeThread(HANDLE hThread, LPDWORD lpExitCode);
DWORD WINAPI WaitForSingleObject(HANDLE hHandle, DWORD dwMilliseconds);
DWORD_PTR WINAPI SetThreadAffinityMask(HANDLE hThread, DWORD_PTR dwThreadAffinityMask);
BOOL WINAPI SwitchToThread(VOID);

/* Each level is a nice value (docs/porting.md); ERROR_ACCESS_DENIED: the kernel allows no such. */
#define THREAD_PRIORITY_IDLE          (-15)
#define THREAD_PRIORITY_LOWEST        (-2)
#define THREAD_PRIORITY_BELOW_NORMAL  (-1)
#define THREAD_PRIORITY_NORMAL        0
#define THREAD_PRIORITY_ABOVE_NORMAL  1
#define THREAD_PRIORITY_HIGHEST       2
#define THREAD_PRIORITY_TIME_CRITICAL 15
#define THREAD_PRIORITY_ERROR_RETURN  MAXLONG
BOOL WINAPI SetThreadPriority(HANDLE hThread, int nPriority);
int WINAPI GetThreadPriority(HANDLE hThread);

/* Of this process: where its first thread may run; the processors of the first group. */
BOOL WINAPI GetProcessAffinityMask(HANDLE hProcess, PDWORD_PTR lpProcessAffinityMask,
                                   PDWORD_PTR lpSystemAffinityMask);
DECLSPEC_NORETURN VOID WINAPI ExitProcess(UINT uExitCode); /* exit(): streams are written */
/* Returns the length, or the size that it takes if nSize is too small. */
DWORD WINAPI GetEnvironmentVariableA(LPCSTR lpName, LPSTR lpBuffer, DWORD nSize);
VOID WINAPI Sleep(DWORD dwMilliseconds);
BOOL WINAPI DuplicateHandle(HANDLE hSourceProcessHandle, HANDLE hSourceHandle,
                            HANDLE hTargetProcessHandle, LPHANDLE lpTargetHandle,
                            DWORD dwDesiredAccess, BOOL bInheritHandle, DWORD dwOptions);
BOOL WINAPI CloseHandle(HANDLE hObject);

/* ---- the machine ---- */

typedef struct _SYSTEM_INFO {
    __extension__ union {
        DWORD dwOemId;
        __extension__ struct {
            WORD wProcessorArchitecture;
            WORD wReserved;
        };
    };
    DWORD dwPageSize;
    LPVOID lpMinimumApplicationAddress;
    LPVOID lpMaximumApplicationAddress;
    DWORD_PTR dwActiveProcessorMask; /* of the caller's group */
    DWORD dwNumberOfProcessors;      /* of the caller's group */
    DWORD dwProcessorType;
    DWORD dwAllocationGranularity;
    WORD wProcessorLevel;
    WORD wProcessorRevision;
} SYSTEM_INFO, *LPSYSTEM_INFO;

VOID WINAPI GetSystemInfo(LPSYSTEM_INFO lpSystemInfo);
#if _WIN32_WINNT >= _WIN32_WINNT_WIN7
WORD WINAPI GetActiveProcessorGroupCount(VOID);
DWORD WINAPI GetActiveProcessorCount(WORD GroupNumber);
#endif
#if _WIN32_WINNT >= _WIN32_WINNT_WINXP
/* Of all processors together; kernel time has idle time in it. Each may be NULL. */
BOOL WINAPI GetSystemTimes(LPFILETIME lpIdleTime, LPFILETIME lpKernelTime, LPFILETIME lpUserTime);
#endif

/* ---- errors, time ---- */

DWORD WINAPI GetLastError(VOID);
VOID WINAPI SetLastError(DWORD dwErrCode);
BOOL WINAPI QueryPerformanceCounter(LARGE_INTEGER *lpPerformanceCount);
BOOL WINAPI QueryPerformanceFrequency(LARGE_INTEGER *lpFrequency);
DWORD WINAPI GetTickCount(VOID);
#if _WIN32_WINNT >= _WIN32_WINNT_VISTA
ULONGLONG WINAPI GetTickCount64(VOID);
#endif
VOID WINAPI GetSystemTimeAsFileTime(LPFILETIME lpSystemTimeAsFileTime);

typedef struct _SYSTEMTIME {
    WORD wYear;
    WORD wMonth;     /* from 1 */
    WORD wDayOfWeek; /* 0: Sunday */
    WORD wDay;
    WORD wHour;
    WORD wMinute;
    WORD wSecond;
    WORD wMilliseconds;
} SYSTEMTIME, *PSYSTEMTIME, *LPSYSTEMTIME;

BOOL WINAPI FileTimeToSystemTime(const FILETIME *lpFileTime, LPSYSTEMTIME lpSystemTime);

/* The words of a code that this library gives: FORMAT_MESSAGE_FROM_SYSTEM. */
#define FORMAT_MESSAGE_ALLOCATE_BUFFER 0x00000100
#define FORMAT_MESSAGE_IGNORE_INSERTS  0x00000200
#define FORMAT_MESSAGE_FROM_STRING     0x00000400
#define FORMAT_MESSAGE_FROM_HMODULE    0x00000800
#define FORMAT_MESSAGE_FROM_SYSTEM     0x00001000
#define FORMAT_MESSAGE_ARGUMENT_ARRAY  0x00002000
#define FORMAT_MESSAGE_MAX_WIDTH_MASK  0x000000ff
#define MAKELANGID(primary, sub)       ((WORD)((WORD)(sub) << 10 | (WORD)(primary)))
#define LANG_NEUTRAL                   0
#define SUBLANG_DEFAULT                1

DWORD WINAPI FormatMessageA(DWORD dwFlags, LPCVOID lpSource, DWORD dwMessageId, DWORD dwLanguageId,
                            LPSTR lpBuffer, DWORD nSize, va_list *Arguments);
DWORD WINAPI FormatMessageW(DWORD dwFlags, LPCVOID lpSource, DWORD dwMessageId, DWORD dwLanguageId,
                            LPWSTR lpBuffer, DWORD nSize, va_list *Arguments);

/* ---- critical sections, the heap ---- */

typedef struct _RTL_CRITICAL_SECTION {
    ULONG64 Opaque[8] __attribute__((aligned(8)));
} CRITICAL_SECTION, *PCRITICAL_SECTION, *LPCRITICAL_SECTION;

VOID WINAPI InitializeCriticalSection(LPCRITICAL_SECTION lpCriticalSection);
BOOL WINAPI InitializeCriticalSectionAndSpinCount(LPCRITICAL_SECTION lpCriticalSection,
                                                  DWORD dwSpinCount);
VOID WINAPI EnterCriticalSection(LPCRITICAL_SECTION lpCriticalSection);
BOOL WINAPI TryEnterCriticalSection(LPCRITICAL_SECTION lpCriticalSection);
VOID WINAPI LeaveCriticalSection(LPCRITICAL_SECTION lpCriticalSection);
VOID WINAPI DeleteCriticalSection(LPCRITICAL_SECTION lpCriticalSection);

#define HEAP_ZERO_MEMORY 0x00000008
typedef HANDLE HLOCAL;

HANDLE WINAPI GetProcessHeap(VOID);
LPVOID WINAPI HeapAlloc(HANDLE hHeap, DWORD dwFlags, SIZE_T dwBytes);
LPVOID WINAPI HeapReAlloc(HANDLE hHeap, DWORD dwFlags, LPVOID lpMem, SIZE_T dwBytes);
BOOL WINAPI HeapFree(HANDLE hHeap, DWORD dwFlags, LPVOID lpMem);

#define LMEM_FIXED    0x0000
#define LMEM_ZEROINIT 0x0040
#define LPTR          (LMEM_FIXED | LMEM_ZEROINIT)
HLOCAL WINAPI LocalAlloc(UINT uFlags, SIZE_T uBytes); /* these flags only */
HLOCAL WINAPI LocalFree(HLOCAL hMem);                 /* also of what FormatMessage allocated */

/* ---- modules: ntoskrnl.exe, hal.dll, ntdll.dll, kernel32.dll, kernelbase.dll ---- */

HMODULE WINAPI LoadLibraryA(LPCSTR lpLibFileName);
HMODULE WINAPI LoadLibraryW(LPCWSTR lpLibFileName);
HMODULE WINAPI LoadLibraryExA(LPCSTR lpLibFileName, HANDLE hFile, DWORD dwFlags);
HMODULE WINAPI LoadLibraryExW(LPCWSTR lpLibFileName, HANDLE hFile, DWORD dwFlags);
HMODULE WINAPI GetModuleHandleA(LPCSTR lpModuleName);
HMODULE WINAPI GetModuleHandleW(LPCWSTR lpModuleName);
BOOL WINAPI FreeLibrary(HMODULE hLibModule);
FARPROC WINAPI GetProcAddress(HMODULE hModule, LPCSTR lpProcName);

#define DONT_RESOLVE_DLL_REFERENCES  0x00000001
#define LOAD_LIBRARY_AS_DATAFILE     0x00000002
#define LOAD_LIBRARY_SEARCH_SYSTEM32 0x00000800

#ifdef UNICODE
#define FormatMessage   FormatMessageW
#define LoadLibrary     LoadLibraryW
#define LoadLibraryEx   LoadLibraryExW
#define GetModuleHandle GetModuleHandleW
#else
#define FormatMessage          FormatMessageA
#define LoadLibrary            LoadLibraryA
#define LoadLibraryEx          LoadLibraryExA
#define GetModuleHandle        GetModuleHandleA
#define GetEnvironmentVariable GetEnvironmentVariableA
#endif

#ifdef __cplusplus
}
#endif
#endif
