/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes.h"

#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS_MOST 256

static const struct runtime *const rows[] = {
    &runtime_python,
    &runtime_java,
    &runtime_node,
    &runtime_ruby,
};
#define ROWS (sizeof(rows) / sizeof(*rows))

/* A runtime that was found. */
struct found {
    const struct runtime *row; /* NULL: it was not */
    struct runtime_process process;
    char file[64];
    void *state;
    int error; /* of its open(): -errno */
    bool opened;
};

struct runtime_frames {
    struct runtime_answer *answer;
    uint64_t code, code_size;
    uint32_t ends[GROUPS_MOST]; /* of groups: how many frames there were */
    size_t groups;
};

struct runtimes {
    struct memory memory;
    struct found found[ROWS];
    const struct found *read; /* the one that the frames are of; NULL: there are none */
    struct runtime_thread thread;
    struct runtime_frames frames;
};

/* ---- what a reader says ---- */

static uint32_t put_text(struct runtime_answer *answer, const char *text)
{
    size_t length = strnlen(text, RUNTIME_NAME - 1);
    uint32_t at = answer->text_used;

    /* One file follows another: a text that was said last is not said again. */
    if (RUNTIME_TEXT - at < length + 1)
        return 0;
    memcpy(answer->text + at, text, length);
    answer->text[at + length] = '\0';
    answer->text_used += (uint32_t)length + 1;
    return at;
}

bool runtime_put(struct runtime_frames *frames, const char *function, const char *file,
                 uint32_t line)
{
    struct runtime_answer *answer = frames->answer;
    const struct runtime_frame *last = answer->count ? &answer->frames[answer->count - 1] : NULL;
    struct runtime_frame frame = {.line = line};

    if (answer->count >= RUNTIME_FRAMES)
        return false;
    frame.function = put_text(answer, function);
    frame.file =
        last && !strcmp(answer->text + last->file, file) ? last->file : put_text(answer, file);
    if (!frame.function || !frame.file)
        return false;
    answer->frames[answer->count++] = frame;
    return true;
}

void runtime_end_group(struct runtime_frames *frames)
{
    uint32_t before = frames->groups ? frames->ends[frames->groups - 1] : 0;

    if (frames->answer->count > before && frames->groups < GROUPS_MOST)
        frames->ends[frames->groups++] = frames->answer->count;
}

void runtime_put_in_place(struct runtime_frames *frames, uint32_t at)
{
    frames->answer->frames[frames->answer->count - 1].at = at;
}

void runtime_set_state(struct runtime_frames *frames, enum runtime_state state)
{
    frames->answer->state = state;
}

void runtime_lock(struct runtime_frames *frames, uint64_t at, uint32_t number)
{
    frames->answer->lock_at = at;
    frames->answer->lock_number = number;
}

void runtime_chain(struct runtime_frames *frames, const struct runtime_chain *chain)
{
    frames->answer->chain = *chain;
}

void runtime_code(struct runtime_frames *frames, uint64_t address, uint64_t size)
{
    frames->code = address;
    frames->code_size = size;
}

void runtime_unread(struct runtime_frames *frames, const char *what)
{
    snprintf(frames->answer->unread, sizeof(frames->answer->unread), "%s", what);
}

/* ---- finding ---- */

int runtimes_open(struct runtimes **ret)
{
    struct runtimes *r = calloc(1, sizeof(*r));

    if (!r)
        return -ENOMEM;
    memory_init(&r->memory);
    *ret = r;
    return 0;
}

void runtimes_close(struct runtimes *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < ROWS; i++) {
        if (r->found[i].opened && !r->found[i].error && r->found[i].row->close)
            r->found[i].row->close(r->found[i].state);
    }
    memory_deinit(&r->memory);
    free(r);
}

/* Reads bytes at an address of a file, as far as it has them. */
static size_t read_file_at(Elf *elf, uint64_t address, void *to, size_t size)
{
    size_t count = 0, bytes = 0;
    const char *raw = elf_rawfile(elf, &bytes);

    if (!raw || elf_getphdrnum(elf, &count))
        return 0;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr head;
        uint64_t at;

        if (!gelf_getphdr(elf, (int)i, &head) || head.p_type != PT_LOAD || address < head.p_vaddr ||
            address - head.p_vaddr >= head.p_filesz)
            continue;
        at = address - head.p_vaddr;
        size = head.p_filesz - at < size ? (size_t)(head.p_filesz - at) : size;
        if (head.p_offset > bytes || bytes - head.p_offset < at + size)
            return 0;
        memcpy(to, raw + head.p_offset + at, size);
        return size;
    }
    return 0;
}

/* Returns the first bytes of what a symbol names, as the file has them; 0: it has none. */
static uint64_t word_at(Elf *elf, uint64_t address)
{
    uint64_t word = 0;

    return read_file_at(elf, address, &word, sizeof(word)) == sizeof(word) ? word : 0;
}

size_t runtime_file(const struct runtime_process *process, uint64_t address, void *to, size_t size)
{
    return process->elf ? read_file_at(process->elf, address - process->bias, to, size) : 0;
}

/* One file, as its symbols are looked at. */
struct looked {
    struct runtimes *runtimes;
    Elf *elf;
    uint64_t bias;
    struct runtime_symbol symbols[ROWS][RUNTIME_SYMBOLS];
};

static void take_symbol(struct looked *l, const GElf_Sym *symbol, const char *name)
{
    for (size_t i = 0; i < ROWS; i++) {
        const char *const *wanted = rows[i]->symbols;

        for (size_t k = 0; wanted[k] && k < RUNTIME_SYMBOLS; k++) {
            if (*name == *wanted[k] && !strcmp(name, wanted[k]))
                l->symbols[i][k] = (struct runtime_symbol){
                    symbol->st_value + l->bias, symbol->st_size, word_at(l->elf, symbol->st_value)};
        }
    }
}

static void look_section(struct looked *l, Elf_Scn *section, const GElf_Shdr *head)
{
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count =
        data && head->sh_entsize ? (size_t)((uint64_t)data->d_size / head->sh_entsize) : 0;

    for (size_t i = 0; i < count && i <= INT32_MAX; i++) {
        GElf_Sym symbol;
        const char *name;

        if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF)
            continue;
        name = elf_strptr(l->elf, head->sh_link, symbol.st_name);
        if (name)
            take_symbol(l, &symbol, name);
    }
}

/* Looks at the symbols of one kind; false: there are none. */
static bool look_symbols(struct looked *l, GElf_Word type)
{
    Elf_Scn *section = NULL;

    while ((section = elf_nextscn(l->elf, section))) {
        GElf_Shdr head;

        if (gelf_getshdr(section, &head) && head.sh_type == type) {
            look_section(l, section, &head);
            return true;
        }
    }
    return false;
}

void runtimes_add(struct runtimes *r, Elf *elf, uint64_t bias, const char *name)
{
    struct looked l = {.runtimes = r, .elf = elf, .bias = bias};

    /* Runtimes export what is looked for; a program without exports may have a full table. */
    if (!look_symbols(&l, SHT_DYNSYM))
        look_symbols(&l, SHT_SYMTAB);
    for (size_t i = 0; i < ROWS; i++) {
        struct found *found = &r->found[i];

        if (!l.symbols[i][0].address || found->row)
            continue;
        found->row = rows[i];
        snprintf(found->file, sizeof(found->file), "%s", name);
        found->process.memory = &r->memory;
        found->process.file = found->file;
        found->process.elf = elf;
        found->process.bias = bias;
        memcpy(found->process.symbols, l.symbols[i], sizeof(l.symbols[i]));
    }
}

bool runtimes_any(const struct runtimes *r)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (r->found[i].row)
            return true;
    }
    return false;
}

void runtimes_set_memory(struct runtimes *r, int mem, int pagemap)
{
    r->memory.mem = mem;
    r->memory.pagemap = pagemap;
}

struct memory *runtimes_memory(struct runtimes *r)
{
    return &r->memory;
}

/* ---- reading ---- */

static void begin_answer(struct runtime_answer *answer)
{
    answer->count = 0;
    answer->state = RUNTIME_NONE;
    answer->lock_at = 0;
    answer->lock_number = 0;
    answer->chain.head = 0;
    answer->text_used = 1; /* offset 0: none */
    answer->text[0] = answer->unread[0] = '\0';
}

static bool open_found(struct found *found)
{
    if (!found->row)
        return false;
    if (!found->row->open)
        return false;
    if (!found->opened) {
        found->error = found->row->open(&found->process, &found->state);
        /* Before a runtime has begun there is nothing to read yet. */
        found->opened = found->error != -EAGAIN;
    }
    return !found->error;
}

static void read_found(struct found *found, const struct runtime_thread *thread,
                       struct runtime_frames *ret)
{
    if (!thread->node_count)
        found->row->read(found->state, &found->process, thread, ret);
    else if (found->row->read_nodes)
        found->row->read_nodes(found->state, thread, ret);
}

/* A process may have more than one runtime: the first that knows the thread tells. */
void runtimes_read(struct runtimes *r, const struct runtime_thread *thread,
                   struct runtime_answer *ret)
{
    begin_answer(ret);
    r->read = NULL;
    r->thread = *thread;
    memory_begin(&r->memory);
    for (size_t i = 0; i < ROWS && !r->read; i++) {
        struct found *found = &r->found[i];

        r->frames = (struct runtime_frames){.answer = ret};
        if (open_found(found) && found->row->follow && !thread->node_count)
            continue; /* when the machine's stack is known */
        if (found->opened && !found->error)
            read_found(found, thread, &r->frames);
        else if (found->row && found->row->step)
            runtime_unread(&r->frames, found->row->step);
        else if (found->row && found->error == -ENOTSUP)
            snprintf(ret->unread, sizeof(ret->unread),
                     "functions of %s are not read: version of %s", found->row->name, found->file);
        runtime_end_group(&r->frames);
        r->read = ret->count ? found : NULL;
    }
}

void runtimes_list(struct runtimes *r, struct runtime_threads *ret)
{
    ret->count = 0;
    memory_begin(&r->memory);
    for (size_t i = 0; i < ROWS && !ret->count; i++) {
        if (open_found(&r->found[i]) && r->found[i].row->list)
            r->found[i].row->list(r->found[i].state, ret);
    }
}

bool runtimes_tasks(struct runtimes *r, struct tasks_answer *ret)
{
    memory_begin(&r->memory);
    for (size_t i = 0; i < ROWS; i++) {
        struct found *found = &r->found[i];

        if (open_found(found) && found->row->tasks && found->row->tasks(found->state, ret))
            return true;
    }
    return false;
}

bool runtime_tasks(const struct runtime *row, const struct runtime_process *process,
                   struct tasks_answer *ret)
{
    void *state;
    bool any;

    if (!row->tasks || row->open(process, &state))
        return false;
    any = row->tasks(state, ret);
    row->close(state);
    return any;
}

void runtime_list(const struct runtime *row, const struct runtime_process *process,
                  struct runtime_threads *ret)
{
    void *state;

    ret->count = 0;
    if (!row->list || row->open(process, &state))
        return;
    row->list(state, ret);
    row->close(state);
}

void runtime_read(const struct runtime *row, const struct runtime_process *process,
                  const struct runtime_thread *thread, const uint64_t *addresses, size_t count,
                  struct runtime_answer *ret)
{
    struct runtime_frames frames = {.answer = ret};
    void *state;

    begin_answer(ret);
    if (row->open(process, &state))
        return;
    if (thread->node_count)
        row->read_nodes(state, thread, &frames);
    else if (row->follow)
        row->follow(state, process, thread, addresses, count, &frames);
    else
        row->read(state, process, thread, &frames);
    runtime_end_group(&frames);
    row->close(state);
}

/* ---- places ---- */

static bool is_replaced_name(const struct runtime *row, const char *name)
{
    for (const char *const *at = row->replaces; *at; at++) {
        size_t length = strlen(*at);

        if (!strncmp(name, *at, length) && (!name[length] || name[length] == '.'))
            return true;
    }
    return false;
}

/* Finds the interpreter's functions in a stack. Returns how many, up to room. */
static size_t find_replaced(const struct found *found, const struct runtime_symbol *own,
                            const uint64_t *addresses, size_t count, runtimes_name_fn name,
                            void *ctx, uint32_t *ret, size_t room)
{
    size_t number = 0;

    for (size_t i = 0; i < count && number < room; i++) {
        char text[RUNTIME_NAME] = "";

        if (own->address && addresses[i] - own->address < own->size) {
            ret[number++] = (uint32_t)i;
            continue;
        }
        if (!name)
            continue;
        name(ctx, addresses[i], text, sizeof(text));
        if (is_replaced_name(found->row, text))
            ret[number++] = (uint32_t)i;
    }
    return number;
}

static void follow(struct runtimes *r, const uint64_t *addresses, size_t count,
                   struct runtime_answer *answer)
{
    for (size_t i = 0; i < ROWS && !answer->count; i++) {
        struct found *found = &r->found[i];

        if (r->thread.node_count || !open_found(found) || !found->row->follow)
            continue;
        r->frames = (struct runtime_frames){.answer = answer};
        found->row->follow(found->state, &found->process, &r->thread, addresses, count, &r->frames);
    }
}

/* Groups and functions of the interpreter are as many. If they are not, a part of the function
 * may lie elsewhere (".cold"), or the stack is cut: they are paired from the innermost on, and the
 * rest stands behind the stack. */
void runtimes_place(struct runtimes *r, const uint64_t *addresses, size_t count,
                    runtimes_name_fn name, void *ctx, struct runtime_answer *answer)
{
    uint32_t places[GROUPS_MOST];
    size_t groups = r->frames.groups, found = 0, group = 0;
    struct runtime_symbol own;

    if (!answer->count)
        follow(r, addresses, count, answer);
    if (!r->read || !answer->count)
        return;
    own = r->frames.code_size
              ? (struct runtime_symbol){.address = r->frames.code, .size = r->frames.code_size}
              : r->read->process.symbols[1];
    found = find_replaced(r->read, &own, addresses, count, NULL, NULL, places, GROUPS_MOST);
    if (found < groups && *r->read->row->replaces)
        found = find_replaced(r->read, &own, addresses, count, name, ctx, places, GROUPS_MOST);
    for (uint32_t i = 0; i < answer->count; i++) {
        while (group + 1 < groups && i >= r->frames.ends[group])
            group++;
        answer->frames[i].at = group < found ? places[group] : (uint32_t)count;
    }
}
