/* SPDX-License-Identifier: BSD-2-Clause
 *
 * <tlhelp32.h> for programs written for Windows: lists of processes and threads. Of modules and
 * heaps there are none.
 */
#ifndef PRCB_COMPAT_TOOLHELP_H
#define PRCB_COMPAT_TOOLHELP_H

#include "windef.h"
#include "winbase.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TH32CS_SNAPHEAPLIST 0x00000001
#define TH32CS_SNAPPROCESS  0x00000002
#define TH32CS_SNAPTHREAD   0x00000004
#define TH32CS_SNAPMODULE   0x00000008
#define TH32CS_SNAPMODULE32 0x00000010
#define TH32CS_SNAPALL                                                                             \
    (TH32CS_SNAPHEAPLIST | TH32CS_SNAPPROCESS | TH32CS_SNAPTHREAD | TH32CS_SNAPMODULE)
#define TH32CS_INHERIT 0x80000000

typedef struct tagPROCESSENTRY32 {
    DWORD dwSize; /* set by the caller */
    DWORD cntUsage;
    DWORD th32ProcessID;
    ULONG_PTR th32DefaultHeapID;
    DWORD th32ModuleID;
    DWORD cntThreads;
    DWORD th32ParentProcessID;
    LONG pcPriClassBase; /* of nice: 8 at 0, lower for a nicer one */
    DWORD dwFlags;
    CHAR szExeFile[MAX_PATH]; /* Linux' name of the process, at most 15 bytes */
} PROCESSENTRY32, *PPROCESSENTRY32, *LPPROCESSENTRY32;

typedef struct tagPROCESSENTRY32W {
    DWORD dwSize;
    DWORD cntUsage;
    DWORD th32ProcessID;
    ULONG_PTR th32DefaultHeapID;
    DWORD th32ModuleID;
    DWORD cntThreads;
    DWORD th32ParentProcessID;
    LONG pcPriClassBase;
    DWORD dwFlags;
    WCHAR szExeFile[MAX_PATH];
} PROCESSENTRY32W, *PPROCESSENTRY32W, *LPPROCESSENTRY32W;

typedef struct tagTHREADENTRY32 {
    DWORD dwSize;
    DWORD cntUsage;
    DWORD th32ThreadID;
    DWORD th32OwnerProcessID;
    LONG tpBasePri;
    LONG tpDeltaPri;
    DWORD dwFlags;
} THREADENTRY32, *PTHREADENTRY32, *LPTHREADENTRY32;

/* Of all processes and threads that procfs shows to this one, whatever th32ProcessID is, as on
 * Windows. INVALID_HANDLE_VALUE with ERROR_NOT_SUPPORTED where neither is asked for. Ended by
 * CloseHandle. */
HANDLE WINAPI CreateToolhelp32Snapshot(DWORD dwFlags, DWORD th32ProcessID);
/* ERROR_NO_MORE_FILES past the last; ERROR_BAD_LENGTH: dwSize is too small. */
BOOL WINAPI Process32First(HANDLE hSnapshot, LPPROCESSENTRY32 lppe);
BOOL WINAPI Process32Next(HANDLE hSnapshot, LPPROCESSENTRY32 lppe);
BOOL WINAPI Process32FirstW(HANDLE hSnapshot, LPPROCESSENTRY32W lppe);
BOOL WINAPI Process32NextW(HANDLE hSnapshot, LPPROCESSENTRY32W lppe);
BOOL WINAPI Thread32First(HANDLE hSnapshot, LPTHREADENTRY32 lpte);
BOOL WINAPI Thread32Next(HANDLE hSnapshot, LPTHREADENTRY32 lpte);

#ifdef UNICODE
#define PROCESSENTRY32   PROCESSENTRY32W
#define PPROCESSENTRY32  PPROCESSENTRY32W
#define LPPROCESSENTRY32 LPPROCESSENTRY32W
#define Process32First   Process32FirstW
#define Process32Next    Process32NextW
#endif

#ifdef __cplusplus
}
#endif
#endif
