/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where in its own code a thread waits: of a stack the innermost function that is the program's,
 * and no library's or runtime's that waits on its behalf. No state.
 */
#ifndef PRCB_WHY_PLACE_H
#define PRCB_WHY_PLACE_H

#include <stddef.h>

#include <prcb/stack.h>

/* Returns that frame; where all functions are libraries', the innermost of those that are not the C
 * library's; NULL: no function is known. */
const struct prcb_frame *place_of(const struct prcb_stack *stack);

/* Writes "record_order()", without the types of arguments; "orders+0x1234" where the name is not
 * known. The name is another's: it is not fit to be shown yet. */
void place_name(const struct prcb_frame *frame, char *ret, size_t size);

#endif
