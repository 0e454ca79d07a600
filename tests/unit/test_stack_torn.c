/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A thread that wakes while its stack is read: what was read is never given out, whether the thread
 * comes before the copy, after it, or waits again by the end. The copy is wrapped, so that the
 * thread runs exactly then.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <prcb/stack.h>

#include "frozen.h"

#define TRIES 10000 /* 1 ms each */
#ifdef __clang__
#define HARD __attribute__((noinline))
#else
#define HARD __attribute__((noinline, noclone))
#endif

int __real_frozen_copy(pid_t pid, const struct frozen_registers *at, size_t want,
                       struct frozen *ret);
int __wrap_frozen_copy(pid_t pid, const struct frozen_registers *at, size_t want,
                       struct frozen *ret);

enum when { NEVER, BEFORE, AFTER };

/* The thread, and how it is woken during a copy. */
static struct {
    struct prcb *session;
    pid_t pid;
    int in; /* a byte wakes it */
    enum when when;
    unsigned woken;
} the;

/* ---- the thread: waits in one place and in the other, by turns ------------------------- */

static volatile int sink;

HARD static int take_byte(int fd)
{
    char byte;

    return read(fd, &byte, 1) == 1;
}

HARD static int wait_here(int fd)
{
    return take_byte(fd) + sink;
}

HARD static int wait_there(int fd)
{
    volatile char room[3000];

    room[sink] = 1;
    return take_byte(fd) + room[sink] + sink;
}

static _Noreturn void be_child(int fd)
{
    while (wait_here(fd) && wait_there(fd))
        ;
    _exit(0);
}

/* ---- looking ----------------------------------------------------------------------------- */

static int take_account(const struct prcb_account *a, void *ctx)
{
    if (a->tid == the.pid)
        *(struct prcb_account *)ctx = *a;
    return 0;
}

static struct prcb_account look(void)
{
    struct prcb_account a = {0};

    assert_int_equal(prcb_walk(the.session, take_account, &a, NULL), 0);
    assert_true(a.key != 0);
    return a;
}

static void wake(void)
{
    uint64_t before = look().voluntary_switches;

    assert_int_equal(write(the.in, "", 1), 1);
    the.woken++;
    for (int i = 0; i < TRIES; i++) {
        struct prcb_account a = look();

        /* In its next wait: one that was preempted on the way has switched, too. */
        if (a.voluntary_switches != before && !(a.flags & PRCB_ACCOUNT_RUNNING))
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    fail_msg("the thread does not wake");
}

int __wrap_frozen_copy(pid_t pid, const struct frozen_registers *at, size_t want,
                       struct frozen *ret)
{
    int result;

    if (the.when == BEFORE)
        wake();
    result = __real_frozen_copy(pid, at, want, ret);
    if (the.when == AFTER)
        wake();
    return result;
}

/* The stack of the wait that goes on, read with nothing in between. */
static const char *waits_in(struct prcb_stacks *s)
{
    struct prcb_stack stack = {.size = sizeof(stack)};
    struct prcb_error err = {.text = ""};

    the.when = NEVER;
    for (int i = 0; i < TRIES; i++) {
        struct prcb_account a = look();
        int result = prcb_stacks_read(s, &a, &stack, &err);

        for (uint32_t k = 0; !result && k < stack.frame_count; k++) {
            const char *function = stack.frames[k].function;

            if (function && (!strcmp(function, "wait_here") || !strcmp(function, "wait_there")))
                return function;
        }
        if (result && result != -EAGAIN)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    fail_msg("no stack: %s", err.text);
    return "";
}

/* Asked for the stack of a wait that ends meanwhile: -EAGAIN, and what was there is unchanged. */
static void torn(struct prcb_stacks *s, enum when when)
{
    struct prcb_stack stack = {.size = sizeof(stack)}, before = stack;
    struct prcb_account a = look();
    unsigned woken = the.woken;

    the.when = when;
    assert_int_equal(prcb_stacks_read(s, &a, &stack, NULL), -EAGAIN);
    assert_int_equal(the.woken, woken + 1);
    assert_memory_equal(&stack, &before, sizeof(stack));
}

static void on_tier(enum prcb_tier tier, uint32_t flags)
{
    struct prcb_options options = {
        .size = sizeof(options), .tier = tier, .max_threads = 64, .flags = flags};
    struct prcb_stacks_status status = {.size = sizeof(status)};
    struct prcb_stacks *s;
    struct prcb_error err;
    int to[2];

    if (prcb_open(&options, &the.session, &err)) {
        print_message("    %s tier: %s\n", prcb_tier_name(tier), err.text);
        return;
    }
    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    the.pid = fork();
    if (!the.pid) {
        close(to[1]);
        be_child(to[0]);
    }
    close(to[0]);
    the.in = to[1];
    assert_int_equal(prcb_profile_process(the.session, the.pid, PRCB_FOLLOW_NONE, &err), 0);
    assert_int_equal(prcb_stacks_open(the.session, NULL, &s, &err), 0);
    assert_string_equal(waits_in(s), "wait_here");
    wake();
    for (int i = 0; i < 4; i++) {
        /* It goes there and back again with each pair. */
        assert_string_equal(waits_in(s), "wait_there");
        wake();
        torn(s, BEFORE);
        assert_string_equal(waits_in(s), "wait_there");
        wake();
        torn(s, AFTER);
    }
    assert_int_equal(prcb_stacks_status(s, &status), 0);
    assert_true(status.moved >= 8);
    prcb_stacks_close(s);
    prcb_close(the.session);
    kill(the.pid, SIGKILL);
    waitpid(the.pid, NULL, 0);
    close(the.in);
}

static void test_torn_on_perf(void **state)
{
    on_tier(PRCB_TIER_PERF, 0);
}

static void test_torn_on_bpf(void **state)
{
    on_tier(PRCB_TIER_BPF, 0);
}

static void test_torn_with_registers(void **state)
{
    on_tier(PRCB_TIER_BPF, PRCB_OPEN_REGISTERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torn_on_perf),
        cmocka_unit_test(test_torn_on_bpf),
        cmocka_unit_test(test_torn_with_registers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
