/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The crashed machine's memory as far as a dump holds it: virtual ranges (triage dumps) or
 * physical pages behind the machine's own page tables (all others). Built by a container, then
 * read-only but for `why`. Not a cache: bytes come straight from the mapped file.
 */
#ifndef PRCB_DUMP_MEMORY_H
#define PRCB_DUMP_MEMORY_H

#include "cursor.h"

#define PAGE_SIZE  0x1000u
#define PAGE_SHIFT 12

/* Why an address has no bytes; memory_words says it. */
enum memory_absence {
    MEMORY_PRESENT,
    MEMORY_NO_RANGE,      /* no block of a triage dump covers it */
    MEMORY_NOT_PRESENT,   /* a page-table entry is empty, or the page was paged out */
    MEMORY_TRANSITION,    /* out of the working set, on its way to disk or back */
    MEMORY_PROTOTYPE,     /* shared page, by way of a prototype entry */
    MEMORY_NO_PAGE,       /* mapped, but the physical page is not in the dump */
    MEMORY_NO_TABLE,      /* a page table is not in the dump */
    MEMORY_NON_CANONICAL, /* no such address on this machine */
    MEMORY_NO_WALK,       /* this machine's page tables are not read */
    MEMORY_CUT,           /* the dump says it has it, the file ends before */
};
const char *memory_words(enum memory_absence why);

enum paging { PAGING_NONE, PAGING_X86, PAGING_PAE, PAGING_X64, PAGING_X64_5, PAGING_COUNT };

/* Places [address, address + size) of virtual memory at a file offset. */
struct virtual_range {
    uint64_t address, size, offset;
};

/* Places physical pages [first, first + count) at a file offset. */
struct page_run {
    uint64_t first, count, offset;
};

struct memory {
    const struct dump_file *file;
    bool is_virtual;
    unsigned int pointer_size; /* 4 or 8 */
    /* virtual: sorted, disjoint once memory_seal has run */
    struct virtual_range *ranges;
    size_t range_count;
    size_t overlaps; /* ranges that shared bytes of memory */
    /* physical: sorted runs, or a bitmap whose set bits are pages in file order */
    struct page_run *runs;
    size_t run_count;
    const uint8_t *bitmap;
    uint64_t bitmap_pages;
    uint64_t *ranks; /* set bits before each RANK_PAGES bits */
    uint64_t data;   /* file offset of the first page */
    enum paging paging;
    uint64_t root; /* page-directory base */
};

void memory_free(struct memory *m);
int memory_add_range(struct memory *m, uint64_t address, uint64_t size, uint64_t offset);
/* Sorts ranges and cuts overlaps: the lower start wins, among equals the longer. */
void memory_seal(struct memory *m);

/* pages.c */
/* Counts the bitmap's bits, so that memory_physical can find a page's place. */
int memory_index_bitmap(struct memory *m);
/* Returns bytes at a physical address, up to the end of its page; NULL: they are not in the
 * dump. */
const uint8_t *memory_physical(const struct memory *m, uint64_t address, uint64_t *ret_left,
                               enum memory_absence *why);

/* Returns bytes at a virtual address and how many follow without a gap (at least 1). */
const uint8_t *memory_at(const struct memory *m, uint64_t address, uint64_t *ret_left,
                         enum memory_absence *why);
/* Copies; all or nothing. */
enum memory_absence memory_read(const struct memory *m, uint64_t address, void *buffer,
                                uint64_t length);
/* Loads a little-endian number of 1, 2, 4 or 8 bytes. */
enum memory_absence memory_load(const struct memory *m, uint64_t address, size_t size,
                                uint64_t *ret);
enum memory_absence memory_pointer(const struct memory *m, uint64_t address, uint64_t *ret);

/* Translates virtual to physical by the machine's page tables (paging.c). ret_left: bytes to the
 * end of the page. */
enum memory_absence paging_walk(const struct memory *m, uint64_t address, uint64_t *ret,
                                uint64_t *ret_left);
const char *paging_name(enum paging paging);

#endif
