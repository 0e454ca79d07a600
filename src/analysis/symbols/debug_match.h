/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Whether a file that was found as a module's separate debug information is that. What servers
 * send, and what others keep, may be anything; libdw takes what it is given, and has no names at
 * all where that cannot be read. Files are hostile: see source_line.h. Threads: any number.
 */
#ifndef PRCB_SYMBOLS_DEBUG_MATCH_H
#define PRCB_SYMBOLS_DEBUG_MATCH_H

#include <stddef.h>

/* Returns the descriptor; -1, and closes it, if its file has not this build id. */
int debug_match(int fd, const void *id, size_t length);

#endif
