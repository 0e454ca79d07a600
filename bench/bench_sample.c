/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a sample adds, and what a switch record adds, beside perf record with the same registers at
 * the same rate, and how many of either each of them loses.
 *
 * Samples: a loop on one processor counts how far it gets in a window of time, by turns without and
 * with sampling; what is missing, over the samples of that time, is the cost of one. Most of it is
 * the timer's interrupt, which the row of that name has alone. Switches: two threads on one
 * processor pass a byte through pipes. bench_sample --no-peers leaves perf out.
 */
#include "bench.h"

#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prcb/sample.h>

#define ROUNDS      15
#define PEER_ROUNDS 5
#define WINDOW_NS   200000000ull
#define TRIPS       10000
#define CPU         0
#define PERF_FILE   "/tmp/bench_sample.perf"

/* ---- the work ---- */

static uint64_t own_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Iterations a nanosecond of this thread's own time, which interrupts are charged to and
 * other threads of the processor are not. *ret_ns: how long it took by the clock. */
static double work(uint64_t *ret_ns)
{
    uint64_t begin = bench_now(), own = own_ns(), now = begin, count = 0;

    while (now < begin + WINDOW_NS) {
        for (int i = 0; i < 20000; i++)
            __asm__ volatile("" ::"r"(i));
        count++;
        now = bench_now();
    }
    *ret_ns = now - begin;
    return (double)count / (double)(own_ns() - own);
}

static int there[2], back[2];
static pthread_barrier_t gate;

static void *partner(void *unused)
{
    char byte;

    bench_pin(CPU);
    for (;;) {
        pthread_barrier_wait(&gate);
        for (int i = 0; i < TRIPS; i++) {
            if (read(there[0], &byte, 1) != 1 || write(back[1], "x", 1) != 1)
                abort();
        }
    }
    return NULL;
}

/* Nanoseconds a switch: a round trip is two. */
static double switch_ns(void)
{
    uint64_t begin;
    char byte;

    pthread_barrier_wait(&gate);
    begin = bench_now();
    for (int i = 0; i < TRIPS; i++) {
        if (write(there[1], "x", 1) != 1 || read(back[0], &byte, 1) != 1)
            abort();
    }
    return (double)(bench_now() - begin) / TRIPS / 2;
}

/* ---- prcb ---- */

static struct prcb_sampler *sampler;
static struct prcb_ds_area *area;
static void *buffer;
#define BUFFER (8u << 20)

static void fail(const struct prcb_error *err)
{
    fprintf(stderr, "bench_sample: %s\n", err->text);
    exit(1);
}

static void prepare(void)
{
    struct prcb_error err = {0};

    if (prcb_sampler_open(NULL, &sampler, &err) || prcb_ds_area_alloc(sampler, CPU, &area, &err) ||
        prcb_sample_buffer_alloc(sampler, BUFFER, &buffer, &err))
        fail(&err);
}

static struct prcb_sample *begin_sample(uint64_t hz, uint32_t flags)
{
    struct prcb_sample_options opts = {
        .size = sizeof(opts), .rate = 1000000000 / hz, .flags = flags, .format = 3};
    size_t stride = prcb_sample_stride_of(&opts);
    struct prcb_error err = {0};
    struct prcb_sample *p;

    area->pebs_base = area->pebs_index = (uintptr_t)buffer;
    area->pebs_maximum = area->pebs_base + BUFFER / stride * stride;
    area->pebs_threshold = area->pebs_maximum;
    if (prcb_sample_start(sampler, CPU, &opts, &p, &err))
        fail(&err);
    return p;
}

/* An event that interrupts and whose interrupt leaves nothing. */
static int begin_interrupt(uint64_t hz)
{
    struct perf_event_attr attr = {.size = sizeof(attr),
                                   .type = PERF_TYPE_SOFTWARE,
                                   .config = PERF_COUNT_SW_CPU_CLOCK,
                                   .sample_period = 1000000000 / hz};

    return (int)syscall(SYS_perf_event_open, &attr, -1, CPU, -1, PERF_FLAG_FD_CLOEXEC);
}

/* ---- perf ---- */

static pid_t begin_perf(const char *const argv[])
{
    pid_t pid = fork();

    if (!pid) {
        setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
        bench_pin(1); /* its reader, not its hooks */
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(126);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    sleep(1);
    return waitpid(pid, NULL, WNOHANG) == pid ? 0 : pid;
}

static void end_perf(pid_t pid)
{
    kill(pid, SIGINT);
    waitpid(pid, NULL, 0);
}

static pid_t perf_samples(uint64_t hz)
{
    char period[32], cpu[16];

    snprintf(period, sizeof(period), "%llu", (unsigned long long)(1000000000 / hz));
    snprintf(cpu, sizeof(cpu), "%d", CPU);
    return begin_perf((const char *[]){"perf", "record", "-C", cpu, "-e", "cpu-clock", "-c", period,
                                       "-I", "-T", "-o", PERF_FILE, NULL});
}

static pid_t perf_switches(void)
{
    return begin_perf((const char *[]){"perf", "record", "-a", "-e", "sched:sched_switch", "-o",
                                       PERF_FILE, NULL});
}

/* Of the file: records, and the seconds from the first to the last; perf's own words about
 * what it lost. */
static void read_perf(uint64_t *ret_records, double *ret_seconds, uint64_t *ret_lost)
{
    double time, first = 0, last = 0;
    char line[256];
    FILE *out = popen("perf script -i " PERF_FILE " -F time 2>/dev/null", "r");

    *ret_records = *ret_lost = 0;
    while (out && fgets(line, sizeof(line), out)) {
        if (sscanf(line, " %lf:", &time) != 1)
            continue;
        if (!(*ret_records)++)
            first = time;
        last = time;
    }
    if (out)
        pclose(out);
    *ret_seconds = last - first;
    out = popen("perf report -D -i " PERF_FILE " 2>/dev/null | grep -E 'LOST'", "r");
    while (out && fgets(line, sizeof(line), out)) {
        unsigned long long lost;
        const char *at = strstr(line, "lost");

        if (at && sscanf(at, "lost %llu", &lost) == 1)
            *ret_lost += lost;
    }
    if (out)
        pclose(out);
    unlink(PERF_FILE);
}

/* ---- samples ---- */

enum kind { INTERRUPT, RECORD, TAIL, STACK, PERF, KINDS };

static const struct {
    const char *name;
    uint32_t flags;
    int rounds;
} kinds[KINDS] = {
    [INTERRUPT] = {"the timer's interrupt alone", 0, ROUNDS},
    [RECORD] = {"prcb, PEBS format 3 (registers)", 0, ROUNDS},
    [TAIL] = {"prcb, with time and thread", PRCB_SAMPLE_THREAD, ROUNDS},
    [STACK] = {"prcb, with stacks besides", PRCB_SAMPLE_THREAD | PRCB_SAMPLE_STACK, ROUNDS},
    [PERF] = {"perf record -C 0 -e cpu-clock -I -T", 0, PEER_ROUNDS},
};

struct round {
    double rate; /* of the work */
    uint64_t ns, came, lost;
};

/* A window with sampling; false: it cannot be had. */
static bool sampled(enum kind kind, uint64_t hz, struct round *ret)
{
    struct prcb_sample_counts counts = {.size = sizeof(counts)};
    struct prcb_sample *p = NULL;
    pid_t perf = 0;
    int fd = -1;

    *ret = (struct round){0};
    if (kind == INTERRUPT)
        fd = begin_interrupt(hz);
    else if (kind == PERF)
        perf = perf_samples(hz);
    else
        p = begin_sample(hz, kinds[kind].flags);
    if (!p && !perf && fd < 0)
        return false;
    ret->rate = work(&ret->ns);
    ret->came = ret->ns * hz / 1000000000;
    if (p) {
        prcb_sample_count(p, &counts);
        ret->came = counts.interrupts;
        ret->lost = counts.interrupts - counts.written;
    }
    if (perf)
        end_perf(perf);
    if (fd >= 0)
        close(fd);
    prcb_sample_stop(p);
    return true;
}

struct results {
    double added[ROUNDS];
    int rounds;
    double missing, lost;
};

/* One round of one kind, between two windows without. */
static void measure_kind(enum kind kind, uint64_t hz, struct results *results)
{
    uint64_t ns, records, perf_lost;
    double before = work(&ns), after, seconds;
    struct round with;

    if (!sampled(kind, hz, &with))
        return;
    after = work(&ns);
    results->added[results->rounds++] = (1 - with.rate / ((before + after) / 2)) * 1e9 / (double)hz;
    if (kind == PERF) {
        read_perf(&records, &seconds, &perf_lost);
        results->missing += 100 * (1 - (double)records / (seconds * (double)hz + 1));
        results->lost += (double)perf_lost;
    } else {
        results->missing += 100 * (1 - (double)with.came / ((double)with.ns * (double)hz / 1e9));
        results->lost += (double)with.lost;
    }
}

static void bench_samples(uint64_t hz, bool peers)
{
    struct results results[KINDS] = {0};

    for (int round = 0; round < ROUNDS; round++) {
        for (enum kind kind = 0; kind < KINDS; kind++) {
            if (round < kinds[kind].rounds && (peers || kind != PERF))
                measure_kind(kind, hz, &results[kind]);
        }
    }
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct results *r = &results[kind];

        if (r->rounds)
            printf("%-40s %6llu %8.0f ns %9.2f %% %9.0f\n", kinds[kind].name,
                   (unsigned long long)hz, bench_median(r->added, r->rounds),
                   r->missing / r->rounds, r->lost / r->rounds);
        else
            printf("%-40s %6llu   not available here\n", kinds[kind].name, (unsigned long long)hz);
    }
    fflush(stdout);
}

/* ---- switches ---- */

static uint64_t taken;

static int take(const struct prcb_switch *record, void *ctx)
{
    taken++;
    return 0;
}

static struct prcb_switches *begin_switches(void)
{
    struct prcb_error err = {0};
    struct prcb_switches *w;

    if (prcb_switches_open(sampler, 0, &w, &err))
        fail(&err);
    return w;
}

static void bench_switches(bool peers)
{
    double added[ROUNDS], total = 0;
    uint64_t lost = 0, records = 0, perf_lost = 0;
    struct prcb_switches *w;

    for (int i = 0; i < ROUNDS; i++) {
        double before = switch_ns(), with;
        uint64_t more;

        w = begin_switches();
        with = switch_ns();
        taken = 0;
        prcb_switches_read(w, take, NULL, &more);
        prcb_switches_close(w);
        lost += more;
        records += taken;
        added[i] = with - (before + switch_ns()) / 2;
        total += before;
    }
    printf("%-44s %+8.0f ns   of %.0f; of %llu records lost %llu\n", "prcb, switch records",
           bench_median(added, ROUNDS), total / ROUNDS, (unsigned long long)(records + lost),
           (unsigned long long)lost);
    for (int i = 0; peers && i < PEER_ROUNDS; i++) {
        double before = switch_ns(), with, seconds;
        uint64_t more, count;
        pid_t perf = perf_switches();

        if (!perf)
            return;
        with = switch_ns();
        end_perf(perf);
        added[i] = with - (before + switch_ns()) / 2;
        read_perf(&count, &seconds, &more);
        perf_lost += more;
        records += count;
    }
    if (peers)
        printf("%-44s %+8.0f ns   lost %llu\n", "perf record -a -e sched:sched_switch",
               bench_median(added, PEER_ROUNDS), (unsigned long long)perf_lost);
}

int main(int argc, char **argv)
{
    static const uint64_t rates[] = {10000, 40000};
    bool peers = argc < 2 || strcmp(argv[1], "--no-peers") != 0;
    pthread_t thread;

    bench_pin(CPU);
    prepare();
    printf("samples on one processor: medians of %d rounds of %d ms (perf: %d)\n"
           "missing: of those the time has room for; lost: that came and were not kept, a round\n\n"
           "%-40s %6s %11s %11s %9s\n",
           ROUNDS, (int)(WINDOW_NS / 1000000), PEER_ROUNDS, "", "Hz", "a sample", "missing",
           "lost");
    fflush(stdout); /* before forks */
    for (size_t i = 0; i < 2; i++)
        bench_samples(rates[i], peers);
    printf(
        "\ncontext switches, two threads on one processor through pipes: ns added per switch\n\n");
    fflush(stdout);
    pthread_barrier_init(&gate, NULL, 2);
    if (pipe(there) || pipe(back) || pthread_create(&thread, NULL, partner, NULL))
        return 1;
    bench_switches(peers);
    prcb_sampler_close(sampler);
    return 0;
}
