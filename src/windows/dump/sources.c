/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Finds the KPRCBs: by KiProcessorBlock of the debugger data; in a guest's memory else by its
 * processors' GS bases; in triage dumps also the copy at PrcbOffset, and blocks that carry their
 * own address in a KDPC. Then gives the other copies of a triage dump (thread, process) their
 * addresses.
 */
#include "array.h"
#include "inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PROCESSORS_MOST 2048u /* what Windows can number */
#define BLOCK_LEAST     0x800u
/* No machine has memory here: for a copy whose address is not known. */
#define MADE_UP_64 0x7f00000000000000u
#define MADE_UP_32 0x10000u

static int add_source(struct prcb_dump *d, const struct source *source)
{
    return array_append(d->sources, d->source_count, *source);
}

static bool is_held(const struct prcb_dump *d, uint64_t address)
{
    uint32_t length = kprcb_length(d);
    enum memory_absence why;
    uint64_t left;

    for (uint64_t at = 0; at < length; at += PAGE_SIZE) {
        if (memory_at(&d->memory, address + at, &left, &why))
            return true;
    }
    return false;
}

static bool is_plausible(const struct prcb_dump *d, uint64_t address)
{
    const struct machine_row *row = &machine_rows[d->machine];

    return address >= row->kernel_base && !(address & (row->pointer_size - 1));
}

static int by_processor_block(struct prcb_dump *d)
{
    uint64_t count = d->header.processors, address;

    if (count > PROCESSORS_MOST) {
        if (dump_note(d, "the header says %u processors; up to %u are looked for",
                      d->header.processors, PROCESSORS_MOST))
            return -ENOMEM;
        count = PROCESSORS_MOST;
    }
    for (uint32_t i = 0; d->kdbg.processor_block && i < count; i++) {
        uint64_t slot = d->kdbg.processor_block + (uint64_t)i * d->memory.pointer_size;
        struct source source = {.has_number = true, .number = i};

        if (memory_pointer(&d->memory, slot, &address))
            break;
        if (!address)
            continue;
        source.address = address;
        source.is_held = is_held(d, address);
        if (!is_plausible(d, address)) {
            if (dump_note(d, "KiProcessorBlock[%u] is 0x%llx, which is not the address of a KPRCB",
                          i, (unsigned long long)address))
                return -ENOMEM;
        } else if (add_source(d, &source)) {
            return -ENOMEM;
        }
    }
    return 0;
}

static struct source *find_source(struct prcb_dump *d, uint64_t address)
{
    for (size_t i = 0; i < d->source_count; i++) {
        if (d->sources[i].address == address)
            return &d->sources[i];
    }
    return NULL;
}

/* Of a guest: those that its processors' GS bases lead to. */
static int by_guest(struct prcb_dump *d)
{
    size_t lost = 0;

    for (size_t i = 0; i < d->guest.count && i < PROCESSORS_MOST; i++) {
        struct source source = {.address = guest_kprcb(d, i), .is_held = true};

        lost += !source.address;
        if (source.address && !find_source(d, source.address) && add_source(d, &source))
            return -ENOMEM;
    }
    return lost ? dump_note(d, "the GS bases of %zu of %zu processors lead to no KPCR", lost,
                            d->guest.count)
                : 0;
}

/* ---- triage dumps ---- */

/* The source with the number that the copy carries. */
static struct source *find_by_number(struct prcb_dump *d, const uint8_t *bytes, uint64_t length)
{
    uint64_t number;

    if (!d->kdbg.prcb_number || d->kdbg.prcb_number + 4u > length)
        return NULL;
    number = load_le(bytes + d->kdbg.prcb_number,
                     d->memory.pointer_size == 4 && d->header.minor < 7600 ? 1 : 4);
    for (size_t i = 0; i < d->source_count; i++) {
        if (d->sources[i].has_number && d->sources[i].number == number)
            return &d->sources[i];
    }
    return NULL;
}

/* The source whose block has the same bytes, or the only one of a machine with one processor. */
static struct source *find_same(struct prcb_dump *d, const uint8_t *bytes, uint32_t length)
{
    struct source *found = NULL;
    uint8_t *block = malloc(length);

    for (size_t i = 0; block && !found && i < d->source_count; i++) {
        if (d->sources[i].is_held &&
            !memory_read(&d->memory, d->sources[i].address, block, length) &&
            !memcmp(block, bytes, length))
            found = &d->sources[i];
    }
    free(block);
    if (!found && d->source_count == 1 && d->header.processors == 1)
        found = &d->sources[0];
    return found;
}

static int compare_copies(struct prcb_dump *d, uint64_t address, const uint8_t *bytes,
                          uint32_t length)
{
    uint8_t *block = malloc(length);
    int code = 0;

    if (!block)
        return -ENOMEM;
    if (!memory_read(&d->memory, address, block, length) && memcmp(block, bytes, length))
        code = dump_note(d,
                         "the two copies of the crashing processor's KPRCB (offset 0x%x of the "
                         "file, and the block for 0x%llx) differ; the first is used",
                         d->triage.prcb, (unsigned long long)address);
    free(block);
    return code;
}

static int add_copy(struct prcb_dump *d, uint64_t address, uint32_t length, uint32_t offset)
{
    size_t overlaps = d->memory.overlaps;
    int code;

    if (!dump_file_holds(&d->file, offset, 1))
        return 0;
    if (length > d->file.size - offset)
        length = (uint32_t)(d->file.size - offset);
    code = memory_add_range(&d->memory, address, length, offset);
    memory_seal(&d->memory);
    d->memory.overlaps = overlaps;
    return code;
}

/* The copy at PrcbOffset is the crashing processor's. */
static int by_prcb_offset(struct prcb_dump *d)
{
    uint32_t offset = d->triage.prcb, length = kprcb_length(d);
    struct source source = {.is_held = true, .is_crashing = true}, *known;
    const uint8_t *bytes;
    int code;

    if (!offset || !dump_file_holds(&d->file, offset, 1))
        return 0;
    if (length > d->file.size - offset)
        length = (uint32_t)(d->file.size - offset);
    bytes = d->file.bytes + offset;
    source.address = landmark_owner(d, bytes, length);
    known = find_source(d, source.address);
    if (!known)
        known = find_by_number(d, bytes, length);
    if (!known && !source.address)
        known = find_same(d, bytes, length);
    if (known) {
        known->is_crashing = known->is_held = true;
        code = compare_copies(d, known->address, bytes, length);
        return code ? code : add_copy(d, known->address, length, offset);
    }
    source.is_made_up = !source.address;
    if (source.is_made_up)
        source.address = d->memory.pointer_size == 8 ? MADE_UP_64 : MADE_UP_32;
    code = add_source(d, &source);
    return code ? code : add_copy(d, source.address, length, offset);
}

/* Blocks whose bytes name their own address as a KPRCB. */
static int by_blocks(struct prcb_dump *d)
{
    const struct memory *m = &d->memory;

    for (size_t i = 0; i < m->range_count; i++) {
        const struct virtual_range range = m->ranges[i];
        struct source source = {.address = range.address, .is_held = true};

        if (range.size < BLOCK_LEAST || range.size > KPRCB_MOST ||
            !dump_file_holds(&d->file, range.offset, range.size) ||
            landmark_owner(d, d->file.bytes + range.offset, range.size) != range.address)
            continue;
        if (d->source_count >= PROCESSORS_MOST)
            break;
        if (!find_source(d, range.address) && add_source(d, &source))
            return -ENOMEM;
    }
    return 0;
}

/* The copies of the current thread and its process get their addresses. */
static int place_thread(struct prcb_dump *d, const struct source *crashing)
{
    const struct kdbg *k = &d->kdbg;
    uint32_t current = k->prcb_current_thread ? k->prcb_current_thread : d->memory.pointer_size;
    uint64_t thread, process;
    int code;

    if (!d->triage.thread || !k->thread_size ||
        memory_pointer(&d->memory, crashing->address + current, &thread) ||
        !is_plausible(d, thread))
        return 0;
    code = add_copy(d, thread, k->thread_size, d->triage.thread);
    if (code || !d->triage.process || !k->process_size || !k->thread_process ||
        memory_pointer(&d->memory, thread + k->thread_process, &process) ||
        !is_plausible(d, process))
        return code;
    return add_copy(d, process, k->process_size, d->triage.process);
}

/* ---- other dumps ---- */

/* The header's stack pointer and program counter are in the CONTEXT at an address. */
static bool is_headers_context(const struct prcb_dump *d, uint64_t context)
{
    const struct machine_row *row = &machine_rows[d->machine];
    uint64_t sp, pc;

    return !memory_pointer(&d->memory, context + row->stack_pointer, &sp) &&
           !memory_pointer(&d->memory, context + row->program_counter, &pc) &&
           sp == d->header.stack_pointer && pc == d->header.program_counter;
}

/* The header's context is that of the processor that crashed, whose KPRCB holds it or, since
 * Windows 7, points to it. */
static void find_crashing(struct prcb_dump *d)
{
    const struct kdbg *k = &d->kdbg;
    struct source *found = NULL;

    if (!d->header.stack_pointer)
        return;
    for (size_t i = 0; i < d->source_count; i++) {
        uint64_t kprcb = d->sources[i].address, pointer;
        bool is_it = k->prcb_context && is_headers_context(d, kprcb + k->prcb_context);

        if (k->prcb_context_pointer &&
            !memory_pointer(&d->memory, kprcb + k->prcb_context_pointer, &pointer))
            is_it = is_it || is_headers_context(d, pointer);
        if (!is_it)
            continue;
        if (found)
            return;
        found = &d->sources[i];
    }
    if (found)
        found->is_crashing = true;
}

int sources_find(struct prcb_dump *d, struct prcb_error *err)
{
    int code = by_processor_block(d);

    if (!d->memory.is_virtual) {
        if (!code && !d->source_count)
            code = by_guest(d);
        find_crashing(d);
        return code ? prcb_fail(err, code, "%s: out of memory", d->name) : 0;
    }
    if (!code && d->triage.stack && d->triage.stack_top && d->triage.stack_size)
        code = add_copy(d, d->triage.stack_top, d->triage.stack_size, d->triage.stack);
    if (!code)
        code = by_prcb_offset(d);
    if (!code && d->source_count <= 1)
        code = by_blocks(d);
    for (size_t i = 0; !code && i < d->source_count; i++) {
        if (d->sources[i].is_crashing)
            code = place_thread(d, &d->sources[i]);
    }
    return code ? prcb_fail(err, code, "%s: out of memory", d->name) : 0;
}
