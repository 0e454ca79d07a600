/* SPDX-License-Identifier: BSD-2-Clause */
#include "bts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "first_line.h"
#include "sampler.h"
#include "sized.h"

#define PMU_TYPE  "/sys/bus/event_source/devices/intel_bts/type"
#define AUX_PAGES 256 /* a power of two */

/* ---- moving branches on ---- */

/* A record of the ring, which may lie across its end. */
static void copy_out(const struct bts *bts, uint64_t at, uint8_t *ret)
{
    size_t in = at & (bts->aux_bytes - 1), first = bts->aux_bytes - in;

    if (first > BTS_RECORD)
        first = BTS_RECORD;
    memcpy(ret, bts->aux + in, first);
    memcpy(ret + first, bts->aux, BTS_RECORD - first);
}

static void put(struct bts *bts, const uint8_t *record)
{
    struct prcb_ds_area *area = bts->area;
    uint64_t index = area->bts_index, end = area->bts_maximum, next = index + BTS_RECORD;

    bts->counts.interrupts++;
    if (end > bts->end)
        end = bts->end;
    if (index < bts->base || index > bts->end || index & 7) {
        bts->counts.lost_index++;
    } else if (next > end) {
        bts->counts.lost_full++;
    } else {
        memcpy((void *)(uintptr_t)index, record, BTS_RECORD);
        area->bts_index = next;
        bts->counts.written++;
        bts->counts.thresholds +=
            next >= area->bts_threshold && (index < area->bts_threshold || index == bts->base);
    }
}

void bts_take(struct bts *bts)
{
    static const uint8_t padding[16]; /* the kernel's, where a buffer ends: no branch */
    /* This pairs with the kernel's store of it after the branches. */
    uint64_t head = __atomic_load_n(&bts->page->aux_head, __ATOMIC_ACQUIRE);
    uint64_t tail = bts->page->aux_tail;

    for (; head - tail >= BTS_RECORD; tail += BTS_RECORD) {
        uint8_t record[BTS_RECORD];

        copy_out(bts, tail, record);
        if (memcmp(record, padding, sizeof(padding)))
            put(bts, record);
    }
    /* Pairs with the kernel's load of it before it has more written. */
    __atomic_store_n(&bts->page->aux_tail, tail, __ATOMIC_RELEASE);
}

int bts_drain(struct prcb_sample *p, prcb_sample_drain_fn fn, void *ctx)
{
    struct bts *bts = p->bts;
    uint64_t index;
    int result = 0;

    bts_take(bts);
    index = bts->area->bts_index;
    if (index < bts->base || index > bts->end || (index - bts->base) % BTS_RECORD)
        return -EINVAL;
    if (index > bts->base)
        result = fn((const void *)(uintptr_t)bts->base, index - bts->base, ctx);
    if (!result)
        bts->area->bts_index = bts->base;
    return result;
}

const struct prcb_sample_counts *bts_counts(const struct bts *bts)
{
    return &bts->counts;
}

int bts_fd(const struct bts *bts)
{
    return bts->fd;
}

/* ---- starting and stopping ---- */

static void unmap(struct bts *bts)
{
    if (bts->aux)
        munmap(bts->aux, bts->aux_bytes);
    if (bts->page)
        munmap(bts->page, 2 * (size_t)sysconf(_SC_PAGESIZE));
    if (bts->fd >= 0)
        close(bts->fd);
    free(bts);
}

void bts_close(struct prcb_sample *p)
{
    p->sampler->samples[p->cpu] = NULL;
    pool_holding(&p->sampler->pool, p->bts->base - (uintptr_t)p->sampler->memory, 1)->users--;
    unmap(p->bts);
    free(p);
}

static int pmu_type(uint32_t *ret)
{
    uint64_t type;

    if (!first_number(PMU_TYPE, &type))
        return -ENOENT;
    *ret = (uint32_t)type;
    return 0;
}

static int map(struct bts *bts)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, bts->fd, 0);

    if (at == MAP_FAILED)
        return -errno;
    bts->page = at;
    bts->aux_bytes = AUX_PAGES * page;
    bts->page->aux_offset = 2 * page;
    bts->page->aux_size = bts->aux_bytes;
    at = mmap(NULL, bts->aux_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bts->fd,
              (off_t)bts->page->aux_offset);
    if (at == MAP_FAILED)
        return -errno;
    bts->aux = at;
    return 0;
}

static int open_event(struct bts *bts, uint32_t type, int cpu,
                      const struct prcb_sample_options *opts, struct prcb_error *err)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = type,
        .sample_period = 1,
        .exclude_kernel = !!(opts->flags & PRCB_SAMPLE_NO_KERNEL),
        .exclude_hv = 1,
        .disabled = 1,
        .aux_watermark = (uint32_t)(AUX_PAGES / 2 * sysconf(_SC_PAGESIZE)),
    };
    int code;

    bts->fd = (int)syscall(SYS_perf_event_open, &attr, opts->tid ? opts->tid : -1, cpu, -1,
                           PERF_FLAG_FD_CLOEXEC);
    code = bts->fd < 0 ? -errno : map(bts);
    if (!code && ioctl(bts->fd, PERF_EVENT_IOC_ENABLE, 0))
        code = -errno;
    return code ? prcb_fail(err, code, "intel_bts cannot be started on processor %d: %s", cpu,
                            strerror(-code))
                : 0;
}

static int check_area(const struct prcb_sampler *s, const struct prcb_ds_area *area,
                      struct extent *extent, struct prcb_error *err)
{
    uint64_t base = area->bts_base, end = area->bts_maximum, index = area->bts_index;

    if (!extent || !extent->is_buffer || base & 7 || end - base < BTS_RECORD || index < base ||
        index > end || (index - base) % BTS_RECORD)
        return prcb_fail(err, -EINVAL,
                         "the bts members of the area: 0x%llx to 0x%llx, index 0x%llx, is no part "
                         "of a buffer with room for a branch",
                         (unsigned long long)base, (unsigned long long)end,
                         (unsigned long long)index);
    return 0;
}

static int start(struct prcb_sampler *s, int cpu, uint32_t type,
                 const struct prcb_sample_options *opts, struct bts *bts, struct prcb_error *err)
{
    struct extent *extent;
    int result;

    if (cpu < 0 || cpu >= s->cpus || !s->areas[cpu])
        return prcb_fail(err, -ENOENT, "processor %d has no area", cpu);
    if (s->samples[cpu])
        return prcb_fail(err, -EBUSY, "a sample runs on processor %d", cpu);
    bts->area = s->areas[cpu];
    bts->base = bts->area->bts_base;
    bts->end = bts->area->bts_maximum;
    extent = bts->end < bts->base
                 ? NULL
                 : pool_holding(&s->pool, bts->base - (uintptr_t)s->memory, bts->end - bts->base);
    result = check_area(s, bts->area, extent, err);
    if (!result)
        result = open_event(bts, type, cpu, opts, err);
    if (!result)
        extent->users++;
    return result;
}

int prcb_bts_open(struct prcb_sampler *s, int cpu, const struct prcb_sample_options *opts,
                  struct prcb_sample **ret, struct prcb_error *err)
{
    struct prcb_sample_options options;
    struct prcb_sample *p;
    uint32_t type;
    int result = sized_take_options("prcb_sample_options", opts, &options, sizeof(options), err);

    if (result)
        return result;
    if (pmu_type(&type))
        return prcb_fail(err, -EOPNOTSUPP,
                         "this machine has no branch trace store (no PMU intel_bts)");
    p = calloc(1, sizeof(*p));
    if (p)
        p->bts = calloc(1, sizeof(*p->bts));
    if (!p || !p->bts) {
        free(p);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    p->sampler = s;
    p->cpu = cpu;
    p->signals.fd = p->bts->fd = -1;
    pthread_mutex_lock(&s->lock);
    result = start(s, cpu, type, &options, p->bts, err);
    if (!result)
        s->samples[cpu] = p;
    pthread_mutex_unlock(&s->lock);
    if (result) {
        unmap(p->bts);
        free(p);
        return result;
    }
    p->area = p->bts->area;
    p->source = PRCB_SOURCE_PRECISE;
    *ret = p;
    return 0;
}
