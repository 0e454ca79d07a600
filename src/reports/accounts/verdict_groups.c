/* SPDX-License-Identifier: BSD-2-Clause */
#include "verdict_groups.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cause.h"
#include "place.h"

const struct object *verdict_object_of(const struct making *m, uint32_t number)
{
    return number ? m->f->object(m->f->ctx, number) : NULL;
}

/* The other end of a socket: "tcp 10.0.0.1:5 -> 10.0.0.2:80" has it behind the arrow. */
const char *verdict_remote_of(const struct object *object)
{
    const char *arrow = object->kind == OBJECT_SOCKET ? strstr(object->name, " -> ") : NULL;

    return arrow ? arrow + 4 : NULL;
}

const char *verdict_word_of(const struct why_part *part)
{
    return part->kind == WHY_STACK ? part->stack.word : NULL;
}

static const struct phrase phrases[] = {
#define PRCB_CAUSE_ANY                 UINT32_MAX
#define P(word, cause, known, unknown) {word, PRCB_CAUSE_##cause, known, unknown, false, false},
#define ONE(word, unknown)             {word, PRCB_CAUSE_ANY, NULL, unknown, true, false},
#define OWN(word, unknown)             {word, PRCB_CAUSE_ANY, NULL, unknown, false, true},
#include "phrases.def"
#undef P
#undef ONE
#undef OWN
};

const struct phrase *verdict_phrase_of(const struct why_part *part)
{
    const char *word = verdict_word_of(part);

    for (size_t i = 0; i < sizeof(phrases) / sizeof(*phrases); i++) {
        const struct phrase *at = &phrases[i];

        if ((!at->word || (word && !strcmp(at->word, word))) &&
            (at->cause == PRCB_CAUSE_ANY || at->cause == part->cause))
            return at;
    }
    return NULL;
}

/* Whether it is a lock that is told from others. */
static bool is_lock(const struct making *m, const struct why_part *part)
{
    const struct object *object = verdict_object_of(m, part->wait.object);
    const struct phrase *phrase = verdict_phrase_of(part);

    return object && part->kind == WHY_STACK && verdict_word_of(part) && !(phrase && phrase->own) &&
           part->stack.kind == PRCB_STACK_BLOCKED &&
           (object->kind == OBJECT_FUTEX || object->kind == OBJECT_LOCK || part->wait.holder);
}

/* Writes whose waits are one: of several processes those of a name in a cgroup, as the workers of a
 * server. */
static void owner_of(const struct making *m, const struct why_process *process, char *ret,
                     size_t size)
{
    if (m->several)
        snprintf(ret, size, "%" PRIu64 " %.*s", process->cgroup, (int)sizeof(process->comm),
                 process->comm);
    else
        *ret = '\0';
}

/* Returns how much of the key waits have that differ in their place only. */
static size_t key_of(const struct making *m, const struct why_process *process,
                     const struct why_part *part, char *ret)
{
    const struct object *object = verdict_object_of(m, part->wait.object);
    const struct phrase *phrase = verdict_phrase_of(part);
    const char *remote = object ? verdict_remote_of(object) : NULL;
    char place[VERDICT_KEY_MOST / 2], owner[48];
    int length;

    owner_of(m, process, owner, sizeof(owner));
    place_text(part, place, sizeof(place));
    if (remote)
        return (size_t)snprintf(ret, VERDICT_KEY_MOST, "%s remote %.200s", owner, remote);
    if (phrase && phrase->one)
        return (size_t)snprintf(ret, VERDICT_KEY_MOST, "%s one %s", owner, phrase->unknown);
    if (is_lock(m, part))
        return (size_t)snprintf(ret, VERDICT_KEY_MOST, "%s lock %u", owner, part->wait.object);
    length = snprintf(ret, VERDICT_KEY_MOST, "%s %u %s ", owner, part->cause,
                      verdict_word_of(part) ? verdict_word_of(part) : "");
    snprintf(ret + length, VERDICT_KEY_MOST - (size_t)length, "%.300s", place);
    return (size_t)length;
}

/* Returns the largest group of waits that are the same but for their place; NULL: there is none. */
static struct group *like_of(const struct making *m, const char *key, size_t length)
{
    struct group *most = NULL;

    for (size_t i = 0; i < m->count; i++) {
        struct group *at = &m->groups[i];

        if (!strncmp(at->key, key, length) && (!most || at->ns > most->ns))
            most = at;
    }
    return most;
}

static struct group *group_of(struct making *m, const char *key)
{
    uint64_t hash = table_hash_text(key);
    const struct table_slot *slot = NULL;
    struct group fresh = {.ns = 0};

    while ((slot = table_next(&m->by_key, hash, slot))) {
        if (!strcmp(m->groups[slot->number - 1].key, key))
            return &m->groups[slot->number - 1];
    }
    fresh.key = strdup(key);
    if (!fresh.key || array_add(m->groups, m->count, m->room, fresh) ||
        table_put_number(&m->by_key, hash, m->count)) {
        m->failed = true;
        return NULL;
    }
    return &m->groups[m->count - 1];
}

static void add_who(struct making *m, struct group *group, const struct why_who *who)
{
    size_t number = (size_t)(group - m->groups) + 1, same = 0;
    uint64_t key = table_mix(number, who->key);
    const struct table_slot *slot = NULL;

    while ((slot = table_next(&m->members, key, slot))) {
        if (slot->number == number)
            return;
    }
    m->failed |= table_put_number(&m->members, key, number) != 0;
    if (!group->threads++) {
        group->who = who;
        group->prefix = strnlen(who->comm, sizeof(who->comm));
        return;
    }
    while (same < group->prefix && who->comm[same] == group->who->comm[same])
        same++;
    group->prefix = same;
}

const struct why_part *verdict_parts_of(const struct why_cause *cause, size_t *ret_count)
{
    *ret_count = cause->pairs ? cause->pair_count : cause->part_count;
    return cause->pairs ? cause->pairs : cause->parts;
}

/* Whether a wait may be for work: its stack says so, or there is none to tell. */
static bool may_idle(const struct why_part *part)
{
    return part->kind == WHY_STACK ? part->stack.kind == PRCB_STACK_EITHER
                                   : !part->wait.holder && cause_may_idle(part->cause);
}

static bool has_place(const struct why_part *part)
{
    const struct prcb_frame *by;

    return place_of_part(part, &by);
}

/* Returns how much a part tells of its group: its place, and what it is for. */
static int telling(const struct why_part *part)
{
    return 2 * has_place(part) + (part->wait.object != 0);
}

/* Whether a part tells more of a group than another, or is larger. */
static bool is_better(const struct why_part *part, const struct why_part *than)
{
    if (telling(part) != telling(than))
        return telling(part) > telling(than);
    return part->ns - part->idle_ns > than->ns - than->idle_ns;
}

/* Of a part that has joined the group, and may become its largest. */
static void add_object(struct group *group, const struct why_part *part, uint64_t ns, bool most)
{
    uint32_t before = group->most ? group->most->wait.object : 0;

    if (part->wait.object == before) {
        group->object_ns += before ? ns : 0;
    } else if (most) {
        group->others_ns += group->object_ns;
        group->object_ns = part->wait.object ? ns : 0;
    } else {
        group->others_ns += part->wait.object ? ns : 0;
    }
}

/* ---- others in the report ---- */

#define GENERATIONS 16

/* Returns the process that a wait is for: a child, or the only one that has a pipe's other end; 0:
 * none is known. */
static pid_t process_for(const struct making *m, const struct why_part *part)
{
    const struct object *object = verdict_object_of(m, part->wait.object);

    return !object                          ? 0
           : object->kind == OBJECT_PROCESS ? object->tid
           : object->kind == OBJECT_PIPE    ? object->other
                                            : 0;
}

/* Returns the place of the process that a wait is for, in the report, from 1; 0: it is not there.
 */
static size_t place_for(const struct making *m, const struct why_part *part)
{
    pid_t pid = m->busy ? process_for(m, part) : 0;

    return pid <= 0 ? 0
                    : table_find_number(&m->by_pid, m->f->folded((uint64_t)pid, m->f->folded_ctx));
}

/* Whether a wait is for a process that is in the report and busy: what that one does tells more. */
bool verdict_is_for_busy(const struct making *m, const struct why_part *part)
{
    size_t place = place_for(m, part);

    return place && m->busy[place - 1];
}

/* Whether a wait is surely none for work, and no other process's doing. */
static bool tells_itself(const struct making *m, const struct why_part *part)
{
    return part->kind == WHY_STACK && !may_idle(part) && part->cause != PRCB_CAUSE_CHILD &&
           !process_for(m, part);
}

/* Whether a process says by itself why others wait for it: it runs, or wants to, or waits for
 * what no other process has to do. Waits for such ones are as if it ran. */
static bool is_busy(const struct making *m, const struct why_process *process)
{
    uint64_t busy_ns = process->run_ns + process->ready_ns, others_ns = 0;

    for (size_t i = 0; i < process->cause_count; i++) {
        const struct why_cause *cause = &process->causes[i];
        size_t count;
        const struct why_part *parts = verdict_parts_of(cause, &count);

        for (size_t k = 0; k < count; k++) {
            uint64_t ns = parts[k].ns - parts[k].idle_ns;

            if (verdict_is_for_busy(m, &parts[k]) || tells_itself(m, &parts[k]))
                busy_ns += ns;
            else
                others_ns += may_idle(&parts[k]) ? ns / VERDICT_EITHER_PART : ns;
        }
    }
    return busy_ns && busy_ns >= others_ns;
}

/* Parents of busy ones are found after these. */
static void find_busy(struct making *m)
{
    const struct why_report *report = m->f->report;
    bool more = true;

    if (!m->f->folded)
        return;
    m->busy = calloc(report->count + 1, sizeof(*m->busy));
    m->failed |= !m->busy;
    for (size_t i = 0; i < report->count && !m->failed; i++)
        m->failed |= table_put_number(&m->by_pid, (uint64_t)report->processes[i].pid, i + 1) != 0;
    for (int i = 0; i < GENERATIONS && more && !m->failed; i++) {
        more = false;
        for (size_t k = 0; k < report->count; k++) {
            bool was = m->busy[k];

            m->busy[k] |= is_busy(m, &report->processes[k]);
            more |= m->busy[k] != was;
        }
    }
}

/* placed: those whose place is known come first, so that the others join them. */
static void add_part(struct making *m, const struct why_process *process,
                     const struct why_part *part, bool placed)
{
    bool either = may_idle(part);
    uint64_t ns = part->ns - part->idle_ns;
    struct group *group = NULL;
    char key[VERDICT_KEY_MOST];
    size_t length;
    bool most;

    if (!ns)
        return;
    if (verdict_is_for_busy(m, part)) {
        m->wall_ns -= placed ? ns : 0;
        if (!m->for_busy_part || part->ns > m->for_busy_part->ns) {
            m->for_busy_part = part;
            m->for_busy = process;
        }
        return;
    }
    length = key_of(m, process, part, key);
    if (placed != (part->kind == WHY_STACK && (key[length] || key[length - 1] != ' ')))
        return;
    if (!placed && part->kind == WHY_STACK)
        group = like_of(m, key, length);
    group = group ? group : group_of(m, key);
    if (!group)
        return;
    group->processes += group->last != process;
    group->last = process;
    group->cause = group->most ? group->cause : part->cause;
    group->ns += ns;
    group->either_ns += either ? ns : 0;
    most = !group->most || is_better(part, group->most);
    add_object(group, part, ns, most);
    if (most) {
        group->most = part;
        group->process = process;
        group->cause = part->cause;
    }
    for (size_t i = 0; i < part->who_count; i++)
        add_who(m, group, &part->who[i]);
    *(either ? &m->either_ns : &m->sure_ns) += ns;
    m->inside_ns += !either && place_for(m, part) ? ns : 0;
}

static void add_ready(struct making *m, const struct why_process *process)
{
    struct group *group;
    char key[32];

    snprintf(key, sizeof(key), "%d ready", (int)process->pid);
    group = process->ready_ns ? group_of(m, key) : NULL;
    if (!group)
        return;
    group->process = process;
    group->processes = 1;
    group->ready = true;
    group->ns = process->ready_ns;
    m->sure_ns += process->ready_ns;
}

static void add_waits(struct making *m, const struct why_process *process, bool placed)
{
    for (size_t i = 0; i < process->cause_count; i++) {
        const struct why_cause *cause = &process->causes[i];
        size_t count;
        const struct why_part *parts = verdict_parts_of(cause, &count);

        m->no_causes |= cause->cause == PRCB_CAUSE_NONE;
        for (size_t k = 0; k < count; k++)
            add_part(m, process, &parts[k], placed);
    }
}

static void add_process(struct making *m, const struct why_process *process)
{
    m->wall_ns += process->wall_ns;
    m->run_ns += process->run_ns;
    m->ready_ns += process->ready_ns;
    m->idle_ns += process->idle_ns;
    add_waits(m, process, true);
    add_waits(m, process, false);
    add_ready(m, process);
}

uint64_t verdict_score_of(const struct group *group)
{
    return group->ns - group->either_ns + group->either_ns / VERDICT_EITHER_PART;
}

static int by_score(const void *left, const void *right)
{
    const struct group *a = left, *b = right;

    if (verdict_score_of(a) != verdict_score_of(b))
        return verdict_score_of(a) < verdict_score_of(b) ? 1 : -1;
    return strcmp(a->key, b->key);
}

void verdict_groups_make(struct making *m)
{
    find_busy(m);
    for (size_t i = 0; i < m->f->report->count && !m->failed; i++)
        add_process(m, &m->f->report->processes[i]);
    array_sort(m->groups, m->count, by_score);
}

void verdict_groups_free(struct making *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->groups[i].key);
    free(m->groups);
    free(m->busy);
    table_free(&m->by_pid);
    table_free(&m->by_key);
    table_free(&m->members);
}
