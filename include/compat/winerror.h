/* SPDX-License-Identifier: BSD-2-Clause
 *
 * <winerror.h> for programs written for Windows: the codes that calls of this library
 * give, and their neighbours in common use.
 */
#ifndef PRCB_COMPAT_WINERROR_H
#define PRCB_COMPAT_WINERROR_H

#include "basetsd.h"

#define ERROR_SUCCESS              0
#define NO_ERROR                   0
#define ERROR_INVALID_FUNCTION     1
#define ERROR_FILE_NOT_FOUND       2
#define ERROR_PATH_NOT_FOUND       3
#define ERROR_ACCESS_DENIED        5
#define ERROR_INVALID_HANDLE       6
#define ERROR_NOT_ENOUGH_MEMORY    8
#define ERROR_OUTOFMEMORY          14
#define ERROR_NO_MORE_FILES        18
#define ERROR_BAD_LENGTH           24
#define ERROR_GEN_FAILURE          31
#define ERROR_NOT_SUPPORTED        50
#define ERROR_DUP_NAME             52
#define ERROR_INVALID_PARAMETER    87
#define ERROR_CALL_NOT_IMPLEMENTED 120
#define ERROR_INSUFFICIENT_BUFFER  122
#define ERROR_MOD_NOT_FOUND        126
#define ERROR_PROC_NOT_FOUND       127
#define ERROR_ALREADY_EXISTS       183
#define ERROR_MORE_DATA            234
#define WAIT_TIMEOUT               258
#define ERROR_ENVVAR_NOT_FOUND     203
#define ERROR_MR_MID_NOT_FOUND     317
#define ERROR_INVALID_ADDRESS      487
#define ERROR_NOACCESS             998
#define ERROR_RETRY                1237
#define ERROR_NOT_FOUND            1168
#define ERROR_REVISION_MISMATCH    1306
#define ERROR_PRIVILEGE_NOT_HELD   1314
#define ERROR_INTERNAL_ERROR       1359
#define ERROR_NO_SYSTEM_RESOURCES  1450
#define ERROR_TIMEOUT              1460
#define ERROR_WMI_ALREADY_ENABLED  4206

#define S_OK          ((HRESULT)0)
#define S_FALSE       ((HRESULT)1)
#define SUCCEEDED(hr) (((HRESULT)(hr)) >= 0)
#define FAILED(hr)    (((HRESULT)(hr)) < 0)

#endif
