/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A recording as Parquet files, for many recordings in one folder: FOLDER/TABLE/RECORDING.parquet.
 * Each row begins with host and recording. Times are of the wall clock.
 */
#include "export.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "error.h"
#include "parquet.h"
#include "stretches.h"

#define COLUMNS_MOST 16
#define DEPTH_MOST   2048 /* frames of a stack; a damaged file may have any number */

#define COMMON                                                                                     \
    {"host", PARQUET_TEXT},                                                                        \
    {                                                                                              \
        "recording", PARQUET_TEXT                                                                  \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, PARQUET_TYPE_MAX                                                                     \
    }

/* A table that is written as it is; its columns come behind the common ones. */
struct plain_table {
    const char *name, *sql;
    size_t sorted;              /* column; PARQUET_UNSORTED */
    const char *without_wakers; /* the query where the file has no wakers; NULL: the same */
    struct parquet_column columns[COLUMNS_MOST];
};

static const struct plain_table plain_tables[] = {
    {"facts",
     "SELECT name, value FROM facts ORDER BY name",
     2,
     NULL,
     {COMMON, {"name", PARQUET_TEXT}, {"value", PARQUET_TEXT}, END}},
    {"threads",
     "SELECT id, pid, tid, parent_pid, name, start_ns, end_ns FROM threads ORDER BY id",
     2,
     NULL,
     {COMMON,
      {"thread", PARQUET_NUMBER},
      {"pid", PARQUET_NUMBER},
      {"tid", PARQUET_NUMBER},
      {"parent_pid", PARQUET_NUMBER},
      {"name", PARQUET_TEXT},
      {"started", PARQUET_TIME},
      {"ended", PARQUET_TIME},
      END}},
    {"samples",
     "SELECT time_ns, cpu, thread, stack, weight FROM samples ORDER BY time_ns",
     2,
     NULL,
     {COMMON,
      {"time", PARQUET_TIME},
      {"cpu", PARQUET_NUMBER},
      {"thread", PARQUET_NUMBER},
      {"stack", PARQUET_NUMBER},
      {"weight", PARQUET_NUMBER},
      END}},
    {"switches",
     "SELECT time_ns, cpu, old_thread, new_thread, state, cause, reason, ready_ns, waker, "
     "woken_ns, "
     "woken_cpu FROM switches ORDER BY time_ns",
     2,
     "SELECT time_ns, cpu, old_thread, new_thread, state, cause, reason, ready_ns, NULL, NULL, "
     "NULL "
     "FROM switches ORDER BY time_ns",
     {COMMON,
      {"time", PARQUET_TIME},
      {"cpu", PARQUET_NUMBER},
      {"old_thread", PARQUET_NUMBER},
      {"new_thread", PARQUET_NUMBER},
      {"state", PARQUET_TEXT},
      {"cause", PARQUET_TEXT},
      {"reason", PARQUET_NUMBER},
      {"ready_ns", PARQUET_NUMBER},
      {"waker", PARQUET_NUMBER},
      {"woken", PARQUET_TIME},
      {"woken_cpu", PARQUET_NUMBER},
      END}},
    {"wakers",
     "SELECT id, by, thread, pid, tid, name FROM wakers ORDER BY id",
     2,
     "SELECT 1 WHERE 0",
     {COMMON,
      {"waker", PARQUET_NUMBER},
      {"by", PARQUET_TEXT},
      {"thread", PARQUET_NUMBER},
      {"pid", PARQUET_NUMBER},
      {"tid", PARQUET_NUMBER},
      {"name", PARQUET_TEXT},
      END}},
    {"losses",
     "SELECT time_ns, cpu, what, count FROM losses ORDER BY time_ns",
     2,
     NULL,
     {COMMON,
      {"time", PARQUET_TIME},
      {"cpu", PARQUET_NUMBER},
      {"what", PARQUET_TEXT},
      {"count", PARQUET_NUMBER},
      END}},
};

/* A thread in one state; names stand in it, so that most questions need no join. */
static const struct parquet_column stretch_columns[] = {COMMON,
                                                        {"ended", PARQUET_TIME},
                                                        {"began", PARQUET_TIME},
                                                        {"ns", PARQUET_NUMBER},
                                                        {"thread", PARQUET_NUMBER},
                                                        {"pid", PARQUET_NUMBER},
                                                        {"tid", PARQUET_NUMBER},
                                                        {"process", PARQUET_TEXT},
                                                        {"name", PARQUET_TEXT},
                                                        {"state", PARQUET_TEXT},
                                                        {"cause", PARQUET_TEXT},
                                                        {"cpu", PARQUET_NUMBER},
                                                        {"stack", PARQUET_NUMBER},
                                                        {"kind", PARQUET_TEXT},
                                                        {"waker", PARQUET_NUMBER},
                                                        {"open", PARQUET_NUMBER},
                                                        {"trace_id", PARQUET_TEXT},
                                                        {"span_id", PARQUET_TEXT},
                                                        END};

static const struct parquet_column frame_columns[] = {COMMON,
                                                      {"stack", PARQUET_NUMBER},
                                                      {"depth", PARQUET_NUMBER},
                                                      {"function", PARQUET_TEXT},
                                                      {"file", PARQUET_TEXT},
                                                      {"kernel", PARQUET_NUMBER},
                                                      END};

struct exporting {
    const struct recording *recording;
    const char *folder;
    char *host;
    char id[RECORDING_ID];
    int64_t wall_ns; /* to be added to times */
    const struct parquet_column *columns;
    struct parquet *out;
    const char **processes; /* names by index of a thread */
    bool *used;             /* stacks that something refers to */
};

/* ---- files ----------------------------------------------------------------------- */

struct open_file {
    char path[PATH_MAX], hidden[PATH_MAX + 8];
    FILE *stream;
};

static int fail_at(struct prcb_error *err, const char *path)
{
    int code = -errno;

    return prcb_fail(err, code, "%s: %s", path, strerror(-code));
}

/* A file gets its name when it is complete, so that readers of the folder see whole ones. */
static int begin_file(struct exporting *e, const char *table, size_t sorted,
                      const struct parquet_column *columns, struct open_file *ret,
                      struct prcb_error *err)
{
    char folder[PATH_MAX];

    if (snprintf(folder, sizeof(folder), "%s/%s", e->folder, table) >= (int)sizeof(folder) ||
        snprintf(ret->path, sizeof(ret->path), "%s/%s.parquet", folder, e->id) >=
            (int)sizeof(ret->path))
        return prcb_fail(err, -ENAMETOOLONG, "%s: the path is too long", e->folder);
    snprintf(ret->hidden, sizeof(ret->hidden), "%s.part", ret->path);
    if (mkdir(folder, 0777) && errno != EEXIST)
        return fail_at(err, folder);
    ret->stream = fopen(ret->hidden, "we");
    if (!ret->stream)
        return fail_at(err, ret->hidden);
    e->columns = columns;
    if (parquet_open(ret->stream, columns, sorted, &e->out)) {
        fclose(ret->stream);
        unlink(ret->hidden);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    return 0;
}

/* result: of the rows. A table without a row has no file. */
static int end_file(struct exporting *e, struct open_file *file, int result, struct prcb_error *err)
{
    bool bare = !parquet_rows(e->out);

    if (result || bare)
        parquet_abort(e->out);
    else if (parquet_close(e->out))
        result = prcb_fail(err, -ENOMEM, "out of memory");
    if (ferror(file->stream) && !result) {
        errno = EIO;
        result = fail_at(err, file->hidden);
    }
    if (fclose(file->stream) && !result)
        result = fail_at(err, file->hidden);
    if (!result && !bare && rename(file->hidden, file->path))
        result = fail_at(err, file->path);
    if (result || bare)
        unlink(file->hidden);
    if (!result && bare) { /* nothing of an earlier export stays */
        unlink(file->path);
        *strrchr(file->path, '/') = '\0';
        rmdir(file->path);
    }
    return result;
}

/* ---- values ---------------------------------------------------------------------- */

static void put_common(struct exporting *e)
{
    parquet_text(e->out, e->host);
    parquet_text(e->out, e->id);
}

static void put_time(struct exporting *e, uint64_t ns)
{
    parquet_number(e->out, (int64_t)(ns + (uint64_t)e->wall_ns));
}

static void put_if(struct exporting *e, bool there, int64_t value)
{
    if (there)
        parquet_number(e->out, value);
    else
        parquet_none(e->out);
}

static void put_name(struct exporting *e, const char *text)
{
    parquet_text(e->out, *text ? text : NULL);
}

static int put_plain_row(sqlite3_stmt *row, void *ctx)
{
    struct exporting *e = ctx;

    put_common(e);
    for (int i = 0; e->columns[i + 2].type != PARQUET_TYPE_MAX; i++) {
        if (sqlite3_column_type(row, i) == SQLITE_NULL)
            parquet_none(e->out);
        else if (e->columns[i + 2].type == PARQUET_TEXT)
            parquet_text(e->out, (const char *)sqlite3_column_text(row, i));
        else if (e->columns[i + 2].type == PARQUET_TIME)
            put_time(e, (uint64_t)sqlite3_column_int64(row, i));
        else
            parquet_number(e->out, sqlite3_column_int64(row, i));
    }
    parquet_row(e->out);
    return 0;
}

static int put_plain(struct exporting *e, const struct plain_table *table, struct prcb_error *err)
{
    struct open_file file;
    const char *sql = table->sql;
    int result = begin_file(e, table->name, table->sorted, table->columns, &file, err);

    if (result)
        return result;
    if (table->without_wakers && !e->recording->has_wakers)
        sql = table->without_wakers;
    result = recording_query(e->recording, sql, put_plain_row, e, err);
    return end_file(e, &file, result, err);
}

/* ---- stretches ------------------------------------------------------------------- */

static const char *state_name(enum stretch_kind kind)
{
    return kind == STRETCH_RUNNING ? "running" : kind == STRETCH_READY ? "ready" : "waiting";
}

static int put_stretch(const struct stretch *stretch, void *ctx)
{
    struct exporting *e = ctx;
    const struct recording *r = e->recording;
    const struct recorded_thread *thread = &r->threads[stretch->thread];
    const struct recorded_wait *wait =
        stretch->kind == STRETCH_WAITING
            ? recording_wait(r, stretch->thread, stretch->start_ns, stretch->end_ns)
            : NULL;
    bool has_stack = wait && wait->stack != SIZE_MAX;

    put_common(e);
    put_time(e, stretch->end_ns);
    put_time(e, stretch->start_ns);
    parquet_number(e->out, (int64_t)(stretch->end_ns - stretch->start_ns));
    parquet_number(e->out, thread->id);
    parquet_number(e->out, thread->pid);
    parquet_number(e->out, thread->tid);
    put_name(e, e->processes[stretch->thread]);
    put_name(e, thread->name);
    parquet_text(e->out, state_name(stretch->kind));
    put_name(e, stretch->kind == STRETCH_RUNNING ? "" : stretch->cause);
    put_if(e, stretch->cpu != STRETCH_NO_CPU, stretch->cpu);
    put_if(e, has_stack, has_stack ? r->stacks[wait->stack].id : 0);
    put_name(e, wait ? wait->kind : "");
    put_if(e, stretch->waker != SIZE_MAX,
           stretch->waker != SIZE_MAX ? r->wakers[stretch->waker].id : 0);
    parquet_number(e->out, stretch->open);
    put_name(e, wait ? wait->trace_id : "");
    put_name(e, wait ? wait->span_id : "");
    parquet_row(e->out);
    return 0;
}

/* The walk gives them nearly in the order in which they end: a wait is told of when the thread has
 * a processor again. Groups are sorted. */
static int put_stretches(struct exporting *e, struct prcb_error *err)
{
    struct open_file file;
    int result = begin_file(e, "stretches", 2, stretch_columns, &file, err);

    if (result)
        return result;
    result = stretches_walk(e->recording, put_stretch, e, err);
    return end_file(e, &file, result, err);
}

/* A process's name is that of its first thread; else that of the thread. */
static int name_processes(struct exporting *e)
{
    const struct recording *r = e->recording;

    e->processes = calloc(r->thread_count + 1, sizeof(*e->processes));
    if (!e->processes)
        return -ENOMEM;
    for (size_t i = 0; i < r->thread_count; i++)
        e->processes[i] = r->threads[i].name;
    return 0;
}

static int take_leader(sqlite3_stmt *row, void *ctx)
{
    struct exporting *e = ctx;
    size_t thread = recording_thread(e->recording, sqlite3_column_int64(row, 0)),
           leader = recording_thread(e->recording, sqlite3_column_int64(row, 1));

    if (thread != SIZE_MAX && leader != SIZE_MAX)
        e->processes[thread] = e->recording->threads[leader].name;
    return 0;
}

/* ---- frames ---------------------------------------------------------------------- */

static int use_stack(sqlite3_stmt *row, void *ctx)
{
    struct exporting *e = ctx;
    size_t stack = recording_stack(e->recording, sqlite3_column_int64(row, 0));

    if (stack != SIZE_MAX)
        e->used[stack] = true;
    return 0;
}

static void put_frames_of(struct exporting *e, size_t stack)
{
    const struct recording *r = e->recording;
    int64_t depth = 0;

    for (size_t at = stack; at != SIZE_MAX && depth < DEPTH_MOST; at = r->stacks[at].caller_index) {
        const struct recorded_stack *frame = &r->stacks[at];
        bool named = frame->function != SIZE_MAX;

        put_common(e);
        parquet_number(e->out, r->stacks[stack].id);
        parquet_number(e->out, depth++);
        put_name(e, named ? r->functions[frame->function].name : "");
        put_name(e, named ? r->functions[frame->function].file : "");
        parquet_number(e->out, frame->kernel);
        parquet_row(e->out);
    }
}

static int put_frames(struct exporting *e, struct prcb_error *err)
{
    const struct recording *r = e->recording;
    struct open_file file;
    int result;

    e->used = calloc(r->stack_count + 1, sizeof(*e->used));
    if (!e->used)
        return prcb_fail(err, -ENOMEM, "out of memory");
    result = begin_file(e, "frames", 2, frame_columns, &file, err);
    if (result)
        return result;
    for (size_t i = 0; i < r->wait_count; i++) {
        if (r->waits[i].stack != SIZE_MAX)
            e->used[r->waits[i].stack] = true;
    }
    result = recording_query(r, "SELECT DISTINCT stack FROM samples WHERE stack NOT NULL",
                             use_stack, e, err);
    for (size_t i = 0; i < r->stack_count && !result; i++) {
        if (e->used[i])
            put_frames_of(e, i);
    }
    return end_file(e, &file, result, err);
}

/* ---- the whole ------------------------------------------------------------------- */

static int put_all(struct exporting *e, struct prcb_error *err)
{
    int result = name_processes(e);

    if (result || !e->host)
        return prcb_fail(err, -ENOMEM, "out of memory");
    result = recording_query(e->recording,
                             "SELECT t.id, l.id FROM threads t JOIN threads l "
                             "ON l.pid = t.pid AND l.tid = l.pid",
                             take_leader, e, err);
    for (size_t i = 0; i < sizeof(plain_tables) / sizeof(*plain_tables) && !result; i++)
        result = put_plain(e, &plain_tables[i], err);
    if (!result && e->recording->has_switches)
        result = put_stretches(e, err);
    if (!result)
        result = put_frames(e, err);
    return result;
}

int export_parquet(const struct recording *recording, const char *folder, struct prcb_error *err)
{
    struct exporting e = {.recording = recording, .folder = folder};
    int result;

    if (mkdir(folder, 0777) && errno != EEXIST)
        return fail_at(err, folder);
    recording_id(recording, e.id);
    if (!recording_wall(recording, &e.wall_ns))
        e.wall_ns = 0; /* since the boot, then */
    e.host = recording_fact(recording, "host");
    if (!e.host)
        e.host = strdup("");
    result = put_all(&e, err);
    free(e.host);
    free(e.processes);
    free(e.used);
    return result;
}
