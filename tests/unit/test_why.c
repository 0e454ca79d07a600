/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What looks at accounts add up to, by made-up accounts and readers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <prcb/prcb.h>

#include "why.h"

#define OBJECT 7

/* A wait that is over as soon as its stack was read. */
struct wait {
    bool over;
    bool had_stack; /* when somebody asked what it is for */
};

static int read_stack(void *ctx, const struct prcb_account *a, struct prcb_stack *ret)
{
    struct wait *wait = ctx;

    wait->over = true;
    return 0;
}

static struct object_wait find_object(void *ctx, const struct prcb_account *a,
                                      const struct prcb_stack *stack)
{
    struct wait *wait = ctx;

    wait->had_stack = stack;
    return (struct object_wait){.object = wait->over && !stack ? 0 : OBJECT};
}

/* What the report says of a wait of this cause. */
static uint32_t object_of(uint32_t cause, struct wait *wait)
{
    const struct why_source source = {.read = read_stack, .object = find_object, .ctx = wait};
    struct prcb_account a = {
        .size = sizeof(a),
        .present = cause ? PRCB_HAS_OPEN | PRCB_HAS_WAITS : 0,
        .key = 1,
        .tid = 2,
        .pid = 2,
        .switches = 1,
        .open = {.cause = cause, .ns = 1000},
        .wait_ns = 1000,
    };
    const struct why_cause *found;
    struct why_report report;
    uint32_t ret = 0;
    struct why *w;

    a.waits[cause].count = 1; /* its time is the open one */
    assert_int_equal(why_open(&source, &w), 0);
    assert_int_equal(why_account(w, &a, 1000), 0);
    a.wait_ns += 1000;
    a.open.ns += 1000;
    assert_int_equal(why_account(w, &a, 2000),
                     0); /* only now is it known to go on without a cause */
    assert_int_equal(why_report_make(w, &report), 0);
    assert_int_equal(report.count, 1);
    assert_int_equal(report.processes[0].cause_count, 1);
    found = &report.processes[0].causes[0];
    for (size_t i = 0; i < found->object_count; i++)
        ret = ret ? ret : found->objects[i].wait.object;
    why_report_deinit(&report);
    why_close(w);
    return ret;
}

/* A stack takes long to read: what the wait is for is asked first. */
static void test_object_before_stack(void **state)
{
    struct wait wait = {0};

    assert_int_equal(object_of(PRCB_CAUSE_FSYNC, &wait), OBJECT);
    assert_true(wait.over && !wait.had_stack);
}

static void test_object_of_a_futex_by_its_stack(void **state)
{
    struct wait wait = {0};

    assert_int_equal(object_of(PRCB_CAUSE_FUTEX, &wait), OBJECT);
    assert_true(wait.over && wait.had_stack);
    wait = (struct wait){0};
    assert_int_equal(object_of(PRCB_CAUSE_NONE, &wait), OBJECT); /* as on the perf tier */
    assert_true(wait.over && wait.had_stack);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_object_before_stack),
        cmocka_unit_test(test_object_of_a_futex_by_its_stack),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
