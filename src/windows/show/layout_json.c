/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb layout -j, --all and --isf.
 */
#include "layout_show.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <prcb/prcb.h>

/* ---- -j ---- */

void layout_put_bits(struct json_doc *b, json_object *object, const struct prcb_layout_field *f)
{
    json_object *bits;

    if (!f->bit_width)
        return;
    bits = json_object_new_array();
    json_doc_append(b, bits, json_object_new_int(f->bit_first));
    json_doc_append(b, bits, json_object_new_int(f->bit_width));
    json_doc_put(b, object, "bits", bits);
}

static json_object *member_json(struct json_doc *b, const struct prcb_layout_field *f)
{
    json_object *o = json_object_new_object();
    char type[96];

    prcb_layout_type_text(f, type, sizeof(type));
    json_doc_put_text(b, o, "name", f->name);
    json_doc_put_number(b, o, "offset", f->offset);
    json_doc_put_text(b, o, "type", type);
    json_doc_put_number(b, o, "size", f->size);
    layout_put_bits(b, o, f);
    return o;
}

/* version: as it is to be named. Members that were not read themselves, in a layout that was, are
 * left out: "source" speaks for all that are listed. */
static json_object *layout_object(struct json_doc *b, const struct prcb_layout *l,
                                  const char *version)
{
    json_object *o = json_doc_new(b, JSON_LAYOUT);
    json_object *members = json_object_new_array();
    bool was_read = strcmp(prcb_layout_source(l), "inferred");
    size_t count;
    const struct prcb_layout_field *f = prcb_layout_members(l, &count);

    json_doc_put_text(b, o, "struct", prcb_layout_name(l));
    json_doc_put_text(b, o, "version", version);
    json_doc_put_text(b, o, "arch", prcb_arch_name(prcb_layout_arch(l)));
    json_doc_put_number(b, o, "size", prcb_layout_size(l));
    json_doc_put_text(b, o, "source", prcb_layout_source(l));
    if (prcb_layout_is_partial(l))
        json_doc_put(b, o, "partial", json_object_new_boolean(true));
    if (*prcb_layout_note(l))
        json_doc_put_text(b, o, "note", prcb_layout_note(l));
    for (size_t i = 0; i < count; i++)
        if (!was_read || strcmp(f[i].source, "inferred"))
            json_doc_append(b, members, member_json(b, &f[i]));
    json_doc_put(b, o, "members", members);
    return o;
}

static int print_object(const struct prcb_layout *l, const char *version, FILE *out,
                        struct prcb_error *err)
{
    struct json_doc b = {0};

    return layout_write_json(&b, layout_object(&b, l, version), out, err);
}

int layout_json(const struct layout_request *r, FILE *out, struct prcb_error *err)
{
    struct prcb_layout_version v = {.size = sizeof(v)};
    struct prcb_layout *l;
    int code = layout_open(r, r->version, &l, err);

    if (code)
        return code;
    prcb_layout_version(l, &v);
    code = print_object(l, v.name, out, err);
    prcb_layout_close(l);
    return code;
}

/* ---- --all ---- */

static bool same_field(const struct prcb_layout_field *a, const struct prcb_layout_field *b)
{
    return !strcmp(a->name, b->name) && !strcmp(a->type, b->type) && a->kind == b->kind &&
           a->offset == b->offset && a->size == b->size && a->count == b->count &&
           a->bit_first == b->bit_first && a->bit_width == b->bit_width;
}

static bool same_layout(const struct prcb_layout *a, const struct prcb_layout *b)
{
    size_t count_a, count_b;
    const struct prcb_layout_field *fa = prcb_layout_members(a, &count_a);
    const struct prcb_layout_field *fb = prcb_layout_members(b, &count_b);

    if (count_a != count_b || prcb_layout_size(a) != prcb_layout_size(b) ||
        strcmp(prcb_layout_source(a), prcb_layout_source(b)))
        return false;
    for (size_t i = 0; i < count_a; i++)
        if (!same_field(&fa[i], &fb[i]))
            return false;
    return true;
}

static void print_distinct(const struct prcb_layout *l, unsigned int last, FILE *out)
{
    struct prcb_layout_version from = {.size = sizeof(from)}, to = {.size = sizeof(to)};

    prcb_layout_version(l, &from);
    prcb_layout_version_at(last, &to);
    if (from.id != to.id)
        fprintf(out, "/* %s to %s */\n", from.name, to.name);
    prcb_layout_print(l, out);
    fputc('\n', out);
}

/* Writes each run of versions that share a layout once. */
static void all_text(const char *structure, enum prcb_arch arch, FILE *out)
{
    struct prcb_layout *run = NULL;
    unsigned int last = 0;

    for (unsigned int v = 0; v < layout_version_count(); v++) {
        struct prcb_layout *l;

        if (!layout_version_has(v, arch))
            continue;
        l = layout_at(structure, v, arch);
        if (run && (!l || !same_layout(run, l))) {
            print_distinct(run, last, out);
            prcb_layout_close(run);
            run = NULL;
        }
        last = v;
        if (run)
            prcb_layout_close(l);
        else
            run = l;
    }
    if (run)
        print_distinct(run, last, out);
    prcb_layout_close(run);
}

/* Writes by build a line for each version, and by key a line for the version that the key means. */
static int all_json(const struct layout_request *r, const char *structure, enum prcb_arch arch,
                    FILE *out, struct prcb_error *err)
{
    int code = 0;

    for (unsigned int id = 0; !code && id < layout_version_count(); id++) {
        struct prcb_layout *l = layout_at(structure, id, arch);
        struct prcb_layout_version v = {.size = sizeof(v)}, meant = {.size = sizeof(meant)};

        prcb_layout_version_at(id, &v);
        if (l && (!r->keys ||
                  (!prcb_layout_version_parse(v.key, arch, &meant, NULL, NULL) && meant.id == id)))
            code = print_object(l, r->keys ? v.key : v.name, out, err);
        prcb_layout_close(l);
    }
    return code;
}

static int all_of(const struct layout_request *r, const char *structure, FILE *out,
                  struct prcb_error *err)
{
    int code = 0;

    for (int arch = PRCB_ARCH_X86; !code && arch <= PRCB_ARCH_X64; arch++) {
        if (r->arch_given && arch != (int)r->arch)
            continue;
        if (r->json)
            code = all_json(r, structure, (enum prcb_arch)arch, out, err);
        else
            all_text(structure, (enum prcb_arch)arch, out);
    }
    return code;
}

int layout_all(const struct layout_request *r, FILE *out, struct prcb_error *err)
{
    const char *name;
    int code = 0;

    if (r->structure) {
        struct prcb_layout *l;

        code = layout_open(r, NULL, &l, err); /* says so if there is no such structure */
        if (code)
            return code;
        code = all_of(r, prcb_layout_name(l), out, err);
        prcb_layout_close(l);
        return code;
    }
    for (unsigned int i = 0; !code && (name = prcb_layout_structure_at(i)); i++)
        code = all_of(r, name, out, err);
    return code;
}

/* ---- --isf ----
 * The intermediate symbol format of volatility3: structures under "user_types" with a leading
 * underscore as the symbol files have it, inline ones under a name made from their place, and every
 * structure that can be reached by value or through a pointer in this version. */

struct isf {
    unsigned int version;
    enum prcb_arch arch;
    struct json_doc *b;
    json_object *base, *user, *enums;
};

static void isf_add_layout(struct isf *isf, const struct prcb_layout *l);

static void isf_base(struct isf *isf, const char *name, const char *kind, uint32_t size,
                     bool is_signed)
{
    json_object *o;

    if (json_object_object_get_ex(isf->base, name, NULL))
        return;
    o = json_object_new_object();
    json_doc_put_text(isf->b, o, "kind", kind);
    json_doc_put_number(isf->b, o, "size", size);
    json_doc_put(isf->b, o, "signed", json_object_new_boolean(is_signed));
    json_doc_put_text(isf->b, o, "endian", "little");
    json_doc_put(isf->b, isf->base, name, o);
}

static json_object *isf_named(struct isf *isf, const char *kind, const char *prefix,
                              const char *name)
{
    json_object *o = json_object_new_object();
    char text[160];

    snprintf(text, sizeof(text), "%s%s", prefix, name);
    json_doc_put_text(isf->b, o, "kind", kind);
    json_doc_put_text(isf->b, o, "name", text);
    return o;
}

static json_object *isf_structure(struct isf *isf, const struct prcb_layout *l)
{
    return isf_named(isf, prcb_layout_is_union(l) ? "union" : "struct", "_", prcb_layout_name(l));
}

/* The format knows that something is a function and no more. */
static json_object *isf_function(struct isf *isf)
{
    json_object *o = json_object_new_object();

    json_doc_put_text(isf->b, o, "kind", "function");
    return o;
}

/* What a pointer points to: a structure known in this version, which is added, or void. */
static json_object *isf_target(struct isf *isf, const struct prcb_layout_field *f)
{
    struct prcb_layout *l;
    json_object *o;

    if (f->is_function)
        return isf_function(isf);
    if (prcb_layout_find_id(f->type, isf->version, isf->arch, &l, NULL))
        return isf_named(isf, "base", "", "void");
    isf_add_layout(isf, l);
    o = isf_structure(isf, l);
    prcb_layout_close(l);
    return o;
}

static void isf_enum(struct isf *isf, const struct prcb_layout *l,
                     const struct prcb_layout_field *f)
{
    json_object *o = json_object_new_object(), *constants = json_object_new_object();
    const char *name;
    uint64_t value;

    for (unsigned int i = 0; !prcb_layout_enum_at(l, f, i, &name, &value); i++)
        json_doc_put_number(isf->b, constants, name, value);
    json_doc_put_number(isf->b, o, "size", 4);
    json_doc_put_text(isf->b, o, "base", "ULONG");
    json_doc_put(isf->b, o, "constants", constants);
    json_doc_put(isf->b, isf->enums, f->type, o);
    isf_base(isf, "ULONG", "int", 4, false);
}

static json_object *isf_bits(struct isf *isf, const struct prcb_layout_field *f)
{
    json_object *o = json_object_new_object();

    json_doc_put_text(isf->b, o, "kind", "bitfield");
    json_doc_put_number(isf->b, o, "bit_position", f->bit_first);
    json_doc_put_number(isf->b, o, "bit_length", f->bit_width);
    json_doc_put(isf->b, o, "type", isf_named(isf, "base", "", f->type));
    return o;
}

static json_object *isf_array(struct isf *isf, uint32_t count, json_object *element)
{
    json_object *o = json_object_new_object();

    json_doc_put_text(isf->b, o, "kind", "array");
    json_doc_put_number(isf->b, o, "count", count);
    json_doc_put(isf->b, o, "subtype", element);
    return o;
}

static json_object *isf_pointer(struct isf *isf, const struct prcb_layout_field *f)
{
    json_object *o = json_object_new_object();

    json_doc_put_text(isf->b, o, "kind", "pointer");
    json_doc_put(isf->b, o, "subtype", isf_target(isf, f));
    return o;
}

/* A structure of which only the size is known. */
static json_object *isf_opaque(struct isf *isf, const struct prcb_layout_field *f)
{
    json_object *o = json_object_new_object();
    char name[96];

    snprintf(name, sizeof(name), "_%s", f->type);
    json_doc_put_text(isf->b, o, "kind", "struct");
    json_doc_put_number(isf->b, o, "size", f->size / f->count);
    json_doc_put(isf->b, o, "fields", json_object_new_object());
    json_doc_put(isf->b, isf->user, name, o);
    return isf_named(isf, "struct", "_", f->type);
}

static json_object *isf_element(struct isf *isf, const struct prcb_layout *l,
                                const struct prcb_layout_field *f)
{
    switch (f->kind) {
    case PRCB_LAYOUT_POINTER:
        return isf_pointer(isf, f);
    case PRCB_LAYOUT_ENUM:
        isf_enum(isf, l, f);
        return isf_named(isf, "enum", "", f->type);
    case PRCB_LAYOUT_NESTED:
        isf_add_layout(isf, f->layout);
        return isf_structure(isf, f->layout);
    case PRCB_LAYOUT_OPAQUE:
        return isf_opaque(isf, f);
    default:
        isf_base(isf, f->type, "int", f->size / f->count, f->kind == PRCB_LAYOUT_SIGNED);
        return f->bit_width ? isf_bits(isf, f) : isf_named(isf, "base", "", f->type);
    }
}

static json_object *isf_type(struct isf *isf, const struct prcb_layout *l,
                             const struct prcb_layout_field *f)
{
    json_object *o = isf_element(isf, l, f);

    if (f->inner)
        return isf_array(isf, f->count / f->inner, isf_array(isf, f->inner, o));
    return f->is_array ? isf_array(isf, f->count, o) : o;
}

static void isf_field(struct isf *isf, json_object *fields, const char *name, uint32_t offset,
                      json_object *type)
{
    json_object *o = json_object_new_object();

    json_doc_put_number(isf->b, o, "offset", offset);
    json_doc_put(isf->b, o, "type", type);
    json_doc_put(isf->b, fields, name, o);
}

/* Makes an inline structure or union of f and, behind it, its own members. */
static json_object *isf_inline(struct isf *isf, const struct prcb_layout *l,
                               const struct prcb_layout_field *f, size_t count)
{
    json_object *o = json_object_new_object(), *fields = json_object_new_object();
    const char *kind = strcmp(f->type, "UNION") ? "struct" : "union";
    size_t length = strlen(f->name);
    char name[160];

    for (size_t i = 1; i < count; i++)
        if (f[i].is_inner && !strncmp(f[i].name, f->name, length) && f[i].name[length] == '.')
            isf_field(isf, fields, f[i].name + length + 1, f[i].offset - f->offset,
                      isf_type(isf, l, &f[i]));
    snprintf(name, sizeof(name), "__unnamed_%s_%s", prcb_layout_name(l), f->name);
    json_doc_put_text(isf->b, o, "kind", kind);
    json_doc_put_number(isf->b, o, "size", f->size);
    json_doc_put(isf->b, o, "fields", fields);
    json_doc_put(isf->b, isf->user, name, o);
    return isf_named(isf, kind, "", name);
}

static void isf_add_layout(struct isf *isf, const struct prcb_layout *l)
{
    json_object *o, *fields;
    char name[96];
    size_t count;
    const struct prcb_layout_field *f = prcb_layout_members(l, &count);

    snprintf(name, sizeof(name), "_%s", prcb_layout_name(l));
    if (isf->b->failed || json_object_object_get_ex(isf->user, name, NULL))
        return;
    o = json_object_new_object();
    fields = json_object_new_object();
    json_doc_put(isf->b, isf->user, name, o); /* now, for structures that point to themselves */
    if (isf->b->failed)
        return; /* it is gone */
    json_doc_put_text(isf->b, o, "kind", prcb_layout_is_union(l) ? "union" : "struct");
    json_doc_put_number(isf->b, o, "size", prcb_layout_size(l));
    json_doc_put(isf->b, o, "fields", fields);
    for (size_t i = 0; i < count; i++) {
        if (f[i].is_inner)
            continue;
        isf_field(isf, fields, f[i].name, f[i].offset,
                  f[i].kind == PRCB_LAYOUT_INLINE ? isf_inline(isf, l, &f[i], count - i)
                                                  : isf_type(isf, l, &f[i]));
    }
}

static json_object *isf_metadata(struct json_doc *b)
{
    json_object *o = json_object_new_object(), *producer = json_object_new_object();
    time_t now = time(NULL);
    char text[32];
    struct tm tm;

    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    json_doc_put_text(b, producer, "name", "prcb");
    json_doc_put_text(b, producer, "version", prcb_version());
    json_doc_put_text(b, producer, "datetime", text);
    json_doc_put(b, o, "producer", producer);
    json_doc_put_text(b, o, "format", "6.2.0");
    return o;
}

int layout_isf(const struct layout_request *r, FILE *out, struct prcb_error *err)
{
    struct prcb_layout_version v = {.size = sizeof(v)};
    struct json_doc b = {0};
    json_object *root;
    struct prcb_layout *l;
    struct isf isf;
    int code = layout_open(r, r->version, &l, err);

    if (code)
        return code;
    prcb_layout_version(l, &v);
    isf = (struct isf){.version = v.id,
                       .arch = prcb_layout_arch(l),
                       .b = &b,
                       .base = json_object_new_object(),
                       .user = json_object_new_object(),
                       .enums = json_object_new_object()};
    isf_base(&isf, "void", "void", 0, false);
    isf_base(&isf, "pointer", "int", isf.arch == PRCB_ARCH_X86 ? 4 : 8, false);
    isf_add_layout(&isf, l);
    root = json_object_new_object();
    json_doc_put(&b, root, "metadata", isf_metadata(&b));
    json_doc_put(&b, root, "base_types", isf.base);
    json_doc_put(&b, root, "user_types", isf.user);
    json_doc_put(&b, root, "enums", isf.enums);
    json_doc_put(&b, root, "symbols", json_object_new_object());
    prcb_layout_close(l);
    return layout_write_json(&b, root, out, err);
}
