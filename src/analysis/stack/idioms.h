/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a stack tells about a wait, in a word: mutex, GIL, event loop; and whether the wait is
 * idling by design. It is only a table of names (idioms.def): a thread that idles in a way that
 * is not in it counts as blocked. Any thread may call.
 */
#ifndef PRCB_STACK_IDIOMS_H
#define PRCB_STACK_IDIOMS_H

#include <stddef.h>

enum idiom_kind {
    IDIOM_BLOCKED, /* something keeps it from work that it has */
    IDIOM_IDLE,    /* nothing to do, by design */
    IDIOM_EITHER,  /* the way it waits serves both */
};

struct idiom {
    enum idiom_kind kind;
    const char *word;
    const char *inner, *outer;
};

/* The same of what an interpreter runs, by rows of their own, which say more than a wait that
 * serves both, or idles, does. functions, files: its frames, innermost first. NULL: no row fits. */
const struct idiom *idiom_find_source(const char *const *functions, const char *const *files,
                                      size_t count);

/* functions: names, innermost first; NULL or "": not known. NULL: no row fits. */
const struct idiom *idiom_find(const char *const *functions, size_t count);
/* Does the same for the kernel's functions of a stack: what they wait for, which is no idling. */
const char *idiom_kernel_word(const char *const *functions, size_t count);

#endif
