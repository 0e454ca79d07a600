/* SPDX-License-Identifier: BSD-2-Clause
 *
 * pg_stat_prcb: what each query waited for. A backend reads its own account before and after it
 * runs a query, and adds the difference to the sums of that query in shared memory: while queries
 * run in it (ExecutorRun, ExecutorFinish, ProcessUtility), and while their transaction commits.
 */
#include <postgres.h>

#include <access/parallel.h>
#include <access/xact.h>
#include <catalog/pg_authid.h>
#include <commands/prepare.h>
#include <common/hashfn.h>
#include <executor/executor.h>
#include <funcapi.h>
#include <miscadmin.h>
#include <nodes/plannodes.h>
#include <storage/ipc.h>
#include <tcop/utility.h>
#include <utils/acl.h>
#include <utils/builtins.h>
#include <utils/guc.h>
#include <utils/timestamp.h>
#if PG_VERSION_NUM >= 160000
#include <nodes/queryjumble.h>
#else
#include <utils/queryjumble.h>
#endif

#include "backend.h"
#include "store.h"

PG_MODULE_MAGIC;

#define LEVELS STORE_DEPTHS /* of queries that queries run, which have rows of their own */

enum track { TRACK_NONE, TRACK_TOP, TRACK_ALL };

static const struct config_enum_entry track_words[] = {{"none", TRACK_NONE, false},
                                                       {"top", TRACK_TOP, false},
                                                       {"all", TRACK_ALL, false},
                                                       {NULL, 0, false}};
static const struct config_enum_entry tier_words[] = {{"daemon", TIER_DAEMON, false},
                                                      {"perf", TIER_PERF, false},
                                                      {"off", TIER_OFF, false},
                                                      {NULL, 0, false}};

static int track = TRACK_TOP;
static bool track_utility = true;

static shmem_request_hook_type before_request;
static shmem_startup_hook_type before_startup;
static ExecutorStart_hook_type before_start;
static ExecutorRun_hook_type before_run;
static ExecutorFinish_hook_type before_finish;
static ExecutorEnd_hook_type before_end;
static ProcessUtility_hook_type before_utility;

/* Queries that run and have not ended, by level. A client that fetches from several cursors by
 * turns has several at level 0: what one has so far is added when the other goes on. */
static struct running {
    const QueryDesc *query; /* NULL: none */
    struct store_key key;
    struct store_sums sums;
} running[LEVELS];
static int level;

/* What the transaction that goes on is committed for: its last query of level 0. */
static struct store_key last;

/* A stretch of time of this process. */
struct stretch {
    struct figures begin;
    unsigned session;
    bool known;
};

void _PG_init(void);
PG_FUNCTION_INFO_V1(pg_stat_prcb);
PG_FUNCTION_INFO_V1(pg_stat_prcb_reset);
PG_FUNCTION_INFO_V1(pg_stat_prcb_tier);

/* ---- stretches ------------------------------------------------------------------ */

static void begin(struct stretch *s)
{
    s->known = backend_read(&s->begin, &s->session);
}

/* Nothing is added where the session was another one meanwhile. */
static void end(const struct stretch *s, struct store_sums *sums)
{
    struct figures now;
    unsigned session;

    if (!s->known || !backend_read(&now, &session) || session != s->session)
        return;
    figures_add(&sums->figures, &now, &s->begin);
    sums->measured = 1;
    sums->split += now.ns[PART_UNSPLIT] == s->begin.ns[PART_UNSPLIT];
}

static bool wanted(uint64 queryid)
{
    return store_there() && queryid && level < LEVELS && track > (level ? TRACK_TOP : TRACK_NONE);
}

static struct store_key key_of(uint64 queryid)
{
    return (struct store_key){GetUserId(), MyDatabaseId, queryid, level == 0};
}

static void flush(struct running *r)
{
    if (r->query) {
        r->sums.measured = r->sums.measured ? r->sums.calls + r->sums.errors + r->sums.workers : 0;
        store_add(&r->key, &r->sums);
    }
    r->query = NULL;
}

static void flush_failed(struct running *r)
{
    r->sums.errors = 1;
    flush(r);
}

static uint64 text_of(const QueryDesc *query)
{
    const char *text = query->sourceText ? query->sourceText : "";
    uint64 hash = hash_bytes_extended((const unsigned char *)text, (int)strlen(text), 0);

    return hash ? hash : 1;
}

/* The query's row, to add to; NULL: none. A worker adds to that of its leader's query. */
static struct running *running_of(const QueryDesc *query)
{
    struct running *r = &running[level < LEVELS ? level : 0];
    struct store_key key;

    if (IsParallelWorker() ? !store_there() || level : !wanted(query->plannedstmt->queryId))
        return NULL;
    if (r->query == query)
        return r;
    if (!IsParallelWorker())
        key = key_of(query->plannedstmt->queryId);
    else if (!store_led(text_of(query), &key))
        return NULL;
    flush(r);
    memset(r, 0, sizeof(*r));
    r->query = query;
    r->key = key;
    return r;
}

/* Workers start after this, by way of the postmaster and its locks: what is stored here is what
 * they load (running_of), until the leader has waited for them. Returns whether there is. */
static bool lead(const QueryDesc *query, const struct running *r)
{
    if (!r || IsParallelWorker() || !query->plannedstmt->parallelModeNeeded)
        return false;
    store_lead(level, text_of(query), &r->key);
    return true;
}

static void lead_no_more(bool leads)
{
    static const struct store_key none;

    if (leads)
        store_lead(level, 0, &none);
}

/* Whether the row is still the query's: one that it ran may have taken it. */
static bool is_of(const struct running *r, const QueryDesc *query)
{
    return r && r->query == query;
}

static void stop(struct running *r, const QueryDesc *query, const struct stretch *s)
{
    if (is_of(r, query))
        end(s, &r->sums);
}

/* ---- the executor --------------------------------------------------------------- */

/* Whatever another query left behind at this address is not this one's. */
static void start(QueryDesc *query, int flags)
{
    for (int i = 0; i < LEVELS; i++) {
        if (running[i].query == query)
            flush(&running[i]);
    }
    if (before_start)
        before_start(query, flags);
    else
        standard_ExecutorStart(query, flags);
}

#if PG_VERSION_NUM >= 180000
#define ONCE_PARAMETER
#define ONCE
#else
#define ONCE_PARAMETER , bool once
#define ONCE           , once
#endif

static void run(QueryDesc *query, ScanDirection direction, uint64 count ONCE_PARAMETER)
{
    struct running *r = running_of(query);
    struct stretch s = {.known = false};
    bool leads = lead(query, r);

    if (r)
        begin(&s);
    level++;
    PG_TRY();
    {
        if (before_run)
            before_run(query, direction, count ONCE);
        else
            standard_ExecutorRun(query, direction, count ONCE);
    }
    PG_CATCH();
    {
        level--;
        lead_no_more(leads);
        stop(r, query, &s);
        if (is_of(r, query))
            flush_failed(r);
        PG_RE_THROW();
    }
    PG_END_TRY();
    level--;
    lead_no_more(leads);
    stop(r, query, &s);
}

/* There is something to finish: triggers, or parts of the query that change tables. */
static bool finishes(const QueryDesc *query)
{
    return query->operation != CMD_SELECT || query->estate->es_auxmodifytables != NIL;
}

static void finish(QueryDesc *query)
{
    struct running *r = finishes(query) ? running_of(query) : NULL;
    struct stretch s = {.known = false};

    if (r)
        begin(&s);
    level++;
    PG_TRY();
    {
        if (before_finish)
            before_finish(query);
        else
            standard_ExecutorFinish(query);
    }
    PG_CATCH();
    {
        level--;
        stop(r, query, &s);
        if (is_of(r, query))
            flush_failed(r);
        PG_RE_THROW();
    }
    PG_END_TRY();
    level--;
    stop(r, query, &s);
}

static void end_query(QueryDesc *query)
{
    struct running *r = running_of(query);

    if (r && IsParallelWorker())
        r->sums.workers = 1;
    else if (r)
        r->sums.calls = 1;
    if (r && level == 0)
        last = r->key;
    if (r)
        flush(r);
    if (before_end)
        before_end(query);
    else
        standard_ExecutorEnd(query);
}

/* ---- other statements ----------------------------------------------------------- */

static void call_utility(PlannedStmt *pstmt, const char *text, bool read_only,
                         ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *env,
                         DestReceiver *dest, QueryCompletion *qc)
{
    if (before_utility)
        before_utility(pstmt, text, read_only, context, params, env, dest, qc);
    else
        standard_ProcessUtility(pstmt, text, read_only, context, params, env, dest, qc);
}

/* EXECUTE runs a query that has a row of its own. */
static bool stands_for_another(const Node *statement)
{
    return IsA(statement, ExecuteStmt) || IsA(statement, PrepareStmt);
}

static void utility(PlannedStmt *pstmt, const char *text, bool read_only,
                    ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *env,
                    DestReceiver *dest, QueryCompletion *qc)
{
    struct store_sums sums = {0};
    struct store_key key;
    struct stretch s;
    int found_level = level;

    /* The statement may be gone when it has been run: a ROLLBACK frees it. */
    if (!track_utility || IsParallelWorker() || !wanted(pstmt->queryId) ||
        stands_for_another(pstmt->utilityStmt)) {
        call_utility(pstmt, text, read_only, context, params, env, dest, qc);
        return;
    }
    key = key_of(pstmt->queryId);
    begin(&s);
    level++;
    PG_TRY();
    {
        call_utility(pstmt, text, read_only, context, params, env, dest, qc);
    }
    PG_CATCH();
    {
        level = found_level;
        end(&s, &sums);
        sums.errors = 1;
        store_add(&key, &sums);
        PG_RE_THROW();
    }
    PG_END_TRY();
    level = found_level;
    end(&s, &sums);
    sums.calls = 1;
    store_add(&key, &sums);
    if (level == 0)
        last = key;
}

/* ---- commits -------------------------------------------------------------------- */

/* What has to reach the disk does so after the last statement: its waits are its query's. One that
 * waits for nothing is not worth a look at the table. */
static void committed(struct stretch *s)
{
    struct store_sums sums = {0};

    end(s, &sums);
    sums.commit = figures_wall(&sums.figures);
    sums.measured = 0;
    if (sums.figures.switches > 0 && last.queryid)
        store_add(&last, &sums);
    s->known = false;
}

static void transaction(XactEvent event, void *arg)
{
    static struct stretch s;

    (void)arg;
    if (!store_there() || IsParallelWorker() || level)
        return;
    switch (event) {
    case XACT_EVENT_PRE_COMMIT:
    case XACT_EVENT_PRE_PREPARE:
        s.known = false;
        if (last.queryid)
            begin(&s);
        break;
    case XACT_EVENT_COMMIT:
    case XACT_EVENT_PREPARE:
        if (s.known)
            committed(&s);
        last.queryid = 0;
        break;
    case XACT_EVENT_ABORT:
        for (int i = 0; i < LEVELS; i++)
            flush_failed(&running[i]);
        s.known = false;
        last.queryid = 0;
        break;
    default:
        break;
    }
}

/* ---- SQL ------------------------------------------------------------------------ */

struct rows {
    ReturnSetInfo *set;
    Oid user;
    bool all; /* the caller may see those of other users */
};

#define KEYS 4

static void add_row(const struct store_key *key, const struct store_sums *sums, TimestampTz since,
                    void *ctx)
{
    const struct rows *rows = ctx;
    bool known = sums->measured || figures_wall(&sums->figures);
    Datum values[KEYS + 5 + PARTS + 3];
    bool nulls[KEYS + 5 + PARTS + 3] = {false};
    int i = 0;

    values[i++] = ObjectIdGetDatum(key->userid);
    values[i++] = ObjectIdGetDatum(key->dbid);
    nulls[i] = !rows->all && key->userid != rows->user;
    values[i++] = Int64GetDatum((int64)key->queryid);
    values[i++] = BoolGetDatum(key->toplevel);
    values[i++] = Int64GetDatum(sums->calls);
    values[i++] = Int64GetDatum(sums->errors);
    values[i++] = Int64GetDatum(sums->workers);
    values[i++] = Int64GetDatum(sums->measured);
    nulls[i] = !known;
    values[i++] = Int64GetDatum(figures_wall(&sums->figures));
    for (int part = 0; part < PARTS; part++) {
        nulls[i] = !known || (part > PART_READY && part < PART_UNSPLIT && !sums->split);
        values[i++] = Int64GetDatum(sums->figures.ns[part]);
    }
    nulls[i] = !known;
    values[i++] = Int64GetDatum(sums->commit);
    nulls[i] = !known;
    values[i++] = Int64GetDatum(sums->figures.switches);
    values[i++] = TimestampTzGetDatum(since);
    tuplestore_putvalues(rows->set->setResult, rows->set->setDesc, values, nulls);
}

static void check_there(void)
{
    if (!store_there())
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("pg_stat_prcb must be loaded via shared_preload_libraries")));
}

Datum pg_stat_prcb(PG_FUNCTION_ARGS)
{
    struct rows rows = {.user = GetUserId()};

    check_there();
    InitMaterializedSRF(fcinfo, 0);
    rows.set = (ReturnSetInfo *)fcinfo->resultinfo;
    rows.all = has_privs_of_role(rows.user, ROLE_PG_READ_ALL_STATS);
    store_walk(add_row, &rows);
    return (Datum)0;
}

Datum pg_stat_prcb_reset(PG_FUNCTION_ARGS)
{
    check_there();
    PG_RETURN_INT64(store_reset(PG_GETARG_OID(0), PG_GETARG_OID(1), (uint64)PG_GETARG_INT64(2)));
}

Datum pg_stat_prcb_tier(PG_FUNCTION_ARGS)
{
    const char *reason;
    Datum values[2];
    bool nulls[2] = {false};
    struct figures figures;
    unsigned session;
    TupleDesc row;

    check_there();
    if (get_call_result_type(fcinfo, NULL, &row) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "return type must be a row type");
    (void)backend_read(&figures, &session); /* the first call opens the session */
    reason = backend_reason();
    values[0] = CStringGetTextDatum(backend_tier_name());
    values[1] = reason ? CStringGetTextDatum(reason) : (Datum)0;
    nulls[1] = !reason;
    PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(row), values, nulls)));
}

/* ---- loading -------------------------------------------------------------------- */

static void request(void)
{
    if (before_request)
        before_request();
    store_request();
}

static void startup(void)
{
    if (before_startup)
        before_startup();
    store_startup();
}

static void define_settings(void)
{
    DefineCustomIntVariable("pg_stat_prcb.max", "Sets how many queries pg_stat_prcb has room for.",
                            NULL, &store_max, 5000, 100, INT_MAX / 2, PGC_POSTMASTER, 0, NULL, NULL,
                            NULL);
    DefineCustomEnumVariable("pg_stat_prcb.track", "Selects which statements have rows.",
                             "Those that clients send, or also those that functions run.", &track,
                             TRACK_TOP, track_words, PGC_SUSET, 0, NULL, NULL, NULL);
    DefineCustomBoolVariable("pg_stat_prcb.track_utility",
                             "Selects whether utility commands have rows.", NULL, &track_utility,
                             true, PGC_SUSET, 0, NULL, NULL, NULL);
    DefineCustomBoolVariable("pg_stat_prcb.save", "Saves the statistics when the server stops.",
                             NULL, &store_save, true, PGC_SIGHUP, 0, NULL, NULL, NULL);
    DefineCustomEnumVariable(
        "pg_stat_prcb.tier", "Selects where the figures of a new connection come from.",
        "perf: from /proc, without causes of waits, and much dearer.", &backend_tier, TIER_DAEMON,
        tier_words, PGC_SU_BACKEND, 0, NULL, NULL, NULL);
    DefineCustomBoolVariable("pg_stat_prcb.patient",
                             "Lets a connection wait ten seconds for prcbd, not a fifth of one.",
                             NULL, &backend_patient, false, PGC_SU_BACKEND, 0, NULL, NULL, NULL);
    MarkGUCPrefixReserved("pg_stat_prcb");
}

void _PG_init(void)
{
    if (!process_shared_preload_libraries_in_progress)
        return;
    EnableQueryId();
    define_settings();
    before_request = shmem_request_hook;
    shmem_request_hook = request;
    before_startup = shmem_startup_hook;
    shmem_startup_hook = startup;
    before_start = ExecutorStart_hook;
    ExecutorStart_hook = start;
    before_run = ExecutorRun_hook;
    ExecutorRun_hook = run;
    before_finish = ExecutorFinish_hook;
    ExecutorFinish_hook = finish;
    before_end = ExecutorEnd_hook;
    ExecutorEnd_hook = end_query;
    before_utility = ProcessUtility_hook;
    ProcessUtility_hook = utility;
    RegisterXactCallback(transaction, NULL);
}
