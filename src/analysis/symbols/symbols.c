/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbols.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>

#include "array.h"
#include "debug_match.h"
#include "demangle.h"
#include "go_program.h"
#include "source_line.h"
#include "text.h"

#define NOTHING  "" /* name of a row that only ends the one before */
#define ROWS_MAX (1u << 23)

/* Where a module's separate debug information comes from. */
struct fetching {
    symbols_fetch_fn fetch;
    void *ctx;
};

/* A part of the file that is loaded: from offset in the file to address. */
struct segment {
    uint64_t offset, bytes, address;
};

struct symbols {
    struct symbol *rows; /* before they are complete: end is start where the size is not known */
    size_t count;
    struct segment *segments; /* none: places are addresses */
    size_t segment_count;
    char build_id[129]; /* hexadecimal; "": none */
    Dwfl *dwfl;         /* of an ELF file: its debug information is read when a line is asked for */
    Dwfl_Module *module;
    struct fetching fetching;
    bool variables; /* in place of functions */
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
    dwfl_end(symbols->dwfl);
    free(symbols);
}

/* bytes 0: not known, up to the next one. */
static int add(struct symbols *symbols, uint64_t start, uint64_t bytes, const char *name)
{
    char *copy;

    if (symbols->count == ROWS_MAX)
        return -E2BIG;
    copy = strndup(name, strcspn(name, "@")); /* a version: "@@GLIBC_2.2.5" */
    if (!copy ||
        array_append(symbols->rows, symbols->count,
                     (struct symbol){.start = start, .end = start + bytes, .name = copy})) {
        free(copy);
        return -ENOMEM;
    }
    return 0;
}

/* Orders by address; at one address the widest and then the plainest name comes first. */
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

    array_sort(symbols->rows, symbols->count, by_start);
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

/* Translates a place in the file to an address; false: nothing of it is loaded. */
static bool find_address(const struct symbols *symbols, uint64_t place, uint64_t *ret)
{
    for (size_t i = 0; i < symbols->segment_count; i++) {
        const struct segment *segment = &symbols->segments[i];

        if (place >= segment->offset && place - segment->offset < segment->bytes) {
            *ret = place - segment->offset + segment->address;
            return true;
        }
    }
    return false;
}

struct symbol *symbols_find(struct symbols *symbols, uint64_t place)
{
    size_t low;

    if (symbols->segment_count && !find_address(symbols, place, &place))
        return NULL;
    low = array_front(i, symbols->count, symbols->rows[i].start <= place);
    /* A short function may lie in a longer one's range: the nearest that still covers it. */
    for (size_t tries = 0; low && tries < 8; low--, tries++) {
        if (place < symbols->rows[low - 1].end)
            return *symbols->rows[low - 1].name ? &symbols->rows[low - 1] : NULL;
    }
    return NULL;
}

/* ---- ELF --------------------------------------------------------------------- */

/* elfutils would also read a compressed image, which may be of any size. */
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

/* Takes the whole file as mapped from its first page on, for variables need not lie in the file. */
static int read_base(struct symbols *symbols)
{
    const struct segment *first = &symbols->segments[0];

    *symbols->segments = (struct segment){0, UINT64_MAX, first->address - first->offset};
    symbols->segment_count = 1;
    return 0;
}

/* Bytes between functions do not belong to the function before them: sections end, and the
 * linker's jumps to other libraries have a section, but no names. */
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

static bool is_wanted(const struct symbols *symbols, const GElf_Sym *symbol)
{
    int type = GELF_ST_TYPE(symbol->st_info);

    if (symbol->st_shndx == SHN_UNDEF)
        return false;
    return symbols->variables ? type == STT_OBJECT && symbol->st_size
                              : type == STT_FUNC || type == STT_GNU_IFUNC;
}

static int read_module(struct symbols *symbols, Dwfl_Module *module)
{
    int count, result;

    /* elfutils leaves out compressed tables that do not fit and reports nothing: a failed
     * allocation shows it. */
    errno = 0;
    count = dwfl_module_getsymtab(module);
    result = errno == ENOMEM ? -ENOMEM : 0;
    for (int i = 0; i < count && !result; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        const char *name = dwfl_module_getsym_info(module, i, &symbol, &address, NULL, NULL, NULL);

        if (name && *name && is_wanted(symbols, &symbol))
            result = add(symbols, address, symbol.st_size, name);
    }
    return result;
}

/* Go programs have the names of their functions in a table of their own, even if they are
 * stripped. */
static int read_go(struct symbols *symbols, Elf *elf, uint64_t bias)
{
    struct go_function function;
    struct go_table table;
    int result = 0;

    if (go_program_table(elf, &table))
        return 0;
    for (size_t i = 0; i < table.count && !result; i++) {
        if (go_table_row(&table, i, &function) && *function.name)
            result =
                add(symbols, function.begin + bias, function.end - function.begin, function.name);
    }
    return result;
}

static void build_id_text(const unsigned char *bits, int length, char *ret, size_t size)
{
    size_t most = (size - 1) / 2, count = length > 0 ? (size_t)length : 0;

    text_hex(bits, count < most ? count : most, ret);
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

static int read_elf(struct symbols *symbols, int fd, const char *build_id)
{
    Dwfl *dwfl = symbols->dwfl;
    Dwfl_Module *module = NULL;
    const unsigned char *bits;
    GElf_Addr bias, address;
    void **userdata;
    int length, result;
    Elf *elf;

    dwfl_report_begin(dwfl);
    if (is_elf(fd))
        module = dwfl_report_offline(dwfl, "", "", fd); /* fd is its own now, if it takes it */
    dwfl_report_end(dwfl, NULL, NULL);
    elf = module ? dwfl_module_getelf(module, &bias) : NULL;
    if (!module)
        close(fd);
    if (!elf)
        return -EINVAL;
    if (!same_build(module, build_id))
        return -ESTALE;
    dwfl_module_info(module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
    *userdata = &symbols->fetching;
    symbols->module = module;
    length = dwfl_module_build_id(module, &bits, &address);
    build_id_text(bits, length, symbols->build_id, sizeof(symbols->build_id));
    result = read_segments(symbols, elf, bias);
    if (!result)
        result = symbols->variables ? read_base(symbols) : read_sections(symbols, elf, bias);
    if (!result && !symbols->variables)
        result = read_go(symbols, elf, bias);
    return result ? result : read_module(symbols, module);
}

/* The checksum of .gnu_debuglink: CRC-32 as zlib has it, four bits at a time. */
static uint32_t checksum(int fd)
{
    static const uint32_t steps[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                       0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                       0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                       0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    unsigned char bytes[65536];
    uint32_t sum = ~0u;
    off_t at = 0;
    ssize_t got;

    while ((got = pread(fd, bytes, sizeof(bytes), at)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            sum = steps[(sum ^ bytes[i]) & 15] ^ (sum >> 4);
            sum = steps[(sum ^ (bytes[i] >> 4)) & 15] ^ (sum >> 4);
        }
        at += got;
    }
    return ~sum;
}

/* Finds debug information by the build id, else by the name that the program gives. A path in
 * the program, or a place beside it, is no reason to open a file: it could be anybody's file. */
static int find_debug(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                      const char *file, const char *link, GElf_Word crc, char **ret)
{
    const struct fetching *fetching = *data;
    const unsigned char *bits;
    GElf_Addr address;
    char build_id[129];
    int fd = -1, length = dwfl_module_build_id(module, &bits, &address);

    if (!fetching || !fetching->fetch)
        return -1;
    build_id_text(bits, length, build_id, sizeof(build_id));
    if (*build_id)
        fd = debug_match(fetching->fetch(fetching->ctx, build_id, NULL), bits, (size_t)length);
    if (fd >= 0 || !link || strchr(link, '/'))
        return fd;
    fd = fetching->fetch(fetching->ctx, NULL, link);
    if (fd >= 0 && checksum(fd) != crc) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int open_elf(int fd, const char *build_id, bool variables, symbols_fetch_fn fetch, void *ctx,
                    struct symbols **ret)
{
    static const Dwfl_Callbacks callbacks = {
        .find_debuginfo = find_debug,
        .section_address = dwfl_offline_section_address,
    };
    struct symbols *symbols = make();
    int result = -ENOMEM;

    if (symbols) {
        symbols->variables = variables;
        symbols->fetching = (struct fetching){fetch, ctx};
        symbols->dwfl = dwfl_begin(&callbacks);
    }
    if (symbols && symbols->dwfl)
        result = read_elf(symbols, fd, build_id);
    else
        close(fd);
    if (!result)
        return finish(symbols, ret);
    symbols_close(symbols);
    return result;
}

int symbols_open_elf(int fd, const char *build_id, symbols_fetch_fn fetch, void *ctx,
                     struct symbols **ret)
{
    return open_elf(fd, build_id, false, fetch, ctx, ret);
}

int symbols_open_variables(int fd, symbols_fetch_fn fetch, void *ctx, struct symbols **ret)
{
    return open_elf(fd, "", true, fetch, ctx, ret);
}

/* ---- lines ------------------------------------------------------------------- */

/* Adds the linker's name of it, demangled. It contains none of our separators. */
static void add_name(Dwarf_Die *scope, char *to, size_t size)
{
    Dwarf_Attribute attribute;
    const char *name =
        dwarf_formstring(dwarf_attr_integrate(scope, DW_AT_linkage_name, &attribute));
    char demangled[DEMANGLED_MAX];
    size_t used = strlen(to);

    name = name ? demangle(name, demangled) : dwarf_diename(scope);
    snprintf(to + used, size - used, "%s%s", used ? " < " : "", name ? name : "[unknown]");
    for (char *at = to + used; *at; at++)
        *at = *at == '\t' || *at == '\n' ? '?' : *at;
}

/* Adds the functions at an address, innermost first; the last of them was compiled, the others
 * were inlined into it. */
static void find_functions(Dwarf_Die *unit, Dwarf_Addr address, char *inlined, char *function,
                           size_t size)
{
    Dwarf_Die *scopes = NULL;
    int count = dwarf_getscopes(unit, address, &scopes);
    Dwarf_Die *innermost = count > 0 ? &scopes[0] : NULL;
    Dwarf_Die *outer = NULL;
    int outer_count = innermost ? dwarf_getscopes_die(innermost, &outer) : 0;

    *inlined = *function = '\0';
    for (int i = 0; i < outer_count && !*function; i++) {
        int tag = dwarf_tag(&outer[i]);

        if (tag == DW_TAG_subprogram)
            add_name(&outer[i], function, size);
        else if (tag == DW_TAG_inlined_subroutine)
            add_name(&outer[i], inlined, size);
    }
    free(outer);
    free(scopes);
}

bool symbols_line(struct symbols *symbols, uint64_t place, char *ret, size_t size)
{
    char inlined[1024], function[1024];
    struct source_line line;
    Dwarf_Addr address;

    if (!symbols->module || !find_address(symbols, place, &address))
        return false;
    if (!source_line_find(symbols->module, address, &line) || strpbrk(line.file, "\t\n"))
        return false;
    find_functions(line.unit, address - line.bias, inlined, function, sizeof(inlined));
    return snprintf(ret, size, "%s\t%d\t%s\t%s", line.file, line.number, function, inlined) <
           (int)size;
}

const char *symbols_build_id(const struct symbols *symbols)
{
    return symbols->build_id;
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

/* Returns how much of the vdso is mapped; 0: it is not. */
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

/* A line is "ffffffff81000000 T name\t[module]": the module, if there, stays part of the name.
 * It is parsed by hand, as there are some 200,000 lines. */
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

/* A line is "7f0000001000 40 name with blanks", as compilers append it: a later row at an
 * address is about newer code. */
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

int symbols_open_kernel(struct symbols **ret)
{
    FILE *file = fopen("/proc/kallsyms", "re");
    int result = file ? read_list(file, read_kallsyms, ret) : -errno;

    if (file)
        fclose(file);
    return result;
}
