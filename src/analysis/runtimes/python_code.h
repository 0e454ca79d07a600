/* SPDX-License-Identifier: BSD-2-Clause
 *
 * CPython's code objects: the names and lines of functions. What was read of one is kept, with what
 * proves that it is still the same: its version, which no other has, else its names are read again.
 *
 * Threads  One set of code by one thread at a time.
 */
#ifndef PRCB_RUNTIMES_PYTHON_CODE_H
#define PRCB_RUNTIMES_PYTHON_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "memory.h"
#include "python_layouts.h"
#include "runtimes.h"
#include "table.h"

#define PYTHON_OBJECT_MOST 512u /* bytes of a frame or code object that members lie in */

struct python_code {
    const struct python_layout *layout;
    struct memory *memory;
    struct table kept;                   /* by address */
    size_t bytes;                        /* of what is kept */
    uint64_t file_object, file_question; /* the file's name that was read last, and when */
    char file[RUNTIME_NAME];
};

void python_code_deinit(struct python_code *c);

/* Finds the function of a code object, and the line of an instruction in it (as the layout counts
 * these). The texts live until the next call. False: it could not be read. */
bool python_code_find(struct python_code *c, uint64_t object, uint64_t instruction, uint64_t at,
                      const char **ret_function, const char **ret_file, uint32_t *ret_line);

/* Reads a text object as UTF-8, cut at the room for it. */
bool python_text(const struct python_code *c, uint64_t object, char ret[RUNTIME_NAME]);

/* Takes a word out of an object's bytes, of which there are PYTHON_OBJECT_MOST. */
bool python_said_in(const unsigned char *bytes, uint32_t offset, uint64_t *ret);

#endif
