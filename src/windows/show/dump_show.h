/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Crash dumps as text and as JSON. Each function writes to the stream it is given and keeps
 * nothing, so that files can be read by several threads.
 */
#ifndef PRCB_SHOW_DUMP_SHOW_H
#define PRCB_SHOW_DUMP_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <prcb/dump.h>

/* Says what of a dump to show; nothing asked for: an overview. */
struct dump_show {
    bool raw; /* numbers as stored */
    bool thread, modules, stack;
    bool brief; /* the machine and the cause, without processors */
    bool has_cpu;
    uint32_t cpu;
    const char *structure; /* NULL: none */
};

/* These return 0 or -errno with the reason in err. */
int dump_text(const struct prcb_dump *d, const char *path, const struct dump_show *show, FILE *out,
              struct prcb_error *err);
int dump_json(const struct prcb_dump *d, const char *path, const struct dump_show *show, FILE *out,
              struct prcb_error *err);
void dump_json_error(const char *path, const struct prcb_error *error, FILE *out);

/* Index of the processor that was asked for, or of the one to show without: the crashing one, else
 * the first. -ENOENT: not in this dump. */
int dump_choose_cpu(const struct prcb_dump *d, const struct dump_show *show, size_t *ret,
                    struct prcb_error *err);
const char *dump_thread_state(uint64_t state); /* NULL: no name */
/* Returns the value of a member that is_signed. */
int64_t dump_signed(const struct prcb_dump_member *m);
/* Writes "2022-10-26 21:16:37.602" of a FILETIME, UTC. */
void dump_time_text(uint64_t filetime, char *ret, size_t size);
/* Writes "2022-10-26" of an image's TimeDateStamp. False: it is no day before the crash, but a
 * hash. */
bool dump_date_text(const struct prcb_dump *d, uint32_t timestamp, char *ret, size_t size);

#endif
