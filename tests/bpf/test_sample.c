/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Sampling by the rules of DS: records at the index and nowhere else, whatever the area says and
 * whoever moves it, each loss counted, thresholds told. And switch records: as many as the kernel
 * counted, and the sample's thread by the index alone.
 *
 * A hypervisor may take the processor away for milliseconds: how many interrupts come is bounded
 * loosely from below; what becomes of those that came is exact.
 */
#include "harness.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include <prcb/nt.h>
#include <prcb/pebs.h>
#include <prcb/edges.h>
#include <prcb/processors.h>
#include <prcb/sample.h>

#define MS 1000000ull

/* ---- a processor that samples ---- */

static struct prcb_sampler *sampler;
static struct prcb_ds_area *area;
static struct prcb_sample *sample;
static struct prcb_switches *switches;
static uint8_t *buffer;
static size_t buffer_bytes;
static int cpu;

static void must(int result, const struct prcb_error *err)
{
    if (result)
        fail_msg("%d: %s", result, err->text);
}

/* This thread on one processor, with an area and a buffer filled with 0xa5. */
/* Records number threads as the first pid namespace does. */
static void needs_first_pid_ns(void)
{
    if (!is_first_pid_ns())
        skip_because("in a pid namespace of its own a thread does not know its number in records");
}

static void prepare_with(const struct prcb_sampler_options *options, size_t bytes)
{
    struct prcb_error err = {0};
    void *memory;

    pin_to(0);
    cpu = sched_getcpu();
    must(prcb_sampler_open(options, &sampler, &err), &err);
    must(prcb_ds_area_alloc(sampler, cpu, &area, &err), &err);
    must(prcb_sample_buffer_alloc(sampler, bytes, &memory, &err), &err);
    buffer = memory;
    buffer_bytes = bytes;
    memset(buffer, 0xa5, bytes);
}

static void prepare(size_t bytes)
{
    prepare_with(NULL, bytes);
}

static int close_all(void **state)
{
    prcb_switches_close(switches);
    prcb_sample_close(sample);
    prcb_sampler_close(sampler);
    switches = NULL;
    sample = NULL;
    sampler = NULL;
    return test_end(state);
}

static struct prcb_sample_options options_of(uint64_t hz, uint32_t format, uint32_t groups,
                                             uint32_t flags)
{
    return (struct prcb_sample_options){.size = sizeof(struct prcb_sample_options),
                                        .rate = hz ? 1000000000 / hz : 0,
                                        .flags = flags,
                                        .format = format,
                                        .groups = groups};
}

/* So many records from the start of the buffer, the threshold after so many. */
static void set_area(size_t stride, size_t records, size_t threshold)
{
    area->pebs_base = area->pebs_index = (uintptr_t)buffer;
    area->pebs_maximum = area->pebs_base + records * stride;
    area->pebs_threshold = area->pebs_base + threshold * stride;
    assert_true(records * stride <= buffer_bytes);
}

static void start(const struct prcb_sample_options *opts)
{
    struct prcb_error err = {0};

    must(prcb_sample_open(sampler, cpu, opts, &sample, &err), &err);
    assert_int_equal(prcb_sample_stride(sample), prcb_sample_stride_of(opts));
}

static void stop_sampling(void)
{
    prcb_sample_close(sample);
    sample = NULL;
}

static struct prcb_sample_counts counts(void)
{
    struct prcb_sample_counts c = {.size = sizeof(c)};

    assert_int_equal(prcb_sample_count(sample, &c), 0);
    return c;
}

static uint64_t lost(const struct prcb_sample_counts *c)
{
    return c->lost_full + c->lost_index + c->lost_moved;
}

static __attribute__((noinline)) void spin_until(uint64_t end)
{
    while (mono_ns() < end)
        __asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void spin(uint64_t ns)
{
    spin_until(mono_ns() + ns);
    __asm__ volatile("" ::: "memory"); /* no tail call: it stands in the stack */
}

static bool is_filled(const uint8_t *from, const uint8_t *to)
{
    for (; from < to; from++) {
        if (*from != 0xa5)
            return false;
    }
    return true;
}

/* ---- rates ---- */

/* Beyond which the kernel holds events back; it lowers it where interrupts take too long. */
static uint64_t most_samples(void)
{
    FILE *file = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "r");
    unsigned long long most = 0;

    if (file && fscanf(file, "%llu", &most) != 1)
        most = 0;
    if (file)
        fclose(file);
    return most;
}

/* Every interrupt is a record or a loss. There are at most as many as the time has periods (one
 * more at each end); at least a fifth as many as the kernel lets be, for a busy host delays timers.
 */
static void at_rate(uint64_t hz)
{
    struct prcb_sample_options opts = options_of(hz, 3, 0, 0);
    const uint64_t time = 150 * MS;
    struct prcb_sample_counts c;
    uint64_t begin, elapsed, stopped, most;

    prepare(4u << 20);
    set_area(200, 20000, 20000);
    go_before_others(); /* it would be full */
    begin = mono_ns();
    start(&opts);
    spin(time);
    c = counts();
    elapsed = mono_ns() - begin;
    stop_sampling();
    stopped = mono_ns() - begin;
    printf("    %llu Hz: %llu interrupts in %.1f ms, %llu written, %llu lost, throttled %llu "
           "times\n",
           (unsigned long long)hz, (unsigned long long)c.interrupts, (double)elapsed / 1e6,
           (unsigned long long)c.written, (unsigned long long)lost(&c),
           (unsigned long long)c.throttled);
    assert_int_equal(lost(&c), 0);
    assert_int_equal(c.interrupts, c.written);
    most = most_samples();
    assert_in_range(c.written, elapsed * (most < hz ? most : hz) / 5 / slowness() / 1000000000,
                    elapsed * hz / 1000000000 + 2);
    assert_in_range((area->pebs_index - area->pebs_base) / 200, c.written,
                    stopped * hz / 1000000000 + 2);
}

static void rate_1_khz(void **state)
{
    at_rate(1000);
}

static void rate_10_khz(void **state)
{
    at_rate(10000);
}

static void rate_20_khz(void **state)
{
    at_rate(20000);
}

static void rate_40_khz(void **state)
{
    at_rate(40000);
}

static void frequency_and_reset(void **state)
{
    struct prcb_sample_options opts = options_of(0, 0, 0, PRCB_SAMPLE_FREQUENCY);
    uint64_t begin, written;

    prepare(1u << 20);
    opts.rate = 2000;
    set_area(0x90, 5000, 5000);
    start(&opts);
    assert_int_equal(prcb_sample_source(sample), PRCB_SOURCE_CLOCK);
    assert_true(wait_for((spin(1 * MS), counts().written >= 10)));
    stop_sampling();
    /* The period of the area: minus it, in 48 bits. */
    opts = options_of(0, 0, 0, 0);
    area->gp_reset[0] = -500000 & ((UINT64_C(1) << 48) - 1);
    set_area(0x90, 5000, 5000);
    begin = mono_ns();
    start(&opts);
    assert_true(wait_for((spin(1 * MS), counts().written >= 10)));
    written = counts().written;
    assert_in_range(written, 10, (mono_ns() - begin) / 500000 + 2);
    stop_sampling();
}

/* ---- the rules of DS ---- */

static void nothing_past_the_maximum(void **state)
{
    struct prcb_sample_options opts = options_of(10000, 3, 0, 0);
    struct prcb_sample_counts c;

    prepare(64 * 1024);
    set_area(200, 50, 60);     /* a threshold past the end is never reached */
    area->pebs_maximum += 199; /* all but a record */
    start(&opts);
    assert_true(wait_for((spin(1 * MS), counts().lost_full >= 20)));
    stop_sampling();
    assert_int_equal(area->pebs_index, area->pebs_base + 50 * 200);
    assert_false(is_filled(buffer + 49 * 200, buffer + 50 * 200));
    assert_true(is_filled(buffer + 50 * 200, buffer + buffer_bytes));

    /* Intel's form, a multiple and 1; and again from the middle. */
    memset(buffer, 0xa5, buffer_bytes);
    set_area(200, 50, 60);
    area->pebs_maximum += 1;
    area->pebs_index += 40 * 200;
    start(&opts);
    assert_true(wait_for((spin(1 * MS), counts().lost_full >= 5)));
    c = counts();
    stop_sampling();
    assert_int_equal(c.written, 10);
    assert_int_equal(c.thresholds, 0);
    assert_true(is_filled(buffer, buffer + 40 * 200));
    assert_true(is_filled(buffer + 50 * 200, buffer + buffer_bytes));
}

static void one_record(void **state)
{
    struct prcb_sample_options opts = options_of(10000, 1, 0, 0);
    struct prcb_sample_counts c;

    prepare(4096);
    set_area(0xb0, 1, 1);
    start(&opts);
    assert_true(wait_for((spin(1 * MS), counts().lost_full >= 5)));
    c = counts();
    stop_sampling();
    assert_int_equal(c.written, 1);
    assert_int_equal(c.thresholds, 1);
    assert_true(is_filled(buffer + 0xb0, buffer + 4096));
}

static bool readable(void)
{
    struct pollfd fd = {.fd = prcb_sample_fd(sample), .events = POLLIN};

    return poll(&fd, 1, 0) == 1 && fd.revents == POLLIN;
}

static size_t drained;

static int count_records(const void *records, size_t bytes, void *ctx)
{
    assert_int_equal(bytes % prcb_sample_stride(sample), 0);
    drained += bytes / prcb_sample_stride(sample);
    return 0;
}

static void thresholds(void **state)
{
    struct prcb_sample_options opts = options_of(5000, 2, 0, 0);

    prepare(256 * 1024);
    drained = 0;
    set_area(0xc0, 1000, 20);
    go_before_others(); /* 20 records are 4 ms: it would be readable already */
    start(&opts);
    assert_false(readable());
    assert_true(wait_for((spin(100000), readable())));
    assert_true(area->pebs_index >= area->pebs_threshold);
    spin(2 * MS);
    assert_int_equal(counts().thresholds, 1); /* once, however far beyond */
    prcb_sample_acknowledge(sample);
    assert_false(readable());
    assert_int_equal(prcb_sample_drain(sample, count_records, NULL), 0);
    assert_true(drained >= 20);
    assert_true(wait_for((spin(100000), readable())));
    assert_int_equal(counts().thresholds, 2);
    assert_int_equal(prcb_sample_drain(sample, count_records, NULL), 0);
    assert_false(readable());
    stop_sampling();
}

/* A threshold at the base, or below: told at the first record after each draining. */
static void storms(void **state)
{
    struct prcb_sample_options opts = options_of(20000, 3, 0, PRCB_SAMPLE_THREAD);
    struct prcb_sample_counts c;
    uint64_t end;

    prepare(1u << 20);
    drained = 0;
    set_area(prcb_sample_stride_of(&opts), 4000, 0);
    area->pebs_threshold -= 1000;
    go_before_others(); /* it would be full */
    start(&opts);
    end = mono_ns() + 100 * MS;
    do {
        struct pollfd fd = {.fd = prcb_sample_fd(sample), .events = POLLIN};

        assert_in_range(poll(&fd, 1, 1000), 0, 1);
        assert_int_equal(prcb_sample_drain(sample, count_records, NULL), 0);
        c = counts();
    } while (mono_ns() < end || (c.thresholds <= 10 && mono_ns() < end + 10000 * MS));
    stop_sampling();
    assert_int_equal(lost(&c), 0);
    assert_true(c.thresholds > 10 && c.thresholds <= c.written);
}

/* ---- what is refused ---- */

static int try_start(struct prcb_sample_options opts)
{
    struct prcb_sample *none = NULL;
    struct prcb_error err = {0};
    int result = prcb_sample_open(sampler, cpu, &opts, &none, &err);

    if (!result)
        prcb_sample_close(none);
    else
        assert_true(err.text[0] && !none && err.code == result);
    return result;
}

static void areas_refused(void **state)
{
    const struct prcb_sample_options opts = options_of(1000, 3, 0, 0);
    uint8_t *own = malloc(4096);
    struct prcb_error err = {0};
    void *other;

    prepare(8192);
    must(prcb_sample_buffer_alloc(sampler, 4096, &other, &err), &err);
    assert_int_equal(try_start(opts), -EINVAL); /* zeroed */
#define REFUSED(member, value)                                                                     \
    do {                                                                                           \
        set_area(200, 40, 40);                                                                     \
        area->member = (value);                                                                    \
        assert_int_equal(try_start(opts), -EINVAL);                                                \
    } while (0)
    REFUSED(pebs_base, area->pebs_base + 4); /* misaligned */
    REFUSED(pebs_maximum, area->pebs_base - 8);
    REFUSED(pebs_maximum, area->pebs_base + 199); /* not one record */
    REFUSED(pebs_maximum, area->pebs_base + 8193);
    REFUSED(pebs_maximum, (uintptr_t)other + 4096); /* two buffers */
    REFUSED(pebs_maximum, UINT64_MAX);
    REFUSED(pebs_index, area->pebs_base - 200);
    REFUSED(pebs_index, area->pebs_maximum + 200);
    REFUSED(pebs_index, area->pebs_base + 100); /* not at a record */
    REFUSED(pebs_index, 0);
    REFUSED(pebs_base, (uintptr_t)area); /* no buffer */
    REFUSED(pebs_base, 0);
    set_area(200, 10, 10);
    area->pebs_base = area->pebs_index = (uintptr_t)own; /* not prcb's */
    area->pebs_maximum = area->pebs_base + 2000;
    assert_int_equal(try_start(opts), -EINVAL);
    set_area(200, 40, 40);
    assert_int_equal(try_start(opts), 0);
    free(own);
}

static void options_refused(void **state)
{
    struct prcb_sample_options opts = options_of(1000, 3, 0, 0), bad;
    struct {
        struct prcb_sample_options known;
        uint64_t later;
    } longer = {.known = opts, .later = 1};
    struct prcb_sample_counts older;
    struct prcb_error err = {0};
    struct prcb_sample *none;

    prepare(64 * 1024);
    set_area(0x90, 10, 10);
#define BAD(code, ...)                                                                             \
    do {                                                                                           \
        bad = opts;                                                                                \
        __VA_ARGS__;                                                                               \
        assert_int_equal(try_start(bad), code);                                                    \
    } while (0)
    BAD(-EINVAL, bad.size = 4);
    BAD(-EINVAL, bad.flags = 1u << 31);
    BAD(-EINVAL, bad.format = 7);
    BAD(-EINVAL, bad.groups = PRCB_SAMPLE_GPR);
    BAD(-EOPNOTSUPP, bad.format = 4; bad.groups = 4); /* XMM */
    BAD(-EINVAL, bad.flags = PRCB_SAMPLE_STACK);
    BAD(-EINVAL, bad.flags = PRCB_SAMPLE_STACK | PRCB_SAMPLE_THREAD; bad.depth = 128);
    BAD(-EINVAL, bad.flags = PRCB_SAMPLE_FREQUENCY; bad.rate = 0);
    BAD(-EINVAL, bad.rate = 0);
    BAD(-EINVAL, bad.flags = PRCB_SAMPLE_INHERIT);
    BAD(-EINVAL, bad.flags = PRCB_SAMPLE_ON_EXEC);
    BAD(-EINVAL, bad.event = "no-such-event");
    BAD(-ESRCH, bad.tid = 0x3fffffff);
    assert_int_equal(prcb_sample_open(sampler, 4096, &opts, &none, &err), -ENOENT);
    assert_int_equal(prcb_sample_open(sampler, -1, &opts, &none, &err), -ENOENT);
    assert_int_equal(prcb_sample_stride_of(&(struct prcb_sample_options){.format = 9}), 0);
    longer.known.size = sizeof(longer);
    assert_int_equal(prcb_sample_open(sampler, cpu, &longer.known, &none, &err), -E2BIG);
    assert_int_equal(prcb_bts_open(sampler, cpu, &longer.known, &none, &err), -E2BIG);
    assert_int_equal(prcb_sample_stride_of(&longer.known), 0);
    longer.later = 0;
    assert_int_equal(prcb_sample_stride_of(&longer.known), 0xc8);
    /* The area is as good as new after all of them. */
    set_area(200, 10, 10);
    start(&opts);
    memset(&older, 0xa5, sizeof(older));
    older.size = offsetof(struct prcb_sample_counts, lost_full);
    assert_int_equal(prcb_sample_count(sample, &older), 0);
    assert_true(older.written < 1u << 30 && older.lost_full == 0xa5a5a5a5a5a5a5a5);
    older.size = 4;
    assert_int_equal(prcb_sample_count(sample, &older), -EINVAL);
    assert_int_equal(try_start(opts), -EBUSY);
    assert_int_equal(prcb_sample_buffer_free(sampler, buffer, &err), -EBUSY);
    must(prcb_ds_area_free(sampler, cpu, &err), &err); /* which stops it */
    sample = NULL;
    assert_int_equal(try_start(opts), -ENOENT);
    must(prcb_sample_buffer_free(sampler, buffer, &err), &err);
}

static void memory_runs_out(void **state)
{
    struct prcb_sampler_options opts = {.size = sizeof(opts), .memory = 1};
    struct {
        struct prcb_sampler_options known;
        uint64_t later;
    } longer = {.known = {.size = sizeof(longer)}, .later = 1};
    struct prcb_ds_area *again;
    struct prcb_error err = {0};
    void *all, *more;

    assert_int_equal(prcb_sampler_open(&longer.known, &sampler, &err), -E2BIG);
    longer.known.size = 0;
    assert_int_equal(prcb_sampler_open(&longer.known, &sampler, &err), -EINVAL);
    must(prcb_sampler_open(&opts, &sampler, &err), &err);
    cpu = sched_getcpu();
    must(prcb_sample_buffer_alloc(sampler, 1u << 20, &all, &err), &err);
    assert_int_equal(prcb_sample_buffer_alloc(sampler, 1, &more, &err), -ENOSPC);
    assert_int_equal(prcb_ds_area_alloc(sampler, cpu, &area, &err), -ENOSPC);
    assert_int_equal(prcb_sample_buffer_free(sampler, (char *)all + 4096, &err), -EINVAL);
    assert_int_equal(prcb_sample_buffer_free(sampler, &opts, &err), -EINVAL);
    memset(all, 0xff, 1u << 20);
    must(prcb_sample_buffer_free(sampler, all, &err), &err);
    assert_int_equal(prcb_sample_buffer_free(sampler, all, &err), -EINVAL);
    must(prcb_ds_area_alloc(sampler, cpu, &area, &err), &err);
    assert_int_equal((uintptr_t)area % 64, 0);
    for (size_t i = 0; i < sizeof(*area); i++)
        assert_int_equal(((uint8_t *)area)[i], 0);
    assert_int_equal(prcb_ds_area_alloc(sampler, cpu, &again, &err), -EEXIST);
    assert_ptr_equal(again, area);
    assert_int_equal(prcb_sample_buffer_free(sampler, area, &err), -EINVAL);
    assert_int_equal(prcb_ds_area_alloc(sampler, 4096, &again, &err), -ENODEV);
    must(prcb_ds_area_free(sampler, cpu, &err), &err);
    assert_int_equal(prcb_ds_area_free(sampler, cpu, &err), -ENOENT);
    opts.memory = SIZE_MAX;
    assert_int_equal(prcb_sampler_open(&opts, &(struct prcb_sampler *){0}, &err), -ENOMEM);
}

/* ---- an area that goes wrong while it is used ---- */

/* Whatever stands in it: bytes outside the buffer stay as they are, and each record that could
 * not be written is counted. */
static void areas_spoiled(void **state)
{
    struct prcb_sample_options opts = options_of(10000, 3, 0, 0);
    struct prcb_error err = {0};
    uint8_t *before, *after;
    uint64_t base, end;
    struct {
        uint64_t index, maximum;
    } rows[9];
    void *memory;

    prepare(4096); /* before */
    before = buffer;
    must(prcb_sample_buffer_alloc(sampler, 8192, &memory, &err), &err);
    buffer = memory;
    must(prcb_sample_buffer_alloc(sampler, 4096, &memory, &err), &err);
    after = memory;
    assert_true(before + 4096 == buffer && buffer + 8192 == after);
    memset(buffer, 0xa5, 8192);
    memset(after, 0xa5, 4096);
    buffer_bytes = 8192;
    set_area(200, 40, 40);
    base = area->pebs_base;
    end = area->pebs_maximum;
    memcpy(rows,
           &(uint64_t[9][2]){{base - 200, end},
                             {base - 8, end},
                             {end + 200, end + 8192},
                             {0, end},
                             {UINT64_MAX - 7, UINT64_MAX},
                             {base + 4, end},
                             {base, 0},
                             {base + 39 * 200 + 8, UINT64_MAX},
                             {(uintptr_t)area, UINT64_MAX}},
           sizeof(rows));
    start(&opts);
    for (size_t i = 0; i < 9; i++) {
        struct prcb_sample_counts c;
        uint64_t then;

        area->pebs_maximum = rows[i].maximum;
        __atomic_store_n(&area->pebs_index, rows[i].index, __ATOMIC_SEQ_CST);
        area->pebs_base = rows[i].index ^ 0xff;
        c = counts();
        then = lost(&c);
        assert_true(wait_for((spin(200000), c = counts(), lost(&c) >= then + 3)));
        assert_int_equal(area->pebs_index, rows[i].index);
        if (i < 6)
            assert_int_equal(prcb_sample_drain(sample, count_records, NULL), -EINVAL);
        then = counts().written; /* before it goes on: it is full in 4 ms */
        area->pebs_base = base;
        area->pebs_maximum = end;
        area->pebs_index = base;
        assert_true(wait_for((spin(200000), counts().written >= then + 3)));
    }
    stop_sampling();
    assert_true(is_filled(before, before + 4096) && is_filled(after, after + 4096));
    assert_true(is_filled((uint8_t *)(uintptr_t)end, buffer + 8192));
}

/* ---- draining ---- */

struct chain {
    uint64_t last, records, backwards;
};

static int follow_times(const void *records, size_t bytes, void *ctx)
{
    size_t stride = prcb_sample_stride(sample), record = prcb_sample_record_size(sample);
    struct chain *chain = ctx;

    for (size_t at = 0; at < bytes; at += stride) {
        struct prcb_sample_tail tail;

        memcpy(&tail, (const char *)records + at + record, sizeof(tail));
        chain->backwards += tail.time_ns <= chain->last;
        chain->last = tail.time_ns;
        chain->records++;
    }
    return 0;
}

static atomic_bool ended;

static void *spin_here(void *unused)
{
    while (!ended)
        spin(1 * MS);
    return NULL;
}

/* From another processor, all the time: no record twice, none missing. */
static void draining_loses_nothing(void **state)
{
    struct prcb_sample_options opts = options_of(20000, 3, 0, PRCB_SAMPLE_THREAD);
    struct prcb_sample_counts c;
    struct chain chain = {0};
    pthread_t thread;
    uint64_t end;

    prepare(1u << 20);
    set_area(prcb_sample_stride_of(&opts), 4000, 2000);
    ended = false;
    pthread_create(&thread, NULL, spin_here, NULL);
    unpin(); /* this one; the other stays */
    pin_to(1);
    start(&opts);
    for (end = mono_ns() + 150 * MS; mono_ns() < end;)
        assert_int_equal(prcb_sample_drain(sample, follow_times, &chain), 0);
    ended = true;
    pthread_join(thread, NULL);
    /* The processor may be idle and sample still: only what has been stopped is at rest. */
    area->pebs_threshold = 0;
    c = counts();
    while (chain.records < c.written) {
        uint64_t before = chain.records;

        assert_int_equal(prcb_sample_drain(sample, follow_times, &chain), 0);
        assert_true(chain.records > before);
    }
    c = counts();
    assert_in_range(c.written, chain.records, chain.records + 20000); /* it goes on */
    assert_int_equal(c.lost_index + c.lost_moved, 0); /* full: when this thread was kept waiting */
    assert_int_equal(chain.backwards, 0);
    stop_sampling();
}

static int stop_at_once(const void *records, size_t bytes, void *ctx)
{
    return 77;
}

static void draining_stops(void **state)
{
    struct prcb_sample_options opts = options_of(10000, 3, 0, 0);
    uint64_t index;

    prepare(64 * 1024);
    set_area(200, 100, 100);
    start(&opts);
    assert_int_equal(prcb_sample_drain(sample, count_records, NULL), 0); /* nothing there yet */
    assert_true(wait_for((spin(1 * MS), counts().lost_full > 0)));
    index = area->pebs_index;
    assert_int_equal(prcb_sample_drain(sample, stop_at_once, NULL), 77);
    assert_int_equal(area->pebs_index, index);
    drained = 0;
    assert_int_equal(prcb_sample_drain(sample, count_records, NULL), 0);
    assert_in_range(drained, 100, 200);
    stop_sampling();
}

/* A program that sets the index back by a plain store, as NT's would: what it meets is written
 * again or counted. */
static void *reset_index(void *unused)
{
    while (!ended)
        __atomic_store_n(&area->pebs_index, (uintptr_t)buffer, __ATOMIC_RELAXED);
    return NULL;
}

static void a_careless_owner(void **state)
{
    struct prcb_sample_options opts = options_of(20000, 3, 0, 0);
    struct prcb_sample_counts c;
    pthread_t thread;

    prepare(64 * 1024);
    set_area(200, 100, 50);
    start(&opts);
    ended = false;
    unpin();
    pin_to(1);
    pthread_create(&thread, NULL, reset_index, NULL);
    unpin();
    pin_to(0);
    spin(100 * MS);
    /* However many periods an emulated processor stands still for, they are one interrupt. */
    assert_true(wait_for((spin(1 * MS), counts().interrupts > 10)));
    ended = true;
    pthread_join(thread, NULL);
    c = counts();
    stop_sampling();
    assert_int_equal(c.interrupts, c.written + lost(&c));
    assert_true(is_filled(buffer + 100 * 200, buffer + buffer_bytes));
}

/* ---- starting and stopping ---- */

static struct {
    struct prcb_sampler *sampler;
    unsigned place;
    int failures;
} racers[2];

/* After a stop nothing is written: the index stands still, on a processor that is busy. */
static void *start_and_stop(void *arg)
{
    struct prcb_sample_options opts = options_of(40000, 3, 0, PRCB_SAMPLE_THREAD);
    unsigned me = (unsigned)(uintptr_t)arg;
    struct prcb_ds_area *mine;
    struct prcb_error err;
    void *memory;

    pin_thread(gettid(), racers[me].place);
    if (prcb_sample_buffer_alloc(sampler, 1u << 20, &memory, &err))
        racers[me].failures++;
    for (int i = 0; i < 20 && !racers[me].failures; i++) {
        int here = sched_getcpu();
        struct prcb_sample *one;
        uint64_t index;

        if (prcb_ds_area_alloc(sampler, here, &mine, &err) && err.code != -EEXIST)
            racers[me].failures++;
        mine->pebs_base = mine->pebs_index = (uintptr_t)memory;
        mine->pebs_maximum = mine->pebs_base + (1u << 20);
        mine->pebs_threshold = mine->pebs_base;
        if (prcb_sample_open(sampler, here, &opts, &one, &err)) {
            racers[me].failures++;
            break;
        }
        spin(300000);
        prcb_sample_close(one);
        index = mine->pebs_index;
        spin(200000);
        racers[me].failures += mine->pebs_index != index;
        if (i % 2)
            racers[me].failures += !!prcb_ds_area_free(sampler, here, &err);
    }
    return NULL;
}

static void races(void **state)
{
    pthread_t threads[2];
    struct prcb_error err = {0};

    must(prcb_sampler_open(NULL, &sampler, &err), &err);
    for (unsigned i = 0; i < 2; i++) {
        racers[i].place = i;
        racers[i].failures = 0;
        pthread_create(&threads[i], NULL, start_and_stop, (void *)(uintptr_t)i);
    }
    for (unsigned i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(racers[i].failures, 0);
    }
}

/* ---- records ---- */

/* Words of each format, of samples that hit this program in user mode. */
struct places {
    unsigned format, groups, ip, sp, flags, tsc; /* word numbers; 99: none */
    size_t size;
};

static struct {
    const struct places *places;
    uint64_t stack_low, stack_high, tsc_before;
    unsigned own, wrong;
    bool tsc_known; /* the kernel keeps time by it */
} looking;

static uint64_t tsc_now(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

static bool file_holds(const char *path, const char *word)
{
    static char text[65536];
    FILE *file = fopen(path, "re");
    size_t got = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

    if (file)
        fclose(file);
    text[got] = '\0';
    return strstr(text, word);
}

/* It keeps time by the counter, which has one rate and never stops. */
static bool kernel_uses_tsc(void)
{
    static const char source[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

    return file_holds("/proc/cpuinfo", " nonstop_tsc ") &&
           (file_holds(source, "tsc") || file_holds(source, "kvm-clock"));
}

static int look_at(const void *records, size_t bytes, void *ctx)
{
    const struct places *p = looking.places;
    size_t stride = prcb_sample_stride(sample);

    for (size_t at = 0; at < bytes; at += stride) {
        struct prcb_pebs_record decoded = {.size = sizeof(decoded)};
        uint64_t words[32];
        struct prcb_sample_tail tail;

        memcpy(words, (const char *)records + at, p->size);
        memcpy(&tail, (const char *)records + at + p->size, sizeof(tail));
        if (tail.tid != (uint32_t)gettid() || tail.flags & PRCB_TAIL_KERNEL)
            continue;
        looking.own++;
        looking.wrong += tail.pid != (uint32_t)getpid();
        looking.wrong += prcb_pebs_decode(p->format, words, p->size, &decoded, NULL) != 0 ||
                         decoded.length != p->size || decoded.groups != p->groups;
        looking.wrong += words[p->ip] >> 47 != 0 || words[p->ip] < 4096;
        if (p->sp != 99)
            looking.wrong += words[p->sp] < looking.stack_low || words[p->sp] > looking.stack_high;
#if defined(__x86_64__)
        if (p->flags != 99)
            looking.wrong += !(words[p->flags] & 0x200); /* interrupts are on in user mode */
        if (p->tsc != 99)
            looking.wrong += looking.tsc_known ? words[p->tsc] < looking.tsc_before - 100000 ||
                                                     words[p->tsc] > tsc_now() + 100000
                                               : words[p->tsc] != 0;
#endif
        if (p->format == 3)
            looking.wrong += words[18] != 1 || words[19] || words[20] || words[21] ||
                             words[22] != words[1] || words[23];
        if (p->format >= 4)
            looking.wrong += words[0] != ((uint64_t)p->size << 48 | p->groups) || words[2] != 1;
    }
    return 0;
}

static void formats(void **state)
{
    static const struct places rows[] = {
        {0, 0, 1, 9, 0, 99, 0x90}, {1, 0, 1, 9, 0, 99, 0xb0},  {2, 0, 1, 9, 0, 99, 0xc0},
        {3, 0, 1, 9, 0, 24, 0xc8}, {4, 0, 1, 99, 99, 3, 0x20}, {4, 1, 1, 99, 99, 3, 0x40},
        {4, 2, 1, 10, 4, 3, 0xb0}, {4, 3, 1, 14, 8, 3, 0xd0},  {5, 0, 1, 99, 99, 3, 0x20},
        {5, 3, 1, 14, 8, 3, 0xd0}, {6, 2, 1, 10, 4, 3, 0xb0},  {6, 3, 1, 14, 8, 3, 0xd0},
    };

    needs_first_pid_ns();
    prepare(1u << 20);
    looking.tsc_known = kernel_uses_tsc();
    /* Sanitizers put variables elsewhere. */
    looking.stack_low = (uintptr_t)__builtin_frame_address(0) - 65536;
    looking.stack_high = (uintptr_t)__builtin_frame_address(0) + 65536;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct prcb_sample_options opts =
            options_of(10000, rows[i].format, rows[i].groups, PRCB_SAMPLE_THREAD);

        assert_int_equal(prcb_sample_stride_of(&opts), rows[i].size + 24);
        set_area(rows[i].size + 24, 2000, 2000);
        looking.places = &rows[i];
        looking.own = looking.wrong = 0;
        looking.tsc_before = tsc_now();
        start(&opts);
        assert_int_equal(prcb_sample_record_size(sample), rows[i].size);
        assert_true(wait_for(
            (spin(2 * MS), prcb_sample_drain(sample, look_at, NULL) || looking.own >= 10)));
        stop_sampling();
        assert_int_equal(looking.wrong, 0);
    }
}

/* Memory is an array of chunks of 1 MiB; a record may lie across two. */
static void across_chunks(void **state)
{
    struct prcb_sample_options opts = options_of(20000, 3, 0, 0);
    const uint64_t *words;
    uint64_t border, last = 0;
    size_t first;

    prepare(3u << 20);
    set_area(200, 15000, 15000);
    /* The buffer starts a page into the memory, behind the area. */
    border = (uintptr_t)buffer + (1u << 20) - 4096;
    first = (border - (uintptr_t)buffer) / 200 - 20;
    area->pebs_index += first * 200;
    area->pebs_maximum = area->pebs_index + 40 * 200;
    start(&opts);
    assert_true(wait_for((spin(1 * MS), counts().lost_full > 0)));
    assert_int_equal(counts().written, 40);
    stop_sampling();
    assert_true(is_filled(buffer, buffer + first * 200));
    assert_true(is_filled(buffer + (first + 40) * 200, buffer + buffer_bytes));
    for (size_t i = first; i < first + 40; i++) {
        words = (const uint64_t *)(buffer + i * 200);
        assert_int_equal(words[18], 1);
        assert_int_equal(words[22], words[1]);
        assert_true(words[24] > last || !words[24]);
        last = words[24];
    }
    assert_true(border > (uintptr_t)buffer + first * 200);
}

static unsigned stacks_seen, stacks_good;

static int look_at_stack(const void *records, size_t bytes, void *ctx)
{
    size_t stride = prcb_sample_stride(sample), size = prcb_sample_record_size(sample);

    for (size_t at = 0; at < bytes; at += stride) {
        const struct prcb_sample_tail *tail = (const void *)((const char *)records + at + size);
        const uint64_t *frames = (const uint64_t *)(tail + 1);
        bool good = false;

        assert_true(tail->kernel_frames + tail->user_frames <= 40);
        if (tail->tid != (uint32_t)gettid())
            continue;
        stacks_seen++;
        for (int i = 0; i < tail->user_frames; i++) {
            uint64_t frame = frames[tail->kernel_frames + i];

            /* spin() is short: its caller's return address lies in it. */
            good |= frame >= (uintptr_t)spin && frame < (uintptr_t)spin + 128;
        }
        stacks_good += good;
    }
    return 0;
}

/* Leaf functions without a frame (the vDSO's) hide their caller's caller, not all. */
static void stacks(void **state)
{
    struct prcb_sample_options opts =
        options_of(10000, 0, 0, PRCB_SAMPLE_THREAD | PRCB_SAMPLE_STACK);

    needs_first_pid_ns();
    prepare(2u << 20);
    opts.depth = 40;
    assert_int_equal(prcb_sample_stride_of(&opts), 0x90 + 24 + 40 * 8);
    set_area(prcb_sample_stride_of(&opts), 2000, 2000);
    stacks_seen = stacks_good = 0;
    start(&opts);
    assert_true(wait_for(
        (spin(5 * MS), prcb_sample_drain(sample, look_at_stack, NULL) || stacks_seen >= 100)));
    stop_sampling();
    printf("    %u of %u stacks hold the caller\n", stacks_good, stacks_seen);
    assert_true(stacks_good * 2 > stacks_seen);
}

/* ---- threads ---- */

static int spin_child(void *arg)
{
    pin_thread(gettid(), 0);
    for (;;)
        spin(1 * MS);
    return 0;
}

static int spin_grandchild(void *arg)
{
    pin_thread(gettid(), 0);
    gate_wait_while(arg, 0);
    if (fork() == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        spin(1 * MS);
    return 0;
}

static struct {
    uint32_t pids[4];
    unsigned seen[5]; /* of these, and of others */
    uint32_t other;   /* the last one of these */
} whose;

static int look_whose(const void *records, size_t bytes, void *ctx)
{
    size_t stride = prcb_sample_stride(sample), size = prcb_sample_record_size(sample);

    for (size_t at = 0; at < bytes; at += stride) {
        const struct prcb_sample_tail *tail = (const void *)((const char *)records + at + size);
        int i = 0;

        while (i < 4 && whose.pids[i] != tail->pid)
            i++;
        whose.seen[i]++;
        if (i == 4)
            whose.other = tail->pid;
    }
    return 0;
}

static void one_thread_only(void **state)
{
    struct prcb_sample_options opts = options_of(5000, 0, 0, PRCB_SAMPLE_THREAD);
    struct prcb_error err = {0};
    pid_t first, second;

    needs_first_pid_ns();
    first = child_start(spin_child, NULL);
    second = child_start(spin_child, NULL);
    prepare(1u << 20);
    memset(&whose, 0, sizeof(whose));
    whose.pids[0] = (uint32_t)first;
    whose.pids[1] = (uint32_t)second;
    set_area(prcb_sample_stride_of(&opts), 4000, 4000);
    opts.tid = first;
    start(&opts);
    assert_true(wait_for(
        (spin(5 * MS), prcb_sample_drain(sample, look_whose, NULL) || whose.seen[0] >= 20)));
    assert_int_equal(whose.seen[1] + whose.seen[2] + whose.seen[4], 0);
    must(prcb_sample_add(sample, second, &err), &err);
    assert_int_equal(prcb_sample_add(sample, 0x3fffffff, &err), -ESRCH);
    assert_int_equal(prcb_sample_add(sample, 0, &err), -EINVAL);
    assert_true(wait_for(
        (spin(5 * MS), prcb_sample_drain(sample, look_whose, NULL) || whose.seen[1] >= 20)));
    assert_int_equal(whose.seen[4], 0);
    stop_sampling();
}

static void inherited(void **state)
{
    struct prcb_sample_options opts =
        options_of(5000, 0, 0, PRCB_SAMPLE_THREAD | PRCB_SAMPLE_INHERIT);
    uint32_t *gate = shared_memory(4096);
    pid_t child;

    needs_first_pid_ns();
    child = child_start(spin_grandchild, gate);
    prepare(1u << 20);
    memset(&whose, 0, sizeof(whose));
    whose.pids[0] = (uint32_t)child;
    whose.pids[1] = (uint32_t)getpid();
    set_area(prcb_sample_stride_of(&opts), 4000, 4000);
    opts.tid = child;
    start(&opts);
    gate_set(gate, 1);
    assert_true(wait_for((spin(5 * MS), prcb_sample_drain(sample, look_whose, NULL) ||
                                            (whose.seen[0] >= 10 && whose.seen[4] >= 10))));
    assert_int_equal(whose.seen[1], 0); /* others are the grandchild alone: not this process */
    stop_sampling();
}

/* ---- switch records ---- */

#define MOST_RECORDS 400000

static struct prcb_switch *records;
static size_t record_count;

static int keep(const struct prcb_switch *record, void *ctx)
{
    if (record_count == MOST_RECORDS)
        return 1;
    records[record_count++] = *record;
    return 0;
}

static void open_switches(size_t bytes)
{
    struct prcb_error err = {0};

    must(prcb_switches_open(sampler, bytes, &switches, &err), &err);
    records = shared_memory(MOST_RECORDS * sizeof(*records));
    record_count = 0;
}

/* Of both processes that are chosen: on a busy machine ten samples may lie between two switches. */
static bool enough_is_seen(void)
{
    uint64_t lost_records;

    spin(5 * MS);
    assert_int_equal(prcb_switches_read(switches, keep, NULL, &lost_records), 0);
    assert_int_equal(lost_records, 0);
    return prcb_sample_drain(sample, look_whose, NULL) ||
           (whose.seen[0] >= 10 && whose.seen[4] >= 10 && record_count > 4);
}

/* Samples of every thread, and switch records: of what was chosen and what that starts alone. */
static void all_that_is_chosen(void **state)
{
    const struct prcb_sampler_options how = {.size = sizeof(how), .flags = PRCB_SAMPLER_CHOSEN};
    struct prcb_sample_options opts = options_of(5000, 0, 0, PRCB_SAMPLE_THREAD);
    uint32_t *gate = shared_memory(4096);
    struct prcb_error err = {0};
    pid_t child;

    needs_first_pid_ns();
    child = child_start(spin_grandchild, gate);
    prepare_with(&how, 1u << 20);
    memset(&whose, 0, sizeof(whose));
    whose.pids[0] = (uint32_t)child;
    whose.pids[1] = (uint32_t)child_start(spin_child, NULL);
    whose.pids[2] = (uint32_t)getpid();
    assert_int_equal(prcb_sampler_choose(sampler, 0x3fffffff, 0, &err), -ESRCH);
    assert_int_equal(prcb_sampler_choose(sampler, 0, 0, &err), -EINVAL);
    must(prcb_sampler_choose(sampler, child, 0, &err), &err);
    open_switches(0);
    set_area(prcb_sample_stride_of(&opts), 4000, 4000);
    start(&opts);
    gate_set(gate, 1);
    assert_true(wait_for(enough_is_seen()));
    stop_sampling();
    assert_int_equal(whose.seen[1] + whose.seen[2], 0);
    for (size_t i = 0; i < record_count; i++)
        assert_true(records[i].old_pid == whose.pids[0] || records[i].new_pid == whose.pids[0] ||
                    records[i].old_pid == whose.other || records[i].new_pid == whose.other);
}

struct pong {
    int in, out, trips;
    unsigned cpu; /* of those it may use: the number */
    pid_t tid;
    uint64_t switches; /* getrusage's, over the trips */
    uint32_t *gates;
};

/* Passes a byte on, so many times. Between the gates it switches as often as it counts. */
static int pass_bytes(void *arg)
{
    struct pong *pong = arg;
    uint64_t before;
    char byte;

    pin_thread(gettid(), pong->cpu);
    pong->tid = gettid();
    gate_set(&pong->gates[0], 1);
    gate_wait_while(&pong->gates[1], 0);
    before = own_switches();
    for (int i = 0; i < pong->trips; i++) {
        if (read(pong->in, &byte, 1) != 1 || write(pong->out, "x", 1) != 1)
            return 1;
    }
    pong->switches = own_switches() - before;
    gate_set(&pong->gates[2], 1);
    gate_wait_while(&pong->gates[3], 0);
    return 0;
}

static uint64_t count_of(pid_t tid)
{
    uint64_t count = 0;

    for (size_t i = 0; i < record_count; i++)
        count += records[i].old_tid == (uint32_t)tid;
    return count;
}

static struct pong *pongs;
static uint32_t *pong_gates;

/* Of two threads, the second on the cpu-th processor. */
static void start_pongs_on(int trips, unsigned second)
{
    int there[2], back[2];

    pongs = shared_memory(4096);
    pong_gates = shared_memory(4096);
    assert_true(!pipe(there) && !pipe(back));
    pongs[0] = (struct pong){.in = there[0], .out = back[1], .trips = trips, .gates = pong_gates};
    pongs[1] = (struct pong){
        .in = back[0], .out = there[1], .trips = trips, .cpu = second, .gates = pong_gates + 8};
    for (int i = 0; i < 2; i++) {
        child_start(pass_bytes, &pongs[i]);
        gate_wait_while(&pongs[i].gates[0], 0);
    }
    assert_int_equal(write(there[1], "x", 1), 1);
    for (int i = 0; i < 4; i++)
        close(i < 2 ? there[i] : back[i - 2]);
}

static void start_pongs(int trips)
{
    start_pongs_on(trips, 0);
}

static void let_pongs_play(void)
{
    for (int i = 0; i < 2; i++)
        gate_set(&pongs[i].gates[1], 1);
    for (int i = 0; i < 2; i++)
        gate_wait_while(&pongs[i].gates[2], 0);
}

static int keep_pongs(const struct prcb_switch *record, void *ctx)
{
    bool of_two =
        record->old_tid == (uint32_t)pongs[0].tid || record->old_tid == (uint32_t)pongs[1].tid;

    return of_two ? keep(record, ctx) : 0;
}

/* They play, while all records are read: those of a busy machine fill the ring in less than the
 * time for which this thread could have no processor. */
static void read_while_pongs_play(prcb_switch_fn fn, void *ctx)
{
    uint64_t lost_records;
    bool playing = true;

    go_before_others();
    open_switches(0);
    for (int i = 0; i < 2; i++)
        gate_set(&pongs[i].gates[1], 1);
    while (playing) {
        sleep_ns(MS);
        playing = !gate_get(&pongs[0].gates[2]) || !gate_get(&pongs[1].gates[2]);
        assert_int_equal(prcb_switches_read(switches, fn, ctx, &lost_records), 0);
        assert_int_equal(lost_records, 0);
    }
}

/* A record for each switch that the kernel counted for the two, none lost; at each the causes of
 * a pipe. Reading goes on beside them. */
static void switch_for_switch(void **state)
{
    struct prcb_error err = {0};
    size_t pipes = 0;
    int priority = 120 + getpriority(PRIO_PROCESS, 0); /* the kernel's number of a nice value */

    needs_first_pid_ns();
    must(prcb_sampler_open(NULL, &sampler, &err), &err);
    start_pongs(20000 / (int)slowness());
    read_while_pongs_play(keep_pongs, NULL);
    for (int i = 0; i < 2; i++) {
        /* The gates before and after make a switch or two more. */
        assert_in_range(count_of(pongs[i].tid), pongs[i].switches, pongs[i].switches + 3);
        gate_set(&pongs[i].gates[3], 1);
    }
    for (size_t i = 0; i < record_count; i++) {
        const struct prcb_switch *r = &records[i];

        assert_int_equal(r->flags & PRCB_SWITCH_INDEX, 0); /* no area anywhere */
        assert_int_equal(r->samples + r->pebs_index, 0);
        if (r->cause == PRCB_CAUSE_PIPE) {
            pipes++;
            assert_int_equal(r->reason, prcb_cause_info(PRCB_CAUSE_PIPE)->reason);
            assert_int_equal(r->old_state & 1, 1);
            assert_true(r->flags & PRCB_SWITCH_USER_MODE);
            assert_int_equal(r->old_prio, priority);
            assert_int_equal(r->old_pid, r->old_tid);
        }
    }
    printf("    %zu records of the two, %zu by pipe\n", record_count, pipes);
    /* The other causes are of being preempted: one of them by the other, which then waits. */
    assert_true(pipes * 4 > pongs[0].switches + pongs[1].switches);
}

/* Read beside them, through a ring that they fill many times: as many as the kernel counted,
 * less what was lost while this thread had no processor. */
static void read_beside(void **state)
{
    struct pollfd fd = {.events = POLLIN};
    uint64_t lost_records, begin, both, counted;
    struct prcb_error err = {0};
    bool playing = true;

    needs_first_pid_ns();
    must(prcb_sampler_open(NULL, &sampler, &err), &err);
    start_pongs(60000 / (int)slowness());
    open_switches(1u << 20);
    fd.fd = prcb_switches_fd(switches);
    pin_to(1);
    begin = mono_ns();
    for (int i = 0; i < 2; i++)
        gate_set(&pongs[i].gates[1], 1);
    while (playing) {
        playing = !gate_get(&pongs[0].gates[2]) || !gate_get(&pongs[1].gates[2]);
        poll(&fd, 1, 1);
        assert_int_equal(prcb_switches_read(switches, keep_pongs, NULL, &lost_records), 0);
    }
    begin = mono_ns() - begin;
    assert_int_equal(prcb_switches_read(switches, keep_pongs, NULL, &lost_records), 0);
    both = count_of(pongs[0].tid) + count_of(pongs[1].tid);
    counted = pongs[0].switches + pongs[1].switches;
    printf("    %llu switches of the two, %.0f a second; %zu records of theirs, %llu lost\n",
           (unsigned long long)counted, (double)counted * 1e9 / (double)begin, record_count,
           (unsigned long long)lost_records);
    assert_true(both + lost_records >= counted);
    assert_true(both <= counted + 6);
    if (!lost_records)
        assert_true(both >= counted);
    for (int i = 0; i < 2; i++)
        gate_set(&pongs[i].gates[3], 1);
}

#define FILLED ((512u << 10) / 80) /* how many records fill a ring of 512 KiB, with their heads */

/* By processor. */
struct filled {
    size_t counts[64];
    uint64_t last_ns[64]; /* of the last record that fitted */
};

static int note_processor(const struct prcb_switch *record, void *ctx)
{
    struct filled *filled = ctx;

    if (++filled->counts[record->cpu % 64] < FILLED) /* later ones came while they were read */
        filled->last_ns[record->cpu % 64] = record->time_ns;
    return 0;
}

/* Switches of one processor, which nobody reads, fill its own ring: what this thread makes on
 * another afterwards is not lost for that, unless others filled that ring as well. */
static void a_ring_a_processor(void **state)
{
    unsigned theirs = cpu_number(0), own = cpu_number(1);
    struct filled filled = {{0}, {0}};
    struct prcb_error err = {0};
    uint64_t lost_records;

    needs_first_pid_ns();
    if (theirs % 64 == own % 64)
        skip(); /* one processor */
    must(prcb_sampler_open(NULL, &sampler, &err), &err);
    start_pongs(6000);
    pin_to(1);
    open_switches(1u << 20);
    let_pongs_play();
    for (int i = 0; i < 10; i++)
        sleep_ns(MS);
    assert_int_equal(prcb_switches_read(switches, note_processor, &filled, &lost_records), 0);
    for (int i = 0; i < 2; i++)
        gate_set(&pongs[i].gates[3], 1);
    printf("    %zu records of the pongs' processor and %zu of this, %llu lost\n",
           filled.counts[theirs % 64], filled.counts[own % 64], (unsigned long long)lost_records);
    assert_true(lost_records > 0);
    assert_true(filled.counts[theirs % 64] >= FILLED - 1);
    if (filled.counts[own % 64] < FILLED - 1)
        assert_true(filled.last_ns[own % 64] > filled.last_ns[theirs % 64]);
}

/* What was seen of the wakes of the two. */
struct woken {
    enum { OTHERWISE, FOR_PIPE, COULD_RUN } left[2]; /* how it left the processor */
    uint64_t right, other, unknown, early, ready;    /* wakes; ready: of one that did not wait */
    uint64_t left_ns[2];
};

static int look_at_wake(const struct prcb_switch *record, void *ctx)
{
    struct woken *woken = ctx;

    for (int i = 0; i < 2; i++) {
        if (record->new_tid == (uint32_t)pongs[i].tid) {
            bool right = record->waker_by == PRCB_BY_THREAD &&
                         record->waker_tid == (uint32_t)pongs[1 - i].tid &&
                         record->waker_pid == (uint32_t)pongs[1 - i].tid;

            woken->ready += woken->left[i] == COULD_RUN && record->waker_by;
            if (woken->left[i] == FOR_PIPE && right)
                woken->right++;
            else if (woken->left[i] == FOR_PIPE && record->waker_by > PRCB_BY_UNKNOWN)
                woken->other++;
            else if (woken->left[i] == FOR_PIPE)
                woken->unknown++;
            if (woken->left[i] == FOR_PIPE && record->waker_by) {
                assert_true(record->woken_ns <= record->time_ns);
                woken->early += record->woken_ns < woken->left_ns[i];
            }
            woken->left[i] = OTHERWISE;
        }
        if (record->old_tid == (uint32_t)pongs[i].tid) {
            woken->left[i] = record->cause == PRCB_CAUSE_PIPE ? FOR_PIPE
                             : !record->old_state             ? COULD_RUN
                                                              : OTHERWISE;
            woken->left_ns[i] = record->time_ns;
        }
    }
    return 0;
}

/* Each wait has its waker, also where the two run on a processor each and a wake comes while its
 * sleeper is on its way to sleep. The kernel does not report some switches, in one of some hundred
 * thousands; a wait that follows such a one is not known. PRCB_TEST_WAKES: so many instead. */
static void a_waker_of_each_wait(void **state)
{
    struct prcb_processors_options options = {.size = sizeof(options), .tier = PRCB_TIER_BPF};
    struct prcb_sampler_options with = {.size = sizeof(with)};
    const char *asked = getenv("PRCB_TEST_WAKES");
    int trips = (asked ? atoi(asked) / 2 : 20000) / (int)slowness();
    struct prcb_processors *view;
    struct prcb_error err = {0};
    struct woken woken = {0};

    needs_first_pid_ns();
    if (prcb_processors_open(&options, &view, &err) && strstr(err.text, "PREEMPT_RT"))
        skip_because("%s", err.text);
    must(err.code, &err);
    with.wakers = view;
    must(prcb_sampler_open(&with, &sampler, &err), &err);
    start_pongs_on(trips, 1);
    read_while_pongs_play(look_at_wake, &woken);
    printf("    %llu wakes by the other one, %llu of them before the switch out; %llu by others, "
           "%llu unknown\n",
           (unsigned long long)woken.right, (unsigned long long)woken.early,
           (unsigned long long)woken.other, (unsigned long long)woken.unknown);
    assert_int_equal(woken.ready, 0);
    assert_true(woken.right > (uint64_t)trips / 4);
    assert_in_range(woken.other + woken.unknown, 0, 3 + woken.right / 50000);
    for (int i = 0; i < 2; i++)
        gate_set(&pongs[i].gates[3], 1);
    prcb_sampler_close(sampler);
    sampler = NULL;
    switches = NULL;
    prcb_processors_close(view);
}

/* With too little room: what is not there is counted. */
static void lost_switches(void **state)
{
    struct prcb_error err = {0};
    uint64_t lost_records, before, fitted = 0, room = (uint64_t)sysconf(_SC_PAGESIZE) / 80;

    must(prcb_sampler_open(NULL, &sampler, &err), &err);
    start_pongs(2000);
    open_switches(1);
    let_pongs_play();
    before = mono_ns();
    assert_int_equal(prcb_switches_read(switches, keep, NULL, &lost_records), 0);
    /* A page, 80 bytes each with its header, of the processor that they are on. Room that is read
     * is used again at once, and the reader goes on with what the processor did meanwhile: that has
     * no bound. A record has its room before its stamp, so one may have it now and be stamped
     * later. */
    for (size_t i = 0; i < record_count; i++)
        fitted += records[i].time_ns < before && records[i].cpu == cpu_number(0);
    assert_in_range(fitted, room - 1, room);
    assert_true(lost_records > 0);
    assert_true(record_count + lost_records >= pongs[0].switches + pongs[1].switches);
    for (int i = 0; i < 2; i++)
        gate_set(&pongs[i].gates[3], 1);
}

static int stop_after_three(const struct prcb_switch *record, void *ctx)
{
    return ++*(int *)ctx == 3 ? 33 : 0;
}

static void the_stream(void **state)
{
    struct prcb_switches *second;
    struct pollfd fd = {.events = POLLIN};
    struct prcb_error err = {0};
    uint64_t lost_records = 0;
    int seen = 0;

    must(prcb_sampler_open(NULL, &sampler, &err), &err);
    open_switches(4096);
    assert_int_equal(prcb_switches_open(sampler, 0, &second, &err), -EBUSY);
    for (int i = 0; i < 20; i++)
        sleep_ns(100000);
    fd.fd = prcb_switches_fd(switches);
    assert_int_equal(poll(&fd, 1, 5000), 1); /* a quarter is in use: 12 records */
    assert_int_equal(prcb_switches_read(switches, stop_after_three, &seen, NULL), 33);
    assert_int_equal(seen, 3);
    seen = -1000000;
    assert_int_equal(prcb_switches_read(switches, stop_after_three, &seen, &lost_records), 0);
    assert_true(seen > -1000000);
    prcb_switches_close(switches);
    switches = NULL;
    assert_int_equal(prcb_switches_open(sampler, (size_t)1 << 40, &second, &err), -ENOMEM);
    /* Anew, and losses count from there. */
    go_before_others();
    open_switches(0);
    assert_int_equal(prcb_switches_read(switches, keep, NULL, &lost_records), 0);
    assert_int_equal(lost_records, 0);
}

/* ---- whose sample? ---- */

static int spin_and_nap(void *arg)
{
    pin_thread(gettid(), 0);
    for (;;) {
        spin(700000);
        sleep_ns(100000);
    }
    return 0;
}

/* What is this processor's. */
static int keep_here(const struct prcb_switch *record, void *ctx)
{
    bool here = record->cpu == (uint32_t)cpu && record->flags & PRCB_SWITCH_INDEX;

    return here ? keep(record, ctx) : 0;
}

/* The thread of every sample by the switch records alone, against the thread number that the
 * sample carries: the same for all, but where the kernel did not report a switch (the record's
 * old thread is not the new one of the record before). */
static void attribution(void **state)
{
    struct prcb_sample_options opts = options_of(10000, 3, 0, PRCB_SAMPLE_THREAD);
    size_t stride = prcb_sample_stride_of(&opts), here, checked = 0, wrong = 0, unsure = 0;
    uint64_t lost_records, end;
    size_t written;

    prepare(8u << 20);
    set_area(stride, 30000, 30000);
    go_before_others(); /* the ring would be full */
    open_switches(0);
    for (int i = 0; i < 3; i++)
        child_start(spin_and_nap, NULL);
    start(&opts);
    end = mono_ns() + 400 * MS;
    do {
        sleep_ns(MS);
        assert_int_equal(prcb_switches_read(switches, keep_here, NULL, &lost_records), 0);
        written = (area->pebs_index - area->pebs_base) / stride;
        /* More where the processor is busy with others, or slow. */
    } while (mono_ns() < end || (written <= 600 && mono_ns() < end + 10000 * MS * slowness()));
    stop_sampling();
    written = (area->pebs_index - area->pebs_base) / stride;
    assert_int_equal(prcb_switches_read(switches, keep_here, NULL, &lost_records), 0);
    assert_int_equal(lost_records, 0);
    here = record_count;
    assert_true(here > 20);
    for (size_t i = 1; i < here; i++) {
        size_t from = (records[i - 1].pebs_index - area->pebs_base) / stride;
        size_t to = (records[i].pebs_index - area->pebs_base) / stride;

        assert_int_equal(from, records[i - 1].samples); /* nothing was drained */
        assert_true(from <= to && to <= written);
        for (size_t n = from; n < to; n++) {
            const struct prcb_sample_tail *tail = (const void *)(buffer + n * stride + 0xc8);

            if (records[i].old_tid != records[i - 1].new_tid)
                unsure++;
            else if (tail->tid != records[i].old_tid)
                wrong++;
            checked++;
        }
    }
    printf("    %zu samples between %zu switches: %zu wrong, %zu where a switch was not "
           "reported\n",
           checked, here, wrong, unsure);
    assert_true(checked > 200);
    assert_int_equal(wrong, 0);
    assert_true(unsure * 4 < checked);
}

/* ---- NT ---- */

static NTSTATUS set(uint8_t allocate, PROCESSOR_PROFILE_CONTROL_AREA **ret)
{
    SYSTEM_PROCESSOR_PROFILE_CONTROL_AREA request = {(void *)(uintptr_t)0x1230, allocate};
    NTSTATUS status = prcb_NtSetSystemInformation(0x81, &request, sizeof(request));

    *ret = request.ProcessorProfileControlArea;
    return status;
}

/* In a child: the sampler of class 0x81 lasts as long as its process. */
static int nt_areas(void *arg)
{
    struct prcb_sample_options opts = options_of(10000, 3, 0, 0);
    PROCESSOR_PROFILE_CONTROL_AREA *own, *got;
    struct prcb_sampler *of_nt;
    struct prcb_sample *one;
    PEBS_DS_SAVE_AREA64 *ds;
    struct prcb_error err;
    void *memory;

    for (unsigned place = 0; place < 2; place++) {
        pin_thread(gettid(), place);
        if (set(0, &got) != STATUS_MEMORY_NOT_ALLOCATED || got)
            return 10;
        if (set(1, &own) != STATUS_SUCCESS || !own || (uintptr_t)own % 64)
            return 11;
        for (size_t i = 0; i < sizeof(*own); i++) {
            if (((uint8_t *)own)[i])
                return 12;
        }
        if (set(1, &got) != STATUS_ADDRESS_ALREADY_EXISTS || got != own)
            return 13;
        ds = &own->PebsDsSaveArea.As64Bit;
        if (prcb_nt_sampler(&of_nt, &err) ||
            prcb_sample_buffer_alloc(of_nt, 200 * 100, &memory, &err))
            return 14;
        ds->PebsBufferBase = ds->PebsIndex = (uintptr_t)memory;
        ds->PebsAbsoluteMaximum = ds->PebsBufferBase + 200 * 100;
        ds->PebsInterruptThreshold = ds->PebsAbsoluteMaximum;
        if (prcb_sample_open(of_nt, sched_getcpu(), &opts, &one, &err))
            return 15;
        if (!wait_for((spin(1 * MS),
                       *(volatile uint64_t *)&ds->PebsIndex >= ds->PebsBufferBase + 200 * 5)))
            return 16;
        if (arg)
            kill(getpid(), SIGKILL); /* with areas installed and a sample running */
        if (set(0, &got) != STATUS_SUCCESS || got)
            return 17;
        if (set(0, &got) != STATUS_MEMORY_NOT_ALLOCATED)
            return 18;
    }
    return 0;
}

static int programs_named(const char *name)
{
    __u32 id = 0;
    int found = 0;

    while (!bpf_prog_get_next_id(id, &id)) {
        struct bpf_prog_info info = {0};
        __u32 size = sizeof(info);
        int fd = bpf_prog_get_fd_by_id(id);

        if (fd < 0)
            continue;
        if (!bpf_obj_get_info_by_fd(fd, &info, &size))
            found += !strcmp(info.name, name);
        close(fd);
    }
    return found;
}

static void nt_surface(void **state)
{
    assert_int_equal(child_wait(child_start(nt_areas, NULL)), 0);
}

/* A process that dies with areas leaves nothing: the programs, and with them the events and the
 * memory, are gone. */
static void death_frees(void **state)
{
    int before = programs_named("prcb_sample");

    assert_int_equal(child_wait(child_start(nt_areas, (void *)1)), -SIGKILL);
    /* Fewer: others' recordings have ended, too. */
    assert_true(wait_for(programs_named("prcb_sample") <= before));
}

/* ---- other ---- */

static void branch_traces(void **state)
{
    struct prcb_sample_options opts = options_of(1000, 0, 0, 0);
    struct prcb_error err = {0};

    prepare(4096);
    if (!access("/sys/bus/event_source/devices/intel_bts", F_OK))
        skip_because("this machine has branch traces");
    assert_int_equal(prcb_bts_open(sampler, cpu, &opts, &sample, &err), -EOPNOTSUPP);
    assert_true(strstr(err.text, "intel_bts"));
}

static void support(void **state)
{
    struct prcb_error err = {0};

    prepare(4096);
    must(prcb_sampler_check(sampler, cpu, &err), &err);
    assert_true(prcb_sampler_check(sampler, 4095, &err) < 0);
    /* This sampler is of all threads. */
    assert_int_equal(prcb_sampler_choose(sampler, getpid(), 0, &err), -EINVAL);
    assert_int_equal(prcb_sampler_filter(sampler), -EINVAL);
}

#define SAMPLE_TEST(function) cmocka_unit_test_teardown(function, close_all)

/* With an argument: the tests whose names match it. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(rate_1_khz),
        SAMPLE_TEST(rate_10_khz),
        SAMPLE_TEST(rate_20_khz),
        SAMPLE_TEST(rate_40_khz),
        SAMPLE_TEST(frequency_and_reset),
        SAMPLE_TEST(nothing_past_the_maximum),
        SAMPLE_TEST(one_record),
        SAMPLE_TEST(thresholds),
        SAMPLE_TEST(storms),
        SAMPLE_TEST(areas_refused),
        SAMPLE_TEST(options_refused),
        SAMPLE_TEST(memory_runs_out),
        SAMPLE_TEST(areas_spoiled),
        SAMPLE_TEST(draining_loses_nothing),
        SAMPLE_TEST(draining_stops),
        SAMPLE_TEST(a_careless_owner),
        SAMPLE_TEST(races),
        SAMPLE_TEST(formats),
        SAMPLE_TEST(across_chunks),
        SAMPLE_TEST(stacks),
        SAMPLE_TEST(one_thread_only),
        SAMPLE_TEST(inherited),
        SAMPLE_TEST(all_that_is_chosen),
        SAMPLE_TEST(switch_for_switch),
        SAMPLE_TEST(read_beside),
        SAMPLE_TEST(a_ring_a_processor),
        SAMPLE_TEST(a_waker_of_each_wait),
        SAMPLE_TEST(lost_switches),
        SAMPLE_TEST(the_stream),
        SAMPLE_TEST(attribution),
        SAMPLE_TEST(nt_surface),
        SAMPLE_TEST(death_frees),
        SAMPLE_TEST(branch_traces),
        SAMPLE_TEST(support),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return BPF_RUN("samples", tests);
}
