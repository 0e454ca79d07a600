/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The families' rows and the functions that make their samples.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cause.h"
#include "cores.h"
#include "inside.h"
#include "memory.h"

/* What an emit function has to show; the low bits are a number of the rows' own. */
#define WHAT_MASK     0xffffu
#define EACH          (1u << 16) /* each processor by itself, not their sum */
#define IN_CGROUP     (1u << 17)
#define IN_NAME       (1u << 18)
#define AS_CORE       (1u << 19) /* a processor as "node,index" */
#define NODE_MODES    (1u << 20)
#define WINDOWS_MODES (1u << 21)

enum own { OWN_UP, OWN_START, OWN_LOOK, OWN_UNTRACKED, OWN_MISSES, OWN_CGROUPS };
enum of_causes { CAUSES_NS, CAUSES_COUNT };
enum of_idle { IDLE_NS, IDLE_ENTRIES };
enum of_windows {
    WINDOWS_LOGICAL,
    WINDOWS_PARKED,
    WINDOWS_MHZ,
    WINDOWS_PROCESSES,
    WINDOWS_LIMIT,
    WINDOWS_THREADS,
    WINDOWS_QUEUE,
    WINDOWS_BOOT,
};
typedef metrics_sample_fn sample_fn;
#define EMIT(name)                                                                                 \
    static void name(const struct metrics *m, const struct metrics_family *family, sample_fn *fn,  \
                     void *ctx)

static void put(struct metrics_sample *sample, int place, const char *label, const char *value)
{
    sample->label[place] = label;
    sample->value[place] = value;
}

static void emit_integer(sample_fn *fn, void *ctx, struct metrics_sample *sample, uint64_t number)
{
    sample->kind = METRICS_INTEGER;
    sample->number = number;
    fn(ctx, sample);
}

static void emit_ns(sample_fn *fn, void *ctx, struct metrics_sample *sample, uint64_t ns)
{
    sample->kind = METRICS_NS;
    sample->number = ns;
    fn(ctx, sample);
}

static void emit_real(sample_fn *fn, void *ctx, struct metrics_sample *sample, double real)
{
    sample->kind = METRICS_REAL;
    sample->real = real;
    fn(ctx, sample);
}

/* ---- of prcb itself ---- */

EMIT(emit_build)
{
    struct metrics_sample sample = {0};

    put(&sample, 0, "version", prcb_version());
    put(&sample, 1, "tier", m ? prcb_tier_name(m->tier) : "");
    emit_integer(fn, ctx, &sample, 1);
}

EMIT(emit_own)
{
    struct metrics_sample sample = {0};

    switch (family->what) {
    case OWN_UP:
        emit_integer(fn, ctx, &sample, m != NULL);
        break;
    case OWN_START:
        emit_ns(fn, ctx, &sample, m->started);
        break;
    case OWN_LOOK:
        emit_ns(fn, ctx, &sample, m->look_ns);
        break;
    case OWN_UNTRACKED:
        emit_integer(fn, ctx, &sample, m->status.untracked_threads);
        break;
    case OWN_MISSES:
        if (m->status.recursion_misses != UINT64_MAX)
            emit_integer(fn, ctx, &sample, m->status.recursion_misses);
        break;
    case OWN_CGROUPS:
        emit_integer(fn, ctx, &sample,
                     m->present & PRCB_HAS_CGROUP &&
                         (m->replay || cgroup_names_setup(m->names) >= CGROUP_HYBRID));
        break;
    }
}

EMIT(emit_missed)
{
    struct metrics_sample sample = {0};
    uint64_t processors = 0;

    if (m->present & PRCB_HAS_WAITS) {
        put(&sample, 0, "of", "threads");
        emit_integer(fn, ctx, &sample, m->all.shown.v[ACCOUNT_missed_switches]);
    }
    for (uint32_t i = 0; i < m->processor_count; i++) {
        if (!(m->processors[i].present & PRCB_CPU_HAS_MISSED))
            return;
        processors += m->processors[i].missed_switches;
    }
    put(&sample, 0, "of", "processors");
    if (m->processor_count)
        emit_integer(fn, ctx, &sample, processors);
}

EMIT(emit_accounts)
{
    uint64_t used = m->accounts_live + m->accounts_ended;
    const struct {
        const char *state;
        uint64_t count;
    } rows[] = {{"live", m->accounts_live},
                {"ended", m->accounts_ended},
                {"free", m->status.max_threads > used ? m->status.max_threads - used : 0}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct metrics_sample sample = {0};

        put(&sample, 0, "state", rows[i].state);
        emit_integer(fn, ctx, &sample, rows[i].count);
    }
}

EMIT(emit_left_out)
{
    static const char *const by[AXES] = {"cgroup", "name"};

    for (size_t i = 0; i < AXES; i++) {
        struct metrics_sample sample = {0};

        put(&sample, 0, "by", by[i]);
        if (i == AXIS_CGROUP || m->options.optional & METRICS_BY_NAME)
            emit_integer(fn, ctx, &sample, m->axes[i].left_out);
    }
}

/* ---- processors ---- */

/* "cpu" or "core", in a buffer of CPU_BYTES. */
#define CPU_BYTES 32

#define CORES 4096

/* Windows' name of a processor: the number of its NUMA node and its place in that. */
static void core_name(const struct metrics *m, uint32_t number, char *ret)
{
    static struct core cores[CORES];
    static bool looked;

    if (!looked)
        cores_read("", cores, CORES);
    looked = true;
    if (!m->replay && number < CORES && cores[number].known)
        snprintf(ret, CPU_BYTES, "%u,%u", cores[number].node, cores[number].index);
    else
        snprintf(ret, CPU_BYTES, "0,%u", number);
}

static void put_cpu(const struct metrics *m, struct metrics_sample *sample, uint32_t number,
                    bool core, char *buffer)
{
    if (core)
        core_name(m, number, buffer);
    else
        snprintf(buffer, CPU_BYTES, "%u", number);
    put(sample, 0, core ? "core" : "cpu", buffer);
}

#define ROW(name) &processor_figures[PROCESSOR_ROW_##name]

/* A mode and the parts of a processor's time that make it up. The mode is absent where its first
 * part is; other parts that a processor lacks count as 0, and their time is then in another
 * mode. */
struct mode {
    const char *name; /* that of a row: without "_ns" */
    const struct figure *parts[4];
};
static const struct mode own_modes[] = {
#define PART(name, ...) {#name, {ROW(name)}},
#include "processor_figures.def"
    {0},
};
static const struct mode node_modes[] = {
    {"user", {ROW(user_ns)}},
    {"system", {ROW(kernel_ns)}},
    {"idle", {ROW(idle_ns)}},
    {"irq", {ROW(interrupt_ns)}},
    {"softirq", {ROW(dpc_ns)}},
    {"steal", {ROW(steal_ns)}},
    {0},
};
static const struct mode windows_modes[] = {
    {"idle", {ROW(idle_ns)}},
    {"user", {ROW(user_ns)}},
    {"privileged", {ROW(kernel_ns), ROW(dpc_ns), ROW(interrupt_ns), ROW(steal_ns)}},
    {"dpc", {ROW(dpc_ns)}},
    {"interrupt", {ROW(interrupt_ns)}},
    {0},
};

/* Sums the mode over the processors; false: one of them lacks it. */
static bool mode_ns(const struct mode *mode, const struct prcb_processor *p, uint32_t count,
                    uint64_t *ret)
{
    for (*ret = 0; count; count--, p++) {
        if (!(p->present & mode->parts[0]->present))
            return false;
        for (size_t i = 0; i < 4 && mode->parts[i]; i++)
            *ret += figure_get(mode->parts[i], p);
    }
    return true;
}

static void emit_mode(const struct metrics *m, const struct metrics_family *family, sample_fn *fn,
                      void *ctx, uint32_t at, const struct mode *mode)
{
    bool each = family->what & EACH;
    const char *is = strcmp(mode->name, "dpc_ns") ? mode->name : "softirq";
    const char *end = strstr(is, "_ns");
    struct metrics_sample sample = {0};
    char cpu[CPU_BYTES], name[32];
    uint64_t ns;

    if (each)
        put_cpu(m, &sample, m->processors[at].number, family->what & WINDOWS_MODES, cpu);
    snprintf(name, sizeof(name), "%.*s", end ? (int)(end - is) : -1, is);
    put(&sample, each, "mode", name);
    if (mode_ns(mode, &m->processors[at], each ? 1 : m->processor_count, &ns))
        emit_ns(fn, ctx, &sample, ns);
}

EMIT(emit_modes)
{
    const struct mode *modes = family->what & NODE_MODES      ? node_modes
                               : family->what & WINDOWS_MODES ? windows_modes
                                                              : own_modes;
    /* In our own modes idle comes first. */
    const struct mode *first = modes == own_modes ? &own_modes[PROCESSOR_idle_ns] : NULL;

    for (uint32_t i = 0; i < (family->what & EACH ? m->processor_count : m->processor_count > 0);
         i++) {
        if (first)
            emit_mode(m, family, fn, ctx, i, first);
        for (const struct mode *mode = modes; mode->name; mode++) {
            if (mode != first)
                emit_mode(m, family, fn, ctx, i, mode);
        }
    }
}

/* Sets *ret or *ret_real, in the unit of the family. false: it is absent. */
static bool processor_value(const struct prcb_processor *p, const struct metrics_family *family,
                            uint64_t *ret, double *ret_real)
{
    const struct figure *figure = &processor_figures[family->what & WHAT_MASK];
    uint64_t value = figure_get(figure, p), present = figure->present;

    if (figure->unit == FIGURE_PERMILLE) {
        *ret_real = (double)value / 1000;
    } else if (family->unit == METRICS_RATIO) { /* of the highest frequency */
        present |= PRCB_CPU_HAS_MAX_MHZ;
        *ret_real = p->max_mhz ? (double)value / p->max_mhz : 0;
    } else {
        *ret = figure->unit == FIGURE_MHZ ? value * 1000000 : value;
    }
    return (p->present & present) == present;
}

EMIT(emit_processors)
{
    uint64_t sum = 0, value = 0;
    bool present = m->processor_count > 0;

    for (uint32_t i = 0; i < m->processor_count; i++) {
        struct metrics_sample sample = {0};
        double real = -1;
        char cpu[CPU_BYTES];

        if (!processor_value(&m->processors[i], family, &value, &real)) {
            present = false;
            continue;
        }
        sum += value;
        if (!(family->what & EACH))
            continue;
        put_cpu(m, &sample, m->processors[i].number, family->what & AS_CORE, cpu);
        if (real >= 0)
            emit_real(fn, ctx, &sample, real);
        else
            emit_integer(fn, ctx, &sample, value);
    }
    if (present && !(family->what & EACH)) {
        struct metrics_sample sample = {0};

        emit_integer(fn, ctx, &sample, sum);
    }
}

EMIT(emit_idle_states)
{
    for (uint32_t i = 0; i < m->processor_count; i++) {
        const struct prcb_processor *p = &m->processors[i];
        uint32_t count = p->present & PRCB_CPU_HAS_IDLE_STATES ? p->idle_state_count : 0;
        char cpu[CPU_BYTES];

        for (uint32_t state = 0; state < count && state < PRCB_IDLE_STATES_MAX; state++) {
            struct metrics_sample sample = {0};

            put_cpu(m, &sample, p->number, false, cpu);
            put(&sample, 1, "state", p->idle_states[state].name);
            if (family->what == IDLE_NS)
                emit_ns(fn, ctx, &sample, p->idle_states[state].residency_ns);
            else
                emit_integer(fn, ctx, &sample, p->idle_states[state].entries);
        }
    }
}

EMIT(emit_online)
{
    for (uint32_t i = 0; i < m->processor_count; i++) {
        struct metrics_sample sample = {0};
        char cpu[CPU_BYTES];

        put_cpu(m, &sample, m->processors[i].number, false, cpu);
        emit_integer(fn, ctx, &sample, m->processors[i].flags & PRCB_CPU_ONLINE ? 1 : 0);
    }
}

/* ---- threads, of the machine or in groups ---- */

struct each_group {
    const struct metrics_family *family;
    void (*one)(const struct each_group *each, const struct group *group,
                const struct metrics_sample *labels, int used);
    sample_fn *fn;
    void *ctx;
    const struct metrics *m;
};

static void with_name(void *ctx, const struct group *group)
{
    const struct each_group *each = ctx;
    struct metrics_sample sample = {0};

    if (each->family->what & IN_CGROUP)
        put(&sample, 0, "cgroup", group->path);
    else
        put(&sample, 0, "name", group->name);
    each->one(each, group, &sample, 1);
}

static void for_groups(const struct metrics *m, const struct metrics_family *family, sample_fn *fn,
                       void *ctx,
                       void (*one)(const struct each_group *, const struct group *,
                                   const struct metrics_sample *, int))
{
    struct each_group each = {family, one, fn, ctx, m};
    const struct metrics_sample none = {0};

    if (family->what & IN_CGROUP)
        metrics_groups(m, AXIS_CGROUP, with_name, &each);
    else if (family->what & IN_NAME)
        metrics_groups(m, AXIS_NAME, with_name, &each);
    else
        one(&each, &m->all, &none, 0);
}

/* The bit that a value stands for. */
static uint64_t present_of(unsigned value)
{
    for (const struct figure *row = account_figures; row->name; row++) {
        if (row->kind != FIGURE_LIST && row->index == value)
            return row->present;
    }
    return PRCB_HAS_WAITS; /* causes */
}

static void one_value(const struct each_group *each, const struct group *group,
                      const struct metrics_sample *labels, int used)
{
    struct metrics_sample sample = *labels;
    unsigned value = each->family->what & WHAT_MASK;

    if (!(each->m->present & present_of(value)))
        return;
    if (each->family->unit == METRICS_SECONDS)
        emit_ns(each->fn, each->ctx, &sample, group->shown.v[value]);
    else
        emit_integer(each->fn, each->ctx, &sample, group->shown.v[value]);
}

EMIT(emit_group_value)
{
    for_groups(m, family, fn, ctx, one_value);
}

static bool is_wait(uint32_t cause)
{
    const struct prcb_cause_info *info = prcb_cause_info(cause);

    return info && info->kind == PRCB_KIND_WAIT;
}

static void one_causes(const struct each_group *each, const struct group *group,
                       const struct metrics_sample *labels, int used)
{
    bool ns = (each->family->what & WHAT_MASK) == CAUSES_NS;

    if (!(each->m->present & PRCB_HAS_WAITS))
        return;
    for (uint32_t cause = 1; cause < PRCB_CAUSE_MAX; cause++) {
        uint64_t value = group->shown.v[(ns ? VALUE_CAUSE_NS : VALUE_CAUSE_COUNT) + cause];
        struct metrics_sample sample = *labels;

        /* For the machine every cause has a series from the start, for a group only those that
         * occurred. */
        if (!prcb_cause_info(cause) || (ns && !is_wait(cause)) || (used && !value))
            continue;
        put(&sample, used, "cause", prcb_cause_info(cause)->name);
        if (ns)
            emit_ns(each->fn, each->ctx, &sample, value);
        else
            emit_integer(each->fn, each->ctx, &sample, value);
    }
}

EMIT(emit_causes)
{
    for_groups(m, family, fn, ctx, one_causes);
}

const char *metrics_class_of(uint32_t cause)
{
    enum cause_class class = cause_traits(cause)->class;

    return cause < PRCB_CAUSE_MAX && is_wait(cause) && class < CAUSE_CLASSES
               ? cause_class_names[class]
               : NULL;
}

static void one_classes(const struct each_group *each, const struct group *group,
                        const struct metrics_sample *labels, int used)
{
    uint64_t ns[CAUSE_CLASSES] = {0};

    if (!(each->m->present & PRCB_HAS_WAITS))
        return;
    for (uint32_t cause = 1; cause < PRCB_CAUSE_MAX; cause++) {
        if (metrics_class_of(cause))
            ns[cause_traits(cause)->class] += group->shown.v[VALUE_CAUSE_NS + cause];
    }
    for (size_t i = 0; i < CAUSE_CLASSES; i++) {
        struct metrics_sample sample = *labels;

        put(&sample, used, "class", cause_class_names[i]);
        emit_ns(each->fn, each->ctx, &sample, ns[i]);
    }
}

EMIT(emit_classes)
{
    for_groups(m, family, fn, ctx, one_classes);
}

/* ---- who had the processors, or held locks ---- */

static void one_culprit(const struct each_group *each, const struct metrics_sample *labels,
                        const char *by, uint64_t ns)
{
    struct metrics_sample sample = *labels;

    put(&sample, 1, "by", by);
    emit_ns(each->fn, each->ctx, &sample, ns);
}

static void one_behind(const struct each_group *each, const struct group *group,
                       const struct metrics_sample *labels, int used)
{
    enum blame_of of = (enum blame_of)(each->family->what & WHAT_MASK);
    const struct blame none = {0}, *blame = group->blame[of];

    if (!blame && of != BLAME_READY)
        return; /* most cgroups never wait for these */
    blame = blame ? blame : &none;
    for (unsigned i = 0; i < CULPRIT_WORDS; i++) {
        if ((i != CULPRIT_GONE && (i != CULPRIT_IDLE || of == BLAME_READY)) || blame->word_ns[i])
            one_culprit(each, labels, culprit_words[i], blame->word_ns[i]);
    }
    for (unsigned i = 0; i < blame->count; i++)
        one_culprit(each, labels, blame->named[i].path, blame->named[i].ns);
}

static void for_victims(const struct metrics *m, const struct metrics_family *family, sample_fn *fn,
                        void *ctx,
                        void (*one)(const struct each_group *, const struct group *,
                                    const struct metrics_sample *, int))
{
    struct metrics_family in_cgroup = *family;

    in_cgroup.what |= IN_CGROUP;
    if (m->blaming.available)
        for_groups(m, &in_cgroup, fn, ctx, one);
}

EMIT(emit_behind)
{
    for_victims(m, family, fn, ctx, one_behind);
}

static void one_open(const struct each_group *each, const struct group *group,
                     const struct metrics_sample *labels, int used)
{
    enum blame_of of = (enum blame_of)(each->family->what & WHAT_MASK);
    struct metrics_sample sample = *labels;
    uint64_t left = blame_left(group, of);

    if (left || group->blame[of] || of == BLAME_READY)
        emit_ns(each->fn, each->ctx, &sample, left);
}

EMIT(emit_open)
{
    for_victims(m, family, fn, ctx, one_open);
}

static void one_switches(const struct each_group *each, const struct group *group,
                         const struct metrics_sample *labels, int used)
{
    struct metrics_sample sample = *labels;

    put(&sample, used, "kind", "voluntary");
    emit_integer(each->fn, each->ctx, &sample, group->shown.v[ACCOUNT_voluntary_switches]);
    put(&sample, used, "kind", "involuntary");
    emit_integer(each->fn, each->ctx, &sample, group->shown.v[VALUE_INVOLUNTARY]);
}

EMIT(emit_switches)
{
    for_groups(m, family, fn, ctx, one_switches);
}

static void one_threads(const struct each_group *each, const struct group *group,
                        const struct metrics_sample *labels, int used)
{
    struct metrics_sample sample = *labels;

    emit_integer(each->fn, each->ctx, &sample, group->running + group->ready + group->waiting);
}

EMIT(emit_group_threads)
{
    for_groups(m, family, fn, ctx, one_threads);
}

static void one_identity(const struct each_group *each, const struct group *group,
                         const struct metrics_sample *labels, int used)
{
    /* A container's unit is its scope, whose name is the container's id. */
    struct metrics_sample sample = *labels;
    int place = used;

    if (*group->said.unit && !*group->said.container)
        put(&sample, place++, "unit", group->said.unit);
    if (*group->said.container)
        put(&sample, place++, "container_id", group->said.container);
    if (*group->said.pod && place < METRICS_LABELS)
        put(&sample, place++, "pod_uid", group->said.pod);
    if (*group->said.machine)
        put(&sample, place++, "machine", group->said.machine);
    if (*group->said.job)
        put(&sample, place++, "slurm_job", group->said.job);
    if (place > used)
        emit_integer(each->fn, each->ctx, &sample, 1);
}

EMIT(emit_identity)
{
    struct metrics_family in_cgroup = *family;

    in_cgroup.what = IN_CGROUP;
    for_groups(m, &in_cgroup, fn, ctx, one_identity);
}

static void one_container(const struct each_group *each, const struct group *group,
                          const struct metrics_sample *labels, int used)
{
    struct metrics_sample sample = *labels;

    if (!group->named)
        return;
    put(&sample, 1, "namespace", group->names.namespace);
    put(&sample, 2, "pod", group->names.pod);
    put(&sample, 3, "container", group->names.container);
    put(&sample, 4, "image", group->names.image);
    put(&sample, 5, "file", group->names.file);
    emit_integer(each->fn, each->ctx, &sample, 1);
}

EMIT(emit_container)
{
    struct metrics_family in_cgroup = *family;

    in_cgroup.what = IN_CGROUP;
    for_groups(m, &in_cgroup, fn, ctx, one_container);
}

EMIT(emit_memory)
{
    memory_each(m, (enum memory_family)family->what, fn, ctx);
}

/* Emits the states of the machine, which add up to the threads' lifetimes. */
EMIT(emit_states)
{
    struct metrics_sample sample = {0};
    uint64_t wait = 0;

    for (uint32_t cause = 1; cause < PRCB_CAUSE_MAX; cause++)
        wait += is_wait(cause) ? m->all.shown.v[VALUE_CAUSE_NS + cause] : 0;
    put(&sample, 0, "state", "run");
    if (m->present & PRCB_HAS_RUN)
        emit_ns(fn, ctx, &sample, m->all.shown.v[ACCOUNT_run_ns]);
    put(&sample, 0, "state", "ready");
    if (m->present & PRCB_HAS_READY)
        emit_ns(fn, ctx, &sample, m->all.shown.v[ACCOUNT_ready_ns]);
    put(&sample, 0, "state", "wait");
    if (m->present & PRCB_HAS_WAITS)
        emit_ns(fn, ctx, &sample, wait);
}

EMIT(emit_threads)
{
    struct metrics_sample sample = {0};

    put(&sample, 0, "state", "running");
    emit_integer(fn, ctx, &sample, m->all.running);
    if (!(m->present & PRCB_HAS_WAITS))
        return;
    put(&sample, 0, "state", "ready");
    emit_integer(fn, ctx, &sample, m->all.ready);
    put(&sample, 0, "state", "waiting");
    emit_integer(fn, ctx, &sample, m->all.waiting);
}

/* ---- as windows_exporter has them ---- */

EMIT(emit_cstates)
{
    static const char *const names[] = {"c1", "c2", "c3"};

    for (uint32_t i = 0; i < m->processor_count; i++) {
        const struct prcb_processor *p = &m->processors[i];
        uint64_t ns[3] = {0};
        char cpu[CPU_BYTES];

        if (!(p->present & PRCB_CPU_HAS_IDLE_STATES))
            continue;
        for (uint32_t state = 0; state < p->idle_state_count && state < PRCB_IDLE_STATES_MAX;
             state++) {
            const char *name = p->idle_states[state].name;
            int depth = name[0] == 'C' ? atoi(name + 1) : (int)state;

            if (strcmp(name, "POLL"))
                ns[depth <= 1 ? 0 : depth <= 5 ? 1 : 2] += p->idle_states[state].residency_ns;
        }
        for (int state = 0; state < 3; state++) {
            struct metrics_sample sample = {0};

            put_cpu(m, &sample, p->number, true, cpu);
            put(&sample, 1, "state", names[state]);
            emit_ns(fn, ctx, &sample, ns[state]);
        }
    }
}

static void each_core(const struct metrics *m, unsigned what, sample_fn *fn, void *ctx)
{
    for (uint32_t i = 0; i < m->processor_count; i++) {
        const struct prcb_processor *p = &m->processors[i];
        struct metrics_sample sample = {0};
        char cpu[CPU_BYTES];

        put_cpu(m, &sample, p->number, true, cpu);
        if (what == WINDOWS_PARKED)
            emit_integer(fn, ctx, &sample, !(p->flags & PRCB_CPU_ONLINE));
        else if (p->present & PRCB_CPU_HAS_MHZ)
            emit_integer(fn, ctx, &sample, p->mhz);
    }
}

static void emit_known(sample_fn *fn, void *ctx, struct metrics_sample *sample, uint64_t number)
{
    if (number)
        emit_integer(fn, ctx, sample, number);
}

EMIT(emit_windows)
{
    struct metrics_sample sample = {0};
    uint64_t online = 0;

    switch (family->what) {
    case WINDOWS_LOGICAL:
        for (uint32_t i = 0; i < m->processor_count; i++)
            online += (m->processors[i].flags & PRCB_CPU_ONLINE) != 0;
        if (online)
            emit_integer(fn, ctx, &sample, online);
        break;
    case WINDOWS_PARKED:
    case WINDOWS_MHZ:
        each_core(m, family->what, fn, ctx);
        break;
    case WINDOWS_PROCESSES:
        emit_known(fn, ctx, &sample, m->host.processes);
        break;
    case WINDOWS_LIMIT:
        emit_known(fn, ctx, &sample, m->host.processes_limit);
        break;
    case WINDOWS_THREADS:
        emit_integer(fn, ctx, &sample, m->all.running + m->all.ready + m->all.waiting);
        break;
    case WINDOWS_QUEUE:
        if (m->present & PRCB_HAS_WAITS)
            emit_integer(fn, ctx, &sample, m->all.ready);
        break;
    case WINDOWS_BOOT:
        if (m->host.booted_ns)
            emit_ns(fn, ctx, &sample, m->host.booted_ns);
        break;
    }
}

EMIT(emit_hostname)
{
    struct metrics_sample sample = {0};
    const char *dot = strchr(m->host.name, '.');

    if (!*m->host.name)
        return;
    put(&sample, 0, "hostname", m->host.name);
    put(&sample, 1, "domain", dot ? dot + 1 : "");
    put(&sample, 2, "fqdn", m->host.name);
    emit_integer(fn, ctx, &sample, 1);
}

EMIT(emit_os)
{
    struct metrics_sample sample = {0};

    if (!*m->host.system)
        return;
    put(&sample, 0, "product", m->host.system);
    put(&sample, 1, "version", m->host.release);
    emit_integer(fn, ctx, &sample, 1);
}

/* ---- how long ---- */

/* Bounds are powers of two of microseconds, as those of other exporters. */
#define READY_BOUNDS 22

EMIT(emit_ready)
{
    struct metrics_sample sample = {.suffix = "_bucket"};
    uint64_t count = 0;
    uint32_t bucket = 0;

    if (!m->has_ready)
        return;
    for (uint32_t i = 0; i <= READY_BOUNDS; i++) {
        uint64_t bound = i < READY_BOUNDS ? UINT64_C(1000) << i : UINT64_MAX;
        char le[32] = "+Inf";

        for (; bucket < PRCB_TAIL_BUCKETS && prcb_tail_bound(bucket) <= bound; bucket++)
            count += m->ready.buckets[bucket];
        if (i < READY_BOUNDS)
            snprintf(le, sizeof(le), "%.10g", (double)bound / 1e9);
        put(&sample, 0, "le", le);
        emit_integer(fn, ctx, &sample, count);
    }
    sample = (struct metrics_sample){.suffix = "_sum"};
    emit_ns(fn, ctx, &sample, m->ready.ns);
    sample.suffix = "_count";
    emit_integer(fn, ctx, &sample, count);
}

/* ---- the rows ---- */

#define NS_OF(cause)    ((int)VALUE_CAUSE_NS + (int)PRCB_CAUSE_##cause)
#define COUNT_OF(cause) ((int)VALUE_CAUSE_COUNT + (int)PRCB_CAUSE_##cause)

const struct metrics_family metrics_families[] = {
#define F(name, type, unit, names, optional, emit, what, labels, help)                             \
    {name, METRICS_##type, METRICS_##unit, METRICS_##names, optional, emit, what, labels, help},
#include "families.def"
    {0},
};

int metrics_parse_names(const char *text, unsigned *ret)
{
    static const struct {
        const char *name;
        unsigned bit;
    } names[] = {{"prcb", METRICS_PRCB}, {"node", METRICS_NODE}, {"windows", METRICS_WINDOWS}};
    unsigned bits = 0;

    do {
        size_t length = strcspn(text, ",");
        unsigned bit = 0;

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            if (strlen(names[i].name) == length && !strncmp(text, names[i].name, length))
                bit = names[i].bit;
        }
        if (!bit)
            return -EINVAL;
        bits |= bit;
        text += length;
    } while (*text++ == ',');
    *ret |= bits;
    return 0;
}

bool metrics_wanted(const struct metrics *m, const struct metrics_family *family)
{
    if (!m)
        return family->emit == emit_build || (family->emit == emit_own && family->what == OWN_UP);
    return (m->options.names & family->names || family->emit == emit_build ||
            (family->emit == emit_own && family->what == OWN_UP)) &&
           (m->options.optional & family->optional) == family->optional;
}

void metrics_each(const struct metrics *m, const struct metrics_family *family,
                  metrics_sample_fn *fn, void *ctx)
{
    family->emit(m, family, fn, ctx);
}
