/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Tasks that a runtime switches between by itself: goroutines, asyncio's. While they wait no thread
 * is in them, so that no thread's stack shows them: they are read in the runtime's own tables, all
 * of a process at once, and counted by where they are.
 *
 * Nothing is stopped. A task is read twice, and counts only if both times show the same: what it
 * is in, where, and each return address on its stack.
 *
 * Memory and files are somebody else's and hostile, as for runtimes.h; all of this runs in the
 * sandbox's child that unwinds.
 *
 * Threads  A process's tasks by one thread at a time.
 */
#ifndef PRCB_RUNTIMES_TASKS_H
#define PRCB_RUNTIMES_TASKS_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "go_table.h"
#include "memory.h"
#include "table.h"

#define TASKS_MOST   65536 /* that are looked at; the rest is counted only */
#define TASKS_GROUPS 64    /* that are told, the largest; the rest is counted only */
#define TASKS_FRAMES 2048  /* of all groups */
#define TASKS_WORDS  512   /* that say where one is */
#define TASKS_BATCH  64    /* that are looked at between two questions: their pages are kept */
#define TASKS_TEXT   (128u << 10)
#define TASKS_UNREAD 128

/* Offsets in the answer's text. */
struct tasks_frame {
    uint32_t function, file, line;
};

/* Tasks that are in the same state at the same place. */
struct tasks_group {
    uint32_t count, state;  /* state: its words, as the runtime says them */
    uint32_t locked;        /* a lock keeps them from work that they have */
    uint32_t first, frames; /* of the answer's frames, innermost first */
    uint32_t complete;      /* the outermost frame is the last */
};

struct tasks_answer {
    char kind[24];             /* "goroutines" */
    char runtime[32];          /* "Go 1.19.8" */
    char unread[TASKS_UNREAD]; /* why there are none; "": they were read */
    uint32_t total;            /* that the runtime lists, ended ones left out */
    uint32_t own;              /* of these, the runtime's own, which are in no group */
    uint32_t moved;            /* that ran while they were read */
    uint32_t beyond;           /* that were not looked at, or are in no group that is told */
    uint32_t group_count, frame_count, text_used;
    struct tasks_group groups[TASKS_GROUPS];
    struct tasks_frame frames[TASKS_FRAMES];
    char text[TASKS_TEXT];
};

/* ---- goroutines ---- */

struct tasks; /* of one process: opaque */

/* Looks for tasks in a program with a table of Go's functions. 0 or -ENOMEM. The file stays the
 * caller's, and open. */
int tasks_open(Elf *elf, uint64_t bias, const struct go_table *table, struct tasks **ret);
void tasks_close(struct tasks *t); /* NULL is allowed */
/* Says Go's release, and where the data of a program lies that is no file, for tests. */
void tasks_set_place(struct tasks *t, uint32_t minor, uint64_t data, uint64_t size);
/* Whose memory has still to be set: mem and pagemap, owned from then on, or a fetch. */
struct memory *tasks_memory(struct tasks *t);
void tasks_read(struct tasks *t, struct tasks_answer *ret);

/* ---- for readers ---- */

/* What a task is in. All zero but for what a reader says. */
struct task_seen {
    uint64_t id;    /* tasks of one group are in order of it */
    uint64_t hash;  /* of where it is, */
    uint64_t proof; /* and of what another task there has otherwise */
    uint32_t status, reason;
    uint32_t steps, count; /* count: of words, of the innermost of steps */
    bool there;            /* it has begun, and not ended */
    bool complete, own;    /* own: the runtime's */
    uint64_t words[TASKS_WORDS];
};

struct task_put; /* a group that is being told: opaque */

struct task_reader {
    /* Reads what a task is in. False: it is none. */
    bool (*read)(void *ctx, uint64_t address, struct task_seen *ret);
    /* Says what and where that is: its state, then its frames, the innermost first. */
    void (*put)(void *ctx, const struct task_seen *seen, struct task_put *put);
};

/* Tasks by what they are in. All zero is none. */
struct task_groups {
    struct memory *memory;
    const struct task_reader *reader;
    void *ctx; /* the reader's */
    struct task_group *groups;
    size_t count, room;
    struct table by_hash;
};

/* Begins an answer. format: of the runtime's name. */
__attribute__((format(printf, 3, 4))) void tasks_begin(struct tasks_answer *ret, const char *kind,
                                                       const char *format, ...);
void task_groups_begin(struct task_groups *g, struct memory *memory,
                       const struct task_reader *reader, void *ctx);
void task_groups_deinit(struct task_groups *g);
/* Looks at up to TASKS_BATCH tasks twice, each time in a question of its own. */
void task_groups_read(struct task_groups *g, uint64_t *addresses, uint32_t count,
                      struct tasks_answer *ret);
/* Tells the largest groups, when all were read. */
void task_groups_put(struct task_groups *g, struct tasks_answer *ret);
void task_put_state(struct task_put *put, const char *state);
/* function NULL: it is not known. lock: who is in it waits for a lock. */
void task_put_frame(struct task_put *put, const char *function, const char *file, uint32_t line,
                    bool lock);

#endif
