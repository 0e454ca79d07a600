/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb/stack.h on every tier that there is: the stacks of a program whose functions are known, by
 * name; a wait is read once; a thread that runs has none. Argument: stack_waiter.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <prcb/stack.h>

#include "stack_child.h"

#define TRIES 10000 /* 1 ms each */

static const char *waiter;

/* A session that profiles the child; NULL: the tier is not to be had here. */
static struct prcb *open_session(enum prcb_tier tier, pid_t pid)
{
    struct prcb_options options = {
        .size = sizeof(options), .tier = tier, .max_threads = 64, .flags = PRCB_OPEN_REGISTERS};
    struct prcb_error err;
    struct prcb *p;

    if (prcb_open(&options, &p, &err)) {
        print_message("    %s tier: %s\n", prcb_tier_name(tier), err.text);
        return NULL;
    }
    if (prcb_profile_process(p, pid, PRCB_FOLLOW_ALL, &err))
        fail_msg("%s", err.text);
    return p;
}

struct wanted {
    pid_t tid;
    struct prcb_account account;
};

static int take_account(const struct prcb_account *a, void *ctx)
{
    struct wanted *wanted = ctx;

    if (a->tid == wanted->tid)
        wanted->account = *a;
    return 0;
}

static struct prcb_account account_of(struct prcb *p, pid_t tid)
{
    struct wanted wanted = {.tid = tid};

    assert_int_equal(prcb_walk(p, take_account, &wanted, NULL), 0);
    assert_true(wanted.account.key != 0);
    return wanted.account;
}

/* Lines of one of a thread's files in /proc that have a word in them. */
static void print_lines(const struct prcb_account *a, const char *file, const char *word)
{
    char path[96], line[256];
    FILE *in;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)a->pid, (int)a->tid, file);
    in = fopen(path, "re");
    while (in && fgets(line, sizeof(line), in)) {
        if (strstr(line, word))
            print_message("    %s: %s", file, line);
    }
    if (in)
        fclose(in);
}

/* What the account says of the thread beside what the kernel does: which of the two is late. */
static void print_both(struct prcb *p, const struct prcb_account *a)
{
    struct prcb_status status = {.size = sizeof(status)};

    prcb_session_status(p, &status);
    print_message("    tier %s; flags %" PRIx32 ", switches %" PRIu64 " (voluntary %" PRIu64
                  ", missed %" PRIu64 "), open %" PRIu32 " for %" PRIu64 " ns of %" PRIu64
                  "; of all: missed switches %" PRIu64 ", programs not run %" PRIu64 "\n",
                  prcb_tier_name(prcb_session_tier(p)), a->flags, a->switches,
                  a->voluntary_switches, a->missed_switches, a->open.cause, a->open.ns, a->wall_ns,
                  status.missed_switches, status.recursion_misses);
    print_lines(a, "status", "State");
    print_lines(a, "status", "ctxt_switches");
    print_lines(a, "schedstat", "");
    print_lines(a, "syscall", "");
}

/* Once the thread has come to its wait: the stack has the function that it is about to wait in. */
static struct prcb_stack await_stack(struct prcb *p, struct prcb_stacks *s, pid_t tid,
                                     const char *function)
{
    struct prcb_stack stack = {.size = sizeof(stack)};
    struct prcb_error err = {.text = ""};
    struct prcb_account a = {0};

    for (int i = 0; i < TRIES; i++, nap()) {
        int result;

        a = account_of(p, tid);
        result = prcb_stacks_read(s, &a, &stack, &err);

        if (result && result != -EAGAIN)
            fail_msg("%s", err.text);
        for (uint32_t k = 0; !result && k < stack.frame_count; k++) {
            if (stack.frames[k].function && !strcmp(stack.frames[k].function, function))
                return stack;
        }
    }
    for (uint32_t k = 0; k < stack.frame_count; k++)
        print_message("    %s\n", stack.frames[k].function ? stack.frames[k].function : "?");
    print_both(p, &a);
    fail_msg("%s is not on the stack, the last that was read; the last error: %s", function,
             err.text);
    return stack;
}

static void assert_order(const struct prcb_stack *stack, const char *const *names)
{
    for (uint32_t i = 0; i < stack->frame_count && *names; i++) {
        if (stack->frames[i].function && !strcmp(stack->frames[i].function, *names))
            names++;
    }
    if (*names)
        fail_msg("%s is missing or out of place", *names);
}

static const enum prcb_tier tiers[] = {PRCB_TIER_PERF, PRCB_TIER_BPF, PRCB_TIER_DAEMON};

static void test_known_functions(void **state)
{
    static const char *const functions[] = {"inner", "middle", "outer", "run", NULL};
    static const char *const held[] = {"hold",  "by_dynamic", "inner", "middle",
                                       "outer", "run",        NULL};
    static const struct {
        const char *way, *function, *word;
    } ways[] = {
        {"mutex", "by_mutex", "mutex"}, {"condition", "by_condition", "condition variable"},
        {"poll", "by_poll", NULL},      {"leaf", "by_leaf", NULL},
        {"dynamic", "hold", NULL},
    };

    for (size_t t = 0; t < sizeof(tiers) / sizeof(*tiers); t++) {
        for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
            struct child child = child_start(waiter, ways[i].way, "0");
            struct prcb *p = open_session(tiers[t], child.pid);
            struct prcb_stacks *s;
            struct prcb_stack stack;

            if (!p) {
                child_end(&child);
                break;
            }
            assert_int_equal(prcb_stacks_open(p, NULL, &s, NULL), 0);
            stack = await_stack(p, s, child.tid, ways[i].function);
            assert_order(&stack, !strcmp(ways[i].function, "hold") ? held : functions);
            assert_true(stack.flags & PRCB_STACK_COMPLETE);
            assert_non_null(strstr(stack.frames[stack.frame_count - 1].file, "/libc"));
            if (ways[i].word)
                assert_string_equal(stack.word, ways[i].word);
            prcb_stacks_close(s);
            prcb_close(p);
            child_end(&child);
        }
    }
}

/* The kernel's frames, by name alone, before the user's. */
static void test_the_kernels_part(void **state)
{
    static const char *const functions[] = {"n_tty_read", "by_terminal", "inner", "middle",
                                            "outer",      "run",         NULL};
    struct child child = child_start(waiter, "terminal", "0");
    struct prcb *p = open_session(PRCB_TIER_BPF, child.pid);
    struct prcb_stacks *s;
    struct prcb_stack stack;
    char text[4096];

    if (p) {
        assert_int_equal(prcb_stacks_open(p, NULL, &s, NULL), 0);
        stack = await_stack(p, s, child.tid, "by_terminal");
        if (!prcb_kernel_stack(p, stack.key, child.tid, text, sizeof(text), NULL)) {
            assert_order(&stack, functions);
            assert_string_equal(stack.frames[0].file, "[kernel]");
            assert_int_equal(stack.frames[0].address, 0);
            assert_null(strstr(stack.frames[0].function, "schedule"));
        }
        assert_true(stack.flags & PRCB_STACK_COMPLETE);
        prcb_stacks_close(s);
        prcb_close(p);
    }
    child_end(&child);
}

static void test_a_wait_is_read_once(void **state)
{
    struct child child = child_start(waiter, "poll", "0");
    struct prcb *p = open_session(PRCB_TIER_PERF, child.pid);
    struct prcb_stacks_status status = {.size = sizeof(status)};
    struct prcb_stack first, again = {.size = sizeof(again)};
    struct prcb_stacks *s;
    uint64_t unwound;

    assert_non_null(p);
    assert_int_equal(prcb_stacks_open(p, NULL, &s, NULL), 0);
    first = await_stack(p, s, child.tid, "by_poll");
    assert_int_equal(prcb_stacks_status(s, &status), 0);
    unwound = status.unwound;
    for (int i = 0; i < 1000; i++) {
        struct prcb_account a = account_of(p, child.tid);

        assert_int_equal(prcb_stacks_read(s, &a, &again, NULL), 0);
        assert_int_equal(again.id, first.id);
        assert_int_equal(again.switches, first.switches);
    }
    assert_int_equal(prcb_stacks_status(s, &status), 0);
    assert_int_equal(status.unwound, unwound);
    assert_true(status.remembered >= 1000);
    prcb_stacks_close(s);
    prcb_close(p);
    child_end(&child);
}

/* What is copied at first is too little: the rest is fetched. */
static void test_deep_stack(void **state)
{
    static const char *const functions[] = {"by_poll", "inner", "middle", "outer", "run", NULL};
    struct child child = child_start(waiter, "poll", "300000");
    struct prcb *p = open_session(PRCB_TIER_PERF, child.pid);
    struct prcb_stack stack;
    struct prcb_stacks *s;

    assert_non_null(p);
    assert_int_equal(prcb_stacks_open(p, NULL, &s, NULL), 0);
    stack = await_stack(p, s, child.tid, "outer");
    assert_order(&stack, functions);
    assert_true(stack.flags & PRCB_STACK_COMPLETE);
    prcb_stacks_close(s);
    prcb_close(p);
    child_end(&child);
}

static void test_no_more_frames_than_asked_for(void **state)
{
    struct prcb_stacks_options options = {.size = sizeof(options), .max_frames = 3};
    struct child child = child_start(waiter, "poll", "0");
    struct prcb *p = open_session(PRCB_TIER_PERF, child.pid);
    struct prcb_stack stack = {.size = sizeof(stack)};
    struct prcb_stacks *whole, *s;
    struct prcb_account a;

    assert_non_null(p);
    /* How many functions of the C library there are above it depends on that. */
    assert_int_equal(prcb_stacks_open(p, NULL, &whole, NULL), 0);
    await_stack(p, whole, child.tid, "by_poll");
    prcb_stacks_close(whole);
    assert_int_equal(prcb_stacks_open(p, &options, &s, NULL), 0);
    a = account_of(p, child.tid);
    assert_int_equal(prcb_stacks_read(s, &a, &stack, NULL), 0);
    assert_int_equal(stack.frame_count, 3);
    assert_true(stack.flags & PRCB_STACK_CUT);
    assert_false(stack.flags & PRCB_STACK_COMPLETE);
    prcb_stacks_close(s);
    prcb_close(p);
    child_end(&child);
}

static void test_stale_and_ended(void **state)
{
    struct child child = child_start(waiter, "poll", "0");
    struct prcb *p = open_session(PRCB_TIER_PERF, child.pid);
    struct prcb_stack stack = {.size = sizeof(stack)}, before = stack;
    struct prcb_account a;
    struct prcb_stacks *s;
    struct prcb_error err;

    assert_non_null(p);
    assert_int_equal(prcb_stacks_open(p, NULL, &s, NULL), 0);
    await_stack(p, s, child.tid, "by_poll");
    a = account_of(p, child.tid);
    a.switches++; /* a record of another moment */
    assert_int_equal(prcb_stacks_read(s, &a, &stack, &err), -EAGAIN);
    assert_memory_equal(&stack, &before, sizeof(stack));
    child_end(&child);
    assert_true(prcb_stacks_read(s, &a, &stack, &err) < 0);
    a.key = 12345;
    assert_int_equal(prcb_stacks_read(s, &a, &stack, &err), -ESTALE);
    prcb_stacks_close(s);
    prcb_close(p);
}

static void test_bad_options(void **state)
{
    struct prcb_stacks_options options = {.size = sizeof(options), .max_frames = 1u << 20};
    struct prcb_stacks *s = (void *)&options;
    struct child child = child_start(waiter, "poll", "0");
    struct prcb *p = open_session(PRCB_TIER_PERF, child.pid);

    assert_int_equal(prcb_stacks_open(p, &options, &s, NULL), -EINVAL);
    options.size = 0;
    assert_int_equal(prcb_stacks_open(p, &options, &s, NULL), -EINVAL);
    assert_ptr_equal(s, &options);
    prcb_stacks_close(NULL);
    prcb_close(p);
    child_end(&child);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_functions),
        cmocka_unit_test(test_the_kernels_part),
        cmocka_unit_test(test_a_wait_is_read_once),
        cmocka_unit_test(test_deep_stack),
        cmocka_unit_test(test_no_more_frames_than_asked_for),
        cmocka_unit_test(test_stale_and_ended),
        cmocka_unit_test(test_bad_options),
    };

    waiter = argc > 1 ? argv[1] : "";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
