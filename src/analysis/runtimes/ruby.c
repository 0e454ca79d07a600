/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Ruby (CRuby): from the VM along the list of a ractor's threads to the thread's control frames,
 * from these to the instruction sequences whose frames they are, and to names and lines.
 *
 * Source: Ruby's vm_core.h, ractor_core.h, iseq.c (succ_index_lookup), rstring.h, rarray.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtimes.h"

#define RACTORS_MOST 256
#define THREADS_MOST 65536
#define THREADS_KEPT 1024 /* places of threads that are remembered, by number */
#define FRAMES_MOST  4096 /* control frames, those of functions in C among them */
#define CODE_MOST    (16u << 20)

enum { VM, EXECUTE, VERSION };

static const char *const symbols[] = {"ruby_current_vm_ptr", "rb_vm_exec", "ruby_version", NULL};
static const char *const replaced[] = {"rb_vm_exec", NULL};

/* Where a version's structures keep what is read of them, on x86-64. */
struct layout {
    char version[8];
    /* rb_vm_t, rb_ractor_t: the list of ractors and their place in it, a ractor's threads */
    uint32_t ractors, ractor_node, threads;
    /* rb_thread_t, whose place in the list is its first member */
    uint32_t context, tid;
    /* rb_execution_context_t */
    uint32_t stack, stack_words, frame;
    /* rb_control_frame_t */
    uint32_t pc, iseq, environment, frame_bytes;
    /* rb_iseq_t, rb_iseq_constant_body */
    uint32_t body, size, code, path, label, lines, line_count, line_index, line_bytes;
};

static const struct layout layouts[] = {
    {"3.1.", 8, 0x238, 0x130, 40, 88, 0, 8, 16, 0, 16, 32, 64, 16, 4, 8, 64, 80, 120, 136, 144, 12},
};

/* Flags of a frame, which its environment's first word has (vm_core.h). */
#define FRAME_FINISH 0x20u /* the interpreter's function was called for it */
#define FRAME_IN_C   0x80u

/* Objects: the first word is flags (value_type.h). */
#define OBJECT_TYPE      0x1fu
#define OBJECT_STRING    5u
#define OBJECT_ARRAY     7u
#define OBJECT_ELSEWHERE (1u << 13) /* of a string: it is long */
#define OBJECT_EMBEDDED  (1u << 13) /* of an array: it is short */

struct ruby {
    const struct layout *l;
    struct memory *memory;
    uint64_t vm; /* where a pointer to it is */
    struct {
        pid_t tid;
        uint64_t thread;
    } kept[THREADS_KEPT];
};

static int open_ruby(const struct runtime_process *process, void **ret_state)
{
#if defined(__x86_64__)
    for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
        struct ruby *r;

        if (strncmp((const char *)&process->symbols[VERSION].word, layouts[i].version,
                    strlen(layouts[i].version)) != 0)
            continue;
        r = calloc(1, sizeof(*r));
        if (!r)
            return -ENOMEM;
        r->l = &layouts[i];
        r->memory = process->memory;
        r->vm = process->symbols[VM].address;
        *ret_state = r;
        return 0;
    }
#endif
    return -ENOTSUP;
}

static void close_ruby(void *state)
{
    free(state);
}

static bool word(const struct ruby *r, uint64_t address, uint64_t *ret)
{
    return memory_word(r->memory, address, ret);
}

static bool number(const struct ruby *r, uint64_t address, uint32_t *ret)
{
    return memory_bytes(r->memory, address, ret, sizeof(*ret));
}

/* ---- threads ---- */

static bool is_thread(const struct ruby *r, uint64_t thread, pid_t tid)
{
    uint32_t found;

    return number(r, thread + r->l->tid, &found) && found == (uint32_t)tid;
}

/* Whether a thread is still in a list: the one before it leads to it. */
static bool is_listed(const struct ruby *r, uint64_t thread)
{
    uint64_t before, at;

    return word(r, thread + 8, &before) && word(r, before, &at) && at == thread;
}

/* left: how many threads of all ractors may still be looked at */
static uint64_t find_in(struct ruby *r, uint64_t list, pid_t tid, unsigned *left)
{
    uint64_t thread;

    if (!word(r, list, &thread))
        return 0;
    for (; thread != list && *left; --*left) {
        if (is_thread(r, thread, tid)) {
            r->kept[(size_t)tid % THREADS_KEPT].tid = tid;
            r->kept[(size_t)tid % THREADS_KEPT].thread = thread;
            return thread;
        }
        if (!word(r, thread, &thread))
            return 0;
    }
    return 0;
}

static uint64_t find_thread(struct ruby *r, pid_t tid)
{
    uint64_t kept = r->kept[(size_t)tid % THREADS_KEPT].thread, vm, node, found = 0;
    unsigned left = THREADS_MOST;

    if (r->kept[(size_t)tid % THREADS_KEPT].tid == tid && is_thread(r, kept, tid) &&
        is_listed(r, kept))
        return kept;
    if (!word(r, r->vm, &vm) || !word(r, vm + r->l->ractors, &node))
        return 0;
    for (unsigned i = 0; !found && node != vm + r->l->ractors && i < RACTORS_MOST; i++) {
        found = find_in(r, node - r->l->ractor_node + r->l->threads, tid, &left);
        if (!word(r, node, &node))
            break;
    }
    return found;
}

/* ---- names ---- */

static bool read_string(const struct ruby *r, uint64_t object, char ret[RUNTIME_NAME])
{
    uint64_t flags, length, at = object + 16;

    if (!word(r, object, &flags) || (flags & OBJECT_TYPE) != OBJECT_STRING)
        return false;
    length = flags >> 14 & 0x1f;
    if (flags & OBJECT_ELSEWHERE && (!word(r, object + 16, &length) || !word(r, object + 24, &at)))
        return false;
    length = length < RUNTIME_NAME - 1 ? length : RUNTIME_NAME - 1;
    ret[length] = '\0';
    return length && memory_bytes(r->memory, at, ret, (size_t)length) &&
           !memchr(ret, '\0', (size_t)length);
}

/* A path is a text, or two: as it was given, and the whole of it. */
static bool read_path(const struct ruby *r, uint64_t object, char ret[RUNTIME_NAME])
{
    uint64_t flags, at = object + 16;

    if (!word(r, object, &flags))
        return false;
    if ((flags & OBJECT_TYPE) != OBJECT_ARRAY)
        return read_string(r, object, ret);
    return (flags & OBJECT_EMBEDDED || word(r, object + 32, &at)) && word(r, at, &object) &&
           read_string(r, object, ret);
}

/* How many rows of the table of lines begin up to an instruction: a succinct index, of which the
 * first 54 instructions have counts of 7 bits, nine a word, and further ones blocks of 512 bits. */
#define INDEX_PLAIN  54u
#define INDEX_BLOCKS 48u /* bytes before them */
#define INDEX_BLOCK  80u /* bytes of one: a count, eight counts of 9 bits, the bits */

static bool row_of(const struct ruby *r, uint64_t index, uint32_t at, uint32_t *ret)
{
    uint64_t plain, block, ranks, bits;
    uint32_t rank, bit, part;

    if (at < INDEX_PLAIN) {
        if (!word(r, index + 8ull * (at / 9), &plain))
            return false;
        *ret = plain >> at % 9 * 7 & 0x7f;
        return true;
    }
    bit = (at - INDEX_PLAIN) % 512;
    part = bit / 64;
    block = index + INDEX_BLOCKS + (at - INDEX_PLAIN) / 512 * (uint64_t)INDEX_BLOCK;
    if (!number(r, block, &rank) || !word(r, block + 8, &ranks) ||
        !word(r, block + 16 + 8ull * part, &bits))
        return false;
    *ret = rank + (part ? (uint32_t)(ranks >> (part - 1) * 9 & 0x1ff) : 0) +
           (uint32_t)__builtin_popcountll(bits << (63 - bit % 64));
    return true;
}

/* Finds the line of the instruction before `pc`, which is the one that is executed. 0: not known */
static uint32_t line_of(const struct ruby *r, uint64_t body, uint64_t pc)
{
    const struct layout *l = r->l;
    uint64_t code, lines, index;
    uint32_t size, count, row = 1, line;

    if (!word(r, body + l->code, &code) || !number(r, body + l->size, &size) ||
        !number(r, body + l->line_count, &count) || !word(r, body + l->lines, &lines) ||
        !word(r, body + l->line_index, &index) || size > CODE_MOST || pc < code || !count ||
        (pc - code) / 8 > size)
        return 0;
    pc = (pc - code) / 8;
    if (count > 1 && !row_of(r, index, (uint32_t)(pc ? pc - 1 : 0), &row))
        return 0;
    if (!row || row > count || !number(r, lines + (row - 1ull) * l->line_bytes, &line))
        return 0;
    return line <= INT32_MAX ? line : 0;
}

/* ---- frames ---- */

static bool say_frame(const struct ruby *r, uint64_t iseq, uint64_t pc, struct runtime_frames *ret)
{
    char function[RUNTIME_NAME], file[RUNTIME_NAME];
    uint64_t body, label, path;

    return word(r, iseq + r->l->body, &body) && word(r, body + r->l->label, &label) &&
           word(r, body + r->l->path, &path) && read_string(r, label, function) &&
           read_path(r, path, file) && runtime_put(ret, function, file, line_of(r, body, pc));
}

/* False: a frame could not be read, or there are too many. The outermost is none of the program's.
 */
static bool say_frames(const struct ruby *r, uint64_t at, uint64_t end, struct runtime_frames *ret)
{
    const struct layout *l = r->l;

    for (unsigned i = 0; at < end && i < FRAMES_MOST; i++, at += l->frame_bytes) {
        uint64_t pc, iseq, environment, flags;

        if (!word(r, at + l->pc, &pc) || !word(r, at + l->iseq, &iseq) ||
            !word(r, at + l->environment, &environment) || !word(r, environment, &flags))
            return false;
        if (flags & FRAME_IN_C || !iseq || !pc)
            continue;
        if (!say_frame(r, iseq, pc, ret))
            return false;
        if (flags & FRAME_FINISH)
            runtime_end_group(ret);
    }
    return at >= end;
}

static void read_ruby(void *state, const struct runtime_process *process,
                      const struct runtime_thread *thread, struct runtime_frames *ret)
{
    struct ruby *r = state;
    const struct layout *l = r->l;
    uint64_t found = find_thread(r, thread->tid), context, stack, words, at;

    (void)process;
    if (!found || !word(r, found + l->context, &context) || !word(r, context + l->stack, &stack) ||
        !word(r, context + l->stack_words, &words) || !word(r, context + l->frame, &at) ||
        words > UINT32_MAX || 8 * words < l->frame_bytes || at < stack || at - stack > 8 * words)
        return;
    runtime_set_state(ret, say_frames(r, at, stack + 8 * words - l->frame_bytes, ret)
                               ? RUNTIME_COMPLETE
                               : RUNTIME_PARTLY);
}

const struct runtime runtime_ruby = {
    .name = "Ruby",
    .symbols = symbols,
    .replaces = replaced,
    .open = open_ruby,
    .close = close_ruby,
    .read = read_ruby,
};
