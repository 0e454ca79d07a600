/* SPDX-License-Identifier: BSD-2-Clause
 *
 * pmdaprcb provides the figures of prcb as an agent of Performance Co-Pilot. It is a child of
 * pmcd and runs as user pcp, without capabilities: the figures come from prcbd. This file
 * answers pmcd; another thread does the rest of the work (looker.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pcp/pmapi.h>
#include <pcp/pmda.h>

#include "array.h"
#include "looker.h"
#include "now.h"
#include "options.h"
#include "present.h"

#ifndef pmdaResult /* in PCP before 7 PMAPI's results and PMDAs' were the same */
#define pmdaResult pmResult
#endif

#define FRESH_NS   100000000ull
#define MINUTE     60   /* seconds, of pmdaCachePurge */
#define REMEMBERED 4096 /* instances that are gone, and those that are not */
#define DAY        86400

static pmdaIndom indoms[INDOMS];
static pmdaMetric *metrics;
static struct snapshot *current; /* instances have their numbers, values are sorted */
static unsigned asker;           /* context of the request that is being answered */

/* ---- who asks ---- */

/* What pmcd tells of a local client. */
struct client {
    bool known;
    uid_t uid;
};
static struct client *clients;
static int client_count;

static int take_attribute(int context, int attribute, const char *value, int length, pmdaExt *pmda)
{
    if (attribute != PMDA_ATTR_USERID || context < 0 || !value || length <= 0)
        return 0;
    if (array_cover(clients, client_count, context))
        return -ENOMEM;
    clients[context] = (struct client){true, (uid_t)strtoul(value, NULL, 10)};
    return 0;
}

static void forget_client(int context)
{
    if (context >= 0 && context < client_count)
        clients[context].known = false;
}

/* Threads are shown to root and to the agent's own user: prcbd, too, shows users the threads of
 * others only if its configuration says so, and it was asked by the agent. */
static bool may_see_threads(unsigned context)
{
    return context < (unsigned)client_count && clients[context].known &&
           (!clients[context].uid || clients[context].uid == geteuid());
}

/* ---- snapshots ---- */

static int compare_values(const void *a, const void *b)
{
    const struct value *x = a, *y = b;

    return x->row != y->row ? (x->row < y->row ? -1 : 1)
                            : (x->instance > y->instance) - (x->instance < y->instance);
}

/* Processors and causes have their own numbers. PCP makes the other instances' numbers from
 * their names, so that they are the same for the next agent, and keeps them in files, in case
 * two would be the same. */
static void number_instances(struct snapshot *s, enum row_indom indom)
{
    pmInDom domain = indoms[indom].it_indom;
    bool added = false;

    if (indom == INDOM_CAUSE || indom == INDOM_CPU)
        return;
    pmdaCacheOp(domain, PMDA_CACHE_INACTIVE);
    for (size_t i = 0; i < s->instance_count[indom]; i++) {
        struct instance *instance = &s->instances[indom][i];

        bool known = pmdaCacheLookupName(domain, instance->name, NULL, NULL) >= 0;

        /* With the key of one that is there, PCP's library would keep a copy of it each time. */
        instance->id = known ? pmdaCacheStore(domain, PMDA_CACHE_ADD, instance->name, NULL)
                             : pmdaCacheStoreKey(domain, PMDA_CACHE_ADD, instance->name,
                                                 (int)strlen(instance->name), instance->name, NULL);
        added |= !known;
    }
    if (!added)
        return;
    /* Forgets instances that have been gone for long, or sooner if there are many, for users can
     * make names without end; should one come back, its number is the same. */
    pmdaCachePurge(
        domain,
        indom == INDOM_THREAD || pmdaCacheOp(domain, PMDA_CACHE_SIZE) > REMEMBERED ? MINUTE : DAY);
    if (indom != INDOM_THREAD)
        pmdaCacheOp(domain, PMDA_CACHE_SAVE);
}

/* Brings the clusters' figures up to date. */
static void refresh(unsigned clusters)
{
    uint64_t ns = now_ns();

    if (current && current->up && (current->clusters & clusters) == clusters &&
        ns - current->taken < FRESH_NS)
        return;
    snapshot_free(current);
    current = looker_snapshot(clusters);
    if (!current)
        return;
    for (int indom = 0; indom < INDOMS; indom++) {
        bool asked = false;

        for (size_t i = 0; i < row_count; i++)
            asked |= rows[i].indom == (enum row_indom)indom && clusters & 1u << rows[i].cluster;
        if (asked)
            number_instances(current, indom);
    }
    for (size_t i = 0; i < current->value_count; i++) {
        struct value *value = &current->values[i];
        enum row_indom indom = rows[value->row].indom;

        value->instance = value->instance < 0 ? -1 : current->instances[indom][value->instance].id;
    }
    array_sort(current->values, current->value_count, compare_values);
}

/* ---- answers ---- */

static int fetch(int count, pmID *pmids, pmdaResult **ret, pmdaExt *pmda)
{
    unsigned clusters = 0;
    int result;

    asker = (unsigned)pmda->e_context;
    for (int i = 0; i < count; i++) {
        if (pmID_cluster(pmids[i]) < CLUSTERS)
            clusters |= 1u << pmID_cluster(pmids[i]);
    }
    if (!may_see_threads(asker))
        clusters &= ~(1u << CLUSTER_THREAD);
    refresh(clusters);
    result = pmdaFetch(count, pmids, ret, pmda);
    for (int i = 0; result >= 0 && i < count && !may_see_threads(asker); i++) {
        if (pmID_cluster(pmids[i]) == CLUSTER_THREAD)
            (*ret)->vset[i]->numval = PM_ERR_PERMISSION;
    }
    return result;
}

static int fetch_value(pmdaMetric *metric, unsigned instance, pmAtomValue *atom)
{
    const struct row *row = metric->m_user;
    struct value key = {.row = (unsigned)(row - rows),
                        .instance = instance == PM_IN_NULL ? -1 : (int)instance};
    const struct value *found;

    if (row->cluster == CLUSTER_THREAD && !may_see_threads(asker))
        return PMDA_FETCH_NOVALUES; /* fetch makes an error of it */
    found =
        current ? array_search(&key, current->values, current->value_count, compare_values) : NULL;
    if (!found)
        return PMDA_FETCH_NOVALUES; /* absent: never 0 */
    *atom = found->atom;
    return PMDA_FETCH_STATIC;
}

static int instances(pmInDom domain, int number, char *name, pmInResult **ret, pmdaExt *pmda)
{
    unsigned clusters = 0, indom = pmInDom_serial(domain);

    asker = (unsigned)pmda->e_context;
    if (indom == INDOM_THREAD && !may_see_threads(asker))
        return PM_ERR_PERMISSION;
    for (size_t i = 0; i < row_count; i++) {
        if ((unsigned)rows[i].indom == indom)
            clusters |= 1u << rows[i].cluster;
    }
    if (indom != INDOM_CAUSE && indom != INDOM_CPU)
        refresh(clusters);
    return pmdaInstance(domain, number, name, ret, pmda);
}

static const char *const indom_help[INDOMS] = {
    [INDOM_CAUSE] = "Causes of not running; label reason: NT's name of it",
    [INDOM_CPU] = "Processors",
    [INDOM_IDLE_STATE] = "Idle states of processors, as cpuidle names them: cpu0::C1",
    [INDOM_CGROUP] = "Cgroups of version 2, by path; bytes that PCP cannot take are %xx",
    [INDOM_NAME] = "Names of threads",
    [INDOM_BEHIND] =
        ("Pairs of cgroups: the one whose threads were ready, and who had the processor: "
         "/victim::/neighbour, ::self, ::(kernel), ::(idle), ::(other), ::(gone)"),
    [INDOM_THREAD] = "Threads: number and name; for root and the agent's user alone",
};

/* Returns the length of the first sentence in bytes. */
static size_t sentence(const char *text)
{
    const char *end = strstr(text, ". ");

    return end ? (size_t)(end - text) : strlen(text);
}

static int text(int number, int type, char **ret, pmdaExt *pmda)
{
    if ((type & PM_TEXT_INDOM) == PM_TEXT_INDOM) {
        unsigned serial = pmInDom_serial((pmInDom)number);

        if (pmInDom_domain((pmInDom)number) != (unsigned)pmda->e_domain || serial >= INDOMS)
            return PM_ERR_INDOM;
        *ret = strdup(indom_help[serial]);
    } else {
        *ret = NULL;
        for (size_t i = 0; i < row_count && !*ret; i++) {
            if (rows[i].cluster == pmID_cluster((pmID)number) &&
                rows[i].item == pmID_item((pmID)number))
                *ret = strndup(rows[i].help, type & PM_TEXT_ONELINE ? sentence(rows[i].help)
                                                                    : sizeof(rows[i].help));
        }
        if (!*ret)
            return PM_ERR_PMID;
    }
    return *ret ? 0 : -ENOMEM;
}

/* Sets the labels of instances; those of cgroups are what their path says. */
static int instance_labels(pmInDom domain, unsigned number, pmLabelSet **ret)
{
    unsigned indom = pmInDom_serial(domain);
    const struct prcb_cause_info *info;
    char *name = NULL, *state;

    switch (indom) {
    case INDOM_CAUSE:
        info = prcb_cause_info(number);
        return info ? pmdaAddLabels(ret, "{\"reason\":\"%s\"}", prcb_wait_reason_name(info->reason))
                    : 0;
    case INDOM_CPU:
        return pmdaAddLabels(ret, "{\"cpu\":%u}", number);
    case INDOM_IDLE_STATE:
        if (pmdaCacheLookup(domain, (int)number, &name, NULL) < 0)
            return 0;
        state = strstr(name, "::");
        return state
                   ? pmdaAddLabels(ret, "{\"cpu\":%d,\"state\":\"%s\"}", atoi(name + 3), state + 2)
                   : 0;
    case INDOM_CGROUP:
        if (!current || !(current->clusters & 1u << CLUSTER_CGROUP))
            refresh(1u << CLUSTER_CGROUP);
        for (size_t i = 0; current && i < current->instance_count[INDOM_CGROUP]; i++) {
            const struct instance *instance = &current->instances[INDOM_CGROUP][i];

            if (instance->id == (int)number && instance->labels)
                return pmdaAddLabels(ret, "{%s}", instance->labels);
        }
        return 0;
    }
    return 0;
}

/* ---- the program ---- */

struct given {
    uint64_t domain;
    const char *log, *user;
    enum prcb_tier tier;
    bool by_whom, memory;
};

static int take_debug(struct cli_parser *parser, void *target)
{
    return pmSetDebug(parser->value) < 0
               ? cli_usage_error(parser->command, "-D '%s': must be options that pmdbg -l lists",
                                 parser->value)
               : CLI_OK;
}

#define AT(member) .at = offsetof(struct given, member)
/* The letters and names of the options are those of all agents, as pmcd passes them. */
static const struct cli_option options[] = {
    {'d', "domain", "DOMAIN", "the agent's number", .kind = CLI_NUMBER, AT(domain), .min = 1,
     .max = 510},
    {'l', "log", "FILE", "write the log to FILE", .kind = CLI_TEXT, AT(log),
     .what = "the file name is empty"},
    {'U', "username", "USER", "become USER, if started as root (default pcp)", .kind = CLI_TEXT,
     AT(user), .what = "the name is empty"},
    {'t', "tier", "TIER", "source of the figures: daemon (the default), bpf or perf",
     .take = cli_take_tier, AT(tier)},
    {0, "by-whom", NULL, "which cgroups had the processors meanwhile, or held locks, too",
     AT(by_whom)},
    {0, "memory", NULL, "what limits of memory do to each cgroup, too", AT(memory)},
    {'D', "debug", "DEBUG", "PCP's diagnostics, see pmdbg(1)", .take = take_debug},
    {0},
};

static const struct cli_command command = {
    .program = "pmdaprcb",
    .synopsis = "[options]",
    .description = "An agent of pmcd: why threads do not run, for Performance Co-Pilot.",
    .options = options,
    .manual = "pmdaprcb(1)",
};

static void set_up(pmdaInterface *dispatch)
{
    uint32_t processors = numbered_processors();
    static pmdaInstid cause_ids[PRCB_CAUSE_MAX], *processor_ids;
    int causes = 0;

    for (int cause = 1; cause < PRCB_CAUSE_MAX; cause++) {
        const struct prcb_cause_info *info = prcb_cause_info((uint32_t)cause);

        if (info)
            cause_ids[causes++] = (pmdaInstid){cause, (char *)(uintptr_t)info->name};
    }
    for (unsigned indom = 0; indom < INDOMS; indom++)
        indoms[indom] = (pmdaIndom){.it_indom = indom};
    indoms[INDOM_CAUSE].it_numinst = causes;
    indoms[INDOM_CAUSE].it_set = cause_ids;
    processor_ids = calloc((size_t)processors, sizeof(*processor_ids));
    for (int i = 0; processor_ids && i < (int)processors; i++) {
        processor_ids[i].i_inst = i;
        if (asprintf(&processor_ids[i].i_name, "cpu%d", i) < 0)
            processor_ids = NULL;
    }
    indoms[INDOM_CPU].it_numinst = (int)processors;
    indoms[INDOM_CPU].it_set = processor_ids;
    metrics = calloc(row_count, sizeof(*metrics));
    if (!metrics || !processor_ids) {
        dispatch->status = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < row_count; i++) {
        metrics[i].m_user = &rows[i];
        metrics[i].m_desc = (pmDesc){
            .pmid = PMDA_PMID(rows[i].cluster, rows[i].item),
            .type = rows[i].type,
            .indom = rows[i].indom == INDOM_NONE ? PM_INDOM_NULL : (pmInDom)rows[i].indom,
            .sem = rows[i].semantics,
            .units = rows[i].units,
        };
    }
    dispatch->version.seven.fetch = fetch;
    dispatch->version.seven.instance = instances;
    dispatch->version.seven.text = text;
    dispatch->version.seven.attribute = take_attribute;
    pmdaSetFetchCallBack(dispatch, fetch_value);
    pmdaSetLabelCallBack(dispatch, instance_labels);
    pmdaSetEndContextCallBack(dispatch, forget_client);
    pmdaSetFlags(dispatch, PMDA_EXT_FLAG_HASHED);
    pmdaSetCommFlags(dispatch, PMDA_FLAG_AUTHORIZE); /* pmcd then says who asks */
    pmdaInit(dispatch, indoms, INDOMS, metrics, (int)row_count);
    for (unsigned indom = 0; indom < INDOMS; indom++) {
        if (indom != INDOM_CAUSE && indom != INDOM_CPU && indom != INDOM_THREAD)
            pmdaCacheOp(indoms[indom].it_indom, PMDA_CACHE_LOAD);
    }
}

int main(int argc, char **argv)
{
    struct cli_parser parser = {.command = &command, .argc = argc, .argv = argv};
    struct given given = {
        .domain = PRCB_DOMAIN, .log = "prcb.log", .user = "pcp", .tier = PRCB_TIER_DAEMON};
    struct metrics_options how = {.optional =
                                      METRICS_PER_CPU | METRICS_CGROUP_CAUSES | METRICS_BY_NAME};
    pmdaInterface dispatch;
    int result, status;

    if (cli_take_options(&parser, &given, &status))
        return status;
    pmSetProgname(argv[0]);
    rows_init();
    pmdaDaemon(&dispatch, PMDA_INTERFACE_7, (char *)(uintptr_t)pmGetProgname(), (int)given.domain,
               (char *)(uintptr_t)given.log, NULL);
    pmdaOpenLog(&dispatch);
    if (!geteuid())
        pmSetProcessIdentity(given.user);
    how.tier = given.tier;
    how.optional |= given.by_whom ? METRICS_BY_WHOM : 0;
    how.optional |= given.memory ? METRICS_MEMORY : 0;
    how.replay = getenv("PRCB_REPLAY");
    how.replay_scale = 1;
    set_up(&dispatch);
    pmdaConnect(&dispatch);
    if (!dispatch.status) {
        result = looker_start(&how);
        if (result) {
            pmNotifyErr(LOG_ERR, "no thread could be started: %s", strerror(-result));
            return 1;
        }
    }
    pmdaMain(&dispatch);
    return 0;
}
