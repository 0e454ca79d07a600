/* SPDX-License-Identifier: BSD-2-Clause
 *
 * From rows to a layout: one structure as of one version, members resolved and sorted, nested
 * structures below it, and the flat list of leaves.
 */
#include "layout.h"
#include "array.h"
#include "error.h"
#include "near.h"
#include "sized.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DEPTH_MAX 8 /* nesting by value; the catalog's deepest is 3 */

/* ---- rows ---- */

const struct size_row *layout_find_size(const struct type_row *type, unsigned int version,
                                        enum prcb_arch arch)
{
    if (!type->sizes)
        return NULL;
    for (const struct size_row *s = type->sizes; s->archs; s++)
        if (s->archs & (1U << arch) && s->first <= version && version <= s->last)
            return s;
    return NULL;
}

static const struct type_row *find_type(const char *name)
{
    while (*name == '_')
        name++;
    for (int i = 0; i < T_COUNT; i++)
        if (catalog_types[i].class == TYPE_STRUCTURE && !strcasecmp(catalog_types[i].name, name))
            return &catalog_types[i];
    return NULL;
}

const char *prcb_layout_structure_at(unsigned int index)
{
    for (int i = 0; i < T_COUNT; i++)
        if (catalog_types[i].class == TYPE_STRUCTURE && index-- == 0)
            return catalog_types[i].name;
    return NULL;
}

int prcb_layout_function_at(unsigned int index, struct prcb_layout_function *ret)
{
    for (int i = 0; i < T_COUNT; i++) {
        if (catalog_types[i].class == TYPE_FUNCTION && index-- == 0) {
            struct prcb_layout_function function = *catalog_types[i].function;

            function.source = catalog_grade_names[catalog_types[i].kind];
            return sized_hand_out(&function, sizeof(function), ret);
        }
    }
    return -ENOENT;
}

/* ---- members ---- */

/* What a layout is made for. */
struct wanted {
    unsigned int version; /* enum version_id */
    enum prcb_arch arch;
    bool assumed; /* the version is not the one that was asked for, but the nearest known */
};

static int build(const struct type_row *type, const struct wanted *wanted, unsigned int depth,
                 struct prcb_layout **ret, struct prcb_error *err);

static uint32_t pointer_size(enum prcb_arch arch)
{
    return arch == PRCB_ARCH_X86 ? 4 : 8;
}

/* Finds kind and size of one element, and the layout of a nested one. */
static int resolve_type(const struct member_row *row, const struct prcb_layout *parent,
                        const struct wanted *wanted, unsigned int depth,
                        struct prcb_layout_field *f, struct prcb_error *err)
{
    const struct type_row *type = &catalog_types[row->type];
    const struct size_row *size = layout_find_size(type, parent->version, parent->arch);
    struct prcb_layout *nested;
    int r;

    if (row->flags & ROW_POINTER || type->class == TYPE_FUNCTION) {
        f->kind = PRCB_LAYOUT_POINTER;
        f->size = pointer_size(parent->arch);
    } else if (type->class == TYPE_SCALAR) {
        f->kind = type->kind;
        f->size = type->scalar_size[parent->arch];
    } else if (!size) {
        return prcb_fail(err, -ENOENT, "%s.%s: the size of %s is not known in %s",
                         parent->type->name, row->name, type->name,
                         catalog_versions[parent->version].name);
    } else if (size->kind == SIZE_OPAQUE || size->kind == SIZE_ENUM) {
        f->kind = size->kind == SIZE_ENUM ? PRCB_LAYOUT_ENUM : PRCB_LAYOUT_OPAQUE;
        f->size = size->size;
        f->enumeration = size->kind == SIZE_ENUM ? type->enums : NULL;
    } else {
        r = build(type, wanted, depth + 1, &nested, err);
        if (r)
            return r;
        f->kind = PRCB_LAYOUT_NESTED;
        f->size = size->size;
        f->layout = nested;
    }
    return 0;
}

static int make_member(const struct member_row *row, const struct prcb_layout *parent,
                       const struct wanted *wanted, unsigned int depth,
                       struct prcb_layout_field *ret, struct prcb_error *err)
{
    struct prcb_layout_field f = {
        .name = row->name,
        .type = catalog_types[row->type].name,
        .offset = (uint32_t)row->offset[parent->arch],
        .count = row->count ? row->count : 1U,
        .inner = row->inner,
        .bit_first = row->bit_first,
        .bit_width = row->bit_width,
        .in_union = row->flags & ROW_UNION,
        .is_array = row->count != 1,
        .is_function = catalog_types[row->type].class == TYPE_FUNCTION,
        .is_inner = strchr(row->name, '.') != NULL,
        .source = catalog_grade_names[parent->unread ? GRADE_INFERRED : row->grade],
    };
    int r = resolve_type(row, parent, wanted, depth, &f, err);

    if (r)
        return r;
    if (f.inner)
        f.count *= f.inner;
    f.size *= f.count;
    *ret = f;
    return 0;
}

/* Sorts by offset; equal ones stay as they were, an inline member before its own members. */
static void sort_members(struct prcb_layout_field *m, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct prcb_layout_field moved = m[i];
        size_t at = i;

        while (at > 0 && m[at - 1].offset > moved.offset) {
            m[at] = m[at - 1];
            at--;
        }
        m[at] = moved;
    }
}

/* True if `inner` is named "OUTER.something". */
static bool belongs_to(const struct prcb_layout_field *inner, const struct prcb_layout_field *outer)
{
    size_t length = strlen(outer->name);

    return inner->is_inner && !strncmp(inner->name, outer->name, length) &&
           inner->name[length] == '.';
}

/* An inline structure or union is as big as its members make it. */
static void size_inline(struct prcb_layout *l)
{
    for (size_t i = 0; i < l->member_count; i++) {
        struct prcb_layout_field *outer = &l->members[i];

        for (size_t j = 0; outer->kind == PRCB_LAYOUT_INLINE && j < l->member_count; j++) {
            const struct prcb_layout_field *inner = &l->members[j];
            uint32_t end = inner->offset + inner->size - outer->offset;

            if (belongs_to(inner, outer) && end > outer->size)
                outer->size = end;
        }
    }
}

static int build_members(struct prcb_layout *l, const struct wanted *wanted, unsigned int depth,
                         struct prcb_error *err)
{
    size_t count = 0;

    for (const struct member_row *row = l->type->members; row->name; row++)
        count += layout_row_applies(row, l->version, l->arch);
    l->members = calloc(count + 1, sizeof(l->members[0]));
    if (!l->members)
        return prcb_fail(err, -ENOMEM, "out of memory");
    for (const struct member_row *row = l->type->members; row->name; row++) {
        int r;

        if (!layout_row_applies(row, l->version, l->arch))
            continue;
        r = make_member(row, l, wanted, depth, &l->members[l->member_count], err);
        if (r)
            return r;
        l->member_count++;
    }
    sort_members(l->members, l->member_count);
    size_inline(l);
    return 0;
}

/* ---- leaves ---- */

/* Writes "[i]", "[i][j]" or nothing behind a name; returns the length. */
static size_t index_text(const struct prcb_layout_field *f, uint32_t i, char *buffer, size_t size)
{
    int n = 0;

    if (f->inner)
        n = snprintf(buffer, size, "[%u][%u]", i / f->inner, i % f->inner);
    else if (f->is_array)
        n = snprintf(buffer, size, "[%u]", i);
    else if (size)
        buffer[0] = '\0';
    return (size_t)n;
}

/* Makes one pass over what becomes a leaf. With l->leaves NULL it only counts leaves and bytes of
 * names; else it fills them in. */
struct leaf_pass {
    struct prcb_layout *l;
    size_t most; /* with more there is an error: they need not be counted */
    size_t count;
    size_t bytes;
};

static void add_leaf(struct leaf_pass *pass, const struct prcb_layout_field *member, uint32_t i,
                     const struct prcb_layout_field *below)
{
    char index[32];
    size_t index_length = index_text(member, i, index, sizeof(index));
    size_t length = strlen(member->name) + index_length + (below ? 1 + strlen(below->name) : 0);

    if (pass->l->leaves) {
        struct prcb_layout_field *leaf = &pass->l->leaves[pass->count];
        char *name = pass->l->leaf_names + pass->bytes;

        sprintf(name, "%s%s%s%s", member->name, index, below ? "." : "", below ? below->name : "");
        *leaf = below ? *below : *member;
        leaf->name = name;
        leaf->offset =
            member->offset + i * layout_element_size(member) + (below ? below->offset : 0);
        leaf->size = below ? below->size : layout_element_size(member);
        leaf->count = 1;
        leaf->inner = 0;
        leaf->is_array = leaf->is_inner = false;
        if (pass->l->leaf_end < leaf->offset + leaf->size)
            pass->l->leaf_end = leaf->offset + leaf->size;
    }
    pass->count++;
    pass->bytes += length + 1;
}

static void add_leaves(struct leaf_pass *pass)
{
    pass->count = pass->bytes = 0;
    for (size_t m = 0; m < pass->l->member_count; m++) {
        const struct prcb_layout_field *member = &pass->l->members[m];

        for (uint32_t i = 0;
             member->kind != PRCB_LAYOUT_INLINE && i < member->count && pass->count <= pass->most;
             i++) {
            if (member->kind != PRCB_LAYOUT_NESTED)
                add_leaf(pass, member, i, NULL);
            else
                for (size_t k = 0; k < member->layout->leaf_count; k++)
                    add_leaf(pass, member, i, &member->layout->leaves[k]);
        }
    }
}

static int build_leaves(struct prcb_layout *l, size_t most, struct prcb_error *err)
{
    struct leaf_pass pass = {.l = l, .most = most};
    struct prcb_layout_field *leaves;

    add_leaves(&pass);
    if (pass.count > most)
        return prcb_fail(err, -E2BIG, "%s: more than %zu values", l->type->name, most);
    leaves = calloc(pass.count + 1, sizeof(leaves[0]));
    l->leaf_names = malloc(pass.bytes + 1);
    if (!leaves || !l->leaf_names) {
        free(leaves);
        return prcb_fail(err, -ENOMEM, "out of memory");
    }
    l->leaves = leaves;
    add_leaves(&pass);
    l->leaf_count = pass.count;
    return 0;
}

/* Of rows that nobody put in order: offset, then the longer first, an inline one before its own. */
static int compare_members(const void *a, const void *b)
{
    const struct prcb_layout_field *x = a, *y = b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->bit_first != y->bit_first && x->bit_width && y->bit_width)
        return x->bit_first < y->bit_first ? -1 : 1;
    if (x->is_inner != y->is_inner)
        return x->is_inner ? 1 : -1;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Members of an inline structure share bytes: it is a union. */
static bool is_inline_union(const struct prcb_layout *l, size_t outer)
{
    const struct prcb_layout_field *last = NULL;

    for (size_t i = outer + 1; i < l->member_count && l->members[i].is_inner; i++) {
        const struct prcb_layout_field *f = &l->members[i];

        if (last && f->offset < last->offset + last->size &&
            !(f->bit_width && last->bit_width && f->offset == last->offset))
            return true;
        last = f;
    }
    return false;
}

int layout_finish(struct prcb_layout *l, size_t most, struct prcb_error *err)
{
    array_sort(l->members, l->member_count, compare_members);
    for (size_t i = 0; i < l->member_count; i++)
        if (l->members[i].kind == PRCB_LAYOUT_INLINE && is_inline_union(l, i))
            l->members[i].type = "UNION";
    for (size_t i = 0; i < l->member_count; i++) {
        struct prcb_layout_field *f = &l->members[i];
        const struct prcb_layout_field *next = f + 1;

        if (i + 1 < l->member_count && f->offset + f->size > next->offset &&
            !(f->bit_width && next->bit_width && f->offset == next->offset))
            f->in_union = true;
    }
    return build_leaves(l, most, err);
}

/* ---- finding ---- */

void prcb_layout_close(struct prcb_layout *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->member_count; i++)
        prcb_layout_close((struct prcb_layout *)l->members[i].layout);
    free(l->members);
    free(l->leaves);
    free(l->leaf_names);
    if (l->own)
        free(l->own->texts);
    free(l->own);
    free(l);
}

/* What the grades of rows say of a structure in a version. */
static void grade(struct prcb_layout *l, bool assumed)
{
    const struct read_row *read = catalog_reads;

    l->grade = l->size->grade;
    if (assumed) {
        l->unread = true;
    } else if (catalog_versions[l->version].later) {
        while (read->archs && (&catalog_types[read->type] != l->type ||
                               read->version != l->version || !(read->archs & (1U << l->arch))))
            read++;
        l->unread = !read->archs;
        l->grade = read->grade;
    }
    if (l->unread)
        l->grade = GRADE_INFERRED;
}

static int build(const struct type_row *type, const struct wanted *wanted, unsigned int depth,
                 struct prcb_layout **ret, struct prcb_error *err)
{
    struct prcb_layout *l;
    int r;

    if (depth > DEPTH_MAX)
        return prcb_fail(err, -ELOOP, "%s contains itself", type->name);
    l = calloc(1, sizeof(*l));
    if (!l)
        return prcb_fail(err, -ENOMEM, "out of memory");
    l->type = type;
    l->version = wanted->version;
    l->arch = wanted->arch;
    l->size = layout_find_size(type, wanted->version, wanted->arch);
    grade(l, wanted->assumed);
    r = build_members(l, wanted, depth, err);
    if (!r)
        r = build_leaves(l, SIZE_MAX, err);
    if (r) {
        prcb_layout_close(l);
        return r;
    }
    *ret = l;
    return 0;
}

static int fail_no_structure(const char *name, struct prcb_error *err)
{
    struct near near = {0};
    char text[256];

    for (int i = 0; i < T_COUNT; i++)
        if (catalog_types[i].class == TYPE_STRUCTURE)
            near_offer(&near, name, catalog_types[i].name);
    return prcb_fail(err, -ENOENT, "no structure \"%.64s\" in the catalog%s", name,
                     near_text(&near, text, sizeof(text)));
}

/* The structure is not in this version: the message says in which it is. */
static int fail_no_version(const struct type_row *type, unsigned int version, enum prcb_arch arch,
                           struct prcb_error *err)
{
    const char *first = NULL, *last = NULL;

    for (unsigned int v = 0; v < V_COUNT; v++) {
        if (!(catalog_versions[v].archs & (1U << arch)) || !layout_find_size(type, v, arch))
            continue;
        first = first ? first : catalog_versions[v].name;
        last = catalog_versions[v].name;
    }
    if (!first)
        return prcb_fail(err, -ENOENT, "%s is not known for %s", type->name, prcb_arch_name(arch));
    return prcb_fail(err, -ENOENT, "%s (%s) is not known in %s, only from %s to %s", type->name,
                     prcb_arch_name(arch), catalog_versions[version].name, first, last);
}

static void note_inferred(struct prcb_layout *l, bool assumed)
{
    size_t used = strlen(l->note);

    if (l->size->grade == GRADE_INFERRED || (l->unread && !assumed))
        snprintf(l->note + used, sizeof(l->note) - used, "%s%s was not read in %s: inferred",
                 used ? "; " : "", l->type->name, catalog_versions[l->version].name);
}

static int find(const char *structure, const struct wanted *wanted, const char *note,
                struct prcb_layout **ret, struct prcb_error *err)
{
    const struct type_row *type = find_type(structure);
    struct prcb_layout *l;
    int r;

    if (!type)
        return fail_no_structure(structure, err);
    if (!layout_find_size(type, wanted->version, wanted->arch))
        return fail_no_version(type, wanted->version, wanted->arch, err);
    r = build(type, wanted, 0, &l, err);
    if (r)
        return r;
    strcpy(l->note, note);
    note_inferred(l, wanted->assumed);
    *ret = l;
    return 0;
}

int prcb_layout_find(const char *structure, const char *version, enum prcb_arch arch,
                     struct prcb_layout **ret, struct prcb_error *err)
{
    struct wanted wanted = {.arch = arch};
    char note[PRCB_LAYOUT_NOTE];
    int r;

    if (!find_type(structure))
        return fail_no_structure(structure, err);
    r = layout_version_resolve(version, arch, &wanted.version, &wanted.assumed, note, err);
    if (r)
        return r;
    return find(structure, &wanted, note, ret, err);
}

int prcb_layout_find_id(const char *structure, unsigned int version, enum prcb_arch arch,
                        struct prcb_layout **ret, struct prcb_error *err)
{
    const struct wanted wanted = {.version = version, .arch = arch};

    if (version >= V_COUNT)
        return prcb_fail(err, -EINVAL, "no version %u in the catalog", version);
    return find(structure, &wanted, "", ret, err);
}

/* ---- what a layout is ---- */

const char *prcb_layout_name(const struct prcb_layout *layout)
{
    return layout->type->name;
}

void prcb_layout_version(const struct prcb_layout *layout, struct prcb_layout_version *ret)
{
    struct prcb_layout_version version = {.size = sizeof(version)};
    const struct version_row *row = layout_version_row(layout);

    prcb_layout_version_at(layout->version, &version);
    if (layout->own) {
        version.name = row->name;
        version.key = row->key;
        version.release = row->release;
        version.major = row->major;
        version.minor = row->minor;
        version.build = row->build;
        version.revision = row->revision;
        version.x86 = row->archs & ARCH_X86;
        version.x64 = row->archs & ARCH_X64;
    }
    sized_hand_out(&version, sizeof(version), ret);
}

enum prcb_arch prcb_layout_arch(const struct prcb_layout *layout)
{
    return layout->arch;
}

uint32_t prcb_layout_size(const struct prcb_layout *layout)
{
    return layout->size->size;
}

const char *prcb_layout_note(const struct prcb_layout *layout)
{
    return layout->note;
}

const char *prcb_layout_source(const struct prcb_layout *layout)
{
    return catalog_grade_names[layout->grade];
}

bool prcb_layout_is_partial(const struct prcb_layout *layout)
{
    return layout->size->kind == SIZE_PARTIAL;
}

bool prcb_layout_is_union(const struct prcb_layout *layout)
{
    return layout->size->kind == SIZE_UNION;
}

const struct prcb_layout_field *prcb_layout_members(const struct prcb_layout *layout,
                                                    size_t *ret_count)
{
    *ret_count = layout->member_count;
    return layout->members;
}

const struct prcb_layout_field *prcb_layout_leaves(const struct prcb_layout *layout,
                                                   size_t *ret_count)
{
    *ret_count = layout->leaf_count;
    return layout->leaves;
}

/* Inline ones have the keyword for a type: "union". */
static const char *base_type(const struct prcb_layout_field *f)
{
    if (f->kind != PRCB_LAYOUT_INLINE)
        return f->type;
    return strcmp(f->type, "UNION") ? "struct" : "union";
}

void prcb_layout_type_text(const struct prcb_layout_field *f, char *buffer, size_t size)
{
    bool star = f->kind == PRCB_LAYOUT_POINTER && !f->is_function;
    char array[32] = "";

    if (f->inner)
        snprintf(array, sizeof(array), "[%u][%u]", f->count / f->inner, (unsigned int)f->inner);
    else if (f->is_array)
        snprintf(array, sizeof(array), "[%u]", f->count);
    snprintf(buffer, size, "%s%s%s", base_type(f), star ? " *" : "", array);
}
