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

#include <prcb/nt.h>
#include <prcb/prcb.h>
#include <prcb/span.h>

#ifdef BENCH_PAPI
#include <papi.h>
#endif

#define ROUNDS 31

static struct prcb_thread *self, *other;
static pid_t other_tid;
static int perf_fd = -1, schedstat_fd = -1;
static volatile uint64_t sink;

static void own_times(void)
{
    struct prcb_times times = {.size = sizeof(times)};

    prcb_thread_times(self, &times);
    sink += times.run_ns;
}

static void other_times(void)
{
    struct prcb_times times = {.size = sizeof(times)};

    prcb_thread_times(other, &times);
    sink += times.run_ns;
}

static void own_account(void)
{
    struct prcb_account account;

    account.size = sizeof(account);
    prcb_thread_read(self, &account);
    sink += account.run_ns;
}

/* Two reads, and the record that readers outside find. */
static void own_span(void)
{
    static const struct prcb_span_id id = {.trace_id = {1}, .span_id = {1}};
    struct prcb_account account;
    struct prcb_span span;

    span.size = sizeof(span);
    account.size = sizeof(account);
    if (!prcb_span_begin(self, &id, &span) && !prcb_span_end(&span, &account))
        sink += account.run_ns;
}

static void other_account(void)
{
    struct prcb_account account;

    account.size = sizeof(account);
    prcb_thread_read(other, &account);
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

/* ---- thread profiling, and software counters by the same number ---- */

static void *profile;

static void read_profile(uint32_t flags)
{
    PERFORMANCE_DATA data;

    data.Size = sizeof(data);
    data.Version = PERFORMANCE_DATA_VERSION;
    if (!prcb_ReadThreadProfilingData(profile, flags, &data))
        sink += data.CycleTime + data.HwCounters[0].Value;
}

static void profile_switches(void)
{
    read_profile(READ_THREAD_PROFILING_FLAG_DISPATCHING);
}

static void profile_counters(void)
{
    read_profile(READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS);
}

static const char *profile_begin(int counters)
{
    uint32_t flags = counters ? 0 : THREAD_PROFILING_FLAG_DISPATCH;

    if (prcb_EnableThreadProfiling(prcb_GetCurrentThread(), flags, (1ull << counters) - 1,
                                   &profile)) {
        fprintf(stderr, "bench_read: %s\n", prcb_nt_error_text());
        exit(1);
    }
    return NULL;
}

static void profile_end(void)
{
    prcb_DisableThreadProfiling(profile);
}

/* In the order they are added; repeated beyond their number. */
static const uint32_t software_events[] = {
    PERF_COUNT_SW_PAGE_FAULTS,      PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_CPU_MIGRATIONS,
    PERF_COUNT_SW_PAGE_FAULTS_MIN,  PERF_COUNT_SW_PAGE_FAULTS_MAJ,  PERF_COUNT_SW_TASK_CLOCK,
    PERF_COUNT_SW_ALIGNMENT_FAULTS, PERF_COUNT_SW_EMULATION_FAULTS,
};
#define SOFTWARE_EVENTS (sizeof(software_events) / sizeof(software_events[0]))

static void configure_counters(void)
{
    HARDWARE_COUNTER counters[MAX_HW_COUNTERS] = {0};

    for (unsigned i = 0; i < MAX_HW_COUNTERS; i++)
        counters[i].Index = PRCB_PROFILE_SOURCE_LINUX + software_events[i % SOFTWARE_EVENTS];
    if (prcb_KeSetHardwareCounterConfiguration(counters, MAX_HW_COUNTERS)) {
        fprintf(stderr, "bench_read: %s\n", prcb_nt_error_text());
        exit(1);
    }
}

static int group_fds[MAX_HW_COUNTERS], group_count;

static int open_perf_event(uint64_t config, int group);

static const char *group_begin(int counters)
{
    for (group_count = 0; group_count < counters; group_count++)
        group_fds[group_count] =
            open_perf_event(software_events[(size_t)group_count % SOFTWARE_EVENTS],
                            group_count ? group_fds[0] : -1);
    return group_fds[counters - 1] < 0 ? "the kernel does not open the events" : NULL;
}

static void group_end(void)
{
    while (group_count)
        close(group_fds[--group_count]);
}

static void group_read(void)
{
    uint64_t values[1 + MAX_HW_COUNTERS] = {0};

    if (read(group_fds[0], values, sizeof(values)) > 0)
        sink += values[1];
}

#ifdef BENCH_PAPI
static int many_set = PAPI_NULL, many_count;
static bool many_started;

/* PAPI takes each event once; one that differs by mode is another. */
static const char *many_begin(int counters)
{
    static const char *const names[] = {"PAGE-FAULTS",  "CONTEXT-SWITCHES", "CPU-MIGRATIONS",
                                        "MINOR-FAULTS", "MAJOR-FAULTS",     "TASK-CLOCK",
                                        "CPU-CLOCK"};
    static const char *const modes[] = {"", ":u=1", ":k=1", ":u=1:k=1"};
    static char reason[128];
    int result = PAPI_OK, last;
    char name[64];

    many_set = PAPI_NULL;
    many_count = 0;
    PAPI_create_eventset(&many_set);
    for (size_t mode = 0; mode < sizeof(modes) / sizeof(modes[0]); mode++) {
        for (size_t i = 0; many_count < counters && i < sizeof(names) / sizeof(names[0]); i++) {
            snprintf(name, sizeof(name), "perf::%s%s", names[i], modes[mode]);
            last = PAPI_add_named_event(many_set, name);
            many_count += last == PAPI_OK;
            result = last == PAPI_OK ? result : last;
        }
    }
    if (many_count == counters) {
        result = PAPI_start(many_set);
        many_started = result == PAPI_OK;
    }
    if (many_started)
        return NULL;
    snprintf(reason, sizeof(reason), "PAPI took %d of %d events: %s", many_count, counters,
             PAPI_strerror(result));
    return reason;
}

static void many_end(void)
{
    long long values[MAX_HW_COUNTERS];

    if (many_started)
        PAPI_stop(many_set, values);
    many_started = false;
    PAPI_cleanup_eventset(many_set);
    PAPI_destroy_eventset(&many_set);
}

static void many_read(void)
{
    long long values[MAX_HW_COUNTERS] = {0};

    PAPI_read(many_set, values);
    sink += (uint64_t)values[0];
}
#endif

struct row {
    const char *name;
    void (*work)(void);
    int calls;
    int reference; /* index of the prcb row its ratio is against; -1: none */
    const char *(*begin)(
        int counters); /* before the calls, not timed: NULL, or why there are none */
    void (*end)(void);
    int counters;
    const char *lacking; /* what begin said */
    double ns[ROUNDS];
};

#define PROFILE_ROW 6 /* index of the first of them */

static struct row rows[] = {
    {"rdtsc (the floor)", tsc, 100000, -1},
    {"prcb_thread_times, own thread", own_times, 100000, -1},
    {"prcb_thread_times, another's", other_times, 100000, -1},
    {"prcb_thread_read, own thread, all causes", own_account, 20000, -1},
    {"prcb_thread_read, another's, all causes", other_account, 20000, -1},
    {"prcb_span_begin and _end, all causes", own_span, 20000, -1},
    {"ReadThreadProfilingData, dispatching", profile_switches, 100000, -1, profile_begin,
     profile_end, 0},
    {"  1 software counter", profile_counters, 5000, -1, profile_begin, profile_end, 1},
    {"  4 software counters", profile_counters, 5000, -1, profile_begin, profile_end, 4},
    {"  16 software counters", profile_counters, 5000, -1, profile_begin, profile_end, 16},
    {"perf group read, 1", group_read, 5000, PROFILE_ROW + 1, group_begin, group_end, 1},
    {"perf group read, 4", group_read, 5000, PROFILE_ROW + 2, group_begin, group_end, 4},
    {"perf group read, 16", group_read, 5000, PROFILE_ROW + 3, group_begin, group_end, 16},
#ifdef BENCH_PAPI
    {"PAPI_read, 1 software event", many_read, 5000, PROFILE_ROW + 1, many_begin, many_end, 1},
    {"PAPI_read, 4 software events", many_read, 5000, PROFILE_ROW + 2, many_begin, many_end, 4},
    {"PAPI_read, 16 software events", many_read, 5000, PROFILE_ROW + 3, many_begin, many_end, 16},
#endif
    {"getrusage(RUSAGE_THREAD)", own_getrusage, 20000, 1},
    {"clock_gettime(THREAD_CPUTIME)", own_cputime, 20000, 1},
    {"perf read, group of 2", own_perf, 20000, 1},
#ifdef BENCH_PAPI
    {"PAPI_read, 2 software events", many_read, 20000, 1, many_begin, many_end, 2},
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
    if (PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT)
        fputs("bench_read: PAPI does not start\n", stderr);
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
            uint64_t start;

            if (rows[i].begin)
                rows[i].lacking = rows[i].begin(rows[i].counters);
            start = bench_now();
            for (int call = 0; !rows[i].lacking && call < rows[i].calls; call++)
                rows[i].work();
            rows[i].ns[round] = (double)(bench_now() - start) / rows[i].calls;
            if (rows[i].end)
                rows[i].end();
        }
    }
}

/* The rows read a thread that is not switched in between, so each read goes on from the one before.
 * Here each follows a switch: all of the account is copied, and nothing of it is in the cache. */
static double after_a_switch(void)
{
    double ns[501];
    int count = (int)(sizeof(ns) / sizeof(*ns));

    for (int i = 0; i < count; i++) {
        uint64_t start;

        usleep(1);
        start = bench_now();
        own_account();
        ns[i] = (double)(bench_now() - start);
    }
    return bench_median(ns, count);
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
    configure_counters();
    profile_begin(0); /* opens its session */
    profile_end();
    usleep(100000); /* the clock's first slope wants a base 50 ms old */
    run_rows();
    printf("%-40s %10s %10s\n", "", "ns/call", "prcb is");
    for (size_t i = 0; i < ROWS; i++)
        bench_median(rows[i].ns, ROUNDS); /* sorts */
    for (size_t i = 0; i < ROWS; i++) {
        double ns = rows[i].ns[ROUNDS / 2];

        if (rows[i].lacking) {
            printf("%-40s %10s %9s  %s\n", rows[i].name, "-", "-", rows[i].lacking);
            continue;
        }
        printf("%-40s %10.1f", rows[i].name, ns);
        if (rows[i].reference >= 0)
            printf(" %8.1fx", ns / rows[rows[i].reference].ns[ROUNDS / 2]);
        printf("\n");
    }
    printf("\n%-40s %10.1f\n", "prcb_thread_read, right after a switch", after_a_switch());
    prcb_thread_close(self);
    prcb_thread_close(other);
    prcb_close(p);
    return 0;
}
