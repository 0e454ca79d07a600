/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Opening crash dumps, with the symbols that fit.
 */
#include "dump_files.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define WARNING_SIZE 4096

static int open_with(int fd, const char *path, const struct dump_source *source,
                     const struct dump_symbols *table, struct prcb_dump **ret,
                     struct prcb_error *err)
{
    struct prcb_dump_options options = source->options;

    options.symbols = table ? table->rows : NULL;
    options.symbol_count = table ? table->count : 0;
    options.symbol_size = sizeof(struct prcb_dump_symbol);
    return prcb_dump_open_fd(fd, path, &options, ret, err);
}

static void warn(const struct dump_source *source, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void warn(const struct dump_source *source, const char *format, ...)
{
    char text[WARNING_SIZE];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    source->warn(source->ctx, text);
}

static bool uses_symbols(const struct prcb_dump *d)
{
    return prcb_dump_info(d)->layout_found == PRCB_DUMP_BY_SYMBOLS;
}

/* The first table of a file that the dump's debugger data agree with. Where none does, the first
 * all the same: the dump's notes say why it is not used. */
static int open_with_file(int fd, const char *path, const struct dump_source *source,
                          struct prcb_dump **ret, struct prcb_error *err)
{
    const struct dump_tables *t = source->symbols;

    for (size_t i = 0; i < t->count; i++) {
        struct prcb_dump *d;
        int code = open_with(fd, path, source, &t->tables[i], &d, err);

        if (code)
            return code;
        if (uses_symbols(d) || t->count == 1) {
            *ret = d;
            return 0;
        }
        prcb_dump_close(d);
    }
    return open_with(fd, path, source, t->tables, ret, err);
}

/* The table of a directory that the dump's debugger data agree with. Where none does, or several
 * that differ do, none is used. */
static int open_with_symbols(int fd, const char *path, const struct dump_source *source,
                             struct prcb_dump **ret, struct prcb_error *err)
{
    const struct dump_tables *t = source->symbols;
    const struct dump_symbols *fits = NULL;
    int code = 0;

    if (!t->is_directory)
        return open_with_file(fd, path, source, ret, err);
    for (size_t i = 0; i < t->count; i++) {
        struct prcb_dump *d;
        bool is_used;

        code = open_with(fd, path, source, &t->tables[i], &d, err);
        if (code)
            return code;
        is_used = uses_symbols(d);
        prcb_dump_close(d);
        if (is_used && fits && !dump_symbols_same(fits, &t->tables[i])) {
            warn(source, "%s: both %s and %s fit it, none is used: name one", path, fits->path,
                 t->tables[i].path);
            return open_with(fd, path, source, NULL, ret, err);
        }
        if (is_used && !fits)
            fits = &t->tables[i];
    }
    if (!fits)
        warn(source, "%s: none of the %zu PDBs of kernels fits it, none is used", path, t->count);
    return open_with(fd, path, source, fits, ret, err);
}

int dump_open(const char *path, const struct dump_source *source, struct prcb_dump **ret,
              struct prcb_error *err)
{
    int fd, code = dump_unpack(path, source->unpack_limit, &fd, err);

    if (code)
        return code;
    code = source->symbols ? open_with_symbols(fd, path, source, ret, err)
                           : prcb_dump_open_fd(fd, path, &source->options, ret, err);
    close(fd);
    return code;
}
