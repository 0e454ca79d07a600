/* SPDX-License-Identifier: BSD-2-Clause */
#include "task_places.h"

#include <inttypes.h>
#include <string.h>

#include "array.h"
#include "format.h"
#include "place.h"
#include "text.h"
#include "why_report.h"

#define NAME_MOST    80 /* columns of a name */
#define LOCKED_LEAST 4  /* goroutines that wait for one lock are told of, and more than */
#define LOCKED_PART  20 /* one in so many */

static const struct prcb_frame *find_place(const struct prcb_task_group *group,
                                           struct task_place *ret)
{
    struct prcb_stack stack = {.flags = group->complete ? PRCB_STACK_COMPLETE : 0,
                               .frame_count = group->frame_count,
                               .frames = group->frames};
    const struct prcb_frame *at = place_of(&stack, &ret->by);

    /* How the runtime parks a task its state says. */
    while (stack.frame_count > 1 && !strncmp(stack.frames->function, "runtime.", 8)) {
        stack.frames++;
        stack.frame_count--;
    }
    ret->stack = stack;
    ret->own = at;
    /* All of it is libraries': what the task was begun with says what it is for. */
    return at || !group->frame_count ? at : &group->frames[group->frame_count - 1];
}

static bool is_same(const struct task_place *a, const struct task_place *b)
{
    if (strcmp(a->state, b->state) != 0 || a->locked != b->locked || !a->at != !b->at)
        return false;
    return !a->at || (a->at->function == b->at->function && a->at->place == b->at->place);
}

static int by_count(const void *left, const void *right)
{
    const struct task_place *a = left, *b = right;

    return (a->count < b->count) - (a->count > b->count);
}

size_t task_places(const struct prcb_tasks *tasks, struct task_place ret[TASK_PLACES_MOST])
{
    size_t count = 0;

    for (uint32_t i = 0; i < tasks->group_count; i++) {
        const struct prcb_task_group *group = &tasks->groups[i];
        struct task_place place = {.state = group->state, .locked = group->locked};
        size_t at = 0;

        place.at = find_place(group, &place);
        while (at < count && !is_same(&ret[at], &place))
            at++;
        if (at == TASK_PLACES_MOST)
            continue;
        if (at == count)
            ret[count++] = place;
        ret[at].count += group->count;
    }
    array_sort(ret, count, by_count);
    return count;
}

bool task_places_more(const struct prcb_tasks *tasks)
{
    uint64_t told = tasks->own + tasks->beyond;

    for (uint32_t i = 0; i < tasks->group_count; i++)
        told += tasks->groups[i].count;
    return told > tasks->total;
}

static void put_shown(const char *name, char *ret, size_t size)
{
    text_copy(TEXT_MARKS, name, ret, size);
    format_cut(ret, NAME_MOST);
}

/* Writes "fetch.go:12". */
static void put_line(const struct prcb_frame *frame, char *ret, size_t size)
{
    const char *slash = strrchr(frame->file, '/');
    char file[4 * NAME_MOST + 1];

    put_shown(slash ? slash + 1 : frame->file, file, sizeof(file));
    snprintf(ret, size, "%s:%" PRIu64, file, frame->place);
}

void task_place_text(const struct task_place *place, char *ret, size_t size)
{
    char line[4 * NAME_MOST + 32], function[4 * NAME_MOST + 1];

    if (!place->at) {
        snprintf(ret, size, "%s", place->state);
        return;
    }
    put_line(place->at, line, sizeof(line));
    put_shown(place->at->function, function, sizeof(function));
    snprintf(ret, size, "%s at %s (%s)", place->state, line, function);
}

void task_place_words(const struct task_place *place, char *ret, size_t size)
{
    char line[4 * NAME_MOST + 32], name[1024], function[4 * NAME_MOST + 1],
        by[4 * NAME_MOST + 1] = "";

    *ret = '\0';
    if (!place->at)
        return;
    put_line(place->at, line, sizeof(line));
    place_name(place->at, name, sizeof(name));
    put_shown(name, function, sizeof(function));
    if (place->by) {
        place_name(place->by, name, sizeof(name));
        put_shown(name, by, sizeof(by));
    }
    snprintf(ret, size, "%s (%s)%s%s", function, line, *by ? ", called by " : "", by);
}

const struct task_place *task_places_crowd(const struct prcb_tasks *tasks,
                                           const struct task_place *places, size_t count)
{
    uint64_t all = tasks->total - tasks->own;

    for (size_t i = 0; i < count; i++) {
        if (places[i].own && places[i].locked && places[i].count > 1 &&
            (places[i].count >= all / 2 ||
             (places[i].count >= LOCKED_LEAST && places[i].count >= all / LOCKED_PART)))
            return &places[i];
    }
    return count && places[0].own && places[0].count > 1 && places[0].count >= all - all / 4
               ? &places[0]
               : NULL;
}

json_object *task_places_json(struct json_doc *b, const struct prcb_tasks *tasks)
{
    json_object *row = json_object_new_object(), *groups = json_object_new_array();

    json_doc_put_text(b, row, "kind", tasks->kind);
    json_doc_put_text(b, row, "runtime", tasks->runtime);
    json_doc_put_text(b, row, "unread", tasks->unread);
    json_doc_put_member(b, row, "total", tasks->total, !tasks->unread);
    json_doc_put_member(b, row, "own", tasks->own, !tasks->unread);
    json_doc_put_member(b, row, "moved", tasks->moved, !tasks->unread);
    json_doc_put_member(b, row, "beyond", tasks->beyond, !tasks->unread);
    for (uint32_t i = 0; i < tasks->group_count; i++) {
        const struct prcb_task_group *group = &tasks->groups[i];
        const struct prcb_stack stack = {.frame_count = group->frame_count,
                                         .frames = group->frames};
        json_object *one = json_object_new_object();

        json_doc_put_number(b, one, "count", group->count);
        json_doc_put_text(b, one, "state", group->state);
        json_doc_put_bool(b, one, "locked", group->locked);
        json_doc_put_bool(b, one, "complete", group->complete);
        json_doc_put(b, one, "frames", why_frames_json(b, &stack));
        json_doc_append(b, groups, one);
    }
    json_doc_put(b, row, "groups", groups);
    return row;
}
