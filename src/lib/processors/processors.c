/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The public calls, and what is the same for both tiers.
 */
#include "processor_map.h"
#include "processors_view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PRCB_HAVE_BPF
#include "bpf_load.h"
#include "bpf_run.h"
#endif
#include "client.h"
#include "client_programs.h"
#include "figures.h"
#include "sized.h"
#include "tier.h"

/* ---- opening ---- */

static int read_options(const struct prcb_processors_options *from,
                        struct prcb_processors_options *ret, struct prcb_error *err)
{
    int result = sized_take_options("prcb_processors_options", from, ret, sizeof(*ret), err);

    if (result)
        return result;
    if (ret->tier > PRCB_TIER_DAEMON)
        return prcb_fail(err, -EINVAL, "unknown tier %d", (int)ret->tier);
    if (ret->flags)
        return prcb_fail(err, -EINVAL,
                         "prcb_processors_options.flags 0x%x has bits that mean "
                         "nothing",
                         ret->flags);
    if (ret->root && ret->tier >= PRCB_TIER_BPF)
        return prcb_fail(err, -EINVAL, "a recorded tree has no eBPF: the %s tier cannot read %s",
                         prcb_tier_name(ret->tier), ret->root);
    return 0;
}

static int count_possible(struct prcb_processors *v, struct prcb_error *err)
{
    uint32_t end = 0;
    int result;
    bool *possible = calloc(MOST_PROCESSORS, sizeof(*possible));

    if (!possible)
        return prcb_fail(err, -ENOMEM, "out of memory");
    result = cpu_read_list(&v->fs, "possible", possible, MOST_PROCESSORS, &end);
    free(possible);
    if (result == -EBADMSG || (!result && !end))
        return prcb_fail(err, -EBADMSG,
                         "sys/devices/system/cpu/possible and proc/stat name no processor");
    if (result)
        return prcb_fail(err, result,
                         "neither sys/devices/system/cpu/possible nor proc/stat can be read: %s",
                         strerror(-result));
    v->count = end;
    v->slots = calloc(end, sizeof(*v->slots));
    v->times = calloc(end, sizeof(*v->times));
    return v->slots && v->times ? 0 : prcb_fail(err, -ENOMEM, "out of memory");
}

/* Leaves nothing behind on failure. */
static int try_source(struct prcb_processors *v, const struct processor_source *source,
                      struct prcb_error *why)
{
    int result;

    v->source = source;
    result = source->open(v, why);
    if (result) {
        source->close(v);
        memset(v->absent, 0, sizeof(v->absent));
    }
    return result;
}

#ifdef PRCB_HAVE_BPF
static int try_bpf(struct prcb_processors *v, struct prcb_error *why)
{
    return try_source(v, &processors_from_bpf, why);
}
#else
static int try_bpf(struct prcb_processors *v, struct prcb_error *why)
{
    return prcb_fail(why, -EOPNOTSUPP, "%s", PRCB_NO_BPF_TIER);
}
#endif

static void keep_reason(struct prcb_processors *v, const struct prcb_error *why)
{
    if (!v->tier_reason[0])
        memcpy(v->tier_reason, why->text, sizeof(v->tier_reason) - 1);
}

/* The best one is tried first; the reason why it failed is kept. */
static int open_source(struct prcb_processors *v, const struct prcb_processors_options *options,
                       struct prcb_error *err)
{
    enum prcb_tier forced = options->root ? PRCB_TIER_PERF : options->tier;
    struct prcb_error why = {0};
    int result = -EOPNOTSUPP;

    if (!forced || forced == PRCB_TIER_DAEMON)
        result = try_source(v, &processors_from_daemon, &why);
    if (!forced && client_refused(result))
        keep_reason(v, &why);
    if (result && (!forced || forced == PRCB_TIER_BPF)) {
        result = try_bpf(v, &why);
        if (result && !forced)
            keep_reason(v, &why);
    }
    if (!result)
        return 0;
    if (forced == PRCB_TIER_DAEMON || forced == PRCB_TIER_BPF) {
        if (err)
            *err = why;
        return result;
    }
    v->source = &processors_from_files;
    return v->source->open(v, err);
}

/* ---- facts ---- */

struct fresh {
    bool *online, *present;
    struct cpu_sysfs *sysfs;
};

/* cpuidle takes its folders away from a processor that goes off line. What they named stays, so
 * that what was told of each state does. */
static void keep_idle_states(struct cpu_sysfs *sysfs, const struct cpu_sysfs *fresh)
{
    struct cpu_sysfs last = *sysfs;

    *sysfs = *fresh;
    if (fresh->idle_state_count)
        return;
    memcpy(sysfs->idle_states, last.idle_states, sizeof(last.idle_states));
    sysfs->idle_state_count = last.idle_state_count;
    sysfs->present |= last.present & CPU_SYSFS_IDLE;
}

static void take_facts(struct prcb_processors *v, const struct fresh *fresh)
{
    for (uint32_t i = 0; i < v->count; i++) {
        struct processor_facts *facts = &v->slots[i].facts;
        uint64_t throttles = facts->sysfs.throttles;

        facts->online = fresh->online[i];
        facts->absent = !fresh->present[i] && !fresh->online[i];
        keep_idle_states(&facts->sysfs, &fresh->sysfs[i]);
        /* An offline processor's files are gone or start again. */
        if (facts->sysfs.throttles < throttles)
            facts->sysfs.throttles = throttles;
        facts->has_performance = v->msr && msr_performance(v->msr, i, &facts->performance_permille);
    }
}

/* x86 kernels without cpufreq know a frequency all the same. */
static void add_cpuinfo(struct prcb_processors *v, struct fresh *fresh)
{
    uint32_t *mhz;
    size_t length;

    for (uint32_t i = 0; i < v->count; i++) {
        if (fresh->sysfs[i].present & CPU_SYSFS_MHZ)
            return;
    }
    mhz = calloc(v->count, sizeof(*mhz));
    if (mhz && !procfs_read(&v->fs, "proc/cpuinfo", &length) &&
        !cpu_parse_mhz(v->fs.buffer, length, mhz, v->count)) {
        for (uint32_t i = 0; i < v->count; i++) {
            fresh->sysfs[i].mhz = mhz[i];
            fresh->sysfs[i].present |= mhz[i] ? CPU_SYSFS_MHZ : 0;
        }
    }
    free(mhz);
}

/* Whether another driver was loaded since the last call. */
static bool idle_driver_changed(struct prcb_processors *v)
{
    char driver[sizeof(v->idle_driver)] = "";

    cpu_read_idle_driver(&v->fs, driver);
    if (!strcmp(driver, v->idle_driver))
        return false;
    memcpy(v->idle_driver, driver, sizeof(driver));
    return true;
}

/* Blocks have counts of their own and want the states' names only. */
static bool wants_idle_states(struct prcb_processors *v, uint32_t number)
{
    uint32_t known = v->slots[number].facts.sysfs.idle_state_count;

    return v->source == &processors_from_files || !known ||
           cpu_has_idle_state(&v->fs, number, known);
}

/* Reads before the lock is taken: readers need not wait for sysfs. */
static int refresh_facts(struct prcb_processors *v, struct prcb_error *err)
{
    struct fresh fresh = {calloc(v->count, sizeof(*fresh.online)),
                          calloc(v->count, sizeof(*fresh.present)),
                          calloc(v->count, sizeof(*fresh.sysfs))};
    bool named_anew = idle_driver_changed(v);
    uint32_t end;
    int result = fresh.online && fresh.present && fresh.sysfs ? 0 : -ENOMEM;

    if (!result)
        result = cpu_read_list(&v->fs, "online", fresh.online, v->count, &end);
    if (!result)
        cpu_read_present(&v->fs, fresh.present, v->count);
    for (uint32_t i = 0; !result && i < v->count; i++) {
        cpu_read_sysfs(&v->fs, i, &fresh.sysfs[i]);
        if (named_anew || wants_idle_states(v, i))
            cpu_read_idle_states(&v->fs, i, &fresh.sysfs[i]);
    }
    if (!result) {
        add_cpuinfo(v, &fresh);
        pthread_mutex_lock(&v->lock);
        take_facts(v, &fresh);
        pthread_mutex_unlock(&v->lock);
    }
    free(fresh.online);
    free(fresh.present);
    free(fresh.sysfs);
    if (result)
        return prcb_fail(err, result, "sys/devices/system/cpu/online: %s",
                         result == -EBADMSG ? "not a list of processors" : strerror(-result));
    return 0;
}

/* Members that no processor has at present. */
static void find_lacking(struct prcb_processors *v)
{
    static const struct {
        uint32_t of_sysfs;
        uint64_t member;
        const char *why;
    } rows[] = {
        {CPU_SYSFS_MHZ, PRCB_CPU_HAS_MHZ,
         "the machine has no cpufreq driver, and /proc/cpuinfo tells no frequency"},
        {CPU_SYSFS_MAX, PRCB_CPU_HAS_MAX_MHZ, "the machine has no cpufreq driver"},
        {CPU_SYSFS_LIMIT, PRCB_CPU_HAS_LIMIT_MHZ, "the machine has no cpufreq driver"},
        {CPU_SYSFS_MIN, PRCB_CPU_HAS_MIN_MHZ, "the machine has no cpufreq driver"},
        {CPU_SYSFS_NOMINAL, PRCB_CPU_HAS_NOMINAL_MHZ,
         "neither the cpufreq driver (base_frequency) nor ACPI's CPPC tells it"},
        {CPU_SYSFS_THROTTLES, PRCB_CPU_HAS_THROTTLES,
         "the machine counts no thermal throttling (sysfs has no thermal_throttle)"},
    };
    uint32_t any = 0;

    for (uint32_t i = 0; i < v->count; i++)
        any |= v->slots[i].facts.sysfs.present;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!(any & rows[i].of_sysfs))
            processors_lack(v, rows[i].member, rows[i].why);
    }
}

static void open_msr(struct prcb_processors *v)
{
    const char *why = "a recorded machine has no counters";

    if (v->recorded || msr_open(v->count, &v->msr, &why))
        processors_lack(v, PRCB_CPU_HAS_PERFORMANCE, why);
}

/* ---- the life of a view ---- */

static int read_raw(struct prcb_processors *v, uint32_t number, struct parts *parts,
                    enum part *live, struct prcb_processor *ret)
{
    memset(ret, 0, sizeof(*ret));
    return v->source->record(v, number, v->source->now(v), parts, live, ret);
}

/* Where everything counts from. */
static int take_base(struct prcb_processors *v, struct prcb_error *err)
{
    for (uint32_t i = 0; i < v->count; i++) {
        struct processor_slot *slot = &v->slots[i];
        enum part live;
        int result = read_raw(v, i, &v->times[i].base, &live, &slot->from);

        slot->from.throttles = slot->facts.sysfs.throttles;
        if (result)
            return prcb_fail(err, result, "processor %u stayed inconsistent: its writer is stuck",
                             i);
        v->times[i].last = v->times[i].base;
    }
    return 0;
}

static int open_view(struct prcb_processors *v, const struct prcb_processors_options *options,
                     struct prcb_error *err)
{
    int result = procfs_open(&v->fs, options->root ? options->root : "/");

    if (result)
        return prcb_fail(err, result, "%s: %s", options->root ? options->root : "/",
                         strerror(-result));
    v->recorded = options->root != NULL;
    v->present = ~0ull >> (64 - MEMBERS);
    result = count_possible(v, err);
    if (!result) {
        open_msr(v);
        result = refresh_facts(v, err);
    }
    if (!result)
        result = open_source(v, options, err);
    if (result)
        return result;
    find_lacking(v);
    return take_base(v, err);
}

int prcb_processors_open(const struct prcb_processors_options *opts, struct prcb_processors **ret,
                         struct prcb_error *err)
{
    struct prcb_processors_options options;
    struct prcb_processors *v;
    int result = read_options(opts, &options, err);

    if (result)
        return result;
    v = calloc(1, sizeof(*v));
    if (!v)
        return prcb_fail(err, -ENOMEM, "out of memory");
    v->fs.root = -1;
    pthread_mutex_init(&v->lock, NULL);
    pthread_mutex_init(&v->refresh_lock, NULL);
    clock_base_init(&v->clock_base);
#ifdef PRCB_HAVE_BPF
    bpf_forget_log();
#endif
    result = open_view(v, &options, err);
    if (result) {
        prcb_processors_close(v);
        return result;
    }
    *ret = v;
    return 0;
}

void prcb_processors_close(struct prcb_processors *v)
{
    if (!v)
        return;
    if (v->source)
        v->source->close(v);
    msr_close(v->msr);
    procfs_close(&v->fs);
    pthread_mutex_destroy(&v->lock);
    pthread_mutex_destroy(&v->refresh_lock);
    free(v->slots);
    free(v->times);
    free(v);
}

enum prcb_tier prcb_processors_tier(const struct prcb_processors *v)
{
    return v->source->number;
}

const char *prcb_processors_tier_reason(const struct prcb_processors *v)
{
    return v->tier_reason[0] ? v->tier_reason : NULL;
}

uint32_t prcb_processors_count(const struct prcb_processors *v)
{
    return v->count;
}

int prcb_processors_program(const struct prcb_processors *v, uint32_t i, struct prcb_program *ret)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&v->refresh_lock; /* no part of what v says */
    struct prcb_program program = {.size = sizeof(program)};
    int result = -ENOENT;

#ifdef PRCB_HAVE_BPF
    if (v->programs)
        result = bpf_event_program(processor_programs_object(v->programs), i, &program);
#endif
    if (v->missed) {
        pthread_mutex_lock(lock);
        if (!i)
            client_ask_processor_programs(v->missed);
        result = client_program(v->missed, i, &program);
        pthread_mutex_unlock(lock);
    }
    return result ? result : sized_hand_out(&program, sizeof(program), ret);
}

int prcb_processors_refresh(struct prcb_processors *v, struct prcb_error *err)
{
    int result;

    pthread_mutex_lock(&v->refresh_lock);
    result = refresh_facts(v, err);
    if (!result)
        result = v->source->refresh(v, err);
    pthread_mutex_unlock(&v->refresh_lock);
    return result;
}

/* ---- reading ---- */

/* Never less than what was returned last, and counted from the opening of the view. In this
 * order, because what was shared out by a guess at the opening may be less by now. */
static void settle(struct processor_times *times, struct parts *parts, enum part live)
{
    parts_never_back(&times->last, parts, live);
    times->last = *parts;
    parts->wall -= times->base.wall;
    for (int i = 0; i < PARTS; i++)
        parts->ns[i] -= times->base.ns[i];
}

/* Members that times have, and of which a view may lack some. */
#define OF_TIMES                                                                                   \
    (PRCB_CPU_HAS_TIMES | PRCB_CPU_HAS_DPC | PRCB_CPU_HAS_INTERRUPT | PRCB_CPU_HAS_STEAL)

int prcb_processors_times(struct prcb_processors *v, struct prcb_processor_times *ret, size_t size,
                          uint32_t count)
{
    size_t known = size < sizeof(*ret) ? size : sizeof(*ret);
    uint64_t now;
    int result = 0;

    if (count > v->count)
        return -ENXIO;
    pthread_mutex_lock(&v->lock);
    now = v->source->now(v);
    for (uint32_t i = 0; !result && i < count; i++) {
        struct parts parts;
        enum part live;
        struct prcb_processor_times times;
        char *to = (char *)ret + i * size;
        uint32_t flags;

        result = v->source->times(v, i, now, &parts, &live, &flags);
        if (result)
            break;
        settle(&v->times[i], &parts, live);
        times = (struct prcb_processor_times){
            .present = v->present & OF_TIMES,
            .wall_ns = parts.wall,
            .idle_ns = parts.ns[PART_IDLE],
            .user_ns = parts.ns[PART_USER],
            .kernel_ns = parts.ns[PART_KERNEL],
            .dpc_ns = parts.ns[PART_DPC],
            .interrupt_ns = parts.ns[PART_INTERRUPT],
            .steal_ns = parts.ns[PART_STEAL],
            .flags = flags,
        };
        memcpy(to, &times, known);
        memset(to + known, 0, size - known);
    }
    pthread_mutex_unlock(&v->lock);
    return result;
}

static void add_facts(const struct processor_facts *facts, struct prcb_processor *ret)
{
    static const struct {
        uint32_t of_sysfs;
        uint32_t member;
    } rows[] = {
        {CPU_SYSFS_MHZ, PRCB_CPU_HAS_MHZ},
        {CPU_SYSFS_MAX, PRCB_CPU_HAS_MAX_MHZ},
        {CPU_SYSFS_LIMIT, PRCB_CPU_HAS_LIMIT_MHZ},
        {CPU_SYSFS_MIN, PRCB_CPU_HAS_MIN_MHZ},
        {CPU_SYSFS_NOMINAL, PRCB_CPU_HAS_NOMINAL_MHZ},
        {CPU_SYSFS_THROTTLES, PRCB_CPU_HAS_THROTTLES},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ret->present |= facts->sysfs.present & rows[i].of_sysfs ? rows[i].member : 0;
    ret->mhz = facts->sysfs.mhz;
    ret->max_mhz = facts->sysfs.max_mhz;
    ret->limit_mhz = facts->sysfs.limit_mhz;
    ret->min_mhz = facts->sysfs.min_mhz;
    ret->nominal_mhz = facts->sysfs.nominal_mhz;
    ret->throttles = facts->sysfs.throttles;
    ret->performance_permille = facts->performance_permille;
    ret->flags |= facts->absent ? PRCB_CPU_ABSENT : 0;
    ret->present |= facts->has_performance ? PRCB_CPU_HAS_PERFORMANCE : 0;
}

static void take_parts(const struct parts *parts, struct prcb_processor *ret)
{
    ret->wall_ns = parts->wall;
    ret->idle_ns = parts->ns[PART_IDLE];
    ret->user_ns = parts->ns[PART_USER];
    ret->kernel_ns = parts->ns[PART_KERNEL];
    ret->dpc_ns = parts->ns[PART_DPC];
    ret->interrupt_ns = parts->ns[PART_INTERRUPT];
    ret->steal_ns = parts->ns[PART_STEAL];
}

/* A cpuidle state that has appeared since the opening counts from its own beginning; one that took
 * another's place, as when a driver is loaded, from its first look. */
static void meet_idle_states(struct processor_slot *slot, const struct prcb_processor *record)
{
    for (uint32_t i = 0; i < record->idle_state_count; i++) {
        struct prcb_idle_state *from = &slot->from.idle_states[i];

        if (!strncmp(from->name, record->idle_states[i].name, sizeof(from->name)))
            continue;
        if (from->name[0])
            *from = record->idle_states[i];
        else
            memcpy(from->name, record->idle_states[i].name, sizeof(from->name));
        slot->last_residency[i] = 0;
    }
}

/* Counters and idle states, from an earlier record on. */
static void subtract(const struct prcb_processor *from, struct prcb_processor *ret)
{
    figures_sub(processor_figures, ret, from);
    for (uint32_t i = 0; i < ret->idle_state_count; i++) {
        struct prcb_idle_state *state = &ret->idle_states[i];

        state->entries = figure_growth(state->entries, from->idle_states[i].entries);
        state->residency_ns = figure_growth(state->residency_ns, from->idle_states[i].residency_ns);
    }
}

static void residency_never_back(struct processor_slot *slot, struct prcb_processor *ret)
{
    for (uint32_t i = 0; i < ret->idle_state_count; i++) {
        if (ret->idle_states[i].residency_ns < slot->last_residency[i])
            ret->idle_states[i].residency_ns = slot->last_residency[i];
        slot->last_residency[i] = ret->idle_states[i].residency_ns;
    }
}

int prcb_processor_read(struct prcb_processors *v, uint32_t number, struct prcb_processor *ret)
{
    struct processor_slot *slot;
    struct prcb_processor record;
    struct parts parts;
    enum part live;
    int result;

    if (number >= v->count)
        return -ENXIO;
    slot = &v->slots[number];
    pthread_mutex_lock(&v->lock);
    result = read_raw(v, number, &parts, &live, &record);
    if (!result) {
        settle(&v->times[number], &parts, live);
        take_parts(&parts, &record);
        add_facts(&slot->facts, &record);
        meet_idle_states(slot, &record);
        subtract(&slot->from, &record);
        residency_never_back(slot, &record);
    }
    pthread_mutex_unlock(&v->lock);
    if (result)
        return result;
    record.number = number;
    record.tier = v->source->number;
    return sized_hand_out(&record, sizeof(record), ret);
}

/* ---- differences, reasons ---- */

void prcb_processor_sub(const struct prcb_processor *later, const struct prcb_processor *earlier,
                        struct prcb_processor *ret)
{
    struct prcb_processor out, old;

    sized_take_record(later, &out, sizeof(out));
    ret->size = later->size;
    if (!earlier) {
        sized_hand_out(&out, sizeof(out), ret);
        return;
    }
    sized_take_record(earlier, &old, sizeof(old));
    out.present &= old.present | figures_gauges(processor_figures);
    subtract(&old, &out);
    sized_hand_out(&out, sizeof(out), ret);
}

const char *prcb_processor_absent_reason(const struct prcb_processors *v, uint64_t member)
{
    if (member & (PRCB_CPU_HAS_THREAD | PRCB_CPU_HAS_RUNNING) && v->map &&
        processor_map_ended(v->map))
        return "prcbd gave up the programs that tell: it was cleaned away, or another version came";
    for (int i = 0; i < MEMBERS; i++) {
        if (member == 1ull << i)
            return v->absent[i];
    }
    return NULL;
}
