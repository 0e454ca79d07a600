/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Unwinds frozen stacks and names their frames in a sandbox's child: other people's programs and
 * libraries are parsed there and nowhere else. A child that takes too long or dies is replaced;
 * the process that it was working on is given up, and the other images are handed to the next
 * child as they are needed.
 *
 * Threads  One unwinder by one thread at a time.
 */
#ifndef PRCB_STACK_UNWINDER_H
#define PRCB_STACK_UNWINDER_H

#include <stddef.h>
#include <stdint.h>

#include <prcb/prcb.h>

#include "frozen.h"
#include "process.h"
#include "runtimes.h"
#include "spans.h"
#include "tasks.h"
#include "unwind.h"

#define UNWINDER_IMAGES     64         /* processes at once */
#define UNWINDER_FRAMES     1024       /* of one stack */
#define UNWINDER_BYTES_MOST (1u << 20) /* of one stack */
#define UNWINDER_NAME       1024       /* a function's name, with its end */

struct unwinder;

/* flags: enum prcb_stacks_flag. */
int unwinder_open(uint32_t flags, struct unwinder **ret, struct prcb_error *err);
void unwinder_close(struct unwinder *u); /* NULL is allowed */

/* Replaces image number by what the process has mapped. 0; -ENOENT: nothing to unwind with;
 * -EIO: the child did not manage it. The files stay the caller's. */
int unwinder_image(struct unwinder *u, unsigned image, pid_t pid,
                   const struct process_files *files);

/* Returns where to copy a stack: its frozen.bytes and .room belong to the unwinder. */
struct frozen *unwinder_frozen(struct unwinder *u);

/* Finds the frames of the stack that was copied there; ret has UNWINDER_FRAMES. tid: of the waiting
 * thread, as its own process counts: the frames of its interpreter are read, too, which belong to
 * the wait if they were copied with it (frozen.nodes) or it lasts when this returns; 0: they are
 * not. robust: the address of its list of
 * robust locks: its span is read in the same way; NULL: it is not. -EIO: as above. -ESTALE: the
 * image is gone with a child that was replaced: set it again. */
int unwinder_unwind(struct unwinder *u, unsigned image, pid_t tid, const uint64_t *robust,
                    uint64_t *ret, size_t *ret_count, enum stack_end *ret_end);

/* Returns the words that the last unwinding went by, as image_words; NULL: they are not known. */
const struct stack_word *unwinder_words(const struct unwinder *u, size_t *ret_count,
                                        bool *ret_used_fp);
/* Returns what the last unwinding found of the interpreter: its offsets lie within its text, whose
 * parts end, and its places within the stack, in order. */
const struct runtime_answer *unwinder_runtime(const struct unwinder *u);
const struct span_answer *unwinder_span(const struct unwinder *u);
/* Whether spans are asked for, and something in the process publishes them. */
bool unwinder_has_spans(const struct unwinder *u, unsigned image);
/* Whether the process has an interpreter whose frames are read. */
bool unwinder_has_runtime(const struct unwinder *u, unsigned image);

/* Finds the threads of the process's interpreter: numbers and addresses are as it says. -ENOENT: it
 * has none; else as above. */
int unwinder_threads(struct unwinder *u, unsigned image, struct runtime_threads *ret);

/* Finds the tasks of a process, which the image is of: what is handed out holds together, and is
 * the unwinder's until the next question. -ENOENT: it has no runtime with tasks; else as above. */
int unwinder_tasks(struct unwinder *u, unsigned image, pid_t pid, const struct tasks_answer **ret);

/* Finds the function that an address of the image lies in; "": not known. Errors as
 * unwinder_unwind. */
int unwinder_name(struct unwinder *u, unsigned image, uint64_t address, char ret[UNWINDER_NAME]);
/* Finds the file and line of source that it was compiled from; *ret_line 0: not known. */
int unwinder_line(struct unwinder *u, unsigned image, uint64_t address, char ret[UNWINDER_NAME],
                  uint32_t *ret_line);

uint64_t unwinder_cpu_ns(const struct unwinder *u);

#endif
