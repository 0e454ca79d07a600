/* SPDX-License-Identifier: BSD-2-Clause
 *
 * How long each wait took, on the tiers that know: buckets and sums against what the accounts have
 * for the same stretches, which is the same to the nanosecond, and waits of a known length.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prcb/tails.h>

#include "daemon.h"

#define CHILDREN 6
#define SLEEPS   (200 / slowness())
#define SLEEP_NS 3000000ull

struct sums {
    uint64_t count[PRCB_CAUSE_MAX], ns[PRCB_CAUSE_MAX]; /* the first: of ready time */
    uint64_t missed, ended;
};

static int sleeper(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < SLEEPS; i++)
        sleep_ns(SLEEP_NS);
    return 0;
}

/* Two that share a processor: ready time. */
static int hog(void *arg)
{
    pin_to(0);
    for (uint64_t until = own_run() + 50000000; own_run() < until;)
        ;
    return arg != NULL;
}

static int add_account(const struct prcb_account *a, void *ctx)
{
    struct sums *sums = ctx;

    sums->ended += (a->flags & PRCB_ACCOUNT_EXITED) != 0;
    sums->missed += a->missed_switches;
    sums->ns[0] += a->ready_ns;
    sums->count[0] += a->switches;
    for (uint32_t i = 1; i < PRCB_CAUSE_MAX; i++) {
        sums->ns[i] += a->waits[i].ns;
        sums->count[i] += a->waits[i].count;
    }
    return 0;
}

static struct sums sums_of(struct prcb *p)
{
    struct sums ret = {.ended = 0};

    assert_int_equal(prcb_walk(p, add_account, &ret, NULL), 0);
    return ret;
}

static bool is_wait(uint32_t cause)
{
    const struct prcb_cause_info *info = prcb_cause_info(cause);

    return !cause || (info && info->kind == PRCB_KIND_WAIT);
}

static struct prcb_tail must_read_tail(struct prcb *p, uint32_t cause)
{
    struct prcb_tail ret = {.size = sizeof(ret)};
    struct prcb_error err = {.text = ""};

    if (prcb_tail_read(p, cause, &ret, &err))
        fail_msg("tail %u: %s", cause, err.text);
    return ret;
}

/* Tails and accounts, read while the caller was not switched. */
static struct sums read_both(struct prcb *p, struct prcb_tail *ret)
{
    struct sums before, after;

    do {
        before = sums_of(p);
        for (uint32_t i = 0; i < PRCB_CAUSE_MAX; i++) {
            if (is_wait(i))
                ret[i] = must_read_tail(p, i);
        }
        after = sums_of(p);
    } while (memcmp(&before, &after, sizeof(before)) != 0);
    return before;
}

static void check_law(struct prcb *p)
{
    struct prcb_tail tails[PRCB_CAUSE_MAX] = {0};
    pid_t children[CHILDREN];
    uint64_t low, high;
    struct sums sums;

    must_profile_process(p, getpid(), PRCB_FOLLOW_ALL);
    for (int i = 0; i < CHILDREN; i++)
        children[i] = child_start(i % 2 ? hog : sleeper, NULL);
    for (int i = 0; i < CHILDREN; i++)
        assert_int_equal(child_wait(children[i]), 0);
    /* A process can be waited for a moment before its last switch. */
    assert_true(wait_for(sums_of(p).ended == CHILDREN));
    sums = read_both(p, tails);
    for (uint32_t i = 0; i < PRCB_CAUSE_MAX; i++) {
        if (!is_wait(i))
            continue;
        assert_int_equal(tails[i].ns, sums.ns[i]);
        /* Each stretch began with a switch, but for that in which the caller may have waited for
         * prcbd while its account began. */
        if (!sums.missed)
            assert_in_range(tails[i].count - sums.count[i], 0, 1);
        assert_true(tails[i].max_ns <= tails[i].ns);
        if (tails[i].count)
            printf("    %-10s %6" PRIu64 " times, longest %" PRIu64 " us\n",
                   i ? prcb_cause_info(i)->name : "ready", tails[i].count, tails[i].max_ns / 1000);
    }
    /* No sleep is shorter than it was to be; what it takes to wake up is ready time, or less. */
    assert_int_equal(tails[PRCB_CAUSE_SLEEP].buckets[0], 0);
    assert_true(tails[PRCB_CAUSE_SLEEP].count >= 3 * SLEEPS);
    assert_true(prcb_tail_quantile(&tails[PRCB_CAUSE_SLEEP], 0.5, &low, &high));
    assert_true(low < high && high >= SLEEP_NS * 9 / 10);
    assert_true(prcb_tail_quantile(&tails[PRCB_CAUSE_SLEEP], 1, &low, &high));
    assert_true(tails[PRCB_CAUSE_SLEEP].max_ns > low);
    assert_int_equal(high, tails[PRCB_CAUSE_SLEEP].max_ns);
    assert_true(tails[0].max_ns > 0);
}

static void test_bpf(void **state)
{
    check_law(session_open_flags(1024, PRCB_OPEN_TAILS));
}

static void test_daemon(void **state)
{
    struct prcb_options options = {.size = sizeof(options),
                                   .tier = PRCB_TIER_DAEMON,
                                   .max_threads = 1024,
                                   .flags = PRCB_OPEN_TAILS};
    struct prcb_error err;
    struct prcb *p;

    daemon_shared();
    if (prcb_open(&options, &p, &err))
        fail_msg("%s", err.text);
    check_law(p);
    prcb_close(p);
}

/* Of all threads of the machine: kept where the configuration says so. */
static void test_shared_session(void **state)
{
    struct prcb_options options = {.size = sizeof(options),
                                   .tier = PRCB_TIER_DAEMON,
                                   .flags = PRCB_OPEN_TAILS | PRCB_OPEN_SHARED};
    struct prcb_tail tail = {.size = sizeof(tail)};
    struct prcb_error err;
    struct prcb *p;

    for (int kept = 0; kept < 2; kept++) {
        uint64_t before;

        daemon_start(kept ? "profile_all = all\ntails = yes\n" : "profile_all = all\n");
        assert_int_equal(prcb_open(&options, &p, &err), 0);
        assert_int_equal(prcb_profile_all(p, &err), 0);
        if (!kept) {
            int result = prcb_tail_read(p, 0, &tail, &err);

            /* Whoever may write maps has a session of its own, with tails. */
            assert_true(!result || (result == -EOPNOTSUPP && strstr(err.text, "tails = yes")));
        } else {
            before = must_read_tail(p, PRCB_CAUSE_SLEEP).count;
            sleep_ns(1000000);
            assert_true(wait_for(must_read_tail(p, PRCB_CAUSE_SLEEP).count > before));
        }
        prcb_close(p);
        daemon_end(NULL);
    }
}

static void test_refusals(void **state)
{
    struct prcb_tail tail = {.size = sizeof(tail), .count = 77};
    struct prcb *p = session_open_flags(64, PRCB_OPEN_TAILS);
    struct prcb_error err;
    uint64_t low, high;

    assert_int_equal(prcb_tail_read(p, PRCB_CAUSE_EXIT, &tail, &err), -EINVAL);
    assert_int_equal(prcb_tail_read(p, PRCB_CAUSE_QUANTUM, &tail, &err), -EINVAL);
    assert_int_equal(prcb_tail_read(p, PRCB_CAUSE_MAX, &tail, &err), -EINVAL);
    assert_int_equal(prcb_tail_read(p, UINT32_MAX, &tail, &err), -EINVAL);
    assert_int_equal(prcb_tail_read(session_open(64), 0, &tail, &err), -EOPNOTSUPP);
    assert_non_null(strstr(err.text, "PRCB_OPEN_TAILS"));
    assert_int_equal(tail.count, 77);
    tail.count = 0;
    assert_false(prcb_tail_quantile(&tail, 0.5, &low, &high));
}

static void test_bounds(void **state)
{
    uint64_t low, high;

    assert_int_equal(prcb_tail_bound(0), 1000);
    assert_int_equal(prcb_tail_bound(4), 5000);
    assert_int_equal(prcb_tail_bound(PRCB_TAIL_BUCKETS - 1), UINT64_MAX);
    for (uint32_t i = 1; i < PRCB_TAIL_BUCKETS - 1; i++)
        assert_true(prcb_tail_bound(i) > prcb_tail_bound(i - 1));
    /* Each power of two of microseconds is a bound, for histograms of these. */
    for (uint32_t i = 3; i < PRCB_TAIL_BUCKETS - 1; i += 4)
        assert_int_equal(prcb_tail_bound(i), 1000ull << (i / 4 + 2));
    for (uint32_t i = 0; i < PRCB_TAIL_BUCKETS; i++) {
        struct prcb_tail tail = {.size = sizeof(tail), .count = 1, .max_ns = 1ull << 60};

        tail.buckets[i] = 1;
        assert_true(prcb_tail_quantile(&tail, 0, &low, &high));
        assert_int_equal(low, i ? prcb_tail_bound(i - 1) : 0);
        assert_int_equal(high, i < PRCB_TAIL_BUCKETS - 1 ? prcb_tail_bound(i) : 1ull << 60);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),    BPF_TEST(test_bpf),
        BPF_TEST(test_refusals),          DAEMON_TEST(test_daemon),
        DAEMON_TEST(test_shared_session),
    };

    return BPF_RUN("tails", tests);
}
