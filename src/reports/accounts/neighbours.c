/* SPDX-License-Identifier: BSD-2-Clause */
#include "neighbours.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "csv.h"
#include "format.h"
#include "json_doc.h"
#include "text.h"

#define COLUMNS     6  /* culprits beside each other */
#define FIXED_WIDTH 47 /* of a line without its path and the culprits' columns */
#define CELL_WIDTH  7
#define LEAST_PATH  12

struct pair {
    const char *victim, *by;
    uint64_t ns;
};

struct cgroup {
    const char *path;
    uint64_t run, ready, throttled, open;
    uint64_t caused; /* ready time of others */
    size_t number;   /* in the table, from 1; 0: it has no row */
};

/* Texts are the metrics'. */
struct found {
    struct pair *pairs;
    size_t pair_count, pair_room;
    struct cgroup *cgroups;
    size_t count, room;
    bool failed;
};

/* ---- from samples ---- */

static struct cgroup *cgroup_of(struct found *found, const char *path)
{
    for (size_t i = 0; i < found->count; i++) {
        if (!strcmp(found->cgroups[i].path, path))
            return &found->cgroups[i];
    }
    found->failed |=
        array_add(found->cgroups, found->count, found->room, (struct cgroup){.path = path}) != 0;
    return found->failed ? NULL : &found->cgroups[found->count - 1];
}

static void take_pair(void *ctx, const struct metrics_sample *sample)
{
    struct found *found = ctx;
    struct pair pair = {sample->value[0], sample->value[1], sample->number};
    struct cgroup *culprit;

    if (!pair.ns)
        return;
    culprit = *pair.by == '/' ? cgroup_of(found, pair.by) : NULL;
    if (culprit)
        culprit->caused += pair.ns;
    found->failed |= array_add(found->pairs, found->pair_count, found->pair_room, pair) != 0;
}

#define TAKE(member)                                                                               \
    static void take_##member(void *ctx, const struct metrics_sample *sample)                      \
    {                                                                                              \
        struct cgroup *cgroup = cgroup_of(ctx, sample->value[0]);                                  \
                                                                                                   \
        if (cgroup)                                                                                \
            cgroup->member = sample->number;                                                       \
    }
TAKE(run)
TAKE(ready)
TAKE(throttled)
TAKE(open)

static const struct {
    const char *family;
    metrics_sample_fn *take;
} sources[] = {
    {"prcb_cgroup_run_seconds", take_run},
    {"prcb_cgroup_ready_seconds", take_ready},
    {"prcb_cgroup_throttled_seconds", take_throttled},
    {"prcb_cgroup_ready_open_seconds", take_open},
    {"prcb_cgroup_ready_behind_seconds", take_pair},
};

static int by_time(const void *left, const void *right)
{
    const struct cgroup *a = left, *b = right;
    uint64_t a_ns = a->ready > a->caused ? a->ready : a->caused;
    uint64_t b_ns = b->ready > b->caused ? b->ready : b->caused;

    return a_ns != b_ns ? (a_ns < b_ns ? 1 : -1) : strcmp(a->path, b->path);
}

static int find(const struct metrics *m, struct found *ret)
{
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        for (const struct metrics_family *f = metrics_families; f->name; f++) {
            if (!strcmp(f->name, sources[i].family))
                metrics_each(m, f, sources[i].take, ret);
        }
    }
    array_sort(ret->cgroups, ret->count, by_time);
    return ret->failed ? -ENOMEM : 0;
}

static void release(struct found *found)
{
    free(found->pairs);
    free(found->cgroups);
}

static uint64_t ns_between(const struct found *found, const char *victim, const char *by)
{
    uint64_t ns = 0;

    for (size_t i = 0; i < found->pair_count; i++) {
        if (!strcmp(found->pairs[i].victim, victim) && !strcmp(found->pairs[i].by, by))
            ns += found->pairs[i].ns;
    }
    return ns;
}

/* ---- the table ---- */

/* The culprits that have columns: those that caused most. Returns how many. */
static size_t choose(const struct found *found, size_t rows, const struct cgroup *ret[COLUMNS])
{
    size_t count = 0;

    for (size_t i = 0; i < rows; i++) {
        const struct cgroup *cgroup = &found->cgroups[i];
        size_t at = count;

        if (!cgroup->caused)
            continue;
        for (; at > 0 && ret[at - 1]->caused < cgroup->caused; at--) {
            if (at < COLUMNS)
                ret[at] = ret[at - 1];
        }
        if (at < COLUMNS)
            ret[at] = cgroup;
        count += count < COLUMNS;
    }
    return count;
}

static void print_share(FILE *out, uint64_t part, uint64_t whole)
{
    char cell[FORMAT_CELL] = "-";

    if (part)
        format_share(part, whole, cell, sizeof(cell));
    fprintf(out, "%*s", CELL_WIDTH, cell);
}

static void print_time(FILE *out, uint64_t ns)
{
    char cell[FORMAT_CELL];

    format_time(ns, cell, sizeof(cell));
    fprintf(out, " %8s", cell);
}

static void print_path(FILE *out, const char *path, size_t width)
{
    char safe[4096];

    text_copy(TEXT_MARKS, path, safe, sizeof(safe));
    format_cut(safe, width);
    fprintf(out, "%s%*s", safe, (int)(width - format_width(safe)), "");
}

static void print_row(FILE *out, const struct found *found, const struct cgroup *cgroup,
                      const struct cgroup *const columns[], size_t count)
{
    uint64_t self = ns_between(found, cgroup->path, "self");
    uint64_t kernel = ns_between(found, cgroup->path, "(kernel)"), rest = cgroup->ready;

    print_time(out, cgroup->run);
    print_time(out, cgroup->ready);
    print_time(out, cgroup->throttled);
    print_share(out, self, cgroup->ready);
    print_share(out, kernel, cgroup->ready);
    rest -= self + kernel;
    for (size_t i = 0; i < count; i++) {
        uint64_t ns = ns_between(found, cgroup->path, columns[i]->path);

        print_share(out, ns, cgroup->ready);
        rest -= ns;
    }
    print_share(out, rest, cgroup->ready);
    fputc('\n', out);
}

static void print_rows(FILE *out, struct found *found, size_t rows)
{
    const struct cgroup *columns[COLUMNS];
    size_t wide = format_columns(out), width = LEAST_PATH, count;

    for (size_t i = 0; i < rows; i++) {
        found->cgroups[i].number = i + 1;
        if (format_width(found->cgroups[i].path) > width)
            width = format_width(found->cgroups[i].path);
    }
    count = choose(found, rows, columns);
    while (count && wide < FIXED_WIDTH + LEAST_PATH + (count + 1) * CELL_WIDTH)
        count--;
    if (wide < FIXED_WIDTH + width + (count + 1) * CELL_WIDTH)
        width = wide > FIXED_WIDTH + LEAST_PATH + (count + 1) * CELL_WIDTH
                    ? wide - FIXED_WIDTH - (count + 1) * CELL_WIDTH
                    : LEAST_PATH;
    fprintf(out, "     %-*s %8s %8s %8s%*s%*s", (int)width, "CGROUP", "RUN", "READY", "thrott.",
            CELL_WIDTH, "self", CELL_WIDTH, "kernel");
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%*s%zu]", CELL_WIDTH - (columns[i]->number > 9 ? 3 : 2), "[",
                columns[i]->number);
    fprintf(out, "%*s\n", CELL_WIDTH, "rest");
    for (size_t i = 0; i < rows; i++) {
        fprintf(out, "%s[%zu] ", i < 9 ? " " : "", i + 1);
        print_path(out, found->cgroups[i].path, width);
        print_row(out, found, &found->cgroups[i], columns, count);
    }
}

int neighbours_table(FILE *out, const struct metrics *m, const struct neighbours_view *view)
{
    struct found found = {0};
    char time[FORMAT_CELL];
    int result = find(m, &found);
    size_t rows = 0;

    while (!result && rows < found.count && (!view->top || rows < view->top) &&
           (found.cgroups[rows].ready || found.cgroups[rows].caused))
        rows++;
    format_time(view->ns, time, sizeof(time));
    if (!result) {
        fprintf(out,
                "\n who had the processors while threads of each cgroup were ready: shares of "
                "READY%s%s\n\n",
                view->ns ? ", in " : "", view->ns ? time : "");
        print_rows(out, &found, rows);
        if (rows < found.count)
            fprintf(out, "\n%zu more cgroup%s ready for less, or not at all\n", found.count - rows,
                    found.count - rows == 1 ? " was" : "s were");
    }
    release(&found);
    return result;
}

/* ---- for programs ---- */

static void put_behind(struct json_doc *doc, json_object *object, const struct found *found,
                       const struct cgroup *cgroup)
{
    json_object *behind = json_object_new_array();

    for (size_t i = 0; i < found->pair_count; i++) {
        json_object *pair;

        if (strcmp(found->pairs[i].victim, cgroup->path))
            continue;
        pair = json_object_new_object();
        json_doc_put_text(doc, pair, "by", found->pairs[i].by);
        json_doc_put_number(doc, pair, "ns", found->pairs[i].ns);
        json_doc_append(doc, behind, pair);
    }
    json_doc_put(doc, object, "behind", behind);
}

int neighbours_json(FILE *out, const struct metrics *m, const struct neighbours_view *view)
{
    struct found found = {0};
    struct json_doc doc = {0};
    json_object *document = json_doc_new(&doc, JSON_NEIGHBOURS), *list = json_object_new_array();
    int result = find(m, &found);

    json_doc_put_number(&doc, document, "elapsed_ns", view->ns);
    for (size_t i = 0; i < found.count; i++) {
        const struct cgroup *cgroup = &found.cgroups[i];
        json_object *object = json_object_new_object();

        json_doc_put_text(&doc, object, "cgroup", cgroup->path);
        json_doc_put_number(&doc, object, "run_ns", cgroup->run);
        json_doc_put_number(&doc, object, "ready_ns", cgroup->ready);
        json_doc_put_number(&doc, object, "throttled_ns", cgroup->throttled);
        json_doc_put_number(&doc, object, "ready_open_ns", cgroup->open);
        put_behind(&doc, object, &found, cgroup);
        json_doc_append(&doc, list, object);
    }
    json_doc_put(&doc, document, "cgroups", list);
    doc.failed |= result != 0;
    release(&found);
    return json_doc_write(&doc, document, out);
}

int neighbours_csv(FILE *out, const struct metrics *m, const char *separator)
{
    static const char *const names[] = {"cgroup", "by", "ns", "ready_ns", NULL};
    struct csv csv = {.out = out, .separator = separator};
    struct found found = {0};
    int result = find(m, &found);

    csv_names(&csv, names);
    for (size_t i = 0; !result && i < found.pair_count; i++) {
        csv_text(&csv, found.pairs[i].victim);
        csv_text(&csv, found.pairs[i].by);
        csv_number(&csv, true, found.pairs[i].ns);
        csv_number(&csv, true, cgroup_of(&found, found.pairs[i].victim)->ready);
        csv_end(&csv);
    }
    release(&found);
    return result;
}
