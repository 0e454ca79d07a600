/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Dumps of physical memory: runs of pages (type 1), a bitmap of pages (types 5, 6) and the older
 * summary form of it (type 2). The pages follow in ascending order.
 *
 * Bitmap header, the same for 32 and 64 bits, behind the dump header:
 *   0x00 "SDMP" or "FDMP", 0x04 "DUMP", 0x20 u64 file offset of the first page,
 *   0x28, 0x30 u64 pages present and bits in the bitmap, 0x38 the bitmap.
 * Public readers differ on which of 0x28 and 0x30 is which; as pages present cannot exceed the
 * bits, the greater is taken for the bits.
 * Header of page ranges (types 8, 9, 10), 64-bit: 0x00 u32 0x40, "RDMP", "DUMP", u32, 0x10 u64
 * bytes of metadata, 0x18 u64 file offset of the first page (metadata + 0x2020), 0x20 u32 number of
 * ranges and 0x28 u64 pages (type 10; not said in the others), 0x30 the ranges: u64 first page, u64
 * pages; one of no pages ends them.
 * Older summary header (types 2): "SDMP", "DUMP", then u32s: 0x08 options, 0x0c file offset of the
 * first page, 0x10 bits, 0x14 pages present, 0x18 bits again, then a pointer (4 or 8 bytes,
 * aligned) and the bitmap.
 */
#include "array.h"
#include "inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_32   0x64 /* PHYSICAL_MEMORY_DESCRIPTOR in the header */
#define RUNS_64   0x88
#define RUNS_ROOM 700 /* bytes the header has for it */

#define BITMAP_MOST (1ull << 33) /* pages: keeps a hostile sparse file from costing minutes */

static int compare_runs(const void *a, const void *b)
{
    const struct page_run *x = a, *y = b;

    return x->first < y->first ? -1 : x->first > y->first;
}

/* Sorted runs must be disjoint, or an address would have two pages. */
static int check_runs(struct prcb_dump *d, struct prcb_error *err)
{
    struct memory *m = &d->memory;

    array_sort(m->runs, m->run_count, compare_runs);
    for (size_t i = 1; i < m->run_count; i++) {
        if (m->runs[i].first - m->runs[i - 1].first < m->runs[i - 1].count)
            return prcb_fail(err, -EINVAL, "%s: runs of physical pages overlap at page 0x%llx",
                             d->name, (unsigned long long)m->runs[i].first);
    }
    return 0;
}

int load_runs(struct prcb_dump *d, struct prcb_error *err)
{
    bool is_64 = d->header.bits == 64;
    const uint8_t *block = d->file.bytes + (is_64 ? RUNS_64 : RUNS_32); /* header is checked */
    unsigned int word = is_64 ? 8 : 4;
    uint32_t count = (uint32_t)load_le(block, 4);
    uint64_t offset = d->header.size;

    if (!count || count > (RUNS_ROOM - 2 * word) / (2 * word))
        return prcb_fail(err, -EINVAL,
                         "%s: the header describes %u runs of physical memory; 1 to %u fit there",
                         d->name, count, (RUNS_ROOM - 2 * word) / (2 * word));
    d->memory.runs = calloc(count, sizeof(*d->memory.runs));
    if (!d->memory.runs)
        return prcb_fail(err, -ENOMEM, "%s: out of memory", d->name);
    for (uint32_t i = 0; i < count; i++) {
        struct page_run *run = &d->memory.runs[d->memory.run_count++];

        run->first = load_le(block + 2 * word * (i + 1), word);
        run->count = load_le(block + 2 * word * (i + 1) + word, word);
        run->offset = offset;
        if (run->count > UINT64_MAX >> (PAGE_SHIFT + 8) || run->first > UINT64_MAX >> PAGE_SHIFT)
            return prcb_fail(err, -EINVAL, "%s: run %u has 0x%llx pages from page 0x%llx", d->name,
                             i, (unsigned long long)run->count, (unsigned long long)run->first);
        offset += run->count * PAGE_SIZE;
    }
    return check_runs(d, err);
}

static int set_bitmap(struct prcb_dump *d, struct dump_cursor *c, uint64_t bits, uint64_t data,
                      struct prcb_error *err)
{
    const uint8_t *bitmap;
    int code;

    if (bits > BITMAP_MOST)
        return cursor_fail(c, -EINVAL,
                           "the page bitmap has 0x%llx bits; up to 0x%llx (32 TiB) are read",
                           (unsigned long long)bits, BITMAP_MOST);
    code = cursor_bytes(c, "the page bitmap", (bits + 7) / 8, &bitmap);
    if (code)
        return code;
    if (data < c->at)
        return cursor_fail(c, -EINVAL, "the bitmap ends at 0x%llx, behind the first page at 0x%llx",
                           (unsigned long long)c->at, (unsigned long long)data);
    d->memory.bitmap = bitmap;
    d->memory.bitmap_pages = bits;
    d->memory.data = data;
    if (memory_index_bitmap(&d->memory))
        return prcb_fail(err, -ENOMEM, "%s: out of memory", d->name);
    return 0;
}

static int check_signature(struct dump_cursor *c, const uint8_t *bytes)
{
    if ((memcmp(bytes, "SDMP", 4) && memcmp(bytes, "FDMP", 4)) || memcmp(bytes + 4, "DUMP", 4))
        return cursor_fail(c, -EINVAL, "no bitmap header (SDMP or FDMP) where one belongs");
    return 0;
}

int load_bitmap(struct prcb_dump *d, struct prcb_error *err)
{
    struct dump_cursor c = {.file = &d->file, .at = d->header.size, .err = err};
    const uint8_t *bytes;
    uint64_t present, bits;
    int code = cursor_bytes(&c, "the bitmap header", 0x38, &bytes);

    if (!code)
        code = check_signature(&c, bytes);
    if (code)
        return code;
    present = load_le(bytes + 0x28, 8);
    bits = load_le(bytes + 0x30, 8);
    return set_bitmap(d, &c, bits > present ? bits : present, load_le(bytes + 0x20, 8), err);
}

int load_summary(struct prcb_dump *d, struct prcb_error *err)
{
    struct dump_cursor c = {.file = &d->file, .at = d->header.size, .err = err};
    uint32_t length = d->header.bits == 64 ? 0x28 : 0x20;
    const uint8_t *bytes;
    uint64_t bits, data;
    int code = cursor_bytes(&c, "the summary header", length, &bytes);

    if (!code)
        code = check_signature(&c, bytes);
    if (code)
        return code;
    data = load_le(bytes + 0x0c, 4);
    bits = load_le(bytes + 0x10, 4);
    if (!bits || bits != load_le(bytes + 0x18, 4)) /* not the older form */
        return load_bitmap(d, err);
    return set_bitmap(d, &c, bits, data, err);
}

#define RANGES_AT    0x30
#define RANGES_MOST  (1u << 20)
#define RANGES_MAGIC "\x40\0\0\0RDMPDUMP"

static int take_ranges(struct prcb_dump *d, uint64_t at, uint64_t count, uint64_t data,
                       struct prcb_error *err)
{
    struct memory *m = &d->memory;

    m->runs = calloc((size_t)count + 1, sizeof(*m->runs));
    if (!m->runs)
        return prcb_fail(err, -ENOMEM, "%s: out of memory", d->name);
    for (uint64_t i = 0; i < count; i++, at += 16) {
        struct page_run *run = &m->runs[m->run_count];

        run->first = load_le(d->file.bytes + at, 8);
        run->count = load_le(d->file.bytes + at + 8, 8);
        run->offset = data;
        if (!run->count)
            break;
        if (run->count > UINT64_MAX >> (PAGE_SHIFT + 8) || run->first > UINT64_MAX >> PAGE_SHIFT ||
            data > UINT64_MAX >> 8)
            return prcb_fail(err, -EINVAL, "%s: range %llu has 0x%llx pages from page 0x%llx",
                             d->name, (unsigned long long)i, (unsigned long long)run->count,
                             (unsigned long long)run->first);
        data += run->count * PAGE_SIZE;
        m->run_count++;
    }
    return check_runs(d, err);
}

int load_ranges(struct prcb_dump *d, struct prcb_error *err)
{
    struct dump_cursor c = {.file = &d->file, .at = d->header.size, .err = err};
    uint64_t metadata, data, count;
    const uint8_t *bytes;
    int code = cursor_bytes(&c, "the header of page ranges", RANGES_AT, &bytes);

    if (code)
        return code;
    metadata = load_le(bytes + 0x10, 8);
    data = load_le(bytes + 0x18, 8);
    if (memcmp(bytes, RANGES_MAGIC, 12))
        return cursor_fail(&c, -EINVAL, "no header of page ranges (RDMP) where one belongs");
    if (data < c.at || metadata != data - 0x2020)
        return cursor_fail(&c, -EINVAL,
                           "0x%llx bytes of metadata and the first page at 0x%llx do not agree",
                           (unsigned long long)metadata, (unsigned long long)data);
    count = (data - c.at) / 16;
    if (count > RANGES_MOST)
        return cursor_fail(&c, -EINVAL, "%llu page ranges; up to %u are read",
                           (unsigned long long)count, RANGES_MOST);
    if (load_le(bytes + 0x20, 4) && load_le(bytes + 0x20, 4) < count && d->header.type == 10)
        count = load_le(bytes + 0x20, 4);
    code = cursor_bytes(&c, "the page ranges", count * 16, &bytes);
    return code ? code : take_ranges(d, c.at - count * 16, count, data, err);
}

int load_header(struct prcb_dump *d, struct prcb_error *err)
{
    d->memory.is_virtual = true; /* and nothing in it */
    if (dump_note(d, "of this kind of dump only the header is read: it holds no processor"))
        return prcb_fail(err, -ENOMEM, "%s: out of memory", d->name);
    return 0;
}

int load_cut(struct prcb_dump *d, struct prcb_error *err)
{
    const struct memory empty = {
        .file = d->memory.file, .is_virtual = true, .pointer_size = d->memory.pointer_size};

    char whole[48] = "";

    if (d->header.whole_size > d->file.size)
        snprintf(whole, sizeof(whole), " of %llu", (unsigned long long)d->header.whole_size);
    memory_free(&d->memory);
    d->memory = empty;
    d->triage = (struct triage){0};
    if (dump_note(d,
                  "the file ends after %llu bytes%s, before its memory: only the header is read, "
                  "and no processor",
                  (unsigned long long)d->file.size, whole))
        return prcb_fail(err, -ENOMEM, "%s: out of memory", d->name);
    return 0;
}

/* An automatic dump is a kernel dump; as which of its forms, its signature says. */
int load_automatic(struct prcb_dump *d, struct prcb_error *err)
{
    const uint8_t *bytes = d->file.bytes + d->header.size;

    if (dump_file_holds(&d->file, d->header.size, 0x38) &&
        (!memcmp(bytes, "SDMPDUMP", 8) || !memcmp(bytes, "FDMPDUMP", 8)))
        return load_bitmap(d, err);
    return load_header(d, err);
}
