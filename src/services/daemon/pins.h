/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A directory of a BPF file system: what stands in it keeps running and keeps its memory without
 * any process. It is held by its descriptor, so that a process can still empty it that may no
 * longer walk to it.
 */
#ifndef PRCB_DAEMON_PINS_H
#define PRCB_DAEMON_PINS_H

#include <sys/types.h>

#include <stdbool.h>

#include <prcb/error.h>

/* Opens a directory for pins and makes it, with its parents, if it is missing; mounts a BPF file
 * system if the path leads to none. Returns a descriptor. */
int pins_open(const char *path, struct prcb_error *err);

/* Opens a directory below, or returns -errno. make: it is created, and must not exist yet. */
int pins_below(int dir, const char *name, bool make);

int pins_put(int dir, const char *name, int fd);
int pins_get(int dir, const char *name); /* a descriptor, or -errno */

/* Calls fn with the name of each pin in a directory that begins with prefix. Stops at a result
 * that is not 0 and returns it. */
int pins_each(int dir, const char *prefix, int (*fn)(int dir, const char *name, void *ctx),
              void *ctx);

/* Removes the pins in a directory whose names begin with prefix. */
int pins_empty(int dir, const char *name, const char *prefix);

/* Removes a directory of pins with all in it; -ENOENT: there is none. */
int pins_remove(int dir, const char *name);

#endif
