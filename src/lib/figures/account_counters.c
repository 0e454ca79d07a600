/* SPDX-License-Identifier: BSD-2-Clause */
#include "account_counters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prcb/counters.h>

#include "rest.h"
#include "table.h"

#define FIRST_BUCKETS 256 /* a power of two */

struct event {
    char *name; /* owned, as all strings here */
    char *reason;
    const char *source; /* static */
    int32_t place;      /* among those that can count; -1: it cannot */
};

/* What an ended thread has left and no row has taken yet. */
struct leaving {
    struct event_count *counts; /* owned: one per event that can count */
};

struct account_counters {
    struct event events[PRCB_COUNTERS_MAX];
    size_t count, counting; /* all; those that can count */
    char *names;            /* of those, as a list */
    bool whole_family, began;
    struct prcb_family *family; /* a command's; NULL: sets alone */
    bool sets;                  /* threads have sets, and the family, if any, is for the sum */
    pid_t first_tid;            /* the command's, and its set, until its row takes it */
    struct prcb_counters *first;
    struct table leaving;                        /* by thread */
    struct event_count taken[PRCB_COUNTERS_MAX]; /* by rows so far, as it was counted */
    uint64_t lost, late;
    struct prcb_counter sums[PRCB_COUNTERS_MAX]; /* the family's, as of the last update */
    struct prcb_counter marked[PRCB_COUNTERS_MAX];
    char failure[160]; /* why a row's set could not be opened, the last one */
};

/* ---- names ---------------------------------------------------------------- */

/* Finds the next name of a list; commas between slashes belong to the name. */
static char *next_name(const char **at)
{
    const char *start = *at;
    bool inside = false;

    for (; **at && (**at != ',' || inside); ++*at)
        inside ^= **at == '/';
    return strndup(start, (size_t)(*at - start));
}

static int look_at(struct account_counters *counters, struct event *event, struct prcb_error *err)
{
    uint32_t source = PRCB_COUNTER_NONE;
    size_t length = strlen(event->name);
    int result = prcb_counter_check(event->name, &source, err);

    event->place = -1;
    if (result == -EINVAL)
        return result;
    if (result) {
        bool repeats = !strncmp(err->text, event->name, length) && err->text[length] == ':';

        event->reason = strdup(repeats ? err->text + length + 2 : err->text);
        return event->reason ? 0 : -ENOMEM;
    }
    event->source = source == PRCB_COUNTER_HARDWARE ? "hardware" : "software";
    event->place = (int32_t)counters->counting++;
    return 0;
}

static int add_name(struct account_counters *counters, const char **at, struct prcb_error *err)
{
    struct event *event = &counters->events[counters->count];

    if (counters->count == PRCB_COUNTERS_MAX) {
        snprintf(err->text, sizeof(err->text), "more than %d events", PRCB_COUNTERS_MAX);
        return -EINVAL;
    }
    event->name = next_name(at);
    if (!event->name)
        return -ENOMEM;
    counters->count++;
    return look_at(counters, event, err);
}

static int join_names(struct account_counters *counters, size_t room)
{
    counters->names = calloc(1, room);
    if (!counters->names)
        return -ENOMEM;
    for (size_t i = 0; i < counters->count; i++) {
        if (counters->events[i].place < 0)
            continue;
        if (counters->names[0])
            strcat(counters->names, ",");
        strcat(counters->names, counters->events[i].name);
    }
    return 0;
}

int account_counters_open(const char *list, bool family, bool follow, struct account_counters **ret,
                          struct prcb_error *err)
{
    const char *at = list;
    struct account_counters *counters;
    int result;

    *ret = NULL;
    if (!at)
        return 0;
    counters = calloc(1, sizeof(*counters));
    if (!counters)
        return -ENOMEM;
    counters->whole_family = follow;
    counters->sets = !family;
    do
        result = add_name(counters, &at, err);
    while (!result && *at++);
    if (!result)
        result = join_names(counters, strlen(list) + 1);
    if (result) {
        account_counters_close(counters, NULL);
        return result;
    }
    *ret = counters;
    return 0;
}

static void free_leaving(struct leaving *leaving)
{
    free(leaving->counts);
    free(leaving);
}

void account_counters_close(struct account_counters *counters, struct account_rows *rows)
{
    if (!counters)
        return;
    for (size_t i = 0; rows && i < rows->count; i++)
        account_counters_released(counters, rows->rows[i]);
    for (size_t i = 0; i < counters->leaving.room; i++) {
        if (counters->leaving.slots[i].item)
            free_leaving(counters->leaving.slots[i].item);
    }
    table_free(&counters->leaving);
    for (size_t i = 0; i < counters->count; i++) {
        free(counters->events[i].name);
        free(counters->events[i].reason);
    }
    prcb_counters_close(counters->first);
    prcb_family_close(counters->family);
    free(counters->names);
    free(counters);
}

bool account_counters_have_sets(const struct account_counters *counters)
{
    return counters && counters->sets && counters->counting;
}

size_t account_counters_count(const struct account_counters *counters)
{
    return counters ? counters->count : 0;
}

struct account_counter account_counters_at(const struct account_counters *counters, size_t i)
{
    const struct event *event = &counters->events[i];

    return (struct account_counter){event->name, event->source, event->reason};
}

/* ---- a command's threads -------------------------------------------------- */

int account_counters_before_exec(pid_t child, void *ctx, struct prcb_error *err)
{
    struct account_counters *counters = ctx;
    int result;

    if (!counters->counting)
        return 0;
    result = prcb_family_open(counters->names, child, &counters->family, err);
    if (result || prcb_family_has_parts(counters->family))
        return result;
    /* Without parts, what threads there are is looked for; the first one is known now. */
    counters->sets = true;
    counters->first_tid = child;
    prcb_counters_open(counters->names, child, PRCB_COUNTERS_ON_EXEC, &counters->first, NULL);
    return 0;
}

static int take_part(const struct prcb_family_part *part, void *ctx)
{
    struct account_counters *counters = ctx;
    struct leaving *leaving = table_find(&counters->leaving, (uint32_t)part->tid);
    struct event_count *count;

    if (!leaving) {
        leaving = calloc(1, sizeof(*leaving));
        if (leaving)
            leaving->counts = calloc(counters->counting, sizeof(*leaving->counts));
        if (!leaving || !leaving->counts ||
            table_put(&counters->leaving, (uint32_t)part->tid, leaving)) {
            if (leaving)
                free_leaving(leaving);
            return -ENOMEM;
        }
    }
    count = &leaving->counts[part->index];
    count->value += part->value;
    count->running_ns += part->running_ns;
    if (part->enabled_ns > count->enabled_ns)
        count->enabled_ns = part->enabled_ns;
    return 0;
}

static int drain(struct account_counters *counters)
{
    if (!counters->family)
        return 0;
    return prcb_family_collect(counters->family, take_part, counters, &counters->lost);
}

/* It is scaled as the library scales a family's sum: see prcb_family_read. */
static void finish_part(const struct event *event, struct event_count *count)
{
    if (count->enabled_ns < count->running_ns || !strcmp(event->source, "software"))
        count->enabled_ns = count->running_ns;
    if (count->running_ns && count->running_ns < count->enabled_ns - count->enabled_ns / 64)
        count->value = (uint64_t)((double)count->value * (double)count->enabled_ns /
                                  (double)count->running_ns);
    count->counted = count->running_ns > 0;
    count->idle = !count->enabled_ns;
    count->lacking = !count->counted && !count->idle;
}

static void add_taken(struct event_count *taken, const struct event_count *count)
{
    taken->value += count->value;
    taken->enabled_ns += count->enabled_ns;
    taken->running_ns += count->running_ns;
}

static void take_leaving(struct account_counters *counters, struct account_row *row)
{
    struct leaving *leaving = table_find(&counters->leaving, (uint32_t)row->tid);

    if (!leaving)
        return;
    table_remove(&counters->leaving, (uint32_t)row->tid, leaving);
    for (size_t i = 0; i < counters->count; i++) {
        int32_t place = counters->events[i].place;

        if (place < 0)
            continue;
        row->now.counts[i] = leaving->counts[place];
        add_taken(&counters->taken[place], &leaving->counts[place]);
        finish_part(&counters->events[i], &row->now.counts[i]);
    }
    free_leaving(leaving);
    row->counted = true;
}

/* One thread of a family leaves no parts: the one that ends with the events that the
 * others were inherited from. Which one that is, is the kernel's affair, as it moves
 * them between threads instead of reprogramming the counters. So when one row alone
 * has not got anything, what is left of the sum is its own. */
static void take_rest(struct account_counters *counters, struct account_rows *rows, bool all_seen)
{
    struct account_row *last = NULL;

    if (counters->leaving.count || counters->lost)
        return;
    for (size_t i = 0; i < rows->count; i++) {
        if (rows->rows[i]->counted || !rows->rows[i]->key)
            continue;
        if (last)
            return;
        last = rows->rows[i];
    }
    if (!last || (!last->exited && !all_seen))
        return;
    for (size_t i = 0; i < counters->count; i++) {
        int32_t place = counters->events[i].place;
        const struct prcb_counter *sum;

        if (place < 0 || !counters->sums[place].running_ns)
            continue;
        sum = &counters->sums[place];
        last->now.counts[i] = (struct event_count){
            .value = rest_of(sum->raw, counters->taken[place].value),
            .enabled_ns = rest_of(sum->enabled_ns, counters->taken[place].enabled_ns),
            .running_ns = rest_of(sum->running_ns, counters->taken[place].running_ns),
        };
        finish_part(&counters->events[i], &last->now.counts[i]);
    }
}

/* ---- sets ----------------------------------------------------------------- */

static void open_set(struct account_counters *counters, struct account_row *row)
{
    struct prcb_counters *set;
    struct prcb_error err = {0};

    row->counted = true; /* tried, at least */
    if (counters->first && row->tid == counters->first_tid) {
        row->counters = counters->first;
        counters->first = NULL;
        return;
    }
    if (prcb_counters_open(counters->names, row->tid, 0, &set, &err)) {
        snprintf(counters->failure, sizeof(counters->failure), "%.159s", err.text);
        return;
    }
    row->counters = set;
    counters->late += counters->began;
}

static void read_set(struct account_counters *counters, struct account_row *row)
{
    struct prcb_counter values[PRCB_COUNTERS_MAX];

    if (prcb_counters_read(row->counters, counters->counting, values))
        return;
    for (size_t i = 0; i < counters->count; i++) {
        int32_t place = counters->events[i].place;
        struct event_count *count = &row->now.counts[i];
        bool present;

        if (place < 0)
            continue;
        present = values[place].flags & PRCB_COUNTER_PRESENT;
        *count = (struct event_count){.value = values[place].value,
                                      .enabled_ns = values[place].enabled_ns,
                                      .running_ns = values[place].running_ns,
                                      .counted = present,
                                      .idle = !present && !values[place].enabled_ns,
                                      .lacking = !present && values[place].enabled_ns};
    }
}

void account_counters_released(struct account_counters *counters, struct account_row *row)
{
    if (counters && row->counters)
        prcb_counters_close(row->counters);
    row->counters = NULL;
}

/* ---- rows ----------------------------------------------------------------- */

/* A row whose counts are not its own for good starts without any. */
static int make_counts(struct account_counters *counters, struct account_row *row)
{
    if (!row->now.counts) {
        row->now.counts = calloc(counters->count, sizeof(*row->now.counts));
        if (!row->now.counts)
            return -ENOMEM;
        row->now.count_count = (uint32_t)counters->count;
    }
    for (size_t i = 0; i < counters->count && !row->counted && row->key; i++)
        row->now.counts[i] = (struct event_count){.lacking = 1};
    return 0;
}

static int update_row(struct account_counters *counters, struct account_row *row)
{
    int result = make_counts(counters, row);

    if (result || !counters->counting || row->released)
        return result;
    if (!counters->sets) {
        if (row->exited && !row->counted)
            take_leaving(counters, row);
        return 0;
    }
    if (!row->counted && !row->exited)
        open_set(counters, row);
    if (row->counters)
        read_set(counters, row);
    if (row->exited)
        account_counters_released(counters, row);
    return 0;
}

int account_counters_tick(struct account_counters *counters, bool *ret)
{
    *ret = counters->counting && counters->sets;
    return drain(counters);
}

int account_counters_update(struct account_counters *counters, struct account_rows *rows,
                            bool all_seen)
{
    int result = drain(counters);

    for (size_t i = 0; i < rows->count && !result; i++)
        result = update_row(counters, rows->rows[i]);
    if (!result && counters->family)
        result = prcb_family_read(counters->family, counters->counting, counters->sums);
    if (!result && counters->family && !counters->sets && counters->whole_family)
        take_rest(counters, rows, all_seen);
    counters->began = true;
    return result;
}

void account_counters_mark(struct account_counters *counters)
{
    memcpy(counters->marked, counters->sums, sizeof(counters->marked));
}

static uint64_t since(uint64_t now, uint64_t before, bool interval)
{
    return !interval ? now : now > before ? now - before : 0;
}

int account_counters_total(const struct account_counters *counters, bool interval,
                           struct account_sums *total)
{
    if (!counters->family || !counters->whole_family || !total->counts)
        return 0;
    for (size_t i = 0; i < counters->count; i++) {
        int32_t place = counters->events[i].place;
        const struct prcb_counter *now, *before;

        if (place < 0)
            continue;
        now = &counters->sums[place];
        before = &counters->marked[place];
        total->counts[i] = (struct event_count){
            .value = since(now->value, before->value, interval),
            .enabled_ns = since(now->enabled_ns, before->enabled_ns, interval),
            .running_ns = since(now->running_ns, before->running_ns, interval),
            .counted = now->flags & PRCB_COUNTER_PRESENT ? 1 : 0,
            .lacking = now->flags & PRCB_COUNTER_PRESENT ? 0 : 1,
        };
    }
    return 0;
}

/* ---- words ---------------------------------------------------------------- */

const struct event_count *account_counters_find(const struct account_counters *counters, size_t i,
                                                const struct account_row *row,
                                                const char **ret_reason)
{
    const struct account_sums *now = &row->now;
    const struct event_count *count = i < now->count_count ? &now->counts[i] : NULL;

    if (count && count->counted && !count->lacking)
        return count;
    if (counters->events[i].reason)
        *ret_reason = counters->events[i].reason;
    else if (count && count->idle && !count->lacking)
        *ret_reason = "it has not run";
    else if (!counters->sets && counters->whole_family && !counters->lost)
        *ret_reason = "known when it, or the rest of the command, has ended";
    else if (counters->failure[0])
        *ret_reason = counters->failure;
    else if (!counters->sets)
        *ret_reason = "it never got one of the processor's counters, or the count was lost";
    else
        *ret_reason = "it ended before it was seen";
    return NULL;
}

struct account_counters_notes account_counters_notes(const struct account_counters *counters)
{
    return (struct account_counters_notes){
        .short_lived_lack = counters->family && counters->sets,
        .late = counters->late,
        .lost = counters->lost,
        .failure = counters->failure[0] ? counters->failure : NULL,
    };
}
