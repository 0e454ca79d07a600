/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Functions that a just-in-time compiler has made, from its list (/tmp/perf-PID.map). The list
 * is somebody else's: it is read where nothing can be lost, as unwind.h says.
 */
#ifndef PRCB_STACK_MADE_CODE_H
#define PRCB_STACK_MADE_CODE_H

#include <stddef.h>
#include <stdint.h>

struct made_code {
    struct made_function {
        uint64_t start, end;
        size_t order; /* in the list: of newer code the later */
        char *name;
    } * rows; /* by start */
    size_t count;
};

/* Owns the descriptor from here on. Lines that cannot be read, or find no memory, are left out. */
void made_code_read(int fd, struct made_code *ret);
void made_code_free(struct made_code *code);

/* NULL: none has the address. */
const char *made_code_find(const struct made_code *code, uint64_t address);

#endif
