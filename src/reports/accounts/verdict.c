/* SPDX-License-Identifier: BSD-2-Clause */
#include "verdict.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "place.h"
#include "task_places.h"
#include "verdict_groups.h"
#include "verdict_words.h"

#define CAUSES_MOST 3 /* sentences about waits */
#define LOOP_MOST   4 /* threads of a deadlock that are told */

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

    verdict_put_comm(out, now->comm, sizeof(now->comm), now->tid);
    fputc(' ', out);
    verdict_put_verb(out, m, &part, true);
    verdict_put_place(out, &part);
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
        verdict_put_comm(s.out, next->comm, sizeof(next->comm), next->tid);
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
    verdict_put_share(s.out, ns, m->sure_ns);
    fprintf(s.out, " of the waiting: %sheld back by a CPU quota", hidden ? "ready or " : "");
    verdict_put_name_of(s.out, m->f->quota ? m->f->quota : "", 1000);
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
    verdict_put_name(s.out, around->group);
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
    verdict_put_share(s.out, ns, m->sure_ns);
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
    verdict_put_share(s.out, around->stolen_ns, around->processors_ns);
    fputs(" of the processors' time (steal).", s.out);
    end(m, &s, rule, around->stolen_ns, around->processors_ns);
}

/* Of what the shares of sentences about waits are. */
static uint64_t scores(const struct making *m)
{
    return m->sure_ns + m->either_ns / VERDICT_EITHER_PART;
}

/* Whether the function in which the crowd takes the lock is among a place's callers. */
static bool is_within(const struct task_place *place, const struct task_place *crowd)
{
    for (uint32_t i = 0; crowd->at && i < place->stack.frame_count; i++) {
        if (!strcmp(place->stack.frames[i].function, crowd->at->function))
            return true;
    }
    return false;
}

static const struct task_place *find_other(const struct task_place *places, size_t count,
                                           const struct task_place *crowd, bool within)
{
    static const char *const states[] = {
        "running",        "runnable", "IO wait", "StreamReader._wait_for_data",
        "_wait_for_data", "sleep",    "syscall"};

    for (size_t n = 0; n < sizeof(states) / sizeof(*states); n++) {
        for (size_t i = 0; i < count; i++) {
            if (&places[i] != crowd && places[i].own && !strcmp(places[i].state, states[n]) &&
                (!within || is_within(&places[i], crowd)))
                return &places[i];
        }
    }
    return NULL;
}

/* What tells most about who holds what others wait for: who has come through the function that they
 * wait in, or else what is not kept waiting by the others. */
static const struct task_place *other_place(const struct task_place *places, size_t count,
                                            const struct task_place *crowd)
{
    const struct task_place *within = find_other(places, count, crowd, true);

    return within ? within : find_other(places, count, crowd, false);
}

static void say_tasks(struct making *m, const char *rule, const struct why_process *process)
{
    struct task_place places[TASK_PLACES_MOST];
    uint64_t all = process->tasks.total - process->tasks.own;
    size_t count = task_places(&process->tasks, places);
    const struct task_place *crowd = task_places_crowd(&process->tasks, places, count), *other;
    char words[VERDICT_KEY_MOST];
    struct sentence s;

    if (!crowd || !begin(m, &s))
        return;
    task_place_words(crowd, words, sizeof(words));
    fprintf(s.out, "%" PRIu64 " of %" PRIu64 " %s", crowd->count, all, process->tasks.kind);
    if (m->several) {
        fputs(" of ", s.out);
        verdict_put_comm(s.out, process->comm, sizeof(process->comm), process->pid);
    }
    fputs(task_places_more(&process->tasks) ? " that were looked at" : "", s.out);
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

/* No thread is in tasks while they wait. A loop's do while its one thread runs or is blocked, too:
 * then that is told first. */
static void say_all_tasks(struct making *m, const char *rule, bool behind)
{
    bool busy = m->sure_ns + m->run_ns >= m->wall_ns / 10;

    for (size_t i = 0; i < m->f->report->count; i++) {
        const struct why_process *process = &m->f->report->processes[i];

        if (process->has_tasks && !process->tasks.unread &&
            behind == (busy && strcmp(process->tasks.kind, "goroutines") != 0))
            say_tasks(m, rule, process);
    }
}

static void tasks(struct making *m, const char *rule)
{
    say_all_tasks(m, rule, false);
}

static void tasks_behind(struct making *m, const char *rule)
{
    say_all_tasks(m, rule, true);
}

/* The other end that was found most often to owe an answer; NULL: none was at a quarter of looks.
 */
static const struct unanswered_row *owing(const struct unanswered *u)
{
    const struct unanswered_row *most = NULL;

    for (size_t i = 0; u && i < u->count; i++) {
        if (u->rows[i].looks * 4 >= u->looks && (!most || u->rows[i].looks > most->looks))
            most = &u->rows[i];
    }
    return most;
}

/* Who waits for an answer is not idle, though its wait looks so. A wait for one of these processes
 * is part of theirs. */
static void unanswered(struct making *m, const char *rule)
{
    const struct unanswered_row *row = owing(m->f->unanswered);
    uint64_t other_ns = m->run_ns + scores(m) - m->inside_ns;
    struct sentence s;

    if (!row || m->verdict->count || other_ns >= (m->wall_ns - m->inside_ns) / 2 || !begin(m, &s))
        return;
    fprintf(s.out, "%s waited for work, or for others: at %u of %u looks ",
            m->several ? "They" : "It", row->looks, m->f->unanswered->looks);
    if (row->connections == 1)
        fputs("a connection", s.out);
    else
        fprintf(s.out, "up to %u connections", row->connections);
    fprintf(s.out, " to %s had sent something and got no answer yet, for %s ", row->remote,
            row->longest_ms ? "up to" : "less than");
    verdict_put_time(s.out, (row->longest_ms ? row->longest_ms : 1) * UINT64_C(1000000));
    fprintf(s.out, "; %s ran for ", m->several ? "they" : "it");
    verdict_put_share(s.out, m->run_ns, m->wall_ns);
    fprintf(s.out, " of %s time.", m->several ? "their" : "its");
    end(m, &s, rule, 0, 0);
}

static void idle(struct making *m, const char *rule)
{
    struct sentence s;

    if (!m->wall_ns || m->verdict->count || scores(m) >= m->wall_ns / 50 ||
        m->run_ns + scores(m) >= m->wall_ns / 10 || !begin(m, &s))
        return;
    if (m->idle_ns >= m->either_ns) {
        fputs("Nothing holds it up: it waited for work for ", s.out);
        verdict_put_share(s.out, m->idle_ns, m->wall_ns);
        fputs(" of its time", s.out);
    } else {
        fputs("Nothing is known to hold it up: ", s.out);
        verdict_put_share(s.out, m->either_ns, m->wall_ns);
        fputs(" of its time are waits that may be for work", s.out);
    }
    fputs(", and ran for ", s.out);
    verdict_put_share(s.out, m->run_ns, m->wall_ns);
    fputs(".", s.out);
    end(m, &s, rule, m->idle_ns, m->wall_ns);
}

/* Whether a wait is for a child process, also where it is not known for which: it had ended. */
static bool is_for_child(const struct making *m, const struct why_part *part)
{
    const struct object *object = verdict_object_of(m, part->wait.object);
    const char *word = verdict_word_of(part);

    return (object && object->kind == OBJECT_PROCESS) || part->cause == PRCB_CAUSE_CHILD ||
           (word && !strcmp(word, "child process (sync)"));
}

/* Sums the time in which a process waits for busy ones in the place of a part. */
static uint64_t waits_for_busy(const struct making *m, const struct why_process *process,
                               const struct why_part *in)
{
    char place[VERDICT_KEY_MOST], other[VERDICT_KEY_MOST];
    uint64_t ns = 0;

    place_text(in, place, sizeof(place));
    for (size_t i = 0; i < process->cause_count; i++) {
        size_t count;
        const struct why_part *parts = verdict_parts_of(&process->causes[i], &count);

        for (size_t k = 0; k < count; k++) {
            place_text(&parts[k], other, sizeof(other));
            if (!strcmp(place, other) && verdict_is_for_busy(m, &parts[k]))
                ns += parts[k].ns;
        }
    }
    return ns;
}

/* Who waits for a busy child is no answer of a shell or a make. A server that an interpreter runs
 * should not wait for one, and its function says where that is. */
static void child(struct making *m, const char *rule)
{
    const struct why_process *process = m->for_busy;
    const struct why_part *part = m->for_busy_part;
    uint64_t awake_ns, ns;
    struct sentence s;

    if (!part || !is_for_child(m, part) || !place_is_interpreted(part))
        return;
    awake_ns = process->wall_ns - process->idle_ns;
    ns = waits_for_busy(m, process, part);
    if (ns < awake_ns / 3 || !begin(m, &s))
        return;
    verdict_put_share(s.out, ns, awake_ns);
    fputs(" of the time that it did not idle ", s.out);
    verdict_put_comm(s.out, process->comm, sizeof(process->comm), process->pid);
    fputc(' ', s.out);
    verdict_put_wait(
        s.out, m, &(struct group){.most = part, .object_ns = part->ns, .others_ns = ns - part->ns},
        true);
    verdict_put_place(s.out, part);
    fputs(".", s.out);
    end(m, &s, rule, ns, awake_ns);
}

static const struct why_process *busiest(const struct making *m)
{
    const struct why_process *most = NULL;

    for (size_t i = 0; i < m->f->report->count; i++) {
        const struct why_process *process = &m->f->report->processes[i];

        if (!most || process->run_ns > most->run_ns)
            most = process;
    }
    return most;
}

static void running(struct making *m, const char *rule)
{
    const struct why_process *most = busiest(m);
    struct sentence s;

    if (m->run_ns <= 2 * scores(m) || m->run_ns < m->wall_ns / 20 || !begin(m, &s))
        return;
    fputs(m->several ? "They run rather than wait: " : "It runs rather than waits: ", s.out);
    verdict_put_share(s.out, m->run_ns, m->run_ns + m->sure_ns);
    fprintf(s.out, " of the time that %s did not idle was spent on a processor (",
            m->several ? "they" : "it");
    verdict_put_time(s.out, m->run_ns);
    if (m->several) {
        fputs(", ", s.out);
        verdict_put_share(s.out, most->run_ns, m->run_ns);
        fputs(" of it by ", s.out);
        verdict_put_comm(s.out, most->comm, sizeof(most->comm), most->ended ? 0 : most->pid);
    }
    fputs(")", s.out);
    fputs(m->f->ran_in ? m->f->ran_in : "; prcb record -g says in which functions", s.out);
    fputs(".", s.out);
    end(m, &s, rule, m->run_ns, m->run_ns + m->sure_ns);
}

/* Whether a sentence has said that it runs, so that so little waiting is none to speak of. */
static bool runs_through(const struct making *m, uint64_t waiting)
{
    return m->verdict->count && waiting < m->run_ns / 10 &&
           !strcmp(m->verdict->lines[m->verdict->count - 1].rule, "running");
}

/* A sleep is what it is, meant or not. */
static bool is_sleep(const struct why_part *part)
{
    const struct phrase *phrase = verdict_phrase_of(part);

    return phrase && !strcmp(phrase->unknown, "sleep~");
}

/* Whether others wait for it for a reason: not while it may idle, for work that nobody gives it. */
static bool tells(const struct why_path *path)
{
    return path->seen &&
           (path->state != WHY_WAITS || is_sleep(&path->part) ||
            (path->part.kind == WHY_STACK && path->part.stack.kind == PRCB_STACK_BLOCKED));
}

/* The row for which most of the waiting of others is; *ret_whole: of what that is a part. */
static const struct why_path *longest_path(const struct making *m, uint64_t *ret_whole)
{
    const struct why_path *most = NULL;

    *ret_whole = 0;
    for (size_t i = 0; i < m->f->report->count; i++) {
        const struct why_process *process = &m->f->report->processes[i];

        *ret_whole += process->path_ns;
        for (size_t k = 0; k < process->path_count; k++) {
            const struct why_path *path = &process->paths[k];

            if (tells(path) && (!most || path->others_ns > most->others_ns))
                most = path;
        }
    }
    return most;
}

/* Whether what waits lead to is a group's wait itself. */
static bool is_same_wait(const struct group *group, const struct why_path *path)
{
    return path->state == WHY_WAITS && !group->ready && group->cause == path->part.cause &&
           group->process->pid == path->pid && group->most->stack.id == path->part.stack.id;
}

/* Says of a wait that others lead to it, as those for a lock do that is held meanwhile. */
static void put_others(FILE *out, const struct making *m, const struct group *group)
{
    uint64_t whole;
    const struct why_path *path = longest_path(m, &whole);

    if (!path || path->others_ns < whole / 3 || !is_same_wait(group, path))
        return;
    fputs("; ", out);
    verdict_put_share(out, path->ns, whole);
    fputs(" of the waiting leads to that", out);
}

static void say_wait(struct making *m, const char *rule, const struct group *group)
{
    bool either = group->either_ns > group->ns / 2;
    uint64_t whole = m->sure_ns + (either ? m->either_ns : 0), ns = group->ns;
    struct sentence s;

    if (!begin(m, &s))
        return;
    ns -= either ? 0 : group->either_ns;
    verdict_put_share(s.out, ns, whole);
    /* What may be idling is a part of more than what surely is none. */
    fprintf(s.out, " of %s waiting%s: ", either && m->sure_ns ? "all" : "the",
            either && !is_sleep(group->most) ? ", which may be idling" : "");
    verdict_put_who(s.out, m, group);
    fputc(' ', s.out);
    if (group->ready) {
        fputs(group->process->threads == 1 ? "is ready and has no processor"
                                           : "are ready and have no processor",
              s.out);
        verdict_put_behind(s.out, m, group);
    } else {
        verdict_put_wait(s.out, m, group,
                         group->threads == 1 || (!group->threads && group->process->threads == 1));
        verdict_put_place(s.out, group->most);
        if (!verdict_put_holders(s.out, m, group->process, group->most))
            verdict_put_releaser(s.out, m, group);
        put_others(s.out, m, group);
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
                          (group->process->has_tasks && verdict_word_of(group->most) &&
                           !strcmp(verdict_word_of(group->most), WHY_TASKS_WORD))))
        return true;
    for (size_t i = 0; i < m->verdict->count; i++) {
        const char *rule = m->verdict->lines[i].rule;

        if ((!strcmp(rule, "throttled") &&
             (group->ready ? m->no_causes : group->cause == PRCB_CAUSE_THROTTLED)) ||
            (!strcmp(rule, "held") && !group->ready &&
             held_cause(group->cause, verdict_word_of(group->most))))
            return true;
    }
    return false;
}

/* Whether others have said what the path says: a deadlock, or that nothing waits; of the largest
 * wait who holds it, that it is for a child, or that it is the same wait. */
static bool says_path(const struct making *m, const struct why_path *path)
{
    static const char *const says[] = {"deadlock", "held", "unanswered", "idle"};

    for (size_t i = 0; i < sizeof(says) / sizeof(*says) && m->verdict->count; i++) {
        if (!strcmp(m->verdict->lines[0].rule, says[i]))
            return true;
    }
    for (size_t i = 0; i < m->count; i++) {
        const struct group *group = &m->groups[i];

        if (is_told(m, group))
            continue;
        if (group->ready)
            return path->state == WHY_READY;
        return is_for_child(m, group->most) || verdict_has_holder(group->process, group->most) ||
               is_same_wait(group, path);
    }
    return false;
}

/* What waits lead to, where the largest wait itself does not tell it. */
static void path(struct making *m, const char *rule)
{
    uint64_t whole;
    const struct why_path *path = longest_path(m, &whole);
    bool one = path && path->threads == 1;
    struct sentence s;

    if (!path || path->others_ns < whole / 3 || whole < m->wall_ns / 50 || runs_through(m, whole) ||
        says_path(m, path) || !begin(m, &s))
        return;
    verdict_put_share(s.out, path->others_ns, whole);
    fputs(" of the waiting is for ", s.out);
    if (!one)
        fprintf(s.out, "%" PRIu64 " threads (", path->threads);
    verdict_put_comm(s.out, path->comm, sizeof(path->comm), one ? path->tid : 0);
    fputs(one ? ", which " : "), which ", s.out);
    if (path->state == WHY_RUNS) {
        fputs(one ? "runs meanwhile" : "run meanwhile", s.out);
    } else if (path->state == WHY_READY) {
        fputs(one ? "has no processor" : "have no processor", s.out);
    } else {
        verdict_put_verb(s.out, m, &path->part, one);
        verdict_put_place(s.out, &path->part);
    }
    fputs(".", s.out);
    end(m, &s, rule, path->others_ns, whole);
}

static void waits(struct making *m, const char *rule)
{
    const char *before = m->verdict->count ? m->verdict->lines[0].rule : "";
    uint64_t least = !strcmp(before, "unanswered") ? m->wall_ns / 50 : 0, first = 0;
    int said = 0;

    if (!strcmp(before, "idle"))
        return;
    for (size_t i = 0; i < m->count && said < CAUSES_MOST; i++) {
        const struct group *group = &m->groups[i];

        if (is_told(m, group))
            continue;
        if (verdict_score_of(group) < (first ? first : scores(m)) / (first ? 5 : 50) ||
            verdict_score_of(group) < least || !verdict_score_of(group))
            break;
        first = first ? first : verdict_score_of(group);
        say_wait(m, rule, group);
        said++;
    }
}

static const struct {
    const char *name;
    rule_fn fn;
} rules[] = {
    {"deadlock", deadlock},   {"held", held},
    {"throttled", throttled}, {"memory", memory},
    {"swap", swap},           {"steal", steal},
    {"tasks", tasks},         {"unanswered", unanswered},
    {"idle", idle},           {"child", child},
    {"running", running},     {"path", path},
    {"wait", waits},          {"tasks", tasks_behind},
};

int verdict_make(const struct verdict_figures *figures, struct verdict *ret)
{
    struct verdict verdict = {.count = 0};
    struct making m = {.f = figures, .verdict = &verdict, .several = figures->report->count > 1};

    verdict_groups_make(&m);
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules) && !m.failed; i++)
        rules[i].fn(&m, rules[i].name);
    verdict_groups_free(&m);
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

void verdict_write_sentence(FILE *out, const char *lead, const char *text, size_t columns)
{
    size_t used = strlen(lead);

    fputs(lead, out);
    for (bool first = true; *text; first = false) {
        size_t length = strcspn(text, " "), width = 0;

        for (size_t i = 0; i < length; i++)
            width += ((unsigned char)text[i] & 0xc0) != 0x80;
        if (!first && used + 1 + width > columns) {
            fprintf(out, "\n%s  ", lead);
            used = strlen(lead) + 2;
        } else if (!first) {
            fputc(' ', out);
            used++;
        }
        fprintf(out, "%.*s", (int)length, text);
        used += width;
        text += length + strspn(text + length, " ");
    }
    fputc('\n', out);
}

json_object *verdict_json(struct json_doc *b, const struct verdict *verdict)
{
    json_object *lines = json_object_new_array();

    for (size_t i = 0; i < verdict->count; i++) {
        const struct verdict_line *line = &verdict->lines[i];
        json_object *row = json_object_new_object();

        json_doc_put_text(b, row, "rule", line->rule);
        json_doc_put_member(b, row, "ns", line->ns, line->of_ns);
        json_doc_put_member(b, row, "of_ns", line->of_ns, line->of_ns);
        json_doc_put_text(b, row, "text", line->text);
        json_doc_append(b, lines, row);
    }
    return lines;
}
