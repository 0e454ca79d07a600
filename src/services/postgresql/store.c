/* SPDX-License-Identifier: BSD-2-Clause */
#include <postgres.h>

#include <unistd.h>

#include <miscadmin.h>
#include <pgstat.h>
#include <port/atomics.h>
#include <storage/fd.h>
#include <storage/ipc.h>
#include <storage/lwlock.h>
#include <storage/proc.h>
#include <storage/shmem.h>
#include <storage/spin.h>
#include <utils/hsearch.h>
#include <utils/memutils.h>
#include <utils/timestamp.h>

#include "store.h"

#define TRANCHE       "pg_stat_prcb"
#define FILE_NAME     PGSTAT_STAT_PERMANENT_DIRECTORY "/pg_stat_prcb.stat"
#define FILE_MAGIC    UINT64CONST(0x7072636273740001) /* "prcbst", version 1 */
#define SHARE         20   /* of the queries, one in so many goes when there is no room, */
#define DECAY         0.99 /* and the use of the others fades by this */
#define PAUSE_MS      200  /* that a backend waits; twice that is the first pause */
#define PAUSE_MOST_MS 5000

int store_max = 5000;
bool store_save = true;

struct entry {
    struct store_key key; /* first: the hash table's */
    slock_t mutex;        /* of what follows; the lock of the table is held at least shared */
    struct store_sums sums;
    TimestampTz since;
    double use;
};

struct shared {
    pg_atomic_uint64 pause; /* until when; 0: none */
    pg_atomic_uint32 lates; /* how often prcbd was late since it last answered */
    LWLock *lock;           /* of the table */
    struct store_leader leaders[FLEXIBLE_ARRAY_MEMBER][STORE_DEPTHS]; /* by number of the process */
};

struct file_head {
    uint64 magic, count;
    uint32 major, entry;
};

struct file_row {
    struct store_key key;
    struct store_sums sums;
    TimestampTz since;
};

static struct shared *shared;
static HTAB *table;

/* ---- shared memory -------------------------------------------------------------- */

/* Processes that can run queries have the first numbers. */
static Size head_size(void)
{
    return add_size(offsetof(struct shared, leaders),
                    mul_size((Size)MaxBackends, sizeof(struct store_leader[STORE_DEPTHS])));
}

Size store_size(void)
{
    return add_size(head_size(), hash_estimate_size(store_max, sizeof(struct entry)));
}

void store_request(void)
{
    RequestAddinShmemSpace(store_size());
    RequestNamedLWLockTranche(TRANCHE, 1);
}

bool store_there(void)
{
    return shared && table;
}

static uint64 pause_from(TimestampTz now)
{
    uint32 lates = Min(pg_atomic_read_u32(&shared->lates), 8);
    int64 ms = Min((int64)PAUSE_MS << lates, PAUSE_MOST_MS);

    return (uint64)(now + ms * 1000);
}

bool store_pauses(TimestampTz now)
{
    return now < (TimestampTz)pg_atomic_read_u64(&shared->pause);
}

bool store_may_ask(TimestampTz now)
{
    uint64 until = pg_atomic_read_u64(&shared->pause);

    if (!until)
        return true;
    return now >= (TimestampTz)until &&
           pg_atomic_compare_exchange_u64(&shared->pause, &until, pause_from(now));
}

/* The two need no order between them: at worst one more backend waits. */
void store_asked(TimestampTz now, bool late)
{
    if (!late && !pg_atomic_read_u64(&shared->pause))
        return;
    if (late)
        pg_atomic_fetch_add_u32(&shared->lates, 1);
    else
        pg_atomic_write_u32(&shared->lates, 0);
    pg_atomic_write_u64(&shared->pause, late ? pause_from(now) : 0);
}

#if PG_VERSION_NUM >= 170000
#define NUMBER_OF(proc) GetNumberFromPGProc(proc)
#else
#define NUMBER_OF(proc) ((proc)->pgprocno)
#endif

void store_lead(int depth, uint64 text, const struct store_key *key)
{
    struct store_leader *mine = &shared->leaders[NUMBER_OF(MyProc)][depth];

    mine->text = 0;
    pg_write_barrier();
    mine->key = *key;
    pg_write_barrier();
    mine->text = text;
}

/* The innermost first: where a query runs itself, both are of one row but for the depth. */
bool store_led(uint64 text, struct store_key *ret)
{
    const volatile struct store_leader *of;

    if (!MyProc->lockGroupLeader)
        return false;
    for (int depth = STORE_DEPTHS; depth-- > 0;) {
        of = &shared->leaders[NUMBER_OF(MyProc->lockGroupLeader)][depth];
        if (of->text != text)
            continue;
        pg_read_barrier();
        *ret = *(const struct store_key *)&of->key;
        pg_read_barrier();
        if (of->text == text)
            return true;
    }
    return false;
}

/* ---- sums ----------------------------------------------------------------------- */

static int by_use(const void *left, const void *right)
{
    const struct entry *a = *(struct entry *const *)left, *b = *(struct entry *const *)right;

    return a->use < b->use ? -1 : a->use > b->use;
}

/* The lock is held exclusively: an error here would leave it locked for who handles it. */
static void make_room(void)
{
    struct entry **all, *entry;
    HASH_SEQ_STATUS status;
    int count = 0, leave;

    all = palloc_extended(sizeof(*all) * (Size)hash_get_num_entries(table), MCXT_ALLOC_NO_OOM);
    if (!all)
        return;
    hash_seq_init(&status, table);
    while ((entry = hash_seq_search(&status)) != NULL) {
        all[count++] = entry;
        entry->use *= DECAY;
    }
    qsort(all, (size_t)count, sizeof(*all), by_use);
    leave = Min(count, Max(10, count / SHARE));
    for (int i = 0; i < leave; i++)
        hash_search(table, &all[i]->key, HASH_REMOVE, NULL);
    pfree(all);
}

/* The lock is held exclusively. NULL: no room. */
static struct entry *make(const struct store_key *key)
{
    struct entry *entry;
    bool found;

    if (hash_get_num_entries(table) >= store_max)
        make_room();
    if (hash_get_num_entries(table) >= store_max)
        return NULL;
    entry = hash_search(table, key, HASH_ENTER_NULL, &found);
    if (entry && !found) {
        SpinLockInit(&entry->mutex);
        memset(&entry->sums, 0, sizeof(entry->sums));
        entry->since = GetCurrentTimestamp();
        entry->use = 1;
    }
    return entry;
}

static void add(struct entry *entry, const struct store_sums *more)
{
    static const struct figures nothing;

    SpinLockAcquire(&entry->mutex);
    entry->sums.calls += more->calls;
    entry->sums.errors += more->errors;
    entry->sums.workers += more->workers;
    entry->sums.measured += more->measured;
    entry->sums.split += more->split;
    entry->sums.commit += more->commit;
    figures_add(&entry->sums.figures, &more->figures, &nothing);
    entry->use += 1;
    SpinLockRelease(&entry->mutex);
}

/* Keys are compared byte for byte: the gaps in them are 0. */
static struct store_key clean(const struct store_key *key)
{
    struct store_key ret;

    memset(&ret, 0, sizeof(ret));
    ret.userid = key->userid;
    ret.dbid = key->dbid;
    ret.queryid = key->queryid;
    ret.toplevel = key->toplevel;
    return ret;
}

void store_add(const struct store_key *key, const struct store_sums *more)
{
    struct store_key k = clean(key);
    struct entry *entry;

    /* While an error is handled the locks of what failed are still held: store_walk's may be one.
     */
    if (LWLockHeldByMe(shared->lock))
        return;
    LWLockAcquire(shared->lock, LW_SHARED);
    entry = hash_search(table, &k, HASH_FIND, NULL);
    if (!entry) {
        LWLockRelease(shared->lock);
        LWLockAcquire(shared->lock, LW_EXCLUSIVE);
        entry = make(&k);
    }
    if (entry)
        add(entry, more);
    LWLockRelease(shared->lock);
}

void store_walk(void (*fn)(const struct store_key *, const struct store_sums *, TimestampTz since,
                           void *),
                void *ctx)
{
    HASH_SEQ_STATUS status;
    struct store_sums sums;
    struct entry *entry;

    LWLockAcquire(shared->lock, LW_SHARED);
    hash_seq_init(&status, table);
    while ((entry = hash_seq_search(&status)) != NULL) {
        SpinLockAcquire(&entry->mutex);
        sums = entry->sums;
        SpinLockRelease(&entry->mutex);
        fn(&entry->key, &sums, entry->since, ctx);
    }
    LWLockRelease(shared->lock);
}

int64 store_reset(Oid userid, Oid dbid, uint64 queryid)
{
    HASH_SEQ_STATUS status;
    struct entry *entry;
    int64 removed = 0;

    LWLockAcquire(shared->lock, LW_EXCLUSIVE);
    hash_seq_init(&status, table);
    while ((entry = hash_seq_search(&status)) != NULL) {
        if ((userid && entry->key.userid != userid) || (dbid && entry->key.dbid != dbid) ||
            (queryid && entry->key.queryid != queryid))
            continue;
        hash_search(table, &entry->key, HASH_REMOVE, NULL);
        removed++;
    }
    LWLockRelease(shared->lock);
    return removed;
}

/* ---- the file ------------------------------------------------------------------- */

static bool write_rows(FILE *file)
{
    struct file_head head = {FILE_MAGIC, (uint64)hash_get_num_entries(table),
                             PG_VERSION_NUM / 10000, sizeof(struct file_row)};
    HASH_SEQ_STATUS status;
    struct entry *entry;
    bool good = fwrite(&head, sizeof(head), 1, file) == 1;

    hash_seq_init(&status, table);
    while ((entry = hash_seq_search(&status)) != NULL) {
        struct file_row row = {entry->key, entry->sums, entry->since};

        good = good && fwrite(&row, sizeof(row), 1, file) == 1;
    }
    return good;
}

/* The postmaster, after all others have ended. Not after a crash: the memory may be wrong. */
static void save(int code, Datum arg)
{
    FILE *file;
    bool good;

    if (code || !store_there() || !store_save)
        return;
    file = AllocateFile(FILE_NAME ".tmp", PG_BINARY_W);
    good = file && write_rows(file);
    if (file && FreeFile(file))
        good = false;
    if (!good) {
        ereport(LOG, (errcode_for_file_access(),
                      errmsg("could not write file \"%s\": %m", FILE_NAME ".tmp")));
        unlink(FILE_NAME ".tmp");
        return;
    }
    durable_rename(FILE_NAME ".tmp", FILE_NAME, LOG);
}

/* Whatever the file holds, no more rows come of it than there is room for. */
static bool read_rows(FILE *file)
{
    struct file_head head;
    struct file_row row;

    if (fread(&head, sizeof(head), 1, file) != 1 || head.magic != FILE_MAGIC ||
        head.major != PG_VERSION_NUM / 10000 || head.entry != sizeof(row))
        return false;
    for (uint64 i = 0; i < head.count && i < (uint64)store_max; i++) {
        struct store_key key;
        struct entry *entry;

        if (fread(&row, sizeof(row), 1, file) != 1)
            return false;
        key = clean(&row.key);
        entry = make(&key);
        if (!entry)
            return true;
        entry->sums = row.sums;
        entry->since = row.since;
    }
    return true;
}

/* The file goes once it is read: after a crash old sums would come again. */
static void load(void)
{
    FILE *file = AllocateFile(FILE_NAME, PG_BINARY_R);

    if (!file) {
        if (errno != ENOENT)
            ereport(LOG, (errcode_for_file_access(),
                          errmsg("could not read file \"%s\": %m", FILE_NAME)));
        return;
    }
    if (!read_rows(file))
        ereport(LOG, (errmsg("file \"%s\" is damaged, or of another version: the statistics in it "
                             "are not used further",
                             FILE_NAME)));
    FreeFile(file);
    unlink(FILE_NAME);
}

void store_startup(void)
{
    HASHCTL info = {.keysize = sizeof(struct store_key), .entrysize = sizeof(struct entry)};
    bool found;

    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    shared = ShmemInitStruct("pg_stat_prcb", head_size(), &found);
    if (!found) {
        memset(shared, 0, head_size());
        pg_atomic_init_u64(&shared->pause, 0);
        pg_atomic_init_u32(&shared->lates, 0);
        shared->lock = &GetNamedLWLockTranche(TRANCHE)->lock;
    }
    table =
        ShmemInitHash("pg_stat_prcb queries", store_max, store_max, &info, HASH_ELEM | HASH_BLOBS);
    LWLockRelease(AddinShmemInitLock);
    if (IsUnderPostmaster)
        return;
    on_shmem_exit(save, (Datum)0);
    if (!found && store_save)
        load();
}
