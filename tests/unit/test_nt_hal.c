/* SPDX-License-Identifier: BSD-2-Clause
 *
 * HalAllocateHardwareCounters and HalFreeHardwareCounters: every row of their contract.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prcb/counters.h>

#include "inside.h"

#define NOBODY ((void *)0x123)

static void *must_allocate(GROUP_AFFINITY *affinity, PHYSICAL_COUNTER_RESOURCE_LIST *list)
{
    void *handle = NULL;

    assert_int_equal(prcb_HalAllocateHardwareCounters(affinity, affinity ? 1 : 0, list, &handle),
                     STATUS_SUCCESS);
    assert_non_null(handle);
    return handle;
}

static void must_free(void *handle)
{
    assert_int_equal(prcb_HalFreeHardwareCounters(handle), STATUS_SUCCESS);
}

static NTSTATUS try_list(PHYSICAL_COUNTER_RESOURCE_LIST *list)
{
    void *handle = NOBODY;
    NTSTATUS status = prcb_HalAllocateHardwareCounters(NULL, 0, list, &handle);

    if (!status)
        must_free(handle);
    return status;
}

static PHYSICAL_COUNTER_RESOURCE_LIST single(uint32_t index)
{
    PHYSICAL_COUNTER_RESOURCE_LIST list = {.Count = 1};

    list.Descriptors[0].Type = ResourceTypeSingle;
    list.Descriptors[0].u.CounterIndex = index;
    return list;
}

/* Also on a machine without a counter, as in a virtual machine on NT. */
static void test_everything(void **state)
{
    void *held = must_allocate(NULL, NULL), *second = NOBODY;
    PHYSICAL_COUNTER_RESOURCE_LIST list = single(3);

    assert_int_equal(prcb_HalAllocateHardwareCounters(NULL, 0, NULL, &second),
                     STATUS_INSUFFICIENT_RESOURCES);
    assert_null(second);
    second = NOBODY;
    assert_int_equal(prcb_HalAllocateHardwareCounters(NULL, 0, &list, &second),
                     STATUS_INSUFFICIENT_RESOURCES);
    assert_null(second);
    must_free(held);
    must_free(must_allocate(NULL, NULL));
}

static void test_resources_apart(void **state)
{
    PHYSICAL_COUNTER_RESOURCE_LIST one = single(1), two = single(2), range = {.Count = 1};
    void *first = must_allocate(NULL, &one), *second = must_allocate(NULL, &two), *third = NOBODY;

    range.Descriptors[0].Type = ResourceTypeRange;
    range.Descriptors[0].u.Range.Begin = 2;
    range.Descriptors[0].u.Range.End = 5;
    assert_int_equal(try_list(&range), STATUS_INSUFFICIENT_RESOURCES);
    must_free(second);
    third = must_allocate(NULL, &range);
    assert_int_equal(try_list(&two), STATUS_INSUFFICIENT_RESOURCES);
    must_free(first);
    must_free(third);
}

static void test_processors_apart(void **state)
{
    GROUP_AFFINITY zero = {.Mask = 1}, one = {.Mask = 2}, both = {.Mask = 3};
    void *first, *second, *third = NOBODY;

    if (sysconf(_SC_NPROCESSORS_CONF) < 2)
        skip();
    first = must_allocate(&zero, NULL);
    second = must_allocate(&one, NULL);
    assert_int_equal(prcb_HalAllocateHardwareCounters(&both, 1, NULL, &third),
                     STATUS_INSUFFICIENT_RESOURCES);
    assert_null(third);
    must_free(first);
    must_free(second);
    must_free(must_allocate(&both, NULL));
}

static void test_bad_arguments(void **state)
{
    GROUP_AFFINITY affinity = {.Mask = 1};
    void *handle = NOBODY;

    assert_int_equal(prcb_HalAllocateHardwareCounters(NULL, 0, NULL, NULL),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_HalAllocateHardwareCounters(NULL, 1, NULL, &handle),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_HalAllocateHardwareCounters(&affinity, 0, NULL, &handle),
                     STATUS_INVALID_PARAMETER);
    affinity.Group = 4000;
    assert_int_equal(prcb_HalAllocateHardwareCounters(&affinity, 1, NULL, &handle),
                     STATUS_INVALID_PARAMETER);
    affinity = (GROUP_AFFINITY){.Mask = 0};
    assert_int_equal(prcb_HalAllocateHardwareCounters(&affinity, 1, NULL, &handle),
                     STATUS_INVALID_PARAMETER);
    affinity = (GROUP_AFFINITY){.Mask = 1, .Reserved = {0, 1, 0}};
    assert_int_equal(prcb_HalAllocateHardwareCounters(&affinity, 1, NULL, &handle),
                     STATUS_INVALID_PARAMETER);
    must_free(must_allocate(NULL, NULL)); /* nothing is held after all that */
}

static void test_bad_lists(void **state)
{
    PHYSICAL_COUNTER_RESOURCE_LIST list = single(0);

    assert_int_equal(try_list(&list), STATUS_SUCCESS);
    list.Count = 0;
    assert_int_equal(try_list(&list), STATUS_INVALID_PARAMETER);
    list = single(0);
    list.Descriptors[0].Flags = 1;
    assert_int_equal(try_list(&list), STATUS_INVALID_PARAMETER);
    list = single(0);
    list.Descriptors[0].Type = ResourceTypeMax;
    assert_int_equal(try_list(&list), STATUS_INVALID_PARAMETER);
    list.Descriptors[0].Type = ResourceTypeRange;
    list.Descriptors[0].u.Range.Begin = 5;
    list.Descriptors[0].u.Range.End = 4;
    assert_int_equal(try_list(&list), STATUS_INVALID_PARAMETER);
}

static void test_unsupported(void **state)
{
    static const PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE types[] = {
        ResourceTypeExtendedCounterConfiguration, ResourceTypeOverflow, ResourceTypeEventBuffer};
    PHYSICAL_COUNTER_RESOURCE_LIST list = single(64);

    assert_int_equal(try_list(&list), STATUS_NOT_SUPPORTED);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        list = (PHYSICAL_COUNTER_RESOURCE_LIST){.Count = 1};
        list.Descriptors[0].Type = types[i];
        assert_int_equal(try_list(&list), STATUS_NOT_SUPPORTED);
    }
}

/* A list longer than the one element it is declared with, the bad one last. */
static void test_list_of_three(void **state)
{
    size_t bytes = offsetof(PHYSICAL_COUNTER_RESOURCE_LIST, Descriptors) +
                   3 * sizeof(PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR);
    PHYSICAL_COUNTER_RESOURCE_LIST *list = calloc(1, bytes), seven = single(7);
    PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR *element = list->Descriptors;
    void *held;

    list->Count = 3;
    for (unsigned i = 0; i < 3; i++)
        element[i].u.CounterIndex = 5 + i;
    held = must_allocate(NULL, list);
    assert_int_equal(try_list(&seven), STATUS_INSUFFICIENT_RESOURCES);
    must_free(held);
    element[2].Type = ResourceTypeOverflow;
    assert_int_equal(try_list(list), STATUS_NOT_SUPPORTED);
    must_free(must_allocate(NULL, &seven));
    free(list);
}

static void test_giving_back(void **state)
{
    void *handle = must_allocate(NULL, NULL), *thread = prcb_OpenThread(0, 0, (uint32_t)gettid());

    assert_int_equal(prcb_HalFreeHardwareCounters(NULL), STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_HalFreeHardwareCounters(thread), STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_HalFreeHardwareCounters((char *)handle + 1), STATUS_INVALID_PARAMETER);
    must_free(handle);
    assert_int_equal(prcb_HalFreeHardwareCounters(handle), STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_NtClose(thread), STATUS_SUCCESS);
}

/* Nobody is bound by a reservation but those who ask for one. */
static void test_voluntary(void **state)
{
    void *held = must_allocate(NULL, NULL);
    HARDWARE_COUNTER time = {.Type = PMCCounter, .Index = 0};
    struct prcb_error err;

    if (prcb_counter_check("task-clock", NULL, &err)) {
        must_free(held);
        printf("    not run: %s\n", err.text); /* kernel.perf_event_paranoid is above 2, no root */
        skip();
    }
    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(&time, 1), STATUS_SUCCESS);
    assert_int_equal(prcb_KeSetHardwareCounterConfiguration(NULL, 0), STATUS_SUCCESS);
    must_free(held);
}

static void test_fork(void **state)
{
    void *held = must_allocate(NULL, NULL), *own = NULL;
    int status = -1;
    pid_t child = fork();

    if (!child)
        _exit(prcb_HalFreeHardwareCounters(held) != STATUS_INVALID_PARAMETER ||
              prcb_HalAllocateHardwareCounters(NULL, 0, NULL, &own) != STATUS_SUCCESS);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    must_free(held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything),       cmocka_unit_test(test_resources_apart),
        cmocka_unit_test(test_processors_apart), cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_bad_lists),        cmocka_unit_test(test_unsupported),
        cmocka_unit_test(test_list_of_three),    cmocka_unit_test(test_giving_back),
        cmocka_unit_test(test_voluntary),        cmocka_unit_test(test_fork),
    };

    return cmocka_run_group_tests_name("nt reservations", tests, NULL, NULL);
}
