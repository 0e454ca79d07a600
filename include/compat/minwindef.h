/* SPDX-License-Identifier: BSD-2-Clause
 *
 * <minwindef.h> for programs written for Windows: the base types and macros. DWORD
 * and its like are int types here, since long has eight bytes on 64-bit Linux.
 */
#ifndef PRCB_COMPAT_MINWINDEF_H
#define PRCB_COMPAT_MINWINDEF_H

#include <stddef.h>

#include "sal.h"
#include "sdkddkver.h"

/* Words of Microsoft's compiler. */
#if !defined(_MSC_VER) && !defined(__MINGW32__)
#ifndef __cdecl
#define __cdecl
#endif
#ifndef __stdcall
#define __stdcall
#endif
#ifndef __fastcall
#define __fastcall
#endif
#ifndef __declspec
#define __declspec(attributes)
#endif
#ifndef __int64
#define __int64 long long
#endif
#ifndef __int32
#define __int32 int
#endif
#ifndef __int16
#define __int16 short
#endif
#ifndef __int8
#define __int8 char
#endif
#ifndef __forceinline
#define __forceinline inline __attribute__((always_inline))
#endif
#ifndef __unaligned
#define __unaligned
#endif
#endif

#define WINAPI   __stdcall
#define WINAPIV  __cdecl
#define APIENTRY WINAPI
#define CALLBACK __stdcall
#define NTAPI    __stdcall
#define FAR
#define NEAR
#define IN
#define OUT
#define OPTIONAL
#define CONST    const
#define FALSE    0
#define TRUE     1
#define MAX_PATH 260

typedef int BOOL, *PBOOL, *LPBOOL;
typedef unsigned char BYTE, *PBYTE, *LPBYTE;
typedef unsigned short WORD, *PWORD, *LPWORD;
typedef unsigned int DWORD, *PDWORD, *LPDWORD;
typedef unsigned int ULONG, *PULONG;
typedef unsigned short USHORT, *PUSHORT;
typedef unsigned char UCHAR, *PUCHAR;
typedef int INT, *PINT, *LPINT;
typedef unsigned int UINT, *PUINT;
typedef float FLOAT, *PFLOAT;
typedef char *PSZ;
typedef int *LPLONG;
typedef void *LPVOID;
typedef const void *LPCVOID;

#include "winnt.h"

typedef UINT_PTR WPARAM;
typedef LONG_PTR LPARAM, LRESULT;

typedef struct HINSTANCE__ *HINSTANCE;
typedef HINSTANCE HMODULE;

#ifdef __cplusplus
typedef INT_PTR(WINAPI *FARPROC)();
typedef INT_PTR(WINAPI *NEARPROC)();
typedef INT_PTR(WINAPI *PROC)();
#else
/* Not "()": that is no prototype, and this is converted before it is called. */
typedef INT_PTR(WINAPI *FARPROC)(void);
typedef INT_PTR(WINAPI *NEARPROC)(void);
typedef INT_PTR(WINAPI *PROC)(void);
#endif

typedef struct _FILETIME {
    DWORD dwLowDateTime;
    DWORD dwHighDateTime;
} FILETIME, *PFILETIME, *LPFILETIME;

#define MAKEWORD(low, high)                                                                        \
    ((WORD)(((BYTE)((DWORD_PTR)(low)&0xff)) | ((WORD)((BYTE)((DWORD_PTR)(high)&0xff))) << 8))
#define MAKELONG(low, high)                                                                        \
    ((LONG)(((WORD)((DWORD_PTR)(low)&0xffff)) | ((DWORD)((WORD)((DWORD_PTR)(high)&0xffff))) << 16))
#define LOWORD(value) ((WORD)((DWORD_PTR)(value)&0xffff))
#define HIWORD(value) ((WORD)((DWORD_PTR)(value) >> 16 & 0xffff))
#define LOBYTE(value) ((BYTE)((DWORD_PTR)(value)&0xff))
#define HIBYTE(value) ((BYTE)((DWORD_PTR)(value) >> 8 & 0xff))

/* In C++ they would break the standard library's headers. */
#if !defined(NOMINMAX) && !defined(__cplusplus)
#ifndef max
#define max(a, b) (((a) > (b)) ? (a) : (b))
#endif
#ifndef min
#define min(a, b) (((a) < (b)) ? (a) : (b))
#endif
#endif

#endif
