/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

const char *memory_words(enum memory_absence why)
{
    static const char *const words[] = {
        [MEMORY_PRESENT] = "present",
        [MEMORY_NO_RANGE] = "not in this dump",
        [MEMORY_NOT_PRESENT] = "not in this dump (not in memory when it was taken)",
        [MEMORY_TRANSITION] = "not in this dump (page in transition)",
        [MEMORY_PROTOTYPE] = "not in this dump (prototype page)",
        [MEMORY_NO_PAGE] = "not in this dump (its page was left out)",
        [MEMORY_NO_TABLE] = "not in this dump (a page table was left out)",
        [MEMORY_NON_CANONICAL] = "not an address of this machine",
        [MEMORY_NO_WALK] = "the page tables of this machine are not read",
        [MEMORY_CUT] = "not in this dump (the file is cut short)",
    };

    return words[why];
}

void memory_free(struct memory *m)
{
    free(m->ranges);
    free(m->runs);
    free(m->ranks);
    *m = (struct memory){0};
}

int memory_add_range(struct memory *m, uint64_t address, uint64_t size, uint64_t offset)
{
    if (m->pointer_size == 4)
        address &= UINT32_MAX; /* blocks of 32-bit dumps are sign-extended */
    if (!size || address + size < address)
        return 0;
    return array_append(m->ranges, m->range_count, (struct virtual_range){address, size, offset});
}

static int compare_ranges(const void *a, const void *b)
{
    const struct virtual_range *x = a, *y = b;

    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

void memory_seal(struct memory *m)
{
    uint64_t end = 0;
    size_t kept = 0;

    if (m->range_count)
        array_sort(m->ranges, m->range_count, compare_ranges);
    m->overlaps = 0;
    for (size_t i = 0; i < m->range_count; i++) {
        struct virtual_range range = m->ranges[i];

        if (kept && range.address < end) {
            uint64_t cut = end - range.address;

            m->overlaps++;
            if (cut >= range.size)
                continue;
            range.address += cut;
            range.offset += cut;
            range.size -= cut;
        }
        end = range.address + range.size;
        m->ranges[kept++] = range;
    }
    m->range_count = kept;
}

static const struct virtual_range *find_range(const struct memory *m, uint64_t address)
{
    size_t low = 0, high = m->range_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct virtual_range *range = &m->ranges[middle];

        if (address < range->address)
            high = middle;
        else if (address - range->address >= range->size)
            low = middle + 1;
        else
            return range;
    }
    return NULL;
}

static const uint8_t *range_at(const struct memory *m, uint64_t address, uint64_t *ret_left,
                               enum memory_absence *why)
{
    const struct virtual_range *range = find_range(m, address);
    uint64_t in_range, offset;

    if (!range) {
        *why = MEMORY_NO_RANGE;
        return NULL;
    }
    in_range = address - range->address;
    offset = range->offset + in_range;
    if (offset < range->offset || !dump_file_holds(m->file, offset, 1)) {
        *why = MEMORY_CUT;
        return NULL;
    }
    *ret_left = range->size - in_range;
    if (*ret_left > m->file->size - offset)
        *ret_left = m->file->size - offset;
    *why = MEMORY_PRESENT;
    return m->file->bytes + offset;
}

const uint8_t *memory_at(const struct memory *m, uint64_t address, uint64_t *ret_left,
                         enum memory_absence *why)
{
    uint64_t physical, left, page_left;
    const uint8_t *bytes;

    if (m->pointer_size == 4)
        address &= UINT32_MAX;
    if (m->is_virtual)
        return range_at(m, address, ret_left, why);
    *why = paging_walk(m, address, &physical, &left);
    if (*why != MEMORY_PRESENT)
        return NULL;
    bytes = memory_physical(m, physical, &page_left, why);
    if (bytes)
        *ret_left = left < page_left ? left : page_left;
    return bytes;
}

enum memory_absence memory_read(const struct memory *m, uint64_t address, void *buffer,
                                uint64_t length)
{
    enum memory_absence why = MEMORY_PRESENT;
    uint8_t *to = buffer;

    while (length) {
        uint64_t left = 0;
        const uint8_t *bytes = memory_at(m, address, &left, &why);

        if (!bytes)
            return why;
        if (left > length)
            left = length;
        memcpy(to, bytes, (size_t)left);
        to += left;
        address += left;
        length -= left;
    }
    return why;
}

enum memory_absence memory_load(const struct memory *m, uint64_t address, size_t size,
                                uint64_t *ret)
{
    uint8_t bytes[8];
    enum memory_absence why = memory_read(m, address, bytes, size);

    if (why == MEMORY_PRESENT)
        *ret = load_le(bytes, size);
    return why;
}

enum memory_absence memory_pointer(const struct memory *m, uint64_t address, uint64_t *ret)
{
    return memory_load(m, address, m->pointer_size, ret);
}
