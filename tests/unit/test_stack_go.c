/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Tables of Go's functions, as each version of its linker wrote them and as nobody should; and
 * stacks that are unwound by them. tests/cli/test_why.py compares stacks of a real program with
 * what Go says itself.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "go_file.h"
#include "go_table.h"
#include "unwind.h"

#define COUNT  6
#define STACK  0x7ffc0000u
#define FRAMES 16

/* What waits, then who called it, then where it began. */
static const struct go_row rows[COUNT] = {
    {"runtime.futex", 0}, {"main.inner", 0x48},  {"main.(*T).middle", 8},
    {"main.outer", 4096}, {"runtime.goexit", 0}, {"runtime.systemstack", 16},
};

static uint64_t begin_of(size_t row)
{
    return GO_TEXT + row * GO_STEP;
}

static void open_table(int version, struct go_bytes *bytes, struct go_table *ret)
{
    go_write_table(bytes, version, rows, COUNT, GO_TEXT, version % 2 ? 1 : 4);
    assert_int_equal(go_table_open(bytes->bytes, bytes->size, ret), 0);
}

static void test_names_and_depths_of_all_versions(void **state)
{
    for (int version = 0; version < GO_VERSIONS; version++) {
        struct go_function function;
        struct go_bytes bytes;
        struct go_table table;
        uint64_t depth;

        open_table(version, &bytes, &table);
        for (size_t i = 0; i < COUNT; i++) {
            for (uint64_t at = begin_of(i); at < begin_of(i + 1); at++) {
                assert_true(go_table_find(&table, at, &function));
                assert_string_equal(function.name, rows[i].name);
                assert_int_equal(function.begin, begin_of(i));
                assert_int_equal(function.end, begin_of(i + 1));
                if (at - begin_of(i) < GO_HELD || rows[i].depth) {
                    assert_true(go_table_depth(&table, &function, at, &depth));
                    assert_int_equal(depth, at - begin_of(i) < GO_HELD ? 0 : rows[i].depth);
                } else {
                    assert_false(go_table_depth(&table, &function, at, &depth));
                }
            }
        }
        assert_false(go_table_find(&table, GO_TEXT - 1, &function));
        assert_false(go_table_find(&table, begin_of(COUNT), &function));
    }
}

/* Whatever is found lies within the table, in a copy that ends where the memory does. */
static void use(const unsigned char *bytes, size_t size)
{
    unsigned char *copy = malloc(size ? size : 1);
    struct go_function function;
    struct go_table table;
    uint64_t depth;

    assert_non_null(copy);
    memcpy(copy, bytes, size);
    if (!go_table_open(copy, size, &table)) {
        for (uint64_t at = GO_TEXT - 8; at < begin_of(COUNT) + 8; at += 8) {
            if (!go_table_find(&table, at, &function))
                continue;
            assert_in_range(at, function.begin, function.end - 1);
            assert_in_range(strlen(function.name), 0, size);
            if (go_table_depth(&table, &function, at, &depth))
                assert_int_equal(depth % 8, 0);
        }
    }
    free(copy);
}

static void test_cut_and_damaged_tables(void **state)
{
    static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
    struct go_bytes bytes;
    struct go_table table;

    for (int version = 0; version < GO_VERSIONS; version++) {
        open_table(version, &bytes, &table);
        for (size_t i = 0; i < bytes.size; i++) {
            unsigned char was = bytes.bytes[i];

            use(bytes.bytes, i);
            for (size_t k = 0; k < sizeof(values); k++) {
                bytes.bytes[i] = values[k];
                use(bytes.bytes, bytes.size);
            }
            bytes.bytes[i] = was;
        }
    }
}

static void test_no_tables(void **state)
{
    static const struct {
        size_t at;
        unsigned char value;
    } wrong[] = {{0, 0xf3}, {4, 1}, {5, 1}, {6, 3}, {7, 4}, {8, 0}};
    struct go_bytes bytes;
    struct go_table table;

    for (int version = 0; version < GO_VERSIONS; version++) {
        for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
            open_table(version, &bytes, &table);
            bytes.bytes[wrong[i].at] = wrong[i].value;
            assert_int_equal(go_table_open(bytes.bytes, bytes.size, &table), -EINVAL);
        }
        open_table(version, &bytes, &table);
        memset(bytes.bytes + 8, 0xff, 8); /* more functions than anything holds */
        assert_int_equal(go_table_open(bytes.bytes, bytes.size, &table), -EINVAL);
    }
}

static struct image *image_of(const struct go_bytes *program)
{
    int fd = memfd_create("go", MFD_CLOEXEC);
    struct image *image;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, program->bytes, program->size), program->size);
    assert_int_equal(image_open(NULL, &image), 0);
    assert_int_equal(image_add(image, &(struct image_file){0x400000, fd, "go"}), 0);
    assert_int_equal(image_ready(image), 0);
    return image;
}

/* A return address in the middle of a function, behind a call. */
static uint64_t back_into(size_t row)
{
    return begin_of(row) + GO_STEP / 2;
}

static void put_word(struct frozen *frozen, uint64_t address, uint64_t word)
{
    assert_in_range(address, STACK, STACK + frozen->room - sizeof(word));
    memcpy(frozen->bytes + (address - STACK), &word, sizeof(word));
}

/* The rows from the first on call each other, the last of which is the named one. */
static void make_stack(struct frozen *frozen, size_t last)
{
    uint64_t sp = STACK;

    memset(frozen->bytes, 0, frozen->room);
    frozen->at = (struct frozen_registers){.pc = begin_of(0), .sp = sp};
    for (size_t i = 1; i <= last; i++) {
#if defined(__x86_64__)
        sp += rows[i - 1].depth;
        put_word(frozen, sp, back_into(i));
        sp += 8;
#else
        if (i == 1)
            frozen->at.lr = back_into(i);
        else
            put_word(frozen, sp, back_into(i));
        sp += rows[i - 1].depth;
#endif
    }
}

static void assert_unwound(const struct go_bytes *program, const struct frozen *frozen,
                           size_t count, enum stack_end expected)
{
    struct image *image = image_of(program);
    uint64_t frames[FRAMES];
    enum stack_end end;
    char name[64];

    assert_int_equal(image_unwind(image, frozen, frames, FRAMES, &end), count);
    assert_int_equal(end, expected);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(frames[i], i ? back_into(i) - 1 : begin_of(0));
        image_name(image, frames[i], name, sizeof(name));
        assert_string_equal(name, rows[i].name);
    }
    image_close(image);
}

static void test_stacks(void **state)
{
    static unsigned char bytes[8192];
    struct frozen frozen = {
        .low = STACK, .bytes = bytes, .length = sizeof(bytes), .room = sizeof(bytes)};
    struct go_bytes table, program;

    for (int version = 0; version < GO_VERSIONS; version++) {
        go_write_table(&table, version, rows, COUNT, GO_TEXT, 1);
        for (int find = GO_BY_SECTION; find <= GO_BY_NOTE; find++) {
            go_write_program(&program, &table, COUNT, find, 0);
            make_stack(&frozen, 4);
            assert_unwound(&program, &frozen, 5, STACK_COMPLETE);
            frozen.length = 512; /* ends within main.outer's frame */
            assert_unwound(&program, &frozen, 4, STACK_SHORT);
            frozen.length = sizeof(bytes);
        }
        /* A return address that no call lies before, and one outside of Go's code. */
        make_stack(&frozen, 4);
#if defined(__x86_64__)
        put_word(&frozen, STACK + 8 + 0x48, back_into(2) + 3);
        assert_unwound(&program, &frozen, 2, STACK_BROKEN);
        put_word(&frozen, STACK + 8 + 0x48, STACK);
        assert_unwound(&program, &frozen, 2, STACK_BROKEN);
#endif
    }
    /* Where only a relocation says where the code begins, and nothing does. */
    for (int relocated = 0; relocated < 2; relocated++) {
        go_write_table(&table, GO_20, rows, COUNT, 0, 1);
        go_write_program(&program, &table, COUNT, GO_BY_SECTION, relocated);
        make_stack(&frozen, 4);
        if (relocated) {
            assert_unwound(&program, &frozen, 5, STACK_COMPLETE);
        } else {
            struct image *image = image_of(&program);
            char name[64];

            image_name(image, back_into(1), name, sizeof(name));
            assert_string_equal(name, "");
            image_close(image);
        }
    }
}

/* What called this is on another stack. */
static void test_another_stack(void **state)
{
    static const struct go_row switched[3] = {
        {"runtime.futex", 0}, {"main.inner", 0x48}, {"runtime.systemstack", 0}};
    static unsigned char bytes[8192];
    struct frozen frozen = {
        .low = STACK, .bytes = bytes, .length = sizeof(bytes), .room = sizeof(bytes)};
    struct go_bytes table, program;
    uint64_t frames[FRAMES];
    struct image *image;
    enum stack_end end;

    go_write_table(&table, GO_18, switched, 3, GO_TEXT, 1);
    go_write_program(&program, &table, 3, GO_BY_SECTION, 0);
    make_stack(&frozen, 2);
    image = image_of(&program);
    assert_int_equal(image_unwind(image, &frozen, frames, FRAMES, &end), 3);
    assert_int_equal(end, STACK_BROKEN);
    image_close(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_depths_of_all_versions),
        cmocka_unit_test(test_cut_and_damaged_tables),
        cmocka_unit_test(test_no_tables),
        cmocka_unit_test(test_stacks),
        cmocka_unit_test(test_another_stack),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
