/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Names of functions by address: of an ELF file with what debug information is found
 * for it, of the kernel, and of code that a just-in-time compiler tells of in
 * /tmp/perf-PID.map.
 *
 * Threads  One table by one thread at a time.
 */
#ifndef PRCB_RECORD_SYMBOLS_H
#define PRCB_RECORD_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct symbol {
    uint64_t start, end; /* end: first address behind it */
    char *name;
    int64_t tag; /* the caller's; 0 at first */
};

struct symbols; /* the functions of one file: opaque */

/* Each returns 0 or -errno. Files of others are read where it does no harm (names.h), and from
 * open descriptors: only the kernel's list is opened here. */

/* Finds installed debug information, by build id (hexadecimal) or by name, of which one is NULL.
 * Returns a descriptor, which the reader then owns; -1: there is none. */
typedef int (*symbols_fetch_fn)(void *ctx, const char *build_id, const char *link);

/* Owns the descriptor from here on. -ESTALE: the file is not the one with this build id (NULL or
 * "": not known). fetch may be NULL. */
int symbols_open_elf(int fd, const char *build_id, symbols_fetch_fn fetch, void *ctx,
                     struct symbols **ret);
/* Reads variables in place of functions. A place is an address, counted from where the file's
 * first page is mapped: memory that starts as zeros is in no file. There are no lines. */
int symbols_open_variables(int fd, symbols_fetch_fn fetch, void *ctx, struct symbols **ret);
/* -EPERM: /proc/kallsyms hides the addresses (kernel.kptr_restrict). */
int symbols_open_kernel(struct symbols **ret);
int symbols_read_perf_map(FILE *file, struct symbols **ret);
/* Reads the code that the kernel maps into every program, as this one has it. */
int symbols_open_vdso(struct symbols **ret);
void symbols_close(struct symbols *symbols); /* NULL is allowed */

/* Returns the function at a place, which is an offset in the file for an ELF file and the vdso,
 * else an address. NULL: none. */
struct symbol *symbols_find(struct symbols *symbols, uint64_t place);

/* Finds the line of source at a place of an ELF file with debug information:
 * "FILE\tNUMBER\tFUNCTION\tINLINED", where FUNCTION was compiled and INLINED was put into it
 * there, innermost first, "f < g". False: none is known. */
bool symbols_line(struct symbols *symbols, uint64_t place, char *ret, size_t size);

/* Returns the build id of the ELF file, as hexadecimal digits; "": it has none. */
const char *symbols_build_id(const struct symbols *symbols);

#endif
