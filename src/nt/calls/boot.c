/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The kernel's own figures since the system's start, to its tick: proc/stat, proc/interrupts,
 * proc/softirqs and cpuidle's counts, read once when the view is opened.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_files.h"
#include "error.h"
#include "view.h"

#define USER_HZ_NS 10000000ull

static void take_line(const struct cpu_stat *stat, struct nt_boot *ret)
{
    const uint64_t *ticks = stat->ticks;

    ret->user_ns = (ticks[CPU_STAT_USER] + ticks[CPU_STAT_NICE]) * USER_HZ_NS; /* guests inside */
    ret->kernel_ns = ticks[CPU_STAT_SYSTEM] * USER_HZ_NS;
    ret->idle_ns = (ticks[CPU_STAT_IDLE] + ticks[CPU_STAT_IOWAIT]) * USER_HZ_NS;
    ret->interrupt_ns = ticks[CPU_STAT_IRQ] * USER_HZ_NS;
    ret->dpc_ns = ticks[CPU_STAT_SOFTIRQ] * USER_HZ_NS;
    ret->steal_ns = ticks[CPU_STAT_STEAL] * USER_HZ_NS;
}

static int take_switches(const char *text, size_t length, uint64_t *ret)
{
    static const char key[] = "\nctxt ";
    const char *at = memmem(text, length, key, sizeof(key) - 1), *end;

    if (!at)
        return -EBADMSG;
    at += sizeof(key) - 1;
    end = memchr(at, '\n', (size_t)(text + length - at));
    return cpu_parse_number(at, (size_t)((end ? end : text + length) - at), ret);
}

static int take_stat(const char *text, size_t length, uint32_t count, struct nt_boot *ret,
                     uint64_t *ret_switches)
{
    const char *at = text, *end = text + length;
    struct cpu_stat stat;
    int more;

    while ((more = cpu_parse_stat(&at, end, &stat)) > 0) {
        if (stat.number < count)
            take_line(&stat, &ret[stat.number]);
    }
    return more ? more : take_switches(text, length, ret_switches);
}

/* A missing file leaves zeroes. Its counters wrap, and nobody looks at their totals. */
static void take_columns(struct procfs *fs, const char *name, uint32_t count, struct nt_boot *boot,
                         size_t member)
{
    uint64_t *sums = calloc(count, sizeof(*sums));
    size_t length;

    if (sums && !procfs_read(fs, name, &length) &&
        !cpu_parse_columns(fs->buffer, length, cpu_not_interrupts, sums, count)) {
        for (uint32_t i = 0; i < count; i++)
            memcpy((char *)&boot[i] + member, &sums[i], sizeof(sums[i]));
    }
    free(sums);
}

static void take_idle_states(struct procfs *fs, uint32_t number, struct nt_boot *ret)
{
    struct cpu_sysfs sysfs = {0};

    cpu_read_idle_states(fs, number, &sysfs);
    for (; ret->idle_state_count < sysfs.idle_state_count &&
           ret->idle_state_count < PRCB_IDLE_STATES_MAX;
         ret->idle_state_count++) {
        uint32_t i = ret->idle_state_count;

        ret->idle_states[i].entries = sysfs.idle_states[i].entries;
        ret->idle_states[i].residency_ns = sysfs.idle_states[i].residency_ns;
    }
}

int nt_boot_read(struct procfs *fs, uint32_t count, struct nt_boot *ret, uint64_t *ret_switches,
                 struct prcb_error *err)
{
    size_t length;
    int result = procfs_read(fs, "proc/stat", &length);

    if (!result)
        result = take_stat(fs->buffer, length, count, ret, ret_switches);
    if (result)
        return prcb_fail(err, result, "proc/stat: %s",
                         result == -EBADMSG ? "not what the kernel writes" : strerror(-result));
    take_columns(fs, "proc/interrupts", count, ret, offsetof(struct nt_boot, interrupts));
    take_columns(fs, "proc/softirqs", count, ret, offsetof(struct nt_boot, dpcs));
    for (uint32_t i = 0; i < count; i++)
        take_idle_states(fs, i, &ret[i]);
    return 0;
}

int nt_boot_switches(struct procfs *fs, uint64_t *ret)
{
    size_t length;
    int result = procfs_read(fs, "proc/stat", &length);

    return result ? result : take_switches(fs->buffer, length, ret);
}
