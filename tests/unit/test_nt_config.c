/* SPDX-License-Identifier: BSD-2-Clause
 *
 * KeSetHardwareCounterConfiguration and its query: every row of their contracts that
 * does not speak of IRQL. Source 0 counts on every machine; 7 counts on none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"

#define TIME      0
#define NOT_ISSUE 7 /* ProfileTotalNonissues: nothing backs it */
#define FAULTS    (PRCB_PROFILE_SOURCE_LINUX + 2)

static HARDWARE_COUNTER counter(uint64_t index)
{
    return (HARDWARE_COUNTER){.Type = PMCCounter, .Index = index};
}

static uint32_t configured(void)
{
    HARDWARE_COUNTER array[MAX_HW_COUNTERS];
    uint32_t count = 0xdead;

    assert_int_equal(prcb_KeQueryHardwareCounterConfiguration(array, MAX_HW_COUNTERS, &count), 0);
    return count;
}

static int reset(void **state)
{
    return prcb_KeSetHardwareCounterConfiguration(NULL, 0);
}

static void test_starts_empty(void **state)
{
    uint32_t count = 0xdead;

    assert_int_equal(prcb_KeQueryHardwareCounterConfiguration(NULL, 0, &count), STATUS_SUCCESS);
    assert_int_equal(count, 0);
}

static void test_set_and_query(void **state)
{
    HARDWARE_COUNTER array[3] = {counter(TIME), counter(FAULTS), counter(NOT_ISSUE)}, got[5];
    uint32_t count = 0;

    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(array, 3), STATUS_SUCCESS);
    memset(array, 0xaa, sizeof(array)); /* it was copied */
    memset(got, 0x55, sizeof(got));
    assert_int_equal(prcb_KeQueryHardwareCounterConfiguration(got, 5, &count), STATUS_SUCCESS);
    assert_int_equal(count, 3);
    assert_int_equal(got[0].Index, TIME);
    assert_int_equal(got[1].Index, FAULTS);
    assert_int_equal(got[2].Index, NOT_ISSUE);
    assert_int_equal(got[2].Type, PMCCounter);
    assert_int_equal(got[3].Index, 0x5555555555555555); /* no more than those */
}

static void test_replaces(void **state)
{
    HARDWARE_COUNTER array[2] = {counter(TIME), counter(FAULTS)};

    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(array, 2), STATUS_SUCCESS);
    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(array + 1, 1), STATUS_SUCCESS);
    assert_int_equal(configured(), 1);
    assert_int_equal(nt_config()->counters[0].Index, FAULTS);
    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(NULL, 0), STATUS_SUCCESS);
    assert_int_equal(configured(), 0);
}

static void test_most(void **state)
{
    HARDWARE_COUNTER array[MAX_HW_COUNTERS + 1];

    for (int i = 0; i <= MAX_HW_COUNTERS; i++)
        array[i] = counter(TIME); /* duplicates are allowed */
    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(array, MAX_HW_COUNTERS), 0);
    assert_int_equal(configured(), MAX_HW_COUNTERS);
    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(array, MAX_HW_COUNTERS + 1),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(array, UINT32_MAX),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(configured(), MAX_HW_COUNTERS); /* a failure changes nothing */
}

static void test_bad_elements(void **state)
{
    HARDWARE_COUNTER array[2] = {counter(TIME), counter(TIME)};

    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(NULL, 1), STATUS_INVALID_PARAMETER);
    array[1].Type = MaxHardwareCounterType;
    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(array, 2), STATUS_INVALID_PARAMETER);
    array[1] = counter(TIME);
    array[1].Reserved = 1;
    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(array, 2), STATUS_INVALID_PARAMETER);
    assert_int_equal(configured(), 0);
}

static void test_nothing_counts(void **state)
{
    HARDWARE_COUNTER array[3] = {counter(NOT_ISSUE), counter(0x123456789), counter(TIME)};

    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(array, 2), STATUS_NOT_SUPPORTED);
    assert_non_null(strstr(prcb_nt_error_text(), "source 7"));
    assert_int_equal(configured(), 0);
    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(array, 3), STATUS_SUCCESS);
    assert_string_equal(nt_config()->events[0].name, "");
    assert_string_equal(nt_config()->events[1].name, "");
    assert_string_equal(nt_config()->events[2].name, "task-clock");
}

static void test_in_use(void **state)
{
    HARDWARE_COUNTER array[1] = {counter(TIME)};
    void *handle;

    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(array, 1), STATUS_SUCCESS);
    assert_int_equal(prcb_RtlEnableThreadProfiling(prcb_GetCurrentThread(), 0, 1, &handle), 0);
    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(array, 1), STATUS_WMI_ALREADY_ENABLED);
    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(NULL, 0), STATUS_WMI_ALREADY_ENABLED);
    assert_int_equal(configured(), 1);
    assert_int_equal(prcb_RtlDisableThreadProfiling(handle), 0);
    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(NULL, 0), STATUS_SUCCESS);
}

static void test_query_too_small(void **state)
{
    HARDWARE_COUNTER array[2] = {counter(TIME), counter(FAULTS)}, got[2];
    uint32_t count = 0;

    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(array, 2), STATUS_SUCCESS);
    memset(got, 0x55, sizeof(got));
    assert_int_equal(prcb_KeQueryHardwareCounterConfiguration(got, 1, &count),
                     STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(count, 2);
    assert_int_equal(got[0].Index, 0x5555555555555555);
    count = 0;
    assert_int_equal(prcb_KeQueryHardwareCounterConfiguration(NULL, 0, &count),
                     STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(count, 2);
    assert_int_equal(prcb_KeQueryHardwareCounterConfiguration(got, 2, &count), STATUS_SUCCESS);
    assert_int_equal(got[1].Index, FAULTS);
}

static void test_query_bad(void **state)
{
    HARDWARE_COUNTER array[1] = {counter(TIME)};
    uint32_t count = 0xdead;

    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(array, 1), STATUS_SUCCESS);
    assert_int_equal(prcb_KeQueryHardwareCounterConfiguration(array, 1, NULL),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_KeQueryHardwareCounterConfiguration(NULL, 1, &count),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(count, 0xdead);
}

/* NT's scope is the system, ours the process: a child has what its parent had at the
 * fork, and the two are apart from then on. */
static void test_scope(void **state)
{
    HARDWARE_COUNTER array[1] = {counter(TIME)};
    int status = -1;
    pid_t child;

    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(array, 1), STATUS_SUCCESS);
    child = fork();
    if (!child)
        _exit(configured() != 1 || prcb_KeSetHardwareCounterConfiguration(NULL, 0) ||
              configured() != 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(configured(), 1);
}

/* Each source that claims a backing has an event of a known name; each number and each
 * name occurs once; lookups find the rows. */
static void test_sources(void **state)
{
    const struct prcb_profile_source *a, *b;
    struct counter_event event;
    struct prcb_error err = {0};

    for (size_t i = 0; (a = prcb_profile_source(i)); i++) {
        assert_ptr_equal(prcb_profile_source_find(a->number), a);
        if (a->event)
            assert_int_equal(counter_event_find(a->event, &event, &err), 0);
        for (size_t j = 0; j < i; j++) {
            b = prcb_profile_source(j);
            assert_true(a->number != b->number);
            assert_false(a->name && b->name && !strcmp(a->name, b->name));
        }
    }
    assert_string_equal(prcb_profile_source_find(2)->event, "instructions");
    assert_string_equal(prcb_profile_source_find(6)->event, "branches");
    assert_string_equal(prcb_profile_source_find(10)->event, "cache-misses");
    assert_string_equal(prcb_profile_source_find(11)->event, "branch-misses");
    assert_string_equal(prcb_profile_source_find(19)->event, "cycles");
    assert_string_equal(prcb_profile_source_find(0x40000000)->event, "instructions");
    assert_null(prcb_profile_source_find(24)); /* ProfileMaximum */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_starts_empty, reset),
        cmocka_unit_test_teardown(test_set_and_query, reset),
        cmocka_unit_test_teardown(test_replaces, reset),
        cmocka_unit_test_teardown(test_most, reset),
        cmocka_unit_test_teardown(test_bad_elements, reset),
        cmocka_unit_test_teardown(test_nothing_counts, reset),
        cmocka_unit_test_teardown(test_in_use, reset),
        cmocka_unit_test_teardown(test_query_too_small, reset),
        cmocka_unit_test_teardown(test_query_bad, reset),
        cmocka_unit_test_teardown(test_scope, reset),
        cmocka_unit_test(test_sources),
    };
    struct prcb_error err;

    if (prcb_counter_check("task-clock", NULL, &err)) {
        printf("skipped: %s\n", err.text);
        return 77;
    }
    return cmocka_run_group_tests_name("nt configuration", tests, NULL, NULL);
}
