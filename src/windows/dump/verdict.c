/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a bug check says in words, and which module most likely caused it: the first screen of an
 * analyst. All of it rests on the header, the exception record, the list of modules and a scan of
 * the crashing thread's stack; nothing is unwound. Filled once, when the dump is opened.
 */
#include "inside.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#include "sized.h"

#define BREAKPOINT       0x80000003u
#define ACCESS_VIOLATION 0xc0000005u
#define IN_PAGE_ERROR    0xc0000006u
#define MODULES_COUNTED  64 /* different modules of one stack */

static uint32_t bugcheck(const struct prcb_dump *d)
{
    return d->header.bugcheck_code & ~0x10000000u;
}

static int finding(struct prcb_dump *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int finding(struct prcb_dump *d, const char *format, ...)
{
    va_list args;
    int code;

    va_start(args, format);
    code = notes_put(&d->findings, format, args);
    va_end(args);
    return code;
}

/* ---- words ---- */

const char *prcb_dump_exception_name(uint32_t code)
{
    static const struct {
        uint32_t code;
        const char *name;
    } rows[] = {
        {0x80000001, "STATUS_GUARD_PAGE_VIOLATION"},
        {0x80000002, "STATUS_DATATYPE_MISALIGNMENT"},
        {BREAKPOINT, "STATUS_BREAKPOINT"},
        {0x80000004, "STATUS_SINGLE_STEP"},
        {ACCESS_VIOLATION, "STATUS_ACCESS_VIOLATION"},
        {IN_PAGE_ERROR, "STATUS_IN_PAGE_ERROR"},
        {0xc000001d, "STATUS_ILLEGAL_INSTRUCTION"},
        {0xc0000025, "STATUS_NONCONTINUABLE_EXCEPTION"},
        {0xc000008c, "STATUS_ARRAY_BOUNDS_EXCEEDED"},
        {0xc0000094, "STATUS_INTEGER_DIVIDE_BY_ZERO"},
        {0xc0000095, "STATUS_INTEGER_OVERFLOW"},
        {0xc0000096, "STATUS_PRIVILEGED_INSTRUCTION"},
        {0xc00000fd, "STATUS_STACK_OVERFLOW"},
        {0xc0000374, "STATUS_HEAP_CORRUPTION"},
        {0xc0000409, "STATUS_STACK_BUFFER_OVERRUN"},
        {0xc0000420, "STATUS_ASSERTION_FAILURE"},
        {0xe06d7363, "a C++ exception"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (rows[i].code == code)
            return rows[i].name;
    }
    return NULL;
}

static const struct {
    uint32_t code;
    unsigned int parameter;
    uint64_t value;
    const char *words;
} value_rows[] = {
#define W(code, parameter, value, words) {code, parameter, value, words},
#include "verdict.def"
#undef W
};

static int find_value(struct prcb_dump *d)
{
    for (size_t i = 0; i < ARRAY_SIZE(value_rows); i++) {
        if (value_rows[i].code == bugcheck(d) &&
            d->header.bugcheck_parameters[value_rows[i].parameter - 1] == value_rows[i].value)
            return finding(d, "%s", value_rows[i].words);
    }
    return 0;
}

/* Writes "driver.sys+0x10", or the address itself. */
static const char *place(const struct prcb_dump *d, uint64_t address, char *text, size_t size)
{
    if (prcb_dump_address_text(d, address, text, size))
        snprintf(text, size, "0x%llx", (unsigned long long)address);
    return text;
}

/* Says what a page fault tried: the numbers of 0x0A and 0xD1, and the bits of the processor's error
 * code that 0x50 has from Windows 10 1507 on. */
static const char *access_words(uint32_t code, uint64_t number)
{
    if (code == 0x50 ? number & 0x10 || number == 8 : number & 8)
        return "execute";
    return number & (code == 0x50 ? 3 : 1) ? "write to" : "read";
}

/* Code that touched an address that it may not touch: 0x0A, 0xD1 and 0x50. */
static int find_page_fault(struct prcb_dump *d)
{
    const uint64_t *p = d->header.bugcheck_parameters;
    uint32_t code = bugcheck(d);
    const char *irql;
    char text[128];

    if (code == 0x50 && p[0] == p[2])
        return finding(d, "a call or jump led to 0x%llx, where there is no code",
                       (unsigned long long)p[0]);
    if (code == 0x50)
        return finding(d, "%s tried to %s 0x%llx, which is not mapped or not allowed",
                       place(d, p[2], text, sizeof(text)), access_words(code, p[1]),
                       (unsigned long long)p[0]);
    if (code != 0x0a && code != 0xd1)
        return 0;
    irql = prcb_dump_irql_name(d, p[1] < 256 ? (unsigned int)p[1] : 256);
    return finding(d, "%s tried to %s 0x%llx at %s, where a page fault is not allowed",
                   place(d, p[3], text, sizeof(text)), access_words(code, p[2]),
                   (unsigned long long)p[0], irql ? irql : "a high IRQL");
}

/* ---- exceptions ---- */

struct exception {
    uint32_t code;
    uint64_t address;
    bool has_access; /* what it tried, and where */
    uint64_t access, target;
};

/* EXCEPTION_RECORD, of 32 or 64 bits, as far as it is needed. */
static bool load_record(const struct prcb_dump *d, uint64_t at, struct exception *ret)
{
    const struct memory *m = &d->memory;
    unsigned int p = m->pointer_size;
    uint64_t code, address, count;

    if (memory_load(m, at, 4, &code) || memory_pointer(m, at + 8 + p, &address) ||
        memory_load(m, at + 8 + 2 * p, 4, &count))
        return false;
    *ret = (struct exception){.code = (uint32_t)code, .address = address};
    ret->has_access = count >= 2 && !memory_pointer(m, at + 8 + 3 * p, &ret->access) &&
                      !memory_pointer(m, at + 8 + 4 * p, &ret->target);
    return true;
}

/* Where a bug check has its exception: in its parameters, in a record that one points to, or both.
 */
static const struct exception_row {
    uint32_t code;
    uint8_t number, address, access, record; /* parameters, from 1; 0: none */
} exception_rows[] = {
    {0x1e, 1, 2, 3, 0}, {0x3b, 1, 2, 0, 0},  {0x7e, 1, 2, 0, 3},
    {0x8e, 1, 2, 0, 0}, {0x139, 0, 0, 0, 3},
};

static bool find_exception(const struct prcb_dump *d, struct exception *ret)
{
    const uint64_t *p = d->header.bugcheck_parameters;

    for (size_t i = 0; i < ARRAY_SIZE(exception_rows); i++) {
        const struct exception_row *row = &exception_rows[i];

        if (row->code != bugcheck(d))
            continue;
        if (row->record && load_record(d, p[row->record - 1], ret) && ret->code)
            return true;
        if (!row->number)
            return false;
        *ret = (struct exception){.code = (uint32_t)p[row->number - 1],
                                  .address = p[row->address - 1]};
        if (row->access) {
            ret->has_access = true;
            ret->access = p[row->access - 1];
            ret->target = p[row->access];
        }
        return true;
    }
    return false;
}

static int tell_exception(struct prcb_dump *d, const struct exception *e)
{
    static const char *const tried[] = {"read of", "write to"};
    const char *name = prcb_dump_exception_name(e->code);
    char at[128], code[16], touched[64] = "";

    snprintf(code, sizeof(code), "0x%08x", e->code);
    if (e->has_access && (e->code == ACCESS_VIOLATION || e->code == IN_PAGE_ERROR) &&
        (e->access < ARRAY_SIZE(tried) || e->access == 8))
        snprintf(touched, sizeof(touched), ": %s 0x%llx",
                 e->access == 8 ? "execution of" : tried[e->access], (unsigned long long)e->target);
    return finding(d, "%s at %s%s", name ? name : code, place(d, e->address, at, sizeof(at)),
                   touched);
}

/* KeBugCheckEx itself stops at a breakpoint: that is not the cause. */
static bool is_own_breakpoint(const struct prcb_dump *d)
{
    return d->header.exception_code == BREAKPOINT && d->header.bugcheck_code;
}

/* ---- the culprit ---- */

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!strcasecmp(names[i], name))
            return true;
    }
    return false;
}

bool prcb_dump_is_inbox(const char *name)
{
    static const char *const names[] = {
#define I(name) name,
#include "inbox.def"
#undef I
    };

    return is_one_of(name, names, ARRAY_SIZE(names));
}

/* Whether it is the kernel or the HAL, through which every stack goes. */
static bool is_kernel(const char *name)
{
    static const char *const names[] = {"ntoskrnl.exe", "ntkrnlmp.exe", "ntkrnlpa.exe",
                                        "ntkrpamp.exe", "nt.exe",       "hal.dll"};

    return is_one_of(name, names, ARRAY_SIZE(names));
}

static void blame(struct prcb_dump *d, const struct module *m, const char *by)
{
    d->culprit = (struct culprit){.module = m, .by = by};
}

/* Parameters that are addresses of code: of the one responsible. */
static const struct {
    uint32_t code;
    uint8_t parameter;
} code_rows[] = {
    {0x0a, 4}, {0xd1, 4},  {0x50, 3},  {0xc5, 4}, {0xce, 4}, {0xd5, 3},
    {0xd6, 3}, {0x116, 2}, {0x117, 2}, {0xea, 3}, {0xfc, 1}, {0xbe, 3},
};

static void blame_by_parameter(struct prcb_dump *d)
{
    for (size_t i = 0; i < ARRAY_SIZE(code_rows); i++) {
        const struct module *m;

        if (code_rows[i].code != bugcheck(d))
            continue;
        m = module_of(d, d->header.bugcheck_parameters[code_rows[i].parameter - 1]);
        if (m && !is_kernel(m->name))
            blame(d, m, "the bug check names its code");
    }
}

/* Blames, for CLOCK_WATCHDOG_TIMEOUT, what the processor ran that did not answer. */
static void blame_by_processor(struct prcb_dump *d)
{
    for (size_t i = 0; bugcheck(d) == 0x101 && i < d->processor_count; i++) {
        const struct module *m =
            d->contexts[i].found_by ? module_of(d, d->contexts[i].values[0]) : NULL;

        if (d->processors[i].number == d->header.bugcheck_parameters[3] && m && !is_kernel(m->name))
            blame(d, m, "the processor that did not answer was in its code");
    }
}

/* Counts addresses on the stack, by module. */
struct count {
    struct prcb_dump *d;
    uint32_t all;
    size_t used;
    struct {
        const struct module *module;
        uint32_t count;
    } rows[MODULES_COUNTED];
};

static int count_frame(uint64_t address, uint64_t value, void *ctx)
{
    struct count *c = ctx;
    const struct module *m = module_of(c->d, value);
    size_t i;

    (void)address;
    c->all++;
    for (i = 0; i < c->used && c->rows[i].module != m; i++)
        ;
    if (i < c->used) {
        c->rows[i].count++;
    } else if (c->used < MODULES_COUNTED) {
        c->rows[c->used].module = m;
        c->rows[c->used++].count = 1;
    }
    return 0;
}

/* Blames the module with the most addresses on the stack: one that does not come with Windows, else
 * one of Windows' drivers. */
static void blame_by_stack(struct prcb_dump *d)
{
    struct count c = {.d = d};
    uint32_t best = 0;

    if (prcb_dump_stack_scan(d, count_frame, &c, NULL))
        return;
    for (unsigned int pass = 0; pass < 2 && !d->culprit.module && !best; pass++) {
        for (size_t i = 0; i < c.used; i++) {
            const char *name = c.rows[i].module->name;

            if (c.rows[i].count > best && !is_kernel(name) && (pass || !prcb_dump_is_inbox(name))) {
                best = c.rows[i].count;
                blame(d, c.rows[i].module, "its code is on the crashing thread's stack");
            }
        }
    }
    for (size_t i = 0; i < c.used; i++) {
        if (c.rows[i].module == d->culprit.module)
            d->culprit.frames = c.rows[i].count;
    }
    d->culprit.of_frames = c.all;
}

static void find_culprit(struct prcb_dump *d, const struct exception *e)
{
    const struct module *m;

    blame_by_parameter(d);
    blame_by_processor(d);
    m = e && !d->culprit.module ? module_of(d, e->address) : NULL;
    if (m && !is_kernel(m->name))
        blame(d, m, "the exception is in its code");
    blame_by_stack(d);
}

int dump_verdict_make(struct prcb_dump *d)
{
    struct exception e;
    bool has_exception = find_exception(d, &e);
    int code;

    if (!has_exception && d->header.exception_code && !is_own_breakpoint(d)) {
        e = (struct exception){.code = d->header.exception_code,
                               .address = d->header.exception_address};
        has_exception = true;
    }
    find_culprit(d, has_exception ? &e : NULL);
    code = find_value(d);
    if (!code)
        code = find_page_fault(d);
    if (!code && has_exception)
        code = tell_exception(d, &e);
    return code;
}

const char *prcb_dump_finding(const struct prcb_dump *d, size_t index)
{
    return index < d->findings.count ? d->findings.texts[index] : NULL;
}

int prcb_dump_culprit(const struct prcb_dump *d, struct prcb_dump_culprit *ret)
{
    struct prcb_dump_culprit culprit;

    if (!d->culprit.module)
        return -ENODATA;
    culprit = (struct prcb_dump_culprit){
        .module = d->culprit.module->name,
        .found_by = d->culprit.by,
        .frames = d->culprit.frames,
        .of_frames = d->culprit.of_frames,
        .is_unloaded = d->culprit.module->is_unloaded,
        .is_inbox = prcb_dump_is_inbox(d->culprit.module->name),
    };
    return sized_hand_out(&culprit, sizeof(culprit), ret);
}
