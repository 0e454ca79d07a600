/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The line of source that an address of a module was compiled from, by its debug information, which
 * is read for it. Files are hostile: callers run this in a process that has nothing to lose.
 *
 * Threads  A module by one thread at a time.
 */
#ifndef PRCB_SYMBOLS_SOURCE_LINE_H
#define PRCB_SYMBOLS_SOURCE_LINE_H

#include <stdbool.h>

#include <elfutils/libdwfl.h>

struct source_line {
    const char *file; /* the module's */
    int number;
    Dwarf_Die *unit; /* that was compiled with it, the module's */
    Dwarf_Addr bias; /* of addresses, over those in the unit */
};

/* False: none is known; *ret is unchanged. */
bool source_line_find(Dwfl_Module *module, Dwarf_Addr address, struct source_line *ret);
/* Finds the line that the function which was compiled is at: where others were inlined into it, the
 * outermost one's call. */
bool source_line_of_function(Dwfl_Module *module, Dwarf_Addr address, struct source_line *ret);

#endif
