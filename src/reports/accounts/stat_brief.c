/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes the report of `prcb stat` as a JSON object of at most JSON_BRIEF_BYTES: the sentences, the
 * largest causes, the rows that were held up most, what is covered, and what the report cannot say.
 * What does not fit is left out from the end, and counted.
 */
#include "stat_report.h"

#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cause.h"

#define CAUSES_MOST 12
#define ROWS_MOST   16
#define WORDS_MOST  2400 /* bytes of all sentences */
#define NAME_MOST   60   /* of a name */

/* Waiting of a cause, or being ready, of all rows or of one. */
struct cost {
    const struct account_row *row; /* NULL: of all */
    uint32_t cause;                /* PRCB_CAUSE_NONE: ready */
    uint64_t ns, count;
    bool may_idle; /* threads without work wait so, and nobody looked whether these had any */
};

static int by_ns(const void *left, const void *right)
{
    const struct cost *a = left, *b = right;

    if (a->ns != b->ns)
        return a->ns < b->ns ? 1 : -1;
    return (a->cause > b->cause) - (a->cause < b->cause);
}

static uint64_t held_ns(const struct wait_cell *cell)
{
    return cause_has(cell->cause, CAUSE_IDLES) || cell->idle_ns > cell->spent_ns
               ? 0
               : cell->spent_ns - cell->idle_ns;
}

/* Finds the costs of a row, in order. Returns how many. */
static size_t costs_of(const struct account_row *row, struct cost ret[PRCB_CAUSE_MAX + 1])
{
    const struct account_sums *f = &row->now;
    size_t count = 0;

    if (f->ready_ns)
        ret[count++] = (struct cost){.ns = f->ready_ns};
    for (uint32_t i = 0; i < f->cell_count && count <= PRCB_CAUSE_MAX; i++) {
        if (held_ns(&f->cells[i]))
            ret[count++] = (struct cost){.cause = f->cells[i].cause,
                                         .ns = held_ns(&f->cells[i]),
                                         .count = f->cells[i].count,
                                         .may_idle = cause_may_idle(f->cells[i].cause)};
    }
    array_sort(ret, count, by_ns);
    return count;
}

/* Each row's sum, with its largest cause. */
static int find_rows(const struct account_view *view, struct cost **ret, size_t *ret_count)
{
    struct cost costs[PRCB_CAUSE_MAX + 1];
    int result = 0;

    *ret = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < view->count && !result; i++) {
        size_t count = costs_of(view->rows[i], costs);
        struct cost row = {.row = view->rows[i]};

        for (size_t k = 0; k < count; k++)
            row.ns += costs[k].ns;
        row.cause = count ? costs[0].cause : PRCB_CAUSE_NONE;
        if (count)
            result = array_append(*ret, *ret_count, row);
    }
    array_sort(*ret, *ret_count, by_ns);
    return result;
}

static const char *cost_name(const struct cost *cost)
{
    const struct prcb_cause_info *info = prcb_cause_info(cost->cause);

    return cost->cause == PRCB_CAUSE_NONE ? "ready" : info ? info->name : "wait";
}

static json_object *make_cause(struct json_doc *b, const struct cost *cost)
{
    json_object *ret = json_object_new_object();

    json_doc_put_text(b, ret, "cause", cost_name(cost));
    json_doc_put_number(b, ret, "ns", cost->ns);
    json_doc_put_member(b, ret, "count", cost->count, cost->cause != PRCB_CAUSE_NONE);
    json_doc_put_bool(b, ret, "may_idle", cost->may_idle);
    return ret;
}

static json_object *make_row(struct json_doc *b, const struct stat_report *report,
                             const struct cost *cost)
{
    json_object *ret = json_object_new_object();
    const struct account_row *row = cost->row;

    json_doc_put_cut(b, ret, "name", stat_row_name(report, row), NAME_MOST);
    json_doc_put_member(b, ret, "pid", (uint64_t)row->pid, row->pid);
    json_doc_put_member(b, ret, "tid", (uint64_t)row->tid, row->tid);
    json_doc_put_number(b, ret, "threads", row->threads);
    json_doc_put_member(b, ret, "ended", row->ended, row->ended);
    json_doc_put_number(b, ret, "held_up_ns", cost->ns);
    json_doc_put_text(b, ret, "most", cost_name(cost));
    json_doc_put_member(b, ret, "run_ns", row->now.run_ns, row->now.present & PRCB_HAS_RUN);
    json_doc_put_member(b, ret, "of_ns", row->now.wall_ns, row->now.present & PRCB_HAS_WALL);
    return ret;
}

/* The lines of what a writer says, as texts. */
static json_object *make_lines(struct json_doc *b, char *text)
{
    json_object *ret = json_object_new_array();
    char *rest;

    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest)) {
        if (line - text + strlen(line) < WORDS_MOST)
            json_doc_append(b, ret, json_object_new_string(line));
    }
    free(text);
    return ret;
}

static json_object *make_verdict(struct json_doc *b, const struct stat_report *report)
{
    bool shown[PRCB_CAUSE_MAX];
    char *text = NULL;
    size_t size;
    FILE *words = open_memstream(&text, &size);

    memset(shown, true, sizeof(shown));
    if (words) {
        stat_words_write(words, report, shown);
        fclose(words);
    }
    return make_lines(b, text);
}

static json_object *make_limits(struct json_doc *b, const struct stat_report *report)
{
    char *text = NULL;
    size_t size;
    FILE *notes = open_memstream(&text, &size);
    json_object *ret;

    if (notes) {
        stat_notes_write(notes, "", report);
        fclose(notes);
    }
    ret = make_lines(b, text);
    json_doc_append(b, ret,
                    json_object_new_string("where in the code, for what and for whom threads "
                                           "waited: prcb why"));
    return ret;
}

/* What the document is made of. */
struct brief {
    const struct stat_report *report;
    struct cost *rows;
    size_t count;
};

static json_object *make_brief(struct json_doc *b, const void *of, size_t shown)
{
    const struct brief *brief = of;
    const struct stat_report *report = brief->report;
    const struct cost *rows = brief->rows;
    size_t count = brief->count;
    json_object *ret = json_doc_new(b, JSON_STAT_BRIEF), *causes = json_object_new_array(),
                *list = json_object_new_array();
    const struct account_row *total = &report->view->total;
    struct cost costs[PRCB_CAUSE_MAX + 1];
    size_t cause_count = costs_of(total, costs);

    json_doc_put_text(b, ret, "tier", prcb_tier_name(prcb_session_tier(report->session)));
    json_doc_put_number(b, ret, "wall_ns", report->wall_ns);
    json_doc_put(b, ret, "verdict", make_verdict(b, report));
    json_doc_put_number(b, ret, "threads", total->threads);
    json_doc_put_member(b, ret, "run_ns", total->now.run_ns, total->now.present & PRCB_HAS_RUN);
    json_doc_put_member(b, ret, "ready_ns", total->now.ready_ns,
                        total->now.present & PRCB_HAS_READY);
    for (size_t i = 0; i < cause_count && i < CAUSES_MOST; i++)
        json_doc_append(b, causes, make_cause(b, &costs[i]));
    json_doc_put(b, ret, "causes", causes);
    for (size_t i = 0; i < shown; i++)
        json_doc_append(b, list, make_row(b, report, &rows[i]));
    json_doc_put(b, ret, "rows", list);
    json_doc_put_number(b, ret, "left_out", count - shown);
    json_doc_put_number(b, ret, "untracked_threads", report->status->untracked_threads);
    json_doc_put(b, ret, "cannot_say", make_limits(b, report));
    json_doc_put_text(b, ret, "more", "prcb stat -j");
    return ret;
}

int stat_brief_write(FILE *out, const struct stat_report *report)
{
    struct brief brief = {report, NULL, 0};
    int result = find_rows(report->view, &brief.rows, &brief.count);
    size_t most = brief.count < ROWS_MOST ? brief.count : ROWS_MOST;

    if (!result)
        result = json_doc_write_brief(make_brief, &brief, most, out);
    free(brief.rows);
    return result;
}
