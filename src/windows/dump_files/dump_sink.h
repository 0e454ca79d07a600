/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Inside of dump_files: where the bytes of a compressed file go, and what reads ZIP archives.
 */
#ifndef PRCB_DUMP_SINK_H
#define PRCB_DUMP_SINK_H

#include "dump_files.h"

#define SINK_CHUNK (256 * 1024)

struct sink {
    int fd;
    uint64_t length, limit;
    const char *path;
    struct prcb_error *err;
    uint8_t buffer[SINK_CHUNK];
};

/* Takes the first `length` bytes of its buffer. */
int sink_take(struct sink *s, size_t length);
/* The error of data that do not unpack. */
int sink_damaged(struct sink *s, const char *format);

/* Unpacks the dump in a ZIP archive: the one file in it, or the one named *.dmp (dump_zip.c). */
int dump_zip_unpack(struct sink *s, const uint8_t *bytes, size_t length);

#endif
