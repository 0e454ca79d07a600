/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb layout -j, --all and --isf.
 */
#include "layout_request.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- -j ---- */

static void add_string(struct json_object *o, const char *key, const char *text)
{
    json_object_object_add(o, key, json_object_new_string(text));
}

static void add_number(struct json_object *o, const char *key, uint64_t number)
{
    json_object_object_add(o, key, json_object_new_uint64(number));
}

void layout_add_bits(struct json_object *object, const struct prcb_layout_field *f)
{
    struct json_object *bits;

    if (!f->bit_width)
        return;
    bits = json_object_new_array();
    json_object_array_add(bits, json_object_new_int(f->bit_first));
    json_object_array_add(bits, json_object_new_int(f->bit_width));
    json_object_object_add(object, "bits", bits);
}

static struct json_object *member_json(const struct prcb_layout_field *f)
{
    struct json_object *o = json_object_new_object();
    char type[96];

    prcb_layout_type_text(f, type, sizeof(type));
    add_string(o, "name", f->name);
    add_number(o, "offset", f->offset);
    add_string(o, "type", type);
    add_number(o, "size", f->size);
    layout_add_bits(o, f);
    return o;
}

/* version: as it is to be named. Members that were not read themselves, in a layout that was, are
 * left out: "source" speaks for all that are listed. */
static struct json_object *layout_object(const struct prcb_layout *l, const char *version)
{
    struct json_object *o = json_object_new_object();
    struct json_object *members = json_object_new_array();
    size_t count;
    const struct prcb_layout_field *f = prcb_layout_members(l, &count);

    add_string(o, "struct", prcb_layout_name(l));
    add_string(o, "version", version);
    add_string(o, "arch", prcb_arch_name(prcb_layout_arch(l)));
    add_number(o, "size", prcb_layout_size(l));
    add_string(o, "source", prcb_layout_source(l));
    if (prcb_layout_is_partial(l))
        json_object_object_add(o, "partial", json_object_new_boolean(true));
    if (*prcb_layout_note(l))
        add_string(o, "note", prcb_layout_note(l));
    for (size_t i = 0; i < count; i++)
        if (strcmp(f[i].source, "inferred"))
            json_object_array_add(members, member_json(&f[i]));
    json_object_object_add(o, "members", members);
    return o;
}

int layout_json(const struct layout_request *r)
{
    struct prcb_layout_version v = {.size = sizeof(v)};
    struct prcb_layout *l;
    int status = layout_open(r, r->version, &l);

    if (status)
        return status;
    prcb_layout_version(l, &v);
    layout_put_json(layout_object(l, v.name));
    prcb_layout_close(l);
    return CLI_OK;
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

static void print_distinct(const struct prcb_layout *l, unsigned int last)
{
    struct prcb_layout_version from = {.size = sizeof(from)}, to = {.size = sizeof(to)};

    prcb_layout_version(l, &from);
    prcb_layout_version_at(last, &to);
    if (from.id != to.id)
        printf("/* %s to %s */\n", from.name, to.name);
    prcb_layout_print(l, stdout);
    putchar('\n');
}

/* Each run of versions that share a layout, once. */
static void all_text(const char *structure, enum prcb_arch arch)
{
    struct prcb_layout *run = NULL;
    unsigned int last = 0;

    for (unsigned int v = 0; v < layout_version_count(); v++) {
        struct prcb_layout *l;

        if (!layout_version_has(v, arch))
            continue;
        l = layout_at(structure, v, arch);
        if (run && (!l || !same_layout(run, l))) {
            print_distinct(run, last);
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
        print_distinct(run, last);
    prcb_layout_close(run);
}

/* By build: a line for each version. By key: a line for the version that the key means. */
static void all_json(const struct layout_request *r, const char *structure, enum prcb_arch arch)
{
    for (unsigned int id = 0; id < layout_version_count(); id++) {
        struct prcb_layout *l = layout_at(structure, id, arch);
        struct prcb_layout_version v = {.size = sizeof(v)}, meant = {.size = sizeof(meant)};

        prcb_layout_version_at(id, &v);
        if (l && (!r->keys ||
                  (!prcb_layout_version_parse(v.key, arch, &meant, NULL, NULL) && meant.id == id)))
            layout_put_json(layout_object(l, r->keys ? v.key : v.name));
        prcb_layout_close(l);
    }
}

static void all_of(const struct layout_request *r, const char *structure)
{
    for (int arch = PRCB_ARCH_X86; arch <= PRCB_ARCH_X64; arch++) {
        if (r->arch_given && arch != (int)r->arch)
            continue;
        if (r->json)
            all_json(r, structure, (enum prcb_arch)arch);
        else
            all_text(structure, (enum prcb_arch)arch);
    }
}

int layout_all(const struct layout_request *r)
{
    const char *name;

    if (r->structure) {
        struct prcb_layout *l;
        int status = layout_open(r, NULL, &l); /* says so if there is no such structure */

        if (status)
            return status;
        all_of(r, prcb_layout_name(l));
        prcb_layout_close(l);
        return CLI_OK;
    }
    for (unsigned int i = 0; (name = prcb_layout_structure_at(i)); i++)
        all_of(r, name);
    return CLI_OK;
}

/* ---- --isf ----
 * The intermediate symbol format of volatility3: structures under "user_types" with a leading
 * underscore as the symbol files have it, inline ones under a name made from their place, and every
 * structure that can be reached by value or through a pointer in this version. */

struct isf {
    unsigned int version;
    enum prcb_arch arch;
    struct json_object *base, *user, *enums;
};

static void isf_add_layout(struct isf *isf, const struct prcb_layout *l);

static void isf_base(struct isf *isf, const char *name, const char *kind, uint32_t size,
                     bool is_signed)
{
    struct json_object *o;

    if (json_object_object_get_ex(isf->base, name, NULL))
        return;
    o = json_object_new_object();
    add_string(o, "kind", kind);
    add_number(o, "size", size);
    json_object_object_add(o, "signed", json_object_new_boolean(is_signed));
    add_string(o, "endian", "little");
    json_object_object_add(isf->base, name, o);
}

static struct json_object *isf_named(const char *kind, const char *prefix, const char *name)
{
    struct json_object *o = json_object_new_object();
    char text[160];

    snprintf(text, sizeof(text), "%s%s", prefix, name);
    add_string(o, "kind", kind);
    add_string(o, "name", text);
    return o;
}

static struct json_object *isf_structure(const struct prcb_layout *l)
{
    return isf_named(prcb_layout_is_union(l) ? "union" : "struct", "_", prcb_layout_name(l));
}

/* The format knows that something is a function and no more. */
static struct json_object *isf_function(void)
{
    struct json_object *o = json_object_new_object();

    add_string(o, "kind", "function");
    return o;
}

/* What a pointer points to: a structure known in this version, which is added, or void. */
static struct json_object *isf_target(struct isf *isf, const struct prcb_layout_field *f)
{
    struct prcb_layout *l;
    struct json_object *o;

    if (f->is_function)
        return isf_function();
    if (prcb_layout_find_id(f->type, isf->version, isf->arch, &l, NULL))
        return isf_named("base", "", "void");
    isf_add_layout(isf, l);
    o = isf_structure(l);
    prcb_layout_close(l);
    return o;
}

static void isf_enum(struct isf *isf, const struct prcb_layout *l,
                     const struct prcb_layout_field *f)
{
    struct json_object *o = json_object_new_object(), *constants = json_object_new_object();
    const char *name;
    uint64_t value;

    for (unsigned int i = 0; !prcb_layout_enum_at(l, f, i, &name, &value); i++)
        add_number(constants, name, value);
    add_number(o, "size", 4);
    add_string(o, "base", "ULONG");
    json_object_object_add(o, "constants", constants);
    json_object_object_add(isf->enums, f->type, o);
    isf_base(isf, "ULONG", "int", 4, false);
}

static struct json_object *isf_bits(const struct prcb_layout_field *f)
{
    struct json_object *o = json_object_new_object();

    add_string(o, "kind", "bitfield");
    add_number(o, "bit_position", f->bit_first);
    add_number(o, "bit_length", f->bit_width);
    json_object_object_add(o, "type", isf_named("base", "", f->type));
    return o;
}

static struct json_object *isf_array(uint32_t count, struct json_object *element)
{
    struct json_object *o = json_object_new_object();

    add_string(o, "kind", "array");
    add_number(o, "count", count);
    json_object_object_add(o, "subtype", element);
    return o;
}

static struct json_object *isf_pointer(struct isf *isf, const struct prcb_layout_field *f)
{
    struct json_object *o = json_object_new_object();

    add_string(o, "kind", "pointer");
    json_object_object_add(o, "subtype", isf_target(isf, f));
    return o;
}

/* A structure of which only the size is known. */
static struct json_object *isf_opaque(struct isf *isf, const struct prcb_layout_field *f)
{
    struct json_object *o = json_object_new_object();
    char name[96];

    snprintf(name, sizeof(name), "_%s", f->type);
    add_string(o, "kind", "struct");
    add_number(o, "size", f->size / f->count);
    json_object_object_add(o, "fields", json_object_new_object());
    json_object_object_add(isf->user, name, o);
    return isf_named("struct", "_", f->type);
}

static struct json_object *isf_element(struct isf *isf, const struct prcb_layout *l,
                                       const struct prcb_layout_field *f)
{
    switch (f->kind) {
    case PRCB_LAYOUT_POINTER:
        return isf_pointer(isf, f);
    case PRCB_LAYOUT_ENUM:
        isf_enum(isf, l, f);
        return isf_named("enum", "", f->type);
    case PRCB_LAYOUT_NESTED:
        isf_add_layout(isf, f->layout);
        return isf_structure(f->layout);
    case PRCB_LAYOUT_OPAQUE:
        return isf_opaque(isf, f);
    default:
        isf_base(isf, f->type, "int", f->size / f->count, f->kind == PRCB_LAYOUT_SIGNED);
        return f->bit_width ? isf_bits(f) : isf_named("base", "", f->type);
    }
}

static struct json_object *isf_type(struct isf *isf, const struct prcb_layout *l,
                                    const struct prcb_layout_field *f)
{
    struct json_object *o = isf_element(isf, l, f);

    if (f->inner)
        return isf_array(f->count / f->inner, isf_array(f->inner, o));
    return f->is_array ? isf_array(f->count, o) : o;
}

static void isf_field(struct json_object *fields, const char *name, uint32_t offset,
                      struct json_object *type)
{
    struct json_object *o = json_object_new_object();

    add_number(o, "offset", offset);
    json_object_object_add(o, "type", type);
    json_object_object_add(fields, name, o);
}

/* An inline structure or union: f and, behind it, its own members. */
static struct json_object *isf_inline(struct isf *isf, const struct prcb_layout *l,
                                      const struct prcb_layout_field *f, size_t count)
{
    struct json_object *o = json_object_new_object(), *fields = json_object_new_object();
    const char *kind = strcmp(f->type, "UNION") ? "struct" : "union";
    size_t length = strlen(f->name);
    char name[160];

    for (size_t i = 1; i < count; i++)
        if (f[i].is_inner && !strncmp(f[i].name, f->name, length) && f[i].name[length] == '.')
            isf_field(fields, f[i].name + length + 1, f[i].offset - f->offset,
                      isf_type(isf, l, &f[i]));
    snprintf(name, sizeof(name), "__unnamed_%s_%s", prcb_layout_name(l), f->name);
    add_string(o, "kind", kind);
    add_number(o, "size", f->size);
    json_object_object_add(o, "fields", fields);
    json_object_object_add(isf->user, name, o);
    return isf_named(kind, "", name);
}

static void isf_add_layout(struct isf *isf, const struct prcb_layout *l)
{
    struct json_object *o, *fields;
    char name[96];
    size_t count;
    const struct prcb_layout_field *f = prcb_layout_members(l, &count);

    snprintf(name, sizeof(name), "_%s", prcb_layout_name(l));
    if (json_object_object_get_ex(isf->user, name, NULL))
        return;
    o = json_object_new_object();
    fields = json_object_new_object();
    json_object_object_add(isf->user, name, o); /* now, for structures that point to themselves */
    add_string(o, "kind", prcb_layout_is_union(l) ? "union" : "struct");
    add_number(o, "size", prcb_layout_size(l));
    json_object_object_add(o, "fields", fields);
    for (size_t i = 0; i < count; i++) {
        if (f[i].is_inner)
            continue;
        isf_field(fields, f[i].name, f[i].offset,
                  f[i].kind == PRCB_LAYOUT_INLINE ? isf_inline(isf, l, &f[i], count - i)
                                                  : isf_type(isf, l, &f[i]));
    }
}

static struct json_object *isf_metadata(void)
{
    struct json_object *o = json_object_new_object(), *producer = json_object_new_object();
    time_t now = time(NULL);
    char text[32];
    struct tm tm;

    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    add_string(producer, "name", "prcb");
    add_string(producer, "version", prcb_version());
    add_string(producer, "datetime", text);
    json_object_object_add(o, "producer", producer);
    add_string(o, "format", "6.2.0");
    return o;
}

int layout_isf(const struct layout_request *r)
{
    struct prcb_layout_version v = {.size = sizeof(v)};
    struct json_object *root;
    struct prcb_layout *l;
    struct isf isf;
    int status = layout_open(r, r->version, &l);

    if (status)
        return status;
    prcb_layout_version(l, &v);
    isf = (struct isf){v.id, prcb_layout_arch(l), json_object_new_object(),
                       json_object_new_object(), json_object_new_object()};
    isf_base(&isf, "void", "void", 0, false);
    isf_base(&isf, "pointer", "int", isf.arch == PRCB_ARCH_X86 ? 4 : 8, false);
    isf_add_layout(&isf, l);
    root = json_object_new_object();
    json_object_object_add(root, "metadata", isf_metadata());
    json_object_object_add(root, "base_types", isf.base);
    json_object_object_add(root, "user_types", isf.user);
    json_object_object_add(root, "enums", isf.enums);
    json_object_object_add(root, "symbols", json_object_new_object());
    layout_put_json(root);
    prcb_layout_close(l);
    return CLI_OK;
}
