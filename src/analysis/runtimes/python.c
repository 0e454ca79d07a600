/* SPDX-License-Identifier: BSD-2-Clause
 *
 * CPython: from _PyRuntime to the thread's state, along its frames to their code objects, and from
 * these to names and lines. Objects are as python_layouts.c has them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python_lines.h"
#include "python_layouts.h"
#include "runtimes.h"

#define INTERPRETERS_MOST 256
#define THREADS_MOST      16384
#define THREADS_KEPT      1024 /* places of thread states that are remembered, by number */
#define STEPS_MOST        1024 /* frames, shims among them */
#define OFFSET_MOST       (2u << 20)
#define OBJECT_MOST       512u /* bytes of a frame or code object that members lie in */
#define LINES_MOST        (256u << 10)
#define SAID_WORDS        128
#define COOKIE            "xdebugpy"

enum { RUNTIME, EVALUATE, VERSION };

static const char *const symbols[] = {"_PyRuntime", "_PyEval_EvalFrameDefault", "Py_Version", NULL};
static const char *const replaced[] = {"_PyEval_EvalFrameDefault", NULL};

struct python {
    struct python_layout layout;
    struct memory *memory;
    uint64_t runtime;
    struct {
        pid_t tid;
        uint64_t state, interpreter;
    } kept[THREADS_KEPT];
};

/* ---- versions ---- */

/* Finds the version: the word of that name has it from 3.11 on, else the file's name. */
static uint32_t minor_of(const struct runtime_process *process)
{
    uint64_t version = process->symbols[VERSION].word & 0xffffffff;
    const char *at = strstr(process->file, "python3.");
    unsigned minor;

    if (version >> 24 == 3)
        return version >> 16 & 0xff;
    return at && sscanf(at, "python3.%u", &minor) == 1 ? minor : 0;
}

/* Takes what the runtime itself says of its offsets. */
static int take_said(struct python *p, const struct python_said *said)
{
    uint64_t words[SAID_WORDS];

    if (!memory_read(p->memory, p->runtime, words, sizeof(words)))
        return -EAGAIN;
    if (memcmp(words, COOKIE, sizeof(words[0])) != 0)
        return -EAGAIN;
    for (; said->word; said++) {
        uint64_t value = words[said->word];

        if (value > OFFSET_MOST)
            return -ENOTSUP;
        memcpy((char *)&p->layout + said->member, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
    }
    p->layout.compact = p->layout.ascii + 16; /* utf8_length, utf8: PyCompactUnicodeObject */
    if (words[2]) {                           /* free-threaded */
        p->layout.kind_shift = 8;
        p->layout.gil_holder += 8;
        p->layout.gil_locked += 8;
    }
    return 0;
}

static int open_python(const struct runtime_process *process, void **ret_state)
{
    uint32_t minor = minor_of(process);
    const struct python_layout *layout = python_layout_of(minor);
    const struct python_said *said = python_said_of(minor);
    struct python *p;
    int result = 0;

    if (!layout)
        return -ENOTSUP;
    p = calloc(1, sizeof(*p));
    if (!p)
        return -ENOMEM;
    p->layout = *layout;
    p->memory = process->memory;
    p->runtime = process->symbols[RUNTIME].address;
    if (said)
        result = take_said(p, said);
    if (result)
        free(p);
    else
        *ret_state = p;
    return result;
}

static void close_python(void *state)
{
    free(state);
}

/* ---- threads ---- */

static bool word(const struct python *p, uint64_t at, uint32_t offset, uint64_t *ret)
{
    return memory_word(p->memory, at + offset, ret);
}

/* Where glibc keeps a thread's number, behind what pthread_self() returns: before 3.11 Python knows
 * its threads by that alone. Source: struct pthread in nptl/descr.h. */
#if defined(__x86_64__)
#define PTHREAD_TID 720
#else
#define PTHREAD_TID 208
#endif

static pid_t number_of(const struct python *p, uint64_t state)
{
    uint64_t id = 0;

    if (p->layout.native_id != PYTHON_ABSENT)
        return word(p, state, p->layout.native_id, &id) && id <= INT32_MAX ? (pid_t)id : 0;
    if (!word(p, state, p->layout.pthread, &id) || !word(p, id, PTHREAD_TID, &id))
        return 0;
    return (pid_t)(id & INT32_MAX);
}

/* Whether the state is still in its interpreter's list: memory that was given back may look like
 * one for long. */
static bool is_listed(const struct python *p, uint64_t state, uint64_t interpreter)
{
    uint64_t before, at;

    if (!word(p, state, p->layout.previous_thread, &before))
        return false;
    return (before ? word(p, before, p->layout.next_thread, &at)
                   : word(p, interpreter, p->layout.threads, &at)) &&
           at == state;
}

static void keep(struct python *p, pid_t tid, uint64_t state, uint64_t interpreter)
{
    size_t place = (size_t)tid % THREADS_KEPT;

    p->kept[place].tid = tid;
    p->kept[place].state = state;
    p->kept[place].interpreter = interpreter;
}

/* Returns the state of a thread in one interpreter; 0: it has none there. */
static uint64_t find_in(struct python *p, uint64_t interpreter, pid_t tid)
{
    uint64_t state = 0;

    if (!word(p, interpreter, p->layout.threads, &state))
        return 0;
    for (unsigned i = 0; state && i < THREADS_MOST; i++) {
        pid_t number = number_of(p, state);

        if (number == tid) {
            keep(p, tid, state, interpreter);
            return state;
        }
        if (!word(p, state, p->layout.next_thread, &state))
            return 0;
    }
    return 0;
}

static uint64_t find_state(struct python *p, pid_t tid)
{
    size_t place = (size_t)tid % THREADS_KEPT;
    uint64_t interpreter = 0, state;

    if (p->kept[place].tid == tid && number_of(p, p->kept[place].state) == tid &&
        is_listed(p, p->kept[place].state, p->kept[place].interpreter))
        return p->kept[place].state;
    if (!word(p, p->runtime, p->layout.interpreters, &interpreter))
        return 0;
    for (unsigned i = 0; interpreter && i < INTERPRETERS_MOST; i++) {
        state = find_in(p, interpreter, tid);
        if (state)
            return state;
        if (!word(p, interpreter, p->layout.next_interpreter, &interpreter))
            return 0;
    }
    return 0;
}

/* ---- texts ---- */

/* Writes one character as UTF-8. Returns how many bytes; 0: there is no room. */
static size_t put_utf8(uint32_t c, char *to, size_t room)
{
    size_t length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};

    if (c > 0x10ffff || !c || c - 0xd800 < 0x800) {
        c = 0xfffd;
        length = 3;
    }
    if (room < length)
        return 0;
    for (size_t i = length - 1; i && length > 1; i--) {
        to[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    to[0] = (char)(leads[length] | c);
    return length;
}

/* Reads a text object as UTF-8, cut at the room for it. */
static bool read_text(const struct python *p, uint64_t object, char ret[RUNTIME_NAME])
{
    unsigned char head[OBJECT_MOST], bytes[4 * RUNTIME_NAME];
    const struct python_layout *l = &p->layout;
    uint64_t length, count;
    uint32_t state, kind, compact, ascii;
    size_t used = 0;

    if (l->compact > sizeof(head) - 8 || l->text_state > sizeof(head) - 8 ||
        l->text_length > sizeof(head) - 8 || !memory_read(p->memory, object, head, l->compact))
        return false;
    memcpy(&length, head + l->text_length, sizeof(length));
    memcpy(&state, head + l->text_state, sizeof(state));
    kind = state >> l->kind_shift & 7;
    compact = state >> (l->kind_shift + 3) & 1;
    ascii = state >> (l->kind_shift + 4) & 1;
    if (!compact || (kind != 1 && kind != 2 && kind != 4) || length > 1u << 20)
        return false;
    count = length < RUNTIME_NAME ? length : RUNTIME_NAME;
    if (!memory_read(p->memory, object + (ascii ? l->ascii : l->compact), bytes,
                     (size_t)count * kind))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t c = 0;
        size_t step;

        memcpy(&c, bytes + i * kind, kind);
        step = put_utf8(c, ret + used, RUNTIME_NAME - 1 - used);
        if (!step)
            break;
        used += step;
    }
    ret[used] = '\0';
    return true;
}

/* ---- frames ---- */

static bool said_in(const unsigned char *bytes, uint32_t offset, uint64_t *ret)
{
    if (offset > OBJECT_MOST - sizeof(*ret))
        return false;
    memcpy(ret, bytes + offset, sizeof(*ret));
    return true;
}

/* Reads the line of an instruction; 0: not known. */
static uint32_t line_of(const struct python *p, const unsigned char *code, uint64_t address,
                        uint64_t instruction)
{
    static unsigned char table[LINES_MOST]; /* the child has one thread */
    const struct python_layout *l = &p->layout;
    uint64_t object, size, first, at;

    if (!said_in(code, l->lines_at, &object) || !said_in(code, l->first_line, &first) ||
        !word(p, object, l->bytes_size, &size) || size > sizeof(table) ||
        !memory_read(p->memory, object + l->bytes_at, table, (size_t)size))
        return 0;
    at = l->bytecode != PYTHON_ABSENT ? instruction - address - l->bytecode
         : (int32_t)instruction < 0   ? 0
                                      : instruction & INT32_MAX;
    if (l->lines == PYTHON_LINETABLE)
        at *= 2;
    return python_line(l->lines, table, (size_t)size, (uint32_t)first, at);
}

static bool put_frame(const struct python *p, uint64_t address, uint64_t instruction,
                      struct runtime_frames *ret)
{
    unsigned char code[OBJECT_MOST];
    char function[RUNTIME_NAME], file[RUNTIME_NAME];
    const struct python_layout *l = &p->layout;
    uint64_t name, path, first;
    uint32_t line, last = l->bytecode == PYTHON_ABSENT ? l->lines_at + 8 : l->bytecode;

    if (last > sizeof(code) || !memory_read(p->memory, address, code, last) ||
        !said_in(code, l->qualname == PYTHON_ABSENT ? l->name : l->qualname, &name) ||
        !said_in(code, l->filename, &path) || !said_in(code, l->first_line, &first) ||
        !read_text(p, name, function) || !read_text(p, path, file))
        return false;
    line = line_of(p, code, address, instruction);
    return runtime_put(ret, function, file, line ? line : (uint32_t)first);
}

static uint64_t first_frame(const struct python *p, uint64_t state)
{
    uint64_t at = 0;

    if (p->layout.cframe != PYTHON_ABSENT && !word(p, state, p->layout.cframe, &state))
        return 0;
    return word(p, state, p->layout.frame, &at) ? at : 0;
}

/* Says one frame, or a group's end; false: it could not be read. */
static bool say_frame(const struct python *p, const unsigned char *frame,
                      struct runtime_frames *ret)
{
    const struct python_layout *l = &p->layout;
    uint8_t owner = l->owner < OBJECT_MOST ? frame[l->owner] : 0;
    uint64_t code, instruction;

    if (l->entry == PYTHON_SHIM && owner >= l->shim) {
        runtime_end_group(ret);
        return true;
    }
    if (!said_in(frame, l->code, &code) || !said_in(frame, l->instruction, &instruction) ||
        !put_frame(p, code & ~(uint64_t)7, instruction, ret))
        return false;
    if (l->entry == PYTHON_EACH || (l->entry == PYTHON_ENTRY && owner))
        runtime_end_group(ret);
    return true;
}

static void read_python(void *state, const struct runtime_process *process,
                        const struct runtime_thread *thread, struct runtime_frames *ret)
{
    struct python *p = state;
    uint64_t own = find_state(p, thread->tid), at = own ? first_frame(p, own) : 0;
    const struct python_layout *l = &p->layout;
    uint32_t bytes = 8;

    for (size_t i = 0; i < 4; i++) {
        uint32_t member = (uint32_t[]){l->back, l->code, l->instruction,
                                       l->owner == PYTHON_ABSENT ? 0 : l->owner}[i];

        if (member > OBJECT_MOST - 8)
            return;
        bytes = member + 8 > bytes ? member + 8 : bytes;
    }
    for (unsigned i = 0; at && i < STEPS_MOST; i++) {
        unsigned char frame[OBJECT_MOST];

        if (!memory_read(p->memory, at, frame, bytes) || !say_frame(p, frame, ret) ||
            !said_in(frame, l->back, &at)) {
            runtime_unread(ret, "CPython: a frame could not be read");
            return;
        }
    }
}

const struct runtime runtime_python = {
    .name = "CPython",
    .symbols = symbols,
    .replaces = replaced,
    .open = open_python,
    .close = close_python,
    .read = read_python,
};
