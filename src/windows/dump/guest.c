/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A guest's memory as QEMU and libvirt write it: an ELF core whose segments are physical memory and
 * whose notes "QEMU" have each processor's registers. No header of Windows' says where anything is,
 * unless a driver in the guest left one in the note VMCOREINFO. So the kernel is found from the
 * processors: page tables by CR3, checked by the page that Windows shares with programs, which also
 * has build and times; the kernel's image below an interrupt's handler (IDT); lists by what the
 * image exports; debugger data by their tag in it, where they are not encoded; KPRCBs by the GS
 * bases. x64 alone.
 */
#include "array.h"
#include "inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ELF_HEADER    0x40
#define ELF_SEGMENT   0x38
#define ELF_SECTION   0x40
#define ELF_LOAD      1
#define ELF_NOTE      4
#define ELF_CORE      4
#define ELF_X64       62
#define COUNT_BEHIND  0xffff /* e_phnum: the number is in the first section header */
#define SEGMENTS_MOST (1u << 16)
#define NOTES_MOST    8192 /* two a processor, of thousands */

/* These are of QEMUCPUState, version 1. */
#define STATE_SIZE      440
#define STATE_RIP       136
#define STATE_CS        152
#define STATE_GS_BASE   264
#define STATE_IDT_BASE  384
#define STATE_CR3       416
#define STATE_CR4       424
#define STATE_KERNEL_GS 432
#define CR4_LA57        (1u << 12)

#define SHARED         0xfffff78000000000ull /* KUSER_SHARED_DATA */
#define SHARED_UPTIME  0x08
#define SHARED_TIME    0x14
#define SHARED_BUILD   0x260 /* since Windows 10 */
#define SHARED_PRODUCT 0x264
#define SHARED_MAJOR   0x26c
#define SHARED_MINOR   0x270
#define ROOTS_FROM     64u /* processors whose CR3 is tried */
#define IMAGE_MOST     (32u << 20)
#define EXPORTS_MOST   16384u
#define KPCR_SELF      0x18
#define KPCR_PRCB      0x20

/* ---- the file ---- */

static uint64_t up_to_4(uint64_t length)
{
    return (length + 3) & ~3ull;
}

static bool is_named(const uint8_t *note, uint64_t name_size, const char *name)
{
    size_t length = strlen(name) + 1;

    return name_size == length && !memcmp(note + 12, name, length);
}

static int take_note(struct guest *g, const uint8_t *note, uint64_t name_size, uint64_t size)
{
    const uint8_t *content = note + 12 + up_to_4(name_size);

    if (is_named(note, name_size, "VMCOREINFO")) {
        g->vmcoreinfo = content;
        g->vmcoreinfo_size = size;
    } else if (is_named(note, name_size, "QEMU")) {
        g->is_qemu = true;
        if (size >= STATE_SIZE && load_le(content + 4, 4) >= STATE_SIZE)
            return array_append(g->states, g->count, content);
    }
    return 0;
}

static int read_notes(const struct dump_file *file, uint64_t at, uint64_t end, struct guest *g)
{
    int code = 0;

    while (!code && g->notes < NOTES_MOST && at < end && dump_file_holds(file, at, 12)) {
        uint64_t name = load_le(file->bytes + at, 4), size = load_le(file->bytes + at + 4, 4);
        uint64_t length = 12 + up_to_4(name) + up_to_4(size);

        if (!dump_file_holds(file, at, length))
            break;
        g->notes++;
        code = take_note(g, file->bytes + at, name, size);
        at += length;
    }
    return code;
}

static uint32_t segment_count(const struct dump_file *file)
{
    uint32_t count = (uint32_t)load_le(file->bytes + 0x38, 2);
    uint64_t sections = load_le(file->bytes + 0x28, 8);

    if (count == COUNT_BEHIND && dump_file_holds(file, sections, ELF_SECTION))
        count = (uint32_t)load_le(file->bytes + sections + 0x2c, 4);
    return count < SEGMENTS_MOST ? count : SEGMENTS_MOST;
}

/* Calls take for each program header that is there whole. */
static int each_segment(const struct dump_file *file, struct guest *g,
                        int (*take)(const struct dump_file *file, const uint8_t *segment,
                                    struct guest *g))
{
    uint64_t table = load_le(file->bytes + 0x20, 8);
    uint32_t count = segment_count(file);
    int code = 0;

    for (uint32_t i = 0; !code && i < count; i++) {
        uint64_t at = table + (uint64_t)i * ELF_SEGMENT;

        if (at < table || !dump_file_holds(file, at, ELF_SEGMENT))
            break;
        code = take(file, file->bytes + at, g);
    }
    return code;
}

static int take_notes(const struct dump_file *file, const uint8_t *segment, struct guest *g)
{
    uint64_t at = load_le(segment + 8, 8), length = load_le(segment + 0x20, 8);

    if (load_le(segment, 4) != ELF_NOTE || !dump_file_holds(file, at, length))
        return 0;
    return read_notes(file, at, at + length, g);
}

/* Takes whole pages of physical memory. */
static int take_run(const struct dump_file *file, const uint8_t *segment, struct guest *g)
{
    struct page_run run = {.offset = load_le(segment + 8, 8)};
    uint64_t address = load_le(segment + 0x18, 8), length = load_le(segment + 0x20, 8);

    run.first = address >> PAGE_SHIFT;
    run.count = length >> PAGE_SHIFT;
    if (load_le(segment, 4) != ELF_LOAD || !run.count || address & (PAGE_SIZE - 1) ||
        run.offset >= file->size || run.count > UINT64_MAX >> (PAGE_SHIFT + 8))
        return 0;
    return array_append(g->runs, g->run_count, run);
}

static int compare_runs(const void *a, const void *b)
{
    const struct page_run *x = a, *y = b;

    return x->first < y->first ? -1 : x->first > y->first;
}

/* With page tables (dump-guest-memory -p) a page may be in several segments: the first counts. */
static void set_runs(struct prcb_dump *d)
{
    struct guest *g = &d->guest;
    uint64_t end = 0;
    size_t kept = 0;

    array_sort(g->runs, g->run_count, compare_runs);
    for (size_t i = 0; i < g->run_count; i++) {
        struct page_run run = g->runs[i];
        uint64_t cut = run.first < end ? end - run.first : 0;

        if (cut >= run.count)
            continue;
        run.first += cut;
        run.count -= cut;
        run.offset += cut * PAGE_SIZE;
        end = run.first + run.count;
        g->runs[kept++] = run;
    }
    d->memory.runs = g->runs;
    d->memory.run_count = kept;
    g->runs = NULL;
}

bool guest_is(const struct dump_file *file)
{
    struct guest g = {0};
    bool is;

    if (!dump_file_holds(file, 0, ELF_HEADER) || memcmp(file->bytes, "\177ELF\2\1", 6) ||
        load_le(file->bytes + 0x10, 2) != ELF_CORE || load_le(file->bytes + 0x36, 2) != ELF_SEGMENT)
        return false;
    each_segment(file, &g, take_notes);
    is = g.is_qemu;
    free(g.states);
    return is;
}

void guest_free(struct guest *g)
{
    free(g->states);
    free(g->runs);
}

/* ---- page tables ---- */

static bool is_shared_page(const struct prcb_dump *d)
{
    uint64_t major, minor, product;

    return !memory_load(&d->memory, SHARED + SHARED_MAJOR, 4, &major) &&
           !memory_load(&d->memory, SHARED + SHARED_MINOR, 4, &minor) &&
           !memory_load(&d->memory, SHARED + SHARED_PRODUCT, 4, &product) && major >= 5 &&
           major <= 10 && minor <= 3 && product >= 1 && product <= 3;
}

static bool try_root(struct prcb_dump *d, uint64_t root)
{
    d->memory.root = root;
    return is_shared_page(d);
}

/* In the kernel GS is the KPCR's, in a program the other base is. */
static uint64_t kpcr_of(const uint8_t *state)
{
    uint64_t gs = load_le(state + STATE_GS_BASE, 8);

    return gs >> 63 ? gs : load_le(state + STATE_KERNEL_GS, 8);
}

/* A processor that ran a program may have the tables that hide the kernel from programs (KVA
 * shadow), in which the KPCR is mapped, and in it the kernel's own tables are noted. */
static bool find_root(struct prcb_dump *d)
{
    static const uint32_t noted[] = {0x9000, 0x7000}; /* since 1809, before */
    const struct guest *g = &d->guest;

    for (size_t i = 0; i < g->count && i < ROOTS_FROM; i++) {
        uint64_t root = load_le(g->states[i] + STATE_CR3, 8);

        d->memory.paging =
            load_le(g->states[i] + STATE_CR4, 8) & CR4_LA57 ? PAGING_X64_5 : PAGING_X64;
        if (try_root(d, root))
            return true;
        for (size_t k = 0; k < ARRAY_SIZE(noted); k++) {
            d->memory.root = root;
            if (!memory_load(&d->memory, kpcr_of(g->states[i]) + noted[k], 8,
                             &d->header.directory_base) &&
                try_root(d, d->header.directory_base))
                return true;
        }
    }
    return false;
}

/* ---- the kernel's image ---- */

/* Where the optional header is, of a PE32+ image at an address; 0: there is none. */
static uint64_t optional_header(const struct prcb_dump *d, uint64_t base)
{
    const struct memory *m = &d->memory;
    uint64_t mz, at, pe, magic;

    if (memory_load(m, base, 2, &mz) || mz != 0x5a4d || memory_load(m, base + 0x3c, 4, &at) ||
        at > PAGE_SIZE || memory_load(m, base + at, 4, &pe) || pe != 0x4550 ||
        memory_load(m, base + at + 0x18, 2, &magic) || magic != 0x20b)
        return 0;
    return base + at + 0x18;
}

static bool load32(const struct prcb_dump *d, uint64_t address, uint64_t *ret)
{
    return !memory_load(&d->memory, address, 4, ret);
}

static bool text_is(const struct prcb_dump *d, uint64_t address, const char *text)
{
    char there[32];
    size_t length = strlen(text) + 1;

    return length <= sizeof(there) && !memory_read(&d->memory, address, there, length) &&
           !memcmp(there, text, length);
}

/* The export directory of the image that is "ntoskrnl.exe"; 0: it is not. */
static uint64_t exports_of(const struct prcb_dump *d, uint64_t base)
{
    uint64_t optional = optional_header(d, base), directory, name;

    if (!optional || !load32(d, optional + 0x70, &directory) || !directory ||
        !load32(d, base + directory + 0x0c, &name) || !text_is(d, base + name, "ntoskrnl.exe"))
        return 0;
    return base + directory;
}

static uint64_t find_export(const struct prcb_dump *d, const char *name)
{
    const struct guest *g = &d->guest;
    uint64_t count, functions, names, ordinals, at, ordinal, place;

    if (!g->exports || !load32(d, g->exports + 0x18, &count) ||
        !load32(d, g->exports + 0x1c, &functions) || !load32(d, g->exports + 0x20, &names) ||
        !load32(d, g->exports + 0x24, &ordinals))
        return 0;
    for (uint64_t i = 0; i < count && i < EXPORTS_MOST; i++) {
        if (!load32(d, g->kernel + names + 4 * i, &at))
            return 0;
        if (!text_is(d, g->kernel + at, name))
            continue;
        if (memory_load(&d->memory, g->kernel + ordinals + 2 * i, 2, &ordinal) ||
            !load32(d, g->kernel + functions + 4 * ordinal, &place))
            return 0;
        return g->kernel + place;
    }
    return 0;
}

/* Looks below the handler of a processor's first interrupt. */
static void find_kernel(struct prcb_dump *d)
{
    struct guest *g = &d->guest;

    for (size_t i = 0; i < g->count && i < ROOTS_FROM && !g->kernel; i++) {
        uint64_t idt = load_le(g->states[i] + STATE_IDT_BASE, 8), low, high, handler;

        if (memory_load(&d->memory, idt, 8, &low) || memory_load(&d->memory, idt + 8, 4, &high))
            continue;
        handler = (low & 0xffff) | (low >> 32 & 0xffff0000) | high << 32;
        if (handler < machine_rows[d->machine].kernel_base)
            continue;
        for (uint64_t at = handler & ~(uint64_t)(PAGE_SIZE - 1), n = 0;
             n < IMAGE_MOST / PAGE_SIZE && !g->kernel; n++, at -= PAGE_SIZE) {
            g->exports = exports_of(d, at);
            g->kernel = g->exports ? at : 0;
        }
        return; /* all have the same kernel: one search is enough */
    }
}

/* Finds debugger data within the image, by their tag and the image's own address behind it. */
static uint64_t find_kdbg(const struct prcb_dump *d)
{
    uint64_t optional = optional_header(d, d->guest.kernel), length = 0, left;
    enum memory_absence why;

    if (!d->guest.kernel || !optional || !load32(d, optional + 0x38, &length))
        return 0;
    for (uint64_t at = 0; at < length && at < IMAGE_MOST; at += PAGE_SIZE) {
        const uint8_t *page = memory_at(&d->memory, d->guest.kernel + at, &left, &why);

        for (uint64_t i = 0x10; page && i + 0x10 <= left && i + 0x10 <= PAGE_SIZE; i += 8)
            if (!memcmp(page + i, "KDBG", 4) && load_le(page + i + 8, 8) == d->guest.kernel)
                return d->guest.kernel + at + i - 0x10;
    }
    return 0;
}

/* ---- in place of a header ---- */

/* Before Windows 10 the shared page has no build: the last of its version, unless the kernel says.
 */
static uint32_t build_of(uint64_t major, uint64_t minor, uint64_t exported, uint64_t shared)
{
    static const struct {
        uint8_t major, minor;
        uint16_t build;
    } last[] = {{5, 2, 3790}, {6, 0, 6002}, {6, 1, 7601}, {6, 2, 9200}, {6, 3, 9600}};

    if (exported & 0xffff)
        return (uint32_t)(exported & 0xffff);
    for (size_t i = 0; i < ARRAY_SIZE(last); i++)
        if (last[i].major == major && last[i].minor == minor)
            return last[i].build;
    return (uint32_t)(shared & 0xffff);
}

static void take_bugcheck(struct prcb_dump *d)
{
    uint64_t at = find_export(d, "KiBugCheckData"), values[5];

    for (unsigned int i = 0; i < 5; i++)
        if (!at || memory_load(&d->memory, at + 8ull * i, 8, &values[i]))
            return;
    if (values[0] > UINT32_MAX)
        return;
    d->header.bugcheck_code = (uint32_t)values[0];
    memcpy(d->header.bugcheck_parameters, values + 1, sizeof(d->header.bugcheck_parameters));
}

static void make_header(struct prcb_dump *d)
{
    const struct memory *m = &d->memory;
    struct header *h = &d->header;
    uint64_t major = 0, minor = 0, shared = 0, exported = 0, product = 0;

    memory_load(m, SHARED + SHARED_MAJOR, 4, &major);
    memory_load(m, SHARED + SHARED_MINOR, 4, &minor);
    memory_load(m, SHARED + SHARED_BUILD, 4, &shared);
    memory_load(m, SHARED + SHARED_PRODUCT, 4, &product);
    memory_load(m, SHARED + SHARED_UPTIME, 8, &h->uptime);
    memory_load(m, SHARED + SHARED_TIME, 8, &h->crash_time);
    memory_load(m, find_export(d, "NtBuildNumber"), 4, &exported);
    h->directory_base = m->root;
    h->product = (uint32_t)product;
    h->major = exported >> 28 == 0xc ? 12 : 15;
    h->minor = build_of(major, minor, exported, shared);
    h->processors = (uint32_t)d->guest.count;
    h->module_list = find_export(d, "PsLoadedModuleList");
    h->kdbg = find_kdbg(d);
    take_bugcheck(d);
}

static int explain(struct prcb_dump *d)
{
    int code = dump_note(d,
                         "a guest's memory, without a crash dump's header: the kernel was found "
                         "from its processors' registers%s",
                         d->guest.kernel ? "" : ", its image was not");

    if (!code && d->guest.kernel && !d->header.kdbg)
        code = dump_note(d, "its debugger data are encoded, as in each running Windows since 8: "
                            "KPRCBs are found by the processors' GS bases");
    if (!code && d->guest.kernel && !d->header.module_list)
        code = dump_note(d, "its kernel exports no PsLoadedModuleList: modules are not known");
    return code;
}

static int fail_linux(const struct prcb_dump *d, const char *witness, struct prcb_error *err)
{
    return prcb_fail(err, -EINVAL,
                     "%s: this is a guest's memory as QEMU and libvirt write it (ELF), of a Linux "
                     "guest (%s): crash and drgn read it",
                     d->name, witness);
}

#define LINUX_MARK "OSRELEASE="

/* Tells whether the memory has the page that each Linux keeps for whoever reads its dumps. That is
 * looked for only where no Windows was found: a Linux may run in one. */
static bool holds_linux(const struct prcb_dump *d)
{
    const char *at = (const char *)d->file.bytes, *end = at + d->file.size;

    while ((at = memmem(at, (size_t)(end - at), LINUX_MARK, strlen(LINUX_MARK)))) {
        size_t rest = (size_t)(end - at);

        if (memmem(at, rest < 256 ? rest : 256, "\nPAGESIZE=", 10))
            return true;
        at++;
    }
    return false;
}

static int fail_no_windows(const struct prcb_dump *d, struct prcb_error *err)
{
    if (holds_linux(d))
        return fail_linux(d, "its memory has Linux's VMCOREINFO", err);
    return prcb_fail(
        err, -EINVAL,
        "%s: this is a guest's memory as QEMU and libvirt write it (ELF), in which no "
        "64-bit Windows is found: the page tables of its %zu processors do not have "
        "the page that Windows shares with programs (Linux: crash and drgn read it; "
        "32-bit Windows: have it written by virsh dump --memory-only --format win-dmp)",
        d->name, d->guest.count);
}

/* Takes what the guest's own driver left: a header as a crash dump has it. */
static bool take_header(struct prcb_dump *d)
{
    struct guest *g = &d->guest;

    for (uint64_t at = 0;
         g->vmcoreinfo_size >= 0x2000 && at <= g->vmcoreinfo_size - 0x2000 && at < 64; at += 4) {
        if (!memcmp(g->vmcoreinfo + at, "PAGEDU64", 8)) {
            header_parse(g->vmcoreinfo + at, 64, &d->header);
            return true;
        }
    }
    return false;
}

static bool is_linux(const struct guest *g)
{
    return g->vmcoreinfo &&
           memmem(g->vmcoreinfo, (size_t)g->vmcoreinfo_size, LINUX_MARK, strlen(LINUX_MARK));
}

static int load_guest(struct prcb_dump *d, struct prcb_error *err)
{
    (void)d;
    (void)err;
    return 0; /* guest_open has loaded it */
}

static bool is_never(const struct header *header)
{
    (void)header;
    return false;
}

static const struct container guest_container = {
    "qemu-elf64", "a guest's memory as QEMU and libvirt write it (ELF)", 64, is_never, load_guest};

static int find_windows(struct prcb_dump *d, struct prcb_error *err)
{
    if (take_header(d) && d->header.machine == machine_rows[MACHINE_X64].image)
        return 0;
    d->header = (struct header){.bits = 64, .machine = machine_rows[MACHINE_X64].image};
    if (!find_root(d))
        return fail_no_windows(d, err);
    d->guest.has_root = true;
    find_kernel(d);
    make_header(d);
    return explain(d) ? prcb_fail(err, -ENOMEM, "%s: out of memory", d->name) : 0;
}

int guest_open(struct prcb_dump *d, struct prcb_error *err)
{
    struct guest *g = &d->guest;

    d->container = &guest_container;
    d->machine = MACHINE_X64;
    d->memory.file = &d->file;
    d->memory.pointer_size = 8;
    if (each_segment(&d->file, g, take_notes) || each_segment(&d->file, g, take_run))
        return prcb_fail(err, -ENOMEM, "%s: out of memory", d->name);
    set_runs(d);
    if (is_linux(g))
        return fail_linux(d, "its VMCOREINFO says so", err);
    if (load_le(d->file.bytes + 0x12, 2) != ELF_X64)
        return prcb_fail(err, -EOPNOTSUPP,
                         "%s: this is a guest's memory as QEMU and libvirt write it (ELF), of "
                         "another machine than x64: it is not read",
                         d->name);
    return find_windows(d, err);
}

/* ---- processors ---- */

static bool is_kpcr(const struct prcb_dump *d, uint64_t kpcr)
{
    uint64_t self, kprcb;

    return kpcr >= machine_rows[d->machine].kernel_base && !(kpcr & 7) &&
           !memory_load(&d->memory, kpcr + KPCR_SELF, 8, &self) && self == kpcr &&
           !memory_load(&d->memory, kpcr + KPCR_PRCB, 8, &kprcb) &&
           kprcb == kpcr + machine_rows[d->machine].kprcb_in_page;
}

uint64_t guest_kprcb(const struct prcb_dump *d, size_t index)
{
    uint64_t kpcr = index < d->guest.count ? kpcr_of(d->guest.states[index]) : 0;

    return kpcr && is_kpcr(d, kpcr) ? kpcr + machine_rows[d->machine].kprcb_in_page : 0;
}

bool guest_registers(const struct prcb_dump *d, uint64_t kprcb, uint64_t *values)
{
    /* They stand for rip, rsp, rbp, rax, rbx, rcx, rdx, rsi, rdi, r8 to r15, eflags, in the order
     * of threads.c. */
    static const uint16_t at[] = {136, 56, 64, 8,  16,  24,  32,  40,  48,
                                  72,  80, 88, 96, 104, 112, 120, 128, 144};

    for (size_t i = 0; kprcb && i < d->guest.count; i++) {
        if (kpcr_of(d->guest.states[i]) + machine_rows[d->machine].kprcb_in_page != kprcb)
            continue;
        for (size_t k = 0; k < ARRAY_SIZE(at); k++)
            values[k] = load_le(d->guest.states[i] + at[k], 8);
        return true;
    }
    return false;
}
