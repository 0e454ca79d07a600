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
    unsigned text, names, units, files, depths,
        functions;  /* words; what they say is an offset, text's an address */
    unsigned words; /* the rows' place, where functions has none */
    unsigned row, entry, head, inlined, behind_name;
} versions[] = {
    {0xfffffffb, 0, 0, 0, 0, 0, 0, 1, 8, 8, 0, 0, 0},    /* 1.2 */
    {0xfffffffa, 0, 2, 0, 0, 5, 6, 7, 8, 8, 0, 0, 0},    /* 1.16 */
    {0xfffffff0, 2, 3, 4, 5, 6, 7, 8, 4, 4, 40, 20, 8},  /* 1.18 */
    {0xfffffff1, 2, 3, 4, 5, 6, 7, 8, 4, 4, 44, 16, 12}, /* 1.20 */
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
    table.head = version->head;
    table.inlined = version->inlined;
    table.behind_name = version->behind_name;
    table.text_at = version->text ? HEAD + version->text * POINTER : 0;
    table.text = version->text ? number_at(bytes, table.text_at, POINTER) : 0;
    if (!offset_of(&table, version->names, &table.names) ||
        !offset_of(&table, version->units, &table.units) ||
        !offset_of(&table, version->files, &table.files) ||
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
    ret->at = at;
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

/* Finds the value that holds at an address, in a list of the part with the depths. */
static bool value_at(const struct go_table *table, const struct go_function *function,
                     uint64_t list, uint64_t address, int64_t *ret)
{
    uint64_t to = function->begin;
    size_t at = table->depths;
    int64_t value = -1;

    if (list >= table->size - at)
        return false;
    at += (size_t)list;
    /* The list has pairs: by how much the value changes (the sign is in the lowest bit), and for
     * how long it then holds. No change ends the list, except at its beginning. */
    for (unsigned step = 0; step < STEPS_MOST; step++) {
        uint32_t change, length;

        if (!take(table, &at, &change) || (!change && step) || !take(table, &at, &length))
            return false;
        value += change & 1 ? -(int64_t)(change >> 1) - 1 : (int64_t)(change >> 1);
        to += (uint64_t)length * table->quantum;
        if (address < to) {
            *ret = value;
            return true;
        }
    }
    return false;
}

bool go_table_depth(const struct go_table *table, const struct go_function *function,
                    uint64_t address, uint64_t *ret)
{
    int64_t depth;

    if (!value_at(table, function, function->depths, address, &depth) || depth < 0 ||
        depth > DEPTH_MOST || depth % POINTER)
        return false;
    *ret = (uint64_t)depth;
    return true;
}

/* ---- lines and inlined functions ---- */

/* Offsets in a function's fixed part: of lists, how many more there are, and its unit. */
#define FILES      20
#define LINES      24
#define LISTS      28
#define UNIT       32
#define INLINED_IN 2 /* the list that says which inlined function an instruction is of, */
#define INLINED    3 /* and the table of these */
#define NO_OFFSET  UINT32_MAX

static bool said(const struct go_table *table, const struct go_function *function, uint64_t member,
                 uint64_t *ret)
{
    return get(table, table->functions, function->at + member, 4, ret);
}

static const char *text_at(const struct go_table *table, size_t part, uint64_t offset)
{
    const char *text = (const char *)table->bytes + part;

    return offset < table->size - part &&
                   memchr(text + offset, '\0', table->size - part - (size_t)offset)
               ? text + offset
               : NULL;
}

static void find_line(const struct go_table *table, const struct go_function *function,
                      uint64_t address, struct go_place *ret)
{
    uint64_t list, unit, file;
    int64_t value;

    ret->file = "";
    ret->line = 0;
    if (!table->head)
        return;
    if (said(table, function, LINES, &list) && value_at(table, function, list, address, &value) &&
        value > 0 && value <= INT32_MAX)
        ret->line = (uint32_t)value;
    if (said(table, function, FILES, &list) && said(table, function, UNIT, &unit) &&
        value_at(table, function, list, address, &value) && value >= 0 && value <= INT32_MAX &&
        get(table, table->units, 4 * (unit + (uint64_t)value), 4, &file) && file != NO_OFFSET)
        ret->file = text_at(table, table->files, file);
    ret->file = ret->file ? ret->file : "";
}

/* Finds the function that was inlined at an address, and an instruction that is where it was
 * called. False: none was. */
static bool find_inlined(const struct go_table *table, const struct go_function *function,
                         uint64_t address, const char **ret_name, uint64_t *ret_call)
{
    uint64_t lists, list, tables, offset, name, call;
    const char *text;
    int64_t row;

    if (!table->extra || !said(table, function, LISTS, &lists) || lists <= INLINED_IN ||
        lists > UINT16_MAX || !said(table, function, table->head - 4, &tables) ||
        tables >> 24 <= INLINED || !said(table, function, table->head + 4 * INLINED_IN, &list) ||
        !value_at(table, function, list, address, &row) || row < 0 || row > INT32_MAX ||
        !said(table, function, table->head + 4 * (lists + INLINED), &offset) || offset == NO_OFFSET)
        return false;
    offset += (uint64_t)row * table->inlined;
    if (offset > table->extra_size || table->extra_size - offset < table->inlined)
        return false;
    offset += table->inlined - table->behind_name;
    name = number_at(table->extra, (size_t)offset, 4);
    call = number_at(table->extra, (size_t)offset + 4, 4);
    text = text_at(table, table->names, name);
    *ret_name = text ? text : *ret_name;
    *ret_call = function->begin + call;
    return text && *ret_call < function->end;
}

size_t go_table_places(const struct go_table *table, const struct go_function *function,
                       uint64_t address, struct go_place *ret, size_t room)
{
    bool more = true;
    size_t count = 0;

    /* Each step leads out of one function; a damaged table may lead round, which the room ends. */
    for (size_t step = 0; more && step < room; step++) {
        struct go_place place = {.function = function->name};
        uint64_t call = 0;

        more = find_inlined(table, function, address, &place.function, &call);
        find_line(table, function, address, &place);
        if (strcmp(place.file, "<autogenerated>") != 0)
            ret[count++] = place;
        address = call;
    }
    return count;
}
