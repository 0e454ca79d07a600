/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Where each processor was: the CONTEXT it left when it was stopped, its IRQL, the thread and the
 * process it ran, the DPCs it had queued; and a scan of the crashing thread's stack.
 */
#include "inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK_MOST 0x10000u /* bytes that are scanned: more than any kernel stack */
#define DPCS_MOST  1024u

/* ---- contexts ---- */

struct reg {
    const char *name;
    uint16_t offset, size; /* in CONTEXT */
};

static const struct reg x86_registers[] = {
    {"eip", 0xb8, 4}, {"esp", 0xc4, 4}, {"ebp", 0xb4, 4}, {"eax", 0xb0, 4}, {"ebx", 0xa4, 4},
    {"ecx", 0xac, 4}, {"edx", 0xa8, 4}, {"esi", 0xa0, 4}, {"edi", 0x9c, 4}, {"eflags", 0xc0, 4},
};
static const struct reg x64_registers[] = {
    {"rip", 0xf8, 8}, {"rsp", 0x98, 8}, {"rbp", 0xa0, 8},    {"rax", 0x78, 8}, {"rbx", 0x90, 8},
    {"rcx", 0x80, 8}, {"rdx", 0x88, 8}, {"rsi", 0xa8, 8},    {"rdi", 0xb0, 8}, {"r8", 0xb8, 8},
    {"r9", 0xc0, 8},  {"r10", 0xc8, 8}, {"r11", 0xd0, 8},    {"r12", 0xd8, 8}, {"r13", 0xe0, 8},
    {"r14", 0xe8, 8}, {"r15", 0xf0, 8}, {"eflags", 0x44, 4},
};
static const struct reg arm64_registers[] = {
    {"pc", 0x108, 8}, {"sp", 0x100, 8}, {"fp", 0xf0, 8},  {"lr", 0xf8, 8},   {"x0", 0x08, 8},
    {"x1", 0x10, 8},  {"x2", 0x18, 8},  {"x3", 0x20, 8},  {"x4", 0x28, 8},   {"x5", 0x30, 8},
    {"x6", 0x38, 8},  {"x7", 0x40, 8},  {"x8", 0x48, 8},  {"x9", 0x50, 8},   {"x10", 0x58, 8},
    {"x11", 0x60, 8}, {"x12", 0x68, 8}, {"x13", 0x70, 8}, {"x14", 0x78, 8},  {"x15", 0x80, 8},
    {"x16", 0x88, 8}, {"x17", 0x90, 8}, {"x18", 0x98, 8}, {"x19", 0xa0, 8},  {"x20", 0xa8, 8},
    {"x21", 0xb0, 8}, {"x22", 0xb8, 8}, {"x23", 0xc0, 8}, {"x24", 0xc8, 8},  {"x25", 0xd0, 8},
    {"x26", 0xd8, 8}, {"x27", 0xe0, 8}, {"x28", 0xe8, 8}, {"cpsr", 0x04, 4},
};

/* The first two registers of each table are the program counter and the stack pointer. */
static const struct context_row {
    const struct reg *registers;
    size_t count;
    uint32_t flags_offset, flag; /* ContextFlags, and the bit that names the processor */
} context_rows[MACHINE_COUNT] = {
    [MACHINE_X86] = {x86_registers, ARRAY_SIZE(x86_registers), 0, 0x10000},
    [MACHINE_X64] = {x64_registers, ARRAY_SIZE(x64_registers), 0x30, 0x100000},
    [MACHINE_ARM64] = {arm64_registers, ARRAY_SIZE(arm64_registers), 0, 0x400000},
};

#define CONTEXT_MOST 0x110u /* bytes up to the last register */

static bool parse_context(const struct prcb_dump *d, const uint8_t *bytes, struct context *ret)
{
    const struct context_row *row = &context_rows[d->machine];

    if (!(load_le(bytes + row->flags_offset, 4) & row->flag))
        return false;
    for (size_t i = 0; i < row->count; i++)
        ret->values[i] = load_le(bytes + row->registers[i].offset, row->registers[i].size);
    return true;
}

static bool read_context_at(const struct prcb_dump *d, uint64_t address, struct context *ret)
{
    uint8_t bytes[CONTEXT_MOST];

    ret->absent = memory_words(memory_read(&d->memory, address, bytes, sizeof(bytes)));
    if (memory_read(&d->memory, address, bytes, sizeof(bytes)))
        return false;
    ret->absent = "no registers were saved there";
    return parse_context(d, bytes, ret);
}

/* The crashing processor's is in the header. Others: the pointer that the debugger data name, which
 * leads behind the KPRCB on x64 since Windows 7; before, and on arm64, it lies in the KPRCB. */
static void find_context(const struct prcb_dump *d, const struct source *source,
                         struct context *ret)
{
    const struct kdbg *k = &d->kdbg;
    uint64_t address;

    ret->absent = "the debugger data do not say where it is";
    if (guest_registers(d, source->address, ret->values)) {
        ret->found_by = PRCB_DUMP_BY_HEADER;
        return;
    }
    if (source->is_crashing && parse_context(d, d->header.context, ret)) {
        ret->found_by = PRCB_DUMP_BY_HEADER;
        return;
    }
    if (k->prcb_context_pointer &&
        !memory_pointer(&d->memory, source->address + k->prcb_context_pointer, &address) &&
        address && read_context_at(d, address, ret))
        ret->found_by = PRCB_DUMP_BY_KDBG;
    else if (k->prcb_context && read_context_at(d, source->address + k->prcb_context, ret))
        ret->found_by = PRCB_DUMP_BY_KDBG;
}

#define CR0_OFFSET  0x00 /* in KSPECIAL_REGISTERS of x64 */
#define CR8_OFFSET  0xa0
#define X86_KPCR    0x120 /* the KPRCB's place in its KPCR */
#define IRQL_OFFSET 0x24  /* KPCR.Irql of x86 */

/* x64: CR8 as saved with the context. x86: KPCR.Irql. arm64: no public place is known. */
static void find_irql(const struct prcb_dump *d, const struct source *source, struct context *ret)
{
    uint64_t special = source->address + d->kdbg.prcb_special, cr0, irql;

    if (d->machine == MACHINE_X64 && d->kdbg.prcb_special &&
        !memory_load(&d->memory, special + CR0_OFFSET, 8, &cr0) && cr0 &&
        !memory_load(&d->memory, special + CR8_OFFSET, 8, &irql) && irql <= 15) {
        ret->irql_found_by = PRCB_DUMP_BY_KDBG;
        ret->irql = (uint8_t)irql;
    } else if (d->machine == MACHINE_X86 && !source->is_made_up &&
               !memory_load(&d->memory, source->address - X86_KPCR + IRQL_OFFSET, 1, &irql) &&
               irql <= 31) {
        ret->irql_found_by = PRCB_DUMP_BY_CATALOG;
        ret->irql = (uint8_t)irql;
    }
}

/* ---- thread and process ---- */

#define NAME_SIZE 15 /* EPROCESS.ImageFileName */

/* ETHREAD.Cid lies this far before IrpList, with a semaphore and a pointer between them. */
static uint32_t cid_before(const struct prcb_dump *d)
{
    return d->memory.pointer_size == 8 ? 0x38 : 0x20;
}

static bool find_symbol_slot(const struct prcb_dump *d, const char *structure, const char *member,
                             struct slot *ret)
{
    const struct view view = {.name = structure, .dump = d};

    return !view_find(&view, member, ret);
}

/* Process and thread ids are multiples of four; the idle threads have none. */
static void find_ids(const struct prcb_dump *d, struct thread *t)
{
    uint32_t pointer = d->memory.pointer_size, offset = 0;
    uint64_t process, thread;
    struct slot slot;

    t->ids_found_by = PRCB_DUMP_BY_SYMBOLS;
    if (find_symbol_slot(d, "ETHREAD", "Cid.UniqueProcess", &slot)) {
        offset = slot.offset;
    } else if (d->kdbg.thread_irp_list > cid_before(d)) {
        offset = d->kdbg.thread_irp_list - cid_before(d);
        t->ids_found_by = PRCB_DUMP_BY_KDBG;
    }
    if (!offset || memory_pointer(&d->memory, t->address + offset, &process) ||
        memory_pointer(&d->memory, t->address + offset + pointer, &thread) ||
        (process | thread) & 3 || process > UINT32_MAX || thread > UINT32_MAX ||
        (!thread && process)) {
        t->ids_found_by = 0;
        return;
    }
    t->process_id = (uint32_t)process;
    t->id = (uint32_t)thread;
}

/* EPROCESS.ImageFileName by build, x64, from public symbols; elsewhere it is searched for. */
static const struct {
    uint32_t first, last; /* builds */
    uint32_t offset;
} image_names[] = {
    {6000, 6002, 0x238},   {7600, 7601, 0x2e0},   {9200, 9600, 0x438},   {10240, 10240, 0x448},
    {10586, 18363, 0x450}, {19041, 22631, 0x5a8}, {26100, 26200, 0x338},
};

/* A name at least three long, of the characters of file names, filled up with zeros. */
static bool is_name(const uint8_t *bytes)
{
    size_t length = 0;

    while (length < NAME_SIZE && bytes[length] > 0x20 && bytes[length] < 0x7f &&
           !strchr("\"'\\/:*?<>|,;()[]{}!#%^&=`", bytes[length]))
        length++;
    if (length < 3 || length == NAME_SIZE)
        return false;
    for (size_t i = length; i < NAME_SIZE; i++) {
        if (bytes[i])
            return false;
    }
    return true;
}

static bool take_process_name(const struct prcb_dump *d, struct thread *t, uint32_t offset,
                              uint8_t found_by)
{
    uint8_t bytes[NAME_SIZE + 1] = {0};
    size_t length = 0;

    if (memory_read(&d->memory, t->process + offset, bytes, NAME_SIZE))
        return false;
    while (length < NAME_SIZE && bytes[length] >= 0x20 && bytes[length] < 0x7f)
        length++;
    if (!length || (length < NAME_SIZE && bytes[length]))
        return false;
    memcpy(t->process_name, bytes, length);
    t->process_name[length] = '\0';
    t->name_found_by = found_by;
    return true;
}

/* The only place in the process that looks like a name. */
static void search_process_name(const struct prcb_dump *d, struct thread *t)
{
    uint32_t length = d->kdbg.process_size, found = 0;
    size_t count = 0;
    uint8_t *bytes;

    if (length < NAME_SIZE || !(bytes = malloc(length)))
        return;
    if (!memory_read(&d->memory, t->process, bytes, length)) {
        for (uint32_t at = 8; at + NAME_SIZE <= length; at += 4) {
            if (!is_name(bytes + at) || (bytes[at - 1] && is_name(bytes + at - 4)))
                continue;
            found = at;
            count++;
        }
    }
    free(bytes);
    if (count == 1)
        take_process_name(d, t, found, PRCB_DUMP_BY_LANDMARK);
}

static void find_process(const struct prcb_dump *d, struct thread *t)
{
    uint32_t build = d->header.minor;
    struct slot slot;

    if (!d->kdbg.thread_process ||
        memory_pointer(&d->memory, t->address + d->kdbg.thread_process, &t->process) ||
        t->process < machine_rows[d->machine].kernel_base) {
        t->process = 0;
        return;
    }
    if (find_symbol_slot(d, "EPROCESS", "ImageFileName", &slot) &&
        take_process_name(d, t, slot.offset, PRCB_DUMP_BY_SYMBOLS))
        return;
    for (size_t i = 0; d->machine == MACHINE_X64 && i < ARRAY_SIZE(image_names); i++) {
        if (build >= image_names[i].first && build <= image_names[i].last &&
            take_process_name(d, t, image_names[i].offset, PRCB_DUMP_BY_CATALOG))
            return;
    }
    search_process_name(d, t);
}

/* ---- all of a dump ---- */

int threads_read(struct prcb_dump *d, struct prcb_error *err)
{
    d->contexts = calloc(d->processor_count + 1, sizeof(*d->contexts));
    d->threads = calloc(d->processor_count + 1, sizeof(*d->threads));
    if (!d->contexts || !d->threads)
        return prcb_fail(err, -ENOMEM, "%s: out of memory", d->name);
    for (size_t i = 0; i < d->processor_count; i++) {
        const struct prcb_dump_value *current = &d->processors[i].items[PRCB_DUMP_CurrentThread];

        find_context(d, &d->sources[i], &d->contexts[i]);
        find_irql(d, &d->sources[i], &d->contexts[i]);
        d->threads[i].address = current->found_by ? current->value : 0;
        if (!d->threads[i].address)
            continue;
        find_ids(d, &d->threads[i]);
        find_process(d, &d->threads[i]);
    }
    return 0;
}

int prcb_dump_context(const struct prcb_dump *d, size_t processor, struct prcb_dump_context *ret)
{
    const struct context *c;
    struct prcb_dump_context context;

    if (processor >= d->processor_count)
        return -EINVAL;
    c = &d->contexts[processor];
    context = (struct prcb_dump_context){
        .found_by = c->found_by,
        .absent = c->found_by ? NULL : c->absent,
        .irql_found_by = c->irql_found_by,
        .irql = c->irql,
    };
    if (c->found_by) {
        context.program_counter = c->values[0];
        context.stack_pointer = c->values[1];
        context.register_count = (uint32_t)context_rows[d->machine].count;
    }
    return sized_hand_out(&context, sizeof(context), ret);
}

int prcb_dump_register(const struct prcb_dump *d, size_t processor, size_t index,
                       const char **ret_name, uint64_t *ret)
{
    const struct context_row *row = &context_rows[d->machine];

    if (processor >= d->processor_count || index >= row->count || !d->contexts[processor].found_by)
        return -ENOENT;
    *ret_name = row->registers[index].name;
    *ret = d->contexts[processor].values[index];
    return 0;
}

int prcb_dump_thread(const struct prcb_dump *d, size_t processor, struct prcb_dump_thread *ret)
{
    const struct thread *t;
    struct prcb_dump_thread thread;

    if (processor >= d->processor_count)
        return -EINVAL;
    t = &d->threads[processor];
    thread = (struct prcb_dump_thread){
        .address = t->address,
        .process = t->process,
        .ids_found_by = t->ids_found_by,
        .name_found_by = t->name_found_by,
        .id = t->id,
        .process_id = t->process_id,
        .process_name = t->name_found_by ? t->process_name : NULL,
    };
    return sized_hand_out(&thread, sizeof(thread), ret);
}

const char *prcb_dump_irql_name(const struct prcb_dump *d, unsigned int irql)
{
    static const char *const x64[] = {
        [0] = "PASSIVE_LEVEL", [1] = "APC_LEVEL",  [2] = "DISPATCH_LEVEL",
        [13] = "CLOCK_LEVEL",  [14] = "IPI_LEVEL", [15] = "HIGH_LEVEL"};
    static const char *const x86[] = {
        [0] = "PASSIVE_LEVEL", [1] = "APC_LEVEL",    [2] = "DISPATCH_LEVEL", [28] = "CLOCK2_LEVEL",
        [29] = "IPI_LEVEL",    [30] = "POWER_LEVEL", [31] = "HIGH_LEVEL"};

    if (d->machine == MACHINE_X86)
        return irql < ARRAY_SIZE(x86) ? x86[irql] : NULL;
    return irql < ARRAY_SIZE(x64) ? x64[irql] : NULL;
}

/* ---- the stack ---- */

/* Where the crashing thread's stack begins: its copy in a triage dump, else its stack pointer. */
static bool find_stack(const struct prcb_dump *d, uint64_t *ret_from, uint64_t *ret_length)
{
    uint64_t base;

    *ret_length = STACK_MOST;
    if (d->memory.is_virtual) {
        *ret_from = d->triage.stack_top;
        if (d->triage.stack_size < *ret_length)
            *ret_length = d->triage.stack_size;
        return d->triage.stack && d->triage.stack_size;
    }
    *ret_from = d->header.stack_pointer;
    for (size_t i = 0; i < d->processor_count; i++) {
        if (d->processors[i].crashing && d->kdbg.thread_stack_base && d->threads[i].address &&
            !memory_pointer(&d->memory, d->threads[i].address + d->kdbg.thread_stack_base, &base) &&
            base > *ret_from && base - *ret_from < *ret_length)
            *ret_length = base - *ret_from;
    }
    return *ret_from;
}

int prcb_dump_stack_scan(const struct prcb_dump *d, prcb_dump_stack_fn fn, void *ctx,
                         struct prcb_error *err)
{
    uint32_t pointer = d->memory.pointer_size;
    uint64_t from, length, value;
    int code = 0;

    if (!find_stack(d, &from, &length))
        return prcb_fail(err, -ENODATA, "%s: the stack of the crashing thread is not in this dump",
                         d->name);
    if (!d->modules.loaded)
        return prcb_fail(err, -ENODATA, "%s: no list of modules is in this dump", d->name);
    for (uint64_t at = 0; !code && at + pointer <= length; at += pointer) {
        if (memory_pointer(&d->memory, from + at, &value))
            break;
        if (module_of(d, value))
            code = fn(from + at, value, ctx);
    }
    return code;
}

/* ---- DPCs ---- */

/* From a link to its KDPC, and the KDPC's routine: 0 where that is not held. */
struct dpc_shape {
    struct slot link, routine;
};

static int tell_dpc(const struct prcb_dump *d, const struct dpc_shape *s, uint64_t address,
                    bool is_threaded, bool is_active, prcb_dump_dpc_fn fn, void *ctx)
{
    struct prcb_dump_dpc dpc = {.size = sizeof(dpc),
                                .address = address,
                                .is_threaded = is_threaded,
                                .is_active = is_active};

    dpc.is_held = !memory_pointer(&d->memory, address + s->routine.offset, &dpc.routine);
    return fn(&dpc, ctx);
}

/* One queue: a single list that ends in NULL, or a ring through its head. */
static int walk_queue(const struct prcb_dump *d, const struct dpc_shape *s, uint64_t head,
                      bool is_threaded, prcb_dump_dpc_fn fn, void *ctx)
{
    uint64_t link, half = head;
    int code = 0;

    if (memory_pointer(&d->memory, head, &link))
        return 0;
    for (unsigned int i = 0; !code && link && link != head && i < DPCS_MOST; i++) {
        code = tell_dpc(d, s, link - s->link.offset, is_threaded, false, fn, ctx);
        if (memory_pointer(&d->memory, link, &link) ||
            (i % 2 && memory_pointer(&d->memory, half, &half)) || link == half)
            break;
    }
    return code;
}

int prcb_dump_dpcs(const struct prcb_dump *d, size_t processor, prcb_dump_dpc_fn fn, void *ctx)
{
    static const char *const heads[2][2] = {
        {"DpcData[0].DpcList.ListHead.Next", "DpcData[0].DpcListHead.Flink"},
        {"DpcData[1].DpcList.ListHead.Next", "DpcData[1].DpcListHead.Flink"}};
    static const char *const actives[] = {"DpcData[0].ActiveDpc", "DpcData[1].ActiveDpc"};
    struct view view;
    struct dpc_shape s;
    struct slot slot;
    uint64_t base, active;
    int code;

    if (processor >= d->processor_count)
        return -EINVAL;
    if (d->distrust)
        return -ENODATA;
    base = d->sources[processor].address;
    code = view_init(&view, d, "KDPC", d->versions, d->version_count);
    if (!code && (view_find(&view, "DpcListEntry.Next", &s.link) &&
                  view_find(&view, "DpcListEntry.Flink", &s.link)))
        code = -ENODATA;
    if (!code && view_find(&view, "DeferredRoutine", &s.routine))
        code = -ENODATA;
    for (size_t i = 0; !code && i < 2; i++) {
        if (!view_find(&d->kprcb, actives[i], &slot) &&
            !memory_pointer(&d->memory, base + slot.offset, &active) && active)
            code = tell_dpc(d, &s, active, i, true, fn, ctx);
        if (!code && (!view_find(&d->kprcb, heads[i][0], &slot) ||
                      !view_find(&d->kprcb, heads[i][1], &slot)))
            code = walk_queue(d, &s, base + slot.offset, i, fn, ctx);
    }
    view_deinit(&view);
    return code;
}
