/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Layouts that the catalog does not have: a structure from rows of symbols, which are a file's and
 * not trusted. Rows are flat ("PerfActionDpc.DpcListEntry.Next"); here they become members again,
 * with nested structures below them.
 */
#include "array.h"
#include "error.h"
#include "layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prcb/dump.h>

#define NEST_MOST    4
#define MEMBERS_MOST 4096u /* of one structure; a KPRCB has some 700 */
#define LEAVES_MOST  65536u
#define SIZE_MOST    (1u << 24) /* bytes of one structure */

struct rows {
    struct prcb_dump_symbol *at; /* of one structure, by name, which `texts` holds */
    size_t count;
    char *texts;
    const char *structure;
    struct version_row version;
    unsigned int nearest;
    enum prcb_arch arch;
    struct prcb_error *err;
};

/* A structure within the rows: those whose names start with `prefix`. */
struct level {
    const char *prefix;
    size_t length, shown; /* of the prefix; from where on it is the member's name */
    uint32_t base, size;  /* where the structure starts in the outermost, its bytes */
    unsigned int depth;
    bool is_inner; /* of an unnamed structure: its members are the outer one's */
};

static int compare_names(const void *a, const void *b)
{
    const struct prcb_dump_symbol *x = a, *y = b;

    return strcmp(x->member, y->member);
}

/* The first row whose name does not sort before `name`. */
static size_t row_from(const struct rows *r, const char *name)
{
    return array_front(i, r->count, strcmp(r->at[i].member, name) < 0);
}

/* A row whose name is `name` and `more`, or goes on behind them: NULL if there is none. */
static const struct prcb_dump_symbol *row_behind(const struct rows *r, const char *name,
                                                 const char *more)
{
    char text[512];
    size_t i;

    if (snprintf(text, sizeof(text), "%s%s", name, more) >= (int)sizeof(text))
        return NULL;
    i = row_from(r, text);
    return i < r->count && !strncmp(r->at[i].member, text, strlen(text)) ? &r->at[i] : NULL;
}

static int add_members(struct prcb_layout *l, const struct rows *r, const struct level *level);

static int fail_row(const struct rows *r, const struct prcb_dump_symbol *row, const char *what)
{
    return prcb_fail(r->err, -EINVAL, "%s.%s: %s", r->structure, row->member, what);
}

static bool is_number(uint32_t size)
{
    return size == 1 || size == 2 || size == 4 || size == 8;
}

static bool is_unnamed(const char *type)
{
    return !*type || *type == '<' || !strncmp(type, "_type_", 6) || !strncmp(type, "_unnamed", 8) ||
           !strncmp(type, "unnamed", 7);
}

static const struct type_row *type_named(const char *name)
{
    for (int i = 0; i < T_COUNT; i++)
        if (catalog_types[i].class == TYPE_STRUCTURE && !strcmp(catalog_types[i].name, name))
            return &catalog_types[i];
    return NULL;
}

/* Takes a scalar: what its type's name says in the catalog counts for enumerations alone. */
static void take_scalar(const struct rows *r, const struct prcb_dump_symbol *row,
                        struct prcb_layout_field *f)
{
    const struct type_row *type = row->type ? type_named(row->type) : NULL;
    const struct size_row *size = type ? layout_find_size(type, r->nearest, r->arch) : NULL;

    f->type = row->type && *row->type ? row->type : "UCHAR";
    if (!is_number(row->size)) {
        f->kind = PRCB_LAYOUT_OPAQUE;
    } else if (row->is_pointer) {
        f->kind = PRCB_LAYOUT_POINTER;
        f->type = "VOID";
    } else if (size && size->kind == SIZE_ENUM && size->size == row->size && !row->bit_width) {
        f->kind = PRCB_LAYOUT_ENUM;
        f->enumeration = type->enums;
    } else {
        f->kind = row->is_signed ? PRCB_LAYOUT_SIGNED : PRCB_LAYOUT_UNSIGNED;
    }
}

/* ---- nested ones ---- */

static void init(struct prcb_layout *l, struct layout_own *own, const struct rows *r,
                 const char *name, uint32_t size)
{
    static const struct member_row no_members[1];
    static const struct enum_row no_enums[1];
    static const struct alias_row no_aliases[1];
    static const struct volatile_row no_volatiles[1];
    const struct type_row *known = type_named(name);

    own->version = r->version;
    own->size = (struct size_row){SIZE_STRUCT, ARCH_ANY, 0, V_LATEST, GRADE_SYMBOLS, size};
    own->type = (struct type_row){name,       TYPE_STRUCTURE, 0,          {0},         NULL,
                                  no_members, no_enums,       no_aliases, no_volatiles};
    if (known) {
        own->type.aliases = known->aliases;
        own->type.volatiles = known->volatiles;
    }
    l->own = own;
    l->type = &own->type;
    l->size = &own->size;
    l->grade = GRADE_SYMBOLS;
    l->version = r->nearest;
    l->arch = r->arch;
}

/* A structure of which the rows below `level` are the members. */
static int make(const struct rows *r, const char *name, const struct level *level,
                struct prcb_layout **ret)
{
    struct prcb_layout *l = calloc(1, sizeof(*l));
    struct layout_own *own = calloc(1, sizeof(*own));
    int code;

    if (!l || !own) {
        free(l);
        free(own);
        return prcb_fail(r->err, -ENOMEM, "out of memory");
    }
    init(l, own, r, name, level->size);
    code = add_members(l, r, level);
    if (!code)
        code = layout_finish(l, LEAVES_MOST, r->err);
    if (code)
        prcb_layout_close(l);
    else
        *ret = l;
    return code;
}

/* How many elements rows tell of: "NAME[0]...", "NAME[1]...", and so on. */
static uint32_t elements(const struct rows *r, const char *name, const char *behind)
{
    char index[32];
    uint32_t count = 0;

    do
        snprintf(index, sizeof(index), "[%u]%s", count, behind);
    while (row_behind(r, name, index) && ++count < MEMBERS_MOST);
    return count;
}

static int take_nested(const struct rows *r, const struct prcb_dump_symbol *row,
                       const struct level *outer, const char *behind, struct prcb_layout_field *f)
{
    char prefix[512];
    size_t length = (size_t)snprintf(prefix, sizeof(prefix), "%s%s", row->member, behind);
    const struct level level = {prefix,           length, length, row->offset, row->size / f->count,
                                outer->depth + 1, false};
    struct prcb_layout *nested;
    int code;

    if (length >= sizeof(prefix) || level.depth > NEST_MOST) {
        f->kind = PRCB_LAYOUT_OPAQUE;
        f->type = "UCHAR";
        return 0;
    }
    f->type = row->type && !is_unnamed(row->type) ? row->type : "UNNAMED";
    code = make(r, f->type, &level, &nested);
    if (code)
        return code;
    f->kind = PRCB_LAYOUT_NESTED;
    f->layout = nested;
    return 0;
}

/* An array, whose elements are structures or numbers; one of which the rows tell no elements is
 * bytes. */
static int take_array(const struct rows *r, const struct prcb_dump_symbol *row,
                      const struct level *level, struct prcb_layout_field *f)
{
    const struct prcb_dump_symbol *first = row_behind(r, row->member, "[0]");
    bool is_nested = row_behind(r, row->member, "[0].") != NULL;
    uint32_t count = elements(r, row->member, is_nested ? "." : "");

    f->kind = PRCB_LAYOUT_OPAQUE;
    f->type = "UCHAR";
    if (!first || !count || row->size % count)
        return 0;
    f->count = count;
    f->is_array = true;
    if (is_nested)
        return take_nested(r, row, level, "[0].", f);
    if (first->size * count != row->size) {
        f->count = 1;
        f->is_array = false;
    } else {
        take_scalar(r, first, f);
    }
    return 0;
}

/* ---- members ---- */

static int add_member(struct prcb_layout *l, const struct rows *r,
                      const struct prcb_dump_symbol *row, const struct level *level)
{
    struct prcb_layout_field f = {
        .name = row->member + level->shown,
        .offset = row->offset - level->base,
        .size = row->size,
        .count = 1,
        .bit_first = row->bit_first,
        .bit_width = row->bit_width,
        .is_inner = level->is_inner,
        .source = catalog_grade_names[GRADE_SYMBOLS],
    };
    bool is_inline = false;
    int code = 0;

    if (row->offset < level->base || (uint64_t)f.offset + row->size > level->size)
        return fail_row(r, row, "it lies outside its structure");
    if (row->bit_width && row->bit_first + row->bit_width > 8 * (uint64_t)row->size)
        return fail_row(r, row, "its bits lie outside its bytes");
    if (l->member_count >= MEMBERS_MOST)
        return prcb_fail(r->err, -E2BIG, "%s: more than %u members", r->structure, MEMBERS_MOST);
    if (row_behind(r, row->member, "["))
        code = take_array(r, row, level, &f);
    else if (!row_behind(r, row->member, "."))
        take_scalar(r, row, &f);
    else if (is_unnamed(row->type) && !level->is_inner)
        is_inline = true;
    else
        code = take_nested(r, row, level, ".", &f);
    if (code)
        return code;
    if (is_inline) {
        f.kind = PRCB_LAYOUT_INLINE;
        f.type = "STRUCT";
    }
    if (array_append(l->members, l->member_count, f)) {
        prcb_layout_close((struct prcb_layout *)f.layout);
        return prcb_fail(r->err, -ENOMEM, "out of memory");
    }
    return 0;
}

/* The members of an unnamed structure or union are the outer one's. */
static int add_inner(struct prcb_layout *l, const struct rows *r,
                     const struct prcb_dump_symbol *row, const struct level *level)
{
    char prefix[512];
    size_t length = (size_t)snprintf(prefix, sizeof(prefix), "%s.", row->member);
    const struct level inner = {prefix,      length,       level->shown, level->base,
                                level->size, level->depth, true};

    return length < sizeof(prefix) ? add_members(l, r, &inner) : 0;
}

static int add_members(struct prcb_layout *l, const struct rows *r, const struct level *level)
{
    for (size_t i = row_from(r, level->prefix);
         i < r->count && !strncmp(r->at[i].member, level->prefix, level->length); i++) {
        const struct prcb_dump_symbol *row = &r->at[i];
        const char *name = row->member + level->length;
        int code;

        if (!*name || strpbrk(name, ".[") || !row->size ||
            (i && !strcmp(row->member, r->at[i - 1].member)))
            continue;
        code = add_member(l, r, row, level);
        if (!code && l->members[l->member_count - 1].kind == PRCB_LAYOUT_INLINE)
            code = add_inner(l, r, row, level);
        if (code)
            return code;
    }
    return 0;
}

/* ---- rows ---- */

/* Takes the structure's rows with their texts: pointers into `texts` may be kept. */
static int take_rows(struct rows *r, const struct prcb_dump_symbol *rows, size_t count,
                     size_t row_size, uint32_t *ret_size)
{
    size_t bytes = 1;
    char *to;

    for (size_t pass = 0; pass < 2; pass++) {
        to = r->texts;
        for (size_t i = 0; i < count; i++) {
            struct prcb_dump_symbol row = {0};

            memcpy(&row, (const char *)rows + i * row_size,
                   row_size < sizeof(row) ? row_size : sizeof(row));
            row.type = row.type ? row.type : "";
            if (strcmp(row.structure, r->structure))
                continue;
            if (!*row.member)
                *ret_size = row.size;
            if (!pass) {
                bytes += strlen(row.member) + strlen(row.type) + 2;
                r->count++;
                continue;
            }
            r->at[r->count] = row;
            r->at[r->count].member = to;
            to = stpcpy(to, row.member) + 1;
            r->at[r->count++].type = to;
            to = stpcpy(to, row.type) + 1;
        }
        if (pass)
            break;
        r->at = calloc(r->count + 1, sizeof(*r->at));
        r->texts = malloc(bytes + strlen(r->structure) + strlen(r->version.name) + 2);
        if (!r->at || !r->texts)
            return prcb_fail(r->err, -ENOMEM, "out of memory");
        r->count = 0;
    }
    r->version.name = r->version.key = strcpy(to, r->version.name);
    r->structure = strcpy(to + strlen(to) + 1, r->structure);
    return 0;
}

static int take_version(struct rows *r, const char *text)
{
    uint32_t numbers[4] = {0};
    char note[PRCB_LAYOUT_NOTE];
    bool is_assumed;
    int code;

    r->nearest = V_LATEST;
    r->version = (struct version_row){
        .archs = (uint8_t)(1U << r->arch), .name = "symbols", .release = "the version is not said"};
    if (!text)
        return 0;
    code = layout_version_resolve(text, r->arch, &r->nearest, &is_assumed, note, r->err);

    if (code)
        return code;
    layout_parse_numbers(text, numbers);
    r->version = (struct version_row){(uint16_t)numbers[0],
                                      (uint16_t)numbers[1],
                                      numbers[2],
                                      numbers[3],
                                      (uint8_t)(1U << r->arch),
                                      false,
                                      text,
                                      text,
                                      "by symbols of your own"};
    return 0;
}

static int make_outermost(struct rows *r, uint32_t size, struct prcb_layout **ret)
{
    const struct level level = {.prefix = "", .size = size};
    struct prcb_layout *l;
    int code;

    if (!r->count)
        return prcb_fail(r->err, -ENOENT, "the symbols have no %s", r->structure);
    if (!size || size > SIZE_MOST)
        return prcb_fail(r->err, -EINVAL, "%s has 0x%x bytes: not a kernel's", r->structure, size);
    code = make(r, r->structure, &level, &l);
    if (code)
        return code;
    l->own->texts = r->texts;
    r->texts = NULL;
    *ret = l;
    return 0;
}

int prcb_layout_from_symbols(const char *structure, const char *version, enum prcb_arch arch,
                             const struct prcb_dump_symbol *rows, size_t count, size_t row_size,
                             struct prcb_layout **ret, struct prcb_error *err)
{
    struct rows r = {.structure = structure, .arch = arch, .err = err};
    uint32_t size = 0;
    int code = take_version(&r, version);

    while (*r.structure == '_')
        r.structure++;
    if (!code)
        code = take_rows(&r, rows, count, row_size, &size);
    if (!code) {
        array_sort(r.at, r.count, compare_names);
        code = make_outermost(&r, size, ret);
    }
    free(r.at);
    free(r.texts);
    return code;
}
