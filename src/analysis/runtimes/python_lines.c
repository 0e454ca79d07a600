/* SPDX-License-Identifier: BSD-2-Clause */
#include "python_lines.h"

#include <stdbool.h>

struct table {
    const unsigned char *bytes;
    size_t size, at;
};

static uint32_t line_or_none(int64_t line)
{
    return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* 3.9: pairs of how many bytes of code, and how many lines (signed), are between two lines.
 * Source: Objects/lnotab_notes.txt */
static uint32_t by_lnotab(struct table *t, int64_t line, uint64_t want)
{
    uint64_t at = 0;

    for (; t->at + 2 <= t->size; t->at += 2) {
        at += t->bytes[t->at];
        if (at > want)
            break;
        line += (int8_t)t->bytes[t->at + 1];
    }
    return line_or_none(line);
}

/* 3.10: pairs of how many bytes a line has, and how far it is from the line before; -128: none.
 * Source: Objects/lnotab_notes.txt of 3.10 */
static uint32_t by_linetable(struct table *t, int64_t line, uint64_t want)
{
    uint64_t at = 0;

    for (; t->at + 2 <= t->size; t->at += 2) {
        int8_t step = (int8_t)t->bytes[t->at + 1];

        at += t->bytes[t->at];
        line += step == -128 ? 0 : step;
        if (at > want)
            return step == -128 ? 0 : line_or_none(line);
    }
    return 0;
}

static uint64_t take_number(struct table *t)
{
    uint64_t value = 0;

    for (unsigned shift = 0; t->at < t->size && shift < 36; shift += 6) {
        unsigned char byte = t->bytes[t->at++];

        value |= (uint64_t)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return value;
}

static int64_t take_signed(struct table *t)
{
    uint64_t value = take_number(t);

    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

enum { SHORT_LAST = 9, ONE_LINE_FIRST, ONE_LINE_LAST = 12, NO_COLUMNS, LONG, NONE };

/* Takes one entry. False: there is none; *ret_line: -1: it has no line. */
static bool take_location(struct table *t, int64_t *line, int64_t *ret_line, uint64_t *ret_bytes)
{
    unsigned head = t->at < t->size ? t->bytes[t->at++] : 0, code = head >> 3 & 15;

    if (!(head & 128))
        return false;
    *ret_bytes = 2 * ((head & 7) + 1ull);
    if (code == LONG || code == NO_COLUMNS)
        *line += take_signed(t);
    else if (code >= ONE_LINE_FIRST && code <= ONE_LINE_LAST)
        *line += code - ONE_LINE_FIRST;
    if (code == LONG) {
        for (int i = 0; i < 3; i++)
            take_number(t);
    } else if (code < NO_COLUMNS) {
        t->at += code <= SHORT_LAST ? 1 : 2;
    }
    *ret_line = code == NONE ? -1 : *line;
    return true;
}

/* From 3.11 on. Source: Objects/locations.md */
static uint32_t by_locations(struct table *t, int64_t line, uint64_t want)
{
    uint64_t at = 0, bytes;
    int64_t here;

    while (take_location(t, &line, &here, &bytes)) {
        at += bytes;
        if (at > want)
            return line_or_none(here);
    }
    return 0;
}

uint32_t python_line(enum python_lines kind, const unsigned char *table, size_t size,
                     uint32_t first, uint64_t at)
{
    struct table t = {.bytes = table, .size = size};

    switch (kind) {
    case PYTHON_LNOTAB:
        return by_lnotab(&t, first, at);
    case PYTHON_LINETABLE:
        return by_linetable(&t, first, at);
    case PYTHON_LOCATIONS:
        return by_locations(&t, first, at);
    }
    return 0;
}
