/* SPDX-License-Identifier: BSD-2-Clause */
#include "go_program.h"

#include <errno.h>
#include <gelf.h>
#include <string.h>

#define NOTE_BUILD_ID 4u /* of Go's linker, by the name "Go" */

/* Returns the bytes of a part, as far as they are in the file. */
static const unsigned char *part(Elf *elf, uint64_t offset, uint64_t *size)
{
    size_t bytes = 0;
    const char *raw = elf_rawfile(elf, &bytes);

    if (!raw || offset >= bytes)
        return NULL;
    if (*size > bytes - offset)
        *size = bytes - offset;
    return (const unsigned char *)raw + offset;
}

static const char *section_name(Elf *elf, const GElf_Shdr *head)
{
    size_t strings;

    return elf_getshdrstrndx(elf, &strings) ? NULL : elf_strptr(elf, strings, head->sh_name);
}

/* ".gopclntab", ".data.rel.ro.gopclntab" */
static int by_name(Elf *elf, struct go_table *ret, uint64_t *ret_address)
{
    static const char end[] = "gopclntab";
    Elf_Scn *section = NULL;

    while ((section = elf_nextscn(elf, section))) {
        const unsigned char *bytes;
        const char *name;
        GElf_Shdr head;
        size_t length;

        if (!gelf_getshdr(section, &head) || head.sh_type != SHT_PROGBITS)
            continue;
        name = section_name(elf, &head);
        length = name ? strlen(name) : 0;
        if (length < sizeof(end) || strcmp(name + length - strlen(end), end) != 0)
            continue;
        bytes = part(elf, head.sh_offset, &head.sh_size);
        *ret_address = head.sh_addr;
        return bytes ? go_table_open(bytes, (size_t)head.sh_size, ret) : -ENOENT;
    }
    return -ENOENT;
}

static bool has_go_note(Elf *elf, const GElf_Phdr *head)
{
    Elf_Data *data =
        elf_getdata_rawchunk(elf, (int64_t)head->p_offset, (size_t)head->p_filesz, ELF_T_NHDR);
    size_t at = 0, name, about;
    GElf_Nhdr note;

    while (data && (at = gelf_getnote(data, at, &note, &name, &about))) {
        if (note.n_type == NOTE_BUILD_ID && note.n_namesz == sizeof("Go") + 1 &&
            !memcmp((const char *)data->d_buf + name, "Go\0", sizeof("Go") + 1))
            return true;
    }
    return false;
}

/* Finds the first place, in what is mapped but not code, at which a table may begin. */
static int by_search(Elf *elf, const GElf_Phdr *head, struct go_table *ret, uint64_t *ret_address)
{
    uint64_t size = head->p_filesz;
    const unsigned char *bytes = part(elf, head->p_offset, &size);

    for (uint64_t at = 0; bytes && at + 16 <= size; at += 8) {
        /* The magic ends with three bytes of this, whose last bits alone tell versions apart. */
        if (bytes[at + 3] == 0xff && bytes[at + 2] == 0xff &&
            !go_table_open(bytes + at, (size_t)(size - at), ret)) {
            *ret_address = head->p_vaddr + at;
            return 0;
        }
    }
    return -ENOENT;
}

static int find_table(Elf *elf, struct go_table *ret, uint64_t *ret_address)
{
    bool is_go = false;
    size_t count;
    GElf_Phdr head;

    if (!by_name(elf, ret, ret_address))
        return 0;
    /* Its sections are gone, or have other names. */
    if (elf_getphdrnum(elf, &count))
        return -ENOENT;
    for (size_t i = 0; i < count && !is_go; i++)
        is_go =
            gelf_getphdr(elf, (int)i, &head) && head.p_type == PT_NOTE && has_go_note(elf, &head);
    for (size_t i = 0; is_go && i < count; i++) {
        if (gelf_getphdr(elf, (int)i, &head) && head.p_type == PT_LOAD && !(head.p_flags & PF_X) &&
            !by_search(elf, &head, ret, ret_address))
            return 0;
    }
    return -ENOENT;
}

/* Finds what the loader puts into a word of a program that may be loaded at any address. */
static bool relocated(Elf *elf, uint64_t address, uint64_t *ret)
{
    Elf_Scn *section = NULL;

    while ((section = elf_nextscn(elf, section))) {
        uint64_t size;
        const unsigned char *bytes;
        GElf_Shdr head;

        if (!gelf_getshdr(section, &head) || head.sh_type != SHT_RELA)
            continue;
        size = head.sh_size;
        bytes = part(elf, head.sh_offset, &size);
        for (uint64_t at = 0; bytes && at + sizeof(Elf64_Rela) <= size; at += sizeof(Elf64_Rela)) {
            Elf64_Rela row;

            memcpy(&row, bytes + at, sizeof(row));
            if (row.r_offset == address && row.r_addend > 0) {
                *ret = (uint64_t)row.r_addend;
                return true;
            }
        }
    }
    return false;
}

static bool find_section(Elf *elf, const char *wanted, uint64_t *ret)
{
    Elf_Scn *section = NULL;

    while ((section = elf_nextscn(elf, section))) {
        GElf_Shdr head;
        const char *name;

        if (!gelf_getshdr(section, &head))
            continue;
        name = section_name(elf, &head);
        if (name && !strcmp(name, wanted)) {
            *ret = head.sh_addr;
            return true;
        }
    }
    return false;
}

/* From Go 1.26 on the table does not say where its code begins. It is at the beginning of all
 * code, unless another linker put its own code there: if none did, the program begins where a
 * function of the table does. */
static bool is_whole_text(Elf *elf, struct go_table *table)
{
    struct go_function first;
    GElf_Ehdr head;

    return gelf_getehdr(elf, &head) && find_section(elf, ".text", &table->text) &&
           go_table_find(table, head.e_entry, &first) && first.begin == head.e_entry &&
           strstr(first.name, "rt0_");
}

int go_program_table(Elf *elf, struct go_table *ret)
{
    struct go_table table;
    uint64_t address;

    if (find_table(elf, &table, &address))
        return -ENOENT;
    if (table.text_at && !table.text && !relocated(elf, address + table.text_at, &table.text) &&
        !is_whole_text(elf, &table))
        return -ENOENT;
    table.address = address;
    *ret = table;
    return 0;
}
