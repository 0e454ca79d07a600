/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The bytes of a dump file, and the one way to walk them: a cursor that checks every step against
 * the end of the file and remembers where its last read began, so that an error names file and
 * offset. Little-endian, unaligned, whatever the host. No allocation; one thread per cursor.
 */
#ifndef PRCB_DUMP_CURSOR_H
#define PRCB_DUMP_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

struct dump_file {
    const uint8_t *bytes;
    uint64_t size;
    const char *name; /* for messages */
    bool is_mapped;   /* bytes belong to the dump, not to the caller */
};

struct dump_cursor {
    const struct dump_file *file;
    uint64_t at;       /* next byte */
    uint64_t previous; /* where the last read began */
    struct prcb_error *err;
};

/* Maps an open file for reading. */
int dump_file_map(int fd, const char *name, struct dump_file *ret, struct prcb_error *err);
void dump_file_unmap(struct dump_file *file);

/* True if [offset, offset + length) lies in the file. */
bool dump_file_holds(const struct dump_file *file, uint64_t offset, uint64_t length);

/* `what` names the thing in the message: "the triage header". -ENODATA past the end. */
int cursor_bytes(struct dump_cursor *c, const char *what, uint64_t length, const uint8_t **ret);
int cursor_u32(struct dump_cursor *c, const char *what, uint32_t *ret);
int cursor_u64(struct dump_cursor *c, const char *what, uint64_t *ret);
/* Reports an error at the last read: "FILE: offset 0x2000: text". Returns code. */
int cursor_fail(const struct dump_cursor *c, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Loads from checked bytes; size 1, 2, 4 or 8. */
uint64_t load_le(const uint8_t *bytes, size_t size);

#endif
