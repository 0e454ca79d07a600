/* SPDX-License-Identifier: BSD-2-Clause */
#include "resolve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "array.h"
#include "error.h"
#include "first_line.h"
#include "names.h"
#include "schema.h"

#define SELECT_STACKS(uid, name, here, file, device, inode)                                        \
    "SELECT k.id, k.kernel, k.address, " file ", m.build_id, m.pid, m.start, m.file_offset, " uid  \
    ", m.build_id IS NULL, " name ", " here " AS here, " device ", " inode " FROM stacks k "       \
    "LEFT JOIN maps m ON m.id = k.map "                                                            \
    "ORDER BY 4, m.build_id, here IS NULL, 13, 14, m.pid, 9, 11"
#define OLDER_STACKS(uid, name, here, file) SELECT_STACKS(uid, name, here, file, "NULL", "NULL")

/* The report is in a transaction of its own already. */
#define BEGIN    "SAVEPOINT naming"
#define COMMIT   "RELEASE naming"
#define ROLLBACK "ROLLBACK TO naming; RELEASE naming"

/* The source of names for the addresses of some mappings. Rows come ordered, so one at a time is
 * enough. */
struct source {
    char file[4096], build_id[128];
    int64_t pid, uid;
    int64_t here_ns;         /* the first that had it mapped here; 0: none here */
    uint64_t device, inode;  /* as names.h */
    bool kernel, by_address; /* else places are offsets in the file */
    bool no_build_id;        /* it came without one */
};

struct resolver {
    sqlite3 *db;
    sqlite3_stmt *stacks, *function, *pair, *build;
    struct source source; /* of the rows that wait */
    int64_t *ids;         /* of the stacks that wait for names, */
    uint64_t *places;     /* and where they are */
    size_t count, room;
    struct namer *namer;
    bool same_boot, temporary;
    int64_t last_function;
    char *named, *named_file; /* of the last row that came with its name; NULL: none did */
    int64_t named_function;
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

/* Addresses of the kernel have a meaning only until the next boot. */
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

static struct source source_of_row(const struct resolver *r)
{
    struct source source = {
        .pid = sqlite3_column_int64(r->stacks, 5),
        .uid = sqlite3_column_type(r->stacks, 8) == SQLITE_NULL
                   ? -1
                   : sqlite3_column_int64(r->stacks, 8),
        .kernel = sqlite3_column_int64(r->stacks, 1) != 0,
        .no_build_id = sqlite3_column_int64(r->stacks, 9) != 0,
        .here_ns = sqlite3_column_int64(r->stacks, 11),
        .device = (uint64_t)sqlite3_column_int64(r->stacks, 12),
        .inode = (uint64_t)sqlite3_column_int64(r->stacks, 13),
    };

    snprintf(source.file, sizeof(source.file), "%s", text_of(r->stacks, 3));
    snprintf(source.build_id, sizeof(source.build_id), "%s", text_of(r->stacks, 4));
    source.by_address = source.kernel || names_is_anonymous(source.file);
    return source;
}

static bool is_same(const struct source *a, const struct source *b)
{
    return a->kernel == b->kernel && !strcmp(a->file, b->file) &&
           !strcmp(a->build_id, b->build_id) && !a->here_ns == !b->here_ns &&
           a->device == b->device && a->inode == b->inode &&
           (!a->by_address || (a->pid == b->pid && a->uid == b->uid));
}

/* Writes a row of functions; 0: it could not be written. */
static int64_t add_function(struct resolver *r, const char *name, const char *file)
{
    sqlite3_bind_int64(r->function, 1, ++r->last_function);
    sqlite3_bind_text(r->function, 2, name, -1, SQLITE_STATIC);
    sqlite3_bind_text(r->function, 3, *file ? file : NULL, -1, SQLITE_STATIC);
    if (sqlite3_step(r->function) != SQLITE_DONE)
        return 0;
    sqlite3_reset(r->function);
    return r->last_function;
}

static int find_names(struct resolver *r, struct names *ret)
{
    struct source *s = &r->source;
    struct names_source source = {
        .file = s->file,
        .build_id = s->build_id,
        .here_ns = r->same_boot || *s->build_id ? s->here_ns : 0,
        .device = s->device,
        .inode = s->inode,
        .pid = (pid_t)s->pid,
        .uid = s->uid,
    };

    /* The kernel's addresses, and those of what it maps, hold only for this boot. */
    if ((s->kernel || !strcmp(s->file, "[vdso]")) && !r->same_boot)
        return -ENOENT;
    if (s->kernel)
        source.kind = NAMES_KERNEL;
    else if (s->by_address)
        source.kind = NAMES_PERF_MAP;
    else if (!strcmp(s->file, "[vdso]"))
        source.kind = NAMES_VDSO;
    else if (s->file[0] == '/')
        source.kind = NAMES_ELF;
    else
        return -ENOENT;
    return names_find(r->namer, &source, r->places, r->count, ret);
}

/* Mappings from before the recording came without build ids: they get those that the files have
 * now. */
static void add_build_id(struct resolver *r, const char *build_id)
{
    if (r->temporary || !r->source.no_build_id || !r->source.here_ns || !*build_id)
        return;
    sqlite3_bind_text(r->build, 1, build_id, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(r->build, 2, r->source.file, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(r->build, 3, (int64_t)r->source.device);
    sqlite3_bind_int64(r->build, 4, (int64_t)r->source.inode);
    sqlite3_step(r->build);
    sqlite3_reset(r->build);
}

static int write_pair(struct resolver *r, int64_t stack, int64_t function)
{
    sqlite3_bind_int64(r->pair, 1, stack);
    sqlite3_bind_int64(r->pair, 2, function);
    if (!function || sqlite3_step(r->pair) != SQLITE_DONE)
        return -EIO;
    sqlite3_reset(r->pair);
    return 0;
}

/* Names the rows that wait. Rows without a name share one function. */
static int name_rows(struct resolver *r)
{
    struct names names = {0};
    int64_t *functions;
    int result = 0;

    if (!r->count)
        return 0;
    if (find_names(r, &names))
        names = (struct names){.count = 1};
    add_build_id(r, names.build_id);
    functions = calloc(names.count, sizeof(*functions));
    for (size_t i = 0; i < r->count && !result; i++) {
        uint32_t number = names.number ? names.number[i] : 0;

        if (functions && !functions[number])
            functions[number] =
                add_function(r, number ? names.name[number] : "[unknown]", r->source.file);
        result = functions ? write_pair(r, r->ids[i], functions[number]) : -ENOMEM;
    }
    free(functions);
    names_free(&names);
    r->count = 0;
    return result;
}

static int make_room(struct resolver *r)
{
    size_t room = r->room;

    if (array_reserve(r->ids, r->count, room, 1))
        return -ENOMEM;
    return array_reserve(r->places, r->count, r->room, 1);
}

/* Names a row that came with its name. Rows of one name come together. */
static int name_row(struct resolver *r, const char *name)
{
    const char *file = text_of(r->stacks, 3);

    if (!r->named || strcmp(r->named, name) != 0 || strcmp(r->named_file, file) != 0) {
        free(r->named);
        free(r->named_file);
        r->named = strdup(name);
        r->named_file = strdup(file);
        if (!r->named || !r->named_file)
            return -ENOMEM;
        r->named_function = add_function(r, name, file);
    }
    return write_pair(r, sqlite3_column_int64(r->stacks, 0), r->named_function);
}

static int resolve_row(struct resolver *r)
{
    struct source source = source_of_row(r);
    uint64_t place = (uint64_t)sqlite3_column_int64(r->stacks, 2);
    const char *name = text_of(r->stacks, 10);
    int result;

    if (*name)
        return name_row(r, name);
    result = r->count && !is_same(&source, &r->source) ? name_rows(r) : 0;
    if (!result)
        result = make_room(r);
    if (result)
        return result;
    if (!r->count)
        r->source = source;
    else if (source.here_ns < r->source.here_ns)
        r->source.here_ns = source.here_ns;
    if (!source.by_address)
        place += (uint64_t)sqlite3_column_int64(r->stacks, 7) -
                 (uint64_t)sqlite3_column_int64(r->stacks, 6);
    r->ids[r->count] = sqlite3_column_int64(r->stacks, 0);
    r->places[r->count++] = place;
    return 0;
}

static int resolve_rows(struct resolver *r)
{
    int step;

    while ((step = sqlite3_step(r->stacks)) == SQLITE_ROW) {
        int result = resolve_row(r);

        if (result)
            return result;
    }
    return step == SQLITE_DONE ? name_rows(r) : -EIO;
}

static bool prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret)
{
    return sqlite3_prepare_v2(db, sql, -1, ret, NULL) == SQLITE_OK;
}

/* Recordings of earlier versions had no numbers of files, earlier ones no sources in stacks,
 * earlier ones did not say whose files a process saw, earlier ones had no names in stacks, and
 * still earlier ones no users in maps. */
static bool prepare_all(struct resolver *r)
{
    return (prepare(r->db,
                    SELECT_STACKS("m.uid", "k.name", "m.here_ns", "ifnull(k.file, m.file)",
                                  "m.device", "m.inode"),
                    &r->stacks) ||
            prepare(r->db, OLDER_STACKS("m.uid", "k.name", "m.here_ns", "ifnull(k.file, m.file)"),
                    &r->stacks) ||
            prepare(r->db, OLDER_STACKS("m.uid", "k.name", "m.here_ns", "m.file"), &r->stacks) ||
            prepare(r->db, OLDER_STACKS("m.uid", "k.name", "NULL", "m.file"), &r->stacks) ||
            prepare(r->db, OLDER_STACKS("m.uid", "NULL", "NULL", "m.file"), &r->stacks) ||
            prepare(r->db, OLDER_STACKS("NULL", "NULL", "NULL", "m.file"), &r->stacks)) &&
           prepare(r->db, "INSERT INTO functions VALUES(?,?,?)", &r->function) &&
           prepare(r->db, "INSERT INTO stack_functions VALUES(?,?)", &r->pair) &&
           (r->temporary || prepare(r->db,
                                    "UPDATE maps SET build_id=?1 WHERE file=?2 AND "
                                    "build_id IS NULL AND here_ns IS NOT NULL AND "
                                    "ifnull(device, 0)=?3 AND ifnull(inode, 0)=?4",
                                    &r->build));
}

int resolve_functions(struct sqlite3 *db, bool temporary, struct namer *namer,
                      struct prcb_error *err)
{
    struct resolver r = {
        .db = db, .same_boot = is_same_boot(db), .temporary = temporary, .namer = namer};
    int result = 0;

    if (sqlite3_exec(db, temporary ? RECORD_FUNCTIONS("TEMP") BEGIN : BEGIN, NULL, NULL, NULL) !=
        SQLITE_OK)
        return failed(&r, err);
    if (!prepare_all(&r))
        result = failed(&r, err);
    if (!result)
        result = resolve_rows(&r);
    if (result == -ENOMEM)
        prcb_fail(err, result, "naming functions: out of memory");
    else if (result)
        result = failed(&r, err);
    sqlite3_finalize(r.stacks);
    sqlite3_finalize(r.function);
    sqlite3_finalize(r.pair);
    sqlite3_finalize(r.build);
    free(r.ids);
    free(r.places);
    free(r.named);
    free(r.named_file);
    if (sqlite3_exec(db, result ? ROLLBACK : COMMIT, NULL, NULL, NULL) != SQLITE_OK && !result) {
        result = failed(&r, err);
        sqlite3_exec(db, ROLLBACK, NULL, NULL, NULL);
    }
    return result;
}
