/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes the report of `prcb why` as a JSON object of at most JSON_BRIEF_BYTES: the verdict, the
 * largest causes, how much of the time is covered, and what the report cannot say. What does not
 * fit is left out from the end, and counted.
 */
#include "why_report.h"

#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cause.h"
#include "place.h"

#define ROWS_MOST 16
#define TEXT_MOST 1200 /* bytes of a sentence */

/* A cause of a process. */
struct row {
    const struct why_process *process;
    const struct why_cause *cause; /* NULL: ready */
    uint64_t ns;
};

static int by_ns(const void *left, const void *right)
{
    const struct row *a = left, *b = right;

    if (a->ns != b->ns)
        return a->ns < b->ns ? 1 : -1;
    return (a->process->pid > b->process->pid) - (a->process->pid < b->process->pid);
}

static int find_rows(const struct why_report *report, struct row **ret, size_t *ret_count)
{
    int result = 0;

    *ret = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < report->count && !result; i++) {
        const struct why_process *process = &report->processes[i];

        if (process->ready_ns)
            result = array_append(*ret, *ret_count, (struct row){process, NULL, process->ready_ns});
        for (size_t k = 0; k < process->cause_count && !result; k++) {
            const struct why_cause *cause = &process->causes[k];

            if (cause->ns > cause->idle_ns)
                result = array_append(*ret, *ret_count,
                                      (struct row){process, cause, cause->ns - cause->idle_ns});
        }
    }
    array_sort(*ret, *ret_count, by_ns);
    return result;
}

/* The largest stack that is not idle. */
static const struct why_part *largest(const struct why_cause *cause)
{
    for (size_t i = 0; i < cause->part_count; i++) {
        const struct why_part *part = &cause->parts[i];

        if (part->kind == WHY_STACK && part->stack.kind != PRCB_STACK_IDLE && part->ns)
            return part;
    }
    return NULL;
}

static json_object *make_row(struct json_doc *b, const struct row *row)
{
    json_object *ret = json_object_new_object();
    const struct why_part *part = row->cause ? largest(row->cause) : NULL;
    const struct prcb_frame *by, *frame = part ? place_of(&part->stack, &by) : NULL;
    char place[256] = "", line[256] = "";

    if (frame) {
        place_name(frame, place, sizeof(place));
        place_line(frame, line, sizeof(line));
    }
    json_doc_put_member(b, ret, "pid", (uint64_t)row->process->pid,
                        row->process->pid && !row->process->ended);
    if (row->process->ended)
        json_doc_put_number(b, ret, "ended", row->process->ended);
    json_doc_put_cut(b, ret, "comm", row->process->comm, 15);
    json_doc_put_text(b, ret, "cause", row->cause ? why_cause_name(row->cause->cause) : "ready");
    json_doc_put_number(b, ret, "ns", row->ns);
    json_doc_put_number(b, ret, "of_ns", row->process->wall_ns);
    json_doc_put_text(b, ret, "word", part ? part->stack.word : NULL);
    json_doc_put_text(b, ret, "in", *place ? place : NULL);
    json_doc_put_text(b, ret, "line", *line ? line : NULL);
    return ret;
}

/* What the figures do not tell, in sentences. */
static json_object *make_limits(struct json_doc *b, const struct why_output *output,
                                uint64_t wait_ns, uint64_t known_ns)
{
    json_object *ret = json_object_new_array();
    const struct {
        bool is;
        const char *text;
    } limits[] = {
        {prcb_session_tier(output->session) == PRCB_TIER_PERF,
         "causes: this tier knows where threads waited, and not why"},
        {known_ns < wait_ns / 10 * 9,
         "where: stacks of more than a tenth of the waiting are not known"},
        {*output->no_whom, "who woke or preempted threads"},
        {!output->objects, "what was waited for: --no-objects was given"},
        {!output->owners, "who held the kernel's own locks: --owners"},
        {output->status->untracked_threads, "threads for which there was no room: --max-threads"},
        {true, "in which functions it ran: prcb record -g"},
    };

    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        if (limits[i].is)
            json_doc_append(b, ret, json_object_new_string(limits[i].text));
    }
    return ret;
}

static json_object *make_coverage(struct json_doc *b, const struct why_output *output,
                                  uint64_t wait_ns, uint64_t known_ns)
{
    json_object *ret = json_object_new_object();

    json_doc_put_number(b, ret, "wait_ns", wait_ns);
    json_doc_put_number(b, ret, "known_ns", known_ns);
    json_doc_put_number(b, ret, "looks", output->looks);
    return ret;
}

static json_object *make_verdict(struct json_doc *b, const struct verdict *verdict, size_t most)
{
    json_object *ret = json_object_new_array();

    for (size_t i = 0; i < verdict->count; i++) {
        json_object *row = json_object_new_object();

        json_doc_put_text(b, row, "rule", verdict->lines[i].rule);
        json_doc_put_cut(b, row, "text", verdict->lines[i].text, most);
        json_doc_append(b, ret, row);
    }
    return ret;
}

/* What the document is made of. */
struct brief {
    const struct why_output *output;
    struct row *rows;
    size_t count;
};

static json_object *make_brief(struct json_doc *b, const void *of, size_t shown)
{
    const struct brief *brief = of;
    const struct why_output *output = brief->output;
    const struct row *rows = brief->rows;
    size_t count = brief->count;
    json_object *ret = json_doc_new(b, JSON_WHY_BRIEF), *causes = json_object_new_array();
    uint64_t wait_ns = 0, known_ns = 0;

    for (size_t i = 0; i < output->report->count; i++) {
        wait_ns += output->report->processes[i].wait_ns;
        known_ns += output->report->processes[i].known_ns;
    }
    json_doc_put_text(b, ret, "tier", prcb_tier_name(prcb_session_tier(output->session)));
    json_doc_put_number(b, ret, "wall_ns", output->wall_ns);
    json_doc_put(b, ret, "verdict",
                 make_verdict(b, output->verdict, shown ? TEXT_MOST : TEXT_MOST / 4));
    for (size_t i = 0; i < shown && i < count; i++)
        json_doc_append(b, causes, make_row(b, &rows[i]));
    json_doc_put(b, ret, "causes", causes);
    if (output->report->count && output->report->processes[0].path_count)
        json_doc_put(b, ret, "critical_path",
                     why_paths_json(b, output, &output->report->processes[0],
                                    shown < WHY_PATHS_SHOWN ? shown : WHY_PATHS_SHOWN, false));
    if (output->spans)
        json_doc_put(b, ret, "spans", why_spans_json(b, output, shown));
    json_doc_put_number(b, ret, "left_out", count > shown ? count - shown : 0);
    json_doc_put_number(b, ret, "processes", output->report->count);
    json_doc_put(b, ret, "coverage", make_coverage(b, output, wait_ns, known_ns));
    json_doc_put(b, ret, "cannot_say", make_limits(b, output, wait_ns, known_ns));
    json_doc_put_text(b, ret, "more", "prcb why -j");
    return ret;
}

int why_write_brief(FILE *out, const struct why_output *output)
{
    struct brief brief = {output, NULL, 0};
    int result = find_rows(output->report, &brief.rows, &brief.count);

    if (!result)
        result = json_doc_write_brief(make_brief, &brief, ROWS_MOST, out);
    free(brief.rows);
    return result;
}
