/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Calls around time and processors that programs make along the way, as thin as porting needs:
 * words for codes, critical sections, the heap. Trace sessions are refused, for there are none.
 */
#include "compat.h"

#include <evntrace.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- words for codes ---- */

static const struct {
    DWORD code;
    const char *words;
} messages[] = {
    {ERROR_SUCCESS, "The operation completed successfully."},
    {ERROR_INVALID_FUNCTION, "Incorrect function."},
    {ERROR_FILE_NOT_FOUND, "The system cannot find the file specified."},
    {ERROR_ACCESS_DENIED, "Access is denied."},
    {ERROR_INVALID_HANDLE, "The handle is invalid."},
    {ERROR_NOT_ENOUGH_MEMORY, "Not enough memory."},
    {ERROR_BAD_LENGTH, "The length does not fit."},
    {ERROR_NOT_SUPPORTED, "The request is not supported."},
    {ERROR_INVALID_PARAMETER, "The parameter is incorrect."},
    {ERROR_INSUFFICIENT_BUFFER, "The buffer is too small."},
    {ERROR_ENVVAR_NOT_FOUND, "The environment has no such variable."},
    {ERROR_MOD_NOT_FOUND, "The module could not be found."},
    {ERROR_PROC_NOT_FOUND, "The procedure could not be found."},
    {ERROR_NOACCESS, "Invalid access to memory location."},
    {ERROR_RETRY, "The operation could not be completed: try again."},
    {ERROR_REVISION_MISMATCH, "Two revision levels do not go together."},
    {ERROR_PRIVILEGE_NOT_HELD, "A required privilege is not held."},
    {ERROR_NO_SYSTEM_RESOURCES, "Not enough resources."},
    {ERROR_TIMEOUT, "The time limit has passed."},
    {ERROR_WMI_ALREADY_ENABLED, "It is enabled already."},
};

static const char *words_of(DWORD code)
{
    for (size_t i = 0; i < ARRAYSIZE(messages); i++) {
        if (messages[i].code == code)
            return messages[i].words;
    }
    return NULL;
}

#define TAKEN_FLAGS                                                                                \
    (FORMAT_MESSAGE_ALLOCATE_BUFFER | FORMAT_MESSAGE_IGNORE_INSERTS | FORMAT_MESSAGE_FROM_SYSTEM | \
     FORMAT_MESSAGE_MAX_WIDTH_MASK)

/* Returns the text of a code with the line end that Windows appends; 0: the last error says why
 * there is none. */
static DWORD make_message(DWORD flags, DWORD code, char *ret, size_t size)
{
    const char *words = words_of(code);

    if (!(flags & FORMAT_MESSAGE_FROM_SYSTEM) || flags & ~(DWORD)TAKEN_FLAGS)
        return (DWORD)fail(ERROR_INVALID_PARAMETER);
    if (!words)
        return (DWORD)fail(ERROR_MR_MID_NOT_FOUND);
    return (DWORD)snprintf(
        ret, size, "%s%s", words,
        (flags & FORMAT_MESSAGE_MAX_WIDTH_MASK) == FORMAT_MESSAGE_MAX_WIDTH_MASK ? " " : "\r\n");
}

EXPORT DWORD FormatMessageA(DWORD dwFlags, LPCVOID lpSource, DWORD dwMessageId, DWORD dwLanguageId,
                            LPSTR lpBuffer, DWORD nSize, va_list *Arguments)
{
    char text[128], *to = lpBuffer;
    DWORD length = make_message(dwFlags, dwMessageId, text, sizeof(text));

    if (!length)
        return 0;
    if (dwFlags & FORMAT_MESSAGE_ALLOCATE_BUFFER) {
        to = malloc(nSize > length ? nSize : length + 1);
        if (!to)
            return (DWORD)fail(ERROR_NOT_ENOUGH_MEMORY);
        memcpy(lpBuffer, &to, sizeof(to));
    } else if (nSize <= length) {
        return (DWORD)fail(ERROR_INSUFFICIENT_BUFFER);
    }
    memcpy(to, text, length + 1);
    return length;
}

EXPORT DWORD FormatMessageW(DWORD dwFlags, LPCVOID lpSource, DWORD dwMessageId, DWORD dwLanguageId,
                            LPWSTR lpBuffer, DWORD nSize, va_list *Arguments)
{
    char text[128];
    DWORD length = make_message(dwFlags, dwMessageId, text, sizeof(text));
    WCHAR *to = lpBuffer;

    if (!length)
        return 0;
    if (dwFlags & FORMAT_MESSAGE_ALLOCATE_BUFFER) {
        to = calloc(nSize > length ? nSize : length + 1, sizeof(*to));
        if (!to)
            return (DWORD)fail(ERROR_NOT_ENOUGH_MEMORY);
        memcpy(lpBuffer, &to, sizeof(to));
    } else if (nSize <= length) {
        return (DWORD)fail(ERROR_INSUFFICIENT_BUFFER);
    }
    for (DWORD i = 0; i <= length; i++)
        to[i] = (WCHAR)text[i];
    return length;
}

/* ---- critical sections ---- */

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(((CRITICAL_SECTION *)0)->Opaque),
               "a mutex lies in it");

static pthread_mutex_t *mutex_of(LPCRITICAL_SECTION section)
{
    return (pthread_mutex_t *)(void *)section->Opaque;
}

EXPORT VOID InitializeCriticalSection(LPCRITICAL_SECTION lpCriticalSection)
{
    pthread_mutexattr_t how;

    pthread_mutexattr_init(&how);
    pthread_mutexattr_settype(&how, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(mutex_of(lpCriticalSection), &how);
    pthread_mutexattr_destroy(&how);
}

EXPORT BOOL InitializeCriticalSectionAndSpinCount(LPCRITICAL_SECTION lpCriticalSection,
                                                  DWORD dwSpinCount)
{
    InitializeCriticalSection(lpCriticalSection);
    return TRUE;
}

EXPORT VOID EnterCriticalSection(LPCRITICAL_SECTION lpCriticalSection)
{
    pthread_mutex_lock(mutex_of(lpCriticalSection));
}

EXPORT BOOL TryEnterCriticalSection(LPCRITICAL_SECTION lpCriticalSection)
{
    return !pthread_mutex_trylock(mutex_of(lpCriticalSection));
}

EXPORT VOID LeaveCriticalSection(LPCRITICAL_SECTION lpCriticalSection)
{
    pthread_mutex_unlock(mutex_of(lpCriticalSection));
}

EXPORT VOID DeleteCriticalSection(LPCRITICAL_SECTION lpCriticalSection)
{
    pthread_mutex_destroy(mutex_of(lpCriticalSection));
}

/* ---- the heap: one, that of malloc ---- */

static char the_heap;

EXPORT HANDLE GetProcessHeap(VOID)
{
    return &the_heap;
}

EXPORT LPVOID HeapAlloc(HANDLE hHeap, DWORD dwFlags, SIZE_T dwBytes)
{
    SIZE_T bytes = dwBytes ? dwBytes : 1;

    return dwFlags & HEAP_ZERO_MEMORY ? calloc(1, bytes) : malloc(bytes);
}

EXPORT LPVOID HeapReAlloc(HANDLE hHeap, DWORD dwFlags, LPVOID lpMem, SIZE_T dwBytes)
{
    /* malloc keeps no exact sizes, so what would be zeroed is not known. */
    if (dwFlags & HEAP_ZERO_MEMORY || !lpMem) {
        fail(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    return realloc(lpMem, dwBytes ? dwBytes : 1);
}

EXPORT BOOL HeapFree(HANDLE hHeap, DWORD dwFlags, LPVOID lpMem)
{
    free(lpMem);
    return TRUE;
}

EXPORT HLOCAL LocalAlloc(UINT uFlags, SIZE_T uBytes)
{
    HLOCAL memory;

    if (uFlags & ~(UINT)LPTR) {
        fail(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    memory = HeapAlloc(&the_heap, uFlags & LMEM_ZEROINIT ? HEAP_ZERO_MEMORY : 0, uBytes);
    if (!memory)
        fail(ERROR_NOT_ENOUGH_MEMORY);
    return memory;
}

EXPORT HLOCAL LocalFree(HLOCAL hMem)
{
    free(hMem);
    return NULL;
}

/* ---- trace sessions ---- */

/* Counters of a session belong to its events, and there are no sessions. A list that Windows
 * would accept is answered "not supported"; any other is refused as on Windows. */
EXPORT ULONG TraceSetInformation(TRACEHANDLE SessionHandle, TRACE_INFO_CLASS InformationClass,
                                 PVOID TraceInformation, ULONG InformationLength)
{
    if (InformationClass == TracePmcCounterListInfo || InformationClass == TracePmcEventListInfo) {
        if (!TraceInformation || !InformationLength)
            return ERROR_INVALID_PARAMETER;
        if (InformationLength % sizeof(ULONG))
            return ERROR_BAD_LENGTH;
    }
    return ERROR_NOT_SUPPORTED;
}

EXPORT ULONG TraceQueryInformation(TRACEHANDLE SessionHandle, TRACE_INFO_CLASS InformationClass,
                                   PVOID TraceInformation, ULONG InformationLength,
                                   PULONG ReturnLength)
{
    return ERROR_NOT_SUPPORTED;
}
