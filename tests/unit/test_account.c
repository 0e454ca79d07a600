/* SPDX-License-Identifier: BSD-2-Clause
 *
 * From blocks to records, on blocks made up here: each figure from its members, the sum
 * law in every state, and handles that never go backwards however wrong the live part of
 * an earlier record was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "account.h"

#define FEATURES                                                                                   \
    (PRCB_FEATURE_RQ_CLOCK | PRCB_FEATURE_READY | PRCB_FEATURE_MIGRATIONS | PRCB_FEATURE_SYSCALLS)

/* Enabled at 1000, last stretch begun at 2000: 1000 = 500 run + 200 ready + 300 waits. */
static struct prcb_account_block sample_block(uint8_t state)
{
    struct prcb_account_block block = {
        .seq = 8,
        .generation = 3,
        .run_ns = 500,
        .ready_ns = 200,
        .stamp = 2000,
        .enabled = 1000,
        .nvcsw = 107,
        .nivcsw = 53,
        .base_nvcsw = 100,
        .base_nivcsw = 50,
        .own_switches = 9,
        .migrations = 12,
        .base_migrations = 10,
        .last_syscall = 202,
        .state = state,
        .cause = PRCB_CAUSE_FUTEX,
        .tid = 77,
        .pid = 70,
        .comm = "worker",
    };

    block.waits[PRCB_CAUSE_FUTEX] = (struct prcb_wait_cell){.count = 5, .ns = 250};
    block.waits[PRCB_CAUSE_SLEEP] = (struct prcb_wait_cell){.count = 2, .ns = 50};
    block.waits[PRCB_CAUSE_QUANTUM] = (struct prcb_wait_cell){.count = 2};
    return block;
}

static struct prcb_account convert(const struct prcb_account_block *block, uint64_t now)
{
    struct prcb_account a = {.size = sizeof(a)};

    account_convert(block, now, FEATURES, 2.0, &a);
    return a;
}

static void assert_sum(const struct prcb_account *a)
{
    uint64_t waits = 0;

    for (int i = 0; i < PRCB_CAUSE_MAX; i++)
        waits += a->waits[i].ns;
    assert_int_equal(a->wait_ns, waits);
    assert_int_equal(a->run_ns + a->ready_ns + a->wait_ns + a->open.ns, a->wall_ns);
}

static void test_running(void **state)
{
    struct prcb_account_block block = sample_block(PRCB_STATE_RUNNING);
    struct prcb_account a = convert(&block, 2600);

    assert_sum(&a);
    assert_int_equal(a.flags, PRCB_ACCOUNT_RUNNING);
    assert_int_equal(a.wall_ns, 1600);
    assert_int_equal(a.run_ns, 1100);
    assert_int_equal(a.ready_ns, 200);
    assert_int_equal(a.wait_ns, 300);
    assert_int_equal(a.open.ns, 0);
    assert_int_equal(a.open.cause, PRCB_CAUSE_NONE);
    assert_int_equal(a.switches, 10);
    assert_int_equal(a.voluntary_switches, 7);
    assert_int_equal(a.missed_switches, 1);
    assert_int_equal(a.migrations, 2);
    assert_int_equal(a.last_syscall, 202);
    assert_int_equal(a.tsc_cycles, 2200);
    assert_int_equal(a.pid, 70);
    assert_int_equal(a.waits[PRCB_CAUSE_FUTEX].count, 5);
    assert_int_equal(a.waits[PRCB_CAUSE_QUANTUM].count, 2);
}

static void test_off(void **state)
{
    struct prcb_account_block block = sample_block(PRCB_STATE_OFF);
    struct prcb_account a = convert(&block, 2600);

    assert_sum(&a);
    assert_int_equal(a.flags, 0);
    assert_int_equal(a.run_ns, 500);
    assert_int_equal(a.wait_ns, 300); /* the open stretch is in no total */
    assert_int_equal(a.open.cause, PRCB_CAUSE_FUTEX);
    assert_int_equal(a.open.ns, 600);
}

static void test_exited(void **state)
{
    struct prcb_account_block block = sample_block(PRCB_STATE_EXITED);
    struct prcb_account a = convert(&block, block.stamp);

    assert_sum(&a);
    assert_int_equal(a.flags, PRCB_ACCOUNT_EXITED);
    assert_int_equal(a.wall_ns, 1000);
    assert_int_equal(a.open.ns, 0);
    assert_int_equal(a.open.cause, PRCB_CAUSE_NONE);
}

static void test_unseen(void **state)
{
    struct prcb_account_block block = {
        .enabled = 1000, .stamp = 1000, .state = PRCB_STATE_UNSEEN, .last_syscall = -1};
    struct prcb_account a;

    block.guess = PRCB_STATE_RUNNING;
    a = convert(&block, 1500);
    assert_sum(&a);
    assert_int_equal(a.run_ns, 500);
    assert_int_equal(a.flags, PRCB_ACCOUNT_RUNNING);

    block.guess = PRCB_STATE_OFF | PRCB_CAUSE_POLL << 8;
    a = convert(&block, 1500);
    assert_sum(&a);
    assert_int_equal(a.run_ns, 0);
    assert_int_equal(a.open.cause, PRCB_CAUSE_POLL);
    assert_int_equal(a.open.ns, 500);
    assert_int_equal(a.switches, 0);
}

/* A stamp may be ahead of the reader's clock by the error of the offset. */
static void test_now_before_the_stamp(void **state)
{
    static const uint8_t states[] = {PRCB_STATE_RUNNING, PRCB_STATE_OFF};

    for (int i = 0; i < 2; i++) {
        struct prcb_account_block block = sample_block(states[i]);
        struct prcb_account a = convert(&block, 1990);

        assert_sum(&a);
        assert_int_equal(a.wall_ns, 1000);
        assert_int_equal(a.run_ns, 500);
        assert_int_equal(account_live_run(&block, 1990), 0);
    }
}

static void test_what_is_absent(void **state)
{
    struct prcb_account_block block = sample_block(PRCB_STATE_OFF);
    struct prcb_account a = {.size = sizeof(a)};

    account_convert(&block, 2600, 0, 0, &a);
    assert_false(a.present & PRCB_HAS_READY);
    assert_false(a.present & PRCB_HAS_CYCLES);
    assert_int_equal(a.tsc_cycles, 0);
    a = convert(&block, 2600);
    assert_true(a.present & PRCB_HAS_READY);
    assert_true(a.present & PRCB_HAS_CYCLES);
    block.thread_flags = PRCB_THREAD_KTHREAD;
    a = convert(&block, 2600);
    assert_int_equal(a.flags, PRCB_ACCOUNT_KTHREAD);
}

static void test_copy(void **state)
{
    struct prcb_account_block block = sample_block(PRCB_STATE_OFF), copy = {0};
    struct prcb_account a = {.size = sizeof(a)};
    uint32_t retries = 0;

    assert_int_equal(account_copy(&block, sizeof(copy), &copy, &retries), 0);
    assert_int_equal(retries, 0);
    assert_memory_equal(&block, &copy, sizeof(block));
    account_identity(&block, &a);
    assert_int_equal(a.tid, 77);
    assert_string_equal(a.comm, "worker");
    memset(block.comm, 'x', sizeof(block.comm)); /* no end */
    account_identity(&block, &a);
    assert_string_equal(a.comm, "xxxxxxxxxxxxxxx");

    /* A writer that never ends is given up, not guessed. */
    block.seq = 9;
    memset(&copy, 0x5a, sizeof(copy));
    assert_int_equal(account_copy(&block, sizeof(copy), &copy, &retries), -EAGAIN);
    assert_true(retries > 0);
    assert_int_equal(copy.run_ns, 0x5a5a5a5a5a5a5a5a);
}

/* ---- never backwards ---- */

static bool grew(const struct prcb_account *a, const struct prcb_account *b)
{
    for (int i = 0; i < PRCB_CAUSE_MAX; i++) {
        if (b->waits[i].count < a->waits[i].count || b->waits[i].ns < a->waits[i].ns)
            return false;
    }
    return b->wall_ns >= a->wall_ns && b->run_ns >= a->run_ns && b->ready_ns >= a->ready_ns &&
           b->wait_ns >= a->wait_ns && b->switches >= a->switches && b->tsc_cycles >= a->tsc_cycles;
}

/* It was thought to run until 2600, and had gone to wait at 2100. */
static void test_run_taken_back(void **state)
{
    struct prcb_account_block block = sample_block(PRCB_STATE_RUNNING);
    struct prcb_account earlier = convert(&block, 2600), later;

    block.run_ns += 100;
    block.stamp = 2100;
    block.state = PRCB_STATE_OFF;
    block.cause = PRCB_CAUSE_SLEEP;
    later = convert(&block, 2700);
    assert_int_equal(later.run_ns, 600);
    account_never_back(&earlier, &later);
    assert_sum(&later);
    assert_true(grew(&earlier, &later));
    assert_int_equal(later.run_ns, 1100); /* what was said */
    assert_int_equal(later.open.ns, 100); /* pays for it */
    assert_int_equal(later.wall_ns, 1700);

    /* The wait closes; what was said still stands. */
    block.waits[PRCB_CAUSE_SLEEP].ns += 500;
    block.ready_ns += 100;
    block.stamp = 2700;
    block.state = PRCB_STATE_RUNNING;
    earlier = later;
    later = convert(&block, 2750);
    account_never_back(&earlier, &later);
    assert_sum(&later);
    assert_true(grew(&earlier, &later));
    assert_int_equal(later.run_ns, 1100);
}

static uint32_t random_state = 1;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 1664525 + 1013904223;
    return (random_state >> 8) % limit;
}

/* Ends the open stretch at `now` in one of the ways the programs do. */
static void step(struct prcb_account_block *block, uint64_t now)
{
    uint64_t elapsed = now - block->stamp, run, ready;

    run = block->state == PRCB_STATE_RUNNING && random_below(4)
              ? elapsed
              : random_below((uint32_t)elapsed + 1);
    ready = random_below((uint32_t)(elapsed - run) + 1);
    block->run_ns += run;
    block->ready_ns += ready;
    block->waits[1 + random_below(38)].ns += elapsed - run - ready;
    block->stamp = now;
    block->state = random_below(2) ? PRCB_STATE_RUNNING : PRCB_STATE_OFF;
    block->cause = (uint8_t)(1 + random_below(38));
    block->nvcsw += random_below(2);
}

/* Blocks whose stretches turn out other than they looked: every record holds the law
 * and none is behind the one before. */
static void test_any_history(void **state)
{
    for (uint32_t seed = 1; seed <= 2000; seed++) {
        struct prcb_account_block block = {.enabled = 1000, .stamp = 1000};
        struct prcb_account last, a;
        uint64_t now = 1000;

        random_state = seed;
        block.state = PRCB_STATE_RUNNING;
        last = convert(&block, now);
        for (int i = 0; i < 50; i++) {
            now += random_below(1000);
            if (random_below(2))
                step(&block, now);
            a = convert(&block, now);
            assert_sum(&a);
            account_never_back(&last, &a);
            assert_sum(&a);
            if (!grew(&last, &a))
                fail_msg("seed %u, step %d: went back", seed, i);
            last = a;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_running),
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_exited),
        cmocka_unit_test(test_unseen),
        cmocka_unit_test(test_now_before_the_stamp),
        cmocka_unit_test(test_what_is_absent),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_run_taken_back),
        cmocka_unit_test(test_any_history),
    };

    return cmocka_run_group_tests_name("accounts", tests, NULL, NULL);
}
