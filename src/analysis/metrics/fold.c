/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Adds accounts to sums by group. For each group: shown = folded + what its accounts have now,
 * less what they had when they came into it. `folded` is the part of accounts that will not be
 * seen again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "error.h"
#include "inside.h"
#include "memory.h"
#include "now.h"

#define MAX_CGROUPS   500
#define MAX_NAMES     200
#define KEEP_NS       300000000000ull /* what has no threads, for its last figures to be fetched */
#define DROP_LOOKS    64              /* each may walk over the cgroups */
#define BUSY_NS       10000000ull     /* processor time lately: less is not called busy */
#define NAME_TRIES    8
#define LOOK_MS       1000
#define LEAST_LOOK_MS 5
#define LOOK_PART     50    /* looks take one part of so many of a processor, at most */
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

/* ---- slices ---- */

/* Returns the slice of a path, which may be NULL: threads without a cgroup have a slice of their
 * own. */
static struct slice *slice_of(struct metrics *m, const char *path)
{
    size_t length = path ? strcspn(path + (*path == '/'), "/") : 0;
    char name[sizeof(m->slices[0].name)];
    struct slice *free = NULL;

    snprintf(name, sizeof(name), "%.*s", (int)length, path ? path + (*path == '/') : "");
    for (struct slice *slice = m->slices; slice < m->slices + SLICES; slice++) {
        if (!strcmp(slice->name, name))
            return slice;
        if (!free && !*slice->name && slice != m->slices)
            free = slice;
    }
    if (!free)
        return &m->slices[SLICES - 1];
    memcpy(free->name, name, sizeof(name));
    return free;
}

/* Returns how many groups each slice is entitled to if there are not enough for all. */
static size_t share_of_each(const struct metrics *m, enum axis_number number)
{
    size_t slices = 0;

    for (size_t i = 0; i < SLICES; i++)
        slices += m->slices[i].kept[number] || m->slices[i].wanting[number];
    return m->axes[number].most / (slices ? slices : 1);
}

/* ---- groups ---- */

static uint64_t key_of(uint64_t cgroup, const char *name)
{
    return cgroup ^ table_hash_text(name);
}

static bool is_let_in(const struct metrics *m, const char *path)
{
    return (!m->has_include || !regexec(&m->include, path, 0, NULL, 0)) &&
           (!m->has_exclude || regexec(&m->exclude, path, 0, NULL, 0));
}

static struct known *known_of(struct metrics *m, enum axis_number number, uint64_t cgroup,
                              const char *name, const char *path)
{
    struct axis *axis = &m->axes[number];
    uint64_t key = key_of(cgroup, name);
    const struct table_slot *slot = NULL;
    bool is_cgroup = number == AXIS_CGROUP;
    struct known *known;

    while ((slot = table_next(&axis->places, key, slot))) {
        known = slot->item;
        if (known->cgroup == cgroup && !strcmp(known->name, name))
            return known;
    }
    known = calloc(1, sizeof(*known));
    if (!known)
        return NULL;
    known->cgroup = cgroup;
    memcpy(known->name, name, strnlen(name, sizeof(known->name) - 1));
    known->path = is_cgroup ? strdup(path) : NULL;
    known->let_in = !is_cgroup || is_let_in(m, path);
    if ((is_cgroup && !known->path) ||
        array_reserve(axis->known, axis->known_count, axis->known_room, 1) ||
        table_put(&axis->places, key, known)) {
        free(known->path);
        free(known);
        return NULL;
    }
    axis->known[axis->known_count++] = known;
    return known;
}

/* Gives it sums of its own, which count towards the slice's share. Without memory it has none. */
static void give_group(struct metrics *m, enum axis_number number, struct known *known,
                       struct slice *slice)
{
    struct axis *axis = &m->axes[number];

    known->group = known->past ? known->past : calloc(1, sizeof(*known->group));
    known->past = NULL;
    if (!known->group)
        return;
    known->given_at = m->looks > 1 ? m->looked_at : 0;
    known->group->cgroup = known->cgroup;
    memcpy(known->group->name, known->name, sizeof(known->name));
    known->group->path = known->path;
    if (known->path)
        cgroup_identify(known->path, &known->group->said);
    known->slice = slice;
    known->since = axis->given++;
    slice->wanting[number] -= slice->wanting[number] > 0;
    if (slice->promised[number]) {
        slice->promised[number]--;
        axis->promised--;
    }
    slice->kept[number]++;
    axis->kept++;
}

/* Its threads are met again in this look, and what they did so far is added to its sums; from then
 * on they count in "(other)". */
static void take_group(struct axis *axis, enum axis_number number, struct known *known)
{
    known->past = known->group;
    known->group = NULL;
    known->slice->kept[number]--;
    axis->kept--;
}

/* Finds the group in which these threads are counted. path: of their cgroup; ran: what one of them
 * ran since the last look. */
static struct group *find(struct metrics *m, enum axis_number number, uint64_t cgroup,
                          const char *name, const char *path, uint64_t ran)
{
    struct axis *axis = &m->axes[number];
    struct known *known = known_of(m, number, cgroup, name, path);

    if (known) {
        known->busy_at = m->looked_at;
        known->did += ran;
    }
    if (known && !known->group && known->let_in) {
        known->slice = slice_of(m, path);
        if (known->slice->promised[number] || axis->kept + axis->promised < axis->most)
            give_group(m, number, known, known->slice);
    }
    if (known && known->group)
        return known->group;
    axis->other_used = true;
    return &axis->other;
}

static struct group *group_of(struct metrics *m, enum axis_number number,
                              const struct prcb_account *a, uint64_t ran)
{
    bool has_cgroup = a->present & PRCB_HAS_CGROUP;
    const char *path = has_cgroup ? cgroup_names_find(m->names, a->cgroup) : NULL;
    char name[ACCOUNT_NAME];

    if (number == AXIS_CGROUP) {
        if (path)
            return find(m, number, a->cgroup, "", path, ran);
        m->axes[number].gone_used |= has_cgroup;
        return has_cgroup ? &m->axes[number].gone : NULL;
    }
    if (!(m->options.optional & METRICS_BY_NAME))
        return NULL;
    account_family(a->comm, a->flags & PRCB_ACCOUNT_KTHREAD, name);
    /* Threads that have this name get no group of their own. */
    if (!strcmp(name, m->axes[number].other.name)) {
        m->axes[number].other_used = true;
        return &m->axes[number].other;
    }
    return find(m, number, 0, name, path, ran);
}

static void each_known(struct metrics *m,
                       void (*fn)(struct metrics *m, enum axis_number number, struct known *known))
{
    for (int number = 0; number < AXES; number++) {
        for (size_t i = 0; i < m->axes[number].known_count; i++)
            fn(m, (enum axis_number)number, m->axes[number].known[i]);
    }
}

static void each_group(struct metrics *m, void (*fn)(struct group *))
{
    fn(&m->all);
    for (size_t i = 0; i < AXES; i++) {
        for (size_t k = 0; k < m->axes[i].known_count; k++) {
            if (m->axes[i].known[k]->group)
                fn(m->axes[i].known[k]->group);
        }
        fn(&m->axes[i].other);
        fn(&m->axes[i].gone);
    }
}

void metrics_groups(const struct metrics *m, enum axis_number number,
                    void (*fn)(void *ctx, const struct group *group), void *ctx)
{
    const struct axis *axis = &m->axes[number];

    for (size_t i = 0; i < axis->known_count; i++) {
        if (axis->known[i]->group)
            fn(ctx, axis->known[i]->group);
    }
    if (axis->gone_used)
        fn(ctx, &axis->gone);
    if (axis->other_used)
        fn(ctx, &axis->other);
}

void metrics_known_cgroups(const struct metrics *m,
                           void (*fn)(void *ctx, uint64_t cgroup, const char *path), void *ctx)
{
    const struct axis *axis = &m->axes[AXIS_CGROUP];

    for (size_t i = 0; i < axis->known_count; i++)
        fn(ctx, axis->known[i]->cgroup, axis->known[i]->path);
}

/* ---- room ---- */

/* Whether a makes room before b, a group of the same slice: the one that has had no threads for
 * longer goes first, else the one that came later. */
static bool leaves_before(const struct known *a, const struct known *b)
{
    return a->busy_at != b->busy_at ? a->busy_at < b->busy_at : a->since > b->since;
}

static struct known *one_to_leave(const struct axis *axis, const struct slice *slice)
{
    struct known *ret = NULL;

    for (size_t i = 0; i < axis->known_count; i++) {
        struct known *known = axis->known[i];

        if (known->group && known->slice == slice && (!ret || leaves_before(known, ret)))
            ret = known;
    }
    return ret;
}

/* Slices that have less than their share and want more get it from those that have the most. */
static void share_out(struct metrics *m, enum axis_number number)
{
    struct axis *axis = &m->axes[number];
    size_t share = share_of_each(m, number);

    axis->promised = 0;
    for (struct slice *poor = m->slices; poor < m->slices + SLICES; poor++) {
        poor->promised[number] = 0;
        while (poor->promised[number] < poor->wanting[number] &&
               poor->kept[number] + poor->promised[number] < share) {
            struct slice *rich = m->slices;

            for (struct slice *slice = m->slices; slice < m->slices + SLICES; slice++)
                rich = slice->kept[number] > rich->kept[number] ? slice : rich;
            if (axis->kept + axis->promised >= axis->most && rich->kept[number] <= share)
                break;
            poor->promised[number]++;
            if (axis->kept + axis->promised++ < axis->most)
                continue;
            take_group(axis, number, one_to_leave(axis, rich));
        }
    }
}

/* The one of a slice that was busiest lately without a name of its own, or the least busy of those
 * that have one for long enough; NULL: there is none. */
static struct known *by_level(const struct metrics *m, const struct slice *slice, bool named)
{
    const struct axis *axis = &m->axes[AXIS_CGROUP];
    struct known *ret = NULL;

    for (size_t i = 0; i < axis->known_count; i++) {
        struct known *known = axis->known[i];

        if (known->slice != slice || !known->let_in || named != (known->group != NULL) ||
            (named && known->given_at && m->looked_at - known->given_at < m->keep_ns))
            continue;
        if (!ret || (named ? known->level < ret->level : known->level > ret->level))
            ret = known;
    }
    return ret;
}

/* Where there are more cgroups than names, the busiest get them: one that is twice as busy as
 * another of its slice takes its name. That takes it for a while, so series do not come and go. */
static void name_the_busiest(struct metrics *m)
{
    struct axis *axis = &m->axes[AXIS_CGROUP];

    for (struct slice *slice = m->slices; slice < m->slices + SLICES; slice++) {
        size_t most = slice->wanting[AXIS_CGROUP] ? slice->kept[AXIS_CGROUP] : 0;

        while (most--) {
            struct known *idle = by_level(m, slice, true), *busy = by_level(m, slice, false);

            if (!idle || !busy || busy->level < BUSY_NS || busy->level / 2 < idle->level)
                break;
            take_group(axis, AXIS_CGROUP, idle);
            give_group(m, AXIS_CGROUP, busy, slice);
        }
    }
}

/* What was busy long ago counts less with each look. */
static void note_level(struct metrics *m, enum axis_number number, struct known *known)
{
    known->level = known->level - known->level / 8 + known->did;
    known->did = 0;
}

/* ---- accounts that were seen ---- */

static struct seen *seen_of(struct metrics *m, uint64_t key)
{
    struct seen *seen = table_find(&m->seen, key);

    if (seen)
        return seen;
    seen = calloc(1, sizeof(*seen));
    if (!seen || table_put(&m->seen, key, seen)) {
        free(seen);
        return NULL;
    }
    seen->key = key;
    m->births++;
    return seen;
}

static void free_seen(struct seen *seen)
{
    for (size_t i = 0; seen && i < AXES; i++)
        free(seen->base[i]);
    for (size_t i = 0; seen && seen->blamed && i < BLAMES; i++)
        free(seen->blamed[i].cells);
    free(seen ? seen->blamed : NULL);
    free(seen);
}

/* ---- a look ---- */

static void clear(struct group *group)
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
    table_clear(&m->blaming.threads);
    if (m->names)
        cgroup_names_refresh(m->names);
    each_known(m, note_level);
    for (int number = 0; number < AXES; number++)
        share_out(m, (enum axis_number)number);
    name_the_busiest(m);
    each_group(m, clear);
}

static void count_thread(struct group *group, const struct prcb_account *a)
{
    if (a->flags & PRCB_ACCOUNT_EXITED)
        return;
    if (a->flags & PRCB_ACCOUNT_RUNNING)
        group->running++;
    else if (is_ready_cause(a->open.cause))
        group->ready++;
    else
        group->waiting++;
}

/* The account's group has changed: what it has so far stays with the old group. What it did
 * since the last look may have been in either. */
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
                  const struct prcb_account *a)
{
    struct values *to = a->flags & PRCB_ACCOUNT_EXITED ? &group->folded : &group->live;

    add(to, values);
    sub(to, base);
    count_thread(group, a);
}

/* Who kept this thread up. before: the group of the last look; NULL: there was none. */
static int add_blame(struct metrics *m, struct seen *seen, struct group *before,
                     const struct prcb_account *a)
{
    struct group *now = seen->group[AXIS_CGROUP], *victim = before ? before : now;
    uint64_t cgroup = a->present & PRCB_HAS_CGROUP ? a->cgroup : 0;
    int result = 0;

    if (!seen->blamed)
        seen->blamed = calloc(BLAMES, sizeof(*seen->blamed));
    if (!seen->blamed)
        return -ENOMEM;
    if (victim)
        result = blame_account(m, seen->blamed, victim, victim != now, a,
                               before ? seen->cgroup : cgroup);
    seen->cgroup = cgroup;
    seen->kernel = (a->flags & PRCB_ACCOUNT_KTHREAD) != 0;
    return result;
}

int metrics_add(struct metrics *m, const struct prcb_account *a)
{
    struct seen *seen = seen_of(m, a->key);
    struct group *groups[AXES], *before;
    struct values values;
    uint64_t ran;

    m->orphan |= (a->flags & PRCB_ACCOUNT_ORPHAN) != 0;
    if (!seen)
        return -ENOMEM;
    seen->look = m->looks;
    if (m->options.optional & METRICS_BY_WHOM &&
        table_put(&m->blaming.threads, (uint64_t)a->tid, seen))
        return -ENOMEM;
    if (a->flags & PRCB_ACCOUNT_EXITED)
        m->accounts_ended++;
    else
        m->accounts_live++;
    if (seen->done)
        return 0;
    values_of(a, &values);
    ran = values.v[ACCOUNT_run_ns] - seen->run;
    seen->run = values.v[ACCOUNT_run_ns];
    before = seen->group[AXIS_CGROUP];
    for (size_t i = 0; i < AXES; i++) {
        groups[i] = group_of(m, (enum axis_number)i, a, ran);
        if (groups[i] && groups[i] != seen->group[i] && change_group(seen, i, groups[i], &values))
            return -ENOMEM;
    }
    if (m->options.optional & METRICS_BY_WHOM && add_blame(m, seen, before, a))
        return -ENOMEM;
    /* Nothing can fail from here on. */
    m->present |= a->present;
    count(&m->all, &values, NULL, a);
    for (size_t i = 0; i < AXES; i++) {
        if (groups[i])
            count(groups[i], &values, seen->base[i], a);
    }
    seen->done = (a->flags & PRCB_ACCOUNT_EXITED) != 0;
    return 0;
}

/* Whether a cgroup or name may be forgotten. One with sums stays until their last values were
 * fetched, and a cgroup for as long as it exists. */
static bool is_over(struct metrics *m, enum axis_number number, const struct known *known)
{
    if (!known->group)
        return known->busy_at != m->looked_at;
    return !(m->looks % DROP_LOOKS) && m->looked_at - known->busy_at > m->keep_ns &&
           (number == AXIS_NAME || !cgroup_names_alive(m->names, known->cgroup));
}

static void free_blame(struct group *group)
{
    for (size_t i = 0; group && i < BLAMES; i++)
        blame_free(group->blame[i]);
}

static void free_known(struct axis *axis, enum axis_number number, struct known *known)
{
    if (known->group)
        take_group(axis, number, known);
    free_blame(known->past);
    free(known->past);
    free(known->path);
    free(known);
}

/* Drops names and cgroups that have no threads. What a group did that was left out stays in
 * "(other)". */
static void drop_known(struct metrics *m, enum axis_number number)
{
    struct axis *axis = &m->axes[number];
    size_t kept = 0;

    for (size_t i = 0; i < axis->known_count; i++) {
        struct known *known = axis->known[i];

        if (is_over(m, number, known)) {
            table_remove(&axis->places, key_of(known->cgroup, known->name), known);
            free_known(axis, number, known);
        } else {
            axis->known[kept++] = known;
        }
    }
    axis->known_count = kept;
    axis->left_out = 0;
    for (size_t i = 0; i < SLICES; i++)
        m->slices[i].wanting[number] = 0;
}

static void count_left_out(struct metrics *m, enum axis_number number, struct known *known)
{
    if (known->group)
        return;
    m->axes[number].left_out++;
    if (known->let_in)
        known->slice->wanting[number]++;
}

/* Slices without groups make place for others. */
static void drop_slices(struct metrics *m)
{
    for (struct slice *slice = m->slices; slice < m->slices + SLICES; slice++) {
        size_t used = 0;

        for (size_t i = 0; i < AXES; i++)
            used += slice->kept[i] + slice->wanting[i];
        if (!used)
            *slice->name = '\0';
    }
}

/* The accounts that ended are given back, and those that are gone are forgotten. */
static void settle(struct metrics *m, void (*ended)(void *ctx, uint64_t key), void *ctx)
{
    for (size_t i = 0; i < m->seen.room;) {
        struct seen *seen = m->seen.slots[i].item;

        if (seen && seen->look != m->looks) {
            free_seen(seen);
            table_remove_slot(&m->seen, &m->seen.slots[i]);
        } else {
            i++;
        }
    }
    for (size_t i = 0; ended && i < m->seen.room; i++) {
        const struct seen *seen = m->seen.slots[i].item;

        if (seen && seen->done)
            ended(ctx, seen->key);
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
static void begin_at_zero(struct group *group)
{
    memset(&group->folded, 0, sizeof(group->folded)); /* of threads that had ended */
    sub(&group->folded, &group->live);
}

/* Names that files do not have yet are looked for again, less and less often. */
static void name_container(struct metrics *m, enum axis_number number, struct known *known)
{
    struct group *group = known->group;
    const char *id = !group                   ? ""
                     : *group->said.container ? group->said.container
                                              : group->said.machine;

    if (!*id || group->named || group->asked >= NAME_TRIES ||
        m->looks % (UINT64_C(1) << group->asked))
        return;
    group->asked++;
    group->named =
        container_say(m->options.file_root ? m->options.file_root : "", id, &group->names);
}

void metrics_end(struct metrics *m, void (*ended)(void *ctx, uint64_t key), void *ctx)
{
    uint64_t now = now_ns();

    if (m->baseline)
        each_group(m, begin_at_zero);
    m->baseline = false;
    settle(m, ended, ctx);
    each_group(m, show);
    blame_settle(m);
    for (int number = 0; number < AXES; number++)
        drop_known(m, (enum axis_number)number);
    each_known(m, count_left_out);
    if (m->options.optional & METRICS_CONTAINERS && !m->replay)
        each_known(m, name_container);
    drop_slices(m);
    if (m->names)
        cgroup_names_drop(m->names);
    note_rate(m, now);
    m->look_ns = now - m->looked_at;
}

void metrics_set_processors(struct metrics *m, const struct prcb_processor *processors,
                            uint32_t count)
{
    struct prcb_processor *copy = calloc(count ? count : 1, sizeof(*copy));

    if (!copy)
        return;
    array_copy(copy, processors, count);
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
    double least = (double)m->look_ns * LOOK_PART / 1000000;

    /* Where accounts are full, looking more often makes no room. */
    ms = ms > least ? ms : least;
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
    if (m->options.optional & METRICS_MEMORY && !(m->memory = memory_new()))
        return prcb_fail(err, -ENOMEM, "out of memory");
    m->keep_ns = KEEP_NS;
    m->axes[AXIS_CGROUP].most =
        m->options.max_cgroups ? (size_t)m->options.max_cgroups : MAX_CGROUPS;
    m->axes[AXIS_NAME].most = m->options.max_names ? (size_t)m->options.max_names : MAX_NAMES;
    for (size_t i = 0; i < AXES; i++) {
        m->axes[i].other = (struct group){.name = "(other)", .path = "(other)"};
        m->axes[i].gone = (struct group){.name = "(gone)", .path = "(gone)"};
    }
    return 0;
}

void metrics_fold_deinit(struct metrics *m)
{
    for (size_t i = 0; i < m->seen.room; i++)
        free_seen(m->seen.slots[i].item);
    table_free(&m->seen);
    for (size_t i = 0; i < AXES; i++) {
        for (size_t k = 0; k < m->axes[i].known_count; k++)
            free_known(&m->axes[i], (enum axis_number)i, m->axes[i].known[k]);
        table_free(&m->axes[i].places);
        free(m->axes[i].known);
        free_blame(&m->axes[i].other);
        free_blame(&m->axes[i].gone);
    }
    blame_deinit(&m->blaming);
    memory_free(m->memory);
    if (m->has_include)
        regfree(&m->include);
    if (m->has_exclude)
        regfree(&m->exclude);
}
