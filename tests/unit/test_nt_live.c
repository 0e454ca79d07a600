/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The system information classes over the real view: this machine on the perf tier, or with the
 * argument "bpf" on that one (77 where it cannot be had), and a recorded machine that has what this
 * one may lack.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <prcb/nt.h>
#include <prcb/processors.h>

#define MOST 64

static bool on_bpf;

static void choose(const char *root)
{
    struct prcb_processors_options options = {.size = sizeof(options),
                                              .tier = root     ? PRCB_TIER_AUTO
                                                      : on_bpf ? PRCB_TIER_BPF
                                                               : PRCB_TIER_PERF,
                                              .root = root};

    assert_int_equal(prcb_nt_set_processors(&options), 0);
}

static int this_machine(void **state)
{
    choose(NULL);
    return 0;
}

static NTSTATUS query(uint32_t number, void *buffer, uint32_t length, uint32_t *ret)
{
    return prcb_NtQuerySystemInformation(number, buffer, length, ret);
}

static uint32_t times(SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION *ret)
{
    uint32_t length = 0;

    assert_int_equal(query(0x08, ret, MOST * sizeof(*ret), &length), STATUS_SUCCESS);
    return length / (uint32_t)sizeof(*ret);
}

/* ---- against the kernel's own ---- */

static uint64_t kernel_switches(void)
{
    char line[4096];
    unsigned long long switches = 0;
    FILE *file = fopen("/proc/stat", "r");

    while (fgets(line, sizeof(line), file) && sscanf(line, "ctxt %llu", &switches) != 1)
        ;
    fclose(file);
    return switches;
}

static void test_processors(void **state)
{
    SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION all[MOST];
    long online = sysconf(_SC_NPROCESSORS_ONLN), possible = sysconf(_SC_NPROCESSORS_CONF);

    if (possible > MOST)
        skip();
    assert_in_range(times(all), online, possible);
    assert_int_equal(prcb_KeQueryActiveProcessorCountEx(PRCB_NT_ALL_GROUPS), times(all));
    assert_int_equal(prcb_nt_processors_tier(), on_bpf ? PRCB_TIER_BPF : PRCB_TIER_PERF);
}

/* Class 0x24 between two looks at the kernel's count. On the bpf tier a processor's switches are
 * seen at the next switch, and where the count began is known to within the switches of an
 * instant: both far less than these. */
static void test_switches(void **state)
{
    SYSTEM_CONTEXT_SWITCH_INFORMATION first, second;
    uint64_t before = kernel_switches(), after;
    const uint32_t slack = on_bpf ? 2000 : 0;
    int pair[2][2];
    char byte = 0;
    pid_t child;

    assert_int_equal(query(0x24, &first, sizeof(first), NULL), STATUS_SUCCESS);
    after = kernel_switches();
    assert_true(first.ContextSwitches + slack - (uint32_t)before <= after - before + 2 * slack);
    assert_int_equal(pipe(pair[0]) | pipe(pair[1]), 0);
    child = fork();
    if (!child) {
        for (int i = 0; i < 2000; i++) {
            if (read(pair[0][0], &byte, 1) != 1 || write(pair[1][1], &byte, 1) != 1)
                _exit(1);
        }
        _exit(0);
    }
    for (int i = 0; i < 2000; i++) {
        assert_int_equal(write(pair[0][1], &byte, 1), 1);
        assert_int_equal(read(pair[1][0], &byte, 1), 1);
    }
    waitpid(child, NULL, 0);
    assert_int_equal(query(0x24, &second, sizeof(second), NULL), STATUS_SUCCESS);
    assert_true(second.ContextSwitches - first.ContextSwitches >= 4000 - 64); /* each way */
    after = kernel_switches();
    assert_true(second.ContextSwitches - first.ContextSwitches <= after - before + slack);
}

/* The parts lie within each other as NT's do, and nothing goes backwards, whatever is asked. */
static void check_parts(const SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION *now,
                        const SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION *last)
{
    assert_true(now->KernelTime.QuadPart >=
                now->IdleTime.QuadPart + now->DpcTime.QuadPart + now->InterruptTime.QuadPart);
    assert_true(now->IdleTime.QuadPart >= last->IdleTime.QuadPart &&
                now->KernelTime.QuadPart >= last->KernelTime.QuadPart);
    assert_true(now->UserTime.QuadPart >= last->UserTime.QuadPart &&
                now->DpcTime.QuadPart >= last->DpcTime.QuadPart);
    assert_true(now->InterruptTime.QuadPart >= last->InterruptTime.QuadPart);
    assert_true((int32_t)(now->InterruptCount - last->InterruptCount) >= 0);
    assert_int_equal(now->Spare0, 0);
}

static void test_monotonic(void **state)
{
    SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION last[MOST] = {0}, now[MOST];
    SYSTEM_PROCESSOR_CYCLE_TIME_INFORMATION idle[MOST] = {0}, idle_now[MOST];
    uint32_t count = times(last), length;

    for (int i = 0; i < (on_bpf ? 2000 : 100); i++) {
        assert_int_equal(times(now), count);
        assert_int_equal(query(0x53, idle_now, sizeof(idle_now), &length), STATUS_SUCCESS);
        for (uint32_t cpu = 0; cpu < count; cpu++) {
            check_parts(&now[cpu], &last[cpu]);
            assert_true(idle_now[cpu].CycleTime >= idle[cpu].CycleTime);
        }
        memcpy(last, now, sizeof(now));
        memcpy(idle, idle_now, sizeof(idle));
        usleep(i % 16 ? 0 : 1000);
    }
}

/* Two classes tell of one thing: what 0x2A has lies between two looks at 0x08. */
static void test_classes_agree(void **state)
{
    SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION before[MOST], after[MOST];
    SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION_EX extended[MOST];
    SYSTEM_PROCESSOR_IDLE_INFORMATION idle[MOST];
    uint32_t count = times(before), length;

    assert_int_equal(query(0x2a, idle, sizeof(idle), &length), STATUS_SUCCESS);
    assert_int_equal(length, count * sizeof(idle[0]));
    assert_int_equal(query(0x8d, extended, sizeof(extended) / 0x48 * 0x48, &length),
                     STATUS_SUCCESS);
    times(after);
    for (uint32_t i = 0; i < count; i++) {
        assert_in_range(idle[i].IdleTime, before[i].IdleTime.QuadPart, after[i].IdleTime.QuadPart);
        assert_in_range(extended[i].KernelTime.QuadPart, before[i].KernelTime.QuadPart,
                        after[i].KernelTime.QuadPart);
        assert_in_range(extended[i].UserTime.QuadPart, before[i].UserTime.QuadPart,
                        after[i].UserTime.QuadPart);
    }
}

/* The clock by which idle cycles count is the one by which idle time does. */
static void test_cycles(void **state)
{
    SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION first[MOST], then[MOST], second[MOST], last[MOST];
    SYSTEM_PROCESSOR_CYCLE_TIME_INFORMATION from[MOST], to[MOST];
    uint64_t grown = 0, least = 0, most = 0;
    uint32_t count = times(first), length;

    query(0x53, from, sizeof(from), &length);
    times(then);
    usleep(300000);
    times(second);
    assert_int_equal(query(0x53, to, sizeof(to), &length), STATUS_SUCCESS);
    times(last);
    for (uint32_t i = 0; i < count; i++) {
        grown += to[i].CycleTime - from[i].CycleTime;
        least += (uint64_t)(second[i].IdleTime.QuadPart - then[i].IdleTime.QuadPart);
        most += (uint64_t)(last[i].IdleTime.QuadPart - first[i].IdleTime.QuadPart);
    }
    /* Between 0.1 and 10 cycles a nanosecond: no processor is outside. */
    assert_true(grown >= least * 10 && grown <= most * 1000);
}

/* Mode `ticks` tells the same, down to the increment. */
static void test_ticks(void **state)
{
    SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION before[MOST], ticks[MOST], after[MOST];
    int64_t increment = prcb_KeQueryTimeIncrement();
    uint32_t count = times(before);

    assert_int_equal(prcb_nt_set_time_mode(PRCB_NT_TIME_TICKS), 0);
    times(ticks);
    assert_int_equal(prcb_nt_set_time_mode(PRCB_NT_TIME_V310), 0);
    times(after);
    for (uint32_t cpu = 0; cpu < count; cpu++) {
        int64_t parts[] = {ticks[cpu].IdleTime.QuadPart, ticks[cpu].KernelTime.QuadPart,
                           ticks[cpu].UserTime.QuadPart, ticks[cpu].DpcTime.QuadPart,
                           ticks[cpu].InterruptTime.QuadPart};

        for (unsigned i = 0; i < 5; i++)
            assert_int_equal(parts[i] % increment, 0);
        assert_true(parts[1] > before[cpu].KernelTime.QuadPart - increment);
        assert_true(parts[1] <= after[cpu].KernelTime.QuadPart);
        assert_true(parts[2] > before[cpu].UserTime.QuadPart - increment);
        assert_true(parts[2] <= after[cpu].UserTime.QuadPart);
    }
}

/* Whoever is told why a member is absent finds 0 there. */
static void test_absent(void **state)
{
    static const uint32_t classes[] = {0x08, 0x17, 0x24, 0x2a, 0x3d, 0x53, 0x6c, 0x8d};
    static uint64_t buffer[1024];
    unsigned absent = 0;

    for (unsigned c = 0; c < sizeof(classes) / sizeof(classes[0]); c++) {
        const struct prcb_nt_member *member;
        uint32_t length = classes[c] == 0x24 ? 0x30 : 0, zero[2] = {0};

        if (!length)
            query(classes[c], NULL, 0, &length);
        assert_in_range(length, 8, sizeof(buffer));
        assert_int_equal(query(classes[c], buffer, length, NULL), STATUS_SUCCESS);
        for (size_t i = 0; (member = prcb_nt_member(classes[c], i)); i++) {
            const char *why = prcb_nt_absent(classes[c], member->offset);

            if (!why)
                continue;
            absent++;
            assert_true(strlen(why) > 10);
            assert_memory_equal((char *)buffer + member->offset, zero, member->size);
        }
    }
    assert_true(absent >= 20); /* those that Linux has nothing for, at the least */
}

static void *ask(void *bad)
{
    static const uint32_t classes[] = {0x08, 0x17, 0x1c, 0x24, 0x2a, 0x3d, 0x53, 0x64, 0x6c};
    uint64_t buffer[1024];

    for (unsigned i = 0; i < 90; i++) {
        uint32_t number = classes[i % 9], length = 0;
        NTSTATUS status = query(number, NULL, 0, &length);

        if (status != STATUS_INFO_LENGTH_MISMATCH && status != STATUS_BUFFER_TOO_SMALL)
            *(bool *)bad = true;
        status = query(number, buffer, length, NULL);
        if (status || prcb_NtPowerInformation(11, NULL, 0, buffer, sizeof(buffer)))
            *(bool *)bad = true;
    }
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[3];
    bool bad[3] = {false};

    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &bad[i]), 0);
    for (unsigned i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_false(bad[i]);
    }
}

static void test_fork(void **state)
{
    SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION own[MOST], all[MOST];
    uint32_t count = times(own);
    int status = -1;
    pid_t child = fork();

    if (!child)
        _exit(times(all) != count || all[0].KernelTime.QuadPart <= 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(times(all), count);
    for (uint32_t i = 0; i < count; i++)
        check_parts(&all[i], &own[i]);
}

/* The time adjustment is the machine's own, whatever it is; to set it wants a privilege. */
static void test_time_adjustment(void **state)
{
    SYSTEM_QUERY_TIME_ADJUST_INFORMATION now;
    SYSTEM_SET_TIME_ADJUST_INFORMATION same;
    int status = -1;
    pid_t child;

    assert_int_equal(query(0x1c, &now, sizeof(now), NULL), STATUS_SUCCESS);
    assert_int_equal(now.TimeIncrement, prcb_KeQueryTimeIncrement());
    /* Linux adjusts by 10 % and 500 ppm at most. */
    assert_in_range(now.TimeAdjustment, now.TimeIncrement / 10 * 8.9, now.TimeIncrement * 1.11);
    same = (SYSTEM_SET_TIME_ADJUST_INFORMATION){now.TimeAdjustment, now.Enable};
    child = fork();
    if (!child) {
        if (!geteuid() && setresuid(65534, 65534, 65534))
            _exit(2);
        _exit(prcb_NtSetSystemInformation(0x1c, &same, sizeof(same)) != STATUS_PRIVILEGE_NOT_HELD);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- a processor that comes and goes: in a guest ---- */

static bool set_online(char digit)
{
    int fd = open("/sys/devices/system/cpu/cpu1/online", O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, &digit, 1) == 1;

    if (fd >= 0)
        close(fd);
    return good;
}

/* Its element stays, and stands still; back on line it goes on from there. */
static void test_hotplug(void **state)
{
    SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION before[MOST], off[MOST], later[MOST], on[MOST];
    const char *allowed = getenv("PRCB_TEST_HOTPLUG");
    uint32_t count;

    if (!allowed || *allowed != '1') {
        printf("    not run: takes processor 1 down; set PRCB_TEST_HOTPLUG=1 in a guest\n");
        skip();
    }
    count = times(before);
    assert_true(count > 1);
    assert_true(set_online('0'));
    assert_int_equal(times(off), count);
    usleep(300000);
    assert_int_equal(times(later), count);
    assert_int_equal(prcb_KeQueryActiveProcessorCountEx(0), count);
    assert_true(set_online('1'));
    usleep(300000);
    assert_int_equal(times(on), count);
    for (uint32_t i = 0; i < count; i++) {
        check_parts(&off[i], &before[i]);
        check_parts(&later[i], &off[i]);
        check_parts(&on[i], &later[i]);
    }
    assert_true(later[0].KernelTime.QuadPart + later[0].UserTime.QuadPart >
                off[0].KernelTime.QuadPart + off[0].UserTime.QuadPart);
    assert_int_equal(later[1].KernelTime.QuadPart + later[1].UserTime.QuadPart,
                     off[1].KernelTime.QuadPart + off[1].UserTime.QuadPart);
    assert_true(on[1].KernelTime.QuadPart + on[1].UserTime.QuadPart >
                later[1].KernelTime.QuadPart + later[1].UserTime.QuadPart);
}

/* ---- a recorded machine ---- */

static char root[] = "/tmp/prcb-nt-live-XXXXXX";

static void put(const char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(const char *text, const char *format, ...)
{
    char name[256], *slash;
    va_list arguments;
    FILE *file;
    int at = snprintf(name, sizeof(name), "%s/", root);

    va_start(arguments, format);
    vsnprintf(name + at, sizeof(name) - (size_t)at, format, arguments);
    va_end(arguments);
    for (slash = name + at; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(name, 0755);
        *slash = '/';
    }
    file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

#define CPU "sys/devices/system/cpu"

static void put_state(unsigned cpu, unsigned state, const char *name, const char *usage,
                      const char *microseconds)
{
    put(name, CPU "/cpu%u/cpuidle/state%u/name", cpu, state);
    put(usage, CPU "/cpu%u/cpuidle/state%u/usage", cpu, state);
    put(microseconds, CPU "/cpu%u/cpuidle/state%u/time", cpu, state);
}

/* Four processors of which the third is off line, with three idle states and cpufreq. */
static int record(void **state)
{
    put("0-3\n", CPU "/possible");
    put("0-1,3\n", CPU "/online");
    put("cpu  0 0 0 0\ncpu0 100 0 50 1000 5 0 0 0 0 0\ncpu1 1 1 1 1 1 1 1 1 1 1\n"
        "cpu3 0 0 0 7 0 0 0 0 0 0\nctxt 5000\n",
        "proc/stat");
    put("      CPU0  CPU1  CPU3\n  1:  10  20  30  x\n", "proc/interrupts");
    put("      CPU0  CPU1  CPU2  CPU3\n TIMER: 1 2 3 4\n", "proc/softirqs");
    for (unsigned cpu = 0; cpu < 4; cpu++) {
        put("1200000\n", CPU "/cpu%u/cpufreq/scaling_cur_freq", cpu);
        put("4800000\n", CPU "/cpu%u/cpufreq/cpuinfo_max_freq", cpu);
        put("3600000\n", CPU "/cpu%u/cpufreq/scaling_max_freq", cpu);
        put("800000\n", CPU "/cpu%u/cpufreq/scaling_min_freq", cpu);
        put("1200000 40\n4800000 60\n", CPU "/cpu%u/cpufreq/stats/time_in_state", cpu);
        put_state(cpu, 0, "POLL\n", "100\n", "1000\n");
        put_state(cpu, 1, "C1\n", "200\n", "2000\n");
        put_state(cpu, 2, "C6\n", "300\n", "3000\n");
    }
    choose(root);
    return 0;
}

static void test_recorded_times(void **state)
{
    SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION now[MOST];
    SYSTEM_CONTEXT_SWITCH_INFORMATION switches;
    const int64_t unit = 100000;

    assert_int_equal(times(now), 4);
    assert_int_equal(now[0].IdleTime.QuadPart, 1005 * unit);
    assert_int_equal(now[0].UserTime.QuadPart, 100 * unit);
    assert_int_equal(now[0].KernelTime.QuadPart, 1055 * unit);
    assert_int_equal(now[0].InterruptCount, 10);
    assert_int_equal(now[1].KernelTime.QuadPart, (1 + 2 + 1 + 1 + 1) * unit);
    assert_int_equal(now[1].UserTime.QuadPart, 2 * unit);
    assert_int_equal(now[2].KernelTime.QuadPart, 0);
    assert_int_equal(now[3].IdleTime.QuadPart, 7 * unit);
    assert_int_equal(now[3].InterruptCount, 30);
    /* Time passes. The time of waiting for disks may go backwards: idleness does not. */
    put("cpu  0 0 0 0\ncpu0 150 0 60 1010 2 3 4 5 0 0\ncpu1 1 1 1 1 1 1 1 1 1 1\n"
        "cpu3 0 0 0 7 0 0 0 0 0 0\nctxt 5100\n",
        "proc/stat");
    put("      CPU0  CPU1  CPU3\n  1:  15  20  30  x\n", "proc/interrupts");
    assert_int_equal(times(now), 4);
    assert_in_range(now[0].IdleTime.QuadPart, 1012 * unit, 1015 * unit);
    assert_int_equal(now[0].UserTime.QuadPart, 150 * unit);
    assert_int_equal(now[0].KernelTime.QuadPart - now[0].IdleTime.QuadPart,
                     (60 + 3 + 4 + 5) * unit);
    assert_int_equal(now[0].DpcTime.QuadPart, 4 * unit);
    assert_int_equal(now[0].InterruptTime.QuadPart, 3 * unit);
    assert_int_equal(now[0].InterruptCount, 15);
    assert_int_equal(query(0x24, &switches, sizeof(switches), NULL), STATUS_SUCCESS);
    assert_int_equal(switches.ContextSwitches, 5100);
}

static void test_recorded_power(void **state)
{
    PROCESSOR_POWER_INFORMATION power[4];
    SYSTEM_PROCESSOR_POWER_INFORMATION percents[4];

    assert_int_equal(prcb_NtPowerInformation(11, NULL, 0, power, sizeof(power)), STATUS_SUCCESS);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(power[i].Number, i);
        assert_int_equal(power[i].MaxMhz, 4800);
        assert_int_equal(power[i].CurrentMhz, 1200);
        assert_int_equal(power[i].MhzLimit, 3600);
        assert_int_equal(power[i].MaxIdleState, 2);
    }
    assert_int_equal(query(0x3d, percents, sizeof(percents), NULL), STATUS_SUCCESS);
    assert_int_equal(percents[1].CurrentFrequency, 25);
    assert_int_equal(percents[1].ThermalLimitFrequency, 75);
    assert_int_equal(percents[1].ProcessorMinThrottle, 17);
    assert_int_equal(percents[1].NumberOfFrequencies, 2);
    assert_null(prcb_nt_absent(0x3d, 0));
    assert_null(prcb_nt_absent(0x64, 4));
}

/* Without cpufreq the present frequency is the nominal one, as Windows shows it. */
static void test_recorded_no_cpufreq(void **state)
{
    PROCESSOR_POWER_INFORMATION power[4];

    put("0 0\n", CPU "/cpu0/cpufreq/cpuinfo_max_freq");
    put("0 0\n", CPU "/cpu0/cpufreq/scaling_max_freq");
    choose(root);
    assert_int_equal(prcb_NtPowerInformation(11, NULL, 0, power, sizeof(power)), STATUS_SUCCESS);
    assert_int_equal(power[0].CurrentMhz, 1200);
    assert_int_equal(power[0].MaxMhz, 1200);
    assert_int_equal(power[0].MhzLimit, 1200);
    assert_int_equal(power[1].MaxMhz, 4800);
    assert_int_equal(power[1].MhzLimit, 3600);
}

static void test_recorded_idle(void **state)
{
    SYSTEM_PROCESSOR_IDLE_INFORMATION idle[4];

    assert_int_equal(query(0x2a, idle, sizeof(idle), NULL), STATUS_SUCCESS);
    assert_int_equal(idle[3].C2Time, 30000);
    assert_int_equal(idle[3].C2Transitions, 300);
    put_state(0, 0, "POLL\n", "107\n", "1070\n");
    put_state(0, 1, "C1\n", "211\n", "2110\n");
    put_state(0, 2, "C6\n", "313\n", "3130\n");
    assert_int_equal(query(0x2a, idle, sizeof(idle), NULL), STATUS_SUCCESS);
    assert_int_equal(idle[0].C1Time, 21100); /* since the start, in 100 ns */
    assert_int_equal(idle[0].C1Transitions, 211);
    assert_int_equal(idle[0].C2Time, 31300);
    assert_int_equal(idle[0].C2Transitions, 313);
    assert_int_equal(idle[0].C3Time, 0);
    assert_null(prcb_nt_absent(0x2a, 8));
}

/* 256 processors are four groups, each told for itself and all of them by their number. */
static void test_recorded_many(void **state)
{
    char stat[16384] = "cpu 0 0 0 0\n";
    SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION group[MOST];
    uint32_t length;

    for (unsigned cpu = 0; cpu < 256; cpu++)
        sprintf(stat + strlen(stat), "cpu%u %u 0 %u %u 0 0 0 0 0 0\n", cpu, cpu, 2 * cpu, 1000);
    strcat(stat, "ctxt 1\n");
    put(stat, "proc/stat");
    put("0-255\n", CPU "/possible");
    put("0-255\n", CPU "/online");
    choose(root);
    assert_int_equal(prcb_KeQueryActiveGroupCount(), 4);
    for (uint16_t number = 0; number < 4; number++) {
        assert_int_equal(prcb_NtQuerySystemInformationEx(0x08, &number, sizeof(number), group,
                                                         sizeof(group), &length),
                         STATUS_SUCCESS);
        assert_int_equal(length, 64 * sizeof(group[0]));
        for (unsigned i = 0; i < 64; i++) {
            assert_int_equal(group[i].UserTime.QuadPart, (64 * number + i) * 100000);
            assert_int_equal(group[i].KernelTime.QuadPart, (2 * (64 * number + i) + 1000) * 100000);
        }
    }
}

/* Average frequency as a process viewer works it out of the distribution: by what was added. */
static void test_recorded_distribution(void **state)
{
    uint32_t head[64], length, at;
    uint64_t before[4], after[4];

    assert_int_equal(query(0x64, head, sizeof(head), &length), STATUS_SUCCESS);
    at = head[1 + 3] / 4; /* the last processor's */
    assert_int_equal(head[0], 4);
    assert_int_equal(head[1], 24); /* behind the offsets, to a multiple of 8 */
    assert_int_equal(head[at], 3);
    assert_int_equal(head[at + 1], 2);
    memcpy(before, &head[at + 2], sizeof(before));
    put("1200000 70\n4800000 70\n", CPU "/cpu3/cpufreq/stats/time_in_state");
    assert_int_equal(query(0x64, head, sizeof(head), &length), STATUS_SUCCESS);
    memcpy(after, &head[at + 2], sizeof(after));
    assert_int_equal(before[1], 25);
    assert_int_equal(before[3], 100);
    /* 30 ticks at 1200, 10 at 4800 MHz */
    assert_int_equal(((after[0] - before[0]) * 25 * 4800 + (after[2] - before[2]) * 100 * 4800) /
                         (after[0] - before[0] + after[2] - before[2]) / 100,
                     2100);
}

static void test_recorded_nothing(void **state)
{
    SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION now[MOST];

    choose("/tmp/prcb-nt-live-nothing");
    assert_int_not_equal(query(0x08, now, sizeof(now), NULL), STATUS_SUCCESS);
    assert_true(strlen(prcb_nt_error_text()) > 10);
    choose(NULL);
    assert_true(times(now) > 0);
}

static int make_root(void **state)
{
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[128];

    prcb_nt_set_processors(NULL);
    snprintf(command, sizeof(command), "rm -r %s", root);
    return system(command);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_processors, this_machine),
        cmocka_unit_test(test_switches),
        cmocka_unit_test(test_monotonic),
        cmocka_unit_test(test_classes_agree),
        cmocka_unit_test(test_cycles),
        cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_absent),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_time_adjustment),
        cmocka_unit_test(test_hotplug),
    };
    const struct CMUnitTest recorded[] = {
        cmocka_unit_test_setup(test_recorded_times, record),
        cmocka_unit_test_setup(test_recorded_power, record),
        cmocka_unit_test_setup(test_recorded_no_cpufreq, record),
        cmocka_unit_test_setup(test_recorded_idle, record),
        cmocka_unit_test_setup(test_recorded_distribution, record),
        cmocka_unit_test_setup(test_recorded_many, record),
        cmocka_unit_test(test_recorded_nothing),
    };
    int failed;

    on_bpf = argc > 1 && !strcmp(argv[1], "bpf");
    choose(NULL);
    if (prcb_nt_processors_tier() == PRCB_TIER_AUTO) {
        printf("skipped: %s\n", prcb_nt_error_text());
        return on_bpf ? 77 : 1;
    }
    failed =
        cmocka_run_group_tests_name(on_bpf ? "nt live, bpf tier" : "nt live", tests, NULL, NULL);
    if (!on_bpf)
        failed |= cmocka_run_group_tests_name("nt recorded", recorded, make_root, remove_root);
    return failed;
}
