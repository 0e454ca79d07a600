/* SPDX-License-Identifier: BSD-2-Clause */
#include "whom_words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cause.h"
#include "format.h"
#include "interrupt_name.h"
#include "rest.h"
#include "text.h"

#define MOST 4 /* named on a line */

/* Says what a timer does that ends a wait; NULL: nothing to tell. For a sleep it is no failure.
 * A wait for events may be for a timer's: a timerfd, or its signal. */
static const char *timer_words(uint32_t cause)
{
    if (cause == PRCB_CAUSE_SLEEP || cause == PRCB_CAUSE_NONE)
        return NULL;
    return cause_traits(cause)->class == CAUSE_CLASS_EVENT ? "timed out, or a timer's event"
                                                           : "timed out";
}

void whom_name(const struct prcb_edge *edge, char *ret, size_t size)
{
    const char *softirq = prcb_softirq_name(edge->vector);
    char name[64], raw[64];
    const char *words;

    switch (edge->by) {
    case PRCB_BY_THREAD:
        text_copy(TEXT_MARKS, edge->comm, name, sizeof(name));
        if (edge->tid)
            snprintf(ret, size, "%s (%d)", name, (int)edge->tid);
        else
            snprintf(ret, size, "%s", name);
        return;
    case PRCB_BY_TIMER:
        words = timer_words(edge->cause);
        snprintf(ret, size, "timer%s%s%s", words ? " (" : "", words ? words : "", words ? ")" : "");
        return;
    case PRCB_BY_INTERRUPT:
        interrupt_name(INTERRUPTS, edge->vector, raw, sizeof(raw));
        text_copy(TEXT_MARKS, raw, name, sizeof(name));
        if (edge->vector == PRCB_INTERRUPT_UNKNOWN)
            snprintf(ret, size, "interrupt");
        else
            snprintf(ret, size, "interrupt %" PRIu32 "%s%s%s", edge->vector, *name ? " (" : "",
                     name, *name ? ")" : "");
        return;
    case PRCB_BY_SOFTIRQ:
        snprintf(ret, size, "softirq %s", softirq ? softirq : "?");
        return;
    case PRCB_BY_IDLE:
        snprintf(ret, size, "idle processor (waking up)");
        return;
    case PRCB_BY_REST:
        snprintf(ret, size, "rest");
        return;
    case PRCB_BY_OTHERS:
        snprintf(ret, size, "another user's process");
        return;
    case PRCB_BY_KERNEL:
        snprintf(ret, size, "kernel threads");
        return;
    default:
        snprintf(ret, size, "unknown");
    }
}

void whom_cgroup_name(const struct prcb_edge *edge, struct cgroup_names *names, uint64_t group,
                      char *ret, size_t size)
{
    const char *path;

    if (edge->by != PRCB_BY_CGROUP) {
        whom_name(edge, ret, size);
    } else if (edge->cgroup == group) {
        snprintf(ret, size, "itself");
    } else {
        path = cgroup_names_find(names, edge->cgroup);
        if (path)
            text_copy(TEXT_MARKS, path, ret, size);
        else
            snprintf(ret, size, "a cgroup that is gone (%" PRIu64 ")", edge->cgroup);
    }
}

/* Shares are of time; where there is none, of counts. */
static uint64_t weight(const struct prcb_edge *edge, bool time)
{
    return time ? edge->ns : edge->count;
}

/* The state of a line of items, which begin at `indent`. */
struct line {
    size_t indent, used, columns;
};

static void write_item(FILE *out, struct line *line, const char *name, const char *share)
{
    size_t width = format_width(name) + 1 + format_width(share);
    bool first = line->used == line->indent;

    if (!first && line->used + 2 + width + 1 > line->columns) {
        fprintf(out, ",\n%*s", (int)line->indent, "");
        line->used = line->indent;
        first = true;
    }
    fprintf(out, "%s%s %s", first ? "" : ", ", name, share);
    line->used += width + (first ? 0 : 2);
}

/* The cgroup that was ready, and the names of others. All zero: rows name no cgroups. */
struct of_cgroup {
    struct cgroup_names *names;
    uint64_t group;
};

static void write_rows(FILE *out, const struct prcb_edge *rows, size_t count, const char *title,
                       const struct of_cgroup *of, const char *lead, size_t columns)
{
    struct line line = {.indent = format_width(lead) + strlen(title), .columns = columns};
    uint64_t ns = 0, stretches = 0, known = 0, left = 0, all;
    size_t shown = 0;
    char share[FORMAT_CELL], name[4096];
    bool time;

    for (size_t i = 0; i < count; i++) {
        ns += rows[i].ns;
        stretches += rows[i].count;
        known += rows[i].by == PRCB_BY_REST ? 0 : rows[i].count;
    }
    time = ns != 0;
    all = time ? ns : stretches;
    fprintf(out, "%s%s", lead, title);
    line.used = line.indent;
    for (size_t i = 0; i < count; i++) {
        if (shown == MOST || rows[i].by == PRCB_BY_REST) {
            left += weight(&rows[i], time);
            continue;
        }
        /* The counts are of waits whose beginning and end were seen. */
        if (rows[i].by == PRCB_BY_TIMER && timer_words(rows[i].cause) && rows[i].count)
            snprintf(name, sizeof(name), "timer (%" PRIu64 " of %" PRIu64 " %s)", rows[i].count,
                     known, timer_words(rows[i].cause));
        else
            whom_cgroup_name(&rows[i], of->names, of->group, name, sizeof(name));
        format_share(weight(&rows[i], time), all, share, sizeof(share));
        write_item(out, &line, name, share);
        shown++;
    }
    if (left || !shown) {
        format_share(left, all, share, sizeof(share));
        write_item(out, &line, shown ? "others" : "not known", share);
    }
    fputc('\n', out);
}

void whom_write(FILE *out, const struct whom *w, uint64_t group, uint32_t cause, bool lock,
                const char *lead, size_t columns)
{
    struct prcb_edge *rows;
    size_t count;

    if (whom_rows(w, group, cause, &rows, &count))
        return;
    for (size_t i = 0; i < count; i++)
        lock &= rows[i].by != PRCB_BY_TIMER; /* a thread that gave up was not given the lock */
    if (count)
        write_rows(out, rows, count,
                   !cause ? "behind  "
                   : lock ? "released by  "
                          : "woken by  ",
                   &(const struct of_cgroup){0}, lead, columns);
    free(rows);
}

void whom_write_holders(FILE *out, const struct whom *w, uint64_t group, uint32_t cause,
                        const char *lead, size_t columns)
{
    struct prcb_edge *rows;
    size_t count;

    if (whom_holders(w, group, cause, &rows, &count))
        return;
    if (count)
        write_rows(out, rows, count, "held by   ", &(const struct of_cgroup){0}, lead, columns);
    free(rows);
}

void whom_write_cgroups(FILE *out, const struct whom *w, struct cgroup_names *names, uint64_t group,
                        const char *lead, size_t columns)
{
    struct prcb_edge *rows;
    size_t count;

    if (whom_meanwhile(w, group, &rows, &count))
        return;
    if (count)
        write_rows(out, rows, count, "behind  ", &(const struct of_cgroup){names, group}, lead,
                   columns);
    free(rows);
}

static json_object *make_edge(struct json_doc *b, const struct prcb_edge *edge)
{
    bool thread = edge->by == PRCB_BY_THREAD;
    bool vector = edge->by == PRCB_BY_SOFTIRQ ||
                  (edge->by == PRCB_BY_INTERRUPT && edge->vector != PRCB_INTERRUPT_UNKNOWN);
    json_object *row = json_object_new_object();
    char name[128];

    whom_name(edge, name, sizeof(name));
    json_doc_put_text(b, row, "by", prcb_edge_by_name(edge->by));
    json_doc_put_text(b, row, "name", name);
    json_doc_put_member(b, row, "tid", (uint64_t)edge->tid, thread && edge->tid);
    json_doc_put_member(b, row, "pid", (uint64_t)edge->pid, thread && edge->pid);
    json_doc_put_text(b, row, "comm", thread ? edge->comm : NULL);
    json_doc_put_member(b, row, "vector", edge->vector, vector);
    json_doc_put_number(b, row, "count", edge->count);
    json_doc_put_number(b, row, "ns", edge->ns);
    return row;
}

json_object *whom_edges_json(struct json_doc *b, const struct prcb_edge *edges, size_t count)
{
    json_object *array = json_object_new_array();

    for (size_t i = 0; i < count; i++)
        json_doc_append(b, array, make_edge(b, &edges[i]));
    return array;
}

json_object *whom_json(struct json_doc *b, const struct whom *w, uint64_t group,
                       const struct prcb_edge *all)
{
    bool ready = all->kind == PRCB_EDGE_BEHIND;
    struct prcb_edge *rows, rest = *all;
    json_object *array;
    size_t count;

    if ((all->kind == PRCB_EDGE_HELD_BY ? whom_holders : whom_rows)(w, group, all->cause, &rows,
                                                                    &count))
        return json_object_new_array();
    if (count && rows[count - 1].by == PRCB_BY_REST && count--)
        rest.count = ready ? rows[count].count : rest.count;
    rest.by = PRCB_BY_REST;
    for (size_t i = 0; i < count; i++) {
        rest.count = ready ? rest.count : rest_of(rest.count, rows[i].count);
        rest.ns = rest_of(rest.ns, rows[i].ns);
    }
    array = whom_edges_json(b, rows, count);
    if (rest.count || rest.ns)
        json_doc_append(b, array, make_edge(b, &rest));
    free(rows);
    return array;
}
