/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Branches from perf's ring to an area's buffer, over a ring that the test fills.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "bts.h"

#define RING 256

static struct perf_event_mmap_page page;
static uint8_t ring[RING], buffer[10 * BTS_RECORD + 16];
static struct prcb_ds_area area;
static struct bts bts;

static int set_up(void **state)
{
    memset(&page, 0, sizeof(page));
    memset(buffer, 0xa5, sizeof(buffer));
    area = (struct prcb_ds_area){.bts_base = (uintptr_t)buffer,
                                 .bts_index = (uintptr_t)buffer,
                                 .bts_maximum = (uintptr_t)buffer + 10 * BTS_RECORD,
                                 .bts_threshold = (uintptr_t)buffer + 4 * BTS_RECORD};
    bts = (struct bts){.page = &page,
                       .aux = ring,
                       .aux_bytes = RING,
                       .area = &area,
                       .base = area.bts_base,
                       .end = area.bts_maximum};
    return 0;
}

/* As the processor does; 0: the padding at the end of a buffer. */
static void branch(uint64_t from)
{
    uint64_t words[3] = {from, from ? from + 0x1000 : 0, 0};

    for (size_t i = 0; i < BTS_RECORD; i++)
        ring[(page.aux_head + i) % RING] = ((uint8_t *)words)[i];
    page.aux_head += BTS_RECORD;
}

static uint64_t from_of(size_t i)
{
    uint64_t from;

    memcpy(&from, buffer + i * BTS_RECORD, sizeof(from));
    return from;
}

static void copied_in_order(void **state)
{
    for (int i = 1; i <= 3; i++)
        branch(i);
    bts_take(&bts);
    assert_int_equal(area.bts_index, area.bts_base + 3 * BTS_RECORD);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(from_of(i), i + 1);
    assert_int_equal(page.aux_tail, page.aux_head);
    assert_int_equal(bts.counts.thresholds, 0);
    branch(4);
    bts_take(&bts);
    assert_int_equal(bts.counts.thresholds, 1);
    assert_int_equal(bts.counts.written, 4);
}

static void across_the_end_of_the_ring(void **state)
{
    for (uint64_t i = 1; i <= 100; i++) {
        branch(i);
        bts_take(&bts);
        assert_int_equal(from_of(0), i);
        area.bts_index = area.bts_base;
    }
    assert_int_equal(bts.counts.written, 100);
}

static void padding_is_no_branch(void **state)
{
    branch(1);
    branch(0);
    branch(2);
    bts_take(&bts);
    assert_int_equal(bts.counts.written, 2);
    assert_int_equal(from_of(1), 2);
}

static void nothing_past_the_maximum(void **state)
{
    for (uint64_t i = 1; i <= 20; i += 10) {
        for (uint64_t j = i; j < i + 10; j++)
            branch(j);
        bts_take(&bts);
    }
    assert_int_equal(bts.counts.written, 10);
    assert_int_equal(bts.counts.lost_full, 10);
    assert_int_equal(from_of(9), 10);
    for (size_t i = 10 * BTS_RECORD; i < sizeof(buffer); i++)
        assert_int_equal(buffer[i], 0xa5);
    area.bts_maximum = UINT64_MAX; /* moved while it runs */
    branch(1);
    bts_take(&bts);
    assert_int_equal(bts.counts.lost_full, 11);
}

static void an_index_outside(void **state)
{
    const uint64_t rows[] = {0, area.bts_base - 8, area.bts_maximum + 8, area.bts_base + 4,
                             UINT64_MAX - 7};

    for (size_t i = 0; i < 5; i++) {
        area.bts_index = rows[i];
        branch(1);
        bts_take(&bts);
        assert_int_equal(bts.counts.lost_index, i + 1);
        assert_int_equal(area.bts_index, rows[i]);
    }
    assert_int_equal(buffer[0], 0xa5);
}

/* Half a record: the processor is not done with it. */
static void half_a_record(void **state)
{
    branch(1);
    page.aux_head -= 8;
    bts_take(&bts);
    assert_int_equal(bts.counts.interrupts, 0);
    page.aux_head += 8;
    bts_take(&bts);
    assert_int_equal(bts.counts.written, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        T(copied_in_order),          T(across_the_end_of_the_ring), T(padding_is_no_branch),
        T(nothing_past_the_maximum), T(an_index_outside),           T(half_a_record),
    };

    return cmocka_run_group_tests_name("branch traces", tests, NULL, NULL);
}
