/* SPDX-License-Identifier: BSD-2-Clause
 *
 * NtQuerySystemInformation, its Ex form and NtPowerInformation over processors that are the test's
 * own: every row of their rules, and every byte of what they fill in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_processors.h"
#include "view.h"

#define FILLER 0x5a
#define ROOM   16384

/* ---- a machine: what /proc and /sys say of it, and where the caller runs ---- */

static char root[] = "/tmp/prcb-nt-query-XXXXXX";
static int caller_cpu;

int sched_getcpu(void)
{
    return caller_cpu;
}

static void put_file(const char *path, const char *text)
{
    char name[256], *slash = name + strlen(root) + 1;
    FILE *file;

    snprintf(name, sizeof(name), "%s/%s", root, path);
    for (; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(name, 0755);
        *slash = '/';
    }
    file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void remove_file(const char *path)
{
    char name[256];

    snprintf(name, sizeof(name), "%s/%s", root, path);
    unlink(name);
}

static void machine(uint32_t count, const char *stat)
{
    struct prcb_processors_options options = {.size = sizeof(options), .root = root};

    fake_fill(count);
    caller_cpu = 0;
    put_file("proc/stat", stat);
    put_file("proc/interrupts", "");
    put_file("proc/softirqs", "");
    assert_int_equal(prcb_nt_set_time_mode(PRCB_NT_TIME_V310), 0);
    assert_int_equal(prcb_nt_set_processors(&options), 0);
    fake.opens = fake.closes = 0;
}

/* Since boot and since the opening are the same there. */
static int three(void **state)
{
    machine(3, "cpu 0 0 0 0\nctxt 0\n");
    return 0;
}

/* ---- a buffer that shows what was written ---- */

static unsigned char buffer[ROOM] __attribute__((aligned(8)));
static uint32_t told;

static void clear(void)
{
    memset(buffer, FILLER, sizeof(buffer));
    told = 0xfeedface;
}

static bool untouched_from(size_t offset)
{
    for (size_t i = offset; i < sizeof(buffer); i++) {
        if (buffer[i] != FILLER)
            return false;
    }
    return true;
}

static NTSTATUS query(uint32_t number, uint32_t length)
{
    clear();
    return prcb_NtQuerySystemInformation(number, buffer, length, &told);
}

static NTSTATUS query_group(uint32_t number, uint16_t group, uint32_t length)
{
    clear();
    return prcb_NtQuerySystemInformationEx(number, &group, sizeof(group), buffer, length, &told);
}

/* ---- lengths ---- */

static void test_multiples(void **state)
{
    static const uint32_t classes[][2] = {{0x08, 0x30}, {0x8d, 0x48}};

    for (unsigned c = 0; c < 2; c++) {
        uint32_t size = classes[c][1], whole = 3 * size;

        for (uint32_t length = 0; length <= 5 * size + 1; length++) {
            NTSTATUS status = query(classes[c][0], length);
            uint32_t fit = length / size < 3 ? length / size : 3;

            if (!length || length % size) {
                assert_int_equal(status, STATUS_INFO_LENGTH_MISMATCH);
                assert_int_equal(told, whole);
                assert_true(untouched_from(0));
            } else {
                assert_int_equal(status, STATUS_SUCCESS);
                assert_int_equal(told, fit * size);
                assert_true(untouched_from(fit * size));
                assert_false(untouched_from(fit * size - 1)); /* Spare0 is 0 */
            }
        }
        clear();
        assert_int_equal(prcb_NtQuerySystemInformation(classes[c][0], NULL, 0, &told),
                         STATUS_INFO_LENGTH_MISMATCH);
        assert_int_equal(told, whole);
    }
}

static void test_whole_arrays(void **state)
{
    static const uint32_t classes[][2] = {{0x17, 0x18}, {0x2a, 0x30}, {0x3d, 0x50}};

    for (unsigned c = 0; c < 3; c++) {
        uint32_t whole = 3 * classes[c][1];

        for (uint32_t length = 0; length <= whole + 9; length++) {
            NTSTATUS status = query(classes[c][0], length);

            assert_int_equal(status, length < whole ? STATUS_INFO_LENGTH_MISMATCH : STATUS_SUCCESS);
            assert_int_equal(told, whole);
            assert_true(untouched_from(length < whole ? 0 : whole));
        }
    }
}

static void test_cycle_arrays(void **state)
{
    static const uint32_t classes[] = {0x53, 0x6c};

    for (unsigned c = 0; c < 2; c++) {
        for (uint32_t length = 0; length <= 40; length++) {
            NTSTATUS status = query(classes[c], length);
            uint32_t fit = length / 8 < 3 ? length / 8 : 3;

            assert_int_equal(status, length < 8    ? STATUS_BUFFER_TOO_SMALL
                                     : length < 24 ? STATUS_INFO_LENGTH_MISMATCH
                                                   : STATUS_SUCCESS);
            assert_int_equal(told, 24);
            assert_true(untouched_from(fit * 8));
            for (uint32_t i = 0; i < fit; i++) {
                uint64_t cycles;

                memcpy(&cycles, buffer + 8 * i, 8);
                assert_int_not_equal(cycles, 0x5a5a5a5a5a5a5a5a);
            }
        }
    }
}

static void test_one_for_all(void **state)
{
    for (uint32_t length = 0; length < 0x40; length++) {
        assert_int_equal(query(0x1c, length),
                         length == 0x0c ? STATUS_SUCCESS : STATUS_INFO_LENGTH_MISMATCH);
        assert_int_equal(told, 0x0c);
        assert_true(untouched_from(length == 0x0c ? 0x0c : 0));
        assert_int_equal(query(0x24, length),
                         length < 0x30 ? STATUS_INFO_LENGTH_MISMATCH : STATUS_SUCCESS);
        assert_int_equal(told, 0x30);
        assert_true(untouched_from(length < 0x30 ? 0 : 0x30));
        assert_int_equal(query(0x01, length),
                         length < 0x0c ? STATUS_INFO_LENGTH_MISMATCH : STATUS_SUCCESS);
        assert_int_equal(told, 0x0c);
        assert_true(untouched_from(length < 0x0c ? 0 : 0x0c));
    }
}

/* Before Windows 10 it had 0x138 bytes. */
static void test_tail(void **state)
{
    for (uint32_t length = 0x130; length < 0x160; length++) {
        const uint32_t wanted = length < 0x138 ? 0x138 : length < 0x158 ? length : 0x158;

        assert_int_equal(query(0x02, length),
                         length < 0x138 ? STATUS_INFO_LENGTH_MISMATCH : STATUS_SUCCESS);
        assert_int_equal(told, wanted);
        assert_true(untouched_from(length < 0x138 ? 0 : wanted));
    }
}

static void test_classes(void **state)
{
    assert_int_equal(query(0x04, 0x30), STATUS_INVALID_INFO_CLASS);
    assert_int_equal(query(UINT32_MAX, 0x30), STATUS_INVALID_INFO_CLASS);
    assert_int_equal(query(0x81, 0x10), STATUS_INVALID_INFO_CLASS); /* can be set only */
    assert_int_equal(told, 0xfeedface);
    assert_int_equal(prcb_NtQuerySystemInformation(0xffff, NULL, 0, NULL),
                     STATUS_INVALID_INFO_CLASS);
    assert_true(untouched_from(0));
}

/* ---- memory ---- */

static void test_buffers(void **state)
{
    long page = sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t length = 3 * 0x30;

    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + page, page, PROT_READ), 0);
    for (int i = 1; i < 4; i++)
        assert_int_equal(prcb_NtQuerySystemInformation(8, pages + i, length, &told),
                         STATUS_DATATYPE_MISALIGNMENT);
    assert_int_equal(prcb_NtQuerySystemInformation(8, pages + 4, length, &told), STATUS_SUCCESS);
    assert_int_equal(prcb_NtQuerySystemInformation(8, NULL, length, &told),
                     STATUS_ACCESS_VIOLATION);
    assert_int_equal(prcb_NtQuerySystemInformation(8, pages + page, length, &told),
                     STATUS_ACCESS_VIOLATION);
    /* The whole of it is looked at, also what would not be written: the array fits. */
    memset(pages, FILLER, page);
    assert_int_equal(prcb_NtQuerySystemInformation(8, pages + page - length, length + 0x30, &told),
                     STATUS_ACCESS_VIOLATION);
    assert_int_equal(pages[page - length], FILLER);
    assert_int_equal(prcb_NtQuerySystemInformation(8, pages + page - length, length, &told),
                     STATUS_SUCCESS);
    assert_int_equal(prcb_NtQuerySystemInformation(8, (void *)(UINTPTR_MAX - 0x0f), length, &told),
                     STATUS_ACCESS_VIOLATION);
    assert_int_equal(prcb_NtQuerySystemInformation(8, (void *)(UINTPTR_MAX / 2 + 1), length, &told),
                     STATUS_ACCESS_VIOLATION);
    munmap(pages, 2 * page);
}

static void test_return_length(void **state)
{
    static const uint32_t read_only = 7;

    clear();
    assert_int_equal(prcb_NtQuerySystemInformation(8, buffer, 0x30, NULL), STATUS_SUCCESS);
    clear();
    assert_int_equal(prcb_NtQuerySystemInformation(8, NULL, 0, NULL), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(prcb_NtQuerySystemInformation(8, buffer, 0x30, (uint32_t *)&read_only),
                     STATUS_ACCESS_VIOLATION);
    assert_int_equal(
        prcb_NtQuerySystemInformation(8, buffer, 0x30, (uint32_t *)(void *)((char *)&told + 1)),
        STATUS_DATATYPE_MISALIGNMENT);
    assert_true(untouched_from(0));
}

/* ---- groups ---- */

static void test_groups(void **state)
{
    uint64_t idle;

    machine(2 * 64 + 3, "cpu 0 0 0 0\nctxt 0\n");
    assert_int_equal(prcb_KeQueryActiveGroupCount(), 3);
    assert_int_equal(prcb_KeQueryActiveProcessorCountEx(0), 64);
    assert_int_equal(prcb_KeQueryActiveProcessorCountEx(2), 3);
    assert_int_equal(prcb_KeQueryActiveProcessorCountEx(3), 0);
    assert_int_equal(prcb_KeQueryActiveProcessorCountEx(PRCB_NT_ALL_GROUPS), 131);
    /* The plain call: the group of where the caller runs. */
    for (unsigned group = 0; group < 3; group++) {
        uint32_t count = group < 2 ? 64 : 3;

        caller_cpu = (int)(64 * group + 1);
        assert_int_equal(query(0x08, 200 * 0x30), STATUS_SUCCESS); /* more than the group has */
        assert_int_equal(told, count * 0x30);
        memcpy(&idle, buffer + 0x30, 8);
        assert_int_equal(idle, fake.cpus[caller_cpu].idle_ns / 100);
        assert_int_equal(query_group(0x08, (uint16_t)group, 200 * 0x30), STATUS_SUCCESS);
        assert_int_equal(told, count * 0x30);
        assert_int_equal(query(0x08, 0), STATUS_INFO_LENGTH_MISMATCH);
        assert_int_equal(told, count * 0x30);
        assert_int_equal(query(0x2a, 200 * 0x30), STATUS_SUCCESS);
        assert_int_equal(told, count * 0x30);
    }
    caller_cpu = 0;
    assert_int_equal(query_group(0x08, 2, 3 * 0x30), STATUS_SUCCESS);
    memcpy(&idle, buffer + 2 * 0x30, 8);
    assert_int_equal(idle, fake.cpus[130].idle_ns / 100);
    assert_int_equal(query_group(0x08, 3, 0x30), STATUS_INVALID_PARAMETER);
    assert_int_equal(query_group(0x08, 0xffff, 0x30), STATUS_INVALID_PARAMETER);
    assert_true(untouched_from(0));
    /* One total for the system, whatever the group. */
    caller_cpu = 130;
    assert_int_equal(query(0x24, 0x30), STATUS_SUCCESS);
}

static NTSTATUS query_all(uint32_t number, uint32_t length)
{
    clear();
    return prcb_nt_query_all_groups(number, buffer, length, &told);
}

/* All processors by one look, where a look reads files of each. */
static void test_all_groups(void **state)
{
    uint64_t idle;

    machine(2 * 64 + 3, "cpu 0 0 0 0\nctxt 0\n");
    fake.tier = PRCB_TIER_PERF;
    assert_int_equal(query_all(0x08, 200 * 0x30), STATUS_SUCCESS);
    fake.refreshes = 0;
    assert_int_equal(query_all(0x08, 200 * 0x30), STATUS_SUCCESS);
    assert_int_equal(fake.refreshes, 1);
    assert_int_equal(told, 131 * 0x30);
    assert_true(untouched_from(131 * 0x30));
    for (unsigned i = 0; i < 131; i++) {
        memcpy(&idle, buffer + i * 0x30, 8);
        assert_int_equal(idle, fake.cpus[i].idle_ns / 100);
    }
    assert_int_equal(prcb_nt_query_all_groups(0x2a, buffer, 131 * 0x30, NULL), STATUS_SUCCESS);
    assert_int_equal(query_all(0x2a, 130 * 0x30), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(told, 131 * 0x30);
    assert_int_equal(query_all(0x08, 5 * 0x30), STATUS_SUCCESS); /* the first ones */
    assert_int_equal(told, 5 * 0x30);
    assert_int_equal(query_all(0x24, 0x30), STATUS_INVALID_INFO_CLASS); /* of the system */
    assert_int_equal(query_all(0xff, 0x30), STATUS_INVALID_INFO_CLASS);
    assert_int_equal(prcb_nt_query_all_groups(0x08, NULL, 0x30, &told), STATUS_ACCESS_VIOLATION);
    fake.refresh_error = -EIO;
    assert_true(query_all(0x08, 200 * 0x30) < 0);
    assert_true(untouched_from(0));
    assert_true(strlen(prcb_nt_error_text()) > 0);
}

static void test_extended(void **state)
{
    static const uint32_t listed[] = {0x08, 0x17, 0x2a, 0x3d, 0x53, 0x64, 0x6c, 0x8d};
    uint16_t groups[4] = {0, 7, 7, 7};

    for (unsigned i = 0; i < sizeof(listed) / sizeof(listed[0]); i++)
        assert_int_equal(query_group(listed[i], 0, 0x1000 / 0x90 * 0x90), STATUS_SUCCESS);
    assert_int_equal(query_group(0x1c, 0, 0x0c), STATUS_INVALID_INFO_CLASS);
    assert_int_equal(query_group(0x24, 0, 0x30), STATUS_INVALID_INFO_CLASS);
    assert_int_equal(query_group(0xff, 0, 0x30), STATUS_INVALID_INFO_CLASS);
    clear();
    assert_int_equal(prcb_NtQuerySystemInformationEx(8, NULL, 2, buffer, 0x30, &told),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_NtQuerySystemInformationEx(8, groups, 0, buffer, 0x30, &told),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_NtQuerySystemInformationEx(0xff, NULL, 0, buffer, 0x30, &told),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_NtQuerySystemInformationEx(8, groups, 1, buffer, 0x30, &told),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_NtQuerySystemInformationEx(8, (char *)groups + 1, 2, buffer, 0x30, &told),
                     STATUS_DATATYPE_MISALIGNMENT);
    assert_int_equal(prcb_NtQuerySystemInformationEx(8, (void *)64, 2, buffer, 0x30, &told),
                     STATUS_ACCESS_VIOLATION);
    /* That there is no such group comes before what is wrong with the buffer. */
    assert_int_equal(prcb_NtQuerySystemInformationEx(8, &groups[1], 2, NULL, 0x30, &told),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_NtQuerySystemInformationEx(8, &groups[1], 2, buffer + 1, 0x30, &told),
                     STATUS_INVALID_PARAMETER);
    assert_true(untouched_from(0));
    assert_int_equal(told, 0xfeedface);
    /* Longer input is taken; then the plain call's rules hold. */
    assert_int_equal(prcb_NtQuerySystemInformationEx(8, groups, 8, buffer, 0x30, &told),
                     STATUS_SUCCESS);
    assert_int_equal(prcb_NtQuerySystemInformationEx(8, groups, 2, NULL, 0x30, &told),
                     STATUS_ACCESS_VIOLATION);
    assert_int_equal(prcb_NtQuerySystemInformationEx(8, groups, 2, buffer, 0x31, &told),
                     STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(told, 0x90);
    assert_int_equal(query_group(0x53, 0, 8), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(told, 24);
    assert_int_equal(prcb_ZwQuerySystemInformationEx(8, groups, 2, buffer, 0x30, &told),
                     STATUS_SUCCESS);
    assert_int_equal(prcb_ZwQuerySystemInformation(8, buffer, 0x30, &told), STATUS_SUCCESS);
}

/* ---- values: expected by the offsets of the structures, not by their names ---- */

static uint64_t u64_at(size_t offset)
{
    uint64_t value;

    memcpy(&value, buffer + offset, sizeof(value));
    return value;
}

static uint32_t u32_at(size_t offset)
{
    uint32_t value;

    memcpy(&value, buffer + offset, sizeof(value));
    return value;
}

static void check_performance(uint32_t size)
{
    for (uint32_t i = 0; i < 3; i++) {
        const struct prcb_processor *cpu = &fake.cpus[i];
        uint32_t at = i * size;

        assert_int_equal(u64_at(at + 0x00), cpu->idle_ns / 100);
        assert_int_equal(u64_at(at + 0x08), (cpu->idle_ns + cpu->kernel_ns + cpu->dpc_ns +
                                             cpu->interrupt_ns + cpu->steal_ns) /
                                                100);
        assert_int_equal(u64_at(at + 0x10), cpu->user_ns / 100);
        assert_int_equal(u64_at(at + 0x18), cpu->dpc_ns / 100);
        assert_int_equal(u64_at(at + 0x20), cpu->interrupt_ns / 100);
        assert_int_equal(u32_at(at + 0x28), 7 + i); /* 33 bits were counted */
        assert_int_equal(u32_at(at + 0x2c), 0);
        for (uint32_t rest = 0x30; rest < size; rest += 8)
            assert_int_equal(u64_at(at + rest), 0);
    }
}

static void test_performance(void **state)
{
    assert_int_equal(query(0x08, 3 * 0x30), STATUS_SUCCESS);
    check_performance(0x30);
    assert_int_equal(query(0x8d, 3 * 0x48), STATUS_SUCCESS);
    check_performance(0x48);
}

static void test_interrupts(void **state)
{
    assert_int_equal(query(0x17, 3 * 0x18), STATUS_SUCCESS);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(u32_at(i * 0x18 + 0x00), 0x1000 + 5 * i);
        assert_int_equal(u32_at(i * 0x18 + 0x04), 0x100 + 3 * i);
        assert_int_equal(u32_at(i * 0x18 + 0x0c), prcb_KeQueryTimeIncrement());
        assert_int_equal(u64_at(i * 0x18 + 0x10), 0);
    }
}

static void test_dpc_rate(void **state)
{
    uint64_t tick = prcb_KeQueryTimeIncrement() * 100ull;
    struct nt_cpu cpu = {.rate_at = 5000, .rate_dpcs = 100};

    assert_int_equal(nt_dpc_rate(&cpu, 180, 5000 + tick - 1), 0); /* no tick yet */
    assert_int_equal(nt_dpc_rate(&cpu, 180, 5000 + tick), 40);    /* (0 + 80) / 2 */
    assert_int_equal(nt_dpc_rate(&cpu, 180, 5000 + 2 * tick), 20);
    assert_int_equal(nt_dpc_rate(&cpu, 180 + 60 * 2, 5000 + 4 * tick), 50); /* 20, 40, 50 */
    assert_int_equal(nt_dpc_rate(&cpu, 300 + 7 * 1000, 5000 + 1004 * tick), 7);
    assert_int_equal(nt_dpc_rate(&cpu, 1ull << 50, 5000 + 1005 * tick), UINT32_MAX);
    assert_int_equal(nt_dpc_rate(&cpu, 0, 5000 + 1205 * tick), 0);
}

static void test_switches(void **state)
{
    assert_int_equal(query(0x24, 0x30), STATUS_SUCCESS);
    assert_int_equal(u32_at(0), (uint32_t)(3 * 0x300001000 + 5 * 3));
    for (uint32_t at = 4; at < 0x2c; at += 4)
        assert_int_equal(u32_at(at), 0);
    assert_int_equal(u32_at(0x2c), 3 * 0x10000 + 7 * 3);
    /* Where processors do not count theirs, the system does. */
    fake.lacking = PRCB_CPU_HAS_SWITCHES;
    put_file("proc/stat", "cpu 0 0 0 0\nctxt 4294967396\n");
    assert_int_equal(query(0x24, 0x30), STATUS_SUCCESS);
    assert_int_equal(u32_at(0), 100);
    assert_null(prcb_nt_absent(0x24, 0));
    assert_non_null(prcb_nt_absent(0x17, 0));
}

static void test_idle(void **state)
{
    assert_int_equal(query(0x2a, 3 * 0x30), STATUS_SUCCESS);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t at = i * 0x30;

        assert_int_equal(u64_at(at), fake.cpus[i].idle_ns / 100);
        for (unsigned c = 1; c < 4; c++) { /* POLL is none of them */
            assert_int_equal(u64_at(at + 8 * c), ((c + 1) * 7000 * 1000 * (i + 1) + 42) / 100);
            assert_int_equal(u32_at(at + 0x1c + 4 * c), 10 * c + i);
        }
        assert_int_equal(u32_at(at + 0x2c), 0);
    }
    /* All below the second go to the third; without cpuidle there is one. */
    strcpy(fake.cpus[0].idle_states[0].name, "C0");
    fake.cpus[1].idle_state_count = 1;
    strcpy(fake.cpus[1].idle_states[0].name, "idle");
    assert_int_equal(query(0x2a, 3 * 0x30), STATUS_SUCCESS);
    assert_int_equal(u64_at(0x08), 7000 * 1000 / 100);
    assert_int_equal(u64_at(0x18), (3 + 4) * 7000 * 1000 / 100);
    assert_int_equal(u32_at(0x28), 20 + 30);
    assert_int_equal(u64_at(0x30 + 0x08), 2 * 7000 * 1000 / 100);
    assert_int_equal(u64_at(0x30 + 0x10), 0);
    assert_int_equal(u32_at(0x30 + 0x20), 1);
}

static void test_power(void **state)
{
    static const uint8_t percents[] = {50, 75, 0, 0, 0, 0, 0, 25, 75};
    const struct prcb_processor *cpu = &fake.cpus[1];

    put_file("sys/devices/system/cpu/cpu1/cpufreq/stats/time_in_state",
             "3600000 100\n900000 7\n1800000 20\n");
    fake.cpus[2].mhz = 36000;
    assert_int_equal(query(0x3d, 3 * 0x50), STATUS_SUCCESS);
    assert_memory_equal(buffer + 0x50, percents, sizeof(percents));
    assert_memory_equal(buffer + 0x59, "\0\0", 3);
    assert_int_equal(u32_at(0x0c), 0);
    assert_int_equal(u32_at(0x50 + 0x0c), 3);
    for (uint32_t at = 0x10; at < 0x28; at += 4)
        assert_int_equal(u32_at(0x50 + at), 0);
    assert_int_equal(u64_at(0x50 + 0x28), (cpu->idle_ns + cpu->user_ns + cpu->kernel_ns +
                                           cpu->dpc_ns + cpu->interrupt_ns + cpu->steal_ns) /
                                              100);
    assert_int_equal(u64_at(0x50 + 0x30), cpu->idle_ns / 100);
    assert_int_equal(u64_at(0x50 + 0x48), 0);
    assert_int_equal(buffer[0xa0], 255); /* more than a byte holds */
    remove_file("sys/devices/system/cpu/cpu1/cpufreq/stats/time_in_state");
}

/* A ratio of 10 between the two classes, and of processors; the rate itself is the machine's. */
static void test_cycles(void **state)
{
    uint64_t idle[3], other[3];

    for (uint32_t i = 0; i < 3; i++) {
        fake.cpus[i].idle_ns = 1000000000ull * (i + 1);
        fake.cpus[i].dpc_ns = 60000000ull * (i + 1);
        fake.cpus[i].interrupt_ns = 40000000ull * (i + 1);
    }
    assert_int_equal(query(0x53, 24), STATUS_SUCCESS);
    memcpy(idle, buffer, sizeof(idle));
    assert_int_equal(query(0x6c, 24), STATUS_SUCCESS);
    memcpy(other, buffer, sizeof(other));
    assert_in_range(idle[0], 10000000, 10000000000); /* 10 MHz to 10 GHz */
    for (uint32_t i = 0; i < 3; i++) {
        assert_in_range(idle[i], (i + 1) * idle[0], (i + 1) * (idle[0] + 1));
        assert_in_range(idle[i], other[i] * 10, (other[i] + 1) * 10);
    }
    /* One rate for good: asked again, exactly the same. */
    usleep(1000);
    assert_int_equal(query(0x53, 24), STATUS_SUCCESS);
    assert_memory_equal(buffer, idle, sizeof(idle));
}

static void test_distribution(void **state)
{
    uint32_t size = 0x10 + 8 + (8 + 3 * 0x10) + (8 + 1 * 0x10);

    put_file("sys/devices/system/cpu/cpu1/cpufreq/stats/time_in_state",
             "3600000 100\n900000 7\n1800000 20\n");
    put_file("sys/devices/system/cpu/cpu2/cpufreq/stats/time_in_state", "2700000 9\n");
    for (uint32_t length = 0; length < size; length++) {
        assert_int_equal(query(0x64, length), STATUS_INFO_LENGTH_MISMATCH);
        assert_int_equal(told, size);
        assert_true(untouched_from(0));
    }
    assert_int_equal(query(0x64, size + 5), STATUS_SUCCESS);
    assert_int_equal(told, size);
    assert_true(untouched_from(size));
    assert_int_equal(u32_at(0), 3);
    assert_int_equal(u32_at(4), 0x10);
    assert_int_equal(u32_at(8), 0x18);
    assert_int_equal(u32_at(12), 0x18 + 0x38);
    assert_int_equal(u64_at(0x10), 0); /* processor 0 without a state */
    assert_int_equal(u32_at(0x18), 1);
    assert_int_equal(u32_at(0x1c), 3);
    assert_int_equal(u64_at(0x20), 7); /* lowest first */
    assert_int_equal(u64_at(0x28), 25);
    assert_int_equal(u64_at(0x30), 20);
    assert_int_equal(u64_at(0x38), 50);
    assert_int_equal(u64_at(0x40), 100);
    assert_int_equal(u64_at(0x48), 100);
    assert_int_equal(u32_at(0x50), 2);
    assert_int_equal(u32_at(0x54), 1);
    assert_int_equal(u64_at(0x58), 9);
    assert_int_equal(u64_at(0x60), 75);
    /* No highest frequency from elsewhere: the highest of these. */
    fake.cpus[1].max_mhz = 0;
    assert_int_equal(query(0x64, size), STATUS_SUCCESS);
    assert_int_equal(u64_at(0x48), 100);
    remove_file("sys/devices/system/cpu/cpu1/cpufreq/stats/time_in_state");
    remove_file("sys/devices/system/cpu/cpu2/cpufreq/stats/time_in_state");
}

/* ---- how processors hang together ---- */

/* Four processors, two to a core and four to a cache; a fifth of another package and node. */
static const char *const hardware[][2] = {
    {"cpu/cpu0/topology/thread_siblings_list", "0,2\n"},
    {"cpu/cpu1/topology/thread_siblings_list", "1,3\n"},
    {"cpu/cpu2/topology/thread_siblings_list", "0,2\n"},
    {"cpu/cpu3/topology/thread_siblings_list", "1,3\n"},
    {"cpu/cpu4/topology/thread_siblings_list", "4\n"},
    {"cpu/cpu0/topology/core_siblings_list", "0-3\n"},
    {"cpu/cpu1/topology/core_siblings_list", "0-3\n"},
    {"cpu/cpu2/topology/core_siblings_list", "0-3\n"},
    {"cpu/cpu3/topology/core_siblings_list", "0-3\n"},
    {"cpu/cpu4/topology/core_siblings_list", "4\n"},
    {"cpu/cpu1/cache/index0/shared_cpu_list", "1,3\n"},
    {"cpu/cpu1/cache/index0/level", "1\n"},
    {"cpu/cpu1/cache/index0/type", "Data\n"},
    {"cpu/cpu1/cache/index0/size", "48K\n"},
    {"cpu/cpu1/cache/index0/coherency_line_size", "64\n"},
    {"cpu/cpu1/cache/index0/ways_of_associativity", "12\n"},
    {"cpu/cpu0/cache/index0/shared_cpu_list", "0-3\n"},
    {"cpu/cpu0/cache/index0/level", "3\n"},
    {"cpu/cpu0/cache/index0/type", "Unified\n"},
    {"cpu/cpu0/cache/index0/size", "32M\n"},
    {"cpu/cpu0/cache/index0/coherency_line_size", "64\n"},
    {"cpu/cpu0/cache/index0/ways_of_associativity", "300\n"},
    {"node/node0/cpulist", "0-3\n"},
    {"node/node7/cpulist", "4\n"},
};

static int five(void **state)
{
    char path[128];

    for (size_t i = 0; i < sizeof(hardware) / sizeof(hardware[0]); i++) {
        snprintf(path, sizeof(path), "sys/devices/system/%s", hardware[i][0]);
        put_file(path, hardware[i][1]);
    }
    machine(5, "cpu 0 0 0 0\nctxt 0\n");
    return 0;
}

static int no_hardware(void **state)
{
    char path[128];

    for (size_t i = 0; i < sizeof(hardware) / sizeof(hardware[0]); i++) {
        snprintf(path, sizeof(path), "sys/devices/system/%s", hardware[i][0]);
        remove_file(path);
    }
    return 0;
}

static void assert_logical(uint32_t i, uint64_t mask, uint32_t relation, uint64_t first,
                           uint64_t second)
{
    assert_int_equal(u64_at(i * 0x20), mask);
    assert_int_equal(u32_at(i * 0x20 + 8), relation);
    assert_int_equal(u32_at(i * 0x20 + 12), 0);
    assert_int_equal(u64_at(i * 0x20 + 16), first);
    assert_int_equal(u64_at(i * 0x20 + 24), second);
}

static void test_logical(void **state)
{
    const uint32_t size = 9 * 0x20;

    for (uint32_t length = 0; length < size; length++) {
        assert_int_equal(query(0x49, length), STATUS_INFO_LENGTH_MISMATCH);
        assert_int_equal(told, size);
        assert_true(untouched_from(0));
    }
    for (unsigned ex = 0; ex < 2; ex++) {
        assert_int_equal(ex ? query_group(0x49, 0, size) : query(0x49, size + 7), STATUS_SUCCESS);
        assert_int_equal(told, size);
        assert_true(untouched_from(size));
        assert_logical(0, 0x05, 0, 1, 0); /* a core of two */
        assert_logical(1, 0x0a, 0, 1, 0);
        assert_logical(2, 0x10, 0, 0, 0);
        assert_logical(3, 0x0f, 3, 0, 0);
        assert_logical(4, 0x10, 3, 0, 0);
        assert_logical(5, 0x0f, 2, UINT64_C(0x020000000040ff03), 0); /* as many ways as fit */
        assert_logical(6, 0x0a, 2, UINT64_C(0x0000c00000400c01), 2);
        assert_logical(7, 0x0f, 1, 0, 0);
        assert_logical(8, 0x10, 1, 7, 0);
    }
    assert_int_equal(query_group(0x49, 1, size), STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_nt_query_all_groups(0x49, buffer, size, NULL), STATUS_INVALID_INFO_CLASS);
}

/* The plain call is of group 0, wherever the caller runs; the others are asked for. */
static void test_logical_groups(void **state)
{
    machine(64 + 3, "cpu 0 0 0 0\nctxt 0\n");
    caller_cpu = 65;
    assert_int_equal(query(0x49, ROOM), STATUS_SUCCESS);
    assert_int_equal(told, (64 + 64 + 1) * 0x20); /* cores, packages of one, node 0 */
    assert_logical(63, UINT64_C(1) << 63, 0, 0, 0);
    assert_logical(128, UINT64_MAX, 1, 0, 0);
    assert_int_equal(query_group(0x49, 1, ROOM), STATUS_SUCCESS);
    assert_int_equal(told, (3 + 3 + 1) * 0x20);
    assert_logical(2, 4, 0, 0, 0);
    assert_logical(6, 7, 1, 0, 0);
}

static NTSTATUS query_sets(void *process, uint32_t input_length, uint32_t length)
{
    clear();
    return prcb_NtQuerySystemInformationEx(0xaf, &process, input_length, buffer, length, &told);
}

static void test_cpu_sets(void **state)
{
    static const unsigned char indices[5][4] = {
        {0, 0, 0, 0}, {1, 1, 0, 0}, {2, 0, 0, 0}, {3, 1, 0, 0}, {4, 4, 4, 4}};
    const uint32_t size = 5 * 0x20;
    void *self = (void *)(intptr_t)-1;

    assert_int_equal(query(0xaf, size), STATUS_INVALID_PARAMETER);
    assert_int_equal(query_sets((void *)(uintptr_t)0xdeadbeef, sizeof(self), 0),
                     STATUS_INVALID_HANDLE);
    assert_int_equal(query_sets(self, sizeof(self) - 1, size), STATUS_INVALID_PARAMETER);
    assert_int_equal(told, 0xfeedface);
    assert_int_equal(prcb_NtQuerySystemInformationEx(0xaf, NULL, sizeof(self), buffer, size, &told),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_NtQuerySystemInformationEx(0xaf, &self, sizeof(self), NULL, size, &told),
                     STATUS_ACCESS_VIOLATION);
    assert_int_equal(told, 0xfeedface);
    for (uint32_t length = 0; length < size; length++) {
        assert_int_equal(query_sets(self, sizeof(self), length), STATUS_BUFFER_TOO_SMALL);
        assert_int_equal(told, size);
        assert_true(untouched_from(0));
    }
    assert_int_equal(query_sets(NULL, sizeof(self), size + 1), STATUS_SUCCESS);
    assert_int_equal(told, size);
    assert_true(untouched_from(size));
    for (uint32_t i = 0; i < 5; i++) {
        const unsigned char *set = buffer + i * 0x20;

        assert_int_equal(u32_at(i * 0x20), 0x20);
        assert_int_equal(u32_at(i * 0x20 + 4), 0);
        assert_int_equal(u32_at(i * 0x20 + 8), 0x100 + i);
        assert_int_equal(set[0x0c] | set[0x0d], 0);
        assert_memory_equal(set + 0x0e, indices[i], 4);
        assert_int_equal(u32_at(i * 0x20 + 0x12) | u32_at(i * 0x20 + 0x14), 0);
        assert_int_equal(u64_at(i * 0x20 + 0x18), 0);
    }
}

static void test_cpu_sets_groups(void **state)
{
    machine(64 + 3, "cpu 0 0 0 0\nctxt 0\n");
    assert_int_equal(query_sets(NULL, sizeof(void *), ROOM), STATUS_SUCCESS);
    assert_int_equal(told, 67 * 0x20);
    assert_int_equal(u32_at(66 * 0x20 + 8), 0x100 + 66);
    assert_int_equal(u32_at(66 * 0x20 + 0x0c), 0x02020001); /* group 1, processor and core 2 */
    assert_int_equal(u32_at(66 * 0x20 + 0x10), 2);          /* own cache, node of the group's 0 */
}

static void test_frequencies_text(void **state)
{
    struct nt_frequencies found = {.count = 99};
    char many[4096] = "";

    nt_frequencies_parse("", strlen(""), &found);
    assert_int_equal(found.count, 0);
    nt_frequencies_parse("800000 5\n1000000 x\n", strlen("800000 5\n1000000 x\n"), &found);
    assert_int_equal(found.count, 1);
    for (unsigned i = 0; i < 200; i++)
        sprintf(many + strlen(many), "%u 1\n", 1000 + i);
    nt_frequencies_parse(many, strlen(many), &found);
    assert_int_equal(found.count, NT_FREQUENCIES_MAX);
    nt_frequencies_parse("99999999999 5\n", strlen("99999999999 5\n"), &found);
    assert_int_equal(found.count, 0);
}

/* ---- NtPowerInformation ---- */

static NTSTATUS power(uint32_t level, void *input, uint32_t input_length, uint32_t length)
{
    clear();
    return prcb_NtPowerInformation(level, input, input_length, buffer, length);
}

static void test_power_rules(void **state)
{
    uint16_t group = 0, no_group = 1;

    for (uint32_t length = 0; length < 3 * 0x18; length++) {
        assert_int_equal(power(11, NULL, 0, length), STATUS_BUFFER_TOO_SMALL);
        assert_true(untouched_from(0));
    }
    assert_int_equal(power(11, NULL, 0, 3 * 0x18), STATUS_SUCCESS);
    assert_int_equal(power(11, NULL, 0, 3 * 0x18 + 7), STATUS_SUCCESS);
    assert_true(untouched_from(3 * 0x18));
    assert_int_equal(prcb_NtPowerInformation(11, NULL, 0, NULL, 0x100), STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_NtPowerInformation(11, NULL, 0, NULL, 0), STATUS_INVALID_PARAMETER);
    assert_int_equal(power(11, &group, 0, 0x100), STATUS_INVALID_PARAMETER);
    assert_int_equal(power(11, NULL, 2, 0x100), STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_NtPowerInformation(11, NULL, 0, buffer + 1, 0x100),
                     STATUS_DATATYPE_MISALIGNMENT);
    assert_int_equal(prcb_NtPowerInformation(11, NULL, 0, (void *)64, 0x100),
                     STATUS_ACCESS_VIOLATION);
    assert_int_equal(power(46, &group, 2, 3 * 0x18), STATUS_SUCCESS);
    assert_int_equal(power(46, &group, 2, 3 * 0x18 - 1), STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(power(46, &no_group, 2, 3 * 0x18), STATUS_INVALID_PARAMETER);
    assert_int_equal(power(46, &group, 1, 3 * 0x18), STATUS_INVALID_PARAMETER);
    assert_int_equal(power(46, NULL, 0, 3 * 0x18), STATUS_INVALID_PARAMETER);
    assert_int_equal(power(46, NULL, 2, 3 * 0x18), STATUS_INVALID_PARAMETER);
    assert_int_equal(power(12, NULL, 0, 0x100), STATUS_NOT_IMPLEMENTED);
    assert_true(untouched_from(0));
    assert_int_equal(prcb_ZwPowerInformation(11, NULL, 0, buffer, 3 * 0x18), STATUS_SUCCESS);
}

static void test_power_values(void **state)
{
    uint16_t group = 1;

    machine(64 + 3, "cpu 0 0 0 0\nctxt 0\n");
    fake.cpus[65].flags |= PRCB_CPU_IDLE;
    assert_int_equal(power(46, &group, 2, 3 * 0x18), STATUS_SUCCESS);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t at = i * 0x18;

        assert_int_equal(u32_at(at + 0x00), i);
        assert_int_equal(u32_at(at + 0x04), 3600);
        assert_int_equal(u32_at(at + 0x08), 1800);
        assert_int_equal(u32_at(at + 0x0c), 2700);
        assert_int_equal(u32_at(at + 0x10), 3);
        assert_int_equal(u32_at(at + 0x14), i == 1 ? 2 : 0); /* the others run */
    }
    caller_cpu = 66;
    assert_int_equal(power(11, NULL, 0, 3 * 0x18), STATUS_SUCCESS); /* the caller's group */
    assert_int_equal(power(11, NULL, 0, 3 * 0x18 - 1), STATUS_BUFFER_TOO_SMALL);
}

/* ---- since the system's start ---- */

static void test_since_boot(void **state)
{
    const uint64_t unit = 100000; /* of USER_HZ, in 100 ns */

    fake_fill(3);
    for (uint32_t i = 0; i < 3; i++) {
        memset(&fake.cpus[i].idle_ns, 0, 6 * sizeof(uint64_t));
        fake.cpus[i].interrupts = fake.cpus[i].dpcs = fake.cpus[i].switches = 0;
    }
    fake.cpus[2].switches = 100; /* of the 123456 that the file has */
    put_file("proc/stat", "cpu  9 9 9 9 9 9 9 9 9 9\n"
                          "cpu0 1000 200 300 4000 50 6 7 8 900 100\n"
                          "cpu2 1 2 3 4\n"
                          "cpu7 1 1 1 1 1 1 1 1 1 1\n"
                          "intr 5 5 5\nctxt 123456\nbtime 1\n");
    put_file("proc/interrupts", "           CPU0       CPU2       \n"
                                "  8:         10         20   IO-APIC   8-edge      rtc0\n"
                                "LOC:       1000       2000   Local timer interrupts\n"
                                "ERR:          7\nMIS:          7\n");
    put_file("proc/softirqs", "                    CPU0       CPU1       CPU2       \n"
                              "          HI:          1          2          3\n"
                              "       TIMER:        100        200        300\n");
    assert_int_equal(prcb_nt_set_processors(&(struct prcb_processors_options){
                         .size = sizeof(struct prcb_processors_options), .root = root}),
                     0);
    assert_int_equal(query(0x08, 0x90), STATUS_SUCCESS);
    assert_int_equal(u64_at(0x00), 4050 * unit);
    assert_int_equal(u64_at(0x08), (4050 + 300 + 6 + 7 + 8) * unit);
    assert_int_equal(u64_at(0x10), 1200 * unit); /* guests are inside */
    assert_int_equal(u64_at(0x18), 7 * unit);
    assert_int_equal(u64_at(0x20), 6 * unit);
    assert_int_equal(u32_at(0x28), 1010);
    assert_int_equal(u64_at(0x30), 0); /* off line when it began */
    assert_int_equal(u64_at(0x60), 4 * unit);
    assert_int_equal(u32_at(0x88), 2020);
    assert_int_equal(query(0x17, 0x48), STATUS_SUCCESS);
    assert_int_equal(u32_at(0x04), 101);
    assert_int_equal(u32_at(0x18 + 0x04), 202);
    assert_int_equal(query(0x24, 0x30), STATUS_SUCCESS);
    assert_int_equal(u32_at(0), 123456);
    /* What comes then is the view's. */
    fake.cpus[0].idle_ns += 12345;
    fake.cpus[0].interrupts += 3;
    fake.cpus[1].switches += 10;
    assert_int_equal(query(0x08, 0x90), STATUS_SUCCESS);
    assert_int_equal(u64_at(0x00), 4050 * unit + 123);
    assert_int_equal(u32_at(0x28), 1013);
    assert_int_equal(query(0x24, 0x30), STATUS_SUCCESS);
    assert_int_equal(u32_at(0), 123466);
    /* A second opening begins with what the view has measured by then. */
    assert_int_equal(prcb_nt_set_processors(&(struct prcb_processors_options){
                         .size = sizeof(struct prcb_processors_options), .root = root}),
                     0);
    assert_int_equal(query(0x08, 0x90), STATUS_SUCCESS);
    assert_int_equal(u64_at(0x00), 4050 * unit);
}

/* ---- processors that come and go ---- */

static void test_offline(void **state)
{
    machine(6, "cpu 0 0 0 0\nctxt 0\n");
    fake.cpus[1].flags = 0; /* never seen, but between two that are */
    fake.cpus[1].idle_ns = 0;
    for (uint32_t i = 4; i < 6; i++)
        fake.cpus[i].flags = 0;
    assert_int_equal(prcb_KeQueryActiveProcessorCountEx(0), 4);
    assert_int_equal(query(0x08, 6 * 0x30), STATUS_SUCCESS);
    assert_int_equal(told, 4 * 0x30);
    assert_int_equal(u64_at(0x30), 0);
    /* Its number and its totals stay. */
    fake.cpus[3].flags = 0;
    assert_int_equal(power(11, NULL, 0, 4 * 0x18 - 1), STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(query(0x08, 6 * 0x30), STATUS_SUCCESS);
    assert_int_equal(told, 4 * 0x30);
    assert_int_equal(u64_at(0x90), fake.cpus[3].idle_ns / 100);
    /* One that is plugged in is one more. */
    fake.cpus[4].flags = PRCB_CPU_ONLINE;
    assert_int_equal(query(0x3d, 6 * 0x50), STATUS_SUCCESS); /* looks */
    assert_int_equal(told, 5 * 0x50);
    assert_int_equal(query(0x08, 6 * 0x30), STATUS_SUCCESS);
    assert_int_equal(told, 5 * 0x30);
    /* On the bpf tier memory says so: it is looked at once a second, the system is not asked. */
    fake.cpus[5].flags = PRCB_CPU_ONLINE;
    fake.refreshes = 0;
    usleep(1010000);
    assert_int_equal(query(0x08, 6 * 0x30), STATUS_SUCCESS);
    assert_int_equal(told, 6 * 0x30);
    assert_int_equal(fake.refreshes, 0);
}

static void test_looking(void **state)
{
    assert_int_equal(query(0x08, 0x90), STATUS_SUCCESS);
    assert_int_equal(fake.opens, 1);
    assert_int_equal(fake.refreshes, 0);
    assert_int_equal(query(0x08, 0x90), STATUS_SUCCESS);
    assert_int_equal(fake.opens, 1);
    assert_int_equal(query(0x3d, 0x50 * 3), STATUS_SUCCESS);
    assert_int_equal(fake.refreshes, 1);
    assert_int_equal(power(11, NULL, 0, 0x48), STATUS_SUCCESS);
    assert_int_equal(fake.refreshes, 2);
    assert_int_equal(prcb_nt_processors_tier(), PRCB_TIER_BPF);
    fake.tier = PRCB_TIER_PERF; /* is nothing but looked at */
    assert_int_equal(query(0x08, 0x90), STATUS_SUCCESS);
    assert_int_equal(fake.refreshes, 3);
    /* Programs count processors group by group, and ask for each member of each whether it is
     * there: the files are not all read for that. */
    assert_int_equal(prcb_KeQueryActiveGroupCount(), 1);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(prcb_KeQueryActiveProcessorCountEx(0), 3);
        assert_null(prcb_nt_absent(0x08, 0));
    }
    assert_true(fake.refreshes <= 4); /* 4: a second has passed */
    /* What a member lacks stays as it is: no time makes that be looked for. */
    fake.refreshes = 0;
    usleep(1010000);
    assert_null(prcb_nt_absent(0x08, 0));
    assert_int_equal(fake.refreshes, 0);
    assert_int_equal(prcb_nt_processors_tier(), PRCB_TIER_PERF);
    assert_int_equal(fake.closes, 0);
}

static void test_failures(void **state)
{
    assert_int_equal(query(0x08, 0x90), STATUS_SUCCESS);
    fake.read_error = -EAGAIN;
    assert_int_equal(query(0x08, 0x90), STATUS_RETRY);
    assert_true(untouched_from(0));
    assert_int_equal(told, 0xfeedface);
    assert_int_equal(query(0x53, 8), STATUS_RETRY);
    assert_int_equal(query(0x64, 0x900), STATUS_RETRY);
    assert_int_equal(query(0x24, 0x30), STATUS_RETRY);
    assert_int_equal(power(11, NULL, 0, 0x48), STATUS_RETRY);
    assert_true(untouched_from(0));
    fake.stuck_reads = 9; /* it is tried again */
    assert_int_equal(query(0x08, 0x90), STATUS_SUCCESS);
    fake.read_error = 0;
    fake.refresh_error = -EMFILE;
    assert_int_equal(query(0x3d, 0xf0), STATUS_INSUFFICIENT_RESOURCES);
    fake.refresh_error = 0;
    assert_int_equal(query(0x3d, 0xf0), STATUS_SUCCESS);
    machine(3, "cpu 0 0 0 0\nctxt 0\n");
    fake.open_error = -EPERM;
    assert_int_equal(query(0x08, 0x90), STATUS_PRIVILEGE_NOT_HELD);
    assert_string_equal(prcb_nt_error_text(), "the test says no");
    assert_int_equal(prcb_KeQueryActiveGroupCount(), 0);
    assert_int_equal(prcb_nt_processors_tier(), PRCB_TIER_AUTO);
    assert_null(prcb_nt_processors_tier_reason());
    fake.open_error = 0;
    put_file("proc/stat", "nonsense\n");
    assert_int_equal(query(0x08, 0x90), STATUS_INTERNAL_ERROR);
    assert_non_null(strstr(prcb_nt_error_text(), "proc/stat"));
    assert_int_equal(fake.closes, 1); /* what was opened then */
    put_file("proc/stat", "cpu 0 0 0 0\nctxt 0\n");
    assert_int_equal(query(0x08, 0x90), STATUS_SUCCESS);
    machine(3, "cpu 0 0 0 0\nctxt 0\n");
    for (uint32_t i = 0; i < 3; i++)
        fake.cpus[i].flags = 0;
    assert_int_equal(query(0x08, 0x90), STATUS_NOT_SUPPORTED); /* no processor is on line */
}

static void test_options(void **state)
{
    struct prcb_processors_options options = {.size = 3};
    struct {
        struct prcb_processors_options known;
        uint64_t later;
    } longer = {.known = {.size = sizeof(longer)}, .later = 1};

    assert_int_equal(prcb_nt_set_processors(&options), -EINVAL);
    options = (struct prcb_processors_options){.size = sizeof(options), .flags = 1};
    assert_int_equal(prcb_nt_set_processors(&options), -EINVAL);
    options = (struct prcb_processors_options){.size = sizeof(options), .tier = 4};
    assert_int_equal(prcb_nt_set_processors(&options), -EINVAL);
    assert_int_equal(prcb_nt_set_processors(&longer.known), -E2BIG);
    assert_int_equal(query(0x08, 0x90), STATUS_SUCCESS);
    assert_int_equal(prcb_nt_set_processors(NULL), 0);
    assert_int_equal(fake.closes, 1);
}

/* ---- the two ways to tell time ---- */

static void test_environment(void **state)
{
    assert_int_equal(prcb_nt_time_mode(), PRCB_NT_TIME_TICKS); /* main set it */
    assert_int_equal(prcb_nt_set_time_mode(PRCB_NT_TIME_V310), 0);
    assert_int_equal(prcb_nt_time_mode(), PRCB_NT_TIME_V310);
    assert_int_equal(prcb_nt_set_time_mode((enum prcb_nt_time_mode)2), -EINVAL);
}

static void test_ticks(void **state)
{
    uint64_t increment = prcb_KeQueryTimeIncrement(), ns = increment * 100;
    struct prcb_processor *cpu = &fake.cpus[0];

    assert_int_equal(prcb_nt_set_time_mode(PRCB_NT_TIME_TICKS), 0);
    cpu->idle_ns = 10 * ns - 1;
    cpu->kernel_ns = 1;
    cpu->user_ns = 5 * ns + ns / 2;
    cpu->dpc_ns = ns - 1;
    cpu->interrupt_ns = ns;
    cpu->steal_ns = 0;
    assert_int_equal(query(0x08, 0x30), STATUS_SUCCESS);
    assert_int_equal(u64_at(0x00), 9 * increment);
    assert_int_equal(u64_at(0x08), 11 * increment); /* 12 less 1 ns */
    assert_int_equal(u64_at(0x10), 5 * increment);
    assert_int_equal(u64_at(0x18), 0);
    assert_int_equal(u64_at(0x20), increment);
    /* 32 bits are kept: it steps back, and each member on its own. */
    cpu->idle_ns = (1ull << 32) * ns - 1;
    assert_int_equal(query(0x8d, 0x48), STATUS_SUCCESS);
    assert_int_equal(u64_at(0x00), 0xffffffffull * increment);
    assert_int_equal(u64_at(0x08), 1 * increment);
    cpu->idle_ns++;
    assert_int_equal(query(0x8d, 0x48), STATUS_SUCCESS);
    assert_int_equal(u64_at(0x00), 0);
    assert_int_equal(prcb_nt_set_time_mode(PRCB_NT_TIME_V310), 0);
    assert_int_equal(query(0x8d, 0x48), STATUS_SUCCESS);
    assert_int_equal(u64_at(0x00), (1ull << 32) * increment);
}

static void test_set_increment(void **state)
{
    uint32_t old = prcb_KeQueryTimeIncrement();
    uint64_t ns = old * 100ull;
    struct prcb_processor *cpu = &fake.cpus[1];

    assert_int_equal(prcb_nt_set_time_mode(PRCB_NT_TIME_TICKS), 0);
    cpu->user_ns = 1000 * ns + ns / 2;
    assert_int_equal(query(0x08, 0x60), STATUS_SUCCESS);
    assert_int_equal(u64_at(0x40), 1000 * old);
    prcb_KeSetTimeIncrement(2 * old, old);
    assert_int_equal(prcb_KeQueryTimeIncrement(), 2 * old);
    /* The past is told anew, at twice its length. */
    assert_int_equal(query(0x08, 0x60), STATUS_SUCCESS);
    assert_int_equal(u64_at(0x40), 1000ull * 2 * old);
    assert_int_equal(query(0x17, 0x48), STATUS_SUCCESS);
    assert_int_equal(u32_at(0x0c), 2 * old);
    assert_int_equal(query(0x1c, 0x0c), STATUS_SUCCESS);
    assert_int_equal(u32_at(4), 2 * old);
    /* From now on it takes twice as long to a tick, the half one that was begun included. */
    cpu->user_ns += 3 * ns + ns / 2 - 1;
    assert_int_equal(query(0x08, 0x60), STATUS_SUCCESS);
    assert_int_equal(u64_at(0x40), 1001ull * 2 * old);
    cpu->user_ns += 1;
    assert_int_equal(query(0x08, 0x60), STATUS_SUCCESS);
    assert_int_equal(u64_at(0x40), 1002ull * 2 * old);
    /* And again, with what wrapped: 1002 + 2^32 ticks. */
    cpu->user_ns += (2 * ns) << 32;
    prcb_KeSetTimeIncrement(old / 2, old / 2);
    assert_int_equal(query(0x08, 0x60), STATUS_SUCCESS);
    assert_int_equal(u64_at(0x40), 1002ull * (old / 2));
    /* Raw times are not touched by any of it. */
    assert_int_equal(prcb_nt_set_time_mode(PRCB_NT_TIME_V310), 0);
    assert_int_equal(query(0x08, 0x60), STATUS_SUCCESS);
    assert_int_equal(u64_at(0x40), cpu->user_ns / 100);
    prcb_KeSetTimeIncrement(0, 0);
    assert_int_equal(prcb_KeQueryTimeIncrement(), old / 2);
    prcb_KeSetTimeIncrement(100, 101);
    assert_int_equal(prcb_KeQueryTimeIncrement(), old / 2);
    prcb_KeSetTimeIncrement(old, old);
}

/* ---- absent members ---- */

static const uint32_t all_classes[] = {0x08,
                                       0x17,
                                       0x1c,
                                       0x24,
                                       0x2a,
                                       0x3d,
                                       0x53,
                                       0x64,
                                       0x6c,
                                       0x8d,
                                       0x49,
                                       0xaf,
                                       PRCB_NT_POWER_LEVEL(11)};
#define CLASSES (sizeof(all_classes) / sizeof(all_classes[0]))

/* Members follow each other; what is between and after them is padding, a spare, or zero. */
static void test_members(void **state)
{
    static const uint32_t sizes[] = {0x30, 0x18, 0x0c, 0x30, 0x30, 0x50, 8,
                                     8,    8,    0x48, 0x20, 0x20, 0x18};

    for (size_t c = 0; c < CLASSES; c++) {
        const struct prcb_nt_member *member;
        uint32_t end = 0;
        size_t i = 0;

        for (; (member = prcb_nt_member(all_classes[c], i)); i++) {
            assert_int_equal(member->information_class, all_classes[c]);
            assert_true(member->offset >= end && member->offset - end <= 4);
            end = member->offset + member->size;
        }
        assert_true(i > 0 && end <= sizes[c]);
        assert_true(sizes[c] - end <= (all_classes[c] == 0x8d ? 16u : 7u));
    }
    assert_null(prcb_nt_member(0x81, 0));
    assert_int_equal(prcb_nt_member(PRCB_NT_POWER_LEVEL(46), 1)->offset, 4);
}

static void test_absent(void **state)
{
    assert_null(prcb_nt_absent(0x08, 0x00));
    assert_null(prcb_nt_absent(0x08, 0x18));
    assert_non_null(prcb_nt_absent(0x08, 0x04)); /* no member begins there */
    assert_non_null(prcb_nt_absent(0x8d, 0x30)); /* AvailableTime */
    assert_non_null(prcb_nt_absent(0x24, 0x04));
    assert_null(prcb_nt_absent(0x24, 0x2c));
    assert_null(prcb_nt_absent(0x17, 0x10)); /* 0 on NT too */
    assert_non_null(strstr(prcb_nt_absent(0x64, 4), "time_in_state"));
    assert_non_null(prcb_nt_absent(0x3d, 0x0c));
    put_file("sys/devices/system/cpu/cpu2/cpufreq/stats/time_in_state", "2700000 9\n");
    assert_null(prcb_nt_absent(0x64, 4));
    assert_null(prcb_nt_absent(0x3d, 0x0c));
    remove_file("sys/devices/system/cpu/cpu2/cpufreq/stats/time_in_state");
    fake.lacking = PRCB_CPU_HAS_INTERRUPT | PRCB_CPU_HAS_MAX_MHZ;
    assert_string_equal(prcb_nt_absent(0x08, 0x20), "the test took it away");
    assert_null(prcb_nt_absent(0x08, 0x18));
    assert_string_equal(prcb_nt_absent(0x6c, 0), "the test took it away");
    assert_string_equal(prcb_nt_absent(0x3d, 0), "the test took it away");
    assert_null(prcb_nt_absent(PRCB_NT_POWER_LEVEL(46), 4)); /* CurrentMhz does instead */
    assert_null(prcb_nt_absent(PRCB_NT_POWER_LEVEL(11), 8));
    fake.lacking |= PRCB_CPU_HAS_MHZ;
    assert_string_equal(prcb_nt_absent(PRCB_NT_POWER_LEVEL(46), 4), "the test took it away");
}

/* A member that a record lacks is 0, not what the kernel counted before the opening. */
static void test_lacking(void **state)
{
    machine(1, "cpu0 1 1 1 1 1 5 5 5 1 1\nctxt 9\n");
    put_file("proc/interrupts", "      CPU0\n  1:   100  x\n");
    fake.lacking = PRCB_CPU_HAS_DPC | PRCB_CPU_HAS_INTERRUPT | PRCB_CPU_HAS_INTERRUPTS;
    memset(&fake.cpus[0].idle_ns, 0, 6 * sizeof(uint64_t));
    fake.cpus[0].interrupts = 0;
    assert_int_equal(query(0x08, 0x30), STATUS_SUCCESS);
    assert_int_equal(u64_at(0x18), 0);
    assert_int_equal(u64_at(0x20), 0);
    assert_int_equal(u32_at(0x28), 0);
    assert_int_equal(u64_at(0x08), (2 + 1 + 5) * 100000);
}

/* ---- processes and threads ---- */

static void test_fork(void **state)
{
    int status = -1;
    pid_t child;

    assert_int_equal(query(0x08, 0x90), STATUS_SUCCESS);
    child = fork();
    if (!child)
        _exit(fake.opens != 1 || query(0x08, 0x90) || fake.opens != 2 || fake.closes != 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(query(0x08, 0x90), STATUS_SUCCESS);
    assert_int_equal(fake.opens, 1);
}

static void *ask(void *bad)
{
    static const uint32_t lengths[] = {0x90, 0x48, 0x0c, 0x30, 0x90, 0xf0, 24, 0x900, 24, 0xd8};
    uint64_t own[ROOM / 8];
    uint32_t length;

    for (unsigned i = 0; i < 200; i++) {
        if (prcb_NtQuerySystemInformation(all_classes[i % 10], own, lengths[i % 10], &length))
            *(bool *)bad = true;
        prcb_nt_absent(0x3d, 0);
    }
    return NULL;
}

static void test_threads(void **state)
{
    bool bad[4] = {false};
    pthread_t threads[4];

    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &bad[i]), 0);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < 4; i++)
        assert_false(bad[i]);
    assert_int_equal(fake.opens, 1);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_environment, NULL),
        cmocka_unit_test_setup(test_multiples, three),
        cmocka_unit_test_setup(test_whole_arrays, three),
        cmocka_unit_test_setup(test_cycle_arrays, three),
        cmocka_unit_test_setup(test_one_for_all, three),
        cmocka_unit_test_setup(test_tail, three),
        cmocka_unit_test_setup(test_classes, three),
        cmocka_unit_test_setup(test_buffers, three),
        cmocka_unit_test_setup(test_return_length, three),
        cmocka_unit_test_setup(test_groups, three),
        cmocka_unit_test_setup(test_all_groups, three),
        cmocka_unit_test_setup(test_extended, three),
        cmocka_unit_test_setup(test_performance, three),
        cmocka_unit_test_setup(test_interrupts, three),
        cmocka_unit_test_setup(test_dpc_rate, three),
        cmocka_unit_test_setup(test_switches, three),
        cmocka_unit_test_setup(test_idle, three),
        cmocka_unit_test_setup(test_power, three),
        cmocka_unit_test_setup(test_cycles, three),
        cmocka_unit_test_setup(test_distribution, three),
        cmocka_unit_test_setup_teardown(test_logical, five, no_hardware),
        cmocka_unit_test_setup(test_logical_groups, three),
        cmocka_unit_test_setup_teardown(test_cpu_sets, five, no_hardware),
        cmocka_unit_test_setup(test_cpu_sets_groups, three),
        cmocka_unit_test_setup(test_frequencies_text, three),
        cmocka_unit_test_setup(test_power_rules, three),
        cmocka_unit_test_setup(test_power_values, three),
        cmocka_unit_test_setup(test_since_boot, three),
        cmocka_unit_test_setup(test_offline, three),
        cmocka_unit_test_setup(test_looking, three),
        cmocka_unit_test_setup(test_failures, three),
        cmocka_unit_test_setup(test_options, three),
        cmocka_unit_test_setup(test_ticks, three),
        cmocka_unit_test_setup(test_set_increment, three),
        cmocka_unit_test_setup(test_members, three),
        cmocka_unit_test_setup(test_absent, three),
        cmocka_unit_test_setup(test_lacking, three),
        cmocka_unit_test_setup(test_fork, three),
        cmocka_unit_test_setup(test_threads, three),
    };

    setenv("PRCB_NT_TIME", "ticks", 1);
    return cmocka_run_group_tests_name("nt query", tests, make_root, remove_root);
}
