/* SPDX-License-Identifier: BSD-2-Clause
 *
 * <windows.h> for programs written for Windows that measure threads and processors: a subset,
 * for C and C++. Compile and link with `pkg-config --cflags --libs prcb-nt`; docs/porting.md
 * says what differs. Not for new programs: those have prcb/nt.h and prcb/prcb.h.
 */
#ifndef PRCB_COMPAT_WINDOWS_H
#define PRCB_COMPAT_WINDOWS_H

/* Windows.h brings these along, and programs count on it. */
#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#include "windef.h"

#include "winbase.h"

#endif
