/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Writes tables of Go's functions (.gopclntab) as its linkers did since 1.2, 1.16, 1.18 and 1.20,
 * and programs with one, from Go's own description of the format (runtime/symtab.go), for tests.
 */
#ifndef PRCB_TEST_GO_FILE_H
#define PRCB_TEST_GO_FILE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define GO_TEXT 0x401000u /* where functions begin, */
#define GO_STEP 64u       /* and how far from each other */
#define GO_HELD 16u       /* bytes of a function before its frame is made */

static const uint32_t go_magics[] = {0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1};
enum { GO_2, GO_16, GO_18, GO_20, GO_VERSIONS };

struct go_row {
    const char *name;
    uint32_t depth; /* of its frame, once it is made */
};

struct go_bytes {
    unsigned char bytes[16384];
    size_t size;
};

static void go_put(struct go_bytes *to, size_t at, uint64_t value, size_t length)
{
    memcpy(to->bytes + at, &value, length);
    if (to->size < at + length)
        to->size = at + length;
}

/* Seven bits a byte. */
static void go_put_small(struct go_bytes *to, uint32_t value)
{
    for (; value >= 0x80; value >>= 7)
        go_put(to, to->size, (value & 0x7f) | 0x80, 1);
    go_put(to, to->size, value, 1);
}

/* From -1 to nothing for GO_HELD bytes, then to the frame's depth. */
static void go_put_depths(struct go_bytes *to, uint32_t depth, unsigned quantum)
{
    go_put_small(to, 1 << 1);
    go_put_small(to, GO_HELD / quantum);
    if (depth)
        go_put_small(to, depth << 1);
    if (depth)
        go_put_small(to, (GO_STEP - GO_HELD) / quantum);
    go_put_small(to, 0);
}

/* text: what the head says; 0: nothing, as of a program that may lie anywhere. */
static void go_write_table(struct go_bytes *to, int version, const struct go_row *rows,
                           size_t count, uint64_t text, unsigned quantum)
{
    size_t names[64], depths[64], words = version == GO_2 ? 1 : version == GO_16 ? 7 : 8;
    size_t row = version < GO_18 ? 8 : 4, name_part = 0, depth_part = 0, part = 0, table;

    *to = (struct go_bytes){0};
    go_put(to, 0, go_magics[version], 4);
    go_put(to, 6, quantum, 1);
    go_put(to, 7, 8, 1);
    go_put(to, 8, count, 8);
    to->size = 8 + words * 8;
    table = to->size;
    if (version == GO_2)
        to->size += (2 * count + 1) * row;
    else
        name_part = to->size;
    for (size_t i = 0; i < count; i++) {
        names[i] = to->size - name_part;
        memcpy(to->bytes + to->size, rows[i].name, strlen(rows[i].name) + 1);
        to->size += strlen(rows[i].name) + 1;
    }
    if (version != GO_2)
        depth_part = to->size;
    go_put_small(to, 0); /* offset 0: no list */
    for (size_t i = 0; i < count; i++) {
        depths[i] = to->size - depth_part;
        go_put_depths(to, rows[i].depth, quantum);
    }
    to->size = (to->size + 7) & ~(size_t)7;
    if (version != GO_2) {
        part = table = to->size;
        to->size += (2 * count + 1) * row;
        if (version >= GO_18)
            go_put(to, 8 + 2 * 8, text, 8);
        go_put(to, 8 + (version == GO_16 ? 2 : 3) * 8, name_part, 8);
        go_put(to, 8 + (version == GO_16 ? 5 : 6) * 8, depth_part, 8);
        go_put(to, 8 + (version == GO_16 ? 6 : 7) * 8, part, 8);
    }
    for (size_t i = 0; i <= count; i++) {
        size_t at = table + 2 * i * row;

        go_put(to, at, (version < GO_18 ? GO_TEXT : 0) + i * GO_STEP, row);
        if (i == count)
            break;
        go_put(to, at + row, to->size - part, row);
        go_put(to, to->size, (version < GO_18 ? GO_TEXT : 0) + i * GO_STEP, row);
        go_put(to, to->size, names[i], 4);
        go_put(to, to->size, 0, 8); /* arguments, deferred returns */
        go_put(to, to->size, depths[i], 4);
        to->size += 24;
    }
}

enum go_find { GO_BY_SECTION, GO_BY_NOTE, GO_NOWHERE };

/* A program of that table: code at GO_TEXT in which each 16th address follows a call. relocated: a
 * relocation, not the head of the table, says where the code is. */
static void go_write_program(struct go_bytes *to, const struct go_bytes *table, size_t count,
                             enum go_find find, int relocated)
{
    enum { CODE = 0x1000, TABLE = 0x2000, TABLE_AT = 0x402000 };
    static const char strings[] = "\0.text\0.gopclntab\0.rela\0.strings";
    const struct {
        Elf64_Nhdr head;
        char name[4], about[4];
    } note = {{4, 4, 4}, "Go\0", "id"};
    const Elf64_Rela row = {TABLE_AT + 8 + 2 * 8, 8, GO_TEXT};
    Elf64_Ehdr head = {
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_EXEC,
#if defined(__x86_64__)
        .e_machine = EM_X86_64,
#else
        .e_machine = EM_AARCH64,
#endif
        .e_version = EV_CURRENT,
        .e_phoff = sizeof(head),
        .e_ehsize = sizeof(head),
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = 4,
        .e_shentsize = sizeof(Elf64_Shdr),
    };
    Elf64_Phdr parts[4] = {
        {PT_LOAD, PF_R, 0, 0x400000, 0x400000, CODE, CODE, 0x1000},
        {PT_LOAD, PF_R | PF_X, CODE, GO_TEXT, GO_TEXT, count * GO_STEP, count * GO_STEP, 0x1000},
        {PT_LOAD, PF_R, TABLE, TABLE_AT, TABLE_AT, table->size, table->size, 0x1000},
        {find == GO_BY_NOTE ? PT_NOTE : PT_NULL, PF_R, 0x800, 0x400800, 0x400800, sizeof(note),
         sizeof(note), 4},
    };
    Elf64_Shdr sections[5] = {
        {0},
        {1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, GO_TEXT, CODE, count * GO_STEP, 0, 0, 16, 0},
        {find == GO_BY_SECTION ? 7 : 1, SHT_PROGBITS, SHF_ALLOC, TABLE_AT, TABLE, table->size, 0, 0,
         32, 0},
        {18, SHT_RELA, SHF_ALLOC, 0x400900, 0x900, sizeof(row), 0, 0, 8, sizeof(row)},
        {24, SHT_STRTAB, 0, 0, 0xa00, sizeof(strings), 0, 0, 1, 0},
    };

    *to = (struct go_bytes){0};
    if (!relocated)
        sections[3].sh_type = SHT_PROGBITS;
    head.e_shoff = 0xb00;
    head.e_shnum = 5;
    head.e_shstrndx = 4;
    head.e_entry = GO_TEXT + 1; /* no function's beginning */
    memcpy(to->bytes, &head, sizeof(head));
    memcpy(to->bytes + sizeof(head), parts, sizeof(parts));
    memcpy(to->bytes + 0x800, &note, sizeof(note));
    memcpy(to->bytes + 0x900, &row, sizeof(row));
    memcpy(to->bytes + 0xa00, strings, sizeof(strings));
    memcpy(to->bytes + 0xb00, sections, sizeof(sections));
    for (size_t i = 0; i < count * GO_STEP; i += 16) {
#if defined(__x86_64__)
        to->bytes[CODE + i + 16 - 5] = 0xe8;
#else
        to->bytes[CODE + i + 16 - 1] = 0x94;
#endif
    }
    memcpy(to->bytes + TABLE, table->bytes, table->size);
    to->size = TABLE + table->size;
}

#endif
