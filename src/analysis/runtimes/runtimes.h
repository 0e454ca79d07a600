/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Functions of interpreters: where a thread is in the program that a runtime executes, which the
 * machine's stack shows as the interpreter's own functions. One row a runtime (`rows` in
 * runtimes.c), one reader each; offsets of a runtime's structures are data by version, each with
 * its source (python_layouts.c).
 *
 * To add a runtime: a file with its reader, which gives a `struct runtime`, and its row.
 *   - `symbols` are the names in a program's table of symbols by which it finds itself; the first
 *     proves that the runtime is there. All found are in `process->symbols`, by the same order.
 *   - open() is asked once for a process, and keeps what does not change in *ret_state.
 *   - read() is asked for each wait, before its stack is unwound: it reads by memory.h alone and
 *     says the interpreter's frames by runtime_put(), innermost first, and runtime_end_group()
 *     behind those that one call of the interpreter's own function (`replaces`) executes. Groups
 *     take the places of these functions in the machine's stack, in order.
 *   - It says by runtime_set_state() whether the thread is one of its own and all was read; what it
 *     cannot read it says by runtime_unread(), with the one step that makes it readable.
 *   - If frames are a list, it says by runtime_chain() where, and by list() of all threads: then
 *     they are copied as each wait begins, and read_nodes() says the copied ones also of waits that
 *     are over.
 *   - A runtime that has no reader yet is a row with that step alone.
 *   - A fuzz target in fuzz/ (fuzz_python.c is the model), a test beside the runtime's own witness
 *     (tests/cli/test_python_frames.py), a line in docs/interpreters.md.
 *
 * Memory and files are somebody else's and hostile: all of this runs in the sandbox's child that
 * unwinds (stack/unwinder.c), each loop has a bound, and each text that it says is checked by the
 * parent. What is read belongs to a wait only if the thread's switch count is the same before and
 * after, which the caller proves.
 *
 * Threads  A process's runtimes by one thread at a time.
 */
#ifndef PRCB_RUNTIMES_H
#define PRCB_RUNTIMES_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <prcb/numbers.h>

#include "memory.h"

#define RUNTIME_SYMBOLS 32
#define RUNTIME_FRAMES  1024
#define RUNTIME_TEXT    (64u << 10) /* bytes of names and files of one stack */
#define RUNTIME_NAME    512         /* of one, with its end */
#define RUNTIME_UNREAD  160

enum runtime_state {
    RUNTIME_NONE,     /* the thread is none of a runtime's that is read */
    RUNTIME_COMPLETE, /* all of its frames are there */
    RUNTIME_PARTLY,
};

/* A frame of an interpreter. function, file: offsets in the answer's text. */
struct runtime_frame {
    uint32_t function, file;
    uint32_t line;
    uint32_t
        at; /* the frame of the machine's stack in whose place it stands; their count: behind */
};

/* Where a thread's frames are, for who copies them as a wait begins: as struct prcb_chain. */
struct runtime_chain {
    uint64_t head, proof; /* head 0: not known */
    uint32_t proof_at, hop, first, next, words[2], byte;
};

/* A frame of these. */
struct runtime_node {
    uint64_t words[2], byte;
};

/* The same of the threads that a runtime knows, for all of which they lie alike. */
#define RUNTIME_THREADS 512
struct runtime_threads {
    struct runtime_chain like; /* but for head and proof */
    uint32_t lock_number;      /* as of struct runtime_answer, */
    uint32_t count;
    struct runtime_thread_chain {
        int32_t tid; /* as the process itself counts */
        uint64_t head, proof, lock_at;
    } threads[RUNTIME_THREADS];
};

/* What was found of one thread. */
struct runtime_answer {
    uint32_t count, text_used;
    uint32_t state; /* enum runtime_state */
    /* The runtime's lock: where a pointer to its holder is, an int behind it that is 0 while nobody
     * holds it, and how far behind the pointer the holder's thread number lies. 0: it has none. */
    uint64_t lock_at;
    uint32_t lock_number;
    struct runtime_chain chain;
    char unread[RUNTIME_UNREAD]; /* what could not be read, and the step; "": nothing */
    struct runtime_frame frames[RUNTIME_FRAMES];
    char text[RUNTIME_TEXT];
};

/* A symbol of a program or library: address 0: it has none of this name. */
struct runtime_symbol {
    uint64_t address, size;
    uint64_t word; /* the first bytes there, as the file has them */
};

struct runtime_process {
    struct memory *memory;
    struct runtime_symbol symbols[RUNTIME_SYMBOLS];
    const char *file; /* the end of the path of the file with the first symbol */
    Elf *elf;         /* that file, which stays open; NULL: there is none, in tests */
    uint64_t bias;
};

struct runtime_thread {
    pid_t tid; /* as the process itself counts */
    uint64_t sp;
    /* Its frames, which were copied as runtime_chain() said before: nothing else is read of the
     * thread. node_count 0: they were not. */
    const struct runtime_node *nodes;
    uint32_t node_count;
    bool whole;        /* the last node is the outermost */
    uint64_t began_ns; /* when they were: an object met later may be another one */
};

struct tasks_answer;   /* tasks.h */
struct runtime_frames; /* where a reader puts frames: opaque */

/* A runtime. All functions but read() may be asked before there is memory. */
struct runtime {
    const char *name;
    const char *const *symbols; /* NULL ends them; at most RUNTIME_SYMBOLS */
    /* Functions of the machine's stack; the first is symbols[1]. None: runtime_code() says. */
    const char *const *replaces;
    const char *step; /* what makes names readable that are not read; NULL: nothing */
    /* 0; -ENOTSUP: this version is not known, which read() says. */
    int (*open)(const struct runtime_process *process, void **ret_state);
    void (*close)(void *state);
    void (*read)(void *state, const struct runtime_process *process,
                 const struct runtime_thread *thread, struct runtime_frames *ret);
    /* In place of read(), after the stack was unwound: with its addresses. Each frame that it puts
     * it puts in its place, by runtime_put_in_place(). */
    void (*follow)(void *state, const struct runtime_process *process,
                   const struct runtime_thread *thread, const uint64_t *addresses, size_t count,
                   struct runtime_frames *ret);
    /* NULL, both: it says no chain */
    void (*read_nodes)(void *state, const struct runtime_thread *thread,
                       struct runtime_frames *ret);
    /* Finds all threads, and meets what they execute, which has a name from then on. */
    void (*list)(void *state, struct runtime_threads *ret);
    /* Reads the tasks that no thread is in (tasks.h). False: there are none. NULL: it has none. */
    bool (*tasks)(void *state, struct tasks_answer *ret);
};

/* Puts the next frame. False: there is no room for more. */
bool runtime_put(struct runtime_frames *frames, const char *function, const char *file,
                 uint32_t line);
/* Says in the place of which address of the stack the last frame stands. */
void runtime_put_in_place(struct runtime_frames *frames, uint32_t at);
void runtime_end_group(struct runtime_frames *frames);
void runtime_set_state(struct runtime_frames *frames, enum runtime_state state);
void runtime_lock(struct runtime_frames *frames, uint64_t at, uint32_t number);
void runtime_chain(struct runtime_frames *frames, const struct runtime_chain *chain);
/* Says where the code lies that the frames are of, where that is in no file. */
void runtime_code(struct runtime_frames *frames, uint64_t address, uint64_t size);
void runtime_unread(struct runtime_frames *frames, const char *what);
/* Reads up to `size` bytes of the file, which its process need not have touched. How many. */
size_t runtime_file(const struct runtime_process *process, uint64_t address, void *to, size_t size);

/* ---- for the unwinder ---- */

struct runtimes; /* of one process: opaque */

int runtimes_open(struct runtimes **ret);
void runtimes_close(struct runtimes *r); /* NULL is allowed */
/* Looks at the symbols of a file that the process has mapped. bias: of addresses to its own. */
void runtimes_add(struct runtimes *r, Elf *elf, uint64_t bias, const char *name);
/* Whether a runtime was found, whose memory has to be read. */
bool runtimes_any(const struct runtimes *r);
/* Owns the descriptors from here on: /proc/PID/mem and /proc/PID/pagemap. */
void runtimes_set_memory(struct runtimes *r, int mem, int pagemap);
/* Returns that memory. */
struct memory *runtimes_memory(struct runtimes *r);
/* Reads the frames of a thread that waits, before it is unwound. */
void runtimes_read(struct runtimes *r, const struct runtime_thread *thread,
                   struct runtime_answer *ret);
/* Lists the threads whose frames can be copied; of the first runtime that has any. */
void runtimes_list(struct runtimes *r, struct runtime_threads *ret);
/* Reads the tasks of the first runtime that has any. False: none has. */
bool runtimes_tasks(struct runtimes *r, struct tasks_answer *ret);

/* The name of the function that an address lies in; "": not known. */
typedef void (*runtimes_name_fn)(void *ctx, uint64_t address, char *ret, size_t size);
/* Says in whose places the frames stand. */
void runtimes_place(struct runtimes *r, const uint64_t *addresses, size_t count,
                    runtimes_name_fn name, void *ctx, struct runtime_answer *answer);

/* The same of the threads that one row lists, and of its tasks. */
void runtime_list(const struct runtime *row, const struct runtime_process *process,
                  struct runtime_threads *ret);
bool runtime_tasks(const struct runtime *row, const struct runtime_process *process,
                   struct tasks_answer *ret);
/* Reads a thread's frames by one row, without a program's files, for tests. addresses: of its
 * stack, for one that follows it. */
void runtime_read(const struct runtime *row, const struct runtime_process *process,
                  const struct runtime_thread *thread, const uint64_t *addresses, size_t count,
                  struct runtime_answer *ret);

extern const struct runtime runtime_java, runtime_node, runtime_python, runtime_ruby;

#endif
