/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <elfutils/libdwfl.h>

#include "debug_match.h"
#include "go_program.h"
#include "rules.h"
#include "runtimes.h"
#include "spans.h"
#include "source_line.h"
#include "tasks.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

/* Whatever lies further above the stack pointer is not taken for a part of the stack. */
#define STACK_MOST (64u << 20)

/* libdw knows processes and threads; here both are the one frozen thread. */
#define THE_THREAD 1

#define GO_MOST 8 /* files of one process with Go's code */

#define CALLERS_MOST 4 /* of one function */

/* The places that call a function: the addresses that its calls return to. */
struct callers {
    uint64_t function; /* its first address; 0: of none yet */
    size_t count;
    uint64_t back[CALLERS_MOST];
};

/* A file with code of Go's compiler, which writes no call frame information that survives
 * stripping. */
struct go_code {
    Dwfl_Module *module;
    uint64_t bias; /* of addresses to those of the file */
    struct go_table table;
};

struct image {
    Dwfl *dwfl;
    struct go_code go[GO_MOST];
    size_t go_count;
    struct runtimes *runtimes; /* NULL: no memory for them */
    struct span_places spans;
    struct tasks *tasks; /* NULL: nobody has asked yet */
    struct rule *rules;  /* that are kept; NULL: none yet */
    struct image_debug debug;
    const struct frozen *frozen; /* during image_unwind */
    uint64_t fp, lr;             /* what it is tried with; 0: not known */
    uint64_t *frames;
    size_t count, room;
    bool beyond; /* something was wanted from behind the copy */
    bool in_go;  /* the last frame is of Go; then: */
    uint64_t go_sp, go_lr;
    bool elsewhere;         /* the stack goes on as another, which is not in the copy */
    struct callers callers; /* of the function that was asked for last */
    bool slow;              /* as of image_set_slow */
    bool used_fp;           /* the last unwinding used the register */
    size_t word_count;      /* above STACK_WORDS: more than these */
    struct stack_word words[STACK_WORDS];
};

/* ---- what libdw asks for ------------------------------------------------------------ */

static pid_t next_thread(Dwfl *dwfl, void *ctx, void **at)
{
    bool first = !*at;

    (void)dwfl;
    *at = ctx;
    return first ? THE_THREAD : 0;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *ctx, void **at)
{
    (void)dwfl;
    *at = ctx;
    return tid == THE_THREAD;
}

/* A return address may be signed (arm64's pointer authentication): in the bits above those of
 * addresses, of which the kernel decides how many there are. libdw reads a signed address as it
 * is: up to 0.188 always, later if nobody tells it the bits. */
#if defined(__aarch64__)
static uint64_t without_signature(struct image *image, uint64_t word)
{
    register uint64_t x30 __asm__("x30") = word;

    __asm__("hint #7" : "+r"(x30)); /* xpaclri, nothing where a processor has no signatures */
    return x30 != word && dwfl_addrmodule(image->dwfl, x30) ? x30 : word;
}
#else
static uint64_t without_signature(struct image *image, uint64_t word)
{
    return word;
}
#endif

static bool read_copy(struct image *image, uint64_t address, uint64_t *ret)
{
    const struct frozen *frozen = image->frozen;
    uint64_t at = address - frozen->low, word;

    if (address < frozen->low || at >= frozen->length || frozen->length - at < sizeof(word)) {
        image->beyond = image->beyond || (address >= frozen->low && at < STACK_MOST);
        return false;
    }
    memcpy(&word, frozen->bytes + at, sizeof(word));
    if (image->word_count < STACK_WORDS)
        image->words[image->word_count] = (struct stack_word){address, word};
    image->word_count += image->word_count <= STACK_WORDS;
    *ret = without_signature(image, word);
    return true;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret, void *ctx)
{
    uint64_t word;

    (void)dwfl;
    if (!read_copy(ctx, address, &word))
        return false;
    *ret = word;
    return true;
}

static bool set_register(Dwfl_Thread *thread, int number, uint64_t value)
{
    Dwarf_Word word = value;

    return !value || number < 0 || dwfl_thread_state_registers(thread, number, 1, &word);
}

static bool set_registers(Dwfl_Thread *thread, void *ctx)
{
    struct image *image = ctx;
    const struct frozen_registers *at = &image->frozen->at;

    if (image->frozen->registers) {
        Dwarf_Word words[REGISTERS];

        for (size_t i = 0; i < REGISTERS; i++)
            words[i] = (int)i == REGISTER_LR ? without_signature(image, image->frozen->registers[i])
                                             : image->frozen->registers[i];
        dwfl_thread_state_register_pc(thread, at->pc);
        /* The rules of linkage tables read it: on x86-64 it has a number of its own. */
        if (REGISTER_RETURN == REGISTERS && !set_register(thread, REGISTER_RETURN, at->pc))
            return false;
        return dwfl_thread_state_registers(thread, 0, REGISTERS, words);
    }
    if (!set_register(thread, REGISTER_SP, at->sp) ||
        !set_register(thread, REGISTER_FP, image->fp) ||
        !set_register(thread, REGISTER_LR, without_signature(image, image->lr)))
        return false;
    dwfl_thread_state_register_pc(thread, at->pc);
    return true;
}

/* ---- images ------------------------------------------------------------------------- */

static int find_debug(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                      const char *file, const char *link, GElf_Word crc, char **ret)
{
    const struct image *image = *data;
    const unsigned char *id;
    GElf_Addr address;
    int length = dwfl_module_build_id(module, &id, &address);

    if (!image || !image->debug.open || length <= 0)
        return -1;
    return debug_match(image->debug.open(image->debug.ctx, id, (size_t)length), id, (size_t)length);
}

static int find_no_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                       char **file, Elf **elf)
{
    return -1;
}

int image_open(const struct image_debug *debug, struct image **ret)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = find_no_elf,
        .find_debuginfo = find_debug,
        .section_address = dwfl_offline_section_address,
    };
    struct image *image = calloc(1, sizeof(*image));

    if (!image)
        return -ENOMEM;
    image->dwfl = dwfl_begin(&callbacks);
    if (!image->dwfl) {
        free(image);
        return -ENOMEM;
    }
    if (debug)
        image->debug = *debug;
    runtimes_open(&image->runtimes);
    dwfl_report_begin(image->dwfl);
    *ret = image;
    return 0;
}

void image_close(struct image *image)
{
    if (!image)
        return;
    dwfl_end(image->dwfl);
    runtimes_close(image->runtimes);
    tasks_close(image->tasks);
    free(image->rules);
    free(image);
}

/* The file must be for this processor, and not compressed: elfutils would unpack an image of any
 * size. */
static bool is_ours(int fd)
{
    Elf64_Ehdr head;

    return pread(fd, &head, sizeof(head), 0) == sizeof(head) &&
           !memcmp(head.e_ident, ELFMAG, SELFMAG) && head.e_ident[EI_CLASS] == ELFCLASS64 &&
           head.e_machine == MACHINE;
}

int image_add(struct image *image, const struct image_file *file)
{
    Dwfl_Module *module = NULL;
    void **data;

    /* libdw owns the descriptor if it takes the module. */
    if (is_ours(file->fd))
        module = dwfl_report_elf(image->dwfl, file->path, file->path, file->fd, file->start, false);
    if (!module) {
        close(file->fd);
        return -EINVAL;
    }
    dwfl_module_info(module, &data, NULL, NULL, NULL, NULL, NULL, NULL);
    *data = image;
    return 0;
}

static int find_go(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr start, void *ctx)
{
    struct image *image = ctx;
    struct go_code *go = &image->go[image->go_count];
    GElf_Addr bias = 0;
    Elf *elf = dwfl_module_getelf(module, &bias);

    if (elf && !go_program_table(elf, &go->table)) {
        go->module = module;
        go->bias = bias;
        image->go_count++;
    }
    return image->go_count < GO_MOST ? DWARF_CB_OK : DWARF_CB_ABORT;
}

static int find_runtimes(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr start,
                         void *ctx)
{
    struct image *image = ctx;
    GElf_Addr bias = 0;
    Elf *elf = dwfl_module_getelf(module, &bias);

    if (elf && image->runtimes)
        runtimes_add(image->runtimes, elf, bias, name);
    if (elf)
        spans_add(&image->spans, elf, bias);
    return DWARF_CB_OK;
}

int image_ready(struct image *image)
{
    static const Dwfl_Thread_Callbacks callbacks = {
        .next_thread = next_thread,
        .get_thread = get_thread,
        .memory_read = read_word,
        .set_initial_registers = set_registers,
    };

    if (dwfl_report_end(image->dwfl, NULL, NULL))
        return -ENOENT;
    dwfl_getmodules(image->dwfl, find_go, image, 0);
    dwfl_getmodules(image->dwfl, find_runtimes, image, 0);
    return dwfl_attach_state(image->dwfl, NULL, THE_THREAD, &callbacks, image) ? 0 : -ENOENT;
}

/* Finds the Go function that an address lies in. */
static const struct go_code *go_at(struct image *image, uint64_t address, struct go_function *ret)
{
    Dwfl_Module *module = image->go_count ? dwfl_addrmodule(image->dwfl, address) : NULL;

    for (size_t i = 0; module && i < image->go_count; i++) {
        const struct go_code *go = &image->go[i];

        if (go->module == module)
            return go_table_find(&go->table, address - go->bias, ret) ? go : NULL;
    }
    return NULL;
}

/* ---- unwinding ---------------------------------------------------------------------- */

/* 0: not known */
static uint64_t register_of(Dwfl_Frame *frame, int number)
{
    Dwarf_Word word = 0;

    return number < 0 || dwfl_frame_reg(frame, (unsigned)number, &word) ? 0 : word;
}

static int take_frame(Dwfl_Frame *frame, void *ctx)
{
    struct image *image = ctx;
    struct go_function function;
    Dwarf_Addr pc;
    bool exact;

    if (!dwfl_frame_pc(frame, &pc, &exact))
        return DWARF_CB_ABORT;
    if (!exact && image->count)
        pc--; /* a return address: the call lies before it */
    image->frames[image->count++] = pc;
    if (go_at(image, pc, &function)) {
        image->in_go = true;
        image->go_sp = register_of(frame, REGISTER_SP);
        image->go_lr = image->count == 1 ? register_of(frame, REGISTER_LR) : 0;
        return DWARF_CB_ABORT;
    }
    return image->count < image->room ? DWARF_CB_OK : DWARF_CB_ABORT;
}

/* Finds the call frame information of an address, and how far its own addresses are from that. */
static Dwarf_Frame *rules_at(struct image *image, uint64_t address, Dwarf_Addr *ret_bias)
{
    Dwfl_Module *module = dwfl_addrmodule(image->dwfl, address);
    Dwarf_CFI *cfi = module ? dwfl_module_eh_cfi(module, ret_bias) : NULL;
    Dwarf_Frame *rules = NULL;

    if (cfi && !dwarf_cfi_addrframe(cfi, address - *ret_bias, &rules))
        return rules;
    cfi = module ? dwfl_module_dwarf_cfi(module, ret_bias) : NULL;
    return cfi && !dwarf_cfi_addrframe(cfi, address - *ret_bias, &rules) ? rules : NULL;
}

/* libdw also takes a frame for the last if its rules need a register that is not known. The true
 * last frame has a rule that says so; code without rules was unwound by frame pointers. */
static bool is_last(struct image *image, uint64_t address)
{
    Dwarf_Addr bias;
    Dwarf_Frame *rules = rules_at(image, address, &bias);
    Dwarf_Op own[3], *ops = own;
    size_t count = 1;
    bool last = !rules || (!dwarf_frame_register(rules, REGISTER_RETURN, own, &ops, &count) &&
                           !count && ops == own);

    free(rules);
    return last;
}

/* ---- calls in code ------------------------------------------------------------------ */

enum call { CALL_NONE, CALL_SOME, CALL_THIS };

#if defined(__x86_64__)
#define CALL_BYTES 7
/* code: the bytes before the address to which a call would return. *ret: where the call goes;
 * false: nobody knows. */
static enum call call_before(const unsigned char *code, uint64_t back, uint64_t *ret)
{
    int32_t far;

    if (code[2] == 0xe8) { /* call rel32 */
        memcpy(&far, code + 3, sizeof(far));
        *ret = back + (uint64_t)(int64_t)far;
        return CALL_THIS;
    }
    for (int length = 2; length <= CALL_BYTES; length++) { /* call r/m64 */
        const unsigned char *at = code + CALL_BYTES - length;

        if (at[0] == 0xff && (at[1] & 0x38) == 0x10)
            return CALL_SOME;
    }
    return CALL_NONE;
}
#else
#define CALL_BYTES 4
static enum call call_before(const unsigned char *code, uint64_t back, uint64_t *ret)
{
    uint32_t word;

    memcpy(&word, code, sizeof(word));
    if (word >> 26 == 0x25) { /* bl */
        *ret = back - 4 + (uint64_t)((int64_t)(int32_t)(word << 6) >> 4);
        return CALL_THIS;
    }
    return (word & 0xfffffc1f) == 0xd63f0000 ? CALL_SOME : CALL_NONE; /* blr */
}
#endif

/* Finds the segment of code that an address lies in, as it is in its file. NULL: there is none. */
static const unsigned char *find_code(struct image *image, uint64_t address, uint64_t *ret_start,
                                      size_t *ret_length)
{
    Dwfl_Module *module = dwfl_addrmodule(image->dwfl, address);
    GElf_Addr bias = 0;
    Elf *elf = module ? dwfl_module_getelf(module, &bias) : NULL;
    size_t count = 0, bytes = 0;
    const char *raw = elf ? elf_rawfile(elf, &bytes) : NULL;

    if (!raw || elf_getphdrnum(elf, &count))
        return NULL;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr head;

        if (!gelf_getphdr(elf, (int)i, &head) || head.p_type != PT_LOAD || !(head.p_flags & PF_X) ||
            address - bias < head.p_vaddr || address - bias - head.p_vaddr >= head.p_filesz ||
            head.p_offset > bytes || bytes - head.p_offset < head.p_filesz)
            continue;
        *ret_start = head.p_vaddr + bias;
        *ret_length = head.p_filesz;
        return (const unsigned char *)raw + head.p_offset;
    }
    return NULL;
}

static bool read_code(struct image *image, uint64_t address, unsigned char *ret, size_t length)
{
    uint64_t start;
    size_t all;
    const unsigned char *code = find_code(image, address, &start, &all);

    if (!code || all - (address - start) < length)
        return false;
    memcpy(ret, code + (address - start), length);
    return true;
}

/* ---- Go ----------------------------------------------------------------------------- */

/* The functions at which Go's own unwinding ends. */
static const struct go_end {
    const char *name;
    bool switches; /* left another stack for this one; what called it is there */
} go_ends[] = {
    {"runtime.goexit", false}, /* of a goroutine */
    {"runtime.mstart", false}, /* of a thread */
    {"runtime.rt0_go", false},
    {"runtime.mcall", false}, /* of what a thread does between goroutines; comes back to none */
    {"runtime.systemstack", true},
    {"runtime.morestack", true},
    {"runtime.asmcgocall", true},
    {"runtime.cgocallback", true},
    {"runtime.cgocallback_gofunc", true},
    {"runtime.sigtramp", true},
    {"crosscall2", true},
};

static const struct go_end *go_end_of(const struct go_function *function)
{
    for (size_t i = 0; i < sizeof(go_ends) / sizeof(*go_ends); i++) {
        if (!strcmp(function->name, go_ends[i].name))
            return &go_ends[i];
    }
    return NULL;
}

/* Goes from a frame's stack pointer to the caller's, and reads the return address. */
static bool go_return(struct image *image, uint64_t depth, uint64_t *sp, uint64_t *ret)
{
#if defined(__x86_64__)
    uint64_t place = *sp + depth;

    *sp = place + sizeof(*ret);
    return read_copy(image, place, ret);
#else
    uint64_t place = *sp;

    *sp += depth;
    *ret = image->go_lr;
    image->go_lr = 0; /* the innermost function's alone */
    return depth ? read_copy(image, place, ret) : *ret != 0;
#endif
}

/* A goroutine's first function returns to where nothing has called it. */
static bool is_go_return(struct image *image, uint64_t back, const struct go_function *function)
{
    unsigned char code[CALL_BYTES];
    uint64_t to;

    return !strcmp(function->name, "runtime.goexit") ||
           (read_code(image, back - CALL_BYTES, code, sizeof(code)) &&
            call_before(code, back, &to) != CALL_NONE);
}

/* Unwinds from the last frame, which is Go's, by the table of Go's runtime. */
static enum stack_end unwind_go(struct image *image)
{
    uint64_t address = image->frames[image->count - 1], sp = image->go_sp, depth, back;
    struct go_function function;
    const struct go_code *go;
    const struct go_end *end;

    while ((go = go_at(image, address, &function))) {
        if (address != image->frames[image->count - 1]) {
            if (!is_go_return(image, address + 1, &function))
                return STACK_BROKEN;
            if (image->count == image->room)
                return STACK_DEEP;
            image->frames[image->count++] = address;
        }
        end = go_end_of(&function);
        image->elsewhere = end && end->switches;
        if (end)
            return end->switches ? STACK_BROKEN : STACK_COMPLETE;
        if (!go_table_depth(&go->table, &function, address - go->bias, &depth))
            return STACK_BROKEN;
        if (!go_return(image, depth, &sp, &back))
            return image->beyond ? STACK_SHORT : STACK_BROKEN;
        address = back - 1;
    }
    return STACK_BROKEN;
}

/* ---- by rules that are kept ----------------------------------------------------------- */

/* A frame that is being left. The frame pointer is read only where a rule needs it: elsewhere its
 * register has whatever the compiler puts there. */
struct leaving {
    uint64_t sp;
    uint64_t fp_place; /* where in memory the frame pointer is; 0: still in its register */
    bool knows_fp;
};

static const struct rule *rule_at(struct image *image, uint64_t address)
{
    struct rule *rule = rule_place_of(&image->rules, address);
    Dwarf_Frame *rules;
    Dwarf_Addr bias;

    if (!rule || rule->kind != RULE_NONE)
        return rule;
    rules = rules_at(image, address, &bias);
    rule_read(rules, rule);
    free(rules);
    return rule;
}

static bool take_fp(struct image *image, const struct leaving *at, uint64_t *ret)
{
    if (!at->knows_fp)
        return false;
    if (at->fp_place)
        return read_copy(image, at->fp_place, ret);
    image->used_fp = true;
    *ret = image->fp;
    return image->fp != 0;
}

/* Goes to the caller's frame. False: what its rule needs is not known, or not in the copy. */
static bool leave(struct image *image, const struct rule *rule, struct leaving *at, uint64_t *ret)
{
    bool innermost = image->count == 1;
    uint64_t frame = at->sp;

    if (rule->by_fp && !take_fp(image, at, &frame))
        return false;
    frame += (uint64_t)(int64_t)rule->frame;
    if (rule->back_at == RULE_SAVED) {
        if (!read_copy(image, frame + (uint64_t)(int64_t)rule->back, ret))
            return false;
    } else {
        *ret = innermost && REGISTER_LR >= 0 ? without_signature(image, image->lr) : 0;
    }
    if (rule->fp_at == RULE_SAVED)
        at->fp_place = frame + (uint64_t)(int64_t)rule->fp;
    at->knows_fp = rule->fp_at == RULE_SAVED || (rule->fp_at == RULE_SAME && at->knows_fp);
    at->sp = frame;
    return *ret != 0;
}

/* Unwinds as libdw would. False: it is for libdw to say where this leads. */
static bool unwind_by_rules(struct image *image, enum stack_end *ret)
{
    struct leaving at = {.sp = image->frozen->at.sp, .knows_fp = true};
    uint64_t address = image->frozen->at.pc, back = 0;
    const struct rule *rule;

    if (image->go_count || image->slow)
        return false;
    while ((rule = rule_at(image, address)) && rule->kind != RULE_OTHER) {
        image->frames[image->count++] = address;
        *ret = image->count == image->room ? STACK_DEEP : STACK_COMPLETE;
        if (*ret == STACK_DEEP || rule->kind == RULE_LAST)
            return true;
        if (!leave(image, rule, &at, &back)) {
            *ret = STACK_SHORT;
            return image->beyond;
        }
        address = back - 1; /* the call lies before it */
    }
    return false;
}

/* ---- all code ----------------------------------------------------------------------- */

static enum stack_end unwind_with(struct image *image, uint64_t fp)
{
    enum stack_end end;
    int result;

    image->fp = fp;
    image->count = 0;
    image->beyond = image->in_go = image->elsewhere = false;
    if (unwind_by_rules(image, &end))
        return end;
    image->count = 0;
    image->beyond = false;
    image->used_fp = true;
    result = dwfl_getthread_frames(image->dwfl, THE_THREAD, take_frame, image);
    if (!image->count)
        image->frames[image->count++] = image->frozen->at.pc;
    if (image->in_go)
        return unwind_go(image);
    return image->count == image->room ? STACK_DEEP
           /* libdw takes a return address that cannot be read for the stack's end. */
           : image->beyond                                              ? STACK_SHORT
           : !result && is_last(image, image->frames[image->count - 1]) ? STACK_COMPLETE
                                                                        : STACK_BROKEN;
}

/* ---- a frame pointer that is not known ------------------------------------------------ */

/* procfs tells no frame pointer. A function that finds its frame by the frame pointer, with no
 * inner function that has saved it, keeps the caller's frame pointer beside its return address:
 * on the stack, and the instruction before that address calls this function. A place is right
 * only if the rules of all callers then lead from there to the outermost. */

#define PLACES_MOST 256 /* that are tried */

static bool function_at(struct image *image, uint64_t address, uint64_t *ret_begin)
{
    Dwfl_Module *module = dwfl_addrmodule(image->dwfl, address);
    GElf_Off offset;
    GElf_Sym symbol;

    if (!module || !dwfl_module_addrinfo(module, address, &offset, &symbol, NULL, NULL, NULL))
        return false;
    *ret_begin = address - offset;
    return true;
}

/* Whether the function that address `inside` lies in may return to this address. */
static enum call calls(struct image *image, uint64_t back, uint64_t inside)
{
    unsigned char code[CALL_BYTES];
    uint64_t to = 0, begin = 0;
    enum call call;

    if (!read_code(image, back - CALL_BYTES, code, sizeof(code)))
        return CALL_NONE;
    call = call_before(code, back, &to);
    if (call != CALL_THIS)
        return call;
    if (function_at(image, inside, &begin) && begin == to)
        return CALL_THIS;
    /* The call may go through a linkage table, which has no symbols, or to a function whose own
     * symbol is stripped. */
    return dwfl_addrmodule(image->dwfl, to) && !(function_at(image, to, &begin) && begin == to)
               ? CALL_SOME
               : CALL_NONE;
}

/* Finds the lowest place that fits; a place whose call goes to this very function is preferred. */
static enum stack_end search(struct image *image)
{
    const struct frozen *frozen = image->frozen;
    uint64_t inside = image->frames[image->count - 1], chosen = 0;
    Dwarf_Addr bias;
    Dwarf_Frame *rules = rules_at(image, inside, &bias);
    int places = 0;

    free(rules);
    if (!rules)
        return STACK_BROKEN; /* it is not a register that is missing */
    for (size_t at = 0; at + 16 <= frozen->length && places < PLACES_MOST; at += 8) {
        uint64_t place = frozen->low + at, back;
        enum stack_end end;
        enum call call;

        memcpy(&back, frozen->bytes + at + 8, sizeof(back));
        back = without_signature(image, back);
        if (place < frozen->at.sp || !dwfl_addrmodule(image->dwfl, back))
            continue;
        call = calls(image, back, inside);
        if (call == CALL_NONE || (call == CALL_SOME && chosen))
            continue;
        places++;
        end = unwind_with(image, place);
        if (call == CALL_THIS && (end != STACK_BROKEN || image->elsewhere))
            return end;
        if (end == STACK_COMPLETE || image->elsewhere)
            chosen = place;
    }
    return unwind_with(image, chosen);
}

/* ---- a return address that is not known ----------------------------------------------- */

#if defined(__aarch64__)
/* Nor does procfs tell the register of the return address, which a function that calls no other
 * need not save: the C library makes its cancellable system calls in such a function (glibc from
 * 2.41 on; musl). If the function is local to a file, that file has all of its callers. A caller
 * is taken if it is the only one, or the only one by whose rules the stack leads to its end. */

/* Finds where a function of the file itself begins that has the return address in its register
 * all the way to this address; 0: there is no such function. */
static uint64_t leaf_at(struct image *image, uint64_t address)
{
    Dwarf_Addr bias = 0, start = 0, end;
    Dwarf_Frame *rules = rules_at(image, address, &bias);
    Dwarf_Op own[3], *ops = own;
    size_t count = 1;
    GElf_Sym symbol;
    GElf_Off offset;
    bool leaf;

    leaf = rules && !dwarf_frame_register(rules, REGISTER_RETURN, own, &ops, &count) && !count &&
           !ops && dwarf_frame_info(rules, &start, &end, NULL) >= 0;
    free(rules);
    if (!leaf)
        return 0;
    start += bias;
    return dwfl_module_addrinfo(dwfl_addrmodule(image->dwfl, start), start, &offset, &symbol, NULL,
                                NULL, NULL) &&
                   !offset && GELF_ST_BIND(symbol.st_info) != STB_LOCAL
               ? 0
               : start;
}

static void find_callers(struct image *image, uint64_t function, struct callers *ret)
{
    uint64_t start, to;
    size_t length;
    const unsigned char *code = find_code(image, function, &start, &length);

    *ret = (struct callers){.function = function};
    for (size_t at = 0; code && at + 4 <= length; at += 4) {
        uint64_t back = start + at + 4;
        uint32_t word;

        memcpy(&word, code + at, sizeof(word));
        if ((word & 0x7c000000) != 0x14000000) /* b, bl */
            continue;
        to = back - 4 + (uint64_t)((int64_t)(int32_t)(word << 6) >> 4);
        if (to != function)
            continue;
        if (!(word >> 31) || ret->count == CALLERS_MOST) { /* who called what jumps there? */
            ret->count = 0;
            return;
        }
        ret->back[ret->count++] = back;
    }
}

static enum stack_end search(struct image *image);

static bool leads_on(struct image *image, uint64_t lr, enum stack_end *ret)
{
    image->lr = lr;
    *ret = unwind_with(image, 0);
    if (*ret == STACK_BROKEN && !image->in_go && image->count > 1)
        *ret = search(image);
    return *ret != STACK_BROKEN || image->elsewhere;
}

/* False: it is not the return address that is missing, or nobody knows. */
static bool try_callers(struct image *image, enum stack_end *ret)
{
    uint64_t function = image->count == 1 && !image->lr ? leaf_at(image, image->frozen->at.pc) : 0;
    struct callers *callers = &image->callers;
    uint64_t chosen = 0;
    int fitting = 0;

    if (!function)
        return false;
    if (callers->function != function)
        find_callers(image, function, callers);
    for (size_t i = 0; i < callers->count; i++) {
        if (leads_on(image, callers->back[i], ret)) {
            chosen = callers->back[i];
            fitting++;
        }
    }
    if (callers->count != 1) {
        leads_on(image, fitting == 1 ? chosen : 0, ret);
    }
    return true;
}
#else
static bool try_callers(struct image *image, enum stack_end *ret)
{
    return false; /* they are on the stack */
}
#endif

size_t image_unwind(struct image *image, const struct frozen *frozen, uint64_t *frames, size_t room,
                    enum stack_end *ret_end)
{
    image->frozen = frozen;
    image->frames = frames;
    image->room = room;
    image->lr = frozen->at.lr;
    image->word_count = 0;
    image->used_fp = false;
    *ret_end = unwind_with(image, frozen->at.fp);
    if (*ret_end == STACK_BROKEN && !frozen->registers && !frozen->at.fp && !image->in_go) {
        if (!try_callers(image, ret_end))
            *ret_end = search(image);
        image->word_count = STACK_WORDS + 1;
    }
    image->frozen = NULL;
    return image->count;
}

void image_set_slow(struct image *image)
{
    image->slow = true;
}

const struct stack_word *image_words(const struct image *image, size_t *ret_count,
                                     bool *ret_used_fp)
{
    *ret_count = image->word_count;
    *ret_used_fp = image->used_fp;
    return image->word_count <= STACK_WORDS ? image->words : NULL;
}

struct tasks *image_tasks(struct image *image)
{
    const struct go_code *go = image->go;
    GElf_Addr bias = 0;

    if (!image->go_count)
        return NULL;
    if (!image->tasks &&
        tasks_open(dwfl_module_getelf(go->module, &bias), go->bias, &go->table, &image->tasks))
        image->tasks = NULL;
    return image->tasks;
}

struct runtimes *image_runtimes(struct image *image)
{
    return image->runtimes;
}

const struct span_places *image_spans(const struct image *image)
{
    return &image->spans;
}

void image_name(struct image *image, uint64_t address, char *ret, size_t size)
{
    Dwfl_Module *module = dwfl_addrmodule(image->dwfl, address);
    struct go_function function;
    const char *name = go_at(image, address, &function) ? function.name
                       : module                         ? dwfl_module_addrname(module, address)
                                                        : NULL;

    snprintf(ret, size, "%s", name ? name : "");
}

unsigned image_line(struct image *image, uint64_t address, char *ret, size_t size)
{
    Dwfl_Module *module = dwfl_addrmodule(image->dwfl, address);
    struct source_line line;

    if (!module || !source_line_of_function(module, address, &line))
        return 0;
    snprintf(ret, size, "%s", line.file);
    return (unsigned)line.number;
}
