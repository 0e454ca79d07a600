/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench_run.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "array.h"
#include "cli.h"
#include "first_line.h"
#include "now.h"
#include "stat_targets.h"

#define REFRESH_NS     20000000u /* perf tier: how short-lived a thread may be missed */
#define SETTLE_NS      1000000   /* between two looks whether a child made its last switch */
#define SETTLE_TRIES   100
#define REFERENCE_STEP 400000u /* about a millisecond */

/* ---- the machine ---------------------------------------------------------------- */

/* Returns how long a fixed loop takes, of processor time; the best of three, for what disturbs it
 * only adds. */
static double reference_loop(void)
{
    double best = INFINITY;

    for (int i = 0; i < 3; i++) {
        struct timespec from, to;
        uint64_t state = 1;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
        for (unsigned k = 0; k < REFERENCE_STEP; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            __asm__ volatile("" : "+r"(state));
        }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
        best = fmin(best,
                    (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec));
    }
    return best;
}

/* Returns what the hypervisor has taken from the machine; NAN: not known. */
static double stolen_ns(void)
{
    unsigned long long steal;
    char text[256];

    if (!first_line("/proc/stat", text, sizeof(text)) ||
        sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &steal) != 1)
        return NAN;
    return (double)steal * 1e9 / (double)sysconf(_SC_CLK_TCK);
}

/* ---- accounts ------------------------------------------------------------------- */

struct sums {
    struct prcb_account total; /* of all threads; .present: what all have */
    uint64_t threads, leader_wall;
    pid_t child;
    bool child_ended, left;
    uint64_t *keys;
    size_t key_count;
    int result;
};

static int add_account(const struct prcb_account *a, void *ctx)
{
    struct sums *s = ctx;

    s->total.present = s->threads ? s->total.present & a->present : a->present;
    s->threads++;
    s->total.run_ns += a->run_ns;
    s->total.ready_ns += a->ready_ns;
    s->total.wait_ns += a->wait_ns;
    s->total.interrupted_ns += a->interrupted_ns;
    for (size_t i = 0; i < PRCB_CAUSE_MAX; i++) {
        s->total.waits[i].ns += a->waits[i].ns;
        s->total.waits[i].count += a->waits[i].count;
    }
    if (a->tid == s->child)
        s->leader_wall = a->wall_ns;
    if (a->pid == s->child && !(a->flags & PRCB_ACCOUNT_EXITED))
        s->child_ended = false;
    s->left = s->left || !(a->flags & PRCB_ACCOUNT_EXITED);
    return array_append(s->keys, s->key_count, a->key);
}

/* Adds all accounts up, again until the child has made its last switch, which comes after its end
 * is known. */
static int add_all(struct bench_runner *runner, pid_t child, struct sums *ret,
                   struct prcb_error *err)
{
    const struct timespec pause = {.tv_nsec = SETTLE_NS};
    bool bpf = prcb_session_tier(runner->session) != PRCB_TIER_PERF;
    int result = -EAGAIN;

    for (int i = 0; i < SETTLE_TRIES; i++) {
        free(ret->keys);
        *ret = (struct sums){.child = child, .child_ended = true};
        result = prcb_walk(runner->session, add_account, ret, err);
        if ((!result && (!bpf || ret->child_ended)) || (result && result != -EAGAIN))
            break;
        nanosleep(&pause, NULL);
    }
    return result;
}

static double known(uint64_t present, uint64_t bit, uint64_t value)
{
    return present & bit ? (double)value : NAN;
}

static double seconds_ns(struct timeval time)
{
    return (double)time.tv_sec * 1e9 + (double)time.tv_usec * 1e3;
}

static void take_causes(const struct prcb_account *total, struct bench_run *ret)
{
    for (unsigned i = 0; i < PRCB_CAUSE_MAX; i++) {
        const struct prcb_cause_info *info = prcb_cause_info(i);
        double ns = NAN, count = NAN;

        if (info && info->kind == PRCB_KIND_WAIT && i != PRCB_CAUSE_THROTTLED &&
            total->present & PRCB_HAS_WAITS) {
            ns = (double)total->waits[i].ns;
            count = (double)total->waits[i].count;
        }
        ret->value[BENCH_FIXED + i] = ns;
        ret->value[BENCH_FIXED + PRCB_CAUSE_MAX + i] = count;
    }
}

static void take_parts(const struct sums *s, const struct rusage *usage, bool bpf,
                       struct bench_run *ret)
{
    const struct prcb_account *t = &s->total;
    double *v = ret->value,
           interrupted = t->present & PRCB_HAS_INTERRUPTED ? (double)t->interrupted_ns : 0;

    v[BENCH_USER] = seconds_ns(usage->ru_utime);
    v[BENCH_SYSTEM] = seconds_ns(usage->ru_stime);
    /* Threads that came and went between two looks are in the kernel's sum alone. */
    v[BENCH_RUN] = bpf && t->present & PRCB_HAS_RUN ? (double)t->run_ns - interrupted
                                                    : v[BENCH_USER] + v[BENCH_SYSTEM];
    v[BENCH_READY] = known(t->present, PRCB_HAS_READY, t->ready_ns);
    v[BENCH_INTERRUPTED] = known(t->present, PRCB_HAS_INTERRUPTED, t->interrupted_ns);
    v[BENCH_THROTTLED] = known(t->present, PRCB_HAS_WAITS, t->waits[PRCB_CAUSE_THROTTLED].ns);
    v[BENCH_WAIT] =
        t->present & PRCB_HAS_WAITS ? NAN : known(t->present, PRCB_HAS_WAIT, t->wait_ns);
    v[BENCH_FAULTS] = (double)usage->ru_minflt;
    v[BENCH_MAJOR_FAULTS] = (double)usage->ru_majflt;
    v[BENCH_THREADS] = bpf ? (double)s->threads : NAN;
    take_causes(t, ret);
}

/* Gives all accounts back, those of threads that live on, too: they are no part of another run. */
static void release_all(struct bench_runner *runner, const struct sums *s)
{
    struct prcb_status status = {.size = sizeof(status)};

    for (size_t i = 0; i < s->key_count; i++)
        prcb_release(runner->session, s->keys[i], NULL);
    if (!prcb_session_status(runner->session, &status))
        runner->untracked = status.untracked_threads;
    runner->left = runner->left || s->left;
}

/* ---- a run ---------------------------------------------------------------------- */

/* Starts the command with its input, and if nobody wants it its output, from and to nowhere. */
int bench_run_start(struct bench_runner *runner, char **argv, const struct prcb_spawn_hook *hook,
                    struct prcb_error *err)
{
    struct stat_options options = *runner->options;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), saved[2], status = CLI_FAILED, result;
    pid_t child;

    if (null < 0) {
        cli_error(runner->command, "/dev/null: %s", strerror(errno));
        return CLI_FAILED;
    }
    options.command = argv;
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
        if (!i || !runner->show_output)
            dup2(null, i);
    }
    result = stat_targets_start(runner->session, &options, hook, &child, &status, err);
    for (int i = 0; i < 2; i++) {
        dup2(saved[i], i);
        close(saved[i]);
    }
    close(null);
    if (result) {
        cli_error(runner->command, "%s", err->text);
        return status;
    }
    stat_wait_set_child(runner->wait, child);
    return CLI_OK;
}

/* Waits for the end of the child; the perf tier looks for threads meanwhile. */
static void wait_for_child(struct bench_runner *runner)
{
    uint64_t refresh = prcb_session_tier(runner->session) == PRCB_TIER_PERF ? REFRESH_NS : 0;

    for (;;) {
        uint64_t until = refresh ? now_ns() + refresh : UINT64_MAX;

        if (stat_wait_until(runner->wait, until) & STAT_WAIT_CHILD)
            return;
        if (refresh)
            prcb_refresh(runner->session, NULL);
    }
}

static bool asks_for_end(int signal)
{
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
}

int bench_run_once(struct bench_runner *runner, char **argv, struct bench_run *ret, int *ret_status,
                   int *ret_signal)
{
    bool bpf = prcb_session_tier(runner->session) != PRCB_TIER_PERF;
    double reference = reference_loop(), stolen = stolen_ns();
    struct prcb_error err = {.text = "no accounts"};
    struct rusage usage = {0};
    struct sums sums = {0};
    uint64_t began, ended;
    pid_t child;
    int status, result;

    *ret_signal = stat_wait_pending(runner->wait);
    if (*ret_signal)
        return CLI_OK;
    began = now_ns();
    status = bench_run_start(runner, argv, NULL, &err);
    if (status != CLI_OK)
        return status;
    child = runner->wait->child;
    wait_for_child(runner);
    ended = now_ns();
    result = add_all(runner, child, &sums, &err);
    *ret_status = stat_wait_reap(runner->wait, &usage);
    if (WIFSIGNALED(*ret_status) && asks_for_end(WTERMSIG(*ret_status)))
        *ret_signal = WTERMSIG(*ret_status);
    if (!result) {
        *ret = (struct bench_run){.value = {0}};
        take_parts(&sums, &usage, bpf, ret);
        ret->value[BENCH_WALL] =
            (double)(sums.leader_wall && bpf ? sums.leader_wall : ended - began);
        ret->value[BENCH_REFERENCE] = reference;
        ret->value[BENCH_STOLEN] = stolen_ns() - stolen;
        release_all(runner, &sums);
    }
    free(sums.keys);
    return result ? cli_error(runner->command, "%s", err.text) : CLI_OK;
}
