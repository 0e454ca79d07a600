/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What prcb adds to a context switch: two threads on one processor wake each other
 * through pipes, then through a futex, with nothing attached, attached but not
 * profiled, profiled, and profiled without the lock tracepoints. One run,
 * interleaved; the figure is the median of the differences to the round's own
 * plain measurement. `--around CMD` measures a peer instead: the plain rounds
 * beside rounds in which CMD runs.
 */
#include "bench.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef BENCH_BPF
#include <bpf/bpf.h>
#endif

#include <prcb/prcb.h>

#define ROUNDS 31
#define TRIPS  10000

enum how { PIPE, FUTEX, HOWS };
static const char *const how_names[HOWS] = {"pipe", "futex"};

static int there[2], back[2];
static _Atomic uint32_t turn;
static enum how partner_how;
static pthread_barrier_t start;
static pid_t partner_tid;

static void pipe_wait(int fd)
{
    char byte;

    if (read(fd, &byte, 1) != 1)
        abort();
}

static void pipe_wake(int fd)
{
    if (write(fd, "x", 1) != 1)
        abort();
}

static void futex_pass(uint32_t mine, uint32_t theirs)
{
    turn = theirs;
    syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    while (turn != mine)
        syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, theirs, NULL, NULL, 0);
}

static void *partner(void *unused)
{
    partner_tid = gettid();
    bench_pin(0);
    pthread_barrier_wait(&start);
    for (;;) {
        pthread_barrier_wait(&start);
        if (partner_how == PIPE) {
            for (int i = 0; i < TRIPS; i++) {
                pipe_wait(there[0]);
                pipe_wake(back[1]);
            }
        } else {
            while (turn != 1)
                syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
            for (int i = 1; i < TRIPS; i++)
                futex_pass(1, 0);
            turn = 0;
            syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        }
        pthread_barrier_wait(&start);
    }
    return NULL;
}

/* Nanoseconds per context switch: a round trip is two. */
static double measure(enum how how)
{
    uint64_t begin;

    partner_how = how;
    turn = 0;
    pthread_barrier_wait(&start);
    begin = bench_now();
    if (how == PIPE) {
        for (int i = 0; i < TRIPS; i++) {
            pipe_wake(there[1]);
            pipe_wait(back[0]);
        }
    } else {
        for (int i = 0; i < TRIPS; i++)
            futex_pass(0, 1);
    }
    begin = bench_now() - begin;
    pthread_barrier_wait(&start);
    return (double)begin / TRIPS / 2;
}

struct variant {
    const char *name;
    uint32_t flags;
    bool profile;
};

static const struct variant variants[] = {
    {"attached, not profiled", 0, false},
    {"attached, not profiled, no lock hooks", PRCB_OPEN_NO_LOCKS, false},
    {"profiled, everything on", 0, true},
    {"profiled, no lock hooks", PRCB_OPEN_NO_LOCKS, true},
    {"profiled, everything on, ktime stamps", PRCB_OPEN_KTIME, true},
};
#define VARIANTS (int)(sizeof(variants) / sizeof(variants[0]))

static struct prcb *begin_variant(const struct variant *variant)
{
    struct prcb_options options = {
        .size = sizeof(options), .tier = PRCB_TIER_BPF, .max_threads = 64, .flags = variant->flags};
    struct prcb_error err = {0};
    struct prcb *p;

    if (prcb_open(&options, &p, &err) ||
        (variant->profile && prcb_profile_process(p, getpid(), PRCB_FOLLOW_NONE, &err))) {
        fprintf(stderr, "bench_switch: %s\n", err.text);
        exit(1);
    }
    return p;
}

static double plain[HOWS][ROUNDS], added[VARIANTS][HOWS][ROUNDS];

static void measure_own(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (int v = 0; v < VARIANTS; v++) {
            double before[HOWS], with[HOWS];
            struct prcb *p;

            for (int how = 0; how < HOWS; how++)
                before[how] = measure(how);
            p = begin_variant(&variants[v]);
            for (int how = 0; how < HOWS; how++)
                with[how] = measure(how);
            prcb_close(p);
            for (int how = 0; how < HOWS; how++) {
                double after = measure(how);

                plain[how][round] = before[how];
                added[v][how][round] = with[how] - (before[how] + after) / 2;
            }
        }
    }
}

static void report(const char *name, double *pipe_ns, double *futex_ns)
{
    printf("%-44s %+9.0f %+9.0f\n", name, bench_median(pipe_ns, ROUNDS),
           bench_median(futex_ns, ROUNDS));
}

/* Runs a peer around rounds of its own; it is given a second to attach. */
static pid_t begin_peer(char **argv)
{
    pid_t pid = fork();

    if (!pid) {
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(126);
        execvp(argv[0], argv);
        _exit(127);
    }
    sleep(3);
    return pid;
}

static int measure_peer(char **argv)
{
    double with[HOWS][ROUNDS];
    int status;
    pid_t pid;

    for (int round = 0; round < ROUNDS; round++)
        for (int how = 0; how < HOWS; how++)
            plain[how][round] = measure(how);
    pid = begin_peer(argv);
    if (waitpid(pid, &status, WNOHANG) == pid) {
        fprintf(stderr, "bench_switch: %s ended at once\n", argv[0]);
        return 1;
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int how = 0; how < HOWS; how++)
            with[how][round] = measure(how);
    kill(pid, SIGINT);
    waitpid(pid, &status, 0);
    for (int how = 0; how < HOWS; how++) {
        double base = bench_median(plain[how], ROUNDS);

        printf("%+9.0f ", bench_median(with[how], ROUNDS) - base);
    }
    printf("\n");
    return 0;
}

#ifdef BENCH_BPF
/* The kernel's own account of our programs, while everything is on. */
static void report_bpf_stats(void)
{
    int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
    struct prcb *p = begin_variant(&variants[2]);
    __u32 id = 0;

    if (stats < 0)
        return;
    for (int i = 0; i < 5; i++)
        for (int how = 0; how < HOWS; how++)
            measure(how);
    printf("\nthe kernel's own statistics (each run includes about 30 ns of their own):\n");
    while (!bpf_prog_get_next_id(id, &id)) {
        struct bpf_prog_info info = {0};
        __u32 size = sizeof(info);
        int fd = bpf_prog_get_fd_by_id(id);

        if (fd < 0)
            continue;
        if (!bpf_obj_get_info_by_fd(fd, &info, &size) && !strncmp(info.name, "prcb_", 5) &&
            info.run_cnt)
            printf("  %-24s %10llu runs %6.0f ns each\n", info.name,
                   (unsigned long long)info.run_cnt,
                   (double)info.run_time_ns / (double)info.run_cnt);
        close(fd);
    }
    prcb_close(p);
    close(stats);
}
#endif

int main(int argc, char **argv)
{
    pthread_t thread;

    pthread_barrier_init(&start, NULL, 2);
    if (pipe(there) || pipe(back) || pthread_create(&thread, NULL, partner, NULL))
        return 1;
    bench_pin(0);
    pthread_barrier_wait(&start);
    if (argc > 2 && !strcmp(argv[1], "--around"))
        return measure_peer(argv + 2);
    measure_own();
    printf("context switches, two threads on one processor, ns per switch, medians of %d "
           "interleaved rounds\n\n",
           ROUNDS);
    printf("%-44s %9s %9s\n", "", how_names[PIPE], how_names[FUTEX]);
    printf("%-44s %9.0f %9.0f\n", "plain", bench_median(plain[PIPE], ROUNDS),
           bench_median(plain[FUTEX], ROUNDS));
    for (int v = 0; v < VARIANTS; v++)
        report(variants[v].name, added[v][PIPE], added[v][FUTEX]);
#ifdef BENCH_BPF
    report_bpf_stats();
#endif
    return 0;
}
