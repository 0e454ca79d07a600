/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Stacks as an ordinary user where Yama's ptrace_scope is 1: those of one's own child are there,
 * those of a process beside are not, and prcb says why. Arguments: stack_waiter, and prcb for what
 * it says.
 *
 * Three processes: as root the first goes on as nobody, and sets ptrace_scope to 1 before where
 * PRCB_TEST_SYSCTL says that the machine is the test's (the guests); the second starts a waiter
 * and, beside it, the third, which runs the tests.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prcb/stack.h>

#include "stack_child.h"

#define SCOPE  "/proc/sys/kernel/yama/ptrace_scope"
#define NOBODY 65534
#define TRIES  20000 /* 1 ms each */

static const char *waiter, *prcb;
static pid_t beside, beside_tid; /* 0: there is nothing to test here */
static const char *reason = "";

static int read_scope(void)
{
    FILE *file = fopen(SCOPE, "re");
    int scope = -1;

    if (file && fscanf(file, "%d", &scope) != 1)
        scope = -1;
    if (file)
        fclose(file);
    return scope;
}

static int write_scope(int scope)
{
    FILE *file = fopen(SCOPE, "we");
    int result = file ? fprintf(file, "%d\n", scope) : -1;

    return file && !fclose(file) && result > 0 ? 0 : -1;
}

static void needs_yama(void)
{
    if (beside)
        return;
    print_message("    not run: %s\n", reason);
    skip();
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

/* What prcb_stacks_read says of a thread once it waits. */
static int read_stack(pid_t pid, pid_t tid, struct prcb_error *err, char *ret_function, size_t size)
{
    const struct prcb_options options = {
        .size = sizeof(options), .tier = PRCB_TIER_PERF, .max_threads = 16};
    struct prcb_stack stack = {.size = sizeof(stack)};
    struct prcb_stacks *s;
    struct prcb *p;
    int result = -EAGAIN;

    assert_int_equal(prcb_open(&options, &p, err), 0);
    assert_int_equal(prcb_profile_process(p, pid, PRCB_FOLLOW_ALL, err), 0);
    assert_int_equal(prcb_stacks_open(p, NULL, &s, err), 0);
    *ret_function = '\0';
    for (int i = 0; i < TRIES && (result == -EAGAIN || (!result && !*ret_function)); i++, nap()) {
        struct wanted wanted = {.tid = tid};

        assert_int_equal(prcb_walk(p, take_account, &wanted, NULL), 0);
        assert_true(wanted.account.key != 0);
        result = prcb_stacks_read(s, &wanted.account, &stack, err);
        for (uint32_t k = 0; !result && k < stack.frame_count; k++) {
            const char *function = stack.frames[k].function;

            if (function && !strncmp(function, "by_", 3))
                snprintf(ret_function, size, "%s", function);
        }
    }
    prcb_stacks_close(s);
    prcb_close(p);
    return result;
}

static void test_own_child(void **state)
{
    struct prcb_error err = {.text = ""};
    struct child child;
    char function[64];

    needs_yama();
    child = child_start(waiter, "poll", "0");
    if (read_stack(child.pid, child.tid, &err, function, sizeof(function)))
        fail_msg("%s", err.text);
    assert_string_equal(function, "by_poll");
    child_end(&child);
}

static void test_process_beside(void **state)
{
    struct prcb_error err = {.text = ""};
    char function[64];

    needs_yama();
    assert_int_equal(read_stack(beside, beside_tid, &err, function, sizeof(function)), -EPERM);
    assert_string_equal(function, "");
    assert_non_null(strstr(err.text, "kernel.yama.ptrace_scope"));
}

/* What a command of the shell prints. */
static const char *output_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *output_of(const char *format, ...)
{
    static char text[65536];
    char command[1024];
    va_list args;
    size_t length;
    FILE *out;

    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    out = popen(command, "r");
    assert_non_null(out);
    length = fread(text, 1, sizeof(text) - 1, out);
    text[length] = '\0';
    pclose(out);
    return text;
}

static void assert_says(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" is not in:\n%s", words, text);
}

static void test_why_says_so(void **state)
{
    const char *text = "";

    needs_yama();
    if (!*prcb)
        skip();
    /* A slow machine's first looks have no time for stacks. */
    for (int seconds = 1; seconds < 64; seconds *= 4) {
        text = output_of("'%s' why --budget 100 --for %d -p %d 2>&1", prcb, seconds, (int)beside);
        if (strstr(text, "[no permission]"))
            break;
    }
    assert_says(text, "[no permission]");
    assert_says(text, "kernel.yama.ptrace_scope");
    assert_null(strstr(text, "by_poll"));
    /* What it starts itself. Whether there is time to read it depends on the machine. */
    text = output_of("'%s' why -- sh -c \"sleep 2 | '%s' poll\" 2>&1", prcb, waiter);
    assert_says(text, "stack_waiter (");
    assert_null(strstr(text, "[no permission]"));
}

static void test_doctor_says_so(void **state)
{
    const char *text, *row;

    needs_yama();
    if (!*prcb)
        skip();
    text = output_of("'%s' doctor 2>&1", prcb);
    assert_says(text, "kernel.yama.ptrace_scope = 1");
    row = strstr(text, "ptrace-scope");
    assert_non_null(row);
    row += strcspn(row, " ");
    row += strspn(row, " ");
    assert_int_equal(strncmp(row, "absent", 6), 0);
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_child),
        cmocka_unit_test(test_process_beside),
        cmocka_unit_test(test_why_says_so),
        cmocka_unit_test(test_doctor_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Another of this program's processes, to its end. */
static int run_self(const char *self, const char *argument, uid_t user)
{
    char *const argv[] = {(char *)self, (char *)waiter, (char *)prcb, (char *)argument, NULL};
    pid_t pid = fork();
    int status = -1;

    if (!pid) {
        if (user && (setgroups(0, NULL) || setgid(user) || setuid(user)))
            _exit(127);
        execv("/proc/self/exe", argv);
        _exit(127);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int run_beside(const char *self)
{
    struct child child = child_start(waiter, "poll", "0");
    char numbers[64];
    int status;

    snprintf(numbers, sizeof(numbers), "%d %d", (int)child.pid, (int)child.tid);
    status = run_self(self, numbers, 0);
    child_end(&child);
    return status;
}

static int run_as_nobody(const char *self, int scope)
{
    int status;

    if (scope != 1 && write_scope(1)) {
        perror(SCOPE);
        return 1;
    }
    status = run_self(self, NULL, NOBODY);
    if (scope != 1)
        write_scope(scope);
    return status;
}

int main(int argc, char **argv)
{
    int scope = read_scope();

    waiter = argc > 1 ? argv[1] : "";
    prcb = argc > 2 ? argv[2] : "";
    if (argc > 3 && sscanf(argv[3], "%d %d", &beside, &beside_tid) != 2)
        return 2;
    if (beside)
        return run_all();
    if (!geteuid() && (scope == 1 || (scope == 0 && getenv("PRCB_TEST_SYSCTL"))))
        return run_as_nobody(argv[0], scope);
    if (scope == 1)
        return run_beside(argv[0]);
    reason = scope < 0 ? "this kernel has no Yama" : SCOPE " is not 1 (the guests' tests set it)";
    return run_all();
}
