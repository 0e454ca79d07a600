/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The table by which Go's own runtime unwinds (.gopclntab): functions, their names, and how far the
 * stack pointer lies below the return address at each of their instructions. Programs have it when
 * they are stripped of everything else. The bytes are somebody else's: nothing in them is believed.
 *
 * Versions  As written since Go 1.2, 1.16, 1.18 and 1.20.
 */
#ifndef PRCB_STACK_GO_TABLE_H
#define PRCB_STACK_GO_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Addresses are those of the file, not of a process. */
struct go_table {
    const unsigned char *bytes; /* the caller's, for as long as the table is used */
    size_t size;
    size_t count;               /* functions */
    size_t rows, names, depths; /* offsets of parts */
    size_t functions;           /* what functions' own offsets count from */
    size_t units, files;        /* of the parts with the files of each unit of compilation */
    unsigned head;              /* bytes of a function's fixed part; 0: its lines are not read */
    unsigned inlined;           /* bytes of a row about an inlined function, */
    unsigned behind_name;       /* and from its name to its end; where it is called comes next */
    unsigned row, entry;        /* bytes of a number in a row, of a function's first address */
    unsigned quantum;           /* bytes of the shortest instruction */
    uint64_t text;              /* what rows count from */
    size_t text_at;             /* offset of the word that says so; 0: rows are addresses */
    uint64_t address;           /* of the table itself, where a program has it */
    /* What the offsets of rows about inlined functions count from, as far as the file has it; NULL:
     * not known, and functions are what was compiled. The caller's. */
    const unsigned char *extra;
    size_t extra_size;
};

struct go_function {
    uint64_t begin, end;
    const char *name; /* ends within the table */
    uint32_t depths;  /* offset of its list in that part */
    uint64_t at;      /* offset of what is said of it, among the functions */
};

/* A function at an address: one that was compiled, or inlined into it. */
struct go_place {
    const char *function, *file; /* end within the table; file "": not known */
    uint32_t line;               /* 0: not known */
};

/* -EINVAL: no such table */
int go_table_open(const unsigned char *bytes, size_t size, struct go_table *ret);

/* False: there is no such row, or it is damaged; with row < table->count there may be more. */
bool go_table_row(const struct go_table *table, size_t row, struct go_function *ret);

/* Finds the function that an address lies in. */
bool go_table_find(const struct go_table *table, uint64_t address, struct go_function *ret);

/* Finds the bytes on the stack between the stack pointer and the return address (x86-64), or the
 * caller's frame (arm64, where the return address lies at the stack pointer; 0: it is in the
 * link register). False: the table does not tell. */
bool go_table_depth(const struct go_table *table, const struct go_function *function,
                    uint64_t address, uint64_t *ret);

/* Finds what an address lies in, innermost first: inlined functions, then the one that was
 * compiled, without those that the compiler made up. Returns how many. From Go 1.18 on; else one.
 */
size_t go_table_places(const struct go_table *table, const struct go_function *function,
                       uint64_t address, struct go_place *ret, size_t room);

#endif
