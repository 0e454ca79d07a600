/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The figures of accounts and of processors as two tables of rows (account_figures.def,
 * processor_figures.def). Code that subtracts, sums, prints or exports records walks them; a new
 * figure is one row and the code that measures it. No session and no output here.
 */
#ifndef PRCB_FIGURES_H
#define PRCB_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum figure_kind {
    FIGURE_COUNTER, /* only grows */
    FIGURE_PART,    /* the same; the parts of a record sum to its wall time */
    FIGURE_GAUGE,   /* of the moment of the read */
    FIGURE_LIST,    /* no number but a list */
};

enum figure_unit {
    FIGURE_NS,
    FIGURE_COUNT,
    FIGURE_CYCLES,
    FIGURE_MHZ,
    FIGURE_PERMILLE,
    FIGURE_NUMBER, /* names something; there is no more or less of it */
};

/* What a sum over threads or processors has of it. A list adds up element by element. */
enum figure_sum { FIGURE_ADDS, FIGURE_ALONE };

/* The commands that show a processor's figure; bits. */
enum figure_shown { FIGURE_NEITHER = 0, FIGURE_CPU = 1, FIGURE_POWER = 2, FIGURE_BOTH = 3 };

struct figure {
    const char *name;
    uint64_t present; /* the record's bit without which it is absent */
    enum figure_kind kind;
    enum figure_unit unit;
    enum figure_sum sum;
    unsigned shown;         /* enum figure_shown */
    uint16_t offset, width; /* in the record; width 4 or 8, of a LIST 0 */
    uint16_t index; /* of an account: enum account_number; of a processor's part: processor_part */
    const char *words;   /* in a note; NULL: another row of the same bit has them */
    const char *heading; /* of a table's column; NULL: it has none */
    const char *meaning; /* one line */
    const char *absent;  /* where it may be; NULL: nowhere */
};

/* These are the places of an account's numbers in struct account_sums. */
enum account_number {
#define COUNTER(name, ...) ACCOUNT_##name,
#define PART(name, ...)    ACCOUNT_##name,
#define GAUGE(name, ...)   ACCOUNT_##name,
#include "account_figures.def"
    ACCOUNT_NUMBERS
};

/* The parts of a processor's time, in the order of the rows. */
enum processor_part {
#define PART(name, ...) PROCESSOR_##name,
#include "processor_figures.def"
    PROCESSOR_PARTS
};

/* Places of the rows of a processor. */
enum processor_row {
#define COUNTER(name, ...) PROCESSOR_ROW_##name,
#define PART(name, ...)    PROCESSOR_ROW_##name,
#define GAUGE(name, ...)   PROCESSOR_ROW_##name,
#define LIST(name, ...)    PROCESSOR_ROW_##name,
#include "processor_figures.def"
    PROCESSOR_ROWS
};

/* Each ends with a row without a name. */
extern const struct figure account_figures[];   /* of struct prcb_account */
extern const struct figure processor_figures[]; /* of struct prcb_processor */

/* The first row from there on that one of these commands shows, or the end. */
const struct figure *figures_shown(const struct figure *from, unsigned commands);

/* Its value in a record, whether present or not; of a LIST 0. */
uint64_t figure_get(const struct figure *figure, const void *record);

/* Does *later -= *earlier for counters; one that went backwards becomes 0. Gauges stay. */
void figures_sub(const struct figure *rows, void *later, const void *earlier);
/* Does *to += *from for what adds up. */
void figures_add(const struct figure *rows, void *to, const void *from);
/* The presence bits of what is of the moment: a difference has these of the later record alone. */
uint64_t figures_gauges(const struct figure *rows);
/* The presence bits of figures that a sum cannot have. */
uint64_t figures_alone(const struct figure *rows);

struct prcb_processor;
/* Whether a processor was offline all the time of a difference: it has no figures then. */
bool processor_was_offline(const struct prcb_processor *delta);

/* later - earlier, 0 if it is negative. */
static inline uint64_t figure_growth(uint64_t later, uint64_t earlier)
{
    return later > earlier ? later - earlier : 0;
}

/* Why a figure that is wanted is absent; NULL: it is there, or not wanted. */
typedef const char *figure_reason_fn(const void *ctx, const struct figure *figure);

/* Writes a line for each reason: prefix, the words of the figures that lack for it, middle,
 * reason. */
void figures_write_absent(FILE *out, const struct figure *rows, figure_reason_fn *reason,
                          const void *ctx, const char *prefix, const char *middle);

#endif
