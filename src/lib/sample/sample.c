/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A sample: perf events of one processor whose program writes to the processor's area.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "array.h"
#include "bts.h"
#include "counters.h"
#include "first_line.h"
#include "now.h"
#include "record_size.h"
#include "sampler.h"
#include "sized.h"

#define RESET_BITS 48 /* counters of the processors that have DS are at most this wide */
#define NO_TSC     0

/* ---- options ---- */

static int check_options(const struct prcb_sample_options *opts, struct prcb_error *err)
{
    const uint32_t known = PRCB_SAMPLE_FREQUENCY | PRCB_SAMPLE_THREAD | PRCB_SAMPLE_STACK |
                           PRCB_SAMPLE_INHERIT | PRCB_SAMPLE_NO_KERNEL | PRCB_SAMPLE_ON_EXEC;

    if (opts->flags & ~known)
        return prcb_fail(err, -EINVAL, "flags 0x%x: unknown flags", opts->flags & ~known);
    if (opts->format > 6)
        return prcb_fail(err, -EINVAL, "unknown PEBS format %u: use 0 to 6", opts->format);
    if (opts->format < 4 && opts->groups)
        return prcb_fail(err, -EINVAL, "groups are for formats 4 to 6, not for %u", opts->format);
    if (opts->groups & ~(uint32_t)(PRCB_SAMPLE_MEMORY | PRCB_SAMPLE_GPR))
        return prcb_fail(err, -EOPNOTSUPP,
                         "groups 0x%x: only the memory and the register group have a source here",
                         opts->groups);
    if (!prcb_sample_stride_of(opts))
        return prcb_fail(err, -EINVAL, "stacks need the tail, and at most %d frames",
                         PRCB_FRAMES_MAX);
    if ((opts->flags & PRCB_SAMPLE_FREQUENCY) && !opts->rate)
        return prcb_fail(err, -EINVAL, "a frequency of 0");
    if (!opts->tid && (opts->flags & (PRCB_SAMPLE_INHERIT | PRCB_SAMPLE_ON_EXEC)))
        return prcb_fail(err, -EINVAL, "inheriting and waiting for an exec need a thread");
    return 0;
}

/* ---- the area ---- */

static int check_area(struct prcb_sample *p, size_t stride, struct prcb_error *err)
{
    const struct prcb_ds_area *area = p->area;
    uint64_t start = (uintptr_t)p->sampler->memory;
    uint64_t base = area->pebs_base, index = area->pebs_index, end = area->pebs_maximum;
    struct extent *extent;

    if (base & 7)
        return prcb_fail(err, -EINVAL, "pebs_base 0x%llx is not a multiple of 8",
                         (unsigned long long)base);
    if (end < base || end - base < stride)
        return prcb_fail(err, -EINVAL,
                         "pebs_maximum 0x%llx: no record of %zu bytes fits between it and "
                         "pebs_base 0x%llx",
                         (unsigned long long)end, stride, (unsigned long long)base);
    extent = pool_holding(&p->sampler->pool, base - start, end - base);
    /* The multiple of the record size plus 1 that Intel asks for may end a byte behind. */
    if (!extent && (end - base) % stride == 1)
        extent = pool_holding(&p->sampler->pool, base - start, end - base - 1);
    if (!extent || !extent->is_buffer)
        return prcb_fail(err, -EINVAL,
                         "0x%llx to 0x%llx does not lie in one buffer of prcb_sample_buffer_alloc",
                         (unsigned long long)base, (unsigned long long)end);
    if (index < base || index > end || (index - base) % stride)
        return prcb_fail(err, -EINVAL,
                         "pebs_index 0x%llx is not at a record of %zu bytes of the buffer",
                         (unsigned long long)index, stride);
    p->base = base;
    p->end = end;
    return 0;
}

static struct extent *buffer_of(struct prcb_sample *p)
{
    return pool_holding(&p->sampler->pool, p->base - (uintptr_t)p->sampler->memory, 1);
}

/* ---- the event ---- */

/* Returns the best precision that the processor offers for its own events; 0: it offers none. */
static unsigned max_precise(void)
{
    static const char *const paths[] = {"/sys/bus/event_source/devices/cpu/caps/max_precise",
                                        "/sys/bus/event_source/devices/cpu_core/caps/max_precise"};
    uint64_t precise = 0;

    for (size_t i = 0; i < 2 && !precise; i++)
        first_number(paths[i], &precise);
    return precise > 3 ? 3 : (unsigned)precise;
}

static int find_rate(struct prcb_sample *p, const struct prcb_sample_options *opts,
                     struct prcb_error *err)
{
    uint64_t mask = (UINT64_C(1) << RESET_BITS) - 1;

    p->attr.freq = !!(opts->flags & PRCB_SAMPLE_FREQUENCY);
    p->attr.sample_period = opts->rate ? opts->rate : -p->area->gp_reset[0] & mask;
    if (!p->attr.sample_period)
        return prcb_fail(err, -EINVAL, "no period: neither in the options nor in gp_reset[0]");
    return 0;
}

static int find_event(struct prcb_sample *p, const struct prcb_sample_options *opts,
                      struct prcb_error *err)
{
    struct counter_event event;
    int result = counter_event_find(opts->event ? opts->event : "cpu-clock", &event, err);

    if (result)
        return result;
    p->attr = (struct perf_event_attr){
        .size = sizeof(p->attr),
        .type = event.type,
        .config = event.config,
        .disabled = 1,
        .enable_on_exec = !!(opts->flags & PRCB_SAMPLE_ON_EXEC),
        .inherit = !!(opts->flags & PRCB_SAMPLE_INHERIT),
        .exclude_user = event.no_user,
        .exclude_kernel = event.no_kernel || (opts->flags & PRCB_SAMPLE_NO_KERNEL),
        .exclude_hv = 1,
        .wakeup_events = 1,
    };
    p->attr.config1 = event.config1;
    p->attr.config2 = event.config2;
    p->source = event.type == PERF_TYPE_SOFTWARE && event.config == PERF_COUNT_SW_CPU_CLOCK
                    ? PRCB_SOURCE_CLOCK
                    : PRCB_SOURCE_COUNTER;
    return find_rate(p, opts, err);
}

static int open_event(struct prcb_sample *p, pid_t tid)
{
    int fd = (int)syscall(SYS_perf_event_open, &p->attr, tid ? tid : -1, p->cpu, -1,
                          PERF_FLAG_FD_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* As precise as it can be had. A descriptor or -errno. */
static int open_first(struct prcb_sample *p, pid_t tid)
{
    bool hardware = p->attr.type != PERF_TYPE_SOFTWARE && p->attr.type != PERF_TYPE_TRACEPOINT;
    int fd;

    for (unsigned precise = hardware ? max_precise() : 0; precise; precise--) {
        p->attr.precise_ip = precise & 3;
        p->attr.sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC;
        if (p->slot->flags & PRCB_SLOT_STACK)
            p->attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
        fd = open_event(p, tid);
        if (fd >= 0) {
            p->source = PRCB_SOURCE_PRECISE;
            return fd;
        }
    }
    p->attr.precise_ip = 0;
    p->attr.sample_type = 0;
    return open_event(p, tid);
}

static int explain_event(int code, const char *event, int cpu, pid_t tid, struct prcb_error *err)
{
    switch (code) {
    case -EACCES:
    case -EPERM:
        return prcb_fail(err, code,
                         "the event may not sample: run as root, or lower "
                         "kernel.perf_event_paranoid");
    case -ENOENT:
    case -EOPNOTSUPP:
    case -EINVAL:
        return prcb_fail(err, -EOPNOTSUPP,
                         "%s cannot be sampled on this machine (%s); cpu-clock always can", event,
                         strerror(-code));
    case -ESRCH:
        return prcb_fail(err, code, "no thread %d", (int)tid);
    case -ENODEV:
        return prcb_fail(err, code, "processor %d is not online", cpu);
    default:
        return prcb_fail(err, code, "the event cannot be opened on processor %d: %s", cpu,
                         strerror(-code));
    }
}

/* Only the kernel's notes about throttling go through it, and no samples: the program keeps those
 * to itself. */
static int map_page(struct prcb_sample *p, int fd, struct prcb_error *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *at;

    if (p->page) {
        ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, p->fds[0]); /* where not, its throttling is not told */
        return 0;
    }
    at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return prcb_fail(err, -errno, "the event's page cannot be mapped: %s", strerror(errno));
    p->page = at;
    return 0;
}

static int add_event(struct prcb_sample *p, int fd, struct prcb_error *err)
{
    int result;

    if (array_reserve(p->fds, p->count, p->room, 1)) {
        close(fd);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    result = map_page(p, fd, err);
    if (!result && ioctl(fd, PERF_EVENT_IOC_SET_BPF, p->program))
        result =
            prcb_fail(err, -errno, "the program cannot be set on the event: %s", strerror(errno));
    if (!result && !p->attr.enable_on_exec && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
        result = prcb_fail(err, -errno, "the event cannot be started: %s", strerror(errno));
    if (result) {
        close(fd);
        return result;
    }
    p->fds[p->count++] = fd;
    return 0;
}

static int start_event(struct prcb_sample *p, const struct prcb_sample_options *opts,
                       struct prcb_error *err)
{
    int fd = open_first(p, opts->tid);

    if (fd < 0)
        return explain_event(fd, opts->event ? opts->event : "cpu-clock", p->cpu, opts->tid, err);
    p->program = sampler_program(p->sampler, p->source == PRCB_SOURCE_PRECISE,
                                 opts->flags & PRCB_SAMPLE_STACK);
    return add_event(p, fd, err);
}

/* ---- starting and stopping ---- */

/* The program sees the time-stamp counter as a line through this moment. */
static void set_clock(struct prcb_sample *p)
{
#if defined(__x86_64__)
    double rate = clock_tick_rate(&p->sampler->clock);

    p->slot->mono_ns = now_ns();
    p->slot->tsc = clock_ticks();
    p->slot->tsc_mult = (uint64_t)(rate / 1e9 * (1 << 30));
#else
    p->slot->tsc_mult = NO_TSC;
#endif
}

static void fill_slot(struct prcb_sample *p, const struct prcb_sample_options *opts)
{
    struct prcb_sample_slot *slot = p->slot;
    uint64_t memory = (uintptr_t)p->sampler->memory, lost = slot->switches_lost;

    *slot = (struct prcb_sample_slot){
        .format = opts->format,
        .flags = (opts->flags & PRCB_SAMPLE_THREAD ? PRCB_SLOT_TAIL : 0) |
                 (opts->flags & PRCB_SAMPLE_STACK ? PRCB_SLOT_STACK : 0) |
                 (opts->groups & PRCB_SAMPLE_MEMORY ? PRCB_SLOT_MEMORY : 0) |
                 (opts->groups & PRCB_SAMPLE_GPR ? PRCB_SLOT_GPR : 0),
        .record_bytes = (uint32_t)sample_record_size(opts->format, opts->groups),
        .stride = (uint32_t)prcb_sample_stride_of(opts),
        .depth = sample_depth(opts),
        .counter = 1,
        .memory = memory,
        .area = (uintptr_t)p->area - memory,
        .first = p->base - memory,
        .end = p->end - memory,
        .switches_lost = lost,
    };
    set_clock(p);
    /* This pairs with the program's look at it: what it reads after it is complete. The event that
     * makes it run starts later still. */
    __atomic_store_n(&slot->active, 1, __ATOMIC_RELEASE);
}

static int set_signals(struct prcb_sample *p, struct prcb_error *err)
{
    __u32 cpu = (__u32)p->cpu;
    int result = ring_make((size_t)sysconf(_SC_PAGESIZE), &p->signals);

    if (result)
        return prcb_fail(err, result, "no ring for thresholds: %s", strerror(-result));
    if (bpf_map_update_elem(sampler_signals(p->sampler), &cpu, &p->signals.fd, BPF_ANY))
        return prcb_fail(err, -errno, "the ring for thresholds cannot be set: %s", strerror(errno));
    return 0;
}

static int start(struct prcb_sample *p, const struct prcb_sample_options *opts,
                 struct prcb_error *err)
{
    struct prcb_sampler *s = p->sampler;
    int result;

    if (p->cpu < 0 || p->cpu >= s->cpus || !s->areas[p->cpu])
        return prcb_fail(err, -ENOENT, "processor %d has no area", p->cpu);
    if (s->samples[p->cpu])
        return prcb_fail(err, -EBUSY, "a sample runs on processor %d", p->cpu);
    p->area = s->areas[p->cpu];
    result = check_area(p, prcb_sample_stride_of(opts), err);
    if (!result)
        result = find_event(p, opts, err);
    if (!result)
        result = set_signals(p, err);
    if (result)
        return result;
    p->slot = &s->slots[p->cpu];
    fill_slot(p, opts);
    s->samples[p->cpu] = p;
    buffer_of(p)->users++;
    return start_event(p, opts, err);
}

int prcb_sample_open(struct prcb_sampler *s, int cpu, const struct prcb_sample_options *opts,
                     struct prcb_sample **ret, struct prcb_error *err)
{
    struct prcb_sample_options options;
    struct prcb_sample *p;
    int result = sized_take_options("prcb_sample_options", opts, &options, sizeof(options), err);

    if (!result)
        result = check_options(&options, err);
    if (result)
        return result;
    p = calloc(1, sizeof(*p));
    if (!p)
        return prcb_fail(err, -ENOMEM, "out of memory");
    p->sampler = s;
    p->cpu = cpu;
    p->signals.fd = -1;
    pthread_mutex_lock(&s->lock);
    result = start(p, &options, err);
    if (result)
        sample_stop_locked(p);
    pthread_mutex_unlock(&s->lock);
    if (!result)
        *ret = p;
    return result;
}

int prcb_sampler_check(struct prcb_sampler *s, int cpu, struct prcb_error *err)
{
    struct perf_event_attr attr = {.size = sizeof(attr),
                                   .type = PERF_TYPE_SOFTWARE,
                                   .config = PERF_COUNT_SW_CPU_CLOCK,
                                   .sample_period = 1000000000,
                                   .disabled = 1};
    int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    int result = 0;

    if (fd < 0)
        return explain_event(-errno, "cpu-clock", cpu, 0, err);
    if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, sampler_program(s, false, false)))
        result = prcb_fail(err, -errno, "the program cannot be set on an event of processor %d: %s",
                           cpu, strerror(errno));
    close(fd);
    return result;
}

int prcb_sample_add(struct prcb_sample *p, pid_t tid, struct prcb_error *err)
{
    int fd, result;

    if (tid <= 0 || p->bts)
        return prcb_fail(err, -EINVAL, "thread %d: not one that can be added", (int)tid);
    pthread_mutex_lock(&p->sampler->lock);
    fd = open_event(p, tid);
    result = fd < 0 ? explain_event(fd, "the event", p->cpu, tid, err) : add_event(p, fd, err);
    pthread_mutex_unlock(&p->sampler->lock);
    return result;
}

/* Of a sample that may have been started by half. Closing an event takes it off its
 * processor and waits for that. */
void sample_stop_locked(struct prcb_sample *p)
{
    struct prcb_sampler *s = p->sampler;
    __u32 cpu = (__u32)p->cpu;

    if (p->bts) {
        bts_close(p);
        return;
    }
    if (p->slot)
        __atomic_store_n(&p->slot->active, 0, __ATOMIC_RELEASE);
    if (p->page)
        munmap(p->page, 2 * (size_t)sysconf(_SC_PAGESIZE));
    for (size_t i = 0; i < p->count; i++) {
        ioctl(p->fds[i], PERF_EVENT_IOC_DISABLE, 0);
        close(p->fds[i]);
    }
    if (p->signals.fd >= 0) {
        bpf_map_delete_elem(sampler_signals(s), &cpu);
        ring_close(&p->signals);
    }
    if (p->slot) {
        s->samples[p->cpu] = NULL;
        buffer_of(p)->users--;
    }
    free(p->fds);
    free(p);
}

void prcb_sample_close(struct prcb_sample *p)
{
    struct prcb_sampler *s;

    if (!p)
        return;
    s = p->sampler;
    pthread_mutex_lock(&s->lock);
    sample_stop_locked(p);
    pthread_mutex_unlock(&s->lock);
}

void prcb_sampler_close(struct prcb_sampler *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    for (int cpu = 0; cpu < s->cpus; cpu++) {
        if (s->samples[cpu])
            sample_stop_locked(s->samples[cpu]);
    }
    if (s->switches)
        switches_close_locked(s->switches);
    pthread_mutex_unlock(&s->lock);
    sampler_free(s);
}

/* ---- looking ---- */

enum prcb_sample_source prcb_sample_source(const struct prcb_sample *p)
{
    return p->source;
}

size_t prcb_sample_stride(const struct prcb_sample *p)
{
    return p->bts ? BTS_RECORD : p->slot->stride;
}

size_t prcb_sample_record_size(const struct prcb_sample *p)
{
    return p->bts ? BTS_RECORD : p->slot->record_bytes;
}

int prcb_sample_fd(const struct prcb_sample *p)
{
    return p->bts ? bts_fd(p->bts) : p->signals.fd;
}

void prcb_sample_acknowledge(struct prcb_sample *p)
{
    if (!p->bts)
        ring_skip(&p->signals);
}

int prcb_sample_drain(struct prcb_sample *p, prcb_sample_drain_fn fn, void *ctx)
{
    uint64_t *place = &p->area->pebs_index, done = p->base, index;

    if (p->bts)
        return bts_drain(p, fn, ctx);
    /* This comes before the look at the index: a threshold that is reached after it is signalled
     * again. */
    prcb_sample_acknowledge(p);
    index = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    while (index != p->base) {
        if (index < done || index > p->end || (index - p->base) % p->slot->stride)
            return -EINVAL;
        if (index > done) {
            int result = fn((const void *)(uintptr_t)done, index - done, ctx);

            if (result)
                return result;
            done = index;
        }
        /* This pairs with the program's compare-and-exchange after it wrote a record: either this
         * one sees that record's index, or that one sees the base and writes it there. */
        if (__atomic_compare_exchange_n(place, &index, p->base, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            break;
    }
    return 0;
}

/* Counts the kernel's notes and frees their place. */
static void count_throttles(struct prcb_sample *p)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    const uint8_t *data = (const uint8_t *)p->page + size;
    /* This pairs with the kernel's store of it after the notes. */
    uint64_t head = __atomic_load_n(&p->page->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = p->page->data_tail;

    while (tail < head) {
        struct perf_event_header header;

        /* 8 bytes, of which all notes are a multiple: never across the end. */
        memcpy(&header, data + (tail & (size - 1)), sizeof(header));
        if (header.type == PERF_RECORD_THROTTLE)
            p->throttled++;
        if (!header.size)
            break;
        tail += header.size;
    }
    /* Pairs with the kernel's load of it before it writes notes. */
    __atomic_store_n(&p->page->data_tail, tail, __ATOMIC_RELEASE);
}

int prcb_sample_count(const struct prcb_sample *p, struct prcb_sample_counts *ret)
{
    const struct prcb_sample_slot *slot = p->slot;
    struct prcb_sample_counts counts = {.size = sizeof(counts)};

    if (p->bts)
        return sized_hand_out(bts_counts(p->bts), sizeof(counts), ret);
    count_throttles((struct prcb_sample *)p);
    /* Each is one aligned word that one processor adds to: whole, if not all of one moment. */
    counts.written = __atomic_load_n(&slot->written, __ATOMIC_RELAXED);
    counts.lost_full = __atomic_load_n(&slot->lost_full, __ATOMIC_RELAXED);
    counts.lost_index = __atomic_load_n(&slot->lost_index, __ATOMIC_RELAXED);
    counts.lost_moved = __atomic_load_n(&slot->lost_moved, __ATOMIC_RELAXED);
    counts.thresholds = __atomic_load_n(&slot->thresholds, __ATOMIC_RELAXED);
    counts.interrupts = counts.written + counts.lost_full + counts.lost_index + counts.lost_moved;
    counts.throttled = p->throttled;
    return sized_hand_out(&counts, sizeof(counts), ret);
}
