/* SPDX-License-Identifier: BSD-2-Clause */
#include "verdict.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cause.h"
#include "format.h"
#include "place.h"
#include "table.h"
#include "task_places.h"
#include "text.h"
#include "whom_words.h"

#define NAME_MOST   80 /* columns of a name from outside */
#define KEY_MOST    600
#define CHAIN_MOST  3 /* holders that hold up holders */
#define CAUSES_MOST 3 /* sentences about waits */
#define LOOP_MOST   4 /* threads of a deadlock that are told */
#define EITHER_PART 8 /* a wait that may be idling weighs one part in so many */

/* Waits that are one thing to people: for one lock, for one other end, or of one cause in one
 * function. */
struct group {
    char *key;
    const struct why_process *process;
    bool ready; /* no wait: it has no processor */
    uint32_t cause;
    uint64_t ns, either_ns;      /* either: may be idling */
    const struct why_part *most; /* the largest part */
    const struct why_who *who;   /* one of them */
    uint64_t threads;
    size_t prefix; /* of their names, which all have */
};

struct making {
    const struct verdict_figures *f;
    struct verdict *verdict;
    struct group *groups;
    size_t count, room;
    struct table by_key, members;
    uint64_t wall_ns, run_ns, ready_ns, idle_ns;
    uint64_t sure_ns, either_ns; /* ready, and waiting: surely held up, perhaps idling */
    bool several;                /* processes */
    bool no_causes;              /* the tier knows none */
    bool failed;
};

/* ---- groups ------------------------------------------------------------------------------- */

static const struct object *object_of(const struct making *m, uint32_t number)
{
    return number ? m->f->object(m->f->ctx, number) : NULL;
}

/* The other end of a socket: "tcp 10.0.0.1:5 -> 10.0.0.2:80" has it behind the arrow. */
static const char *remote_of(const struct object *object)
{
    const char *arrow = object->kind == OBJECT_SOCKET ? strstr(object->name, " -> ") : NULL;

    return arrow ? arrow + 4 : NULL;
}

static const char *word_of(const struct why_part *part)
{
    return part->kind == WHY_STACK ? part->stack.word : NULL;
}

static const struct phrase {
    const char *word;
    uint32_t cause;
    const char *known, *unknown;
    bool one; /* a process has one of it */
} phrases[] = {
#define PRCB_CAUSE_ANY                 UINT32_MAX
#define P(word, cause, known, unknown) {word, PRCB_CAUSE_##cause, known, unknown, false},
#define ONE(word, unknown)             {word, PRCB_CAUSE_ANY, NULL, unknown, true},
#include "phrases.def"
#undef P
#undef ONE
};

static const struct phrase *phrase_of(const struct why_part *part)
{
    const char *word = word_of(part);

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
    const struct object *object = object_of(m, part->wait.object);

    return object && part->kind == WHY_STACK && word_of(part) &&
           part->stack.kind == PRCB_STACK_BLOCKED &&
           (object->kind == OBJECT_FUTEX || object->kind == OBJECT_LOCK || part->wait.holder);
}

/* Returns how much of the key waits have that differ in their place only. */
static size_t key_of(const struct making *m, const struct why_process *process,
                     const struct why_part *part, char *ret)
{
    const struct object *object = object_of(m, part->wait.object);
    const struct phrase *phrase = phrase_of(part);
    const char *remote = object ? remote_of(object) : NULL;
    char place[KEY_MOST / 2];
    int length;

    place_text(part, place, sizeof(place));
    if (remote)
        return (size_t)snprintf(ret, KEY_MOST, "%d remote %.200s", (int)process->pid, remote);
    if (phrase && phrase->one)
        return (size_t)snprintf(ret, KEY_MOST, "%d one %s", (int)process->pid, phrase->unknown);
    if (is_lock(m, part))
        return (size_t)snprintf(ret, KEY_MOST, "%d lock %u", (int)process->pid, part->wait.object);
    length = snprintf(ret, KEY_MOST, "%d %u %s ", (int)process->pid, part->cause,
                      word_of(part) ? word_of(part) : "");
    snprintf(ret + length, KEY_MOST - (size_t)length, "%.300s", place);
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

/* placed: those whose place is known come first, so that the others join them. */
static void add_part(struct making *m, const struct why_process *process,
                     const struct why_part *part, bool placed)
{
    bool either = may_idle(part);
    uint64_t ns = part->ns - part->idle_ns;
    struct group *group = NULL;
    char key[KEY_MOST];
    size_t length;

    if (!ns)
        return;
    length = key_of(m, process, part, key);
    if (placed != (part->kind == WHY_STACK && (key[length] || key[length - 1] != ' ')))
        return;
    if (!placed && part->kind == WHY_STACK)
        group = like_of(m, key, length);
    group = group ? group : group_of(m, key);
    if (!group)
        return;
    group->process = process;
    group->cause = group->most ? group->cause : part->cause;
    group->ns += ns;
    group->either_ns += either ? ns : 0;
    if (!group->most || is_better(part, group->most)) {
        group->most = part;
        group->cause = part->cause;
    }
    for (size_t i = 0; i < part->who_count; i++)
        add_who(m, group, &part->who[i]);
    *(either ? &m->either_ns : &m->sure_ns) += ns;
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
    group->ready = true;
    group->ns = process->ready_ns;
    m->sure_ns += process->ready_ns;
}

static void add_waits(struct making *m, const struct why_process *process, bool placed)
{
    for (size_t i = 0; i < process->cause_count; i++) {
        const struct why_cause *cause = &process->causes[i];
        const struct why_part *parts = cause->pairs ? cause->pairs : cause->parts;
        size_t count = cause->pairs ? cause->pair_count : cause->part_count;

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

static uint64_t score_of(const struct group *group)
{
    return group->ns - group->either_ns + group->either_ns / EITHER_PART;
}

static int by_score(const void *left, const void *right)
{
    const struct group *a = left, *b = right;

    if (score_of(a) != score_of(b))
        return score_of(a) < score_of(b) ? 1 : -1;
    return strcmp(a->key, b->key);
}

/* ---- words -------------------------------------------------------------------------------- */

static void put_name_of(FILE *out, const char *name, size_t columns)
{
    char shown[4096];

    text_copy(TEXT_MARKS, name, shown, sizeof(shown));
    format_cut(shown, columns);
    fputs(shown, out);
}

static void put_name(FILE *out, const char *name)
{
    put_name_of(out, name, NAME_MOST);
}

static void put_comm(FILE *out, const char *comm, size_t size, pid_t tid)
{
    char name[32];

    snprintf(name, sizeof(name), "%.*s", (int)(size < 31 ? size : 31), comm);
    put_name(out, name);
    if (tid)
        fprintf(out, " (%d)", (int)tid);
}

static void put_time(FILE *out, uint64_t ns)
{
    char time[FORMAT_CELL];

    format_time(ns, time, sizeof(time));
    fputs(time, out);
}

static void put_share(FILE *out, uint64_t ns, uint64_t of)
{
    char share[FORMAT_CELL];

    format_share(ns < of ? ns : of, of, share, sizeof(share));
    fputs(share, out);
}

/* "reporter (12)", "6 threads (worker-*)". */
static void put_who(FILE *out, const struct making *m, const struct group *group)
{
    const struct why_process *process = group->process;
    size_t prefix = group->prefix;

    if (group->threads == 1) {
        put_comm(out, group->who->comm, sizeof(group->who->comm), group->who->tid);
    } else if (group->threads) {
        fprintf(out, "%" PRIu64 " threads", group->threads);
        if (prefix >= 2) {
            bool whole = prefix == strnlen(group->who->comm, sizeof(group->who->comm));

            fputs(" (", out);
            put_comm(out, group->who->comm, prefix, 0);
            fputs(whole ? ")" : "*)", out);
        }
    } else if (process->threads == 1) {
        put_comm(out, process->comm, sizeof(process->comm), process->pid);
        return;
    } else {
        fputs("threads", out);
    }
    if (m->several && process->pid && (group->threads != 1 || group->who->tid != process->pid)) {
        fputs(" of ", out);
        put_comm(out, process->comm, sizeof(process->comm), process->pid);
    }
}

static void put_detail(FILE *out, const struct object *object)
{
    if (!object->detail)
        return;
    fputs(" (", out);
    put_name(out, object->detail);
    fputs(")", out);
}

static void put_object(FILE *out, const struct object *object)
{
    const char *remote = remote_of(object);

    switch (object->kind) {
    case OBJECT_FUTEX:
    case OBJECT_LOCK:
        if (object->symbol) {
            put_name(out, object->symbol);
            return;
        }
        fputs(object->kind == OBJECT_LOCK ? "the kernel's lock " : "the lock ", out);
        put_name(out, object->name);
        return;
    case OBJECT_EPOLL:
    case OBJECT_POLL:
        put_name(out, object->detail ? object->detail : object->name);
        return;
    case OBJECT_SEMAPHORE:
        fputs("the semaphore ", out);
        break;
    case OBJECT_QUEUE:
        fputs("the message queue ", out);
        break;
    case OBJECT_PROCESS:
    case OBJECT_THREAD:
        put_comm(out, object->name, strlen(object->name), object->tid);
        put_detail(out, object);
        return;
    default:
        break;
    }
    put_name(out, remote ? remote : object->name);
    put_detail(out, object);
}

static void put_verb(FILE *out, const struct making *m, const struct why_part *part, bool one)
{
    const struct object *object = object_of(m, part->wait.object);
    const struct prcb_cause_info *info = prcb_cause_info(part->cause);
    const struct phrase *phrase = phrase_of(part);
    const char *text;

    if (!phrase) {
        fprintf(out, "%s %s", one ? "is" : "are", info ? info->words : "waiting");
        return;
    }
    text = object && phrase->known ? phrase->known : phrase->unknown;
    for (; *text; text++) {
        if (*text == '~') {
            fputs(one ? "s" : "", out);
        } else if (text[0] == '%' && text[1] == 's') {
            put_object(out, object);
            text++;
        } else {
            fputc(*text, out);
        }
    }
}

static void put_function(FILE *out, const char *before, const struct prcb_frame *frame)
{
    char name[KEY_MOST], line[KEY_MOST];

    place_name(frame, name, sizeof(name));
    place_line(frame, line, sizeof(line));
    fputs(before, out);
    put_name(out, name);
    if (*line) {
        fputs(" (", out);
        put_name(out, line);
        fputs(")", out);
    }
}

static void put_place(FILE *out, const struct why_part *part)
{
    const struct prcb_frame *by, *frame = place_of_part(part, &by);

    if (frame)
        put_function(out, " in ", frame);
    if (frame && by)
        put_function(out, ", called by ", by);
}

/* ---- who holds it, and what that does ---- */

struct holding {
    uint32_t holder;
    uint64_t ns;
};

/* Finds who held an object for the most of the time that a process waited for it, and how many
 * others did. */
static struct holding holder_of(const struct why_process *process, uint32_t object,
                                uint64_t *ret_known, size_t *ret_others)
{
    struct holding *all = NULL, most = {0};
    size_t count = 0;

    *ret_known = *ret_others = 0;
    for (size_t i = 0; i < process->cause_count && object; i++) {
        for (size_t k = 0; k < process->causes[i].pair_count; k++) {
            const struct why_part *part = &process->causes[i].pairs[k];
            size_t at = 0;

            if (part->wait.object != object || !part->wait.holder || !part->ns)
                continue;
            while (at < count && all[at].holder != part->wait.holder)
                at++;
            if (at == count && array_append(all, count, (struct holding){part->wait.holder, 0}))
                break;
            all[at].ns += part->ns;
            *ret_known += part->ns;
        }
    }
    for (size_t i = 0; i < count; i++)
        most = all[i].ns > most.ns ? all[i] : most;
    *ret_others = count ? count - 1 : 0;
    free(all);
    return most;
}

/* Returns what the holder did for most of the time; NULL: that is not known. holder 0: any. */
static const struct why_doing *doing_of(const struct why_process *process, uint32_t object,
                                        uint32_t holder)
{
    const struct why_doing *most = NULL;

    for (size_t i = 0; i < process->doing_count; i++) {
        const struct why_doing *at = &process->doings[i];

        if (at->object == object && (!holder || at->holder == holder) && at->ns &&
            (!most || at->ns > most->ns))
            most = at;
    }
    return most;
}

static void put_doing(FILE *out, const struct making *m, const struct why_doing *doing, bool one)
{
    if (doing->state == WHY_RUNS) {
        fprintf(out, " and run%s meanwhile", one ? "s" : "");
    } else if (doing->state == WHY_READY) {
        fprintf(out, " and ha%s no processor meanwhile", one ? "s" : "ve");
    } else {
        fputs(" and ", out);
        put_verb(out, m, &doing->part, one);
        put_place(out, &doing->part);
    }
}

/* Says who holds what a part waits for, and who holds up that one. False: nobody is known. */
static bool put_holders(FILE *out, const struct making *m, const struct why_process *process,
                        const struct why_part *part)
{
    uint32_t object = part->wait.object;
    bool found = false;

    for (int i = 0; i < CHAIN_MOST && object; i++) {
        uint64_t known;
        size_t others;
        const struct holding most = holder_of(process, object, &known, &others);
        const struct why_doing *doing;
        const struct object *holder;
        bool one = most.ns >= known / 2;

        if (!most.holder)
            break;
        found = true;
        holder = object_of(m, most.holder);
        doing = doing_of(process, object, one ? most.holder : 0);
        fputs("; ", out);
        if (one) {
            put_object(out, holder);
            fprintf(out, " hold%s it", holder->detail ? "s, or held," : "s");
        } else {
            fprintf(out, "%zu threads hold it in turn", others + 1);
        }
        if (one && others) {
            fputs(", for ", out);
            put_share(out, most.ns, known);
            fputs(" of that", out);
        }
        if (!doing)
            break;
        put_doing(out, m, doing, one);
        object = doing->state == WHY_WAITS && doing->part.wait.holder &&
                         doing->part.wait.object != object
                     ? doing->part.wait.object
                     : 0;
    }
    return found;
}

/* Says who ended waits for a lock that does not tell its holder. */
static void put_releaser(FILE *out, const struct making *m, const struct group *group)
{
    struct prcb_edge *rows;
    char name[128];
    size_t count;

    if (!m->f->whom || cause_traits(group->cause)->class != CAUSE_CLASS_LOCK ||
        !word_of(group->most) || group->most->stack.kind != PRCB_STACK_BLOCKED ||
        whom_rows(m->f->whom, (uint64_t)group->process->pid, group->cause, &rows, &count))
        return;
    if (count && rows[0].by == PRCB_BY_THREAD) {
        whom_name(&rows[0], name, sizeof(name));
        fprintf(out, "; its holder is not known, %s ended most of these waits", name);
    }
    free(rows);
}

static void put_behind(FILE *out, const struct making *m, const struct group *group)
{
    uint64_t whole = 0;
    struct prcb_edge *rows;
    size_t count, shown = 0;
    char name[128];

    if (!m->f->whom ||
        whom_rows(m->f->whom, (uint64_t)group->process->pid, PRCB_CAUSE_NONE, &rows, &count))
        return;
    for (size_t i = 0; i < count; i++)
        whole += rows[i].ns;
    for (size_t i = 0; i < count && shown < 3; i++) {
        if (rows[i].by == PRCB_BY_REST || rows[i].ns < whole / 10)
            continue;
        whom_name(&rows[i], name, sizeof(name));
        fprintf(out, "%s%s for ", shown++ ? ", " : ", behind ", name);
        put_share(out, rows[i].ns, whole);
    }
    fputs(shown ? " of that" : "", out);
    if (!shown && whole && count)
        fputs(", behind many others", out);
    free(rows);
}

/* ---- rules -------------------------------------------------------------------------------- */

/* A rule adds its lines. */
typedef void (*rule_fn)(struct making *m, const char *name);

struct sentence {
    char *text;
    size_t size;
    FILE *out;
};

static bool begin(struct making *m, struct sentence *s)
{
    *s = (struct sentence){.text = NULL};
    if (m->verdict->count == VERDICT_MOST)
        return false;
    s->out = open_memstream(&s->text, &s->size);
    m->failed |= !s->out;
    return s->out;
}

static void end(struct making *m, struct sentence *s, const char *rule, uint64_t ns, uint64_t of)
{
    if (fclose(s->out)) {
        free(s->text);
        m->failed = true;
        return;
    }
    m->verdict->lines[m->verdict->count++] =
        (struct verdict_line){.rule = rule, .ns = ns, .of_ns = of, .text = s->text};
}

static const struct why_now *now_of(const struct why_process *process, pid_t tid)
{
    for (size_t i = 0; i < process->now_count; i++) {
        if (process->now[i].tid == tid)
            return &process->now[i];
    }
    return NULL;
}

static void put_waiter(FILE *out, const struct making *m, const struct why_now *now)
{
    const struct why_part part = {.kind = now->has_stack ? WHY_STACK : WHY_UNREADABLE,
                                  .cause = now->cause,
                                  .stack = now->stack,
                                  .wait = now->wait};

    put_comm(out, now->comm, sizeof(now->comm), now->tid);
    fputc(' ', out);
    put_verb(out, m, &part, true);
    put_place(out, &part);
}

static void say_loop(struct making *m, const char *rule, const struct why_process *process,
                     const struct why_now *first)
{
    const struct why_now *at = first;
    struct sentence s;
    unsigned told = 0;

    if (!begin(m, &s))
        return;
    fputs("Deadlock: ", s.out);
    do {
        const struct why_now *next = now_of(process, at->held_by);

        if (!next)
            break;
        fputs(told ? "; " : "", s.out);
        put_waiter(s.out, m, at);
        fputs(", held by ", s.out);
        put_comm(s.out, next->comm, sizeof(next->comm), next->tid);
        at = next;
    } while (at != first && ++told < LOOP_MOST);
    fputs(at != first ? "; and so on." : ".", s.out);
    end(m, &s, rule, 0, 0);
}

static void deadlock(struct making *m, const char *rule)
{
    for (size_t i = 0; i < m->f->report->count; i++) {
        const struct why_process *process = &m->f->report->processes[i];

        for (size_t k = 0; k < process->now_count; k++) {
            uint32_t loop = process->now[k].loop;
            size_t first = k;

            while (loop && first && process->now[first - 1].loop != loop)
                first--;
            if (loop && !first)
                say_loop(m, rule, process, &process->now[k]);
        }
    }
}

static void held(struct making *m, const char *rule)
{
    struct sentence s;

    if (!m->f->held || !(m->f->held->count + m->f->held->left) || !begin(m, &s))
        return;
    held_threads_write(s.out, "", m->f->held);
    fflush(s.out);
    for (char *at = s.text; at && *at; at++)
        *at = *at == '\n' ? ' ' : *at;
    end(m, &s, rule, 0, 0);
    if (m->verdict->count) {
        char *text = m->verdict->lines[m->verdict->count - 1].text;

        text[strlen(text) ? strlen(text) - 1 : 0] = '\0';
    }
}

static uint64_t sum_of(const struct making *m, uint32_t cause, uint64_t *ret_threads)
{
    uint64_t ns = 0;

    *ret_threads = 0;
    for (size_t i = 0; i < m->count; i++) {
        if (m->groups[i].ready || m->groups[i].cause != cause)
            continue;
        ns += m->groups[i].ns;
        *ret_threads += m->groups[i].threads;
    }
    return ns;
}

/* Where causes are not known, what a quota took is in the ready time. */
static void throttled(struct making *m, const char *rule)
{
    uint64_t threads, ns = sum_of(m, PRCB_CAUSE_THROTTLED, &threads);
    bool hidden = !ns && m->f->quota && m->no_causes;
    struct sentence s;

    ns = hidden ? m->ready_ns : ns;
    if (ns < m->sure_ns / 10 || ns < (m->wall_ns - m->idle_ns) / 100 || !ns || !begin(m, &s))
        return;
    put_share(s.out, ns, m->sure_ns);
    fprintf(s.out, " of the waiting: %sheld back by a CPU quota", hidden ? "ready or " : "");
    put_name_of(s.out, m->f->quota ? m->f->quota : "", 1000);
    fputs(".", s.out);
    end(m, &s, rule, ns, m->sure_ns);
}

static void put_bytes(FILE *out, uint64_t bytes)
{
    if (bytes >= UINT64_C(10) << 30)
        fprintf(out, "%" PRIu64 " GiB", bytes >> 30);
    else
        fprintf(out, "%.4g MiB", (double)bytes / 1048576);
}

/* A group whose limit makes it drop pages that it reads again is short of memory; a limit that
 * is reached without that has only dropped what nobody missed. */
static void memory(struct making *m, const char *rule)
{
    const struct around *around = m->f->around;
    struct sentence s;

    if (!around || !around->limit || !(around->limit_hits || around->kills) ||
        around->refaults + around->swapins + around->kills * 1000 < 100 || !begin(m, &s))
        return;
    fputs("The memory limit of cgroup ", s.out);
    put_name(s.out, around->group);
    fputs(" (", s.out);
    put_bytes(s.out, around->limit);
    fprintf(s.out, ") was reached %" PRIu64 " times: %" PRIu64 " pages were dropped and read again",
            around->limit_hits, around->refaults + around->swapins);
    if (around->kills)
        fprintf(s.out, "; %" PRIu64 " process%s killed for it", around->kills,
                around->kills == 1 ? " was" : "es were");
    fputs(".", s.out);
    end(m, &s, rule, 0, 0);
}

/* Whether the stack of a page fault is of one that reads from swap. */
static bool is_swapin(const struct why_part *part)
{
    for (uint32_t i = 0; part->kind == WHY_STACK && i < part->stack.frame_count; i++) {
        const char *name = part->stack.frames[i].function;

        if (!part->stack.frames[i].address && name &&
            (!strcmp(name, "do_swap_page") || !strncmp(name, "swap_read", 9)))
            return true;
    }
    return false;
}

static void swap(struct making *m, const char *rule)
{
    struct sentence s;
    uint64_t ns = 0;

    for (size_t i = 0; i < m->count; i++)
        ns += m->groups[i].most && is_swapin(m->groups[i].most) ? m->groups[i].ns : 0;
    if (!ns || ns < m->sure_ns / 10 || !begin(m, &s))
        return;
    put_share(s.out, ns, m->sure_ns);
    fputs(" of the waiting: memory is read back from swap.", s.out);
    end(m, &s, rule, ns, m->sure_ns);
}

static void steal(struct making *m, const char *rule)
{
    const struct around *around = m->f->around;
    struct sentence s;

    if (!around || around->stolen_ns < around->processors_ns / 10 || !around->stolen_ns ||
        !begin(m, &s))
        return;
    fputs("The hypervisor took ", s.out);
    put_share(s.out, around->stolen_ns, around->processors_ns);
    fputs(" of the processors' time (steal).", s.out);
    end(m, &s, rule, around->stolen_ns, around->processors_ns);
}

/* Of what the shares of sentences about waits are. */
static uint64_t scores(const struct making *m)
{
    return m->sure_ns + m->either_ns / EITHER_PART;
}

/* What tells most about who holds what others wait for: what is not kept waiting by the others. */
static const struct task_place *other_place(const struct task_place *places, size_t count,
                                            const struct task_place *crowd)
{
    static const char *const states[] = {"running", "runnable", "IO wait", "sleep", "syscall"};

    for (size_t n = 0; n < sizeof(states) / sizeof(*states); n++) {
        for (size_t i = 0; i < count; i++) {
            if (&places[i] != crowd && places[i].own && !strcmp(places[i].state, states[n]))
                return &places[i];
        }
    }
    return NULL;
}

static void say_tasks(struct making *m, const char *rule, const struct why_process *process)
{
    struct task_place places[TASK_PLACES_MOST];
    uint64_t all = process->tasks.total - process->tasks.own;
    size_t count = task_places(&process->tasks, places);
    const struct task_place *crowd = task_places_crowd(&process->tasks, places, count), *other;
    char words[KEY_MOST];
    struct sentence s;

    if (!crowd || !begin(m, &s))
        return;
    task_place_words(crowd, words, sizeof(words));
    fprintf(s.out, "%" PRIu64 " of %" PRIu64 " goroutines", crowd->count, all);
    if (m->several) {
        fputs(" of ", s.out);
        put_comm(s.out, process->comm, sizeof(process->comm), process->pid);
    }
    fprintf(s.out,
            crowd->locked ? " wait for a lock (%s) in " : " are in %s, which may be idling, in ",
            crowd->state);
    fputs(words, s.out);
    other = crowd->locked ? other_place(places, count, crowd) : NULL;
    if (other) {
        task_place_words(other, words, sizeof(words));
        fprintf(s.out, "; of the others %" PRIu64 " %s in %s in %s", other->count,
                other->count == 1 ? "is" : "are", other->state, words);
    }
    fputs(".", s.out);
    end(m, &s, rule, 0, 0);
}

/* Goroutines: no thread is in them while they wait. */
static void tasks(struct making *m, const char *rule)
{
    for (size_t i = 0; i < m->f->report->count; i++) {
        const struct why_process *process = &m->f->report->processes[i];

        if (process->has_tasks && !process->tasks.unread)
            say_tasks(m, rule, process);
    }
}

static void idle(struct making *m, const char *rule)
{
    struct sentence s;

    if (!m->wall_ns || m->verdict->count || scores(m) >= m->wall_ns / 50 ||
        m->run_ns + scores(m) >= m->wall_ns / 10 || !begin(m, &s))
        return;
    if (m->idle_ns >= m->either_ns) {
        fputs("Nothing holds it up: it waited for work for ", s.out);
        put_share(s.out, m->idle_ns, m->wall_ns);
        fputs(" of its time", s.out);
    } else {
        fputs("Nothing is known to hold it up: ", s.out);
        put_share(s.out, m->either_ns, m->wall_ns);
        fputs(" of its time are waits that may be for work", s.out);
    }
    fputs(", and ran for ", s.out);
    put_share(s.out, m->run_ns, m->wall_ns);
    fputs(".", s.out);
    end(m, &s, rule, m->idle_ns, m->wall_ns);
}

static void running(struct making *m, const char *rule)
{
    struct sentence s;

    if (m->run_ns <= 2 * scores(m) || m->run_ns < m->wall_ns / 20 || !begin(m, &s))
        return;
    fputs("It runs rather than waits: ", s.out);
    put_share(s.out, m->run_ns, m->run_ns + m->sure_ns);
    fputs(" of the time that it did not idle was spent on a processor (", s.out);
    put_time(s.out, m->run_ns);
    fputs("); prcb record -g says in which functions.", s.out);
    end(m, &s, rule, m->run_ns, m->run_ns + m->sure_ns);
}

/* A sleep is what it is, meant or not. */
static bool is_sleep(const struct why_part *part)
{
    const struct phrase *phrase = phrase_of(part);

    return phrase && !strcmp(phrase->unknown, "sleep~");
}

static void say_wait(struct making *m, const char *rule, const struct group *group)
{
    bool either = group->either_ns > group->ns / 2;
    uint64_t whole = m->sure_ns + (either ? m->either_ns : 0), ns = group->ns;
    struct sentence s;

    if (!begin(m, &s))
        return;
    ns -= either ? 0 : group->either_ns;
    put_share(s.out, ns, whole);
    fprintf(s.out,
            " of the waiting%s: ", either && !is_sleep(group->most) ? ", which may be idling" : "");
    put_who(s.out, m, group);
    fputc(' ', s.out);
    if (group->ready) {
        fputs(group->process->threads == 1 ? "is ready and has no processor"
                                           : "are ready and have no processor",
              s.out);
        put_behind(s.out, m, group);
    } else {
        put_verb(s.out, m, group->most,
                 group->threads == 1 || (!group->threads && group->process->threads == 1));
        put_place(s.out, group->most);
        if (!put_holders(s.out, m, group->process, group->most))
            put_releaser(s.out, m, group);
    }
    fputs(".", s.out);
    end(m, &s, rule, ns, whole);
}

/* Whether a process has a deadlock in which an object is. */
static bool in_loop(const struct why_process *process, uint32_t object)
{
    for (size_t i = 0; i < process->now_count && object; i++) {
        if (process->now[i].loop && process->now[i].wait.object == object)
            return true;
    }
    return false;
}

/* What other rules have told is not told again. */
static bool is_told(const struct making *m, const struct group *group)
{
    if (!group->ready && (in_loop(group->process, group->most->wait.object) ||
                          (group->process->has_tasks && word_of(group->most) &&
                           !strcmp(word_of(group->most), WHY_TASKS_WORD))))
        return true;
    for (size_t i = 0; i < m->verdict->count; i++) {
        const char *rule = m->verdict->lines[i].rule;

        if ((!strcmp(rule, "throttled") &&
             (group->ready ? m->no_causes : group->cause == PRCB_CAUSE_THROTTLED)) ||
            (!strcmp(rule, "held") && !group->ready &&
             held_cause(group->cause, word_of(group->most))))
            return true;
    }
    return false;
}

static void waits(struct making *m, const char *rule)
{
    uint64_t first = 0;
    int said = 0;

    for (size_t i = 0; i < m->count && said < CAUSES_MOST; i++) {
        const struct group *group = &m->groups[i];

        if (is_told(m, group))
            continue;
        if (score_of(group) < (first ? first : scores(m)) / (first ? 5 : 50) || !score_of(group))
            break;
        if (m->verdict->count && !strcmp(m->verdict->lines[0].rule, "idle"))
            break;
        first = first ? first : score_of(group);
        say_wait(m, rule, group);
        said++;
    }
}

static const struct {
    const char *name;
    rule_fn fn;
} rules[] = {
    {"deadlock", deadlock}, {"held", held},   {"throttled", throttled}, {"memory", memory},
    {"swap", swap},         {"steal", steal}, {"tasks", tasks},         {"idle", idle},
    {"running", running},   {"wait", waits},
};

int verdict_make(const struct verdict_figures *figures, struct verdict *ret)
{
    struct verdict verdict = {.count = 0};
    struct making m = {.f = figures, .verdict = &verdict, .several = figures->report->count > 1};

    for (size_t i = 0; i < figures->report->count; i++)
        add_process(&m, &figures->report->processes[i]);
    array_sort(m.groups, m.count, by_score);
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules) && !m.failed; i++)
        rules[i].fn(&m, rules[i].name);
    for (size_t i = 0; i < m.count; i++)
        free(m.groups[i].key);
    free(m.groups);
    table_free(&m.by_key);
    table_free(&m.members);
    if (m.failed) {
        verdict_free(&verdict);
        return -ENOMEM;
    }
    *ret = verdict;
    return 0;
}

void verdict_free(struct verdict *verdict)
{
    for (size_t i = 0; i < verdict->count; i++)
        free(verdict->lines[i].text);
    verdict->count = 0;
}
