/* SPDX-License-Identifier: BSD-2-Clause
 *
 * <powerbase.h> for programs written for Windows: the one call of powrprof.dll that prcb-nt
 * exports.
 */
#ifndef PRCB_COMPAT_POWERBASE_H
#define PRCB_COMPAT_POWERBASE_H

#include "windef.h"

#ifdef __cplusplus
extern "C" {
#endif

NTSTATUS WINAPI CallNtPowerInformation(POWER_INFORMATION_LEVEL InformationLevel, PVOID InputBuffer,
                                       ULONG InputBufferLength, PVOID OutputBuffer,
                                       ULONG OutputBufferLength);

#ifdef __cplusplus
}
#endif
#endif
