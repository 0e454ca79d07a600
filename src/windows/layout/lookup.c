/* SPDX-License-Identifier: BSD-2-Clause
 *
 * From a dotted path to a field, and names of an enumeration's numbers.
 */
#include "layout.h"
#include "error.h"
#include "near.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Measures the name up to the next '.', '[' or end. */
static size_t name_length(const char *path)
{
    return strcspn(path, ".[");
}

static const char *resolve_alias(const struct type_row *type, const char *path)
{
    for (const struct alias_row *a = type->aliases; a->spelling; a++)
        if (!strcmp(path, a->spelling))
            return a->name;
    return path;
}

/* The path goes on, or ends, behind a name of this length. */
static bool ends_name(char c)
{
    return c == '\0' || c == '.' || c == '[';
}

/* The member that the path starts with, and the length of its name. Names of members of inline ones
 * have a dot of their own, so the longest that fits is meant. */
static const struct prcb_layout_field *match_member(const struct prcb_layout *l, const char *path,
                                                    size_t *ret_length)
{
    const struct prcb_layout_field *best = NULL;
    size_t plain = name_length(path);

    for (size_t i = 0; i < l->member_count; i++) {
        const struct prcb_layout_field *m = &l->members[i];
        size_t length;

        if (m->name[0] != path[0] || (best && !m->is_inner))
            continue;
        length = m->is_inner ? strlen(m->name) : plain;
        if (strncmp(m->name, path, length) || m->name[length] || !ends_name(path[length]))
            continue;
        best = m;
        *ret_length = length;
    }
    return best;
}

/* Parses "[3]" or "[3][1]" at *path into the flat index; moves *path behind it. */
static int parse_index(const struct prcb_layout_field *f, const char **path, uint32_t *ret)
{
    unsigned int dimensions = f->inner ? 2 : 1;
    uint64_t flat = 0;

    for (unsigned int d = 0; d < dimensions; d++) {
        uint64_t limit = !f->inner ? f->count : d ? f->inner : f->count / f->inner;
        unsigned long index;
        char *end;

        if ((*path)[0] != '[' || (*path)[1] < '0' || (*path)[1] > '9')
            return -EINVAL;
        index = strtoul(*path + 1, &end, 10);
        if (*end != ']')
            return -EINVAL;
        if (index >= limit)
            return -ERANGE;
        flat = flat * f->inner + index;
        *path = end + 1;
    }
    *ret = (uint32_t)flat;
    return 0;
}

/* Narrows a field to one of its elements. */
static void narrow(struct prcb_layout_field *f, uint32_t index)
{
    uint32_t size = layout_element_size(f);

    f->offset += index * size;
    f->size = size;
    f->count = 1;
    f->inner = 0;
    f->is_array = false;
}

static int fail_no_member(const struct prcb_layout *l, const char *path, const char *whole,
                          struct prcb_error *err)
{
    struct near near = {0};
    char wanted[64], text[256];

    if (!err)
        return -ENOENT; /* nobody reads the text, and near names are expensive to find */
    snprintf(wanted, sizeof(wanted), "%.*s", (int)name_length(path), path);
    for (const struct member_row *row = l->type->members; row->name; row++)
        if (!strcmp(row->name, wanted) && !layout_row_applies(row, l->version, l->arch))
            return prcb_fail(err, -ENOENT, "%s: not in %s (%s); other versions of %s have it",
                             whole, layout_version_row(l)->name, prcb_arch_name(l->arch),
                             l->type->name);
    for (size_t i = 0; i < l->member_count; i++)
        near_offer(&near, wanted, l->members[i].name);
    return prcb_fail(err, -ENOENT, "%s: %s has no such member in %s (%s)%s", whole, l->type->name,
                     layout_version_row(l)->name, prcb_arch_name(l->arch),
                     near_text(&near, text, sizeof(text)));
}

static int lookup_step(const struct prcb_layout *l, const char **path, const char *whole,
                       struct prcb_layout_field *ret, struct prcb_error *err)
{
    size_t length;
    const struct prcb_layout_field *m = match_member(l, *path, &length);
    uint32_t index;
    int r;

    if (!m)
        return fail_no_member(l, *path, whole, err);
    *ret = *m;
    *path += length;
    if (**path == '[') {
        r = m->is_array ? parse_index(m, path, &index) : -EINVAL;
        if (r == -ERANGE)
            return prcb_fail(err, r, "%s: %s.%s has %u elements", whole, l->type->name, m->name,
                             m->count);
        if (r)
            return prcb_fail(err, r, "%s: bad index for %s.%s", whole, l->type->name, m->name);
        narrow(ret, index);
    }
    return 0;
}

int prcb_layout_lookup(const struct prcb_layout *layout, const char *path,
                       struct prcb_layout_field *ret, struct prcb_error *err)
{
    const struct prcb_layout *l = layout;
    const char *whole = path;
    struct prcb_layout_field f;
    uint32_t base = 0;

    for (;;) {
        int r;

        path = resolve_alias(l->type, path);
        r = lookup_step(l, &path, whole, &f, err);
        if (r)
            return r;
        f.offset += base;
        if (!*path)
            break;
        if (*path != '.' || !f.layout || f.count != 1)
            return prcb_fail(err, *path == '.' && !f.layout ? -ENOENT : -EINVAL,
                             "%s: %s.%s has nothing below it", whole, l->type->name, f.name);
        path++;
        base = f.offset;
        l = f.layout;
    }
    *ret = f;
    return 0;
}

/* ---- enumerations ---- */

static bool enum_applies(const struct enum_row *e, unsigned int version)
{
    return e->first <= version && version <= e->last;
}

const char *prcb_layout_enum_name(const struct prcb_layout *layout,
                                  const struct prcb_layout_field *field, uint64_t value)
{
    const struct enum_row *e = field->enumeration;

    for (; e && e->name; e++)
        if (e->value == value && enum_applies(e, layout->version))
            return e->name;
    return NULL;
}

int prcb_layout_enum_at(const struct prcb_layout *layout, const struct prcb_layout_field *field,
                        unsigned int index, const char **ret_name, uint64_t *ret_value)
{
    const struct enum_row *e = field->enumeration;

    for (; e && e->name; e++) {
        if (enum_applies(e, layout->version) && index-- == 0) {
            *ret_name = e->name;
            *ret_value = e->value;
            return 0;
        }
    }
    return -ENOENT;
}
