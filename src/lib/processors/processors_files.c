/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The perf tier of the processors: procfs and sysfs as of the last refresh, at the precision of the
 * kernel's tick. Each figure on its own never goes backwards: Linux's idle and iowait do at times,
 * and all of them when a processor goes off line and comes back.
 */
#include "processors_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_S 1000000000ull

/* The figures of one processor, as they were last seen and as they have been handed out: the sum
 * of their growth. */
struct processor_counts {
    uint64_t seen[CPU_STAT_FIELDS]; /* ticks, by /proc/stat */
    uint64_t ns[CPU_STAT_FIELDS];
    uint32_t fields; /* that /proc/stat has */
    bool has_line;   /* it did in the last refresh */
    uint64_t interrupts_seen, interrupts;
    uint64_t dpcs_seen, dpcs;
    uint64_t entries_seen[PRCB_IDLE_STATES_MAX], entries[PRCB_IDLE_STATES_MAX];
    uint64_t residency_seen[PRCB_IDLE_STATES_MAX], residency[PRCB_IDLE_STATES_MAX];
};

/* Returns the growth, at least 0. */
static uint64_t grow(uint64_t *seen, uint64_t now)
{
    uint64_t grown = now > *seen ? now - *seen : 0;

    *seen = now;
    return grown;
}

static uint64_t ticks_to_ns(uint64_t ticks, uint64_t per_second)
{
    return ticks / per_second * NS_PER_S + ticks % per_second * NS_PER_S / per_second;
}

static void take_line(struct processor_counts *counts, const struct cpu_stat *stat,
                      uint64_t per_second)
{
    for (uint32_t i = 0; i < stat->fields; i++)
        counts->ns[i] += ticks_to_ns(grow(&counts->seen[i], stat->ticks[i]), per_second);
    counts->fields = stat->fields;
    counts->has_line = true;
}

/* This is USER_HZ: recorded trees are of machines where it is 100, as on all but alpha. */
static uint64_t ticks_per_second(const struct prcb_processors *v)
{
    long per_second = v->recorded ? 100 : sysconf(_SC_CLK_TCK);

    return per_second > 0 ? (uint64_t)per_second : 100;
}

static int parse_stat(struct prcb_processors *v, size_t length)
{
    const char *at = v->fs.buffer, *end = at + length;
    uint64_t per_second = ticks_per_second(v);
    struct cpu_stat stat;
    int result;

    while ((result = cpu_parse_stat(&at, end, &stat)) > 0) {
        if (stat.number < v->count)
            take_line(&v->counts[stat.number], &stat, per_second);
    }
    return result;
}

static int check_stat(struct prcb_processors *v, size_t length)
{
    const char *at = v->fs.buffer, *end = at + length;
    struct cpu_stat stat;
    int result;

    while ((result = cpu_parse_stat(&at, end, &stat)) > 0)
        ;
    return result;
}

static int refresh_stat(struct prcb_processors *v, struct prcb_error *err)
{
    size_t length;
    int result = procfs_read(&v->fs, "proc/stat", &length);

    if (!result)
        result = check_stat(v, length); /* all or nothing */
    if (result)
        return prcb_fail(err, result, "proc/stat: %s",
                         result == -EBADMSG ? "not what the kernel writes" : strerror(-result));
    pthread_mutex_lock(&v->lock);
    for (uint32_t i = 0; i < v->count; i++)
        v->counts[i].has_line = false;
    parse_stat(v, length);
    pthread_mutex_unlock(&v->lock);
    return 0;
}

/* Column sums of a file that may be missing. */
static int read_columns(struct prcb_processors *v, const char *file, const char *const *skip,
                        uint64_t *ret)
{
    size_t length;
    int result = procfs_read(&v->fs, file, &length);

    return result ? result : cpu_parse_columns(v->fs.buffer, length, skip, ret, v->count);
}

/* Adds what a file of columns has grown by to one figure of each processor, where offsets say. A
 * processor that is off line has no column, and comes back with what it had: that is no growth. */
static void take_columns(struct prcb_processors *v, const uint64_t *sums, size_t seen, size_t total)
{
    for (uint32_t i = 0; i < v->count; i++) {
        char *counts = (char *)&v->counts[i];

        if (sums[i])
            *(uint64_t *)(counts + total) += grow((uint64_t *)(counts + seen), sums[i]);
    }
}

static void refresh_counts(struct prcb_processors *v, uint64_t *sums)
{
    static const struct {
        const char *file;
        const char *const *skip;
        size_t seen, total;
        uint64_t member;
        const char *why;
    } rows[] = {
        {"proc/interrupts", cpu_not_interrupts, offsetof(struct processor_counts, interrupts_seen),
         offsetof(struct processor_counts, interrupts), PRCB_CPU_HAS_INTERRUPTS,
         "proc/interrupts cannot be read"},
        {"proc/softirqs", NULL, offsetof(struct processor_counts, dpcs_seen),
         offsetof(struct processor_counts, dpcs), PRCB_CPU_HAS_DPCS,
         "proc/softirqs cannot be read"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int result = read_columns(v, rows[i].file, rows[i].skip, sums);

        pthread_mutex_lock(&v->lock);
        if (result)
            processors_lack(v, rows[i].member, rows[i].why);
        else
            take_columns(v, sums, rows[i].seen, rows[i].total);
        pthread_mutex_unlock(&v->lock);
    }
}

static void refresh_idle(struct prcb_processors *v)
{
    pthread_mutex_lock(&v->lock);
    for (uint32_t i = 0; i < v->count; i++) {
        const struct cpu_sysfs *sysfs = &v->slots[i].facts.sysfs;
        struct processor_counts *counts = &v->counts[i];

        for (uint32_t k = 0; k < sysfs->idle_state_count; k++) {
            counts->entries[k] += grow(&counts->entries_seen[k], sysfs->idle_states[k].entries);
            counts->residency[k] +=
                grow(&counts->residency_seen[k], sysfs->idle_states[k].residency_ns);
        }
    }
    pthread_mutex_unlock(&v->lock);
}

static int files_refresh(struct prcb_processors *v, struct prcb_error *err)
{
    uint64_t *sums = calloc(v->count, sizeof(*sums));
    int result = sums ? refresh_stat(v, err) : prcb_fail(err, -ENOMEM, "out of memory");

    if (!result) {
        refresh_counts(v, sums);
        refresh_idle(v);
    }
    free(sums);
    return result;
}

/* What no file says, and what these files do not say. */
static void say_what_lacks(struct prcb_processors *v)
{
    uint32_t fields = 0;
    bool cpuidle = false;
    uint64_t hard = 0;

    processors_lack(v, PRCB_CPU_HAS_SWITCHES | PRCB_CPU_HAS_MISSED,
                    "procfs counts switches for the machine as a whole only");
    processors_lack(v, PRCB_CPU_HAS_THREAD | PRCB_CPU_HAS_RUNNING | PRCB_CPU_HAS_IDLE_STATE,
                    "what a processor does at a moment is known on the bpf tier only");
    for (uint32_t i = 0; i < v->count; i++) {
        fields = v->counts[i].fields > fields ? v->counts[i].fields : fields;
        cpuidle |= v->slots[i].facts.sysfs.idle_state_count > 0;
        hard += v->counts[i].seen[CPU_STAT_IRQ];
    }
    if (fields <= CPU_STAT_STEAL)
        processors_lack(v, PRCB_CPU_HAS_STEAL, "proc/stat has no column for it");
    if (fields <= CPU_STAT_SOFTIRQ)
        processors_lack(v, PRCB_CPU_HAS_DPC | PRCB_CPU_HAS_INTERRUPT,
                        "proc/stat has no columns for them");
    /* The tick is an interrupt itself, and sees no other: most kernels leave the column at 0. */
    else if (!hard)
        processors_lack(v, PRCB_CPU_HAS_INTERRUPT,
                        "the kernel has counted none since it started, and charges interrupts to "
                        "what they hit (CONFIG_IRQ_TIME_ACCOUNTING is off)");
    if (!cpuidle)
        processors_lack(v, PRCB_CPU_HAS_IDLE_STATES | PRCB_CPU_HAS_IDLE_ENTRIES,
                        "the machine has no cpuidle driver, and nothing else in sysfs counts "
                        "idleness");
}

static int files_open(struct prcb_processors *v, struct prcb_error *err)
{
    int result;

    v->counts = calloc(v->count, sizeof(*v->counts));
    if (!v->counts)
        return prcb_fail(err, -ENOMEM, "out of memory");
    result = files_refresh(v, err);
    if (!result)
        say_what_lacks(v);
    return result;
}

static void files_close(struct prcb_processors *v)
{
    free(v->counts);
    v->counts = NULL;
}

static uint64_t files_now(struct prcb_processors *v)
{
    return 0;
}

/* Guest time is inside user's already. */
static int files_times(struct prcb_processors *v, uint32_t number, uint64_t now, struct parts *ret,
                       enum part *live, uint32_t *flags)
{
    const struct processor_counts *counts = &v->counts[number];

    ret->ns[PART_IDLE] = counts->ns[CPU_STAT_IDLE] + counts->ns[CPU_STAT_IOWAIT];
    ret->ns[PART_USER] = counts->ns[CPU_STAT_USER] + counts->ns[CPU_STAT_NICE];
    ret->ns[PART_KERNEL] = counts->ns[CPU_STAT_SYSTEM];
    ret->ns[PART_DPC] = counts->ns[CPU_STAT_SOFTIRQ];
    ret->ns[PART_INTERRUPT] = counts->ns[CPU_STAT_IRQ];
    ret->ns[PART_STEAL] = counts->ns[CPU_STAT_STEAL];
    ret->wall = 0;
    for (int i = 0; i < PARTS; i++)
        ret->wall += ret->ns[i];
    *live = PART_IDLE;
    *flags = v->slots[number].facts.online && counts->has_line ? PRCB_CPU_ONLINE : 0;
    return 0;
}

static uint64_t members_of(const struct prcb_processors *v, const struct processor_counts *counts)
{
    uint64_t present = PRCB_CPU_HAS_INTERRUPTS | PRCB_CPU_HAS_DPCS;

    present |= counts->fields > CPU_STAT_IDLE ? PRCB_CPU_HAS_TIMES : 0;
    present |= counts->fields > CPU_STAT_SOFTIRQ ? PRCB_CPU_HAS_DPC | PRCB_CPU_HAS_INTERRUPT : 0;
    present |= counts->fields > CPU_STAT_STEAL ? PRCB_CPU_HAS_STEAL : 0;
    return present & v->present;
}

static int files_record(struct prcb_processors *v, uint32_t number, uint64_t now,
                        struct parts *parts, enum part *live, struct prcb_processor *ret)
{
    const struct processor_counts *counts = &v->counts[number];
    const struct cpu_sysfs *sysfs = &v->slots[number].facts.sysfs;

    files_times(v, number, now, parts, live, &ret->flags);
    ret->present = members_of(v, counts);
    ret->interrupts = counts->interrupts;
    ret->dpcs = counts->dpcs;
    if (!sysfs->idle_state_count)
        return 0;
    ret->present |= PRCB_CPU_HAS_IDLE_STATES | PRCB_CPU_HAS_IDLE_ENTRIES;
    ret->idle_state_count = sysfs->idle_state_count;
    for (uint32_t i = 0; i < sysfs->idle_state_count; i++) {
        memcpy(ret->idle_states[i].name, sysfs->idle_states[i].name, CPU_FILES_NAME);
        ret->idle_states[i].entries = counts->entries[i];
        ret->idle_states[i].residency_ns = counts->residency[i];
        ret->idle_entries += counts->entries[i];
    }
    return 0;
}

const struct processor_source processors_from_files = {
    .number = PRCB_TIER_PERF,
    .open = files_open,
    .close = files_close,
    .now = files_now,
    .times = files_times,
    .record = files_record,
    .refresh = files_refresh,
};
