/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Separate debug information of programs and libraries, by their build id: where distributions
 * install it, and, for who asks for that, where debuginfod's client keeps what it has fetched.
 * Nothing is fetched here. Threads: any number.
 */
#ifndef PRCB_BASE_DEBUG_FILE_H
#define PRCB_BASE_DEBUG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#define DEBUG_FOLDER "/usr/lib/debug" /* only root can write there */

/* build_id: hexadecimal digits, as somebody else may have written them. Returns the place of the
 * file (reach.h), or -errno. fetched: what debuginfod's client has, too, if the file is this
 * user's or root's. */
int debug_file_open(const char *build_id, bool fetched);
/* Finds the folder in which debuginfod's client keeps what it fetches (DEBUGINFOD_CACHE_PATH, or
 * below the home directory). False: there can be none. */
bool debug_file_cache(char *ret, size_t size);

#endif
