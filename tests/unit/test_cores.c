/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Machines whose processors' numbers have holes, and large ones, made up from the kernel's
 * documented formats.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "cores.h"
#include "present.h"

#define CORES 4096

static char root[] = "/dev/shm/prcb-cores-XXXXXX"; /* memory: some 8,000 folders */
static struct core cores[CORES];

__attribute__((format(printf, 1, 2))) static void make_folder(const char *format, ...)
{
    char path[256];
    size_t length = (size_t)snprintf(path, sizeof(path), "%s/", root);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(path + length, sizeof(path) - length, format, arguments);
    va_end(arguments);
    assert_int_equal(mkdir(path, 0755), 0);
}

static void begin(void)
{
    snprintf(root, sizeof(root), "/dev/shm/prcb-cores-XXXXXX");
    assert_non_null(mkdtemp(root));
    make_folder("sys");
    make_folder("sys/devices");
    make_folder("sys/devices/system");
    make_folder("sys/devices/system/cpu");
    make_folder("sys/devices/system/cpu/cpufreq"); /* beside them: no processor */
}

static void end(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

static void is(uint32_t cpu, uint32_t node, uint32_t index)
{
    assert_true(cores[cpu].known);
    assert_int_equal(cores[cpu].node, node);
    assert_int_equal(cores[cpu].index, index);
}

static void holes(void **state)
{
    static const unsigned there[] = {0, 1, 8, 9, 4095};

    begin();
    for (size_t i = 0; i < 5; i++)
        make_folder("sys/devices/system/cpu/cpu%u", there[i]);
    cores_read(root, cores, CORES);
    for (uint32_t i = 0; i < 5; i++)
        is(there[i], 0, i);
    assert_false(cores[2].known || cores[10].known);
    /* Beyond what was asked for there is nothing, and nothing is written. */
    cores[2].index = 77;
    cores_read(root, cores, 2);
    assert_int_equal(cores[2].index, 77);
    end();
}

/* 4,096 processors in 64 nodes, each of which has every 64th. */
static void many(void **state)
{
    begin();
    make_folder("sys/devices/system/node");
    for (unsigned node = 0; node < 64; node++)
        make_folder("sys/devices/system/node/node%u", node);
    for (unsigned cpu = 0; cpu < CORES; cpu++) {
        make_folder("sys/devices/system/cpu/cpu%u", cpu);
        make_folder("sys/devices/system/node/node%u/cpu%u", cpu % 64, cpu);
    }
    cores_read(root, cores, CORES);
    for (uint32_t cpu = 0; cpu < CORES; cpu++)
        is(cpu, cpu % 64, cpu / 64);
    end();
}

static void nothing(void **state)
{
    cores_read("/nonexistent", cores, CORES);
    for (uint32_t cpu = 0; cpu < CORES; cpu++)
        assert_false(cores[cpu].known);
}

static void lists(void **state)
{
    assert_int_equal(present_by_list("0", 8), 1);
    assert_int_equal(present_by_list("0-3,8-11", 4096), 12);
    assert_int_equal(present_by_list("0-4095", 4096), 4096);
    assert_int_equal(present_by_list("0-4095", 64), 64); /* never more than is possible */
    assert_int_equal(present_by_list("0,2,4", 4096), 5);
    assert_int_equal(present_by_list("", 64), 64);
    assert_int_equal(present_by_list("0-", 64), 64);
    assert_in_range(numbered_processors(), 1, 8192);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(holes),
        cmocka_unit_test(many),
        cmocka_unit_test(nothing),
        cmocka_unit_test(lists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
