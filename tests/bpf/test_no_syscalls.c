/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Reading an account or a processor makes no system call: a child reads its own and another
 * thread's 100,000 times each while its parent counts its system calls with ptrace, between two
 * calls that mark begin and end.
 */
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prcb/processors.h>

#define READS 100000
/* The one yield that a read may make when a writer was descheduled, rarely needed. */
#define FEW 20
/* A number that no system call has: fails with ENOSYS, and marks. */
#define MARK 100000

enum reading {
    READ_OWN,
    READ_OWN_TIMES,
    READ_OTHER,
    READ_OTHER_TIMES,
    READ_PROCESSORS,
    READ_PROCESSOR_TIMES
};

static pid_t other_tid;

static void *switch_often(void *arg)
{
    __atomic_store_n(&other_tid, gettid(), __ATOMIC_RELEASE);
    for (;;)
        sleep_ns(50000);
    return NULL;
}

static int read_once(struct prcb_thread *t, bool times)
{
    struct prcb_account a = {.size = sizeof(a)};
    struct prcb_times some = {.size = sizeof(some)};

    return times ? prcb_thread_times(t, &some) : prcb_thread_read(t, &a);
}

static bool is_processors(enum reading what)
{
    return what == READ_PROCESSORS || what == READ_PROCESSOR_TIMES;
}

static int read_processors(struct prcb_processors *v, bool times)
{
    struct prcb_processor r = {.size = sizeof(r)};
    struct prcb_processor_times some[1];

    return times ? prcb_processors_times(v, some, sizeof(*some), 1) : prcb_processor_read(v, 0, &r);
}

static int processor_reader(enum reading what)
{
    struct prcb_processors_options options = {.size = sizeof(options), .tier = PRCB_TIER_BPF};
    struct prcb_processors *v;
    struct prcb_error err;
    int failed = 0;

    if (prcb_processors_open(&options, &v, &err))
        return 3;
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
        return 77;
    raise(SIGSTOP);
    syscall(MARK);
    for (int i = 0; i < READS; i++)
        failed += read_processors(v, what == READ_PROCESSOR_TIMES) != 0;
    syscall(MARK);
    return failed > FEW;
}

/* Only the reading thread is traced. */
static int reader(void *arg)
{
    enum reading what = *(enum reading *)arg;
    struct prcb_options options = {.size = sizeof(options), .tier = PRCB_TIER_BPF};
    struct prcb_error err;
    struct prcb_thread *t;
    struct prcb *p;
    pthread_t other;
    pid_t tid;
    int failed = 0;

    if (is_processors(what))
        return processor_reader(what);
    if (prcb_open(&options, &p, &err) || pthread_create(&other, NULL, switch_often, NULL))
        return 3;
    while (!__atomic_load_n(&other_tid, __ATOMIC_ACQUIRE))
        sleep_ns(100000);
    if (prcb_profile_process(p, getpid(), PRCB_FOLLOW_THREADS, &err))
        return 4;
    tid = what == READ_OTHER || what == READ_OTHER_TIMES ? other_tid : getpid();
    if (prcb_thread_open(p, tid, &t, &err))
        return 5;
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
        return 77;
    raise(SIGSTOP);
    syscall(MARK);
    for (int i = 0; i < READS; i++)
        failed += read_once(t, what == READ_OWN_TIMES || what == READ_OTHER_TIMES) != 0;
    syscall(MARK);
    return failed > FEW;
}

static long number_of(pid_t child)
{
    struct __ptrace_syscall_info info;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info) <= 0)
        return -1;
    return info.op == PTRACE_SYSCALL_INFO_ENTRY ? (long)info.entry.nr : -1;
}

/* hpet, acpi_pm and the like are read in the kernel: each look at the clock is a system call. */
static void need_a_clock_in_user_mode(void)
{
    char name[64];

    if (!kernel_uses_counter(name))
        skip_because("the kernel's clock is %s, which is read by a system call", name);
}

static void count_calls(enum reading what)
{
    int status, marks = 0, calls = 0;
    pid_t child;

    need_a_clock_in_user_mode();
    child = child_start(reader, &what);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        child_gone(child);
        skip_because("tracing is not allowed here");
    }
    assert_true(WIFSTOPPED(status));
    ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    for (;;) {
        long number;

        if (ptrace(PTRACE_SYSCALL, child, NULL, NULL) || waitpid(child, &status, 0) != child ||
            !WIFSTOPPED(status))
            break;
        number = WSTOPSIG(status) == (SIGTRAP | 0x80) ? number_of(child) : -1;
        if (number == MARK)
            marks++;
        else if (number >= 0 && marks == 1)
            calls++;
    }
    child_gone(child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(marks, 2);
    if (calls > FEW)
        fail_msg("%d system calls in %d reads", calls, READS);
}

static void test_own(void **state)
{
    count_calls(READ_OWN);
}

static void test_own_times(void **state)
{
    count_calls(READ_OWN_TIMES);
}

static void test_other(void **state)
{
    count_calls(READ_OTHER);
}

static void test_other_times(void **state)
{
    count_calls(READ_OTHER_TIMES);
}

static void test_processors(void **state)
{
    count_calls(READ_PROCESSORS);
}

static void test_processor_times(void **state)
{
    count_calls(READ_PROCESSOR_TIMES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BPF_TEST(test_own),         BPF_TEST(test_own_times),  BPF_TEST(test_other),
        BPF_TEST(test_other_times), BPF_TEST(test_processors), BPF_TEST(test_processor_times),
    };

    return BPF_RUN("no system calls", tests);
}
