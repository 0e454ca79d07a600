/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The debugger data (KDDEBUGGER_DATA64, tag "KDBG" at 0x10): where the kernel's lists are, and from
 * 5.2 on sizes and offsets of a few members, which tell layouts apart better than the build does.
 * Also chooses the page-table scheme: the one under which the debugger data read as such.
 *
 * On live and virtual machines the block lies encoded in memory from 6.2 on (x64); a bugcheck
 * decodes it before it writes the dump. An encoded one is named, not decoded: the keys are in the
 * kernel image.
 */
#include "inside.h"

#include <errno.h>
#include <string.h>

#define TAG_OFFSET  0x10
#define SIZE_OFFSET 0x14
#define KDBG_LEAST  0x220  /* up to KiProcessorBlock */
#define KDBG_MOST   0x2000 /* 0x3a0 is the longest seen */

#define FIELDS(F)                                                                                  \
    F(kernel_base, 0x18, 8)                                                                        \
    F(time_increment, 0x78, 8)                                                                     \
    F(processor_block, 0x218, 8)                                                                   \
    F(unloaded, 0x220, 8)                                                                          \
    F(thread_process, 0x2a0, 2)                                                                    \
    F(thread_state, 0x2a2, 2)                                                                      \
    F(process_size, 0x2a8, 2)                                                                      \
    F(prcb_size, 0x2b0, 2)                                                                         \
    F(prcb_dpc_routine, 0x2b2, 2)                                                                  \
    F(prcb_current_thread, 0x2b4, 2)                                                               \
    F(prcb_mhz, 0x2b6, 2)                                                                          \
    F(prcb_cpu_type, 0x2b8, 2)                                                                     \
    F(prcb_vendor, 0x2ba, 2)                                                                       \
    F(prcb_context, 0x2bc, 2)                                                                      \
    F(prcb_number, 0x2be, 2)                                                                       \
    F(thread_size, 0x2c0, 2)                                                                       \
    F(prcb_special, 0x2f2, 2)                                                                      \
    F(prcb_context_pointer, 0x338, 2)                                                              \
    F(thread_stack_base, 0x344, 4)                                                                 \
    F(thread_irp_list, 0x34c, 4)

/* These page-table schemes are tried, the likeliest first. */
static const enum paging schemes[MACHINE_COUNT][3] = {
    [MACHINE_X86] = {PAGING_X86, PAGING_PAE, PAGING_NONE},
    [MACHINE_X64] = {PAGING_X64, PAGING_X64_5, PAGING_NONE},
    [MACHINE_ARM64] = {PAGING_NONE},
};

/* Reads what there is of it: a member past the block's own size stays 0. */
static bool parse(const uint8_t *bytes, uint64_t length, struct kdbg *ret)
{
    uint32_t size;

    if (length < KDBG_LEAST || memcmp(bytes + TAG_OFFSET, "KDBG", 4))
        return false;
    size = (uint32_t)load_le(bytes + SIZE_OFFSET, 4);
    if (size < KDBG_LEAST || size > KDBG_MOST)
        return false;
    if (size < length)
        length = size;
    *ret = (struct kdbg){.is_known = true, .size = size};
#define F(name, offset, width)                                                                     \
    if (length >= (offset) + (width))                                                              \
        ret->name = (__typeof__(ret->name))load_le(bytes + (offset), width);
    FIELDS(F)
#undef F
    return true;
}

static bool parse_at(const struct prcb_dump *d, uint64_t address, struct kdbg *ret)
{
    uint8_t bytes[0x400] = {0};
    uint64_t length = sizeof(bytes);

    /* the block may end where its page or range ends */
    while (length >= KDBG_LEAST && memory_read(&d->memory, address, bytes, length))
        length -= 0x20;
    return length >= KDBG_LEAST && parse(bytes, length, ret);
}

static bool in_triage(const struct prcb_dump *d, struct kdbg *ret)
{
    const struct triage *t = &d->triage;
    uint64_t length = t->kdbg_size;

    if (!t->kdbg || !dump_file_holds(&d->file, t->kdbg, KDBG_LEAST))
        return false;
    if (!dump_file_holds(&d->file, t->kdbg, length))
        length = d->file.size - t->kdbg;
    return parse(d->file.bytes + t->kdbg, length, ret);
}

static bool is_readable(const struct prcb_dump *d, uint64_t address)
{
    uint64_t value;

    return address && memory_load(&d->memory, address, 4, &value) == MEMORY_PRESENT;
}

static int choose_paging(struct prcb_dump *d)
{
    const enum paging *list = schemes[d->machine];
    enum paging readable = PAGING_NONE;
    enum memory_absence why;

    if (list[0] == PAGING_NONE) { /* memory_at says MEMORY_NO_WALK */
        d->memory.paging = PAGING_NONE;
        return dump_note(d,
                         "page tables of %s are not read, so only the header's facts are shown; "
                         "triage dumps of such machines are read",
                         machine_rows[d->machine].name);
    }
    d->memory.root = d->header.directory_base;
    for (unsigned int i = 0; list[i] != PAGING_NONE; i++) {
        d->memory.paging = d->machine == MACHINE_X86 && d->header.has_pae ? list[1 - i] : list[i];
        if (parse_at(d, d->header.kdbg, &d->kdbg))
            return 0;
        if (!readable && (is_readable(d, d->header.kdbg) || is_readable(d, d->header.module_list)))
            readable = d->memory.paging;
    }
    d->memory.paging = readable ? readable : list[d->header.has_pae ? 1 : 0];
    if (readable)
        return 0;
    why = memory_read(&d->memory, d->header.module_list, &(uint32_t){0}, 4);
    return dump_note(d,
                     "no kernel address can be read: page tables at 0x%llx (%s): "
                     "PsLoadedModuleList 0x%llx is %s",
                     (unsigned long long)d->memory.root, paging_name(d->memory.paging),
                     (unsigned long long)d->header.module_list, memory_words(why));
}

/* It is present, but not as debugger data: the tag is there in no readable form. */
static void detect_encoded(struct prcb_dump *d)
{
    uint64_t tag;

    if (d->kdbg.is_known || !d->header.kdbg ||
        memory_load(&d->memory, d->header.kdbg + TAG_OFFSET, 4, &tag) || !tag)
        return;
    d->info.kdbg_encoded = true;
}

int kdbg_find(struct prcb_dump *d, struct prcb_error *err)
{
    int code = 0;

    if (d->memory.is_virtual) {
        if (!in_triage(d, &d->kdbg) && d->header.kdbg)
            parse_at(d, d->header.kdbg, &d->kdbg);
    } else if (d->guest.has_root) {
        if (d->header.kdbg)
            parse_at(d, d->header.kdbg, &d->kdbg);
    } else {
        code = choose_paging(d) ? prcb_fail(err, -ENOMEM, "%s: out of memory", d->name) : 0;
    }
    detect_encoded(d);
    if (!code && d->triage.kdbg && !d->kdbg.is_known &&
        dump_file_holds(&d->file, d->triage.kdbg, KDBG_LEAST) &&
        load_le(d->file.bytes + d->triage.kdbg + TAG_OFFSET, 4))
        d->info.kdbg_encoded = true;
    return code;
}
