/* SPDX-License-Identifier: BSD-2-Clause
 *
 * 32-bit x86 tasks: their calls are numbered by another table. compat_waiter, a
 * 32-bit program next to this one, waits in a known way a known number of times
 * between two stops; the account must have exactly these waits under their cause.
 */
#include "harness.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ROUNDS 10

struct compat_case {
    const char *name; /* as compat_waiter knows it */
    enum prcb_cause cause;
};

static const struct compat_case cases[] = {
    {"nanosleep", PRCB_CAUSE_SLEEP},
    {"clock_nanosleep", PRCB_CAUSE_SLEEP},
    {"clock_nanosleep_time64", PRCB_CAUSE_SLEEP},
    {"futex", PRCB_CAUSE_FUTEX},
    {"futex_time64", PRCB_CAUSE_FUTEX},
    {"poll", PRCB_CAUSE_POLL},
    {"ppoll_time64", PRCB_CAUSE_POLL},
    {"select", PRCB_CAUSE_POLL},
    {"epoll_wait", PRCB_CAUSE_EPOLL},
    {"pipe", PRCB_CAUSE_PIPE},
    {"waitpid", PRCB_CAUSE_CHILD},
    {"recvfrom", PRCB_CAUSE_SOCKET},
    {"socketcall", PRCB_CAUSE_SOCKET},
    {"ipc", PRCB_CAUSE_SEMAPHORE},
    {"semtimedop_time64", PRCB_CAUSE_SEMAPHORE},
    {"rt_sigtimedwait", PRCB_CAUSE_SIGNAL},
};

static char waiter[4096];

/* compat_waiter is in this program's own folder. */
static void find_waiter(void)
{
    ssize_t length = readlink("/proc/self/exe", waiter, sizeof(waiter) - 16);
    char *slash;

    assert_true(length > 0);
    waiter[length] = '\0';
    slash = strrchr(waiter, '/');
    assert_non_null(slash);
    strcpy(slash + 1, "compat_waiter");
}

static int run_waiter(void *arg)
{
    char milliseconds[16], rounds[16];
    char *arguments[] = {waiter, arg, rounds, milliseconds, NULL};

    snprintf(rounds, sizeof(rounds), "%d", ROUNDS);
    snprintf(milliseconds, sizeof(milliseconds), "%d", slowness() > 1 ? 10 : 2);
    execv(waiter, arguments);
    return errno == ENOEXEC ? 8 : 9;
}

static const char *why_no_waiter(void)
{
    pid_t child;

    find_waiter();
    if (access(waiter, X_OK))
        return "compat_waiter was not built: the compiler makes no 32-bit programs";
    child = child_start(run_waiter, (char *)"nothing");
    return child_wait(child) == 8 ? "the kernel runs no 32-bit programs" : NULL;
}

static bool is_stopped(pid_t child)
{
    return kernel_state(child, child) == 'T';
}

/* What the machine may add by its own. */
static bool is_noise(uint32_t cause)
{
    return cause == PRCB_CAUSE_DISK || cause == PRCB_CAUSE_PAGE_FAULT ||
           cause == PRCB_CAUSE_MMAP_LOCK || cause == PRCB_CAUSE_RWSEM ||
           cause == PRCB_CAUSE_MUTEX || cause == PRCB_CAUSE_KLOCK;
}

static void check(const struct compat_case *c, const struct prcb_account *d)
{
    uint64_t count = d->waits[c->cause].count, others = 0;
    uint64_t least = count * 1000000ull * (slowness() > 1 ? 5 : 1); /* half of the timeouts */
    bool right = count <= ROUNDS && d->waits[c->cause].ns >= least && d->missed_switches == 0;

    /* A thread that has no processor for that long finds a timeout over, or a child ended, before
     * it waits: then the kernel counts no switch either, which is compared below. */
    right &= count >= 1;
    for (uint32_t i = 1; i < PRCB_CAUSE_MAX; i++) {
        const struct prcb_cause_info *info = prcb_cause_info(i);

        if (i == PRCB_CAUSE_STOPPED || is_noise(i))
            others += d->waits[i].count;
        if (info && info->kind == PRCB_KIND_WAIT && i != c->cause && i != PRCB_CAUSE_STOPPED &&
            !is_noise(i) && d->waits[i].count)
            right = false;
    }
    right &= count + others == d->voluntary_switches; /* the kernel's: each that it forced */
    if (!right) {
        print_account(c->name, d);
        fail_msg("%s: waits are not as forced", c->name);
    }
}

static void test_wait(void **state)
{
    const struct compat_case *c = *state;
    struct prcb *p = session_shared();
    struct prcb_account a, b, d;
    struct prcb_thread *t;
    pid_t child;

    child = child_start(run_waiter, (char *)c->name);
    assert_true(wait_for(is_stopped(child) && kernel_off(child, child)));
    must_profile_process(p, child, 0);
    t = must_open(p, child);
    a = must_read(t);
    assert_int_equal(a.open.cause, PRCB_CAUSE_STOPPED);
    kill(child, SIGCONT);
    assert_true(wait_for((b = must_read(t)).waits[PRCB_CAUSE_STOPPED].count >
                             a.waits[PRCB_CAUSE_STOPPED].count &&
                         b.open.cause == PRCB_CAUSE_STOPPED));
    kill(child, SIGCONT);
    assert_int_equal(child_wait(child), 0);
    assert_laws(&a);
    assert_laws(&b);
    prcb_account_sub(&b, &a, &d);
    check(c, &d);
}

int main(void)
{
    enum { CASES = sizeof(cases) / sizeof(cases[0]) };
    static struct CMUnitTest tests[CASES];
    const char *reason = why_no_waiter();

    if (reason) {
        printf("32-bit tasks skipped: %s\n", reason);
        return 77;
    }
    for (size_t i = 0; i < CASES; i++)
        tests[i] = (struct CMUnitTest){.name = cases[i].name,
                                       .test_func = test_wait,
                                       .teardown_func = test_end,
                                       .initial_state = (void *)&cases[i]};
    return bpf_run("32-bit tasks", tests, CASES);
}

#else

int main(void)
{
    printf("32-bit tasks skipped: no 32-bit x86 tasks on this machine\n");
    return 77;
}

#endif
