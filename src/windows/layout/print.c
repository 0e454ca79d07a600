/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A layout as C text: the definition as the symbols have it, or a header for any compiler. Both
 * come from one walk; struct printer says which.
 *
 * A structure's members are taken in order of offset. Those that share bytes form a cluster, which
 * is an anonymous union; within it members are put into as few sequences ("lanes") as will do, and
 * a lane of several members is an anonymous structure.
 */
#include "layout.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

struct printer {
    FILE *out;
    bool header; /* fixed-width types and explicit padding */
    const struct prcb_layout *l;
    unsigned int depth;
};

typedef const struct prcb_layout_field *field_list[];

static uint32_t end_of(const struct prcb_layout_field *f)
{
    return f->offset + f->size;
}

static void indent(const struct printer *p)
{
    for (unsigned int i = 0; i < p->depth; i++)
        fputs("    ", p->out);
}

/* Prints "10.0.18362.295" as part of an identifier. */
static void print_version_suffix(const struct printer *p)
{
    fputc('_', p->out);
    for (const char *c = layout_version_row(p->l)->name; *c; c++)
        fputc(isalnum((unsigned char)*c) ? *c : '_', p->out);
    fprintf(p->out, "_%s", prcb_arch_name(p->l->arch));
}

/* ---- declarations ---- */

static const char *fixed_type(const struct prcb_layout_field *f)
{
    static const char *const unsigned_types[] = {"uint8_t", "uint16_t", "uint32_t", "uint64_t"};
    static const char *const signed_types[] = {"int8_t", "int16_t", "int32_t", "int64_t"};
    uint32_t size = f->size / f->count;
    unsigned int log = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;

    return (f->kind == PRCB_LAYOUT_SIGNED ? signed_types : unsigned_types)[log];
}

static const char *last_name(const struct prcb_layout_field *f)
{
    const char *dot = strrchr(f->name, '.');

    return dot ? dot + 1 : f->name;
}

static void print_dimensions(const struct printer *p, const struct prcb_layout_field *f)
{
    if (f->inner)
        fprintf(p->out, "[%u][%u]", f->count / f->inner, (unsigned int)f->inner);
    else if (f->is_array)
        fprintf(p->out, "[%u]", f->count);
    if (f->bit_width)
        fprintf(p->out, " : %u", (unsigned int)f->bit_width);
}

static void print_fixed(const struct printer *p, const struct prcb_layout_field *f)
{
    char type[64];

    prcb_layout_type_text(f, type, sizeof(type));
    if (f->kind == PRCB_LAYOUT_NESTED) {
        fprintf(p->out, "struct %s", f->type);
        print_version_suffix(p);
        fprintf(p->out, " %s", last_name(f));
        print_dimensions(p, f);
    } else if (f->kind == PRCB_LAYOUT_OPAQUE) {
        fprintf(p->out, "uint8_t %s[%u]", last_name(f), f->size);
    } else {
        fprintf(p->out, "%s %s", fixed_type(f), last_name(f));
        print_dimensions(p, f);
    }
    fprintf(p->out, "; /* 0x%03X %s */\n", f->offset, type);
}

static bool is_volatile(const struct printer *p, const struct prcb_layout_field *f)
{
    for (const struct volatile_row *v = p->l->type->volatiles; v->name; v++)
        if (!strcmp(v->name, f->name) && v->first <= p->l->version && p->l->version <= v->last)
            return true;
    return false;
}

/* A pointer is volatile itself, not what it points to. */
static void print_native(const struct printer *p, const struct prcb_layout_field *f)
{
    bool is_pointer = f->kind == PRCB_LAYOUT_POINTER && !f->is_function;
    const char *word = is_volatile(p, f) ? "volatile " : "";

    fprintf(p->out, "/* 0x%03X */ %s%s %s%s%s", f->offset, is_pointer ? "" : word, f->type,
            is_pointer ? "*" : "", is_pointer ? word : "", last_name(f));
    if (p->l->own && f->kind == PRCB_LAYOUT_OPAQUE)
        fprintf(p->out, "[%u]", f->size);
    else
        print_dimensions(p, f);
    fprintf(p->out, p->l->unread || strcmp(f->source, "inferred") ? ";\n" : "; /* inferred */\n");
}

static void print_field(const struct printer *p, const struct prcb_layout_field *f)
{
    indent(p);
    if (p->header)
        print_fixed(p, f);
    else
        print_native(p, f);
}

/* Bytes from `at` to `next` that have no name. */
static void print_gap(const struct printer *p, uint32_t at, uint32_t next)
{
    if (at >= next)
        return;
    if (p->header) {
        indent(p);
        fprintf(p->out, "uint8_t unnamed_%03X[%u];\n", at, next - at);
    } else if (prcb_layout_is_partial(p->l)) {
        indent(p);
        fprintf(p->out, "/* 0x%03X: 0x%X bytes not listed */\n", at, next - at);
    }
}

/* ---- unions ---- */

static bool same_unit(const struct prcb_layout_field *a, const struct prcb_layout_field *b)
{
    return a->bit_width && b->bit_width && a->offset == b->offset && a->size == b->size;
}

static void print_members(struct printer *p, const field_list f, size_t count, uint32_t at,
                          uint32_t end);

static void print_block(struct printer *p, const char *keyword, const field_list f, size_t count,
                        uint32_t at, uint32_t end, const char *name)
{
    indent(p);
    fprintf(p->out, "%s {\n", keyword);
    p->depth++;
    print_members(p, f, count, at, end);
    p->depth--;
    indent(p);
    fprintf(p->out, name ? "} %s;\n" : "};\n", name);
}

/* Takes the members of one lane out of `left`: returns how many went into `lane`. */
static size_t take_lane(const struct prcb_layout_field **left, size_t *count, field_list lane)
{
    size_t taken = 0, kept = 0;

    for (size_t i = 0; i < *count; i++) {
        const struct prcb_layout_field *last = taken ? lane[taken - 1] : NULL;

        if (!last || left[i]->offset >= end_of(last) || same_unit(left[i], last))
            lane[taken++] = left[i];
        else
            left[kept++] = left[i];
    }
    *count = kept;
    return taken;
}

/* Prints the lanes of members that share bytes, each a member or a structure. */
static void print_lanes(struct printer *p, const field_list f, size_t count, uint32_t at)
{
    const struct prcb_layout_field *left[count + 1], *lane[count + 1];
    size_t remaining = count;

    memcpy(left, f, count * sizeof(left[0]));
    while (remaining) {
        size_t taken = take_lane(left, &remaining, lane);

        if (taken == 1 && !lane[0]->bit_width && lane[0]->offset == at)
            print_members(p, lane, 1, at, end_of(lane[0]));
        else
            print_block(p, "struct", lane, taken, at, end_of(lane[taken - 1]), NULL);
    }
}

static void print_union(struct printer *p, const field_list f, size_t count, uint32_t at,
                        const char *name)
{
    indent(p);
    fprintf(p->out, "union {\n");
    p->depth++;
    print_lanes(p, f, count, at);
    p->depth--;
    indent(p);
    fprintf(p->out, name ? "} %s;\n" : "};\n", name);
}

/* ---- members ---- */

/* Lists the members of an inline structure or union. */
static size_t inner_of(const struct prcb_layout *l, const struct prcb_layout_field *outer,
                       field_list ret)
{
    size_t count = 0, length = strlen(outer->name);

    for (size_t i = 0; i < l->member_count; i++)
        if (!strncmp(l->members[i].name, outer->name, length) && l->members[i].name[length] == '.')
            ret[count++] = &l->members[i];
    return count;
}

static void print_inline(struct printer *p, const struct prcb_layout_field *f)
{
    const struct prcb_layout_field *inner[p->l->member_count + 1];
    size_t count = inner_of(p->l, f, inner);

    if (!strcmp(f->type, "UNION"))
        print_union(p, inner, count, f->offset, f->name);
    else
        print_block(p, "struct", inner, count, f->offset, end_of(f), f->name);
}

/* Prints the bits of one unit, holes between them and behind them included. */
static void print_bits(const struct printer *p, const field_list f, size_t count)
{
    unsigned int bit = 0, all = 8 * f[0]->size;

    for (size_t i = 0; i <= count; i++) {
        unsigned int next = i < count ? f[i]->bit_first : all;

        if (next > bit && p->header) {
            indent(p);
            fprintf(p->out, "%s : %u;\n", fixed_type(f[0]), next - bit);
        }
        if (i == count)
            return;
        print_field(p, f[i]);
        bit = next + f[i]->bit_width;
    }
}

/* Counts how many members from f[0] on share bytes, and says where they end. */
static size_t cluster(const field_list f, size_t count, uint32_t *ret_end)
{
    uint32_t end = end_of(f[0]);
    size_t n = 1;

    while (n < count && f[n]->offset < end) {
        if (end < end_of(f[n]))
            end = end_of(f[n]);
        n++;
    }
    *ret_end = end;
    return n;
}

static bool all_bits(const field_list f, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!same_unit(f[0], f[i]))
            return false;
    return true;
}

/* Prints members in order, from `at` to `end`. */
static void print_members(struct printer *p, const field_list f, size_t count, uint32_t at,
                          uint32_t end)
{
    for (size_t i = 0; i < count;) {
        uint32_t next;
        size_t n = cluster(f + i, count - i, &next);

        print_gap(p, at, f[i]->offset);
        if (f[i]->bit_width && all_bits(f + i, n))
            print_bits(p, f + i, n);
        else if (n > 1)
            print_union(p, f + i, n, f[i]->offset, NULL);
        else if (f[i]->kind == PRCB_LAYOUT_INLINE)
            print_inline(p, f[i]);
        else
            print_field(p, f[i]);
        at = next;
        i += n;
    }
    print_gap(p, at, end);
}

static void print_body(struct printer *p)
{
    const struct prcb_layout_field *f[p->l->member_count + 1];
    size_t count = 0;

    for (size_t i = 0; i < p->l->member_count; i++)
        if (!p->l->members[i].is_inner)
            f[count++] = &p->l->members[i];
    p->depth++;
    if (p->l->size->kind == SIZE_UNION && p->header)
        print_union(p, f, count, 0, NULL);
    else if (p->l->size->kind == SIZE_UNION)
        print_lanes(p, f, count, 0);
    else
        print_members(p, f, count, 0, p->l->size->size);
    p->depth--;
}

static void print_title(const struct printer *p)
{
    const struct prcb_layout *l = p->l;
    const struct version_row *v = layout_version_row(l);

    fprintf(p->out, "/* %s, %s (%s), %s: 0x%X bytes%s. Source: %s. */\n", l->type->name, v->name,
            v->release, prcb_arch_name(l->arch), l->size->size,
            prcb_layout_is_partial(l) ? ", of which some are listed" : "", prcb_layout_source(l));
    if (l->unread && *l->note) /* of a nested one the outer one says it */
        fprintf(p->out, "/* %s. */\n", l->note);
}

/* ---- the definition ---- */

/* Prints the types of the members that point to functions. */
static void print_functions(const struct printer *p)
{
    struct prcb_layout_function f = {.size = sizeof(f)};

    for (size_t i = 0; i < p->l->member_count; i++)
        for (unsigned int k = 0; p->l->members[i].is_function && !prcb_layout_function_at(k, &f);
             k++)
            if (!strcmp(f.name, p->l->members[i].type))
                fprintf(p->out, "typedef %s (%s *%s)(%s);\n", f.returns, f.convention, f.name,
                        f.parameters);
}

/* An enumeration has names, or its numbers are all that is known. */
static void print_enum(const struct printer *p)
{
    const struct type_row *type = p->l->type;

    if (!type->enums[0].name) {
        fprintf(p->out, "/* enum %s: 4 bytes, values not known */\n", type->name);
        return;
    }
    fprintf(p->out, "enum %s", type->name);
    if (p->header)
        print_version_suffix(p);
    fprintf(p->out, " {\n");
    for (const struct enum_row *e = type->enums; e->name; e++) {
        if (e->first > p->l->version || p->l->version > e->last)
            continue;
        fprintf(p->out, "    %s", e->name);
        if (p->header)
            print_version_suffix(p);
        fprintf(p->out, " = %u,\n", e->value);
    }
    fprintf(p->out, "};\n");
}

int prcb_layout_print(const struct prcb_layout *layout, FILE *out)
{
    struct printer p = {.out = out, .l = layout};

    print_title(&p);
    if (layout->size->kind == SIZE_ENUM) {
        print_enum(&p);
    } else if (layout->size->kind == SIZE_OPAQUE) {
        fprintf(out, "struct %s; /* members not known */\n", layout->type->name);
    } else {
        print_functions(&p);
        fprintf(out, "%s %s {\n", layout->size->kind == SIZE_UNION ? "union" : "struct",
                layout->type->name);
        print_body(&p);
        fprintf(out, "};\n");
    }
    return ferror(out) ? -EIO : 0;
}

/* ---- the header ---- */

static void print_assert(const struct printer *p, const struct prcb_layout_field *f)
{
    if (f->bit_width)
        return; /* a bit field has no offset; its unit's other form or the size shows it */
    fprintf(p->out, "_Static_assert(offsetof(struct %s", p->l->type->name);
    print_version_suffix(p);
    fprintf(p->out, ", %s) == 0x%X, \"%s\");\n", f->name, f->offset, f->name);
}

static void print_guard(const struct printer *p, const char *word)
{
    fprintf(p->out, "#%s PRCB_HAVE_%s", word, p->l->type->name);
    print_version_suffix(p);
    fputc('\n', p->out);
}

static void print_struct(struct printer *p)
{
    print_title(p);
    fprintf(p->out, "struct %s", p->l->type->name);
    print_version_suffix(p);
    fprintf(p->out, " {\n");
    print_body(p);
    fprintf(p->out, "};\n_Static_assert(sizeof(struct %s", p->l->type->name);
    print_version_suffix(p);
    fprintf(p->out, ") == 0x%X, \"%s\");\n", p->l->size->size, p->l->type->name);
    for (size_t i = 0; i < p->l->member_count; i++)
        print_assert(p, &p->l->members[i]);
}

/* Prints nested structures first; the guard makes one of those that occur twice. */
static void print_with_nested(struct printer *p)
{
    const struct prcb_layout *l = p->l;

    for (size_t i = 0; i < l->member_count; i++) {
        p->l = l->members[i].layout;
        if (p->l)
            print_with_nested(p);
    }
    p->l = l;
    print_guard(p, "ifndef");
    print_guard(p, "define");
    print_struct(p);
    fprintf(p->out, "#endif\n\n");
}

int prcb_layout_print_header(const struct prcb_layout *layout, FILE *out)
{
    struct printer p = {.out = out, .header = true, .l = layout};

    fprintf(out,
            "/* Made by prcb from its catalog of layouts. Little-endian; pointers are numbers. "
            "*/\n#include <stddef.h>\n#include <stdint.h>\n\n");
    if (layout->size->kind == SIZE_ENUM) {
        print_title(&p);
        print_enum(&p);
    } else {
        print_with_nested(&p);
    }
    return ferror(out) ? -EIO : 0;
}
