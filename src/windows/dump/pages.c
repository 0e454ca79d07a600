/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Physical pages: where they lie in the file, by runs or by a bitmap.
 */
#include "memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RANK_PAGES 4096u /* bits between two ranks: 512 bytes of bitmap */

static uint64_t count_bits(const uint8_t *bytes, size_t length)
{
    uint64_t count = 0, word;

    for (; length >= sizeof(word); length -= sizeof(word), bytes += sizeof(word)) {
        memcpy(&word, bytes, sizeof(word));
        count += (uint64_t)__builtin_popcountll(word);
    }
    for (; length; length--, bytes++)
        count += (uint64_t)__builtin_popcount(*bytes);
    return count;
}

int memory_index_bitmap(struct memory *m)
{
    uint64_t chunks = m->bitmap_pages / RANK_PAGES + 1, bytes = (m->bitmap_pages + 7) / 8;
    uint64_t count = 0;

    m->ranks = calloc((size_t)chunks, sizeof(*m->ranks));
    if (!m->ranks)
        return -ENOMEM;
    for (uint64_t i = 0; i < chunks; i++) {
        uint64_t at = i * (RANK_PAGES / 8);
        uint64_t length = bytes - at < RANK_PAGES / 8 ? bytes - at : RANK_PAGES / 8;

        m->ranks[i] = count;
        count += count_bits(m->bitmap + at, (size_t)length);
    }
    return 0;
}

/* Place of a page among those in the file, by the bitmap. */
static bool bitmap_place(const struct memory *m, uint64_t page, uint64_t *ret)
{
    uint64_t chunk = page / RANK_PAGES, place;
    const uint8_t *bytes = m->bitmap + chunk * (RANK_PAGES / 8);
    uint64_t bits = page % RANK_PAGES;

    if (page >= m->bitmap_pages || !(m->bitmap[page / 8] >> (page % 8) & 1))
        return false;
    place = m->ranks[chunk] + count_bits(bytes, (size_t)(bits / 8));
    if (bits % 8)
        place += (uint64_t)__builtin_popcount(bytes[bits / 8] & ((1u << bits % 8) - 1));
    *ret = place;
    return true;
}

/* File offset of a physical page. */
static bool run_place(const struct memory *m, uint64_t page, uint64_t *ret)
{
    size_t low = 0, high = m->run_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct page_run *run = &m->runs[middle];

        if (page < run->first) {
            high = middle;
        } else if (page - run->first >= run->count) {
            low = middle + 1;
        } else {
            *ret = run->offset + (page - run->first) * PAGE_SIZE;
            return true;
        }
    }
    return false;
}

const uint8_t *memory_physical(const struct memory *m, uint64_t address, uint64_t *ret_left,
                               enum memory_absence *why)
{
    uint64_t page = address >> PAGE_SHIFT, in_page = address & (PAGE_SIZE - 1), offset;
    bool found;

    if (m->bitmap) {
        found = bitmap_place(m, page, &offset);
        offset = found ? m->data + offset * PAGE_SIZE : 0;
    } else {
        found = run_place(m, page, &offset);
    }
    if (!found) {
        *why = MEMORY_NO_PAGE;
        return NULL;
    }
    if (!dump_file_holds(m->file, offset, in_page + 1)) {
        *why = MEMORY_CUT;
        return NULL;
    }
    *ret_left = PAGE_SIZE - in_page;
    if (*ret_left > m->file->size - offset - in_page)
        *ret_left = m->file->size - offset - in_page;
    *why = MEMORY_PRESENT;
    return m->file->bytes + offset + in_page;
}
