/* SPDX-License-Identifier: BSD-2-Clause
 *
 * <evntrace.h> for programs written for Windows: the two calls by which a trace session is asked
 * for counters. There are no sessions here, and both say so: prcb record does what they are for.
 */
#ifndef PRCB_COMPAT_EVNTRACE_H
#define PRCB_COMPAT_EVNTRACE_H

#include "windef.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef ULONG64 TRACEHANDLE, *PTRACEHANDLE;

typedef enum _TRACE_QUERY_INFO_CLASS {
    TraceGuidQueryList = 0,
    TraceSampledProfileIntervalInfo = 5,
    TraceProfileSourceConfigInfo = 6,
    TraceProfileSourceListInfo = 7,
    TracePmcEventListInfo = 8,
    TracePmcCounterListInfo = 9
} TRACE_QUERY_INFO_CLASS,
    TRACE_INFO_CLASS;

/* ERROR_NOT_SUPPORTED; ERROR_INVALID_PARAMETER, ERROR_BAD_LENGTH: a list that is none. */
ULONG WINAPI TraceSetInformation(TRACEHANDLE SessionHandle, TRACE_INFO_CLASS InformationClass,
                                 PVOID TraceInformation, ULONG InformationLength);
ULONG WINAPI TraceQueryInformation(TRACEHANDLE SessionHandle, TRACE_INFO_CLASS InformationClass,
                                   PVOID TraceInformation, ULONG InformationLength,
                                   PULONG ReturnLength);

#ifdef __cplusplus
}
#endif
#endif
