/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The rows of the catalog against themselves: spans meet, nothing overlaps but in unions, every
 * hole is alignment padding, sizes agree, names are unique, random bytes survive a round trip.
 * Needs no facts from outside; tests/layout compares with those.
 */
#include "layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define HOLE_ALIGN 8 /* nothing in NT's structures is aligned to more */

static bool has_arch(unsigned int version, enum prcb_arch arch)
{
    return catalog_versions[version].archs & (1U << arch);
}

/* ---- spans ---- */

static void check_size_spans(const struct type_row *type, enum prcb_arch arch)
{
    bool seen = false, ended = false;

    for (unsigned int v = 0; v < V_COUNT; v++) {
        unsigned int covering = 0;

        if (!has_arch(v, arch))
            continue;
        for (const struct size_row *s = type->sizes; s->archs; s++)
            covering += s->archs & (1U << arch) && s->first <= v && v <= s->last;
        CHECK(covering <= 1, "%s %s: %u sizes in %s", type->name, prcb_arch_name(arch), covering,
              catalog_versions[v].name);
        CHECK(!(covering && ended), "%s %s: spans do not meet before %s", type->name,
              prcb_arch_name(arch), catalog_versions[v].name);
        seen |= covering > 0;
        ended |= seen && !covering;
    }
}

/* A row must speak in at least one version. */
static void check_row_span(const struct type_row *type, const struct member_row *row)
{
    bool used = false;

    CHECK(row->first <= row->last, "%s.%s: span runs backwards", type->name, row->name);
    for (unsigned int v = row->first; v <= row->last; v++)
        for (int arch = 0; arch < 2; arch++)
            used |= row->offset[arch] != NO_OFFSET && has_arch(v, arch) &&
                    layout_find_size(type, v, arch);
    CHECK(used, "%s.%s from %s: a row that never applies", type->name, row->name,
          catalog_versions[row->first].name);
}

static void check_spans(void **state)
{
    for (int i = 0; i < T_COUNT; i++) {
        const struct type_row *type = &catalog_types[i];

        if (type->class != TYPE_STRUCTURE)
            continue;
        CHECK(type->sizes[0].archs, "%s: no SIZE row", type->name);
        check_size_spans(type, PRCB_ARCH_X86);
        check_size_spans(type, PRCB_ARCH_X64);
        for (const struct member_row *row = type->members; row->name; row++)
            check_row_span(type, row);
    }
    check_done();
}

/* ---- one layout ---- */

static const char *title(const struct prcb_layout *l)
{
    static char text[128];

    snprintf(text, sizeof(text), "%s %s %s", l->type->name, catalog_versions[l->version].name,
             prcb_arch_name(l->arch));
    return text;
}

static uint32_t alignment_of(const struct prcb_layout *l);

/* Bytes whose members are not known may be aligned as their size allows. */
static uint32_t field_alignment(const struct prcb_layout *l, const struct prcb_layout_field *f)
{
    uint32_t size = f->size / f->count, align = HOLE_ALIGN;

    if (f->kind == PRCB_LAYOUT_NESTED)
        return alignment_of(f->layout);
    if (f->kind == PRCB_LAYOUT_INLINE)
        return l->arch == PRCB_ARCH_X86 ? 4 : 8;
    while (size % align)
        align /= 2;
    return align;
}

static uint32_t alignment_of(const struct prcb_layout *l)
{
    uint32_t align = 1;

    for (size_t i = 0; i < l->member_count; i++) {
        uint32_t a = field_alignment(l, &l->members[i]);

        align = a > align ? a : align;
    }
    return align;
}

static bool same_bit_unit(const struct prcb_layout_field *a, const struct prcb_layout_field *b)
{
    return a->bit_width && b->bit_width && a->offset == b->offset && a->size == b->size;
}

static bool share_bytes(const struct prcb_layout_field *a, const struct prcb_layout_field *b)
{
    return a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

static bool share_bits(const struct prcb_layout_field *a, const struct prcb_layout_field *b)
{
    return a->bit_first < b->bit_first + b->bit_width && b->bit_first < a->bit_first + a->bit_width;
}

static void check_overlap(const struct prcb_layout *l)
{
    for (size_t i = 0; i < l->member_count; i++) {
        for (size_t j = 0; j < i; j++) {
            const struct prcb_layout_field *a = &l->members[i], *b = &l->members[j];

            CHECK(strcmp(a->name, b->name), "%s: two members %s", title(l), a->name);
            if (a->is_inner || b->is_inner)
                continue;
            if (same_bit_unit(a, b))
                CHECK(!share_bits(a, b), "%s: bits of %s and %s", title(l), a->name, b->name);
            else if (share_bytes(a, b))
                CHECK(l->size->kind == SIZE_UNION || (a->in_union && b->in_union),
                      "%s: %s overlaps %s", title(l), a->name, b->name);
        }
    }
}

/* The HOLE rows. */
static const struct hole {
    enum type_id owner;
    uint32_t offset[2], size;
    unsigned int first, last;
} holes[] = {
#define HOLE(owner, x86, x64, size, first, last) {T_##owner, {x86, x64}, size, V_##first, V_##last},
#include "catalog/all.def"
};

static bool is_hole_row(const struct prcb_layout *l, uint32_t offset, uint32_t size)
{
    for (size_t i = 0; i < sizeof(holes) / sizeof(holes[0]); i++) {
        const struct hole *h = &holes[i];

        if (&catalog_types[h->owner] == l->type && h->first <= l->version &&
            l->version <= h->last && h->offset[l->arch] == offset && h->size == size)
            return true;
    }
    return false;
}

/* From `end` to the next member or the end of the structure there is but alignment padding. */
static void check_hole(const struct prcb_layout *l, uint32_t end, uint32_t next, uint32_t align,
                       const char *name)
{
    CHECK((next - end < align && next % align == 0) || is_hole_row(l, end, next - end),
          "%s: hole of %u bytes at 0x%x before %s (aligned to %u)", title(l), next - end, end, name,
          align);
}

static void check_holes(const struct prcb_layout *l)
{
    uint32_t end = 0;

    for (size_t i = 0; i < l->member_count; i++) {
        const struct prcb_layout_field *f = &l->members[i];

        if (f->is_inner)
            continue;
        if (f->offset > end)
            check_hole(l, end, f->offset, field_alignment(l, f), f->name);
        if (end < f->offset + f->size)
            end = f->offset + f->size;
    }
    CHECK(end <= l->size->size, "%s: members reach 0x%x, size 0x%x", title(l), end, l->size->size);
    if (end < l->size->size)
        check_hole(l, end, l->size->size, alignment_of(l), "the end");
}

/* Inner members lie in the inline member they are named after. */
static void check_inner(const struct prcb_layout *l)
{
    const struct prcb_layout_field *outer = NULL;

    for (size_t i = 0; i < l->member_count; i++) {
        const struct prcb_layout_field *f = &l->members[i];

        CHECK(f->bit_width == 0 || f->bit_first + f->bit_width <= 8 * f->size,
              "%s: bits of %s leave their unit", title(l), f->name);
        if (f->kind == PRCB_LAYOUT_INLINE)
            CHECK(f->size > 0, "%s: %s has no members", title(l), f->name);
        for (size_t j = 0; f->is_inner && j < l->member_count; j++) {
            size_t length = strlen(l->members[j].name);

            if (!strncmp(f->name, l->members[j].name, length) && f->name[length] == '.')
                outer = &l->members[j];
        }
        CHECK(!f->is_inner || outer, "%s: %s is inside nothing", title(l), f->name);
    }
}

/* ---- round trip ---- */

static void fill_random(uint8_t *bytes, size_t size)
{
    static uint64_t state = 88172645463325252U;

    for (size_t i = 0; i < size; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes[i] = (uint8_t)state;
    }
}

/* Turns over every bit that a leaf names, and only those: by way of the engine itself. */
static void clear_named(const struct prcb_layout *l, uint8_t *bytes, size_t size)
{
    uint64_t *zero = calloc(l->leaf_count + 1, sizeof(*zero));

    CHECK(prcb_layout_encode_all(l, zero, l->leaf_count, bytes, size, NULL) == 0, "%s", title(l));
    free(zero);
}

static void check_round_trip(const struct prcb_layout *l)
{
    size_t size = l->size->size;
    uint8_t *bytes = malloc(size), *copy = malloc(size);
    uint64_t *values = calloc(l->leaf_count + 1, sizeof(*values));
    struct prcb_error err;

    fill_random(bytes, size);
    memcpy(copy, bytes, size);
    CHECK(prcb_layout_decode_all(l, bytes, size, values, l->leaf_count, &err) == 0, "%s", err.text);
    clear_named(l, copy, size);
    CHECK(prcb_layout_encode_all(l, values, l->leaf_count, copy, size, &err) == 0, "%s", err.text);
    CHECK(!memcmp(bytes, copy, size), "%s: round trip", title(l));
    if (l->leaf_count && size)
        CHECK(prcb_layout_decode_all(l, bytes, l->leaf_end - 1U, values, l->leaf_count, &err) ==
                  -ENODATA,
              "%s: a short buffer", title(l));
    free(values);
    free(copy);
    free(bytes);
}

/* ---- all layouts ---- */

static void check_layout(const struct type_row *type, unsigned int version, enum prcb_arch arch)
{
    const struct size_row *size = layout_find_size(type, version, arch);
    struct prcb_layout *l;
    struct prcb_error err;

    if (!size || !has_arch(version, arch))
        return;
    if (prcb_layout_find_id(type->name, version, arch, &l, &err)) {
        CHECK(false, "%s", err.text);
        return;
    }
    check_overlap(l);
    check_inner(l);
    if (size->kind == SIZE_STRUCT || size->kind == SIZE_UNION)
        check_holes(l);
    CHECK(l->leaf_end <= size->size, "%s: leaves beyond the end", title(l));
    check_round_trip(l);
    prcb_layout_close(l);
}

static void check_layouts(void **state)
{
    for (int i = 0; i < T_COUNT; i++)
        for (unsigned int v = 0; catalog_types[i].class == TYPE_STRUCTURE && v < V_COUNT; v++)
            for (int arch = 0; arch < 2; arch++)
                check_layout(&catalog_types[i], v, arch);
    check_done();
}

/* ---- names ---- */

static void check_names(void **state)
{
    for (int i = 0; i < T_COUNT; i++)
        for (int j = 0; j < i; j++)
            CHECK(strcmp(catalog_types[i].name, catalog_types[j].name), "two types %s",
                  catalog_types[i].name);
    check_done();
}

static bool has_member(const struct type_row *type, const char *name)
{
    for (const struct member_row *row = type->members; row->name; row++)
        if (!strcmp(row->name, name))
            return true;
    return false;
}

static void check_aliases(void **state)
{
    for (int i = 0; i < T_COUNT; i++) {
        const struct alias_row *a = catalog_types[i].aliases;

        for (; a && a->spelling; a++) {
            CHECK(has_member(&catalog_types[i], a->name), "alias of nothing: %s", a->name);
            CHECK(!has_member(&catalog_types[i], a->spelling), "alias hides %s", a->spelling);
        }
        for (const struct volatile_row *v = catalog_types[i].volatiles; v && v->name; v++)
            CHECK(has_member(&catalog_types[i], v->name), "volatile nothing: %s", v->name);
    }
    check_done();
}

/* Versions ascend, and each is found by its own name, its key and its release. */
static void check_version(unsigned int id)
{
    const struct version_row *row = &catalog_versions[id];
    struct prcb_layout_version v = {.size = sizeof(v)};
    struct prcb_error err;

    for (enum prcb_arch arch = PRCB_ARCH_X86; arch <= PRCB_ARCH_X64; arch++) {
        if (!(row->archs & 1u << arch))
            continue;
        CHECK(!prcb_layout_version_parse(row->name, arch, &v, NULL, &err), "%s", err.text);
        CHECK(v.id == id, "%s found %s", row->name, v.name);
        CHECK(!prcb_layout_version_parse(row->key, arch, &v, NULL, &err), "%s", err.text);
        CHECK(!strcmp(v.key, row->key), "%s found %s", row->key, v.name);
    }
    if (id)
        CHECK(row[-1].build < row->build || row[-1].revision < row->revision, "%s out of order",
              row->name);
}

static void check_versions(void **state)
{
    for (unsigned int v = 0; v < V_COUNT; v++)
        check_version(v);
    for (const struct version_name *n = catalog_version_names; n->name; n++) {
        struct prcb_layout_version v = {.size = sizeof(v)};
        struct prcb_error err = {0};
        int r = prcb_layout_version_parse(n->name, PRCB_ARCH_X86, &v, NULL, &err);

        CHECK(r == (n->choice ? -EINVAL : 0) || r == -ENOENT, "%s: %s", n->name, err.text);
    }
    check_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_spans),    cmocka_unit_test(check_layouts),
        cmocka_unit_test(check_names),    cmocka_unit_test(check_aliases),
        cmocka_unit_test(check_versions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
