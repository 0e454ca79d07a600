/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "error.h"
#include "resolve.h"
#include "writer.h"

#define BUSY_MS 5000
#define DEPTH_MAX                                                                                  \
    4096 /* no kernel tells deeper stacks: perf's limit is 127, by sysctl a few more */
#define SPAN_MAX 100000000000000000ull /* three years: no recording is longer */

int recording_query(const struct recording *recording, const char *sql,
                    int (*fn)(struct sqlite3_stmt *row, void *ctx), void *ctx,
                    struct prcb_error *err)
{
    sqlite3_stmt *statement;
    int step = SQLITE_ERROR, result = 0;

    if (sqlite3_prepare_v2(recording->db, sql, -1, &statement, NULL) == SQLITE_OK) {
        while (!result && (step = sqlite3_step(statement)) == SQLITE_ROW)
            result = fn(statement, ctx);
    }
    if (!result && step != SQLITE_DONE)
        result = prcb_fail(err, step == SQLITE_NOMEM ? -ENOMEM : -EIO, "reading the recording: %s",
                           sqlite3_errmsg(recording->db));
    else if (result == -ENOMEM)
        prcb_fail(err, -ENOMEM, "out of memory");
    sqlite3_finalize(statement);
    return result;
}

char *recording_fact(const struct recording *recording, const char *name)
{
    sqlite3_stmt *statement;
    char *copy = NULL;

    if (sqlite3_prepare_v2(recording->db, "SELECT value FROM facts WHERE name=?", -1, &statement,
                           NULL) != SQLITE_OK)
        return NULL;
    sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0))
        copy = strdup((const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    return copy;
}

bool recording_counts_ns(const struct recording *recording)
{
    char *event = recording_fact(recording, "event");
    bool clock = event && (!strncmp(event, "cpu-clock", 9) || !strncmp(event, "task-clock", 10));

    free(event);
    return clock;
}

/* ---- tables into memory ------------------------------------------------------ */

/* One more element behind the *count that *array (a pointer to elements) has; NULL: no memory. */
static void *append(void *array, size_t *count, size_t size)
{
    char *elements;

    memcpy(&elements, array, sizeof(elements));
    if (!(*count & (*count - 1))) {
        elements = realloc(elements, (*count ? 2 * *count : 1) * size);
        if (!elements)
            return NULL;
        memcpy(array, &elements, sizeof(elements));
    }
    return elements + size * (*count)++;
}

/* A column's text, kept until the recording is closed. */
static const char *keep(struct recording *r, sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    char *copy, **slot;

    if (!text || !*text)
        return "";
    copy = strdup(text);
    slot = copy ? append(&r->texts, &r->text_count, sizeof(*r->texts)) : NULL;
    if (!slot) {
        free(copy);
        return NULL;
    }
    *slot = copy;
    return copy;
}

static int add_function(sqlite3_stmt *row, void *ctx)
{
    struct recording *r = ctx;
    struct recorded_function *function =
        append(&r->functions, &r->function_count, sizeof(*r->functions));

    if (!function)
        return -ENOMEM;
    function->id = sqlite3_column_int64(row, 0);
    function->name = keep(r, row, 1);
    function->file = keep(r, row, 2);
    return function->name && function->file ? 0 : -ENOMEM;
}

static int add_thread(sqlite3_stmt *row, void *ctx)
{
    struct recording *r = ctx;
    struct recorded_thread *thread = append(&r->threads, &r->thread_count, sizeof(*r->threads));

    if (!thread)
        return -ENOMEM;
    *thread = (struct recorded_thread){
        .id = sqlite3_column_int64(row, 0),
        .pid = sqlite3_column_int64(row, 1),
        .tid = sqlite3_column_int64(row, 2),
        .name = keep(r, row, 3),
        .start_ns = (uint64_t)sqlite3_column_int64(row, 4),
        .end_ns = (uint64_t)sqlite3_column_int64(row, 5),
    };
    return thread->name ? 0 : -ENOMEM;
}

static int add_map(sqlite3_stmt *row, void *ctx)
{
    struct recording *r = ctx;
    struct recorded_map *map = append(&r->maps, &r->map_count, sizeof(*r->maps));

    if (!map)
        return -ENOMEM;
    *map = (struct recorded_map){
        .id = sqlite3_column_int64(row, 0),
        .pid = sqlite3_column_int64(row, 1),
        .start = (uint64_t)sqlite3_column_int64(row, 2),
        .length = (uint64_t)sqlite3_column_int64(row, 3),
        .file_offset = (uint64_t)sqlite3_column_int64(row, 4),
        .file = keep(r, row, 5),
        .build_id = keep(r, row, 6),
    };
    return map->file && map->build_id ? 0 : -ENOMEM;
}

/* The index of the row with an id; each kind of row begins with its id. */
static size_t find(const void *rows, size_t count, size_t size, int64_t id)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        int64_t at;

        memcpy(&at, (const char *)rows + middle * size, sizeof(at));
        if (at == id)
            return middle;
        if (at < id)
            low = middle + 1;
        else
            high = middle;
    }
    return SIZE_MAX;
}

size_t recording_thread(const struct recording *r, int64_t id)
{
    return find(r->threads, r->thread_count, sizeof(*r->threads), id);
}

size_t recording_stack(const struct recording *r, int64_t id)
{
    return find(r->stacks, r->stack_count, sizeof(*r->stacks), id);
}

/* A caller is written before what it calls, so a row whose caller comes later is damaged,
 * and no walk along the callers can go in a circle. */
static int add_stack(sqlite3_stmt *row, void *ctx)
{
    struct recording *r = ctx;
    struct recorded_stack stack = {
        .id = sqlite3_column_int64(row, 0),
        .caller = sqlite3_column_int64(row, 1),
        .kernel = sqlite3_column_int(row, 2),
        .address = (uint64_t)sqlite3_column_int64(row, 4),
    };
    struct recorded_stack *place;

    stack.caller_index = recording_stack(r, stack.caller);
    if (stack.caller_index != SIZE_MAX) {
        stack.depth = r->stacks[stack.caller_index].depth + 1;
        if (stack.depth >= DEPTH_MAX)
            stack.caller_index = SIZE_MAX;
    }
    stack.map = find(r->maps, r->map_count, sizeof(*r->maps), sqlite3_column_int64(row, 3));
    stack.function =
        find(r->functions, r->function_count, sizeof(*r->functions), sqlite3_column_int64(row, 5));
    place = append(&r->stacks, &r->stack_count, sizeof(*r->stacks));
    if (!place)
        return -ENOMEM;
    *place = stack;
    return 0;
}

static int load(struct recording *r, struct prcb_error *err)
{
    static const struct {
        const char *sql;
        int (*add)(sqlite3_stmt *row, void *ctx);
    } tables[] = {
        {"SELECT id, name, file FROM functions ORDER BY id", add_function},
        {"SELECT id, pid, tid, name, start_ns, end_ns FROM threads ORDER BY id", add_thread},
        {"SELECT id, pid, start, length, file_offset, file, build_id FROM maps ORDER BY id",
         add_map},
        {"SELECT k.id, k.caller, k.kernel, k.map, k.address, sf.function FROM stacks k "
         "LEFT JOIN stack_functions sf ON sf.stack = k.id ORDER BY k.id",
         add_stack},
    };
    int result = 0;

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && !result; i++)
        result = recording_query(r, tables[i].sql, tables[i].add, r, err);
    return result;
}

/* ---- the file ------------------------------------------------------------------ */

static int take_number(sqlite3_stmt *row, void *ctx)
{
    *(int64_t *)ctx = sqlite3_column_int64(row, 0);
    return 0;
}

static int64_t number(const struct recording *r, const char *sql)
{
    int64_t value = -1;

    recording_query(r, sql, take_number, &value, NULL);
    return value;
}

/* A view or a virtual table under a table's name could be without an end. */
#define OTHER_TABLES                                                                               \
    "SELECT count(*) FROM sqlite_master WHERE (type='view' OR sql LIKE 'CREATE VIRTUAL%') AND "    \
    "name COLLATE NOCASE IN ('facts', 'threads', 'maps', 'stacks', 'samples', 'switches', "        \
    "'processor_times', 'losses', 'functions', 'stack_functions')"

static int check(const struct recording *r, const char *path, struct prcb_error *err)
{
    int64_t id = number(r, "PRAGMA application_id"), version = number(r, "PRAGMA user_version");

    if (id != RECORD_APPLICATION_ID)
        return prcb_fail(err, -EINVAL, "%s is no recording of prcb record%s%s", path,
                         id < 0 ? ": " : "", id < 0 ? sqlite3_errmsg(r->db) : "");
    if (version != RECORD_VERSION)
        return prcb_fail(err, -EINVAL,
                         "%s: recordings of version %" PRId64 " are not known here, only %d", path,
                         version, RECORD_VERSION);
    if (number(r, OTHER_TABLES))
        return prcb_fail(err, -EINVAL, "%s is damaged: one of its tables is none", path);
    return 0;
}

static int set_times(struct recording *r, struct prcb_error *err)
{
    char *complete = recording_fact(r, "complete");

    r->complete = complete && !strcmp(complete, "1");
    free(complete);
    r->start_ns = (uint64_t)number(r, "SELECT CAST(value AS INTEGER) FROM facts "
                                      "WHERE name='start_ns'");
    r->end_ns = (uint64_t)number(r, "SELECT max(t) FROM ("
                                    "SELECT CAST(value AS INTEGER) t FROM facts "
                                    "WHERE name='end_ns' UNION ALL "
                                    "SELECT max(time_ns) FROM processor_times UNION ALL "
                                    "SELECT max(time_ns) FROM samples UNION ALL "
                                    "SELECT max(time_ns) FROM switches)");
    if ((int64_t)r->start_ns < 0 || (int64_t)r->end_ns < 0 || r->end_ns < r->start_ns ||
        r->end_ns - r->start_ns > SPAN_MAX)
        return prcb_fail(err, -EINVAL, "the recording is damaged: its times make no sense");
    return 0;
}

int recording_open(const char *path, struct recording *ret, struct prcb_error *err)
{
    struct recording r = {0};
    struct stat about;
    int result;

    /* SQLite would wait at a pipe. */
    if (stat(path, &about) || access(path, R_OK))
        return prcb_fail(err, -errno, "%s: %s", path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return prcb_fail(err, -EINVAL, "%s is no plain file", path);
    if (sqlite3_open_v2(path, &r.db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        result = prcb_fail(err, -EIO, "%s: %s", path, r.db ? sqlite3_errmsg(r.db) : "no memory");
        sqlite3_close(r.db);
        return result;
    }
    sqlite3_busy_timeout(r.db, BUSY_MS);
    sqlite3_exec(r.db, "PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF", NULL, NULL, NULL);
    /* One state of a file that is being recorded, for all that is read from here on. */
    sqlite3_exec(r.db, "SAVEPOINT reading", NULL, NULL, NULL);
    result = check(&r, path, err);
    if (!result)
        result = set_times(&r, err);
    /* Cut off, or the disk was full: the functions are named now. */
    if (!result && !number(&r, "SELECT count(*) FROM stack_functions"))
        result = resolve_functions(r.db, true, err);
    if (!result)
        result = load(&r, err);
    if (result)
        recording_close(&r);
    else
        *ret = r;
    return result;
}

void recording_close(struct recording *r)
{
    for (size_t i = 0; i < r->text_count; i++)
        free(r->texts[i]);
    free(r->texts);
    free(r->functions);
    free(r->stacks);
    free(r->threads);
    free(r->maps);
    sqlite3_close(r->db);
    memset(r, 0, sizeof(*r));
}
