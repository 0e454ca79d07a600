/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Layouts of a user's own symbol file, and those that were saved of such files. No state.
 */
#ifndef PRCB_CLI_LAYOUT_SYMBOLS_H
#define PRCB_CLI_LAYOUT_SYMBOLS_H

#include "dump_files.h"
#include "layout_show.h"

struct layout_symbols {
    struct dump_tables tables;
    const struct dump_symbols *table; /* the one that is taken, of `tables` */
};
/* To be freed also after an error. */
int layout_symbols_load(const char *path, struct layout_symbols *ret, struct prcb_error *err);
void layout_symbols_free(struct layout_symbols *symbols);
/* A structure of it. -ENOENT: it is of another machine, or lacks it. */
int layout_symbols_find(const struct layout_symbols *symbols, const char *structure,
                        const char *version, enum prcb_arch arch, struct prcb_layout **ret,
                        struct prcb_error *err);
/* Lists its structures with what the catalog has otherwise; with a version, saves them. */
int layout_symbols_list(const struct layout_symbols *symbols, const struct layout_request *r,
                        FILE *out, struct prcb_error *err);

/* A structure of a saved version: layout_request.find. */
int layout_saved_find(void *ctx, const char *structure, const char *version, enum prcb_arch arch,
                      struct prcb_layout **ret, struct prcb_error *err);

#endif
