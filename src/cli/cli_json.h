/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A JSON document being built. json-c reports lack of memory call by call; here it is
 * kept until the end, when the document is written or is not. Every call takes over
 * the value it is given, also when it fails.
 */
#ifndef PRCB_CLI_JSON_H
#define PRCB_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <json-c/json.h>

struct cli_json {
    bool failed; /* memory ran out: the document lacks something */
};

void cli_json_put(struct cli_json *b, json_object *object, const char *key, json_object *value);
void cli_json_put_null(struct cli_json *b, json_object *object, const char *key);
void cli_json_put_number(struct cli_json *b, json_object *object, const char *key, uint64_t number);
void cli_json_put_bool(struct cli_json *b, json_object *object, const char *key, bool value);
/* null without it. */
void cli_json_put_member(struct cli_json *b, json_object *object, const char *key, uint64_t number,
                         bool present);
/* NULL is null; what is no UTF-8 becomes U+FFFD. */
void cli_json_put_text(struct cli_json *b, json_object *object, const char *key, const char *text);
void cli_json_append(struct cli_json *b, json_object *array, json_object *value);

/* Bytes as one text of hexadecimal digits. */
json_object *cli_json_hex(const uint8_t *bytes, size_t length);

/* Writes the document as one line. 0 or -ENOMEM, and then nothing is written. */
int cli_json_write(struct cli_json *b, json_object *document, FILE *out);

#endif
