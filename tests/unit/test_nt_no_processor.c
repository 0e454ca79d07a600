/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The configuration calls as they are on a kind of processor that NT does not know
 * them for: the file itself, compiled so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define NT_ARCHITECTURE_SUPPORTED                0
#define nt_config                                no_processor_config
#define prcb_KeSetHardwareCounterConfiguration   no_processor_set
#define prcb_KeQueryHardwareCounterConfiguration no_processor_query
#include "inside.h"

#include "../../src/nt/calls/config.c"

static void test_not_implemented(void **state)
{
    HARDWARE_COUNTER array[1] = {{.Type = PMCCounter}};
    uint32_t count = 0xdead;

    assert_int_equal(no_processor_set(array, 1), STATUS_NOT_IMPLEMENTED);
    assert_int_equal(no_processor_set(NULL, 0), STATUS_NOT_IMPLEMENTED);
    assert_int_equal(no_processor_query(array, 1, &count), STATUS_NOT_IMPLEMENTED);
    assert_int_equal(count, 0xdead);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_not_implemented)};

    return cmocka_run_group_tests_name("nt without a processor", tests, NULL, NULL);
}
