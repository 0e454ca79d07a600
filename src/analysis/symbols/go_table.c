/* SPDX-License-Identifier: BSD-2-Clause */
#include "go_table.h"

#include <errno.h>
#include <string.h>

#define POINTER    8u /* bytes; of the processors that prcb unwinds on */
#define HEAD       8u /* bytes before the first word */
#define DEPTH_MOST (64u << 20)
#define STEPS_MOST (1u << 20) /* of one function's list */

static uint64_t number_at(const unsigned char *bytes, size_t offset, unsigned length)
{
    uint64_t wide;
    uint32_t narrow;

    if (length == sizeof(wide)) {
        memcpy(&wide, bytes + offset, sizeof(wide));
        return wide;
    }
    memcpy(&narrow, bytes + offset, sizeof(narrow));
    return narrow;
}

/* Reads a number in a part of the table; false: it lies outside. */
static bool get(const struct go_table *table, size_t part, uint64_t offset, unsigned length,
                uint64_t *ret)
{
    if (offset > table->size - part || table->size - part - offset < length)
        return false;
    *ret = number_at(table->bytes, part + (size_t)offset, length);
    return true;
}

/* Which of the words after the head say where things are. 0: the table's own beginning. */
static const struct version {
    uint32_t magic;
    unsigned text, names, depths,
        functions;  /* words; what they say is an offset, text's an address */
    unsigned words; /* the rows' place, where functions has none */
    unsigned row, entry;
} versions[] = {
    {0xfffffffb, 0, 0, 0, 0, 1, 8, 8}, /* 1.2 */
    {0xfffffffa, 0, 2, 5, 6, 7, 8, 8}, /* 1.16 */
    {0xfffffff0, 2, 3, 6, 7, 8, 4, 4}, /* 1.18 */
    {0xfffffff1, 2, 3, 6, 7, 8, 4, 4}, /* 1.20 */
};

static bool offset_of(const struct go_table *table, unsigned word, size_t *ret)
{
    uint64_t offset = 0;

    if (word && (!get(table, 0, HEAD + word * POINTER, POINTER, &offset) || offset > table->size))
        return false;
    *ret = (size_t)offset;
    return true;
}

/* Where a function begins; the row behind the last: where that ends. */
static uint64_t begin_of(const struct go_table *table, size_t row)
{
    return table->text + number_at(table->bytes, table->rows + row * 2 * table->row, table->row);
}

int go_table_open(const unsigned char *bytes, size_t size, struct go_table *ret)
{
    struct go_table table = {.bytes = bytes, .size = size};
    const struct version *version = versions,
                         *end = versions + sizeof(versions) / sizeof(*versions);
    struct go_function first;
    uint64_t count;

    if (size < HEAD + POINTER || bytes[4] || bytes[5] || bytes[7] != POINTER ||
        (bytes[6] != 1 && bytes[6] != 2 && bytes[6] != 4))
        return -EINVAL;
    while (version < end && version->magic != number_at(bytes, 0, 4))
        version++;
    if (version == end || size < HEAD + version->words * POINTER)
        return -EINVAL;
    table.quantum = bytes[6];
    table.row = version->row;
    table.entry = version->entry;
    table.text_at = version->text ? HEAD + version->text * POINTER : 0;
    table.text = version->text ? number_at(bytes, table.text_at, POINTER) : 0;
    if (!offset_of(&table, version->names, &table.names) ||
        !offset_of(&table, version->depths, &table.depths) ||
        !offset_of(&table, version->functions, &table.functions))
        return -EINVAL;
    table.rows = version->functions ? table.functions : HEAD + version->words * POINTER;
    count = number_at(bytes, HEAD, POINTER);
    /* A row is two numbers; behind the last is the end of the last function. */
    if (!count || count >= (size - table.rows) / (2u * table.row))
        return -EINVAL;
    table.count = (size_t)count;
    if (!go_table_find(&table, begin_of(&table, 0), &first))
        return -EINVAL;
    *ret = table;
    return 0;
}

bool go_table_row(const struct go_table *table, size_t row, struct go_function *ret)
{
    uint64_t at, name, depths;

    if (row >= table->count)
        return false;
    at = number_at(table->bytes, table->rows + row * 2 * table->row + table->row, table->row);
    /* entry, name, size of arguments, place of deferred returns, list of depths */
    if (at > table->size || !get(table, table->functions, at + table->entry, 4, &name) ||
        !get(table, table->functions, at + table->entry + 12, 4, &depths) ||
        name >= table->size - table->names ||
        !memchr(table->bytes + table->names + name, '\0',
                table->size - table->names - (size_t)name))
        return false;
    ret->begin = begin_of(table, row);
    ret->end = begin_of(table, row + 1);
    ret->name = (const char *)table->bytes + table->names + name;
    ret->depths = (uint32_t)depths;
    return ret->begin < ret->end;
}

bool go_table_find(const struct go_table *table, uint64_t address, struct go_function *ret)
{
    size_t low = 0, high = table->count;

    while (low < high) { /* the last that begins no later */
        size_t middle = low + (high - low) / 2;

        if (begin_of(table, middle) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && go_table_row(table, low - 1, ret) && ret->begin <= address && address < ret->end;
}

/* Reads a number of seven bits a byte, the lowest first. */
static bool take(const struct go_table *table, size_t *at, uint32_t *ret)
{
    uint32_t value = 0;

    for (unsigned shift = 0; shift < 32; shift += 7) {
        unsigned char byte;

        if (*at >= table->size)
            return false;
        byte = table->bytes[(*at)++];
        value |= (uint32_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret = value;
            return true;
        }
    }
    return false;
}

bool go_table_depth(const struct go_table *table, const struct go_function *function,
                    uint64_t address, uint64_t *ret)
{
    uint64_t to = function->begin;
    size_t at = table->depths;
    int64_t depth = -1;

    if (function->depths >= table->size - at)
        return false;
    at += function->depths;
    /* The list has pairs: by how much the depth changes (the sign is in the lowest bit), and for
     * how long it then holds. No change ends the list, except at its beginning. */
    for (unsigned step = 0; step < STEPS_MOST; step++) {
        uint32_t change, length;

        if (!take(table, &at, &change) || (!change && step) || !take(table, &at, &length))
            return false;
        depth += change & 1 ? -(int64_t)(change >> 1) - 1 : (int64_t)(change >> 1);
        to += (uint64_t)length * table->quantum;
        if (address < to) {
            if (depth < 0 || depth > DEPTH_MOST || depth % POINTER)
                return false;
            *ret = (uint64_t)depth;
            return true;
        }
    }
    return false;
}
