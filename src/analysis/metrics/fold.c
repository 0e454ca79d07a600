/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Accounts to sums by group. For each group: shown = folded + what its accounts have now, less what
 * they had when they came into it. Folded is what will not be seen again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "inside.h"
#include "now.h"

#define FIRST_BUCKETS 4096
#define MAX_CGROUPS   500
#define MAX_NAMES     200
#define KEEP_NS       300000000000ull /* a removed cgroup, for its last figures to be fetched */
#define DROP_LOOKS    64              /* each may walk over the cgroups */
#define LOOK_MS       1000
#define LEAST_LOOK_MS 5
#define STORM_RATE    20000 /* threads a second that may begin to come about at any time */

/* ---- values ---- */

static void add(struct values *to, const struct values *from)
{
    for (size_t i = 0; i < VALUES; i++)
        to->v[i] += from->v[i];
}

static void sub(struct values *to, const struct values *from)
{
    for (size_t i = 0; from && i < VALUES; i++)
        to->v[i] -= from->v[i];
}

static bool is_ready_cause(uint32_t cause)
{
    const struct prcb_cause_info *info = prcb_cause_info(cause);

    return info && info->kind == PRCB_KIND_READY;
}

/* Stretches that are open are counted as far as they go: an hour's wait is not to arrive as one
 * spike. When such a stretch closes, a part of it may turn out to have been ready: `shown` keeps
 * the cause from falling. */
static void values_of(const struct prcb_account *a, struct values *ret)
{
    uint32_t open = a->open.cause ? a->open.cause : PRCB_CAUSE_OTHER;

    for (const struct figure *row = account_figures; row->name; row++) {
        if (row->kind != FIGURE_LIST)
            ret->v[row->index] = figure_get(row, a);
    }
    ret->v[VALUE_INVOLUNTARY] = a->switches - a->voluntary_switches;
    for (size_t i = 0; i < PRCB_CAUSE_MAX; i++) {
        ret->v[VALUE_CAUSE_NS + i] = a->waits[i].ns;
        ret->v[VALUE_CAUSE_COUNT + i] = a->waits[i].count;
    }
    if (a->flags & PRCB_ACCOUNT_EXITED || open >= PRCB_CAUSE_MAX)
        return;
    ret->v[is_ready_cause(open) ? (size_t)ACCOUNT_ready_ns : VALUE_CAUSE_NS + open] += a->open.ns;
}

static void show(struct group *group)
{
    for (size_t i = 0; i < VALUES; i++) {
        uint64_t value = group->folded.v[i] + group->live.v[i];

        if ((int64_t)(value - group->shown.v[i]) > 0)
            group->shown.v[i] = value;
    }
}

/* ---- groups ---- */

static struct group **bucket_of(struct axis *axis, uint64_t cgroup, const char *name)
{
    uint64_t hash = cgroup;

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 1099511628211ull;
    hash *= 0x9e3779b97f4a7c15ull;
    return &axis->buckets[(hash >> 32) & (AXIS_BUCKETS - 1)];
}

static bool is_let_in(const struct metrics *m, const char *path)
{
    return (!m->has_include || !regexec(&m->include, path, 0, NULL, 0)) &&
           (!m->has_exclude || regexec(&m->exclude, path, 0, NULL, 0));
}

/* The group of an id, made where there is none. */
static struct group *find(struct metrics *m, enum axis_number number, uint64_t cgroup,
                          const char *name)
{
    struct axis *axis = &m->axes[number];
    struct group **bucket = bucket_of(axis, cgroup, name), *group = *bucket;
    const char *path;

    while (group && (group->cgroup != cgroup || strcmp(group->name, name)))
        group = group->next;
    if (group)
        return group;
    path = number == AXIS_CGROUP ? cgroup_names_find(m->names, cgroup) : NULL;
    if (number == AXIS_CGROUP && !path) {
        axis->gone_used = true;
        return &axis->gone;
    }
    group = calloc(1, sizeof(*group));
    if (!group)
        return NULL;
    group->cgroup = cgroup;
    memcpy(group->name, name, strnlen(name, sizeof(group->name) - 1));
    group->path = path;
    if (path)
        cgroup_identify(path, &group->said);
    group->sum = group;
    if (axis->kept >= axis->most || (path && !is_let_in(m, path))) {
        group->sum = &axis->other;
        axis->other_used = true;
    }
    axis->kept += group->sum == group;
    axis->left_out += group->sum != group;
    group->next = *bucket;
    *bucket = group;
    return group;
}

static struct group *group_of(struct metrics *m, enum axis_number number,
                              const struct prcb_account *a)
{
    char name[ACCOUNT_NAME];

    if (number == AXIS_CGROUP)
        return a->present & PRCB_HAS_CGROUP ? find(m, number, a->cgroup, "") : NULL;
    if (!(m->options.optional & METRICS_BY_NAME))
        return NULL;
    account_family(a->comm, a->flags & PRCB_ACCOUNT_KTHREAD, name);
    /* Threads that call themselves so are no group of their own. */
    if (!strcmp(name, m->axes[number].other.name)) {
        m->axes[number].other_used = true;
        return &m->axes[number].other;
    }
    return find(m, number, 0, name);
}

static void each_group(struct metrics *m, void (*fn)(struct metrics *, struct group *))
{
    fn(m, &m->all);
    for (size_t i = 0; i < AXES; i++) {
        for (size_t bucket = 0; bucket < AXIS_BUCKETS; bucket++) {
            for (struct group *group = m->axes[i].buckets[bucket]; group; group = group->next)
                fn(m, group);
        }
        fn(m, &m->axes[i].other);
        fn(m, &m->axes[i].gone);
    }
}

void metrics_groups(const struct metrics *m, enum axis_number number,
                    void (*fn)(void *ctx, const struct group *group), void *ctx)
{
    const struct axis *axis = &m->axes[number];

    for (size_t bucket = 0; bucket < AXIS_BUCKETS; bucket++) {
        for (const struct group *group = axis->buckets[bucket]; group; group = group->next) {
            if (group->sum == group)
                fn(ctx, group);
        }
    }
    if (axis->gone_used)
        fn(ctx, &axis->gone);
    if (axis->other_used)
        fn(ctx, &axis->other);
}

void metrics_known_cgroups(const struct metrics *m,
                           void (*fn)(void *ctx, const struct group *group), void *ctx)
{
    for (size_t bucket = 0; bucket < AXIS_BUCKETS; bucket++) {
        for (const struct group *group = m->axes[AXIS_CGROUP].buckets[bucket]; group;
             group = group->next)
            fn(ctx, group);
    }
}

/* ---- accounts that were seen ---- */

static size_t place_of(const struct metrics *m, uint64_t key)
{
    return (size_t)((key * 0x9e3779b97f4a7c15ull) >> 32) & (m->bucket_count - 1);
}

/* Longer chains where there is no memory. */
static void grow(struct metrics *m)
{
    size_t old = m->bucket_count;
    struct seen **from = m->buckets, **buckets = calloc(old * 2, sizeof(struct seen *));

    if (!buckets)
        return;
    m->buckets = buckets;
    m->bucket_count = old * 2;
    for (size_t i = 0; i < old; i++) {
        while (from[i]) {
            struct seen *seen = from[i];
            size_t place = place_of(m, seen->key);

            from[i] = seen->next;
            seen->next = buckets[place];
            buckets[place] = seen;
        }
    }
    free(from);
}

static struct seen *seen_of(struct metrics *m, uint64_t key)
{
    struct seen *seen = m->buckets[place_of(m, key)];
    size_t place;

    while (seen && seen->key != key)
        seen = seen->next;
    if (seen)
        return seen;
    seen = calloc(1, sizeof(*seen));
    if (!seen)
        return NULL;
    if (m->seen_count >= m->bucket_count)
        grow(m);
    place = place_of(m, key);
    seen->key = key;
    seen->next = m->buckets[place];
    m->buckets[place] = seen;
    m->seen_count++;
    m->births++;
    return seen;
}

static void forget(struct metrics *m, struct seen **at)
{
    struct seen *seen = *at;

    *at = seen->next;
    for (size_t i = 0; i < AXES; i++)
        free(seen->base[i]);
    free(seen);
    m->seen_count--;
}

/* ---- a look ---- */

static void clear(struct metrics *m, struct group *group)
{
    memset(&group->live, 0, sizeof(group->live));
    group->running = group->ready = group->waiting = 0;
}

void metrics_begin(struct metrics *m)
{
    m->looks++;
    m->looked_at = now_ns();
    m->orphan = false;
    m->accounts_live = m->accounts_ended = 0;
    if (m->names)
        cgroup_names_refresh(m->names);
    each_group(m, clear);
}

static void count_thread(struct group *group, const struct prcb_account *a, uint64_t now)
{
    group->busy_at = now;
    if (a->flags & PRCB_ACCOUNT_EXITED)
        return;
    if (a->flags & PRCB_ACCOUNT_RUNNING)
        group->running++;
    else if (is_ready_cause(a->open.cause))
        group->ready++;
    else
        group->waiting++;
}

/* Its group has changed: what it has so far stays with the old one. What it did since the last look
 * may have been in either. */
static int change_group(struct seen *seen, size_t axis, struct group *group,
                        const struct values *values)
{
    struct values *base = seen->base[axis];

    if (!seen->group[axis]) {
        seen->group[axis] = group;
        return 0;
    }
    if (!base) {
        base = calloc(1, sizeof(*base));
        if (!base)
            return -ENOMEM;
    }
    add(&seen->group[axis]->folded, values);
    sub(&seen->group[axis]->folded, seen->base[axis]);
    *base = *values;
    seen->base[axis] = base;
    seen->group[axis] = group;
    return 0;
}

static void count(struct group *group, const struct values *values, const struct values *base,
                  const struct prcb_account *a, uint64_t now)
{
    struct values *to = a->flags & PRCB_ACCOUNT_EXITED ? &group->folded : &group->live;

    add(to, values);
    sub(to, base);
    count_thread(group, a, now);
}

int metrics_add(struct metrics *m, const struct prcb_account *a)
{
    struct seen *seen = seen_of(m, a->key);
    struct group *groups[AXES];
    struct values values;

    m->orphan |= (a->flags & PRCB_ACCOUNT_ORPHAN) != 0;
    if (!seen)
        return -ENOMEM;
    seen->look = m->looks;
    if (a->flags & PRCB_ACCOUNT_EXITED)
        m->accounts_ended++;
    else
        m->accounts_live++;
    if (seen->done)
        return 0;
    values_of(a, &values);
    for (size_t i = 0; i < AXES; i++) {
        groups[i] = group_of(m, (enum axis_number)i, a);
        if (groups[i] && groups[i] != seen->group[i] && change_group(seen, i, groups[i], &values))
            return -ENOMEM;
    }
    /* Nothing can fail from here on. */
    m->present |= a->present;
    count(&m->all, &values, NULL, a, m->looked_at);
    for (size_t i = 0; i < AXES; i++) {
        if (groups[i])
            count(groups[i], &values, seen->base[i], a, m->looked_at);
    }
    seen->done = (a->flags & PRCB_ACCOUNT_EXITED) != 0;
    return 0;
}

/* Those that are left out are counted elsewhere. The other way about would count twice what was
 * folded before: each group's own sums stay as they are, and "(other)" has the sum of these. */
static void sum_left_out(struct metrics *m, struct group *group)
{
    if (!group->sum || group->sum == group)
        return;
    add(&group->sum->live, &group->live);
    add(&group->sum->live, &group->folded);
    group->sum->running += group->running;
    group->sum->ready += group->ready;
    group->sum->waiting += group->waiting;
}

static void show_group(struct metrics *m, struct group *group)
{
    show(group);
}

/* Cgroups that were removed some time ago. What one that was left out did stays in "(other)". */
static void drop_removed(struct metrics *m)
{
    struct axis *axis = &m->axes[AXIS_CGROUP];

    for (size_t i = 0; i < AXIS_BUCKETS; i++) {
        for (struct group **at = &axis->buckets[i]; *at;) {
            struct group *group = *at;

            if (m->looked_at - group->busy_at <= KEEP_NS ||
                cgroup_names_alive(m->names, group->cgroup)) {
                at = &group->next;
                continue;
            }
            if (group->sum != group)
                add(&group->sum->folded, &group->folded);
            axis->kept -= group->sum == group;
            axis->left_out -= group->sum != group;
            *at = group->next;
            free(group);
        }
    }
}

/* The accounts that ended are given back, and those that are gone are forgotten. */
static void settle(struct metrics *m, void (*ended)(void *ctx, uint64_t key), void *ctx)
{
    for (size_t i = 0; i < m->bucket_count; i++) {
        for (struct seen **at = &m->buckets[i]; *at;) {
            if ((*at)->look != m->looks) {
                forget(m, at);
                continue;
            }
            if ((*at)->done && ended)
                ended(ctx, (*at)->key);
            at = &(*at)->next;
        }
    }
}

static void note_rate(struct metrics *m, uint64_t now)
{
    if (m->born_at && now > m->born_at) {
        double rate = (double)m->births * 1e9 / (double)(now - m->born_at);

        /* Up at once, down slowly. */
        m->birth_rate = rate > m->birth_rate ? rate : m->birth_rate * .75 + rate * .25;
    }
    m->births = 0;
    m->born_at = now;
}

/* The differences wrap, as all sums here. */
static void begin_at_zero(struct metrics *m, struct group *group)
{
    memset(&group->folded, 0, sizeof(group->folded)); /* of threads that had ended */
    sub(&group->folded, &group->live);
}

void metrics_end(struct metrics *m, void (*ended)(void *ctx, uint64_t key), void *ctx)
{
    uint64_t now = now_ns();

    if (m->baseline)
        each_group(m, begin_at_zero);
    m->baseline = false;
    settle(m, ended, ctx);
    each_group(m, sum_left_out);
    each_group(m, show_group);
    if (m->names && !(m->looks % DROP_LOOKS))
        drop_removed(m);
    note_rate(m, now);
    m->look_ns = now - m->looked_at;
}

void metrics_set_processors(struct metrics *m, const struct prcb_processor *processors,
                            uint32_t count)
{
    struct prcb_processor *copy = calloc(count ? count : 1, sizeof(*copy));

    if (!copy)
        return;
    memcpy(copy, processors, count * sizeof(*copy));
    free(m->processors);
    m->processors = copy;
    m->processor_count = count;
}

void metrics_set_status(struct metrics *m, const struct prcb_status *status)
{
    uint64_t before = m->status.recursion_misses;

    m->status = *status;
    /* A recording may say anything; a counter does not fall. */
    if (before != UINT64_MAX && status->recursion_misses < before)
        m->status.recursion_misses = before;
}

unsigned metrics_wait_ms(const struct metrics *m)
{
    uint64_t free =
        m->status.max_threads > m->accounts_live ? m->status.max_threads - m->accounts_live : 0;
    /* A storm that begins leaves the time of half of the accounts to get a processor in, one that
     * goes on three quarters. */
    double rate = m->birth_rate * 4 > STORM_RATE * 2 ? m->birth_rate * 4 : STORM_RATE * 2;
    double ms = m->status.max_threads ? (double)free * 1000 / rate : LOOK_MS;

    return ms > LOOK_MS ? LOOK_MS : ms < LEAST_LOOK_MS ? LEAST_LOOK_MS : (unsigned)ms;
}

/* ---- the beginning and the end ---- */

static int compile(regex_t *ret, bool *ret_has, const char *text, struct prcb_error *err)
{
    char why[128];
    int result;

    if (!text)
        return 0;
    result = regcomp(ret, text, REG_EXTENDED | REG_NOSUB);
    if (result) {
        regerror(result, ret, why, sizeof(why));
        return prcb_fail(err, -EINVAL, "the regular expression \"%s\": %s", text, why);
    }
    *ret_has = true;
    return 0;
}

int metrics_fold_init(struct metrics *m, struct prcb_error *err)
{
    int result = compile(&m->include, &m->has_include, m->options.include, err);

    if (!result)
        result = compile(&m->exclude, &m->has_exclude, m->options.exclude, err);
    if (result)
        return result;
    m->axes[AXIS_CGROUP].most = m->options.max_cgroups ? m->options.max_cgroups : MAX_CGROUPS;
    m->axes[AXIS_NAME].most = m->options.max_names ? m->options.max_names : MAX_NAMES;
    m->buckets = calloc(FIRST_BUCKETS, sizeof(struct seen *));
    m->bucket_count = m->buckets ? FIRST_BUCKETS : 0;
    for (size_t i = 0; i < AXES; i++) {
        m->axes[i].buckets = calloc(AXIS_BUCKETS, sizeof(struct group *));
        if (!m->axes[i].buckets || !m->buckets)
            return prcb_fail(err, -ENOMEM, "out of memory");
        m->axes[i].other = (struct group){.name = "(other)", .path = "(other)"};
        m->axes[i].gone = (struct group){.name = "(gone)", .path = "(gone)"};
    }
    return 0;
}

void metrics_fold_deinit(struct metrics *m)
{
    for (size_t i = 0; i < m->bucket_count; i++) {
        while (m->buckets[i])
            forget(m, &m->buckets[i]);
    }
    free(m->buckets);
    for (size_t i = 0; i < AXES && m->axes[i].buckets; i++) {
        for (size_t bucket = 0; bucket < AXIS_BUCKETS; bucket++) {
            while (m->axes[i].buckets[bucket]) {
                struct group *group = m->axes[i].buckets[bucket];

                m->axes[i].buckets[bucket] = group->next;
                free(group);
            }
        }
        free(m->axes[i].buckets);
    }
    if (m->has_include)
        regfree(&m->include);
    if (m->has_exclude)
        regfree(&m->exclude);
}
