/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "array.h"
#include "error.h"
#include "libc_file.h"
#include "number.h"
#include "resolve.h"
#include "writer.h"

#define BUSY_MS 5000
#define DEPTH_MAX                                                                                  \
    4096 /* no kernel tells deeper stacks: perf's limit is 127, by sysctl a few more */
#define SPAN_MAX 100000000000000000ull /* three years: no recording is longer */

/* The bounds of reading, by the bytes of a file. A row has some 20 of them, and a report takes
 * some 400 steps of SQLite for it, all its passes together; a row has at least 4. SQLite holds
 * in memory what it sorts, with as much again for each row. */
#define ROW_BYTES   2 /* 4, and each may have a function that is named here */
#define STEPS_BYTE  128
#define STEPS_LEAST 20000000ull
#define STEPS_ONCE  10000 /* how often SQLite says how far it is */
#define HEAP_BYTE   16
#define HEAP_LEAST  (256ll << 20)
#define NAMED_BYTES (256u << 20) /* of functions that are named here, which no file holds */

static int too_much(struct prcb_error *err)
{
    return prcb_fail(err, -EBADMSG,
                     "the recording is damaged: it has more to read than its size "
                     "allows");
}

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
    if (!result && step == SQLITE_INTERRUPT)
        result = too_much(err);
    else if (!result && step != SQLITE_DONE)
        result = prcb_fail(err, step == SQLITE_NOMEM ? -ENOMEM : -EIO, "reading the recording: %s",
                           sqlite3_errmsg(recording->db));
    else if (result == -ENOMEM)
        prcb_fail(err, -ENOMEM, "out of memory");
    else if (result == -EBADMSG)
        too_much(err);
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

/* Finds what a second of the wall clock is by the recording's clock. */
static bool find_second(const struct recording *r, const char *name, uint64_t by_clock,
                        int64_t *ret)
{
    char *text = recording_fact(r, name);
    struct tm utc = {0};
    bool found = text && strptime(text, "%Y-%m-%dT%H:%M:%SZ", &utc);

    free(text);
    if (found)
        *ret = (int64_t)((uint64_t)timegm(&utc) * 1000000000u - by_clock);
    return found;
}

bool recording_wall(const struct recording *r, int64_t *ret)
{
    char *exact = recording_fact(r, "wall_ns");
    uint64_t ns;
    bool found = exact && !number_parse(exact, 0, INT64_MAX, &ns);

    free(exact);
    if (found)
        *ret = (int64_t)(ns - r->start_ns);
    return found || find_second(r, "started", r->start_ns, ret) ||
           find_second(r, "ended", r->end_ns, ret);
}

uint64_t recording_life(const struct recording *r, size_t thread)
{
    const struct recorded_thread *row = &r->threads[thread];
    uint64_t start = row->start_ns > r->start_ns ? row->start_ns : r->start_ns;
    uint64_t end = row->end_ns && row->end_ns < r->end_ns ? row->end_ns : r->end_ns;

    return end > start ? end - start : 0;
}

void recording_id(const struct recording *recording, char ret[RECORDING_ID])
{
    char *boot = recording_fact(recording, "boot_id");
    size_t length = boot ? strspn(boot, "0123456789abcdef") : 0;

    snprintf(ret, RECORDING_ID, "%.*s-%" PRIx64, length ? (int)(length < 32 ? length : 32) : 1,
             length ? boot : "0", recording->start_ns);
    free(boot);
}

bool recording_counts_ns(const struct recording *recording)
{
    char *event = recording_fact(recording, "event");
    bool clock = event && (!strncmp(event, "cpu-clock", 9) || !strncmp(event, "task-clock", 10));

    free(event);
    return clock;
}

/* ---- tables into memory ------------------------------------------------------ */

/* Whether the file can hold one more row, and a text, at all. */
static bool fits(struct recording *r, size_t rows, size_t bytes)
{
    r->kept_rows += rows;
    r->kept_bytes += bytes;
    return r->kept_bytes <= r->file_bytes + (r->named_here ? NAMED_BYTES : 0) &&
           r->kept_rows <= r->file_bytes / ROW_BYTES;
}

/* Returns a column's text, kept until the recording is closed. */
static const char *keep(struct recording *r, sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    char *copy;

    if (!text || !*text)
        return "";
    if (!fits(r, 0, strlen(text)))
        return NULL;
    copy = strdup(text);
    if (!copy || array_append(r->texts, r->text_count, copy)) {
        free(copy);
        return NULL;
    }
    return copy;
}

static int add_function(sqlite3_stmt *row, void *ctx)
{
    struct recording *r = ctx;
    struct recorded_function function = {
        .id = sqlite3_column_int64(row, 0),
        .name = keep(r, row, 1),
        .file = keep(r, row, 2),
    };

    if (!function.name || !function.file)
        return -ENOMEM;
    return array_append(r->functions, r->function_count, function);
}

static int add_thread(sqlite3_stmt *row, void *ctx)
{
    struct recording *r = ctx;
    struct recorded_thread thread = {
        .id = sqlite3_column_int64(row, 0),
        .pid = sqlite3_column_int64(row, 1),
        .tid = sqlite3_column_int64(row, 2),
        .name = keep(r, row, 3),
        .start_ns = (uint64_t)sqlite3_column_int64(row, 4),
        .end_ns = (uint64_t)sqlite3_column_int64(row, 5),
        .start_state = keep(r, row, 6),
        .start_cause = keep(r, row, 7),
        .start_reason =
            sqlite3_column_type(row, 8) == SQLITE_NULL ? -1 : sqlite3_column_int(row, 8),
    };

    if (!thread.name || !thread.start_state || !thread.start_cause)
        return -ENOMEM;
    return array_append(r->threads, r->thread_count, thread);
}

static int add_wait(sqlite3_stmt *row, void *ctx)
{
    struct recording *r = ctx;
    struct recorded_wait wait = {
        .time_ns = (uint64_t)sqlite3_column_int64(row, 0),
        .thread = recording_thread(r, sqlite3_column_int64(row, 1)),
        .stack = recording_stack(r, sqlite3_column_int64(row, 2)),
        .missing = keep(r, row, 3),
        .kind = keep(r, row, 4),
        .word = keep(r, row, 5),
        .one_in = sqlite3_column_int64(row, 6) > 1 ? (uint64_t)sqlite3_column_int64(row, 6) : 1,
        .trace_id = keep(r, row, 7),
        .span_id = keep(r, row, 8),
    };

    if (!wait.missing || !wait.kind || !wait.word || !wait.trace_id || !wait.span_id)
        return -ENOMEM;
    return array_append(r->waits, r->wait_count, wait);
}

static int add_waker(sqlite3_stmt *row, void *ctx)
{
    struct recording *r = ctx;
    struct recorded_waker waker = {
        .id = sqlite3_column_int64(row, 0),
        .by = keep(r, row, 1),
        .thread = recording_thread(r, sqlite3_column_int64(row, 2)),
        .pid = sqlite3_column_int64(row, 3),
        .tid = sqlite3_column_int64(row, 4),
        .name = keep(r, row, 5),
        .number = sqlite3_column_type(row, 6) == SQLITE_NULL ? -1 : sqlite3_column_int64(row, 6),
    };

    if (!waker.by || !waker.name)
        return -ENOMEM;
    return array_append(r->wakers, r->waker_count, waker);
}

static int add_map(sqlite3_stmt *row, void *ctx)
{
    struct recording *r = ctx;
    struct recorded_map map = {
        .id = sqlite3_column_int64(row, 0),
        .pid = sqlite3_column_int64(row, 1),
        .start = (uint64_t)sqlite3_column_int64(row, 2),
        .length = (uint64_t)sqlite3_column_int64(row, 3),
        .file_offset = (uint64_t)sqlite3_column_int64(row, 4),
        .file = keep(r, row, 5),
        .build_id = keep(r, row, 6),
    };

    if (!map.file || !map.build_id)
        return -ENOMEM;
    return array_append(r->maps, r->map_count, map);
}

/* Finds the index of the row with an id; each kind of row begins with its id. */
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

size_t recording_waker(const struct recording *r, int64_t id)
{
    return find(r->wakers, r->waker_count, sizeof(*r->wakers), id);
}

void recording_waker_name(const struct recording *r, size_t at, char *ret, size_t size)
{
    const struct recorded_waker *waker = &r->wakers[at];
    const char *name = waker->thread == SIZE_MAX ? waker->name : r->threads[waker->thread].name;

    if (waker->tid)
        snprintf(ret, size, "%s (%" PRId64 ")", name, waker->tid);
    else if (waker->number >= 0 && strcmp(waker->by, "softirq"))
        snprintf(ret, size, "%s %" PRId64 "%s%s%s", waker->by, waker->number, *name ? " (" : "",
                 name, *name ? ")" : "");
    else
        snprintf(ret, size, "%s%s%s", waker->by, *name ? " " : "", name);
}

char *recording_stack_line(const struct recording *r, size_t stack)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    for (size_t at = stack; out && at != SIZE_MAX; at = r->stacks[at].caller_index)
        fprintf(out, "%s%s", at == stack ? "" : " < ",
                r->stacks[at].function == SIZE_MAX ? "[unknown]"
                                                   : r->functions[r->stacks[at].function].name);
    if (out)
        fclose(out);
    return text;
}

const char *recording_place(const struct recording *r, size_t stack)
{
    const char *own = "", *first = "";

    for (size_t at = stack; at != SIZE_MAX; at = r->stacks[at].caller_index) {
        const struct recorded_function *function =
            r->stacks[at].function == SIZE_MAX ? NULL : &r->functions[r->stacks[at].function];

        if (!function || !strcmp(function->name, "[unknown]"))
            continue;
        if (r->stacks[at].line)
            return function->name;
        if (!*own && !r->stacks[at].kernel && !is_libc_file(function->file))
            own = function->name;
        first = *first ? first : function->name;
    }
    return *own ? own : first;
}

const struct recorded_wait *recording_wait(const struct recording *r, size_t thread,
                                           uint64_t from_ns, uint64_t to_ns)
{
    size_t low = array_front(i, r->wait_count,
                             r->waits[i].thread < thread ||
                                 (r->waits[i].thread == thread && r->waits[i].time_ns < from_ns));
    const struct recorded_wait *found = NULL;

    for (; low < r->wait_count && r->waits[low].thread == thread && r->waits[low].time_ns <= to_ns;
         low++) {
        if (r->waits[low].stack != SIZE_MAX)
            return &r->waits[low];
        found = found ? found : &r->waits[low];
    }
    return found;
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

    int line = sqlite3_column_int(row, 6);

    stack.caller_index = recording_stack(r, stack.caller);
    if (stack.caller_index != SIZE_MAX) {
        stack.depth = r->stacks[stack.caller_index].depth + 1;
        if (stack.depth >= DEPTH_MAX)
            stack.caller_index = SIZE_MAX;
    }
    stack.line = line > 0 ? (uint32_t)line : 0;
    stack.map = find(r->maps, r->map_count, sizeof(*r->maps), sqlite3_column_int64(row, 3));
    stack.function =
        find(r->functions, r->function_count, sizeof(*r->functions), sqlite3_column_int64(row, 5));
    return array_append(r->stacks, r->stack_count, stack);
}

struct loading {
    struct recording *recording;
    int (*add)(sqlite3_stmt *row, void *ctx);
};

static int load_row(sqlite3_stmt *row, void *ctx)
{
    struct loading *loading = ctx;
    int result = fits(loading->recording, 1, 0) ? loading->add(row, loading->recording) : 0;

    return fits(loading->recording, 0, 0) ? result : -EBADMSG;
}

static int load(struct recording *r, struct prcb_error *err)
{
    const struct {
        const char *sql;
        int (*add)(sqlite3_stmt *row, void *ctx);
    } tables[] = {
        {"SELECT id, name, file FROM functions ORDER BY id", add_function},
        {r->has_states ? "SELECT id, pid, tid, name, start_ns, end_ns, start_state, start_cause, "
                         "start_reason FROM threads ORDER BY id"
                       : "SELECT id, pid, tid, name, start_ns, end_ns, NULL, NULL, NULL "
                         "FROM threads ORDER BY id",
         add_thread},
        {"SELECT id, pid, start, length, file_offset, file, build_id FROM maps ORDER BY id",
         add_map},
        {r->has_sources
             ? "SELECT k.id, k.caller, k.kernel, k.map, k.address, sf.function, k.line "
               "FROM stacks k LEFT JOIN stack_functions sf ON sf.stack = k.id ORDER BY k.id"
             : "SELECT k.id, k.caller, k.kernel, k.map, k.address, sf.function, 0 "
               "FROM stacks k LEFT JOIN stack_functions sf ON sf.stack = k.id ORDER BY k.id",
         add_stack},
        {r->has_spans
             ? "SELECT time_ns, thread, stack, missing, kind, word, one_in, trace_id, span_id "
               "FROM wait_stacks ORDER BY thread, time_ns, stack IS NULL"
         : r->has_states ? "SELECT time_ns, thread, stack, missing, kind, word, one_in, NULL, NULL "
                           "FROM wait_stacks ORDER BY thread, time_ns, stack IS NULL"
                         : "SELECT 1 WHERE 0",
         add_wait},
        {r->has_wakers ? "SELECT id, by, thread, pid, tid, name, number FROM wakers ORDER BY id"
                       : "SELECT 1 WHERE 0",
         add_waker},
    };
    int result = 0;

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && !result; i++) {
        struct loading loading = {r, tables[i].add};

        result = recording_query(r, tables[i].sql, load_row, &loading, err);
    }
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

/* SQLite carries out a file's schema when a table is read: a view, a virtual table or a computed
 * column is a program by whoever made the file. Recordings have tables whose columns are stored,
 * and one view, which is not read here; somebody may have added tables and indexes of his own.
 * SQLite parses this text, so its beginning tells what it makes. */
#define OTHER_SCHEMA                                                                               \
    "SELECT count(*) FROM sqlite_master WHERE sql NOT NULL AND NOT (sql GLOB 'CREATE TABLE *' OR " \
    "sql GLOB 'CREATE INDEX *' OR sql GLOB 'CREATE UNIQUE INDEX *' OR "                            \
    "sql GLOB 'CREATE VIEW sampled AS SELECT *')"
#define COMPUTED_COLUMNS                                                                           \
    "SELECT count(*) FROM sqlite_master m JOIN pragma_table_xinfo(m.name) c WHERE "                \
    "m.sql GLOB 'CREATE TABLE *' AND c.hidden <> 0"

/* Limits what SQLite accepts from a file that anybody may have written: no longer values,
 * statements and expressions than recordings have, nothing that is attached, no functions with
 * side effects. */
static void distrust(sqlite3 *db)
{
    static const struct {
        int what, most;
    } limits[] = {
        {SQLITE_LIMIT_LENGTH, 1 << 20},
        {SQLITE_LIMIT_SQL_LENGTH, 65536},
        {SQLITE_LIMIT_COLUMN, 64},
        {SQLITE_LIMIT_EXPR_DEPTH, 50},
        {SQLITE_LIMIT_COMPOUND_SELECT, 10},
        {SQLITE_LIMIT_VDBE_OP, 25000},
        {SQLITE_LIMIT_FUNCTION_ARG, 8},
        {SQLITE_LIMIT_ATTACHED, 0},
        {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100},
        {SQLITE_LIMIT_VARIABLE_NUMBER, 16},
        {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
        {SQLITE_LIMIT_WORKER_THREADS, 0},
    };
    static const struct {
        int what, on;
    } settings[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},
        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
        {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
        {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
        {SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0},
    };

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        sqlite3_limit(db, limits[i].what, limits[i].most);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        sqlite3_db_config(db, settings[i].what, settings[i].on, NULL);
}

/* Ends endless statements: SQLite calls it each STEPS_ONCE steps. */
static int count_steps(void *ctx)
{
    struct recording_patience *patience = ctx;

    patience->steps += STEPS_ONCE;
    return patience->steps > patience->most;
}

static int check(const struct recording *r, const char *path, struct prcb_error *err)
{
    int64_t id = number(r, "PRAGMA application_id"), version = number(r, "PRAGMA user_version");

    if (id != RECORD_APPLICATION_ID)
        return prcb_fail(err, -EINVAL, "%s is not a recording of prcb record%s%s", path,
                         id < 0 ? ": " : "", id < 0 ? sqlite3_errmsg(r->db) : "");
    if (version != RECORD_VERSION)
        return prcb_fail(err, -EINVAL,
                         "%s: recordings of version %" PRId64 " are not known here, only %d", path,
                         version, RECORD_VERSION);
    if (number(r, OTHER_SCHEMA) || number(r, COMPUTED_COLUMNS))
        return prcb_fail(err, -EINVAL, "%s is damaged: its contents are not those of a recording",
                         path);
    return 0;
}

/* Whether a fact has this value. 1: it has; 0: it has another one; negative: it is not told. */
static int fact_is(const struct recording *r, const char *name, const char *value)
{
    char *text = recording_fact(r, name);
    int is = text ? !strcmp(text, value) : -1;

    free(text);
    return is;
}

static int set_times(struct recording *r, struct prcb_error *err)
{
    char *complete = recording_fact(r, "complete");

    r->complete = complete && !strcmp(complete, "1");
    free(complete);
    r->has_switches = fact_is(r, "switch_source", "none") == 0;
    r->has_wait_stacks = fact_is(r, "wait_stacks", "1") == 1;
    r->has_copies = fact_is(r, "sample_stack_bytes", "0") == 0 &&
                    number(r, "SELECT count(*) FROM pragma_table_info('samples') "
                              "WHERE name='missing'") == 1;
    /* Recordings of earlier versions lack these columns and the table. */
    r->has_history = number(r, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND "
                               "name = 'intervals'") > 0;
    r->has_states = number(r, "SELECT count(*) FROM pragma_table_info('threads') "
                              "WHERE name='start_reason'") == 1 &&
                    number(r, "SELECT count(*) FROM pragma_table_info('wait_stacks') "
                              "WHERE name='one_in'") == 1;
    r->has_spans =
        r->has_states && number(r, "SELECT count(*) FROM pragma_table_info('wait_stacks') "
                                   "WHERE name='span_id'") == 1;
    r->has_sources = number(r, "SELECT count(*) FROM pragma_table_info('stacks') "
                               "WHERE name='line'") == 1;
    r->has_wakers = fact_is(r, "wakers", "1") == 1 &&
                    number(r, "SELECT count(*) FROM pragma_table_info('switches') "
                              "WHERE name='woken_cpu'") == 1 &&
                    number(r, "SELECT count(*) FROM pragma_table_info('wakers') "
                              "WHERE name='number'") == 1;
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
        return prcb_fail(err, -EINVAL,
                         "the recording is damaged: its times are out of order or range");
    return 0;
}

/* Returns how many pages this reader sees, those of a write-ahead log included. */
static int measure(struct recording *r, struct prcb_error *err)
{
    int64_t pages = number(r, "PRAGMA page_count"), bytes = number(r, "PRAGMA page_size");

    r->patience = calloc(1, sizeof(*r->patience));
    if (!r->patience)
        return prcb_fail(err, -ENOMEM, "out of memory");
    r->file_bytes = pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes : 0;
    r->patience->most = STEPS_LEAST + STEPS_BYTE * r->file_bytes;
    sqlite3_progress_handler(r->db, STEPS_ONCE, count_steps, r->patience);
    sqlite3_hard_heap_limit64(HEAP_LEAST + HEAP_BYTE * (int64_t)r->file_bytes);
    return 0;
}

static int read_all(struct recording *r, const char *path, struct prcb_error *err)
{
    int result = measure(r, err);

    if (!result)
        result = check(r, path, err);
    if (!result)
        result = set_times(r, err);
    /* The recording was cut off, or the disk was full: the functions are named now. */
    if (!result && !number(r, "SELECT count(*) FROM stack_functions")) {
        result = resolve_functions(r->db, true, &r->namer, err);
        r->named_here = true;
    }
    return result ? result : load(r, err);
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
        return prcb_fail(err, -EINVAL, "%s is not a regular file", path);
    if (sqlite3_open_v2(path, &r.db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        result = prcb_fail(err, -EIO, "%s: %s", path, r.db ? sqlite3_errmsg(r.db) : "no memory");
        sqlite3_close(r.db);
        return result;
    }
    distrust(r.db);
    sqlite3_busy_timeout(r.db, BUSY_MS);
    sqlite3_exec(r.db, "PRAGMA temp_store=MEMORY", NULL, NULL, NULL);
    /* This holds one state of a file that is being recorded, for all that is read from here on. */
    sqlite3_exec(r.db, "SAVEPOINT reading", NULL, NULL, NULL);
    result = read_all(&r, path, err);
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
    free(r->waits);
    free(r->wakers);
    sqlite3_close(r->db);
    free(r->patience);
    memset(r, 0, sizeof(*r));
}
