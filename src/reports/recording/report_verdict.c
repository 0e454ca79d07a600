/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The answer first: what held the threads of a recording up, in the sentences of prcb why. Its
 * figures are made of the recording: stretches for times, stacks of waits for places, wakers for
 * who ended waits, and for who kept a ready thread from its processor the threads that ran there
 * meanwhile. Who held locks, and what other waits were for than a process, is in no recording.
 */
#include "report_verdict.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_STACK
#include "array.h"
#include "cause.h"
#include "stretches.h"
#include "table.h"
#include "verdict.h"
#include "verdict_words.h"
#include "whom.h"

#define FRAMES_MOST 64       /* of a stack: a sentence names the innermost of the program's own */
#define RUNS_KEPT   256      /* of a processor: who ran before these is one of others */
#define PIECES_MOST 20000000 /* of ready time that are divided: what comes behind is others' */
#define EDGES_MOST  200000   /* so many pairs of who was ready and who ran */

/* A row of the recording's waits, and where it belongs. */
struct item {
    const struct offcpu_row *row;
    size_t process;
    uint32_t cause, kind; /* kind: enum why_part_kind */
};

struct run {
    uint64_t start_ns, end_ns;
    size_t thread;
};

/* The last ones of a processor. */
struct ran {
    struct run *runs; /* a ring */
    size_t count;
};

/* An edge in the making. */
#define EDGE_OF_PROCESS                                                                            \
    100 /* beside enum prcb_edge_kind: waits for a process, by which ended them */
struct tally {
    uint32_t kind, cause;
    size_t process, by; /* by: index of a thread, of a waker, or of a process */
    uint64_t ns, count;
};

struct figures {
    const struct report *report;
    const struct recording *recording;
    struct why_process *processes;
    size_t count;
    struct table by_pid; /* of these, from 1 */
    size_t *process_of;  /* of each thread */
    struct item *items;
    size_t item_count;
    struct why_part *parts;
    struct why_cause *causes;
    struct why_who *who;
    struct other {
        struct object object;
        char name[48];
    } * others; /* of each process: as a child, and as who has the other end of a pipe */
    struct ran ran[STRETCH_CPUS];
    uint64_t *ready_since; /* of each thread; UINT64_MAX: it was not ready before this */
    struct tally *tallies;
    size_t tally_count, tally_room;
    size_t pieces;
    struct table by_tally;
    struct whom *whom;
};

/* ---- processes ------------------------------------------------------------------- */

static int find_processes(struct figures *m)
{
    const struct recording *r = m->recording;
    int result = 0;

    m->process_of = calloc(r->thread_count + 1, sizeof(*m->process_of));
    m->processes = calloc(r->thread_count + 1, sizeof(*m->processes));
    if (!m->process_of || !m->processes)
        return -ENOMEM;
    for (size_t i = 0; i < r->thread_count && !result; i++) {
        const struct recorded_thread *thread = &r->threads[i];
        size_t found = table_find_number(&m->by_pid, (uint64_t)thread->pid);
        struct why_process *process;

        if (!found) {
            found = ++m->count;
            result = table_put_number(&m->by_pid, (uint64_t)thread->pid, found);
            m->processes[found - 1].ended = 1;
        }
        process = &m->processes[found - 1];
        process->pid = (pid_t)thread->pid;
        process->ended &= thread->end_ns != 0;
        if (!*process->comm || thread->tid == thread->pid)
            snprintf(process->comm, sizeof(process->comm), "%s", thread->name);
        m->process_of[i] = found - 1;
    }
    return result;
}

/* Makes ended processes of one name one, as prcb why does: the first, which counts them. */
static int fold_ended(struct figures *m)
{
    struct table first_of = {.count = 0};
    size_t *to = calloc(m->count + 1, sizeof(*to));
    uint64_t *counts = calloc(m->count + 1, sizeof(*counts));
    int result = to && counts ? 0 : -ENOMEM;

    for (size_t i = 0; i < m->count && !result; i++) {
        const struct why_process *process = &m->processes[i];
        uint64_t key = table_hash_text(process->comm);
        size_t first = process->ended ? table_find_number(&first_of, key) : 0;

        if (process->ended && !first) {
            first = i + 1;
            result = table_put_number(&first_of, key, first);
        }
        to[i] = first ? first - 1 : i;
        counts[to[i]]++;
    }
    for (size_t i = 0; i < m->count && !result; i++) {
        to[i] = counts[to[i]] < WHY_FOLD_LEAST ? i : to[i];
        m->processes[i].ended = to[i] == i && counts[i] >= WHY_FOLD_LEAST ? counts[i] : 0;
        table_remove(&m->by_pid, (uint64_t)m->processes[i].pid, NULL);
        result = table_put_number(&m->by_pid, (uint64_t)m->processes[i].pid, to[i] + 1);
    }
    for (size_t i = 0; i < m->recording->thread_count && !result; i++)
        m->process_of[i] = to[m->process_of[i]];
    table_free(&first_of);
    free(to);
    free(counts);
    return result;
}

static uint64_t folded(uint64_t pid, void *ctx)
{
    const struct figures *m = ctx;
    size_t found = table_find_number(&m->by_pid, pid);

    return found ? (uint64_t)m->processes[found - 1].pid : pid;
}

/* A thread that got another name, as with exec, has two rows in the recording. */
static uint64_t key_of(const struct recorded_thread *thread)
{
    return (uint64_t)thread->pid << 32 ^ (uint64_t)thread->tid;
}

static int sum_threads(struct figures *m)
{
    struct table seen = {.count = 0};
    int result = 0;

    for (size_t i = 0; i < m->report->thread_count && !result; i++) {
        const struct report_thread *row = &m->report->threads[i];
        struct why_process *process = &m->processes[m->process_of[row->thread]];
        uint64_t key = key_of(&m->recording->threads[row->thread]);

        if (!table_find_number(&seen, key)) {
            result = table_put_number(&seen, key, 1);
            process->threads++;
        }
        process->run_ns += row->run_ns;
        process->ready_ns += row->ready_ns;
        process->wait_ns += row->wait_ns;
        process->wall_ns += row->run_ns + row->ready_ns + row->wait_ns + row->unknown_ns;
    }
    table_free(&seen);
    return result;
}

/* ---- waits ----------------------------------------------------------------------- */

static uint32_t kind_of(const struct offcpu_row *row)
{
    for (uint32_t kind = WHY_SHORT; row->rest && kind < WHY_BETWEEN; kind++) {
        if (!strcmp(why_part_name(kind), row->rest))
            return kind;
    }
    return row->rest ? WHY_UNREADABLE : WHY_STACK;
}

/* By process, cause and stack; of one of these by thread, its last name first. */
static int by_part(const void *left, const void *right)
{
    const struct item *a = left, *b = right;

    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    if (a->cause != b->cause)
        return a->cause < b->cause ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->row->stack != b->row->stack)
        return a->row->stack < b->row->stack ? -1 : 1;
    return (a->row->thread < b->row->thread) - (a->row->thread > b->row->thread);
}

static bool is_same(const struct item *a, const struct item *b)
{
    return a->process == b->process && a->cause == b->cause && a->kind == b->kind &&
           a->row->stack == b->row->stack;
}

static struct prcb_frame frame_of(const struct recording *r, const struct recorded_stack *at)
{
    const struct recorded_function *function =
        at->function == SIZE_MAX ? NULL : &r->functions[at->function];
    const struct recorded_map *map = at->map == SIZE_MAX ? NULL : &r->maps[at->map];
    struct prcb_frame frame = {.address = at->kernel || at->line ? 0 : at->address};

    if (function && strcmp(function->name, "[unknown]") != 0)
        frame.function = function->name;
    if (function && *function->file)
        frame.file = function->file;
    else if (map && !at->kernel)
        frame.file = map->file;
    frame.place = at->line             ? at->line
                  : at->kernel || !map ? 0
                                       : at->address - map->start + map->file_offset;
    return frame;
}

static int fill_stack(struct figures *m, const struct offcpu_row *row, struct prcb_stack *ret)
{
    const struct recording *r = m->recording;
    struct prcb_frame *frames = NULL;
    uint32_t count = 0;

    for (size_t at = row->stack; at != SIZE_MAX && count < FRAMES_MOST;
         at = r->stacks[at].caller_index)
        count++;
    frames = calloc(count + 1u, sizeof(*frames));
    if (!frames)
        return -ENOMEM;
    *ret = (struct prcb_stack){.size = sizeof(*ret),
                               .id = (uint32_t)(row->stack + 1),
                               .kind = offcpu_is_idle(row)            ? PRCB_STACK_IDLE
                                       : !strcmp(row->kind, "either") ? PRCB_STACK_EITHER
                                                                      : PRCB_STACK_BLOCKED,
                               .frame_count = count,
                               .word = *row->word ? row->word : NULL,
                               .frames = frames};
    count = 0;
    for (size_t at = row->stack; count < ret->frame_count; at = r->stacks[at].caller_index)
        frames[count++] = frame_of(r, &r->stacks[at]);
    return 0;
}

static int take_items(struct figures *m, const struct offcpu *offcpu)
{
    m->items = calloc(offcpu->count + 1, sizeof(*m->items));
    m->parts = calloc(offcpu->count + 1, sizeof(*m->parts));
    m->causes = calloc(offcpu->count + 1, sizeof(*m->causes));
    m->who = calloc(offcpu->count + 1, sizeof(*m->who));
    if (!m->items || !m->parts || !m->causes || !m->who)
        return -ENOMEM;
    for (size_t i = 0; i < offcpu->count; i++)
        m->items[i] =
            (struct item){&offcpu->rows[i], m->process_of[offcpu->rows[i].thread],
                          cause_by_name(offcpu->rows[i].cause), kind_of(&offcpu->rows[i])};
    m->item_count = offcpu->count;
    array_sort(m->items, m->item_count, by_part);
    return 0;
}

/* Adds the row of a thread to its part, which may be its first. */
static int add_item(struct figures *m, const struct item *item, struct why_part *part,
                    struct why_who *who)
{
    const struct recorded_thread *thread = &m->recording->threads[item->row->thread];
    int result = 0;

    *who = (struct why_who){.key = key_of(thread), .tid = (pid_t)thread->tid};
    snprintf(who->comm, sizeof(who->comm), "%s", thread->name);
    if (!part->who) {
        part->kind = item->kind;
        part->cause = item->cause;
        part->who = who;
        result = item->kind == WHY_STACK ? fill_stack(m, item->row, &part->stack) : 0;
    }
    part->who_count++;
    part->ns += item->row->ns;
    part->count += item->row->count;
    part->idle_ns += offcpu_is_idle(item->row) ? item->row->ns : 0;
    return result;
}

static int make_parts(struct figures *m)
{
    struct why_part *part = m->parts - 1;
    struct why_cause *cause = m->causes - 1;
    int result = 0;

    for (size_t i = 0; i < m->item_count && !result; i++) {
        const struct item *item = &m->items[i], *before = i ? item - 1 : NULL;
        struct why_process *process = &m->processes[item->process];

        if (!before || before->process != item->process || before->cause != item->cause) {
            *++cause = (struct why_cause){.cause = item->cause, .parts = part + 1};
            process->causes = process->causes ? process->causes : cause;
            process->cause_count++;
        }
        if (!before || !is_same(before, item)) {
            part++;
            cause->part_count++;
        }
        result = add_item(m, item, part, &m->who[i]);
        cause->ns += item->row->ns;
        process->idle_ns += offcpu_is_idle(item->row) ? item->row->ns : 0;
    }
    return result;
}

/* ---- by whom --------------------------------------------------------------------- */

static int add_tally(struct figures *m, const struct tally *more)
{
    uint64_t key = table_mix(table_mix(more->kind * 256 + more->cause, more->process), more->by);
    const struct table_slot *slot = NULL;

    while ((slot = table_next(&m->by_tally, key, slot))) {
        struct tally *at = &m->tallies[slot->number - 1];

        if (at->kind == more->kind && at->cause == more->cause && at->process == more->process &&
            at->by == more->by) {
            at->ns += more->ns;
            at->count += more->count;
            return 0;
        }
    }
    if (array_add(m->tallies, m->tally_count, m->tally_room, *more))
        return -ENOMEM;
    return table_put_number(&m->by_tally, key, m->tally_count);
}

static bool is_full(struct figures *m)
{
    return m->pieces++ > PIECES_MOST || m->tally_count > EDGES_MOST;
}

/* Divides a thread's ready time among those that ran on the processor which it then got. */
static int divide(struct figures *m, const struct stretch *s, uint64_t since)
{
    const struct ran *ran = &m->ran[s->cpu];
    struct tally tally = {.kind = PRCB_EDGE_BEHIND, .process = m->process_of[s->thread]};
    uint64_t known = 0;
    int result = 0;

    for (size_t i = 0; i < RUNS_KEPT && i < ran->count && !result && !is_full(m); i++) {
        const struct run *run = &ran->runs[(ran->count - 1 - i) % RUNS_KEPT];
        uint64_t from = run->start_ns > since ? run->start_ns : since;
        uint64_t to = run->end_ns < s->start_ns ? run->end_ns : s->start_ns;

        if (run->end_ns <= since)
            break;
        tally.ns = to > from ? to - from : 0;
        tally.by = run->thread;
        tally.count = 1;
        known += tally.ns;
        result = tally.ns ? add_tally(m, &tally) : 0;
    }
    tally.by = SIZE_MAX;
    tally.ns = s->start_ns - since > known ? s->start_ns - since - known : 0;
    return result || !tally.ns ? result : add_tally(m, &tally);
}

static int add_run(struct figures *m, const struct stretch *s)
{
    uint64_t since = m->ready_since[s->thread];
    struct ran *ran = s->cpu < STRETCH_CPUS ? &m->ran[s->cpu] : NULL;
    int result = 0;

    m->ready_since[s->thread] = UINT64_MAX;
    if (!ran)
        return 0;
    if (since < s->start_ns)
        result = divide(m, s, since);
    if (!ran->runs)
        ran->runs = calloc(RUNS_KEPT, sizeof(*ran->runs));
    if (!ran->runs)
        return -ENOMEM;
    ran->runs[ran->count++ % RUNS_KEPT] = (struct run){s->start_ns, s->end_ns, s->thread};
    return result;
}

/* What a wait was for, as far as who ended it tells. */
static bool is_for_process(uint32_t cause)
{
    return cause == PRCB_CAUSE_PIPE || cause_traits(cause)->class == CAUSE_CLASS_CHILD;
}

static int add_woken(struct figures *m, const struct tally *woken)
{
    size_t thread = woken->by == SIZE_MAX ? SIZE_MAX : m->recording->wakers[woken->by].thread;
    struct tally of_process = *woken;
    int result = add_tally(m, woken);

    if (result || thread == SIZE_MAX || !is_for_process(woken->cause))
        return result;
    of_process.kind = EDGE_OF_PROCESS;
    of_process.by = m->process_of[thread];
    return of_process.by == of_process.process ? 0 : add_tally(m, &of_process);
}

static int add_stretch(const struct stretch *s, void *ctx)
{
    struct figures *m = ctx;
    const struct tally woken = {.kind = PRCB_EDGE_WOKEN_BY,
                                .cause = cause_by_name(s->cause),
                                .process = m->process_of[s->thread],
                                .by = s->waker,
                                .ns = s->end_ns - s->start_ns,
                                .count = 1};

    if (s->kind == STRETCH_RUNNING)
        return add_run(m, s);
    if (s->kind == STRETCH_WAITING)
        return add_woken(m, &woken);
    if (s->start_ns < m->ready_since[s->thread])
        m->ready_since[s->thread] = s->start_ns;
    return 0;
}

static void name_thread(struct prcb_edge *edge, const struct recorded_thread *thread)
{
    edge->by = PRCB_BY_THREAD;
    edge->tid = (pid_t)thread->tid;
    edge->pid = (pid_t)thread->pid;
    snprintf(edge->comm, sizeof(edge->comm), "%s", thread->name);
}

static struct prcb_edge edge_of(const struct recording *r, const struct tally *tally)
{
    struct prcb_edge edge = {.kind = tally->kind,
                             .cause = tally->cause,
                             .by = PRCB_BY_REST,
                             .ns = tally->ns,
                             .count = tally->count};
    size_t thread = tally->by;

    if (tally->kind == PRCB_EDGE_WOKEN_BY && tally->by != SIZE_MAX)
        thread = r->wakers[tally->by].thread;
    if (thread != SIZE_MAX)
        name_thread(&edge, &r->threads[thread]);
    return edge;
}

static int make_whom(struct figures *m, struct prcb_error *err)
{
    const struct recording *r = m->recording;
    int result = 0;

    m->ready_since = malloc((r->thread_count + 1) * sizeof(*m->ready_since));
    if (!m->ready_since || whom_open(&m->whom))
        return -ENOMEM;
    memset(m->ready_since, 0xff, (r->thread_count + 1) * sizeof(*m->ready_since));
    result = stretches_walk(r, add_stretch, m, err);
    for (size_t i = 0; i < m->tally_count && !result; i++) {
        const struct prcb_edge edge = edge_of(r, &m->tallies[i]);

        if (edge.kind != EDGE_OF_PROCESS)
            result = whom_add(m->whom, (uint64_t)m->processes[m->tallies[i].process].pid, &edge);
    }
    return result;
}

/* ---- waits for other processes ----------------------------------------------------- */

/* Finds of each cause the other process that ended most of its waits. */
static void find_most(const struct figures *m, const struct tally **most)
{
    for (size_t i = 0; i < m->tally_count; i++) {
        const struct tally *at = &m->tallies[i];
        const struct why_process *process = &m->processes[at->process];

        for (size_t k = 0; at->kind == EDGE_OF_PROCESS && k < process->cause_count; k++) {
            const struct tally **of = &most[&process->causes[k] - m->causes];

            if (process->causes[k].cause == at->cause && (!*of || at->ns > (*of)->ns))
                *of = at;
        }
    }
}

static uint32_t object_of(struct figures *m, size_t process, bool pipe)
{
    const struct why_process *of = &m->processes[process];
    struct other *other = &m->others[2 * process + pipe];

    snprintf(other->name, sizeof(other->name), "%s%.16s%s", pipe ? "a pipe of " : "", of->comm,
             of->ended ? " and others" : "");
    other->object = (struct object){.kind = pipe ? OBJECT_PIPE : OBJECT_PROCESS,
                                    .name = other->name,
                                    .tid = of->pid,
                                    .other = of->pid,
                                    .file = -1};
    return (uint32_t)(2 * process + pipe + 1);
}

static const struct object *object_at(const void *ctx, uint32_t number)
{
    return &((const struct figures *)ctx)->others[number - 1].object;
}

/* Who ended half of the waits of a cause, or more, is what these were for. */
static int find_others(struct figures *m)
{
    const struct tally **most = calloc(m->item_count + 1, sizeof(*most));

    m->others = calloc(2 * m->count + 2, sizeof(*m->others));
    if (!m->others || !most) {
        free(most);
        return -ENOMEM;
    }
    find_most(m, most);
    for (size_t i = 0; i < m->item_count; i++) {
        const struct why_cause *cause = &m->causes[i];
        uint32_t object = 0;

        if (most[i] && most[i]->ns >= cause->ns / 2)
            object = object_of(m, most[i]->by, cause->cause == PRCB_CAUSE_PIPE);
        for (size_t k = 0; k < cause->part_count; k++)
            cause->parts[k].wait.object = object;
    }
    free(most);
    return 0;
}

/* ---- all of it ------------------------------------------------------------------- */

/* Says in which function samples were most, or in which file, where that has no names; "": they
 * were everywhere. */
static char *where_it_ran(const struct report *report)
{
    const struct report_function *most = report->function_count ? report->functions : NULL;
    const char *slash = most ? strrchr(most->file, '/') : NULL, *name = NULL;
    char *ret = NULL;
    size_t size;
    FILE *out = open_memstream(&ret, &size);

    if (!out)
        return NULL;
    if (most && most->self >= report->weight / 10)
        name = strcmp(most->name, "[unknown]") ? most->name : slash ? slash + 1 : most->file;
    if (name && *name && report->weight) {
        fputs("; ", out);
        verdict_put_share(out, most->self, report->weight);
        fputs(" of the samples are in ", out);
        verdict_put_name(out, name);
    }
    return fclose(out) ? NULL : ret;
}

static void sum_processors(const struct report *report, struct around *ret)
{
    for (size_t i = 0; i < report->processor_count; i++) {
        const int64_t *parts = report->processors[i].parts;

        for (int k = 0; k < PROCESSOR_PARTS; k++)
            ret->processors_ns += parts[k] > 0 ? (uint64_t)parts[k] : 0;
        if (parts[PROCESSOR_steal_ns] > 0)
            ret->stolen_ns += (uint64_t)parts[PROCESSOR_steal_ns];
    }
}

static int say(struct figures *m, struct verdict *ret)
{
    const struct why_report report = {m->processes, m->count};
    struct around around = {.limit = 0};
    char *ran_in = where_it_ran(m->report);
    const struct verdict_figures figures = {.report = &report,
                                            .folded = folded,
                                            .folded_ctx = m,
                                            .object = object_at,
                                            .ctx = m,
                                            .whom = m->whom,
                                            .around = &around,
                                            .ran_in = ran_in ? ran_in : ""};
    int result;

    sum_processors(m->report, &around);
    result = verdict_make(&figures, ret);
    free(ran_in);
    return result;
}

static void end(struct figures *m)
{
    for (size_t i = 0; m->parts && i < m->item_count; i++)
        free((void *)m->parts[i].stack.frames);
    for (size_t i = 0; i < STRETCH_CPUS; i++)
        free(m->ran[i].runs);
    free(m->processes);
    free(m->process_of);
    free(m->items);
    free(m->parts);
    free(m->causes);
    free(m->who);
    free(m->others);
    free(m->ready_since);
    free(m->tallies);
    table_free(&m->by_tally);
    table_free(&m->by_pid);
    whom_close(m->whom);
    free(m);
}

static int make(struct figures *m, struct offcpu *room, struct verdict *ret)
{
    const struct offcpu *offcpu = &m->report->offcpu;
    struct prcb_error err;
    int result = find_processes(m);

    result = result ? result : fold_ended(m);
    if (!result && !m->recording->has_wait_stacks) {
        result = offcpu_make(m->recording, room, &err);
        offcpu = room;
    }
    result = result ? result : take_items(m, offcpu);
    result = result ? result : make_parts(m);
    result = result ? result : make_whom(m, &err);
    result = result ? result : find_others(m);
    result = result ? result : sum_threads(m);
    return result ? result : say(m, ret);
}

int report_verdict_make(const struct report *report, struct verdict **ret)
{
    struct figures *m = calloc(1, sizeof(*m));
    struct verdict *verdict = calloc(1, sizeof(*verdict));
    struct offcpu room = {.count = 0};
    int result = m && verdict ? 0 : -ENOMEM;

    if (!result && report->has_switches) {
        m->report = report;
        m->recording = report->recording;
        result = make(m, &room, verdict);
    }
    offcpu_free(&room);
    if (m)
        end(m);
    if (result)
        free(verdict);
    else
        *ret = verdict;
    return result;
}

void report_verdict_free(struct verdict *verdict)
{
    if (verdict)
        verdict_free(verdict);
    free(verdict);
}

void report_verdict_print(const struct verdict *verdict, size_t columns, FILE *out)
{
    for (size_t i = 0; verdict && i < verdict->count; i++)
        verdict_write_sentence(out, "", verdict->lines[i].text, columns);
    if (verdict && verdict->count)
        fputc('\n', out);
}

json_object *report_verdict_json(struct json_doc *b, const struct verdict *verdict)
{
    return verdict ? verdict_json(b, verdict) : NULL;
}

#else

int report_verdict_make(const struct report *report, struct verdict **ret)
{
    (void)report;
    *ret = NULL;
    return 0;
}

void report_verdict_free(struct verdict *verdict)
{
    (void)verdict;
}

void report_verdict_print(const struct verdict *verdict, size_t columns, FILE *out)
{
    (void)verdict;
    (void)columns;
    (void)out;
}

json_object *report_verdict_json(struct json_doc *b, const struct verdict *verdict)
{
    (void)b;
    (void)verdict;
    return NULL;
}

#endif
