/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where in its own code a thread waits: of a stack the innermost function that is the program's,
 * and no library's or runtime's that waits on its behalf. No state.
 */
#ifndef PRCB_WHY_PLACE_H
#define PRCB_WHY_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include <prcb/stack.h>

#include "why.h"

/* Returns that frame, and in *ret_by the one that called it, if that is the program's too; where
 * all are libraries', the innermost of those that are neither the C library's nor a runtime's.
 * NULL: no function is known, or they are a runtime's, of which it does not matter where they are.
 */
const struct prcb_frame *place_of(const struct prcb_stack *stack, const struct prcb_frame **ret_by);

/* Writes "orders.py:31", the line that a function is at; "": not known. */
void place_line(const struct prcb_frame *frame, char *ret, size_t size);

/* The same of a part; NULL also where it has no stack. */
const struct prcb_frame *place_of_part(const struct why_part *part,
                                       const struct prcb_frame **ret_by);

/* Whether that frame is a function that an interpreter runs. */
bool place_is_interpreted(const struct why_part *part);

/* Returns the kernel's function in which a part waits, the innermost that the kernel shows (not
 * those of its scheduler and locks); NULL: it is not known. The name is the kernel's. */
const char *place_in_kernel(const struct why_part *part);

/* Writes "record_order()", without the types of arguments; "orders+0x1234" where the name is not
 * known. The name is another's: it is not fit to be shown yet. */
void place_name(const struct prcb_frame *frame, char *ret, size_t size);
/* The same of a part; "": no place is known. */
void place_text(const struct why_part *part, char *ret, size_t size);

#endif
