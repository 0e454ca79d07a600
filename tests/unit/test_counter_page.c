/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The arithmetic of user-mode reads on recorded pages: counters narrower than 64 bits
 * on both sides of their wrap, the sequence count, multiplexing, the lent clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "counter_page.h"

static struct perf_event_mmap_page page;
static uint64_t pmc_value, tick_value;
static uint32_t pmc_index, pmc_calls, disturb;

static uint64_t pmc(uint32_t index)
{
    pmc_index = index;
    pmc_calls++;
    if (disturb) { /* as a switch would */
        disturb--;
        page.lock += 2;
        page.offset += 1000;
    }
    return pmc_value;
}

static uint64_t ticks(void)
{
    return tick_value;
}

static int setup(void **state)
{
    memset(&page, 0, sizeof(page));
    page.cap_user_rdpmc = 1;
    page.index = 3;
    page.pmc_width = 48;
    page.time_enabled = page.time_running = 5000;
    pmc_value = tick_value = pmc_calls = disturb = 0;
    return 0;
}

static uint64_t must_read(struct counter_reading *ret)
{
    assert_true(counter_page_read(&page, pmc, ticks, ret));
    return ret->value;
}

static void test_sign(void **state)
{
    assert_int_equal(counter_sign_extend(0xffffffffffff, 48), -1);
    assert_int_equal(counter_sign_extend(0x7fffffffffff, 48), 0x7fffffffffff);
    assert_int_equal(counter_sign_extend(0x800000000000, 48), -0x800000000000ll);
    assert_int_equal(counter_sign_extend(0xffff000000000001, 48), 1); /* bits above are noise */
    assert_int_equal(counter_sign_extend(0xffffffff, 32), -1);
    assert_int_equal(counter_sign_extend(0x100000000, 33), -0x100000000ll);
    assert_int_equal(counter_sign_extend(0x8000000000000000, 64), INT64_MIN);
}

/* The kernel starts a 48-bit counter at -2^47 and offset at 2^47 - what it has counted
 * already; recorded with 1234567 counted before. */
static void test_wrap_48(void **state)
{
    struct counter_reading reading;

    page.offset = 0x7fffffffffff + 1 + 1234567;
    pmc_value = 0x800000000000; /* just programmed */
    assert_int_equal(must_read(&reading), 1234567);
    assert_int_equal(pmc_index, 2); /* the page's index counts from 1 */
    pmc_value = 0x800000000000 + 999;
    assert_int_equal(must_read(&reading), 1235566);
    pmc_value = 0xffffffffffff; /* about to wrap */
    assert_int_equal(must_read(&reading), 1234567 + 0x7fffffffffff);
    pmc_value = 0; /* wrapped, the interrupt is on its way */
    assert_int_equal(must_read(&reading), 1234567 + 0x7fffffffffff + 1);
    pmc_value = 77;
    assert_int_equal(must_read(&reading), 1234567 + 0x7fffffffffff + 78);
}

/* 32 bits, as arm64's event counters have: a wrap each few seconds. */
static void test_wrap_32(void **state)
{
    struct counter_reading reading;
    uint64_t last = 0;

    page.pmc_width = 32;
    page.offset = 0x80000000;
    for (uint64_t counted = 0x7ffffff0; counted < 0x80000010; counted++) {
        pmc_value = (0x80000000 + counted) & 0xffffffff;
        assert_int_equal(must_read(&reading), counted);
        assert_true(reading.value > last);
        last = reading.value;
    }
}

static void test_retries(void **state)
{
    struct counter_reading reading;

    page.offset = 10;
    disturb = 3;
    assert_int_equal(must_read(&reading), 3010); /* of the pass that nothing disturbed */
    assert_int_equal(reading.passes, 4);
    assert_int_equal(pmc_calls, 4);
    disturb = COUNTER_PAGE_PASSES + 1;
    assert_false(counter_page_read(&page, pmc, ticks, &reading));
}

static void test_odd_lock(void **state)
{
    struct counter_reading reading;

    page.lock = 7; /* the kernel is in the middle of it */
    assert_false(counter_page_read(&page, pmc, ticks, &reading));
}

static void test_not_readable(void **state)
{
    struct counter_reading reading = {.value = 1};

    page.index = 0; /* not on the processor */
    assert_false(counter_page_read(&page, pmc, ticks, &reading));
    page.index = 3;
    page.cap_user_rdpmc = 0;
    assert_false(counter_page_read(&page, pmc, ticks, &reading));
    assert_int_equal(pmc_calls, 0); /* the instruction would have been a fault */
    assert_int_equal(reading.value, 1);
}

static void test_times(void **state)
{
    struct counter_reading reading;

    page.time_running = 2000;
    must_read(&reading);
    assert_int_equal(reading.enabled_ns, 5000);
    assert_int_equal(reading.running_ns, 2000);
    assert_false(reading.live);
    /* A 2 GHz clock: half a nanosecond a tick. */
    page.cap_user_time = 1;
    page.time_shift = 31;
    page.time_mult = 1u << 30;
    page.time_offset = (uint64_t)-1000000;
    tick_value = 2000000 + 600;
    must_read(&reading);
    assert_true(reading.live);
    assert_int_equal(reading.enabled_ns, 5300);
    assert_int_equal(reading.running_ns, 2300);
}

/* Beyond what 64 bits of ticks times mult would hold. */
static void test_long_times(void **state)
{
    struct counter_reading reading;

    page.cap_user_time = 1;
    page.time_shift = 31;
    page.time_mult = 1u << 30;
    tick_value = 1ull << 50;
    must_read(&reading);
    assert_int_equal(reading.enabled_ns, 5000 + (1ull << 49));
}

static void test_short_clock(void **state)
{
    struct counter_reading reading;

    page.cap_user_time = page.cap_user_time_short = 1;
    page.time_shift = 31;
    page.time_mult = 1u << 31;
    page.time_mask = 0xffffffff;
    page.time_cycles = 0x5fffffff0; /* since when the counter of 32 bits wrapped */
    page.time_offset = (uint64_t)-0x5fffffff0;
    tick_value = 0x10;
    must_read(&reading);
    assert_int_equal(reading.enabled_ns, 5000 + 0x20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_sign, setup),
        cmocka_unit_test_setup(test_wrap_48, setup),
        cmocka_unit_test_setup(test_wrap_32, setup),
        cmocka_unit_test_setup(test_retries, setup),
        cmocka_unit_test_setup(test_odd_lock, setup),
        cmocka_unit_test_setup(test_not_readable, setup),
        cmocka_unit_test_setup(test_times, setup),
        cmocka_unit_test_setup(test_long_times, setup),
        cmocka_unit_test_setup(test_short_clock, setup),
    };

    return cmocka_run_group_tests_name("counter pages", tests, NULL, NULL);
}
