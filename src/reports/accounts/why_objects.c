/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What waits were for, and who held the locks, as `prcb why --objects` prints them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cause.h"
#include "format.h"
#include "text.h"
#include "whom_words.h"
#include "why_report.h"

#define TEXT_MOST 400

void why_object_text(const struct objects *objects, uint32_t number, char *ret, size_t size)
{
    /* The names of the others say which kind they are. */
    static const char *const before[] = {
        [OBJECT_FIFO] = "FIFO ",           [OBJECT_EPOLL] = "epoll ",
        [OBJECT_POLL] = "poll of ",        [OBJECT_FUTEX] = "futex ",
        [OBJECT_LOCK] = "kernel lock ",    [OBJECT_SEMAPHORE] = "semaphore ",
        [OBJECT_QUEUE] = "message queue ", [OBJECT_THREAD] = NULL,
        [OBJECT_PROCESS] = "process ",
    };
    const struct object *object;
    char raw[4 * TEXT_MOST], tid[24] = "";

    *ret = '\0';
    if (!number)
        return;
    object = objects_at(objects, number);
    if (object->tid)
        snprintf(tid, sizeof(tid), " (%d)", (int)object->tid);
    snprintf(raw, sizeof(raw), "%s%s%s%.400s%s%s%s%s",
             before[object->kind] ? before[object->kind] : "", object->symbol ? object->symbol : "",
             object->symbol ? " " : "", object->name, tid, object->detail ? " (" : "",
             object->detail ? object->detail : "", object->detail ? ")" : "");
    text_copy(TEXT_MARKS, raw, ret, size);
}

/* Writes what a row is called. */
static void row_text(const struct why_output *output, const struct why_part *row, uint32_t number,
                     const char *unknown, char *ret, size_t size)
{
    if (number)
        why_object_text(output->objects, number, ret, size);
    else
        snprintf(ret, size, "%s", row->kind == WHY_STACK ? unknown : why_part_name(row->kind));
}

static bool has_any(const struct why_cause *cause)
{
    for (size_t i = 0; i < cause->object_count; i++) {
        if (cause->objects[i].wait.object)
            return true;
    }
    return false;
}

struct rows {
    const struct why_part *rows;
    size_t count;
    bool holders;
    const char *title, *unknown, *one, *several;
};

static void write_rows(FILE *out, const struct why_output *output, const struct why_cause *cause,
                       const struct rows *rows, const char *lead)
{
    uint64_t left_ns = 0, left = 0, shown = 0;
    uint64_t whole = cause->ns - (output->idle ? 0 : cause->idle_ns);
    const char *title = rows->title;
    char share[FORMAT_CELL], text[TEXT_MOST];
    size_t used = strlen(lead) + 9 + 8 + 2;

    for (size_t i = 0; i < rows->count; i++) {
        const struct why_part *row = &rows->rows[i];
        uint32_t number = rows->holders ? row->wait.holder : row->wait.object;
        uint64_t ns = row->ns - (output->idle ? 0 : row->idle_ns);

        if (!ns)
            continue;
        if (output->top_stacks && shown >= output->top_stacks && number) {
            left++;
            left_ns += ns;
            continue;
        }
        shown += number != 0;
        row_text(output, row, number, rows->unknown, text, sizeof(text));
        format_share(ns, whole, share, sizeof(share));
        fprintf(out, "%s%-9s%8s  ", lead, title, share);
        format_lines(out, text, used, output->columns > used + 20 ? output->columns : SIZE_MAX);
        title = "";
    }
    if (left) {
        format_share(left_ns, whole, share, sizeof(share));
        fprintf(out, "%s%-9s%8s  %" PRIu64 " more %s\n", lead, title, share, left,
                left == 1 ? rows->one : rows->several);
    }
}

void why_write_objects(FILE *out, const struct why_output *output, const struct why_cause *cause,
                       const char *lead)
{
    const struct rows objects = {cause->objects, cause->object_count,  false,
                                 "waits for",    "[object not known]", "object",
                                 "objects"};
    const struct rows holders = {cause->holders, cause->holder_count,  true,
                                 "held by",      "[holder not known]", "thread",
                                 "threads"};

    if (has_any(cause))
        write_rows(out, output, cause, &objects, lead);
    /* Of the kernel's locks edges tell more: of all waits. */
    if (cause->holder_count && !(cause_has(cause->cause, CAUSE_IS_KERNEL_LOCK) && output->owners))
        write_rows(out, output, cause, &holders, lead);
}

/* ---- JSON ---- */

json_object *why_object_json(struct json_doc *b, const struct object *object)
{
    json_object *row = json_object_new_object();
    char address[24];

    snprintf(address, sizeof(address), "0x%" PRIx64, object->address);
    json_doc_put_text(b, row, "kind", object_kind_name(object->kind));
    json_doc_put_text(b, row, "name", object->name);
    json_doc_put_text(b, row, "detail", object->detail);
    json_doc_put_text(b, row, "symbol", object->symbol);
    json_doc_put_text(b, row, "address", object->address ? address : NULL);
    json_doc_put_bool(b, row, "now", object->now);
    return row;
}

static json_object *make_object_row(struct json_doc *b, const struct why_output *output,
                                    const struct why_part *part)
{
    json_object *row = json_object_new_object();
    uint32_t number = part->wait.object;
    const char *unknown =
        part->kind == WHY_STACK ? "[object not known]" : why_part_name(part->kind);

    json_doc_put_number(b, row, "ns", part->ns);
    json_doc_put_number(b, row, "count", part->count);
    json_doc_put_text(b, row, "unknown", number ? NULL : unknown);
    json_doc_put_if(b, row, "object", number,
                    number ? why_object_json(b, objects_at(output->objects, number)) : NULL);
    return row;
}

/* As rows of edges. */
static json_object *make_holder_row(struct json_doc *b, const struct why_output *output,
                                    const struct why_part *part)
{
    json_object *row = json_object_new_object();
    const struct object *holder =
        part->wait.holder ? objects_at(output->objects, part->wait.holder) : NULL;
    char name[TEXT_MOST];

    row_text(output, part, part->wait.holder, "[holder not known]", name, sizeof(name));
    json_doc_put_text(b, row, "by", holder ? "thread" : "rest");
    json_doc_put_text(b, row, "name", name);
    json_doc_put_member(b, row, "tid", holder ? (uint64_t)holder->tid : 0, holder);
    json_doc_put_member(b, row, "pid", holder ? (uint64_t)holder->pid : 0, holder);
    json_doc_put_text(b, row, "comm", holder ? holder->name : NULL);
    json_doc_put_text(b, row, "vector", NULL);
    json_doc_put_number(b, row, "count", part->count);
    json_doc_put_number(b, row, "ns", part->ns);
    return row;
}

void why_put_objects(struct json_doc *b, json_object *row, const struct why_output *output,
                     pid_t process, const struct why_cause *cause)
{
    bool kernel = cause_has(cause->cause, CAUSE_IS_KERNEL_LOCK) && output->whom && output->owners;
    const struct prcb_edge held = {
        .kind = PRCB_EDGE_HELD_BY, .cause = cause->cause, .count = cause->count, .ns = cause->ns};
    json_object *objects = json_object_new_array(), *holders;

    for (size_t i = 0; i < cause->object_count; i++)
        json_doc_append(b, objects, make_object_row(b, output, &cause->objects[i]));
    json_doc_put(b, row, "objects", objects);
    if (kernel) {
        holders = whom_json(b, output->whom, (uint64_t)process, &held);
    } else {
        holders = json_object_new_array();
        for (size_t i = 0; i < cause->holder_count; i++)
            json_doc_append(b, holders, make_holder_row(b, output, &cause->holders[i]));
    }
    json_doc_put(b, row, "held_by", holders);
}
