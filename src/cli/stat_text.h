/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Figures and names as text for people: times with a unit, shares in percent,
 * thread names made safe. All results go to the caller's buffer.
 */
#ifndef PRCB_CLI_STAT_TEXT_H
#define PRCB_CLI_STAT_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define STAT_CELL 64 /* bytes that hold any one cell of a table */

/* Three digits and a unit: "1.23s", "45.6ms", "789us"; 0 is "0". Never longer
 * than needed; whole seconds above 1000 s. */
void stat_text_time(uint64_t ns, char *ret, size_t size);
/* "42 %", "4.2 %", "0 %", "under 0.1 %". whole 0: "-". */
void stat_text_share(uint64_t part, uint64_t whole, char *ret, size_t size);
/* A thread name with control characters and broken UTF-8 as '?': thread names are
 * free text of the profiled program, and the reader's terminal is ours. */
void stat_text_comm(const char *comm, char *ret, size_t size);
/* The same for JSON: what is no UTF-8 becomes U+FFFD, the rest stays. */
void stat_text_utf8(const char *text, char *ret, size_t size);
/* Columns that a text takes on a terminal: characters, not bytes. */
size_t stat_text_width(const char *text);
/* "1 thread", "3 threads". */
void stat_text_count(uint64_t count, const char *word, const char *words, char *ret, size_t size);

/* Writes one value of a CSV line, quoted as RFC 4180 has it where the text would be taken for more
 * than one. */
void stat_text_csv(FILE *out, const char *text, const char *separator);

/* Columns to fill: COLUMNS if set, the terminal's width if it is one, else 120. */
size_t stat_text_columns(FILE *out);

#endif
