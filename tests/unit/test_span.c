/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Spans as readers of OTEP 4947's thread context find them: by the variable's name, byte by byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <prcb/span.h>

#define CHANGES    1000000
#define LOOKS_MOST 5000

extern __thread const void *volatile otel_thread_ctx_v1;

static struct prcb_span_id span_of(unsigned number)
{
    struct prcb_span_id id = {.flags = 1};

    memset(id.trace_id, (int)(number % 255 + 1), sizeof(id.trace_id));
    memset(id.span_id, (int)(number % 255 + 1), sizeof(id.span_id));
    return id;
}

/* The record's 28 bytes, as the specification has them. */
static void expect_record(unsigned number, unsigned char valid)
{
    unsigned char want[28] = {0};
    const struct prcb_span_id id = span_of(number);

    if (valid) {
        memcpy(want, id.trace_id, 16);
        memcpy(want + 16, id.span_id, 8);
        want[24] = 1;
        want[25] = 1;
    }
    assert_non_null(otel_thread_ctx_v1);
    assert_int_equal((uintptr_t)otel_thread_ctx_v1 % 2, 0);
    assert_memory_equal(otel_thread_ctx_v1, want, sizeof(want));
}

static void test_layout(void **state)
{
    struct prcb_span_id id = span_of(7), zero = span_of(7);

    assert_int_equal(prcb_span_publish(&id), 0);
    expect_record(7, 1);
    memset(zero.span_id, 0, sizeof(zero.span_id));
    assert_int_equal(prcb_span_publish(&zero), -EINVAL);
    expect_record(7, 1);
    assert_int_equal(prcb_span_publish(NULL), 0);
    expect_record(0, 0);
}

static void test_nested(void **state)
{
    struct prcb_span outer = {.size = sizeof(outer)}, inner = {.size = sizeof(inner)};
    struct prcb_account account = {.size = sizeof(account)};
    struct prcb_span_id first = span_of(1), second = span_of(2);

    assert_int_equal(prcb_span_begin(NULL, &first, &outer), 0);
    assert_int_equal(prcb_span_begin(NULL, &second, &inner), 0);
    expect_record(2, 1);
    assert_int_equal(prcb_span_end(&inner, NULL), 0);
    expect_record(1, 1);
    assert_int_equal(prcb_span_end(&outer, &account), -EINVAL);
    expect_record(0, 0);
}

static void test_figures(void **state)
{
    const struct prcb_options how = {.size = sizeof(how), .tier = PRCB_TIER_PERF};
    struct prcb_account account = {.size = sizeof(account)}, before = account, after = account;
    struct prcb_span span = {.size = sizeof(span)};
    struct prcb_span_id id = span_of(3);
    struct prcb_thread *t;
    struct prcb_error err;
    struct prcb *p;

    assert_int_equal(prcb_open(&how, &p, &err), 0);
    assert_int_equal(prcb_thread_open_self(p, &t, &err), 0);
    assert_int_equal(prcb_thread_read(t, &before), 0);
    assert_int_equal(prcb_span_begin(t, &id, &span), 0);
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    assert_int_equal(prcb_span_end(&span, &account), 0);
    assert_int_equal(prcb_thread_read(t, &after), 0);
    assert_in_range(account.wall_ns, 2000000, after.wall_ns - before.wall_ns);
    prcb_thread_close(t);
    prcb_close(p);
}

static void *other_thread(void *unused)
{
    return (void *)(uintptr_t)(otel_thread_ctx_v1 != NULL);
}

static void test_threads(void **state)
{
    struct prcb_span_id id = span_of(5);
    pthread_t thread;
    void *seen;

    prcb_span_publish(&id);
    assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
    pthread_join(thread, &seen);
    assert_null(seen);
    prcb_span_publish(NULL);
}

static void test_tracer(void **state)
{
    static const unsigned char theirs[28];
    struct prcb_span span = {.size = sizeof(span)};
    struct prcb_span_id id = span_of(5);
    const void *ours;

    prcb_span_publish(NULL);
    ours = otel_thread_ctx_v1;
    otel_thread_ctx_v1 = theirs;
    assert_int_equal(prcb_span_publish(&id), -EBUSY);
    assert_int_equal(prcb_span_begin(NULL, &id, &span), 0);
    assert_int_equal(prcb_span_end(&span, NULL), 0);
    assert_ptr_equal(otel_thread_ctx_v1, theirs);
    otel_thread_ctx_v1 = ours;
}

static volatile sig_atomic_t looked, torn;
static timer_t timer;

/* The next look comes when the thread has gone on for a while, however long a look takes. */
static void look_soon(void)
{
    timer_settime(timer, 0, &(struct itimerspec){.it_value.tv_nsec = 50000}, NULL);
}

/* A reader: it stands between two stores of the thread. */
static void look(int signal_number)
{
    const unsigned char *record = otel_thread_ctx_v1;

    if (++looked < LOOKS_MOST)
        look_soon();
    for (int i = 1; record && record[24] == 1 && i < 24; i++)
        torn += record[i] != record[0] || !record[0];
}

static void test_torn(void **state)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};

    signal(SIGUSR1, look);
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    look_soon();
    for (unsigned i = 0; i < CHANGES || looked < 100; i++) {
        struct prcb_span_id id = span_of(i);

        prcb_span_publish(i % 16 ? &id : NULL);
    }
    timer_delete(timer);
    signal(SIGUSR1, SIG_DFL);
    assert_int_equal(torn, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),  cmocka_unit_test(test_nested),
        cmocka_unit_test(test_figures), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_tracer),  cmocka_unit_test(test_torn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
