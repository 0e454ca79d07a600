/* SPDX-License-Identifier: BSD-2-Clause
 *
 * From an account to PERFORMANCE_DATA, over a tier that says what the test wants:
 * passes, counts that wrap, switches nobody can tell the reason of, a clock whose rate
 * becomes known better, accounts that stay inconsistent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../src/nt/calls/profiling.c"

static struct prcb_account now;
static unsigned reads, reads_of_times;
static int failure;

static int fake_read(struct prcb_thread *t)
{
    reads++;
    if (failure)
        return failure;
    t->last = now;
    return 0;
}

static int fake_read_times(struct prcb_thread *t, struct prcb_times *ret)
{
    reads_of_times++;
    if (failure)
        return failure;
    *ret = (struct prcb_times){.size = sizeof(*ret),
                               .present = now.present,
                               .switches = now.switches,
                               .run_ns = now.run_ns,
                               .retries = now.retries};
    return 0;
}

static const struct tier fake_tier = {.read = fake_read, .read_times = fake_read_times};
static struct prcb fake_session = {.tier = &fake_tier};
static struct prcb_thread fake_thread = {.session = &fake_session};
static struct profile fake_profile;

static int setup(void **state)
{
    now = (struct prcb_account){.size = sizeof(now),
                                .present = PRCB_HAS_RUN | PRCB_HAS_SWITCHES | PRCB_HAS_WAITS};
    reads = reads_of_times = 0;
    failure = 0;
    fake_thread.clock.mult = 1ull << 31; /* half a nanosecond a tick */
    fake_profile = (struct profile){.handle = &fake_profile, .account = &fake_thread};
    memset(fake_profile.place, NO_PLACE, sizeof(fake_profile.place));
    session = &fake_session;
    own = &fake_profile;
    return 0;
}

static int teardown(void **state)
{
    own = NULL;
    session = NULL;
    return 0;
}

static PERFORMANCE_DATA look(void)
{
    PERFORMANCE_DATA data = {.Size = sizeof(data), .Version = 1};

    assert_int_equal(prcb_RtlReadThreadProfilingData(&fake_profile,
                                                     READ_THREAD_PROFILING_FLAG_DISPATCHING, &data),
                     STATUS_SUCCESS);
    return data;
}

static void wait_for(enum prcb_cause cause, uint64_t count)
{
    now.switches += count;
    now.waits[cause].count += count;
}

static void test_passes(void **state)
{
    assert_int_equal(look().RetryCount, 1);
    now.retries = 4;
    assert_int_equal(look().RetryCount, 5);
    wait_for(PRCB_CAUSE_PIPE, 1);
    now.retries = 2;
    assert_int_equal(look().RetryCount, 3);
}

static void test_reasons(void **state)
{
    wait_for(PRCB_CAUSE_SLEEP, 3);
    wait_for(PRCB_CAUSE_FUTEX, 1);
    wait_for(PRCB_CAUSE_QUANTUM, 2);
    assert_int_equal(look().WaitReasonBitMap, 1ull << 4 | 1ull << 37 | 1ull << 30);
    assert_int_equal(reads, 1);
    assert_int_equal(look().WaitReasonBitMap, 0); /* since the last read */
    assert_int_equal(reads, 1);                   /* and told by the switch count alone */
    assert_int_equal(reads_of_times, 2);
    wait_for(PRCB_CAUSE_DISK, 1);
    assert_int_equal(look().WaitReasonBitMap, 1ull << 0);
}

static void test_unknown_reasons(void **state)
{
    wait_for(PRCB_CAUSE_SLEEP, 1);
    now.switches++; /* one that was not reported */
    assert_int_equal(look().WaitReasonBitMap, 1ull << 4 | PRCB_WAIT_REASON_UNKNOWN);
    assert_int_equal(look().WaitReasonBitMap, 0);
    now.present &= ~(uint64_t)PRCB_HAS_WAITS;
    assert_int_equal(look().WaitReasonBitMap, 0);
    now.switches++;
    assert_int_equal(look().WaitReasonBitMap, PRCB_WAIT_REASON_UNKNOWN);
}

static void test_every_cause(void **state)
{
    for (uint32_t cause = 1; cause < PRCB_CAUSE_MAX; cause++) {
        const struct prcb_cause_info *info = prcb_cause_info(cause);

        if (!info)
            continue;
        wait_for((enum prcb_cause)cause, 1);
        assert_true(info->reason < 63);
        assert_int_equal(look().WaitReasonBitMap, 1ull << info->reason);
    }
}

static void test_wrap(void **state)
{
    wait_for(PRCB_CAUSE_YIELD, 0x1fffffffeull);
    assert_int_equal(look().ContextSwitchCount, 0xfffffffe);
    wait_for(PRCB_CAUSE_YIELD, 3);
    assert_int_equal(look().ContextSwitchCount, 1);
    assert_int_equal(fake_profile.switches, 0x200000001ull);
}

static void test_cycles(void **state)
{
    now.run_ns = 1000;
    assert_int_equal(look().CycleTime, 2000);
    fake_thread.clock.mult = 1ull << 32; /* it was one tick a nanosecond after all */
    now.run_ns = 1500;
    assert_int_equal(look().CycleTime, 2500); /* what was said stays said */
    now.run_ns = 1400;
    assert_int_equal(look().CycleTime, 2500);
    now.run_ns = 1ull << 62; /* no overflow on the way */
    assert_int_equal(look().CycleTime, (1ull << 62) + 1000);
}

static void test_inconsistent(void **state)
{
    PERFORMANCE_DATA data = {.Size = sizeof(data), .Version = 1, .CycleTime = 7}, before = data;

    failure = -EAGAIN;
    assert_int_equal(prcb_RtlReadThreadProfilingData(&fake_profile,
                                                     READ_THREAD_PROFILING_FLAG_DISPATCHING, &data),
                     STATUS_RETRY);
    assert_memory_equal(&data, &before, sizeof(data));
    assert_int_equal(
        prcb_ReadThreadProfilingData(&fake_profile, READ_THREAD_PROFILING_FLAG_DISPATCHING, &data),
        1237);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_passes), TEST(test_reasons), TEST(test_unknown_reasons), TEST(test_every_cause),
        TEST(test_wrap),   TEST(test_cycles),  TEST(test_inconsistent),
    };

    return cmocka_run_group_tests_name("nt figures", tests, NULL, NULL);
}
