/* SPDX-License-Identifier: BSD-2-Clause */
#include "looker.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "array.h"
#include "cause.h"
#include "now.h"
#include "table.h"
#include "text.h"

#define PATIENCE_S 1 /* pmcd gives an agent five seconds */
#define RETRY_MS   1000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER, answered;
static unsigned long question, answer; /* numbers of requests */
static unsigned wanted;                /* clusters */
static struct snapshot *latest;        /* handed over to who asked */
static bool stuck; /* a question got no answer in time: others do not wait until one comes */
static struct metrics_options options;

/* ---- snapshots ---- */

void snapshot_free(struct snapshot *s)
{
    if (!s)
        return;
    for (int indom = 0; indom < INDOMS; indom++) {
        for (size_t i = 0; i < s->instance_count[indom]; i++) {
            free(s->instances[indom][i].name);
            free(s->instances[indom][i].labels);
        }
        free(s->instances[indom]);
    }
    for (size_t i = 0; i < s->value_count; i++) {
        if (rows[s->values[i].row].type == PM_TYPE_STRING)
            free(s->values[i].atom.cp);
    }
    free(s->values);
    free(s);
}

/* ---- names of instances ---- */

/* Escapes a name: a blank ends what PCP takes for a name, '%' is used here, and the other
 * escaped bytes are no text. An escaped byte is "%" and two digits, so that no two names become
 * one. */
static char *escaped(const char *name)
{
    char *ret = malloc(strlen(name) * 3 + 1), *to = ret;

    while (ret && *name) {
        uint32_t code = 0;
        size_t bytes = text_character(name, &code);
        bool plain = bytes && code > ' ' && code != '%' && !text_is_control(code);

        for (size_t i = bytes ? bytes : 1; i; i--, name++)
            to += plain ? (*to = *name, 1) : sprintf(to, "%%%02x", (unsigned char)*name);
    }
    if (ret)
        *to = '\0';
    return ret;
}

static char *joined(const char *format, const char *a, const char *b)
{
    char *ret;

    return a && b && asprintf(&ret, format, a, b) >= 0 ? ret : NULL;
}

static const char *label_of(const struct metrics_sample *sample, const char *name)
{
    for (int i = 0; i < METRICS_LABELS && sample->label[i]; i++) {
        if (!strcmp(sample->label[i], name))
            return sample->value[i];
    }
    return NULL;
}

/* Returns the name of a sample's instance, and its fixed number if it has one; NULL: it is not
 * in this domain, or there is no memory. */
static char *instance_name(enum row_indom indom, const struct metrics_sample *sample, int *ret_id)
{
    static const char *const labels[] = {
        [INDOM_CAUSE] = "cause",   [INDOM_CPU] = "cpu",   [INDOM_IDLE_STATE] = "cpu",
        [INDOM_CGROUP] = "cgroup", [INDOM_NAME] = "name", [INDOM_BEHIND] = "cgroup"};
    const char *label = label_of(sample, labels[indom]);
    char *name, *state, *by;
    uint32_t cause;

    *ret_id = -1;
    if (!label)
        return NULL;
    switch (indom) {
    case INDOM_CAUSE:
        cause = cause_by_name(label);
        *ret_id = cause == PRCB_CAUSE_NONE ? -1 : (int)cause;
        return strdup(label);
    case INDOM_CPU:
        *ret_id = atoi(label);
        return joined("%s%s", "cpu", label);
    case INDOM_IDLE_STATE:
        state = label_of(sample, "state") ? escaped(label_of(sample, "state")) : NULL;
        name = joined("cpu%s::%s", label, state);
        free(state);
        return name;
    case INDOM_BEHIND:
        state = escaped(label);
        by = label_of(sample, "by") ? escaped(label_of(sample, "by")) : NULL;
        name = joined("%s::%s", state, by);
        free(state);
        free(by);
        return name;
    default:
        return escaped(*label ? label : "(none)");
    }
}

/* ---- from samples to values ---- */

/* A snapshot that is being made from one look. Samples of one group follow one another, so the
 * instance that was met last is usually the one that is looked for. */
struct making {
    struct snapshot *s;
    unsigned row;
    bool failed;                /* no memory */
    struct table names[INDOMS]; /* of instances: indexes from 1 */
};

/* Returns the index of the instance of this name, from 1; 0: there is none. */
static size_t find_instance(const struct making *making, enum row_indom indom, const char *name)
{
    const struct table_slot *slot = NULL;
    uint64_t key = table_hash_text(name);

    while ((slot = table_next(&making->names[indom], key, slot))) {
        if (!strcmp(making->s->instances[indom][slot->number - 1].name, name))
            return slot->number;
    }
    return 0;
}

/* Returns the index of the instance, which is added if it is new. Owns the name from here on.
 * -1: there is no memory. */
static int instance_of(struct making *making, enum row_indom indom, char *name, int id)
{
    size_t *count = &making->s->instance_count[indom], number;

    number = name ? find_instance(making, indom, name) : 0;
    if (number) {
        free(name);
        return (int)number - 1;
    }
    if (!name || array_append(making->s->instances[indom], *count,
                              (struct instance){.name = name, .id = id})) {
        free(name);
        making->failed = true;
        return -1;
    }
    if (table_put_number(&making->names[indom], table_hash_text(name), *count)) {
        making->failed = true;
        return -1;
    }
    return (int)*count - 1;
}

static struct value *add_value(struct making *making, unsigned row, int instance)
{
    struct snapshot *s = making->s;

    if (array_append(s->values, s->value_count, (struct value){.row = row, .instance = instance})) {
        making->failed = true;
        return NULL;
    }
    return &s->values[s->value_count - 1];
}

/* Returns the value that a sum goes on with: the one of this row and instance that was added
 * last. */
static struct value *sum_of(struct making *making, int instance)
{
    for (size_t i = making->s->value_count; i-- > 0;) {
        struct value *value = &making->s->values[i];

        if (value->row != making->row)
            break;
        if (value->instance == instance)
            return value;
    }
    return NULL;
}

static void take_sample(void *ctx, const struct metrics_sample *sample)
{
    struct making *making = ctx;
    const struct row *row = &rows[making->row];
    bool sum = row->label && !strcmp(row->label, "*");
    const char *label = row->label && !sum ? label_of(sample, row->label) : NULL;
    struct value *value;
    int instance = -1, id;

    if ((row->value && (!label || strcmp(label, row->value))) ||
        (row->kind == ROW_TEXT && (!label || !*label)))
        return;
    if (row->indom != INDOM_NONE) {
        char *name = instance_name(row->indom, sample, &id);

        instance = instance_of(making, row->indom, name, id);
        if (instance < 0)
            return;
    }
    value = sum ? sum_of(making, instance) : NULL;
    if (value) {
        value->atom.ull += sample->number;
        return;
    }
    value = add_value(making, making->row, instance);
    if (!value)
        return;
    switch (row->kind) {
    case ROW_TEXT:
        value->atom.cp = strdup(label);
        making->failed |= !value->atom.cp;
        break;
    case ROW_SECONDS:
        value->atom.ull = sample->number / 1000000000;
        break;
    case ROW_MHZ:
        value->atom.d = (double)sample->number / 1e6;
        break;
    case ROW_REAL:
        value->atom.d = sample->kind == METRICS_REAL ? sample->real : (double)sample->number;
        break;
    default:
        value->atom.ull = sample->number;
        break;
    }
}

/* ---- labels of instances ---- */

/* Makes members of a JSON object from the labels of a sample, from `first` on. */
static char *labels_of(const struct metrics_sample *sample, int first)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    for (int i = first; out && i < METRICS_LABELS && sample->label[i]; i++) {
        fprintf(out, "%s\"%s\":\"", i > first ? "," : "", sample->label[i]);
        text_print(out, TEXT_JSON, sample->value[i]);
        fputc('"', out);
    }
    if (out && fclose(out)) {
        free(text);
        return NULL;
    }
    return text;
}

static void take_identity(void *ctx, const struct metrics_sample *sample)
{
    struct making *making = ctx;
    const char *cgroup = label_of(sample, "cgroup");
    char *name = cgroup ? escaped(cgroup) : NULL;
    size_t number = name ? find_instance(making, INDOM_CGROUP, name) : 0;

    if (number && !making->s->instances[INDOM_CGROUP][number - 1].labels)
        making->s->instances[INDOM_CGROUP][number - 1].labels = labels_of(sample, 1);
    free(name);
}

/* ---- threads ---- */

static int take_thread(const struct prcb_account *a, void *ctx)
{
    struct making *making = ctx;
    char *comm = escaped(a->comm), number[16];
    int instance;

    /* Threads outside of this pid namespace have no number, by which instances are told apart. */
    if (a->flags & PRCB_ACCOUNT_EXITED || !a->tid) {
        free(comm);
        return 0;
    }
    snprintf(number, sizeof(number), "%06d", (int)a->tid);
    instance = instance_of(making, INDOM_THREAD, joined("%s %s", number, comm), -1);
    free(comm);
    for (unsigned row = 0; instance >= 0 && row < row_count; row++) {
        const struct {
            uint64_t has, value;
            bool shown;
        } items[] = {
            [THREAD_RUN] = {PRCB_HAS_RUN, a->run_ns, true},
            [THREAD_READY] = {PRCB_HAS_READY, a->ready_ns, true},
            [THREAD_WAIT] = {PRCB_HAS_WAIT, a->wait_ns, true},
            [THREAD_SWITCHES] = {PRCB_HAS_SWITCHES, a->switches, true},
            [THREAD_OPEN_TIME] = {PRCB_HAS_OPEN, a->open.ns, !(a->flags & PRCB_ACCOUNT_RUNNING)},
            [THREAD_OPEN_CAUSE] = {PRCB_HAS_WAITS, 0, prcb_cause_info(a->open.cause) != NULL},
        };
        unsigned item = rows[row].item;
        struct value *value;

        if (rows[row].kind != ROW_THREAD || !items[item].shown || !(a->present & items[item].has))
            continue;
        value = add_value(making, row, instance);
        if (!value)
            return -ENOMEM;
        if (item == THREAD_OPEN_CAUSE) {
            value->atom.cp = strdup(prcb_cause_info(a->open.cause)->name);
            making->failed |= !value->atom.cp;
        } else {
            value->atom.ull = items[item].value;
        }
    }
    return making->failed ? -ENOMEM : 0;
}

/* ---- the thread ---- */

/* If m is NULL, the snapshot has what is known without figures. */
static struct snapshot *make(struct metrics *m, unsigned clusters)
{
    struct making making = {.s = calloc(1, sizeof(*making.s))};
    struct prcb_error err;

    if (!making.s)
        return NULL;
    making.s->up = m != NULL;
    making.s->clusters = clusters;
    for (; making.row < row_count && !making.failed; making.row++) {
        const struct row *row = &rows[making.row];

        if (row->family && clusters & 1u << row->cluster && metrics_wanted(m, row->family))
            metrics_each(m, row->family, take_sample, &making);
    }
    for (const struct metrics_family *f = metrics_families; m && f->name; f++) {
        if (!strcmp(f->name, "prcb_cgroup") && making.names[INDOM_CGROUP].count)
            metrics_each(m, f, take_identity, &making);
    }
    if (m && metrics_session(m) && clusters & 1u << CLUSTER_THREAD)
        prcb_walk(metrics_session(m), take_thread, &making, &err);
    for (int indom = 0; indom < INDOMS; indom++)
        table_free(&making.names[indom]);
    making.s->taken = now_ns();
    if (making.failed) {
        snapshot_free(making.s);
        return NULL;
    }
    return making.s;
}

/* Writes a message for each new reason, not for each try. */
static void report(const char *text)
{
    static char last[sizeof(((struct prcb_error *)NULL)->text)];

    if (strcmp(last, text))
        pmNotifyErr(*text ? LOG_WARNING : LOG_INFO, "%s", *text ? text : "figures are there");
    snprintf(last, sizeof(last), "%s", text);
}

/* Looks at the figures; opens them before if necessary, and closes them if they can be looked at
 * no more. */
static void look(struct metrics **m)
{
    struct prcb_error err = {0};
    bool was_open = *m != NULL;

    if (!*m && metrics_open(&options, m, &err)) {
        report(err.text);
        return;
    }
    if (metrics_look(*m, &err)) {
        report(err.text);
        /* A prcbd that restarts goes on with its sessions: only a lost session is opened again. */
        if (err.code != -ENOTCONN || !was_open) {
            metrics_close(*m);
            *m = NULL;
        }
        return;
    }
    report("");
}

static void *run(void *unused)
{
    struct metrics *m = NULL;

    for (;;) {
        struct timespec until;
        unsigned long number;
        struct snapshot *made = NULL;
        unsigned clusters, ms;

        look(&m);
        pthread_mutex_lock(&lock);
        number = question;
        clusters = wanted;
        pthread_mutex_unlock(&lock);
        if (number != answer)
            made = make(m, clusters);
        ms = m ? metrics_wait_ms(m) : RETRY_MS;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += (until.tv_nsec + (long)ms * 1000000) / 1000000000;
        until.tv_nsec = (until.tv_nsec + (long)ms * 1000000) % 1000000000;
        pthread_mutex_lock(&lock);
        if (number != answer) {
            snapshot_free(latest);
            latest = made;
            answer = number;
            stuck = false;
            pthread_cond_broadcast(&answered);
        }
        while (question == number && !pthread_cond_timedwait(&asked, &lock, &until))
            ;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int looker_start(const struct metrics_options *how)
{
    pthread_condattr_t attributes;
    pthread_t thread;

    options = *how;
    latest = make(NULL, ~0u);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&asked, &attributes);
    pthread_cond_init(&answered, &attributes);
    return -pthread_create(&thread, NULL, run, NULL);
}

struct snapshot *looker_snapshot(unsigned clusters)
{
    struct snapshot *s = NULL;
    struct timespec until;
    unsigned long number;
    int result = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&lock);
    wanted = clusters;
    number = ++question;
    pthread_cond_signal(&asked);
    while (answer != number && !stuck && !result)
        result = pthread_cond_timedwait(&answered, &lock, &until);
    if (answer == number) {
        s = latest;
        latest = NULL;
    } else {
        stuck = true;
    }
    pthread_mutex_unlock(&lock);
    return s ? s : make(NULL, clusters);
}
