/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Files of one line, of which procfs and sysfs have many.
 */
#ifndef PRCB_BASE_FIRST_LINE_H
#define PRCB_BASE_FIRST_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the first line of a file, as far as there is room, without its end. False: it cannot be
 * read, or is empty; ret is then of no use. */
bool first_line(const char *path, char *ret, size_t size);
/* Reads the number that a file's first line starts with. False: there is none; *ret is
 * unchanged. */
bool first_number(const char *path, uint64_t *ret);

/* Reads the first line that starts with a word, without the word; word "": the first line. False:
 * there is none. */
bool line_after(const char *path, const char *word, char *ret, size_t size);

#endif
