/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Class 0x81: a control area for the processor that the caller runs on. The order of
 * the questions is NT's: memory for a new area is had before anything else is known.
 */
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include "area.h"
#include "sized.h"

_Static_assert(sizeof(PROCESSOR_PROFILE_CONTROL_AREA) == sizeof(struct prcb_ds_area) &&
                   offsetof(PEBS_DS_SAVE_AREA64, PebsIndex) ==
                       offsetof(struct prcb_ds_area, pebs_index) &&
                   offsetof(PEBS_DS_SAVE_AREA64, PebsFixedCounterReset) ==
                       offsetof(struct prcb_ds_area, fixed_reset),
               "one structure under two names");

#define AREA_OLD         0x60
#define AREA_NEW         0xa0
#define OLD_BUILD_LAST   17763
#define AREA_ALIGN       64
#define IA32_MISC_ENABLE 0x1a0

static void *plain_memory(size_t bytes)
{
    return aligned_alloc(AREA_ALIGN, (bytes + AREA_ALIGN - 1) & ~(size_t)(AREA_ALIGN - 1));
}

static const struct nt_area_engine real_engine = {
    .open = prcb_sampler_open,
    .take = area_take,
    .put_back = area_put_back,
    .check = prcb_sampler_check,
    .install = area_install,
    .remove = prcb_ds_area_free,
    .plain = plain_memory,
    .msr = "/dev/cpu/%d/msr",
};
const struct nt_area_engine *nt_area_engine = &real_engine;

/* It is used under the lock. */
static struct prcb_sampler *sampler;
static struct prcb_nt_profile_options options;
static bool given; /* an area was: the options are fixed */

/* ---- the sampler ---- */

static int open_sampler(struct prcb_error *err)
{
    struct prcb_sampler_options opts = {.size = sizeof(opts), .memory = options.memory};

    return sampler ? 0 : nt_area_engine->open(&opts, &sampler, err);
}

int prcb_nt_sampler(struct prcb_sampler **ret, struct prcb_error *err)
{
    int result;

    nt_enter();
    result = open_sampler(err);
    if (!result)
        *ret = sampler;
    nt_leave();
    return result;
}

int prcb_nt_profile_configure(const struct prcb_nt_profile_options *opts, struct prcb_error *err)
{
    struct prcb_nt_profile_options taken;
    int result = sized_take_options("prcb_nt_profile_options", opts, &taken, sizeof(taken), err);

    if (result)
        return result;
    nt_enter();
    if (given || sampler)
        result = prcb_fail(err, -EBUSY, "class 0x81 is in use: configure it before the first area");
    else
        options = taken;
    nt_leave();
    return result;
}

uint32_t prcb_nt_profile_area_size(void)
{
    uint32_t build;

    nt_enter();
    build = options.build;
    nt_leave();
    return build && build <= OLD_BUILD_LAST ? AREA_OLD : AREA_NEW;
}

/* Forgets the areas in a child, which shares the parent's maps: closing them here would stop the
 * parent's samples. */
void nt_profile_areas_forget(void)
{
    sampler = NULL;
    given = false;
}

/* ---- is it supported? ---- */

static void vendor_of(char ret[13])
{
    memset(ret, 0, 13);
    if (nt_area_engine->vendor) {
        snprintf(ret, 13, "%s", nt_area_engine->vendor);
        return;
    }
#if defined(__x86_64__) || defined(__i386__)
    {
        unsigned a, b, c, d;

        if (__get_cpuid(0, &a, &b, &c, &d)) {
            memcpy(ret, &b, 4);
            memcpy(ret + 4, &d, 4);
            memcpy(ret + 8, &c, 4);
        }
    }
#endif
}

static int read_msr(int cpu, uint64_t *ret)
{
    char path[128];
    ssize_t got;
    int fd, code;

    snprintf(path, sizeof(path), nt_area_engine->msr, cpu);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    got = pread(fd, ret, sizeof(*ret), IA32_MISC_ENABLE);
    code = got < 0 ? -errno : got < (ssize_t)sizeof(*ret) ? -EIO : 0;
    close(fd);
    return code;
}

/* Makes NT's own test. */
static int check_intel(int cpu, struct prcb_error *err)
{
    char vendor[13];
    uint64_t enable;
    int code;

    vendor_of(vendor);
    if (strcmp(vendor, "GenuineIntel"))
        return prcb_fail(err, -EOPNOTSUPP, "the processor is %s's, not Intel's",
                         vendor[0] ? vendor : "nobody");
    code = read_msr(cpu, &enable);
    if (code)
        return prcb_fail(err, -EOPNOTSUPP,
                         "IA32_MISC_ENABLE of processor %d cannot be read (%s): is the module msr "
                         "loaded?",
                         cpu, strerror(-code));
    if (!(enable & 1u << 7) || enable & 1u << 12)
        return prcb_fail(err, -EOPNOTSUPP,
                         "IA32_MISC_ENABLE of processor %d is 0x%llx: bit 7 must be 1, bit 12 0",
                         cpu, (unsigned long long)enable);
    return 0;
}

/* opened is what opening the sampler said. */
static int check_support(int opened, int cpu, struct prcb_error *err)
{
    int result = opened;

    if (!result)
        result = nt_area_engine->check(sampler, cpu, err);
    if (!result && options.intel)
        result = check_intel(cpu, err);
    return result;
}

/* ---- the state machine ---- */

typedef SYSTEM_PROCESSOR_PROFILE_CONTROL_AREA PROFILE;

static void give_back(struct prcb_ds_area *area)
{
    if (sampler)
        nt_area_engine->put_back(sampler, area);
    else
        free(area);
}

/* Allocates memory, which must be the sampler's to be of use. Without a sampler a later step
 * finds that nothing is supported. */
static struct prcb_ds_area *take_memory(int opened, size_t bytes, struct prcb_error *err)
{
    struct prcb_ds_area *area = NULL;

    if (opened == -ENOMEM || (!opened && nt_area_engine->take(sampler, bytes, &area, err)))
        return NULL;
    if (opened) {
        area = nt_area_engine->plain(bytes);
        if (!area)
            prcb_fail(err, -ENOMEM, "no memory for a control area");
    }
    return area;
}

static NTSTATUS allocate(PROFILE *profile, int cpu, size_t bytes)
{
    struct prcb_error err = {0}, why = {0};
    int opened = open_sampler(&why), code;
    struct prcb_ds_area *area = take_memory(opened, bytes, opened == -ENOMEM ? &why : &err), *now;

    profile->ProcessorProfileControlArea = NULL;
    if (!area)
        return nt_fail(STATUS_INSUFFICIENT_RESOURCES, "%s", opened ? why.text : err.text);
    code = check_support(opened, cpu, &why);
    if (code) {
        give_back(area);
        return nt_fail(STATUS_NOT_SUPPORTED, "%s", why.text);
    }
    code = nt_area_engine->install(sampler, cpu, area, &now);
    profile->ProcessorProfileControlArea = (PROCESSOR_PROFILE_CONTROL_AREA *)now;
    if (code) {
        give_back(area);
        return nt_fail(STATUS_ADDRESS_ALREADY_EXISTS, "processor %d has an area already", cpu);
    }
    given = true;
    return STATUS_SUCCESS;
}

static NTSTATUS release(PROFILE *profile, int cpu)
{
    struct prcb_error err = {0};

    profile->ProcessorProfileControlArea = NULL;
    if (check_support(open_sampler(&err), cpu, &err))
        return nt_fail(STATUS_NOT_SUPPORTED, "%s", err.text);
    if (nt_area_engine->remove(sampler, cpu, &err))
        return nt_fail(STATUS_MEMORY_NOT_ALLOCATED, "%s", err.text);
    return STATUS_SUCCESS;
}

NTSTATUS nt_set_profile_area(void *buffer, enum prcb_nt_mode mode)
{
    size_t bytes = prcb_nt_profile_area_size();
    PROFILE profile;
    NTSTATUS status;
    int cpu;

    memcpy(&profile, buffer, sizeof(profile)); /* NT asks for no alignment but 4 */
    nt_enter();
    /* As on NT, the caller is on one processor from here on, but it may have come from another and
     * may leave again. Only a caller that is pinned knows whose area this is. */
    cpu = sched_getcpu();
    status = profile.Allocate ? allocate(&profile, cpu, bytes) : release(&profile, cpu);
    nt_leave();
    memcpy(buffer, &profile, sizeof(profile));
    return status;
}
