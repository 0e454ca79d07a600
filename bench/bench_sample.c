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

#include <bpf/bpf.h>

#include <prcb/sample.h>

#define ROUNDS    61
#define WINDOW_NS 50000000ull
#define TRIPS     5000
#define CPU       0
#define PERF_FILE "/tmp/bench_sample.perf"

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
    if (prcb_sample_open(sampler, CPU, &opts, &p, &err))
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

/* perf record, told by its control descriptor when to record. */
struct peer {
    pid_t pid; /* 0: it cannot be had */
    int control, answers;
};

static void tell(struct peer *peer, const char *command)
{
    char answer[16];

    if (write(peer->control, command, strlen(command)) < 0 ||
        read(peer->answers, answer, sizeof(answer)) <= 0)
        peer->pid = 0;
}

/* rest: what comes after `perf record`, NULL at the end. */
static struct peer begin_peer(const char *const rest[])
{
    struct peer peer = {0};
    int control[2], answers[2];
    char descriptors[48];

    if (pipe(control) || pipe(answers))
        return peer;
    peer.pid = fork();
    if (!peer.pid) {
        const char *argv[24] = {"perf",      "record",    "-D", "-1",
                                "--control", descriptors, "-o", PERF_FILE};

        snprintf(descriptors, sizeof(descriptors), "fd:%d,%d", control[0], answers[1]);
        for (int i = 0; rest[i]; i++)
            argv[8 + i] = rest[i];
        close(control[1]);
        close(answers[0]);
        setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
        bench_pin(1); /* its reader, not its hooks */
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(126);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(control[0]);
    close(answers[1]);
    peer.control = control[1];
    peer.answers = answers[0];
    tell(&peer, "enable\n"); /* it answers once it is ready */
    if (peer.pid)
        tell(&peer, "disable\n");
    return peer;
}

static void end_peer(struct peer *peer)
{
    if (peer->pid) {
        kill(peer->pid, SIGINT);
        waitpid(peer->pid, NULL, 0);
    }
    close(peer->control);
    close(peer->answers);
}

static struct peer perf_samples(uint64_t hz)
{
    char period[32], cpu[16];

    snprintf(period, sizeof(period), "%llu", (unsigned long long)(1000000000 / hz));
    snprintf(cpu, sizeof(cpu), "%d", CPU);
    return begin_peer(
        (const char *[]){"-C", cpu, "-e", "cpu-clock", "-c", period, "-I", "-T", NULL});
}

static struct peer perf_switches(void)
{
    return begin_peer((const char *[]){"-a", "-e", "sched:sched_switch", NULL});
}

/* Of the file: records, and what perf says it lost. */
static void read_perf(uint64_t *ret_records, uint64_t *ret_lost)
{
    FILE *out = popen("perf report --stats -i " PERF_FILE " 2>/dev/null", "r");
    unsigned long long count;
    char line[256];

    *ret_records = *ret_lost = 0;
    while (out && fgets(line, sizeof(line), out)) {
        if (sscanf(line, " SAMPLE events: %llu", &count) == 1)
            *ret_records = count;
    }
    if (out)
        pclose(out);
    out = popen("perf report -D -i " PERF_FILE " 2>/dev/null | grep -a 'PERF_RECORD_LOST'", "r");
    while (out && fgets(line, sizeof(line), out)) {
        const char *at = strstr(line, "lost");

        if (at && sscanf(at, "lost %llu", &count) == 1)
            *ret_lost += count;
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
} kinds[KINDS] = {
    [INTERRUPT] = {"the timer's interrupt alone", 0},
    [RECORD] = {"prcb, PEBS format 3 (registers)", 0},
    [TAIL] = {"prcb, with time and thread", PRCB_SAMPLE_THREAD},
    [STACK] = {"prcb, with stacks besides", PRCB_SAMPLE_THREAD | PRCB_SAMPLE_STACK},
    [PERF] = {"perf record -e cpu-clock -I -T", 0},
};

struct results {
    double added[ROUNDS];
    int rounds;
    double room; /* samples that the time had room for */
    uint64_t came, lost;
};

/* A window with sampling. */
static double sampled(enum kind kind, uint64_t hz, struct peer *peer, struct results *results)
{
    struct prcb_sample_counts counts = {.size = sizeof(counts)};
    struct prcb_sample *p = NULL;
    uint64_t ns;
    double rate;
    int fd = -1;

    if (kind == INTERRUPT)
        fd = begin_interrupt(hz);
    else if (kind == PERF)
        tell(peer, "enable\n");
    else
        p = begin_sample(hz, kinds[kind].flags);
    rate = work(&ns);
    if (p) {
        prcb_sample_count(p, &counts);
        results->came += counts.interrupts;
        results->lost += counts.interrupts - counts.written;
    }
    if (kind == PERF)
        tell(peer, "disable\n");
    results->room += (double)ns * (double)hz / 1e9;
    if (fd >= 0)
        close(fd);
    prcb_sample_close(p);
    return rate;
}

static void report(enum kind kind, uint64_t hz, struct results *r)
{
    printf("%-40s %6llu", kinds[kind].name, (unsigned long long)hz);
    if (!r->rounds) {
        printf("   not available here\n");
        return;
    }
    printf(" %8.0f ns", bench_median(r->added, r->rounds));
    if (kind == INTERRUPT)
        printf("\n");
    else if (kind == PERF) /* it is started and stopped from afar: the time is not known so well */
        printf(" %9s   %9llu\n", "", (unsigned long long)r->lost);
    else
        printf(" %9.2f %% %9llu\n", 100 * (1 - (double)r->came / r->room),
               (unsigned long long)r->lost);
    fflush(stdout);
}

static void bench_samples(uint64_t hz, bool peers)
{
    static struct results results[KINDS];
    struct peer peer = {0};

    memset(results, 0, sizeof(results));
    if (peers)
        peer = perf_samples(hz);
    for (int round = 0; round < ROUNDS; round++) {
        for (enum kind kind = 0; kind < KINDS; kind++) {
            struct results *r = &results[kind];
            double before, with;
            uint64_t ns;

            if (kind == PERF && !peer.pid)
                continue;
            before = work(&ns);
            with = sampled(kind, hz, &peer, r);
            r->added[r->rounds++] = (1 - with / ((before + work(&ns)) / 2)) * 1e9 / (double)hz;
        }
    }
    if (peers) {
        end_peer(&peer);
        read_perf(&results[PERF].came, &results[PERF].lost);
    }
    for (enum kind kind = 0; kind < KINDS; kind++) {
        if (peers || kind != PERF)
            report(kind, hz, &results[kind]);
    }
}

/* ---- switches ---- */

static uint64_t taken;

static int take(const struct prcb_switch *record, void *ctx)
{
    taken++;
    return 0;
}

struct switch_results {
    double added[ROUNDS], plain[ROUNDS];
    int rounds;
    uint64_t records, lost;
};

static double switches_prcb(struct switch_results *r)
{
    struct prcb_error err = {0};
    struct prcb_switches *w;
    uint64_t lost;
    double ns;

    if (prcb_switches_open(sampler, 0, &w, &err))
        fail(&err);
    ns = switch_ns();
    taken = 0;
    prcb_switches_read(w, take, NULL, &lost);
    prcb_switches_close(w);
    r->lost += lost;
    r->records += taken;
    return ns;
}

static double switches_perf(struct peer *peer)
{
    double ns;

    tell(peer, "enable\n");
    ns = switch_ns();
    tell(peer, "disable\n");
    return ns;
}

static void report_switches(const char *name, struct switch_results *r)
{
    if (r->rounds)
        printf("%-44s %+8.0f ns   of %.0f; %llu records, %llu lost\n", name,
               bench_median(r->added, r->rounds), bench_median(r->plain, r->rounds),
               (unsigned long long)r->records, (unsigned long long)r->lost);
    else
        printf("%-44s not available here\n", name);
}

static void bench_switches(bool peers)
{
    static struct switch_results own, perf;
    struct peer peer = {0};

    if (peers)
        peer = perf_switches();
    for (int round = 0; round < ROUNDS; round++) {
        double before = switch_ns(), with = switches_prcb(&own), between = switch_ns();

        own.plain[own.rounds] = before;
        own.added[own.rounds++] = with - (before + between) / 2;
        if (!peer.pid)
            continue;
        with = switches_perf(&peer);
        perf.plain[perf.rounds] = between;
        perf.added[perf.rounds++] = with - (between + switch_ns()) / 2;
    }
    if (peers) {
        end_peer(&peer);
        read_perf(&perf.records, &perf.lost);
    }
    report_switches("prcb, switch records", &own);
    if (peers)
        report_switches("perf record -a -e sched:sched_switch", &perf);
}

/* ---- the kernel's own account of the programs ---- */

static void report_programs(void)
{
    static const uint32_t flags[] = {0, PRCB_SAMPLE_THREAD | PRCB_SAMPLE_STACK};
    int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
    struct switch_results unused = {0};
    uint64_t ns;
    __u32 id = 0;

    if (stats < 0)
        return;
    for (size_t i = 0; i < 2; i++) {
        struct prcb_sample *p = begin_sample(40000, flags[i]);

        for (int window = 0; window < 10; window++)
            work(&ns);
        prcb_sample_close(p);
    }
    for (int i = 0; i < 5; i++)
        switches_prcb(&unused);
    printf("\nthe kernel's own statistics (each run includes about 30 ns of their own):\n");
    while (!bpf_prog_get_next_id(id, &id)) {
        struct bpf_prog_info info = {0};
        __u32 size = sizeof(info);
        int fd = bpf_prog_get_fd_by_id(id);

        if (fd < 0)
            continue;
        if (!bpf_obj_get_info_by_fd(fd, &info, &size) && info.run_cnt > 1000 &&
            (!strncmp(info.name, "prcb_sample", 11) || !strcmp(info.name, "prcb_switch_rec")))
            printf("  %-24s %10llu runs %6.0f ns each\n", info.name,
                   (unsigned long long)info.run_cnt,
                   (double)info.run_time_ns / (double)info.run_cnt);
        close(fd);
    }
    close(stats);
}

int main(int argc, char **argv)
{
    static const uint64_t rates[] = {10000, 40000};
    bool peers = argc < 2 || strcmp(argv[1], "--no-peers") != 0;
    pthread_t thread;

    bench_pin(CPU);
    prepare();
    printf("samples on one processor: medians of %d rounds of %d ms\n"
           "missing: of those the time had room for; lost: that came and were not kept\n\n"
           "%-40s %6s %11s %11s %9s\n",
           ROUNDS, (int)(WINDOW_NS / 1000000), "", "Hz", "a sample", "missing", "lost");
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
    report_programs();
    prcb_sampler_close(sampler);
    return 0;
}
