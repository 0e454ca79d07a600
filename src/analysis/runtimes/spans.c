/* SPDX-License-Identifier: BSD-2-Clause */
#include "spans.h"

#include <gelf.h>
#include <string.h>

#define NAME           "otel_thread_ctx_v1"
#define DESCRIPTOR     4096         /* bytes of a thread's that are searched */
#define STACK_MOST     (1u << 20)   /* bytes above the stack pointer that are searched for it */
#define RING_MOST      65536        /* threads of musl's rings that are looked at in all */
#define MODULES_MOST   65536        /* blocks of a thread */
#define STATIC_MOST    (1ull << 20) /* offsets of variables that need no block; code lies above */
#define RELOCATED_MOST (1u << 20)
#define SECTIONS_MOST  16 /* of a kind; linkers make two */

#if defined(__x86_64__)
enum { DESC = R_X86_64_TLSDESC, MODULE = R_X86_64_DTPMOD64, OFFSET = R_X86_64_TPOFF64 };
#define BLOCKS_AT 8 /* of the thread pointer: where the table of blocks is */
#else               /* arm64 */
enum { DESC = R_AARCH64_TLSDESC, MODULE = R_AARCH64_TLS_DTPMOD, OFFSET = R_AARCH64_TLS_TPREL };
#define BLOCKS_AT 0
#endif

/* ---- files ---- */

struct file {
    Elf *elf;
    uint64_t bias;
    GElf_Phdr tls;
    bool has_tls, is_program;
};

/* Returns the next section of a type behind another; NULL: there is none. */
static Elf_Scn *next_of(Elf *elf, Elf_Scn *section, GElf_Word type, GElf_Shdr *ret)
{
    while ((section = elf_nextscn(elf, section))) {
        if (gelf_getshdr(section, ret) && ret->sh_type == type)
            return section;
    }
    return NULL;
}

static size_t count_of(const Elf_Data *data, const GElf_Shdr *head)
{
    return data && head->sh_entsize ? (size_t)((uint64_t)data->d_size / head->sh_entsize) : 0;
}

/* Whether its dynamic section says that it is a program. */
static bool is_pie(const struct file *f)
{
    GElf_Shdr head;
    Elf_Scn *section = next_of(f->elf, NULL, SHT_DYNAMIC, &head);
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    size_t count = count_of(data, &head);

    for (size_t i = 0; i < count && i <= INT32_MAX; i++) {
        GElf_Dyn entry;

        if (gelf_getdyn(data, (int)i, &entry) && entry.d_tag == DT_FLAGS_1)
            return entry.d_un.d_val & DF_1_PIE;
    }
    return false;
}

static void look_at_head(struct file *f)
{
    size_t count = 0;
    GElf_Ehdr head;

    f->is_program = gelf_getehdr(f->elf, &head) && head.e_type == ET_EXEC;
    if (elf_getphdrnum(f->elf, &count))
        return;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr part;

        if (!gelf_getphdr(f->elf, (int)i, &part))
            return;
        if (part.p_type == PT_TLS) {
            f->tls = part;
            f->has_tls = true;
        }
        f->is_program |= part.p_type == PT_INTERP;
    }
    f->is_program = f->is_program || is_pie(f);
}

/* Finds the variable in a table of symbols. Returns its number; 0: it is not there. */
static size_t find_symbol(const struct file *f, GElf_Word type, GElf_Sym *ret)
{
    GElf_Shdr head;
    Elf_Scn *section = next_of(f->elf, NULL, type, &head);
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    size_t count = count_of(data, &head);

    for (size_t i = 1; i < count && i <= INT32_MAX; i++) {
        const char *name;

        if (!gelf_getsym(data, (int)i, ret))
            break;
        if (ret->st_shndx == SHN_UNDEF || GELF_ST_TYPE(ret->st_info) != STT_TLS)
            continue;
        name = elf_strptr(f->elf, head.sh_link, ret->st_name);
        if (name && !strcmp(name, NAME))
            return i;
    }
    return 0;
}

/* Returns where a program's variables are: at a fixed distance from the thread pointer, below it
 * (x86-64) or above it and two words (arm64), as its linker aligned them. */
static uint64_t program_offset(const struct file *f, uint64_t value)
{
    uint64_t mask = f->tls.p_align ? f->tls.p_align - 1 : 0;

#if defined(__x86_64__)
    return value - f->tls.p_memsz - ((0 - f->tls.p_vaddr - f->tls.p_memsz) & mask);
#else
    return value + 16 + ((f->tls.p_vaddr - 16) & mask);
#endif
}

/* Whether a relocation is of the variable, by its number, or by its offset without a symbol. */
static bool relocates(const GElf_Rela *row, size_t number, uint64_t value)
{
    uint64_t symbol = GELF_R_SYM(row->r_info);

    return symbol == number ||
           (!symbol && (GELF_R_TYPE(row->r_info) == MODULE || (uint64_t)row->r_addend == value));
}

static bool find_relocation(const struct file *f, size_t number, uint64_t value,
                            struct span_place *ret)
{
    size_t sections = 0, looked = 0;
    Elf_Scn *section = NULL;
    GElf_Shdr head;

    while (sections++ < SECTIONS_MOST && (section = next_of(f->elf, section, SHT_RELA, &head))) {
        Elf_Data *data = elf_getdata(section, NULL);
        size_t count = count_of(data, &head);

        for (size_t i = 0; i < count && looked++ < RELOCATED_MOST; i++) {
            GElf_Rela row;
            uint32_t type;

            if (!gelf_getrela(data, (int)i, &row))
                break;
            type = (uint32_t)GELF_R_TYPE(row.r_info);
            if ((type != DESC && type != MODULE && type != OFFSET) ||
                !relocates(&row, number, value))
                continue;
            ret->way = type == DESC     ? SPAN_DESC_AT
                       : type == MODULE ? SPAN_MODULE_AT
                                        : SPAN_OFFSET_AT;
            ret->at = row.r_offset + f->bias;
            ret->value = value;
            return true;
        }
    }
    return false;
}

void spans_add(struct span_places *places, Elf *elf, uint64_t bias)
{
    struct file f = {.elf = elf, .bias = bias};
    struct span_place place;
    GElf_Sym symbol;
    size_t number;

    if (places->count >= SPAN_PLACES)
        return;
    look_at_head(&f);
    if (!f.has_tls)
        return;
    number = find_symbol(&f, SHT_DYNSYM, &symbol);
    /* A static program has no table of what it exports. */
    if (!number && f.is_program && find_symbol(&f, SHT_SYMTAB, &symbol))
        number = SIZE_MAX;
    if (!number)
        return;
    if (f.is_program)
        place = (struct span_place){SPAN_OFFSET, program_offset(&f, symbol.st_value), 0};
    else if (!find_relocation(&f, number, symbol.st_value, &place))
        return;
    places->rows[places->count++] = place;
}

/* ---- threads ---- */

struct reader {
    struct memory *memory;
    uint64_t tp;
    bool musl;
    unsigned ring; /* threads of rings that were looked at */
};

#if defined(__x86_64__)
/* musl's struct pthread: itself, its blocks, the threads before and after it, ..., its number. */
static bool is_musl_thread(struct memory *m, uint64_t at, int32_t *ret_tid)
{
    uint64_t words[7];

    if (at % 8 || !memory_bytes(m, at, words, sizeof(words)) || words[0] != at || !words[3])
        return false;
    *ret_tid = (int32_t)words[6];
    return *ret_tid > 0;
}

static bool find_in_ring(struct reader *r, uint64_t at, int32_t tid)
{
    uint64_t first = at;
    int32_t number;

    while (r->ring++ < RING_MOST && is_musl_thread(r->memory, at, &number)) {
        if (number == tid) {
            r->tp = at;
            r->musl = true;
            return true;
        }
        if (!memory_word(r->memory, at + 24, &at) || at == first)
            break;
    }
    return false;
}

/* glibc's tcbhead_t: itself, its blocks, itself, then whether there are several threads. */
static bool find_by_list(struct reader *r, const struct span_thread *thread)
{
    uint64_t words[4];

    for (uint64_t at = (thread->robust & ~7ull) - 8; at && thread->robust - at <= DESCRIPTOR;
         at -= 8) {
        if (memory_bytes(r->memory, at, words, sizeof(words)) && words[0] == at && words[2] == at &&
            words[3] >> 32 == 0) {
            r->tp = at;
            return true;
        }
    }
    return false;
}

/* musl's descriptor lies above the thread's own stack; the first thread's lies elsewhere, and what
 * points to it may be on its stack. */
static bool find_by_stack(struct reader *r, const struct span_thread *thread)
{
    uint64_t begin = thread->sp & ~7ull, word;
    int32_t tid;

    for (uint64_t at = begin; at - begin < STACK_MOST && r->ring < RING_MOST; at += 8) {
        if (!memory_word(r->memory, at, &word))
            return false;
        if (word > 4096 && word % 8 == 0 && is_musl_thread(r->memory, word, &tid) &&
            find_in_ring(r, word, thread->tid))
            return true;
    }
    return false;
}

static bool find_thread(struct reader *r, const struct span_thread *thread)
{
    return thread->robust ? find_by_list(r, thread) : find_by_stack(r, thread);
}
#else
/* glibc's descriptor ends at the thread pointer, where the table of blocks is pointed to: in that,
 * the program's or C library's own block lies right behind the thread pointer. */
static bool find_thread(struct reader *r, const struct span_thread *thread)
{
    uint64_t begin = thread->robust & ~15ull, table, count, block;

    for (uint64_t at = begin + 16; thread->robust && at - begin <= DESCRIPTOR; at += 16) {
        if (!memory_word(r->memory, at, &table) || !table ||
            !memory_word(r->memory, table - 16, &count) || !count || count > MODULES_MOST ||
            !memory_word(r->memory, table + 16, &block))
            continue;
        if (block - at >= 16 && block - at < DESCRIPTOR) {
            r->tp = at;
            return true;
        }
    }
    return false;
}
#endif

/* Finds a variable in a thread's block for a library. False: the thread has none yet, which it gets
 * with its first use: *ret is 0 then, or it could not be read. */
static bool find_in_block(const struct reader *r, uint64_t module, uint64_t offset, uint64_t *ret)
{
    uint64_t table, count, block;

    *ret = 0;
    if (!module || module > MODULES_MOST || !memory_word(r->memory, r->tp + BLOCKS_AT, &table) ||
        !memory_word(r->memory, r->musl ? table : table - 16, &count))
        return false;
    if (module > count || count > MODULES_MOST)
        return true;
    if (!memory_word(r->memory, table + module * (r->musl ? 8 : 16), &block))
        return false;
    *ret = block && block != UINT64_MAX ? block + offset : 0;
    return true;
}

/* Finds the thread's variable. *ret 0: it has none yet. */
static bool find_variable(const struct reader *r, const struct span_place *place, uint64_t *ret)
{
    uint64_t word, module, offset;

    *ret = r->tp + place->at;
    if (place->way == SPAN_OFFSET)
        return true;
    if (!memory_word(r->memory, place->way == SPAN_DESC_AT ? place->at + 8 : place->at, &word))
        return false;
    if (place->way == SPAN_MODULE_AT)
        return find_in_block(r, word, place->value, ret);
    *ret = r->tp + word;
    if (place->way == SPAN_OFFSET_AT || word + STATIC_MOST < 2 * STATIC_MOST)
        return true;
    return memory_word(r->memory, word, &module) && memory_word(r->memory, word + 8, &offset) &&
           find_in_block(r, module, offset, ret);
}

static bool is_zero(const unsigned char *bytes, size_t size)
{
    while (size && !bytes[size - 1])
        size--;
    return !size;
}

void spans_decode(const unsigned char record[SPAN_RECORD], struct span_answer *ret)
{
    ret->state = SPAN_NONE;
    if (record[24] != 1 || is_zero(record, 16) || is_zero(record + 16, 8))
        return;
    memcpy(ret->trace_id, record, 16);
    memcpy(ret->span_id, record + 16, 8);
    ret->flags = record[25];
    ret->state = SPAN_THERE;
}

static void read_record(const struct reader *r, uint64_t variable, struct span_answer *ret)
{
    unsigned char record[SPAN_RECORD];
    uint64_t at = 0;

    ret->state = SPAN_UNREAD;
    if (variable && !memory_word(r->memory, variable, &at))
        return;
    if (!at)
        ret->state = SPAN_NONE;
    else if (at % 2 == 0 && memory_bytes(r->memory, at, record, sizeof(record)))
        spans_decode(record, ret);
}

void spans_read(const struct span_places *places, struct memory *memory,
                const struct span_thread *thread, struct span_answer *ret)
{
    struct reader r = {.memory = memory};
    uint64_t first = 0;
    bool found, same = true;

    *ret = (struct span_answer){.state = SPAN_UNPUBLISHED};
    if (!places->count)
        return;
    ret->state = SPAN_UNREAD;
    found = find_thread(&r, thread);
    for (uint32_t i = 0; found && i < places->count; i++) {
        struct span_answer answer = {.state = SPAN_UNREAD};
        uint64_t variable = 0;

        if (find_variable(&r, &places->rows[i], &variable))
            read_record(&r, variable, &answer);
        first = i ? first : variable;
        same = same && variable && variable == first;
        /* More than one may publish: that one counts which has a span. */
        if (answer.state > ret->state)
            *ret = answer;
    }
    ret->variable = found && same ? first : 0;
}
