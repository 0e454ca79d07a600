/* SPDX-License-Identifier: BSD-2-Clause */
#include "tasks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

#define GROUPS_KEPT 4096

struct task_group {
    uint32_t count;
    struct task_seen seen;
};

struct task_put {
    struct tasks_answer *answer;
    struct tasks_group *group;
    struct table texts; /* where each is, by its hash */
};

void tasks_begin(struct tasks_answer *ret, const char *kind, const char *format, ...)
{
    va_list args;

    memset(ret, 0, offsetof(struct tasks_answer, groups));
    ret->text_used = 1; /* offset 0: none */
    ret->text[0] = '\0';
    snprintf(ret->kind, sizeof(ret->kind), "%s", kind);
    va_start(args, format);
    vsnprintf(ret->runtime, sizeof(ret->runtime), format, args);
    va_end(args);
}

void task_groups_begin(struct task_groups *g, struct memory *memory,
                       const struct task_reader *reader, void *ctx)
{
    g->memory = memory;
    g->reader = reader;
    g->ctx = ctx;
    g->count = 0;
    table_clear(&g->by_hash);
}

void task_groups_deinit(struct task_groups *g)
{
    table_free(&g->by_hash);
    free(g->groups);
}

/* ---- reading ---- */

static bool fits(const struct task_seen *a, const struct task_seen *b)
{
    return a->status == b->status && a->reason == b->reason && a->hash == b->hash &&
           a->count == b->count && !memcmp(a->words, b->words, a->count * sizeof(*a->words));
}

static bool is_same(const struct task_seen *a, const struct task_seen *b)
{
    return fits(a, b) && a->id == b->id && a->proof == b->proof && a->steps == b->steps;
}

static void count_in(struct task_groups *g, const struct task_seen *seen, struct tasks_answer *ret)
{
    uint64_t key = table_mix(table_mix(seen->hash, seen->reason), seen->status);
    const struct table_slot *slot = NULL;

    while ((slot = table_next(&g->by_hash, key, slot))) {
        if (fits(&g->groups[slot->number - 1].seen, seen)) {
            g->groups[slot->number - 1].count++;
            return;
        }
    }
    if (g->count == GROUPS_KEPT ||
        array_add(g->groups, g->count, g->room, ((struct task_group){1, *seen})) ||
        table_put_number(&g->by_hash, key, g->count))
        ret->beyond++;
}

static bool read_one(struct task_groups *g, uint64_t address, struct task_seen *ret)
{
    memset(ret, 0, offsetof(struct task_seen, words));
    return address && g->reader->read(g->ctx, address, ret);
}

void task_groups_read(struct task_groups *g, uint64_t *addresses, uint32_t count,
                      struct tasks_answer *ret)
{
    static struct task_seen first[TASKS_BATCH], again; /* the child has one thread */

    memory_begin(g->memory);
    for (uint32_t i = 0; i < count; i++) {
        if (!read_one(g, addresses[i], &first[i]))
            addresses[i] = 0;
    }
    memory_begin(g->memory);
    for (uint32_t i = 0; i < count; i++) {
        bool known = read_one(g, addresses[i], &again);

        ret->total += known && again.there;
        if (!known || !is_same(&first[i], &again))
            ret->moved++;
        else if (again.there && again.own)
            ret->own++;
        else if (again.there)
            count_in(g, &again, ret);
    }
}

/* ---- telling ---- */

static int by_count(const void *left, const void *right)
{
    const struct task_group *a = left, *b = right;

    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    return (a->seen.id > b->seen.id) - (a->seen.id < b->seen.id);
}

/* A text is put once. 0: there is no room. */
static uint32_t put_text(struct task_put *put, const char *text)
{
    struct tasks_answer *answer = put->answer;
    size_t length = strnlen(text, TASKS_TEXT);
    uint64_t key = table_hash(text, length);
    const struct table_slot *slot = NULL;
    uint32_t at = answer->text_used;

    while ((slot = table_next(&put->texts, key, slot))) {
        if (!strcmp(answer->text + slot->number, text))
            return (uint32_t)slot->number;
    }
    if (length >= TASKS_TEXT - at || table_put_number(&put->texts, key, at))
        return 0;
    memcpy(answer->text + at, text, length + 1);
    answer->text_used += (uint32_t)length + 1;
    return at;
}

void task_put_state(struct task_put *put, const char *state)
{
    put->group->state = put_text(put, state);
}

void task_put_frame(struct task_put *put, const char *function, const char *file, uint32_t line,
                    bool lock)
{
    struct tasks_answer *answer = put->answer;
    struct tasks_frame frame = {.line = line};

    put->group->locked |= lock;
    if (function) {
        frame.function = put_text(put, function);
        frame.file = put_text(put, file);
    }
    if (!frame.function || !frame.file || answer->frame_count == TASKS_FRAMES) {
        put->group->complete = 0;
        return;
    }
    answer->frames[answer->frame_count++] = frame;
    put->group->frames++;
}

void task_groups_put(struct task_groups *g, struct tasks_answer *ret)
{
    struct task_put put = {.answer = ret};

    array_sort(g->groups, g->count, by_count);
    for (size_t i = 0; i < g->count; i++) {
        const struct task_seen *seen = &g->groups[i].seen;

        if (ret->group_count == TASKS_GROUPS) {
            ret->beyond += g->groups[i].count;
            continue;
        }
        put.group = &ret->groups[ret->group_count++];
        *put.group = (struct tasks_group){.count = g->groups[i].count,
                                          .first = ret->frame_count,
                                          .complete = seen->complete && seen->steps == seen->count};
        g->reader->put(g->ctx, seen, &put);
    }
    table_free(&put.texts);
}
