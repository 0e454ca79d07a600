/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The JVM (HotSpot): a thread that waits has left Java's code, and says where (its anchor). From
 * there frames are followed as the VM does: of the interpreter by their pointer, of compiled code
 * by its size. Where members of structures lie the VM says itself, in tables that libjvm exports
 * for debuggers; their texts are read in the file.
 *
 * Source: OpenJDK's runtime/vmStructs.cpp, code/codeHeap, frame_x86, debugInfo, compressedStream.
 */
#include <errno.h>
#include <gelf.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "java.h"
#include "runtimes.h"

#define STRUCTS_MOST 8192
#define TYPES_MOST   4096
#define THREADS_MOST 65536
#define THREADS_KEPT 1024
#define HEAPS_MOST   8
#define STEPS_MOST   1024
#define HOPS_MOST    65536u /* in a map of segments */
#define PCS_MOST     (1u << 20)
#define INLINED_MOST 64
#define LINES_MOST   65536u
#define CODE_MOST    (4ull << 30)
#define SYMBOL_MOST  255u
#define NO_SOURCE    "Unknown Source" /* as the VM says it */

enum symbol { STRUCTS, TYPES };
static const char *const symbols[] = {"gHotSpotVMStructs", "gHotSpotVMTypes", NULL};
static const char *const replaced[] = {NULL};

/* A row of VMStructs, and of VMTypes. */
struct vm_struct {
    uint64_t type, field, kind;
    uint32_t is_static, rest;
    uint64_t offset, address;
};

struct vm_type {
    uint64_t name, super;
    uint32_t flags[4];
    uint64_t size;
};

/* Members: offsets, or addresses of static ones. */
#define MEMBERS(M)                                                                                 \
    M(version, "Abstract_VM_Version", "_vm_major_version")                                         \
    M(threads, "ThreadsSMRSupport", "_java_thread_list")                                           \
    M(length, "ThreadsList", "_length")                                                            \
    M(list, "ThreadsList", "_threads")                                                             \
    M(osthread, "?Thread", "_osthread")                                                            \
    M(tid, "OSThread", "_thread_id")                                                               \
    M(anchor, "JavaThread", "_anchor")                                                             \
    M(last_sp, "JavaFrameAnchor", "_last_Java_sp")                                                 \
    M(last_pc, "JavaFrameAnchor", "_last_Java_pc")                                                 \
    M(last_fp, "JavaFrameAnchor", "_last_Java_fp")                                                 \
    M(wrapped, "JavaCallWrapper", "_anchor")                                                       \
    M(heaps, "CodeCache", "_heaps")                                                                \
    M(array_length, "GrowableArrayBase", "_len")                                                   \
    M(array_data, "GrowableArray<int>", "_data")                                                   \
    M(heap_memory, "CodeHeap", "_memory")                                                          \
    M(heap_map, "CodeHeap", "_segmap")                                                             \
    M(heap_log2, "CodeHeap", "_log2_segment_size")                                                 \
    M(space_low, "VirtualSpace", "_low")                                                           \
    M(space_high, "VirtualSpace", "_high")                                                         \
    M(blob_name, "CodeBlob", "_name")                                                              \
    M(blob_frame, "CodeBlob", "_frame_size")                                                       \
    M(blob_code, "CodeBlob", "_code_begin")                                                        \
    M(compiled, "CompiledMethod", "_method")                                                       \
    M(scopes, "CompiledMethod", "_scopes_data_begin")                                              \
    M(metadata, "nmethod", "_metadata_offset")                                                     \
    M(pcs, "nmethod", "_scopes_pcs_offset")                                                        \
    M(pcs_end, "nmethod", "_dependencies_offset")                                                  \
    M(pc_offset, "PcDesc", "_pc_offset")                                                           \
    M(pc_scope, "PcDesc", "_scope_decode_offset")                                                  \
    M(method_const, "Method", "_constMethod")                                                      \
    M(constants, "ConstMethod", "_constants")                                                      \
    M(code_size, "ConstMethod", "_code_size")                                                      \
    M(name_index, "ConstMethod", "_name_index")                                                    \
    M(const_flags, "ConstMethod", "?_flags")                                                       \
    M(holder, "ConstantPool", "_pool_holder")                                                      \
    M(class_name, "Klass", "_name")                                                                \
    M(source, "ConstantPool", "_source_file_name_index")                                           \
    M(text_length, "Symbol", "_length")                                                            \
    M(text, "Symbol", "_body")
#define SIZES(S)                                                                                   \
    S(block, "HeapBlock")                                                                          \
    S(pool, "ConstantPool")                                                                        \
    S(const_method, "ConstMethod")                                                                 \
    S(pc_desc, "PcDesc")

struct layout {
#define M(member, type, field) uint64_t member;
#define S(member, type)        uint64_t member##_bytes;
    MEMBERS(M)
    SIZES(S)
};

static const struct {
    size_t at;
    const char *type, *field; /* "?Thread": any that ends so */
} wanted[] = {
#undef M
#undef S
#define M(member, type, field) {offsetof(struct layout, member), type, field},
#define S(member, type)        {offsetof(struct layout, member##_bytes), type, NULL},
    MEMBERS(M) SIZES(S)};
#define WANTED (sizeof(wanted) / sizeof(*wanted))
_Static_assert(WANTED == JAVA_MEMBERS, "as java.h says");

const uint16_t *java_members;

/* Interpreter frames: words from the frame pointer (frame_x86.hpp). */
#define FRAME_SENDER_SP (-1 * 8)
#define FRAME_METHOD    (-3 * 8)
#define FRAME_BCP       (-8 * 8)
#define ENTRY_WRAPPER   (-6 * 8)
#define HAS_LINES       1u /* of ConstMethod's flags */

struct heap {
    uint64_t low, high, map, map_high;
    uint32_t log2;
};

struct java {
    struct memory *memory;
    uint32_t excluded; /* what the bytes of numbers begin with: 0 ends lists */
    struct layout l;
    struct heap heaps[HEAPS_MOST];
    size_t heap_count;
    uint64_t low, high; /* of all heaps */
    struct {
        pid_t tid;
        uint64_t thread;
    } kept[THREADS_KEPT]; /* where threads were found, by number */
};

/* ---- reading ---- */

static bool number(const struct java *j, uint64_t address, unsigned bytes, uint64_t *ret)
{
    *ret = 0;
    return memory_bytes(j->memory, address, ret, bytes);
}

static bool word(const struct java *j, uint64_t address, uint64_t *ret)
{
    return memory_word(j->memory, address, ret);
}

/* Whether a text of the library's file is this one. */
static bool is_text(const struct runtime_process *process, uint64_t address, const char *text)
{
    char found[64] = "";
    size_t length = strlen(text), least = *text == '?';

    if (length >= sizeof(found) || !runtime_file(process, address, found, sizeof(found) - 1))
        return false;
    if (!least)
        return !strcmp(found, text);
    length = strlen(found);
    return length >= strlen(text + 1) && !strcmp(found + length - strlen(text + 1), text + 1);
}

static void take_struct(struct java *j, const struct runtime_process *process,
                        const struct vm_struct *row)
{
    for (size_t i = 0; i < WANTED; i++) {
        if (wanted[i].field && is_text(process, row->field, wanted[i].field) &&
            is_text(process, row->type, wanted[i].type)) {
            uint64_t value = row->is_static ? row->address : row->offset;

            memcpy((char *)&j->l + wanted[i].at, &value, sizeof(value));
            return;
        }
    }
}

static int take_tables(struct java *j, const struct runtime_process *process)
{
    uint64_t structs, types;
    struct vm_struct row;
    struct vm_type type;

    memset(&j->l, 0xff, sizeof(j->l));
    if (!word(j, process->symbols[STRUCTS].address, &structs) || !structs ||
        !process->symbols[TYPES].address || !word(j, process->symbols[TYPES].address, &types))
        return -EAGAIN;
    for (unsigned i = 0; i < STRUCTS_MOST; i++) {
        if (!memory_bytes(j->memory, structs + i * sizeof(row), &row, sizeof(row)))
            return -ENOTSUP;
        if (!row.type)
            break;
        take_struct(j, process, &row);
    }
    for (unsigned i = 0; i < TYPES_MOST; i++) {
        if (!memory_bytes(j->memory, types + i * sizeof(type), &type, sizeof(type)))
            return -ENOTSUP;
        if (!type.name)
            break;
        for (size_t k = 0; k < WANTED; k++) {
            if (!wanted[k].field && is_text(process, type.name, wanted[k].type))
                memcpy((char *)&j->l + wanted[k].at, &type.size, sizeof(type.size));
        }
    }
    for (size_t i = 0; i < WANTED; i++) {
        uint64_t value;

        memcpy(&value, (char *)&j->l + wanted[i].at, sizeof(value));
        if (value == UINT64_MAX)
            return -ENOTSUP;
    }
    return 0;
}

static int take_members(struct java *j)
{
    for (size_t i = 0; i < WANTED; i++) {
        uint64_t value = java_members[i];

        memcpy((char *)&j->l + wanted[i].at, &value, sizeof(value));
    }
    return 0;
}

/* 17 and 21 are the versions whose tables of lines and frames these are. */
static int open_java(const struct runtime_process *process, void **ret_state)
{
#if defined(__x86_64__)
    struct java *j = calloc(1, sizeof(*j));
    uint64_t version;
    int result;

    if (!j)
        return -ENOMEM;
    j->memory = process->memory;
    result = java_members ? take_members(j) : take_tables(j, process);
    if (!result && !number(j, j->l.version, 4, &version))
        result = -EAGAIN;
    if (!result && version && version != 17 && version != 21 && !java_members)
        result = -ENOTSUP;
    if (!result && !version && !java_members)
        result = -EAGAIN;
    j->excluded = !result && !java_members && version == 21;
    if (result)
        free(j);
    else
        *ret_state = j;
    return result;
#else
    (void)process;
    (void)ret_state;
    return -ENOTSUP;
#endif
}

static void close_java(void *state)
{
    free(state);
}

/* ---- code ---- */

static bool read_heap(struct java *j, uint64_t address, struct heap *ret)
{
    const struct layout *l = &j->l;
    uint64_t log2;

    if (!word(j, address + l->heap_memory + l->space_low, &ret->low) ||
        !word(j, address + l->heap_memory + l->space_high, &ret->high) ||
        !word(j, address + l->heap_map + l->space_low, &ret->map) ||
        !word(j, address + l->heap_map + l->space_high, &ret->map_high) ||
        !number(j, address + l->heap_log2, 4, &log2) || log2 < 3 || log2 > 16 ||
        ret->low >= ret->high || ret->high - ret->low > CODE_MOST)
        return false;
    ret->log2 = (uint32_t)log2;
    return true;
}

static bool read_heaps(struct java *j)
{
    uint64_t array, length, data, heap;

    j->heap_count = 0;
    j->low = UINT64_MAX;
    j->high = 0;
    if (!word(j, j->l.heaps, &array) || !number(j, array + j->l.array_length, 4, &length) ||
        !word(j, array + j->l.array_data, &data))
        return false;
    for (uint64_t i = 0; i < length && i < HEAPS_MOST; i++) {
        struct heap *at = &j->heaps[j->heap_count];

        if (!word(j, data + 8 * i, &heap) || !read_heap(j, heap, at))
            return false;
        j->low = at->low < j->low ? at->low : j->low;
        j->high = at->high > j->high ? at->high : j->high;
        j->heap_count++;
    }
    return j->heap_count;
}

/* A piece of code. */
struct blob {
    uint64_t address, code;
    int32_t frame; /* words */
    char name[24];
};

static bool find_blob(const struct java *j, uint64_t pc, struct blob *ret)
{
    const struct heap *heap = j->heaps;
    uint64_t at, hop = 1, name, frame;

    while (heap < j->heaps + j->heap_count && (pc < heap->low || pc >= heap->high))
        heap++;
    if (heap == j->heaps + j->heap_count)
        return false;
    at = (pc - heap->low) >> heap->log2;
    /* Each segment says how far back its piece begins, in hops of up to 254. */
    for (unsigned i = 0; hop && i < HOPS_MOST; i++) {
        if (at >= heap->map_high - heap->map || !number(j, heap->map + at, 1, &hop) ||
            hop == 0xff || hop > at)
            return false;
        at -= hop;
    }
    ret->address = heap->low + (at << heap->log2) + j->l.block_bytes;
    memset(ret->name, 0, sizeof(ret->name));
    if (hop || !word(j, ret->address + j->l.blob_name, &name) ||
        !word(j, ret->address + j->l.blob_code, &ret->code) ||
        !number(j, ret->address + j->l.blob_frame, 4, &frame) ||
        !memory_bytes(j->memory, name, ret->name, sizeof(ret->name) - 1))
        return false;
    ret->frame = (int32_t)frame;
    return pc >= ret->code;
}

/* ---- methods ---- */

static bool read_symbol(const struct java *j, uint64_t symbol, char ret[SYMBOL_MOST + 1])
{
    uint64_t length;

    if (!number(j, symbol + j->l.text_length, 2, &length))
        return false;
    length = length < SYMBOL_MOST ? length : SYMBOL_MOST;
    ret[length] = '\0';
    return memory_bytes(j->memory, symbol + j->l.text, ret, (size_t)length) && length &&
           !memchr(ret, '\0', (size_t)length);
}

static bool read_constant(const struct java *j, uint64_t pool, uint64_t index,
                          char ret[SYMBOL_MOST + 1])
{
    uint64_t symbol;

    return word(j, pool + j->l.pool_bytes + 8 * index, &symbol) &&
           read_symbol(j, symbol & ~(uint64_t)1, ret);
}

/* Bytes of a compressed list, as they are read. */
struct stream {
    const struct java *j;
    uint64_t at;
    bool bad;
};

static uint32_t next_byte(struct stream *s)
{
    uint64_t byte;

    s->bad |= !number(s->j, s->at++, 1, &byte);
    return s->bad ? 0 : (uint32_t)byte;
}

/* A number of one to five bytes, of which those below 192 are the last. Source: UNSIGNED5 in
 * code/compressedStream.hpp of 17, utilities/unsigned5.hpp of 21. */
static uint32_t next_number(struct stream *s)
{
    uint32_t byte = next_byte(s), sum = byte - s->j->excluded;

    for (unsigned shift = 6; byte >= 192 && shift <= 24; shift += 6) {
        byte = next_byte(s);
        sum += (byte - s->j->excluded) << shift;
    }
    return sum;
}

static int32_t next_signed(struct stream *s)
{
    uint32_t n = next_number(s);

    return (int32_t)(n >> 1) ^ -(int32_t)(n & 1);
}

/* Finds the line of a bytecode. 0: not known. */
static uint32_t line_of(const struct java *j, uint64_t method, int64_t bytecode)
{
    struct stream s = {.j = j};
    int64_t at = 0, line = 0, found = 0;
    uint64_t size, flags;

    if (bytecode < 0 || !number(j, method + j->l.const_flags, 2, &flags) || !(flags & HAS_LINES) ||
        !number(j, method + j->l.code_size, 2, &size))
        return 0;
    s.at = method + j->l.const_method_bytes + size;
    for (unsigned i = 0; i < LINES_MOST && !s.bad; i++) {
        uint32_t byte = next_byte(&s);

        if (!byte)
            break;
        at += byte == 0xff ? next_signed(&s) : (int32_t)(byte >> 3);
        line += byte == 0xff ? next_signed(&s) : (int32_t)(byte & 7);
        if (at > bytecode)
            break;
        found = line;
    }
    return !s.bad && found > 0 && found <= INT32_MAX ? (uint32_t)found : 0;
}

/* Puts "java.util.concurrent.locks.LockSupport.park", "LockSupport.java", 194. */
static bool put_method(const struct java *j, uint64_t method, int64_t bytecode,
                       struct runtime_frames *ret)
{
    char class[SYMBOL_MOST + 1], name[SYMBOL_MOST + 1], file[SYMBOL_MOST + 1], full[RUNTIME_NAME];
    uint64_t constant, pool, holder, symbol, index;

    if (!word(j, method + j->l.method_const, &constant) ||
        !word(j, constant + j->l.constants, &pool) ||
        !number(j, constant + j->l.name_index, 2, &index) || !read_constant(j, pool, index, name) ||
        !word(j, pool + j->l.holder, &holder) || !word(j, holder + j->l.class_name, &symbol) ||
        !read_symbol(j, symbol, class))
        return false;
    for (char *at = class; *at; at++)
        *at = *at == '/'   ? '.'
              : *at == '+' ? '/'
                           : *at; /* a hidden class has its address behind it */
    snprintf(full, sizeof(full), "%s.%s", class, name);
    if (!number(j, pool + j->l.source, 2, &index) || !index || !read_constant(j, pool, index, file))
        snprintf(file, sizeof(file), NO_SOURCE);
    if (!runtime_put(ret, full, file, line_of(j, constant, bytecode)))
        return false;
    runtime_end_group(ret);
    return true;
}

/* Puts the methods that were compiled into one another at a place. False: the place says none. */
static bool put_scopes(const struct java *j, const struct blob *blob, uint64_t pc,
                       struct runtime_frames *ret)
{
    const struct layout *l = &j->l;
    uint64_t begin, end, scopes, metadata, at, offset, low = 0, high, method;
    bool any = false;

    if (!number(j, blob->address + l->pcs, 4, &begin) ||
        !number(j, blob->address + l->pcs_end, 4, &end) || begin > end ||
        !word(j, blob->address + l->scopes, &scopes) ||
        !number(j, blob->address + l->metadata, 4, &metadata) || l->pc_desc_bytes < 8)
        return false;
    high = (end - begin) / l->pc_desc_bytes;
    if (high > PCS_MOST)
        return false;
    while (low < high) { /* the first that is no earlier */
        uint64_t middle = low + (high - low) / 2;

        if (!number(j, blob->address + begin + middle * l->pc_desc_bytes + l->pc_offset, 4, &at))
            return false;
        if ((int32_t)at < (int64_t)(pc - blob->code))
            low = middle + 1;
        else
            high = middle;
    }
    at = blob->address + begin + low * l->pc_desc_bytes;
    if (!number(j, at + l->pc_offset, 4, &offset) || offset != pc - blob->code ||
        !number(j, at + l->pc_scope, 4, &offset))
        return false;
    for (unsigned i = 0; offset && i < INLINED_MOST; i++) {
        struct stream s = {.j = j, .at = scopes + offset};
        uint32_t sender = next_number(&s), index = next_number(&s);
        int64_t bytecode = (int64_t)next_number(&s) - 1;

        if (s.bad || !index || !word(j, blob->address + metadata + 8 * (index - 1ull), &method) ||
            !put_method(j, method, bytecode, ret))
            break;
        any = true;
        offset = sender;
    }
    return any;
}

/* ---- frames ---- */

struct place {
    uint64_t sp, fp, pc;
};

static bool read_anchor(const struct java *j, uint64_t anchor, struct place *ret)
{
    if (!word(j, anchor + j->l.last_sp, &ret->sp) || !ret->sp ||
        !word(j, anchor + j->l.last_fp, &ret->fp) || !word(j, anchor + j->l.last_pc, &ret->pc))
        return false;
    return ret->pc || word(j, ret->sp - 8, &ret->pc);
}

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

static bool from_interpreter(const struct java *j, struct place *at, struct runtime_frames *ret)
{
    uint64_t method, constant, code = 0, fp = at->fp;

    if (!word(j, fp + FRAME_METHOD, &method) || !word(j, method + j->l.method_const, &constant) ||
        !word(j, fp + FRAME_BCP, &code))
        return false;
    code = code ? code - constant - j->l.const_method_bytes : UINT64_MAX;
    return put_method(j, method, code <= UINT16_MAX ? (int64_t)code : -1, ret) &&
           word(j, fp, &at->fp) && word(j, fp + 8, &at->pc) &&
           word(j, fp + FRAME_SENDER_SP, &at->sp);
}

static bool from_compiled(const struct java *j, const struct blob *blob, struct place *at,
                          struct runtime_frames *ret)
{
    bool compiled = strstr(blob->name, "nmethod");
    uint64_t method;

    if (blob->frame <= 0 || blob->frame > 1 << 20)
        return false;
    if (compiled && !put_scopes(j, blob, at->pc, ret) &&
        (!word(j, blob->address + j->l.compiled, &method) || !put_method(j, method, -1, ret)))
        return false;
    at->sp += 8 * (uint64_t)blob->frame;
    return word(j, at->sp - 8, &at->pc) && word(j, at->sp - 16, &at->fp);
}

/* True: the outermost frame was reached. */
static bool put_frames(const struct java *j, struct place at, struct runtime_frames *ret)
{
    for (unsigned i = 0; i < STEPS_MOST; i++) {
        uint64_t wrapper, sp;
        struct blob blob;

        if (!find_blob(j, at.pc, &blob))
            return false;
        if (begins(blob.name, "Interpreter")) {
            if (!from_interpreter(j, &at, ret))
                return false;
        } else if (begins(blob.name, "StubRoutines")) {
            /* C++ called Java here, and had been called by Java itself, or was not. */
            runtime_put(ret, "call_stub", NO_SOURCE, 0);
            runtime_end_group(ret);
            if (!word(j, at.fp + ENTRY_WRAPPER, &wrapper) ||
                !word(j, wrapper + j->l.wrapped + j->l.last_sp, &sp))
                return false;
            if (!sp)
                return true;
            if (!read_anchor(j, wrapper + j->l.wrapped, &at))
                return false;
        } else if (!from_compiled(j, &blob, &at, ret)) {
            return false;
        }
    }
    return false;
}

static bool is_thread(const struct java *j, uint64_t thread, pid_t tid)
{
    uint64_t os, found;

    return word(j, thread + j->l.osthread, &os) && number(j, os + j->l.tid, 4, &found) &&
           found == (uint32_t)tid;
}

/* What a thread's number was found for before is looked at first, if it is still in the list. */
static uint64_t find_thread(struct java *j, pid_t tid)
{
    size_t slot = (size_t)tid % THREADS_KEPT;
    uint64_t kept = j->kept[slot].tid == tid ? j->kept[slot].thread : 0;
    uint64_t list, length, threads, thread;

    if (!word(j, j->l.threads, &list) || !number(j, list + j->l.length, 4, &length) ||
        !word(j, list + j->l.list, &threads))
        return 0;
    length = length < THREADS_MOST ? length : THREADS_MOST;
    for (uint64_t i = 0; i < length && kept; i++) {
        if (word(j, threads + 8 * i, &thread) && thread == kept && is_thread(j, thread, tid))
            return thread;
    }
    for (uint64_t i = 0; i < length; i++) {
        if (!word(j, threads + 8 * i, &thread) || !is_thread(j, thread, tid))
            continue;
        j->kept[slot].tid = tid;
        j->kept[slot].thread = thread;
        return thread;
    }
    return 0;
}

static void read_java(void *state, const struct runtime_process *process,
                      const struct runtime_thread *thread, struct runtime_frames *ret)
{
    struct java *j = state;
    uint64_t found = find_thread(j, thread->tid);
    struct place at;

    (void)process;
    if (!found || !read_heaps(j) || !read_anchor(j, found + j->l.anchor, &at))
        return;
    runtime_code(ret, j->low, j->high - j->low);
    runtime_set_state(ret, put_frames(j, at, ret) ? RUNTIME_COMPLETE : RUNTIME_PARTLY);
}

const struct runtime runtime_java = {
    .name = "JVM",
    .symbols = symbols,
    .replaces = replaced,
    .step = "functions of Java that are compiled have names after: jcmd PID Compiler.perfmap",
    .open = open_java,
    .close = close_java,
    .read = read_java,
};
