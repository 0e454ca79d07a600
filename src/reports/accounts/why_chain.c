/* SPDX-License-Identifier: BSD-2-Clause
 *
 * `prcb why --chain`: who waits for whom, for people and as JSON.
 */
#include <inttypes.h>
#include <string.h>

#include "format.h"
#include "text.h"
#include "why_report.h"

#define LINE 200 /* bytes of a stack on its line */
#define DEEP 40  /* waiters below waiters that are indented further */

struct shown {
    const struct chain *chain;
    const struct objects *objects;
};

/* Returns the variable that a mutex is; NULL: not known. */
static const char *symbol_of(const struct objects *objects, const struct chain_thread *t)
{
    return t->object ? objects_at(objects, t->object)->symbol : NULL;
}

static void write_thread(FILE *out, const struct shown *s, const struct chain_thread *t, int indent)
{
    char name[64], time[FORMAT_CELL], place[400], object[400], line[4 * LINE], shown[4 * LINE];
    const char *word, *symbol;

    text_copy(TEXT_MARKS, t->comm, name, sizeof(name));
    fprintf(out, "%*s%s (%d)", indent, "", name, (int)t->tid);
    if (!t->waits) {
        fprintf(out, "  runs, or could\n");
        return;
    }
    word = t->has_stack ? t->stack.word : NULL;
    fprintf(out, "  %s", word ? word : why_cause_name(t->cause));
    format_time(t->wait_ns, time, sizeof(time));
    if (t->wait_ns)
        fprintf(out, " for %s%s", t->longer ? "over " : "", time);
    if (t->futex) {
        symbol = symbol_of(s->objects, t);
        text_copy(TEXT_MARKS, symbol ? symbol : "", object, sizeof(object));
        text_copy(TEXT_MARKS, t->place, place, sizeof(place));
        fprintf(out, ",%s%s 0x%" PRIx64 "%s%s%s%s", *object ? " " : "", object, t->futex,
                *place ? " (" : "", place, *place ? ")" : "", t->timed ? ", with a timeout" : "");
    } else if (t->object) {
        why_object_text(s->objects, t->object, object, sizeof(object));
        fprintf(out, ", %s", object);
    }
    if (t->whom && t->whom == t->object) {
        /* What it waits for says who it is. */
    } else if (t->next != CHAIN_NONE) {
        text_copy(TEXT_MARKS, s->chain->threads[t->next].comm, name, sizeof(name));
        fprintf(out, ", %s %s (%d)", word && !strcmp(word, "join") ? "the end of" : "held by", name,
                (int)t->holder);
    } else if (t->whom) {
        why_object_text(s->objects, t->whom, object, sizeof(object));
        fprintf(out, ", held by %s", object);
    }
    fprintf(out, "\n");
    if (!t->has_stack)
        return;
    why_stack_line(&t->stack, line, LINE);
    text_copy(TEXT_MARKS, line, shown, sizeof(shown));
    fprintf(out, "%*s%s\n", indent + 4, "", shown);
}

/* Writes those that wait for the thread, and those that wait for these in turn; of a deadlock,
 * those that are not part of it. */
static void write_waiters(FILE *out, const struct shown *s, size_t holder, int indent)
{
    const struct chain *chain = s->chain;

    if (!chain->threads[holder].waiters)
        return;
    for (size_t i = 0; i < chain->count; i++) {
        if (chain->threads[i].next != holder || chain->threads[i].loop)
            continue;
        write_thread(out, s, &chain->threads[i], indent);
        write_waiters(out, s, i, indent < DEEP ? indent + 2 : indent);
    }
}

static void write_loop(FILE *out, const struct shown *s, uint32_t loop)
{
    const struct chain *chain = s->chain;
    size_t first = 0, at, count = 0;
    bool timed = false;

    while (chain->threads[first].loop != loop)
        first++;
    at = first;
    do {
        timed |= chain->threads[at].timed;
        count++;
        at = chain->threads[at].next;
    } while (at != first);
    fprintf(out, "deadlock: %zu threads wait for each other%s\n", count,
            timed ? ", until one gives up" : "");
    do {
        write_thread(out, s, &chain->threads[at], 2);
        write_waiters(out, s, at, 6);
        at = chain->threads[at].next;
    } while (at != first);
}

/* Writes the chains that end with somebody who is not among these threads, or with a process of
 * several. Returns how many. */
static size_t write_others(FILE *out, const struct shown *s)
{
    const struct chain *chain = s->chain;
    size_t count = 0;
    char name[400];

    for (size_t i = 0; i < chain->count; i++) {
        const struct chain_thread *t = &chain->threads[i];

        if (!t->whom || t->next != CHAIN_NONE)
            continue;
        count++;
        why_object_text(s->objects, t->whom, name, sizeof(name));
        fprintf(out, "chain: %s holds up\n", name);
        write_thread(out, s, t, 4);
        write_waiters(out, s, i, 6);
    }
    return count;
}

void why_write_chain(FILE *out, const struct chain *chain, const struct objects *objects)
{
    const struct shown s = {chain, objects};
    size_t waiting = 0, shown = 0;
    char text[64];

    for (uint32_t loop = 1; loop <= chain->loops; loop++)
        write_loop(out, &s, loop);
    for (size_t i = 0; i < chain->count; i++) {
        const struct chain_thread *t = &chain->threads[i];

        waiting += t->waits;
        if (!t->waiters || t->next != CHAIN_NONE || t->whom)
            continue;
        shown++;
        format_count(t->waiters, "thread", "threads", text, sizeof(text));
        fprintf(out, "chain: %s held up by\n", text);
        write_thread(out, &s, t, 2);
        write_waiters(out, &s, i, 4);
    }
    shown += write_others(out, &s);
    if (!shown && !chain->loops)
        fprintf(out,
                "%zu of %zu threads wait, none for somebody who is known.\n"
                "Other waits: prcb why without --chain\n",
                waiting, chain->count);
    if (chain->no_mutexes)
        fprintf(out,
                "The layout of the C library's mutexes is unknown to prcb: only those whose word "
                "names the holder were checked.\n");
}

static json_object *make_thread(struct json_doc *b, const struct chain_thread *t,
                                const struct objects *objects)
{
    json_object *row = json_object_new_object(), *stack = NULL;
    char address[24];

    snprintf(address, sizeof(address), "0x%" PRIx64, t->futex);
    json_doc_put_number(b, row, "tid", (uint64_t)t->tid);
    json_doc_put_number(b, row, "pid", (uint64_t)t->pid);
    json_doc_put_text(b, row, "comm", t->comm);
    json_doc_put_bool(b, row, "waits", t->waits);
    json_doc_put_text(b, row, "cause", t->waits && t->cause ? why_cause_name(t->cause) : NULL);
    json_doc_put_member(b, row, "wait_ns", t->wait_ns, t->waits && t->cause);
    json_doc_put_text(b, row, "futex", t->futex ? address : NULL);
    json_doc_put_text(b, row, "place", *t->place ? t->place : NULL);
    json_doc_put_if(b, row, "object", t->object,
                    t->object ? why_object_json(b, objects_at(objects, t->object)) : NULL);
    json_doc_put_bool(b, row, "timeout", t->timed);
    json_doc_put_member(b, row, "held_by", (uint64_t)t->holder, t->holder);
    json_doc_put_member(b, row, "deadlock", t->loop, t->loop);
    if (t->has_stack) {
        stack = json_object_new_object();
        why_put_stack(b, stack, &t->stack);
    }
    json_doc_put_if(b, row, "stack", t->has_stack, stack);
    return row;
}

int why_write_chain_json(FILE *out, const struct chain *chain, const struct objects *objects)
{
    struct json_doc b = {0};
    json_object *document = json_doc_new(&b, JSON_CHAIN), *threads = json_object_new_array();

    json_doc_put_number(&b, document, "deadlocks", chain->loops);
    json_doc_put_bool(&b, document, "mutexes_known", !chain->no_mutexes);
    for (size_t i = 0; i < chain->count; i++)
        json_doc_append(&b, threads, make_thread(&b, &chain->threads[i], objects));
    json_doc_put(&b, document, "threads", threads);
    return json_doc_write(&b, document, out);
}
