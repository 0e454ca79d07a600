/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Layouts of Windows' structures as text, JSON and tables, and bytes of them into values and back:
 * one function per form, all by prcb/layout.h alone. They write to the stream they are given and
 * return 0 or -errno with the reason in *err. No state.
 */
#ifndef PRCB_SHOW_LAYOUT_SHOW_H
#define PRCB_SHOW_LAYOUT_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <prcb/layout.h>

#include "json_doc.h"

struct layout_request {
    const char *structure; /* NULL: none given */
    const char *version;   /* NULL: the newest the structure is known in */
    const char *diff[2];
    bool arch_given;
    enum prcb_arch arch;
    bool json, keys;
    const char *file;   /* to decode or encode; "-": standard input */
    const char *output; /* to encode into; NULL: the stream */
    uint64_t offset;
    /* Layouts that are not the catalog's, asked first; version NULL: any. -ENOENT: it has none.
     * NULL: there are none. */
    int (*find)(void *ctx, const char *structure, const char *version, enum prcb_arch arch,
                struct prcb_layout **ret, struct prcb_error *err);
    void (*note)(void *ctx, const char *text); /* what was assumed to find a layout */
    void *ctx;
};

/* Finds the layout asked for, and notes what was assumed. */
int layout_open(const struct layout_request *r, const char *version, struct prcb_layout **ret,
                struct prcb_error *err);
/* A layout known in one version, NULL if it is not; no words. */
struct prcb_layout *layout_at(const char *structure, unsigned int version, enum prcb_arch arch);
bool layout_version_has(unsigned int version, enum prcb_arch arch);
unsigned int layout_version_count(void);
/* Returns "early 5.1", "6.1", "1809", "11 22H2": one name for all builds of a key. */
const char *layout_version_label(unsigned int version, char *buffer, size_t size);

/* What the symbols of a kernel say otherwise than the catalog, which need not list all members and
 * names types its own way: how many changes, printed unless out is NULL. */
size_t layout_tell_differences(const struct prcb_layout *catalog, const struct prcb_layout *symbols,
                               FILE *out);
/* Makes the same as an array of JSON. */
json_object *layout_differences_json(struct json_doc *b, const struct prcb_layout *catalog,
                                     const struct prcb_layout *symbols);

/* Reads a file or standard input, at most `limit` bytes from `offset`. The caller frees *ret. */
int layout_read_file(const char *file, uint64_t offset, size_t limit, uint8_t **ret,
                     size_t *ret_length, struct prcb_error *err);

/* Puts "bits": [first, width], for a bit field only. */
void layout_put_bits(struct json_doc *b, json_object *object, const struct prcb_layout_field *f);
/* The end of each form that writes JSON: takes the document over and writes one line. */
int layout_write_json(struct json_doc *b, json_object *document, FILE *out, struct prcb_error *err);

typedef int layout_form(const struct layout_request *r, FILE *out, struct prcb_error *err);
layout_form layout_json, layout_all, layout_isf, layout_diff, layout_decode;
/* Returns -ENODATA if neither the request nor the file names a structure. */
layout_form layout_encode;

#endif
