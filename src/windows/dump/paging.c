/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Page tables of x86 (with and without PAE) and x64 (four and five levels). A walk takes as many
 * steps as there are levels, so tables that point at themselves (Windows' own do) cannot hold it.
 *
 * NT's use of entries that are not valid: bit 10 prototype; else bit 11 transition; else paged out
 * or never there.
 */
#include "memory.h"

#define VALID      0x1u
#define LARGE      0x80u
#define PROTOTYPE  0x400u
#define TRANSITION 0x800u

/* One level: which address bits index it, and how much one entry maps if it is large. */
struct level {
    uint8_t shift, bits;
    bool may_be_large;
};

struct scheme {
    const char *name;
    uint8_t levels, entry_size;
    uint8_t address_bits;
    uint64_t root_mask; /* of the directory base */
    uint64_t frame_mask;
    struct level level[5];
};

static const struct scheme schemes[PAGING_COUNT] = {
    [PAGING_NONE] = {"none"},
    [PAGING_X86] = {"x86", 2, 4, 32, 0xfffff000, 0xfffff000, {{22, 10, true}, {12, 10}}},
    [PAGING_PAE] =
        {"x86 PAE", 3, 8, 32, 0xffffffe0, 0x000ffffffffff000, {{30, 2}, {21, 9, true}, {12, 9}}},
    [PAGING_X64] = {"x64",
                    4,
                    8,
                    48,
                    0x000ffffffffff000,
                    0x000ffffffffff000,
                    {{39, 9}, {30, 9, true}, {21, 9, true}, {12, 9}}},
    [PAGING_X64_5] = {"x64, five levels",
                      5,
                      8,
                      57,
                      0x000ffffffffff000,
                      0x000ffffffffff000,
                      {{48, 9}, {39, 9}, {30, 9, true}, {21, 9, true}, {12, 9}}},
};

const char *paging_name(enum paging paging)
{
    return schemes[paging].name;
}

static bool is_canonical(const struct scheme *scheme, uint64_t address)
{
    int64_t high;

    if (scheme->address_bits == 32)
        return !(address >> 32) || address >> 31 == 0x1ffffffff;
    high = (int64_t)address >> (scheme->address_bits - 1);
    return high == 0 || high == -1;
}

static enum memory_absence invalid_entry(uint64_t entry)
{
    if (entry & PROTOTYPE)
        return MEMORY_PROTOTYPE;
    return entry & TRANSITION ? MEMORY_TRANSITION : MEMORY_NOT_PRESENT;
}

/* Where a large entry's page starts. 4 MiB entries keep address bits 32..39 in bits 13..20. */
static uint64_t large_base(const struct scheme *scheme, uint64_t entry, uint64_t page)
{
    uint64_t base = entry & scheme->frame_mask & ~(page - 1);

    return scheme->entry_size == 4 ? base | (entry >> 13 & 0xff) << 32 : base;
}

enum memory_absence paging_walk(const struct memory *m, uint64_t address, uint64_t *ret,
                                uint64_t *ret_left)
{
    const struct scheme *scheme = &schemes[m->paging];
    uint64_t table = m->root & scheme->root_mask;

    if (m->paging == PAGING_NONE)
        return MEMORY_NO_WALK;
    if (!is_canonical(scheme, address))
        return MEMORY_NON_CANONICAL;
    for (unsigned int i = 0; i < scheme->levels; i++) {
        const struct level *level = &scheme->level[i];
        uint64_t index = address >> level->shift & ((1u << level->bits) - 1);
        uint64_t page = 1ull << level->shift, left, entry;
        enum memory_absence why;
        const uint8_t *bytes = memory_physical(m, table + index * scheme->entry_size, &left, &why);

        if (!bytes || left < scheme->entry_size)
            return MEMORY_NO_TABLE;
        entry = load_le(bytes, scheme->entry_size);
        if (!(entry & VALID))
            return invalid_entry(entry);
        if (i + 1u == scheme->levels || (level->may_be_large && entry & LARGE)) {
            uint64_t base = i + 1u == scheme->levels ? entry & scheme->frame_mask
                                                     : large_base(scheme, entry, page);

            *ret = base + (address & (page - 1));
            *ret_left = page - (address & (page - 1));
            return MEMORY_PRESENT;
        }
        table = entry & scheme->frame_mask;
    }
    return MEMORY_NOT_PRESENT;
}
