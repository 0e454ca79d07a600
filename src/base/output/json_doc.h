/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A JSON document being built. json-c reports lack of memory call by call; here that is kept
 * until the end, when the document is written or is not. Every call owns the value it is given,
 * also when it fails.
 */
#ifndef PRCB_OUTPUT_JSON_DOC_H
#define PRCB_OUTPUT_JSON_DOC_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <json-c/json.h>

struct json_doc {
    bool failed; /* memory ran out: the document lacks something */
};

/* The documents there are. */
enum json_format {
#define DOCUMENT(constant, name, version, command) JSON_##constant,
#include "documents.def"
#undef DOCUMENT
    JSON_FORMATS
};
struct json_format_info {
    const char *name;
    uint64_t version;
};
extern const struct json_format_info json_formats[JSON_FORMATS];

/* Returns a new document, which begins with its format and the format's version. NULL: no memory.
 */
json_object *json_doc_new(struct json_doc *b, enum json_format format);

void json_doc_put(struct json_doc *b, json_object *object, const char *key, json_object *value);
void json_doc_put_null(struct json_doc *b, json_object *object, const char *key);
void json_doc_put_number(struct json_doc *b, json_object *object, const char *key, uint64_t number);
void json_doc_put_bool(struct json_doc *b, json_object *object, const char *key, bool value);
/* null without it. */
void json_doc_put_member(struct json_doc *b, json_object *object, const char *key, uint64_t number,
                         bool present);
/* Adds a value made elsewhere; null without it, and value is then NULL. */
void json_doc_put_if(struct json_doc *b, json_object *object, const char *key, bool present,
                     json_object *value);
/* NULL is null; what is no UTF-8 becomes U+FFFD. */
void json_doc_put_text(struct json_doc *b, json_object *object, const char *key, const char *text);
/* Does the same with the first bytes of the text, most of them at most. */
void json_doc_put_cut(struct json_doc *b, json_object *object, const char *key, const char *text,
                      size_t most);
void json_doc_append(struct json_doc *b, json_object *array, json_object *value);

/* Adds bytes as one text of hexadecimal digits. */
json_object *json_doc_hex(const uint8_t *bytes, size_t length);

/* Writes the document as one line. 0 or -ENOMEM, and then nothing is written. */
int json_doc_write(struct json_doc *b, json_object *document, FILE *out);
/* Does the same over several lines, as people read it. */
int json_doc_write_pretty(struct json_doc *b, json_object *document, FILE *out);

#define JSON_BRIEF_BYTES 8192 /* of a brief document, with the line's end */

/* Makes a brief document of what is given, with as many rows of each list. */
typedef json_object *json_doc_make(struct json_doc *b, const void *of, size_t rows);

/* Writes a document of at most JSON_BRIEF_BYTES as one line: with rows_most rows, or with as many
 * fewer as it takes. As json_doc_write. */
int json_doc_write_brief(json_doc_make *make, const void *of, size_t rows_most, FILE *out);

#endif
