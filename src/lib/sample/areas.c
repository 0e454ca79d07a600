/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What is given out of a sampler's memory: areas and buffers.
 */
#include "area.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "read_file.h"
#include "sampler.h"

#define AREA_ALIGN 256 /* more than an area has: so none lies across two chunks */

_Static_assert(sizeof(struct prcb_ds_area) == 0xa0, "NT's and Intel's");

/* ---- areas ---- */

static bool is_online(int cpu)
{
    char path[64], state = '0';

    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d", cpu);
    if (access(path, F_OK))
        return false;
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
    /* A processor that cannot be taken offline has none. */
    return read_start(path, &state, 1) < 0 || state == '1';
}

static int take(struct prcb_sampler *s, size_t bytes, struct prcb_ds_area **ret,
                struct prcb_error *err)
{
    uint64_t offset;
    int result = pool_take(&s->pool, bytes, AREA_ALIGN, false, &offset);

    if (result)
        return prcb_fail(err, result, "no room for an area in %llu bytes of sampling memory",
                         (unsigned long long)s->pool.bytes);
    memset(s->memory + offset, 0, bytes);
    *ret = (struct prcb_ds_area *)(s->memory + offset);
    return 0;
}

static void put_back(struct prcb_sampler *s, struct prcb_ds_area *area)
{
    pool_give(&s->pool, pool_at(&s->pool, (uint64_t)((uint8_t *)area - s->memory)));
}

int area_take(struct prcb_sampler *s, size_t bytes, struct prcb_ds_area **ret,
              struct prcb_error *err)
{
    int result;

    pthread_mutex_lock(&s->lock);
    result = take(s, bytes, ret, err);
    pthread_mutex_unlock(&s->lock);
    return result;
}

void area_put_back(struct prcb_sampler *s, struct prcb_ds_area *area)
{
    pthread_mutex_lock(&s->lock);
    put_back(s, area);
    pthread_mutex_unlock(&s->lock);
}

int area_install(struct prcb_sampler *s, int cpu, struct prcb_ds_area *area,
                 struct prcb_ds_area **ret)
{
    int result = 0;

    pthread_mutex_lock(&s->lock);
    if (s->areas[cpu])
        result = -EEXIST;
    else
        s->areas[cpu] = area;
    *ret = s->areas[cpu];
    pthread_mutex_unlock(&s->lock);
    return result;
}

static int area_alloc(struct prcb_sampler *s, int cpu, struct prcb_ds_area **ret,
                      struct prcb_error *err)
{
    int result;

    if (s->areas[cpu]) {
        *ret = s->areas[cpu];
        return prcb_fail(err, -EEXIST, "processor %d has an area already", cpu);
    }
    result = take(s, sizeof(**ret), ret, err);
    if (!result)
        s->areas[cpu] = *ret;
    return result;
}

int prcb_ds_area_alloc(struct prcb_sampler *s, int cpu, struct prcb_ds_area **ret,
                       struct prcb_error *err)
{
    int result;

    if (cpu < 0 || cpu >= s->cpus || !is_online(cpu))
        return prcb_fail(err, -ENODEV, "no processor %d is online", cpu);
    pthread_mutex_lock(&s->lock);
    result = area_alloc(s, cpu, ret, err);
    pthread_mutex_unlock(&s->lock);
    return result;
}

int prcb_ds_area_free(struct prcb_sampler *s, int cpu, struct prcb_error *err)
{
    int result = 0;

    pthread_mutex_lock(&s->lock);
    if (cpu < 0 || cpu >= s->cpus || !s->areas[cpu]) {
        result = prcb_fail(err, -ENOENT, "processor %d has no area", cpu);
    } else {
        if (s->samples[cpu])
            sample_stop_locked(s->samples[cpu]);
        put_back(s, s->areas[cpu]);
        s->areas[cpu] = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    return result;
}

/* ---- buffers ---- */

int prcb_sample_buffer_alloc(struct prcb_sampler *s, size_t bytes, void **ret,
                             struct prcb_error *err)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), offset;
    int result;

    if (!bytes || bytes > SIZE_MAX - page)
        return prcb_fail(err, -EINVAL, "a buffer of %zu bytes", bytes);
    pthread_mutex_lock(&s->lock);
    result = pool_take(&s->pool, (bytes + page - 1) & ~(page - 1), page, true, &offset);
    if (result)
        prcb_fail(err, result, "no room for %zu bytes in %llu of sampling memory", bytes,
                  (unsigned long long)s->pool.bytes);
    else
        memset(s->memory + offset, 0, (bytes + page - 1) & ~(page - 1));
    pthread_mutex_unlock(&s->lock);
    if (!result)
        *ret = s->memory + offset;
    return result;
}

int prcb_sample_buffer_free(struct prcb_sampler *s, void *buffer, struct prcb_error *err)
{
    struct extent *extent;
    int result = 0;

    pthread_mutex_lock(&s->lock);
    extent = pool_at(&s->pool, (uint64_t)((uintptr_t)buffer - (uintptr_t)s->memory));
    if (!extent || !extent->is_buffer)
        result =
            prcb_fail(err, -EINVAL,
                      "%p is not a buffer of this sampler: use prcb_sample_buffer_alloc", buffer);
    else if (extent->users)
        result = prcb_fail(err, -EBUSY, "a sample writes to the buffer %p: stop it first", buffer);
    else
        pool_give(&s->pool, extent);
    pthread_mutex_unlock(&s->lock);
    return result;
}
