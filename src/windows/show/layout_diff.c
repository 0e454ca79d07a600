/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb layout --diff: what changed in a structure, and in those nested in it, from one version to
 * another. Members are matched by name; one that went and one that came in the same place with the
 * same type are one that was renamed.
 */
#include "layout_show.h"

#include <string.h>

struct change {
    const char *kind;            /* "added", "removed", "renamed", "moved", "resized", "retyped" */
    const char *name, *old_name; /* paths; old_name: of a renamed member, else NULL */
    uint32_t from_base, to_base; /* where the structure they lie in starts */
    const struct prcb_layout_field *from, *to;
};

typedef void (*change_fn)(const struct change *change, void *context);

/* A structure in two versions, and where it lies in the one that was asked for. */
struct pair {
    const struct prcb_layout *from, *to;
    const char *path; /* "PerfActionDpc.", or "" */
    uint32_t from_base, to_base;
    change_fn fn;
    void *context;
};

static const struct prcb_layout_field *find_member(const struct prcb_layout *l, const char *name)
{
    size_t count;
    const struct prcb_layout_field *f = prcb_layout_members(l, &count);

    for (size_t i = 0; i < count; i++)
        if (!strcmp(f[i].name, name))
            return &f[i];
    return NULL;
}

static bool same_type(const struct prcb_layout_field *a, const struct prcb_layout_field *b)
{
    char type_a[96], type_b[96];

    prcb_layout_type_text(a, type_a, sizeof(type_a));
    prcb_layout_type_text(b, type_b, sizeof(type_b));
    return !strcmp(type_a, type_b);
}

static bool moved(const struct prcb_layout_field *a, const struct prcb_layout_field *b)
{
    return a->offset != b->offset || a->bit_first != b->bit_first;
}

static bool resized(const struct prcb_layout_field *a, const struct prcb_layout_field *b)
{
    return a->size != b->size || a->bit_width != b->bit_width;
}

/* The member of `other` that has the place and type of f, and a name that `own` does not know: f
 * under another name. A name that members of an unnamed structure carry is the structure's. */
static const struct prcb_layout_field *find_renamed(const struct prcb_layout *other,
                                                    const struct prcb_layout *own,
                                                    const struct prcb_layout_field *f)
{
    const struct prcb_layout_field *members, *found = NULL;
    size_t count;

    members = prcb_layout_members(other, &count);
    for (size_t i = 0; i < count; i++) {
        const struct prcb_layout_field *m = &members[i];

        if (moved(m, f) || resized(m, f) || !same_type(m, f) || find_member(own, m->name))
            continue;
        if (found)
            return NULL; /* two members at one place: which one was renamed is not known */
        found = m;
    }
    return found;
}

static void tell(const struct pair *p, const char *kind, const struct prcb_layout_field *from,
                 const struct prcb_layout_field *to)
{
    char name[256], old[256] = "";
    bool is_renamed = from && to && strcmp(from->name, to->name);

    snprintf(name, sizeof(name), "%s%s", p->path, (to ? to : from)->name);
    if (is_renamed)
        snprintf(old, sizeof(old), "%s%s", p->path, from->name);
    p->fn(&(struct change){kind, name, is_renamed ? old : NULL, p->from_base, p->to_base, from, to},
          p->context);
}

static void each_change(const struct pair *p);

/* Tells what changed inside a nested structure: of all elements of an array, once. */
static void each_nested(const struct pair *p, const struct prcb_layout_field *from,
                        const struct prcb_layout_field *to)
{
    struct pair below = *p;
    char path[256];

    if (!from->layout || !to->layout || strcmp(from->type, to->type))
        return;
    snprintf(path, sizeof(path), "%s%s%s.", p->path, to->name, to->is_array ? "[]" : "");
    below.path = path;
    below.from = from->layout;
    below.to = to->layout;
    below.from_base += from->offset;
    below.to_base += to->offset;
    each_change(&below);
}

/* Tells removals in the old order, then the rest in the new one. */
static void each_change(const struct pair *p)
{
    size_t count;
    const struct prcb_layout_field *f = prcb_layout_members(p->from, &count);

    for (size_t i = 0; i < count; i++)
        if (!find_member(p->to, f[i].name) && !find_renamed(p->to, p->from, &f[i]))
            tell(p, "removed", &f[i], NULL);
    f = prcb_layout_members(p->to, &count);
    for (size_t i = 0; i < count; i++) {
        const struct prcb_layout_field *old = find_member(p->from, f[i].name);

        if (!old && (old = find_renamed(p->from, p->to, &f[i])))
            tell(p, "renamed", old, &f[i]);
        if (!old)
            tell(p, "added", NULL, &f[i]);
        if (old && moved(old, &f[i]))
            tell(p, "moved", old, &f[i]);
        if (old && resized(old, &f[i]))
            tell(p, "resized", old, &f[i]);
        if (old && !same_type(old, &f[i]))
            tell(p, "retyped", old, &f[i]);
        if (old)
            each_nested(p, old, &f[i]);
    }
}

static void print_side(FILE *out, const struct prcb_layout_field *f, uint32_t base)
{
    char type[96];

    if (!f)
        return;
    prcb_layout_type_text(f, type, sizeof(type));
    fprintf(out, "0x%03X, %u bytes, %s", base + f->offset, f->size, type);
    if (f->bit_width)
        fprintf(out, ", bits %u..%u", (unsigned int)f->bit_first,
                (unsigned int)(f->bit_first + f->bit_width - 1));
}

static void print_change(const struct change *c, void *context)
{
    FILE *out = context;
    char name[520];

    snprintf(name, sizeof(name), "%s%s%s", c->old_name ? c->old_name : "",
             c->old_name ? " -> " : "", c->name);
    fprintf(out, "%-8s %-36s ", c->kind, name);
    print_side(out, c->from, c->from_base);
    if (c->from && c->to)
        fprintf(out, " -> ");
    print_side(out, c->to, c->to_base);
    fputc('\n', out);
}

static json_object *side_json(struct json_doc *b, const struct prcb_layout_field *f, uint32_t base)
{
    json_object *o;
    char type[96];

    if (!f)
        return NULL;
    o = json_object_new_object();
    prcb_layout_type_text(f, type, sizeof(type));
    json_doc_put_number(b, o, "offset", base + f->offset);
    json_doc_put_text(b, o, "type", type);
    json_doc_put_number(b, o, "size", f->size);
    layout_put_bits(b, o, f);
    return o;
}

struct changes {
    struct json_doc *b;
    json_object *array;
};

static void add_change(const struct change *c, void *context)
{
    struct changes *changes = context;
    struct json_doc *b = changes->b;
    json_object *o = json_object_new_object();

    json_doc_put_text(b, o, "change", c->kind);
    json_doc_put_text(b, o, "name", c->name);
    if (c->old_name)
        json_doc_put_text(b, o, "old_name", c->old_name);
    json_doc_put_if(b, o, "from", c->from != NULL, side_json(b, c->from, c->from_base));
    json_doc_put_if(b, o, "to", c->to != NULL, side_json(b, c->to, c->to_base));
    json_doc_append(b, changes->array, o);
}

static json_object *version_json(struct json_doc *b, const struct prcb_layout *l)
{
    json_object *o = json_object_new_object();
    struct prcb_layout_version v = {.size = sizeof(v)};

    prcb_layout_version(l, &v);
    json_doc_put_text(b, o, "version", v.name);
    json_doc_put_number(b, o, "size", prcb_layout_size(l));
    return o;
}

static int diff_json(const struct prcb_layout *from, const struct prcb_layout *to, FILE *out,
                     struct prcb_error *err)
{
    struct json_doc b = {0};
    struct changes changes = {&b, json_object_new_array()};
    json_object *o = json_doc_new(&b, JSON_LAYOUT_DIFF);

    each_change(&(struct pair){from, to, "", 0, 0, add_change, &changes});
    json_doc_put_text(&b, o, "struct", prcb_layout_name(to));
    json_doc_put_text(&b, o, "arch", prcb_arch_name(prcb_layout_arch(to)));
    json_doc_put(&b, o, "from", version_json(&b, from));
    json_doc_put(&b, o, "to", version_json(&b, to));
    json_doc_put(&b, o, "changes", changes.array);
    return layout_write_json(&b, o, out, err);
}

static void diff_text(const struct prcb_layout *from, const struct prcb_layout *to, FILE *out)
{
    struct prcb_layout_version a = {.size = sizeof(a)}, b = {.size = sizeof(b)};

    prcb_layout_version(from, &a);
    prcb_layout_version(to, &b);
    fprintf(out, "%s %s: %s (0x%X bytes) -> %s (0x%X bytes)\n", prcb_layout_name(to),
            prcb_arch_name(prcb_layout_arch(to)), a.name, prcb_layout_size(from), b.name,
            prcb_layout_size(to));
    each_change(&(struct pair){from, to, "", 0, 0, print_change, out});
}

/* Holds differences between the catalog and a kernel's symbols. */
struct differences {
    bool is_partial; /* of the catalog's structure some members are listed */
    size_t count;
    change_fn fn; /* NULL: they are counted */
    void *context;
};

static void tell_difference(const struct change *c, void *context)
{
    struct differences *d = context;

    if (!strcmp(c->kind, "retyped") || (d->is_partial && !strcmp(c->kind, "added")))
        return;
    d->count++;
    if (d->fn)
        d->fn(c, d->context);
}

static size_t each_difference(const struct prcb_layout *catalog, const struct prcb_layout *symbols,
                              change_fn fn, void *context)
{
    struct differences d = {prcb_layout_is_partial(catalog), 0, fn, context};

    each_change(&(struct pair){catalog, symbols, "", 0, 0, tell_difference, &d});
    return d.count + (prcb_layout_size(catalog) != prcb_layout_size(symbols));
}

size_t layout_tell_differences(const struct prcb_layout *catalog, const struct prcb_layout *symbols,
                               FILE *out)
{
    return each_difference(catalog, symbols, out ? print_change : NULL, out);
}

json_object *layout_differences_json(struct json_doc *b, const struct prcb_layout *catalog,
                                     const struct prcb_layout *symbols)
{
    struct changes changes = {b, json_object_new_array()};

    each_difference(catalog, symbols, add_change, &changes);
    return changes.array;
}

int layout_diff(const struct layout_request *r, FILE *out, struct prcb_error *err)
{
    struct layout_request request = *r;
    struct prcb_layout *from, *to;
    int code = layout_open(r, r->diff[0], &from, err);

    if (code)
        return code;
    request.arch = prcb_layout_arch(from); /* of one architecture, not of two */
    request.arch_given = true;
    code = layout_open(&request, r->diff[1], &to, err);
    if (!code) {
        if (r->json)
            code = diff_json(from, to, out, err);
        else
            diff_text(from, to, out);
        prcb_layout_close(to);
    }
    prcb_layout_close(from);
    return code;
}
