/* SPDX-License-Identifier: BSD-2-Clause */
#include "json_doc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

const struct json_format_info json_formats[] = {
#define DOCUMENT(constant, name, version, command) {"prcb-" name, version},
#include "documents.def"
#undef DOCUMENT
};

json_object *json_doc_new(struct json_doc *b, enum json_format format)
{
    json_object *document = json_object_new_object();

    json_doc_put_text(b, document, "format", json_formats[format].name);
    json_doc_put_number(b, document, "format_version", json_formats[format].version);
    return document;
}

void json_doc_put(struct json_doc *b, json_object *object, const char *key, json_object *value)
{
    if (!value || !object || json_object_object_add(object, key, value)) {
        json_object_put(value);
        b->failed = true;
    }
}

void json_doc_put_null(struct json_doc *b, json_object *object, const char *key)
{
    if (!object || json_object_object_add(object, key, NULL))
        b->failed = true;
}

void json_doc_put_number(struct json_doc *b, json_object *object, const char *key, uint64_t number)
{
    json_doc_put(b, object, key, json_object_new_uint64(number));
}

void json_doc_put_bool(struct json_doc *b, json_object *object, const char *key, bool value)
{
    json_doc_put(b, object, key, json_object_new_boolean(value));
}

void json_doc_put_member(struct json_doc *b, json_object *object, const char *key, uint64_t number,
                         bool present)
{
    if (present)
        json_doc_put_number(b, object, key, number);
    else
        json_doc_put_null(b, object, key);
}

void json_doc_put_text(struct json_doc *b, json_object *object, const char *key, const char *text)
{
    if (text)
        json_doc_put(b, object, key, json_object_new_string(text));
    else
        json_doc_put_null(b, object, key);
}

void json_doc_put_cut(struct json_doc *b, json_object *object, const char *key, const char *text,
                      size_t most)
{
    char *cut = text ? strndup(text, most) : NULL;

    b->failed |= text && !cut;
    json_doc_put_text(b, object, key, cut);
    free(cut);
}

void json_doc_put_if(struct json_doc *b, json_object *object, const char *key, bool present,
                     json_object *value)
{
    if (present)
        json_doc_put(b, object, key, value);
    else
        json_doc_put_null(b, object, key);
}

void json_doc_append(struct json_doc *b, json_object *array, json_object *value)
{
    if (!array || !value || json_object_array_add(array, value)) {
        json_object_put(value);
        b->failed = true;
    }
}

json_object *json_doc_hex(const uint8_t *bytes, size_t length)
{
    char *text = malloc(2 * length + 1);
    json_object *o;

    o = json_object_new_string(text ? text_hex(bytes, length, text) : "");
    free(text);
    return o;
}

static int write_as(struct json_doc *b, json_object *document, int flags, FILE *out)
{
    const char *text =
        b->failed || !document
            ? NULL
            : json_object_to_json_string_ext(document, flags | JSON_C_TO_STRING_NOSLASHESCAPE);

    if (text) {
        text_print(out, TEXT_DOCUMENT, text);
        fputc('\n', out);
    }
    json_object_put(document);
    return text ? 0 : -ENOMEM;
}

int json_doc_write(struct json_doc *b, json_object *document, FILE *out)
{
    return write_as(b, document, JSON_C_TO_STRING_PLAIN, out);
}

int json_doc_write_pretty(struct json_doc *b, json_object *document, FILE *out)
{
    return write_as(b, document, JSON_C_TO_STRING_PRETTY, out);
}

int json_doc_write_brief(json_doc_make *make, const void *of, size_t rows_most, FILE *out)
{
    for (size_t rows = rows_most;; rows--) {
        struct json_doc b = {0};
        json_object *document = make(&b, of, rows);
        const char *text = json_object_to_json_string_ext(document, JSON_C_TO_STRING_PLAIN);

        if (!rows || (text && strlen(text) < JSON_BRIEF_BYTES))
            return json_doc_write(&b, document, out);
        json_object_put(document);
    }
}
