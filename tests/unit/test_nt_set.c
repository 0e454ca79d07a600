/* SPDX-License-Identifier: BSD-2-Clause
 *
 * NtSetSystemInformation: every row of its rules, and class 0x1C both ways over a clock that is
 * the test's own. KeQueryTimeIncrement against what else the system tells of its tick.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inside.h"

/* Stands for the C library's: the machine's clock is left alone. */
static struct timex clock_state;
static int clock_error;
static unsigned clock_calls;

int adjtimex(struct timex *buffer)
{
    clock_calls++;
    if (clock_error) {
        errno = clock_error;
        return -1;
    }
    if (buffer->modes & ADJ_TICK)
        clock_state.tick = buffer->tick;
    if (buffer->modes & ADJ_FREQUENCY)
        clock_state.freq = buffer->freq;
    buffer->tick = clock_state.tick;
    buffer->freq = clock_state.freq;
    return 0;
}

static int set_up(void **state)
{
    clock_state = (struct timex){.tick = 10000};
    clock_error = 0;
    clock_calls = 0;
    return 0;
}

static NTSTATUS set(uint32_t adjustment, uint8_t enable)
{
    SYSTEM_SET_TIME_ADJUST_INFORMATION wanted = {adjustment, enable};

    return prcb_NtSetSystemInformation(0x1c, &wanted, sizeof(wanted));
}

static SYSTEM_QUERY_TIME_ADJUST_INFORMATION query(void)
{
    SYSTEM_QUERY_TIME_ADJUST_INFORMATION now;

    memset(&now, 0xa5, sizeof(now));
    assert_int_equal(nt_time_adjustment(&now), STATUS_SUCCESS);
    return now;
}

/* The step of a coarse clock is the tick: seen here as what it advances by. */
static void test_increment(void **state)
{
    uint32_t increment = prcb_KeQueryTimeIncrement();
    struct timespec first, now;
    int64_t step;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &first);
    do
        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    while (now.tv_nsec == first.tv_nsec);
    step = (now.tv_sec - first.tv_sec) * 1000000000ll + now.tv_nsec - first.tv_nsec;
    assert_in_range(increment, 9999, 100000); /* 1000 Hz to 100 Hz */
    assert_int_equal(increment, prcb_KeQueryTimeIncrement());
    /* A whole number of ticks, of which a busy machine may miss some; the clock's rate is adjusted
     * by 500 ppm at most. */
    assert_true(step >= increment * 100ll * 999 / 1000);
    step %= increment * 100ll;
    assert_true(step <= increment * 10ll || step >= increment * 90ll);
}

static void test_lengths(void **state)
{
    uint32_t words[5] = {0};

    for (uint32_t length = 0; length <= sizeof(words); length++) {
        words[0] = prcb_KeQueryTimeIncrement();
        clock_calls = 0;
        assert_int_equal(prcb_NtSetSystemInformation(0x1c, words, length),
                         length == 8 ? STATUS_SUCCESS : STATUS_INFO_LENGTH_MISMATCH);
        assert_int_equal(clock_calls, length == 8);
    }
    assert_int_equal(prcb_NtSetSystemInformation(0x1c, NULL, 0), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(prcb_ZwSetSystemInformation(0x1c, words, 7), STATUS_INFO_LENGTH_MISMATCH);
}

static void test_classes(void **state)
{
    uint32_t words[2] = {0};

    assert_int_equal(prcb_NtSetSystemInformation(0x08, words, 8), STATUS_INVALID_INFO_CLASS);
    assert_int_equal(prcb_NtSetSystemInformation(UINT32_MAX, NULL, 0), STATUS_INVALID_INFO_CLASS);
    for (size_t i = 0; i < nt_set_class_count; i++) {
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(nt_set_classes[i].information_class,
                                 nt_set_classes[j].information_class);
    }
}

static void test_memory(void **state)
{
    long page = sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t increment = prcb_KeQueryTimeIncrement();

    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(munmap(pages + page, page), 0);
    for (int i = 1; i < 4; i++)
        assert_int_equal(prcb_NtSetSystemInformation(0x1c, pages + i, 8),
                         STATUS_DATATYPE_MISALIGNMENT);
    assert_int_equal(prcb_NtSetSystemInformation(0x1c, NULL, 8), STATUS_ACCESS_VIOLATION);
    assert_int_equal(prcb_NtSetSystemInformation(0x1c, pages + page, 8), STATUS_ACCESS_VIOLATION);
    assert_int_equal(prcb_NtSetSystemInformation(0x1c, pages + page - 4, 8),
                     STATUS_ACCESS_VIOLATION);
    assert_int_equal(prcb_NtSetSystemInformation(0x1c, (void *)(UINTPTR_MAX - 3), 8),
                     STATUS_ACCESS_VIOLATION);
    /* It is read, so it need not be writable. */
    memcpy(pages + page - 8, &increment, sizeof(increment));
    assert_int_equal(mprotect(pages, page, PROT_READ), 0);
    assert_int_equal(prcb_NtSetSystemInformation(0x1c, pages + page - 8, 8), STATUS_SUCCESS);
    assert_int_equal(mprotect(pages, page, PROT_NONE), 0);
    assert_int_equal(prcb_NtSetSystemInformation(0x1c, pages + page - 8, 8),
                     STATUS_ACCESS_VIOLATION);
    munmap(pages, page);
}

static void test_probe_write(void **state)
{
    long page = sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    memset(pages, 0x5a, 3 * page);
    assert_int_equal(nt_probe_write(pages, 3 * page, 4), STATUS_SUCCESS);
    for (long i = 0; i < 3 * page; i++)
        assert_int_equal(pages[i], 0x5a);
    assert_int_equal(mprotect(pages + page, page, PROT_READ), 0);
    assert_int_equal(nt_probe_write(pages, page, 4), STATUS_SUCCESS);
    assert_int_equal(nt_probe_write(pages, page + 1, 4), STATUS_ACCESS_VIOLATION);
    assert_int_equal(nt_probe_write(pages, 3 * page, 4), STATUS_ACCESS_VIOLATION);
    assert_int_equal(nt_probe_read(pages, 3 * page, 4), STATUS_SUCCESS);
    assert_int_equal(nt_probe_write(pages + 2 * page, page, 4), STATUS_SUCCESS);
    assert_int_equal(nt_probe_write(pages + page, 0, 4), STATUS_SUCCESS);
    assert_int_equal(nt_probe_write(pages, SIZE_MAX, 4), STATUS_ACCESS_VIOLATION);
    munmap(pages, 3 * page);
}

static void test_nothing_adjusted(void **state)
{
    SYSTEM_QUERY_TIME_ADJUST_INFORMATION now = query();

    assert_int_equal(now.TimeIncrement, prcb_KeQueryTimeIncrement());
    assert_int_equal(now.TimeAdjustment, now.TimeIncrement);
    assert_int_equal(now.Enable, 1); /* the sense is inverted */
}

static void test_adjusting(void **state)
{
    uint32_t increment = prcb_KeQueryTimeIncrement(), faster = increment + increment / 100;
    SYSTEM_QUERY_TIME_ADJUST_INFORMATION now;

    assert_int_equal(set(faster, 0), STATUS_SUCCESS);
    assert_in_range(clock_state.tick, 10099, 10100);
    now = query();
    assert_int_equal(now.TimeAdjustment, faster);
    assert_int_equal(now.TimeIncrement, increment);
    assert_int_equal(now.Enable, 0);
    /* 25 ppm is a quarter of a microsecond of tick: all of it frequency. */
    clock_state = (struct timex){.tick = 10000, .freq = 25 << 16};
    now = query();
    assert_int_equal(now.TimeAdjustment, (increment * 1000025ll + 500000) / 1000000);
    assert_int_equal(now.Enable, 0);
    assert_int_equal(set(12345, 1), STATUS_SUCCESS);
    assert_int_equal(clock_state.tick, 10000);
    assert_int_equal(clock_state.freq, 0);
    assert_int_equal(query().Enable, 1);
}

/* Every adjustment that Linux can make comes back as it was set. */
static void test_round_trip(void **state)
{
    uint32_t increment = prcb_KeQueryTimeIncrement();

    for (uint32_t wanted = increment * 9 / 10 + 1; wanted <= increment * 11 / 10; wanted++) {
        assert_int_equal(set(wanted, 0), STATUS_SUCCESS);
        assert_int_equal(query().TimeAdjustment, wanted);
        assert_in_range(clock_state.tick, 9000, 11000);
        assert_in_range(clock_state.freq + (50 << 16), 0, 100 << 16);
    }
}

static void test_out_of_range(void **state)
{
    uint32_t increment = prcb_KeQueryTimeIncrement();

    assert_int_equal(set(0, 0), STATUS_INVALID_PARAMETER);
    assert_int_equal(set(10000001, 0), STATUS_INVALID_PARAMETER);
    assert_int_equal(set(UINT32_MAX, 0), STATUS_INVALID_PARAMETER);
    assert_int_equal(set(increment * 12 / 10, 0), STATUS_INVALID_PARAMETER);
    assert_int_equal(set(increment * 8 / 10, 0), STATUS_INVALID_PARAMETER);
    assert_int_equal(clock_calls, 0);
    assert_int_equal(set(10000001, 1), STATUS_SUCCESS); /* TimeAdjustment is not looked at */
}

static void test_privilege(void **state)
{
    SYSTEM_QUERY_TIME_ADJUST_INFORMATION now;

    clock_error = EPERM;
    assert_int_equal(set(prcb_KeQueryTimeIncrement(), 0), STATUS_PRIVILEGE_NOT_HELD);
    assert_non_null(strstr(prcb_nt_error_text(), "CAP_SYS_TIME"));
    memset(&now, 0x5a, sizeof(now));
    assert_int_equal(nt_time_adjustment(&now), STATUS_PRIVILEGE_NOT_HELD);
    assert_int_equal(now.TimeAdjustment, 0x5a5a5a5a);
}

static void test_modes(void **state)
{
    SYSTEM_SET_TIME_ADJUST_INFORMATION wanted = {.Enable = 1};
    uint32_t words[64] = {0};

    assert_int_equal(
        prcb_nt_set_system_information(0x1c, &wanted, sizeof(wanted), PRCB_NT_USER_MODE),
        STATUS_SUCCESS);
    assert_int_equal(
        prcb_nt_set_system_information(0x1c, &wanted, sizeof(wanted), PRCB_NT_KERNEL_MODE),
        STATUS_SUCCESS);
    for (size_t i = 0; i < nt_set_class_count; i++) {
        const struct nt_set_class *row = &nt_set_classes[i];

        if (row->kernel_only)
            assert_int_equal(prcb_nt_set_system_information(row->information_class, words,
                                                            row->length, PRCB_NT_USER_MODE),
                             STATUS_ACCESS_DENIED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_increment),
        cmocka_unit_test_setup(test_lengths, set_up),
        cmocka_unit_test_setup(test_classes, set_up),
        cmocka_unit_test_setup(test_memory, set_up),
        cmocka_unit_test(test_probe_write),
        cmocka_unit_test_setup(test_nothing_adjusted, set_up),
        cmocka_unit_test_setup(test_adjusting, set_up),
        cmocka_unit_test_setup(test_round_trip, set_up),
        cmocka_unit_test_setup(test_out_of_range, set_up),
        cmocka_unit_test_setup(test_privilege, set_up),
        cmocka_unit_test_setup(test_modes, set_up),
    };

    return cmocka_run_group_tests_name("nt set", tests, NULL, NULL);
}
