/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Figures as text for people: times with a unit, shares in percent. All results go to the caller's
 * buffer.
 */
#ifndef PRCB_OUTPUT_FORMAT_H
#define PRCB_OUTPUT_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define FORMAT_CELL 64 /* bytes that hold any one cell of a table */

/* Writes three digits and a unit: "1.23s", "45.6ms", "789us"; 0 is "0". It is never longer than
 * needed; whole seconds above 1000 s. */
void format_time(uint64_t ns, char *ret, size_t size);
/* Writes "42 %", "4.2 %", "0 %", "under 0.1 %". whole 0: "-". */
void format_share(uint64_t part, uint64_t whole, char *ret, size_t size);
/* Returns how many columns a text takes on a terminal: characters, not bytes. */
size_t format_width(const char *text);
/* Cuts a text to at most so many columns. */
void format_cut(char *text, size_t width);
/* Returns how many bytes of a text fit a width, cut behind a blank, or within
 * a word that is wider. */
size_t format_fits(const char *text, size_t width);
/* Writes a text and a line's end; what is behind the columns on further lines, below its beginning,
 * which is at indent. */
void format_lines(FILE *out, const char *text, size_t indent, size_t columns);
/* Writes "1 thread", "3 threads". */
void format_count(uint64_t count, const char *word, const char *words, char *ret, size_t size);

/* Returns the columns to fill: COLUMNS if set, the terminal's width if it is one, else 120. */
size_t format_columns(FILE *out);

#endif
