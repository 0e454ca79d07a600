/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What cgroups say of their quota of processor time, in files as both versions have them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "quota.h"

static char folder[] = "/tmp/prcb-quota-XXXXXX";

static void put(const char *name, const char *text)
{
    char path[128];
    FILE *out;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static void test_version_2(void **state)
{
    struct cgroup_at at = {.mount = folder, .group = ""};
    struct quota quota;

    (void)state;
    put("cpu.max", "max 100000\n");
    put("cpu.stat", "usage_usec 1\nnr_periods 7\nnr_throttled 5\nthrottled_usec 9\n");
    assert_int_equal(quota_of(&at, &quota), -ENOENT);
    put("cpu.max", "20000 100000\n");
    assert_int_equal(quota_of(&at, &quota), 0);
    assert_int_equal(quota.quota_us, 20000);
    assert_int_equal(quota.period_us, 100000);
    assert_int_equal(quota.periods, 7);
    assert_int_equal(quota.throttled, 5);
    assert_string_equal(quota.group, "/");
    put("cpu.stat", "usage_usec 1\nnr_periods 7\nnr_throttled 0\nthrottled_usec 0\n");
    assert_int_equal(quota_of(&at, &quota), -ENOENT);
    put("cpu.stat", "");
    assert_int_equal(quota_of(&at, &quota), -ENOENT);
}

static void test_version_1(void **state)
{
    struct cgroup_at at = {.mount = folder, .v1 = true, .group = ""};
    struct quota quota;

    (void)state;
    put("cpu.stat", "nr_periods 159\nnr_throttled 156\nthrottled_time 13259979853\n");
    assert_int_equal(quota_of(&at, &quota), -ENOENT);
    put("cpu.cfs_period_us", "50000\n");
    put("cpu.cfs_quota_us", "-1\n");
    assert_int_equal(quota_of(&at, &quota), -ENOENT);
    put("cpu.cfs_quota_us", "5000\n");
    assert_int_equal(quota_of(&at, &quota), 0);
    assert_int_equal(quota.quota_us, 5000);
    assert_int_equal(quota.period_us, 50000);
    assert_int_equal(quota.throttled, 156);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"cpu.max", "cpu.stat", "cpu.cfs_period_us",
                                        "cpu.cfs_quota_us"};
    char path[128];

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_2),
        cmocka_unit_test(test_version_1),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
