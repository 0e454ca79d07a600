/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Processor blocks in mapped memory: from the file descriptor of a map, whoever loaded the programs
 * that write it, to figures. Reads only; no program, no procfs.
 */
#ifndef PRCB_PROCESSORS_PROCESSOR_MAP_H
#define PRCB_PROCESSORS_PROCESSOR_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include <prcb/error.h>

#include "processor_abi.h"
#include "processor_parts.h"

struct bpf_object;
struct prcb_processors;
struct processor_programs;

struct processor_map {
    const char *memory; /* mapped read-only */
    size_t bytes;
    uint32_t count, stride, block_size, features; /* of the head */
    const struct prcb_processor_thread *threads;  /* on each; NULL: not to be seen */
};

/* Maps the map behind fd, which stays the caller's. -EPROTO: it is none that this library can
 * read. */
int processor_map_open(int fd, struct processor_map *ret, struct prcb_error *err);
/* The threads of its processors, behind a map of their own. -errno of mmap(2). */
int processor_map_add_threads(struct processor_map *map, int fd, struct prcb_error *err);
void processor_map_close(struct processor_map *map);

/* The moment, on the writer's clock, at which the programs were stopped; 0: they count. */
uint64_t processor_map_ended(const struct processor_map *map);

/* Makes a consistent copy of the first bytes (a multiple of 8) of a block; what the writer does not
 * have is 0. -EAGAIN: it was inconsistent for 20 ms. *retries grows by the passes thrown away. */
int processor_block_copy(const struct processor_map *map, uint32_t number, size_t bytes,
                         struct prcb_processor_block *ret, uint32_t *retries);

/* The whole block and, where the map has threads, the thread that goes with it. */
int processor_block_copy_with_thread(const struct processor_map *map, uint32_t number,
                                     struct prcb_processor_block *ret,
                                     struct prcb_processor_thread *ret_thread, uint32_t *retries);

/* Bytes that processor_block_times needs. */
#define PROCESSOR_TIMES_BYTES 112

/* Tells the times of a copy at a moment of the writer's clock; *live is the part that grows. */
void processor_block_times(const struct prcb_processor_block *copy, uint64_t now, struct parts *ret,
                           enum part *live);

/* The time that interrupts and softirqs have taken from the processor until now. */
uint64_t processor_block_interrupted(const struct prcb_processor_block *copy, uint64_t now);

/* ---- who writes them: processor_programs.c, in builds with the bpf tier ---- */

/* Loads the programs, attaches them, starts them on each of the machine's count possible
 * processors and maps their blocks. *ret as well as *ret_map is to be closed, whatever the result;
 * both are to be zeroed before. times: blocks are kept; else only what tells by whom
 * (by_here.bpf.h), and nothing is run at switches. */
int processor_programs_open(uint32_t count, bool times, struct processor_programs **ret,
                            struct processor_map *ret_map, struct prcb_error *err);
/* Does the same in two steps: what costs nothing yet and what needs to load no programs any more.
 * *ret is to be closed, whatever the result. map: of blocks that nothing was written to yet, for
 * others that were loaded with it; -1: a new one. */
int processor_programs_load(uint32_t count, int map, bool times, struct processor_programs **ret,
                            struct prcb_error *err);
int processor_programs_attach(struct processor_programs *programs, struct processor_map *ret_map,
                              struct prcb_error *err);
/* Before they are attached: the program at switches, which costs most, is left to be attached by
 * its descriptor (processor_programs_events). Until then blocks tell of neither switches nor
 * threads, and nobody should read them; by whom and interrupts' times are kept. */
void processor_programs_switches_later(struct processor_programs *programs);
void processor_programs_close(struct processor_programs *programs);
/* The programs as compiled, by which a build is identified. */
const void *processor_programs_elf(size_t *ret_bytes);
int processor_programs_map_fd(const struct processor_programs *programs);
/* The map of a view's own programs; -1: it has none. */
int processors_programs_map(const struct prcb_processors *view);
/* Returns their object, for bpf_run.h; borrowed. */
const struct bpf_object *processor_programs_object(const struct processor_programs *programs);
/* Calls keep with each of these. Stops at a result that is not 0 and returns it. */
int processor_programs_events(const struct processor_programs *programs,
                              int (*keep)(int fd, const char *name, void *ctx), void *ctx);
/* Of the threads. */
int processor_programs_threads_fd(const struct processor_programs *programs);
/* The program that marks the blocks as ended, to be run before the others are detached. */
int processor_programs_end_fd(const struct processor_programs *programs);
/* Calls keep with each descriptor that holds a program in its place. Stops at a result that is not
 * 0 and returns it. */
int processor_programs_links(const struct processor_programs *programs,
                             int (*keep)(int fd, void *ctx), void *ctx);

#endif
