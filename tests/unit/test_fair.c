/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The budget of stacks, spent in a made-up world: each millisecond all ask, one after the other,
 * and each that gets it uses it up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fair.h"

#define ROUNDS  2000
#define GRANTED 50u  /* microseconds of budget in a round */
#define TAKES   10u  /* that one stack takes */
#define ALONE   5000 /* the process whose user has no other */

static int64_t user_of(pid_t pid)
{
    return pid == ALONE ? 7 : 8;
}

static int64_t alone(pid_t pid)
{
    return user_of(pid ? ALONE : 0);
}

/* Returns what the last process of `others`, who all ask before it, got of what it could have used,
 * in percent. last: its number */
static unsigned share_of(pid_t last, pid_t others)
{
    uint64_t spent = 0, budget = 0, got = 0, asked = 0;
    struct fair f = {0};

    for (int round = 0; round < ROUNDS; round++) {
        budget += GRANTED;
        fair_count(&f, budget);
        for (pid_t i = 0; i <= others; i++) {
            pid_t pid = i == others ? last : 1 + (i + round) % others;

            asked += pid == last;
            if (spent >= budget || (fair_is_greedy(&f, pid, user_of) && spent > budget / 2)) {
                fair_refuse(&f, pid, user_of);
                continue;
            }
            spent += TAKES;
            fair_charge(&f, pid, TAKES);
            got += pid == last;
        }
    }
    fair_free(&f);
    return (unsigned)(got * 100 / asked);
}

static void a_user_with_many_processes(void **state)
{
    (void)state;
    /* It asks for a fifth of the budget, and gets it. */
    assert_int_equal(share_of(ALONE, 1), 100);
    assert_in_range(share_of(ALONE, 10), 95, 100);
    assert_in_range(share_of(ALONE, 200), 95, 100);
}

/* Of one user's own, one that asks for little gets that beside one that asks for more. */
static void processes_of_one_user(void **state)
{
    (void)state;
    assert_in_range(share_of(4000, 3), 95, 100);
}

static void alone_nobody_is_greedy(void **state)
{
    struct fair f = {0};

    (void)state;
    for (int i = 0; i < 100; i++) {
        fair_count(&f, 1000);
        assert_false(fair_is_greedy(&f, ALONE, user_of));
        fair_charge(&f, ALONE, 1000);
    }
    fair_free(&f);
}

/* A number that another process had, of another user who had used everything. */
static void a_number_that_comes_again(void **state)
{
    struct fair f = {0};

    (void)state;
    fair_count(&f, 1000);
    assert_false(fair_is_greedy(&f, 3, user_of));
    fair_meet(&f, 3, 100, user_of);
    fair_refuse(&f, ALONE, user_of);
    fair_refuse(&f, 4, user_of);
    fair_charge(&f, 3, 1000);
    fair_count(&f, 1000);
    assert_true(fair_is_greedy(&f, 3, user_of));
    fair_meet(&f, 3, 100, user_of);
    assert_true(fair_is_greedy(&f, 3, user_of));
    fair_meet(&f, 3, 101, alone);
    assert_false(fair_is_greedy(&f, 3, user_of));
    fair_charge(&f, 3, 1500);
    fair_count(&f, 2000);
    assert_true(fair_is_greedy(&f, ALONE, user_of)); /* it was charged to the one who has it now */
    fair_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_with_many_processes),
        cmocka_unit_test(processes_of_one_user),
        cmocka_unit_test(alone_nobody_is_greedy),
        cmocka_unit_test(a_number_that_comes_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
