/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Processors by procfs and sysfs: the parsers on text as the kernel writes it and as it never
 * would, and views of machines made up from the kernel's documented formats.
 */
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cpu_files.h"
#include "processors_view.h"
#include "realtime.h"

/* ---- parsers ---- */

static void lists(void **state)
{
    static const struct {
        const char *text;
        int result;
        uint32_t end;
        const char *set; /* of the first eight */
    } cases[] = {
        {"0\n", 0, 1, "10000000"},       {"0-3\n", 0, 4, "11110000"},
        {"0,2-3,7\n", 0, 8, "10110001"}, {"0-255\n", 0, 256, "11111111"},
        {"\n", 0, 0, "00000000"},        {"", 0, 0, "00000000"},
        {"1", 0, 2, "01000000"},         {"3-1\n", -EBADMSG, 0, NULL},
        {"0-\n", -EBADMSG, 0, NULL},     {"-1\n", -EBADMSG, 0, NULL},
        {"0,\n", -EBADMSG, 0, NULL},     {",0\n", -EBADMSG, 0, NULL},
        {"0;1\n", -EBADMSG, 0, NULL},    {"0-8191\n", 0, 8192, "11111111"},
        {"0-8192\n", -EBADMSG, 0, NULL}, {"99999999999999999999\n", -EBADMSG, 0, NULL},
        {"0 1\n", -EBADMSG, 0, NULL},    {"0\n1\n", -EBADMSG, 0, NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool set[8] = {true, false, true};
        uint32_t end = 77;

        assert_int_equal(cpu_parse_list(cases[i].text, strlen(cases[i].text), set, 8, &end),
                         cases[i].result);
        if (cases[i].result) {
            assert_true(set[0] && !set[1] && set[2] && end == 77);
            continue;
        }
        assert_int_equal(end, cases[i].end);
        for (int k = 0; k < 8; k++)
            assert_int_equal(set[k], cases[i].set[k] == '1');
    }
}

static int stat_of(const char *text, struct cpu_stat *ret)
{
    const char *at = text;

    return cpu_parse_stat(&at, text + strlen(text), ret);
}

static void stat_lines(void **state)
{
    static const char text[] = "cpu  10 20 30 40 50 60 70 80 90 100\n"
                               "cpu0 1 2 3 4 5 6 7 8 9 10\n"
                               "cpu17 11 12 13 14 15 16 17 18 19 20 21\n"
                               "intr 1 2 3\n"
                               "cpu9 1 1 1 1\n";
    const char *at = text, *end = text + strlen(text);
    struct cpu_stat stat;

    assert_int_equal(cpu_parse_stat(&at, end, &stat), 1);
    assert_int_equal(stat.number, 0);
    assert_int_equal(stat.fields, 8);
    assert_int_equal(stat.ticks[CPU_STAT_USER], 1);
    assert_int_equal(stat.ticks[CPU_STAT_STEAL], 8);
    assert_int_equal(cpu_parse_stat(&at, end, &stat), 1);
    assert_int_equal(stat.number, 17);
    assert_int_equal(stat.ticks[CPU_STAT_IOWAIT], 15);
    assert_int_equal(cpu_parse_stat(&at, end, &stat), 0); /* the lines of processors are over */

    assert_int_equal(stat_of("cpu0 1 2 3 4\n", &stat), 1); /* 2.4 */
    assert_int_equal(stat.fields, 4);
    assert_int_equal(stat_of("cpu3 1 2 3 4 5 6 7", &stat), 1);
    assert_int_equal(stat.fields, 7);
    assert_int_equal(stat_of("", &stat), 0);
    assert_int_equal(stat_of("cpu0 1 2 3\n", &stat), -EBADMSG);
    assert_int_equal(stat_of("cpu0 1 2 3 x\n", &stat), -EBADMSG);
    assert_int_equal(stat_of("cpu0 1 2 3 4 5x\n", &stat), -EBADMSG);
    assert_int_equal(stat_of("cpu0x 1 2 3 4\n", &stat), -EBADMSG);
    assert_int_equal(stat_of("cpu8192 1 2 3 4\n", &stat), -EBADMSG);
    assert_int_equal(stat_of("cpu0 1 2 3 18446744073709551616\n", &stat), -EBADMSG);
    assert_int_equal(stat_of("cpu0 -1 2 3 4\n", &stat), -EBADMSG);
}

static const char interrupts[] = "           CPU0       CPU2       \n"
                                 "  0:         38          0   IO-APIC   2-edge      timer\n"
                                 " 24:          7          8   PCI-MSI 512-edge      eth0 4\n"
                                 "NMI:          1          2   Non-maskable interrupts\n"
                                 "LOC:       1000       2000   Local timer interrupts\n"
                                 "TLB:          5          6   TLB shootdowns\n"
                                 "ERR:          9\n"
                                 "MIS:          0\n"
                                 "\n";

static void columns(void **state)
{
    static const char *const skip[] = {"TLB", NULL};
    static const char one[] = "           CPU0       \n"
                              "  0:         38   IO-APIC   2-edge      timer\n"
                              "PIW:          2   Posted-interrupt wakeup event\n"
                              "ERR:          9\n"
                              "MIS:          5\n";
    uint64_t sums[4] = {9, 9, 9, 9}, narrow[2];
    static const char *const broken[] = {"",       "\n",        "no header\n",
                                         "CPUx\n", "CPU9999\n", "CPU0\nno colon\n"};

    assert_int_equal(cpu_parse_columns(interrupts, strlen(interrupts), skip, sums, 4), 0);
    assert_int_equal(sums[0], 38 + 7 + 1 + 1000);
    assert_int_equal(sums[1], 0);
    assert_int_equal(sums[2], 8 + 2 + 2000);
    assert_int_equal(sums[3], 0);
    /* On one processor totals of the system look like a column. */
    assert_int_equal(cpu_parse_columns(one, strlen(one), cpu_not_interrupts, sums, 1), 0);
    assert_int_equal(sums[0], 38 + 2);
    /* A processor beyond the room is left out, not written. */
    assert_int_equal(cpu_parse_columns(interrupts, strlen(interrupts), NULL, narrow, 2), 0);
    assert_int_equal(narrow[0], 38 + 7 + 1 + 1000 + 5);
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
        assert_int_equal(cpu_parse_columns(broken[i], strlen(broken[i]), NULL, sums, 4), -EBADMSG);
}

static void small_files(void **state)
{
    uint64_t number = 7;
    uint32_t mhz[3];
    char word[6], long_name[16];
    static const char cpuinfo[] = "processor\t: 0\nmodel name\t: x : y\ncpu MHz\t\t: 2894.561\n\n"
                                  "processor\t: 2\ncpu MHz\t\t: 800.000\n";

    assert_int_equal(cpu_parse_number("123\n", 4, &number), 0);
    assert_int_equal(number, 123);
    assert_int_equal(cpu_parse_number("", 0, &number), -EBADMSG);
    assert_int_equal(cpu_parse_number("<unknown>\n", 10, &number), -EBADMSG);
    assert_int_equal(cpu_parse_number("1 2\n", 4, &number), -EBADMSG);
    assert_int_equal(cpu_parse_number("1\n2\n", 4, &number), -EBADMSG);
    assert_int_equal(number, 123);
    assert_int_equal(cpu_parse_name("C1E\n", 4, word, sizeof(word)), 0);
    assert_string_equal(word, "C1E");
    assert_int_equal(cpu_parse_name("a\x1b[31mb c\n", 10, word, sizeof(word)), 0);
    assert_string_equal(word, "a?[31");
    assert_int_equal(cpu_parse_name("haltpoll idle \n", 15, long_name, sizeof(long_name)), 0);
    assert_string_equal(long_name, "haltpoll idle");
    assert_int_equal(cpu_parse_name(" \n", 2, word, sizeof(word)), -EBADMSG);
    assert_int_equal(cpu_parse_name("\n", 1, word, sizeof(word)), -EBADMSG);
    assert_int_equal(cpu_parse_mhz(cpuinfo, strlen(cpuinfo), mhz, 3), 0);
    assert_int_equal(mhz[0], 2894);
    assert_int_equal(mhz[1], 0);
    assert_int_equal(mhz[2], 800);
}

/* ---- machines that are made up ---- */

static char root[32];

static int make_root(void **state)
{
    strcpy(root, "/tmp/prcb-cpus-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    return remove(path);
}

static int remove_root(void **state)
{
    return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(const char *path, const char *format, ...)
{
    char whole[512];
    va_list args;
    FILE *file;

    snprintf(whole, sizeof(whole), "%s/%s", root, path);
    for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(whole, 0777);
        *at = '/';
    }
    file = fopen(whole, "we");
    assert_non_null(file);
    va_start(args, format);
    vfprintf(file, format, args);
    va_end(args);
    fclose(file);
}

#define CPU "sys/devices/system/cpu/"

static void put_cpu(uint32_t number, const char *file, uint64_t value)
{
    char path[256];

    snprintf(path, sizeof(path), CPU "cpu%u/%s", number, file);
    put(path, "%llu\n", (unsigned long long)value);
}

static void put_state(uint32_t number, uint32_t state, const char *name, uint64_t usage,
                      uint64_t time)
{
    char path[192];

    snprintf(path, sizeof(path), CPU "cpu%u/cpuidle/state%u/name", number, state);
    put(path, "%s\n", name);
    snprintf(path, sizeof(path), "cpuidle/state%u/usage", state);
    put_cpu(number, path, usage);
    snprintf(path, sizeof(path), "cpuidle/state%u/time", state);
    put_cpu(number, path, time);
}

static struct prcb_processors *open_root(void)
{
    struct prcb_processors_options options = {.size = sizeof(options), .root = root};
    struct prcb_processors *v = NULL;
    struct prcb_error err = {0};

    if (prcb_processors_open(&options, &v, &err))
        fail_msg("prcb_processors_open: %s", err.text);
    assert_int_equal(prcb_processors_tier(v), PRCB_TIER_PERF);
    return v;
}

static void refresh(struct prcb_processors *v)
{
    struct prcb_error err = {0};

    if (prcb_processors_refresh(v, &err))
        fail_msg("prcb_processors_refresh: %s", err.text);
}

static struct prcb_processor read_one(struct prcb_processors *v, uint32_t number)
{
    struct prcb_processor r = {.size = sizeof(r)};

    assert_int_equal(prcb_processor_read(v, number, &r), 0);
    return r;
}

/* A laptop: four idle states, intel_pstate, thermal throttling. */
static void put_laptop(void)
{
    put(CPU "possible", "0-1\n");
    put(CPU "online", "0-1\n");
    put("proc/stat", "cpu  300 0 0 3000 0 0 0 0 0 0\n"
                     "cpu0 100 10 50 1000 20 3 4 5 6 7\n"
                     "cpu1 200 20 60 2000 30 5 6 7 8 9\n"
                     "intr 0\nctxt 1\n");
    put("proc/interrupts", "%s",
        "           CPU0       CPU1\nLOC:  100  200  timer\nTLB: 50 60 x\n");
    put("proc/softirqs", "%s", "           CPU0       CPU1\n   HI: 1 2\nTIMER: 10 20\n");
    for (uint32_t i = 0; i < 2; i++) {
        put_state(i, 0, "POLL", 10, 100);
        put_state(i, 1, "C1", 20, 2000);
        put_state(i, 2, "C1E", 30, 30000);
        put_state(i, 3, "C6", 40, 400000);
        put_cpu(i, "cpufreq/scaling_cur_freq", 1200123 + i);
        put_cpu(i, "cpufreq/cpuinfo_max_freq", 4800000);
        put_cpu(i, "cpufreq/scaling_max_freq", 3600000);
        put_cpu(i, "cpufreq/scaling_min_freq", 400000);
        put_cpu(i, "cpufreq/base_frequency", 2800000);
        put_cpu(i, "thermal_throttle/core_throttle_count", 5);
        put_cpu(i, "thermal_throttle/package_throttle_count", 9);
    }
}

static void laptop(void **state)
{
    struct prcb_processors *v;
    struct prcb_processor r;

    put_laptop();
    v = open_root();
    assert_int_equal(prcb_processors_count(v), 2);
    r = read_one(v, 1);
    /* All counts from here. */
    assert_int_equal(r.wall_ns + r.user_ns + r.interrupts + r.idle_states[3].entries + r.throttles,
                     0);
    assert_int_equal(r.flags, PRCB_CPU_ONLINE);
    assert_int_equal(r.mhz, 1200);
    assert_int_equal(r.max_mhz, 4800);
    assert_int_equal(r.limit_mhz, 3600);
    assert_int_equal(r.min_mhz, 400);
    assert_int_equal(r.nominal_mhz, 2800);
    assert_int_equal(r.idle_state_count, 4);
    assert_string_equal(r.idle_states[2].name, "C1E");

    put("proc/stat", "cpu  1\n"
                     "cpu0 100 10 50 1000 20 3 4 5 6 7\n"
                     "cpu1 203 24 65 2006 37 13 15 17 8 9\n");
    put("proc/interrupts", "%s",
        "           CPU0       CPU1\nLOC:  100  233  timer\nTLB: 50 99 x\n");
    put("proc/softirqs", "%s", "           CPU0       CPU1\n   HI: 1 2\nTIMER: 10 24\n");
    put_state(1, 3, "C6", 47, 400900);
    put_cpu(1, "thermal_throttle/core_throttle_count", 8);
    put_cpu(1, "cpufreq/scaling_cur_freq", 3000000);
    refresh(v);
    r = read_one(v, 1);
    assert_int_equal(r.user_ns, 70000000);   /* user and nice; guest is inside */
    assert_int_equal(r.kernel_ns, 50000000); /* system */
    assert_int_equal(r.idle_ns, 130000000);  /* idle and iowait */
    assert_int_equal(r.interrupt_ns, 80000000);
    assert_int_equal(r.dpc_ns, 90000000);
    assert_int_equal(r.steal_ns, 100000000);
    assert_int_equal(r.wall_ns, 520000000);
    assert_int_equal(r.interrupts, 33);
    assert_int_equal(r.dpcs, 4);
    assert_int_equal(r.idle_entries, 7);
    assert_int_equal(r.idle_states[3].entries, 7);
    assert_int_equal(r.idle_states[3].residency_ns, 900000);
    assert_int_equal(r.throttles, 3);
    assert_int_equal(r.mhz, 3000);
    assert_false(r.present & (PRCB_CPU_HAS_SWITCHES | PRCB_CPU_HAS_THREAD |
                              PRCB_CPU_HAS_PERFORMANCE | PRCB_CPU_HAS_MISSED));
    assert_non_null(prcb_processor_absent_reason(v, PRCB_CPU_HAS_SWITCHES));
    assert_non_null(prcb_processor_absent_reason(v, PRCB_CPU_HAS_PERFORMANCE));
    assert_null(prcb_processor_absent_reason(v, PRCB_CPU_HAS_MHZ));
    r = read_one(v, 0);
    assert_int_equal(r.wall_ns, 0);
    prcb_processors_close(v);
}

/* Linux's own figures go backwards at times: idle and iowait, and all of a processor that comes
 * back on line. Ours stand still, and count on from there. */
static void backwards(void **state)
{
    struct prcb_processors *v;
    struct prcb_processor r;

    put_laptop();
    v = open_root();
    put("proc/stat", "cpu  1\ncpu0 110 10 50 990 25 3 4 5\ncpu1 1 1 1 1 1 1 1 1\n");
    put_state(0, 3, "C6", 3, 100);
    refresh(v);
    r = read_one(v, 0);
    assert_int_equal(r.user_ns, 100000000);
    assert_int_equal(r.idle_ns, 50000000); /* iowait grew by 5, idle shrank by 10 */
    assert_int_equal(r.idle_states[3].entries, 0);
    r = read_one(v, 1);
    assert_int_equal(r.wall_ns, 0);
    put("proc/stat", "cpu  1\ncpu0 110 10 50 1000 25 3 4 5\ncpu1 2 1 1 3 1 1 1 1\n");
    refresh(v);
    r = read_one(v, 0);
    assert_int_equal(r.idle_ns, 150000000);
    r = read_one(v, 1);
    assert_int_equal(r.user_ns, 10000000);
    assert_int_equal(r.idle_ns, 20000000);
    prcb_processors_close(v);
}

static void offline(void **state)
{
    struct prcb_processor_times times[4];
    struct prcb_processors *v;
    struct prcb_processor r;

    put_laptop();
    put(CPU "possible", "0-3\n");
    v = open_root();
    assert_int_equal(prcb_processors_count(v), 4);
    r = read_one(v, 3);
    assert_int_equal(r.flags & PRCB_CPU_ONLINE, 0);
    assert_int_equal(r.number, 3);
    assert_false(r.present & PRCB_CPU_HAS_TIMES); /* never seen */
    assert_int_equal(prcb_processor_read(v, 4, &r), -ENXIO);
    assert_int_equal(prcb_processors_times(v, times, sizeof(*times), 5), -ENXIO);

    /* Processor 1 goes. What it had stays. */
    put("proc/stat", "cpu  1\ncpu0 110 10 50 1000 20 3 4 5\ncpu1 205 20 60 2000 30 5 6 7\n");
    refresh(v);
    put("proc/stat", "cpu  1\ncpu0 120 10 50 1000 20 3 4 5\n");
    put(CPU "online", "0\n");
    refresh(v);
    assert_int_equal(prcb_processors_times(v, times, sizeof(*times), 4), 0);
    assert_int_equal(times[0].flags, PRCB_CPU_ONLINE);
    assert_int_equal(times[0].user_ns, 200000000);
    assert_int_equal(times[1].flags, 0);
    assert_int_equal(times[1].user_ns, 50000000);
    assert_int_equal(times[3].wall_ns, 0);
    r = read_one(v, 1);
    assert_int_equal(r.user_ns, 50000000);
    assert_true(r.present & PRCB_CPU_HAS_TIMES);
    prcb_processors_close(v);
}

static int drop(const char *path)
{
    char whole[512];

    snprintf(whole, sizeof(whole), "%s/%s", root, path);
    return nftw(whole, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A processor that is off line has neither a column in proc/interrupts nor a cpuidle folder, and
 * comes back with the counts it had. */
static void off_and_on(void **state)
{
    struct prcb_processors *v;
    struct prcb_processor r;

    put_laptop();
    v = open_root();
    put("proc/interrupts", "%s", "           CPU0       CPU1\nLOC:  100  207  timer\n");
    put_state(1, 3, "C6", 44, 400700);
    refresh(v);
    put("proc/stat", "cpu  1\ncpu0 120 10 50 1000 20 3 4 5\n");
    put("proc/interrupts", "%s", "           CPU0\nLOC:  105  timer\n");
    put(CPU "online", "0\n");
    assert_int_equal(drop(CPU "cpu1/cpuidle"), 0);
    refresh(v);
    r = read_one(v, 1);
    assert_int_equal(r.flags & PRCB_CPU_ONLINE, 0);
    assert_int_equal(r.interrupts, 7);
    assert_int_equal(r.idle_entries, 4);
    assert_int_equal(r.idle_state_count, 4);
    assert_string_equal(r.idle_states[3].name, "C6");
    assert_int_equal(r.idle_states[3].entries, 4);
    assert_int_equal(r.idle_states[3].residency_ns, 700000);
    r = read_one(v, 0);
    assert_int_equal(r.interrupts, 5);

    put("proc/stat", "cpu  1\ncpu0 120 10 50 1000 20 3 4 5\ncpu1 200 20 60 2000 30 5 6 7\n");
    put("proc/interrupts", "%s", "           CPU0       CPU1\nLOC:  105  209  timer\n");
    put(CPU "online", "0-1\n");
    put_state(1, 0, "POLL", 10, 100);
    put_state(1, 1, "C1", 21, 2050);
    put_state(1, 2, "C1E", 30, 30000);
    put_state(1, 3, "C6", 45, 400750);
    refresh(v);
    r = read_one(v, 1);
    assert_int_equal(r.interrupts, 9);
    assert_int_equal(r.idle_entries, 6);
    assert_int_equal(r.idle_states[1].residency_ns, 50000);
    assert_int_equal(r.idle_states[3].residency_ns, 750000);
    prcb_processors_close(v);
}

/* A cpuidle driver that is loaded meanwhile, and one that takes its place. */
static void states_named_anew(void **state)
{
    struct prcb_processors *v;
    struct prcb_processor r;

    put_laptop();
    assert_int_equal(drop(CPU "cpu0/cpuidle"), 0);
    v = open_root();
    r = read_one(v, 0);
    assert_false(r.present & PRCB_CPU_HAS_IDLE_STATES);
    put_state(0, 0, "POLL", 3, 5);
    put_state(1, 0, "C1_ACPI", 4, 6);
    refresh(v);
    r = read_one(v, 0);
    assert_int_equal(r.idle_state_count, 1);
    assert_int_equal(r.idle_states[0].entries, 3);
    assert_int_equal(r.idle_states[0].residency_ns, 5000);
    r = read_one(v, 1);
    assert_string_equal(r.idle_states[0].name, "C1_ACPI");
    assert_int_equal(r.idle_states[0].entries, 0);
    put_state(1, 0, "C1_ACPI", 9, 7);
    refresh(v);
    r = read_one(v, 1);
    assert_int_equal(r.idle_states[0].entries, 5);
    assert_int_equal(r.idle_states[0].residency_ns, 1000);
    prcb_processors_close(v);
}

/* What is asked where the states' counts are not wanted: whether their names may be others. */
static void idle_state_names(void **state)
{
    struct procfs fs = {.root = -1};
    struct cpu_sysfs sysfs = {.present = CPU_SYSFS_MHZ, .mhz = 1};
    char driver[CPU_FILES_NAME] = "before";

    put_laptop();
    assert_int_equal(procfs_open(&fs, root), 0);
    assert_true(cpu_read_idle_driver(&fs, driver) < 0);
    assert_string_equal(driver, "before");
    put(CPU "cpuidle/current_driver", "acpi_idle\n");
    assert_int_equal(cpu_read_idle_driver(&fs, driver), 0);
    assert_string_equal(driver, "acpi_idle");
    assert_true(cpu_has_idle_state(&fs, 1, 3));
    assert_false(cpu_has_idle_state(&fs, 1, 4));
    assert_false(cpu_has_idle_state(&fs, 7, 0));
    cpu_read_idle_states(&fs, 1, &sysfs);
    assert_int_equal(sysfs.idle_state_count, 4);
    assert_string_equal(sysfs.idle_states[3].name, "C6");
    assert_int_equal(sysfs.present, CPU_SYSFS_MHZ | CPU_SYSFS_IDLE);
    assert_int_equal(sysfs.mhz, 1);
    for (uint32_t i = 4; i < CPU_FILES_IDLE_STATES; i++)
        put_state(1, i, "more", 0, 0);
    assert_false(cpu_has_idle_state(&fs, 1, CPU_FILES_IDLE_STATES)); /* no room for one */
    procfs_close(&fs);
}

/* Whoever made the tree: a pipe in the place of a file is no reason to wait for ever. */
static void pipes(void **state)
{
    static const char *const files[] = {"proc/stat", "proc/interrupts", CPU "online",
                                        CPU "cpu0/cpuidle/state1/usage"};

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct prcb_processors_options options = {.size = sizeof(options), .root = root};
        struct prcb_processors *v = NULL;
        struct prcb_error err = {0};
        char whole[512];

        put_laptop();
        drop(files[i]);
        snprintf(whole, sizeof(whole), "%s/%s", root, files[i]);
        assert_int_equal(mkfifo(whole, 0600), 0);
        alarm(20);
        if (!prcb_processors_open(&options, &v, &err))
            prcb_processors_close(v);
        alarm(0);
        assert_int_equal(unlink(whole), 0);
    }
}

/* Next to nothing there: a container's, or a very old kernel. */
static void poor(void **state)
{
    struct prcb_processors *v;
    struct prcb_processor r;

    put("proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4\ncpu1 1 2 3 4\n");
    v = open_root();
    assert_int_equal(prcb_processors_count(v), 2);
    r = read_one(v, 1);
    assert_int_equal(r.present, PRCB_CPU_HAS_TIMES);
    assert_int_equal(r.flags, PRCB_CPU_ONLINE);
    for (int i = 0; i < 20; i++) {
        uint64_t member = 1ull << i;

        assert_int_equal(!!(r.present & member), !prcb_processor_absent_reason(v, member));
    }
    prcb_processors_close(v);
}

#define MANY 256

static void many(void **state)
{
    static char stat_text[MANY * 64], rows[MANY * 32];
    struct prcb_processor_times times[MANY];
    struct prcb_processors *v;
    size_t used = 0, columns_used = 0;

    put(CPU "possible", "0-%d\n", MANY - 1);
    put(CPU "online", "0-99,101-%d\n", MANY - 1);
    for (uint32_t i = 0; i < MANY; i++) {
        if (i != 100)
            used += (size_t)sprintf(stat_text + used, "cpu%u %u 0 0 1000 0 0 0 0 0 0\n", i, i);
        if (i != 100)
            columns_used += (size_t)sprintf(rows + columns_used, " CPU%u", i);
        put_state(i, 0, "C1", i, i);
    }
    put("proc/stat", "cpu 0 0 0 0\n%s", stat_text);
    sprintf(rows + columns_used, "\n");
    put("proc/interrupts", "%s", rows);
    v = open_root();
    assert_int_equal(prcb_processors_count(v), MANY);
    used = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        if (i != 100)
            used += (size_t)sprintf(stat_text + used, "cpu%u %u 0 0 1000 0 0 0 0 0 0\n", i, 2 * i);
    }
    put("proc/stat", "cpu 0 0 0 0\n%s", stat_text);
    refresh(v);
    assert_int_equal(prcb_processors_times(v, times, sizeof(*times), MANY), 0);
    for (uint32_t i = 0; i < MANY; i++) {
        assert_int_equal(times[i].user_ns, i == 100 ? 0 : i * 10000000ull);
        assert_int_equal(times[i].flags, i == 100 ? 0 : PRCB_CPU_ONLINE);
    }
    prcb_processors_close(v);
}

/* A view is not opened on nonsense, and one that is open keeps what it had. */
static void garbage(void **state)
{
    struct prcb_processors_options options = {.size = sizeof(options), .root = root};
    struct prcb_processors *v = NULL;
    struct prcb_error err = {0};
    struct prcb_processor r;

    assert_true(prcb_processors_open(&options, &v, &err) < 0); /* nothing there */
    assert_null(v);
    put(CPU "possible", "many\n");
    put("proc/stat", "cpu0 1 2 3 4\n");
    assert_int_equal(prcb_processors_open(&options, &v, &err), -EBADMSG);
    assert_int_equal(err.code, -EBADMSG);
    put_laptop();
    put("proc/stat", "cpu0 1 2 x 4\n");
    assert_int_equal(prcb_processors_open(&options, &v, &err), -EBADMSG);
    put_laptop();
    put(CPU "cpu0/cpufreq/scaling_cur_freq", "<unknown>\n");
    put(CPU "cpu0/cpuidle/state2/usage", "?\n");
    put("proc/interrupts", "garbage\n");
    v = open_root();
    r = read_one(v, 0);
    assert_false(r.present & (PRCB_CPU_HAS_MHZ | PRCB_CPU_HAS_INTERRUPTS));
    assert_int_equal(r.idle_state_count, 2); /* up to the one that makes no sense */
    put("proc/stat", "cpu0 200 2 3 4 5 6 7 8\ncpu1 nonsense\n");
    assert_int_equal(prcb_processors_refresh(v, &err), -EBADMSG);
    r = read_one(v, 0);
    assert_int_equal(r.user_ns, 0); /* all or nothing */
    prcb_processors_close(v);
}

static void arguments(void **state)
{
    struct prcb_processors_options options = {.size = sizeof(options), .root = root};
    struct {
        struct prcb_processors_options known;
        uint64_t more;
    } longer = {{.size = sizeof(longer), .root = root}, 1};
    struct prcb_processors *v = NULL;
    struct prcb_error err = {0};
    union {
        struct prcb_processor whole;
        struct {
            size_t size;
            uint64_t present;
            uint32_t number;
            uint32_t flags;
            uint64_t untouched;
        } part;
    } r;

    put_laptop();
    options.tier = PRCB_TIER_BPF;
    assert_int_equal(prcb_processors_open(&options, &v, &err), -EINVAL);
    options.tier = 17;
    assert_int_equal(prcb_processors_open(&options, &v, &err), -EINVAL);
    options.tier = PRCB_TIER_AUTO;
    options.flags = 1;
    assert_int_equal(prcb_processors_open(&options, &v, &err), -EINVAL);
    options.flags = 0;
    options.size = sizeof(options.size) - 1;
    assert_int_equal(prcb_processors_open(&options, &v, &err), -EINVAL);
    assert_int_equal(prcb_processors_open(&longer.known, &v, &err), -E2BIG);
    options.size = sizeof(options);
    options.root = "/nonexistent";
    assert_int_equal(prcb_processors_open(&options, &v, &err), -ENOENT);
    assert_null(v);
    prcb_processors_close(NULL);

    v = open_root();
    memset(&r, 0xaa, sizeof(r));
    r.part.size = offsetof(struct prcb_processor, flags) + sizeof(r.part.flags);
    assert_int_equal(prcb_processor_read(v, 1, &r.whole), 0);
    assert_int_equal(r.part.number, 1);
    assert_int_equal(r.part.untouched, 0xaaaaaaaaaaaaaaaaull);
    r.part.size = sizeof(r.part.size) - 1;
    assert_int_equal(prcb_processor_read(v, 1, &r.whole), -EINVAL);
    assert_null(prcb_processor_absent_reason(v, 0));
    assert_null(prcb_processor_absent_reason(v, 1ull << 63));
    prcb_processors_close(v);
}

static void differences(void **state)
{
    struct prcb_processor a = {.size = sizeof(a)}, b = {.size = sizeof(b)}, d;

    a.present = PRCB_CPU_HAS_TIMES | PRCB_CPU_HAS_INTERRUPTS;
    b.present = PRCB_CPU_HAS_TIMES | PRCB_CPU_HAS_MHZ | PRCB_CPU_HAS_INTERRUPTS;
    a.wall_ns = 5;
    b.wall_ns = 7;
    a.interrupts = 9; /* of another processor, or the wrong way round: no wrap */
    b.interrupts = 3;
    a.idle_state_count = 1;
    b.idle_state_count = 2;
    a.idle_states[0].entries = 1;
    b.idle_states[0].entries = 4;
    b.idle_states[1].entries = 6;
    b.mhz = 1000;
    prcb_processor_sub(&b, &a, &d);
    assert_int_equal(d.size, sizeof(d));
    assert_int_equal(d.wall_ns, 2);
    assert_int_equal(d.interrupts, 0);
    assert_int_equal(d.idle_states[0].entries, 3);
    assert_int_equal(d.idle_states[1].entries, 6);
    assert_int_equal(d.mhz, 1000);
    assert_int_equal(d.present, PRCB_CPU_HAS_TIMES | PRCB_CPU_HAS_MHZ | PRCB_CPU_HAS_INTERRUPTS);
    prcb_processor_sub(&b, NULL, &d); /* as prcb_account_sub: from the beginning */
    assert_memory_equal(&d, &b, sizeof(d));
}

static void realtime(void **state)
{
    assert_false(kernel_is_realtime(root));
    put("sys/kernel/realtime", "0\n");
    assert_false(kernel_is_realtime(root));
    put("sys/kernel/realtime", "yes\n");
    assert_false(kernel_is_realtime(root));
    put("sys/kernel/realtime", "1\n");
    assert_true(kernel_is_realtime(root));
    put("sys/kernel/realtime", "0\n");
    put("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 7.3.4-1 (2026-11-10)\n");
    assert_false(kernel_is_realtime(root));
    put("proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian 7.3~rc7-1~exp1 (2026-11-02)\n");
    assert_true(kernel_is_realtime(root));
}

#define ROOT_TEST(function) cmocka_unit_test_setup_teardown(function, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists),
        cmocka_unit_test(stat_lines),
        cmocka_unit_test(columns),
        cmocka_unit_test(small_files),
        ROOT_TEST(laptop),
        ROOT_TEST(backwards),
        ROOT_TEST(offline),
        ROOT_TEST(off_and_on),
        ROOT_TEST(states_named_anew),
        ROOT_TEST(idle_state_names),
        ROOT_TEST(pipes),
        ROOT_TEST(poor),
        ROOT_TEST(many),
        ROOT_TEST(garbage),
        ROOT_TEST(arguments),
        ROOT_TEST(realtime),
        cmocka_unit_test(differences),
    };

    return cmocka_run_group_tests_name("cpu_files", tests, NULL, NULL);
}
