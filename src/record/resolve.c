/* SPDX-License-Identifier: BSD-2-Clause */
#include "resolve.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "demangle.h"
#include "error.h"
#include "first_line.h"
#include "schema.h"
#include "symbols.h"

#define SELECT_STACKS                                                                              \
    "SELECT k.id, k.kernel, k.address, m.file, m.build_id, m.pid, m.start, m.file_offset "         \
    "FROM stacks k LEFT JOIN maps m ON m.id = k.map ORDER BY m.file, m.build_id, m.pid"

/* The report is in a transaction of its own already. */
#define BEGIN    "SAVEPOINT naming"
#define COMMIT   "RELEASE naming"
#define ROLLBACK "ROLLBACK TO naming; RELEASE naming"

/* What names the addresses of one mapping. Rows come ordered, so one at a time is enough. */
struct source {
    char file[4096], build_id[128];
    int64_t pid;
    bool known, by_address; /* it is set; else places are offsets in the file */
    struct symbols *symbols;
    int64_t unknown; /* the row of functions for what it does not name; 0: not yet */
};

struct resolver {
    sqlite3 *db;
    sqlite3_stmt *stacks, *function, *pair;
    struct source source;
    bool same_boot;
    int64_t last_function;
};

static int failed(struct resolver *r, struct prcb_error *err)
{
    int code = sqlite3_errcode(r->db) & 0xff;

    if (code == SQLITE_FULL)
        return prcb_fail(err, -ENOSPC,
                         "the disk is full: functions are not named in the file; prcb report "
                         "names them when it reads");
    return prcb_fail(err, code == SQLITE_NOMEM ? -ENOMEM : -EIO, "naming functions: %s",
                     sqlite3_errmsg(r->db));
}

/* Addresses of the kernel mean something until the next boot only. */
static bool is_same_boot(sqlite3 *db)
{
    char now[64];
    bool same = false;
    sqlite3_stmt *statement;

    if (!first_line("/proc/sys/kernel/random/boot_id", now, sizeof(now)))
        return false;
    if (sqlite3_prepare_v2(db, "SELECT value FROM facts WHERE name='boot_id'", -1, &statement,
                           NULL) != SQLITE_OK)
        return false;
    if (sqlite3_step(statement) == SQLITE_ROW) {
        const char *then = (const char *)sqlite3_column_text(statement, 0);

        same = then && *now && !strcmp(then, now);
    }
    sqlite3_finalize(statement);
    return same;
}

static const char *text_of(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);

    return text ? text : "";
}

/* Code that has no file: a just-in-time compiler's. */
static bool is_anonymous(const char *file)
{
    return !strncmp(file, "//anon", 6) || !strncmp(file, "/memfd:", 7) ||
           !strncmp(file, "[anon", 5) || !strcmp(file, "[heap]") || !strncmp(file, "/dev/", 5);
}

static void open_source(struct resolver *r, bool kernel)
{
    struct source *source = &r->source;

    source->by_address = kernel || is_anonymous(source->file);
    if (kernel) {
        if (r->same_boot)
            symbols_open_kernel(&source->symbols);
    } else if (source->by_address) {
        symbols_open_perf_map((pid_t)source->pid, &source->symbols);
    } else if (!strcmp(source->file, "[vdso]")) {
        if (r->same_boot)
            symbols_open_vdso(&source->symbols);
    } else if (source->file[0] == '/') {
        symbols_open_elf(source->file, source->build_id, &source->symbols);
    }
}

static void choose_source(struct resolver *r)
{
    struct source *source = &r->source;
    const char *file = text_of(r->stacks, 3), *build_id = text_of(r->stacks, 4);
    int64_t pid = sqlite3_column_int64(r->stacks, 5);

    if (source->known && !strcmp(source->file, file) && !strcmp(source->build_id, build_id) &&
        (!source->by_address || source->pid == pid))
        return;
    symbols_close(source->symbols);
    memset(source, 0, sizeof(*source));
    source->known = true;
    snprintf(source->file, sizeof(source->file), "%s", file);
    snprintf(source->build_id, sizeof(source->build_id), "%s", build_id);
    source->pid = pid;
    open_source(r, sqlite3_column_int64(r->stacks, 1));
}

/* A row of functions; 0: it could not be written. */
static int64_t add_function(struct resolver *r, const char *name)
{
    const char *file = r->source.file;

    sqlite3_bind_int64(r->function, 1, ++r->last_function);
    sqlite3_bind_text(r->function, 2, name, -1, SQLITE_STATIC);
    sqlite3_bind_text(r->function, 3, *file ? file : NULL, -1, SQLITE_STATIC);
    if (sqlite3_step(r->function) != SQLITE_DONE)
        return 0;
    sqlite3_reset(r->function);
    return r->last_function;
}

static int64_t function_of_row(struct resolver *r)
{
    struct source *source = &r->source;
    uint64_t place = (uint64_t)sqlite3_column_int64(r->stacks, 2);
    struct symbol *symbol = NULL;
    char name[DEMANGLED_MAX];

    if (!source->by_address)
        place += (uint64_t)sqlite3_column_int64(r->stacks, 7) -
                 (uint64_t)sqlite3_column_int64(r->stacks, 6);
    if (source->symbols)
        symbol = symbols_find(source->symbols, place);
    if (symbol) {
        if (!symbol->tag)
            symbol->tag = add_function(r, demangle(symbol->name, name));
        return symbol->tag;
    }
    if (!source->unknown)
        source->unknown = add_function(r, "[unknown]");
    return source->unknown;
}

static int resolve_row(struct resolver *r)
{
    int64_t function;

    choose_source(r);
    function = function_of_row(r);
    if (!function)
        return -EIO;
    sqlite3_bind_int64(r->pair, 1, sqlite3_column_int64(r->stacks, 0));
    sqlite3_bind_int64(r->pair, 2, function);
    if (sqlite3_step(r->pair) != SQLITE_DONE)
        return -EIO;
    sqlite3_reset(r->pair);
    return 0;
}

static int resolve_rows(struct resolver *r)
{
    int step;

    while ((step = sqlite3_step(r->stacks)) == SQLITE_ROW) {
        if (resolve_row(r))
            return -EIO;
    }
    return step == SQLITE_DONE ? 0 : -EIO;
}

/* What was mapped before the recording came without build ids: those of the files now. */
static void add_build_ids(sqlite3 *db)
{
    sqlite3_stmt *files, *update = NULL;

    if (sqlite3_prepare_v2(db,
                           "SELECT DISTINCT file FROM maps WHERE build_id IS NULL AND "
                           "file LIKE '/%' AND id IN (SELECT map FROM stacks)",
                           -1, &files, NULL) != SQLITE_OK)
        return;
    sqlite3_prepare_v2(db, "UPDATE maps SET build_id=?1 WHERE file=?2 AND build_id IS NULL", -1,
                       &update, NULL);
    while (update && sqlite3_step(files) == SQLITE_ROW) {
        const char *file = text_of(files, 0);
        char build_id[129];

        if (symbols_build_id(file, build_id, sizeof(build_id)))
            continue;
        sqlite3_bind_text(update, 1, build_id, -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(update, 2, file, -1, SQLITE_TRANSIENT);
        sqlite3_step(update);
        sqlite3_reset(update);
    }
    sqlite3_finalize(files);
    sqlite3_finalize(update);
}

static bool prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret)
{
    return sqlite3_prepare_v2(db, sql, -1, ret, NULL) == SQLITE_OK;
}

int resolve_functions(struct sqlite3 *db, bool temporary, struct prcb_error *err)
{
    struct resolver r = {.db = db, .same_boot = is_same_boot(db)};
    int result = 0;

    if (sqlite3_exec(db, temporary ? RECORD_FUNCTIONS("TEMP") BEGIN : BEGIN, NULL, NULL, NULL) !=
        SQLITE_OK)
        return failed(&r, err);
    if (!temporary)
        add_build_ids(db);
    if (!prepare(db, SELECT_STACKS, &r.stacks) ||
        !prepare(db, "INSERT INTO functions VALUES(?,?,?)", &r.function) ||
        !prepare(db, "INSERT INTO stack_functions VALUES(?,?)", &r.pair) || resolve_rows(&r) < 0)
        result = failed(&r, err);
    sqlite3_finalize(r.stacks);
    sqlite3_finalize(r.function);
    sqlite3_finalize(r.pair);
    symbols_close(r.source.symbols);
    if (sqlite3_exec(db, result ? ROLLBACK : COMMIT, NULL, NULL, NULL) != SQLITE_OK && !result) {
        result = failed(&r, err);
        sqlite3_exec(db, ROLLBACK, NULL, NULL, NULL);
    }
    return result;
}
