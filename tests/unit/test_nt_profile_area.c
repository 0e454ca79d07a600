/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Class 0x81: every row of NT's state machine, over an engine that says what the test wants, and
 * over the real one where nothing may be sampled. Class 0x1F's rule of hooks and the bytes of
 * CSwitch events. tests/bpf/test_sample.c has the same calls with areas that work.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside.h"

#define CLASS 0x81

/* ---- an engine ---- */

#define CPUS 1024

static struct {
    int open, take, check; /* what these calls answer */
    bool no_plain;
    int opens, takes, put_backs, checks, plains;
    size_t bytes; /* of the last area taken */
    struct prcb_ds_area *areas[CPUS];
} engine;

static struct prcb_sampler *const some_sampler = (void *)&engine;

static int fake_open(const struct prcb_sampler_options *opts, struct prcb_sampler **ret,
                     struct prcb_error *err)
{
    engine.opens++;
    if (!engine.open)
        *ret = some_sampler;
    return engine.open ? prcb_fail(err, engine.open, "open") : 0;
}

static int fake_take(struct prcb_sampler *s, size_t bytes, struct prcb_ds_area **ret,
                     struct prcb_error *err)
{
    engine.takes++;
    engine.bytes = bytes;
    if (!engine.take) {
        *ret = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
        memset(*ret, 0, bytes);
    }
    return engine.take ? prcb_fail(err, engine.take, "take") : 0;
}

static void fake_put_back(struct prcb_sampler *s, struct prcb_ds_area *area)
{
    engine.put_backs++;
    free(area);
}

static int fake_check(struct prcb_sampler *s, int cpu, struct prcb_error *err)
{
    engine.checks++;
    return engine.check ? prcb_fail(err, engine.check, "check") : 0;
}

static int fake_install(struct prcb_sampler *s, int cpu, struct prcb_ds_area *area,
                        struct prcb_ds_area **ret)
{
    int result = engine.areas[cpu] ? -EEXIST : 0;

    if (!result)
        engine.areas[cpu] = area;
    *ret = engine.areas[cpu];
    return result;
}

static int fake_remove(struct prcb_sampler *s, int cpu, struct prcb_error *err)
{
    if (!engine.areas[cpu])
        return prcb_fail(err, -ENOENT, "remove");
    free(engine.areas[cpu]);
    engine.areas[cpu] = NULL;
    return 0;
}

static void *fake_plain(size_t bytes)
{
    engine.plains++;
    return engine.no_plain ? NULL : malloc(bytes);
}

static struct nt_area_engine fake = {
    .open = fake_open,
    .take = fake_take,
    .put_back = fake_put_back,
    .check = fake_check,
    .install = fake_install,
    .remove = fake_remove,
    .plain = fake_plain,
    .vendor = "GenuineIntel",
    .msr = "/nonexistent/%d",
};
static const struct nt_area_engine *real;

static void pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static cpu_set_t allowed;
static int home; /* the processor tests are pinned to */

static int set_up(void **state)
{
    memset(&engine, 0, sizeof(engine));
    real = real ? real : nt_area_engine;
    nt_area_engine = &fake;
    nt_profile_areas_forget();
    prcb_nt_profile_configure(
        &(struct prcb_nt_profile_options){.size = sizeof(struct prcb_nt_profile_options)}, NULL);
    sched_getaffinity(0, sizeof(allowed), &allowed);
    for (home = 0; !CPU_ISSET(home, &allowed); home++)
        ;
    pin(home);
    return 0;
}

static int tear_down(void **state)
{
    for (int cpu = 0; cpu < CPUS; cpu++)
        free(engine.areas[cpu]);
    nt_profile_areas_forget();
    nt_area_engine = real;
    sched_setaffinity(0, sizeof(allowed), &allowed);
    return 0;
}

/* ---- the calls ---- */

#define GARBAGE ((PROCESSOR_PROFILE_CONTROL_AREA *)(uintptr_t)0x5a5a5a50)

static NTSTATUS set(uint8_t allocate, PROCESSOR_PROFILE_CONTROL_AREA **ret)
{
    SYSTEM_PROCESSOR_PROFILE_CONTROL_AREA request = {GARBAGE, allocate};
    NTSTATUS status = prcb_NtSetSystemInformation(CLASS, &request, sizeof(request));

    *ret = request.ProcessorProfileControlArea;
    return status;
}

static void expect(uint8_t allocate, NTSTATUS status, const void *area)
{
    PROCESSOR_PROFILE_CONTROL_AREA *got;

    assert_int_equal(set(allocate, &got), status);
    assert_ptr_equal(got, area);
    if (status)
        assert_true(prcb_nt_error_text()[0]);
}

/* Memory is had, and given back again, or never had at all. */
static void expect_nothing_kept(void)
{
    assert_int_equal(engine.put_backs, engine.takes - (engine.areas[home] ? 1 : 0));
}

/* ---- the rows: allocating ---- */

static void no_memory_hides_everything(void **state)
{
    engine.take = -ENOSPC;
    expect(1, STATUS_INSUFFICIENT_RESOURCES, NULL);
    assert_int_equal(engine.checks, 0);
    engine.check = -EOPNOTSUPP; /* not supported: not asked */
    expect(1, STATUS_INSUFFICIENT_RESOURCES, NULL);
    assert_int_equal(engine.checks, 0);
    engine.check = engine.take = 0;
    assert_int_equal(set(1, &(PROCESSOR_PROFILE_CONTROL_AREA *){0}), STATUS_SUCCESS);
    engine.take = -ENOSPC; /* and with an area */
    expect(1, STATUS_INSUFFICIENT_RESOURCES, NULL);
    assert_non_null(engine.areas[home]);
}

static void no_memory_for_the_sampler(void **state)
{
    engine.open = -ENOMEM;
    expect(1, STATUS_INSUFFICIENT_RESOURCES, NULL);
    assert_int_equal(engine.plains, 0);
}

static void no_sampler_is_not_supported_after_memory(void **state)
{
    static const int codes[] = {-EOPNOTSUPP, -EPERM, -EIO};

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        engine.open = codes[i];
        expect(1, STATUS_NOT_SUPPORTED, NULL);
        assert_int_equal(engine.plains, (int)i + 1);
        expect(0, STATUS_NOT_SUPPORTED, NULL);
    }
    engine.no_plain = true;
    expect(1, STATUS_INSUFFICIENT_RESOURCES, NULL);
}

static void not_supported(void **state)
{
    engine.check = -EOPNOTSUPP;
    expect(1, STATUS_NOT_SUPPORTED, NULL);
    assert_int_equal(engine.takes, 1);
    expect_nothing_kept();
}

static void not_supported_with_an_area(void **state)
{
    PROCESSOR_PROFILE_CONTROL_AREA *area;

    assert_int_equal(set(1, &area), STATUS_SUCCESS);
    engine.check = -EOPNOTSUPP;
    expect(1, STATUS_NOT_SUPPORTED, NULL);
    expect(0, STATUS_NOT_SUPPORTED, NULL);
    assert_ptr_equal(engine.areas[home], area);
    expect_nothing_kept();
}

static void a_new_area(void **state)
{
    PROCESSOR_PROFILE_CONTROL_AREA *area;

    for (int allocate = 1; allocate < 256; allocate += 127) { /* BOOLEAN: not 0 is TRUE */
        assert_int_equal(set((uint8_t)allocate, &area), STATUS_SUCCESS);
        assert_non_null(area);
        assert_ptr_equal(area, engine.areas[home]);
        expect(0, STATUS_SUCCESS, NULL);
    }
}

static void the_existing_area(void **state)
{
    PROCESSOR_PROFILE_CONTROL_AREA *area;

    assert_int_equal(set(1, &area), STATUS_SUCCESS);
    for (int i = 0; i < 3; i++) {
        expect(1, STATUS_ADDRESS_ALREADY_EXISTS, area);
        expect_nothing_kept();
    }
    expect(0, STATUS_SUCCESS, NULL); /* no reference count: the first free ends it */
    expect(0, STATUS_MEMORY_NOT_ALLOCATED, NULL);
}

/* ---- the rows: freeing ---- */

static void freeing(void **state)
{
    expect(0, STATUS_MEMORY_NOT_ALLOCATED, NULL);
    engine.check = -EOPNOTSUPP;
    expect(0, STATUS_NOT_SUPPORTED, NULL);
    engine.check = 0;
    engine.take = -ENOSPC; /* not needed */
    expect(0, STATUS_MEMORY_NOT_ALLOCATED, NULL);
    assert_int_equal(engine.takes, 0);
}

/* ---- before the state machine ---- */

static void who_may_ask(void **state)
{
    SYSTEM_PROCESSOR_PROFILE_CONTROL_AREA request = {GARBAGE, 1};

    assert_int_equal(
        prcb_nt_set_system_information(CLASS, &request, sizeof(request), PRCB_NT_USER_MODE),
        STATUS_ACCESS_DENIED);
    assert_ptr_equal(request.ProcessorProfileControlArea, GARBAGE);
    assert_int_equal(engine.opens, 0);
    assert_int_equal(
        prcb_nt_set_system_information(CLASS, &request, sizeof(request), PRCB_NT_KERNEL_MODE),
        STATUS_SUCCESS);
    assert_int_equal(prcb_ZwSetSystemInformation(CLASS, &request, sizeof(request)),
                     STATUS_ADDRESS_ALREADY_EXISTS);
}

static void lengths(void **state)
{
    uint8_t bytes[64] = {0};

    for (uint32_t length = 0; length < sizeof(bytes); length++) {
        if (length == sizeof(SYSTEM_PROCESSOR_PROFILE_CONTROL_AREA))
            continue;
        assert_int_equal(prcb_NtSetSystemInformation(CLASS, bytes, length),
                         STATUS_INFO_LENGTH_MISMATCH);
        assert_int_equal(prcb_nt_set_system_information(CLASS, bytes, length, PRCB_NT_USER_MODE),
                         STATUS_ACCESS_DENIED);
    }
    assert_int_equal(engine.opens, 0);
}

static void a_buffer_aligned_to_4(void **state)
{
    uint8_t bytes[32] __attribute__((aligned(16))) = {0};

    bytes[4 + offsetof(SYSTEM_PROCESSOR_PROFILE_CONTROL_AREA, Allocate)] = 1;
    assert_int_equal(prcb_NtSetSystemInformation(CLASS, bytes + 4,
                                                 sizeof(SYSTEM_PROCESSOR_PROFILE_CONTROL_AREA)),
                     STATUS_SUCCESS);
    assert_memory_equal(bytes + 4, &engine.areas[home], sizeof(void *));
}

/* ---- processors and threads ---- */

static void each_processor_has_its_own(void **state)
{
    PROCESSOR_PROFILE_CONTROL_AREA *area, *before = NULL;
    int count = 0;

    for (int cpu = 0; cpu < CPU_SETSIZE && cpu < CPUS; cpu++) {
        if (!CPU_ISSET(cpu, &allowed))
            continue;
        pin(cpu);
        assert_int_equal(set(1, &area), STATUS_SUCCESS);
        assert_ptr_equal(engine.areas[cpu], area);
        assert_ptr_not_equal(area, before);
        before = area;
        count++;
    }
    assert_int_equal(count, CPU_COUNT(&allowed));
    pin(home);
    expect(0, STATUS_SUCCESS, NULL);
    expect(0, STATUS_MEMORY_NOT_ALLOCATED, NULL);
}

static int successes[8];

static void *ask_often(void *arg)
{
    int *mine = arg;
    PROCESSOR_PROFILE_CONTROL_AREA *area;

    pin(home);
    for (int i = 0; i < 500; i++) {
        NTSTATUS status = set(1, &area);

        if (status == STATUS_SUCCESS)
            ++*mine;
        else if (status != STATUS_ADDRESS_ALREADY_EXISTS || !area)
            return arg;
        status = set(0, &area);
        if (status == STATUS_SUCCESS)
            --*mine;
        else if (status != STATUS_MEMORY_NOT_ALLOCATED || area)
            return arg;
    }
    return NULL;
}

/* Each area is given once and freed once, whoever frees it. */
static void many_threads(void **state)
{
    pthread_t threads[8];
    int sum = 0;

    memset(successes, 0, sizeof(successes));
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, &successes[i]), 0);
    for (int i = 0; i < 8; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        assert_null(failed);
        sum += successes[i];
    }
    assert_int_equal(sum, engine.areas[home] ? 1 : 0);
    assert_int_equal(engine.opens, 1);
}

static void a_child_has_none(void **state)
{
    PROCESSOR_PROFILE_CONTROL_AREA *area;
    int status;
    pid_t pid;

    assert_int_equal(set(1, &area), STATUS_SUCCESS);
    pid = fork();
    if (!pid) {
        /* As a process of its own it opens a sampler of its own. */
        engine.areas[home] = NULL;
        engine.opens = 0;
        _exit(set(0, &area) == STATUS_MEMORY_NOT_ALLOCATED && engine.opens == 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    expect(0, STATUS_SUCCESS, NULL);
}

/* ---- options ---- */

static void configure(uint32_t build, uint32_t intel)
{
    struct prcb_nt_profile_options opts = {.size = sizeof(opts), .build = build, .intel = intel};

    assert_int_equal(prcb_nt_profile_configure(&opts, NULL), 0);
}

static void forms_by_version(void **state)
{
    static const struct {
        uint32_t build, size;
    } rows[] = {{0, 0xa0},     {9200, 0x60},  {17763, 0x60},
                {17764, 0xa0}, {18362, 0xa0}, {26100, 0xa0}};
    struct prcb_nt_profile_options opts = {.size = sizeof(opts)};
    struct {
        struct prcb_nt_profile_options known;
        uint64_t later;
    } longer = {.known = {.size = sizeof(longer)}, .later = 1};
    PROCESSOR_PROFILE_CONTROL_AREA *area;
    struct prcb_error err = {0};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        configure(rows[i].build, 0);
        assert_int_equal(prcb_nt_profile_area_size(), rows[i].size);
        assert_int_equal(set(1, &area), STATUS_SUCCESS);
        assert_int_equal(engine.bytes, rows[i].size);
        assert_int_equal(prcb_nt_profile_configure(&opts, &err), -EBUSY);
        expect(0, STATUS_SUCCESS, NULL);
        nt_profile_areas_forget();
    }
    opts.size = sizeof(opts.size) - 1;
    assert_int_equal(prcb_nt_profile_configure(&opts, &err), -EINVAL);
    configure(9200, 0);
    assert_int_equal(prcb_nt_profile_configure(&longer.known, &err), -E2BIG);
    assert_int_equal(prcb_nt_profile_area_size(), 0x60);
    longer.later = 0;
    assert_int_equal(prcb_nt_profile_configure(&longer.known, &err), 0);
    assert_int_equal(prcb_nt_profile_area_size(), 0xa0);
    opts.size = offsetof(struct prcb_nt_profile_options, intel);
    opts.build = 9200;
    assert_int_equal(prcb_nt_profile_configure(&opts, &err), 0);
    assert_int_equal(prcb_nt_profile_area_size(), 0x60);
    assert_int_equal(prcb_nt_profile_configure(NULL, &err), 0);
    assert_int_equal(prcb_nt_profile_area_size(), 0xa0);
}

/* A file stands for /dev/cpu/N/msr, read at the register's number. */
static void write_msr(const char *path, uint64_t value)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fseek(file, 0x1a0, SEEK_SET);
    fwrite(&value, sizeof(value), 1, file);
    fclose(file);
}

static void nts_own_test(void **state)
{
    static const struct {
        uint64_t value;
        NTSTATUS status;
    } rows[] = {{0x80, STATUS_SUCCESS},
                {0x850089, STATUS_SUCCESS},
                {0, STATUS_NOT_SUPPORTED},
                {0x1000, STATUS_NOT_SUPPORTED},
                {0x1080, STATUS_NOT_SUPPORTED}};
    char folder[] = "/tmp/prcb-msr-XXXXXX", format[64], path[64];
    PROCESSOR_PROFILE_CONTROL_AREA *area;

    configure(0, 1);
    expect(1, STATUS_NOT_SUPPORTED, NULL); /* no such file */
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/%d", folder, home);
    snprintf(format, sizeof(format), "%s/%%d", folder);
    fake.msr = format;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_msr(path, rows[i].value);
        assert_int_equal(set(1, &area), rows[i].status);
        assert_int_equal(set(0, &area), rows[i].status);
    }
    assert_int_equal(truncate(path, 0x1a4), 0); /* cut short */
    errno = ENOENT;                             /* of something before */
    expect(1, STATUS_NOT_SUPPORTED, NULL);
    assert_non_null(strstr(prcb_nt_error_text(), strerror(EIO)));
    write_msr(path, 0x80);
    fake.vendor = "AuthenticAMD";
    expect(1, STATUS_NOT_SUPPORTED, NULL);
    fake.vendor = "GenuineIntel";
    fake.msr = "/nonexistent/%d";
    unlink(path);
    rmdir(folder);
}

/* As this machine is: it may or may not be possible, but never anything else. */
static void the_real_engine_without_a_right_to_it(void **state)
{
    PROCESSOR_PROFILE_CONTROL_AREA *area;
    int status;
    pid_t pid = fork();

    if (!pid) {
        nt_area_engine = real;
        if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
            _exit(2);
        if (set(1, &area) != STATUS_NOT_SUPPORTED || area)
            _exit(3);
        if (!prcb_nt_error_text()[0])
            _exit(4);
        _exit(set(0, &area) == STATUS_NOT_SUPPORTED && !area ? 0 : 5);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* ---- class 0x1F and events ---- */

static NTSTATUS trace(uint32_t class, uint32_t hook, uint32_t length)
{
    EVENT_TRACE_SYSTEM_EVENT_INFORMATION wanted = {
        .EventTraceInformationClass = class, .TraceHandle = 7, .HookId = {hook}};

    return prcb_NtSetSystemInformation(0x1f, &wanted, length);
}

static void hooks(void **state)
{
    uint32_t two[6] = {0x0b, 0, 7, 0, 0x0524, 0x0524};

    assert_int_equal(trace(0x0b, 0x0524, 0x14), STATUS_SUCCESS);
    assert_int_equal(trace(0x0b, 0, 0x10), STATUS_SUCCESS);
    assert_int_equal(trace(0x0b, 0x0525, 0x14), STATUS_INVALID_PARAMETER);
    assert_int_equal(trace(0x0b, 0, 0x14), STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_NtSetSystemInformation(0x1f, two, 0x18), STATUS_INVALID_PARAMETER);
    assert_int_equal(trace(0x0b, 0x0524, 0x13), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(trace(0x0b, 0x0524, 8), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(trace(0x0b, 0x0524, 0), STATUS_INFO_LENGTH_MISMATCH);
    assert_int_equal(trace(0x09, 0x0524, 0x14), STATUS_INVALID_INFO_CLASS);
}

/* From user mode, for root alone. */
static void hooks_by_privilege(void **state)
{
    EVENT_TRACE_SYSTEM_EVENT_INFORMATION wanted = {.EventTraceInformationClass = 0x0b};
    int status;
    pid_t pid = fork();

    if (!pid) {
        if (geteuid() == 0 && setuid(65534))
            _exit(2);
        if (prcb_nt_set_system_information(0x1f, &wanted, 0x10, PRCB_NT_USER_MODE) !=
            STATUS_PRIVILEGE_NOT_HELD)
            _exit(3);
        _exit(prcb_nt_set_system_information(0x1f, &wanted, 0x10, PRCB_NT_KERNEL_MODE));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static const struct prcb_switch example = {
    .time_ns = 0x1122334455667788,
    .pebs_index = 0x00007f0012345678,
    .cpu = 3,
    .flags = PRCB_SWITCH_INDEX | PRCB_SWITCH_USER_MODE,
    .old_tid = 0x1234,
    .new_tid = 0x56789,
    .old_prio = 120,
    .new_prio = 0,
    .cause = PRCB_CAUSE_FUTEX,
    .reason = 37,
    .ready_ns = 3 * 15625000 + 1,
};

/* By hand: NT's offsets, little-endian. */
static const uint8_t example_data[0x18] = {
    0x89, 0x67, 0x05, 0, /* 0x00 NewThreadId */
    0x34, 0x12, 0,    0, /* 0x04 OldThreadId */
    31,   8,             /* 0x08 priorities: new, old */
    0,    0,             /* 0x0a C-state, spare */
    37,   1,    5,    3, /* 0x0c reason, mode, state, processor */
    3,    0,    0,    0, /* 0x10 NewThreadWaitTime */
    0,    0,    0,    0, /* 0x14 */
};

static void event_data(void **state)
{
    EVENT_HEADER_EXTENDED_DATA_ITEM item;
    EVENT_EXTENDED_ITEM_PEBS_INDEX index;
    PRCB_CSWITCH data;

    assert_int_equal(trace(0x0b, 0, 0x10), STATUS_SUCCESS);
    for (uint8_t version = 2; version <= 4; version++) {
        memset(&data, 0xff, sizeof(data));
        assert_int_equal(prcb_nt_cswitch(&example, version, &data, &item, &index), STATUS_SUCCESS);
        assert_memory_equal(&data, example_data, sizeof(data));
        assert_int_equal(item.ExtType, 0);
    }
    assert_int_equal(trace(0x0b, 0x0524, 0x14), STATUS_SUCCESS);
    assert_int_equal(prcb_nt_cswitch(&example, 2, &data, &item, &index), STATUS_SUCCESS);
    assert_int_equal(item.ExtType, 7);
    assert_int_equal(item.DataSize, 8);
    assert_int_equal(item.DataPtr, (uintptr_t)&index);
    assert_int_equal(index.PebsIndex, example.pebs_index);
    assert_int_equal(prcb_nt_cswitch(&example, 1, &data, &item, &index), STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_nt_cswitch(&example, 5, &data, &item, &index), STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_nt_cswitch(&example, 4, &data, &item, NULL), STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_nt_cswitch(NULL, 4, &data, NULL, NULL), STATUS_INVALID_PARAMETER);
    assert_int_equal(prcb_nt_cswitch(&example, 4, &data, NULL, NULL), STATUS_SUCCESS);
}

static void event_in_a_trace(void **state)
{
    static const uint8_t time[8] = {0x1d, 0xd3, 0x0d, 0x34, 0xac, 0xdc, 0x2b, 0x00}; /* / 100 */
    uint8_t head[8] = {4, 0, sizeof(void *) == 8 ? 0x11 : 0x10, 0xc0, 0x28, 0, 0x24, 0x05};
    uint8_t bytes[PRCB_NT_CSWITCH_MAX + 4];
    uint32_t length = 0;

    assert_int_equal(trace(0x0b, 0, 0x10), STATUS_SUCCESS);
    memset(bytes, 0xee, sizeof(bytes));
    assert_int_equal(prcb_nt_cswitch_trace(&example, 4, bytes, 0x28, &length), STATUS_SUCCESS);
    assert_int_equal(length, 0x28);
    assert_memory_equal(bytes, head, 8);
    assert_memory_equal(bytes + 8, time, 8);
    assert_memory_equal(bytes + 0x10, example_data, 0x18);
    assert_int_equal(bytes[0x28], 0xee);

    assert_int_equal(trace(0x0b, 0x0524, 0x14), STATUS_SUCCESS);
    assert_int_equal(prcb_nt_cswitch_trace(&example, 4, bytes, 0x2f, &length),
                     STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(length, 0x30);
    assert_int_equal(prcb_nt_cswitch_trace(&example, 4, bytes, sizeof(bytes), &length),
                     STATUS_SUCCESS);
    head[1] = 0x80;
    head[4] = 0x30;
    assert_memory_equal(bytes, head, 8);
    assert_memory_equal(bytes + 0x10, "\x78\x56\x34\x12\x00\x7f\x00\x00", 8);
    assert_memory_equal(bytes + 0x18, example_data, 0x18);
    assert_int_equal(bytes[0x30], 0xee);
}

/* No area was active on the processor: no item, whatever the rule. */
static void event_without_an_index(void **state)
{
    struct prcb_switch record = example;
    EVENT_HEADER_EXTENDED_DATA_ITEM item;
    EVENT_EXTENDED_ITEM_PEBS_INDEX index;
    PRCB_CSWITCH data;

    record.flags = 0;
    assert_int_equal(trace(0x0b, 0x0524, 0x14), STATUS_SUCCESS);
    assert_int_equal(prcb_nt_cswitch(&record, 4, &data, &item, &index), STATUS_SUCCESS);
    assert_int_equal(item.ExtType, 0);
    assert_int_equal(data.OldThreadWaitMode, 0);
}

static void states_and_priorities(void **state)
{
    static const struct {
        uint32_t tid;
        uint8_t cause;
        int16_t prio;
        uint8_t state;
        int8_t priority;
    } rows[] = {
        {0, PRCB_CAUSE_NONE, 120, 2, 0},      {1, PRCB_CAUSE_QUANTUM, 120, 1, 8},
        {1, PRCB_CAUSE_EXIT, 120, 4, 8},      {1, PRCB_CAUSE_PIPE, 120, 5, 8},
        {1, PRCB_CAUSE_YIELD, 100, 1, 15},    {1, PRCB_CAUSE_DISK, 139, 5, 2},
        {1, PRCB_CAUSE_PREEMPTED, 99, 1, 16}, {1, PRCB_CAUSE_SLEEP, -1, 5, 31},
    };
    PRCB_CSWITCH data;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct prcb_switch record = {
            .old_tid = rows[i].tid, .cause = rows[i].cause, .old_prio = rows[i].prio};

        assert_int_equal(prcb_nt_cswitch(&record, 4, &data, NULL, NULL), STATUS_SUCCESS);
        assert_int_equal(data.OldThreadState, rows[i].state);
        assert_int_equal(data.OldThreadPriority, rows[i].priority);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(no_memory_hides_everything),
        T(no_memory_for_the_sampler),
        T(no_sampler_is_not_supported_after_memory),
        T(not_supported),
        T(not_supported_with_an_area),
        T(a_new_area),
        T(the_existing_area),
        T(freeing),
        T(who_may_ask),
        T(lengths),
        T(a_buffer_aligned_to_4),
        T(each_processor_has_its_own),
        T(many_threads),
        T(a_child_has_none),
        T(forms_by_version),
        T(nts_own_test),
        T(the_real_engine_without_a_right_to_it),
        T(hooks),
        T(hooks_by_privilege),
        T(event_data),
        T(event_in_a_trace),
        T(event_without_an_index),
        T(states_and_priorities),
    };

    return cmocka_run_group_tests_name("nt profile area", tests, NULL, NULL);
}
