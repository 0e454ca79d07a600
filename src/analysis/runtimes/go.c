/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goroutines: from what the linker says of the program (moduledata, which points to the table of
 * its functions) to the runtime's list of goroutines, along it to their stacks, and from these by
 * the table to functions and lines. No table of symbols is needed.
 *
 * The list is a variable without a name in a stripped program: it is the slice whose first element
 * points to a goroutine with the number 1, which points to itself, as the main one does.
 */
#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "go_layouts.h"
#include "table.h"
#include "tasks.h"

#define G_MOST     256         /* bytes of a goroutine that are read */
#define WALK_MOST  512         /* frames that are followed */
#define DATA_MOST  (16u << 20) /* bytes that are searched */
#define SLICE_MOST (1u << 26)  /* goroutines that a list may have room for */
#define PAGES_MOST (1u << 19)  /* of all questions, about */
#define BUILD_INFO "\xff Go buildinf:"
#define VERSION_AT 32      /* bytes behind the beginning of that: its length, then the text */
#define SCANNED    0x1000u /* the collector looks at it meanwhile */

#define STACK_MOST 48

enum status { G_IDLE, G_RUNNABLE, G_RUNNING, G_SYSCALL, G_WAITING, G_DEAD = 6 };

struct tasks {
    struct memory memory;
    struct go_table table;
    uint64_t bias;
    const struct go_layout *layout; /* NULL: the version is not known */
    char version[24];
    uint64_t data, data_size; /* what the program may write and the file begins, as mapped */
    Elf *elf;
    uint64_t list; /* where the slice is; 0: not found yet */
    struct task_groups groups;
};

/* ---- the file ---- */

static const unsigned char *bytes_at(Elf *elf, const GElf_Phdr *head, uint64_t *ret_size)
{
    size_t bytes = 0;
    const char *raw = elf_rawfile(elf, &bytes);

    if (!raw || head->p_offset >= bytes)
        return NULL;
    *ret_size = head->p_filesz < bytes - head->p_offset ? head->p_filesz : bytes - head->p_offset;
    return (const unsigned char *)raw + head->p_offset;
}

/* Takes the version that the linker wrote among what may be written: "go1.19.8". */
static bool take_version(struct tasks *t, const unsigned char *bytes, uint64_t size)
{
    size_t length = strlen(BUILD_INFO);

    for (uint64_t at = 0; at + VERSION_AT + 1 <= size && at < DATA_MOST; at += 16) {
        if (memcmp(bytes + at, BUILD_INFO, length) != 0)
            continue;
        length = bytes[at + VERSION_AT];
        if (!(bytes[at + 15] & 2) || length >= sizeof(t->version) ||
            size - at - VERSION_AT - 1 < length)
            return false;
        memcpy(t->version, bytes + at + VERSION_AT + 1, length);
        t->version[length] = '\0';
        t->version[strcspn(t->version, " ")] = '\0';
        return true;
    }
    return false;
}

static void look_program(struct tasks *t)
{
    size_t count = 0;
    unsigned minor;
    char end;

    if (elf_getphdrnum(t->elf, &count))
        return;
    for (size_t i = 0; i < count; i++) {
        const unsigned char *bytes;
        uint64_t size = 0;
        GElf_Phdr head;

        if (!gelf_getphdr(t->elf, (int)i, &head) || head.p_type != PT_LOAD)
            continue;
        bytes = bytes_at(t->elf, &head, &size);
        /* What stays writable is the last; the one before is not, once it is relocated. */
        if (!(head.p_flags & PF_W))
            continue;
        t->data = head.p_vaddr + t->bias;
        t->data_size = size < DATA_MOST ? size : DATA_MOST;
        if (bytes)
            take_version(t, bytes, size);
    }
    if (sscanf(t->version, "go1.%u%c", &minor, &end) >= 1)
        t->layout = go_layout_of(minor);
}

int tasks_open(Elf *elf, uint64_t bias, const struct go_table *table, struct tasks **ret)
{
    struct tasks *t = calloc(1, sizeof(*t));

    if (!t)
        return -ENOMEM;
    memory_init(&t->memory);
    t->elf = elf;
    t->bias = bias;
    t->table = *table;
    if (elf)
        look_program(t);
    *ret = t;
    return 0;
}

void tasks_close(struct tasks *t)
{
    if (!t)
        return;
    memory_deinit(&t->memory);
    task_groups_deinit(&t->groups);
    free(t);
}

void tasks_set_place(struct tasks *t, uint32_t minor, uint64_t data, uint64_t size)
{
    t->layout = go_layout_of(minor);
    t->data = data;
    t->data_size = size;
}

struct memory *tasks_memory(struct tasks *t)
{
    return &t->memory;
}

/* ---- finding the list ---- */

static uint64_t number(const unsigned char *bytes, uint32_t offset)
{
    uint64_t word;

    memcpy(&word, bytes + offset, sizeof(word));
    return word;
}

/* Finds what rows about inlined functions count from, in the file. */
static void find_extra(struct tasks *t, uint64_t address)
{
    size_t count = 0;

    if (!t->elf || elf_getphdrnum(t->elf, &count))
        return;
    for (size_t i = 0; i < count; i++) {
        const unsigned char *bytes;
        uint64_t size = 0;
        GElf_Phdr head;

        if (!gelf_getphdr(t->elf, (int)i, &head) || head.p_type != PT_LOAD ||
            address - head.p_vaddr >= head.p_filesz)
            continue;
        bytes = bytes_at(t->elf, &head, &size);
        if (!bytes || address - head.p_vaddr >= size)
            return;
        t->table.extra = bytes + (address - head.p_vaddr);
        t->table.extra_size = (size_t)(size - (address - head.p_vaddr));
    }
}

/* Finds moduledata, which begins with the address of the table. False: it is not there. */
static bool find_module(struct tasks *t, unsigned char *ret, size_t size)
{
    for (uint64_t at = 0; at + size <= t->data_size; at += 8) {
        uint64_t word;

        if (memory_word(&t->memory, t->data + at, &word) && word == t->table.address + t->bias &&
            memory_bytes(&t->memory, t->data + at, ret, size) &&
            number(ret, t->layout->text) == t->table.text + t->bias)
            return true;
    }
    return false;
}

static bool read_g(struct tasks *t, uint64_t address, unsigned char ret[G_MOST])
{
    return address % 8 == 0 && memory_bytes(&t->memory, address, ret, t->layout->size) &&
           number(ret, t->layout->self) == address;
}

/* Whether a slice is the list. */
static bool is_list(struct tasks *t, const uint64_t slice[3])
{
    unsigned char g[G_MOST];
    uint64_t first;

    return slice[0] % 8 == 0 && slice[0] > MEMORY_PAGE && slice[1] && slice[1] <= slice[2] &&
           slice[2] <= SLICE_MOST && memory_word(&t->memory, slice[0], &first) &&
           read_g(t, first, g) && number(g, t->layout->id) == 1;
}

/* The collector keeps an older and shorter copy while it works: the longest is the list. */
static void find_list(struct tasks *t)
{
    unsigned char module[512];
    uint64_t bss, end, most = 0, slice[3];

    memory_begin(&t->memory);
    if (!find_module(t, module, t->layout->extra + 8))
        return;
    bss = number(module, t->layout->bss);
    end = number(module, t->layout->bss_end);
    if (bss % 8 || end < bss || end - bss > DATA_MOST)
        return;
    find_extra(t, number(module, t->layout->extra) - t->bias);
    for (uint64_t at = bss; at + sizeof(slice) <= end && t->memory.left; at += 8) {
        if (!memory_word(&t->memory, at, &slice[0]) || !slice[0] ||
            !memory_bytes(&t->memory, at, slice, sizeof(slice)) || slice[1] <= most ||
            !is_list(t, slice))
            continue;
        most = slice[1];
        t->list = at;
    }
}

/* ---- one goroutine ---- */

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

/* Steps to the caller. False: the stack ends here, or is not known further. */
static bool step(struct tasks *t, const struct go_function *function, uint64_t address,
                 uint64_t *sp, uint64_t *ret)
{
    uint64_t depth;

    if (!go_table_depth(&t->table, function, address, &depth))
        return false;
#if defined(__aarch64__)
    if (!depth || !memory_word(&t->memory, *sp, ret))
        return false;
    *sp += depth;
#else
    if (!memory_word(&t->memory, *sp + depth, ret))
        return false;
    *sp += depth + 8;
#endif
    return *ret;
}

/* Follows the stack. A goroutine is the runtime's own by the function that it was begun with. */
static void walk(struct tasks *t, uint64_t pc, uint64_t sp, struct task_seen *s)
{
    const char *outermost = "";

    for (s->steps = 0; s->steps < WALK_MOST; s->steps++) {
        uint64_t address = pc - t->bias - (s->steps ? 1 : 0);
        struct go_function function;

        if (!go_table_find(&t->table, address, &function))
            break;
        if (!strcmp(function.name, "runtime.goexit")) {
            s->complete = true;
            break;
        }
        outermost = function.name;
        s->hash = table_mix(s->hash, pc);
        /* Calls lie before what they return to; what has not begun yet made none. */
        if (s->count < STACK_MOST)
            s->words[s->count++] = address - (!s->steps && address > function.begin);
        if (!step(t, &function, address, &sp, &pc))
            break;
    }
    s->own = s->complete && begins(outermost, "runtime.") &&
             strcmp(outermost, "runtime.main") != 0 &&
             strcmp(outermost, "runtime.corostart") != 0 &&
             strcmp(outermost, "runtime.handleAsyncEvent") != 0;
}

/* Reads what a goroutine is in. False: it is none. */
static bool read_seen(void *reader, uint64_t address, struct task_seen *ret)
{
    struct tasks *t = reader;
    const struct go_layout *l = t->layout;
    unsigned char g[G_MOST];
    uint32_t status;
    uint64_t pc, sp;
    bool in_call;

    if (!read_g(t, address, g))
        return false;
    memcpy(&status, g + l->status, sizeof(status));
    ret->status = status & ~SCANNED;
    ret->id = number(g, l->id);
    ret->there = ret->status != G_IDLE && ret->status != G_DEAD;
    if (!ret->there)
        return true;
    ret->reason = ret->status == G_WAITING ? g[l->reason] : 0;
    in_call = ret->status == G_SYSCALL;
    if (ret->status == G_RUNNING)
        return true;
    pc = number(g, in_call ? l->syscall_pc : l->pc);
    sp = number(g, in_call ? l->syscall_sp : l->sp);
    ret->proof = table_mix(pc, sp);
    walk(t, pc, sp, ret);
    return true;
}

/* ---- words ---- */

static const char *state_of(const struct tasks *t, const struct task_seen *s)
{
    switch (s->status) {
    case G_RUNNABLE:
        return "runnable";
    case G_RUNNING:
        return "running";
    case G_SYSCALL:
        return "syscall";
    case G_WAITING:
        return s->reason && s->reason < t->layout->reason_count ? t->layout->reasons[s->reason]
                                                                : "waiting";
    default:
        return "preempted";
    }
}

/* Up to 1.19 the reason is that of any semaphore: the function of the mutex tells. */
static bool is_lock(const char *state, const char *function)
{
    return begins(state, "sync.Mutex") || begins(state, "sync.RWMutex") ||
           begins(function, "sync.runtime_SemacquireMutex") ||
           begins(function, "sync.runtime_SemacquireRWMutex");
}

static void put_group(void *reader, const struct task_seen *seen, struct task_put *put)
{
    struct tasks *t = reader;
    const char *state = state_of(t, seen);

    task_put_state(put, state);
    for (uint32_t i = 0; i < seen->count; i++) {
        struct go_place places[16];
        struct go_function function;
        size_t count = 0;

        if (go_table_find(&t->table, seen->words[i], &function))
            count = go_table_places(&t->table, &function, seen->words[i], places, 16);
        for (size_t k = 0; k < count; k++)
            task_put_frame(put, places[k].function, places[k].file, places[k].line,
                           is_lock(state, places[k].function));
    }
}

static const struct task_reader reader = {read_seen, put_group};

/* ---- all of them ---- */

void tasks_read(struct tasks *t, struct tasks_answer *ret)
{
    uint64_t slice[3], at = 0, pages = 0;

    tasks_begin(ret, "goroutines", "Go%s%s", *t->version ? " " : "",
                *t->version ? t->version + 2 : "");
    if (!t->layout) {
        snprintf(ret->unread, sizeof(ret->unread), "%s",
                 *t->version ? "this version is not known"
                             : "the program does not say its version");
        return;
    }
    if (t->memory.mem < 0 && !t->memory.fetch) {
        snprintf(ret->unread, sizeof(ret->unread), "its memory cannot be read");
        return;
    }
    if (!t->list)
        find_list(t);
    memory_begin(&t->memory);
    if (!t->list || !memory_bytes(&t->memory, t->list, slice, sizeof(slice)) ||
        !is_list(t, slice)) {
        t->list = 0;
        snprintf(ret->unread, sizeof(ret->unread), "the runtime's list of them was not found");
        return;
    }
    task_groups_begin(&t->groups, &t->memory, &reader, t);
    while (at < slice[1] && at < TASKS_MOST && pages < PAGES_MOST) {
        uint32_t count = slice[1] - at < TASKS_BATCH ? (uint32_t)(slice[1] - at) : TASKS_BATCH;
        uint64_t addresses[TASKS_BATCH];

        memory_begin(&t->memory);
        if (memory_bytes(&t->memory, slice[0] + 8 * at, addresses, count * sizeof(*addresses)))
            task_groups_read(&t->groups, addresses, count, ret);
        else
            ret->beyond += count;
        pages += MEMORY_MOST - t->memory.left;
        at += count;
    }
    ret->beyond += at < slice[1] ? (uint32_t)(slice[1] - at) : 0;
    task_groups_put(&t->groups, ret);
}
