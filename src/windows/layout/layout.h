/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The inside of struct prcb_layout, for the files of src/windows/layout. Built by layout.c or
 * own.c, never changed after.
 */
#ifndef PRCB_LAYOUT_INSIDE_H
#define PRCB_LAYOUT_INSIDE_H

#include "catalog.h"

/* What a layout that is not the catalog's has instead of rows there. */
struct layout_own {
    struct type_row type;
    struct size_row size;
    struct version_row version;
    char *texts; /* of the outermost: all names in it */
};

struct prcb_layout {
    struct layout_own *own; /* NULL: the catalog's */
    const struct type_row *type;
    const struct size_row *size;
    enum grade grade;
    bool unread;          /* the grades of rows say nothing of it: all of it is inferred */
    unsigned int version; /* enum version_id */
    enum prcb_arch arch;
    struct prcb_layout_field *members; /* by offset; own their .layout */
    size_t member_count;
    struct prcb_layout_field *leaves; /* names in leaf_names */
    size_t leaf_count;
    char *leaf_names;
    uint32_t leaf_end; /* first byte behind the last leaf */
    char note[PRCB_LAYOUT_NOTE];
};

/* Finds the version that words mean. *ret_assumed: it is the nearest known one, and not what was
 * asked for. note as of prcb_layout_version_parse. */
int layout_version_resolve(const char *text, enum prcb_arch arch, unsigned int *ret,
                           bool *ret_assumed, char *note, struct prcb_error *err);

/* The row of sizes that covers a version; NULL: the structure is not known in it. */
const struct size_row *layout_find_size(const struct type_row *type, unsigned int version,
                                        enum prcb_arch arch);

/* The member is there in that version. */
static inline bool layout_row_applies(const struct member_row *row, unsigned int version,
                                      enum prcb_arch arch)
{
    return row->first <= version && version <= row->last && row->offset[arch] != NO_OFFSET;
}

static inline const struct version_row *layout_version_row(const struct prcb_layout *l)
{
    return l->own ? &l->own->version : &catalog_versions[l->version];
}

/* Parses "10.0.18362.295": returns how many numbers, 0 if the text is anything else. */
size_t layout_parse_numbers(const char *text, uint32_t ret[4]);

/* Sorts the members and lists the leaves: -E2BIG if there are more than `most`. */
int layout_finish(struct prcb_layout *l, size_t most, struct prcb_error *err);

static inline uint32_t layout_element_size(const struct prcb_layout_field *f)
{
    return f->size / f->count;
}

#endif
