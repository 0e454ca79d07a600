/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Samples by line of source, with the functions that a compiler inlined into others, if debug
 * information is installed. It is read when somebody asks for it, from the files as they are
 * then: a recording holds addresses. Like names of functions, it is read by a child that has
 * nothing to lose (names.h).
 */
#ifndef PRCB_RECORD_LINES_H
#define PRCB_RECORD_LINES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "recording.h"

struct line {
    char *text;           /* owned: what the members point into */
    const char *file;     /* of the source; "": not known */
    uint64_t number;      /* 0: not known */
    const char *function; /* that was compiled; "" where no line is known */
    const char *inlined;  /* "inner < outer": what was put into it, innermost first; "": nothing */
    uint64_t samples, weight;
};

struct lines {
    struct line *rows; /* most weight first; one without file and function is the rest */
    size_t count;
    uint64_t samples, weight; /* of all: the rows' sum */
    bool weight_is_ns;
};

int lines_make(const struct recording *recording, struct lines *ret, struct prcb_error *err);
void lines_free(struct lines *lines);

/* top: rows that are printed; 0: all. */
void lines_print_text(const struct lines *lines, size_t top, FILE *out);
void lines_print_csv(const struct lines *lines, size_t top, const char *separator, FILE *out);
int lines_print_json(const struct lines *lines, size_t top, FILE *out); /* 0 or -ENOMEM */

#endif
