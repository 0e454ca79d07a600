/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb layout --decode and --encode.
 *
 * As JSON a structure is an object of its members, an array an array, an address a hex string, an
 * enumeration its name where it has one. What --decode -j writes, --encode reads back to the same
 * bytes: "bytes" has them all in hex, "values" is then put over them.
 */
#include "layout_show.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "number.h"

#define INPUT_LIMIT (16U << 20) /* of JSON */

/* ---- decode ---- */

struct decoder {
    struct json_doc *b;
    FILE *out;
    const struct prcb_layout *l; /* the whole structure, to which offsets are counted */
    const uint8_t *bytes;
    size_t length;
};

static json_object *scalar_json(const struct decoder *d, const struct prcb_layout_field *f,
                                uint32_t index)
{
    uint64_t value = 0;
    const char *name;
    char text[32];

    prcb_layout_decode(d->l, f, index, d->bytes, d->length, &value, NULL);
    name = prcb_layout_enum_name(d->l, f, value);
    if (name)
        return json_object_new_string(name);
    if (f->kind == PRCB_LAYOUT_SIGNED)
        return json_object_new_int64((int64_t)value);
    if (f->kind != PRCB_LAYOUT_POINTER)
        return json_object_new_uint64(value);
    snprintf(text, sizeof(text), "0x%" PRIx64, value);
    return json_object_new_string(text);
}

static json_object *members_json(const struct decoder *d, const struct prcb_layout *l,
                                 uint32_t base);

static json_object *element_json(const struct decoder *d, const struct prcb_layout_field *f,
                                 uint32_t index)
{
    uint32_t size = f->size / f->count;

    if (f->kind == PRCB_LAYOUT_NESTED)
        return members_json(d, f->layout, f->offset + index * size);
    if (f->kind == PRCB_LAYOUT_OPAQUE)
        return json_doc_hex(d->bytes + f->offset + index * size, size);
    return scalar_json(d, f, index);
}

/* Makes an array of the elements first .. first + count. */
static json_object *array_json(const struct decoder *d, const struct prcb_layout_field *f,
                               uint32_t first, uint32_t count)
{
    json_object *o = json_object_new_array();

    for (uint32_t i = 0; i < count; i++)
        json_doc_append(d->b, o, element_json(d, f, first + i));
    return o;
}

static json_object *field_json(const struct decoder *d, const struct prcb_layout_field *f)
{
    json_object *o;

    if (!f->inner)
        return f->is_array ? array_json(d, f, 0, f->count) : element_json(d, f, 0);
    o = json_object_new_array();
    for (uint32_t i = 0; i < f->count; i += f->inner)
        json_doc_append(d->b, o, array_json(d, f, i, f->inner));
    return o;
}

/* The members of an inline structure or union go into its own object. */
static json_object *members_json(const struct decoder *d, const struct prcb_layout *l,
                                 uint32_t base)
{
    json_object *o = json_object_new_object(), *outer;
    size_t count;
    const struct prcb_layout_field *fields = prcb_layout_members(l, &count);

    for (size_t i = 0; i < count; i++) {
        struct prcb_layout_field f = fields[i];
        const char *dot = strchr(f.name, '.');
        char name[64];

        f.offset += base;
        snprintf(name, sizeof(name), "%.*s", dot ? (int)(dot - f.name) : 63, f.name);
        if (f.kind == PRCB_LAYOUT_INLINE)
            json_doc_put(d->b, o, name, json_object_new_object());
        else if (!dot)
            json_doc_put(d->b, o, name, field_json(d, &f));
        else if (json_object_object_get_ex(o, name, &outer))
            json_doc_put(d->b, outer, dot + 1, field_json(d, &f));
    }
    return o;
}

static int print_json(const struct decoder *d, struct prcb_error *err)
{
    json_object *o = json_doc_new(d->b, JSON_LAYOUT_BYTES);
    struct prcb_layout_version v = {.size = sizeof(v)};

    prcb_layout_version(d->l, &v);
    json_doc_put_text(d->b, o, "struct", prcb_layout_name(d->l));
    json_doc_put_text(d->b, o, "version", v.name);
    json_doc_put_text(d->b, o, "arch", prcb_arch_name(prcb_layout_arch(d->l)));
    json_doc_put_number(d->b, o, "size", prcb_layout_size(d->l));
    json_doc_put_text(d->b, o, "source", prcb_layout_source(d->l));
    if (*prcb_layout_note(d->l))
        json_doc_put_text(d->b, o, "note", prcb_layout_note(d->l));
    json_doc_put(d->b, o, "values", members_json(d, d->l, 0));
    json_doc_put(d->b, o, "bytes", json_doc_hex(d->bytes, d->length));
    return layout_write_json(d->b, o, d->out, err);
}

static void print_leaf(const struct decoder *d, const struct prcb_layout_field *f)
{
    uint64_t value = 0;
    const char *name;

    fprintf(d->out, "0x%03X  %-40s ", f->offset, f->name);
    if (f->kind == PRCB_LAYOUT_OPAQUE) {
        for (uint32_t i = 0; i < f->size; i++)
            fprintf(d->out, "%02x", d->bytes[f->offset + i]);
        fputc('\n', d->out);
        return;
    }
    prcb_layout_decode(d->l, f, 0, d->bytes, d->length, &value, NULL);
    name = prcb_layout_enum_name(d->l, f, value);
    if (f->kind == PRCB_LAYOUT_POINTER)
        fprintf(d->out, "0x%" PRIx64 "\n", value);
    else if (f->kind == PRCB_LAYOUT_SIGNED)
        fprintf(d->out, "%" PRId64 "\n", (int64_t)value);
    else if (name)
        fprintf(d->out, "%" PRIu64 " %s\n", value, name);
    else
        fprintf(d->out, "%" PRIu64 "\n", value);
}

static void print_leaves(const struct decoder *d)
{
    size_t count;
    const struct prcb_layout_field *f = prcb_layout_leaves(d->l, &count);

    for (size_t i = 0; i < count; i++)
        print_leaf(d, &f[i]);
}

/* The whole structure must be there, so that what is printed cannot be half of it. */
static int decode_bytes(const struct layout_request *r, const struct prcb_layout *l, FILE *out,
                        struct prcb_error *err)
{
    struct json_doc b = {0};
    struct decoder d = {.b = &b, .out = out, .l = l};
    uint8_t *bytes;
    uint64_t *values;
    size_t count;
    int code = layout_read_file(r->file, r->offset, prcb_layout_size(l), &bytes, &d.length, err);

    if (code)
        return code;
    d.bytes = bytes;
    prcb_layout_leaves(l, &count);
    values = calloc(count + 1, sizeof(*values));
    if (count == 0)
        code =
            prcb_fail(err, -ENOENT, "%s has no members that could be decoded", prcb_layout_name(l));
    else if (!values)
        code = prcb_fail(err, -ENOMEM, "out of memory");
    else
        code = prcb_layout_decode_all(l, bytes, d.length, values, count, err);
    if (code && values && count)
        prcb_error_prepend(err, "%s: ", r->file);
    else if (!code && r->json)
        code = print_json(&d, err);
    else if (!code)
        print_leaves(&d);
    free(values);
    free(bytes);
    return code;
}

int layout_decode(const struct layout_request *r, FILE *out, struct prcb_error *err)
{
    struct prcb_layout *l;
    int code = layout_open(r, r->version, &l, err);

    if (code)
        return code;
    code = decode_bytes(r, l, out, err);
    prcb_layout_close(l);
    return code;
}

/* ---- encode ---- */

struct encoder {
    const struct layout_request *r;
    FILE *out;
    struct prcb_error *err;
    const struct prcb_layout *l;
    uint8_t *bytes;
    size_t length;
    char path[512]; /* of the member at hand */
};

static int encode_node(struct encoder *e, json_object *node);

/* Goes below the current path and comes back. */
static int encode_below(struct encoder *e, const char *step, json_object *node)
{
    size_t length = strlen(e->path);
    int code;

    if (length + strlen(step) >= sizeof(e->path))
        return prcb_fail(e->err, -EBADMSG, "%s%s: nested too deeply", e->path, step);
    strcpy(e->path + length, step);
    code = encode_node(e, node);
    e->path[length] = '\0';
    return code;
}

static int encode_object(struct encoder *e, json_object *node)
{
    struct json_object_iterator at = json_object_iter_begin(node);
    struct json_object_iterator end = json_object_iter_end(node);
    int code = 0;

    for (; !code && !json_object_iter_equal(&at, &end); json_object_iter_next(&at)) {
        const char *key = json_object_iter_peek_name(&at);
        char step[128];

        if ((size_t)snprintf(step, sizeof(step), "%s%s", *e->path ? "." : "", key) >= sizeof(step))
            return prcb_fail(e->err, -EBADMSG, "%s: no member has so long a name", key);
        code = encode_below(e, step, json_object_iter_peek_value(&at));
    }
    return code;
}

static int encode_array(struct encoder *e, json_object *node)
{
    for (size_t i = 0; i < json_object_array_length(node); i++) {
        char step[32];
        int code;

        snprintf(step, sizeof(step), "[%zu]", i);
        code = encode_below(e, step, json_object_array_get_idx(node, i));
        if (code)
            return code;
    }
    return 0;
}

static int unhex(const char *text, uint8_t *bytes, size_t length)
{
    if (!text)
        return -EINVAL;
    for (size_t i = 0; i < length; i++) {
        unsigned int byte;
        int used = 0;

        if (sscanf(text + 2 * i, "%2x%n", &byte, &used) != 1 || used != 2)
            return -EINVAL;
        bytes[i] = (uint8_t)byte;
    }
    return text[2 * length] ? -EINVAL : 0;
}

static int parse_enum(const struct encoder *e, const struct prcb_layout_field *f, const char *text,
                      uint64_t *ret)
{
    const char *name;
    uint64_t value;

    for (unsigned int i = 0; !prcb_layout_enum_at(e->l, f, i, &name, &value); i++) {
        if (!strcmp(name, text)) {
            *ret = value;
            return 0;
        }
    }
    return -EINVAL;
}

/* json-c cuts a number to the type that is asked for. A number that it would cut is refused, and
 * so is a negative number for an unsigned field. (Beyond 64 bits it has cut before anyone can
 * tell.) */
static int parse_number(const struct prcb_layout_field *f, json_object *node, uint64_t *ret)
{
    bool is_signed = f->kind == PRCB_LAYOUT_SIGNED;
    int64_t number = json_object_get_int64(node);
    uint64_t big = json_object_get_uint64(node);

    if (number < 0 ? !is_signed : is_signed && big > INT64_MAX)
        return -ERANGE;
    *ret = number < 0 ? (uint64_t)number : big;
    return 0;
}

/* Parses a number, "0x..." or, for an enumeration, a name. */
static int parse_value(const struct encoder *e, const struct prcb_layout_field *f,
                       json_object *node, uint64_t *ret)
{
    if (json_object_is_type(node, json_type_string)) {
        const char *text = json_object_get_string(node);

        return parse_enum(e, f, text, ret) ? number_parse(text, 0, UINT64_MAX, ret) : 0;
    }
    if (json_object_is_type(node, json_type_boolean)) {
        *ret = (uint64_t)json_object_get_boolean(node);
        return 0;
    }
    return json_object_is_type(node, json_type_int) ? parse_number(f, node, ret) : -EINVAL;
}

static int encode_value(struct encoder *e, json_object *node)
{
    struct prcb_layout_field f;
    uint64_t value;
    int code = prcb_layout_lookup(e->l, e->path, &f, e->err);

    if (code)
        return code;
    f.name = e->path;
    if (f.kind == PRCB_LAYOUT_OPAQUE && json_object_is_type(node, json_type_string)) {
        if (f.offset + f.size > e->length ||
            unhex(json_object_get_string(node), e->bytes + f.offset, f.size))
            return prcb_fail(e->err, -EBADMSG, "%s takes %u bytes in hex", e->path, f.size);
        return 0;
    }
    if (parse_value(e, &f, node, &value))
        return prcb_fail(e->err, -EBADMSG, "%s: not a value of %s: %s", e->path, f.type,
                         json_object_to_json_string(node));
    return prcb_layout_encode(e->l, &f, 0, value, e->bytes, e->length, e->err);
}

static int encode_node(struct encoder *e, json_object *node)
{
    if (json_object_is_type(node, json_type_null))
        return 0; /* absent: its bytes stay */
    if (json_object_is_type(node, json_type_object))
        return encode_object(e, node);
    if (json_object_is_type(node, json_type_array))
        return encode_array(e, node);
    return encode_value(e, node);
}

static int write_bytes(struct encoder *e)
{
    const char *path = e->r->output;
    FILE *out = path ? fopen(path, "wb") : e->out;
    bool bad;

    if (!out)
        return prcb_fail(e->err, -errno, "%s: %s", path, strerror(errno));
    bad = fwrite(e->bytes, 1, e->length, out) != e->length;
    bad |= path ? fclose(out) : fflush(out);
    return bad ? prcb_fail(e->err, -EIO, "%s: write failed", path ? path : "standard output") : 0;
}

/* --decode takes a partial structure that ends behind its last listed member, and "bytes" then does
 * too. */
static void shorten(struct encoder *e, const char *hex)
{
    size_t length = hex ? strlen(hex) / 2 : 0;

    if (length < e->length)
        e->length = length;
}

static int encode_all(struct encoder *e, json_object *root)
{
    json_object *values, *bytes;
    bool has_bytes = json_object_object_get_ex(root, "bytes", &bytes);
    bool has_values = json_object_object_get_ex(root, "values", &values);
    int code = 0;

    if (!has_bytes && !has_values)
        return prcb_fail(e->err, -EBADMSG, "%s: neither \"values\" nor \"bytes\"", e->r->file);
    if (has_bytes && prcb_layout_is_partial(e->l))
        shorten(e, json_object_get_string(bytes));
    if (has_bytes && unhex(json_object_get_string(bytes), e->bytes, e->length))
        return prcb_fail(e->err, -EBADMSG, "\"bytes\" must be %zu bytes in hex", e->length);
    if (has_values)
        code = encode_node(e, values);
    return code ? code : write_bytes(e);
}

static const char *text_of(json_object *root, const char *key, const char *otherwise)
{
    json_object *o;

    return !otherwise && json_object_object_get_ex(root, key, &o) ? json_object_get_string(o)
                                                                  : otherwise;
}

/* Structure, version and architecture come from the request, else from the JSON. */
static int encode_json(const struct layout_request *r, json_object *root, FILE *out,
                       struct prcb_error *err)
{
    struct layout_request request = *r;
    const char *arch = text_of(root, "arch", NULL);
    struct encoder e = {.r = &request, .out = out, .err = err};
    struct prcb_layout *l;
    int code;

    request.structure = text_of(root, "struct", r->structure);
    request.version = text_of(root, "version", r->version);
    if (!request.structure)
        return prcb_fail(err, -ENODATA, "which structure?");
    if (!r->arch_given && arch) {
        request.arch_given = true;
        code = prcb_arch_parse(arch, &request.arch, err);
        if (code) {
            prcb_error_prepend(err, "%s: ", r->file);
            return code;
        }
    }
    code = layout_open(&request, request.version, &l, err);
    if (code)
        return code;
    e.l = l;
    e.length = prcb_layout_size(l);
    e.bytes = calloc(1, e.length + 1);
    code = e.bytes ? encode_all(&e, root) : prcb_fail(err, -ENOMEM, "out of memory");
    free(e.bytes);
    prcb_layout_close(l);
    return code;
}

/* The text must be one object and nothing else; NULL if it is not. */
static json_object *parse_json(const uint8_t *text, size_t length)
{
    struct json_tokener *tokener = json_tokener_new();
    json_object *root;

    if (!tokener)
        return NULL;
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
    root = json_tokener_parse_ex(tokener, (const char *)text, (int)length);
    if (root && (!json_object_is_type(root, json_type_object) ||
                 json_tokener_get_parse_end(tokener) != length)) {
        json_object_put(root);
        root = NULL;
    }
    json_tokener_free(tokener);
    return root;
}

int layout_encode(const struct layout_request *r, FILE *out, struct prcb_error *err)
{
    json_object *root;
    uint8_t *text;
    size_t length;
    int code = layout_read_file(r->file, 0, INPUT_LIMIT, &text, &length, err);

    if (code)
        return code;
    root = parse_json(text, length);
    code = root ? encode_json(r, root, out, err)
                : prcb_fail(err, -EBADMSG, "%s: not a JSON object", r->file);
    json_object_put(root);
    free(text);
    return code;
}
