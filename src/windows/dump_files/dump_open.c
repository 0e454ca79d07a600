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
    options.symbol_guid = table && table->has_guid ? table->guid : NULL;
    options.symbol_age = table ? table->age : 0;
    options.symbol_name = table ? table->path : NULL;
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

/* Takes the first table of a file that the dump's debugger data agree with. Where none does, it
 * takes the first all the same: the dump's notes say why it is not used. */
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

/* The table that a dump fits: several that differ are none, and then false with a warning. */
static int find_fitting(int fd, const char *path, const struct dump_source *source,
                        const struct dump_tables *t, const struct dump_symbols **ret,
                        bool *ret_contested, struct prcb_error *err)
{
    *ret = NULL;
    *ret_contested = false;
    for (size_t i = 0; i < t->count; i++) {
        struct prcb_dump *d;
        bool is_used;
        int code = open_with(fd, path, source, &t->tables[i], &d, err);

        if (code)
            return code;
        is_used = uses_symbols(d);
        prcb_dump_close(d);
        if (is_used && *ret && !dump_symbols_same(*ret, &t->tables[i])) {
            warn(source, "%s: both %s and %s fit it, none is used: name one", path, (*ret)->path,
                 t->tables[i].path);
            *ret = NULL;
            *ret_contested = true;
            return 0;
        }
        if (is_used && !*ret)
            *ret = &t->tables[i];
    }
    return 0;
}

/* Takes the table of a directory that the dump's debugger data agree with. Where none does, or
 * several that differ do, none is used. */
static int open_with_symbols(int fd, const char *path, const struct dump_source *source,
                             struct prcb_dump **ret, struct prcb_error *err)
{
    const struct dump_tables *t = source->symbols;
    const struct dump_symbols *fits;
    bool is_contested;
    int code;

    if (!t->is_directory)
        return open_with_file(fd, path, source, ret, err);
    code = find_fitting(fd, path, source, t, &fits, &is_contested, err);
    if (code)
        return code;
    if (!fits && !is_contested)
        warn(source, "%s: none of the %zu PDBs of kernels fits it, none is used", path, t->count);
    return open_with(fd, path, source, fits, ret, err);
}

/* Layouts that the user saved of the dump's build, where one of them fits. */
static int open_with_saved(int fd, const char *path, const struct dump_source *source,
                           struct prcb_dump **ret, struct prcb_error *err)
{
    const struct dump_tables *saved;
    const struct dump_symbols *fits = NULL;
    struct prcb_error why = {0};
    struct prcb_dump *d;
    bool is_contested;
    int code = prcb_dump_open_fd(fd, path, &source->options, ret, err);

    if (code || !source->saved)
        return code;
    saved = dump_saved_for(source->saved, prcb_dump_info(*ret)->build,
                           prcb_dump_info(*ret)->machine, &why);
    if (*why.text)
        warn(source, "%s", why.text);
    if (saved)
        code = find_fitting(fd, path, source, saved, &fits, &is_contested, err);
    if (!code && fits)
        code = open_with(fd, path, source, fits, &d, err);
    if (code || fits)
        prcb_dump_close(*ret);
    if (!code && fits)
        *ret = d;
    return code;
}

int dump_open(const char *path, const struct dump_source *source, struct prcb_dump **ret,
              struct prcb_error *err)
{
    int fd, code = dump_unpack(path, source->unpack_limit, &fd, err);

    if (code)
        return code;
    code = (source->symbols ? open_with_symbols : open_with_saved)(fd, path, source, ret, err);
    close(fd);
    return code;
}
