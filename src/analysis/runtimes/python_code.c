/* SPDX-License-Identifier: BSD-2-Clause */
#include "python_code.h"

#include <stdlib.h>
#include <string.h>

#include "now.h"
#include "python_lines.h"

#define KEPT_BYTES (4u << 20)
#define LINES_MOST                                                                                 \
    (64u << 10) /* bytes of a table of lines; of a longer one the function's line is said */

/* What a code object says of itself. */
struct said {
    uint64_t name, file, lines;
    uint32_t first, version;
};

struct known {
    uint64_t object;
    struct said said;
    uint64_t at; /* the instruction whose line was asked for last, */
    uint32_t line, lines_size;
    size_t size;                 /* of all of this */
    uint64_t since;              /* it was this one then */
    const char *function, *file; /* both in bytes, behind the table of lines */
    unsigned char bytes[];
};

/* ---- texts ---- */

bool python_said_in(const unsigned char *bytes, uint32_t offset, uint64_t *ret)
{
    if (offset > PYTHON_OBJECT_MOST - sizeof(*ret))
        return false;
    memcpy(ret, bytes + offset, sizeof(*ret));
    return true;
}

/* Writes one character as UTF-8. Returns how many bytes; 0: there is no room. */
static size_t put_utf8(uint32_t c, char *to, size_t room)
{
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t length;

    if (c > 0x10ffff || !c || c - 0xd800 < 0x800)
        c = 0xfffd;
    length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (room < length)
        return 0;
    for (size_t i = length - 1; i; i--) {
        to[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    to[0] = (char)(leads[length] | c);
    return length;
}

static void to_utf8(const unsigned char *bytes, size_t count, uint32_t kind, char *ret)
{
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t c = 0;
        size_t step;

        memcpy(&c, bytes + i * kind, kind);
        step = put_utf8(c, ret + used, RUNTIME_NAME - 1 - used);
        if (!step)
            break;
        used += step;
    }
    ret[used] = '\0';
}

bool python_text(const struct python_code *c, uint64_t object, char ret[RUNTIME_NAME])
{
    unsigned char head[PYTHON_OBJECT_MOST], bytes[4 * RUNTIME_NAME];
    const struct python_layout *l = c->layout;
    uint64_t length, state;
    uint32_t kind, compact, ascii;
    size_t count;

    if (l->compact > sizeof(head) || !memory_bytes(c->memory, object, head, l->ascii) ||
        !python_said_in(head, l->text_length, &length) ||
        !python_said_in(head, l->text_state, &state))
        return false;
    kind = (uint32_t)(state >> l->kind_shift) & 7;
    compact = (uint32_t)(state >> (l->kind_shift + 3)) & 1;
    ascii = (uint32_t)(state >> (l->kind_shift + 4)) & 1;
    if (!compact || (kind != 1 && kind != 2 && kind != 4) || length > 1u << 20)
        return false;
    count = length < RUNTIME_NAME ? (size_t)length : RUNTIME_NAME;
    if (!memory_bytes(c->memory, object + (ascii ? l->ascii : l->compact), bytes, count * kind))
        return false;
    if (ascii && count < RUNTIME_NAME && !memchr(bytes, 0, count)) {
        memcpy(ret, bytes, count);
        ret[count] = '\0';
    } else {
        to_utf8(bytes, count, kind, ret);
    }
    return true;
}

/* ---- code objects ---- */

static bool read_said(const struct python_code *c, uint64_t object, struct said *ret)
{
    unsigned char code[PYTHON_OBJECT_MOST];
    const struct python_layout *l = c->layout;
    uint32_t name = l->qualname == PYTHON_ABSENT ? l->name : l->qualname;
    uint32_t last = l->bytecode == PYTHON_ABSENT ? l->lines_at + 8 : l->bytecode;
    uint64_t first, version = 0;

    if (last > sizeof(code) || !memory_bytes(c->memory, object, code, last) ||
        !python_said_in(code, name, &ret->name) || !python_said_in(code, l->filename, &ret->file) ||
        !python_said_in(code, l->lines_at, &ret->lines) ||
        !python_said_in(code, l->first_line, &first))
        return false;
    if (l->version != PYTHON_ABSENT && !python_said_in(code, l->version, &version))
        return false;
    ret->first = (uint32_t)first;
    ret->version = (uint32_t)version;
    return true;
}

static bool same_said(const struct said *a, const struct said *b)
{
    return a->name == b->name && a->file == b->file && a->lines == b->lines &&
           a->first == b->first && a->version == b->version;
}

/* The functions of one file share its name, which is read once in a question. */
static bool same_file(struct python_code *c, const struct known *known)
{
    if (c->file_question != c->memory->question || c->file_object != known->said.file) {
        c->file_question = 0;
        if (!python_text(c, known->said.file, c->file))
            return false;
        c->file_question = c->memory->question;
        c->file_object = known->said.file;
    }
    return !strcmp(c->file, known->file);
}

static bool same_texts(struct python_code *c, const struct known *known)
{
    char text[RUNTIME_NAME];

    return python_text(c, known->said.name, text) && !strcmp(text, known->function) &&
           same_file(c, known);
}

static void forget_all(struct python_code *c)
{
    for (size_t i = 0; i < c->kept.room; i++)
        free(c->kept.slots[i].item);
    table_free(&c->kept);
    c->bytes = 0;
}

void python_code_deinit(struct python_code *c)
{
    forget_all(c);
}

static struct known *keep(struct python_code *c, struct known *fresh)
{
    if (c->bytes + fresh->size > KEPT_BYTES)
        forget_all(c);
    if (table_put(&c->kept, fresh->object, fresh)) {
        free(fresh);
        return NULL;
    }
    c->bytes += fresh->size;
    return fresh;
}

static struct known *read_known(struct python_code *c, uint64_t object, const struct said *said)
{
    char function[RUNTIME_NAME], file[RUNTIME_NAME];
    const struct python_layout *l = c->layout;
    size_t function_size, file_size, bytes;
    uint64_t size = 0;
    struct known *fresh;

    if (!python_text(c, said->name, function) || !python_text(c, said->file, file))
        return NULL;
    if (!memory_word(c->memory, said->lines + l->bytes_size, &size) || size > LINES_MOST)
        size = 0;
    function_size = strlen(function) + 1;
    file_size = strlen(file) + 1;
    bytes = sizeof(*fresh) + (size_t)size + function_size + file_size;
    fresh = malloc(bytes);
    if (!fresh)
        return NULL;
    *fresh = (struct known){.object = object, .said = *said, .at = UINT64_MAX, .size = bytes};
    if (memory_bytes(c->memory, said->lines + l->bytes_at, fresh->bytes, (size_t)size))
        fresh->lines_size = (uint32_t)size;
    fresh->function = (char *)fresh->bytes + size;
    fresh->file = fresh->function + function_size;
    fresh->since = now_ns();
    memcpy(fresh->bytes + size, function, function_size);
    memcpy(fresh->bytes + size + function_size, file, file_size);
    return keep(c, fresh);
}

static struct known *find_known(struct python_code *c, uint64_t object)
{
    struct known *known = table_find(&c->kept, object);
    struct said said;

    if (!read_said(c, object, &said))
        return NULL;
    if (known && same_said(&known->said, &said) && (said.version || same_texts(c, known)))
        return known;
    if (known) {
        table_remove(&c->kept, object, known);
        c->bytes -= known->size;
        free(known);
    }
    return read_known(c, object, &said);
}

static uint32_t line_of(const struct python_code *c, struct known *known, uint64_t instruction)
{
    const struct python_layout *l = c->layout;
    uint64_t at = l->bytecode != PYTHON_ABSENT ? instruction - known->object - l->bytecode
                  : (int32_t)instruction < 0   ? 0
                                               : instruction & INT32_MAX;

    if (l->lines == PYTHON_LINETABLE)
        at *= 2;
    if (known->at == at)
        return known->line;
    known->at = at;
    known->line = python_line(l->lines, known->bytes, known->lines_size, known->said.first, at);
    if (!known->line)
        known->line = known->said.first;
    return known->line;
}

bool python_code_find(struct python_code *c, uint64_t object, uint64_t instruction, uint64_t at,
                      const char **ret_function, const char **ret_file, uint32_t *ret_line)
{
    struct known *known = find_known(c, object);

    if (!known || known->since > at)
        return false;
    *ret_function = known->function;
    *ret_file = known->file;
    *ret_line = line_of(c, known, instruction);
    return true;
}
