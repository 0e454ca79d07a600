/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes the report of `prcb why` as one JSON object: everything, idling included. Addresses are
 * hexadecimal text, what is not known is null.
 */
#include "why_report.h"

#include <inttypes.h>

#include "json_doc.h"
#include "task_places.h"
#include "whom_words.h"

static json_object *hex(uint64_t number)
{
    char text[24];

    snprintf(text, sizeof(text), "0x%" PRIx64, number);
    return json_object_new_string(text);
}

json_object *why_frames_json(struct json_doc *b, const struct prcb_stack *stack)
{
    json_object *frames = json_object_new_array();

    for (uint32_t i = 0; i < stack->frame_count; i++) {
        const struct prcb_frame *frame = &stack->frames[i];
        json_object *row = json_object_new_object();

        json_doc_put_text(b, row, "function", frame->function);
        json_doc_put_text(b, row, "file", frame->file);
        if (!frame->address && frame->place)
            json_doc_put_number(b, row, "line", frame->place);
        else if (frame->address)
            json_doc_put(b, row, frame->file ? "offset" : "address",
                         hex(frame->file ? frame->place : frame->address));
        if (frame->source) {
            json_doc_put_text(b, row, "source", frame->source);
            json_doc_put_number(b, row, "source_line", frame->line);
        }
        json_doc_append(b, frames, row);
    }
    return frames;
}

void why_put_stack(struct json_doc *b, json_object *row, const struct prcb_stack *stack)
{
    static const char *const kinds[] = {"blocked", "idle", "either"};

    json_doc_put_text(b, row, "word", stack->word);
    json_doc_put_text(b, row, "kind", kinds[stack->kind]);
    json_doc_put_bool(b, row, "complete", stack->flags & PRCB_STACK_COMPLETE);
    json_doc_put(b, row, "frames", why_frames_json(b, stack));
}

static json_object *make_part(struct json_doc *b, const struct why_part *part)
{
    json_object *row = json_object_new_object();

    json_doc_put_number(b, row, "ns", part->ns);
    json_doc_put_member(b, row, "count", part->count,
                        part->kind != WHY_SHORT && part->kind != WHY_BETWEEN);
    json_doc_put_text(b, row, "unknown",
                      part->kind == WHY_STACK ? NULL : why_part_name(part->kind));
    if (part->kind == WHY_STACK)
        why_put_stack(b, row, &part->stack);
    return row;
}

static json_object *make_cause(struct json_doc *b, const struct why_output *output, pid_t process,
                               const struct why_cause *cause)
{
    const struct prcb_edge woken = {
        .kind = PRCB_EDGE_WOKEN_BY, .cause = cause->cause, .count = cause->count, .ns = cause->ns};
    json_object *row = json_object_new_object(), *parts = json_object_new_array();

    json_doc_put_text(b, row, "cause", why_cause_name(cause->cause));
    json_doc_put_number(b, row, "ns", cause->ns);
    json_doc_put_number(b, row, "count", cause->count);
    json_doc_put_number(b, row, "known_ns", cause->known_ns);
    json_doc_put_number(b, row, "idle_ns", cause->idle_ns);
    for (size_t i = 0; i < cause->part_count; i++)
        json_doc_append(b, parts, make_part(b, &cause->parts[i]));
    json_doc_put(b, row, "stacks", parts);
    if (output->objects)
        why_put_objects(b, row, output, process, cause);
    json_doc_put_if(b, row, "woken_by", output->whom,
                    output->whom ? whom_json(b, output->whom, (uint64_t)process, &woken) : NULL);
    return row;
}

static json_object *make_now(struct json_doc *b, const struct why_output *output,
                             const struct why_process *process, const struct why_now *now)
{
    json_object *row = json_object_new_object();

    json_doc_put_number(b, row, "tid", (uint64_t)now->tid);
    json_doc_put_text(b, row, "comm", now->comm);
    json_doc_put_text(b, row, "cause", why_cause_name(now->cause));
    json_doc_put_number(b, row, "ns", now->ns);
    json_doc_put_number(b, row, "age_ns", why_now_ns(process, now));
    if (output->objects)
        json_doc_put_if(b, row, "object", now->wait.object,
                        now->wait.object
                            ? why_object_json(b, objects_at(output->objects, now->wait.object))
                            : NULL);
    if (output->objects)
        json_doc_put_member(
            b, row, "held_by",
            now->wait.holder ? (uint64_t)objects_at(output->objects, now->wait.holder)->tid : 0,
            now->wait.holder);
    if (now->has_stack)
        why_put_stack(b, row, &now->stack);
    return row;
}

static json_object *make_path(struct json_doc *b, const struct why_output *output,
                              const struct why_path *path, bool stacks)
{
    static const char *const states[] = {
        [WHY_WAITS] = "waits", [WHY_RUNS] = "runs", [WHY_READY] = "ready"};
    json_object *row = json_object_new_object();
    bool waits = path->seen && path->state == WHY_WAITS, stack = path->part.kind == WHY_STACK;

    json_doc_put_number(b, row, "ns", path->ns);
    json_doc_put_number(b, row, "others_ns", path->others_ns);
    json_doc_put_member(b, row, "pid", (uint64_t)path->pid, path->pid);
    json_doc_put_member(b, row, "tid", (uint64_t)path->tid, path->threads == 1);
    json_doc_put_number(b, row, "threads", path->threads);
    json_doc_put_text(b, row, "comm", path->comm);
    json_doc_put_text(b, row, "state", path->seen ? states[path->state] : NULL);
    json_doc_put_text(b, row, "cause", waits ? why_cause_name(path->part.cause) : NULL);
    if (waits && stack && stacks)
        why_put_stack(b, row, &path->part.stack);
    if (waits && output->objects && path->part.wait.object)
        json_doc_put(b, row, "object",
                     why_object_json(b, objects_at(output->objects, path->part.wait.object)));
    return row;
}

json_object *why_paths_json(struct json_doc *b, const struct why_output *output,
                            const struct why_process *process, size_t most, bool stacks)
{
    json_object *ret = json_object_new_object(), *rows = json_object_new_array();

    json_doc_put_number(b, ret, "ns", process->path_ns);
    for (size_t i = 0; i < process->path_count && i < most; i++)
        json_doc_append(b, rows, make_path(b, output, &process->paths[i], stacks));
    json_doc_put(b, ret, "rows", rows);
    return ret;
}

static json_object *make_process(struct json_doc *b, const struct why_output *output,
                                 const struct why_process *process)
{
    const struct prcb_edge ready = {.kind = PRCB_EDGE_BEHIND, .ns = process->ready_ns};
    json_object *row = json_object_new_object(), *causes = json_object_new_array(),
                *now = json_object_new_array();

    json_doc_put_member(b, row, "pid", (uint64_t)process->pid, process->pid && !process->ended);
    json_doc_put_text(b, row, "comm", process->comm);
    json_doc_put_member(b, row, "ended", process->ended, process->ended);
    json_doc_put(b, row, "verdict",
                 verdict_json(b, output->verdicts
                                     ? &output->verdicts[process - output->report->processes]
                                     : output->verdict));
    json_doc_put_number(b, row, "threads", process->threads);
    json_doc_put_number(b, row, "wall_ns", process->wall_ns);
    json_doc_put_number(b, row, "run_ns", process->run_ns);
    json_doc_put_number(b, row, "ready_ns", process->ready_ns);
    json_doc_put_number(b, row, "wait_ns", process->wait_ns);
    json_doc_put_number(b, row, "known_ns", process->known_ns);
    json_doc_put_number(b, row, "idle_ns", process->idle_ns);
    for (size_t i = 0; i < process->cause_count; i++)
        json_doc_append(b, causes, make_cause(b, output, process->pid, &process->causes[i]));
    json_doc_put(b, row, "causes", causes);
    json_doc_put_if(b, row, "ready_behind", output->whom,
                    output->whom ? whom_json(b, output->whom, (uint64_t)process->pid, &ready)
                                 : NULL);
    for (size_t i = 0; i < process->now_count; i++)
        json_doc_append(b, now, make_now(b, output, process, &process->now[i]));
    json_doc_put(b, row, "now", now);
    json_doc_put_if(b, row, "critical_path", process->path_count,
                    process->path_count ? why_paths_json(b, output, process, SIZE_MAX, true)
                                        : NULL);
    json_doc_put_if(b, row, "tasks", process->has_tasks,
                    process->has_tasks ? task_places_json(b, &process->tasks) : NULL);
    return row;
}

int why_write_json(FILE *out, const struct why_output *output)
{
    struct json_doc b = {0};
    json_object *document = json_doc_new(&b, JSON_WHY), *processes = json_object_new_array(),
                *reader = json_object_new_object();

    json_doc_put_text(&b, document, "tier", prcb_tier_name(prcb_session_tier(output->session)));
    json_doc_put_number(&b, document, "wall_ns", output->wall_ns);
    json_doc_put(&b, document, "verdict", verdict_json(&b, output->verdict));
    for (size_t i = 0; i < output->report->count; i++)
        json_doc_append(&b, processes, make_process(&b, output, &output->report->processes[i]));
    json_doc_put(&b, document, "processes", processes);
    json_doc_put_if(&b, document, "spans", output->spans,
                    output->spans ? why_spans_json(&b, output, SIZE_MAX) : NULL);
    json_doc_put_text(&b, document, "by_whom_absent", *output->no_whom ? output->no_whom : NULL);
    json_doc_put_number(&b, document, "untracked_threads", output->status->untracked_threads);
    json_doc_put_number(&b, reader, "unwound", output->stacks->unwound);
    json_doc_put_number(&b, reader, "remembered", output->stacks->remembered);
    json_doc_put_number(&b, reader, "moved", output->stacks->moved);
    json_doc_put_number(&b, reader, "unanswered", output->stacks->unanswered);
    json_doc_put_number(&b, reader, "interpreted", output->stacks->interpreted);
    json_doc_put_number(&b, reader, "uninterpreted", output->stacks->uninterpreted);
    json_doc_put_number(&b, reader, "copied", output->stacks->copied);
    json_doc_put_text(&b, reader, "unread", output->stacks->unread);
    json_doc_put_number(&b, reader, "cpu_ns", output->stacks->cpu_ns);
    json_doc_put_number(&b, reader, "cost_ns", output->cost_ns);
    json_doc_put_number(&b, reader, "looks", output->looks);
    json_doc_put_number(&b, reader, "accounts", output->accounts);
    json_doc_put(&b, document, "reader", reader);
    return json_doc_write(&b, document, out);
}
