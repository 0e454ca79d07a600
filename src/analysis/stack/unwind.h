/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Unwinds a copy of a stack to its frames, by the call frame information of the files that are
 * mapped (.eh_frame, .debug_frame), with libdw; where there is none, by frame pointers. It reads
 * nothing but the copy and the files it was handed, all of which are hostile: callers run it in
 * a process that has nothing to lose.
 *
 * Threads  An image by one thread at a time.
 */
#ifndef PRCB_STACK_UNWIND_H
#define PRCB_STACK_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frozen.h"

/* A file that a process has mapped. */
struct image_file {
    uint64_t start;   /* where its first page (offset 0 in the file) is mapped */
    int fd;           /* plain file; belongs to the image from image_add on, also on failure */
    const char *path; /* for names only; not opened */
};

struct runtimes;    /* runtimes.h */
struct span_places; /* spans.h */
struct tasks;       /* tasks.h */
struct image;       /* what one process has mapped: opaque */

/* Asks for the debug information of a build id, which has the names of functions that a file
 * does not export. Returns a descriptor, which the image then owns, or -1. */
struct image_debug {
    int (*open)(void *ctx, const unsigned char *id, size_t length);
    void *ctx;
};

/* debug NULL: nobody. */
int image_open(const struct image_debug *debug, struct image **ret);
void image_close(struct image *image); /* NULL is allowed */
/* -EINVAL: no ELF file, or one of another kind of processor. */
int image_add(struct image *image, const struct image_file *file);
/* Call it after the last image_add and before the first image_unwind. -ENOENT: no file could be
 * used. */
int image_ready(struct image *image);

enum stack_end {
    STACK_COMPLETE, /* the outermost frame was reached: _start, clone, or what the CFI says is last
                     */
    STACK_SHORT,    /* the copy ended before the stack did: copy more */
    STACK_BROKEN,   /* no information for the last frame's address */
    STACK_DEEP,     /* there was no more room in frames */
};

/* Finds the addresses of the calls, innermost first; for all but the innermost it is the last
 * byte of the call, so that each lies in the function and line that made the call. Returns how
 * many; at least 1. */
size_t image_unwind(struct image *image, const struct frozen *frozen, uint64_t *frames, size_t room,
                    enum stack_end *ret_end);

/* Lets libdw follow all rules, as it does those that are in no simple form, for tests. */
void image_set_slow(struct image *image);

/* A word of the copy, as it is there. */
struct stack_word {
    uint64_t address, value;
};
#define STACK_WORDS 192

/* Returns the words that the last unwinding went by: another copy with the same registers that has
 * all of them has the same frames. NULL: there were more, or all of the copy was looked at.
 * *ret_used_fp: the frame pointer is one of these registers. */
const struct stack_word *image_words(const struct image *image, size_t *ret_count,
                                     bool *ret_used_fp);

/* Returns the runtimes of the process, which are the image's; NULL: not known. */
struct runtimes *image_runtimes(struct image *image);
/* Where the files have the variable that publishes spans. */
const struct span_places *image_spans(const struct image *image);

/* Returns the tasks of the process's first program of Go; NULL: it has none, or no memory. */
struct tasks *image_tasks(struct image *image);

/* Finds the function that an address lies in, as the symbol table spells it; "": not known. */
void image_name(struct image *image, uint64_t address, char *ret, size_t size);
/* Finds its line of source, and returns that; *ret: the file; 0: not known. */
unsigned image_line(struct image *image, uint64_t address, char *ret, size_t size);

#endif
