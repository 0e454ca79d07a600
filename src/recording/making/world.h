/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The threads that exist at a moment of the recording and what is mapped in their
 * processes, brought up to date record by record and written as it changes. Memory
 * is that of the living: what has ended is forgotten.
 */
#ifndef PRCB_RECORD_WORLD_H
#define PRCB_RECORD_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "writer.h"

struct world;

int world_open(struct writer *writer, struct world **ret);
void world_close(struct world *world); /* NULL is allowed */

/* The row of a thread, made if there is none, with what it does then: "running", or NULL where that
 * is not known. 0: no memory. */
int64_t world_thread(struct world *world, int32_t pid, int32_t tid, uint64_t time_ns,
                     const char *state);

/* Its row if there is one, else 0. */
int64_t world_known_thread(const struct world *world, int32_t pid, int32_t tid);

/* What a thread did when the recording began; one that is not known is left out. 0 or -errno. */
int world_state(struct world *world, int32_t pid, int32_t tid, const struct writer_state *state);

int world_fork(struct world *world, int32_t parent_pid, int32_t parent_tid, int32_t pid,
               int32_t tid, uint64_t time_ns);
int world_exit(struct world *world, int32_t pid, int32_t tid, uint64_t time_ns);
/* exec: the thread goes on as another program: it gets a row of its own, and nothing is
 * mapped in its process any more. */
int world_name(struct world *world, int32_t pid, int32_t tid, const char *name, bool exec,
               uint64_t time_ns);
/* map->id and map->uid are set here. */
int world_map(struct world *world, const struct writer_map *map);

/* What is there before anything is recorded, from /proc: one process, or (0) all. Processes
 * that end meanwhile are left out. */
int world_look(struct world *world, int32_t pid, uint64_t time_ns);
/* One thread; maps: and where its process has what. */
int world_look_at_thread(struct world *world, int32_t pid, int32_t tid, bool maps,
                         uint64_t time_ns);

/* The stack row of a frame under its caller (0: outermost), in a process; written when it
 * is new. 0: it could not be. */
int64_t world_frame(struct world *world, int32_t pid, int64_t caller, bool kernel,
                    uint64_t address);
/* The same of a function of the kernel of which only the name is known. Names are told apart by
 * where they lie: one copy of each, which lasts as long as the world. */
int64_t world_kernel_frame(struct world *world, int64_t caller, const char *name);

#endif
