/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Tasks that a runtime switches between by itself: goroutines. While they wait no thread is in
 * them, so that no thread's stack shows them: they are read in the runtime's own tables, all of a
 * process at once, and counted by where they are.
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

#define TASKS_MOST   65536 /* that are looked at; the rest is counted only */
#define TASKS_GROUPS 64    /* that are told, the largest; the rest is counted only */
#define TASKS_FRAMES 2048  /* of all groups */
#define TASKS_STACK  48    /* of one */
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

#endif
