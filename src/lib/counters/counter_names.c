/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Names of events: the kernel's generic ones by table, its cache events by three
 * small tables, raw codes, the events and formats that a PMU lists in sysfs, and
 * libpfm4's where the build has it.
 */
#include "counters.h"

#include <ctype.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PRCB_HAVE_PFM
#include <dlfcn.h>
#include <perfmon/pfmlib.h>
#include <perfmon/pfmlib_perf_event.h>
#include <pthread.h>
#endif

#include "first_line.h"

struct row {
    struct prcb_counter_name name;
    uint32_t type;
    uint64_t config;
};

#define HARDWARE(name, alias, config)                                                              \
    {                                                                                              \
        {name, alias, PRCB_COUNTER_HARDWARE}, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##config           \
    }
#define SOFTWARE(name, alias, config)                                                              \
    {                                                                                              \
        {name, alias, PRCB_COUNTER_SOFTWARE}, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##config           \
    }
#define CACHE_CONFIG(cache, op, result)                                                            \
    (PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_##op << 8 |                              \
     PERF_COUNT_HW_CACHE_RESULT_##result << 16)
#define CACHE(name, cache, op, result)                                                             \
    {                                                                                              \
        {name, NULL, PRCB_COUNTER_HARDWARE}, PERF_TYPE_HW_CACHE, CACHE_CONFIG(cache, op, result)   \
    }
#define CACHE_ROWS(name, cache)                                                                    \
    CACHE(name "-loads", cache, READ, ACCESS), CACHE(name "-load-misses", cache, READ, MISS),      \
        CACHE(name "-stores", cache, WRITE, ACCESS),                                               \
        CACHE(name "-store-misses", cache, WRITE, MISS),                                           \
        CACHE(name "-prefetches", cache, PREFETCH, ACCESS),                                        \
        CACHE(name "-prefetch-misses", cache, PREFETCH, MISS)

static const struct row rows[] = {
    SOFTWARE("task-clock", NULL, TASK_CLOCK),
    SOFTWARE("cpu-clock", NULL, CPU_CLOCK),
    SOFTWARE("page-faults", "faults", PAGE_FAULTS),
    SOFTWARE("minor-faults", NULL, PAGE_FAULTS_MIN),
    SOFTWARE("major-faults", NULL, PAGE_FAULTS_MAJ),
    SOFTWARE("context-switches", "cs", CONTEXT_SWITCHES),
    SOFTWARE("cpu-migrations", "migrations", CPU_MIGRATIONS),
    SOFTWARE("alignment-faults", NULL, ALIGNMENT_FAULTS),
    SOFTWARE("emulation-faults", NULL, EMULATION_FAULTS),
    {{"cgroup-switches", NULL, PRCB_COUNTER_SOFTWARE}, PERF_TYPE_SOFTWARE, 11 /* 5.13 */},
    HARDWARE("cycles", "cpu-cycles", CPU_CYCLES),
    HARDWARE("instructions", NULL, INSTRUCTIONS),
    HARDWARE("ref-cycles", NULL, REF_CPU_CYCLES),
    HARDWARE("bus-cycles", NULL, BUS_CYCLES),
    HARDWARE("branches", "branch-instructions", BRANCH_INSTRUCTIONS),
    HARDWARE("branch-misses", NULL, BRANCH_MISSES),
    HARDWARE("cache-references", NULL, CACHE_REFERENCES),
    HARDWARE("cache-misses", NULL, CACHE_MISSES),
    HARDWARE("stalled-cycles-frontend", "idle-cycles-frontend", STALLED_CYCLES_FRONTEND),
    HARDWARE("stalled-cycles-backend", "idle-cycles-backend", STALLED_CYCLES_BACKEND),
    CACHE_ROWS("L1-dcache", L1D),
    CACHE("L1-icache-loads", L1I, READ, ACCESS),
    CACHE("L1-icache-load-misses", L1I, READ, MISS),
    CACHE_ROWS("LLC", LL),
    CACHE_ROWS("dTLB", DTLB),
    CACHE("iTLB-loads", ITLB, READ, ACCESS),
    CACHE("iTLB-load-misses", ITLB, READ, MISS),
    CACHE("branch-loads", BPU, READ, ACCESS),
    CACHE("branch-load-misses", BPU, READ, MISS),
    CACHE_ROWS("node", NODE),
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

const struct prcb_counter_name *prcb_counter_name(size_t i)
{
    return i < ROWS ? &rows[i].name : NULL;
}

static bool set_generic(const char *name, struct counter_event *event)
{
    for (size_t i = 0; i < ROWS; i++) {
        const struct prcb_counter_name *known = &rows[i].name;

        if (!strcmp(name, known->name) || (known->alias && !strcmp(name, known->alias))) {
            event->type = rows[i].type;
            event->config = rows[i].config;
            return true;
        }
    }
    return false;
}

/* "r01c2" is a code for the processor's own event register. */
static bool set_raw(const char *name, struct counter_event *event)
{
    size_t digits = strspn(name + (*name == 'r'), "0123456789abcdefABCDEF");

    if (*name != 'r' || digits == 0 || digits > 16 || name[1 + digits])
        return false;
    event->type = PERF_TYPE_RAW;
    event->config = strtoull(name + 1, NULL, 16);
    return true;
}

/* ---- PMU/event/ and PMU/term=value,term/ ---- */

#define PMU_FOLDER "/sys/bus/event_source/devices"

/* Stores a value in the bits that a format names: "config:0-7,32-35". */
static bool set_format(const char *format, uint64_t value, struct counter_event *event)
{
    uint64_t *word = !strncmp(format, "config:", 7)    ? &event->config
                     : !strncmp(format, "config1:", 8) ? &event->config1
                     : !strncmp(format, "config2:", 8) ? &event->config2
                                                       : NULL;

    if (!word)
        return false;
    for (const char *at = strchr(format, ':') + 1; *at; at += *at == ',') {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;

        if (end == at || first > 63)
            return false;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        if (last < first || last > 63)
            return false;
        for (unsigned long bit = first; bit <= last; bit++, value >>= 1)
            *word |= (value & 1) << bit;
        at = end;
    }
    return !value; /* bits that no place was left for */
}

static int set_term(const char *pmu, const char *term, struct counter_event *event, bool nested,
                    struct prcb_error *err);

static int set_terms(const char *pmu, char *terms, struct counter_event *event, bool nested,
                     struct prcb_error *err)
{
    char *rest = terms, *term;
    int result = 0;

    while (!result && (term = strsep(&rest, ",")))
        result = *term ? set_term(pmu, term, event, nested, err) : 0;
    return result;
}

static int set_term(const char *pmu, const char *term, struct counter_event *event, bool nested,
                    struct prcb_error *err)
{
    char path[256], line[256], name[64];
    const char *equals = strchr(term, '=');
    size_t length = equals ? (size_t)(equals - term) : strlen(term);
    uint64_t value = 1;
    char *end = NULL;

    if (length >= sizeof(name) || strchr(term, '/') || term[0] == '.')
        return prcb_fail(err, -EINVAL, "%s: no such event: '%s'", event->name, term);
    memcpy(name, term, length);
    name[length] = '\0';
    if (equals)
        value = strtoull(equals + 1, &end, 0);
    if (equals && (*end || !equals[1]))
        return prcb_fail(err, -EINVAL, "%s: '%s' is not a number", event->name, equals + 1);
    snprintf(path, sizeof(path), PMU_FOLDER "/%s/format/%s", pmu, name);
    if (first_line(path, line, sizeof(line))) {
        if (!set_format(line, value, event))
            return prcb_fail(err, -EINVAL, "%s: the value of '%s' does not fit", event->name, name);
        return 0;
    }
    snprintf(path, sizeof(path), PMU_FOLDER "/%s/events/%s", pmu, name);
    if (!equals && !nested && first_line(path, line, sizeof(line)))
        return set_terms(pmu, line, event, true, err);
    if (!strcmp(name, "config") || !strcmp(name, "event")) {
        event->config |= value;
        return 0;
    }
    return prcb_fail(err, -EINVAL, "%s: PMU %s has no event and no field '%s'", event->name, pmu,
                     name);
}

/* Returns 1 if the name has another form. */
static int set_pmu(const char *name, struct counter_event *event, struct prcb_error *err)
{
    const char *slash = strchr(name, '/');
    size_t length = slash ? (size_t)(slash - name) : 0, last = strlen(name);
    char pmu[64], path[256], line[64], terms[COUNTER_NAME_MAX];

    if (!slash)
        return 1;
    if (name[last - 1] != '/' || slash == name + last - 1 || length == 0 || length >= sizeof(pmu) ||
        name[0] == '.')
        return prcb_fail(err, -EINVAL, "%s: an event of a PMU is written PMU/event/", name);
    memcpy(pmu, name, length);
    pmu[length] = '\0';
    snprintf(path, sizeof(path), PMU_FOLDER "/%s/type", pmu);
    if (!first_line(path, line, sizeof(line)))
        return prcb_fail(err, -EOPNOTSUPP, "%s: this machine has no PMU '%s'", name, pmu);
    event->type = (uint32_t)strtoul(line, NULL, 10);
    snprintf(terms, sizeof(terms), "%.*s", (int)(last - length - 2), slash + 1);
    return set_terms(pmu, terms, event, false, err);
}

/* ---- libpfm4 ---- */

#ifdef PRCB_HAVE_PFM

/* It is loaded when the first name is looked for: its tables take 41,000 relocations and 1.6 MB,
 * which every program that links this library would pay for at its start. */
#define PFM_LIBRARY "libpfm.so.4"
#define PFM_CALLS(CALL)                                                                            \
    CALL(initialize)                                                                               \
    CALL(get_os_event_encoding)                                                                    \
    CALL(get_pmu_info)                                                                             \
    CALL(get_event_next)                                                                           \
    CALL(get_event_info)

static struct {
#define DECLARE(name) __typeof__(&pfm_##name) name;
    PFM_CALLS(DECLARE)
} pfm;

#ifdef PRCB_STATIC /* nothing can be opened, and nothing relocated at a start */
static bool load_pfm(void)
{
#define TAKE(name) pfm.name = pfm_##name;
    PFM_CALLS(TAKE)
    return pfm.initialize() == PFM_SUCCESS;
}
#else
static bool load_pfm(void)
{
    void *library = dlopen(PFM_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
    bool complete = library;
    void *at;

#define FIND(name)                                                                                 \
    at = library ? dlsym(library, "pfm_" #name) : NULL;                                            \
    complete &= at != NULL;                                                                        \
    memcpy(&pfm.name, &at, sizeof(at));
    PFM_CALLS(FIND)
    return complete && pfm.initialize() == PFM_SUCCESS;
}
#endif

static bool have_pfm(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int state; /* 1: works, -1: does not */
    bool result;

    pthread_mutex_lock(&lock);
    if (!state)
        state = load_pfm() ? 1 : -1;
    result = state > 0;
    pthread_mutex_unlock(&lock);
    return result;
}

/* Returns 1 if libpfm4 does not know the name either. */
static int set_pfm(const char *name, struct counter_event *event)
{
    struct perf_event_attr attr = {.size = sizeof(attr)};
    pfm_perf_encode_arg_t arg = {.attr = &attr, .size = sizeof(arg)};

    if (!have_pfm() || pfm.get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT,
                                                 &arg) != PFM_SUCCESS)
        return 1;
    event->type = attr.type;
    event->config = attr.config;
    event->config1 = attr.config1;
    event->config2 = attr.config2;
    event->no_user |= attr.exclude_user;
    event->no_kernel |= attr.exclude_kernel;
    return 0;
}

static int walk_pmu(pfm_pmu_t pmu, prcb_counter_pfm_fn fn, void *ctx)
{
    pfm_pmu_info_t about = {.size = sizeof(about)};
    int result = 0;

    if (pfm.get_pmu_info(pmu, &about) != PFM_SUCCESS || !about.is_present)
        return 0;
    for (int i = about.first_event; i >= 0 && !result; i = pfm.get_event_next(i)) {
        pfm_event_info_t event = {.size = sizeof(event)};
        char name[COUNTER_NAME_MAX];

        if (pfm.get_event_info(i, PFM_OS_PERF_EVENT, &event) != PFM_SUCCESS)
            continue;
        snprintf(name, sizeof(name), "%s::%s", about.name, event.name);
        result = fn(name, event.desc ? event.desc : "", ctx);
    }
    return result;
}

int prcb_counter_pfm_walk(prcb_counter_pfm_fn fn, void *ctx)
{
    int result = 0;

    if (!have_pfm())
        return 0;
    for (int pmu = PFM_PMU_NONE; pmu < PFM_PMU_MAX && !result; pmu++)
        result = walk_pmu((pfm_pmu_t)pmu, fn, ctx);
    return result;
}

#else

static int set_pfm(const char *name, struct counter_event *event)
{
    return 1;
}

int prcb_counter_pfm_walk(prcb_counter_pfm_fn fn, void *ctx)
{
    return 0;
}

#endif

/* ---- a name ---- */

/* Removes perf's ":u", ":k", ":uk" from the end of a name. False: no such ending. */
static bool take_modes(char *name, struct counter_event *event)
{
    char *colon = strrchr(name, ':');
    bool user, kernel;

    if (!colon || colon == name || colon[-1] == ':' || !colon[1] ||
        strspn(colon + 1, "uk") != strlen(colon + 1))
        return false;
    user = strchr(colon, 'u');
    kernel = strchr(colon, 'k');
    event->no_user = !user;
    event->no_kernel = !kernel;
    *colon = '\0';
    return true;
}

int counter_event_find(const char *name, struct counter_event *ret, struct prcb_error *err)
{
    struct counter_event event = {.type = 0};
    char base[COUNTER_NAME_MAX];
    int result;

    if (strlen(name) >= sizeof(base) || !*name)
        return prcb_fail(err, -EINVAL, "'%.40s' is not the name of an event", name);
    strcpy(event.name, name);
    strcpy(base, name);
    take_modes(base, &event);
    if (set_generic(base, &event) || set_raw(base, &event)) {
        *ret = event;
        return 0;
    }
    result = set_pmu(base, &event, err);
    if (result == 1) {
        event.no_user = event.no_kernel = false;
        result = set_pfm(name, &event);
    }
    if (result == 1)
        result =
            prcb_fail(err, -EINVAL, "%s: no such event; `prcb list` names those there are", name);
    if (!result)
        *ret = event;
    return result;
}

int prcb_counter_event(const char *name, struct prcb_counter_event *ret, struct prcb_error *err)
{
    struct counter_event event;
    int result;

    if (!name || !ret)
        return prcb_fail(err, -EINVAL, "prcb_counter_event: a NULL argument");
    result = counter_event_find(name, &event, err);
    if (result)
        return result;
    *ret = (struct prcb_counter_event){
        .type = event.type,
        .flags = (event.no_user ? PRCB_COUNTER_EVENT_NO_USER : 0u) |
                 (event.no_kernel ? PRCB_COUNTER_EVENT_NO_KERNEL : 0u),
        .config = event.config,
        .config1 = event.config1,
        .config2 = event.config2,
    };
    return 0;
}

int counter_events_parse(const char *list, struct counter_event *ret, size_t *ret_count,
                         struct prcb_error *err)
{
    size_t count = 0;

    for (const char *at = list;; at++) {
        char name[COUNTER_NAME_MAX];
        const char *start = at;
        bool inside = false;
        int result;

        for (; *at && (*at != ',' || inside); at++)
            inside ^= *at == '/';
        if ((size_t)(at - start) >= sizeof(name))
            return prcb_fail(err, -EINVAL, "'%.40s...' is not the name of an event", start);
        memcpy(name, start, (size_t)(at - start));
        name[at - start] = '\0';
        if (count == PRCB_COUNTERS_MAX)
            return prcb_fail(err, -EINVAL, "more than %d events", PRCB_COUNTERS_MAX);
        result = counter_event_find(name, &ret[count], err);
        if (result)
            return result;
        count++;
        if (!*at)
            break;
    }
    *ret_count = count;
    return 0;
}

uint32_t counter_event_source(const struct counter_event *event)
{
    return event->type == PERF_TYPE_SOFTWARE || event->type == PERF_TYPE_TRACEPOINT
               ? PRCB_COUNTER_SOFTWARE
               : PRCB_COUNTER_HARDWARE;
}
