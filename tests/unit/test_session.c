/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What of the public calls needs no privilege: records of programs of another age,
 * commands that are none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include <prcb/prcb.h>

#define UNTOUCHED 0xa5

static void test_sub(void **state)
{
    struct prcb_account a = {.size = sizeof(a),
                             .present = PRCB_HAS_WALL | PRCB_HAS_RUN,
                             .wall_ns = 100,
                             .run_ns = 50,
                             .open = {.cause = PRCB_CAUSE_PIPE, .ns = 9}};
    struct prcb_account b = {.size = sizeof(b),
                             .present = PRCB_HAS_WALL | PRCB_HAS_CYCLES,
                             .wall_ns = 175,
                             .run_ns = 60,
                             .open = {.cause = PRCB_CAUSE_FUTEX, .ns = 4}};

    a.waits[PRCB_CAUSE_MAX - 1] = (struct prcb_wait){.count = 1, .ns = 10};
    b.waits[PRCB_CAUSE_MAX - 1] = (struct prcb_wait){.count = 3, .ns = 35};
    prcb_account_sub(&b, &a, &b);
    assert_int_equal(b.size, sizeof(b));
    assert_int_equal(b.present, PRCB_HAS_WALL);
    assert_int_equal(b.wall_ns, 75);
    assert_int_equal(b.run_ns, 10);
    assert_int_equal(b.open.cause, PRCB_CAUSE_FUTEX);
    assert_int_equal(b.open.ns, 4);
    assert_int_equal(b.waits[PRCB_CAUSE_MAX - 1].count, 2);
    assert_int_equal(b.waits[PRCB_CAUSE_MAX - 1].ns, 25);
    a.wall_ns = 1000;
    prcb_account_sub(&a, NULL, &b);
    assert_memory_equal(&a, &b, sizeof(a));
}

/* An older program's records end early: nothing behind them is read or written. */
static void test_sub_of_short_records(void **state)
{
    size_t size = offsetof(struct prcb_account, run_ns);
    struct prcb_account a, b, d;

    memset(&a, UNTOUCHED, sizeof(a));
    memset(&b, UNTOUCHED, sizeof(b));
    memset(&d, UNTOUCHED, sizeof(d));
    a.size = b.size = size;
    a.wall_ns = 5;
    b.wall_ns = 12;
    prcb_account_sub(&b, &a, &d);
    assert_int_equal(d.size, size);
    assert_int_equal(d.wall_ns, 7);
    for (size_t i = size; i < sizeof(d); i++)
        assert_int_equal(((const unsigned char *)&d)[i], UNTOUCHED);
}

/* A newer program's end later: what is not known of is zero. */
static void test_sub_of_long_records(void **state)
{
    struct {
        struct prcb_account known;
        uint64_t later;
    } a = {.known = {.size = sizeof(a), .wall_ns = 5}, .later = 1};
    struct prcb_account earlier = {.size = sizeof(earlier), .wall_ns = 2};

    prcb_account_sub(&a.known, &earlier, &a.known);
    assert_int_equal(a.known.size, sizeof(a));
    assert_int_equal(a.known.wall_ns, 3);
    assert_int_equal(a.later, 0);
}

static void test_no_command(void **state)
{
    struct prcb_options options = {.size = sizeof(options), .tier = PRCB_TIER_PERF};
    char *const none[] = {NULL};
    struct prcb_error err;
    pid_t child = -5;
    struct prcb *p;

    assert_int_equal(prcb_open(&options, &p, NULL), 0);
    assert_int_equal(prcb_spawn(p, none, PRCB_FOLLOW_ALL, &child, &err), -EINVAL);
    assert_int_equal(err.code, -EINVAL);
    assert_int_equal(prcb_spawn(p, NULL, PRCB_FOLLOW_ALL, &child, &err), -EINVAL);
    assert_int_equal(child, -5);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* none was forked */
    prcb_close(p);
}

static int never(pid_t child, void *ctx, struct prcb_error *err)
{
    fail();
    return 0;
}

static void hooks_have_a_size(void **state)
{
    char name[] = "true", *argv[] = {name, NULL};
    struct prcb_spawn_hook hook = {.before_exec = never};
    struct prcb_error err;
    pid_t child = -7;

    assert_int_equal(prcb_spawn_hooked(NULL, argv, 0, &hook, &child, &err), -EINVAL);
    assert_non_null(strstr(err.text, "prcb_spawn_hook"));
    hook = (struct prcb_spawn_hook){.size = sizeof(hook)};
    assert_int_equal(prcb_spawn_hooked(NULL, argv, 0, &hook, &child, &err), -EINVAL);
    assert_non_null(strstr(err.text, "before_exec"));
    assert_int_equal(child, -7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sub),
        cmocka_unit_test(test_sub_of_short_records),
        cmocka_unit_test(test_sub_of_long_records),
        cmocka_unit_test(test_no_command),
        cmocka_unit_test(hooks_have_a_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
