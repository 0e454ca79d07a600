/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Storms of processes that end at once: how many are born in a second, without prcb and while all
 * threads of the machine are profiled and summed as prcb-exporter does it, and how many of them are
 * in the sums. Two parents, each with one child at a time; the children share their parent's
 * memory (CLONE_VM | CLONE_VFORK), the cheapest birth that there is of a process.
 */
#include <grp.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tests/bpf/short_life.h"
#include "bench.h"
#include "metrics.h"
#ifdef BENCH_PRCBD
#include "bench_daemon.h"
#endif

#define PARENTS    2
#define SECONDS    3
#define NOBODY     65534
#define SETTLED_NS 5000000000ull

static struct storm {
    uint32_t stop;
    uint64_t births[PARENTS];
    double rate;
    /* what the reader says */
    uint64_t folded, lost, looks;
    int failed;
} * storm;

/* ---- the storm ---- */

static void parent(int number)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (!__atomic_load_n(&storm->stop, __ATOMIC_RELAXED)) {
        if (short_life())
            _exit(1);
        storm->births[number]++;
    }
    _exit(0);
}

static uint64_t births(void)
{
    uint64_t sum = 0;

    for (int i = 0; i < PARENTS; i++)
        sum += storm->births[i];
    return sum;
}

static void blow(void)
{
    uint64_t begin = bench_now();
    pid_t parents[PARENTS];

    for (int i = 0; i < PARENTS; i++) {
        parents[i] = fork();
        if (!parents[i])
            parent(i);
    }
    sleep(SECONDS);
    storm->stop = 1;
    for (int i = 0; i < PARENTS; i++)
        waitpid(parents[i], NULL, 0);
    storm->rate = (double)births() * 1e9 / (double)(bench_now() - begin);
}

/* ---- who reads ---- */

static void take(void *ctx, const struct metrics_sample *sample)
{
    if (!sample->label[0] || !strcmp(sample->value[0], "exit"))
        *(uint64_t *)ctx = sample->number;
}

static uint64_t figure(const struct metrics *m, const char *name)
{
    uint64_t number = 0;

    for (const struct metrics_family *f = metrics_families; f->name; f++) {
        if (!strcmp(f->name, name))
            metrics_each(m, f, take, &number);
    }
    return number;
}

/* In a process of its own, as prcb-exporter is one. Writes to the pipe when it counts. */
static int look_on(enum prcb_tier tier, uint32_t accounts, int tell)
{
    const struct metrics_options options = {.tier = tier, .max_threads = accounts};
    struct prcb_error err = {0};
    uint64_t settled = 0, ends;
    struct metrics *m;

    if (tier == PRCB_TIER_DAEMON && (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
                                     setresuid(NOBODY, NOBODY, NOBODY)))
        return 1;
    if (metrics_open(&options, &m, &err) || metrics_look(m, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    ends = figure(m, "prcb_system_switches");
    if (write(tell, "", 1) != 1)
        return 1;
    /* A process can be waited for a moment before its last switch. */
    while (!settled || (storm->folded < births() && bench_now() < settled + SETTLED_NS)) {
        usleep(metrics_wait_ms(m) * 1000);
        if (!settled && storm->rate > 0)
            settled = bench_now();
        if (metrics_look(m, &err)) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        storm->looks++;
        storm->folded = figure(m, "prcb_system_switches") - ends;
        storm->lost = figure(m, "prcb_untracked_threads");
        if (storm->folded + storm->lost >= births() && settled)
            break;
    }
    metrics_close(m);
    return 0;
}

static unsigned threads(void)
{
    unsigned running, all = 0;
    FILE *file = fopen("/proc/loadavg", "re");

    if (!file || fscanf(file, "%*f %*f %*f %u/%u", &running, &all) != 2)
        all = 1000;
    if (file)
        fclose(file);
    return all;
}

static void row(const char *name, enum prcb_tier tier, uint32_t accounts)
{
    int tell[2], status;
    char byte;
    pid_t reader;

    memset(storm, 0, sizeof(*storm));
    if (pipe(tell))
        return;
    fflush(stdout);
    reader = fork();
    if (!reader) {
        close(tell[0]);
        _exit(look_on(tier, accounts, tell[1]));
    }
    close(tell[1]);
    if (read(tell[0], &byte, 1) == 1)
        blow();
    close(tell[0]);
    if (waitpid(reader, &status, 0) != reader || status) {
        printf("%-34s could not be measured\n", name);
        return;
    }
    printf("%-34s %9.0f %10" PRIu64 " %10" PRIu64 " %8" PRIu64 " %9.1f\n", name, storm->rate,
           births(), storm->folded, storm->lost, (double)storm->looks / SECONDS);
}

int main(void)
{
    storm = mmap(NULL, sizeof(*storm), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (storm == MAP_FAILED)
        return 1;
    printf(
        "storms of processes, %d parents, %d s each; ends are of all threads of the machine\n\n"
        "                                    births/s     births       ends     lost   looks/s\n",
        PARENTS, SECONDS);
    blow();
    printf("%-34s %9.0f %10" PRIu64 "\n", "without prcb", storm->rate, births());
    row("own session, 255 free accounts", PRCB_TIER_BPF, threads() + 255);
    row("own session, 16384 accounts", PRCB_TIER_BPF, 16384);
#ifdef BENCH_PRCBD
    for (int i = 0; i < 2; i++) {
        char settings[64];

        snprintf(settings, sizeof(settings), "accounts_per_client_max = %u\n",
                 i ? 16384 : threads() + 255);
        if (!bench_daemon_begin_with(settings))
            continue;
        row(i ? "prcbd's shared, 16384 accounts" : "prcbd's shared, 255 free accounts",
            PRCB_TIER_DAEMON, 0);
        bench_daemon_end();
    }
#endif
    memset(storm, 0, sizeof(*storm));
    blow();
    printf("%-34s %9.0f %10" PRIu64 "\n", "without prcb, again", storm->rate, births());
    return 0;
}
