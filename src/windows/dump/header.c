/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The first bytes of a file: the crash dump header in its 32- and 64-bit forms, or the true name of
 * what the file is instead.
 */
#include "inside.h"

#include <errno.h>
#include <string.h>

const struct machine_row machine_rows[MACHINE_COUNT] = {
    [MACHINE_X86] = {"x86", 0x014c, 4, 0x120, 0x80000000, 0xc4, 0xb8},
    [MACHINE_X64] = {"x64", 0x8664, 8, 0x180, 0xffff800000000000, 0x98, 0xf8},
    [MACHINE_ARM64] = {"arm64", 0xaa64, 8, 0x980, 0xffff800000000000, 0x100, 0x108},
};

/* People hand these files to a dump reader. `at` is where the mark is. */
static const struct mark {
    uint32_t at;
    uint8_t length;
    const char *bytes;
    const char *what;
} marks[] = {
    {0, 4, "MDMP", "a user-mode minidump of one process (MDMP), not a kernel crash dump"},
    {0, 8, "USERDUMP", "an old user-mode dump of one process (USERDUMP)"},
    {0, 8, "USERDU64", "an old user-mode dump of one process (USERDU64)"},
    {0, 4, "\177ELF", "an ELF file (a Linux or VirtualBox core, or a program)"},
    {0, 4, "hibr", "a Windows hibernation file"},
    {0, 4, "HIBR", "a Windows hibernation file"},
    {0, 4, "wake", "a Windows hibernation file that was resumed from"},
    {0, 4, "WAKE", "a Windows hibernation file that was resumed from"},
    {0, 4, "RSTR", "a Windows hibernation file that was resumed from"},
    {0, 4, "\xd0\xbe\xd2\xbe", "a VMware suspend or snapshot file (.vmss, .vmsn)"},
    {0, 4, "\xd1\xba\xd1\xba", "a VMware suspend or snapshot file (.vmss, .vmsn)"},
    {0, 4, "\xd2\xbe\xd2\xbe", "a VMware suspend or snapshot file (.vmss, .vmsn)"},
    {0, 4, "\xd3\xbe\xd3\xbe", "a VMware suspend or snapshot file (.vmss, .vmsn)"},
    {0, 4, "KDMV", "a VMware disk or snapshot (VMDK)"},
    {0, 4, "QFI\xfb", "a QEMU disk image (qcow)"},
    {0, 4, "QEVM", "a QEMU migration stream"},
    {0, 16, "LibvirtQemudSave", "a libvirt saved guest"},
    {0, 8, "KDUMP   ", "a Linux kernel dump (kdump-compressed)"},
    {0, 8, "DISKDUMP", "a Linux kernel dump (diskdump)"},
    {0, 4, "EMiL", "a LiME memory image"},
    {0, 8, "vhdxfile", "a Hyper-V disk (VHDX)"},
    {0, 8, "conectix", "a Hyper-V disk (VHD)"},
    {0, 7, "ElfFile", "a Windows event log"},
    {0, 4, "MSCF", "a cabinet archive; unpack it first"},
    {0, 4, "PK\003\004", "a ZIP archive"},
    {0, 6, "7z\274\257\047\034", "a 7-Zip archive; unpack it first"},
    {0, 4, "Rar!", "a RAR archive; unpack it first"},
    {0, 6, "\3757zXZ\0", "an xz-compressed file"},
    {0, 4, "\x28\xb5\x2f\xfd", "a zstd-compressed file"},
    {0, 2, "\x1f\x8b", "a gzip-compressed file"},
    {0, 3, "BZh", "a bzip2-compressed file"},
    {0, 2, "MZ", "a Windows program"},
};

/* Lists header fields: place and size in the 32- and the 64-bit form; size 0: it is not there. */
#define FIELDS(F)                                                                                  \
    F(major, 0x08, 4, 0x08, 4)                                                                     \
    F(minor, 0x0c, 4, 0x0c, 4)                                                                     \
    F(directory_base, 0x10, 4, 0x10, 8)                                                            \
    F(module_list, 0x18, 4, 0x20, 8)                                                               \
    F(machine, 0x20, 4, 0x30, 4)                                                                   \
    F(processors, 0x24, 4, 0x34, 4)                                                                \
    F(bugcheck_code, 0x28, 4, 0x38, 4)                                                             \
    F(bugcheck_parameters[0], 0x2c, 4, 0x40, 8)                                                    \
    F(bugcheck_parameters[1], 0x30, 4, 0x48, 8)                                                    \
    F(bugcheck_parameters[2], 0x34, 4, 0x50, 8)                                                    \
    F(bugcheck_parameters[3], 0x38, 4, 0x58, 8)                                                    \
    F(has_pae, 0x5c, 1, 0, 0)                                                                      \
    F(kdbg, 0x60, 4, 0x80, 8)                                                                      \
    F(type, 0xf88, 4, 0xf98, 4)                                                                    \
    F(product, 0xf94, 4, 0x1040, 4)                                                                \
    F(exception_code, 0x7d0, 4, 0xf00, 4)                                                          \
    F(exception_address, 0x7dc, 4, 0xf10, 8)                                                       \
    F(whole_size, 0xfa0, 8, 0xfa0, 8)                                                              \
    F(uptime, 0xfb8, 8, 0x1030, 8)                                                                 \
    F(crash_time, 0xfc0, 8, 0xfa8, 8)

#define CONTEXT_32 0x320
#define CONTEXT_64 0x348
#define FILLER     0x4547415045474150u /* "PAGEPAGE": what the writer leaves in unused fields */

static int not_a_dump(const struct dump_file *file, struct prcb_error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
        const struct mark *mark = &marks[i];

        if (dump_file_holds(file, mark->at, mark->length) &&
            !memcmp(file->bytes + mark->at, mark->bytes, mark->length))
            return prcb_fail(err, -EINVAL, "%s: this is %s", file->name, mark->what);
    }
    return prcb_fail(err, -EINVAL,
                     "%s: not a Windows kernel crash dump (no PAGEDUMP or PAGEDU64 at its start)",
                     file->name);
}

static uint64_t field(const uint8_t *bytes, bool is_64, unsigned int at32, unsigned int size32,
                      unsigned int at64, unsigned int size64)
{
    return load_le(bytes + (is_64 ? at64 : at32), is_64 ? size64 : size32);
}

static uint64_t drop_filler(uint64_t value)
{
    return value == FILLER || value == (uint32_t)FILLER ? 0 : value;
}

static void read_context(const uint8_t *bytes, struct header *h)
{
    const uint8_t *context = bytes + (h->bits == 64 ? CONTEXT_64 : CONTEXT_32);

    for (size_t i = 0; i < MACHINE_COUNT; i++) {
        const struct machine_row *row = &machine_rows[i];

        if (row->image != h->machine || !row->stack_pointer)
            continue;
        h->stack_pointer = drop_filler(load_le(context + row->stack_pointer, row->pointer_size));
        h->program_counter =
            drop_filler(load_le(context + row->program_counter, row->pointer_size));
    }
}

void header_parse(const uint8_t *bytes, unsigned int bits, struct header *ret)
{
    struct header h = {.bits = bits, .size = bits == 64 ? 0x2000 : 0x1000};

#define F(name, at32, size32, at64, size64)                                                        \
    h.name = (__typeof__(h.name))field(bytes, bits == 64, at32, size32, at64, size64);
    FIELDS(F)
#undef F
    h.uptime = drop_filler(h.uptime);
    h.crash_time = drop_filler(h.crash_time);
    if (h.whole_size == ((uint64_t)FILLER << 32 | FILLER))
        h.whole_size = 0;
    h.kdbg = drop_filler(h.kdbg);
    h.exception_code = (uint32_t)drop_filler(h.exception_code);
    h.exception_address = drop_filler(h.exception_address);
    h.context = bytes + (bits == 64 ? CONTEXT_64 : CONTEXT_32);
    read_context(bytes, &h);
    *ret = h;
}

int header_read(const struct dump_file *file, struct header *ret, struct prcb_error *err)
{
    struct dump_cursor c = {.file = file, .err = err};
    const uint8_t *bytes;
    unsigned int bits;
    int code;

    if (!dump_file_holds(file, 0, 8) || memcmp(file->bytes, "PAGE", 4) ||
        (memcmp(file->bytes + 4, "DUMP", 4) && memcmp(file->bytes + 4, "DU64", 4)))
        return not_a_dump(file, err);
    bits = file->bytes[6] == '6' ? 64 : 32;
    code = cursor_bytes(&c, "the dump header", bits == 64 ? 0x2000 : 0x1000, &bytes);
    if (!code)
        header_parse(bytes, bits, ret);
    return code;
}
