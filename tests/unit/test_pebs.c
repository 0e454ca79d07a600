/* SPDX-License-Identifier: BSD-2-Clause
 *
 * PEBS and BTS records against bytes that were written by hand from Intel's layouts: each
 * word has a value of its own, which says where it was found.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <prcb/pebs.h>

/* Eight bytes, lowest first, and the number they are. */
#define W(n)     (n), 0x01, 0, 0, 0, 0, 0, 0xf0
#define VALUE(n) (UINT64_C(0xf000000000000100) + (n))

/* clang-format off */
#define REGISTERS_0_TO_3                                                                           \
    /* flags, ip */ W(0x00), W(0x08),                                                              \
    /* ax bx cx dx si di bp sp */ W(0x10), W(0x18), W(0x20), W(0x28), W(0x30), W(0x38), W(0x40), W(0x48), \
    /* r8 to r15 */ W(0x50), W(0x58), W(0x60), W(0x68), W(0x70), W(0x78), W(0x80), W(0x88)
#define FORMAT_1 REGISTERS_0_TO_3, /* status, address, source, latency */ W(0x90), W(0x98), W(0xa0), W(0xa8)
#define FORMAT_2 FORMAT_1, /* eventing ip, TSX */ W(0xb0), W(0xb8)
#define FORMAT_3 FORMAT_2, /* TSC */ W(0xc0)

static const uint8_t format_0[] = {REGISTERS_0_TO_3};
static const uint8_t format_1[] = {FORMAT_1};
static const uint8_t format_2[] = {FORMAT_2};
static const uint8_t format_3[] = {FORMAT_3};

/* eventing ip, counters, TSC */
#define BASIC   W(0x08), W(0x10), W(0x18)
/* address, auxiliary, latency, TSX */
#define MEMORY  W(0x20), W(0x21), W(0x22), W(0x23)
/* flags, ip, ax cx dx bx sp bp si di, r8 to r15 */
#define GPR     W(0x30), W(0x31), W(0x32), W(0x33), W(0x34), W(0x35), W(0x36), W(0x37), W(0x38), W(0x39), \
                W(0x3a), W(0x3b), W(0x3c), W(0x3d), W(0x3e), W(0x3f), W(0x40), W(0x41)
#define XMM     W(0x50), W(0x51), W(0x52), W(0x53), W(0x54), W(0x55), W(0x56), W(0x57), \
                W(0x58), W(0x59), W(0x5a), W(0x5b), W(0x5c), W(0x5d), W(0x5e), W(0x5f), \
                W(0x60), W(0x61), W(0x62), W(0x63), W(0x64), W(0x65), W(0x66), W(0x67), \
                W(0x68), W(0x69), W(0x6a), W(0x6b), W(0x6c), W(0x6d), W(0x6e), W(0x6f)
/* two entries: from, to, info */
#define LBR     W(0x80), W(0x81), W(0x82), W(0x83), W(0x84), W(0x85)

/* groups, LBR entries less one, retire latency, length: four bytes and two halves */
static const uint8_t basic[] = {0x00, 0, 0, 0,  0x34, 0x12,  0x20, 0x00,  BASIC};
static const uint8_t memory[] = {0x01, 0, 0, 0,  0, 0,  0x40, 0x00,  BASIC, MEMORY};
static const uint8_t gpr[] = {0x02, 0, 0, 0,  0, 0,  0xb0, 0x00,  BASIC, GPR};
static const uint8_t xmm[] = {0x04, 0, 0, 0,  0, 0,  0x20, 0x01,  BASIC, XMM};
static const uint8_t lbr[] = {0x08, 0, 0, 1,  0, 0,  0x50, 0x00,  BASIC, LBR};
static const uint8_t all[] = {0x0f, 0, 0, 1,  0xff, 0xff,  0x00, 0x02,  BASIC, MEMORY, GPR, XMM, LBR};
/* general counters 0 and 3, fixed 1, no metrics */
static const uint8_t counters[] = {0x10, 0, 0, 0,  0, 0,  0x48, 0x00,  BASIC,
    0x09, 0, 0, 0,  0x02, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,  W(0x90), W(0x93), W(0xa1)};
/* the same with metrics, behind registers */
static const uint8_t metrics[] = {0x32, 0, 0, 0,  0, 0,  0xe8, 0x00,  BASIC, GPR,
    0x09, 0, 0, 0,  0x02, 0, 0, 0,  0x03, 0, 0, 0,  0, 0, 0, 0,  W(0x90), W(0x93), W(0xa1),
    W(0xb0), W(0xb1)};
/* clang-format on */

static const struct row {
    const char *name;
    uint32_t format;
    const uint8_t *bytes;
    size_t length;
    uint32_t has;
} rows[] = {
#define ROW(format, bytes, has)                                                                    \
    {                                                                                              \
#bytes, format, bytes, sizeof(bytes), has                                                  \
    }
#define BASIC_HAS                                                                                  \
    (PRCB_PEBS_HAS_EVENTING | PRCB_PEBS_HAS_STATUS | PRCB_PEBS_HAS_TSC | PRCB_PEBS_HAS_RETIRE)
    ROW(0, format_0, 0x01),
    ROW(1, format_1, 0x07),
    ROW(2, format_2, 0x1f),
    ROW(3, format_3, 0x3f),
    ROW(4, basic, BASIC_HAS),
    ROW(5, basic, BASIC_HAS),
    ROW(6, basic, BASIC_HAS),
    ROW(4, memory, BASIC_HAS | PRCB_PEBS_HAS_MEMORY | PRCB_PEBS_HAS_TSX),
    ROW(4, gpr, BASIC_HAS | PRCB_PEBS_HAS_REGISTERS),
    ROW(4, xmm, BASIC_HAS | PRCB_PEBS_HAS_XMM),
    ROW(4, lbr, BASIC_HAS | PRCB_PEBS_HAS_LBR),
    ROW(4, all, 0x1ff),
    ROW(5, all, 0x1ff),
    ROW(6, all, 0x1ff),
    ROW(6, counters, BASIC_HAS | PRCB_PEBS_HAS_COUNTERS),
    ROW(6, metrics,
        BASIC_HAS | PRCB_PEBS_HAS_REGISTERS | PRCB_PEBS_HAS_COUNTERS | PRCB_PEBS_HAS_METRICS),
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* In a block of its own size, so that a sanitizer sees a read beyond it. */
static int decode(uint32_t format, const uint8_t *bytes, size_t length,
                  struct prcb_pebs_record *ret, struct prcb_error *err)
{
    uint8_t *copy = malloc(length ? length : 1);
    int result;

    memcpy(copy, bytes, length);
    memset(ret, 0xa5, sizeof(*ret));
    ret->size = sizeof(*ret);
    result = prcb_pebs_decode(format, copy, length, ret, err);
    free(copy);
    return result;
}

static void test_sizes(void **state)
{
    static const size_t sizes[] = {0x90, 0xb0, 0xc0, 0xc8, 0, 0, 0, 0};

    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(prcb_pebs_record_size(i), sizes[i]);
    assert_int_equal(sizeof(format_0), 0x90);
    assert_int_equal(sizeof(format_3), 0xc8);
    assert_int_equal(sizeof(all), 0x200);
}

static void test_fixed_members(void **state)
{
    struct prcb_pebs_record record;

    assert_int_equal(decode(3, format_3, sizeof(format_3), &record, NULL), 0);
    assert_int_equal(record.flags, VALUE(0x00));
    assert_int_equal(record.ip, VALUE(0x08));
    assert_int_equal(record.registers[PRCB_PEBS_AX], VALUE(0x10));
    assert_int_equal(record.registers[PRCB_PEBS_BX], VALUE(0x18));
    assert_int_equal(record.registers[PRCB_PEBS_CX], VALUE(0x20));
    assert_int_equal(record.registers[PRCB_PEBS_SP], VALUE(0x48));
    assert_int_equal(record.registers[PRCB_PEBS_R8], VALUE(0x50));
    assert_int_equal(record.registers[15], VALUE(0x88));
    assert_int_equal(record.status, VALUE(0x90));
    assert_int_equal(record.data_address, VALUE(0x98));
    assert_int_equal(record.data_source, VALUE(0xa0));
    assert_int_equal(record.latency, VALUE(0xa8));
    assert_int_equal(record.eventing_ip, VALUE(0xb0));
    assert_int_equal(record.tsx, VALUE(0xb8));
    assert_int_equal(record.tsc, VALUE(0xc0));
    assert_int_equal(decode(0, format_0, sizeof(format_0), &record, NULL), 0);
    assert_int_equal(record.tsc, 0);
}

static void test_adaptive_members(void **state)
{
    struct prcb_pebs_record record;

    assert_int_equal(decode(5, all, sizeof(all), &record, NULL), 0);
    assert_int_equal(record.groups, 0x0100000f);
    assert_int_equal(record.length, 0x200);
    assert_int_equal(record.retire_latency, 0xffff);
    assert_int_equal(record.eventing_ip, VALUE(0x08));
    assert_int_equal(record.status, VALUE(0x10));
    assert_int_equal(record.tsc, VALUE(0x18));
    assert_int_equal(record.data_address, VALUE(0x20));
    assert_int_equal(record.tsx, VALUE(0x23));
    assert_int_equal(record.flags, VALUE(0x30));
    assert_int_equal(record.ip, VALUE(0x31));
    assert_int_equal(record.registers[PRCB_PEBS_AX], VALUE(0x32));
    assert_int_equal(record.registers[PRCB_PEBS_CX], VALUE(0x33));
    assert_int_equal(record.registers[PRCB_PEBS_DX], VALUE(0x34));
    assert_int_equal(record.registers[PRCB_PEBS_BX], VALUE(0x35));
    assert_int_equal(record.registers[PRCB_PEBS_SP], VALUE(0x36));
    assert_int_equal(record.registers[PRCB_PEBS_BP], VALUE(0x37));
    assert_int_equal(record.registers[PRCB_PEBS_SI], VALUE(0x38));
    assert_int_equal(record.registers[PRCB_PEBS_DI], VALUE(0x39));
    assert_int_equal(record.registers[15], VALUE(0x41));
    assert_int_equal(record.xmm[0][0], 0x50);
    assert_int_equal(record.xmm[15][8], 0x6f);
    assert_int_equal(record.lbr[0].from, VALUE(0x80));
    assert_int_equal(record.lbr[0].info, VALUE(0x82));
    assert_int_equal(record.lbr[1].to, VALUE(0x84));
    assert_int_equal(record.lbr[2].from, 0);
}

static void test_counters(void **state)
{
    struct prcb_pebs_record record;

    assert_int_equal(decode(6, metrics, sizeof(metrics), &record, NULL), 0);
    assert_int_equal(record.counter_mask, 9);
    assert_int_equal(record.fixed_mask, 2);
    assert_int_equal(record.counters[0], VALUE(0x90));
    assert_int_equal(record.counters[1], 0);
    assert_int_equal(record.counters[3], VALUE(0x93));
    assert_int_equal(record.fixed[1], VALUE(0xa1));
    assert_int_equal(record.metrics_base, VALUE(0xb0));
    assert_int_equal(record.metrics_data, VALUE(0xb1));
}

static void test_there_and_back(void **state)
{
    for (size_t i = 0; i < ROWS; i++) {
        struct prcb_pebs_record record;
        uint8_t bytes[1024];
        size_t length = 0;

        print_message("%s as format %u\n", rows[i].name, rows[i].format);
        assert_int_equal(decode(rows[i].format, rows[i].bytes, rows[i].length, &record, NULL), 0);
        assert_int_equal(record.has, rows[i].has);
        assert_int_equal(record.length, rows[i].length);
        assert_int_equal(prcb_pebs_encode(&record, bytes, sizeof(bytes), &length, NULL), 0);
        assert_int_equal(length, rows[i].length);
        assert_memory_equal(bytes, rows[i].bytes, length);
    }
}

static void test_every_length(void **state)
{
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t length = 0; length < rows[i].length; length++) {
            struct prcb_pebs_record record;
            struct prcb_error err = {0};
            uint8_t bytes[1024], before = 0x5a;
            size_t needed = 0;

            assert_int_equal(decode(rows[i].format, rows[i].bytes, length, &record, &err),
                             -ENODATA);
            assert_int_equal(err.code, -ENODATA);
            assert_int_equal(record.length, 0xa5a5a5a5); /* unchanged */
            assert_int_equal(decode(rows[i].format, rows[i].bytes, rows[i].length, &record, NULL),
                             0);
            memset(bytes, before, sizeof(bytes));
            assert_int_equal(prcb_pebs_encode(&record, bytes, length, &needed, &err), -ENOSPC);
            assert_int_equal(needed, rows[i].length);
            assert_int_equal(bytes[0], before);
        }
    }
}

static void test_refused(void **state)
{
    struct prcb_pebs_record record;
    struct prcb_error err;
    uint8_t bytes[sizeof(all)];
    size_t length;

    assert_int_equal(decode(7, all, sizeof(all), &record, &err), -EINVAL);
    /* Groups of another format. */
    assert_int_equal(decode(4, counters, sizeof(counters), &record, &err), -EINVAL);
    assert_int_equal(decode(5, metrics, sizeof(metrics), &record, &err), -EINVAL);
    memcpy(bytes, all, sizeof(all));
    bytes[1] = 1;
    assert_int_equal(decode(6, bytes, sizeof(bytes), &record, &err), -EINVAL);
    /* A length that is not the groups': shorter, longer, none. */
    memcpy(bytes, all, sizeof(all));
    bytes[6] = 0xf8, bytes[7] = 0x01;
    assert_int_equal(decode(4, bytes, sizeof(bytes), &record, &err), -EINVAL);
    bytes[6] = 0, bytes[7] = 0;
    assert_int_equal(decode(4, bytes, sizeof(bytes), &record, &err), -EINVAL);
    bytes[6] = 0x20, bytes[0] = 0, bytes[7] = 1;
    assert_int_equal(decode(4, bytes, sizeof(bytes), &record, &err), -EINVAL);
    /* More branches than there are bytes. */
    memcpy(bytes, lbr, sizeof(lbr));
    bytes[3] = 255;
    assert_int_equal(decode(4, bytes, sizeof(lbr), &record, &err), -EINVAL);
    /* Counters that say there are more of them. */
    memcpy(bytes, counters, sizeof(counters));
    bytes[0x20] = 0xff;
    assert_int_equal(decode(6, bytes, sizeof(counters), &record, &err), -EINVAL);

    memset(&record, 0, sizeof(record));
    assert_int_equal(prcb_pebs_encode(&record, bytes, sizeof(bytes), &length, &err), -EINVAL);
    record.size = sizeof(record);
    record.format = 7;
    assert_int_equal(prcb_pebs_encode(&record, bytes, sizeof(bytes), &length, &err), -EINVAL);
    record.format = 5;
    record.groups = PRCB_PEBS_GROUP_COUNTERS;
    assert_int_equal(prcb_pebs_encode(&record, bytes, sizeof(bytes), &length, &err), -EINVAL);
    record.size = 0;
    assert_int_equal(prcb_pebs_decode(0, format_0, sizeof(format_0), &record, &err), -EINVAL);
}

/* A program that was built with a shorter structure. */
static void test_shorter_structure(void **state)
{
    struct prcb_pebs_record record;

    memset(&record, 0xa5, sizeof(record));
    record.size = offsetof(struct prcb_pebs_record, xmm);
    assert_int_equal(prcb_pebs_decode(4, all, sizeof(all), &record, NULL), 0);
    assert_int_equal(record.eventing_ip, VALUE(0x08));
    assert_int_equal(record.xmm[0][0], 0xa5);
}

/* One that knows members that the library does not. */
static void test_longer_structure(void **state)
{
    struct {
        struct prcb_pebs_record known;
        uint64_t later;
    } longer;
    uint8_t bytes[sizeof(all)];
    size_t length = 0;

    memset(&longer, 0xa5, sizeof(longer));
    longer.known.size = sizeof(longer);
    assert_int_equal(prcb_pebs_decode(4, all, sizeof(all), &longer.known, NULL), 0);
    assert_int_equal(longer.known.size, sizeof(longer));
    assert_int_equal(longer.later, 0);
    assert_int_equal(prcb_pebs_encode(&longer.known, bytes, sizeof(bytes), &length, NULL), 0);
    assert_int_equal(length, sizeof(all));
    assert_memory_equal(bytes, all, sizeof(all));
}

static int collect(const struct prcb_pebs_record *record, void *ctx)
{
    size_t *seen = ctx;

    seen[0]++;
    seen[1] += record->length;
    return seen[0] == seen[2] ? 42 : 0;
}

static void test_walk(void **state)
{
    uint8_t buffer[sizeof(basic) + sizeof(all) + sizeof(memory)];
    size_t seen[3] = {0};
    struct prcb_error err = {0};

    memcpy(buffer, basic, sizeof(basic));
    memcpy(buffer + sizeof(basic), all, sizeof(all));
    memcpy(buffer + sizeof(basic) + sizeof(all), memory, sizeof(memory));
    assert_int_equal(prcb_pebs_walk(4, buffer, sizeof(buffer), collect, seen, &err), 0);
    assert_int_equal(seen[0], 3);
    assert_int_equal(seen[1], sizeof(buffer));
    memset(seen, 0, sizeof(seen));
    assert_int_equal(prcb_pebs_walk(4, buffer, sizeof(buffer) - 1, collect, seen, &err), -ENODATA);
    assert_int_equal(seen[0], 2);
    assert_int_equal(err.offset, sizeof(basic) + sizeof(all));
    memset(seen, 0, sizeof(seen));
    seen[2] = 2;
    assert_int_equal(prcb_pebs_walk(4, buffer, sizeof(buffer), collect, seen, &err), 42);
    memset(seen, 0, sizeof(seen));
    assert_int_equal(prcb_pebs_walk(4, buffer, 0, collect, seen, &err), 0);
    assert_int_equal(prcb_pebs_walk(9, buffer, 0, collect, seen, &err), -EINVAL);
}

static void test_bts(void **state)
{
    static const uint8_t bytes[PRCB_BTS_RECORD_SIZE] = {W(0x00), W(0x08), W(0x10)};
    struct prcb_bts_record record;
    uint8_t back[PRCB_BTS_RECORD_SIZE];

    prcb_bts_decode(bytes, &record);
    assert_int_equal(record.from, VALUE(0x00));
    assert_int_equal(record.to, VALUE(0x08));
    assert_int_equal(record.flags, VALUE(0x10));
    prcb_bts_encode(&record, back);
    assert_memory_equal(back, bytes, sizeof(bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_fixed_members),
        cmocka_unit_test(test_adaptive_members),
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_shorter_structure),
        cmocka_unit_test(test_longer_structure),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_bts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
