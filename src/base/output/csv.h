/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Lines of values with a separator between. The line begins with its first value and ends with
 * csv_end; a value that is absent is empty.
 */
#ifndef PRCB_OUTPUT_CSV_H
#define PRCB_OUTPUT_CSV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct csv {
    FILE *out;
    const char *separator;
    bool begun; /* the line has a value */
};

/* Writes a text, quoted if it must be; bytes that are no text are marked. */
void csv_text(struct csv *csv, const char *text);
/* Does the same, cut after 511 bytes. */
void csv_print(struct csv *csv, const char *format, ...) __attribute__((format(printf, 2, 3)));
void csv_number(struct csv *csv, bool known, uint64_t value);
void csv_signed(struct csv *csv, bool known, int64_t value);
/* Begins a value that the caller prints, of words and numbers; if it prints nothing, the value
 * is absent. */
void csv_next(struct csv *csv);
void csv_end(struct csv *csv);
/* Writes a line of names, up to NULL. */
void csv_names(struct csv *csv, const char *const *names);

#endif
