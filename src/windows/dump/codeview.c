/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Which symbol file is a kernel's: its image, in memory, names it in a CodeView record ("RSDS"),
 * with the GUID and age of the link. Triage dumps seldom hold the image.
 */
#include "inside.h"

#include <stdio.h>
#include <string.h>

#define HEADERS_MOST 0x1000u /* what lies behind the first page is no header of a kernel's */
#define ENTRIES_MOST 32u     /* of the debug directory */
#define ENTRY_SIZE   28u
#define CODEVIEW     2u

/* Where the debug directory is. Offsets from the optional header: PE32, PE32+. */
static bool find_directory(const struct prcb_dump *d, uint64_t base, uint64_t *ret_at,
                           uint64_t *ret_size)
{
    const struct memory *m = &d->memory;
    uint64_t mz, new_header, pe, magic, count, optional, at;
    uint32_t directories;

    if (memory_load(m, base, 2, &mz) || mz != 0x5a4d ||
        memory_load(m, base + 0x3c, 4, &new_header) || new_header > HEADERS_MOST ||
        memory_load(m, base + new_header, 4, &pe) || pe != 0x4550)
        return false;
    optional = base + new_header + 0x18;
    if (memory_load(m, optional, 2, &magic))
        return false;
    directories = magic == 0x20b ? 0x70 : 0x60;
    return !memory_load(m, optional + directories - 4, 4, &count) && count > 6 &&
           !memory_load(m, optional + directories + 6 * 8, 4, &at) && at &&
           !memory_load(m, optional + directories + 6 * 8 + 4, 4, ret_size) &&
           (*ret_at = base + at);
}

static bool take_record(const struct prcb_dump *d, uint64_t at, uint64_t size, struct codeview *ret)
{
    uint8_t bytes[24 + sizeof(ret->name) - 1] = {0};

    if (size < 25)
        return false;
    size = size < sizeof(bytes) ? size : sizeof(bytes);
    if (memory_read(&d->memory, at, bytes, size) || memcmp(bytes, "RSDS", 4))
        return false;
    memcpy(ret->guid, bytes + 4, sizeof(ret->guid));
    ret->age = (uint32_t)load_le(bytes + 20, 4);
    for (size_t i = 0; 24 + i < size && bytes[24 + i]; i++) {
        uint8_t c = bytes[24 + i];

        ret->name[i] = c > ' ' && c < 0x7f && c != '/' && c != '\\' ? (char)c : '?';
    }
    ret->is_known = true;
    return true;
}

void codeview_find(const struct prcb_dump *d, uint64_t base, struct codeview *ret)
{
    uint64_t at, size;

    if (!base || !find_directory(d, base, &at, &size))
        return;
    for (uint32_t i = 0; i < ENTRIES_MOST && (i + 1) * ENTRY_SIZE <= size; i++) {
        uint64_t entry = at + (uint64_t)i * ENTRY_SIZE, type, length, place;

        if (memory_load(&d->memory, entry + 12, 4, &type) ||
            memory_load(&d->memory, entry + 16, 4, &length) ||
            memory_load(&d->memory, entry + 20, 4, &place))
            return;
        if (type == CODEVIEW && take_record(d, base + place, length, ret))
            return;
    }
}

void codeview_guid_text(const uint8_t guid[16], uint32_t age, char *ret, size_t size)
{
    snprintf(ret, size, "%08llX%04llX%04llX%02X%02X%02X%02X%02X%02X%02X%02X%X",
             (unsigned long long)load_le(guid, 4), (unsigned long long)load_le(guid + 4, 2),
             (unsigned long long)load_le(guid + 6, 2), guid[8], guid[9], guid[10], guid[11],
             guid[12], guid[13], guid[14], guid[15], age);
}
