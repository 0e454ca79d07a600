/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Sums that outlive their threads: 20,000 processes come and go in a session that has room for 255,
 * and what they did is in the figures for monitoring, by the kernel's own account of them.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "metrics.h"

#define SLOTS  255
#define FORKS  (20000 / slowness())
#define ASHORE 16 /* slots that are left to others: the forker, and who is between two */

struct storm {
    uint32_t may; /* processes that there is room for, so far */
    uint32_t done, end;
    uint64_t run_ns, switches; /* by getrusage(RUSAGE_CHILDREN) */
};

static uint64_t ns_of(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_usec * 1000;
}

/* One at a time, each with something to do; never more than there is room for. */
static int fork_on(void *arg)
{
    struct storm *storm = arg;
    struct rusage used;

    for (uint32_t i = 0; i < FORKS; i++) {
        int status;
        pid_t child;

        while (gate_get(&storm->may) <= i)
            sleep_ns(100000);
        child = fork();
        if (!child) {
            for (volatile unsigned k = 0; k < 20000; k++)
                ;
            _exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status)
            return 1;
    }
    if (getrusage(RUSAGE_CHILDREN, &used))
        return 1;
    storm->run_ns = ns_of(&used.ru_utime) + ns_of(&used.ru_stime);
    storm->switches = (uint64_t)used.ru_nvcsw + (uint64_t)used.ru_nivcsw;
    gate_set(&storm->done, 1);
    gate_wait_while(&storm->end, 0);
    return 0;
}

struct look {
    struct metrics *m;
    struct prcb *session;
    pid_t forker;
    uint32_t released;
    struct prcb_account own; /* the forker's */
};

static int add(const struct prcb_account *a, void *ctx)
{
    struct look *look = ctx;

    if (a->tid == look->forker)
        look->own = *a;
    return metrics_add(look->m, a);
}

static void ended(void *ctx, uint64_t key)
{
    struct look *look = ctx;

    if (!prcb_release(look->session, key, NULL))
        look->released++;
}

static void look_once(struct look *look)
{
    struct prcb_status status = {.size = sizeof(status)};

    metrics_begin(look->m);
    assert_int_equal(prcb_walk(look->session, add, look, NULL), 0);
    metrics_end(look->m, ended, look);
    prcb_session_status(look->session, &status);
    metrics_set_status(look->m, &status);
}

struct wanted {
    const char *value;
    uint64_t sum;
};

static void take(void *ctx, const struct metrics_sample *sample)
{
    struct wanted *wanted = ctx;

    if (!wanted->value || !strcmp(sample->value[0], wanted->value))
        wanted->sum += sample->number;
}

/* The sum of a family's samples; value: only those of its first label's. */
static uint64_t figure(const struct metrics *m, const char *name, const char *value)
{
    struct wanted wanted = {.value = value};

    for (const struct metrics_family *f = metrics_families; f->name; f++) {
        if (!strcmp(f->name, name))
            metrics_each(m, f, take, &wanted);
    }
    return wanted.sum;
}

static void test_nothing_is_lost(void **state)
{
    const struct metrics_options options = {.tier = PRCB_TIER_BPF};
    struct storm *storm = shared_memory(sizeof(*storm));
    struct look look = {.session = session_open(SLOTS)};
    uint64_t run, switches, last = 0;

    assert_int_equal(metrics_open_fed(&options, &look.m, NULL), 0);
    look.forker = child_start(fork_on, storm);
    must_profile_process(look.session, look.forker, PRCB_FOLLOW_ALL);
    gate_set(&storm->may, SLOTS - ASHORE);
    for (uint64_t until = mono_ns() + 250000000000ull; !gate_get(&storm->done);) {
        look_once(&look);
        run = figure(look.m, "prcb_system_thread_seconds", "run");
        assert_true(run >= last);
        last = run;
        gate_set(&storm->may, SLOTS - ASHORE + look.released);
        assert_true(mono_ns() < until);
        sleep_ns(2000000);
    }
    /* A process can be waited for a moment before its last switch. */
    assert_true(wait_for((look_once(&look), look.released == FORKS)));
    run = figure(look.m, "prcb_system_thread_seconds", "run") - look.own.run_ns;
    switches = figure(look.m, "prcb_system_switches", NULL) - look.own.switches;
    printf("    %u processes in %d slots: run %" PRIu64 " us, %" PRIu64 " us by getrusage; %" PRIu64
           " switches, %" PRIu64 "\n",
           FORKS, SLOTS, run / 1000, storm->run_ns / 1000, switches, storm->switches);
    assert_int_equal(figure(look.m, "prcb_untracked_threads", NULL), 0);
    /* What is waited for may lack its last switch, and what it does until then; rusage is cut to
     * microseconds. */
    assert_in_range(switches, storm->switches, storm->switches + FORKS);
    assert_true(run + 1000ull * FORKS >= storm->run_ns);
    assert_true(run <= storm->run_ns + storm->run_ns / 20 + 5000ull * FORKS);
    gate_set(&storm->end, 1);
    assert_int_equal(child_wait(look.forker), 0);
    metrics_close(look.m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {BPF_TEST(test_nothing_is_lost)};

    return BPF_RUN("folding", tests);
}
