/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the files of `prcb dump` share. Each output function writes to the stream it is given and
 * keeps nothing, so that files can be read by several threads.
 */
#ifndef PRCB_CLI_DUMP_REQUEST_H
#define PRCB_CLI_DUMP_REQUEST_H

#include <stdio.h>

#include <prcb/dump.h>

#include "cli.h"

struct dump_tables;

struct dump_request {
    const struct cli_command *command;
    struct prcb_dump_options options;
    const struct dump_tables *symbols; /* --symbols; NULL: none */
    uint64_t unpack_limit;             /* bytes */
    bool json, ndjson, raw, thread, modules, stack;
    bool has_cpu;
    uint32_t cpu;
    const char *structure; /* --struct; NULL: none */
};

/* dump_open.c: opens a file, unpacking it first if it is compressed. */
int dump_open(const char *path, const struct dump_request *request, struct prcb_dump **ret,
              struct prcb_error *err);
/* Bytes unpacked so far, of all files together; from any thread. */
uint64_t dump_unpacked(void);
/* An fd of the file's bytes, unpacked into an unlinked file if they are compressed. */
int dump_unpack(const char *path, uint64_t limit, int *ret_fd, struct prcb_error *err);

/* dump_files.c: the files behind the arguments; directories give the dumps below them. */
struct dump_files {
    char **paths;
    size_t count, room;
};
int dump_files_add(struct dump_files *files, const char *path, struct prcb_error *err);
/* The files below a directory whose names end so, in order of their names. */
int dump_files_below(struct dump_files *files, const char *path, const char *const *endings,
                     struct prcb_error *err);
void dump_files_free(struct dump_files *files);

/* dump_symbols.c: the structures that dumps need, out of a volatility3 symbol file (ISF) or a PDB;
 * of a directory, out of each PDB below it. */
struct dump_symbols {
    char *path;
    struct prcb_dump_symbol *rows;
    size_t count, room;
};
struct dump_tables {
    struct dump_symbols *tables;
    size_t count;
    bool is_directory; /* each dump takes the one that fits it */
};
int dump_symbols_load(const char *path, uint64_t limit, struct dump_tables *ret,
                      struct prcb_error *err);
void dump_symbols_free(struct dump_tables *tables);
/* True if they have the same structures with the same members. */
bool dump_symbols_same(const struct dump_symbols *a, const struct dump_symbols *b);

/* dump_pdb.c: the named structures of a PDB, and what they hold by value, as an ISF has them. */
struct json_object;
bool dump_pdb_is(const uint8_t *bytes, size_t size);
int dump_pdb_read(const uint8_t *bytes, size_t size, const char *path, const char *const *wanted,
                  struct json_object **ret, struct prcb_error *err);

/* dump_text.c, dump_json.c. 0 or -errno with the reason in err. */
int dump_text(const struct prcb_dump *d, const char *path, const struct dump_request *request,
              FILE *out, struct prcb_error *err);
int dump_json(const struct prcb_dump *d, const char *path, const struct dump_request *request,
              FILE *out, struct prcb_error *err);
void dump_json_error(const char *path, const struct prcb_error *error, FILE *out);

/* Index of the processor that --cpu names, or of the one to show without: the crashing one, else
 * the first. -ENOENT: not in this dump. */
int dump_choose_cpu(const struct prcb_dump *d, const struct dump_request *request, size_t *ret,
                    struct prcb_error *err);
const char *dump_thread_state(uint64_t state); /* NULL: no name */
/* The value of a member that is_signed. */
int64_t dump_signed(const struct prcb_dump_member *m);
/* "2022-10-26 21:16:37.602" of a FILETIME, UTC. */
void dump_time_text(uint64_t filetime, char *ret, size_t size);

#endif
