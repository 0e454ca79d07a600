/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli_json.h"

#include <errno.h>
#include <stdlib.h>

#include "text.h"

void cli_json_put(struct cli_json *b, json_object *object, const char *key, json_object *value)
{
    if (!value || !object || json_object_object_add(object, key, value)) {
        json_object_put(value);
        b->failed = true;
    }
}

void cli_json_put_null(struct cli_json *b, json_object *object, const char *key)
{
    if (!object || json_object_object_add(object, key, NULL))
        b->failed = true;
}

void cli_json_put_number(struct cli_json *b, json_object *object, const char *key, uint64_t number)
{
    cli_json_put(b, object, key, json_object_new_uint64(number));
}

void cli_json_put_bool(struct cli_json *b, json_object *object, const char *key, bool value)
{
    cli_json_put(b, object, key, json_object_new_boolean(value));
}

void cli_json_put_member(struct cli_json *b, json_object *object, const char *key, uint64_t number,
                         bool present)
{
    if (present)
        cli_json_put_number(b, object, key, number);
    else
        cli_json_put_null(b, object, key);
}

void cli_json_put_text(struct cli_json *b, json_object *object, const char *key, const char *text)
{
    if (text)
        cli_json_put(b, object, key, json_object_new_string(text));
    else
        cli_json_put_null(b, object, key);
}

void cli_json_append(struct cli_json *b, json_object *array, json_object *value)
{
    if (!array || !value || json_object_array_add(array, value)) {
        json_object_put(value);
        b->failed = true;
    }
}

json_object *cli_json_hex(const uint8_t *bytes, size_t length)
{
    char *text = malloc(2 * length + 1);
    json_object *o;

    for (size_t i = 0; text && i < length; i++)
        sprintf(text + 2 * i, "%02x", bytes[i]);
    o = json_object_new_string(text && length ? text : "");
    free(text);
    return o;
}

int cli_json_write(struct cli_json *b, json_object *document, FILE *out)
{
    const char *text = b->failed || !document
                           ? NULL
                           : json_object_to_json_string_ext(
                                 document, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

    if (text) {
        text_print(out, TEXT_DOCUMENT, text);
        fputc('\n', out);
    }
    json_object_put(document);
    return text ? 0 : -ENOMEM;
}
