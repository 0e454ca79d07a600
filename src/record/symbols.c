/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbols.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elfutils/libdwfl.h>
#include <gelf.h>

#define NOTHING  "" /* name of a row that only ends the one before */
#define ROWS_MAX (1u << 23)
#define LIST_MAX (1 << 30) /* bytes; anybody can write a list of any length */

/* A part of the file that is loaded: from offset in the file to address. */
struct segment {
    uint64_t offset, bytes, address;
};

struct symbols {
    struct symbol *rows; /* before they are complete: end is start where the size is not known */
    size_t count, room;
    struct segment *segments; /* none: places are addresses */
    size_t segment_count;
};

static struct symbols *make(void)
{
    return calloc(1, sizeof(struct symbols));
}

void symbols_close(struct symbols *symbols)
{
    if (!symbols)
        return;
    for (size_t i = 0; i < symbols->count; i++)
        free(symbols->rows[i].name);
    free(symbols->rows);
    free(symbols->segments);
    free(symbols);
}

/* bytes 0: not known, up to the next one. */
static int add(struct symbols *symbols, uint64_t start, uint64_t bytes, const char *name)
{
    char *copy;

    if (symbols->count == ROWS_MAX)
        return -E2BIG;
    if (symbols->count == symbols->room) {
        size_t room = symbols->room ? 2 * symbols->room : 256;
        struct symbol *grown = realloc(symbols->rows, room * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        symbols->rows = grown;
        symbols->room = room;
    }
    copy = strdup(name);
    if (!copy)
        return -ENOMEM;
    symbols->rows[symbols->count++] =
        (struct symbol){.start = start, .end = start + bytes, .name = copy};
    return 0;
}

/* By address; of several at one place the widest and then the plainest name first. */
static int by_start(const void *left, const void *right)
{
    const struct symbol *a = left, *b = right;
    size_t a_marks = strspn(a->name, "_"), b_marks = strspn(b->name, "_");

    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (!*a->name != !*b->name)
        return *a->name ? -1 : 1;
    if (a->end != b->end)
        return a->end > b->end ? -1 : 1;
    if (a_marks != b_marks)
        return a_marks < b_marks ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Orders the rows, drops all but the first of those at one address, and ends those whose
 * size is not known at the next. */
static int finish(struct symbols *symbols, struct symbols **ret)
{
    size_t kept = 0;

    if (symbols->count)
        qsort(symbols->rows, symbols->count, sizeof(*symbols->rows), by_start);
    for (size_t i = 0; i < symbols->count; i++) {
        if (kept && symbols->rows[kept - 1].start == symbols->rows[i].start)
            free(symbols->rows[i].name);
        else
            symbols->rows[kept++] = symbols->rows[i];
    }
    symbols->count = kept;
    for (size_t i = 0; i < kept; i++) {
        if (symbols->rows[i].end == symbols->rows[i].start)
            symbols->rows[i].end = i + 1 < kept ? symbols->rows[i + 1].start : UINT64_MAX;
    }
    *ret = symbols;
    return 0;
}

struct symbol *symbols_find(struct symbols *symbols, uint64_t place)
{
    size_t low = 0, high = symbols->count;

    for (size_t i = 0; i < symbols->segment_count; i++) {
        const struct segment *segment = &symbols->segments[i];

        if (place >= segment->offset && place - segment->offset < segment->bytes) {
            place = place - segment->offset + segment->address;
            break;
        }
        if (i + 1 == symbols->segment_count)
            return NULL;
    }
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (symbols->rows[middle].start <= place)
            low = middle + 1;
        else
            high = middle;
    }
    /* A short function may lie in a longer one's range: the nearest that still covers it. */
    for (size_t tries = 0; low && tries < 8; low--, tries++) {
        if (place < symbols->rows[low - 1].end)
            return *symbols->rows[low - 1].name ? &symbols->rows[low - 1] : NULL;
    }
    return NULL;
}

/* A plain file; -errno else. What a recorded program named may be a pipe by now, at which an
 * open would wait. */
static int open_plain(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), result;
    struct stat about;

    if (fd < 0)
        return -errno;
    result = fstat(fd, &about) ? -errno : S_ISREG(about.st_mode) ? 0 : -EINVAL;
    if (!result)
        return fd;
    close(fd);
    return result;
}

/* ---- ELF --------------------------------------------------------------------- */

/* What else elfutils would read: an image that is compressed, which may be of any size. */
static bool is_elf(int fd)
{
    char magic[SELFMAG];

    return pread(fd, magic, SELFMAG, 0) == SELFMAG && !memcmp(magic, ELFMAG, SELFMAG);
}

static int read_segments(struct symbols *symbols, Elf *elf, uint64_t bias)
{
    size_t count;

    if (elf_getphdrnum(elf, &count))
        return -EINVAL;
    symbols->segments = calloc(count ? count : 1, sizeof(*symbols->segments));
    if (!symbols->segments)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr head;

        if (gelf_getphdr(elf, (int)i, &head) && head.p_type == PT_LOAD && head.p_filesz)
            symbols->segments[symbols->segment_count++] =
                (struct segment){head.p_offset, head.p_filesz, head.p_vaddr + bias};
    }
    return symbols->segment_count ? 0 : -EINVAL;
}

/* What lies between functions is not the one's before it: sections end, and the linker's
 * jumps to other libraries have a section, but no names. */
static int read_sections(struct symbols *symbols, Elf *elf, uint64_t bias)
{
    Elf_Scn *section = NULL;
    int result = 0;
    size_t names;

    if (elf_getshdrstrndx(elf, &names))
        return 0;
    while (!result && (section = elf_nextscn(elf, section))) {
        GElf_Shdr head;
        const char *name;

        if (!gelf_getshdr(section, &head) || !(head.sh_flags & SHF_EXECINSTR) || !head.sh_size)
            continue;
        name = elf_strptr(elf, names, head.sh_name);
        if (name && !strncmp(name, ".plt", 4))
            result = add(symbols, head.sh_addr + bias, head.sh_size, "[plt]");
        else
            result = add(symbols, head.sh_addr + head.sh_size + bias, 0, NOTHING);
    }
    return result;
}

static int read_module(struct symbols *symbols, Dwfl_Module *module)
{
    int count = dwfl_module_getsymtab(module), result = 0;

    for (int i = 0; i < count && !result; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        const char *name = dwfl_module_getsym_info(module, i, &symbol, &address, NULL, NULL, NULL);
        int type = GELF_ST_TYPE(symbol.st_info);

        if (name && *name && symbol.st_shndx != SHN_UNDEF &&
            (type == STT_FUNC || type == STT_GNU_IFUNC))
            result = add(symbols, address, symbol.st_size, name);
    }
    return result;
}

static void build_id_text(const unsigned char *bits, int length, char *ret, size_t size)
{
    *ret = '\0';
    for (int i = 0; i < length && 2 * (size_t)i + 2 < size; i++)
        snprintf(ret + 2 * i, 3, "%02x", bits[i]);
}

static bool same_build(Dwfl_Module *module, const char *build_id)
{
    const unsigned char *bits;
    GElf_Addr address;
    char text[129];
    int length;

    if (!build_id || !*build_id)
        return true;
    length = dwfl_module_build_id(module, &bits, &address);
    if (length <= 0)
        return true;
    build_id_text(bits, length, text, sizeof(text));
    return !strcmp(text, build_id);
}

static int read_elf(Dwfl *dwfl, const char *path, const char *build_id, struct symbols *symbols)
{
    int fd = open_plain(path);
    Dwfl_Module *module;
    GElf_Addr bias;
    int result;
    Elf *elf;

    if (fd < 0)
        return fd;
    if (!is_elf(fd)) {
        close(fd);
        return -EINVAL;
    }
    dwfl_report_begin(dwfl);
    module = dwfl_report_offline(dwfl, path, path, fd); /* fd is its own now, if it takes it */
    dwfl_report_end(dwfl, NULL, NULL);
    elf = module ? dwfl_module_getelf(module, &bias) : NULL;
    if (!module)
        close(fd);
    if (!elf)
        return -EINVAL;
    if (!same_build(module, build_id))
        return -ESTALE;
    result = read_segments(symbols, elf, bias);
    if (!result)
        result = read_sections(symbols, elf, bias);
    return result ? result : read_module(symbols, module);
}

/* Separate debug information, where it is installed. Beside a program it would be anybody's file,
 * a pipe for instance, at which elfutils waits; so would one that the program names by a path. */
static int find_installed(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                          const char *file, const char *link, GElf_Word crc, char **ret)
{
    if (link && strchr(link, '/'))
        link = NULL;
    return dwfl_standard_find_debuginfo(module, data, name, base, file, link, crc, ret);
}

int symbols_open_elf(const char *path, const char *build_id, struct symbols **ret)
{
    static char installed[] = "/usr/lib/debug", *folders = installed;
    static const Dwfl_Callbacks callbacks = {
        .find_debuginfo = find_installed,
        .debuginfo_path = &folders,
        .section_address = dwfl_offline_section_address,
    };
    struct symbols *symbols = make();
    Dwfl *dwfl = symbols ? dwfl_begin(&callbacks) : NULL;
    int result = dwfl ? read_elf(dwfl, path, build_id, symbols) : -ENOMEM;

    dwfl_end(dwfl);
    if (!result)
        return finish(symbols, ret);
    symbols_close(symbols);
    return result;
}

static int find_build_id(Elf *elf, char *ret, size_t size)
{
    Elf_Scn *section = NULL;

    while ((section = elf_nextscn(elf, section))) {
        GElf_Shdr head;
        Elf_Data *data;
        size_t at = 0, name, desc;
        GElf_Nhdr note;

        if (!gelf_getshdr(section, &head) || head.sh_type != SHT_NOTE)
            continue;
        data = elf_getdata(section, NULL);
        while (data && (at = gelf_getnote(data, at, &note, &name, &desc))) {
            if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
                memcmp((char *)data->d_buf + name, "GNU", 4))
                continue;
            build_id_text((unsigned char *)data->d_buf + desc, (int)note.n_descsz, ret, size);
            return 0;
        }
    }
    return -ENOENT;
}

int symbols_build_id(const char *path, char *ret, size_t size)
{
    int fd = open_plain(path), result;
    Elf *elf;

    if (fd < 0)
        return fd;
    elf_version(EV_CURRENT);
    elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    result = elf && elf_kind(elf) == ELF_K_ELF ? find_build_id(elf, ret, size) : -EINVAL;
    elf_end(elf);
    close(fd);
    return result;
}

static int read_dynsym(struct symbols *symbols, Elf *elf)
{
    Elf_Scn *section = NULL;
    int result = 0;

    while (!result && (section = elf_nextscn(elf, section))) {
        GElf_Shdr head;
        Elf_Data *data;
        GElf_Sym symbol;

        if (!gelf_getshdr(section, &head) || head.sh_type != SHT_DYNSYM)
            continue;
        data = elf_getdata(section, NULL);
        for (int i = 0; !result && data && gelf_getsym(data, i, &symbol); i++) {
            const char *name = elf_strptr(elf, head.sh_link, symbol.st_name);

            if (name && GELF_ST_TYPE(symbol.st_info) == STT_FUNC)
                result = add(symbols, symbol.st_value, symbol.st_size, name);
        }
    }
    return result;
}

/* How much of the vdso is mapped; 0: it is not. */
static size_t vdso_bytes(void)
{
    FILE *file = fopen("/proc/self/maps", "re");
    size_t bytes = 0;
    char line[512];

    if (!file)
        return 0;
    while (!bytes && fgets(line, sizeof(line), file)) {
        unsigned long long start, end;

        if (strstr(line, "[vdso]") && sscanf(line, "%llx-%llx", &start, &end) == 2)
            bytes = (size_t)(end - start);
    }
    fclose(file);
    return bytes;
}

int symbols_open_vdso(struct symbols **ret)
{
    char *image = (char *)getauxval(AT_SYSINFO_EHDR);
    size_t bytes = vdso_bytes();
    struct symbols *symbols = make();
    Elf *elf = NULL;
    int result = -ENOENT;

    elf_version(EV_CURRENT);
    if (symbols && image && bytes)
        elf = elf_memory(image, bytes);
    if (elf)
        result = read_segments(symbols, elf, 0);
    if (!result)
        result = read_dynsym(symbols, elf);
    elf_end(elf);
    if (!result)
        return finish(symbols, ret);
    symbols_close(symbols);
    return result;
}

/* ---- lists in text ------------------------------------------------------------- */

/* "ffffffff81000000 T name\t[module]": the last, if there, stays part of the name. By hand, as
 * there are some 200,000 of them. */
static int read_kallsyms(struct symbols *symbols, FILE *file)
{
    char line[1024];
    bool seen = false;
    int result = 0;

    while (!result && fgets(line, sizeof(line), file)) {
        uint64_t address;
        char *at, *tab;

        address = strtoull(line, &at, 16);
        if (at[0] != ' ' || !at[1] || !strchr("tTwW", at[1]) || at[2] != ' ')
            continue;
        at += 3;
        at[strcspn(at, "\n")] = '\0';
        tab = strchr(at, '\t');
        if (tab)
            *tab = ' ';
        seen = seen || address;
        result = add(symbols, address, 0, at);
    }
    return result ? result : seen ? 0 : -EPERM;
}

/* "7f0000001000 40 name with blanks", as compilers append it: a later row at an address is
 * about newer code. */
static int read_perf_map(struct symbols *symbols, FILE *file)
{
    char line[4096];
    int result = 0;

    while (!result && fgets(line, sizeof(line), file)) {
        uint64_t start, bytes;
        int name = 0;

        line[strcspn(line, "\r\n")] = '\0';
        if (sscanf(line, "%" SCNx64 " %" SCNx64 " %n", &start, &bytes, &name) == 2 && name &&
            line[name] && bytes && start + bytes > start)
            result = add(symbols, start, bytes, line + name);
    }
    return result;
}

static int read_list(FILE *file, int (*reader)(struct symbols *, FILE *), struct symbols **ret)
{
    struct symbols *symbols = make();
    int result = symbols ? reader(symbols, file) : -ENOMEM;

    if (!result)
        return finish(symbols, ret);
    symbols_close(symbols);
    return result;
}

int symbols_read_perf_map(FILE *file, struct symbols **ret)
{
    return read_list(file, read_perf_map, ret);
}

static int open_list(const char *path, int (*reader)(struct symbols *, FILE *),
                     struct symbols **ret)
{
    int fd = open_plain(path), result;
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    struct stat about;

    if (!file) {
        result = fd < 0 ? fd : -errno;
        if (fd >= 0)
            close(fd);
        return result;
    }
    if (fstat(fd, &about))
        result = -errno;
    else
        result = about.st_size > LIST_MAX ? -EFBIG : read_list(file, reader, ret);
    fclose(file);
    return result;
}

int symbols_open_kernel(struct symbols **ret)
{
    return open_list("/proc/kallsyms", read_kallsyms, ret);
}

int symbols_open_perf_map(pid_t pid, struct symbols **ret)
{
    char path[64];

    snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
    return open_list(path, read_perf_map, ret);
}
