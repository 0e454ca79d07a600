/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb dump --symbols: a program database (PDB) of an NT kernel. Its types are made into the JSON
 * form that dump_symbols.c reads (ISF), as far as the wanted structures reach by value. Of the file
 * the container (MSF 7.00), the type stream (TPI, stream 2) and what tells whose it is are read,
 * nothing else: no names of functions, no lines. The file is not trusted: each block, size, index
 * and length is checked.
 */
#include "array.h"
#include "dump_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "json_doc.h"

#define MAGIC        "Microsoft C/C++ MSF 7.00\r\n\032DS\0\0\0"
#define MAGIC_LENGTH 32
#define INFO_STREAM  1
#define TPI_STREAM   2
#define DBI_STREAM   3
#define FIRST_TYPE   0x1000u
#define TYPES_MOST   (1u << 20)
#define FIELDS_MOST  65536u /* of one structure: a field list may go on in others */
#define DEPTH_MOST   16

enum leaf {
    LF_MODIFIER = 0x1001,
    LF_POINTER = 0x1002,
    LF_FIELDLIST = 0x1203,
    LF_BITFIELD = 0x1205,
    LF_BCLASS = 0x1400,
    LF_INDEX = 0x1404,
    LF_VFUNCTAB = 0x1409,
    LF_ENUMERATE = 0x1502,
    LF_ARRAY = 0x1503,
    LF_CLASS = 0x1504,
    LF_STRUCTURE = 0x1505,
    LF_UNION = 0x1506,
    LF_ENUM = 0x1507,
    LF_MEMBER = 0x150d,
    LF_STMEMBER = 0x150e,
    LF_METHOD = 0x150f,
    LF_NESTTYPE = 0x1510,
};
#define PROPERTY_FORWARD 0x80 /* a declaration: the definition is another record */

/* Bytes and how far they have been read; is_bad sticks once a read went past the end. */
struct span {
    const uint8_t *at, *end;
    bool is_bad;
};

struct pdb {
    const uint8_t *bytes;
    size_t size;
    uint32_t block_size;
    uint8_t *tpi; /* the stream in one piece */
    size_t tpi_size;
    bool has_identity;
    uint8_t guid[16];
    uint32_t age;
    uint16_t machine;
    struct span *types; /* of type FIRST_TYPE + i: kind and what follows */
    uint32_t type_count;
    struct definition {
        const char *name;
        uint32_t index;
    } * definitions; /* structures and unions that are defined, by name */
    size_t definition_count;
    struct json_doc doc;
    struct json_object *user, *base, *enums; /* of the document */
    struct prcb_error *err;
    const char *path;
};

static uint64_t take(struct span *s, size_t size)
{
    uint64_t value = 0;

    if ((size_t)(s->end - s->at) < size) {
        s->is_bad = true;
        s->at = s->end;
        return 0;
    }
    for (size_t i = size; i > 0; i--)
        value = value << 8 | s->at[i - 1];
    s->at += size;
    return value;
}

/* Takes a number of the type stream: small ones stand as they are, others behind a word that names
 * their form. */
static uint64_t take_numeric(struct span *s)
{
    uint64_t value = take(s, 2);

    switch (value) {
    case 0x8000:
        return take(s, 1);
    case 0x8001:
    case 0x8002:
        return take(s, 2);
    case 0x8003:
    case 0x8004:
        return take(s, 4);
    case 0x8009:
    case 0x800a:
        return take(s, 8);
    default:
        s->is_bad |= value >= 0x8000;
        return value;
    }
}

/* Takes a name up to its NUL; "" if there is none. */
static const char *take_name(struct span *s)
{
    const char *name = (const char *)s->at;
    const uint8_t *nul = memchr(s->at, 0, (size_t)(s->end - s->at));

    if (!nul) {
        s->is_bad = true;
        return "";
    }
    s->at = nul + 1;
    return name;
}

/* ---- the container ---- */

static uint32_t load32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static int damaged(const struct pdb *p, const char *what)
{
    return prcb_fail(p->err, -EINVAL, "%s: not a whole PDB: %s", p->path, what);
}

static const uint8_t *block_at(const struct pdb *p, uint32_t index)
{
    uint64_t at = (uint64_t)index * p->block_size;

    return at + p->block_size <= p->size ? p->bytes + at : NULL;
}

/* A stream of `size` bytes, whose block numbers are at `list`. */
static int gather(const struct pdb *p, const uint8_t *list, size_t size, uint8_t **ret)
{
    uint8_t *bytes = malloc(size + 1);
    size_t done = 0;

    if (!bytes)
        return prcb_fail(p->err, -ENOMEM, "%s: out of memory", p->path);
    for (; done < size; list += 4) {
        const uint8_t *block = block_at(p, load32(list));
        size_t part = size - done < p->block_size ? size - done : p->block_size;

        if (!block) {
            free(bytes);
            return damaged(p, "a block lies past its end");
        }
        memcpy(bytes + done, block, part);
        done += part;
    }
    *ret = bytes;
    return 0;
}

static size_t blocks_of(const struct pdb *p, size_t size)
{
    return (size + p->block_size - 1) / p->block_size;
}

/* Finds a stream in the directory (counts, sizes, then the block numbers of each), and gathers its
 * first bytes, at most `most`. */
static int find_stream(const struct pdb *p, struct span directory, uint32_t wanted, size_t most,
                       uint8_t **ret, size_t *ret_size)
{
    struct span s = directory;
    uint32_t count = (uint32_t)take(&s, 4), size = 0;
    uint64_t skip = 0, room;

    if (s.is_bad || count <= wanted || count > (size_t)(s.end - directory.at) / 4)
        return damaged(p, "it has no type stream");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t n = (uint32_t)take(&s, 4);

        n = n == UINT32_MAX ? 0 : n;
        if (i < wanted)
            skip += blocks_of(p, n);
        else if (i == wanted)
            size = n;
    }
    room = (uint64_t)(s.end - s.at) / 4;
    if (s.is_bad || size > p->size || skip > room || blocks_of(p, size) > room - skip)
        return damaged(p, "its directory is cut short");
    *ret_size = size < most ? size : most;
    return gather(p, s.at + 4 * skip, *ret_size, ret);
}

/* Which kernel's it is: GUID and age as the linker left them in the image. Streams that are not
 * there, or are short, leave it unknown. */
static void find_identity(struct pdb *p, struct span directory)
{
    const struct pdb quiet = {.bytes = p->bytes, .size = p->size, .block_size = p->block_size};
    uint8_t *info = NULL, *dbi = NULL;
    size_t info_size = 0, dbi_size = 0;

    if (!find_stream(&quiet, directory, INFO_STREAM, 0x1c, &info, &info_size) &&
        info_size == 0x1c && !find_stream(&quiet, directory, DBI_STREAM, 0x40, &dbi, &dbi_size) &&
        dbi_size == 0x40) {
        p->age = load32(dbi + 8);
        p->machine = (uint16_t)load32(dbi + 0x3a);
        memcpy(p->guid, info + 12, sizeof(p->guid));
        p->has_identity = true;
    }
    free(info);
    free(dbi);
}

static int open_container(struct pdb *p)
{
    uint32_t length, map;
    uint8_t *directory = NULL;
    size_t blocks;
    int code;

    if (p->size < 0x38 || memcmp(p->bytes, MAGIC, MAGIC_LENGTH))
        return damaged(p, "no MSF 7.00 header");
    p->block_size = load32(p->bytes + 0x20);
    length = load32(p->bytes + 0x2c);
    map = load32(p->bytes + 0x34);
    if (p->block_size < 512 || p->block_size > 65536 || p->block_size & (p->block_size - 1) ||
        length > p->size)
        return damaged(p, "its header has sizes that no PDB has");
    blocks = blocks_of(p, length);
    if ((uint64_t)map * p->block_size + 4 * blocks > p->size)
        return damaged(p, "the map of its directory lies past its end");
    code = gather(p, p->bytes + (uint64_t)map * p->block_size, length, &directory);
    if (!code) {
        const struct span streams = {directory, directory + length, false};

        code = find_stream(p, streams, TPI_STREAM, SIZE_MAX, &p->tpi, &p->tpi_size);
        if (!code)
            find_identity(p, streams);
    }
    free(directory);
    return code;
}

/* ---- types ---- */

static int index_types(struct pdb *p)
{
    struct span s = {p->tpi, p->tpi + p->tpi_size, false};
    uint32_t header, first, end;

    take(&s, 4); /* version */
    header = (uint32_t)take(&s, 4);
    first = (uint32_t)take(&s, 4);
    end = (uint32_t)take(&s, 4);
    if (s.is_bad || first != FIRST_TYPE || end < first || end - first > TYPES_MOST ||
        header > p->tpi_size)
        return damaged(p, "its type stream has a header that is not known");
    p->types = calloc(end - first + 1, sizeof(*p->types));
    if (!p->types)
        return prcb_fail(p->err, -ENOMEM, "%s: out of memory", p->path);
    s.at = p->tpi + header;
    while (p->type_count < end - first) {
        uint64_t length = take(&s, 2);

        if (s.is_bad || length < 2 || (size_t)(s.end - s.at) < length)
            return damaged(p, "a type record is cut short");
        p->types[p->type_count++] = (struct span){s.at, s.at + length, false};
        s.at += length;
    }
    return 0;
}

/* Finds the record of a type, its kind taken off; kind 0: it is a base type, or none. */
static struct span type_at(const struct pdb *p, uint32_t index, uint32_t *ret_kind)
{
    struct span s = {0};

    *ret_kind = 0;
    if (index < FIRST_TYPE || index - FIRST_TYPE >= p->type_count)
        return s;
    s = p->types[index - FIRST_TYPE];
    *ret_kind = (uint32_t)take(&s, 2);
    return s;
}

struct aggregate {
    const char *name;
    uint32_t fields, index; /* index: of the record */
    uint64_t size;
    bool is_forward;
};

static bool take_aggregate(struct span s, uint32_t kind, struct aggregate *ret)
{
    uint32_t properties;

    if (kind != LF_STRUCTURE && kind != LF_CLASS && kind != LF_UNION)
        return false;
    take(&s, 2);
    properties = (uint32_t)take(&s, 2);
    ret->is_forward = properties & PROPERTY_FORWARD;
    ret->fields = (uint32_t)take(&s, 4);
    if (kind != LF_UNION)
        take(&s, 8);
    ret->size = take_numeric(&s);
    ret->name = take_name(&s);
    return !s.is_bad;
}

static int compare_definitions(const void *a, const void *b)
{
    const struct definition *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order ? order : x->index < y->index ? -1 : x->index > y->index;
}

static int index_definitions(struct pdb *p)
{
    p->definitions = calloc(p->type_count + 1, sizeof(*p->definitions));
    if (!p->definitions)
        return prcb_fail(p->err, -ENOMEM, "%s: out of memory", p->path);
    for (uint32_t i = 0; i < p->type_count; i++) {
        struct aggregate a;
        uint32_t kind;
        struct span s = type_at(p, FIRST_TYPE + i, &kind);

        if (take_aggregate(s, kind, &a) && !a.is_forward)
            p->definitions[p->definition_count++] = (struct definition){a.name, FIRST_TYPE + i};
    }
    array_sort(p->definitions, p->definition_count, compare_definitions);
    return 0;
}

/* The definition that a name, or a declaration, stands for: the first of its name. */
static bool find_definition(const struct pdb *p, const char *name, struct aggregate *ret)
{
    size_t low = array_front(i, p->definition_count, strcmp(p->definitions[i].name, name) < 0);
    uint32_t kind;
    struct span s;

    if (low == p->definition_count || strcmp(p->definitions[low].name, name))
        return false;
    s = type_at(p, p->definitions[low].index, &kind);
    ret->index = p->definitions[low].index;
    return take_aggregate(s, kind, ret);
}

/* A kernel's PDB may hold shorter definitions, which some of its modules were built with: the
 * largest of a name, or the nth below it in size. */
static bool find_nth_largest(const struct pdb *p, const char *name, unsigned int nth,
                             struct aggregate *ret)
{
    size_t low = array_front(i, p->definition_count, strcmp(p->definitions[i].name, name) < 0);
    uint64_t below = UINT64_MAX;

    for (unsigned int n = 0; n <= nth; n++) {
        struct aggregate largest = {0};
        bool is_found = false;

        for (size_t i = low; i < p->definition_count && !strcmp(p->definitions[i].name, name);
             i++) {
            struct aggregate a = {.index = p->definitions[i].index};
            uint32_t kind;
            struct span s = type_at(p, a.index, &kind);

            if (!take_aggregate(s, kind, &a) || a.size >= below ||
                (is_found && a.size <= largest.size))
                continue;
            largest = a;
            is_found = true;
        }
        if (!is_found)
            return false;
        below = largest.size;
        *ret = largest;
    }
    return true;
}

/* Names that many structures share are told apart by their place. */
static void unique_name(const struct aggregate *a, char *ret, size_t size)
{
    if (a->name[0] == '<' || !strncmp(a->name, "__unnamed", 9) || !*a->name)
        snprintf(ret, size, "__type_%u", a->index);
    else
        snprintf(ret, size, "%s", a->name);
}

/* ---- JSON ---- */

static struct json_object *named(struct pdb *p, const char *kind, const char *name)
{
    struct json_object *o = json_object_new_object();

    json_doc_put(&p->doc, o, "kind", json_object_new_string(kind));
    if (name)
        json_doc_put(&p->doc, o, "name", json_object_new_string(name));
    return o;
}

static void add_base(struct pdb *p, const char *name, uint32_t size, bool is_signed)
{
    struct json_object *o;

    if (p->doc.failed || json_object_object_get_ex(p->base, name, NULL))
        return;
    o = json_object_new_object();
    json_doc_put_number(&p->doc, o, "size", size);
    json_doc_put_bool(&p->doc, o, "signed", is_signed);
    json_doc_put(&p->doc, p->base, name, o);
}

static struct json_object *pointer_json(struct pdb *p, uint32_t size)
{
    add_base(p, "pointer", size, false);
    return named(p, "pointer", NULL);
}

/* Types below FIRST_TYPE have their kind in the low byte, and their pointer mode above. */
static struct json_object *simple_json(struct pdb *p, uint32_t index)
{
    static const struct {
        uint8_t kind, size;
        bool is_signed;
        const char *name;
    } rows[] = {
        {0x10, 1, true, "CHAR"},       {0x68, 1, true, "CHAR"},       {0x70, 1, true, "CHAR"},
        {0x20, 1, false, "UCHAR"},     {0x69, 1, false, "UCHAR"},     {0x30, 1, false, "UCHAR"},
        {0x11, 2, true, "SHORT"},      {0x72, 2, true, "SHORT"},      {0x21, 2, false, "USHORT"},
        {0x73, 2, false, "USHORT"},    {0x71, 2, false, "WCHAR"},     {0x12, 4, true, "LONG"},
        {0x74, 4, true, "LONG"},       {0x08, 4, true, "LONG"},       {0x22, 4, false, "ULONG"},
        {0x75, 4, false, "ULONG"},     {0x40, 4, false, "ULONG"},     {0x13, 8, true, "LONGLONG"},
        {0x76, 8, true, "LONGLONG"},   {0x23, 8, false, "ULONGLONG"}, {0x77, 8, false, "ULONGLONG"},
        {0x41, 8, false, "ULONGLONG"},
    };

    if (index >> 8 & 0xf)
        return pointer_json(p, (index >> 8 & 0xf) == 6 ? 8 : 4);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].kind != (index & 0xff))
            continue;
        add_base(p, rows[i].name, rows[i].size, rows[i].is_signed);
        return named(p, "base", rows[i].name);
    }
    return named(p, "base", "void");
}

static void add_aggregate(struct pdb *p, const struct aggregate *a, bool is_union,
                          unsigned int depth);
static struct json_object *type_json(struct pdb *p, uint32_t index, unsigned int depth);

static uint64_t type_size(const struct pdb *p, uint32_t index, unsigned int depth);

static uint64_t simple_size(uint32_t index)
{
    static const uint8_t by_kind[256] = {
        [0x10] = 1, [0x68] = 1, [0x70] = 1, [0x20] = 1, [0x69] = 1, [0x30] = 1,
        [0x11] = 2, [0x72] = 2, [0x21] = 2, [0x73] = 2, [0x71] = 2, [0x12] = 4,
        [0x74] = 4, [0x08] = 4, [0x22] = 4, [0x75] = 4, [0x40] = 4, [0x13] = 8,
        [0x76] = 8, [0x23] = 8, [0x77] = 8, [0x41] = 8};

    if (index >> 8 & 0xf)
        return (index >> 8 & 0xf) == 6 ? 8 : 4;
    return by_kind[index & 0xff];
}

/* Returns the bytes of a type; 0 if it is none that has a size. */
static uint64_t type_size(const struct pdb *p, uint32_t index, unsigned int depth)
{
    struct aggregate a;
    uint32_t kind;
    struct span s = type_at(p, index, &kind);

    if (index < FIRST_TYPE)
        return simple_size(index);
    if (depth > DEPTH_MOST)
        return 0;
    if (take_aggregate(s, kind, &a))
        return a.is_forward && !find_definition(p, a.name, &a) ? 0 : a.size;
    if (kind == LF_MODIFIER || kind == LF_BITFIELD)
        return type_size(p, (uint32_t)take(&s, 4), depth + 1);
    if (kind == LF_POINTER) {
        take(&s, 4);
        return take(&s, 4) >> 13 & 0x3f;
    }
    if (kind == LF_ARRAY) {
        take(&s, 8);
        return take_numeric(&s);
    }
    if (kind == LF_ENUM) {
        take(&s, 4);
        return type_size(p, (uint32_t)take(&s, 4), depth + 1);
    }
    return 0;
}

static struct json_object *array_json(struct pdb *p, struct span s, unsigned int depth)
{
    struct json_object *o = named(p, "array", NULL);
    uint32_t element = (uint32_t)take(&s, 4);
    uint64_t size, one = type_size(p, element, 0);

    take(&s, 4); /* type of the index */
    size = take_numeric(&s);
    json_doc_put_number(&p->doc, o, "count", one ? size / one : 0);
    json_doc_put(&p->doc, o, "subtype", type_json(p, element, depth + 1));
    return o;
}

static struct json_object *enum_json(struct pdb *p, struct span s)
{
    struct json_object *o = json_object_new_object();
    uint64_t size;
    const char *name;

    take(&s, 4);
    size = type_size(p, (uint32_t)take(&s, 4), 0);
    take(&s, 4);
    name = take_name(&s);
    json_doc_put_number(&p->doc, o, "size", size ? size : 4);
    json_doc_put(&p->doc, p->enums, name, o);
    return named(p, "enum", name);
}

static struct json_object *type_json(struct pdb *p, uint32_t index, unsigned int depth)
{
    struct aggregate a = {.index = index};
    struct json_object *o;
    char name[256];
    uint32_t kind;
    struct span s = type_at(p, index, &kind);

    if (index < FIRST_TYPE)
        return simple_json(p, index);
    if (depth > DEPTH_MOST)
        return named(p, "base", "void");
    if (take_aggregate(s, kind, &a)) {
        if (!a.is_forward || find_definition(p, a.name, &a))
            add_aggregate(p, &a, kind == LF_UNION, depth);
        unique_name(&a, name, sizeof(name));
        return named(p, kind == LF_UNION ? "union" : "struct", name);
    }
    switch (kind) {
    case LF_MODIFIER:
        return type_json(p, (uint32_t)take(&s, 4), depth + 1);
    case LF_POINTER:
        return pointer_json(p, (uint32_t)type_size(p, index, 0));
    case LF_ARRAY:
        return array_json(p, s, depth);
    case LF_ENUM:
        return enum_json(p, s);
    case LF_BITFIELD:
        o = named(p, "bitfield", NULL);
        json_doc_put(&p->doc, o, "type", type_json(p, (uint32_t)take(&s, 4), depth + 1));
        json_doc_put_number(&p->doc, o, "bit_length", take(&s, 1));
        json_doc_put_number(&p->doc, o, "bit_position", take(&s, 1));
        return o;
    default:
        return named(p, "base", "void"); /* a function, or what no structure holds */
    }
}

/* Takes one entry of a field list; members go into fields. Returns the list it goes on in, or 0. */
static uint32_t take_field(struct pdb *p, struct span *s, struct json_object *fields,
                           unsigned int depth)
{
    struct json_object *o;
    uint32_t kind = (uint32_t)take(s, 2), type;
    uint64_t offset;

    take(s, 2); /* attributes, or a count */
    type = kind == LF_ENUMERATE ? 0 : (uint32_t)take(s, 4);
    switch (kind) {
    case LF_INDEX:
        s->at = s->end;
        return type;
    case LF_MEMBER:
        offset = take_numeric(s);
        o = json_object_new_object();
        json_doc_put_number(&p->doc, o, "offset", offset);
        json_doc_put(&p->doc, o, "type", type_json(p, type, depth + 1));
        json_doc_put(&p->doc, fields, take_name(s), o);
        break;
    case LF_BCLASS:
        take_numeric(s);
        break;
    case LF_STMEMBER:
    case LF_METHOD:
    case LF_NESTTYPE:
        take_name(s);
        break;
    case LF_VFUNCTAB:
        break;
    default:
        s->is_bad = true; /* what follows cannot be told */
        s->at = s->end;
    }
    while (s->at < s->end && *s->at >= 0xf0) /* LF_PAD1 .. LF_PAD15: bytes up to the next entry */
        s->at += *s->at & 0xf && (size_t)(s->end - s->at) > (*s->at & 0xfu) ? *s->at & 0xf : 1;
    return 0;
}

/* Structures that are there already are left alone, so that none is followed twice. */
static void add_aggregate(struct pdb *p, const struct aggregate *a, bool is_union,
                          unsigned int depth)
{
    struct json_object *o, *fields;
    uint32_t list = a->fields, count = 0;
    char name[256];

    unique_name(a, name, sizeof(name));
    if (p->doc.failed || json_object_object_get_ex(p->user, name, NULL))
        return;
    o = named(p, is_union ? "union" : "struct", NULL);
    fields = json_object_new_object();
    json_doc_put_number(&p->doc, o, "size", a->size);
    json_doc_put(&p->doc, o, "fields", fields);
    json_doc_put(&p->doc, p->user, name, o);
    if (p->doc.failed) /* fields may be gone */
        return;
    for (unsigned int lists = 0; list && lists < 64; lists++) {
        uint32_t kind;
        struct span s = type_at(p, list, &kind);

        list = 0;
        while (kind == LF_FIELDLIST && s.at < s.end && count++ < FIELDS_MOST)
            list = take_field(p, &s, fields, depth);
    }
}

bool dump_pdb_is(const uint8_t *bytes, size_t size)
{
    return size >= MAGIC_LENGTH && !memcmp(bytes, MAGIC, MAGIC_LENGTH);
}

/* "metadata", as volatility3 has it: the GUID in the order in which it is written. */
static struct json_object *metadata_json(struct pdb *p)
{
    static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    struct json_object *metadata = json_object_new_object(), *windows = json_object_new_object();
    struct json_object *pdb = json_object_new_object();
    char guid[33];

    for (int i = 0; i < 16; i++)
        snprintf(guid + 2 * i, 3, "%02X", p->guid[order[i]]);
    json_doc_put_text(&p->doc, pdb, "GUID", guid);
    json_doc_put_number(&p->doc, pdb, "age", p->age);
    json_doc_put_number(&p->doc, pdb, "machine_type", p->machine);
    json_doc_put(&p->doc, windows, "pdb", pdb);
    json_doc_put(&p->doc, metadata, "windows", windows);
    return metadata;
}

static int make_document(struct pdb *p, const char *const *wanted, unsigned int nth,
                         struct json_object **ret)
{
    struct json_object *top;
    struct aggregate kprcb;

    if (nth && !find_nth_largest(p, "_KPRCB", nth, &kprcb))
        return -ENOENT;
    top = json_object_new_object();

    p->user = json_object_new_object();
    p->base = json_object_new_object();
    p->enums = json_object_new_object();
    if (p->has_identity)
        json_doc_put(&p->doc, top, "metadata", metadata_json(p));
    json_doc_put(&p->doc, top, "user_types", p->user);
    json_doc_put(&p->doc, top, "base_types", p->base);
    json_doc_put(&p->doc, top, "enums", p->enums);
    for (; *wanted; wanted++) {
        struct aggregate a;
        char name[80];

        snprintf(name, sizeof(name), "_%s", *wanted);
        if (find_nth_largest(p, name, strcmp(*wanted, "KPRCB") ? 0 : nth, &a))
            add_aggregate(p, &a, false, 0);
    }
    if (p->doc.failed) {
        json_object_put(top);
        return prcb_fail(p->err, -ENOMEM, "%s: out of memory", p->path);
    }
    *ret = top;
    return 0;
}

int dump_pdb_read(const uint8_t *bytes, size_t size, const char *path, const char *const *wanted,
                  unsigned int nth, struct json_object **ret, struct prcb_error *err)
{
    struct pdb p = {.bytes = bytes, .size = size, .path = path, .err = err};
    int code = open_container(&p);

    if (!code)
        code = index_types(&p);
    if (!code)
        code = index_definitions(&p);
    if (!code)
        code = make_document(&p, wanted, nth, ret);
    free(p.definitions);
    free(p.types);
    free(p.tpi);
    return code;
}
