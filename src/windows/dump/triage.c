/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Triage dumps ("minidumps"): copies of a few structures at offsets that a table behind the header
 * names, and a table of blocks of virtual memory. 64-bit: the real files this was read off are
 * described in docs/dumps.md. 32-bit: the published structure; no real file was at hand.
 */
#include "inside.h"

#include <errno.h>

/* Field offsets in the triage header by width of the dump. */
#define FIELDS(F)                                                                                  \
    F(size, 0x04, 0x04)                                                                            \
    F(prcb, 0x1c, 0x1c)                                                                            \
    F(process, 0x20, 0x20)                                                                         \
    F(thread, 0x24, 0x24)                                                                          \
    F(unloaded, 0x18, 0x18)                                                                        \
    F(stack, 0x28, 0x28)                                                                           \
    F(stack_size, 0x2c, 0x2c)                                                                      \
    F(drivers, 0x30, 0x30)                                                                         \
    F(driver_count, 0x34, 0x34)                                                                    \
    F(kdbg, 0x58, 0x70)                                                                            \
    F(kdbg_size, 0x5c, 0x74)                                                                       \
    F(blocks, 0x60, 0x78)                                                                          \
    F(block_count, 0x64, 0x7c)
#define HEADER_32 0x68
#define HEADER_64 0x80

static int add_blocks(struct prcb_dump *d, struct prcb_error *err)
{
    struct dump_cursor c = {.file = &d->file, .at = d->triage.blocks, .err = err};
    uint64_t room = c.at < d->file.size ? (d->file.size - c.at) / 16 : 0;

    if (d->triage.block_count > room && d->triage.is_cut) { /* what is there is read */
        d->triage.missing = (size_t)(d->triage.block_count - room);
        d->triage.block_count = (uint32_t)room;
    }
    if (d->triage.block_count > room) {
        c.previous = c.at;
        return cursor_fail(&c, -ENODATA,
                           "the block table has %u entries, the file has room for %llu",
                           d->triage.block_count, (unsigned long long)room);
    }
    for (uint32_t i = 0; i < d->triage.block_count; i++) {
        uint64_t address = 0;
        uint32_t offset = 0, size = 0;
        int code;

        (void)(cursor_u64(&c, "a block", &address) || cursor_u32(&c, "a block", &offset) ||
               cursor_u32(&c, "a block", &size));
        if (!dump_file_holds(&d->file, offset, size)) {
            d->triage.outside++;
            size = offset < d->file.size ? (uint32_t)(d->file.size - offset) : 0;
        }
        code = memory_add_range(&d->memory, address, size, offset);
        if (code)
            return prcb_fail(err, code, "%s: out of memory", d->name);
    }
    return 0;
}

/* Adds the one page that old triage dumps carry apart from the blocks. */
static int add_data_page(struct prcb_dump *d, const uint8_t *bytes)
{
    bool is_64 = d->header.bits == 64;
    uint64_t address = is_64 ? load_le(bytes + 0x60, 8) : load_le(bytes + 0x4c, 4);
    uint32_t offset = (uint32_t)load_le(bytes + (is_64 ? 0x68 : 0x50), 4);
    uint32_t size = (uint32_t)load_le(bytes + (is_64 ? 0x6c : 0x54), 4);

    if (!address || !size || !dump_file_holds(&d->file, offset, size))
        return 0;
    return memory_add_range(&d->memory, address, size, offset);
}

int load_triage(struct prcb_dump *d, struct prcb_error *err)
{
    struct dump_cursor c = {.file = &d->file, .at = d->header.size, .err = err};
    bool is_64 = d->header.bits == 64;
    const uint8_t *bytes;
    int code = cursor_bytes(&c, "the triage header", is_64 ? HEADER_64 : HEADER_32, &bytes);

    if (code)
        return code;
#define F(name, at32, at64) d->triage.name = (uint32_t)load_le(bytes + (is_64 ? at64 : at32), 4);
    FIELDS(F)
#undef F
    d->triage.stack_top = load_le(bytes + 0x48, d->memory.pointer_size);
    d->triage.is_cut = d->triage.size > d->file.size;
    d->memory.is_virtual = true;
    code = add_blocks(d, err);
    if (!code && add_data_page(d, bytes))
        code = prcb_fail(err, -ENOMEM, "%s: out of memory", d->name);
    return code;
}
