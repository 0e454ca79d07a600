/* SPDX-License-Identifier: BSD-2-Clause */
#include "figures.h"

#include <string.h>

#include <prcb/processors.h>

#define WIDTH(structure, member) sizeof(((struct structure *)0)->member)

/* clang-format off */
#define NUMBER_ROW(KIND, NAME, MEMBER, PRESENT, UNIT, SUM, WORDS, HEADING, MEANING, ABSENT)        \
    {.name = #NAME, .present = PRCB_HAS_##PRESENT, .kind = FIGURE_##KIND, .unit = FIGURE_##UNIT,   \
     .sum = FIGURE_##SUM, .offset = offsetof(struct prcb_account, MEMBER),                         \
     .width = WIDTH(prcb_account, MEMBER), .index = ACCOUNT_##NAME, .words = WORDS, .heading = HEADING,                     \
     .meaning = MEANING, .absent = ABSENT},
#define COUNTER(...) NUMBER_ROW(COUNTER, __VA_ARGS__)
#define PART(...) NUMBER_ROW(PART, __VA_ARGS__)
#define GAUGE(...) NUMBER_ROW(GAUGE, __VA_ARGS__)
#define LIST(NAME, PRESENT, WORDS, MEANING, ABSENT)                                                \
    {.name = #NAME, .present = PRCB_HAS_##PRESENT, .kind = FIGURE_LIST, .sum = FIGURE_ALONE,       \
     .words = WORDS, .meaning = MEANING, .absent = ABSENT},
const struct figure account_figures[] = {
#include "account_figures.def"
    {0},
};

#undef NUMBER_ROW
#define NUMBER_ROW(KIND, INDEX, NAME, MEMBER, PRESENT, UNIT, SUM, SHOWN, WORDS, HEADING, MEANING,  \
                   ABSENT)                                                                         \
    {.name = #NAME, .present = PRCB_CPU_HAS_##PRESENT, .kind = FIGURE_##KIND,                      \
     .unit = FIGURE_##UNIT, .sum = FIGURE_##SUM, .shown = FIGURE_##SHOWN,                          \
     .offset = offsetof(struct prcb_processor, MEMBER), .width = WIDTH(prcb_processor, MEMBER),    \
     .index = INDEX, .words = WORDS, .heading = HEADING, .meaning = MEANING, .absent = ABSENT},
#define COUNTER(...) NUMBER_ROW(COUNTER, 0, __VA_ARGS__)
#define PART(NAME, ...) NUMBER_ROW(PART, PROCESSOR_##NAME, NAME, __VA_ARGS__)
#define GAUGE(...) NUMBER_ROW(GAUGE, 0, __VA_ARGS__)
#define LIST(NAME, PRESENT, SHOWN, WORDS, MEANING, ABSENT)                                         \
    {.name = #NAME, .present = PRCB_CPU_HAS_##PRESENT, .kind = FIGURE_LIST, .sum = FIGURE_ADDS,    \
     .shown = FIGURE_##SHOWN, .words = WORDS, .meaning = MEANING, .absent = ABSENT},
const struct figure processor_figures[] = {
#include "processor_figures.def"
    {0},
};
/* clang-format on */

const struct figure *figures_shown(const struct figure *from, unsigned commands)
{
    while (from->name && !(from->shown & commands))
        from++;
    return from;
}

uint64_t figure_get(const struct figure *figure, const void *record)
{
    const char *at = (const char *)record + figure->offset;
    uint64_t wide = 0;
    uint32_t narrow = 0;

    if (figure->width == sizeof(wide))
        memcpy(&wide, at, sizeof(wide));
    else if (figure->width == sizeof(narrow))
        memcpy(&narrow, at, sizeof(narrow));
    return wide + narrow;
}

static void set(const struct figure *figure, void *record, uint64_t value)
{
    char *at = (char *)record + figure->offset;
    uint32_t narrow = (uint32_t)value;

    if (figure->width == sizeof(value))
        memcpy(at, &value, sizeof(value));
    else if (figure->width == sizeof(narrow))
        memcpy(at, &narrow, sizeof(narrow));
}

static bool grows(const struct figure *figure)
{
    return figure->kind == FIGURE_COUNTER || figure->kind == FIGURE_PART;
}

void figures_sub(const struct figure *rows, void *later, const void *earlier)
{
    for (; rows->name; rows++) {
        if (grows(rows))
            set(rows, later, figure_growth(figure_get(rows, later), figure_get(rows, earlier)));
    }
}

void figures_add(const struct figure *rows, void *to, const void *from)
{
    for (; rows->name; rows++) {
        if (rows->sum == FIGURE_ADDS)
            set(rows, to, figure_get(rows, to) + figure_get(rows, from));
    }
}

uint64_t figures_gauges(const struct figure *rows)
{
    uint64_t bits = 0;

    for (; rows->name; rows++)
        bits |= rows->kind == FIGURE_GAUGE ? rows->present : 0;
    return bits;
}

uint64_t figures_alone(const struct figure *rows)
{
    uint64_t bits = 0;

    for (; rows->name; rows++)
        bits |= rows->sum == FIGURE_ALONE ? rows->present : 0;
    return bits;
}

static const char *reason_of(const struct figure *row, figure_reason_fn *reason, const void *ctx)
{
    return row->words ? reason(ctx, row) : NULL;
}

static bool said_before(const struct figure *rows, const struct figure *row, const char *why,
                        figure_reason_fn *reason, const void *ctx)
{
    for (; rows < row; rows++) {
        const char *earlier = reason_of(rows, reason, ctx);

        if (earlier && !strcmp(earlier, why))
            return true;
    }
    return false;
}

void figures_write_absent(FILE *out, const struct figure *rows, figure_reason_fn *reason,
                          const void *ctx, const char *prefix, const char *middle)
{
    for (const struct figure *row = rows; row->name; row++) {
        const char *why = reason_of(row, reason, ctx);

        if (!why || said_before(rows, row, why, reason, ctx))
            continue;
        fprintf(out, "%s%s", prefix, row->words);
        for (const struct figure *other = row + 1; other->name; other++) {
            const char *same = reason_of(other, reason, ctx);

            if (same && !strcmp(same, why))
                fprintf(out, ", %s", other->words);
        }
        fprintf(out, "%s%s\n", middle, why);
    }
}

bool processor_was_offline(const struct prcb_processor *delta)
{
    return !(delta->flags & PRCB_CPU_ONLINE) && !delta->wall_ns;
}
