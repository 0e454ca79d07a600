/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A structure as the dump's kernel has it: by the caller's symbols, else by the candidate versions
 * of the catalog, as far as those agree.
 */
#include "inside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct prcb_dump_symbol symbol_at(const struct prcb_dump *d, size_t i)
{
    const struct prcb_dump_options *o = &d->options;
    struct prcb_dump_symbol ret = {0};

    memcpy(&ret, (const char *)o->symbols + i * o->symbol_size,
           o->symbol_size < sizeof(ret) ? o->symbol_size : sizeof(ret));
    return ret;
}

bool symbols_have(const struct prcb_dump *d, const char *structure)
{
    for (size_t i = 0; i < d->options.symbol_count; i++) {
        if (!strcmp(symbol_at(d, i).structure, structure))
            return true;
    }
    return false;
}

uint32_t symbols_size(const struct prcb_dump *d, const char *structure)
{
    for (size_t i = 0; i < d->options.symbol_count; i++) {
        struct prcb_dump_symbol s = symbol_at(d, i);

        if (!*s.member && !strcmp(s.structure, structure))
            return s.size;
    }
    return 0;
}

static int find_symbol(const struct view *view, const char *path, struct slot *ret)
{
    for (size_t i = 0; i < view->dump->options.symbol_count; i++) {
        struct prcb_dump_symbol s = symbol_at(view->dump, i);

        if (strcmp(s.structure, view->name) || strcmp(s.member, path))
            continue;
        *ret = (struct slot){s.offset,    s.size, s.bit_first, s.bit_width, PRCB_DUMP_BY_SYMBOLS,
                             s.is_pointer};
        return 0;
    }
    return -ENOENT;
}

static bool same_slot(const struct slot *a, const struct slot *b)
{
    return a->offset == b->offset && a->size == b->size && a->bit_first == b->bit_first &&
           a->bit_width == b->bit_width;
}

static int find_catalog(const struct view *view, const char *path, struct slot *ret)
{
    struct prcb_layout_field field;
    struct slot slot, first = {0};

    for (size_t i = 0; i < view->layout_count; i++) {
        if (prcb_layout_lookup(view->layouts[i], path, &field, NULL))
            return -ENOENT;
        slot = (struct slot){field.offset,    field.size,     field.bit_first,
                             field.bit_width, view->found_by, field.kind == PRCB_LAYOUT_POINTER};
        if (!i)
            first = slot;
        else if (!same_slot(&slot, &first))
            return -ENOENT;
    }
    if (!view->layout_count || (view->known_end && first.offset + first.size > view->known_end))
        return -ENOENT;
    *ret = first;
    return 0;
}

int view_find(const struct view *view, const char *path, struct slot *ret)
{
    return find_symbol(view, path, ret) ? find_catalog(view, path, ret) : 0;
}

uint32_t view_size(const struct view *view)
{
    uint32_t size = symbols_size(view->dump, view->name);

    if (size || !view->layout_count)
        return size;
    size = prcb_layout_size(view->layouts[0]);
    for (size_t i = 1; i < view->layout_count; i++) {
        if (prcb_layout_size(view->layouts[i]) < size)
            size = prcb_layout_size(view->layouts[i]);
    }
    return size;
}

static void name_versions(struct view *view, unsigned int first, unsigned int last)
{
    struct prcb_layout_version from = {.size = sizeof(from)}, to = {.size = sizeof(to)};

    if (!view->layout_count || prcb_layout_version_at(first, &from) ||
        prcb_layout_version_at(last, &to))
        return;
    if (first == last)
        snprintf(view->version, sizeof(view->version), "%s", from.name);
    else
        snprintf(view->version, sizeof(view->version), "%s .. %s", from.name, to.name);
    for (size_t i = 0; i < view->layout_count; i++)
        view->is_inferred |= !strcmp(prcb_layout_source(view->layouts[i]), "inferred");
}

static bool same_layout(const struct prcb_layout *a, const struct prcb_layout *b)
{
    size_t count, other;
    const struct prcb_layout_field *x = prcb_layout_leaves(a, &count);
    const struct prcb_layout_field *y = prcb_layout_leaves(b, &other);

    if (count != other || prcb_layout_size(a) != prcb_layout_size(b))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (x[i].offset != y[i].offset || x[i].size != y[i].size || x[i].kind != y[i].kind ||
            x[i].bit_first != y[i].bit_first || x[i].bit_width != y[i].bit_width ||
            strcmp(x[i].name, y[i].name))
            return false;
    }
    return true;
}

/* Most versions of a build have one layout: keeping it once spares most of the work later. */
static void add_layout(struct view *view, struct prcb_layout *layout)
{
    for (size_t i = 0; i < view->layout_count; i++) {
        if (same_layout(view->layouts[i], layout)) {
            prcb_layout_close(layout);
            return;
        }
    }
    view->layouts[view->layout_count++] = layout;
}

/* ---- arm64 ---- */

#define ARM64_BUILD      26100
#define ARM64_VERSION    "10.0.26100"
#define ARM64_KPRCB_SIZE 0x9f00
static const struct prcb_dump_symbol arm64_rows[] = {
#define W(structure, size) {#structure, "", "", 0, size, 0, 0, false, false},
#define A(structure, member, type, offset, size)                                                   \
    {#structure, member, type, offset, size, 0, 0, false, false},
#define P(structure, member, offset) {#structure, member, "VOID", offset, 8, 0, 0, true, false},
#include "arm64.def"
};

bool arm64_is_known(const struct prcb_dump *d)
{
    return d->machine == MACHINE_ARM64 && d->header.minor == ARM64_BUILD &&
           (!d->kdbg.prcb_size || d->kdbg.prcb_size == ARM64_KPRCB_SIZE);
}

/* A structure that was published stays that of arm64; others are not known there. */
static int init_arm64(struct view *view, const char *name)
{
    struct prcb_layout *layout;
    int code = prcb_layout_from_symbols(name, ARM64_VERSION, PRCB_ARCH_X64, arm64_rows,
                                        ARRAY_SIZE(arm64_rows), sizeof(*arm64_rows), &layout, NULL);

    if (code)
        return code == -ENOENT ? 0 : code;
    add_layout(view, layout);
    snprintf(view->version, sizeof(view->version), "%s", ARM64_VERSION);
    return 0;
}

int view_init(struct view *view, const struct prcb_dump *d, const char *name,
              const unsigned int *versions, size_t count)
{
    enum prcb_arch arch = d->machine == MACHINE_X86 ? PRCB_ARCH_X86 : PRCB_ARCH_X64;
    unsigned int first = 0, last = 0;

    *view = (struct view){.name = name, .dump = d, .found_by = PRCB_DUMP_BY_CATALOG};
    if (arm64_is_known(d))
        return init_arm64(view, name);
    for (size_t i = 0; i < count && i < VIEW_LAYOUTS; i++) {
        struct prcb_layout *layout;
        int code = prcb_layout_find_id(name, versions[i], arch, &layout, NULL);

        if (code == -ENOMEM)
            return code;
        if (code)
            continue;
        if (!view->layout_count)
            first = versions[i];
        last = versions[i];
        add_layout(view, layout);
    }
    name_versions(view, first, last);
    return 0;
}

void view_deinit(struct view *view)
{
    for (size_t i = 0; i < view->layout_count; i++)
        prcb_layout_close(view->layouts[i]);
    view->layout_count = 0;
}
