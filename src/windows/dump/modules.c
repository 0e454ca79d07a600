/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The kernel's modules: the driver list of a triage dump, or PsLoadedModuleList in memory, and the
 * drivers that were unloaded. With them an address is said as module+offset, without symbols.
 * Names come from the file and are made printable here, once for all outputs.
 */
#include "array.h"
#include "inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODULES_MOST  4096u
#define UNLOADED_MOST 50u /* MI_UNLOADED_DRIVERS */
#define NAME_MOST     63u /* characters kept of a name */
#define STRING_MOST   520u
#define LENGTH_MOST   (1u << 30)

/* Places in KLDR_DATA_TABLE_ENTRY, in the form that triage dumps and the kernel's list share, and
 * in the lists of unloaded drivers. UNICODE_STRING: u16 length in bytes, u16, pointer (aligned). */
static const struct shape {
    uint32_t entry, base, length, full_name, base_name, checksum, stamp; /* triage: stamp */
    uint32_t name_before;       /* triage: bytes of DriverNameOffset before the entry */
    uint32_t string_buffer;     /* in UNICODE_STRING */
    uint32_t unloaded, count;   /* triage: bytes of an entry, of the count before them */
    uint32_t name, first, last; /* triage: in an entry */
    uint32_t memory_unloaded, memory_first, memory_last; /* the same in memory */
} shapes[] = {
    {0x4c, 0x18, 0x20, 0x24, 0x2c, 0x40, 0x44, 4, 4, 40, 4, 8, 32, 36, 24, 8, 12},
    {0x90, 0x30, 0x40, 0x48, 0x58, 0x78, 0x80, 8, 8, 56, 8, 16, 40, 48, 40, 16, 24},
};

static const struct shape *shape_of(const struct prcb_dump *d)
{
    return &shapes[d->memory.pointer_size == 8];
}

/* The last step of a path of up to `count` UTF-16 units, NUL or not, in printable ASCII. */
static void take_name(const uint8_t *units, size_t count, char *ret)
{
    size_t length = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t c = load_le(units + 2 * i, 2);

        if (!c)
            break;
        if (c == '\\' || c == '/') {
            length = 0;
            continue;
        }
        if (length < NAME_MOST)
            ret[length++] = c > 0x20 && c < 0x7f && c != '"' && c != '\'' ? (char)c : '?';
    }
    ret[length] = '\0';
}

static int add_module(struct prcb_dump *d, const struct module *module)
{
    struct modules *m = &d->modules;

    if (m->count >= MODULES_MOST + UNLOADED_MOST || module->length > LENGTH_MOST ||
        module->base < machine_rows[d->machine].kernel_base || module->base & (PAGE_SIZE - 1) ||
        module->base + module->length < module->base)
        return 0; /* no module lies there: a damaged list, or none */
    if (array_append(m->rows, m->count, *module))
        return -ENOMEM;
    if (!*module->name)
        strcpy(m->rows[m->count - 1].name, "?");
    return 0;
}

static uint64_t pointer_at(const struct prcb_dump *d, const uint8_t *bytes)
{
    return load_le(bytes, d->memory.pointer_size);
}

/* ---- triage dumps ---- */

/* A string of the pool: u32 characters, then UTF-16. */
static void triage_name(const struct prcb_dump *d, uint32_t offset, char *ret)
{
    uint64_t count;

    ret[0] = '\0';
    if (!offset || !dump_file_holds(&d->file, offset, 4))
        return;
    count = load_le(d->file.bytes + offset, 4);
    if (count > STRING_MOST)
        count = STRING_MOST;
    if (count > (d->file.size - offset - 4) / 2)
        count = (d->file.size - offset - 4) / 2;
    take_name(d->file.bytes + offset + 4, (size_t)count, ret);
}

static int triage_loaded(struct prcb_dump *d)
{
    const struct shape *s = shape_of(d);
    const struct triage *t = &d->triage;
    int code = 0;

    for (uint32_t i = 0; !code && i < t->driver_count && i < MODULES_MOST; i++) {
        uint64_t at = t->drivers + (uint64_t)i * s->entry;
        const uint8_t *entry = d->file.bytes + at + s->name_before;
        struct module module = {.found_by = PRCB_DUMP_BY_HEADER};

        if (!t->drivers || !dump_file_holds(&d->file, at, s->entry))
            break;
        triage_name(d, (uint32_t)load_le(d->file.bytes + at, 4), module.name);
        module.base = pointer_at(d, entry + s->base);
        module.length = load_le(entry + s->length, 4);
        module.checksum = (uint32_t)load_le(entry + s->checksum, 4);
        module.timestamp = (uint32_t)load_le(entry + s->stamp, 4);
        code = add_module(d, &module);
    }
    return code;
}

static int triage_unloaded(struct prcb_dump *d)
{
    const struct shape *s = shape_of(d);
    uint64_t at = d->triage.unloaded, count;
    int code = 0;

    if (!at || !dump_file_holds(&d->file, at, s->count))
        return 0;
    count = load_le(d->file.bytes + at, 4);
    at += s->count;
    for (uint64_t i = 0; !code && i < count && i < UNLOADED_MOST; i++, at += s->unloaded) {
        const uint8_t *entry = d->file.bytes + at;
        struct module module = {.found_by = PRCB_DUMP_BY_HEADER, .is_unloaded = true};
        uint64_t length;

        if (!dump_file_holds(&d->file, at, s->unloaded))
            break;
        length = load_le(entry, 2) / 2; /* the name may be longer than the 12 units kept */
        take_name(entry + s->name, length < 12 ? (size_t)length : 12, module.name);
        module.base = pointer_at(d, entry + s->first);
        module.length = pointer_at(d, entry + s->last) - module.base;
        code = add_module(d, &module);
    }
    return code;
}

/* ---- memory ---- */

static bool read_string(const struct prcb_dump *d, uint64_t address, char *ret)
{
    uint8_t units[STRING_MOST];
    uint64_t length, buffer;

    ret[0] = '\0';
    if (memory_load(&d->memory, address, 2, &length) ||
        memory_pointer(&d->memory, address + shape_of(d)->string_buffer, &buffer))
        return false;
    length &= ~1ull;
    if (length > sizeof(units)) { /* the end of a path is what counts */
        buffer += length - sizeof(units);
        length = sizeof(units);
    }
    if (!length || memory_read(&d->memory, buffer, units, length))
        return false;
    take_name(units, (size_t)length / 2, ret);
    return *ret;
}

/* TimeDateStamp and CheckSum of the image's own header, where its page is held. */
static void read_image(const struct prcb_dump *d, struct module *module)
{
    uint64_t mark, header, stamp, checksum;

    if (memory_load(&d->memory, module->base, 2, &mark) || mark != 0x5a4d ||
        memory_load(&d->memory, module->base + 0x3c, 4, &header) || header > 0x1000 ||
        memory_load(&d->memory, module->base + header, 4, &mark) || mark != 0x4550 ||
        memory_load(&d->memory, module->base + header + 8, 4, &stamp) ||
        memory_load(&d->memory, module->base + header + 0x58, 4, &checksum))
        return;
    module->timestamp = (uint32_t)stamp;
    module->checksum = (uint32_t)checksum;
}

/* PsLoadedModuleList: a circular list whose links come first in each entry. A damaged one ends
 * where it cannot be read, leads back to an entry, or after MODULES_MOST. */
static int memory_loaded(struct prcb_dump *d)
{
    const struct shape *s = shape_of(d);
    uint64_t head = d->header.module_list, entry, half = head, base;
    int code = 0;

    if (!head || memory_pointer(&d->memory, head, &entry))
        return 0;
    for (unsigned int i = 0; !code && i < MODULES_MOST && entry && entry != head; i++) {
        struct module module = {.found_by = PRCB_DUMP_BY_HEADER};

        if (memory_pointer(&d->memory, entry + s->base, &base) ||
            memory_load(&d->memory, entry + s->length, 4, &module.length))
            break;
        module.base = base;
        if (!read_string(d, entry + s->base_name, module.name))
            read_string(d, entry + s->full_name, module.name);
        read_image(d, &module);
        code = add_module(d, &module);
        /* half goes half as fast: in a loop that misses the head the two meet */
        if (memory_pointer(&d->memory, entry, &entry) ||
            (i % 2 && memory_pointer(&d->memory, half, &half)) || entry == half)
            break;
    }
    return code;
}

static int memory_unloaded(struct prcb_dump *d)
{
    const struct shape *s = shape_of(d);
    uint64_t at, first, last;
    int code = 0;

    if (!d->kdbg.unloaded || memory_pointer(&d->memory, d->kdbg.unloaded, &at) || !at)
        return 0;
    for (unsigned int i = 0; !code && i < UNLOADED_MOST; i++, at += s->memory_unloaded) {
        struct module module = {.found_by = PRCB_DUMP_BY_KDBG, .is_unloaded = true};

        if (memory_pointer(&d->memory, at + s->memory_first, &first) ||
            memory_pointer(&d->memory, at + s->memory_last, &last))
            break;
        module.base = first;
        module.length = last - first;
        if (first && read_string(d, at, module.name))
            code = add_module(d, &module);
    }
    return code;
}

/* ---- looking up ---- */

static int by_base(const void *a, const void *b)
{
    const struct module *x = a, *y = b;

    if (x->is_unloaded != y->is_unloaded)
        return x->is_unloaded ? 1 : -1;
    return x->base < y->base ? -1 : x->base > y->base;
}

int modules_find(struct prcb_dump *d, struct prcb_error *err)
{
    int code = d->memory.is_virtual ? triage_loaded(d) : memory_loaded(d);

    if (!code)
        code = d->memory.is_virtual ? triage_unloaded(d) : memory_unloaded(d);
    if (code)
        return prcb_fail(err, code, "%s: out of memory", d->name);
    if (d->modules.count)
        array_sort(d->modules.rows, d->modules.count, by_base);
    while (d->modules.loaded < d->modules.count && !d->modules.rows[d->modules.loaded].is_unloaded)
        d->modules.loaded++;
    return 0;
}

/* The last loaded module that starts at or before an address, if it reaches that far; else one that
 * was unloaded. */
const struct module *module_of(const struct prcb_dump *d, uint64_t address)
{
    const struct module *rows = d->modules.rows;
    size_t low = array_front(i, d->modules.loaded, rows[i].base <= address);

    if (low && address - rows[low - 1].base < rows[low - 1].length)
        return &rows[low - 1];
    for (size_t i = d->modules.loaded; i < d->modules.count; i++) {
        if (address >= rows[i].base && address - rows[i].base < rows[i].length)
            return &rows[i];
    }
    return NULL;
}

size_t prcb_dump_module_count(const struct prcb_dump *d)
{
    return d->modules.count;
}

int prcb_dump_module(const struct prcb_dump *d, size_t index, struct prcb_dump_module *ret)
{
    const struct module *m;
    struct prcb_dump_module module;

    if (index >= d->modules.count)
        return -ENOENT;
    m = &d->modules.rows[index];
    module = (struct prcb_dump_module){
        .name = m->name,
        .base = m->base,
        .length = m->length,
        .timestamp = m->timestamp,
        .checksum = m->checksum,
        .is_unloaded = m->is_unloaded,
        .found_by = m->found_by,
    };
    return sized_hand_out(&module, sizeof(module), ret);
}

int prcb_dump_address_text(const struct prcb_dump *d, uint64_t address, char *ret, size_t size)
{
    const struct module *m = module_of(d, address);

    if (!m)
        return -ENOENT;
    snprintf(ret, size, "%s+0x%llx%s", m->name, (unsigned long long)(address - m->base),
             m->is_unloaded ? " (unloaded)" : "");
    return 0;
}
