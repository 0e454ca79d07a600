/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Crash dumps as people keep them: in directories, compressed, with files of symbols beside. No
 * state but a count of bytes; files can be opened by several threads.
 */
#ifndef PRCB_DUMP_FILES_H
#define PRCB_DUMP_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <prcb/dump.h>
#include <prcb/layout.h>

struct dump_tables;
struct dump_saved;

/* Says how to open dumps. */
struct dump_source {
    struct prcb_dump_options options;
    const struct dump_tables *symbols;         /* NULL: none */
    struct dump_saved *saved;                  /* without symbols; NULL: none */
    uint64_t unpack_limit;                     /* bytes that one file may unpack to */
    void (*warn)(void *ctx, const char *text); /* reports symbols that are not used; called from
                                                * any thread */
    void *ctx;
};

/* Opens a file, unpacking it first if it is compressed (dump_open.c). */
int dump_open(const char *path, const struct dump_source *source, struct prcb_dump **ret,
              struct prcb_error *err);
/* Returns the bytes unpacked so far, of all files together; from any thread. */
uint64_t dump_unpacked(void);
/* An fd of the file's bytes, unpacked into an unlinked file if they are compressed. */
int dump_unpack(const char *path, uint64_t limit, int *ret_fd, struct prcb_error *err);

/* Lists the files behind the arguments; directories give the dumps below them (dump_files.c). */
struct dump_files {
    char **paths;
    size_t count;
};
int dump_files_add(struct dump_files *files, const char *path, struct prcb_error *err);
/* The files below a directory whose names end so, in order of their names. */
int dump_files_below(struct dump_files *files, const char *path, const char *const *endings,
                     struct prcb_error *err);
void dump_files_free(struct dump_files *files);

/* dump_symbols.c: the structures that dumps need, out of a volatility3 symbol file (ISF) or a PDB;
 * of a directory, out of each PDB below it. */
struct json_object;
struct dump_symbols {
    char *path;
    struct prcb_dump_symbol *rows;
    size_t count;
    const char *machine; /* "x86", "x64", "arm64"; NULL: the file does not say */
    bool has_guid;
    uint8_t guid[16]; /* as an image has it, with age */
    uint32_t age;
    struct json_object *document; /* NULL unless it is kept */
};
struct dump_tables {
    struct dump_symbols *tables;
    size_t count;
    bool is_directory;    /* each dump takes the one that fits it */
    bool keeps_documents; /* set before loading */
};
int dump_symbols_load(const char *path, uint64_t limit, struct dump_tables *ret,
                      struct prcb_error *err);
/* The same for an open file, which is not packed. */
int dump_symbols_load_fd(int fd, const char *path, struct dump_tables *ret, struct prcb_error *err);
/* Names of the structures that are taken; NULL past the last. */
const char *dump_symbols_wanted(unsigned int index);
void dump_symbols_free(struct dump_tables *tables);
/* True if they have the same structures with the same members. */
bool dump_symbols_same(const struct dump_symbols *a, const struct dump_symbols *b);

/* dump_saved.c: layouts that the user saved, one symbol file (ISF) a build and machine, in
 * $XDG_DATA_HOME/prcb/layouts. The folder and the files in it must be the user's own. */
/* Writes those of a table whose document is kept. version: "10.0.26200.1742". *ret_path is the
 * caller's. */
int dump_saved_write(const struct dump_symbols *table, const char *version, char **ret_path,
                     struct prcb_error *err);
/* Those of a build, of all its revisions: read once, and kept until the end; from any thread. NULL:
 * none; why then says what is wrong, the first time, if anything is. */
struct dump_saved *dump_saved_start(void);
const struct dump_tables *dump_saved_for(struct dump_saved *saved, uint32_t build,
                                         const char *machine, struct prcb_error *why);
void dump_saved_end(struct dump_saved *saved);
/* A structure as of a saved version: that of these words if they are a build; without a revision,
 * the last one saved of a build that the catalog does not have. -ENOENT without words: none. */
struct prcb_layout;
int dump_saved_layout(const char *structure, const char *version, enum prcb_arch arch,
                      struct prcb_layout **ret, struct prcb_error *err);

/* dump_pdb.c: the named structures of a PDB, and what they hold by value, as an ISF has them. A PDB
 * may define KPRCB several times; nth: from the largest on. -ENOENT without words: no such. */
bool dump_pdb_is(const uint8_t *bytes, size_t size);
int dump_pdb_read(const uint8_t *bytes, size_t size, const char *path, const char *const *wanted,
                  unsigned int nth, struct json_object **ret, struct prcb_error *err);

#endif
