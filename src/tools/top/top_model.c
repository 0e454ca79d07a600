/* SPDX-License-Identifier: BSD-2-Clause */
#include "top_model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cause.h"
#include "cgroup_names.h"

#define SWEEP_FRAMES 32 /* ended threads are looked for after this many intervals were dropped */

bool top_thread_held(const struct top_thread *thread, struct top_now now)
{
    return cause_has(now.cause, CAUSE_HELD) ||
           (now.state == TOP_WAIT && thread->blocked_ns && thread->blocked_ns == now.since_ns);
}

/* ---- places ---------------------------------------------------------------- */

void top_model_init(struct top_model *m)
{
    *m = (struct top_model){
        .max_frames = 600,
        .max_bytes = 64u << 20,
        .shown = TOP_NONE,
        .free_thread = TOP_NONE,
        .free_process = TOP_NONE,
    };
}

static void free_frame(struct top_frame *frame)
{
    free(frame->deltas);
    free(frame->parts);
    memset(frame, 0, sizeof(*frame));
}

static void free_process(struct top_process *process)
{
    free(process->command);
    free(process->cgroup);
    free(process->container);
    free(process->user);
    memset(process, 0, sizeof(*process));
}

void top_model_deinit(struct top_model *m)
{
    for (uint32_t i = 0; i < m->frame_count; i++)
        free_frame(top_model_frame(m, i));
    for (uint32_t i = 0; i < m->process_count; i++)
        free_process(&m->processes[i]);
    free_frame(&m->making);
    free(m->frames);
    free(m->threads);
    free(m->processes);
    table_free(&m->thread_places);
    table_free(&m->process_places);
    memset(m, 0, sizeof(*m));
}

uint32_t top_model_find(const struct top_model *m, uint64_t key)
{
    return (uint32_t)table_find_number(&m->thread_places, key) - 1; /* 0 becomes TOP_NONE */
}

uint32_t top_model_find_process(const struct top_model *m, pid_t pid)
{
    return (uint32_t)table_find_number(&m->process_places, (uint32_t)pid) - 1;
}

int top_model_set_text(char **text, const char *value)
{
    char *copy = value ? strdup(value) : NULL;

    if (value && !copy)
        return -ENOMEM;
    free(*text);
    *text = copy;
    return 0;
}

int top_model_set_cgroup(struct top_process *process, const char *path)
{
    struct cgroup_identity identity = {.container = ""};
    char words[128];

    if (path)
        cgroup_identify(path, &identity);
    snprintf(words, sizeof(words), "container %.12s%s%s%.8s", identity.container, identity.machine,
             *identity.pod ? ", pod " : "", identity.pod);
    if (top_model_set_text(&process->container,
                           *identity.container || *identity.machine ? words : NULL))
        return -ENOMEM;
    return top_model_set_text(&process->cgroup, path);
}

/* Gets a process's place, to which one more thread refers. */
static int take_process(struct top_model *m, pid_t pid, uint32_t *ret)
{
    uint32_t at = top_model_find_process(m, pid);

    if (at == TOP_NONE) {
        at = m->free_process == TOP_NONE ? m->process_count : m->free_process;
        if (array_reserve(m->processes, m->process_count, m->process_room, 1) ||
            table_put_number(&m->process_places, (uint32_t)pid, at + 1))
            return -ENOMEM;
        if (at == m->process_count)
            m->process_count++;
        else
            m->free_process = m->processes[at].next;
        m->processes[at] = (struct top_process){.pid = pid};
    }
    m->processes[at].threads++;
    *ret = at;
    return 0;
}

static void drop_process(struct top_model *m, uint32_t at)
{
    struct top_process *process = &m->processes[at];

    if (--process->threads)
        return;
    table_remove(&m->process_places, (uint32_t)process->pid, NULL);
    free_process(process);
    process->next = m->free_process;
    m->free_process = at;
}

static void drop_thread(struct top_model *m, uint32_t at)
{
    struct top_thread *thread = &m->threads[at];

    table_remove(&m->thread_places, thread->key, NULL);
    drop_process(m, thread->process);
    *thread = (struct top_thread){.next = m->free_thread};
    m->free_thread = at;
}

int top_model_thread(struct top_model *m, uint64_t key, pid_t pid, pid_t tid, const char *comm,
                     uint64_t seen_ns, uint32_t *ret)
{
    uint32_t at = top_model_find(m, key), process;

    if (at == TOP_NONE) {
        if (take_process(m, pid, &process))
            return -ENOMEM;
        at = m->free_thread == TOP_NONE ? m->thread_count : m->free_thread;
        if (array_reserve(m->threads, m->thread_count, m->thread_room, 1) ||
            table_put_number(&m->thread_places, key, at + 1)) {
            drop_process(m, process);
            return -ENOMEM;
        }
        if (at == m->thread_count)
            m->thread_count++;
        else
            m->free_thread = m->threads[at].next;
        m->threads[at] = (struct top_thread){
            .key = key, .pid = pid, .tid = tid, .process = process, .start_ns = seen_ns};
    }
    if (strncmp(m->threads[at].comm, comm, sizeof(m->threads[at].comm) - 1)) {
        memset(m->threads[at].comm, 0, sizeof(m->threads[at].comm));
        memcpy(m->threads[at].comm, comm, strnlen(comm, sizeof(m->threads[at].comm) - 1));
    }
    *ret = at;
    return 0;
}

/* ---- intervals ------------------------------------------------------------- */

struct top_frame *top_model_frame(const struct top_model *m, uint32_t index)
{
    return &m->frames[(m->first + index) % m->frame_room];
}

static size_t frame_bytes(const struct top_frame *frame)
{
    return sizeof(*frame) + frame->count * sizeof(*frame->deltas) +
           frame->part_count * sizeof(*frame->parts);
}

static size_t model_bytes(const struct top_model *m)
{
    return m->bytes + m->thread_count * sizeof(*m->threads) +
           m->process_count * sizeof(*m->processes);
}

/* Frees the places of threads that no interval can name any more. */
static void sweep(struct top_model *m)
{
    const struct top_frame *oldest = top_model_frame(m, 0);
    uint64_t start = oldest->end_ns - oldest->wall_ns;

    m->swept = m->dropped;
    for (uint32_t i = 0; i < m->thread_count; i++) {
        if (m->threads[i].key && m->threads[i].end_ns && m->threads[i].end_ns < start)
            drop_thread(m, i);
    }
}

static void drop_oldest(struct top_model *m)
{
    struct top_frame *frame = top_model_frame(m, 0);

    for (uint32_t i = 0; i < frame->count; i++)
        m->threads[frame->deltas[i].thread].base = frame->deltas[i].now;
    m->bytes -= frame_bytes(frame);
    free_frame(frame);
    m->first = (m->first + 1) % m->frame_room;
    m->frame_count--;
    m->dropped++;
    if (m->shown != TOP_NONE)
        m->shown = m->shown ? m->shown - 1 : TOP_NONE;
    if (m->frame_count && m->dropped - m->swept >= SWEEP_FRAMES)
        sweep(m);
}

static int grow_frames(struct top_model *m)
{
    uint32_t room = m->frame_room ? 2 * m->frame_room : 64;
    struct top_frame *frames = calloc(room, sizeof(*frames));

    if (!frames)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->frame_count; i++)
        frames[i] = *top_model_frame(m, i);
    free(m->frames);
    m->frames = frames;
    m->first = 0;
    m->frame_room = room;
    return 0;
}

void top_model_begin(struct top_model *m)
{
    m->making.count = m->making.part_count = 0;
}

int top_model_add(struct top_model *m, const struct top_delta *delta, const struct top_part *parts)
{
    struct top_frame *frame = &m->making;

    if (array_reserve(frame->deltas, frame->count, m->delta_room, 1) ||
        array_reserve(frame->parts, frame->part_count, m->part_room, delta->part_count))
        return -ENOMEM;
    frame->deltas[frame->count] = *delta;
    frame->deltas[frame->count++].part_at = frame->part_count;
    array_copy(frame->parts + frame->part_count, parts, delta->part_count);
    frame->part_count += delta->part_count;
    return 0;
}

static int by_thread(const void *left, const void *right)
{
    const struct top_delta *a = left, *b = right;

    return a->thread < b->thread ? -1 : a->thread > b->thread;
}

/* Sums over all threads that had a part in the interval: those that slept through it add nothing
 * to these sums. */
static void sum_up(struct top_frame *frame)
{
    frame->run_ns = frame->ready_ns = frame->held_ns = 0;
    for (uint32_t i = 0; i < frame->count; i++) {
        frame->run_ns += frame->deltas[i].run_ns;
        frame->ready_ns += frame->deltas[i].ready_ns;
    }
    for (uint32_t i = 0; i < frame->part_count; i++)
        frame->held_ns += cause_has(frame->parts[i].cause, CAUSE_MAY_IDLE) ? 0 : frame->parts[i].ns;
}

static void *copy_of(const void *from, size_t count, size_t size)
{
    void *copy = malloc(count ? count * size : 1);

    if (copy && count)
        memcpy(copy, from, count * size);
    return copy;
}

int top_model_end(struct top_model *m, const struct top_frame *frame)
{
    struct top_frame made = *frame;

    if (m->frame_count == m->frame_room && grow_frames(m))
        return -ENOMEM;
    made.count = m->making.count;
    made.part_count = m->making.part_count;
    made.deltas = copy_of(m->making.deltas, made.count, sizeof(*made.deltas));
    made.parts = copy_of(m->making.parts, made.part_count, sizeof(*made.parts));
    if (!made.deltas || !made.parts) {
        free_frame(&made);
        return -ENOMEM;
    }
    array_sort(made.deltas, made.count, by_thread);
    sum_up(&made);
    m->frames[(m->first + m->frame_count++) % m->frame_room] = made;
    m->bytes += frame_bytes(&made);
    while (m->frame_count > 1 && (m->frame_count > m->max_frames || model_bytes(m) > m->max_bytes))
        drop_oldest(m);
    return 0;
}

void top_model_set_base(struct top_model *m)
{
    for (uint32_t i = 0; i < m->making.count; i++)
        m->threads[m->making.deltas[i].thread].base = m->making.deltas[i].now;
    top_model_begin(m);
}

void top_model_clear(struct top_model *m)
{
    while (m->frame_count)
        drop_oldest(m);
    for (uint32_t i = 0; i < m->thread_count; i++) {
        if (m->threads[i].key)
            drop_thread(m, i);
    }
    m->shown = TOP_NONE;
}

/* ---- looking ----------------------------------------------------------------- */

static void apply(struct top_model *m, const struct top_frame *frame)
{
    for (uint32_t i = 0; i < frame->count; i++)
        m->threads[frame->deltas[i].thread].shown = frame->deltas[i].now;
}

void top_model_show(struct top_model *m, uint32_t index)
{
    uint32_t from = 0;

    if (m->shown != TOP_NONE && m->shown <= index) {
        from = m->shown + 1;
    } else {
        for (uint32_t i = 0; i < m->thread_count; i++)
            m->threads[i].shown = m->threads[i].base;
    }
    for (; from <= index && from < m->frame_count; from++)
        apply(m, top_model_frame(m, from));
    m->shown = index;
}

uint32_t top_model_at(const struct top_model *m, int64_t clock_ns)
{
    uint32_t low = (uint32_t)array_front(i, m->frame_count,
                                         top_model_frame(m, (uint32_t)i)->clock_ns <= clock_ns);

    return low ? low - 1 : 0;
}

const struct top_delta *top_frame_delta(const struct top_frame *frame, uint32_t thread)
{
    const struct top_delta key = {.thread = thread};

    return array_search(&key, frame->deltas, frame->count, by_thread);
}

bool top_thread_lived(const struct top_thread *thread, const struct top_frame *frame)
{
    return thread->key && thread->start_ns <= frame->end_ns &&
           (!thread->end_ns || thread->end_ns > frame->end_ns - frame->wall_ns);
}

struct top_thread *top_model_next_unknown(struct top_model *m, uint32_t *at)
{
    const struct top_frame *last = m->frame_count ? top_model_frame(m, m->frame_count - 1) : NULL;

    if (!last || m->shown != m->frame_count - 1)
        return NULL;
    while (*at < m->thread_count) {
        struct top_thread *thread = &m->threads[(*at)++];
        struct top_now now = thread->shown;

        if (thread->key && !thread->end_ns && !thread->kernel && now.state == TOP_WAIT &&
            now.cause && now.since_ns && now.since_ns < last->end_ns - last->wall_ns &&
            thread->asked_ns != now.since_ns && !cause_has(now.cause, CAUSE_MAY_IDLE) &&
            !cause_has(now.cause, CAUSE_HELD))
            return thread;
    }
    return NULL;
}
