/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes a table as a Parquet file: numbers and texts, optional columns, row groups with
 * statistics, dictionaries for texts, pages in zstd where prcb was built with it. No nested
 * columns. The encoding is of its published description,
 * https://parquet.apache.org/docs/file-format/.
 *
 * A row is put column by column, all of them, then ended. A row group is in memory, not the file.
 *
 * Threads  One at a time.
 * Errors   A failure sticks until parquet_close returns it; write errors stay in the stream.
 */
#ifndef PRCB_RECORD_PARQUET_H
#define PRCB_RECORD_PARQUET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum parquet_type {
    PARQUET_NUMBER,   /* 64 bits with a sign */
    PARQUET_TIME,     /* the same: nanoseconds since 1970 */
    PARQUET_TEXT,     /* UTF-8 */
    PARQUET_TYPE_MAX, /* ends a table's columns */
};

struct parquet_column {
    const char *name;
    enum parquet_type type;
};

struct parquet;

#define PARQUET_GROUP_ROWS 131072u
#define PARQUET_UNSORTED   SIZE_MAX

/* columns: as many as there are before one of PARQUET_TYPE_MAX; borrowed. sorted: the number of the
 * column by which each group's rows are sorted, if all have a number there. */
int parquet_open(FILE *out, const struct parquet_column *columns, size_t sorted,
                 struct parquet **ret); /* 0 or -ENOMEM */
int parquet_close(struct parquet *p);   /* 0 or -ENOMEM */
/* Frees it without an end to the file. NULL is allowed. */
void parquet_abort(struct parquet *p);

/* These put the row's next value. */
void parquet_number(struct parquet *p, int64_t value);
void parquet_text(struct parquet *p, const char *text); /* made UTF-8; NULL: none */
void parquet_none(struct parquet *p);
void parquet_row(struct parquet *p);

uint64_t parquet_rows(const struct parquet *p);

#endif
