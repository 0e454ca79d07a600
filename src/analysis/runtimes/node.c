/* SPDX-License-Identifier: BSD-2-Clause
 *
 * V8 (Node.js): code that V8 made keeps frame pointers, and each of its frames has the function
 * whose frame it is. Where such a frame is the machine's stack says: its return addresses are
 * searched for in the stack's memory, and a frame counts only if its own return address is the one
 * that the machine's stack has next. Where members of objects lie V8 says itself, in symbols that
 * node exports for debuggers (v8dbg_).
 *
 * Source: V8's frame-constants.h, scope-info.tq, string.tq, source-position-table.cc.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtimes.h"

#define STACK_MOST  (512u << 10) /* bytes that are searched */
#define SLOTS_MOST  16u          /* of a description of a scope, behind its variables */
#define LOCALS_MOST 75u          /* more of them are in a table of their own */
#define PARTS_MOST  32u          /* of a text */
#define WORD_MOST   65535        /* of V8's own words: offsets, kinds */
#define TABLE_MOST  (1u << 16)   /* bytes of a table of positions */
#define SOURCE_MOST (4u << 20)   /* of a source, before the position */

/* Words that V8 says: a member of `struct words`, and its symbol. */
#define WORDS(W)                                                                                   \
    W(shared, "class_JSFunction__shared__SharedFunctionInfo")                                      \
    W(scope, "class_SharedFunctionInfo__name_or_scope_info__Object")                               \
    W(script, "class_SharedFunctionInfo__script_or_debug_info__HeapObject")                        \
    W(name, "class_Script__name__Object")                                                          \
    W(source, "class_Script__source__Object")                                                      \
    W(map_type, "class_Map__instance_type__uint16_t")                                              \
    W(length, "class_String__length__int32_t")                                                     \
    W(chars, "class_SeqOneByteString__chars__char")                                                \
    W(first, "class_ConsString__first__String")                                                    \
    W(second, "class_ConsString__second__String")                                                  \
    W(actual, "class_ThinString__actual__String")                                                  \
    W(resource, "class_ExternalString__resource__Object")                                          \
    W(no_text, "FirstNonstringType")                                                               \
    W(function, "off_fp_function")                                                                 \
    W(context, "off_fp_context")                                                                   \
    W(bytecode, "off_fp_bytecode_array")                                                           \
    W(bytecode_at, "off_fp_bytecode_offset")                                                       \
    W(is_shared, "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE")                             \
    W(is_scope, "type_ScopeInfo__SCOPE_INFO_TYPE")                                                 \
    W(is_script, "type_Script__SCRIPT_TYPE")                                                       \
    W(is_bytecode, "type_BytecodeArray__BYTECODE_ARRAY_TYPE")                                      \
    W(is_bytes, "type_ByteArray__BYTE_ARRAY_TYPE")                                                 \
    W(locals, "scopeinfo_idx_ncontextlocals")                                                      \
    W(variables, "scopeinfo_idx_first_vars")                                                       \
    W(code, "class_BytecodeArray__data__uintptr_t")                                                \
    W(array_length, "class_FixedArrayBase__length__SMI")                                           \
    W(array_data, "class_FixedArray__data__uintptr_t")

struct words {
#define W(member, symbol) int32_t member;
    WORDS(W)
#undef W
};

#define W(member, symbol) "v8dbg_" symbol,
static const char *const symbols[] = {WORDS(W) NULL};
#undef W
#define WORD_COUNT (sizeof(symbols) / sizeof(*symbols) - 1)
_Static_assert(WORD_COUNT < RUNTIME_SYMBOLS, "as runtimes.h says");

static const char *const replaced[] = {NULL};

/* Kinds of texts, in the type of an object (instance-type.h). */
#define TEXT_WAY      7u
#define TEXT_PLAIN    0u
#define TEXT_TWO      1u
#define TEXT_EXTERNAL 2u
#define TEXT_OTHER    5u
#define TEXT_BYTES    8u /* a byte a letter, as in Latin-1; else two */

/* Behind constant_pool and handler_table (bytecode-array.tq). */
#define POSITIONS_AT 32
/* Behind source and name (script.tq): the line that the source begins in, from 0. */
#define FIRST_LINE_AT 24

struct node {
    struct memory *memory;
    struct words w;
};

static int open_node(const struct runtime_process *process, void **ret_state)
{
    struct node *n;

    for (size_t i = 0; i < WORD_COUNT; i++) {
        if (!process->symbols[i].address)
            return -ENOTSUP;
    }
    n = calloc(1, sizeof(*n));
    if (!n)
        return -ENOMEM;
    n->memory = process->memory;
    for (size_t i = 0; i < WORD_COUNT; i++) {
        int32_t word = (int32_t)(process->symbols[i].word & UINT32_MAX);

        if (word < -WORD_MOST || word > WORD_MOST) {
            free(n);
            return -ENOTSUP;
        }
        memcpy((char *)&n->w + i * sizeof(word), &word, sizeof(word));
    }
    *ret_state = n;
    return 0;
}

static void close_node(void *state)
{
    free(state);
}

/* ---- objects: pointers have 1 in their last two bits, small numbers 0 ---- */

static bool word(const struct node *n, uint64_t address, uint64_t *ret)
{
    return memory_word(n->memory, address, ret);
}

/* Reads a member of an object. */
static bool member(const struct node *n, uint64_t object, int32_t at, uint64_t *ret)
{
    return (object & 3) == 1 && word(n, object - 1 + (uint64_t)(int64_t)at, ret);
}

static bool is_number(uint64_t word)
{
    return !(word & 1);
}

static bool type_of(const struct node *n, uint64_t object, uint16_t *ret)
{
    uint64_t map;

    return member(n, object, 0, &map) && (map & 3) == 1 &&
           memory_bytes(n->memory, map - 1 + (uint64_t)(int64_t)n->w.map_type, ret, sizeof(*ret));
}

static bool is_of(const struct node *n, uint64_t object, int32_t type)
{
    uint16_t found;

    return type_of(n, object, &found) && found == type;
}

/* A piece of a text: letters of one or two bytes. */
struct piece {
    uint64_t at;
    uint32_t letters, bytes; /* bytes: of a letter */
};

/* Finds where a text's letters are, if it is one piece. False: it is none. */
static bool piece_of(const struct node *n, uint64_t text, uint16_t type, struct piece *ret)
{
    uint64_t length;

    if (!member(n, text, n->w.length, &length))
        return false;
    ret->letters = (uint32_t)length;
    ret->bytes = type & TEXT_BYTES ? 1 : 2;
    ret->at = text - 1 + (uint64_t)(int64_t)n->w.chars;
    return (type & TEXT_WAY) == TEXT_PLAIN ||
           ((type & TEXT_WAY) == TEXT_EXTERNAL && member(n, text, n->w.resource + 8, &ret->at));
}

/* Follows a text that stands for another. */
static bool find_text(const struct node *n, uint64_t *text, uint16_t *ret_type)
{
    for (unsigned i = 0; i < PARTS_MOST; i++) {
        if (!type_of(n, *text, ret_type) || *ret_type >= n->w.no_text)
            return false;
        if ((*ret_type & TEXT_WAY) != TEXT_OTHER)
            return true;
        if (!member(n, *text, n->w.actual, text))
            return false;
    }
    return false;
}

/* Appends letters as UTF-8. Of a pair of surrogates each is a question mark. */
static bool put_letters(const struct node *n, const struct piece *piece, char *to, size_t *used)
{
    for (uint32_t i = 0; i < piece->letters; i++) {
        unsigned char raw[2] = {0, 0};
        unsigned letter;

        if (*used + 4 > RUNTIME_NAME)
            return true;
        if (!memory_bytes(n->memory, piece->at + (uint64_t)i * piece->bytes, raw, piece->bytes))
            return false;
        letter = raw[0] | (unsigned)raw[1] << 8;
        letter = letter >> 11 == 0x1b || !letter ? '?' : letter;
        if (letter >= 0x800)
            to[(*used)++] = (char)(0xe0 | letter >> 12);
        if (letter >= 0x80)
            to[(*used)++] =
                (char)(letter >= 0x800 ? 0x80 | (letter >> 6 & 0x3f) : 0xc0 | letter >> 6);
        to[(*used)++] = (char)(letter >= 0x80 ? 0x80 | (letter & 0x3f) : letter);
    }
    return true;
}

/* Reads a text of any number of pieces. */
static bool read_text(const struct node *n, uint64_t text, char ret[RUNTIME_NAME])
{
    uint64_t left[PARTS_MOST];
    size_t count = 0, used = 0;

    left[count++] = text;
    for (unsigned i = 0; count && i < PARTS_MOST; i++) {
        struct piece piece;
        uint16_t type;

        text = left[--count];
        if (!find_text(n, &text, &type))
            return false;
        if ((type & TEXT_WAY) != TEXT_TWO) {
            if (!piece_of(n, text, type, &piece) || !put_letters(n, &piece, ret, &used))
                return false;
        } else if (count + 2 > PARTS_MOST || !member(n, text, n->w.second, &left[count]) ||
                   !member(n, text, n->w.first, &left[count + 1])) {
            return false;
        } else {
            count += 2;
        }
    }
    ret[used] = '\0';
    return !count && used;
}

/* ---- functions ---- */

/* Reads the name and the first letter of a function; -1: not known. The first text behind a
 * scope's variables is the name, the first two numbers that rise are its place. */
static void read_scope(const struct node *n, uint64_t scope, char name[RUNTIME_NAME],
                       int64_t *start)
{
    uint64_t locals, before = 1;
    int32_t first;

    if (!member(n, scope, 8 + 8 * n->w.locals, &locals) || !is_number(locals))
        return;
    locals >>= 32;
    first = n->w.variables + (locals < LOCALS_MOST ? 2 * (int32_t)locals : 1);
    for (unsigned i = 0; i < SLOTS_MOST; i++) {
        uint64_t slot;

        if (!member(n, scope, 8 + 8 * (first + (int32_t)i), &slot))
            return;
        if (!*name && !is_number(slot) && !read_text(n, slot, name))
            *name = '\0';
        if (is_number(slot) && is_number(before) && (int64_t)before < (int64_t)slot) {
            *start = (int64_t)before >> 32;
            return;
        }
        before = slot;
    }
}

/* A list of numbers of seven bits a byte, the sign last. */
static bool next_number(const struct node *n, uint64_t *at, uint64_t end, int64_t *ret)
{
    uint64_t value = 0;

    for (unsigned shift = 0; *at < end && shift < 63; shift += 7) {
        uint8_t byte;

        if (!memory_bytes(n->memory, (*at)++, &byte, sizeof(byte)))
            return false;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret = (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
            return true;
        }
    }
    return false;
}

/* Finds the letter of the source that an interpreted frame is at; -1: not known. */
static int64_t letter_at(const struct node *n, uint64_t bytecode, uint64_t offset)
{
    int64_t wanted = (int64_t)(offset >> 32) - n->w.code + 1, at = -1, position = 0,
            found = -1; /* the entry of a function has the offset -1 */
    uint64_t table, length, begin, end;

    if (!is_number(offset) || !member(n, bytecode, POSITIONS_AT, &table) ||
        !is_of(n, table, n->w.is_bytes) || !member(n, table, n->w.array_length, &length) ||
        !is_number(length) || length >> 32 > TABLE_MOST)
        return -1;
    begin = table - 1 + (uint64_t)(int64_t)n->w.array_data;
    end = begin + (length >> 32);
    while (begin < end) {
        int64_t step, move;

        if (!next_number(n, &begin, end, &step) || !next_number(n, &begin, end, &move))
            return -1;
        step = step < 0 ? -(step + 1) : step;
        if (step > UINT32_MAX || move > INT32_MAX || move < INT32_MIN)
            return -1;
        at += step;
        position += move;
        if (at > wanted)
            break;
        found = (position >> 1 & 0x3fffffff) - 1;
    }
    return found;
}

/* Counts the lines of a source up to a letter. 0: not known. */
static uint32_t line_of(const struct node *n, uint64_t script, int64_t letter)
{
    unsigned char bytes[MEMORY_PAGE];
    uint32_t line = 1;
    struct piece piece;
    uint64_t text, end, first;
    uint16_t type;

    if (letter < 0 || !member(n, script, FIRST_LINE_AT, &first) || !is_number(first) ||
        !member(n, script, n->w.source, &text) || !find_text(n, &text, &type) ||
        !piece_of(n, text, type, &piece) || letter > piece.letters || letter > SOURCE_MOST)
        return 0;
    end = piece.at + (uint64_t)letter * piece.bytes;
    while (piece.at < end) {
        size_t size = end - piece.at < sizeof(bytes) ? (size_t)(end - piece.at) : sizeof(bytes);

        if (!memory_bytes(n->memory, piece.at, bytes, size))
            return 0;
        for (size_t i = 0; i < size; i += piece.bytes)
            line += bytes[i] == '\n' && (piece.bytes == 1 || !bytes[i + 1]);
        piece.at += size;
    }
    line += (uint32_t)(first >> 32);
    return line <= INT32_MAX ? line : 0;
}

/* Finds where a frame of a function with a script is. plain: its code was not optimized, which has
 * other functions in it that it does not say here. */
static uint32_t find_place(const struct node *n, uint64_t fp, uint64_t script, int64_t start,
                           char file[RUNTIME_NAME], bool *plain)
{
    uint64_t bytecode, offset, name;
    int64_t letter = -1;

    *plain = word(n, fp + (uint64_t)(int64_t)n->w.bytecode, &bytecode) &&
             is_of(n, bytecode, n->w.is_bytecode);
    if (*plain && word(n, fp + (uint64_t)(int64_t)n->w.bytecode_at, &offset))
        letter = letter_at(n, bytecode, offset);
    if (!member(n, script, n->w.name, &name) || !read_text(n, name, file))
        snprintf(file, RUNTIME_NAME, "(eval)");
    return line_of(n, script, letter >= 0 ? letter : start);
}

/* Says the function whose frame is at `fp`. False: there is none: others than functions' have the
 * number of their kind in the place of the context. */
static bool say_function(const struct node *n, uint64_t fp, struct runtime_frames *ret, bool *plain)
{
    char name[RUNTIME_NAME] = "", file[RUNTIME_NAME] = "(built in)";
    uint64_t function, shared, scope, script;
    int64_t start = -1;
    uint32_t line = 0;

    if (!word(n, fp + (uint64_t)(int64_t)n->w.context, &scope) || is_number(scope) ||
        !word(n, fp + (uint64_t)(int64_t)n->w.function, &function) ||
        !member(n, function, n->w.shared, &shared) || !is_of(n, shared, n->w.is_shared) ||
        !member(n, shared, n->w.scope, &scope) || !member(n, shared, n->w.script, &script))
        return false;
    if (is_of(n, scope, n->w.is_scope))
        read_scope(n, scope, name, &start);
    else if (!read_text(n, scope, name))
        *name = '\0';
    if (is_of(n, script, n->w.is_script))
        line = find_place(n, fp, script, start, file, plain);
    return runtime_put(ret, *name ? name : "(anonymous)", file, line);
}

/* ---- frames ---- */

/* Finds a word in the stack, from *at on. */
static bool find_word(const struct node *n, uint64_t wanted, uint64_t end, uint64_t *at)
{
    uint64_t words[64];

    for (; *at < end; *at += sizeof(words)) {
        size_t count = sizeof(words) / sizeof(*words);

        if (!memory_bytes(n->memory, *at, words, sizeof(words)))
            return false;
        for (size_t i = 0; i < count; i++) {
            if (words[i] == wanted) {
                *at += 8 * i;
                return true;
            }
        }
    }
    return false;
}

/* The machine's stack has the last byte of each call, which is the one before its return. */
static void follow_node(void *state, const struct runtime_process *process,
                        const struct runtime_thread *thread, const uint64_t *addresses,
                        size_t count, struct runtime_frames *ret)
{
    const struct node *n = state;
    uint64_t at = thread->sp & ~(uint64_t)7, end = at + STACK_MOST;
    bool all = true, any = false;

    (void)process;
    for (size_t i = 1; i + 1 < count; i++) {
        uint64_t fp, back, place = at;
        bool plain = true;

        if (!find_word(n, addresses[i] + 1, end, &place))
            continue;
        at = place + 8;
        if (!word(n, place - 8, &fp) || fp <= place || !word(n, fp + 8, &back) ||
            back != addresses[i + 1] + 1 || !say_function(n, fp, ret, &plain))
            continue;
        runtime_put_in_place(ret, (uint32_t)i);
        any = true;
        all &= plain;
    }
    if (any)
        runtime_set_state(ret, all ? RUNTIME_COMPLETE : RUNTIME_PARTLY);
    if (!all)
        runtime_unread(ret,
                       "functions of JavaScript that were compiled into their callers have names "
                       "after: node --no-turbo-inlining");
}

const struct runtime runtime_node = {
    .name = "V8",
    .symbols = symbols,
    .replaces = replaced,
    .step = "functions of JavaScript have names after: node --perf-basic-prof "
            "--interpreted-frames-native-stack",
    .open = open_node,
    .close = close_node,
    .follow = follow_node,
};
