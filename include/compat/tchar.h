/* SPDX-License-Identifier: BSD-2-Clause
 *
 * <tchar.h> for programs written for Windows: names that mean char, or wchar_t with _UNICODE.
 */
#ifndef PRCB_COMPAT_TCHAR_H
#define PRCB_COMPAT_TCHAR_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

#ifdef _UNICODE
#define __T(quote) L##quote
#define _TCHAR     wchar_t
#define _TINT      wint_t
#define _tprintf   wprintf
#define _ftprintf  fwprintf
#define _vtprintf  vwprintf
#define _puttchar  putwchar
#define _fputts    fputws
#define _fgetts    fgetws
#define _tcslen    wcslen
#define _tcscpy    wcscpy
#define _tcsncpy   wcsncpy
#define _tcscat    wcscat
#define _tcscmp    wcscmp
#define _tcsncmp   wcsncmp
#define _tcsicmp   wcscasecmp
#define _tcschr    wcschr
#define _tcsrchr   wcsrchr
#define _tcsstr    wcsstr
#define _tcstol    wcstol
#define _tcstoul   wcstoul
#define _tcstod    wcstod
#else
#define __T(quote) quote
#define _TCHAR     char
#define _TINT      int
#define _tprintf   printf
#define _ftprintf  fprintf
#define _vtprintf  vprintf
#define _puttchar  putchar
#define _fputts    fputs
#define _fgetts    fgets
#define _tcslen    strlen
#define _tcscpy    strcpy
#define _tcsncpy   strncpy
#define _tcscat    strcat
#define _tcscmp    strcmp
#define _tcsncmp   strncmp
#define _tcsicmp   strcasecmp
#define _tcschr    strchr
#define _tcsrchr   strrchr
#define _tcsstr    strstr
#define _tcstol    strtol
#define _tcstoul   strtoul
#define _tcstod    strtod
#endif

/* Arguments are char here: _tmain is main, and wmain does not exist. */
#ifndef _UNICODE
#define _tmain main
#endif
#define _T(quote)    __T(quote)
#define _TEXT(quote) __T(quote)

#endif
