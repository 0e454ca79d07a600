/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The system call tables (src/kernel/bpf/syscalls_*.def) against the system's own headers, by
 * name, and against each other: one call has one cause on every architecture.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <prcb/causes.h>

#include "syscalls.h"

struct row {
    int number;
    const char *name;
    int cause;
};

#define S(number, name, cause) {number, #name, PRCB_CAUSE_##cause},
static const struct row x86_64[] = {
#include "syscalls_x86_64.def"
};
static const struct row i386[] = {
#include "syscalls_i386.def"
};
static const struct row arm64[] = {
#include "syscalls_arm64.def"
};
#undef S

struct table {
    const char *name;
    const struct row *rows;
    size_t count;
    const char *headers[3]; /* the first that exists */
};

static const struct table tables[] = {
    {"x86_64",
     x86_64,
     sizeof(x86_64) / sizeof(x86_64[0]),
     {"/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"}},
    {"i386",
     i386,
     sizeof(i386) / sizeof(i386[0]),
     {"/usr/include/x86_64-linux-gnu/asm/unistd_32.h", "/usr/include/asm/unistd_32.h"}},
    {"arm64", arm64, sizeof(arm64) / sizeof(arm64[0]), {"/usr/include/asm-generic/unistd.h"}},
};
#define TABLES (sizeof(tables) / sizeof(tables[0]))

/* ---- the system's numbers ---- */

struct header {
    char names[1024][40];
    int numbers[1024];
    size_t count;
    int last;
};

static struct header headers[TABLES];

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), ends = strlen(end);

    return length > ends && !strcmp(text + length - ends, end);
}

/* "#define __NR_read 63" and the generic table's "#define __NR3264_fcntl 25", whose
 * fstatat is called newfstatat where words have 64 bits, and whose calls with 64-bit
 * times are those of 32-bit machines. */
static bool read_header(const struct table *table, struct header *ret)
{
    char line[256], name[40];
    FILE *in = NULL;
    int number;

    for (int i = 0; i < 3 && table->headers[i] && !in; i++)
        in = fopen(table->headers[i], "re");
    if (!in)
        return false;
    ret->count = 0;
    ret->last = 0;
    while (fgets(line, sizeof(line), in)) {
        if (sscanf(line, "#define __NR_%39s %d", name, &number) != 2 &&
            sscanf(line, "#define __NR3264_%39s %d", name, &number) != 2)
            continue;
        if (strstr(table->headers[0], "generic") && ends_with(name, "_time64"))
            continue;
        if (!strcmp(name, "syscalls") || ret->count == 1024)
            continue;
        if (!strcmp(name, "fstatat"))
            snprintf(name, sizeof(name), "newfstatat");
        memcpy(ret->names[ret->count], name, sizeof(name));
        ret->numbers[ret->count++] = number;
        if (number > ret->last && number < PRCB_SYSCALL_MAX)
            ret->last = number;
    }
    fclose(in);
    return ret->count > 0;
}

static int number_of(const struct header *header, const char *name)
{
    for (size_t i = 0; i < header->count; i++) {
        if (!strcmp(header->names[i], name))
            return header->numbers[i];
    }
    return -1;
}

static const struct row *row_of(const struct table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++) {
        if (!strcmp(table->rows[i].name, name))
            return &table->rows[i];
    }
    return NULL;
}

/* ---- tests ---- */

static void test_rows_are_in_order(void **state)
{
    for (size_t i = 0; i < TABLES; i++) {
        assert_true(tables[i].count > 50);
        for (size_t j = 0; j < tables[i].count; j++) {
            const struct row *row = &tables[i].rows[j];

            assert_in_range(row->number, 0, PRCB_SYSCALL_MAX - 1);
            if (j && row->number <= row[-1].number)
                fail_msg("%s: %s (%d) after %s (%d)", tables[i].name, row->name, row->number,
                         row[-1].name, row[-1].number);
            for (size_t k = 0; k < j; k++)
                assert_string_not_equal(tables[i].rows[k].name, row->name);
        }
    }
}

/* A name that the header lacks is allowed only beyond the last number it knows. */
static void test_numbers_are_the_systems(void **state)
{
    bool any = false;

    for (size_t i = 0; i < TABLES; i++) {
        if (!read_header(&tables[i], &headers[i])) {
            printf("    not compared: %s, the system has no header of it\n", tables[i].name);
            continue;
        }
        any = true;
        for (size_t j = 0; j < tables[i].count; j++) {
            const struct row *row = &tables[i].rows[j];
            int number = number_of(&headers[i], row->name);

            if (number == row->number)
                continue;
            if (number >= 0 || row->number <= headers[i].last)
                fail_msg("%s: %s is %d in the table and %d in the header", tables[i].name,
                         row->name, row->number, number);
            printf("    newer than the header: %s %s %d\n", tables[i].name, row->name, row->number);
        }
    }
    if (!any)
        skip();
}

/* Names under which one architecture has another's call. */
static const char *base_name(const char *name, char *room, size_t size)
{
    static const char *const ends[] = {"_time64", "_time32"};

    snprintf(room, size, "%.*s", (int)size - 1, name);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (ends_with(room, ends[i]))
            room[strlen(room) - strlen(ends[i])] = '\0';
    }
    return room;
}

/* Whatever call one table has, the others have too if the system does there, with the
 * same cause. */
static void test_tables_agree(void **state)
{
    unsigned wrong = 0;
    char name[48];

    for (size_t from = 0; from < TABLES; from++) {
        for (size_t to = 0; to < TABLES; to++) {
            for (size_t j = 0; j < headers[to].count; j++) {
                const struct row *row =
                    row_of(&tables[from], base_name(headers[to].names[j], name, sizeof(name)));
                const struct row *there = row_of(&tables[to], headers[to].names[j]);

                if (!row || headers[to].numbers[j] >= PRCB_SYSCALL_MAX ||
                    (there && there->cause == row->cause))
                    continue;
                printf("    %s %s: %s in %s, %s in %s\n", tables[to].name, headers[to].names[j],
                       there ? "another cause" : "no row", tables[to].name, row->name,
                       tables[from].name);
                wrong++;
            }
        }
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_in_order),
        cmocka_unit_test(test_numbers_are_the_systems),
        cmocka_unit_test(test_tables_agree),
    };

    return cmocka_run_group_tests_name("system call tables", tests, NULL, NULL);
}
