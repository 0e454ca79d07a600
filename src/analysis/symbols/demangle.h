/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The names that C++ and Rust programs have in their source, from those in their symbol
 * tables. Any number of threads.
 */
#ifndef PRCB_SYMBOLS_DEMANGLE_H
#define PRCB_SYMBOLS_DEMANGLE_H

#include <stddef.h>

#define DEMANGLED_MAX 4096 /* bytes, the NUL among them */

/* Returns the name with its parameters, in buffer (DEMANGLED_MAX bytes), or the symbol's name
 * itself if it is no such name, if the name in the source is longer than that, or if prcb was
 * built without libiberty. */
const char *demangle(const char *symbol, char *buffer);

#endif
