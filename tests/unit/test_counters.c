/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Names of events, and sets of counters. Software counters against getrusage on any
 * machine; hardware counters, where there are any, against a loop of a known number of
 * instructions: read in user mode and by the system call, multiplexed, on a thread that
 * moves between processors and on one that sleeps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "counters.h"

#define skip_because(...) (printf("    not run: "), printf(__VA_ARGS__), printf("\n"), skip())

static struct prcb_counters *open_set; /* closed by the teardown */

static int end(void **state)
{
    prcb_counters_close(open_set);
    open_set = NULL;
    return 0;
}

static struct prcb_counters *must_open(const char *names, pid_t tid, unsigned flags)
{
    struct prcb_error err = {0};
    struct prcb_counters *set = NULL;

    if (prcb_counters_open(names, tid, flags, &set, &err))
        fail_msg("%s", err.text);
    open_set = set;
    return set;
}

static struct prcb_counter read_at(struct prcb_counters *set, size_t i)
{
    struct prcb_counter counters[PRCB_COUNTERS_MAX];

    assert_int_equal(prcb_counters_read(set, prcb_counters_count(set), counters), 0);
    return counters[i];
}

static uint64_t value_at(struct prcb_counters *set, size_t i)
{
    struct prcb_counter counter = read_at(set, i);

    if (!(counter.flags & PRCB_COUNTER_PRESENT))
        fail_msg("%s: %s", counter.name, counter.reason);
    return counter.value;
}

static bool can_count(const char *name)
{
    return !prcb_counter_check(name, NULL, NULL);
}

#define NEED(name)                                                                                 \
    do {                                                                                           \
        if (!can_count(name))                                                                      \
            skip_because("%s cannot be counted here", name);                                       \
    } while (0)

/* ---- names ---- */

static struct counter_event event_of(const char *name)
{
    struct prcb_error err = {0};
    struct counter_event event;

    if (counter_event_find(name, &event, &err))
        fail_msg("%s", err.text);
    assert_string_equal(event.name, name);
    return event;
}

static void test_generic_names(void **state)
{
    struct counter_event event = event_of("instructions");

    assert_int_equal(event.type, PERF_TYPE_HARDWARE);
    assert_int_equal(event.config, PERF_COUNT_HW_INSTRUCTIONS);
    assert_int_equal(event_of("cpu-cycles").config, event_of("cycles").config);
    assert_int_equal(event_of("faults").type, PERF_TYPE_SOFTWARE);
    assert_int_equal(event_of("cs").config, PERF_COUNT_SW_CONTEXT_SWITCHES);
    event = event_of("L1-dcache-load-misses");
    assert_int_equal(event.type, PERF_TYPE_HW_CACHE);
    assert_int_equal(event.config, PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_READ << 8 |
                                       PERF_COUNT_HW_CACHE_RESULT_MISS << 16);
    assert_int_equal(counter_event_source(&event), PRCB_COUNTER_HARDWARE);
    for (size_t i = 0; prcb_counter_name(i); i++) {
        event = event_of(prcb_counter_name(i)->name);
        assert_int_equal(counter_event_source(&event), prcb_counter_name(i)->source);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(prcb_counter_name(i)->name, prcb_counter_name(j)->name);
    }
}

static void test_modes(void **state)
{
    struct counter_event event = event_of("instructions:u");

    assert_true(event.no_kernel && !event.no_user);
    event = event_of("r1c2:k");
    assert_true(!event.no_kernel && event.no_user);
    event = event_of("cycles:uk");
    assert_true(!event.no_kernel && !event.no_user);
}

static void test_raw_names(void **state)
{
    struct counter_event event = event_of("r01c2");

    assert_int_equal(event.type, PERF_TYPE_RAW);
    assert_int_equal(event.config, 0x1c2);
    assert_int_equal(event_of("rffffffffffffffff").config, UINT64_MAX);
}

static void test_bad_names(void **state)
{
    static const char *const bad[] = {
        "",        "no-such-event",   "r",    "rxyz",

        ":u",      "instructions:x",  "cpu/", "/x/",  "../x/", "no-pmu", "instructions cycles",
        "cycles:", "software/cycles", ",",
    };
    struct counter_event event;
    struct prcb_error err;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        err = (struct prcb_error){0};
        if (counter_event_find(bad[i], &event, &err) != -EINVAL)
            fail_msg("'%s' was taken: %s", bad[i], err.text);
        assert_true(err.text[0]);
    }
    assert_int_equal(counter_event_find("no_such_pmu/event/", &event, &err), -EOPNOTSUPP);
}

static void test_pmu_names(void **state)
{
    struct counter_event event;
    struct prcb_error err = {0};
    int result = counter_event_find("msr/tsc/", &event, &err);

    if (result == -EOPNOTSUPP)
        skip_because("%s", err.text);
    assert_int_equal(result, 0);
    assert_true(event.type > PERF_TYPE_BREAKPOINT);
    assert_int_equal(counter_event_find("msr/no_such/", &event, &err), -EINVAL);
    assert_int_equal(counter_event_find("msr/event=0x/", &event, &err), -EINVAL);
}

static void test_lists(void **state)
{
    struct counter_event events[PRCB_COUNTERS_MAX];
    struct prcb_error err = {0};
    char list[PRCB_COUNTERS_MAX * 4 + 8] = "";
    size_t count = 99;

    assert_int_equal(counter_events_parse("cycles,faults:u,r1", events, &count, &err), 0);
    assert_int_equal(count, 3);
    assert_string_equal(events[1].name, "faults:u");
    count = 99;
    assert_int_equal(counter_events_parse("cycles,,faults", events, &count, &err), -EINVAL);
    assert_int_equal(counter_events_parse("cycles,", events, &count, &err), -EINVAL);
    assert_int_equal(counter_events_parse("", events, &count, &err), -EINVAL);
    assert_int_equal(count, 99);
    for (int i = 0; i < PRCB_COUNTERS_MAX; i++)
        strcat(list, i ? ",cs" : "cs");
    assert_int_equal(counter_events_parse(list, events, &count, &err), 0);
    assert_int_equal(count, PRCB_COUNTERS_MAX);
    strcat(list, ",cs");
    assert_int_equal(counter_events_parse(list, events, &count, &err), -EINVAL);
}

static int see_name(const char *name, const char *words, void *ctx)
{
    struct counter_event event;

    ++*(unsigned *)ctx;
    if (strstr(name, "perf::PAGE-FAULTS")) {
        assert_int_equal(counter_event_find(name, &event, NULL), 0);
        assert_int_equal(event.type, PERF_TYPE_SOFTWARE);
        assert_int_equal(event.config, PERF_COUNT_SW_PAGE_FAULTS);
        return 42;
    }
    return 0;
}

static void test_pfm_names(void **state)
{
    unsigned count = 0;
    int result = prcb_counter_pfm_walk(see_name, &count);

    if (!count)
        skip_because("built without libpfm4");
    assert_int_equal(result, 42);
}

/* ---- software counters ---- */

static uint64_t own_faults(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return (uint64_t)(usage.ru_minflt + usage.ru_majflt);
}

#define PAGES 200

/* Returns how many faults the kernel charged for it. */
static uint64_t make_faults(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = PAGES * page;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t before;

    assert_true(memory != MAP_FAILED);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    before = own_faults();
    for (size_t at = 0; at < bytes; at += page)
        ((volatile char *)memory)[at] = 1;
    before = own_faults() - before;
    munmap(memory, bytes);
    return before;
}

static void test_software(void **state)
{
    struct prcb_counters *set;
    uint64_t before, minor, faults, around, pages, minor_pages;

    NEED("page-faults");
    set = must_open("task-clock,page-faults,cpu-clock,minor-faults", 0, 0);
    value_at(set, 1); /* faults its own pages in */
    around = own_faults();
    before = value_at(set, 1);
    minor = value_at(set, 3);
    faults = make_faults();
    pages = value_at(set, 1) - before;
    minor_pages = value_at(set, 3) - minor;
    around = own_faults() - around;
    assert_true(faults >= PAGES);
    assert_in_range(pages, faults, around);
    assert_in_range(minor_pages, faults, around);
    assert_int_equal(read_at(set, 1).source, PRCB_COUNTER_SOFTWARE);
    assert_int_equal(read_at(set, 1).flags & (PRCB_COUNTER_SCALED | PRCB_COUNTER_READ_USER), 0);
}

/* Behind a clock that already runs, too: see COUNTERS_STOPPED. */
static void test_counts_from_the_start(void **state)
{
    NEED("page-faults");
    for (int i = 0; i < 20; i++) {
        struct prcb_counters *set = must_open("task-clock,page-faults", 0, 0);
        uint64_t faults = make_faults();

        assert_true(value_at(set, 1) >= faults);
        end(NULL);
    }
}

static void test_absent(void **state)
{
    struct prcb_error err = {0};
    struct prcb_counters *set = (void *)&err;
    struct prcb_counter counter;

    NEED("page-faults");
    if (can_count("LLC-prefetch-misses"))
        skip_because("this machine counts everything");
    assert_int_equal(prcb_counters_open("LLC-prefetch-misses", 0, 0, &set, &err), -EOPNOTSUPP);
    assert_ptr_equal(set, &err);
    assert_non_null(strstr(err.text, "LLC-prefetch-misses"));
    set = must_open("LLC-prefetch-misses,page-faults", 0, 0);
    counter = read_at(set, 0);
    assert_false(counter.flags & PRCB_COUNTER_PRESENT);
    assert_non_null(counter.reason);
    assert_string_equal(counter.name, "LLC-prefetch-misses");
    counter = read_at(set, 1);
    assert_true(counter.flags & PRCB_COUNTER_PRESENT);
    assert_null(counter.reason);
}

static void test_bad_calls(void **state)
{
    struct prcb_counters *set;
    struct prcb_counter one;

    NEED("task-clock");
    assert_int_equal(prcb_counters_open("cs", -1, 0, &set, NULL), -EINVAL);
    assert_int_equal(prcb_counters_open("cs", 0, 8, &set, NULL), -EINVAL);
    assert_int_equal(prcb_counters_open("task-clock", 0x7ffffff0, 0, &set, NULL), -ESRCH);
    set = must_open("task-clock", 0, 0);
    assert_int_equal(prcb_counters_read(set, 2, &one), -EINVAL);
    assert_int_equal(prcb_counters_read(set, 0, NULL), 0);
    prcb_counters_close(NULL);
}

static void *fault_thread(void *arg)
{
    *(uint64_t *)arg = make_faults();
    return NULL;
}

static void test_inherit(void **state)
{
    struct prcb_counters *set, *own = NULL;
    uint64_t before, own_before, faults = 0;
    pthread_t thread;
    pid_t child;

    NEED("page-faults");
    set = must_open("page-faults", 0, PRCB_COUNTERS_INHERIT);
    assert_int_equal(prcb_counters_open("page-faults", 0, 0, &own, NULL), 0);
    before = value_at(set, 0);
    own_before = value_at(own, 0);
    assert_int_equal(pthread_create(&thread, NULL, fault_thread, &faults), 0);
    pthread_join(thread, NULL);
    child = fork();
    if (!child)
        _exit(make_faults() < PAGES);
    waitpid(child, NULL, 0);
    assert_true(faults >= PAGES);
    assert_true(value_at(set, 0) - before >= faults + PAGES);
    assert_true(value_at(own, 0) - own_before < PAGES);
    prcb_counters_close(own);
}

static void *read_thread(void *arg)
{
    return (void *)(intptr_t)value_at(arg, 0);
}

/* Another thread reads the same figures: those of the thread that opened. */
static void test_read_by_another(void **state)
{
    struct prcb_counters *set;
    uint64_t faults;
    pthread_t thread;
    void *got;

    NEED("page-faults");
    set = must_open("page-faults", 0, 0);
    faults = make_faults();
    assert_int_equal(pthread_create(&thread, NULL, read_thread, set), 0);
    pthread_join(thread, &got);
    assert_true((uint64_t)(intptr_t)got >= faults);
}

/* ---- hardware counters ---- */

#define LOOPS 1000000

/* Two instructions a turn, LOOPS turns, whatever the compiler thinks. */
static void run_loop(void)
{
    uint64_t count = LOOPS;

#if defined(__x86_64__)
    __asm__ volatile("1: dec %0\n jnz 1b" : "+r"(count) : : "cc");
#elif defined(__aarch64__)
    __asm__ volatile("1: subs %0, %0, #1\n b.ne 1b" : "+r"(count) : : "cc");
#else
    while (count--)
        __asm__ volatile("");
#endif
}

/* The loop in user mode costs what it costs; reading twice adds a few thousand at most. */
#define EXACT     (2 * LOOPS)
#define TOLERANCE tolerance()

/* An emulator's counter of instructions is its clock, which the other processors' turns move on:
 * what they run in the middle of a measurement is in it (36,506 were seen). */
static uint64_t tolerance(void)
{
    return getenv("PRCB_TEST_SLOW") ? EXACT / 10 : 20000;
}

static void test_instructions(void **state)
{
    struct prcb_counters *set;
    uint64_t before, after;

    NEED("instructions:u");
    set = must_open("instructions:u,cycles:u", 0, 0);
    for (int i = 0; i < 20; i++) {
        before = value_at(set, 0);
        run_loop();
        after = value_at(set, 0);
        assert_in_range(after - before, EXACT, EXACT + TOLERANCE);
    }
    assert_int_equal(read_at(set, 0).source, PRCB_COUNTER_HARDWARE);
    assert_true(value_at(set, 1) > 0);
}

static bool write_sysctl(const char *text)
{
    FILE *file = fopen("/proc/sys/kernel/perf_user_access", "w");
    bool good = file && fputs(text, file) >= 0;

    if (file)
        good = !fclose(file) && good;
    return good;
}

/* Read in user mode where the kernel allows it, and by the system call where not. */
static void test_user_mode(void **state)
{
    struct prcb_counters *set;
    uint64_t before, after, bits, values[2];
    bool user;

    NEED("instructions:u");
#if defined(__aarch64__)
    if (!write_sysctl("1"))
        skip_because("kernel.perf_user_access cannot be set");
#else
    (void)write_sysctl;
#endif
    set = must_open("instructions:u,page-faults", 0, 0);
    run_loop();
    user = read_at(set, 0).flags & PRCB_COUNTER_READ_USER;
    print_message("    read %s\n", user ? "in user mode" : "by the system call");
    assert_false(read_at(set, 1).flags & PRCB_COUNTER_READ_USER);
    for (int i = 0; i < 20; i++) {
        before = value_at(set, 0);
        run_loop();
        counters_values(set, values, &bits);
        after = values[0];
        assert_int_equal(bits, 3);
        assert_in_range(after - before, EXACT, EXACT + TOLERANCE);
    }
#if defined(__aarch64__)
    assert_true(user);
    end(NULL);
    assert_true(write_sysctl("0"));
    set = must_open("instructions:u", 0, 0);
    assert_false(read_at(set, 0).flags & PRCB_COUNTER_READ_USER);
    before = value_at(set, 0);
    run_loop();
    assert_in_range(value_at(set, 0) - before, EXACT, EXACT + TOLERANCE);
    write_sysctl("1");
#endif
}

/* Another program's work on the same processor is not ours, and sleep counts nothing. */
static void test_sleep(void **state)
{
    struct timespec pause = {.tv_nsec = 20000000};
    struct prcb_counters *set;
    uint64_t before;

    NEED("instructions:u");
    set = must_open("instructions:u", 0, 0);
    before = value_at(set, 0);
    for (int i = 0; i < 5; i++) {
        run_loop();
        nanosleep(&pause, NULL);
    }
    assert_in_range(value_at(set, 0) - before, 5 * EXACT, 5 * EXACT + TOLERANCE);
}

static void test_moves(void **state)
{
    cpu_set_t all, one;
    struct prcb_counters *set;
    uint64_t before, last;
    int cpus = 0;

    NEED("instructions:u");
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    if (CPU_COUNT(&all) < 2)
        skip_because("one processor");
    set = must_open("instructions:u", 0, 0);
    before = last = value_at(set, 0);
    for (int round = 0; round < 10; round++) {
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
            if (!CPU_ISSET(cpu, &all))
                continue;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
            run_loop();
            assert_true(value_at(set, 0) >= last + EXACT);
            last = value_at(set, 0);
            cpus++;
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
    assert_in_range(last - before, (uint64_t)cpus * EXACT, (uint64_t)cpus * (EXACT + TOLERANCE));
}

/* More counters than any processor has: each counts part of the time and is scaled. */
static void test_multiplexed(void **state)
{
    enum { COUNT = 40 };
    struct prcb_counters *set;
    struct prcb_counter counters[COUNT];
    char list[COUNT * 20] = "";
    unsigned scaled = 0, present = 0;
    uint64_t loops = 0;
    struct timespec begin, now;

    NEED("instructions:u");
    for (int i = 0; i < COUNT; i++)
        strcat(list, i ? ",instructions:u" : "instructions:u");
    set = must_open(list, 0, 0);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do {
        run_loop();
        loops++;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_sec - begin.tv_sec < 3);
    assert_int_equal(prcb_counters_read(set, COUNT, counters), 0);
    for (int i = 0; i < COUNT; i++) {
        const struct prcb_counter *counter = &counters[i];
        double allowed, difference;

        if (!(counter->flags & PRCB_COUNTER_PRESENT)) {
            assert_int_equal(counter->value, 0);
            assert_non_null(counter->reason);
            continue;
        }
        present++;
        if (counter->flags & PRCB_COUNTER_SCALED) {
            scaled++;
            assert_true(counter->running_ns < counter->enabled_ns);
            assert_true(counter->raw < counter->value);
        }
        /* A steady loop: the estimate is near, but for the turns that the counter had by halves, at
         * the beginning and at the end. A turn is a tick, 10 ms at most; emulated ones come late,
         * and a counter may have had few. */
        allowed = 0.3 + (counter->running_ns ? 2e7 / (double)counter->running_ns : 1);
        difference = (double)counter->value / ((double)loops * EXACT) - 1;
        if (difference < -allowed || difference > allowed)
            fail_msg("counter %d: %.2f of what there was, having counted %.1f of %.1f ms", i,
                     difference + 1, (double)counter->running_ns / 1e6,
                     (double)counter->enabled_ns / 1e6);
    }
    print_message("    %u of %d present, %u scaled\n", present, COUNT, scaled);
    assert_true(present > 0);
    if (present == COUNT && !scaled)
        fail_msg("nothing was multiplexed");
}

static void test_another_thread(void **state)
{
    struct prcb_counters *set;
    int begin[2], done[2];
    char byte = 0;
    pid_t child;

    NEED("instructions:u");
    assert_int_equal(pipe(begin), 0);
    assert_int_equal(pipe(done), 0);
    child = fork();
    if (!child) {
        if (read(begin[0], &byte, 1) == 1)
            run_loop();
        if (write(done[1], &byte, 1) == 1)
            pause();
        _exit(0);
    }
    set = must_open("instructions:u", child, 0);
    assert_int_equal(write(begin[1], &byte, 1), 1);
    assert_int_equal(read(done[0], &byte, 1), 1);
    assert_in_range(value_at(set, 0), EXACT, EXACT + TOLERANCE);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_in_range(value_at(set, 0), EXACT, EXACT + TOLERANCE);
    for (int i = 0; i < 2; i++) {
        close(begin[i]);
        close(done[i]);
    }
}

/* ---- families ---- */

#define HELPERS 6

/* The child: threads that end, one after the other, each with a loop and new pages. */
static void *helper(void *arg)
{
    run_loop();
    make_faults();
    return NULL;
}

static int family_child(const char *go)
{
    pthread_t thread;
    int fd = atoi(go);
    char byte;

    if (read(fd, &byte, 1) != 1)
        return 1;
    for (int i = 0; i < HELPERS; i++) {
        if (pthread_create(&thread, NULL, helper, NULL) || pthread_join(thread, NULL))
            return 2;
    }
    return 0;
}

/* Starts this program anew as such a child, stopped before its exec; *ret lets it go on,
 * *ret_go its work. */
static pid_t start_child(int *ret, int *ret_go)
{
    int before[2], go[2];
    char number[16], byte;
    pid_t child;

    assert_int_equal(pipe(before), 0);
    assert_int_equal(pipe(go), 0);
    snprintf(number, sizeof(number), "%d", go[0]);
    child = fork();
    if (!child) {
        char program[] = "test_counters", option[] = "--family";
        char *const argv[] = {program, option, number, NULL};

        close(go[1]);
        if (read(before[0], &byte, 1) == 1)
            execv("/proc/self/exe", argv);
        _exit(9);
    }
    close(before[0]);
    close(go[0]);
    *ret = before[1];
    *ret_go = go[1];
    return child;
}

struct parts {
    pid_t tids[64];
    uint64_t values[64][3];
    size_t count;
};

static int keep_part(const struct prcb_family_part *part, void *ctx)
{
    struct parts *parts = ctx;
    size_t i = 0;

    while (i < parts->count && parts->tids[i] != part->tid)
        i++;
    if (i == parts->count)
        parts->tids[parts->count++] = part->tid;
    parts->values[i][part->index] += part->value;
    return parts->count == 64;
}

/* Each thread's part is its own, whatever the kernel does when it switches between two of
 * them; the thread that leaves none makes the sum whole. */
static void family_of(const char *names, unsigned faults, unsigned instructions)
{
    struct prcb_family *family;
    struct prcb_error err = {0};
    struct prcb_counter sums[3];
    struct parts parts = {.count = 0};
    uint64_t lost = 0, known = 0;
    int before, go, status = -1;
    pid_t child = start_child(&before, &go);

    if (prcb_family_open(names, child, &family, &err)) {
        kill(child, SIGKILL);
        fail_msg("%s", err.text);
    }
    assert_int_equal(write(before, "b", 1), 1);
    assert_int_equal(write(go, "g", 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    close(before);
    close(go);
    assert_int_equal(status, 0);
    assert_int_equal(prcb_family_collect(family, keep_part, &parts, &lost), 0);
    assert_int_equal(prcb_family_read(family, prcb_family_count(family), sums), 0);
    assert_int_equal(lost, 0);
    assert_true(sums[faults].flags & PRCB_COUNTER_PRESENT);
    assert_int_equal(parts.count,
                     prcb_family_has_parts(family) ? HELPERS : 0); /* and one without */
    for (size_t i = 0; i < parts.count; i++) {
        /* A helper's own, and what its start costs, the more the more is built in. */
        if (parts.tids[i] != child)
            assert_in_range(parts.values[i][faults], PAGES, 2 * PAGES);
        known += parts.values[i][faults];
        if (instructions && parts.tids[i] != child)
            assert_in_range(parts.values[i][instructions], EXACT, EXACT + 10 * TOLERANCE);
    }
    assert_true(sums[faults].raw > known);
    assert_true(sums[faults].raw >= HELPERS * PAGES);
    if (instructions)
        assert_true(sums[instructions].value >= (uint64_t)HELPERS * EXACT);
    prcb_family_close(family);
}

static void test_family(void **state)
{
    NEED("page-faults");
    for (int i = 0; i < 5; i++)
        family_of("task-clock,page-faults", 1, 0);
}

/* Software and hardware counters together: of several PMUs. */
static void test_family_hardware(void **state)
{
    NEED("instructions:u");
    for (int i = 0; i < 5; i++)
        family_of("task-clock,page-faults,instructions:u", 1, 2);
}

static void test_family_bad(void **state)
{
    struct prcb_family *family;
    struct prcb_error err = {0};

    assert_int_equal(prcb_family_open("no-such-event", getpid(), &family, &err), -EINVAL);
    prcb_family_close(NULL);
}

/* Numbers of the kernel's interface, which never change. */
static void test_what_a_name_is(void **state)
{
    struct prcb_counter_event event;
    struct prcb_error err;

    assert_int_equal(prcb_counter_event("cpu-clock", &event, &err), 0);
    assert_int_equal(event.type, 1);
    assert_int_equal(event.config, 0);
    assert_int_equal(event.flags, 0);
    assert_int_equal(prcb_counter_event("instructions:u", &event, &err), 0);
    assert_int_equal(event.type, 0);
    assert_int_equal(event.config, 1);
    assert_int_equal(event.flags, PRCB_COUNTER_EVENT_NO_KERNEL);
    assert_int_equal(prcb_counter_event("r1c2:k", &event, &err), 0);
    assert_int_equal(event.type, 4);
    assert_int_equal(event.config, 0x1c2);
    assert_int_equal(event.flags, PRCB_COUNTER_EVENT_NO_USER);
    assert_int_equal(prcb_counter_event("no-such", &event, &err), -EINVAL);
    assert_int_equal(event.config, 0x1c2);
    assert_int_equal(prcb_counter_event(NULL, &event, &err), -EINVAL);
}

#define TEST(function) cmocka_unit_test_teardown(function, end)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_a_name_is), TEST(test_generic_names),
        TEST(test_modes),          TEST(test_raw_names),
        TEST(test_bad_names),      TEST(test_pmu_names),
        TEST(test_lists),          TEST(test_pfm_names),
        TEST(test_software),       TEST(test_counts_from_the_start),
        TEST(test_absent),         TEST(test_bad_calls),
        TEST(test_inherit),        TEST(test_read_by_another),
        TEST(test_instructions),   TEST(test_user_mode),
        TEST(test_sleep),          TEST(test_moves),
        TEST(test_multiplexed),    TEST(test_another_thread),
        TEST(test_family),         TEST(test_family_hardware),
        TEST(test_family_bad),
    };

    if (argc == 3 && !strcmp(argv[1], "--family"))
        _exit(family_child(argv[2])); /* a leak checker would add a thread */
    return cmocka_run_group_tests_name("counters", tests, NULL, NULL);
}
