/* SPDX-License-Identifier: BSD-2-Clause
 *
 * errno to NTSTATUS and NTSTATUS to Win32 codes: the values, and that the two tables
 * fit each other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "inside.h"

/* Values by the public list of status codes, not by our header. */
static void test_values(void **state)
{
    assert_int_equal((uint32_t)STATUS_SUCCESS, 0x00000000);
    assert_int_equal((uint32_t)STATUS_DATATYPE_MISALIGNMENT, 0x80000002);
    assert_int_equal((uint32_t)STATUS_NOT_IMPLEMENTED, 0xC0000002);
    assert_int_equal((uint32_t)STATUS_INVALID_INFO_CLASS, 0xC0000003);
    assert_int_equal((uint32_t)STATUS_INFO_LENGTH_MISMATCH, 0xC0000004);
    assert_int_equal((uint32_t)STATUS_ACCESS_VIOLATION, 0xC0000005);
    assert_int_equal((uint32_t)STATUS_INVALID_HANDLE, 0xC0000008);
    assert_int_equal((uint32_t)STATUS_INVALID_PARAMETER, 0xC000000D);
    assert_int_equal((uint32_t)STATUS_NO_MEMORY, 0xC0000017);
    assert_int_equal((uint32_t)STATUS_ACCESS_DENIED, 0xC0000022);
    assert_int_equal((uint32_t)STATUS_BUFFER_TOO_SMALL, 0xC0000023);
    assert_int_equal((uint32_t)STATUS_REVISION_MISMATCH, 0xC0000059);
    assert_int_equal((uint32_t)STATUS_PRIVILEGE_NOT_HELD, 0xC0000061);
    assert_int_equal((uint32_t)STATUS_INSUFFICIENT_RESOURCES, 0xC000009A);
    assert_int_equal((uint32_t)STATUS_MEMORY_NOT_ALLOCATED, 0xC00000A0);
    assert_int_equal((uint32_t)STATUS_NOT_SUPPORTED, 0xC00000BB);
    assert_int_equal((uint32_t)STATUS_INVALID_PARAMETER_2, 0xC00000F0);
    assert_int_equal((uint32_t)STATUS_ADDRESS_ALREADY_EXISTS, 0xC000020A);
    assert_int_equal((uint32_t)STATUS_WMI_ALREADY_ENABLED, 0xC0000303);
}

static bool has_win32(NTSTATUS status)
{
    for (size_t i = 0; i < nt_win32_row_count; i++) {
        if (nt_win32_rows[i].status == status)
            return true;
    }
    return false;
}

static void test_errno(void **state)
{
    assert_int_equal(nt_status(0), STATUS_SUCCESS);
    for (size_t i = 0; i < nt_errno_row_count; i++) {
        assert_true(nt_errno_rows[i].code > 0);
        assert_int_equal(nt_status(-nt_errno_rows[i].code), nt_errno_rows[i].status);
        assert_true(nt_errno_rows[i].status < 0); /* an error is never a success */
        assert_true(has_win32(nt_errno_rows[i].status));
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(nt_errno_rows[i].code, nt_errno_rows[j].code);
    }
    assert_int_equal(nt_status(-EXDEV), STATUS_INTERNAL_ERROR);
    assert_true(has_win32(STATUS_INTERNAL_ERROR));
}

static void test_win32(void **state)
{
    for (size_t i = 0; i < nt_win32_row_count; i++) {
        assert_int_equal(prcb_RtlNtStatusToDosError(nt_win32_rows[i].status),
                         nt_win32_rows[i].win32);
        assert_true(!nt_win32_rows[i].win32 == (nt_win32_rows[i].status == STATUS_SUCCESS));
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(nt_win32_rows[i].status, nt_win32_rows[j].status);
    }
    assert_int_equal(prcb_RtlNtStatusToDosError(STATUS_INVALID_HANDLE), 6);
    assert_int_equal(prcb_RtlNtStatusToDosError(STATUS_INVALID_PARAMETER), 87);
    assert_int_equal(prcb_RtlNtStatusToDosError(STATUS_WMI_ALREADY_ENABLED), 0x106E);
    assert_int_equal(prcb_RtlNtStatusToDosError(STATUS_NOT_SUPPORTED), 50);
    assert_int_equal(prcb_RtlNtStatusToDosError((NTSTATUS)0xC0FFEE00), 317);
}

static void test_text(void **state)
{
    struct prcb_error err = {.code = -ENOENT};

    assert_int_equal(nt_fail(STATUS_NO_MEMORY, "the number %d", 7), STATUS_NO_MEMORY);
    assert_string_equal(prcb_nt_error_text(), "the number 7");
    assert_int_equal(nt_fail_errno(-ENOENT, &err), STATUS_NOT_SUPPORTED);
    assert_string_equal(prcb_nt_error_text(), strerror(ENOENT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_errno),
        cmocka_unit_test(test_win32),
        cmocka_unit_test(test_text),
    };

    return cmocka_run_group_tests_name("nt status", tests, NULL, NULL);
}
