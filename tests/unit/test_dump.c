/* SPDX-License-Identifier: BSD-2-Clause
 *
 * src/windows/dump's inside: the cursor, overlapping ranges, bitmap ranks, page-table walks, and
 * what prcb_dump_open does with arguments. Whole dumps are tested in tests/dump/.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inside.h"

static void test_cursor(void **state)
{
    const uint8_t bytes[] = {1, 0, 0, 0, 2, 0, 0, 0, 3, 0};
    const struct dump_file file = {bytes, sizeof(bytes), "x.dmp", false};
    struct prcb_error err = {0};
    struct dump_cursor c = {.file = &file, .err = &err};
    uint64_t wide = 77;
    uint32_t value;

    assert_int_equal(cursor_u32(&c, "one", &value), 0);
    assert_int_equal(value, 1);
    assert_int_equal(cursor_u32(&c, "two", &value), 0);
    assert_int_equal(cursor_u64(&c, "three", &wide), -ENODATA);
    assert_int_equal(wide, 77); /* unchanged */
    assert_int_equal(err.offset, 8);
    assert_non_null(strstr(err.text, "x.dmp: offset 0x8: three"));
    assert_int_equal(cursor_u32(&c, "four", &value), -ENODATA);
    assert_int_equal(value, 2);
    assert_false(dump_file_holds(&file, UINT64_MAX, 2));
    assert_false(dump_file_holds(&file, 2, UINT64_MAX));
    assert_true(dump_file_holds(&file, sizeof(bytes), 0));
}

static void test_overlapping_ranges(void **state)
{
    uint8_t bytes[64];
    const struct dump_file file = {bytes, sizeof(bytes), "x", false};
    struct memory m = {.file = &file, .is_virtual = true, .pointer_size = 8};
    uint8_t read[16];
    uint64_t value;

    for (unsigned int i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)i;
    memory_add_range(&m, 0x1008, 16, 32);        /* cut: its first 8 are the next one's */
    memory_add_range(&m, 0x1000, 16, 0);         /* starts lower: wins */
    memory_add_range(&m, 0x1004, 4, 60);         /* inside it: dropped */
    memory_add_range(&m, 0x3000, 16, 56);        /* the file has 8 of its 16 bytes */
    memory_add_range(&m, UINT64_MAX - 4, 16, 0); /* wraps: ignored */
    memory_seal(&m);
    assert_int_equal(m.overlaps, 2);
    assert_int_equal(memory_read(&m, 0x1008, read, 16), MEMORY_PRESENT); /* across two */
    assert_int_equal(read[0], 8);
    assert_int_equal(read[8], 40);
    assert_int_equal(memory_load(&m, 0x1004, 4, &value), MEMORY_PRESENT);
    assert_int_equal(value, 0x07060504);
    assert_int_equal(memory_load(&m, 0x1018, 1, &value), MEMORY_NO_RANGE);
    assert_int_equal(memory_load(&m, 0x3000, 8, &value), MEMORY_PRESENT);
    assert_int_equal(memory_load(&m, 0x3008, 1, &value), MEMORY_CUT);
    memory_free(&m);
}

/* The file's n'th page holds n; every third page up to 20000 is in the dump. */
static void test_bitmap_ranks(void **state)
{
    const uint64_t pages = 20000, present = pages / 3 + 1;
    uint8_t *bitmap = calloc(1, pages / 8), *bytes = calloc(present, PAGE_SIZE);
    struct dump_file file = {bytes, present * PAGE_SIZE, "x", false};
    struct memory m = {.file = &file, .bitmap = bitmap, .bitmap_pages = pages, .pointer_size = 8};
    enum memory_absence why;
    uint64_t left;

    for (uint64_t i = 0; i < present; i++) {
        bitmap[i * 3 / 8] |= (uint8_t)(1 << i * 3 % 8);
        memcpy(bytes + i * PAGE_SIZE, &i, sizeof(i));
    }
    assert_int_equal(memory_index_bitmap(&m), 0);
    for (uint64_t i = 0; i < pages; i++) {
        const uint8_t *page = memory_physical(&m, i << PAGE_SHIFT, &left, &why);

        if (i % 3) {
            assert_null(page);
            assert_int_equal(why, MEMORY_NO_PAGE);
        } else {
            assert_non_null(page);
            assert_int_equal(load_le(page, 8), i / 3);
        }
    }
    assert_null(memory_physical(&m, pages << PAGE_SHIFT, &left, &why));
    memory_free(&m);
    free(bitmap);
    free(bytes);
}

static uint8_t tables[8][PAGE_SIZE];

static void put_entry(unsigned int table, unsigned int index, uint64_t value)
{
    memcpy(tables[table] + index * 8, &value, 8);
}

static void test_page_walk(void **state)
{
    struct dump_file file = {tables[0], sizeof(tables), "x", false};
    struct page_run run = {0, 8, 0};
    struct memory m = {.file = &file, .runs = &run, .run_count = 1, .pointer_size = 8};
    uint64_t physical, left;

    memset(tables, 0, sizeof(tables));
    m.paging = PAGING_X64;
    put_entry(0, 256, 1 << 12 | 1); /* 0xffff8000........ */
    put_entry(1, 0, 2 << 12 | 1);
    put_entry(2, 0, 3 << 12 | 1);
    put_entry(2, 1, 0x40000000 | 0x81);               /* 2 MiB */
    put_entry(1, 1, 0x80000000 | 0x81);               /* 1 GiB */
    put_entry(3, 5, 0x7000 | 1 | 0x8000000000000000); /* no-execute is no part of the frame */
    put_entry(3, 6, 0x800);
    put_entry(3, 7, 0x400);
    put_entry(3, 8, 0xc00);
    put_entry(2, 3, 9 << 12 | 1); /* a table that is not in the dump */
    assert_int_equal(paging_walk(&m, 0xffff800000005123, &physical, &left), MEMORY_PRESENT);
    assert_int_equal(physical, 0x7123);
    assert_int_equal(left, 0xedd);
    assert_int_equal(paging_walk(&m, 0xffff800000212345, &physical, &left), MEMORY_PRESENT);
    assert_int_equal(physical, 0x40012345);
    assert_int_equal(paging_walk(&m, 0xffff800040212345, &physical, &left), MEMORY_PRESENT);
    assert_int_equal(physical, 0x80212345);
    assert_int_equal(paging_walk(&m, 0xffff800000006000, &physical, &left), MEMORY_TRANSITION);
    assert_int_equal(paging_walk(&m, 0xffff800000007000, &physical, &left), MEMORY_PROTOTYPE);
    assert_int_equal(paging_walk(&m, 0xffff800000008000, &physical, &left), MEMORY_PROTOTYPE);
    assert_int_equal(paging_walk(&m, 0xffff800000009000, &physical, &left), MEMORY_NOT_PRESENT);
    assert_int_equal(paging_walk(&m, 0xffff800000600000, &physical, &left), MEMORY_NO_TABLE);
    assert_int_equal(paging_walk(&m, 0x0000800000005123, &physical, &left), MEMORY_NON_CANONICAL);
    m.paging = PAGING_X64_5; /* one level above */
    put_entry(4, 511, 0 << 12 | 1);
    m.root = 4 << 12;
    assert_int_equal(paging_walk(&m, 0xffff800000005123, &physical, &left), MEMORY_PRESENT);
    assert_int_equal(physical, 0x7123);
}

static void test_large_page_of_old_x86(void **state)
{
    struct dump_file file = {tables[0], sizeof(tables), "x", false};
    struct page_run run = {0, 8, 0};
    struct memory m = {
        .file = &file, .runs = &run, .run_count = 1, .pointer_size = 4, .paging = PAGING_X86};
    const uint32_t entry = 0x00c00000 | 0x3 << 13 | 0x81; /* bits 32 and 33 in 13 and 14 */
    uint64_t physical, left;

    memset(tables, 0, sizeof(tables));
    memcpy(tables[0] + (0x80000000u >> 22) * 4, &entry, 4);
    assert_int_equal(paging_walk(&m, 0x80012345, &physical, &left), MEMORY_PRESENT);
    assert_int_equal(physical, 0x300c12345);
    assert_int_equal(paging_walk(&m, 0xffffffff80012345, &physical, &left), MEMORY_PRESENT);
}

static void test_options(void **state)
{
    struct {
        struct prcb_dump_options known;
        uint64_t later;
    } options = {.known = {.size = sizeof(options)}, .later = 1};
    const char text[] = "not a dump";
    struct prcb_dump *d = (void *)&options;
    struct prcb_error err;

    assert_int_equal(prcb_dump_open_memory(text, sizeof(text), "x", &options.known, &d, &err),
                     -E2BIG);
    options.known.size = 0;
    assert_int_equal(prcb_dump_open_memory(text, sizeof(text), "x", &options.known, &d, &err),
                     -EINVAL);
    assert_int_equal(prcb_dump_open_memory(text, sizeof(text), "x", NULL, &d, NULL), -EINVAL);
    assert_int_equal(prcb_dump_open("/nowhere/none.dmp", NULL, &d, &err), -ENOENT);
    assert_int_equal(prcb_dump_open("/", NULL, &d, &err), -EISDIR);
    assert_ptr_equal(d, &options); /* unchanged on failure */
    prcb_dump_close(NULL);
}

static void test_tables(void **state)
{
    assert_string_equal(prcb_dump_item_name(PRCB_DUMP_InterruptCount), "InterruptCount");
    assert_null(prcb_dump_item_name(PRCB_DUMP_ITEM_COUNT));
    assert_string_equal(bugcheck_name(0x101), "CLOCK_WATCHDOG_TIMEOUT");
    assert_string_equal(bugcheck_name(0x1000007e), "SYSTEM_THREAD_EXCEPTION_NOT_HANDLED_M");
    assert_string_equal(bugcheck_name(0x10000050), "PAGE_FAULT_IN_NONPAGED_AREA");
    assert_null(bugcheck_name(0x12345));
    assert_null(prcb_dump_found_name(PRCB_DUMP_NOT_FOUND));
    assert_null(prcb_dump_structure_at(1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cursor),
        cmocka_unit_test(test_overlapping_ranges),
        cmocka_unit_test(test_bitmap_ranks),
        cmocka_unit_test(test_page_walk),
        cmocka_unit_test(test_large_page_of_old_x86),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_tables),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
