/* SPDX-License-Identifier: BSD-2-Clause */
#include <postgres.h>

#include <prcb/prcb.h>

#include <access/xact.h>
#include <miscadmin.h>
#include <utils/timestamp.h>

#include "cause.h"
#include "store.h"

#define LOOK_AGAIN_MS 60000 /* for a prcbd that was not there */
#define LATE_MS       100   /* a call that fails after this long has waited for it */

int backend_tier = TIER_DAEMON;
bool backend_patient;

/* Of this process; the postmaster, which others are forked from, has none. */
static struct {
    struct prcb *session;
    struct prcb_thread *self;
    unsigned number;      /* which session it is */
    TimestampTz tried;    /* when it was opened, or could not be; 0: never */
    bool late;            /* prcbd did not answer in time, this process or another */
    char reason[256];     /* why there is none */
    bool known;           /* what follows is set */
    struct figures last;  /* as of the last whole record, */
    uint64 switches, run; /* which had these */
} mine;

static const uint8 class_of_cause[PRCB_CAUSE_MAX] = {
#define CLASS(NAME, CLASS, ...) [PRCB_CAUSE_##NAME] = CAUSE_CLASS_##CLASS,
    CAUSE_TRAITS(CLASS)
#undef CLASS
};

static enum part part_of(unsigned cause)
{
    static const enum part parts[CAUSE_CLASSES] = {
        [CAUSE_CLASS_LOCK] = PART_LOCK,   [CAUSE_CLASS_DISK] = PART_DISK,
        [CAUSE_CLASS_NET] = PART_NET,     [CAUSE_CLASS_IPC] = PART_IPC,
        [CAUSE_CLASS_EVENT] = PART_LATCH, [CAUSE_CLASS_SLEEP] = PART_SLEEP,
    };
    unsigned class = class_of_cause[cause];

    if (cause == PRCB_CAUSE_THROTTLED)
        return PART_THROTTLED;
    if (cause == PRCB_CAUSE_PAGE_FAULT)
        return PART_PAGE_FAULT;
    return class < CAUSE_CLASSES && parts[class] ? parts[class] : PART_OTHER;
}

/* ---- the session ---------------------------------------------------------------- */

static void leave(void)
{
    prcb_thread_close(mine.self);
    prcb_close(mine.session);
    mine.self = NULL;
    mine.session = NULL;
    mine.known = false;
}

static void enter(void)
{
    struct prcb_options options = {
        .size = sizeof(options),
        .tier = backend_tier == TIER_PERF ? PRCB_TIER_PERF : PRCB_TIER_DAEMON,
        .max_threads = 1,
        .flags = backend_patient ? 0 : PRCB_OPEN_HURRY,
    };
    struct prcb_error err = {0};
    bool daemon = backend_tier != TIER_PERF;
    TimestampTz now;

    mine.number++;
    mine.tried = GetCurrentTimestamp();
    mine.late = daemon && !store_may_ask(mine.tried);
    if (mine.late) {
        strlcpy(mine.reason, "prcbd did not answer another connection in time",
                sizeof(mine.reason));
        return;
    }
    if (prcb_open(&options, &mine.session, &err) ||
        prcb_thread_open_self(mine.session, &mine.self, &err)) {
        strlcpy(mine.reason, err.text, sizeof(mine.reason));
        leave();
    }
    now = GetCurrentTimestamp();
    mine.late = daemon && !mine.self && now - mine.tried > LATE_MS * INT64CONST(1000);
    if (daemon)
        store_asked(now, mine.late);
}

/* Whether prcbd may have come to be, or has time again. One that is not there is looked for once a
 * minute at most: looking costs. */
static bool may_be_there(void)
{
    TimestampTz now = GetCurrentStatementStartTimestamp();

    if (mine.session)
        return false;
    return mine.late ? !store_pauses(now) : now - mine.tried > LOOK_AGAIN_MS * INT64CONST(1000);
}

/* ---- the parts ------------------------------------------------------------------ */

static void split(const struct prcb_account *a, struct figures *ret)
{
    int64 waits = 0;

    memset(ret, 0, sizeof(*ret));
    ret->switches = (int64)a->switches;
    ret->ns[PART_RUN] = (int64)a->run_ns;
    ret->ns[PART_READY] = (int64)a->ready_ns;
    for (unsigned cause = 0; a->present & PRCB_HAS_WAITS && cause < PRCB_CAUSE_MAX; cause++) {
        if (!a->waits[cause].ns)
            continue;
        ret->ns[part_of(cause)] += (int64)a->waits[cause].ns;
        waits += (int64)a->waits[cause].ns;
    }
    ret->ns[PART_UNSPLIT] = (int64)a->wait_ns - waits;
}

/* A thread that made no switch since its last record has only run since. */
static bool read_again(struct figures *ret)
{
    struct prcb_times times = {.size = sizeof(times)};

    if (!mine.known || prcb_thread_times(mine.self, &times) || times.switches != mine.switches)
        return false;
    *ret = mine.last;
    ret->ns[PART_RUN] += (int64)(times.run_ns - mine.run);
    return true;
}

static bool read_whole(struct figures *ret)
{
    struct prcb_account account = {.size = sizeof(account)};

    if (prcb_thread_read(mine.self, &account) || account.flags & PRCB_ACCOUNT_ORPHAN) {
        leave();
        return false;
    }
    split(&account, ret);
    mine.known = true;
    mine.last = *ret;
    mine.switches = account.switches;
    mine.run = account.run_ns;
    return true;
}

bool backend_read(struct figures *ret, unsigned *session)
{
    if (!IsUnderPostmaster || backend_tier == TIER_OFF)
        return false;
    if (!mine.tried || may_be_there())
        enter();
    *session = mine.number;
    return mine.self && (read_again(ret) || read_whole(ret));
}

void figures_add(struct figures *sum, const struct figures *later, const struct figures *earlier)
{
    for (int part = 0; part < PARTS; part++)
        sum->ns[part] += later->ns[part] - earlier->ns[part];
    sum->switches += later->switches - earlier->switches;
}

int64 figures_wall(const struct figures *f)
{
    int64 wall = 0;

    for (int part = 0; part < PARTS; part++)
        wall += f->ns[part];
    return wall;
}

const char *backend_tier_name(void)
{
    return mine.session ? prcb_tier_name(prcb_session_tier(mine.session)) : "none";
}

const char *backend_reason(void)
{
    return mine.session || !*mine.reason ? NULL : mine.reason;
}
