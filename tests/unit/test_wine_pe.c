/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Export tables with forwarders: made of a module that is put together here, byte for byte, and
 * read back by a reader of its own, which looks names up by halving as loaders do. Then the same
 * with every byte of the module's headers and tables damaged.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pe.h"

#define HEADER   0x80u            /* of "PE\0\0" */
#define OPTIONAL (HEADER + 24)    /* of the optional header */
#define SECTIONS (OPTIONAL + 240) /* of the section headers */
#define RAW      0x400u           /* where the one section lies in the file */
#define RVA      0x1000u          /* and in memory */
#define RAW_SIZE 0x400u
#define SIZE     (RAW + RAW_SIZE)

static uint8_t module[SIZE];

static void put(uint32_t at, uint32_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        module[at + i] = (uint8_t)(value >> 8 * i);
}

static uint32_t get(const uint8_t *from, uint32_t at, unsigned bytes)
{
    uint32_t value = 0;

    for (unsigned i = 0; i < bytes; i++)
        value |= (uint32_t)from[at + i] << 8 * i;
    return value;
}

static void text(uint32_t at, const char *words)
{
    memcpy(module + at, words, strlen(words) + 1);
}

/* Three functions, one of them a forwarder; four names, two of them of one function; and a gap. */
static int make_module(void **state)
{
    static const uint32_t functions[] = {0x1200, 0x1210, RVA + 0x160, 0};
    static const char *const names[] = {"Alpha", "NtQuery", "Other", "ZwQuery"};
    static const uint16_t indexes[] = {0, 1, 2, 1};

    memset(module, 0, sizeof(module));
    memcpy(module, "MZ", 2);
    put(60, HEADER, 4);
    memcpy(module + HEADER, "PE\0\0", 4);
    put(HEADER + 4, PE_MACHINE_AMD64, 2);
    put(HEADER + 6, 1, 2);
    put(HEADER + 20, 240, 2);
    put(OPTIONAL, 0x20b, 2);
    put(OPTIONAL + 32, 0x1000, 4);
    put(OPTIONAL + 36, 0x200, 4);
    put(OPTIONAL + 56, 0x2000, 4);
    put(OPTIONAL + 60, 0x400, 4);
    put(OPTIONAL + 64, 0x1234, 4);
    put(OPTIONAL + 108, 16, 4);
    put(OPTIONAL + 112, RVA, 4);
    put(OPTIONAL + 116, 0x1c0, 4);
    memcpy(module + SECTIONS, ".edata", 6);
    put(SECTIONS + 8, RAW_SIZE, 4);
    put(SECTIONS + 12, RVA, 4);
    put(SECTIONS + 16, RAW_SIZE, 4);
    put(SECTIONS + 20, RAW, 4);
    put(RAW + 12, RVA + 0x150, 4);
    put(RAW + 16, 5, 4); /* first ordinal */
    put(RAW + 20, 4, 4);
    put(RAW + 24, 4, 4);
    put(RAW + 28, RVA + 0x40, 4);
    put(RAW + 32, RVA + 0x60, 4);
    put(RAW + 36, RVA + 0x80, 4);
    for (uint32_t i = 0; i < 4; i++) {
        put(RAW + 0x40 + i * 4, functions[i], 4);
        put(RAW + 0x60 + i * 4, RVA + 0xa0 + i * 0x10, 4);
        put(RAW + 0x80 + i * 2, indexes[i], 2);
        text(RAW + 0xa0 + i * 0x10, names[i]);
    }
    text(RAW + 0x150, "test.dll");
    text(RAW + 0x160, "base.Other");
    return 0;
}

static const struct pe_forward rows[] = {
    {"NtQuery", "ours.Query", "kept_NtQuery"},
    {"ZwQuery", "ours.Query", NULL},
    {"Enable", "ours.Enable", NULL},
    {"Missing", "ours.Missing", "kept_Missing"},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* What the table of a module has under a name: an address, or the text of a forwarder. */
struct found {
    uint32_t rva;
    const char *forward;
};

static const uint8_t *at_rva(const uint8_t *from, uint32_t rva)
{
    for (uint32_t i = 0; i < get(from, HEADER + 6, 2); i++) {
        uint32_t header = SECTIONS + i * 40, start = get(from, header + 12, 4);

        if (rva >= start && rva - start < get(from, header + 16, 4))
            return from + get(from, header + 20, 4) + (rva - start);
    }
    fail_msg("0x%x lies in no section", rva);
    return NULL;
}

static int look_up(const uint8_t *from, const char *name, struct found *ret)
{
    uint32_t start = get(from, OPTIONAL + 112, 4), size = get(from, OPTIONAL + 116, 4);
    const uint8_t *directory = at_rva(from, start);
    const uint8_t *functions = at_rva(from, get(directory, 28, 4)),
                  *names = at_rva(from, get(directory, 32, 4)),
                  *indexes = at_rva(from, get(directory, 36, 4));
    uint32_t low = 0, high = get(directory, 24, 4);

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        int order = strcmp(name, (const char *)at_rva(from, get(names, middle * 4, 4)));

        if (!order) {
            ret->rva = get(functions, get(indexes, middle * 2, 2) * 4, 4);
            ret->forward = ret->rva - start < size ? (const char *)at_rva(from, ret->rva) : NULL;
            return 1;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return 0;
}

static void assert_forward(const uint8_t *from, const char *name, const char *forward)
{
    struct found found;

    assert_true(look_up(from, name, &found));
    assert_non_null(found.forward);
    assert_string_equal(found.forward, forward);
}

static void assert_address(const uint8_t *from, const char *name, uint32_t rva)
{
    struct found found;

    assert_true(look_up(from, name, &found));
    assert_null(found.forward);
    assert_int_equal(found.rva, rva);
}

static void test_forwards(void **state)
{
    struct prcb_error err = {0};
    struct found found;
    size_t size = 0;
    void *made = NULL;

    assert_int_equal(pe_add_forwards(module, SIZE, rows, ROWS, &made, &size, &err), 0);
    assert_true(size > SIZE);
    assert_int_equal(get(made, HEADER + 6, 2), 2);
    assert_int_equal(get(made, OPTIONAL + 56, 4), 0x3000);
    assert_int_equal(get(made, OPTIONAL + 64, 4), 0); /* no checksum rather than a wrong one */
    assert_int_equal(size, get(made, SECTIONS + 40 + 20, 4) + get(made, SECTIONS + 40 + 16, 4));
    assert_address(made, "Alpha", 0x1200);
    assert_forward(made, "Other", "base.Other");
    assert_forward(made, "NtQuery", "ours.Query");
    assert_forward(made, "ZwQuery", "ours.Query");
    assert_forward(made, "Enable", "ours.Enable");
    assert_forward(made, "Missing", "ours.Missing");
    assert_address(made, "kept_NtQuery", 0x1210);
    assert_false(look_up(made, "kept_Missing", &found));
    assert_false(look_up(made, "kept_ZwQuery", &found));
    /* What the file had is there still. */
    assert_memory_equal((uint8_t *)made + RAW, module + RAW, RAW_SIZE);
    assert_int_equal(pe_add_forwards(made, size, rows, ROWS, &made, &size, &err), -EBADMSG);
    free(made);
}

static int attempt(size_t size)
{
    struct prcb_error err = {0};
    uint8_t *copy = malloc(size ? size : 1); /* so that a sanitizer sees what lies beyond */
    size_t made_size = 0;
    void *made = NULL;
    int result;

    memcpy(copy, module, size);
    result = pe_add_forwards(copy, size, rows, ROWS, &made, &made_size, &err);
    if (result)
        assert_true(err.text[0] && !made);
    free(made);
    free(copy);
    return result;
}

static void test_other_modules(void **state)
{
    put(HEADER + 4, PE_MACHINE_I386, 2);
    assert_int_equal(attempt(SIZE), -EBADMSG);
    assert_int_equal(pe_machine(module, SIZE), PE_MACHINE_I386);
    assert_int_equal(pe_machine("MZ", 2), 0);
    make_module(NULL);
    put(OPTIONAL, 0x10b, 2);
    assert_int_equal(attempt(SIZE), -EBADMSG);
    make_module(NULL);
    put(SECTIONS + 20, SECTIONS + 41, 4);
    assert_int_equal(attempt(SIZE), -ENOSPC);
    make_module(NULL);
    put(RAW + 20, 0xffff, 4);
    assert_int_equal(attempt(SIZE), -ENOSPC);
    make_module(NULL);
    put(RAW + 20, 0xf000, 4);
    assert_int_equal(attempt(SIZE), -EBADMSG);
}

/* Cut off anywhere; every byte of headers and tables made anything: an error or a module, never a
 * read outside. */
static void test_damage(void **state)
{
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};

    for (size_t size = 0; size < SIZE; size++)
        assert_int_not_equal(attempt(size), 0);
    for (size_t at = 0; at < RAW + 0x170; at++) {
        uint8_t before = module[at];

        for (size_t i = 0; i < sizeof(values); i++) {
            module[at] = values[i];
            attempt(SIZE);
        }
        module[at] = before;
    }
    assert_int_equal(attempt(SIZE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_forwards, make_module),
        cmocka_unit_test_setup(test_other_modules, make_module),
        cmocka_unit_test_setup(test_damage, make_module),
    };

    return cmocka_run_group_tests_name("wine pe", tests, NULL, NULL);
}
