/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where NTSTATUS is born: errno to status, status to Win32 code, and the words of
 * the last failure.
 */
#include "inside.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct nt_errno_row nt_errno_rows[] = {
    {E2BIG, STATUS_INVALID_PARAMETER},
    {EACCES, STATUS_ACCESS_DENIED},
    {EAGAIN, STATUS_RETRY}, /* a writer is stuck: try again */
    {EBADF, STATUS_INVALID_HANDLE},
    {EBUSY, STATUS_INSUFFICIENT_RESOURCES},
    {EFAULT, STATUS_ACCESS_VIOLATION},
    {EINVAL, STATUS_INVALID_PARAMETER},
    {EMFILE, STATUS_INSUFFICIENT_RESOURCES},
    {ENFILE, STATUS_INSUFFICIENT_RESOURCES},
    {ENODEV, STATUS_NOT_SUPPORTED},
    {ENOENT, STATUS_NOT_SUPPORTED},
    {ENOMEM, STATUS_NO_MEMORY},
    {ENOSPC, STATUS_INSUFFICIENT_RESOURCES},
    {ENOSYS, STATUS_NOT_IMPLEMENTED},
    {EOPNOTSUPP, STATUS_NOT_SUPPORTED},
    {EPERM, STATUS_PRIVILEGE_NOT_HELD},
    {ESRCH, STATUS_INVALID_CID},
    {ESTALE, STATUS_INVALID_HANDLE},
};
const size_t nt_errno_row_count = sizeof(nt_errno_rows) / sizeof(nt_errno_rows[0]);

const struct nt_win32_row nt_win32_rows[] = {
    {STATUS_SUCCESS, 0},
    {STATUS_DATATYPE_MISALIGNMENT, 998},   /* ERROR_NOACCESS */
    {STATUS_NOT_IMPLEMENTED, 1},           /* ERROR_INVALID_FUNCTION */
    {STATUS_INVALID_INFO_CLASS, 87},       /* ERROR_INVALID_PARAMETER */
    {STATUS_INFO_LENGTH_MISMATCH, 24},     /* ERROR_BAD_LENGTH */
    {STATUS_ACCESS_VIOLATION, 998},        /* ERROR_NOACCESS */
    {STATUS_INVALID_HANDLE, 6},            /* ERROR_INVALID_HANDLE */
    {STATUS_INVALID_CID, 87},              /* ERROR_INVALID_PARAMETER */
    {STATUS_INVALID_PARAMETER, 87},        /* ERROR_INVALID_PARAMETER */
    {STATUS_NO_MEMORY, 8},                 /* ERROR_NOT_ENOUGH_MEMORY */
    {STATUS_ACCESS_DENIED, 5},             /* ERROR_ACCESS_DENIED */
    {STATUS_BUFFER_TOO_SMALL, 122},        /* ERROR_INSUFFICIENT_BUFFER */
    {STATUS_REVISION_MISMATCH, 1306},      /* ERROR_REVISION_MISMATCH */
    {STATUS_PRIVILEGE_NOT_HELD, 1314},     /* ERROR_PRIVILEGE_NOT_HELD */
    {STATUS_INSUFFICIENT_RESOURCES, 1450}, /* ERROR_NO_SYSTEM_RESOURCES */
    {STATUS_MEMORY_NOT_ALLOCATED, 487},    /* ERROR_INVALID_ADDRESS */
    {STATUS_NOT_SUPPORTED, 50},            /* ERROR_NOT_SUPPORTED */
    {STATUS_INTERNAL_ERROR, 1359},         /* ERROR_INTERNAL_ERROR */
    {STATUS_INVALID_PARAMETER_2, 87},      /* ERROR_INVALID_PARAMETER */
    {STATUS_ADDRESS_ALREADY_EXISTS, 52},   /* ERROR_DUP_NAME */
    {STATUS_RETRY, 1237},                  /* ERROR_RETRY */
    {STATUS_WMI_ALREADY_ENABLED, 4206},    /* ERROR_WMI_ALREADY_ENABLED */
};
const size_t nt_win32_row_count = sizeof(nt_win32_rows) / sizeof(nt_win32_rows[0]);

#define ERROR_MR_MID_NOT_FOUND 317

static __thread char last_text[sizeof(((struct prcb_error *)0)->text)];

NTSTATUS nt_status(int code)
{
    if (!code)
        return STATUS_SUCCESS;
    for (size_t i = 0; i < nt_errno_row_count; i++) {
        if (nt_errno_rows[i].code == -code)
            return nt_errno_rows[i].status;
    }
    return STATUS_INTERNAL_ERROR;
}

uint32_t prcb_RtlNtStatusToDosError(NTSTATUS Status)
{
    for (size_t i = 0; i < nt_win32_row_count; i++) {
        if (nt_win32_rows[i].status == Status)
            return nt_win32_rows[i].win32;
    }
    return ERROR_MR_MID_NOT_FOUND;
}

NTSTATUS nt_fail(NTSTATUS status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(last_text, sizeof(last_text), format, args);
    va_end(args);
    return status;
}

NTSTATUS nt_fail_errno(int code, const struct prcb_error *err)
{
    return nt_fail(nt_status(code), "%s", err->text[0] ? err->text : strerror(-code));
}

const char *prcb_nt_error_text(void)
{
    return last_text;
}
