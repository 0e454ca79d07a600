/* SPDX-License-Identifier: BSD-2-Clause */
#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "error.h"
#include "schema.h"
#include "syncer.h"

#define BUSY_MS    2000
#define LOCK_BYTES 0x40000000 /* where SQLite puts its locks on a file */
#define LOCK_COUNT 512

enum statement {
    FACT,
    THREAD,
    THREAD_NAME,
    THREAD_END,
    THREAD_STATE,
    MAP,
    MAP_FILE,
    STACK,
    SAMPLE,
    SWITCH,
    WAKER,
    WAIT,
    TIMES,
    LOSS,
    STATEMENTS,
};

/* clang-format off */
#define PART(name, ...) ", " #name " INTEGER"
static const char schema[] = "BEGIN;" RECORD_SCHEMA
    "CREATE TABLE processor_times(time_ns INTEGER, cpu INTEGER"
#include "processor_figures.def"
    ");COMMIT";

#define PART(...) ",?"
static const char insert_times[] = "INSERT INTO processor_times VALUES(?,?"
#include "processor_figures.def"
    ")";
/* clang-format on */

static const char *const statements[STATEMENTS] = {
    [FACT] = "INSERT OR REPLACE INTO facts VALUES(?,?)",
    [THREAD] = "INSERT INTO threads VALUES(?,?,?,?,?,?,NULL,?,NULL,NULL)",
    [THREAD_NAME] = "UPDATE threads SET name=?2 WHERE id=?1",
    [THREAD_END] = "UPDATE threads SET end_ns=?2 WHERE id=?1",
    [THREAD_STATE] = "UPDATE threads SET start_state=?2, start_cause=?3, start_reason=?4 "
                     "WHERE id=?1",
    [MAP] = "INSERT INTO maps VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
    [MAP_FILE] = "UPDATE maps SET build_id=ifnull(?2, build_id), device=ifnull(?3, device), "
                 "inode=ifnull(?4, inode) WHERE id=?1",
    [STACK] = "INSERT INTO stacks VALUES(?,?,?,?,?,?,?,?)",
    [SAMPLE] = "INSERT INTO samples VALUES(?,?,?,?,?,?)",
    [SWITCH] = "INSERT INTO switches VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
    [WAKER] = "INSERT INTO wakers VALUES(?,?,?,?,?,?,?)",
    [WAIT] = "INSERT INTO wait_stacks VALUES(?,?,?,?,?,?,?,?,?)",
    [TIMES] = insert_times,
    [LOSS] = "INSERT INTO losses VALUES(?,?,?,?)",
};

struct writer {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
    char *path;
    bool open;             /* a transaction */
    struct syncer *syncer; /* NULL: the writer waits for the disk itself */
    struct prcb_error error;
};

/* Keeps what SQLite said in words; the first failure sticks. */
static int failed(struct writer *w)
{
    int code = sqlite3_errcode(w->db) & 0xff, system = sqlite3_system_errno(w->db);

    if (w->error.code)
        return w->error.code;
    if (code == SQLITE_FULL || system == ENOSPC || system == EDQUOT || system == EFBIG)
        return prcb_fail(&w->error, -ENOSPC,
                         "%s: the disk is full; what was written before is in the file", w->path);
    return prcb_fail(&w->error, code == SQLITE_NOMEM ? -ENOMEM : -EIO,
                     "%s: cannot be written: %s%s%s", w->path, sqlite3_errmsg(w->db),
                     system ? ": " : "", system ? strerror(system) : "");
}

static int execute(struct writer *w, const char *sql)
{
    return sqlite3_exec(w->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(w);
}

static int begin(struct writer *w)
{
    int result;

    if (w->error.code)
        return w->error.code;
    if (w->open)
        return 0;
    result = execute(w, "BEGIN");
    w->open = !result;
    return result;
}

static int finish(struct writer *w, sqlite3_stmt *statement)
{
    int result = sqlite3_step(statement) == SQLITE_DONE ? 0 : failed(w);

    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return result;
}

/* Writes one row. kinds: i int64_t; z int64_t, 0 is NULL; n int64_t, negative is NULL; t text. */
static int put(struct writer *w, enum statement number, const char *kinds, ...)
{
    sqlite3_stmt *statement = w->statements[number];
    va_list values;
    int result = begin(w);

    if (result)
        return result;
    va_start(values, kinds);
    for (int i = 1; kinds[i - 1]; i++) {
        int64_t value;

        if (kinds[i - 1] == 't') {
            sqlite3_bind_text(statement, i, va_arg(values, const char *), -1, SQLITE_STATIC);
            continue;
        }
        value = va_arg(values, int64_t);
        if ((kinds[i - 1] == 'z' && !value) || (kinds[i - 1] == 'n' && value < 0))
            sqlite3_bind_null(statement, i);
        else
            sqlite3_bind_int64(statement, i, value);
    }
    va_end(values);
    return finish(w, statement);
}

int writer_fact(struct writer *w, const char *name, const char *format, ...)
{
    va_list args;
    char *text;
    int result;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    if (!text)
        return -ENOMEM;
    result = put(w, FACT, "tt", name, text);
    free(text);
    return result;
}

int writer_thread(struct writer *w, int64_t id, int64_t pid, int64_t tid, int64_t parent_pid,
                  const char *name, uint64_t start_ns, const char *start_state)
{
    return put(w, THREAD, "iiiztit", id, pid, tid, parent_pid, name, (int64_t)start_ns,
               start_state);
}

int writer_thread_state(struct writer *w, int64_t id, const struct writer_state *state)
{
    return put(w, THREAD_STATE, "ittn", id, state->state, state->cause, state->reason);
}

int writer_thread_name(struct writer *w, int64_t id, const char *name)
{
    return put(w, THREAD_NAME, "it", id, name);
}

int writer_thread_end(struct writer *w, int64_t id, uint64_t end_ns)
{
    return put(w, THREAD_END, "ii", id, (int64_t)end_ns);
}

int writer_map(struct writer *w, const struct writer_map *map)
{
    return put(w, MAP, "iziiiittnzzz", map->id, map->pid, (int64_t)map->time_ns,
               (int64_t)map->start, (int64_t)map->length, (int64_t)map->file_offset, map->file,
               map->build_id, map->uid, map->here_ns, (int64_t)map->device, (int64_t)map->inode);
}

int writer_map_file(struct writer *w, const struct writer_map *map)
{
    return put(w, MAP_FILE, "itzz", map->id, map->build_id, (int64_t)map->device,
               (int64_t)map->inode);
}

int writer_stack(struct writer *w, int64_t id, int64_t caller, bool kernel, int64_t map,
                 uint64_t address, const char *name, const char *file, uint64_t line)
{
    return put(w, STACK, "izizzttz", id, caller, (int64_t)kernel, map, (int64_t)address, name, file,
               (int64_t)line);
}

int writer_sample(struct writer *w, uint64_t time_ns, uint32_t cpu, int64_t thread, int64_t stack,
                  uint64_t weight, const char *missing)
{
    return put(w, SAMPLE, "iiiiit", (int64_t)time_ns, (int64_t)cpu, thread, stack, (int64_t)weight,
               missing);
}

int writer_switch(struct writer *w, const struct writer_switch *s)
{
    return put(w, SWITCH, "iizzttnnnzzn", (int64_t)s->time_ns, (int64_t)s->cpu, s->old_thread,
               s->new_thread, s->state, s->cause, s->reason, s->ready_ns, s->pebs_index, s->waker,
               (int64_t)s->woken_ns, s->woken_cpu);
}

int writer_waker(struct writer *w, const struct writer_waker *waker)
{
    return put(w, WAKER, "itzzztn", waker->id, waker->by, waker->thread, waker->pid, waker->tid,
               waker->name, waker->number);
}

int writer_wait(struct writer *w, const struct writer_wait *wait)
{
    return put(w, WAIT, "iiztttztt", (int64_t)wait->time_ns, wait->thread, wait->stack,
               wait->missing, wait->kind, wait->word, (int64_t)wait->one_in, wait->trace_id,
               wait->span_id);
}

int writer_times(struct writer *w, const struct writer_times *times)
{
    sqlite3_stmt *statement = w->statements[TIMES];
    int result = begin(w);

    if (result)
        return result;
    sqlite3_bind_int64(statement, 1, (int64_t)times->time_ns);
    sqlite3_bind_int64(statement, 2, (int64_t)times->cpu);
    for (int i = 0; i < PROCESSOR_PARTS; i++) {
        if (times->parts[i] >= 0) /* else NULL, as it is bound */
            sqlite3_bind_int64(statement, 3 + i, times->parts[i]);
    }
    return finish(w, statement);
}

int writer_loss(struct writer *w, uint64_t time_ns, uint32_t cpu, const char *what, uint64_t count)
{
    return put(w, LOSS, "iiti", (int64_t)time_ns, (int64_t)cpu, what, (int64_t)count);
}

struct sqlite3 *writer_handle(struct writer *w)
{
    return w->db;
}

const struct prcb_error *writer_error(const struct writer *w)
{
    return &w->error;
}

int writer_commit(struct writer *w)
{
    int result;

    if (w->error.code || !w->open)
        return w->error.code;
    result = execute(w, "COMMIT");
    w->open = false;
    return result;
}

void writer_sync_apart(struct writer *w)
{
    if (!w->syncer && !writer_commit(w))
        syncer_start(w->path, w->db, &w->syncer);
}

void writer_sync_here(struct writer *w)
{
    if (w->syncer)
        writer_commit(w); /* within a transaction SQLite changes nothing of this */
    syncer_stop(w->syncer);
    w->syncer = NULL;
}

void writer_checkpoint(struct writer *w)
{
    if (!w->open)
        sqlite3_wal_checkpoint_v2(w->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

uint64_t writer_bytes(const struct writer *w)
{
    static const char *const endings[] = {"", "-wal"};
    uint64_t bytes = 0;

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        char path[4096];
        struct stat about;

        snprintf(path, sizeof(path), "%s%s", w->path, endings[i]);
        if (!stat(path, &about))
            bytes += (uint64_t)about.st_size;
    }
    return bytes;
}

/* ---- the file -------------------------------------------------------------- */

/* Whether another program has the file open by SQLite, which then holds one of its locks. */
static bool is_in_use(int fd)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_BYTES, .l_len = LOCK_COUNT};

    return !fcntl(fd, F_GETLK, &lock) && lock.l_type != F_UNLCK;
}

/* Whether a file may be replaced: it is empty, or a recording by its header (the
 * application id is four bytes at 68), and nobody records into it or reads it. */
static int check_old(const char *path, struct prcb_error *err)
{
    static const unsigned char id[4] = {'P', 'R', 'C', 'B'};
    unsigned char head[72];
    struct stat about;
    FILE *file;
    bool in_use;
    size_t got;

    if (!*path) /* to SQLite a file that goes away */
        return prcb_fail(err, -EINVAL, "the recording has no name: choose one with -o");
    if (lstat(path, &about))
        return errno == ENOENT ? 0 : prcb_fail(err, -errno, "%s: %s", path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return prcb_fail(err, -EEXIST, "%s is not a regular file: choose another name with -o",
                         path);
    file = fopen(path, "re");
    if (!file)
        return prcb_fail(err, -errno, "%s: %s", path, strerror(errno));
    got = fread(head, 1, sizeof(head), file);
    in_use = is_in_use(fileno(file));
    fclose(file);
    if (in_use)
        return prcb_fail(err, -EBUSY,
                         "%s is being recorded or read by another program: choose another name "
                         "with -o",
                         path);
    if (!got || (got == sizeof(head) && !memcmp(head, "SQLite format 3", 16) &&
                 !memcmp(head + 68, id, sizeof(id))))
        return 0;
    return prcb_fail(err, -EEXIST, "%s exists and is not a recording: choose another name with -o",
                     path);
}

static int remove_old(const char *path, struct prcb_error *err)
{
    static const char *const endings[] = {"", "-wal", "-shm", "-journal"};

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        char name[4096];

        if (snprintf(name, sizeof(name), "%s%s", path, endings[i]) >= (int)sizeof(name))
            return prcb_fail(err, -ENAMETOOLONG, "%.100s...: the name is too long", path);
        if (unlink(name) && errno != ENOENT)
            return prcb_fail(err, -errno, "%s: %s", name, strerror(errno));
    }
    return 0;
}

/* Creates an empty file, which SQLite takes for a new one. If SQLite created it, anybody could
 * read it, with the kernel's addresses in it, and it would follow a link that somebody puts
 * there meanwhile. */
static int create_empty(const char *path, struct prcb_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return prcb_fail(err, -errno, "%s: cannot be written: %s", path, strerror(errno));
    close(fd);
    return 0;
}

/* WAL: pages are appended, so that a program that dies in the middle leaves what it
 * committed, and a full disk spoils nothing that is there. */
static int prepare(struct writer *w)
{
    char pragmas[256];
    int result;

    sqlite3_busy_timeout(w->db, BUSY_MS);
    snprintf(pragmas, sizeof(pragmas),
             "PRAGMA application_id=%d; PRAGMA user_version=%d; PRAGMA journal_mode=WAL;"
             "PRAGMA synchronous=NORMAL; PRAGMA cache_size=-4096",
             RECORD_APPLICATION_ID, RECORD_VERSION);
    result = execute(w, pragmas);
    if (!result)
        result = execute(w, schema);
    for (int i = 0; i < STATEMENTS && !result; i++) {
        if (sqlite3_prepare_v3(w->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &w->statements[i], NULL) != SQLITE_OK)
            result = failed(w);
    }
    return result;
}

static void destroy(struct writer *w)
{
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(w->statements[i]);
    sqlite3_close(w->db);
    free(w->path);
    free(w);
}

int writer_create(const char *path, struct writer **ret, struct prcb_error *err)
{
    struct writer *w;
    int result = check_old(path, err);

    if (!result)
        result = remove_old(path, err);
    if (!result)
        result = create_empty(path, err);
    if (result)
        return result;
    w = calloc(1, sizeof(*w));
    if (w)
        w->path = strdup(path);
    if (!w || !w->path) {
        free(w);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    if (sqlite3_open_v2(path, &w->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
        SQLITE_OK)
        result = failed(w);
    else
        result = prepare(w);
    if (result) {
        if (result == -ENOSPC)
            prcb_fail(err, result, "%s: the disk is full: nothing was recorded", path);
        else if (err)
            *err = w->error;
        destroy(w);
        remove_old(path, NULL); /* what there is of it is no recording */
        return result;
    }
    *ret = w;
    return 0;
}

int writer_close(struct writer *w, struct prcb_error *err)
{
    int result;

    if (!w)
        return 0;
    writer_sync_here(w);
    if (w->open && w->error.code)
        sqlite3_exec(w->db, "ROLLBACK", NULL, NULL, NULL);
    else if (!writer_commit(w))
        /* This leaves one file, which can be read even where nothing can be written. It fails
         * while somebody reads the file, which is then good as it is. */
        sqlite3_exec(w->db, "PRAGMA busy_timeout=0; PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
    result = w->error.code;
    if (result && err)
        *err = w->error;
    destroy(w);
    return result;
}
