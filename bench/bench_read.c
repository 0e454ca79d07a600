/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What it costs a program to learn how much a thread has run and how often it was
 * switched: prcb beside what the system offers. One run, interleaved rounds,
 * pinned, medians in nanoseconds per call.
 */
#include "bench.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <prcb/prcb.h>

#ifdef BENCH_PAPI
#include <papi.h>
#endif

#define ROUNDS 31

static struct prcb_thread *self, *other;
static pid_t other_tid;
static int perf_fd = -1, schedstat_fd = -1;
#ifdef BENCH_PAPI
static int papi_set = PAPI_NULL;
#endif
static volatile uint64_t sink;

static void own_times(void)
{
    struct prcb_times times = {.size = sizeof(times)};

    prcb_read_times(self, &times);
    sink += times.run_ns;
}

static void other_times(void)
{
    struct prcb_times times = {.size = sizeof(times)};

    prcb_read_times(other, &times);
    sink += times.run_ns;
}

static void own_account(void)
{
    struct prcb_account account;

    account.size = sizeof(account);
    prcb_read(self, &account);
    sink += account.run_ns;
}

static void other_account(void)
{
    struct prcb_account account;

    account.size = sizeof(account);
    prcb_read(other, &account);
    sink += account.run_ns;
}

static void tsc(void)
{
#if defined(__x86_64__)
    sink += __builtin_ia32_rdtsc();
#endif
}

static void own_getrusage(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    sink += (uint64_t)usage.ru_nvcsw;
}

static void own_cputime(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    sink += (uint64_t)ts.tv_nsec;
}

static void own_perf(void)
{
    uint64_t values[3] = {0};

    if (read(perf_fd, values, sizeof(values)) > 0)
        sink += values[1];
}

#ifdef BENCH_PAPI
static void own_papi(void)
{
    long long values[2] = {0};

    PAPI_read(papi_set, values);
    sink += (uint64_t)values[0];
}
#endif

static void own_schedstat(void)
{
    char text[128];
    ssize_t got = pread(schedstat_fd, text, sizeof(text) - 1, 0);

    text[got > 0 ? got : 0] = '\0';
    sink += strtoull(text, NULL, 10);
}

static void read_proc(pid_t tid, const char *name, char *text, size_t room)
{
    char path[64];
    ssize_t got = -1;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)getpid(), (int)tid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        got = read(fd, text, room - 1);
        close(fd);
    }
    text[got > 0 ? got : 0] = '\0';
}

static void other_schedstat(void)
{
    char text[128];

    read_proc(other_tid, "schedstat", text, sizeof(text));
    sink += strtoull(text, NULL, 10);
}

static void other_status(void)
{
    char text[4096];
    const char *at;

    read_proc(other_tid, "status", text, sizeof(text));
    at = strstr(text, "voluntary_ctxt_switches:");
    sink += at ? strtoull(at + 24, NULL, 10) : 0;
}

struct row {
    const char *name;
    void (*work)(void);
    int calls;
    int reference; /* index of the prcb row its ratio is against; -1: none */
    double ns[ROUNDS];
};

static struct row rows[] = {
    {"rdtsc (the floor)", tsc, 100000, -1},
    {"prcb_read_times, own thread", own_times, 100000, -1},
    {"prcb_read_times, another's", other_times, 100000, -1},
    {"prcb_read, own thread, all causes", own_account, 20000, -1},
    {"prcb_read, another's, all causes", other_account, 20000, -1},
    {"getrusage(RUSAGE_THREAD)", own_getrusage, 20000, 1},
    {"clock_gettime(THREAD_CPUTIME)", own_cputime, 20000, 1},
    {"perf read, group of 2", own_perf, 20000, 1},
#ifdef BENCH_PAPI
    {"PAPI_read, 2 software events", own_papi, 20000, 1},
#endif
    {"schedstat, own, pread", own_schedstat, 20000, 1},
    {"schedstat, another's, open+read+close", other_schedstat, 5000, 2},
    {"status, another's, open+read+close", other_status, 5000, 2},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static int open_perf_event(uint64_t config, int group)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr)};

    attr.config = config;
    attr.read_format = PERF_FORMAT_GROUP;
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
}

static void open_peers(void)
{
    perf_fd = open_perf_event(PERF_COUNT_SW_CONTEXT_SWITCHES, -1);
    if (perf_fd >= 0)
        open_perf_event(PERF_COUNT_SW_TASK_CLOCK, perf_fd);
    schedstat_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
#ifdef BENCH_PAPI
    if (PAPI_library_init(PAPI_VER_CURRENT) == PAPI_VER_CURRENT &&
        PAPI_create_eventset(&papi_set) == PAPI_OK) {
        PAPI_add_named_event(papi_set, "perf::CONTEXT-SWITCHES");
        PAPI_add_named_event(papi_set, "perf::TASK-CLOCK");
        PAPI_start(papi_set);
    }
#endif
}

static void *sleeper(void *ready)
{
    other_tid = gettid();
    pthread_barrier_wait(ready);
    for (;;)
        usleep(10000);
    return NULL;
}

static void run_rows(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < ROWS; i++) {
            uint64_t start = bench_now();

            for (int call = 0; call < rows[i].calls; call++)
                rows[i].work();
            rows[i].ns[round] = (double)(bench_now() - start) / rows[i].calls;
        }
    }
}

int main(void)
{
    struct prcb_error err = {0};
    pthread_barrier_t ready;
    pthread_t thread;
    struct prcb *p;

    pthread_barrier_init(&ready, NULL, 2);
    pthread_create(&thread, NULL, sleeper, &ready);
    pthread_barrier_wait(&ready);
    bench_pin(0);
    if (prcb_open(NULL, &p, &err) || prcb_thread_open_self(p, &self, &err) ||
        prcb_profile_thread(p, other_tid, PRCB_FOLLOW_NONE, &err) ||
        prcb_thread_open(p, other_tid, &other, &err)) {
        fprintf(stderr, "bench_read: %s\n", err.text);
        return 1;
    }
    printf("reads, %s tier, pinned, median of %d interleaved rounds\n\n",
           prcb_tier_name(prcb_session_tier(p)), ROUNDS);
    open_peers();
    usleep(100000); /* the clock's first slope wants a base 50 ms old */
    run_rows();
    printf("%-40s %10s %10s\n", "", "ns/call", "prcb is");
    for (size_t i = 0; i < ROWS; i++)
        bench_median(rows[i].ns, ROUNDS); /* sorts */
    for (size_t i = 0; i < ROWS; i++) {
        double ns = rows[i].ns[ROUNDS / 2];

        printf("%-40s %10.1f", rows[i].name, ns);
        if (rows[i].reference >= 0)
            printf(" %8.1fx", ns / rows[rows[i].reference].ns[ROUNDS / 2]);
        printf("\n");
    }
    prcb_thread_close(self);
    prcb_thread_close(other);
    prcb_close(p);
    return 0;
}
