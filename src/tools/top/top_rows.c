/* SPDX-License-Identifier: BSD-2-Clause */
#include "top_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cause.h"
#include "near.h"

#define HISTORY_LOOKS 200000 /* a sum over history looks at so many parts of intervals, roughly */

const char *const top_group_names[TOP_GROUPS] = {"threads", "processes", "names", "cgroups",
                                                 "causes"};
const char *const top_sort_names[TOP_SORTS] = {"busy", "run", "ready", "wait", "switches",
                                               "for",  "pid", "name",  "cause"};

/* ---- filters ----------------------------------------------------------------- */

static uint32_t cause_number(const char *name, size_t length)
{
    for (uint32_t i = 1; i < PRCB_CAUSE_MAX; i++) {
        const struct prcb_cause_info *info = prcb_cause_info(i);

        if (info && strlen(info->name) == length && !memcmp(info->name, name, length))
            return i;
    }
    return TOP_NONE;
}

static uint32_t column_number(const char *name, size_t length)
{
    static const struct {
        const char *name;
        uint32_t column;
    } columns[] = {{"run", TOP_ROW_RUN}, {"ready", TOP_ROW_READY}, {"wait", TOP_COLUMN_WAIT}};

    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        if (strlen(columns[i].name) == length && !memcmp(columns[i].name, name, length))
            return columns[i].column;
    }
    return cause_number(name, length);
}

static const struct {
    const char *prefix;
    int kind;
} prefixes[] = {
    {"cause:", TERM_CAUSE}, {"cgroup:", TERM_CGROUP}, {"user:", TERM_USER}, {"pid:", TERM_PID}};

/* Returns whether a word with a colon is a mistyped one of ours, not a part of a name like
 * "kworker/0:1" or "postgres:". */
static bool mistyped(const char *word)
{
    struct near near = {.count = 0};
    char typed[16];
    size_t length = strcspn(word, ":");

    if (!word[length] || length >= sizeof(typed) - 1)
        return false;
    snprintf(typed, sizeof(typed), "%.*s", (int)length + 1, word);
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        near_offer(&near, typed, prefixes[i].prefix);
    return near.count > 0;
}

static bool parse_term(const char *word, struct top_term *ret)
{
    size_t name = strcspn(word, "<>");
    char *end;

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        const char *value = word + strlen(prefixes[i].prefix);

        if (strncmp(word, prefixes[i].prefix, strlen(prefixes[i].prefix)))
            continue;
        ret->kind = prefixes[i].kind;
        snprintf(ret->text, sizeof(ret->text), "%s", value);
        ret->column = ret->kind == TERM_CAUSE ? column_number(value, strlen(value)) : 0;
        ret->pid = ret->kind == TERM_PID ? (pid_t)strtol(value, &end, 10) : 0;
        return *value && ret->column != TOP_NONE && (ret->kind != TERM_PID || !*end);
    }
    ret->kind = word[name] ? word[name] == '>' ? TERM_MORE : TERM_LESS : TERM_TEXT;
    if (ret->kind == TERM_TEXT) {
        snprintf(ret->text, sizeof(ret->text), "%s", word);
        return !mistyped(word);
    }
    ret->column = column_number(word, name);
    ret->percent = strtod(word + name + 1, &end);
    return ret->column != TOP_NONE && word[name + 1] && !*end && ret->percent >= 0;
}

int top_filter_parse(const char *text, struct top_filter *ret, char *ret_error, size_t size)
{
    struct top_filter filter = {.count = 0};

    while (*(text += strspn(text, " "))) {
        size_t length = strcspn(text, " ");
        char word[64];

        snprintf(word, sizeof(word), "%.*s", (int)length, text);
        if (filter.count == TOP_TERMS || !parse_term(word, &filter.terms[filter.count])) {
            snprintf(ret_error, size, "%s",
                     filter.count == TOP_TERMS ? "too many words in the filter" : word);
            return -EINVAL;
        }
        filter.count++;
        text += length;
    }
    *ret = filter;
    return 0;
}

static uint64_t column_ns(const struct top_row *row, uint32_t column)
{
    switch (column) {
    case TOP_ROW_RUN:
        return row->run_ns;
    case TOP_ROW_READY:
        return row->ready_ns;
    case TOP_COLUMN_WAIT:
        return row->wait_ns;
    default:
        return row->ns[column];
    }
}

bool top_row_has_text(const struct top_row *row, const char *text)
{
    char number[32];

    snprintf(number, sizeof(number), "%d", (int)(row->tid ? row->tid : row->pid));
    return (row->name && strcasestr(row->name, text)) ||
           (row->detail && strcasestr(row->detail, text)) || !strcmp(number, text);
}

static bool passes(const struct top_model *m, const struct top_row *row,
                   const struct top_term *term)
{
    const struct top_process *process = &m->processes[m->threads[row->thread].process];
    double part = 100.0 * (double)(term->kind >= TERM_MORE ? column_ns(row, term->column) : 0) /
                  (double)(row->wall_ns ? row->wall_ns : 1);

    switch (term->kind) {
    case TERM_TEXT:
        return top_row_has_text(row, term->text) ||
               (process->command && strcasestr(process->command, term->text));
    case TERM_CAUSE:
        return column_ns(row, term->column) > 0;
    case TERM_CGROUP:
        return (process->cgroup && strstr(process->cgroup, term->text)) ||
               (process->container && strstr(process->container, term->text));
    case TERM_USER:
        return process->user && !strcmp(process->user, term->text);
    case TERM_PID:
        return row->pid == term->pid || row->tid == term->pid;
    case TERM_MORE:
        return part > term->percent;
    case TERM_LESS:
        return part < term->percent;
    }
    return false;
}

/* Returns whether the user's filter lets a thread pass: sums are of the threads that pass. */
static bool wanted(const struct top_model *m, const struct top_row *row,
                   const struct top_choice *choice)
{
    const struct top_process *process = &m->processes[m->threads[row->thread].process];

    if (choice->no_kernel && row->kernel)
        return false;
    if (choice->user && (!process->user || strcmp(process->user, choice->user)))
        return false;
    if (choice->only_thread != TOP_NONE && choice->only_thread != row->thread)
        return false;
    if (choice->only_pid && choice->only_pid != row->pid)
        return false;
    for (uint32_t i = 0; choice->filter && i < choice->filter->count; i++) {
        if (!passes(m, row, &choice->filter->terms[i]))
            return false;
    }
    return true;
}

/* ---- a thread's row ------------------------------------------------------------ */

static void add_part(struct top_row *row, const struct top_part *part)
{
    if (part->cause >= PRCB_CAUSE_MAX)
        return;
    row->ns[part->cause] += part->ns;
    row->counts[part->cause] += part->count;
    row->busy_ns += cause_has(part->cause, CAUSE_MAY_IDLE) ? 0 : part->ns;
}

static void add_delta(struct top_row *row, const struct top_frame *frame,
                      const struct top_delta *delta)
{
    row->wall_ns += delta->wall_ns;
    row->run_ns += delta->run_ns;
    row->ready_ns += delta->ready_ns;
    row->wait_ns += delta->wait_ns;
    row->switches += delta->switches;
    row->busy_ns += delta->ready_ns;
    for (uint32_t i = 0; i < delta->part_count; i++)
        add_part(row, &frame->parts[delta->part_at + i]);
}

/* Adds the time of a thread that slept through an interval, or through as much of it as it
 * lived. */
static void add_sleep(struct top_row *row, const struct top_frame *frame,
                      const struct top_thread *thread, struct top_now now)
{
    if (now.state != TOP_WAIT)
        return;
    row->wall_ns += frame->wall_ns;
    row->wait_ns += frame->wall_ns;
    if (now.cause)
        row->ns[now.cause] += frame->wall_ns;
    row->busy_ns += top_thread_held(thread, now) ? frame->wall_ns : 0;
}

static void thread_row(const struct top_model *m, const struct top_frame *frame, uint32_t index,
                       const struct top_delta *delta, struct top_row *ret)
{
    const struct top_thread *thread = &m->threads[index];

    memset(ret, 0, sizeof(*ret));
    ret->id = thread->key;
    ret->thread = index;
    ret->name = thread->comm;
    ret->detail = m->processes[thread->process].command;
    ret->pid = thread->pid;
    ret->tid = thread->tid;
    ret->threads = 1;
    ret->kernel = thread->kernel;
    ret->now = thread->shown;
    ret->ended = thread->shown.state == TOP_ENDED;
    if (delta)
        add_delta(ret, frame, delta);
    else
        add_sleep(ret, frame, thread, thread->shown);
    ret->sleeps = !ret->switches && !ret->run_ns && !ret->ready_ns && !ret->ended &&
                  !top_thread_held(thread, thread->shown);
    ret->asleep = ret->sleeps;
}

/* ---- sums --------------------------------------------------------------------- */

static void merge(struct top_row *to, const struct top_row *from)
{
    to->threads += from->threads;
    to->asleep += from->asleep;
    to->kernel = to->kernel && from->kernel;
    to->ended = to->ended && from->ended;
    to->wall_ns += from->wall_ns;
    to->run_ns += from->run_ns;
    to->ready_ns += from->ready_ns;
    to->wait_ns += from->wait_ns;
    to->busy_ns += from->busy_ns;
    to->switches += from->switches;
    for (uint32_t i = 0; i < PRCB_CAUSE_MAX; i++) {
        to->ns[i] += from->ns[i];
        to->counts[i] += from->counts[i];
    }
    if (to->now.state != from->now.state || to->now.cause != from->now.cause)
        to->now = (struct top_now){.state = TOP_UNKNOWN};
    else if (from->now.since_ns < to->now.since_ns)
        to->now.since_ns = from->now.since_ns;
    if (to->pid != from->pid)
        to->pid = 0;
}

/* FNV-1a: a name identifies its group from interval to interval. */
static uint64_t hash_text(const char *text)
{
    uint64_t hash = 14695981039346656037ull;

    for (; text && *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211ull;
    return hash | 1;
}

static const char *group_name(const struct top_model *m, uint32_t thread, enum top_group group)
{
    const struct top_process *process = &m->processes[m->threads[thread].process];

    if (group == TOP_CGROUPS)
        return process->cgroup ? process->cgroup : TOP_NO_CGROUP;
    return m->threads[thread].comm;
}

/* Sets what a row of a group is called, and what stands beside that. A container's id says more
 * than the path that ends in it. */
static void name_group(const struct top_model *m, struct top_row *row, enum top_group group)
{
    const struct top_process *process = &m->processes[m->threads[row->thread].process];

    row->name = group_name(m, row->thread, group);
    if (group != TOP_PROCESSES)
        row->detail = NULL;
    if (group == TOP_CGROUPS && process->container) {
        row->detail = row->name;
        row->name = process->container;
    }
}

uint64_t top_row_id(const struct top_model *m, uint32_t thread, enum top_group group)
{
    if (group == TOP_THREADS)
        return m->threads[thread].key;
    /* A process that is not visible here is identified by its name. */
    if (group == TOP_PROCESSES && m->threads[thread].pid)
        return (uint64_t)m->threads[thread].pid << 1;
    return hash_text(group_name(m, thread, group));
}

static int by_id(const void *left, const void *right)
{
    const struct top_row *a = left, *b = right;

    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    /* The first thread of a process comes first: it lends the process its name. */
    if ((a->tid == a->pid) != (b->tid == b->pid))
        return a->tid == a->pid ? -1 : 1;
    return a->tid < b->tid ? -1 : a->tid > b->tid;
}

/* Turns rows of threads into rows of groups, in place. */
static void fold_groups(struct top_model *m, enum top_group group, struct top_rows *rows)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < rows->count; i++)
        rows->rows[i].id = top_row_id(m, rows->rows[i].thread, group);
    array_sort(rows->rows, rows->count, by_id);
    for (uint32_t i = 0; i < rows->count; i++) {
        struct top_row *row = &rows->rows[i];

        if (count && rows->rows[count - 1].id == row->id) {
            merge(&rows->rows[count - 1], row);
            continue;
        }
        name_group(m, row, group);
        row->tid = 0;
        rows->rows[count++] = *row;
    }
    rows->count = count;
    for (uint32_t i = 0; i < count; i++)
        rows->rows[i].sleeps = rows->rows[i].asleep == rows->rows[i].threads;
}

/* Those that ended come last, by name. */
static int by_ended(const void *left, const void *right)
{
    const struct top_row *a = left, *b = right;
    int order = !a->ended || !b->ended ? a->ended - b->ended : strcmp(a->name, b->name);

    return order ? order : a->tid < b->tid ? -1 : a->tid > b->tid;
}

/* Makes one row of all threads of a name that ended in the interval: a build starts hundreds of
 * them, and none is there to be looked at. */
static void fold_ended(struct top_rows *rows)
{
    uint32_t ended = 0, count = 0;

    for (uint32_t i = 0; i < rows->count; i++)
        ended += rows->rows[i].ended;
    if (ended < 2)
        return;
    array_sort(rows->rows, rows->count, by_ended);
    for (uint32_t i = 0; i < rows->count; i++) {
        struct top_row *row = &rows->rows[i], *last = count ? &rows->rows[count - 1] : NULL;

        if (last && last->ended && row->ended && !strcmp(last->name, row->name)) {
            merge(last, row);
            last->now = (struct top_now){.state = TOP_ENDED};
            last->tid = 0;
        } else {
            rows->rows[count++] = *row;
        }
    }
    rows->count = count;
}

/* Divides the total by cause, a row each; threads: those that are in that cause now. */
static int cause_rows(struct top_rows *rows, const struct top_row *threads, uint32_t thread_count)
{
    const struct top_row total = rows->total;
    uint32_t count = 0;

    if (array_reserve(rows->rows, 0u, rows->room, PRCB_CAUSE_MAX + 2))
        return -ENOMEM;
    for (uint32_t i = 1; i < PRCB_CAUSE_MAX + 2; i++) {
        const struct prcb_cause_info *info = prcb_cause_info(i);
        struct top_row row = {.id = i, .thread = total.thread, .wall_ns = total.wall_ns};
        uint64_t most = 0;

        row.name = i == TOP_ROW_RUN ? "run" : i == TOP_ROW_READY ? "ready" : info ? info->name : "";
        row.detail = info ? info->words : NULL;
        row.wait_ns = column_ns(&total, i);
        row.switches = i < PRCB_CAUSE_MAX ? total.counts[i] : 0;
        row.busy_ns = i == TOP_ROW_RUN || cause_has(i, CAUSE_MAY_IDLE) ? 0 : row.wait_ns;
        if (i < PRCB_CAUSE_MAX && row.busy_ns)
            row.busy_ns -= rows->asleep_ns[i];
        row.now = (struct top_now){.state = i == TOP_ROW_RUN ? TOP_RUN : TOP_WAIT, .cause = 0};
        for (uint32_t k = 0; k < thread_count; k++) {
            uint64_t ns = column_ns(&threads[k], i);

            row.threads += ns > 0;
            if (ns > most) {
                most = ns;
                row.thread = threads[k].thread;
                row.pid = threads[k].pid;
            }
        }
        if (row.wait_ns || row.switches)
            rows->rows[count++] = row;
    }
    rows->count = count;
    return 0;
}

/* ---- order -------------------------------------------------------------------- */

static uint64_t weight(const struct top_row *row, const struct top_order *order)
{
    switch (order->key) {
    case TOP_BY_BUSY:
        return row->busy_ns;
    case TOP_BY_RUN:
        return row->run_ns;
    case TOP_BY_READY:
        return row->ready_ns;
    case TOP_BY_WAIT:
        return row->wait_ns;
    case TOP_BY_SWITCHES:
        return row->switches;
    case TOP_BY_FOR:
        return row->now.since_ns ? UINT64_MAX - row->now.since_ns : 0;
    case TOP_BY_CAUSE:
        return column_ns(row, order->cause);
    default:
        return 0;
    }
}

static int compare(const void *left, const void *right, void *ctx)
{
    const struct top_row *a = left, *b = right;
    const struct top_order *order = ctx;
    uint64_t weight_a = weight(a, order), weight_b = weight(b, order);
    int sign = order->inverted ? -1 : 1;

    if (weight_a != weight_b)
        return weight_a > weight_b ? -sign : sign;
    if (order->key == TOP_BY_NAME && strcmp(a->name, b->name))
        return sign * strcmp(a->name, b->name);
    if (order->key == TOP_BY_BUSY && a->run_ns != b->run_ns)
        return a->run_ns > b->run_ns ? -sign : sign;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -sign : sign;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -sign : sign;
    return a->id < b->id ? -sign : a->id > b->id ? sign : 0;
}

static void rank_causes(struct top_rows *rows)
{
    const uint64_t *ns = rows->total.ns;

    rows->cause_count = 0;
    for (uint32_t i = 1; i < PRCB_CAUSE_MAX; i++) {
        uint32_t at = rows->cause_count;

        if (!ns[i])
            continue;
        for (; at && ns[rows->causes[at - 1]] < ns[i]; at--)
            rows->causes[at] = rows->causes[at - 1];
        rows->causes[at] = i;
        rows->cause_count++;
    }
}

static void count_process(struct top_model *m, uint32_t process, struct top_rows *rows)
{
    rows->sleeping_processes += m->processes[process].mark != m->mark;
    m->processes[process].mark = m->mark;
}

/* ---- making ------------------------------------------------------------------- */

/* Counts a sleeping thread that no row needs, as most of a big machine's are. Returns true if it
 * is one. */
static bool count_sleeper(struct top_model *m, const struct top_frame *frame, uint32_t index,
                          const struct top_choice *choice, struct top_rows *rows)
{
    const struct top_thread *thread = &m->threads[index];

    if (choice->sleeping || choice->filter || choice->group != TOP_THREADS || choice->user ||
        choice->only_pid || choice->only_thread != TOP_NONE ||
        top_thread_held(thread, thread->shown) || thread->shown.state != TOP_WAIT)
        return false;
    rows->total.threads++;
    rows->total.asleep++;
    add_sleep(&rows->total, frame, thread, thread->shown);
    rows->asleep_ns[thread->shown.cause] += frame->wall_ns;
    if (!choice->no_kernel || !thread->kernel) {
        rows->sleeping++;
        count_process(m, thread->process, rows);
    }
    return true;
}

/* Makes rows of all threads of the interval; those that are not wanted count only in the total. */
static int thread_rows(struct top_model *m, const struct top_frame *frame,
                       const struct top_choice *choice, struct top_rows *rows)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < m->thread_count; i++) {
        const struct top_delta *delta = NULL;

        while (at < frame->count && frame->deltas[at].thread < i)
            at++;
        if (at < frame->count && frame->deltas[at].thread == i)
            delta = &frame->deltas[at];
        if (!delta &&
            (!top_thread_lived(&m->threads[i], frame) || m->threads[i].shown.state != TOP_WAIT ||
             count_sleeper(m, frame, i, choice, rows)))
            continue;
        if (array_reserve(rows->rows, rows->count, rows->room, 1))
            return -ENOMEM;
        thread_row(m, frame, i, delta, &rows->rows[rows->count]);
        merge(&rows->total, &rows->rows[rows->count]);
        if (rows->rows[rows->count].sleeps)
            rows->asleep_ns[m->threads[i].shown.cause] += rows->rows[rows->count].wait_ns;
        rows->count += wanted(m, &rows->rows[rows->count], choice);
    }
    return 0;
}

static bool is_closed(const struct top_choice *choice, pid_t pid)
{
    for (size_t i = 0; i < choice->closed_count; i++) {
        if (choice->closed[i] == pid)
            return true;
    }
    return false;
}

/* Removes rows that sleep, and counts them. */
static void drop_sleepers(struct top_model *m, const struct top_choice *choice,
                          struct top_rows *rows)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < rows->count; i++) {
        if (rows->rows[i].sleeps && !choice->sleeping) {
            rows->sleeping += rows->rows[i].threads;
            count_process(m, m->threads[rows->rows[i].thread].process, rows);
        } else {
            rows->rows[count++] = rows->rows[i];
        }
    }
    rows->count = count;
}

/* Puts processes in order, and behind each its threads in order. `threads` are sorted by
 * process. */
static int tree_rows(const struct top_choice *choice, struct top_rows *rows,
                     const struct top_row *threads, uint32_t thread_count)
{
    struct top_order order = choice->order;
    uint32_t count = 0, processes = rows->count;
    struct top_row *made = malloc((processes + thread_count + 1) * sizeof(*made));

    if (!made)
        return -ENOMEM;
    for (uint32_t i = 0; i < processes; i++) {
        uint32_t first = count + 1;

        made[count] = rows->rows[i];
        made[count++].folded = is_closed(choice, rows->rows[i].pid);
        for (uint32_t k = 0; k < thread_count && !made[first - 1].folded; k++) {
            if (threads[k].pid != rows->rows[i].pid || rows->rows[i].threads < 2 ||
                (threads[k].sleeps && !choice->sleeping))
                continue;
            made[count] = threads[k];
            made[count++].depth = 1;
        }
        array_sort_r(made + first, count - first, compare, &order);
    }
    free(rows->rows);
    rows->rows = made;
    rows->room = processes + thread_count + 1;
    rows->count = count;
    return 0;
}

static int group_rows(struct top_model *m, const struct top_choice *choice, struct top_rows *rows)
{
    bool keep = choice->group == TOP_CAUSES || (choice->group == TOP_PROCESSES && choice->tree);
    struct top_order order = choice->order;
    uint32_t thread_count = rows->count;
    struct top_row *threads = NULL;
    int result = 0;

    if (keep) {
        threads = malloc((thread_count + 1) * sizeof(*threads));
        if (!threads)
            return -ENOMEM;
        array_copy(threads, rows->rows, thread_count);
    }
    if (choice->group == TOP_CAUSES)
        result = cause_rows(rows, threads, thread_count);
    else if (choice->group != TOP_THREADS)
        fold_groups(m, choice->group, rows);
    else
        fold_ended(rows);
    if (choice->group != TOP_CAUSES)
        drop_sleepers(m, choice, rows);
    if (choice->group == TOP_CAUSES && order.key != TOP_BY_NAME && order.key != TOP_BY_SWITCHES)
        order.key = order.key == TOP_BY_BUSY ? TOP_BY_BUSY : TOP_BY_WAIT;
    array_sort_r(rows->rows, rows->count, compare, &order);
    if (!result && choice->group == TOP_PROCESSES && choice->tree)
        result = tree_rows(choice, rows, threads, thread_count);
    free(threads);
    return result;
}

int top_rows_make(struct top_model *m, uint32_t index, const struct top_choice *choice,
                  struct top_rows *rows)
{
    const struct top_frame *frame;
    int result;

    rows->count = rows->cause_count = rows->sleeping = rows->sleeping_processes = 0;
    rows->present = 0;
    memset(&rows->total, 0, sizeof(rows->total));
    memset(rows->asleep_ns, 0, sizeof(rows->asleep_ns));
    if (index >= m->frame_count)
        return 0;
    m->mark++;
    frame = top_model_frame(m, index);
    if (m->shown != index)
        top_model_show(m, index);
    rows->present = frame->present;
    result = thread_rows(m, frame, choice, rows);
    rows->threads = rows->total.threads;
    rank_causes(rows);
    if (!result)
        result = group_rows(m, choice, rows);
    return result;
}

void top_rows_deinit(struct top_rows *rows)
{
    free(rows->rows);
    memset(rows, 0, sizeof(*rows));
}

void top_rows_history(const struct top_model *m, uint32_t index, const uint32_t *threads,
                      uint32_t thread_count, struct top_row *ret)
{
    uint32_t most = thread_count ? HISTORY_LOOKS / thread_count + 1 : 1;
    uint32_t from = index + 1 > most ? index + 1 - most : 0;

    memset(ret, 0, sizeof(*ret));
    ret->threads = thread_count;
    for (uint32_t i = 0; i < thread_count; i++) {
        const struct top_thread *thread = &m->threads[threads[i]];
        struct top_now now = thread->base;

        for (uint32_t at = 0; at <= index && at < m->frame_count; at++) {
            const struct top_frame *frame = top_model_frame(m, at);
            const struct top_delta *delta = top_frame_delta(frame, threads[i]);

            now = delta ? delta->now : now;
            if (at >= from && delta)
                add_delta(ret, frame, delta);
            else if (at >= from && top_thread_lived(thread, frame))
                add_sleep(ret, frame, thread, now);
        }
    }
}

uint32_t top_row_most(const struct top_row *row, bool with_run)
{
    uint64_t most = row->ready_ns;
    uint32_t best = most ? TOP_ROW_READY : TOP_NONE;

    for (uint32_t i = 1; i < PRCB_CAUSE_MAX; i++) {
        if (row->ns[i] > most) {
            most = row->ns[i];
            best = i;
        }
    }
    return with_run && row->run_ns > most ? TOP_ROW_RUN : best;
}
