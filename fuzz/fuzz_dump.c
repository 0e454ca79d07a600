/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Crash dumps. Built once for each container, whose signature and type are set in every input, so
 * that the fuzzer stays with it; and once (FUZZ_SEARCH) with bytes of debugger data and of a KPRCB
 * inside a triage dump that is otherwise right. Whatever the bytes, opening and reading all there
 * is touches nothing outside them and ends.
 */
#include <stdlib.h>
#include <string.h>

#include <prcb/dump.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sum;

static int add(const struct prcb_dump_member *m, void *ctx)
{
    sum += m->is_held ? m->value : strlen(m->path);
    return 0;
}

static int add_word(uint64_t address, uint64_t value, void *ctx)
{
    size_t *count = ctx;

    sum += address + value;
    if (++*count > 0x10000 / 4)
        abort(); /* more words than a stack that is scanned has */
    return 0;
}

static int add_dpc(const struct prcb_dump_dpc *dpc, void *ctx)
{
    size_t *count = ctx;

    sum += dpc->address + dpc->routine;
    if (++*count > 4096)
        abort(); /* a queue that does not end */
    return 0;
}

/* Names are printable ASCII, whatever the file says. */
static void check_name(const char *name)
{
    for (; *name; name++) {
        if (*name <= 0x20 || *name >= 0x7f)
            abort();
    }
}

static void read_modules(const struct prcb_dump *d)
{
    struct prcb_dump_module m = {.size = sizeof(m)};
    char text[80];
    size_t count = 0;

    for (size_t i = 0; !prcb_dump_module(d, i, &m); i++) {
        check_name(m.name);
        sum += !prcb_dump_address_text(d, m.base + m.length / 2, text, sizeof(text));
    }
    prcb_dump_stack_scan(d, add_word, &count, NULL);
}

static void read_processor(const struct prcb_dump *d, size_t index)
{
    struct prcb_dump_context c = {.size = sizeof(c)};
    struct prcb_dump_thread t = {.size = sizeof(t)};
    const char *name;
    uint64_t value;
    size_t count = 0;

    if (prcb_dump_context(d, index, &c) || prcb_dump_thread(d, index, &t))
        abort();
    if (!c.found_by == !c.absent)
        abort();
    for (size_t i = 0; !prcb_dump_register(d, index, i, &name, &value); i++)
        sum += value + strlen(name);
    if (t.process_name)
        sum += strlen(t.process_name);
    prcb_dump_dpcs(d, index, add_dpc, &count);
}

static void read_all(const struct prcb_dump *d)
{
    const struct prcb_dump_processor *p;
    struct prcb_dump_culprit culprit = {.size = sizeof(culprit)};
    struct prcb_dump_structure s = {.size = sizeof(s)};
    struct prcb_error err;
    const char *text;
    uint8_t bytes[64];

    for (size_t i = 0; (p = prcb_dump_processor(d, i)); i++) {
        for (unsigned int j = 0; j < PRCB_DUMP_ITEM_COUNT; j++) {
            if (!p->items[j].found_by == !p->items[j].absent)
                abort(); /* present, or absent with a reason */
        }
        for (unsigned int j = 0; i < 2 && (text = prcb_dump_structure_at(j)); j++)
            prcb_dump_structure(d, i, text, add, NULL, &s, &err);
        prcb_dump_read(d, p->kprcb - 8, bytes, sizeof(bytes), &err);
        read_processor(d, i);
    }
    read_modules(d);
    for (size_t i = 0; (text = prcb_dump_finding(d, i)); i++)
        sum += strlen(text);
    if (!prcb_dump_culprit(d, &culprit))
        sum += strlen(culprit.module) + strlen(culprit.found_by);
    for (size_t i = 0; (text = prcb_dump_note(d, i)); i++)
        sum += strlen(text);
    if (prcb_dump_processor_count(d) > 4096)
        abort();
}

static void open_and_read(const uint8_t *bytes, size_t size)
{
    struct prcb_dump *d;
    struct prcb_error err;

    if (prcb_dump_open_memory(bytes, size, "input", NULL, &d, &err))
        return;
    read_all(d);
    prcb_dump_close(d);
}

static void set32(uint8_t *bytes, uint32_t value)
{
    for (unsigned int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
}

#ifdef FUZZ_SEARCH

#define KDBG_SIZE 0x400
#define ADDRESS   0xfffff80010000180u

/* A triage dump: header, debugger data at 0x2100, the KPRCB's copy behind, one block over it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t kdbg = 0x2100, blocks = kdbg + KDBG_SIZE, prcb = blocks + 16;
    size_t length;
    uint8_t *bytes;

    if (size < 4 + KDBG_SIZE + 0x400)
        return 0;
    length = prcb + size - 4 - KDBG_SIZE;
    bytes = calloc(1, length);
    if (!bytes)
        return 0;
    memcpy(bytes, "PAGEDU64", 8);
    set32(bytes + 0xc, data[0] | (uint32_t)data[1] << 8);
    set32(bytes + 0x30, data[2] & 1 ? 0xaa64 : 0x8664);
    set32(bytes + 0x34, 2);
    set32(bytes + 0xf98, 4);
    set32(bytes + 0x1030, 0x540be400);
    set32(bytes + 0x1034, 2);
    set32(bytes + 0x201c, (uint32_t)prcb);
    set32(bytes + 0x2070, (uint32_t)kdbg);
    set32(bytes + 0x2074, KDBG_SIZE);
    set32(bytes + 0x2078, (uint32_t)blocks);
    set32(bytes + 0x207c, 1);
    memcpy(bytes + kdbg, data + 4, KDBG_SIZE);
    set32(bytes + blocks, (uint32_t)ADDRESS);
    set32(bytes + blocks + 4, (uint32_t)(ADDRESS >> 32));
    set32(bytes + blocks + 8, (uint32_t)prcb);
    set32(bytes + blocks + 12, (uint32_t)(length - prcb));
    memcpy(bytes + prcb, data + 4 + KDBG_SIZE, length - prcb);
    open_and_read(bytes, length);
    free(bytes);
    return 0;
}

#elif defined(FUZZ_GUEST)

/* A guest's memory: an ELF core of x64. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes;

    if (size < 0x40)
        return 0;
    bytes = malloc(size);
    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    memcpy(bytes, "\177ELF\2\1\1", 7);
    bytes[0x10] = 4;
    bytes[0x11] = 0;
    bytes[0x36] = 0x38;
    bytes[0x37] = 0;
    open_and_read(bytes, size);
    free(bytes);
    return 0;
}

#else

#if defined(FUZZ_TRIAGE64) || defined(FUZZ_TRIAGE32)
#define TYPE 4
#elif defined(FUZZ_FULL64) || defined(FUZZ_FULL32)
#define TYPE 1
#elif defined(FUZZ_RANGES64)
#define TYPE (8 + data[0] % 3)
#elif defined(FUZZ_SUMMARY64)
#define TYPE 2
#else
#define TYPE (5 + (data[0] & 1)) /* bitmap, full or kernel */
#endif
#if defined(FUZZ_TRIAGE32) || defined(FUZZ_FULL32) || defined(FUZZ_BITMAP32)
#define TYPE_AT   0xf88
#define SIGNATURE "PAGEDUMP"
#else
#define TYPE_AT   0xf98
#define SIGNATURE "PAGEDU64"
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes;

    if (size < TYPE_AT + 4)
        return 0;
    bytes = malloc(size);
    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    set32(bytes + TYPE_AT, TYPE);
    memcpy(bytes, SIGNATURE, 8);
    open_and_read(bytes, size);
    free(bytes);
    return 0;
}

#endif
