/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Stacks that were unwound before. Which frames a stack has follows from the registers, from the
 * words of it that the unwinding went by, and from the files that are mapped: if all of these are
 * the same again, so are the frames. Threads that serve wait at the same places of the same depth
 * thousands of times a second, and need not be unwound each time.
 *
 * Threads  One set by one thread at a time.
 */
#ifndef PRCB_STACK_ALIKE_H
#define PRCB_STACK_ALIKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frozen.h"
#include "unwind.h"

/* What a stack is of: a process, as it was read this time. */
struct alike_key {
    uint64_t identity, reading;
};

/* What an unwinding went by, as image_words. */
struct alike_words {
    const struct stack_word *words;
    size_t count;
    bool used_fp;
};

struct alike; /* opaque */

/* Returns what was kept of a stack like this; NULL: nothing. */
const void *alike_find(const struct alike *alike, struct alike_key key,
                       const struct frozen *frozen);
/* Keeps it in place of others, if there is memory. *alike is NULL at first. */
void alike_keep(struct alike **alike, struct alike_key key, const struct frozen *frozen,
                const struct alike_words *by, const void *kept);
void alike_free(struct alike *alike); /* NULL is allowed */

#endif
