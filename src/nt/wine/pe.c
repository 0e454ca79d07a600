/* SPDX-License-Identifier: BSD-2-Clause */
#include "pe.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "error.h"

#define SECTION_NAME   ".prcb\0\0" /* 8 bytes with the last 0 */
#define SECTION_SIZE   40u
#define SECTION_FLAGS  0x40000040u /* initialized data, read */
#define SECTIONS_MAX   96u
#define EXPORTS_MAX    0xffffu /* a name's index has 16 bits */
#define DIRECTORY_SIZE 40u     /* of the export directory */
#define NAME_MAX_BYTES 4096u
#define IMAGE_MAX      (1ull << 30) /* of a file: the offsets below stay clear of 32 bits */

/* Offsets in the optional header of PE32+. */
#define OPT_MAGIC             0u
#define OPT_SECTION_ALIGNMENT 32u
#define OPT_FILE_ALIGNMENT    36u
#define OPT_SIZE_OF_IMAGE     56u
#define OPT_SIZE_OF_HEADERS   60u
#define OPT_CHECKSUM          64u
#define OPT_DIRECTORY_COUNT   108u
#define OPT_EXPORT            112u
#define OPT_LEAST             120u

struct image {
    const uint8_t *bytes;
    size_t size;
    struct prcb_error *err;
};

/* A function of the table: an address in the image, or the text of a forwarder. */
struct function {
    uint32_t rva;
    const char *forward;
};

struct name {
    const char *text;
    uint32_t index; /* of functions */
};

struct exports {
    uint32_t head[10]; /* IMAGE_EXPORT_DIRECTORY */
    const char *module;
    struct function *functions;
    struct name *names;
    uint32_t function_count, name_count;
};

struct header {
    uint32_t optional; /* offset of the optional header */
    uint32_t sections; /* of the section headers */
    uint32_t section_count;
    uint32_t section_alignment, file_alignment;
    uint32_t size_of_image, size_of_headers;
    uint32_t export_rva, export_size;
};

static int damaged(const struct image *image, const char *what)
{
    return prcb_fail(image->err, -EBADMSG, "not a 64-bit Windows module, or a damaged one: %s",
                     what);
}

static bool inside(const struct image *image, uint64_t offset, uint64_t length)
{
    return length <= image->size && offset <= image->size - length;
}

/* Values are little-endian, as the processors that the modules are for. */
static uint16_t get16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t get32(const uint8_t *at)
{
    return (uint32_t)get16(at) | (uint32_t)get16(at + 2) << 16;
}

static void put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static void put32(uint8_t *at, uint32_t value)
{
    put16(at, value);
    put16(at + 2, value >> 16);
}

static uint64_t align(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

/* The offset of "PE\0\0"; 0: there is none. */
static uint32_t find_header(const uint8_t *bytes, size_t size)
{
    uint32_t at;

    if (size < 64 || memcmp(bytes, "MZ", 2))
        return 0;
    at = get32(bytes + 60);
    if (at > size || size - at < 24 || memcmp(bytes + at, "PE\0\0", 4))
        return 0;
    return at;
}

uint16_t pe_machine(const void *image, size_t size)
{
    uint32_t at = find_header(image, size);

    return at ? get16((const uint8_t *)image + at + 4) : 0;
}

static bool is_power_of_two(uint32_t value, uint32_t least, uint32_t most)
{
    return value >= least && value <= most && !(value & (value - 1));
}

static int read_header(const struct image *image, struct header *ret)
{
    uint32_t at = find_header(image->bytes, image->size), optional_size;
    const uint8_t *optional;

    if (!at || image->size > IMAGE_MAX)
        return damaged(image, "no header");
    if (get16(image->bytes + at + 4) != PE_MACHINE_AMD64)
        return damaged(image, "for another processor");
    ret->section_count = get16(image->bytes + at + 6);
    optional_size = get16(image->bytes + at + 20);
    ret->optional = at + 24;
    ret->sections = ret->optional + optional_size;
    if (optional_size < OPT_LEAST || !ret->section_count || ret->section_count > SECTIONS_MAX ||
        !inside(image, ret->sections, (ret->section_count + 1) * SECTION_SIZE))
        return damaged(image, "its headers");
    optional = image->bytes + ret->optional;
    ret->section_alignment = get32(optional + OPT_SECTION_ALIGNMENT);
    ret->file_alignment = get32(optional + OPT_FILE_ALIGNMENT);
    ret->size_of_image = get32(optional + OPT_SIZE_OF_IMAGE);
    ret->size_of_headers = get32(optional + OPT_SIZE_OF_HEADERS);
    ret->export_rva = get32(optional + OPT_EXPORT);
    ret->export_size = get32(optional + OPT_EXPORT + 4);
    if (get16(optional + OPT_MAGIC) != 0x20b || !get32(optional + OPT_DIRECTORY_COUNT) ||
        !is_power_of_two(ret->section_alignment, 0x1000, 0x10000) ||
        !is_power_of_two(ret->file_alignment, 0x200, 0x10000) || ret->size_of_image > IMAGE_MAX ||
        !ret->export_rva)
        return damaged(image, "its optional header");
    return 0;
}

static const uint8_t *section(const struct image *image, const struct header *header, uint32_t i)
{
    return image->bytes + header->sections + i * SECTION_SIZE;
}

/* One more header must lie before all that the headers are followed by. */
static int check_room(const struct image *image, const struct header *header)
{
    uint64_t end = header->sections + (header->section_count + 1) * SECTION_SIZE;

    for (uint32_t i = 0; i < header->section_count; i++) {
        const uint8_t *at = section(image, header, i);
        uint32_t raw_size = get32(at + 16), raw = get32(at + 20);

        if (!memcmp(at, SECTION_NAME, 8))
            return damaged(image, "it was rewritten before");
        if ((uint64_t)get32(at + 12) + get32(at + 8) > header->size_of_image)
            return damaged(image, "a section beyond its end");
        if (raw_size && raw < end)
            return prcb_fail(image->err, -ENOSPC, "no room for another section header");
    }
    if (header->size_of_headers < end)
        return prcb_fail(image->err, -ENOSPC, "no room for another section header");
    return 0;
}

/* `length` bytes at an address of the image, as the file has them; NULL: it has not. */
static const uint8_t *find_rva(const struct image *image, const struct header *header, uint32_t rva,
                               uint64_t length)
{
    for (uint32_t i = 0; i < header->section_count; i++) {
        const uint8_t *at = section(image, header, i);
        uint32_t start = get32(at + 12), raw_size = get32(at + 16), raw = get32(at + 20);

        if (rva < start || rva - start >= raw_size)
            continue;
        if (length > raw_size - (rva - start) || !inside(image, raw, raw_size))
            return NULL;
        return image->bytes + raw + (rva - start);
    }
    return NULL;
}

/* A text that ends within its section; NULL: it is none. */
static const char *find_text(const struct image *image, const struct header *header, uint32_t rva)
{
    for (uint32_t i = 0; i < header->section_count; i++) {
        const uint8_t *at = section(image, header, i), *text;
        uint32_t start = get32(at + 12), raw_size = get32(at + 16);
        size_t left;

        if (rva < start || rva - start >= raw_size)
            continue;
        left = raw_size - (rva - start);
        text = find_rva(image, header, rva, left);
        left = left < NAME_MAX_BYTES ? left : NAME_MAX_BYTES;
        return text && memchr(text, '\0', left) ? (const char *)text : NULL;
    }
    return NULL;
}

static void free_exports(struct exports *exports)
{
    free(exports->functions);
    free(exports->names);
}

static int read_functions(const struct image *image, const struct header *header,
                          struct exports *ret)
{
    const uint8_t *at = find_rva(image, header, ret->head[7], ret->function_count * 4ull);

    if (!at && ret->function_count)
        return damaged(image, "its exported functions");
    for (uint32_t i = 0; i < ret->function_count; i++) {
        struct function *function = &ret->functions[i];

        function->rva = get32(at + i * 4);
        if (function->rva < header->export_rva ||
            function->rva - header->export_rva >= header->export_size)
            continue;
        function->forward = find_text(image, header, function->rva);
        if (!function->forward)
            return damaged(image, "a forwarder");
    }
    return 0;
}

static int read_names(const struct image *image, const struct header *header, struct exports *ret)
{
    const uint8_t *names = find_rva(image, header, ret->head[8], ret->name_count * 4ull);
    const uint8_t *indexes = find_rva(image, header, ret->head[9], ret->name_count * 2ull);

    if ((!names || !indexes) && ret->name_count)
        return damaged(image, "its exported names");
    for (uint32_t i = 0; i < ret->name_count; i++) {
        ret->names[i].text = find_text(image, header, get32(names + i * 4));
        ret->names[i].index = get16(indexes + i * 2);
        if (!ret->names[i].text || ret->names[i].index >= ret->function_count)
            return damaged(image, "an exported name");
    }
    return 0;
}

/* With room for two more of each for every row. */
static int read_exports(const struct image *image, const struct header *header, size_t rows,
                        struct exports *ret)
{
    const uint8_t *at = find_rva(image, header, header->export_rva, DIRECTORY_SIZE);
    int result;

    if (!at)
        return damaged(image, "its export directory");
    for (unsigned i = 0; i < 10; i++)
        ret->head[i] = get32(at + i * 4);
    ret->module = find_text(image, header, ret->head[3]);
    ret->function_count = ret->head[5];
    ret->name_count = ret->head[6];
    if (!ret->module)
        return damaged(image, "its name");
    if (ret->function_count > EXPORTS_MAX - 2 * rows || ret->name_count > EXPORTS_MAX)
        return prcb_fail(image->err, -ENOSPC, "too many exports");
    ret->functions = calloc(ret->function_count + 2 * rows, sizeof(*ret->functions));
    ret->names = calloc(ret->name_count + 2 * rows, sizeof(*ret->names));
    if (!ret->functions || !ret->names)
        return prcb_fail(image->err, -ENOMEM, "out of memory");
    result = read_functions(image, header, ret);
    return result ? result : read_names(image, header, ret);
}

/* ---- the new table ---- */

static struct name *find_name(const struct exports *exports, uint32_t count, const char *text)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!strcmp(exports->names[i].text, text))
            return &exports->names[i];
    }
    return NULL;
}

static void add(struct exports *exports, const char *name, struct function function)
{
    exports->names[exports->name_count++] = (struct name){name, exports->function_count};
    exports->functions[exports->function_count++] = function;
}

/* The kept name leads to what stood there before any row was applied: two names may share one
 * function. */
static void apply(struct exports *exports, const struct pe_forward *rows, size_t count)
{
    const uint32_t names = exports->name_count;

    for (size_t i = 0; i < count; i++) {
        const struct name *name = find_name(exports, names, rows[i].name);

        if (name && rows[i].keep)
            add(exports, rows[i].keep, exports->functions[name->index]);
    }
    for (size_t i = 0; i < count; i++) {
        struct name *name = find_name(exports, names, rows[i].name);
        struct function forward = {.forward = rows[i].target};

        if (name)
            exports->functions[name->index] = forward;
        else
            add(exports, rows[i].name, forward);
    }
}

/* Names are sorted by their bytes, for loaders search them by halving. */
static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

static size_t text_size(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static uint64_t table_size(const struct exports *exports)
{
    uint64_t size = DIRECTORY_SIZE + exports->function_count * 4ull + exports->name_count * 6ull +
                    text_size(exports->module);

    for (uint32_t i = 0; i < exports->function_count; i++)
        size += text_size(exports->functions[i].forward);
    for (uint32_t i = 0; i < exports->name_count; i++)
        size += text_size(exports->names[i].text);
    return size;
}

struct writer {
    uint8_t *to;
    uint32_t rva; /* of to[0] */
    uint32_t text;
};

static uint32_t put_text(struct writer *writer, const char *text)
{
    uint32_t at = writer->text;

    memcpy(writer->to + at, text, text_size(text));
    writer->text += (uint32_t)text_size(text);
    return writer->rva + at;
}

static void write_table(const struct exports *exports, struct writer *writer)
{
    const uint32_t functions = DIRECTORY_SIZE, names = functions + exports->function_count * 4,
                   indexes = names + exports->name_count * 4;
    uint32_t head[10];

    writer->text = indexes + exports->name_count * 2;
    memcpy(head, exports->head, sizeof(head));
    head[3] = put_text(writer, exports->module);
    head[5] = exports->function_count;
    head[6] = exports->name_count;
    head[7] = writer->rva + functions;
    head[8] = writer->rva + names;
    head[9] = writer->rva + indexes;
    for (unsigned i = 0; i < 10; i++)
        put32(writer->to + i * 4, head[i]);
    for (uint32_t i = 0; i < exports->function_count; i++) {
        const struct function *function = &exports->functions[i];

        put32(writer->to + functions + i * 4,
              function->forward ? put_text(writer, function->forward) : function->rva);
    }
    for (uint32_t i = 0; i < exports->name_count; i++) {
        put32(writer->to + names + i * 4, put_text(writer, exports->names[i].text));
        put16(writer->to + indexes + i * 2, exports->names[i].index);
    }
}

static void write_headers(const struct header *header, uint8_t *to, uint32_t rva, uint32_t size,
                          uint32_t raw, uint32_t raw_size)
{
    uint8_t *optional = to + header->optional;
    uint8_t *section = to + header->sections + header->section_count * SECTION_SIZE;

    put16(optional - 24 + 6, header->section_count + 1);
    put32(optional + OPT_SIZE_OF_IMAGE, (uint32_t)align(rva + size, header->section_alignment));
    put32(optional + OPT_CHECKSUM, 0);
    put32(optional + OPT_EXPORT, rva);
    put32(optional + OPT_EXPORT + 4, size);
    memset(section, 0, SECTION_SIZE);
    memcpy(section, SECTION_NAME, 8);
    put32(section + 8, size);
    put32(section + 12, rva);
    put32(section + 16, raw_size);
    put32(section + 20, raw);
    put32(section + 36, SECTION_FLAGS);
}

static int write_image(const struct image *image, const struct header *header,
                       const struct exports *exports, void **ret, size_t *ret_size)
{
    uint64_t size = table_size(exports), file = align(image->size, 0x10000);
    uint64_t raw_size = align(size, header->file_alignment);
    uint32_t rva = (uint32_t)align(header->size_of_image, header->section_alignment);
    struct writer writer = {.rva = rva};
    uint8_t *made;

    if (file + raw_size > IMAGE_MAX)
        return prcb_fail(image->err, -ENOSPC, "too large");
    made = calloc(1, (size_t)(file + raw_size));
    if (!made)
        return prcb_fail(image->err, -ENOMEM, "out of memory");
    memcpy(made, image->bytes, image->size);
    writer.to = made + file;
    write_table(exports, &writer);
    write_headers(header, made, rva, (uint32_t)size, (uint32_t)file, (uint32_t)raw_size);
    *ret = made;
    *ret_size = (size_t)(file + raw_size);
    return 0;
}

int pe_add_forwards(const void *bytes, size_t size, const struct pe_forward *rows, size_t count,
                    void **ret, size_t *ret_size, struct prcb_error *err)
{
    const struct image image = {.bytes = bytes, .size = size, .err = err};
    struct exports exports = {0};
    struct header header = {0};
    int result = read_header(&image, &header);

    if (!result)
        result = check_room(&image, &header);
    if (!result)
        result = read_exports(&image, &header, count, &exports);
    if (!result) {
        apply(&exports, rows, count);
        array_sort(exports.names, exports.name_count, compare_names);
        result = write_image(&image, &header, &exports, ret, ret_size);
    }
    free_exports(&exports);
    return result;
}
