/* SPDX-License-Identifier: BSD-2-Clause */
#include "python_tasks.h"

#include <stdio.h>
#include <string.h>

#define INTERPRETERS_MOST 256
#define KEYS_MOST         (1u << 16) /* of all dictionaries */
#define SLOTS_MOST        (1u << 22) /* of all sets */
#define PAGES_MOST        (1u << 19) /* of all questions, about */
#define STEPS_MOST        256        /* objects that await one another */
#define BASES_MOST        8          /* classes between a task's own and asyncio's */
#define STACK_MOST        4096       /* values of a frame */
#define FRAMES_MOST       (TASKS_WORDS / 2)
#define SUSPENDED         0xff

/* What is the same in all versions: PyObject, PyTypeObject, PyModuleObject, PyDictObject,
 * PySetObject; HELD is the first member of weak references and of what wraps something else. */
enum { TYPE = 8, TYPE_NAME = 24, TYPE_SIZE = 32, TYPE_BASE = 256, MODULE_DICT = 16 };
enum { DICT_KEYS = 32, DICT_VALUES = 40, SET_USED = 24, SET_MASK = 32, SET_TABLE = 40, HELD = 16 };

enum kind { OTHER, NOTHING, COROUTINE, WRAPPER, FUTURE, TASK, GATHERED };

static const struct {
    const char *name;
    enum kind kind;
} kinds[] = {
    {"coroutine", COROUTINE},
    {"generator", COROUTINE},
    {"async_generator", COROUTINE},
    {"coroutine_wrapper", WRAPPER},
    {"async_generator_asend", WRAPPER},
    {"async_generator_athrow", WRAPPER},
    {"anext_awaitable", WRAPPER},
    {"_asyncio.Task", TASK},
    {"_GatheringFuture", GATHERED},
    {"_asyncio.Future", FUTURE},
    {"NoneType", NOTHING},
};

enum status { READY, RUNNING, WAITS, WAITS_FOR_TASK, WAITS_FOR_TASKS, NOT_READ };

static const char *const states[] = {
    "ready", "running", "waiting", "waiting for a task", "waiting for tasks", "not read"};

struct reading {
    struct python_code *code;
    struct memory *memory;
    const struct python_task_layout *layout;
    unsigned keys;         /* that may still be looked at, */
    uint64_t slots, pages; /* and of these */
    struct {
        uint64_t type;
        enum kind kind;
    } known[16]; /* by their addresses, of this reading */
};

static bool number_at(const struct reading *r, uint64_t at, uint32_t *ret)
{
    return memory_bytes(r->memory, at, ret, sizeof(*ret));
}

/* ---- objects ---- */

static enum kind kind_by_name(const struct reading *r, uint64_t type)
{
    char name[32] = "";
    uint64_t at;

    if (!memory_word(r->memory, type + TYPE_NAME, &at))
        return OTHER;
    for (size_t i = 0; i < sizeof(name) - 1 && memory_bytes(r->memory, at + i, name + i, 1); i++) {
        if (!name[i])
            break;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (!strcmp(name, kinds[i].name))
            return kinds[i].kind;
    }
    return OTHER;
}

/* A class's kind is the one of the nearest class that it is made of. */
static enum kind kind_of(struct reading *r, uint64_t object)
{
    enum kind kind = OTHER;
    uint64_t type, at;
    size_t place;

    if (!object || !memory_word(r->memory, object + TYPE, &type))
        return OTHER;
    place = type / 16 % (sizeof(r->known) / sizeof(*r->known));
    if (r->known[place].type == type)
        return r->known[place].kind;
    at = type;
    for (unsigned i = 0; at && kind == OTHER && i < BASES_MOST; i++) {
        kind = kind_by_name(r, at);
        if (!memory_word(r->memory, at + TYPE_BASE, &at))
            break;
    }
    r->known[place].type = type;
    r->known[place].kind = kind;
    return kind;
}

static bool is_text(const struct reading *r, uint64_t object, const char *wanted)
{
    char text[RUNTIME_NAME];
    uint64_t length;

    return memory_word(r->memory, object + r->code->layout->text_length, &length) &&
           length == strlen(wanted) && python_text(r->code, object, text) && !strcmp(text, wanted);
}

/* Where a dictionary has its entries. */
struct entries {
    uint64_t at, count;
    uint32_t size, key; /* of an entry; the value is behind the key */
};

static bool find_entries(const struct reading *r, uint64_t keys, struct entries *ret)
{
    unsigned char head[40];
    uint64_t size;

    if (!memory_bytes(r->memory, keys, head, sizeof(head)))
        return false;
    *ret = (struct entries){.size = 24, .key = 8};
    if (r->layout->keys_by_log) {
        ret->at = keys + 32 + (1ull << (head[9] & 31));
        memcpy(&ret->count, head + 24, sizeof(ret->count));
        if (head[10]) /* all keys are texts, which know their hashes */
            ret->size = 16, ret->key = 0;
    } else {
        memcpy(&size, head + 8, sizeof(size));
        memcpy(&ret->count, head + 32, sizeof(ret->count));
        ret->at = keys + 40 + size * (size <= 0xff ? 1 : size <= 0xffff ? 2 : 4);
    }
    return true;
}

/* Finds the value of a key. values: where they are, if not in the entries. 0: it has none. */
static uint64_t find_key(struct reading *r, uint64_t keys, uint64_t values, const char *key)
{
    struct entries entries;
    uint64_t entry[3], value;

    if (!find_entries(r, keys, &entries))
        return 0;
    for (uint64_t i = 0; i < entries.count && r->keys; i++, r->keys--) {
        if (!memory_bytes(r->memory, entries.at + i * entries.size, entry, entries.size))
            return 0;
        if (!entry[entries.key / 8] || !is_text(r, entry[entries.key / 8], key))
            continue;
        value = entry[entries.key / 8 + 1];
        return !values || memory_word(r->memory, values + 8 * i, &value) ? value : 0;
    }
    return 0;
}

static uint64_t find_in_dict(struct reading *r, uint64_t dict, const char *key)
{
    uint64_t keys, values;

    if (!memory_word(r->memory, dict + DICT_KEYS, &keys) ||
        !memory_word(r->memory, dict + DICT_VALUES, &values))
        return 0;
    return find_key(r, keys, values ? values + r->layout->values_at : 0, key);
}

/* Finds a member of an instance: in its dictionary, or as long as nobody asked for that, among
 * values for which the class has the keys. */
static uint64_t find_member(struct reading *r, uint64_t object, const char *key)
{
    uint64_t at = r->layout->members == PYTHON_DICT ? object + 16 : object - 24;
    uint64_t dict = 0, values = 0, type, keys = 0, size;

    if (!memory_word(r->memory, at, &dict) || !memory_word(r->memory, object + TYPE, &type))
        return 0;
    if (r->layout->members == PYTHON_VALUES && !dict)
        memory_word(r->memory, object - 32, &values);
    else if (r->layout->members == PYTHON_EITHER && dict & 1)
        values = dict + 1;
    else if (r->layout->members == PYTHON_INLINE && !dict &&
             memory_word(r->memory, type + TYPE_SIZE, &size))
        values = object + size;
    if (!values)
        return find_in_dict(r, dict, key);
    return memory_word(r->memory, type + r->layout->cached_keys, &keys)
               ? find_key(r, keys, values + r->layout->values_at, key)
               : 0;
}

/* ---- one task ---- */

/* Finds a coroutine's frame and its state. False: it has ended, or cannot be read. */
static bool find_frame(const struct reading *r, uint64_t object, uint64_t *ret, uint8_t *ret_state)
{
    const struct python_task_layout *l = r->layout;
    uint64_t top;

    if (l->frame_in_object)
        *ret = object + l->frame;
    else if (!memory_word(r->memory, object + l->frame, ret) || !*ret)
        return false;
    if (l->frame_state != PYTHON_ABSENT)
        return memory_bytes(r->memory, (l->frame_in_object ? object : *ret) + l->frame_state,
                            ret_state, 1);
    if (!memory_word(r->memory, *ret + l->stack_top, &top))
        return false;
    *ret_state = top ? SUSPENDED : 0;
    return true;
}

/* Returns what a coroutine awaits, which is the last value of its frame; 0: nothing. */
static uint64_t awaited_by(const struct reading *r, uint64_t frame, uint64_t code)
{
    const struct python_task_layout *l = r->layout;
    uint64_t bottom = frame + l->stack, top = 0, value;
    uint32_t count = 0, locals = 0;

    if (!l->frame_in_object && !memory_word(r->memory, frame + l->stack, &bottom))
        return 0;
    if (l->stack_is_count) {
        if (!number_at(r, frame + l->stack_top, &count) || count > STACK_MOST)
            return 0;
        top = bottom + 8ull * count;
    } else if (!memory_word(r->memory, frame + l->stack_top, &top)) {
        return 0;
    }
    if (l->locals != PYTHON_ABSENT && !number_at(r, code + l->locals, &locals))
        return 0;
    return top > bottom + 8ull * locals && memory_word(r->memory, top - 8, &value) ? value : 0;
}

/* Keeps the innermost. */
static void add_frame(struct task_seen *seen, uint64_t code, uint64_t instruction)
{
    if (seen->count == FRAMES_MOST * 2) {
        memmove(seen->words, seen->words + 2, sizeof(seen->words) - 2 * sizeof(*seen->words));
        seen->count -= 2;
    }
    seen->words[seen->count++] = code;
    seen->words[seen->count++] = instruction;
    seen->steps += 2;
    seen->hash = table_mix(table_mix(seen->hash, code), instruction);
}

/* Follows coroutines from the task's own, which is the outermost, inwards. */
static void follow(struct reading *r, uint64_t object, struct task_seen *seen)
{
    const struct python_layout *l = r->code->layout;
    uint64_t frame, code, instruction;
    uint8_t state;

    for (unsigned i = 0; i < STEPS_MOST; i++) {
        enum kind kind = kind_of(r, object);

        if (kind == WRAPPER) {
            if (!memory_word(r->memory, object + HELD, &object))
                return;
            continue;
        }
        if (kind != COROUTINE) {
            seen->complete = seen->count != 0;
            return;
        }
        if (!find_frame(r, object, &frame, &state) ||
            !memory_word(r->memory, frame + l->code, &code) ||
            !memory_word(r->memory, frame + l->instruction, &instruction))
            return;
        if (!state && !seen->count)
            seen->status = RUNNING;
        add_frame(seen, code & ~(uint64_t)7,
                  r->layout->frame_in_object ? instruction : instruction & UINT32_MAX);
        object = state == SUSPENDED ? awaited_by(r, frame, code & ~(uint64_t)7) : 0;
    }
}

static bool read_task(void *reader, uint64_t task, struct task_seen *ret)
{
    struct reading *r = reader;
    const struct python_task_layout *l = r->layout;
    enum kind kind = kind_of(r, task);
    uint64_t waiter, coroutine;
    uint32_t state;

    ret->id = task;
    ret->there = kind != NOTHING;
    if (kind != TASK) {
        ret->status = NOT_READ;
        return true;
    }
    if (!number_at(r, task + l->state, &state) ||
        !memory_word(r->memory, task + l->waiter, &waiter) ||
        !memory_word(r->memory, task + l->coroutine, &coroutine))
        return false;
    ret->there = !state;
    ret->proof = waiter;
    kind = kind_of(r, waiter);
    ret->status = kind == TASK                ? WAITS_FOR_TASK
                  : kind == GATHERED          ? WAITS_FOR_TASKS
                  : waiter && kind != NOTHING ? WAITS
                                              : READY;
    if (!state)
        follow(r, coroutine, ret);
    return true;
}

/* The file's name, if it is one of the standard library's asyncio: ".../python3.12/asyncio/NAME". A
 * program may have a folder of this name, too. NULL: it is not. */
static const char *file_of_asyncio(const char *file)
{
    static const char folder[] = "/asyncio/";
    const char *at = file;

    while ((at = strstr(at, "/python3."))) {
        at += strlen("/python3.");
        at += strspn(at, "0123456789t");
        if (!strncmp(at, folder, sizeof(folder) - 1))
            return at + sizeof(folder) - 1;
    }
    return NULL;
}

/* A function of asyncio that the program calls says best what is waited for. */
static void put_task(void *reader, const struct task_seen *seen, struct task_put *put)
{
    const char *function, *file, *state = states[seen->status];
    struct reading *r = reader;
    char text[RUNTIME_NAME];
    uint32_t line;

    for (uint32_t i = seen->count; i >= 2; i -= 2) {
        const char *asyncio;
        size_t length;

        if (!python_code_find(r->code, seen->words[i - 2], seen->words[i - 1], UINT64_MAX,
                              &function, &file, &line)) {
            task_put_frame(put, NULL, NULL, 0, false);
            continue;
        }
        length = strlen(function);
        asyncio = i == seen->count ? file_of_asyncio(file) : NULL;
        if (asyncio && seen->status == WAITS) {
            memcpy(text, function, length + 1);
            state = text;
        }
        task_put_frame(put, function, file, line,
                       asyncio && !strcmp(asyncio, "locks.py") && length >= 7 &&
                           !strcmp(function + length - 7, "acquire"));
    }
    task_put_state(put, state);
}

static const struct task_reader task_reader = {read_task, put_task};

/* ---- all of them ---- */

/* Reads the tasks of some slots of a set. Adds to *read how many these have. */
static bool read_slots(struct reading *r, uint64_t table, uint32_t room, struct task_groups *groups,
                       struct tasks_answer *ret, uint64_t *read)
{
    uint64_t slots[2 * TASKS_BATCH], tasks[TASKS_BATCH];
    uint32_t count = 0;

    memory_begin(r->memory);
    if (!memory_bytes(r->memory, table, slots, 16ull * room))
        return false;
    for (uint32_t i = 0; i < room; i++) {
        if (slots[2 * i] && slots[2 * i + 1] != UINT64_MAX &&
            memory_word(r->memory, slots[2 * i] + HELD, &tasks[count]))
            count++;
    }
    task_groups_read(groups, tasks, count, ret);
    *read += count;
    return true;
}

/* Reads the tasks that a set has weak references to, and counts those that are not looked at. */
static void read_set(struct reading *r, uint64_t set, struct task_groups *groups,
                     struct tasks_answer *ret)
{
    uint64_t used = 0, mask = 0, table = 0, read = 0, at = 0;
    bool whole = true;

    if (!memory_word(r->memory, set + SET_USED, &used) ||
        !memory_word(r->memory, set + SET_MASK, &mask) ||
        !memory_word(r->memory, set + SET_TABLE, &table))
        return;
    while (at <= mask && ret->total < TASKS_MOST && r->slots && r->pages) {
        uint64_t room = mask - at < TASKS_BATCH ? mask - at + 1 : TASKS_BATCH, pages;

        room = room < r->slots ? room : r->slots;
        whole &= read_slots(r, table + 16 * at, (uint32_t)room, groups, ret, &read);
        pages = MEMORY_MOST - r->memory->left;
        r->pages -= pages < r->pages ? pages : r->pages;
        r->slots -= room;
        at += room;
    }
    if ((at <= mask || !whole) && used > read && used - read < UINT32_MAX - ret->beyond)
        ret->beyond += (uint32_t)(used - read);
}

/* Finds asyncio's set of an interpreter. *ret_module: it has imported asyncio. 0: not found. */
static uint64_t find_set(struct reading *r, uint64_t interpreter, bool *ret_module)
{
    uint64_t modules = 0, module, dict = 0, set;

    memory_begin(r->memory);
    if (!memory_word(r->memory, interpreter + r->code->layout->modules, &modules))
        return 0;
    module = find_in_dict(r, modules, "asyncio.tasks");
    *ret_module |= module != 0;
    if (!module || !r->layout->set || !memory_word(r->memory, module + MODULE_DICT, &dict))
        return 0;
    set = find_in_dict(r, dict, r->layout->set);
    return set ? find_member(r, set, "data") : 0;
}

bool python_tasks_read(struct python_code *code, uint64_t runtime, struct tasks_answer *ret)
{
    struct reading r = {.code = code,
                        .memory = code->memory,
                        .layout = python_task_layout_of(code->layout->minor),
                        .keys = KEYS_MOST,
                        .slots = SLOTS_MOST,
                        .pages = PAGES_MOST};
    struct task_groups groups = {.count = 0};
    uint64_t interpreter = 0, set;
    bool imported = false, found = false;

    tasks_begin(ret, "tasks of asyncio", "CPython 3.%u", code->layout->minor);
    task_groups_begin(&groups, r.memory, &task_reader, &r);
    memory_begin(r.memory);
    memory_word(r.memory, runtime + code->layout->interpreters, &interpreter);
    for (unsigned i = 0; r.layout && interpreter && i < INTERPRETERS_MOST; i++) {
        set = find_set(&r, interpreter, &imported);
        found |= set != 0;
        if (set)
            read_set(&r, set, &groups, ret);
        if (!memory_word(r.memory, interpreter + code->layout->next_interpreter, &interpreter))
            break;
    }
    memory_begin(r.memory);
    task_groups_put(&groups, ret);
    task_groups_deinit(&groups);
    if (imported && !found)
        snprintf(ret->unread, sizeof(ret->unread), "where this version has them is not known");
    return imported && (!found || ret->total || ret->beyond);
}
