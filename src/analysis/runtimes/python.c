/* SPDX-License-Identifier: BSD-2-Clause
 *
 * CPython: from _PyRuntime to the thread's state, along its frames to their code objects, and from
 * these to names and lines. Objects are as python_layouts.c has them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python_code.h"
#include "python_tasks.h"
#include "runtimes.h"

#define INTERPRETERS_MOST 256
#define THREADS_MOST      16384
#define THREADS_KEPT      1024 /* places of thread states that are remembered, by number */
#define STATES_MOST       8    /* of one thread */
#define STEPS_MOST        1024 /* frames, shims among them */
#define MEET_MOST         4096 /* frames that are looked at before they are asked for */
#define OFFSET_MOST       (2u << 20)
#define SAID_WORDS        128
#define COOKIE            "xdebugpy"

enum { RUNTIME, EVALUATE, VERSION };

static const char *const symbols[] = {"_PyRuntime", "_PyEval_EvalFrameDefault", "Py_Version", NULL};
static const char *const replaced[] = {"_PyEval_EvalFrameDefault", NULL};

struct python {
    struct python_layout layout;
    struct memory *memory;
    struct python_code code;
    uint64_t runtime;
    unsigned threads; /* of all interpreters, that may still be looked at in a call */
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

    if (!memory_bytes(p->memory, p->runtime, words, sizeof(words)))
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
    if (words[2] && p->layout.minor > 13)     /* each thread has bytecode of its own there */
        return -ENOTSUP;
    if (words[2]) { /* free-threaded */
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
    p->code = (struct python_code){.layout = &p->layout, .memory = p->memory};
    if (result)
        free(p);
    else
        *ret_state = p;
    return result;
}

static void close_python(void *state)
{
    struct python *p = state;

    python_code_deinit(&p->code);
    free(p);
}

/* ---- threads ---- */

/* PYTHON_ABSENT goes on as the absence of others. */
_Static_assert(PYTHON_ABSENT == UINT32_MAX, "as PRCB_CHAIN_NONE");

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
    for (; state && p->threads; p->threads--) {
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

/* A thread has a state in each interpreter that it has ever run. */
struct states {
    uint64_t at[STATES_MOST];
    size_t count;
    bool several; /* interpreters */
};

/* Returns the frame's place in the thread's own stack that tells which state began later: the later
 * one has the lower. 0: not known. */
static uint64_t place_of(const struct python *p, uint64_t state);
static uint64_t first_frame(const struct python *p, uint64_t state);

/* Adds one that executes something, the one that began last first. */
static void add_state(const struct python *p, uint64_t state, struct states *ret)
{
    size_t at = ret->count;

    if (at == STATES_MOST || !first_frame(p, state))
        return;
    for (; at && place_of(p, state) < place_of(p, ret->at[at - 1]); at--)
        ret->at[at] = ret->at[at - 1];
    ret->at[at] = state;
    ret->count++;
}

static void find_states(struct python *p, pid_t tid, struct states *ret)
{
    size_t place = (size_t)tid % THREADS_KEPT;
    uint64_t interpreter = 0, next = 0, state;

    *ret = (struct states){.count = 0};
    p->threads = THREADS_MOST;
    if (!word(p, p->runtime, p->layout.interpreters, &interpreter) || !interpreter ||
        !word(p, interpreter, p->layout.next_interpreter, &next))
        return;
    ret->several = next != 0;
    if (!next) {
        if (p->kept[place].tid == tid && number_of(p, p->kept[place].state) == tid &&
            is_listed(p, p->kept[place].state, p->kept[place].interpreter))
            ret->at[0] = p->kept[place].state;
        else
            ret->at[0] = find_in(p, interpreter, tid);
        ret->count = ret->at[0] != 0;
        return;
    }
    for (unsigned i = 0; interpreter && i < INTERPRETERS_MOST; i++) {
        state = find_in(p, interpreter, tid);
        if (state)
            add_state(p, state, ret);
        if (!word(p, interpreter, p->layout.next_interpreter, &interpreter))
            return;
    }
}

/* ---- frames ---- */

static uint64_t first_frame(const struct python *p, uint64_t state)
{
    uint64_t at = 0;

    if (p->layout.cframe != PYTHON_ABSENT && !word(p, state, p->layout.cframe, &state))
        return 0;
    return word(p, state, p->layout.frame, &at) ? at : 0;
}

/* What is read of a frame. */
struct seen {
    uint64_t code, instruction, at; /* at: when it was there */
    uint8_t owner;
};

/* Says one frame, or a group's end; false: it could not be read. */
static bool say_frame(struct python *p, const struct seen *seen, struct runtime_frames *ret)
{
    const struct python_layout *l = &p->layout;
    const char *function, *file;
    uint32_t line;

    if (l->entry == PYTHON_SHIM && seen->owner >= l->shim) {
        runtime_end_group(ret);
        return true;
    }
    if (!python_code_find(&p->code, seen->code & ~(uint64_t)7, seen->instruction, seen->at,
                          &function, &file, &line) ||
        !runtime_put(ret, function, file, line))
        return false;
    if (l->entry == PYTHON_EACH || (l->entry == PYTHON_ENTRY && seen->owner))
        runtime_end_group(ret);
    return true;
}

/* Reads a frame that is in memory. */
static bool read_seen(const struct python *p, uint64_t at, uint32_t bytes, struct seen *ret,
                      uint64_t *ret_back)
{
    const struct python_layout *l = &p->layout;
    unsigned char frame[PYTHON_OBJECT_MOST];

    if (!memory_bytes(p->memory, at, frame, bytes) || !python_said_in(frame, l->code, &ret->code) ||
        !python_said_in(frame, l->instruction, &ret->instruction) ||
        !python_said_in(frame, l->back, ret_back))
        return false;
    ret->at = UINT64_MAX;
    ret->owner = l->owner < PYTHON_OBJECT_MOST ? frame[l->owner] : 0;
    return true;
}

/* Returns how many bytes of a frame hold what is read of it; 0: more than can be. */
static uint32_t bytes_of_frame(const struct python_layout *l)
{
    const uint32_t members[] = {l->back, l->code, l->instruction,
                                l->owner == PYTHON_ABSENT ? 0 : l->owner};
    uint32_t bytes = 8;

    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
        if (members[i] > PYTHON_OBJECT_MOST - 8)
            return 0;
        bytes = members[i] + 8 > bytes ? members[i] + 8 : bytes;
    }
    return bytes;
}

/* Up to 3.12 a structure on the stack leads to the frames, from 3.13 on the frames that separate
 * calls lie there. */
static uint64_t place_of(const struct python *p, uint64_t state)
{
    uint64_t at = first_frame(p, state), before = 0;
    uint32_t bytes = bytes_of_frame(&p->layout);

    if (p->layout.cframe != PYTHON_ABSENT)
        return word(p, state, p->layout.cframe, &at) ? at : 0;
    for (unsigned i = 0; bytes && at && p->layout.entry == PYTHON_SHIM && i < STEPS_MOST; i++) {
        struct seen seen;

        before = at;
        if (!read_seen(p, at, bytes, &seen, &at))
            return 0;
        if (seen.owner >= p->layout.shim)
            return before;
    }
    return 0;
}

/* Returns where the lock of an interpreter is; 0: not known. */
static uint64_t lock_of(const struct python *p, uint64_t interpreter)
{
    const struct python_layout *l = &p->layout;
    uint64_t gil = p->runtime;

    if (l->native_id == PYTHON_ABSENT ||
        (l->gil_pointer != PYTHON_ABSENT && !word(p, interpreter, l->gil_pointer, &gil)))
        return 0;
    return gil + l->gil_holder;
}

/* Where the frames of a thread's state are; head 0: its proof cannot be read. */
static struct runtime_chain chain_of(const struct python *p, uint64_t state)
{
    const struct python_layout *l = &p->layout;
    struct runtime_chain chain = {
        .proof_at = l->native_id == PYTHON_ABSENT ? l->pthread : l->native_id,
        .hop = l->cframe,
        .first = l->frame,
        .next = l->back,
        .words = {l->code, l->instruction},
        .byte = l->owner,
    };

    if (word(p, state, chain.proof_at, &chain.proof))
        chain.head = state;
    return chain;
}

/* Says where a thread's frames and its lock are, for who copies them. */
static void say_chain(const struct python *p, pid_t tid, uint64_t state, struct runtime_frames *ret)
{
    const struct runtime_chain chain = chain_of(p, state);

    runtime_lock(ret, lock_of(p, p->kept[(size_t)tid % THREADS_KEPT].interpreter),
                 p->layout.native_id);
    runtime_chain(ret, &chain);
}

static void read_nodes(void *state, const struct runtime_thread *thread, struct runtime_frames *ret)
{
    const char *function, *file;
    bool said = true;
    uint32_t line;
    struct python *p = state;

    runtime_set_state(ret, RUNTIME_PARTLY);
    for (uint32_t i = 0; i < thread->node_count; i++) {
        const struct runtime_node *node = &thread->nodes[i];
        const struct seen seen = {node->words[0], node->words[1], thread->began_ns,
                                  (uint8_t)node->byte};

        /* The rest is met all the same: the next wait there can have it. */
        if (said)
            said = say_frame(p, &seen, ret);
        else
            python_code_find(&p->code, seen.code & ~(uint64_t)7, seen.instruction, 0, &function,
                             &file, &line);
    }
    if (said && thread->whole)
        runtime_set_state(ret, RUNTIME_COMPLETE);
}

static bool say_state(struct python *p, uint64_t state, struct runtime_frames *ret)
{
    uint64_t at = first_frame(p, state);
    uint32_t bytes = bytes_of_frame(&p->layout);

    for (unsigned i = 0; bytes && at && i < STEPS_MOST; i++) {
        struct seen seen;

        if (!read_seen(p, at, bytes, &seen, &at) || !say_frame(p, &seen, ret))
            return false;
    }
    runtime_end_group(ret);
    return bytes && !at;
}

static void read_python(void *state, const struct runtime_process *process,
                        const struct runtime_thread *thread, struct runtime_frames *ret)
{
    struct python *p = state;
    struct states states;

    find_states(p, thread->tid, &states);
    if (!states.count)
        return;
    /* Which of several states will be the last when a wait begins nobody knows before. */
    if (!states.several)
        say_chain(p, thread->tid, states.at[0], ret);
    runtime_set_state(ret, RUNTIME_PARTLY);
    for (size_t i = 0; i < states.count; i++) {
        if (states.count > 1 && !place_of(p, states.at[i])) {
            runtime_unread(ret, "functions of a thread that runs several interpreters of Python "
                                "are read from 3.11 on");
            return;
        }
    }
    for (size_t i = 0; i < states.count; i++) {
        if (!say_state(p, states.at[i], ret))
            return;
    }
    runtime_set_state(ret, RUNTIME_COMPLETE);
}

/* Meets the functions that a thread executes. It may run meanwhile: what is not one is not kept. */
static void meet(struct python *p, uint64_t state, unsigned *left)
{
    uint32_t bytes = bytes_of_frame(&p->layout), line;
    uint64_t at = first_frame(p, state);
    const char *function, *file;
    struct seen seen;

    for (unsigned i = 0; bytes && at && i < PRCB_CHAIN_NODES && *left; i++, --*left) {
        if (!read_seen(p, at, bytes, &seen, &at))
            return;
        python_code_find(&p->code, seen.code & ~(uint64_t)7, seen.instruction, 0, &function, &file,
                         &line);
    }
}

static void list_in(struct python *p, uint64_t interpreter, unsigned *left,
                    struct runtime_threads *ret)
{
    uint64_t state = 0;

    if (!word(p, interpreter, p->layout.threads, &state))
        return;
    for (; state && p->threads && ret->count < RUNTIME_THREADS; p->threads--) {
        struct runtime_thread_chain *thread = &ret->threads[ret->count];

        ret->like = chain_of(p, state);
        *thread = (struct runtime_thread_chain){number_of(p, state), ret->like.head,
                                                ret->like.proof, lock_of(p, interpreter)};
        ret->count += thread->tid && thread->head;
        meet(p, state, left);
        if (!word(p, state, p->layout.next_thread, &state))
            return;
    }
}

/* Leaves out the threads that have run several interpreters. */
static void leave_out_shared(struct runtime_threads *ret)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < ret->count; i++) {
        bool shared = false;

        for (uint32_t k = 0; k < ret->count && !shared; k++)
            shared = k != i && abs(ret->threads[k].tid) == ret->threads[i].tid;
        ret->threads[i].tid = shared ? -ret->threads[i].tid : ret->threads[i].tid;
    }
    for (uint32_t i = 0; i < ret->count; i++) {
        if (ret->threads[i].tid > 0)
            ret->threads[count++] = ret->threads[i];
    }
    ret->count = count;
}

static void list_python(void *state, struct runtime_threads *ret)
{
    struct python *p = state;
    uint64_t interpreter = 0;
    unsigned left = MEET_MOST;

    p->threads = THREADS_MOST;
    ret->lock_number = p->layout.native_id;
    if (!word(p, p->runtime, p->layout.interpreters, &interpreter))
        return;
    for (unsigned i = 0; interpreter && i < INTERPRETERS_MOST; i++) {
        list_in(p, interpreter, &left, ret);
        if (!word(p, interpreter, p->layout.next_interpreter, &interpreter))
            return;
    }
    leave_out_shared(ret);
}

static bool read_tasks(void *state, struct tasks_answer *ret)
{
    struct python *p = state;

    return python_tasks_read(&p->code, p->runtime, ret);
}

const struct runtime runtime_python = {
    .name = "CPython",
    .symbols = symbols,
    .replaces = replaced,
    .open = open_python,
    .close = close_python,
    .read = read_python,
    .read_nodes = read_nodes,
    .list = list_python,
    .tasks = read_tasks,
};
