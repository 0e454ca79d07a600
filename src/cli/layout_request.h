/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the files of `prcb layout` share: the request as parsed, and one function per form of
 * output. All of them use the public prcb/layout.h only.
 */
#ifndef PRCB_CLI_LAYOUT_REQUEST_H
#define PRCB_CLI_LAYOUT_REQUEST_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <prcb/layout.h>

#include "cli.h"

struct layout_request {
    const struct cli_command *command;
    const char *structure; /* NULL: none given */
    const char *version;   /* NULL: the newest the structure is known in */
    const char *diff[2];   /* NULL: no --diff */
    unsigned int form;     /* 0: the default */
    bool arch_given;
    enum prcb_arch arch;
    bool json, keys;
    const char *file;   /* of --decode and --encode; "-": standard input */
    const char *output; /* of --encode; NULL: standard output */
    uint64_t offset;
};

/* Finds the layout asked for and prints what was assumed, or the error: CLI_OK or CLI_FAILED. */
int layout_open(const struct layout_request *r, const char *version, struct prcb_layout **ret);

/* Reads a file or standard input, at most `limit` bytes from `offset`. The caller frees *ret. */
int layout_read_file(const struct layout_request *r, uint64_t offset, size_t limit, uint8_t **ret,
                     size_t *ret_length);

/* One line of JSON on standard output; takes over the object. */
void layout_put_json(struct json_object *object);

/* "bits": [first, width], for a bit field only. */
void layout_add_bits(struct json_object *object, const struct prcb_layout_field *f);

/* A layout known in one version, NULL if it is not; no words. */
struct prcb_layout *layout_at(const char *structure, unsigned int version, enum prcb_arch arch);
bool layout_version_has(unsigned int version, enum prcb_arch arch);
unsigned int layout_version_count(void);
/* "early 5.1", "6.1", "1809", "11 22H2": one name for all builds of a key. */
const char *layout_version_label(unsigned int version, char *buffer, size_t size);

/* The forms of output. */
int layout_json(const struct layout_request *r);
int layout_all(const struct layout_request *r);
int layout_isf(const struct layout_request *r);
int layout_table(const struct layout_request *r);
int layout_diff(const struct layout_request *r);
int layout_decode(const struct layout_request *r);
int layout_encode(const struct layout_request *r);

#endif
