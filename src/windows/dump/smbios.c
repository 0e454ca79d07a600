/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The computer that a dump is of, and its firmware, by the tables of System Management BIOS
 * (DMTF's DSP0134): their entry point lies in the last 64 KiB below 1 MiB where a BIOS put it. UEFI
 * keeps it elsewhere, and triage dumps hold no physical memory: then nothing is known.
 */
#include "inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST      0xf0000u
#define END        0x100000u
#define TABLE_MOST 0x10000u /* bytes; usual ones have 2 to 8 KiB */
#define TEXT_MOST  64

enum type { FIRMWARE = 0, SYSTEM = 1, LAST = 127 };

/* An entry point: where its marks, its length and the table's place are. */
static const struct form {
    char mark[6];
    uint8_t mark_length, shortest, length_at, address_at, address_size, size_at, size_size;
} forms[] = {
    {"_SM3_", 5, 0x18, 6, 0x10, 8, 0x0c, 4},
    {"_SM_", 4, 0x1e, 5, 0x18, 4, 0x16, 2},
};

static bool read_physical(const struct memory *m, uint64_t address, uint8_t *to, uint32_t length)
{
    while (length) {
        uint64_t left = 0;
        enum memory_absence why;
        const uint8_t *bytes = memory_physical(m, address, &left, &why);

        if (!bytes || !left)
            return false;
        if (left > length)
            left = length;
        memcpy(to, bytes, (size_t)left);
        to += left;
        address += left;
        length -= (uint32_t)left;
    }
    return true;
}

static bool is_entry(const struct form *f, const uint8_t *bytes, size_t left)
{
    uint8_t sum = 0, length;

    if (left < f->shortest || memcmp(bytes, f->mark, f->mark_length))
        return false;
    length = bytes[f->length_at];
    if (length < f->shortest || length > left)
        return false;
    for (uint8_t i = 0; i < length; i++)
        sum = (uint8_t)(sum + bytes[i]);
    return !sum;
}

/* The table's bytes, for the caller to free; NULL: there is none. */
static uint8_t *table_at(const struct memory *m, const struct form *f, const uint8_t *entry,
                         uint32_t *ret_length)
{
    uint64_t address = load_le(entry + f->address_at, f->address_size);
    uint32_t length = (uint32_t)load_le(entry + f->size_at, f->size_size);
    uint8_t *bytes = length && length <= TABLE_MOST ? malloc(length) : NULL;

    if (bytes && !read_physical(m, address, bytes, length)) {
        free(bytes);
        return NULL;
    }
    *ret_length = length;
    return bytes;
}

static uint8_t *find_table(const struct memory *m, uint32_t *ret_length)
{
    uint8_t *area = malloc(END - FIRST), *table = NULL;

    if (area && read_physical(m, FIRST, area, END - FIRST)) {
        for (size_t i = 0; i < ARRAY_SIZE(forms) && !table; i++)
            for (uint32_t at = 0; at < END - FIRST && !table; at += 16)
                if (is_entry(&forms[i], area + at, END - FIRST - at))
                    table = table_at(m, &forms[i], area + at, ret_length);
    }
    free(area);
    return table;
}

/* A structure: its bytes, and the strings behind them up to an empty one. */
struct row {
    const uint8_t *bytes;
    uint8_t length;
    const char *texts;
    uint32_t texts_length;
};

/* The row at *at, which moves behind it; false: the table ends. */
static bool next_row(const uint8_t *table, uint32_t length, uint32_t *at, struct row *ret)
{
    uint32_t end;

    if (length - *at < 6 || table[*at + 1] < 4 || table[*at + 1] > length - *at)
        return false;
    *ret = (struct row){table + *at, table[*at + 1], (const char *)table + *at + table[*at + 1], 0};
    end = *at + ret->length;
    while (end + 1 < length && (table[end] || table[end + 1]))
        end++;
    ret->texts_length = end - *at - ret->length;
    *at = end + 2 < length ? end + 2 : length;
    return ret->bytes[0] != LAST;
}

/* The string that a member names, printable ASCII without blanks around; "": it has none. */
static void take_text(const struct row *r, unsigned int member, char ret[TEXT_MOST])
{
    const char *text = r->texts, *end = r->texts + r->texts_length;
    size_t count = 0;

    *ret = '\0';
    if (member >= r->length || !r->bytes[member])
        return;
    for (uint8_t i = 1; i < r->bytes[member] && text < end; i++)
        text += strnlen(text, (size_t)(end - text)) + 1;
    while (text < end && *text == ' ')
        text++;
    for (; text < end && *text && count < TEXT_MOST - 1; text++)
        ret[count++] = *text >= 0x20 && *text <= 0x7e ? *text : '?';
    while (count && ret[count - 1] == ' ')
        count--;
    ret[count] = '\0';
}

/* "A B" of two texts, and the third behind a comma. */
static void join(const struct row *r, const unsigned int members[3], char *ret, size_t size)
{
    char a[TEXT_MOST], b[TEXT_MOST], c[TEXT_MOST] = "";

    take_text(r, members[0], a);
    take_text(r, members[1], b);
    if (members[2])
        take_text(r, members[2], c);
    snprintf(ret, size, "%s%s%s%s%s", a, *a && *b ? " " : "", b, (*a || *b) && *c ? ", " : "", c);
}

void smbios_find(struct prcb_dump *d)
{
    uint32_t length = 0, at = 0;
    uint8_t *table = d->memory.is_virtual ? NULL : find_table(&d->memory, &length);
    struct row row;

    while (table && next_row(table, length, &at, &row)) {
        if (row.bytes[0] == SYSTEM && !*d->computer)
            join(&row, (const unsigned int[]){4, 5, 0}, d->computer, sizeof(d->computer));
        else if (row.bytes[0] == FIRMWARE && !*d->firmware)
            join(&row, (const unsigned int[]){4, 5, 8}, d->firmware, sizeof(d->firmware));
    }
    free(table);
    d->info.computer = *d->computer ? d->computer : NULL;
    d->info.firmware = *d->firmware ? d->firmware : NULL;
}
