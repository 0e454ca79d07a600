/* SPDX-License-Identifier: BSD-2-Clause
 *
 * From a processor's block to its times: each state, an interrupted update, the tick rule's open
 * part; maps of another age; and that what was returned never goes backwards.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "processor_map.h"
#include "processors_view.h"
#include "processors.h"

static uint64_t sum(const struct parts *parts)
{
    uint64_t all = 0;

    for (int i = 0; i < PARTS; i++)
        all += parts->ns[i];
    return all;
}

/* 1000 began; 100 each of interrupt, dpc, idle; 60 user, 20 kernel, 10 steal; 0 to share: 390. */
static struct prcb_processor_block block_at(uint64_t stamp)
{
    return (struct prcb_processor_block){
        .state = PRCB_PROCESSOR_ONLINE,
        .started = 1000,
        .stamp = stamp,
        .interrupt_ns = 100,
        .dpc_ns = 100,
        .idle_ns = 100,
        .user_ns = 60,
        .kernel_ns = 20,
        .steal_ns = 10,
    };
}

static void states(void **state)
{
    static const struct {
        uint16_t depth;
        uint8_t beneath;
        enum part live;
    } cases[] = {
        {0, 0, PART_KERNEL},
        {0, PRCB_PROCESSOR_IN_IDLE, PART_IDLE},
        {0, PRCB_PROCESSOR_IN_SOFT, PART_DPC},
        {0, PRCB_PROCESSOR_IN_SOFT | PRCB_PROCESSOR_IN_IDLE, PART_DPC},
        {1, PRCB_PROCESSOR_IN_SOFT | PRCB_PROCESSOR_IN_IDLE, PART_INTERRUPT},
        {2, 0, PART_INTERRUPT},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct prcb_processor_block block = block_at(1390);
        struct parts parts, closed;
        enum part live;

        block.hard_depth = cases[i].depth;
        block.beneath = cases[i].beneath;
        processor_block_times(&block, 1390, &closed, &live);
        processor_block_times(&block, 1400, &parts, &live);
        assert_int_equal(live, cases[i].live);
        assert_int_equal(sum(&parts), parts.wall);
        assert_int_equal(parts.wall, 400);
        assert_int_equal(closed.wall, 390);
        if (live != PART_KERNEL)
            assert_int_equal(parts.ns[live] - closed.ns[live], 10);
        /* "Now" may be a little early: then nothing is open. */
        processor_block_times(&block, 1380, &parts, &live);
        assert_memory_equal(&parts, &closed, sizeof(parts));
    }
}

static void busy_is_shared_as_before(void **state)
{
    struct prcb_processor_block block = block_at(1430);
    struct parts parts;
    enum part live;

    block.busy_ns = 40;
    block.user_share = 49152; /* three quarters so far are the user's */
    processor_block_times(&block, 1470, &parts, &live);
    assert_int_equal(parts.ns[PART_USER], 60 + 60);
    assert_int_equal(parts.ns[PART_KERNEL], 20 + 20);
    assert_int_equal(sum(&parts), parts.wall);
    block.user_share = 0;
    processor_block_times(&block, 1470, &parts, &live);
    assert_int_equal(parts.ns[PART_USER], 60);
    assert_int_equal(parts.ns[PART_KERNEL], 100);
    block.user_share = 65536;
    processor_block_times(&block, 1470, &parts, &live);
    assert_int_equal(parts.ns[PART_USER], 140);
    assert_int_equal(parts.ns[PART_KERNEL], 20);
    /* Half a year in one stretch, and a share that no writer writes. */
    block.user_share = 0xffffffff;
    block.busy_ns += 1ull << 54;
    block.stamp += 1ull << 54;
    processor_block_times(&block, block.stamp, &parts, &live);
    assert_int_equal(parts.ns[PART_USER], 60 + 40 + (1ull << 54));
    assert_int_equal(sum(&parts), parts.wall);
}

static void interrupted_update(void **state)
{
    struct prcb_processor_block block = block_at(1390);
    struct parts parts;
    enum part live;

    block.beneath = PRCB_PROCESSOR_IN_IDLE;
    block.nested_ns = 107;
    block.folded_ns = 100;
    processor_block_times(&block, 1400, &parts, &live);
    assert_int_equal(parts.ns[PART_INTERRUPT], 107);
    assert_int_equal(parts.ns[PART_IDLE], 103);
    assert_int_equal(sum(&parts), parts.wall);
    /* More than the stretch is long so far: the rest comes with the next. */
    processor_block_times(&block, 1395, &parts, &live);
    assert_int_equal(parts.ns[PART_INTERRUPT], 105);
    assert_int_equal(parts.ns[PART_IDLE], 100);
    assert_int_equal(sum(&parts), parts.wall);
    assert_int_equal(processor_block_interrupted(&block, 1400), 207);
    block.hard_depth = 1;
    assert_int_equal(processor_block_interrupted(&block, 1400), 210);
}

static void offline(void **state)
{
    struct prcb_processor_block block = block_at(1390);
    struct parts parts;
    enum part live;

    block.state = PRCB_PROCESSOR_OFFLINE;
    processor_block_times(&block, 5000, &parts, &live);
    assert_int_equal(parts.wall, 390);
    assert_int_equal(sum(&parts), 390);
    block.state = PRCB_PROCESSOR_ONLINE;
    block.stamp = 5000; /* it came back */
    block.offline_ns = 3610;
    processor_block_times(&block, 5010, &parts, &live);
    assert_int_equal(parts.wall, 400);
    assert_int_equal(sum(&parts), 400);
    memset(&block, 0, sizeof(block)); /* never seen */
    processor_block_times(&block, 5010, &parts, &live);
    assert_int_equal(parts.wall, 0);
    assert_int_equal(sum(&parts), 0);
}

static void never_back(void **state)
{
    struct parts last = {100, {50, 20, 10, 10, 10, 0}};
    struct parts now = {110, {45, 20, 20, 10, 15, 0}};

    parts_never_back(&last, &now, PART_KERNEL);
    assert_int_equal(now.ns[PART_IDLE], 50);
    assert_int_equal(sum(&now), now.wall);
    for (int i = 0; i < PARTS; i++)
        assert_true(now.ns[i] >= last.ns[i]);
    /* The whole was read from a clock a little ahead. */
    now = (struct parts){95, {45, 20, 10, 10, 10, 0}};
    parts_never_back(&last, &now, PART_IDLE);
    assert_memory_equal(&now, &last, sizeof(now));
}

/* Any step of a processor, read by a clock that is off by up to 20 either way. */
static void never_back_at_random(void **state)
{
    struct prcb_processor_block block = block_at(1390);
    struct parts last = {0}, parts;
    uint64_t now = 1390;

    srand(1);
    for (int i = 0; i < 200000; i++) {
        __u64 step = (__u64)rand() % 50,
              *to[] = {&block.interrupt_ns, &block.dpc_ns, &block.idle_ns, &block.busy_ns};
        enum part live;

        *to[block.hard_depth ? 0 : block.beneath ? block.beneath : 3] += step;
        block.stamp += step;
        now += step;
        block.hard_depth = rand() % 3 == 0;
        block.beneath = (uint8_t)(rand() % 3);
        if (rand() % 10 == 0) {
            *(rand() % 2 ? &block.user_ns : &block.kernel_ns) += block.busy_ns;
            block.busy_ns = 0;
            block.user_share = (__u32)(rand() % 65537);
        }
        processor_block_times(&block, now + (uint64_t)(rand() % 41) - 20, &parts, &live);
        assert_int_equal(sum(&parts), parts.wall);
        parts_never_back(&last, &parts, live);
        assert_int_equal(sum(&parts), parts.wall);
        assert_true(parts.wall >= last.wall);
        for (int k = 0; k < PARTS; k++)
            assert_true(parts.ns[k] >= last.ns[k]);
        last = parts;
    }
}

/* ---- maps ---- */

static int map_of(const struct prcb_processor_head *head, uint32_t stride, uint32_t count)
{
    int fd = memfd_create("blocks", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 65536), 0);
    assert_int_equal(pwrite(fd, head, sizeof(*head), 0), sizeof(*head));
    for (uint32_t i = 0; i < count; i++) {
        struct prcb_processor_block block = block_at(1390);

        block.seq = 2 * i;
        block.idle_entries = i + 1;
        assert_int_equal(pwrite(fd, &block, sizeof(block), stride * (i + 1)), sizeof(block));
    }
    return fd;
}

static struct prcb_processor_head good_head(void)
{
    return (struct prcb_processor_head){
        .magic = PRCB_PROCESSOR_MAGIC,
        .abi_major = PRCB_PROCESSOR_MAJOR,
        .head_size = sizeof(struct prcb_processor_head),
        .block_size = sizeof(struct prcb_processor_block),
        .block_stride = sizeof(struct prcb_processor_block),
        .count = 3,
    };
}

static void maps_of_other_ages(void **state)
{
    struct prcb_processor_head head = good_head();
    struct prcb_processor_block copy;
    struct processor_map map;
    uint32_t retries = 0;
    int fd;

    /* Newer: larger blocks, further apart. */
    head.block_size = 768;
    head.block_stride = 1024;
    head.abi_minor = 9;
    fd = map_of(&head, 1024, 3);
    assert_int_equal(processor_map_open(fd, &map, NULL), 0);
    assert_int_equal(map.count, 3);
    assert_int_equal(processor_block_copy(&map, 2, sizeof(copy), &copy, &retries), 0);
    assert_int_equal(copy.idle_entries, 3);
    processor_map_close(&map);
    close(fd);
    /* Older: what it does not have is 0. */
    head.block_size = 128;
    head.block_stride = 512;
    fd = map_of(&head, 512, 3);
    assert_int_equal(processor_map_open(fd, &map, NULL), 0);
    assert_int_equal(processor_block_copy(&map, 1, sizeof(copy), &copy, &retries), 0);
    assert_int_equal(copy.user_ns, 60);
    assert_int_equal(copy.idle_entries, 0);
    assert_int_equal(retries, 0);
    processor_map_close(&map);
    close(fd);
}

static void stuck_writer(void **state)
{
    struct prcb_processor_head head = good_head();
    struct prcb_processor_block copy;
    struct processor_map map;
    uint32_t retries = 0, odd = 7;
    int fd = map_of(&head, 512, 3);

    assert_int_equal(pwrite(fd, &odd, sizeof(odd), 512 * 2), sizeof(odd));
    assert_int_equal(processor_map_open(fd, &map, NULL), 0);
    assert_int_equal(processor_block_copy(&map, 1, 128, &copy, &retries), -EAGAIN);
    assert_true(retries > 0);
    assert_int_equal(processor_block_copy(&map, 0, 128, &copy, &retries), 0);
    processor_map_close(&map);
    close(fd);
}

static void refused_maps(void **state)
{
    struct prcb_processor_head heads[8];
    struct prcb_error err;
    struct processor_map map;
    int fd;

    for (int i = 0; i < 8; i++)
        heads[i] = good_head();
    heads[0].magic = 1;
    heads[1].abi_major = PRCB_PROCESSOR_MAJOR + 1;
    heads[2].count = 0;
    heads[3].count = 0xffffffffu;
    heads[4].block_size = 64;
    heads[5].block_stride = 500;
    heads[6].block_stride = 0x80000000u;
    heads[7].block_size = 1024;
    for (int i = 0; i < 8; i++) {
        fd = map_of(&heads[i], 512, 3);
        assert_int_equal(processor_map_open(fd, &map, &err), -EPROTO);
        close(fd);
    }
    assert_int_equal(processor_map_open(-1, &map, &err), -EBADF);
}

/* The kernel's words of 32 bits wrap, at 1000 timer interrupts a second in 50 days. */
static void interrupts_wrap(void **state)
{
    static const struct {
        struct prcb_interrupts before, now;
        uint64_t grown;
    } rows[] = {
        {{5, 7, 0}, {5, 7, 0}, 0},
        {{5, 7, 0}, {6, 9, 0}, 3},
        {{5, 0xfffffffe, 0}, {5, 1, 0}, 3},
        {{0xffffffff, 0xffffffff, 0}, {0x100000001, 0, 0}, 3},
        {{0x123456789ab, 0x80000000, 0}, {0x123456789ab, 0x7fffffff, 0}, 0xffffffff},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(prcb_interrupts_grown(&rows[i].before, &rows[i].now), rows[i].grown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states),
        cmocka_unit_test(busy_is_shared_as_before),
        cmocka_unit_test(interrupted_update),
        cmocka_unit_test(offline),
        cmocka_unit_test(never_back),
        cmocka_unit_test(never_back_at_random),
        cmocka_unit_test(maps_of_other_ages),
        cmocka_unit_test(stuck_writer),
        cmocka_unit_test(refused_maps),
        cmocka_unit_test(interrupts_wrap),
    };

    return cmocka_run_group_tests_name("processor_map", tests, NULL, NULL);
}
