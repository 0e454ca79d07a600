/* SPDX-License-Identifier: BSD-2-Clause */
#include "top_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sqlite3.h>

#include "array.h"
#include "cause.h"
#include "error.h"
#include "facts.h"
#include "recording.h"
#include "schema.h"
#include "stretches.h"
#include "wide.h"
#include "writer.h"

#define FULL_EACH    60         /* once in this many intervals all threads' states are written */
#define ENTRIES_MOST (4u << 20) /* for a recording of switches; 40 bytes each */
#define SPAN_MOST    200000     /* intervals that switches are made into */

/* ---- writing -------------------------------------------------------------------------------- */

enum statement { INTERVAL, PART_OF, WAIT_OF, PROCESS, STATEMENTS };

/* clang-format off */
#define PART(name, ...) ", " #name " INTEGER"
static const char schema[] = RECORD_HISTORY
#include "processor_figures.def"
    ")";
#define PART(name, ...) ",?"
static const char *const statements[STATEMENTS] = {
    [INTERVAL] = "INSERT INTO intervals VALUES(?,?,?,?,?,?,?,?,?,?"
#include "processor_figures.def"
        ")",
    [PART_OF] = "INSERT INTO interval_threads VALUES(?,?,?,?,?,?,?,?,?,?)",
    [WAIT_OF] = "INSERT INTO interval_waits VALUES(?,?,?,?,?)",
    [PROCESS] = "INSERT INTO processes VALUES(?,?,?,?,?)",
};
/* clang-format on */

struct written { /* of a thread's place in the model */
    uint64_t key;
    int64_t id;
    bool ended;
    char comm[16];
};

struct top_writer {
    struct writer *writer;
    sqlite3_stmt *statements[STATEMENTS];
    struct written *threads;
    char **commands; /* of processes, as they were written */
    uint32_t thread_room, process_room;
    int64_t last_id, intervals, parts, waits;
};

static const char *const state_names[] = {[TOP_UNKNOWN] = NULL,
                                          [TOP_RUN] = "running",
                                          [TOP_READY] = "ready",
                                          [TOP_WAIT] = "waiting",
                                          [TOP_ENDED] = "ended"};

int top_writer_open(const char *path, struct top_writer **ret, struct prcb_error *err)
{
    struct top_writer *w = calloc(1, sizeof(*w));
    int result = w ? writer_create(path, &w->writer, err) : -ENOMEM;
    sqlite3 *db;

    if (result) {
        free(w);
        return result;
    }
    db = writer_handle(w->writer);
    if (sqlite3_exec(db, schema, NULL, NULL, NULL) != SQLITE_OK)
        result = -EIO;
    for (int i = 0; i < STATEMENTS && !result; i++) {
        if (sqlite3_prepare_v3(db, statements[i], -1, SQLITE_PREPARE_PERSISTENT, &w->statements[i],
                               NULL) != SQLITE_OK)
            result = -EIO;
    }
    if (result)
        prcb_fail(err, result, "%s: cannot be written: %s", path, sqlite3_errmsg(db));
    if (!result)
        result = writer_fact(w->writer, "format_version", "%d", RECORD_VERSION);
    if (!result)
        result = writer_fact(w->writer, "prcb_version", "%s", prcb_version());
    if (!result)
        result = facts_write_machine(w->writer);
    if (!result)
        result = facts_write_clock(w->writer, "started");
    if (!result)
        result = writer_fact(w->writer, "switch_source", "none");
    if (result) {
        top_writer_close(w, NULL);
        return result;
    }
    *ret = w;
    return 0;
}

int top_writer_close(struct top_writer *w, struct prcb_error *err)
{
    int result;

    if (!w)
        return 0;
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(w->statements[i]);
    for (uint32_t i = 0; i < w->process_room; i++)
        free(w->commands[i]);
    free(w->commands);
    free(w->threads);
    if (w->intervals)
        writer_fact(w->writer, "complete", "1");
    result = writer_close(w->writer, err);
    free(w);
    return result;
}

uint64_t top_writer_bytes(const struct top_writer *w, bool exact)
{
    if (exact)
        writer_checkpoint(w->writer);
    return writer_bytes(w->writer);
}

/* Writes the numbers of a row, by place; texts are bound before. */
static int put(struct top_writer *w, enum statement number, const int64_t *values, int count,
               int first)
{
    sqlite3_stmt *statement = w->statements[number];
    int step;

    for (int i = 0; i < count; i++)
        sqlite3_bind_int64(statement, first + i, values[i]);
    step = sqlite3_step(statement);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return step == SQLITE_DONE ? 0 : -EIO;
}

static int make_room(struct top_writer *w, const struct top_model *m)
{
    if (m->thread_count && array_cover(w->threads, w->thread_room, m->thread_count - 1))
        return -ENOMEM;
    return m->process_count ? array_cover(w->commands, w->process_room, m->process_count - 1) : 0;
}

/* Writes a process's row when what it executes is known, and again when that changes. */
static int write_process(struct top_writer *w, const struct top_model *m, uint32_t index,
                         uint64_t time_ns)
{
    const struct top_process *process = &m->processes[index];
    sqlite3_stmt *statement = w->statements[PROCESS];
    const int64_t values[] = {process->pid, (int64_t)time_ns};
    const char *command = process->command ? process->command : "";
    char mark[32];

    /* The place may belong to another process by now. */
    snprintf(mark, sizeof(mark), "%d ", (int)process->pid);
    if (w->commands[index] && !strncmp(w->commands[index], mark, strlen(mark)) &&
        !strcmp(w->commands[index] + strlen(mark), command))
        return 0;
    free(w->commands[index]);
    if (asprintf(&w->commands[index], "%s%s", mark, command) < 0) {
        w->commands[index] = NULL;
        return -ENOMEM;
    }
    if (process->command)
        sqlite3_bind_text(statement, 3, process->command, -1, SQLITE_STATIC);
    if (process->cgroup)
        sqlite3_bind_text(statement, 4, process->cgroup, -1, SQLITE_STATIC);
    if (process->user)
        sqlite3_bind_text(statement, 5, process->user, -1, SQLITE_STATIC);
    return put(w, PROCESS, values, 2, 1);
}

static int write_thread(struct top_writer *w, const struct top_model *m, uint32_t index,
                        uint64_t time_ns, int64_t *ret)
{
    const struct top_thread *thread = &m->threads[index];
    struct written *written = &w->threads[index];
    int result = 0;

    if (written->key != thread->key) {
        *written = (struct written){.key = thread->key, .id = ++w->last_id};
        memcpy(written->comm, thread->comm, sizeof(written->comm));
        result = writer_thread(w->writer, written->id, thread->pid, thread->tid, 0, thread->comm,
                               thread->start_ns, NULL);
    } else if (strcmp(written->comm, thread->comm)) {
        memcpy(written->comm, thread->comm, sizeof(written->comm));
        result = writer_thread_name(w->writer, written->id, thread->comm);
    }
    if (!result && thread->end_ns && !written->ended) {
        written->ended = true;
        result = writer_thread_end(w->writer, written->id, thread->end_ns);
    }
    *ret = written->id;
    return result ? result : write_process(w, m, thread->process, time_ns);
}

/* Writes a thread's part; if delta is NULL, only what the thread is in. */
static int write_part(struct top_writer *w, struct top_model *m, const struct top_frame *frame,
                      uint32_t index, const struct top_delta *delta)
{
    sqlite3_stmt *statement = w->statements[PART_OF];
    struct top_now now = delta ? delta->now : m->threads[index].shown;
    const struct prcb_cause_info *info = prcb_cause_info(now.cause);
    int64_t id;
    int result = write_thread(w, m, index, frame->end_ns, &id);

    if (result)
        return result;
    if (state_names[now.state])
        sqlite3_bind_text(statement, 3, state_names[now.state], -1, SQLITE_STATIC);
    if (info)
        sqlite3_bind_text(statement, 4, info->name, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 5, (int64_t)now.since_ns);
    if (delta) {
        const int64_t values[] = {(int64_t)delta->wall_ns, (int64_t)delta->run_ns,
                                  (int64_t)delta->ready_ns, (int64_t)delta->wait_ns,
                                  delta->switches};

        for (int i = 0; i < 5; i++)
            sqlite3_bind_int64(statement, 6 + i, values[i]);
    }
    w->parts++;
    result = put(w, PART_OF, (const int64_t[]){w->intervals, id}, 2, 1);
    for (uint32_t i = 0; delta && i < delta->part_count && !result; i++) {
        const struct top_part *part = &frame->parts[delta->part_at + i];
        const int64_t values[] = {(int64_t)part->ns, part->count};

        info = prcb_cause_info(part->cause);
        sqlite3_bind_int64(w->statements[WAIT_OF], 1, w->intervals);
        sqlite3_bind_int64(w->statements[WAIT_OF], 2, id);
        if (info)
            sqlite3_bind_text(w->statements[WAIT_OF], 3, info->name, -1, SQLITE_STATIC);
        w->waits++;
        result = put(w, WAIT_OF, values, 2, 4);
    }
    return result;
}

static int write_interval(struct top_writer *w, const struct top_frame *frame, int64_t first_part,
                          int64_t first_wait)
{
    int64_t values[10 + PROCESSOR_PARTS] = {w->intervals,
                                            (int64_t)frame->end_ns,
                                            (int64_t)frame->wall_ns,
                                            frame->clock_ns,
                                            (int64_t)frame->present,
                                            first_part,
                                            first_wait,
                                            frame->processors.known ? frame->processors.online : 0,
                                            frame->processors.exact,
                                            (int64_t)frame->processors.switches};

    for (int i = 0; i < PROCESSOR_PARTS; i++)
        values[10 + i] = (int64_t)frame->processors.parts[i];
    return put(w, INTERVAL, values, 10 + PROCESSOR_PARTS, 1);
}

static int write_frame(struct top_writer *w, struct top_model *m, uint32_t index, bool full)
{
    struct top_frame *frame = top_model_frame(m, index);
    int64_t first_part = w->parts + 1, first_wait = w->waits + 1;
    int result = 0;

    for (uint32_t i = 0, at = 0; i < m->thread_count && !result; i++) {
        const struct top_delta *delta = NULL;

        while (at < frame->count && frame->deltas[at].thread < i)
            at++;
        if (at < frame->count && frame->deltas[at].thread == i)
            delta = &frame->deltas[at];
        if (delta || (full && top_thread_lived(&m->threads[i], frame)))
            result = write_part(w, m, frame, i, delta);
    }
    return result ? result : write_interval(w, frame, first_part, first_wait);
}

int top_writer_add(struct top_writer *w, struct top_model *m, uint32_t index,
                   struct prcb_error *err)
{
    const struct top_frame *frame = top_model_frame(m, index);
    bool full = w->intervals % FULL_EACH == 0;
    int result = make_room(w, m);

    if (full)
        top_model_show(m, index);
    w->intervals++;
    if (!result && w->intervals == 1)
        result = writer_fact(w->writer, "start_ns", "%" PRIu64, frame->end_ns - frame->wall_ns);
    if (!result)
        result = writer_fact(w->writer, "end_ns", "%" PRIu64, frame->end_ns); /* begins */
    if (!result)
        result = write_frame(w, m, index, full);
    if (!result)
        result = writer_commit(w->writer);
    if (!result)
        return 0;
    if (writer_error(w->writer)->code) {
        if (err)
            *err = *writer_error(w->writer);
        return result;
    }
    return prcb_fail(err, result, "the history cannot be written: %s",
                     sqlite3_errmsg(writer_handle(w->writer)));
}

/* ---- reading --------------------------------------------------------------------------------- */

struct place { /* of an interval in the file */
    struct top_frame frame;
    int64_t id, first_part, first_wait;
    int64_t cpu_seen; /* of switches: the last processor that has a part in it, plus 1 */
};

struct top_reader {
    struct recording recording;
    char *host;
    uint64_t interval_ns;
    struct place *places;
    uint32_t count, room;
    bool of_switches;
    uint64_t *keys; /* by recorded thread: the caller's, 0: none; NULL: of none */
    /* While intervals are loaded: */
    struct top_model *model;
    struct top_delta *deltas; /* of one interval, by recorded thread */
    struct top_part *parts;
    uint32_t delta_count, part_count, delta_room, part_room;
    int64_t part_thread;
    bool first; /* interval of a window */
    /* While switches are made into intervals: */
    struct entry *entries;
    uint32_t entry_count;
    struct totals {
        int64_t cpu; /* -1: none yet */
        uint64_t time_ns, parts[PROCESSOR_PARTS];
    } totals; /* of a processor, as of the last row */
};

static uint8_t state_of(const char *name)
{
    for (uint8_t i = TOP_RUN; name && i <= TOP_ENDED; i++) {
        if (!strcmp(state_names[i], name))
            return i;
    }
    return TOP_UNKNOWN;
}

static uint64_t number_at(sqlite3_stmt *row, int column)
{
    int64_t value = sqlite3_column_int64(row, column);

    return value > 0 ? (uint64_t)value : 0;
}

static int add_place(sqlite3_stmt *row, void *ctx)
{
    struct top_reader *r = ctx;
    struct place *place;

    if (array_reserve(r->places, r->count, r->room, 1))
        return -ENOMEM;
    place = &r->places[r->count];
    *place = (struct place){
        .id = sqlite3_column_int64(row, 0),
        .first_part = sqlite3_column_int64(row, 5),
        .first_wait = sqlite3_column_int64(row, 6),
        .frame = {.end_ns = number_at(row, 1),
                  .wall_ns = number_at(row, 2),
                  .clock_ns = sqlite3_column_int64(row, 3),
                  .present = (uint64_t)sqlite3_column_int64(row, 4),
                  .processors = {.known = sqlite3_column_int64(row, 7) > 0,
                                 .online = (uint32_t)number_at(row, 7),
                                 .exact = sqlite3_column_int64(row, 8),
                                 .switches = number_at(row, 9)}},
    };
    for (int i = 0; i < PROCESSOR_PARTS; i++)
        place->frame.processors.parts[i] = number_at(row, 10 + i);
    /* If time goes back or intervals overlap, the rest of the file is not believed. */
    if (!place->frame.wall_ns || place->frame.wall_ns > place->frame.end_ns ||
        (r->count &&
         (place->frame.end_ns < place[-1].frame.end_ns + place->frame.wall_ns / 2 ||
          place->first_part < place[-1].first_part || place->first_wait < place[-1].first_wait)))
        return -EBADMSG;
    r->count++;
    return 0;
}

static int thread_of(struct top_reader *r, int64_t id, uint32_t *ret)
{
    size_t at = recording_thread(&r->recording, id);
    const struct recorded_thread *thread;
    int result;

    if (at == SIZE_MAX)
        return -EBADMSG;
    thread = &r->recording.threads[at];
    result = top_model_thread(r->model, r->keys && r->keys[at] ? r->keys[at] : (uint64_t)at + 1,
                              (pid_t)thread->pid, (pid_t)thread->tid, thread->name,
                              thread->start_ns, ret);
    if (!result)
        r->model->threads[*ret].end_ns = thread->end_ns;
    return result;
}

/* Adds a thread's part of an interval; one without times says what it is in. */
static int add_part(sqlite3_stmt *row, void *ctx)
{
    struct top_reader *r = ctx;
    struct top_delta delta = {.wall_ns = number_at(row, 4),
                              .run_ns = number_at(row, 5),
                              .ready_ns = number_at(row, 6),
                              .wait_ns = number_at(row, 7),
                              .switches = (uint32_t)number_at(row, 8)};
    int result = thread_of(r, sqlite3_column_int64(row, 0), &delta.thread);

    if (result)
        return result;
    delta.now = (struct top_now){
        .state = state_of((const char *)sqlite3_column_text(row, 1)),
        .cause = (uint8_t)cause_by_name((const char *)sqlite3_column_text(row, 2)),
        .since_ns = number_at(row, 3),
    };
    if (sqlite3_column_type(row, 4) == SQLITE_NULL) {
        if (r->first)
            r->model->threads[delta.thread].base = delta.now;
        return 0;
    }
    return array_add(r->deltas, r->delta_count, r->delta_room, delta);
}

/* Waits stand in the order of their threads' parts: each finds its thread at or behind the last. */
static int add_wait(sqlite3_stmt *row, void *ctx)
{
    struct top_reader *r = ctx;
    uint32_t thread, at;
    int result = thread_of(r, sqlite3_column_int64(row, 0), &thread);

    if (result)
        return result;
    for (at = (uint32_t)r->part_thread; at < r->delta_count && r->deltas[at].thread != thread;)
        at++;
    if (at == r->delta_count || r->deltas[at].part_count >= PRCB_CAUSE_MAX)
        return -EBADMSG;
    if (array_reserve(r->parts, r->part_count, r->part_room, 1))
        return -ENOMEM;
    if (!r->deltas[at].part_count)
        r->deltas[at].part_at = r->part_count;
    r->deltas[at].part_count++;
    r->part_thread = at;
    r->parts[r->part_count++] =
        (struct top_part){cause_by_name((const char *)sqlite3_column_text(row, 1)),
                          (uint32_t)number_at(row, 3), number_at(row, 2)};
    return 0;
}

static int load_interval(struct top_reader *r, uint32_t index, struct prcb_error *err)
{
    const struct place *place = &r->places[index];
    bool last = index + 1 == r->count;
    int64_t end_part = last ? INT64_MAX : place[1].first_part;
    int64_t end_wait = last ? INT64_MAX : place[1].first_wait;
    char sql[512];
    int result;

    r->delta_count = r->part_count = 0;
    r->part_thread = 0;
    snprintf(sql, sizeof(sql),
             "SELECT thread, state, cause, since_ns, wall_ns, run_ns, ready_ns, wait_ns, switches "
             "FROM interval_threads WHERE rowid >= %" PRId64 " AND rowid < %" PRId64
             " AND interval = %" PRId64,
             place->first_part, end_part, place->id);
    result = recording_query(&r->recording, sql, add_part, r, err);
    snprintf(sql, sizeof(sql),
             "SELECT thread, cause, ns, count FROM interval_waits WHERE rowid >= %" PRId64
             " AND rowid < %" PRId64 " AND interval = %" PRId64,
             place->first_wait, end_wait, place->id);
    if (!result)
        result = recording_query(&r->recording, sql, add_wait, r, err);
    top_model_begin(r->model);
    for (uint32_t i = 0; i < r->delta_count && !result; i++)
        result = top_model_add(r->model, &r->deltas[i], r->parts + r->deltas[i].part_at);
    return result ? result : top_model_end(r->model, &place->frame);
}

static int name_process(sqlite3_stmt *row, void *ctx)
{
    struct top_reader *r = ctx;
    uint32_t at = top_model_find_process(r->model, (pid_t)sqlite3_column_int(row, 0));
    struct top_process *process = at == TOP_NONE ? NULL : &r->model->processes[at];

    if (!process)
        return 0;
    if (top_model_set_text(&process->command, (const char *)sqlite3_column_text(row, 1)) ||
        top_model_set_cgroup(process, (const char *)sqlite3_column_text(row, 2)) ||
        top_model_set_text(&process->user, (const char *)sqlite3_column_text(row, 3)))
        return -ENOMEM;
    return 0;
}

/* ---- switches into intervals --------------------------------------------------------------- */

/* The time of a thread in one interval, or what it is in at its end. */
struct entry {
    uint32_t interval, thread; /* thread: index of the recording's */
    uint16_t cause;            /* TOP_E_... beyond the causes */
    uint16_t state;            /* of an END entry: enum top_state */
    uint32_t count;
    uint64_t ns; /* of an END entry: since when */
};
enum { ENTRY_RUN = PRCB_CAUSE_MAX, ENTRY_READY, ENTRY_END };

static int by_interval(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;

    if (a->interval != b->interval)
        return a->interval < b->interval ? -1 : 1;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return (int)a->cause - (int)b->cause;
}

static void coalesce(struct top_reader *r)
{
    uint32_t count = 0;

    array_sort(r->entries, r->entry_count, by_interval);
    for (uint32_t i = 0; i < r->entry_count; i++) {
        struct entry *last = count ? &r->entries[count - 1] : NULL;

        if (last && !by_interval(last, &r->entries[i])) {
            if (last->cause == ENTRY_END)
                *last = r->entries[i];
            last->ns += last->cause == ENTRY_END ? 0 : r->entries[i].ns;
            last->count += last->cause == ENTRY_END ? 0 : r->entries[i].count;
        } else {
            r->entries[count++] = r->entries[i];
        }
    }
    r->entry_count = count;
}

static int add_entry(struct top_reader *r, const struct entry *entry)
{
    if (r->entry_count == ENTRIES_MOST)
        coalesce(r);
    if (r->entry_count > ENTRIES_MOST - ENTRIES_MOST / 8)
        return -EFBIG;
    r->entries[r->entry_count++] = *entry;
    return 0;
}

/* A stretch adds time to the interval in which it begins, to that in which it ends and, if the
 * thread ran, to those between; a wait that fills an interval needs no entry, because its
 * beginning describes it. */
static int take_stretch(const struct stretch *stretch, void *ctx)
{
    struct top_reader *r = ctx;
    uint64_t start = r->recording.start_ns,
             at = stretch->start_ns < start ? start : stretch->start_ns;
    uint32_t first = (uint32_t)((at - start) / r->interval_ns);
    uint32_t last =
        (uint32_t)((stretch->end_ns - start - (stretch->end_ns > start)) / r->interval_ns);
    struct entry entry = {.thread = (uint32_t)stretch->thread};
    bool waits = stretch->kind == STRETCH_WAITING;
    int result = 0;

    if (stretch->end_ns <= start)
        return 0;
    entry.cause = (uint16_t)(waits                              ? cause_by_name(stretch->cause)
                             : stretch->kind == STRETCH_RUNNING ? ENTRY_RUN
                                                                : ENTRY_READY);
    for (uint32_t i = first; i <= last && i < r->count && !result; i++) {
        uint64_t from = start + i * r->interval_ns, to = from + r->interval_ns;
        uint64_t begin = at > from ? at : from, end = stretch->end_ns < to ? stretch->end_ns : to;

        if (waits && i != first && i != last)
            continue;
        entry.interval = i;
        entry.ns = end > begin ? end - begin : 0;
        entry.count = waits ? i == first : stretch->kind == STRETCH_RUNNING && i == last;
        result = add_entry(r, &entry);
        if (!result && (i != last || stretch->open))
            result = add_entry(r, &(struct entry){.interval = i,
                                                  .thread = entry.thread,
                                                  .cause = ENTRY_END,
                                                  .count = waits ? entry.cause : 0,
                                                  .state = waits ? TOP_WAIT
                                                           : stretch->kind == STRETCH_RUNNING
                                                               ? TOP_RUN
                                                               : TOP_READY,
                                                  .ns = at});
    }
    return result;
}

/* Makes a delta of the entries of one thread in one interval. *at is the first of them, and then
 * the first behind them. */
static int load_entries(struct top_reader *r, uint32_t *at)
{
    const struct entry *first = &r->entries[*at];
    const struct recorded_thread *recorded = &r->recording.threads[first->thread];
    struct top_part parts[PRCB_CAUSE_MAX];
    struct top_delta delta = {.wall_ns = 0};
    int result = thread_of(r, recorded->id, &delta.thread);

    for (; *at < r->entry_count && r->entries[*at].interval == first->interval &&
           r->entries[*at].thread == first->thread;
         ++*at) {
        const struct entry *entry = &r->entries[*at];

        if (entry->cause == ENTRY_END) {
            delta.now = (struct top_now){(uint8_t)entry->state, (uint8_t)entry->count, entry->ns};
            continue;
        }
        delta.wall_ns += entry->ns;
        if (entry->cause == ENTRY_RUN) {
            delta.run_ns += entry->ns;
            delta.switches += entry->count;
        } else if (entry->cause == ENTRY_READY) {
            delta.ready_ns += entry->ns;
        } else {
            delta.wait_ns += entry->ns;
            if (delta.part_count < PRCB_CAUSE_MAX)
                parts[delta.part_count++] =
                    (struct top_part){entry->cause, entry->count, entry->ns};
        }
    }
    if (!delta.now.state)
        delta.now.state =
            recorded->end_ns && recorded->end_ns <= r->places[first->interval].frame.end_ns
                ? TOP_ENDED
                : TOP_UNKNOWN;
    return result ? result : top_model_add(r->model, &delta, parts);
}

static int64_t clock_fact(const struct top_reader *r, const char *name)
{
    char *text = recording_fact(&r->recording, name);
    struct tm tm = {0};
    int64_t ns = 0;

    if (text && strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm))
        ns = (int64_t)timegm(&tm) * 1000000000;
    free(text);
    return ns;
}

/* Returns the moment of the wall clock at which the recording started. That of a flight recorder
 * knows when it ended. */
static int64_t started(const struct top_reader *r)
{
    int64_t ns = clock_fact(r, "started"), ended = ns ? 0 : clock_fact(r, "ended");

    return ended ? ended - (int64_t)(r->recording.end_ns - r->recording.start_ns) : ns;
}

/* Spreads what a processor's totals grew by between two moments evenly over the intervals
 * between. */
static void spread(struct top_reader *r, const struct totals *from, const struct totals *to)
{
    uint64_t start = r->recording.start_ns, span = to->time_ns - from->time_ns;
    uint64_t first = from->time_ns > start ? (from->time_ns - start) / r->interval_ns : 0;

    for (uint64_t i = first; i < r->count; i++) {
        struct top_frame *frame = &r->places[i].frame;
        uint64_t begin = frame->end_ns - frame->wall_ns, end = frame->end_ns;

        begin = begin > from->time_ns ? begin : from->time_ns;
        end = end < to->time_ns ? end : to->time_ns;
        if (begin >= end)
            break;
        begin -= from->time_ns;
        end -= from->time_ns;
        frame->processors.known = true;
        frame->processors.online += r->places[i].cpu_seen != to->cpu + 1;
        r->places[i].cpu_seen = to->cpu + 1;
        for (int k = 0; k < PROCESSOR_PARTS; k++) {
            uint64_t grown = to->parts[k] > from->parts[k] ? to->parts[k] - from->parts[k] : 0;

            frame->processors.parts[k] +=
                wide_scale(grown, end, span) - wide_scale(grown, begin, span);
        }
    }
}

/* clang-format off */
#define PART(name, ...) ", " #name
static const char select_totals[] = "SELECT time_ns, cpu"
#include "processor_figures.def"
    " FROM processor_times WHERE cpu BETWEEN 0 AND 4095 ORDER BY cpu, time_ns";
/* clang-format on */

static int take_totals(sqlite3_stmt *row, void *ctx)
{
    struct top_reader *r = ctx;
    struct totals now = {.cpu = sqlite3_column_int64(row, 1), .time_ns = number_at(row, 0)};

    for (int i = 0; i < PROCESSOR_PARTS; i++)
        now.parts[i] = number_at(row, 2 + i);
    if (now.cpu == r->totals.cpu && now.time_ns > r->totals.time_ns)
        spread(r, &r->totals, &now);
    r->totals = now;
    return 0;
}

static int load_totals(struct top_reader *r, struct prcb_error *err)
{
    char *source = recording_fact(&r->recording, "processor_times_source");
    bool exact = source && !strcmp(source, "eBPF");

    free(source);
    for (uint32_t i = 0; i < r->count; i++)
        r->places[i].frame.processors.exact = exact;
    r->totals.cpu = -1;
    return recording_query(&r->recording, select_totals, take_totals, r, err);
}

static int make_places(struct top_reader *r, struct prcb_error *err)
{
    uint64_t span = r->recording.end_ns - r->recording.start_ns;
    uint64_t count = (span + r->interval_ns - 1) / r->interval_ns;
    int64_t clock = started(r);

    if (count > SPAN_MOST)
        return prcb_fail(err, -EFBIG,
                         "the recording is longer than %d intervals: choose longer ones (-d)",
                         SPAN_MOST);
    r->places = calloc((size_t)count + 1, sizeof(*r->places));
    r->entries = malloc(ENTRIES_MOST * sizeof(*r->entries));
    if (!r->places || !r->entries)
        return prcb_fail(err, -ENOMEM, "out of memory");
    r->count = (uint32_t)count;
    for (uint32_t i = 0; i < r->count; i++) {
        struct top_frame *frame = &r->places[i].frame;

        frame->end_ns = r->recording.start_ns + (i + 1) * r->interval_ns;
        frame->end_ns = frame->end_ns < r->recording.end_ns ? frame->end_ns : r->recording.end_ns;
        frame->wall_ns = frame->end_ns - (r->recording.start_ns + i * r->interval_ns);
        frame->clock_ns = clock + (int64_t)(frame->end_ns - r->recording.start_ns);
        frame->present = PRCB_HAS_WALL | PRCB_HAS_RUN | PRCB_HAS_READY | PRCB_HAS_WAIT |
                         PRCB_HAS_SWITCHES | PRCB_HAS_WAITS | PRCB_HAS_OPEN;
    }
    return load_totals(r, err);
}

/* Loads all intervals at once: they are in the order of their ends, and so are the entries. */
static int load_switches(struct top_reader *r, struct prcb_error *err)
{
    int result = stretches_walk(&r->recording, take_stretch, r, err);
    uint32_t at = 0;

    if (result == -EFBIG)
        prcb_fail(err, result, "the recording has too many switches to be shown at once");
    coalesce(r);
    r->model->max_frames = r->count > r->model->max_frames ? r->count : r->model->max_frames;
    for (uint32_t i = 0; i < r->count && !result; i++) {
        top_model_begin(r->model);
        while (at < r->entry_count && r->entries[at].interval == i && !result)
            result = load_entries(r, &at);
        if (!result)
            result = top_model_end(r->model, &r->places[i].frame);
    }
    free(r->entries);
    r->entries = NULL;
    return result;
}

/* ---- both --------------------------------------------------------------------------------------
 */

int top_reader_open(const char *path, uint64_t interval_ns, struct top_reader **ret,
                    struct prcb_error *err)
{
    struct top_reader *r = calloc(1, sizeof(*r));
    int result = r ? recording_open(path, &r->recording, err) : -ENOMEM;

    if (result) {
        free(r);
        return result;
    }
    r->interval_ns = interval_ns;
    r->host = recording_fact(&r->recording, "host");
    r->of_switches = !r->recording.has_history;
    if (r->of_switches && !r->recording.has_switches)
        result = prcb_fail(
            err, -EINVAL,
            "%s has neither intervals nor switches: record with prcb top -w or prcb record", path);
    else if (r->of_switches)
        result = make_places(r, err);
    else
        result = recording_query(&r->recording, "SELECT * FROM intervals ORDER BY id", add_place, r,
                                 err);
    if (!result && !r->count)
        result = prcb_fail(err, -EINVAL, "%s has no interval", path);
    if (result) {
        top_reader_close(r);
        return result;
    }
    *ret = r;
    return 0;
}

void top_reader_close(struct top_reader *r)
{
    if (!r)
        return;
    recording_close(&r->recording);
    free(r->host);
    free(r->places);
    free(r->keys);
    free(r->entries);
    free(r->deltas);
    free(r->parts);
    free(r);
}

int top_reader_set_keys(struct top_reader *r, uint64_t (*key_of)(void *ctx, pid_t tid), void *ctx)
{
    size_t count = r->recording.thread_count;

    r->keys = calloc(count + 1, sizeof(*r->keys));
    /* The last of those with a number is the one that lives. */
    for (size_t i = count; r->keys && i--;) {
        if (!r->recording.threads[i].end_ns)
            r->keys[i] = key_of(ctx, (pid_t)r->recording.threads[i].tid);
    }
    return r->keys ? 0 : -ENOMEM;
}

const char *top_reader_host(const struct top_reader *r)
{
    return r->host ? r->host : "";
}

int top_reader_load(struct top_reader *r, struct top_model *m, int64_t clock_ns, bool *ret_changed,
                    struct prcb_error *err)
{
    uint32_t want = 0, from, to;
    int result = 0;

    *ret_changed = false;
    if (r->of_switches && m->frame_count)
        return 0;
    while (want + 1 < r->count && r->places[want + 1].frame.clock_ns <= clock_ns)
        want++;
    /* A window begins where the file says what every thread is in. */
    if (m->max_frames < 4 * FULL_EACH)
        m->max_frames = 4 * FULL_EACH;
    from = want > m->max_frames / 2 ? want - m->max_frames / 2 : 0;
    from -= from % FULL_EACH;
    to = from + m->max_frames < r->count ? from + m->max_frames : r->count;
    if (!r->of_switches && m->frame_count &&
        top_model_frame(m, 0)->end_ns == r->places[from].frame.end_ns &&
        top_model_frame(m, m->frame_count - 1)->end_ns == r->places[to - 1].frame.end_ns)
        return 0;
    r->model = m;
    r->recording.patience->steps = 0; /* one more reading, as long as the file allows it */
    top_model_clear(m);
    if (r->of_switches)
        result = load_switches(r, err);
    r->first = true;
    for (; !r->of_switches && from < to && !result; from++) {
        result = load_interval(r, from, err);
        r->first = false;
    }
    if (!result && !r->of_switches)
        result = recording_query(&r->recording,
                                 "SELECT pid, command, cgroup, user FROM processes ORDER BY rowid",
                                 name_process, r, err);
    *ret_changed = !result;
    if (result == -EBADMSG)
        prcb_fail(err, result, "the recording is damaged: an interval refers to a missing row");
    return result;
}
