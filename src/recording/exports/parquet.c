/* SPDX-License-Identifier: BSD-2-Clause */
#include "parquet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "array.h"
#include "table.h"
#include "text.h"

#define MAGIC      "PAR1"
#define ZSTD_LEVEL 3
#define STATS_MOST 64 /* bytes of a text that is the least or the greatest */

/* Of the format's enumerations: */
enum { TYPE_INT64 = 2, TYPE_BYTES = 6 };
enum { ENCODING_PLAIN = 0, ENCODING_RLE = 3, ENCODING_DICTIONARY = 8 };
enum { CODEC_NONE = 0, CODEC_ZSTD = 6 };
enum { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };
enum { OPTIONAL = 1 };

struct bytes {
    uint8_t *at;
    size_t count, room;
};

/* A column's values of the row group. */
struct column {
    enum parquet_type type;
    int64_t *numbers; /* of texts their places in the dictionary; those that are there only */
    size_t number_count, number_room;
    uint8_t *there; /* a row each, 0 or 1 */
    size_t row_count, row_room;
    struct row_numbers texts;
    struct bytes dictionary; /* its page */
    char **kept;             /* its texts, by place; owned */
    size_t kept_count, kept_room;
};

/* What the file's end says of a column of a row group. */
struct chunk {
    uint64_t dictionary_at, data_at, plain, packed, values, nulls; /* dictionary_at 0: none */
    bool has_range;
    struct bytes least, most; /* owned */
};

struct group {
    struct chunk *chunks; /* a column each; owned */
    uint64_t rows;
    bool sorted;
};

struct parquet {
    FILE *out;
    uint64_t written;
    const struct parquet_column *names;
    struct column *columns;
    size_t column_count, at, sorted;
    struct group *groups;
    size_t group_count, group_room;
    uint64_t rows;
    bool failed;
};

/* ---- bytes ----------------------------------------------------------------------- */

static void add(struct parquet *p, struct bytes *b, const void *bytes, size_t count)
{
    if (array_reserve(b->at, b->count, b->room, count)) {
        p->failed = true;
        return;
    }
    array_copy(b->at + b->count, (const uint8_t *)bytes, count);
    b->count += count;
}

static void add_byte(struct parquet *p, struct bytes *b, uint8_t byte)
{
    add(p, b, &byte, 1);
}

static void add_varint(struct parquet *p, struct bytes *b, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        add_byte(p, b, (uint8_t)(value | 0x80));
    add_byte(p, b, (uint8_t)value);
}

static void add_number(struct parquet *p, struct bytes *b, uint64_t value, unsigned size)
{
    for (; size; size--, value >>= 8)
        add_byte(p, b, (uint8_t)value);
}

static void put(struct parquet *p, const void *bytes, size_t count)
{
    fwrite(bytes, 1, count, p->out);
    p->written += count;
}

/* ---- Thrift's compact protocol --------------------------------------------------- */

enum thrift_type {
    T_TRUE = 1,
    T_FALSE,
    T_I16 = 4,
    T_I32 = 5,
    T_I64 = 6,
    T_BINARY = 8,
    T_LIST,
    T_STRUCT = 12
};

#define NESTED 8

struct thrift {
    struct parquet *p;
    struct bytes bytes;
    int last[NESTED]; /* number of the last field of each open struct */
    size_t depth;
};

static void field(struct thrift *t, int number, enum thrift_type type)
{
    int delta = number - t->last[t->depth]; /* always small here */

    add_byte(t->p, &t->bytes, (uint8_t)(delta << 4 | (int)type));
    t->last[t->depth] = number;
}

static void integer(struct thrift *t, int64_t value)
{
    add_varint(t->p, &t->bytes, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static void i32(struct thrift *t, int number, int64_t value)
{
    field(t, number, T_I32);
    integer(t, value);
}

static void i64(struct thrift *t, int number, uint64_t value)
{
    field(t, number, T_I64);
    integer(t, (int64_t)value);
}

static void binary(struct thrift *t, const void *bytes, size_t count)
{
    add_varint(t->p, &t->bytes, count);
    add(t->p, &t->bytes, bytes, count);
}

static void text(struct thrift *t, int number, const char *value)
{
    field(t, number, T_BINARY);
    binary(t, value, strlen(value));
}

static void list(struct thrift *t, int number, enum thrift_type type, size_t count)
{
    field(t, number, T_LIST);
    add_byte(t->p, &t->bytes, (uint8_t)((count < 15 ? count : 15) << 4 | type));
    if (count >= 15)
        add_varint(t->p, &t->bytes, count);
}

/* A struct that is an element of a list has no field of its own. */
static void begin(struct thrift *t)
{
    t->last[++t->depth] = 0;
}

static void begin_field(struct thrift *t, int number)
{
    field(t, number, T_STRUCT);
    begin(t);
}

static void end(struct thrift *t)
{
    add_byte(t->p, &t->bytes, 0);
    t->depth--;
}

static void empty(struct thrift *t, int number)
{
    begin_field(t, number);
    end(t);
}

/* ---- pages ----------------------------------------------------------------------- */

/* Returns the page as it is written: packed, or `plain` itself. */
static struct bytes pack(struct parquet *p, const struct bytes *plain)
{
    struct bytes packed = {NULL, 0, 0};

#ifdef HAVE_ZSTD
    size_t bound = ZSTD_compressBound(plain->count), size;

    if (array_reserve(packed.at, (size_t)0, packed.room, bound + 1)) {
        p->failed = true;
        return packed;
    }
    size = ZSTD_compress(packed.at, bound, plain->at, plain->count, ZSTD_LEVEL);
    if (ZSTD_isError(size))
        p->failed = true;
    else
        packed.count = size;
#else
    add(p, &packed, plain->at, plain->count);
#endif
    return packed;
}

static void put_page(struct parquet *p, int kind, const struct bytes *plain, uint64_t values,
                     struct chunk *chunk)
{
    struct bytes packed = pack(p, plain);
    struct thrift t = {.p = p};

    i32(&t, 1, kind);
    i32(&t, 2, (int64_t)plain->count);
    i32(&t, 3, (int64_t)packed.count);
    begin_field(&t, kind == PAGE_DATA ? 5 : 7);
    i32(&t, 1, (int64_t)values);
    if (kind == PAGE_DATA) {
        i32(&t, 2, chunk->dictionary_at ? ENCODING_DICTIONARY : ENCODING_PLAIN);
        i32(&t, 3, ENCODING_RLE);
        i32(&t, 4, ENCODING_RLE);
    } else {
        i32(&t, 2, ENCODING_PLAIN);
    }
    end(&t);
    add_byte(p, &t.bytes, 0); /* the header's end */
    put(p, t.bytes.at, t.bytes.count);
    put(p, packed.at, packed.count);
    chunk->plain += t.bytes.count + plain->count;
    chunk->packed += t.bytes.count + packed.count;
    free(t.bytes.at);
    free(packed.at);
}

/* Which rows have a value: runs of equal bits. */
static void add_there(struct parquet *p, struct bytes *b, const struct column *column)
{
    struct bytes runs = {NULL, 0, 0};
    size_t length;

    for (size_t i = 0; i < column->row_count; i += length) {
        for (length = 1;
             i + length < column->row_count && column->there[i + length] == column->there[i];
             length++)
            ;
        add_varint(p, &runs, (uint64_t)length << 1);
        add_byte(p, &runs, column->there[i]);
    }
    add_number(p, b, runs.count, 4);
    add(p, b, runs.at, runs.count);
    free(runs.at);
}

static unsigned bits_of(size_t count)
{
    unsigned bits = 1;

    while (count > 1ull << bits)
        bits++;
    return bits;
}

/* Places in the dictionary, of so many bits each, in one run. */
static void add_places(struct parquet *p, struct bytes *b, const struct column *column)
{
    unsigned bits = bits_of(column->kept_count), held = 0;
    uint64_t word = 0;
    size_t groups = (column->number_count + 7) / 8;

    add_byte(p, b, (uint8_t)bits);
    if (!groups)
        return;
    add_varint(p, b, (uint64_t)groups << 1 | 1);
    for (size_t i = 0; i < groups * 8; i++) {
        uint64_t place = i < column->number_count ? (uint64_t)column->numbers[i] : 0;

        word |= place << held;
        for (held += bits; held >= 8; held -= 8, word >>= 8)
            add_byte(p, b, (uint8_t)word);
    }
}

/* ---- the least and the greatest -------------------------------------------------- */

static void find_number_range(struct parquet *p, const struct column *column, struct chunk *chunk)
{
    int64_t least = column->numbers[0], most = least;

    for (size_t i = 1; i < column->number_count; i++) {
        least = column->numbers[i] < least ? column->numbers[i] : least;
        most = column->numbers[i] > most ? column->numbers[i] : most;
    }
    add_number(p, &chunk->least, (uint64_t)least, 8);
    add_number(p, &chunk->most, (uint64_t)most, 8);
    chunk->has_range = true;
}

static void find_text_range(struct parquet *p, const struct column *column, struct chunk *chunk)
{
    const char *least = column->kept[0], *most = least;

    for (size_t i = 1; i < column->kept_count; i++) {
        least = strcmp(column->kept[i], least) < 0 ? column->kept[i] : least;
        most = strcmp(column->kept[i], most) > 0 ? column->kept[i] : most;
    }
    if (strlen(least) > STATS_MOST || strlen(most) > STATS_MOST)
        return;
    add(p, &chunk->least, least, strlen(least));
    add(p, &chunk->most, most, strlen(most));
    chunk->has_range = true;
}

/* ---- row groups ------------------------------------------------------------------ */

static void clear(struct column *column)
{
    for (size_t i = 0; i < column->kept_count; i++)
        free(column->kept[i]);
    column->kept_count = column->number_count = column->row_count = column->dictionary.count = 0;
    row_numbers_free(&column->texts);
}

static void put_chunk(struct parquet *p, struct column *column, struct chunk *chunk)
{
    struct bytes page = {NULL, 0, 0};

    chunk->values = column->row_count;
    chunk->nulls = column->row_count - column->number_count;
    if (column->type == PARQUET_TEXT) {
        chunk->dictionary_at = p->written;
        put_page(p, PAGE_DICTIONARY, &column->dictionary, column->kept_count, chunk);
    }
    chunk->data_at = p->written;
    add_there(p, &page, column);
    if (column->type == PARQUET_TEXT) {
        add_places(p, &page, column);
    } else {
        for (size_t i = 0; i < column->number_count; i++)
            add_number(p, &page, (uint64_t)column->numbers[i], 8);
    }
    put_page(p, PAGE_DATA, &page, column->row_count, chunk);
    free(page.at);
    if (column->number_count && !p->failed)
        (column->type == PARQUET_TEXT ? find_text_range : find_number_range)(p, column, chunk);
    clear(column);
}

/* ---- order ----------------------------------------------------------------------- */

struct place {
    int64_t key;
    size_t row;
};

static int by_key(const void *left, const void *right)
{
    const struct place *a = left, *b = right;

    return a->key != b->key ? (a->key > b->key) - (a->key < b->key)
                            : (a->row > b->row) - (a->row < b->row);
}

/* Puts a column's rows into an order; numbers and there: room for as many. */
static void reorder(struct column *column, const struct place *places, int64_t *numbers,
                    uint8_t *there, size_t *at)
{
    size_t count = 0;

    for (size_t i = 0; i < column->row_count; i++) {
        at[i] = count;
        count += column->there[i];
    }
    count = 0;
    for (size_t i = 0; i < column->row_count; i++) {
        size_t row = places[i].row;

        there[i] = column->there[row];
        if (there[i])
            numbers[count++] = column->numbers[at[row]];
    }
    array_copy(column->there, there, column->row_count);
    array_copy(column->numbers, numbers, count);
}

/* Sorts the group's rows by the column that they nearly come in the order of. Returns whether they
 * are sorted: readers believe it. */
static bool sort_group(struct parquet *p)
{
    const struct column *key = p->sorted < p->column_count ? &p->columns[p->sorted] : NULL;
    size_t count = p->columns[0].row_count;
    struct place *places;
    int64_t *numbers;
    uint8_t *there;
    size_t *at;

    if (!key || key->type == PARQUET_TEXT || key->number_count != count)
        return false;
    places = calloc(count + 1, sizeof(*places));
    numbers = calloc(count + 1, sizeof(*numbers));
    there = calloc(count + 1, sizeof(*there));
    at = calloc(count + 1, sizeof(*at));
    p->failed |= !places || !numbers || !there || !at;
    for (size_t i = 0; i < count && !p->failed; i++)
        places[i] = (struct place){key->numbers[i], i};
    if (!p->failed)
        array_sort(places, count, by_key);
    for (size_t i = 0; i < p->column_count && !p->failed; i++)
        reorder(&p->columns[i], places, numbers, there, at);
    free(places);
    free(numbers);
    free(there);
    free(at);
    return !p->failed;
}

static void put_group(struct parquet *p)
{
    struct group group = {.rows = p->columns[0].row_count, .sorted = sort_group(p)};

    group.chunks = calloc(p->column_count, sizeof(*group.chunks));
    if (!group.chunks || array_add(p->groups, p->group_count, p->group_room, group)) {
        free(group.chunks);
        p->failed = true;
        return;
    }
    for (size_t i = 0; i < p->column_count && !p->failed; i++)
        put_chunk(p, &p->columns[i], &group.chunks[i]);
}

/* ---- rows ------------------------------------------------------------------------ */

static struct column *next(struct parquet *p, bool there)
{
    struct column *column = p->at < p->column_count ? &p->columns[p->at++] : NULL;
    uint8_t flag = there;

    if (!column || array_add(column->there, column->row_count, column->row_room, flag))
        p->failed = true;
    return p->failed ? NULL : column;
}

static void add_value(struct parquet *p, struct column *column, int64_t value)
{
    if (array_add(column->numbers, column->number_count, column->number_room, value))
        p->failed = true;
}

void parquet_none(struct parquet *p)
{
    next(p, false);
}

void parquet_number(struct parquet *p, int64_t value)
{
    struct column *column = next(p, true);

    if (column)
        add_value(p, column, value);
}

void parquet_text(struct parquet *p, const char *value)
{
    struct column *column = next(p, value != NULL);
    char *clean = column && value ? text_utf8(value) : NULL;
    bool fresh = false;
    size_t number;

    if (!column || !value)
        return;
    number = clean ? row_number(&column->texts, clean, strlen(clean), &fresh) : 0;
    p->failed |= !number;
    if (fresh && !array_add(column->kept, column->kept_count, column->kept_room, clean)) {
        add_number(p, &column->dictionary, strlen(clean), 4);
        add(p, &column->dictionary, clean, strlen(clean));
        clean = NULL;
    } else if (fresh) {
        p->failed = true;
    }
    free(clean);
    if (number)
        add_value(p, column, (int64_t)number - 1);
}

void parquet_row(struct parquet *p)
{
    p->failed |= p->at != p->column_count;
    p->at = 0;
    p->rows++;
    if (!p->failed && p->columns[0].row_count == PARQUET_GROUP_ROWS)
        put_group(p);
}

uint64_t parquet_rows(const struct parquet *p)
{
    return p->rows;
}

/* ---- the whole ------------------------------------------------------------------- */

int parquet_open(FILE *out, const struct parquet_column *columns, size_t sorted,
                 struct parquet **ret)
{
    struct parquet *p = calloc(1, sizeof(*p));

    if (!p)
        return -ENOMEM;
    p->out = out;
    p->names = columns;
    p->sorted = sorted;
    while (columns[p->column_count].type != PARQUET_TYPE_MAX)
        p->column_count++;
    p->columns = calloc(p->column_count, sizeof(*p->columns));
    if (!p->columns) {
        free(p);
        return -ENOMEM;
    }
    for (size_t i = 0; i < p->column_count; i++)
        p->columns[i].type = columns[i].type;
    put(p, MAGIC, 4);
    *ret = p;
    return 0;
}

static void add_schema(struct thrift *t, const struct parquet *p)
{
    list(t, 2, T_STRUCT, p->column_count + 1);
    begin(t);
    text(t, 4, "prcb");
    i32(t, 5, (int64_t)p->column_count);
    end(t);
    for (size_t i = 0; i < p->column_count; i++) {
        enum parquet_type type = p->names[i].type;

        begin(t);
        i32(t, 1, type == PARQUET_TEXT ? TYPE_BYTES : TYPE_INT64);
        i32(t, 3, OPTIONAL);
        text(t, 4, p->names[i].name);
        if (type == PARQUET_TEXT) {
            i32(t, 6, 0); /* UTF8, for readers that know no logical types */
            begin_field(t, 10);
            empty(t, 1); /* string */
            end(t);
        } else if (type == PARQUET_TIME) {
            begin_field(t, 10);
            begin_field(t, 8);   /* timestamp */
            field(t, 1, T_TRUE); /* of UTC */
            begin_field(t, 2);
            empty(t, 3); /* nanoseconds */
            end(t);
            end(t);
            end(t);
        }
        end(t);
    }
}

static void add_chunk(struct thrift *t, const struct parquet *p, size_t i,
                      const struct chunk *chunk)
{
    uint64_t first = chunk->dictionary_at ? chunk->dictionary_at : chunk->data_at;
    bool is_text = p->names[i].type == PARQUET_TEXT;

    begin(t);
    i64(t, 2, first);
    begin_field(t, 3);
    i32(t, 1, is_text ? TYPE_BYTES : TYPE_INT64);
    list(t, 2, T_I32, is_text ? 3 : 2);
    integer(t, ENCODING_PLAIN);
    integer(t, ENCODING_RLE);
    if (is_text)
        integer(t, ENCODING_DICTIONARY);
    list(t, 3, T_BINARY, 1);
    binary(t, p->names[i].name, strlen(p->names[i].name));
#ifdef HAVE_ZSTD
    i32(t, 4, CODEC_ZSTD);
#else
    i32(t, 4, CODEC_NONE);
#endif
    i64(t, 5, chunk->values);
    i64(t, 6, chunk->plain);
    i64(t, 7, chunk->packed);
    i64(t, 9, chunk->data_at);
    if (chunk->dictionary_at)
        i64(t, 11, chunk->dictionary_at);
    begin_field(t, 12);
    i64(t, 3, chunk->nulls);
    if (chunk->has_range) {
        field(t, 5, T_BINARY);
        binary(t, chunk->most.at, chunk->most.count);
        field(t, 6, T_BINARY);
        binary(t, chunk->least.at, chunk->least.count);
    }
    end(t);
    end(t);
    end(t);
}

static void add_group(struct thrift *t, const struct parquet *p, const struct group *group)
{
    uint64_t plain = 0, packed = 0;

    begin(t);
    list(t, 1, T_STRUCT, p->column_count);
    for (size_t i = 0; i < p->column_count; i++) {
        add_chunk(t, p, i, &group->chunks[i]);
        plain += group->chunks[i].plain;
        packed += group->chunks[i].packed;
    }
    i64(t, 2, plain);
    i64(t, 3, group->rows);
    if (group->sorted) {
        list(t, 4, T_STRUCT, 1);
        begin(t);
        i32(t, 1, (int64_t)p->sorted);
        field(t, 2, T_FALSE); /* descending */
        field(t, 3, T_FALSE); /* those without a value first */
        end(t);
    }
    i64(t, 6, packed);
    end(t);
}

static void put_end(struct parquet *p)
{
    struct thrift t = {.p = p};
    struct bytes length = {NULL, 0, 0};

    i32(&t, 1, 2); /* version */
    add_schema(&t, p);
    i64(&t, 3, p->rows);
    list(&t, 4, T_STRUCT, p->group_count);
    for (size_t i = 0; i < p->group_count; i++)
        add_group(&t, p, &p->groups[i]);
    text(&t, 6, "prcb version " PRCB_VERSION);
    list(&t, 7, T_STRUCT, p->column_count); /* orders of columns, by which is least: their types' */
    for (size_t i = 0; i < p->column_count; i++) {
        begin(&t);
        empty(&t, 1);
        end(&t);
    }
    add_byte(p, &t.bytes, 0);
    add_number(p, &length, t.bytes.count, 4);
    put(p, t.bytes.at, t.bytes.count);
    put(p, length.at, length.count);
    put(p, MAGIC, 4);
    free(t.bytes.at);
    free(length.at);
}

void parquet_abort(struct parquet *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->column_count; i++) {
        clear(&p->columns[i]);
        free(p->columns[i].numbers);
        free(p->columns[i].there);
        free(p->columns[i].kept);
        free(p->columns[i].dictionary.at);
    }
    for (size_t i = 0; i < p->group_count; i++) {
        for (size_t k = 0; k < p->column_count; k++) {
            free(p->groups[i].chunks[k].least.at);
            free(p->groups[i].chunks[k].most.at);
        }
        free(p->groups[i].chunks);
    }
    free(p->groups);
    free(p->columns);
    free(p);
}

int parquet_close(struct parquet *p)
{
    int result;

    if (!p->failed && p->columns[0].row_count)
        put_group(p);
    if (!p->failed)
        put_end(p);
    result = p->failed ? -ENOMEM : 0;
    parquet_abort(p);
    return result;
}
