/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The spans of waiting threads in programs that get to the variable in all ways that linkers know,
 * on every tier that there is, as root and as nobody. For a guest; elsewhere test_spans.py builds
 * and starts the same programs. Arguments: the programs; a library behind publisher-loads is what
 * it loads.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <prcb/stack.h>

#define MOST   16
#define NOBODY 65534
#define TRIES  20000 /* 1 ms each */
#define ALL    0xfu  /* of a program: no span, and three */

static struct publisher {
    char *program, *library;
    pid_t pid;
    int in;        /* it ends when this does */
    unsigned bits; /* what was read of it: of span n bit n */
} publishers[MOST];
static size_t count;

/* Starts a program, and waits until it says that its threads are there. */
static void start(struct publisher *publisher)
{
    int to[2], from[2];
    char word[6] = "";

    assert_int_equal(pipe2(to, O_CLOEXEC) | pipe2(from, O_CLOEXEC), 0);
    publisher->pid = fork();
    if (!publisher->pid) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        execl(publisher->program, publisher->program, publisher->library, NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    assert_int_equal(read(from[0], word, sizeof(word)), sizeof(word));
    assert_memory_equal(word, "ready\n", sizeof(word));
    close(from[0]);
    publisher->in = to[1];
    publisher->bits = 0;
}

static void end(struct publisher *publisher)
{
    close(publisher->in);
    waitpid(publisher->pid, NULL, 0);
}

struct threads {
    struct prcb_account of[5 * MOST];
    size_t count;
};

static int take_account(const struct prcb_account *a, void *ctx)
{
    struct threads *threads = ctx;

    if (threads->count < sizeof(threads->of) / sizeof(*threads->of))
        threads->of[threads->count++] = *a;
    return 0;
}

static unsigned bit_of(const struct prcb_stack *stack)
{
    unsigned n = stack->span.span_id[0];

    if (stack->span_state != PRCB_SPAN_THERE)
        return stack->span_state == PRCB_SPAN_NONE;
    for (size_t i = 0; i < sizeof(stack->span.trace_id); i++)
        assert_int_equal(stack->span.trace_id[i], n);
    for (size_t i = 0; i < sizeof(stack->span.span_id); i++)
        assert_int_equal(stack->span.span_id[i], n);
    assert_in_range(n, 1, 3);
    return 1u << n;
}

static void note(pid_t pid, const struct prcb_stack *stack)
{
    for (size_t i = 0; i < count; i++)
        publishers[i].bits |= publishers[i].pid == pid ? bit_of(stack) : 0;
}

/* Reads every wait once more. Returns whether all is known by now. */
static bool look(struct prcb *p, struct prcb_stacks *s)
{
    static struct threads threads;
    struct prcb_error err = {.text = ""};
    bool all = true;

    threads.count = 0;
    assert_int_equal(prcb_walk(p, take_account, &threads, NULL), 0);
    for (size_t i = 0; i < threads.count; i++) {
        struct prcb_stack stack = {.size = sizeof(stack)};
        int result = prcb_stacks_read(s, &threads.of[i], &stack, &err);

        if (result && result != -EAGAIN && result != -EIO)
            fail_msg("%s", err.text);
        if (!result)
            note(threads.of[i].pid, &stack);
    }
    for (size_t i = 0; i < count; i++)
        all = all && publishers[i].bits == ALL;
    return all;
}

static void say_missing(enum prcb_tier tier)
{
    for (size_t i = 0; i < count; i++) {
        if (publishers[i].bits != ALL)
            fail_msg("%s tier: of %s %s the spans %#x were read", prcb_tier_name(tier),
                     publishers[i].program, publishers[i].library ? publishers[i].library : "",
                     publishers[i].bits);
    }
}

/* Each of three threads is in a span; the fourth's record is not valid, and the first has none. */
static void check(enum prcb_tier tier)
{
    const struct prcb_options options = {
        .size = sizeof(options), .tier = tier, .max_threads = 128, .flags = PRCB_OPEN_REGISTERS};
    const struct prcb_stacks_options spans = {.size = sizeof(spans), .flags = PRCB_STACKS_SPANS};
    struct prcb_error err = {.text = ""};
    struct prcb_stacks *s;
    bool all = false;
    struct prcb *p;

    if (prcb_open(&options, &p, &err)) {
        print_message("    %s tier: %s\n", prcb_tier_name(tier), err.text);
        skip();
    }
    assert_int_equal(prcb_stacks_open(p, &spans, &s, &err), 0);
    for (size_t i = 0; i < count; i++) {
        start(&publishers[i]);
        assert_int_equal(prcb_profile_process(p, publishers[i].pid, PRCB_FOLLOW_ALL, &err), 0);
    }
    for (int i = 0; i < TRIES && !all; i++) {
        all = look(p, s);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    for (size_t i = 0; i < count; i++)
        end(&publishers[i]);
    prcb_stacks_close(s);
    prcb_close(p);
    say_missing(tier);
}

static void test_perf_tier(void **state)
{
    check(PRCB_TIER_PERF);
}

static void test_bpf_tier(void **state)
{
    check(PRCB_TIER_BPF);
}

/* From here on it is nobody. */
static void test_as_nobody(void **state)
{
    if (!geteuid() && (setgid(NOBODY) || setuid(NOBODY)))
        fail_msg("%s", strerror(errno));
    test_perf_tier(state);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_perf_tier),
        cmocka_unit_test(test_bpf_tier),
        cmocka_unit_test(test_as_nobody),
    };

    for (int i = 1; i < argc && count < MOST; i++) {
        bool loads = i + 1 < argc && strstr(argv[i + 1], ".so");

        publishers[count++] = (struct publisher){argv[i], loads ? argv[i + 1] : NULL, 0, -1, 0};
        i += loads;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
