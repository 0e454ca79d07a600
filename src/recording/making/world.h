/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The threads that exist at a moment of the recording and the mappings of their processes,
 * updated record by record and written as they change. Memory is used only for the living: what
 * has ended is forgotten.
 */
#ifndef PRCB_RECORD_WORLD_H
#define PRCB_RECORD_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "writer.h"

struct world;

int world_open(struct writer *writer, struct world **ret);
void world_close(struct world *world); /* NULL is allowed */

/* Returns the row of a thread, made if there is none, with what it does then: "running", or NULL
 * if that is not known. 0: no memory. */
int64_t world_thread(struct world *world, int32_t pid, int32_t tid, uint64_t time_ns,
                     const char *state);

/* Returns the thread's row if there is one, else 0. */
int64_t world_known_thread(const struct world *world, int32_t pid, int32_t tid);

/* Whether threads of the process are recorded. */
bool world_knows_process(struct world *world, int32_t pid);

/* Writes what a thread did when the recording began; a thread that is not known is left out. 0
 * or -errno. */
int world_state(struct world *world, int32_t pid, int32_t tid, const struct writer_state *state);

int world_fork(struct world *world, int32_t parent_pid, int32_t parent_tid, int32_t pid,
               int32_t tid, uint64_t time_ns);
int world_exit(struct world *world, int32_t pid, int32_t tid, uint64_t time_ns);
/* exec: the thread goes on as another program: it gets a row of its own, and nothing is
 * mapped in its process any more. */
int world_name(struct world *world, int32_t pid, int32_t tid, const char *name, bool exec,
               uint64_t time_ns);
/* Adds a map, of which map->id and map->uid are set here. */
int world_map(struct world *world, const struct writer_map *map);

/* Reads from /proc what is there before anything is recorded: one process, or (0) all. Processes
 * that end meanwhile are left out. */
int world_look(struct world *world, int32_t pid, uint64_t time_ns);
/* Reads one thread from /proc; maps: also the mappings of its process. */
int world_look_at_thread(struct world *world, int32_t pid, int32_t tid, bool maps,
                         uint64_t time_ns);

struct prcb_frame;
/* Whether a process now has the frame's file mapped at the frame's place. */
bool world_has_at(struct world *world, int32_t pid, const struct prcb_frame *frame);

/* Returns the stack row of a frame under its caller (0: outermost), in a process; it is written
 * when it is new. 0: it could not be written. */
int64_t world_frame(struct world *world, int32_t pid, int64_t caller, bool kernel,
                    uint64_t address);
/* Does the same for a function of the kernel of which only the name is known. Names are compared
 * by address: the caller keeps one copy of each, which lasts as long as the world. */
/* The same for a function that an interpreter runs; its texts last as long as the recording. */
int64_t world_source_frame(struct world *world, int64_t caller, const struct prcb_frame *frame);
int64_t world_kernel_frame(struct world *world, int64_t caller, const char *name);

#endif
