/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The walk over all members of one structure of a processor.
 */
#include "inside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sized.h"

/* Structures that can be asked for. pointer: the item that holds its address. */
static const struct row {
    const char *name;
    unsigned int pointer;
} rows[] = {
    {"KPRCB", PRCB_DUMP_ITEM_COUNT},
    {"PROCESSOR_POWER_STATE", PRCB_DUMP_ITEM_COUNT},
    {"KTHREAD", PRCB_DUMP_CurrentThread},
    {"KTHREAD_COUNTERS", PRCB_DUMP_ThreadCounters},
    {"PROCESSOR_PROFILE_CONTROL_AREA", PRCB_DUMP_ProcessorProfileControlArea},
    {"PPM_IDLE_STATES", PRCB_DUMP_IdleStates},
    {"PROC_IDLE_ACCOUNTING", PRCB_DUMP_IdleAccounting},
};

const char *prcb_dump_structure_at(unsigned int index)
{
    return index < ARRAY_SIZE(rows) ? rows[index].name : NULL;
}

static const struct row *find_row(const char *name)
{
    if (*name == '_')
        name++;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    }
    return NULL;
}

static int locate(const struct prcb_dump *d, size_t processor, const struct row *row,
                  struct prcb_dump_structure *ret, struct prcb_error *err)
{
    const struct prcb_dump_processor *p = &d->processors[processor];
    const struct prcb_dump_value *v;

    ret->name = row->name;
    if (row->pointer < PRCB_DUMP_ITEM_COUNT) {
        v = &p->items[row->pointer];
        if (!v->found_by)
            return prcb_fail(err, -ENODATA, "processor %u: the address of its %s: %s", p->number,
                             row->name, v->absent);
        if (!v->value)
            return prcb_fail(err, -ENODATA, "processor %u: it has no %s (%s is NULL)", p->number,
                             row->name, prcb_dump_item_name(row->pointer));
        ret->address = v->value;
        ret->has_address = true;
        ret->found_by = v->found_by;
        return 0;
    }
    ret->address = d->sources[processor].address;
    ret->has_address = p->has_kprcb;
    ret->found_by = d->kprcb.found_by;
    if (row == &rows[0])
        return 0;
    if (!d->has_power)
        return prcb_fail(err, -ENOENT, "processor %u: the address of its %s is unknown", p->number,
                         row->name);
    ret->address += d->power_offset;
    ret->found_by = d->power_found;
    return 0;
}

/* One member of the catalog or of the symbols, with its bytes if they are held. */
struct walk {
    const struct prcb_dump *d;
    const struct view *view;
    uint64_t base;
    prcb_dump_member_fn fn;
    void *ctx;
    bool any_held;
};

static int visit(struct walk *w, struct prcb_dump_member *m)
{
    uint64_t byte;

    m->address = w->base + m->offset;
    if (m->is_opaque || m->size > 8)
        m->is_held = !memory_load(&w->d->memory, m->address, 1, &byte);
    else
        m->is_held = !memory_load(&w->d->memory, m->address, m->size, &m->value);
    if (m->bit_width && m->bit_width < 64)
        m->value = m->value >> m->bit_first & ((1ull << m->bit_width) - 1);
    w->any_held |= m->is_held;
    return w->fn ? w->fn(m, w->ctx) : 0;
}

/* Whether row i is a structure or an array of which the rows behind it, at its place, are parts. */
static bool has_parts(const struct prcb_dump *d, size_t i)
{
    struct prcb_dump_symbol whole = symbol_at(d, i), part;
    size_t length = strlen(whole.member);

    for (size_t k = i + 1; k < d->options.symbol_count; k++) {
        part = symbol_at(d, k);
        if (part.offset != whole.offset || strcmp(part.structure, whole.structure))
            return false;
        if (!strncmp(part.member, whole.member, length) &&
            (part.member[length] == '.' || part.member[length] == '['))
            return true;
    }
    return false;
}

static int walk_symbols(struct walk *w)
{
    int code = 0;

    for (size_t i = 0; !code && i < w->d->options.symbol_count; i++) {
        struct prcb_dump_symbol row = symbol_at(w->d, i), *s = &row;
        struct prcb_dump_member m = {
            .path = s->member,
            .type = s->type ? s->type : "",
            .offset = s->offset,
            .size = s->size,
            .bit_first = s->bit_first,
            .bit_width = s->bit_width,
            .is_pointer = s->is_pointer,
            .is_signed = s->is_signed,
            .is_opaque = s->size > 8 || (s->size & (s->size - 1)),
        };

        if (*s->member && !strcmp(s->structure, w->view->name) && !has_parts(w->d, i))
            code = visit(w, &m);
    }
    return code;
}

static int visit_leaf(struct walk *w, const struct prcb_layout *layout,
                      const struct prcb_layout_field *leaf)
{
    struct slot slot;
    char type[64];
    struct prcb_dump_member m = {
        .path = leaf->name,
        .type = type,
        .offset = leaf->offset,
        .size = leaf->size,
        .bit_first = leaf->bit_first,
        .bit_width = leaf->bit_width,
        .is_pointer = leaf->kind == PRCB_LAYOUT_POINTER,
        .is_signed = leaf->kind == PRCB_LAYOUT_SIGNED,
        .is_opaque = leaf->kind == PRCB_LAYOUT_OPAQUE,
    };
    uint64_t value;

    if (w->view->known_end && leaf->offset + leaf->size > w->view->known_end)
        return 0;
    if (w->view->layout_count > 1 &&
        (view_find(w->view, leaf->name, &slot) || slot.offset != leaf->offset))
        return 0;
    prcb_layout_type_text(leaf, type, sizeof(type));
    if (leaf->kind == PRCB_LAYOUT_ENUM &&
        !memory_load(&w->d->memory, w->base + leaf->offset, leaf->size, &value))
        m.value_name = prcb_layout_enum_name(layout, leaf, value);
    return visit(w, &m);
}

static int walk_catalog(struct walk *w)
{
    const struct prcb_layout *layout = w->view->layouts[w->view->layout_count - 1];
    size_t count;
    const struct prcb_layout_field *leaves = prcb_layout_leaves(layout, &count);
    int code = 0;

    for (size_t i = 0; !code && i < count; i++)
        code = visit_leaf(w, layout, &leaves[i]);
    return code;
}

static int walk_view(const struct prcb_dump *d, const struct view *view,
                     struct prcb_dump_structure *structure, prcb_dump_member_fn fn, void *ctx,
                     struct prcb_error *err)
{
    struct walk w = {d, view, structure->address, fn, ctx, false};
    bool by_symbols = symbols_have(d, view->name);
    int code;

    if (!by_symbols && (!view->layout_count || (view == &d->kprcb && d->distrust)))
        return prcb_fail(err, -ENOENT, "%s: the layout of build %u's %s is unknown%s", d->name,
                         d->header.minor, view->name,
                         view->layout_count ? " (the catalog's is refuted)" : "");
    snprintf(structure->version, sizeof(structure->version), "%s",
             by_symbols ? "symbols" : view->version);
    structure->is_inferred = !by_symbols && view->is_inferred;
    structure->length = view_size(view);
    code = by_symbols ? walk_symbols(&w) : walk_catalog(&w);
    if (!code && !w.any_held)
        code = prcb_fail(err, -ENODATA, "the %s at 0x%llx is not in this dump", view->name,
                         (unsigned long long)structure->address);
    return code;
}

int prcb_dump_structure(const struct prcb_dump *d, size_t processor, const char *name,
                        prcb_dump_member_fn fn, void *ctx, struct prcb_dump_structure *ret,
                        struct prcb_error *err)
{
    const struct row *row = find_row(name);
    struct prcb_dump_structure structure = {.size = sizeof(structure)};
    const struct view *view = NULL;
    struct view own;
    int code;

    if (!row)
        return prcb_fail(err, -EINVAL,
                         "\"%s\" is not read from dumps; KPRCB, PROCESSOR_POWER_STATE, KTHREAD, "
                         "KTHREAD_COUNTERS, PROCESSOR_PROFILE_CONTROL_AREA, PPM_IDLE_STATES and "
                         "PROC_IDLE_ACCOUNTING are",
                         name);
    if (processor >= d->processor_count)
        return prcb_fail(err, -EINVAL, "%s: no processor has index %zu", d->name, processor);
    code = locate(d, processor, row, &structure, err);
    if (code)
        return code;
    if (row == &rows[0])
        view = &d->kprcb;
    else if (row == &rows[1])
        view = &d->power;
    code = view ? 0 : view_init(&own, d, row->name, d->versions, d->version_count);
    if (!code)
        code = walk_view(d, view ? view : &own, &structure, fn, ctx, err);
    if (!view)
        view_deinit(&own);
    return !code && ret ? sized_hand_out(&structure, sizeof(structure), ret) : code;
}
